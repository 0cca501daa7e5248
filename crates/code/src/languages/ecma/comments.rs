//! Doc comments, found in the text before a definition, because finding siblings in the tree is slower.

use super::Reader;
use crate::tree::{self, TreeNode, clean_doc, line};

impl<'t> Reader<'t> {
    /// The `/** */` directly above an offset, else the `//` lines directly above it.
    pub(super) fn doc_above(&self, start: usize) -> Option<Box<str>> {
        let mut before = above(self.b.text.get(..start)?)?;
        loop {
            let begin = before.rfind('\n').map_or(0, |at| at + 1);
            let last = before.get(begin..)?.trim_start();
            if !(last.starts_with("//") && is_for_tools(last)) {
                break;
            }
            before = above(before.get(..begin)?)?;
        }
        if before.ends_with("*/") {
            let comment = block_comment(before)?;
            return if comment.starts_with("/**") { clean_doc(comment) } else { None };
        }
        let mut begin = before.len();
        while begin > 0 {
            let upto = if begin == before.len() { begin } else { begin - 1 };
            let from = before.get(..upto)?.rfind('\n').map_or(0, |at| at + 1);
            let written = before.get(from..upto)?.trim_start();
            if !written.starts_with("//") || is_for_tools(written) {
                break;
            }
            begin = from;
        }
        if begin == before.len() { None } else { clean_doc(before.get(begin..)?) }
    }

    /// A `/** */` at the beginning of the file that is not the doc comment of the first definition.
    pub(super) fn doc_of_file(&mut self, root: TreeNode<'t>) -> Option<Box<str>> {
        let kids = self.children(root);
        let mut all = kids.all().filter(|k| k.kind() != "hash_bang_line");
        let first = all.next()?;
        let written = self.text(first);
        if first.kind() != "comment" || !written.starts_with("/**") || written.contains("@license") {
            return None;
        }
        let apart = match all.next() {
            None => true,
            Some(next) => line(next) > first.end_position().row + 2 || next.kind() == "import_statement",
        };
        if apart || written.contains("@file") || written.contains("@module") { clean_doc(written) } else { None }
    }
}

/// The text without trailing white space; `None` if that has more than one line break.
fn above(text: &str) -> Option<&str> {
    let end = text.trim_end();
    let gap = text.get(end.len()..)?;
    (!end.is_empty() && gap.bytes().filter(|b| *b == b'\n').count() < 2).then_some(end)
}

/// The block comment at the end of a text. `/*` may occur inside of it as well: one at the start of a line is
/// preferred.
fn block_comment(text: &str) -> Option<&str> {
    let mut found = None;
    let mut end = text.len() - 2;
    while let Some(at) = text.get(..end)?.rfind("/*") {
        if found.is_some() && text.get(at..end)?.contains("*/") {
            break;
        }
        found = Some(at);
        let begin = text.get(..at)?.rfind('\n').map_or(0, |at| at + 1);
        if text.get(begin..at)?.trim().is_empty() {
            break;
        }
        end = at;
    }
    text.get(found?..)
}

/// Whether a comment is a directive for linters, compilers or formatters.
fn is_for_tools(line: &str) -> bool {
    let words = line.trim_start_matches('/').trim_start();
    ["eslint", "@ts-", "prettier-", "istanbul ", "c8 ", "v8 ", "biome-", "tslint:", "#region", "#endregion", "jshint"]
        .iter()
        .any(|word| words.starts_with(word))
        || tree::cut(words, 4).chars().all(|c| matches!(c, '-' | '=' | '*' | '/'))
}
