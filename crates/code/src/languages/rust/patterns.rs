//! Patterns: the variables they declare and the values bound to them.

use super::{Reader, is_capital, is_comment};
use crate::convert::to_u32;
use crate::facts::{BindTarget, ExprId, NameId, SourceExpr, UNKNOWN};
use crate::tree::{TreeNode, line};

/// How a pattern with a path destructures a value.
#[derive(Clone, Copy)]
pub(super) enum Destructured {
    /// `Some(x)`, `Ok(x)`: `x` is the content of the value.
    Wrapper,
    /// `Cow::Owned(x)`: `x` is equivalent to the value.
    Same,
    /// `Err(e)`: `e` is unknown.
    Other,
    /// A variant of an enum: its path and names.
    Variant(ExprId, NameId, NameId),
    /// A struct: the value as an instance of it.
    Struct(ExprId),
}

impl<'t> Reader<'t> {
    /// Declares the variables of a pattern in the innermost scope.
    pub(super) fn pattern(&mut self, node: TreeNode<'t>, value: ExprId) {
        self.deeper((), |reader| reader.pattern_inner(node, value));
    }

    fn pattern_inner(&mut self, node: TreeNode<'t>, value: ExprId) {
        match node.kind() {
            "identifier" | "shorthand_field_identifier" => {
                let name = self.word(node);
                self.pattern_name(name, value, line(node));
            }
            "scoped_identifier" | "generic_pattern" => {
                let path = self.path(node);
                self.b.uses(path, line(node));
            }
            "tuple_pattern" => {
                let kids = self.children(node);
                let mut rest = false;
                // `_` is a position too, although it is not a named node.
                let parts = kids.all().filter(|k| (k.is_named() && !is_comment(*k)) || k.kind() == "_");
                for (index, kid) in parts.enumerate() {
                    rest |= kid.kind() == "remaining_field_pattern";
                    let known = value != UNKNOWN && !rest && kid.kind() != "_";
                    let part = if known { self.b.expr(SourceExpr::AtIndex(value, to_u32(index))) } else { UNKNOWN };
                    self.pattern(kid, part);
                }
            }
            "slice_pattern" => {
                let kids = self.children(node);
                for kid in kids.named() {
                    // `rest @ ..` is a slice again.
                    let inner = self.children(kid);
                    let rest = kid.kind() == "captured_pattern" && inner.kind("remaining_field_pattern").is_some();
                    let part = if rest { value } else { self.element(value) };
                    self.pattern(kid, part);
                }
            }
            "tuple_struct_pattern" => {
                let kids = self.children(node);
                let Some(ty) = kids.field("type") else { return };
                let opened = self.opened(ty, value);
                let mut place = 0;
                let mut rest = false;
                for (field, kid) in kids.with_fields() {
                    if field == Some("type") || is_comment(kid) || !(kid.is_named() || kid.kind() == "_") {
                        continue;
                    }
                    rest |= kid.kind() == "remaining_field_pattern";
                    let binds = !rest && kid.kind() != "_";
                    let part = if binds { self.taken(opened, value, &place.to_string()) } else { UNKNOWN };
                    self.pattern(kid, part);
                    place += 1;
                }
            }
            "struct_pattern" => {
                let kids = self.children(node);
                let Some(ty) = kids.field("type") else { return };
                let opened = self.opened(ty, value);
                for kid in kids.named().filter(|k| k.kind() == "field_pattern") {
                    let inner = self.children(kid);
                    let Some(name) = inner.field("name") else { continue };
                    let part = self.taken(opened, value, self.word(name));
                    match inner.field("pattern") {
                        Some(pattern) => self.pattern(pattern, part),
                        None => {
                            let var = self.local(self.word(name));
                            self.b.bind(BindTarget::Var(var), part);
                        }
                    }
                }
            }
            "captured_pattern" => {
                let kids = self.children(node);
                for (index, kid) in kids.named().enumerate() {
                    if index == 0 {
                        let var = self.local(self.word(kid));
                        self.b.bind(BindTarget::Var(var), value);
                    } else {
                        self.pattern(kid, value);
                    }
                }
            }
            "range_pattern" => {
                let kids = self.children(node);
                for kid in kids.named() {
                    self.used(kid);
                }
            }
            "macro_invocation" | "const_block" => {
                self.value(node);
            }
            "or_pattern" => {
                // `a | b | c …` nests to the left, as deep as it is long.
                let mut at = node;
                while at.kind() == "or_pattern" {
                    let kids = self.children(at);
                    let mut parts = kids.named();
                    let last = parts.next_back();
                    match parts.next() {
                        Some(left) => {
                            if let Some(last) = last {
                                self.pattern(last, value);
                            }
                            at = left;
                        }
                        None => match last {
                            Some(only) => at = only,
                            None => return,
                        },
                    }
                }
                self.pattern(at, value);
            }
            "match_pattern" | "ref_pattern" | "mut_pattern" | "reference_pattern" | "ERROR" => {
                let kids = self.children(node);
                for (field, kid) in kids.with_fields() {
                    if field != Some("condition") && kid.is_named() && !is_comment(kid) {
                        self.pattern(kid, value);
                    }
                }
            }
            _ => {}
        }
    }

    /// A bare name: a constant or a variant without fields when it begins with a capital, else a variable.
    pub(super) fn pattern_name(&mut self, name: &str, value: ExprId, line: u32) {
        if name == "_" {
            return;
        }
        if is_capital(name) {
            let path = self.named(name);
            self.b.uses(path, line);
        } else {
            let var = self.local(name);
            self.b.bind(BindTarget::Var(var), value);
        }
    }

    fn opened(&mut self, ty: TreeNode<'t>, value: ExprId) -> Destructured {
        let text = self.text(ty);
        let last = text.rsplit("::").next().unwrap_or(text);
        if let Some(known) = known_variant(last) {
            return known;
        }
        let path = self.path(ty);
        self.b.uses(path, line(ty));
        let before = text.rsplit("::").nth(1);
        self.opened_path(path, last, before, value)
    }

    /// Classifies the path of a pattern by the capitalization of its last two names.
    pub(super) fn opened_path(
        &mut self,
        path: ExprId,
        last: &str,
        before: Option<&str>,
        value: ExprId,
    ) -> Destructured {
        let owner = before.map(|b| b.split('<').next().unwrap_or(b).trim()).filter(|b| is_capital(b));
        if let Some(owner) = owner {
            let owner = match (owner, self.this) {
                ("Self", Some(this)) => this,
                _ => self.b.name(owner),
            };
            let variant = self.b.name(last.trim());
            return Destructured::Variant(path, owner, variant);
        }
        let instance = self.instance(path);
        Destructured::Struct(self.b.either(&[value, instance]))
    }

    /// The value of a field of a destructured value.
    pub(super) fn taken(&mut self, opened: Destructured, value: ExprId, field: &str) -> ExprId {
        match opened {
            Destructured::Wrapper => self.awaited(value),
            Destructured::Same => value,
            Destructured::Other => UNKNOWN,
            Destructured::Struct(value) => self.member(value, field),
            Destructured::Variant(path, owner, variant) => {
                let taken = self.member(path, field);
                if taken != UNKNOWN {
                    let field = self.b.name(field);
                    self.taken.push((taken, (owner, variant, field)));
                }
                taken
            }
        }
    }
}

/// Variants of the standard library.
pub(super) fn known_variant(last: &str) -> Option<Destructured> {
    Some(match last {
        "Some" | "Ok" | "Ready" | "Continue" => Destructured::Wrapper,
        "Err" => Destructured::Other,
        "Owned" | "Borrowed" => Destructured::Same,
        _ => return None,
    })
}
