//! Doc comments: the comments directly above a declaration.

use crate::tree::{self, TreeNode, clean_doc};
use smallvec::SmallVec;

/// The comments before the next declaration. Collected during the walk, because finding the previous siblings of a node
/// is slow.
pub(super) struct PrecedingComments<'t> {
    comments: SmallVec<[TreeNode<'t>; 4]>,
    /// The line on which the last node that is not a comment ends.
    code_ends: u32,
}

impl<'t> PrecedingComments<'t> {
    pub(super) fn new() -> PrecedingComments<'t> {
        PrecedingComments { comments: SmallVec::new(), code_ends: u32::MAX }
    }

    /// Records a node; returns `false` for comments and line ends, which need no further reading.
    pub(super) fn pass(&mut self, node: TreeNode<'t>) -> bool {
        match node.kind() {
            "comment" => {
                let row = node.start_position().row;
                // A comment after code on the same line belongs to that code.
                if row == self.code_ends {
                    return false;
                }
                if self.comments.last().is_some_and(|last| last.end_position().row + 1 < row) {
                    self.comments.clear();
                }
                self.comments.push(node);
                false
            }
            "\n" | ";" => false,
            _ => {
                self.code_ends = node.end_position().row;
                if !node.is_named() {
                    self.comments.clear();
                }
                true
            }
        }
    }

    /// The text of the comments directly above the node, which are removed from the list.
    pub(super) fn doc(&mut self, node: TreeNode<'t>, source: &str) -> Option<Box<str>> {
        let last = self.comments.last()?;
        let touches = last.end_position().row + 1 >= node.start_position().row;
        let comments = std::mem::take(&mut self.comments);
        if !touches {
            return None;
        }
        let lines: SmallVec<[&str; 8]> =
            comments.iter().map(|c| tree::text(*c, source)).filter(|text| !is_directive(text)).collect();
        clean_doc(&lines.join("\n"))
    }
}

/// Whether a comment is a directive for a tool.
fn is_directive(comment: &str) -> bool {
    ["//go:", "//line ", "//export ", "//nolint", "// +build "].iter().any(|d| comment.starts_with(d))
}
