//! Assignments and destructuring: binds values to variables, members and elements.

use super::{Reader, Site};
use crate::builder::ScopeId;
use crate::facts::{BindTarget, DefKind, ExprId, ROOT, SourceExpr, UNKNOWN, flag};
use crate::tree::TreeNode;

/// What the names in a pattern become.
#[derive(Clone, Copy)]
pub(super) enum PatternBinding {
    /// Assigned variables, visible from the current scope.
    Assigned,
    /// Declared variables of this scope.
    Declared(ScopeId),
    /// Variables of a module: symbols with these flags.
    Symbol(ScopeId, u32),
}

impl<'t> Reader<'t> {
    /// `left = right`; `whole` is the statement if it contains only the assignment.
    pub(super) fn assignment(&mut self, node: TreeNode<'t>, whole: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let (Some(left), Some(right)) = (kids.field("left"), kids.field("right")) else {
            for kid in kids.named() {
                self.used(kid);
            }
            return UNKNOWN;
        };
        let name = match left.kind() {
            "identifier" => self.text(left),
            "member_expression" => {
                let inner = self.children(left);
                let property = inner.field("property").map_or("", |p| self.text(p));
                // `module.exports` is no useful name for a function or class that has one.
                let own = if property == "exports" { self.children(right).field("name") } else { None };
                own.map_or(property, |own| self.text(own))
            }
            "subscript_expression" => {
                let inner = self.children(left);
                inner.field("index").and_then(|i| self.constant(i)).unwrap_or("")
            }
            _ => "",
        };
        let value = if right.kind() == "assignment_expression" {
            self.deeper(UNKNOWN, |reader| reader.assignment(right, whole))
        } else if name.is_empty() {
            self.used(right)
        } else {
            self.known(right, Site::new(name, DefKind::Function, 0, whole))
        };
        self.given_by_assignment(left, value);
        let object = self.assign(left, value, PatternBinding::Assigned);
        self.received_by(value, object);
        value
    }

    pub(super) fn augmented_assignment(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let right = kids.field("right").map_or(UNKNOWN, |n| self.used(n));
        let Some(left) = kids.field("left") else { return UNKNOWN };
        if !matches!(kids.field("operator").map(|o| o.kind()), Some("||=" | "??=" | "&&=")) {
            self.used(left);
            return UNKNOWN;
        }
        // The left side is read only once, so that calls in it count once.
        let object = self.assign(left, right, PatternBinding::Assigned);
        let before = match left.kind() {
            "identifier" => self.value(left),
            "member_expression" if object != UNKNOWN => {
                let inner = self.children(left);
                inner.field("property").map_or(UNKNOWN, |p| self.b.member(object, self.text(p)))
            }
            _ => UNKNOWN,
        };
        self.b.either(&[before, right])
    }

    /// Assigns a value to a target; returns the object whose member or element is set.
    pub(super) fn assign(&mut self, target: TreeNode<'t>, value: ExprId, leaf: PatternBinding) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.assign_inner(target, value, leaf))
    }

    fn assign_inner(&mut self, target: TreeNode<'t>, value: ExprId, leaf: PatternBinding) -> ExprId {
        match target.kind() {
            "identifier" | "shorthand_property_identifier_pattern" | "shorthand_property_identifier" => {
                self.name_target(target, value, leaf);
            }
            "member_expression" => {
                if self.is_module_exports(target) {
                    let var = self.exports_variable();
                    self.b.bind(BindTarget::Var(var), value);
                    return UNKNOWN;
                }
                let kids = self.children(target);
                if let (Some(object), Some(property)) = (kids.field("object"), kids.field("property")) {
                    let object = self.value(object);
                    let name = self.b.name(self.text(property));
                    self.b.bind(BindTarget::Member(object, name), value);
                    return object;
                }
            }
            "subscript_expression" => {
                let kids = self.children(target);
                let object = kids.field("object").map_or(UNKNOWN, |n| self.value(n));
                let Some(index) = kids.field("index") else { return object };
                let target = match self.constant(index) {
                    Some(key) => BindTarget::At(object, self.b.name(key)),
                    None => {
                        self.used(index);
                        BindTarget::Element(object)
                    }
                };
                self.b.bind(target, value);
                return object;
            }
            "object_pattern" | "object" => self.object_pattern(target, value, leaf),
            "array_pattern" | "array" => self.array_pattern(target, value, leaf),
            "assignment_pattern" | "object_assignment_pattern" | "assignment_expression" => {
                let kids = self.children(target);
                let default = kids.field("right").map_or(UNKNOWN, |n| self.used(n));
                let value = self.b.either(&[value, default]);
                if let Some(left) = kids.field("left") {
                    self.assign(left, value, leaf);
                }
            }
            "rest_pattern"
            | "spread_element"
            | "parenthesized_expression"
            | "non_null_expression"
            | "as_expression"
            | "satisfies_expression" => {
                let kids = self.children(target);
                if let Some(inner) = kids.named().next() {
                    return self.assign(inner, value, leaf);
                }
            }
            _ => {
                self.value(target);
            }
        }
        UNKNOWN
    }

    fn name_target(&mut self, target: TreeNode<'t>, value: ExprId, leaf: PatternBinding) {
        let text = self.text(target);
        let (scope, flags) = match leaf {
            PatternBinding::Assigned => {
                self.notice_exports(text);
                self.b.bind_name(text, value);
                return;
            }
            PatternBinding::Declared(scope) => (scope, None),
            PatternBinding::Symbol(scope, flags) => (scope, Some(flags)),
        };
        let name = self.b.name(text);
        let var = self.b.variable_in(scope, name);
        self.b.bind(BindTarget::Var(var), value);
        if let Some(flags) = flags {
            self.variable_symbol(Site::new(text, DefKind::Variable, flags, target), None);
            if flags & flag::EXPORTED != 0 && self.b.owner == ROOT {
                let value = self.b.expr(SourceExpr::Var(var));
                self.b.export(text, value);
            }
        }
    }

    fn object_pattern(&mut self, node: TreeNode<'t>, value: ExprId, leaf: PatternBinding) {
        let kids = self.children(node);
        for kid in kids.named() {
            match kid.kind() {
                "shorthand_property_identifier_pattern" | "shorthand_property_identifier" => {
                    let part = self.part(value, kid);
                    self.assign(kid, part, leaf);
                }
                "object_assignment_pattern" | "assignment_expression" => {
                    let inner = self.children(kid);
                    let part = inner.field("left").map_or(UNKNOWN, |left| self.part(value, left));
                    self.assign(kid, part, leaf);
                }
                "pair_pattern" | "pair" => {
                    let inner = self.children(kid);
                    let part = inner.field("key").map_or(UNKNOWN, |key| self.part(value, key));
                    if let Some(target) = inner.field("value") {
                        self.assign(target, part, leaf);
                    }
                }
                // The rest of an object is treated as the whole object.
                _ => {
                    self.assign(kid, value, leaf);
                }
            }
        }
    }

    /// `value.key`, for a key in a pattern.
    fn part(&mut self, value: ExprId, key: TreeNode<'t>) -> ExprId {
        let name = self.property_name(key);
        match name {
            _ if value == UNKNOWN => UNKNOWN,
            Some(name) => self.b.member(value, name),
            None => self.b.expr(SourceExpr::Element(value)),
        }
    }

    fn array_pattern(&mut self, node: TreeNode<'t>, value: ExprId, leaf: PatternBinding) {
        let kids = self.children(node);
        let mut place = 0;
        for kid in kids.all() {
            if kid.kind() == "," {
                place += 1;
            } else if kid.is_named() && !kid.is_extra() {
                let part = match kid.kind() {
                    _ if value == UNKNOWN => UNKNOWN,
                    "rest_pattern" | "spread_element" => {
                        let element = self.b.expr(SourceExpr::Element(value));
                        self.b.expr(SourceExpr::ListOf(element))
                    }
                    _ => self.b.expr(SourceExpr::AtIndex(value, place)),
                };
                self.assign(kid, part, leaf);
            }
        }
    }
}
