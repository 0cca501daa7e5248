//! Reading a syntax tree: children with their fields in one pass, spans, texts, comments.

use crate::facts::Span;
use smallvec::SmallVec;
use tree_sitter::{Node, TreeCursor};

/// The children of a node, each with the field it fills.
pub struct Kids<'t>(SmallVec<[(Option<&'t str>, Node<'t>); 8]>);

impl<'t> Kids<'t> {
    pub fn of(node: Node<'t>, cursor: &mut TreeCursor<'t>) -> Kids<'t> {
        let mut kids = SmallVec::new();
        cursor.reset(node);
        if cursor.goto_first_child() {
            loop {
                kids.push((cursor.field_name(), cursor.node()));
                if !cursor.goto_next_sibling() {
                    break;
                }
            }
        }
        Kids(kids)
    }

    pub fn field(&self, name: &str) -> Option<Node<'t>> {
        self.0.iter().find(|(field, _)| *field == Some(name)).map(|(_, node)| *node)
    }

    pub fn fields<'k>(&'k self, name: &'k str) -> impl Iterator<Item = Node<'t>> + 'k {
        self.0.iter().filter(move |(field, _)| *field == Some(name)).map(|(_, node)| *node)
    }

    pub fn kind(&self, kind: &str) -> Option<Node<'t>> {
        self.0.iter().find(|(_, node)| node.kind() == kind).map(|(_, node)| *node)
    }

    /// Named children, comments left out. What could not be understood is kept: there may be sense inside.
    pub fn named<'k>(&'k self) -> impl DoubleEndedIterator<Item = Node<'t>> + 'k {
        self.0.iter().map(|(_, node)| *node).filter(|node| node.is_named() && (!node.is_extra() || node.is_error()))
    }

    pub fn all<'k>(&'k self) -> impl DoubleEndedIterator<Item = Node<'t>> + 'k {
        self.0.iter().map(|(_, node)| *node)
    }

    pub fn with_fields<'k>(&'k self) -> impl Iterator<Item = (Option<&'t str>, Node<'t>)> + 'k {
        self.0.iter().copied()
    }

    /// Whether a word like `async` or `static` stands among the children.
    pub fn has(&self, word: &str) -> bool {
        self.0.iter().any(|(_, node)| node.kind() == word)
    }
}

pub fn span(node: Node<'_>) -> Span {
    let (from, to) = (node.start_position(), node.end_position());
    Span {
        start: node.start_byte() as u32,
        end: node.end_byte() as u32,
        line: from.row as u32 + 1,
        end_line: to.row as u32 + 1,
        column: from.column as u32,
        end_column: to.column as u32,
    }
}

pub fn line(node: Node<'_>) -> u32 {
    node.start_position().row as u32 + 1
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
    loop {
        let mut cursor = at.walk();
        let Some(next) = at.children(&mut cursor).find(|c| c.has_error() || c.is_missing()) else { break };
        at = next;
        if at.is_error() || at.is_missing() {
            break;
        }
    }
    let what = if at.is_missing() { format!("`{}` is missing", at.kind()) } else { "cannot be understood".into() };
    Some((line(at), what.into()))
}
