//! Statements: the walk over everything that is not a value.

use super::Reader;
use crate::facts::{BindTarget, ExprId, SourceExpr, UNKNOWN};
use crate::tree::TreeNode;

impl<'t> Reader<'t> {
    /// Reads the children of a node as statements and declarations.
    pub(super) fn block(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        for kid in kids.named() {
            self.visit(kid);
        }
    }

    fn scoped(&mut self, node: TreeNode<'t>) {
        let before = self.b.open_scope();
        self.block(node);
        self.b.close_scope(before);
    }

    pub(super) fn visit(&mut self, node: TreeNode<'t>) {
        self.deeper((), |reader| reader.statement(node));
    }

    fn statement(&mut self, node: TreeNode<'t>) {
        match node.kind() {
            "import_declaration" => self.import(node),
            "class_declaration" | "protocol_declaration" => self.type_declaration(node),
            "typealias_declaration" | "associatedtype_declaration" => self.alias(node),
            "function_declaration"
            | "protocol_function_declaration"
            | "init_declaration"
            | "deinit_declaration"
            | "subscript_declaration" => self.function(node),
            "property_declaration" | "protocol_property_declaration" => self.property(node),
            "enum_entry" => self.enum_entry(node),
            "if_statement" | "while_statement" => {
                let before = self.b.open_scope();
                self.conditions(node);
                self.b.close_scope(before);
            }
            // Names that `guard` binds are visible after it.
            "guard_statement" => self.conditions(node),
            "for_statement" => self.each(node),
            "switch_statement" => {
                let subject = self.children(node).field("expr").map_or(UNKNOWN, |subject| self.used(subject));
                let kids = self.children(node);
                for entry in kids.named().filter(|kid| kid.kind() == "switch_entry") {
                    let before = self.b.open_scope();
                    let parts = self.children(entry);
                    for part in parts.named() {
                        if part.kind() == "switch_pattern" {
                            self.matched(part, subject);
                        } else {
                            self.visit(part);
                        }
                    }
                    self.b.close_scope(before);
                }
            }
            "catch_block" => {
                let before = self.b.open_scope();
                let kids = self.children(node);
                if let Some(error) = kids.field("error") {
                    self.destructured(error, UNKNOWN);
                }
                for kid in kids.named().filter(|kid| kid.kind() == "statements") {
                    self.block(kid);
                }
                self.b.close_scope(before);
            }
            "control_transfer_statement" => {
                let kids = self.children(node);
                let value = kids.field("result").or_else(|| kids.named().find(|kid| is_expression(kid.kind())));
                let value = value.map_or(UNKNOWN, |value| self.used(value));
                if kids.has("return") {
                    self.b.returns(value, false);
                }
            }
            "assignment" => {
                let kids = self.children(node);
                let value = kids.field("result").map_or(UNKNOWN, |value| self.used(value));
                let Some(target) = kids.field("target").and_then(|target| self.children(target).named().next()) else {
                    return;
                };
                let target = self.value(target);
                match self.b.facts.expr(target) {
                    SourceExpr::Member(of, name) => self.b.bind(BindTarget::Member(of, name), value),
                    SourceExpr::Element(of) => self.b.bind(BindTarget::Element(of), value),
                    SourceExpr::Free(name) if self.b.owner != crate::facts::ROOT => {
                        let name = self.b.facts.name(name).to_owned();
                        self.b.bind_name(&name, value);
                    }
                    _ => {}
                }
            }
            "do_statement" | "statements" | "computed_getter" | "computed_setter" => self.scoped(node),
            "modifiers" | "type_annotation" | "comment" | "multiline_comment" => {}
            kind if is_expression(kind) => {
                self.used(node);
            }
            _ => self.block(node),
        }
    }

    /// `if`, `guard` and `while`: conditions that may bind names, then the branches.
    fn conditions(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let mut bound: Option<TreeNode<'t>> = None;
        let mut ty: Option<ExprId> = None;
        for (field, kid) in kids.with_fields() {
            match (field, kid.kind()) {
                (Some("bound_identifier"), _) => (bound, ty) = (Some(kid), None),
                (_, "type_annotation") => {
                    let inner = self.children(kid);
                    ty = self.first_type(&inner);
                }
                (_, "value_binding_pattern") => {}
                // `if let x {`: the name means the same as before.
                (_, "," | "{") => bound = None,
                (_, "pattern") => self.destructured(kid, UNKNOWN),
                (_, "statements") => self.scoped(kid),
                (_, "if_statement") => self.visit(kid),
                (Some("condition"), _) if kid.is_named() => {
                    let value = self.used(kid);
                    if let Some(name) = bound.take() {
                        self.local(self.text(name), ty.take(), value);
                    }
                }
                _ => {}
            }
        }
    }

    fn each(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let over = kids.field("collection").map_or(UNKNOWN, |over| self.used(over));
        let element = if over == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::Element(over)) };
        let before = self.b.open_scope();
        if let Some(item) = kids.field("item") {
            self.destructured(item, element);
        }
        for kid in kids.named().filter(|kid| matches!(kid.kind(), "statements" | "where_clause")) {
            self.block(kid);
        }
        self.b.close_scope(before);
    }

    /// A `case`: names in it are bound to parts of the subject, whose types are unknown.
    fn matched(&mut self, node: TreeNode<'t>, subject: ExprId) {
        let kids = self.children(node);
        for pattern in kids.named() {
            let whole = self.children(pattern).field("bound_identifier").is_some();
            self.destructured(pattern, if whole { subject } else { UNKNOWN });
        }
    }
}

pub(super) fn is_expression(kind: &str) -> bool {
    kind.ends_with("_expression")
        || kind.ends_with("_literal")
        || kind.ends_with("_operation")
        || matches!(kind, "simple_identifier" | "macro_invocation" | "key_path_string_expression" | "bang")
}
