//! The syntax tree that front ends read: small, flat, and the same for every parser.
//!
//! Trees of tree-sitter are copied into it once (`from_tree_sitter`). After that, the kind, field, position and siblings of a node
//! are a lookup in one array.

use crate::convert::to_u32;
use crate::facts::SourceSpan;
use std::num::NonZeroU16;

/// Marks the absence of a node in links between nodes.
const NONE: u32 = u32::MAX;

/// The syntax tree of one file.
pub struct SyntaxTree {
    nodes: Vec<Data>,
    /// Byte offsets at which lines begin.
    lines: Vec<u32>,
    names: &'static GrammarNames,
}

/// Names of the numeric kinds and fields.
pub struct GrammarNames {
    pub kinds: Vec<&'static str>,
    /// Index 0 means no field.
    pub fields: Vec<&'static str>,
}

#[derive(Clone, Copy)]
struct Data {
    kind: u16,
    field: u8,
    flags: u8,
    start: u32,
    end: u32,
    first: u32,
    last: u32,
    next: u32,
    prev: u32,
}

/// Bits of `Data::flags`.
pub mod flag {
    /// The node has a name in the grammar; other nodes are punctuation and keywords.
    pub const NAMED: u8 = 1;
    /// The node may occur anywhere: a comment.
    pub const EXTRA: u8 = 1 << 1;
    /// The text of the node could not be parsed.
    pub const ERROR: u8 = 1 << 2;
    /// The parser inserted the node where the grammar requires one.
    pub const MISSING: u8 = 1 << 3;
    /// The node is an error or contains one.
    pub const BROKEN: u8 = 1 << 4;
}

impl SyntaxTree {
    /// An empty tree for a text.
    pub fn new(text: &str, names: &'static GrammarNames) -> SyntaxTree {
        let mut lines = Vec::with_capacity(text.len() / 32 + 1);
        lines.push(0);
        lines.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| to_u32(at) + 1));
        SyntaxTree { nodes: Vec::with_capacity(text.len() / 8 + 1), lines, names }
    }

    /// The root, which is the first node.
    pub fn root(&self) -> TreeNode<'_> {
        self.node(0)
    }

    /// The node at an index.
    pub fn node(&self, at: u32) -> TreeNode<'_> {
        TreeNode { tree: self, at }
    }

    /// Adds a node without parent and children, and returns its index. `start` and `end` are byte offsets.
    pub fn push(&mut self, kind: u16, flags: u8, start: u32, end: u32) -> u32 {
        let (first, last, next, prev) = (NONE, NONE, NONE, NONE);
        self.nodes.push(Data { kind, field: 0, flags, start, end, first, last, next, prev });
        to_u32(self.nodes.len()) - 1
    }

    /// Appends a node to the children of its parent.
    pub fn append(&mut self, parent: u32, child: u32, field: u8) {
        let last = std::mem::replace(&mut self.nodes[parent as usize].last, child);
        let data = &mut self.nodes[child as usize];
        (data.field, data.prev) = (field, last);
        match last {
            NONE => self.nodes[parent as usize].first = child,
            _ => self.nodes[last as usize].next = child,
        }
    }

    /// Appends the children of one node to those of another.
    pub fn move_children(&mut self, from: u32, to: u32) {
        let mut child = std::mem::replace(&mut self.nodes[from as usize].first, NONE);
        self.nodes[from as usize].last = NONE;
        while child != NONE {
            let next = std::mem::replace(&mut self.nodes[child as usize].next, NONE);
            let field = self.nodes[child as usize].field;
            self.append(to, child, field);
            child = next;
        }
    }

    /// Detaches the only child of a node; `None` unless there is exactly one.
    pub fn take_only_child(&mut self, node: u32) -> Option<u32> {
        let data = self.nodes[node as usize];
        (data.first != NONE && data.first == data.last).then(|| self.cut(node, data.first))
    }

    /// Detaches the first and the last child of a node and drops those between; `None` unless there are at least two.
    pub fn take_ends(&mut self, node: u32) -> Option<(u32, u32)> {
        let data = self.nodes[node as usize];
        (data.first != data.last).then(|| (self.cut(node, data.first), self.cut(node, data.last)))
    }

    /// Detaches a child. The parent loses all its children.
    fn cut(&mut self, parent: u32, child: u32) -> u32 {
        let data = &mut self.nodes[child as usize];
        (data.next, data.prev, data.field) = (NONE, NONE, 0);
        let parent = &mut self.nodes[parent as usize];
        (parent.first, parent.last) = (NONE, NONE);
        child
    }

    /// The number of nodes.
    pub fn len(&self) -> u32 {
        to_u32(self.nodes.len())
    }

    /// Drops all nodes from this index on. No remaining node may refer to them.
    pub fn truncate(&mut self, len: u32) {
        self.nodes.truncate(len as usize);
    }

    /// The byte offset at which a node begins.
    pub fn start(&self, node: u32) -> u32 {
        self.nodes[node as usize].start
    }

    pub fn set_start(&mut self, node: u32, start: u32) {
        self.nodes[node as usize].start = start;
    }

    pub fn set_end(&mut self, node: u32, end: u32) {
        self.nodes[node as usize].end = end;
    }

    /// The number of a node's kind.
    pub fn kind(&self, node: u32) -> u16 {
        self.nodes[node as usize].kind
    }

    pub fn set_kind(&mut self, node: u32, kind: u16) {
        self.nodes[node as usize].kind = kind;
    }

    fn position(&self, byte: u32) -> TextPosition {
        let row = self.lines.partition_point(|start| *start <= byte) - 1;
        TextPosition { row: to_u32(row), column: byte - self.lines[row] }
    }
}

/// The number of a field as a node keeps it.
fn field_number(field: NonZeroU16) -> u8 {
    u8::try_from(field.get()).expect("grammars with more fields are refused")
}

/// Converts a tree of tree-sitter. `seen` is called with each node and its index in the new tree.
pub fn from_tree_sitter(
    text: &str,
    tree: &tree_sitter::Tree,
    names: &'static GrammarNames,
    mut seen: impl FnMut(tree_sitter::Node<'_>, u32),
) -> SyntaxTree {
    let mut grown = SyntaxTree::new(text, names);
    let mut cursor = tree.walk();
    let mut parents: Vec<u32> = Vec::new();
    loop {
        let node = cursor.node();
        let flags = [
            (node.is_named(), flag::NAMED),
            (node.is_extra(), flag::EXTRA),
            (node.is_error(), flag::ERROR),
            (node.is_missing(), flag::MISSING),
            (node.has_error(), flag::BROKEN),
        ];
        let flags = flags.iter().filter(|(is, _)| *is).fold(0, |set, (_, flag)| set | flag);
        let at = grown.push(node.kind_id(), flags, to_u32(node.start_byte()), to_u32(node.end_byte()));
        seen(node, at);
        if let Some(parent) = parents.last() {
            grown.append(*parent, at, cursor.field_id().map_or(0, field_number));
        }
        if cursor.goto_first_child() {
            parents.push(at);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return grown;
            }
            parents.pop();
        }
    }
}

/// A position in the text, 0-based; columns are in bytes.
#[derive(Clone, Copy)]
pub struct TextPosition {
    pub row: u32,
    pub column: u32,
}

/// A node of a tree.
#[derive(Clone, Copy)]
pub struct TreeNode<'t> {
    tree: &'t SyntaxTree,
    at: u32,
}

impl PartialEq for TreeNode<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl<'t> TreeNode<'t> {
    fn data(self) -> &'t Data {
        &self.tree.nodes[self.at as usize]
    }

    fn to(self, at: u32) -> Option<TreeNode<'t>> {
        (at != NONE).then_some(TreeNode { tree: self.tree, at })
    }

    /// The name of the node's kind. Errors are not kinds of a grammar.
    pub fn kind(self) -> &'static str {
        self.tree.names.kinds.get(self.data().kind as usize).copied().unwrap_or("ERROR")
    }

    fn field(self) -> Option<&'static str> {
        match self.data().field {
            0 => None,
            field => self.tree.names.fields.get(field as usize).copied(),
        }
    }

    /// Unique among the nodes of one tree.
    pub fn id(self) -> u32 {
        self.at
    }

    pub fn start_byte(self) -> usize {
        self.data().start as usize
    }

    pub fn end_byte(self) -> usize {
        self.data().end as usize
    }

    pub fn start_position(self) -> TextPosition {
        self.tree.position(self.data().start)
    }

    pub fn end_position(self) -> TextPosition {
        self.tree.position(self.data().end)
    }

    /// Whether the node has a name in the grammar; other nodes are punctuation and keywords.
    pub fn is_named(self) -> bool {
        self.data().flags & flag::NAMED != 0
    }

    /// Whether the node may occur anywhere, such as a comment.
    pub fn is_extra(self) -> bool {
        self.data().flags & flag::EXTRA != 0
    }

    /// Whether the text of the node could not be parsed.
    pub fn is_error(self) -> bool {
        self.data().flags & flag::ERROR != 0
    }

    /// Whether the parser inserted the node where the grammar requires one.
    pub fn is_missing(self) -> bool {
        self.data().flags & flag::MISSING != 0
    }

    /// Whether the node is an error or contains one.
    pub fn has_error(self) -> bool {
        self.data().flags & flag::BROKEN != 0
    }

    /// The node before this one, with the same parent.
    pub fn prev_sibling(self) -> Option<TreeNode<'t>> {
        self.to(self.data().prev)
    }

    /// The children of the node.
    pub fn children(self) -> NodeChildren<'t> {
        NodeChildren(self)
    }
}

/// The children of a node, each with the field it fills.
#[derive(Clone, Copy)]
pub struct NodeChildren<'t>(TreeNode<'t>);

impl<'t> NodeChildren<'t> {
    /// The first child in a field.
    pub fn field(self, name: &str) -> Option<TreeNode<'t>> {
        self.all().find(|node| node.field() == Some(name))
    }

    /// All children in a field.
    pub fn fields(self, name: &str) -> impl Iterator<Item = TreeNode<'t>> {
        self.all().filter(move |node| node.field() == Some(name))
    }

    /// The first child of a kind.
    pub fn kind(self, kind: &str) -> Option<TreeNode<'t>> {
        self.all().find(|node| node.kind() == kind)
    }

    /// Named children without comments. Error nodes are kept, because they may contain valid syntax.
    pub fn named(self) -> impl DoubleEndedIterator<Item = TreeNode<'t>> + Clone {
        self.all().filter(|node| node.is_named() && (!node.is_extra() || node.is_error()))
    }

    /// All children, including punctuation and comments.
    pub fn all(self) -> NodeChildrenIter<'t> {
        let data = self.0.data();
        NodeChildrenIter { tree: self.0.tree, first: data.first, last: data.last }
    }

    /// All children with the field that each fills.
    pub fn with_fields(self) -> impl Iterator<Item = (Option<&'static str>, TreeNode<'t>)> {
        self.all().map(|node| (node.field(), node))
    }

    /// Whether a keyword such as `async` or `static` is among the children.
    pub fn has(self, word: &str) -> bool {
        self.kind(word).is_some()
    }
}

/// Iterates over all children, from either end.
#[derive(Clone)]
pub struct NodeChildrenIter<'t> {
    tree: &'t SyntaxTree,
    first: u32,
    last: u32,
}

impl<'t> NodeChildrenIter<'t> {
    /// Returns the node at one end and moves that end to the node next to it.
    fn take(
        &mut self,
        at: u32,
        beside: impl FnOnce(&Data) -> u32,
        end: impl FnOnce(&mut Self) -> &mut u32,
    ) -> Option<TreeNode<'t>> {
        if at == NONE {
            return None;
        }
        let node = TreeNode { tree: self.tree, at };
        if self.first == self.last {
            (self.first, self.last) = (NONE, NONE);
        } else {
            *end(self) = beside(node.data());
        }
        Some(node)
    }
}

impl<'t> Iterator for NodeChildrenIter<'t> {
    type Item = TreeNode<'t>;

    fn next(&mut self) -> Option<TreeNode<'t>> {
        self.take(self.first, |data| data.next, |all| &mut all.first)
    }
}

impl DoubleEndedIterator for NodeChildrenIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.take(self.last, |data| data.prev, |all| &mut all.last)
    }
}

/// The span of a node, with 1-based lines.
pub fn span(node: TreeNode<'_>) -> SourceSpan {
    let data = node.data();
    let (from, to) = (node.start_position(), node.end_position());
    SourceSpan {
        start: data.start,
        end: data.end,
        line: from.row + 1,
        end_line: to.row + 1,
        column: from.column,
        end_column: to.column,
    }
}

/// The 1-based line on which a node begins.
pub fn line(node: TreeNode<'_>) -> u32 {
    node.start_position().row + 1
}

/// The text of a node.
pub fn text<'t>(node: TreeNode<'_>, source: &'t str) -> &'t str {
    source.get(node.start_byte()..node.end_byte()).unwrap_or("")
}

/// The text on one line: each run of white space becomes one space.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(256));
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > SIGNATURE_BYTES {
            let mut end = SIGNATURE_BYTES;
            while !line.is_char_boundary(end) {
                end -= 1;
            }
            line.truncate(end);
            line.push('…');
            break;
        }
    }
    line
}

/// Longest signature that is recorded. Longer ones are generated, and the beginning matters most.
const SIGNATURE_BYTES: usize = 400;
/// Longest doc comment that is recorded. The purpose is usually at the beginning.
const DOC_BYTES: usize = 2_000;

/// The comments directly above a node, in the order of the text, joined and stripped of their markers; `None` without
/// any. `is_doc` distinguishes doc comments from others by their text.
pub fn doc_above(node: TreeNode<'_>, source: &str, is_doc: impl Fn(&str) -> bool) -> Option<Box<str>> {
    let mut lines: Vec<&str> = Vec::new();
    let mut below = node.start_position().row;
    let mut at = node.prev_sibling();
    while let Some(comment) = at {
        if !comment.is_extra() && !comment.kind().contains("comment") {
            break;
        }
        let written = text(comment, source);
        // In some grammars the node of a line comment includes its line break and so ends on the next row.
        let mut end = comment.end_position().row;
        if written.ends_with('\n') {
            end = end.saturating_sub(1);
        }
        if end + 1 < below || !is_doc(written) {
            break;
        }
        lines.push(written);
        below = comment.start_position().row;
        at = comment.prev_sibling();
    }
    if lines.is_empty() {
        return None;
    }
    lines.reverse();
    clean_doc(&lines.join("\n"))
}

/// A comment without its markers (`///`, `/** */`, `#`, leading `*`).
pub fn clean_doc(written: &str) -> Option<Box<str>> {
    let mut text = String::new();
    for line in written.lines() {
        let line = line.trim();
        let line = line.trim_start_matches("/**").trim_start_matches("/*!").trim_start_matches("/*");
        let line = line.trim_end_matches("*/");
        let line = line.trim_start_matches("///").trim_start_matches("//!").trim_start_matches("//");
        let line = line.trim_start_matches('#');
        let line = line.strip_prefix("* ").or_else(|| line.strip_prefix(" * ")).unwrap_or(line);
        let line = if line.trim() == "*" { "" } else { line };
        text.push_str(line.trim());
        text.push('\n');
    }
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    Some(cut(text, DOC_BYTES).into())
}

/// The beginning of a text, at most this many bytes, without splitting a character.
pub fn cut(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let mut end = bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The first syntax error, with its line.
pub fn first_fault(root: TreeNode<'_>) -> Option<(u32, Box<str>)> {
    if !root.has_error() {
        return None;
    }
    let mut at = root;
    while let Some(next) = at.children().all().find(|c| c.has_error() || c.is_missing()) {
        at = next;
        if at.is_error() || at.is_missing() {
            break;
        }
    }
    let what = if at.is_missing() { format!("`{}` is missing", at.kind()) } else { "cannot be understood".into() };
    Some((line(at), what.into()))
}
