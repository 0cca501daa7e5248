//! The syntax tree that front ends read: small, flat, the same whoever parsed the text.
//!
//! Parsers of other kinds copy what they found into it once (`grown`). Nodes then know their kind, field, place and
//! neighbours by a look at one array, however often they are asked.

use crate::facts::Span;

/// No node, in links between nodes.
const NONE: u32 = u32::MAX;

pub struct Tree {
    nodes: Vec<Data>,
    /// Where lines begin.
    lines: Vec<u32>,
    names: &'static Names,
}

/// What the numbers of kinds and fields stand for.
pub struct Names {
    pub kinds: Vec<&'static str>,
    /// The first is no field.
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

/// Sets of `Data::flags`.
pub mod flag {
    pub const NAMED: u8 = 1;
    pub const EXTRA: u8 = 1 << 1;
    pub const ERROR: u8 = 1 << 2;
    pub const MISSING: u8 = 1 << 3;
    /// There is an error in it, or it is one.
    pub const BROKEN: u8 = 1 << 4;
}

impl Tree {
    pub fn new(text: &str, names: &'static Names) -> Tree {
        let mut lines = Vec::with_capacity(text.len() / 32 + 1);
        lines.push(0);
        lines.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at as u32 + 1));
        Tree { nodes: Vec::with_capacity(text.len() / 8 + 1), lines, names }
    }

    /// The first node is the root.
    pub fn root(&self) -> Node<'_> {
        self.node(0)
    }

    pub fn node(&self, at: u32) -> Node<'_> {
        Node { tree: self, at }
    }

    pub fn push(&mut self, kind: u16, flags: u8, start: u32, end: u32) -> u32 {
        let (first, last, next, prev) = (NONE, NONE, NONE, NONE);
        self.nodes.push(Data { kind, field: 0, flags, start, end, first, last, next, prev });
        self.nodes.len() as u32 - 1
    }

    /// Puts a node behind the other children of its parent.
    pub fn append(&mut self, parent: u32, child: u32, field: u8) {
        let last = std::mem::replace(&mut self.nodes[parent as usize].last, child);
        let data = &mut self.nodes[child as usize];
        (data.field, data.prev) = (field, last);
        match last {
            NONE => self.nodes[parent as usize].first = child,
            _ => self.nodes[last as usize].next = child,
        }
    }

    /// Puts the children of one node behind those of another.
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

    /// Takes its only child out of a node.
    pub fn take_only_child(&mut self, node: u32) -> Option<u32> {
        let data = self.nodes[node as usize];
        (data.first != NONE && data.first == data.last).then(|| self.cut(node, data.first))
    }

    /// Takes the first and the last child out of a node.
    pub fn take_ends(&mut self, node: u32) -> Option<(u32, u32)> {
        let data = self.nodes[node as usize];
        (data.first != data.last).then(|| (self.cut(node, data.first), self.cut(node, data.last)))
    }

    /// Makes a child stand alone; its parent is given up.
    fn cut(&mut self, parent: u32, child: u32) -> u32 {
        let data = &mut self.nodes[child as usize];
        (data.next, data.prev, data.field) = (NONE, NONE, 0);
        let parent = &mut self.nodes[parent as usize];
        (parent.first, parent.last) = (NONE, NONE);
        child
    }

    pub fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Forgets all nodes from a number on; none that stay may know them.
    pub fn truncate(&mut self, len: u32) {
        self.nodes.truncate(len as usize);
    }

    pub fn start(&self, node: u32) -> u32 {
        self.nodes[node as usize].start
    }

    pub fn set_start(&mut self, node: u32, start: u32) {
        self.nodes[node as usize].start = start;
    }

    pub fn set_end(&mut self, node: u32, end: u32) {
        self.nodes[node as usize].end = end;
    }

    pub fn kind(&self, node: u32) -> u16 {
        self.nodes[node as usize].kind
    }

    pub fn set_kind(&mut self, node: u32, kind: u16) {
        self.nodes[node as usize].kind = kind;
    }

    fn position(&self, byte: u32) -> Position {
        let row = self.lines.partition_point(|start| *start <= byte) - 1;
        Position { row: row as u32, column: byte - self.lines[row] }
    }
}

/// A tree of tree-sitter as one of ours. `seen` is told of each node and its number.
pub fn grown(
    text: &str,
    tree: &tree_sitter::Tree,
    names: &'static Names,
    mut seen: impl FnMut(tree_sitter::Node<'_>, u32),
) -> Tree {
    let mut grown = Tree::new(text, names);
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
        let at = grown.push(node.kind_id(), flags, node.start_byte() as u32, node.end_byte() as u32);
        seen(node, at);
        if let Some(parent) = parents.last() {
            grown.append(*parent, at, cursor.field_id().map_or(0, |field| field.get() as u8));
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

/// Both from 0, columns in bytes.
#[derive(Clone, Copy)]
pub struct Position {
    pub row: u32,
    pub column: u32,
}

#[derive(Clone, Copy)]
pub struct Node<'t> {
    tree: &'t Tree,
    at: u32,
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl<'t> Node<'t> {
    fn data(self) -> &'t Data {
        &self.tree.nodes[self.at as usize]
    }

    fn to(self, at: u32) -> Option<Node<'t>> {
        (at != NONE).then_some(Node { tree: self.tree, at })
    }

    /// Errors have no place among the kinds of a grammar.
    pub fn kind(self) -> &'static str {
        self.tree.names.kinds.get(self.data().kind as usize).copied().unwrap_or("ERROR")
    }

    fn field(self) -> Option<&'static str> {
        match self.data().field {
            0 => None,
            field => self.tree.names.fields.get(field as usize).copied(),
        }
    }

    /// The same for the same node of the same tree, and for no other.
    pub fn id(self) -> u32 {
        self.at
    }

    pub fn start_byte(self) -> usize {
        self.data().start as usize
    }

    pub fn end_byte(self) -> usize {
        self.data().end as usize
    }

    pub fn start_position(self) -> Position {
        self.tree.position(self.data().start)
    }

    pub fn end_position(self) -> Position {
        self.tree.position(self.data().end)
    }

    pub fn is_named(self) -> bool {
        self.data().flags & flag::NAMED != 0
    }

    pub fn is_extra(self) -> bool {
        self.data().flags & flag::EXTRA != 0
    }

    pub fn is_error(self) -> bool {
        self.data().flags & flag::ERROR != 0
    }

    pub fn is_missing(self) -> bool {
        self.data().flags & flag::MISSING != 0
    }

    pub fn has_error(self) -> bool {
        self.data().flags & flag::BROKEN != 0
    }

    pub fn prev_sibling(self) -> Option<Node<'t>> {
        self.to(self.data().prev)
    }

    pub fn kids(self) -> Kids<'t> {
        Kids(self)
    }
}

/// The children of a node, each with the field it fills.
#[derive(Clone, Copy)]
pub struct Kids<'t>(Node<'t>);

impl<'t> Kids<'t> {
    pub fn field(self, name: &str) -> Option<Node<'t>> {
        self.all().find(|node| node.field() == Some(name))
    }

    pub fn fields(self, name: &str) -> impl Iterator<Item = Node<'t>> {
        self.all().filter(move |node| node.field() == Some(name))
    }

    pub fn kind(self, kind: &str) -> Option<Node<'t>> {
        self.all().find(|node| node.kind() == kind)
    }

    /// Named children, comments left out. What could not be understood is kept: there may be sense inside.
    pub fn named(self) -> impl DoubleEndedIterator<Item = Node<'t>> + Clone {
        self.all().filter(|node| node.is_named() && (!node.is_extra() || node.is_error()))
    }

    pub fn all(self) -> All<'t> {
        let data = self.0.data();
        All { tree: self.0.tree, first: data.first, last: data.last }
    }

    pub fn with_fields(self) -> impl Iterator<Item = (Option<&'static str>, Node<'t>)> {
        self.all().map(|node| (node.field(), node))
    }

    /// Whether a word like `async` or `static` stands among the children.
    pub fn has(self, word: &str) -> bool {
        self.kind(word).is_some()
    }
}

/// All children, from either end.
#[derive(Clone)]
pub struct All<'t> {
    tree: &'t Tree,
    first: u32,
    last: u32,
}

impl<'t> All<'t> {
    /// Gives one end and goes on with what is beside it, unless it was the last one.
    fn take(
        &mut self,
        at: u32,
        beside: impl FnOnce(&Data) -> u32,
        end: impl FnOnce(&mut Self) -> &mut u32,
    ) -> Option<Node<'t>> {
        if at == NONE {
            return None;
        }
        let node = Node { tree: self.tree, at };
        if self.first == self.last {
            (self.first, self.last) = (NONE, NONE);
        } else {
            *end(self) = beside(node.data());
        }
        Some(node)
    }
}

impl<'t> Iterator for All<'t> {
    type Item = Node<'t>;

    fn next(&mut self) -> Option<Node<'t>> {
        self.take(self.first, |data| data.next, |all| &mut all.first)
    }
}

impl DoubleEndedIterator for All<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.take(self.last, |data| data.prev, |all| &mut all.last)
    }
}

pub fn span(node: Node<'_>) -> Span {
    let data = node.data();
    let (from, to) = (node.start_position(), node.end_position());
    Span {
        start: data.start,
        end: data.end,
        line: from.row + 1,
        end_line: to.row + 1,
        column: from.column,
        end_column: to.column,
    }
}

pub fn line(node: Node<'_>) -> u32 {
    node.start_position().row + 1
}

pub fn text<'t>(node: Node<'_>, source: &'t str) -> &'t str {
    source.get(node.start_byte()..node.end_byte()).unwrap_or("")
}

/// Text between two places on one line: runs of white space become one space.
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

/// Longest signature kept: longer ones are generated, and a reader wants the beginning.
const SIGNATURE_BYTES: usize = 400;
/// Longest doc comment kept: what is said first is what it is for.
const DOC_BYTES: usize = 2_000;

/// The comments directly above a node, oldest first, joined and stripped of their marks; `None` without any.
/// `is_doc` tells doc comments from others by their text.
pub fn doc_above(node: Node<'_>, source: &str, is_doc: impl Fn(&str) -> bool) -> Option<Box<str>> {
    let mut lines: Vec<&str> = Vec::new();
    let mut below = node.start_position().row;
    let mut at = node.prev_sibling();
    while let Some(comment) = at {
        if !comment.is_extra() && !comment.kind().contains("comment") {
            break;
        }
        let written = text(comment, source);
        // Grammars that end a line comment after its line break say so by their end.
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

/// A comment without its marks (`///`, `/** */`, `#`, leading `*`).
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

/// The first place that could not be understood, as a fault.
pub fn first_fault(root: Node<'_>) -> Option<(u32, Box<str>)> {
    if !root.has_error() {
        return None;
    }
    let mut at = root;
    while let Some(next) = at.kids().all().find(|c| c.has_error() || c.is_missing()) {
        at = next;
        if at.is_error() || at.is_missing() {
            break;
        }
    }
    let what = if at.is_missing() { format!("`{}` is missing", at.kind()) } else { "cannot be understood".into() };
    Some((line(at), what.into()))
}
