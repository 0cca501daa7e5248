//! Python: returns that depend on whether an optional parameter is given, and abstract methods.

use super::Reader;
use crate::facts::ReturnCondition;
use crate::tree::{NodeChildren, TreeNode};

impl<'t> Reader<'t> {
    /// Reads the branches of an `if`. If its condition tests an optional parameter, the returns in its branches, and
    /// those after a branch that always returns or raises, depend on that parameter.
    pub(super) fn branches(&mut self, kids: &NodeChildren<'t>) {
        let asked = kids.field("condition").and_then(|condition| self.asked(condition));
        let before = self.b.when;
        let mut leaves = false;
        let mut others = false;
        for (field, kid) in kids.with_fields() {
            self.b.when = match (field, asked) {
                (Some("consequence"), Some((name, given))) => self.narrowed(before, name, given),
                (Some("alternative"), Some((name, given))) => self.narrowed(before, name, !given),
                _ => before,
            };
            leaves |= field == Some("consequence") && self.leaves(kid);
            others |= field == Some("alternative");
            if kid.is_named() {
                self.nested(kid);
            }
        }
        self.b.when = match asked {
            Some((name, given)) if leaves && !others => self.narrowed(before, name, !given),
            _ => before,
        };
    }

    /// The optional parameter that a condition tests, and whether the condition holds if it is given.
    fn asked(&mut self, condition: TreeNode<'t>) -> Option<(&'t str, bool)> {
        let text = self.text(condition).trim();
        let (name, given) = if let Some(name) = text.strip_suffix(" is not None") {
            (name, true)
        } else if let Some(name) = text.strip_suffix(" is None") {
            (name, false)
        } else if let Some(name) = text.strip_prefix("not ") {
            (name, false)
        } else {
            (text.strip_prefix("callable(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(text), true)
        };
        let name = name.trim();
        self.optional.contains(&name).then_some((name, given))
    }

    fn narrowed(&mut self, before: ReturnCondition, name: &str, given: bool) -> ReturnCondition {
        match before {
            ReturnCondition::Always if given => ReturnCondition::Given(self.b.name(name)),
            ReturnCondition::Always => ReturnCondition::Missing(self.b.name(name)),
            other => other,
        }
    }

    /// Whether a block ends with `return` or `raise`.
    fn leaves(&mut self, block: TreeNode<'t>) -> bool {
        let kids = self.children(block);
        kids.named().last().is_some_and(|last| matches!(last.kind(), "return_statement" | "raise_statement"))
    }

    /// Whether a body only raises `NotImplementedError`.
    pub(super) fn is_left_to_others(&mut self, body: TreeNode<'t>) -> bool {
        let kids = self.children(body);
        let mut statements = kids.named().filter(|kid| kid.kind() != "comment").peekable();
        let doc = statements.next_if(|first| first.kind() == "expression_statement").is_some();
        let Some(only) = statements.next().filter(|only| only.kind() == "raise_statement") else { return false };
        if statements.next().is_some() {
            return false;
        }
        let text = self.text(only);
        let raised = text.strip_prefix("raise").map(str::trim_start).unwrap_or_default();
        let rest = raised.strip_prefix("NotImplementedError").map(str::trim_start);
        let raises = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('('));
        raises && (!doc || self.docstring(body).is_some())
    }
}
