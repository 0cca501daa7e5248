//! Values and calls.

use super::Reader;
use super::statements::is_expression;
use crate::facts::{Arg, ArgKind, CallKind, ExprId, ExprItem, ItemKey, ListKind, Literal, SourceExpr, UNKNOWN};
use crate::tree::{TreeNode, line, span};
use smallvec::SmallVec;

/// Methods that call a closure with each element of their receiver.
fn per_element(name: &str) -> bool {
    matches!(
        name,
        "forEach"
            | "map"
            | "compactMap"
            | "flatMap"
            | "filter"
            | "first"
            | "contains"
            | "allSatisfy"
            | "sorted"
            | "min"
            | "max"
            | "removeAll"
            | "firstIndex"
    )
}

impl<'t> Reader<'t> {
    /// Reads a value and records a reference to the symbol it names.
    pub(super) fn used(&mut self, node: TreeNode<'t>) -> ExprId {
        let value = self.value(node);
        if matches!(self.b.facts.expr(value), SourceExpr::Free(_) | SourceExpr::Member(..)) {
            self.b.uses(value, line(node));
        }
        value
    }

    pub(super) fn value(&mut self, node: TreeNode<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.value_inner(node))
    }

    fn value_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        match node.kind() {
            "simple_identifier" | "type_identifier" => match self.text(node) {
                "Self" => self.b.expr(SourceExpr::ThisType),
                name => self.bare.read(&mut self.b, name),
            },
            "self_expression" => match self.in_extension() {
                // Inside the function, the extension's `self` is a parameter.
                true => self.b.read("self"),
                false => self.b.expr(SourceExpr::This),
            },
            "super_expression" => self.b.expr(SourceExpr::Super),
            "user_type" | "array_type" | "dictionary_type" => self.ty(node).unwrap_or(UNKNOWN),
            "navigation_expression" => {
                let Some(of) = kids.field("target").or_else(|| kids.named().next()) else { return UNKNOWN };
                let of = self.value(of);
                let suffix = kids.field("suffix").and_then(|suffix| self.children(suffix).field("suffix"));
                match (suffix, of) {
                    (_, UNKNOWN) | (None, _) => UNKNOWN,
                    (Some(name), _) if self.text(name) == "self" => of,
                    (Some(name), _) => self.b.member(of, self.text(name)),
                }
            }
            "call_expression" | "constructor_expression" => self.call(node),
            "macro_invocation" => {
                for suffix in kids.named().filter(|kid| kid.kind() == "call_suffix") {
                    self.arguments(suffix, UNKNOWN);
                }
                UNKNOWN
            }
            "try_expression" | "await_expression" | "postfix_expression" => {
                let inner = kids.field("expr").or_else(|| kids.field("target"));
                inner.or_else(|| kids.named().next_back()).map_or(UNKNOWN, |inner| self.value(inner))
            }
            "as_expression" => {
                if let Some(of) = kids.field("expr") {
                    self.used(of);
                }
                self.first_type(&kids).map_or(UNKNOWN, |ty| self.b.expr(SourceExpr::InstanceOf(ty)))
            }
            "tuple_expression" => {
                let parts: Vec<ExprId> = kids.fields("value").map(|part| self.used(part)).collect();
                match parts.as_slice() {
                    [one] => *one,
                    _ => self.list(ListKind::Tuple, &parts),
                }
            }
            "array_literal" => {
                let parts: Vec<ExprId> = kids.fields("element").map(|part| self.used(part)).collect();
                self.list(ListKind::List, &parts)
            }
            "ternary_expression" => {
                if let Some(condition) = kids.field("condition") {
                    self.used(condition);
                }
                let yes = kids.field("if_true").map_or(UNKNOWN, |yes| self.used(yes));
                let no = kids.field("if_false").map_or(UNKNOWN, |no| self.used(no));
                self.b.either(&[yes, no])
            }
            "nil_coalescing_expression" => {
                let parts: SmallVec<[ExprId; 2]> =
                    kids.named().filter(|kid| is_expression(kid.kind())).map(|kid| self.used(kid)).collect();
                self.b.either(&parts)
            }
            "lambda_literal" => {
                self.closure(node, UNKNOWN);
                UNKNOWN
            }
            "if_statement" | "switch_statement" | "assignment" => {
                self.visit(node);
                UNKNOWN
            }
            "line_string_literal" | "multi_line_string_literal" | "raw_string_literal" => {
                for part in kids.named() {
                    let inner = self.children(part);
                    for value in inner.named().filter(|kid| is_expression(kid.kind())) {
                        self.used(value);
                    }
                }
                self.b.expr(SourceExpr::Literal(Literal::Template))
            }
            "integer_literal" | "real_literal" => self.b.expr(SourceExpr::Literal(Literal::Number)),
            "boolean_literal" => self.b.expr(SourceExpr::Literal(Literal::Bool)),
            "nil" => self.b.expr(SourceExpr::Literal(Literal::Nothing)),
            _ => {
                // An operation: its parts are used, its value is not tracked.
                for kid in kids.named() {
                    match is_expression(kid.kind()) {
                        true => _ = self.used(kid),
                        false => self.visit(kid),
                    }
                }
                UNKNOWN
            }
        }
    }

    /// Whether the innermost method is one of an extension.
    fn in_extension(&self) -> bool {
        let mut at = self.b.owner;
        while at != crate::facts::ROOT {
            let def = self.b.facts.def(at);
            if def.kind.type_like() {
                return false;
            }
            if def.receiver.is_some() {
                return def.is(crate::facts::flag::TAKES_SELF);
            }
            at = def.parent;
        }
        false
    }

    fn list(&mut self, kind: ListKind, parts: &[ExprId]) -> ExprId {
        let items: Vec<ExprItem> = parts.iter().map(|value| ExprItem { key: ItemKey::Next, value: *value }).collect();
        self.b.collection(kind, &items)
    }

    fn call(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(of) = kids.named().next() else { return UNKNOWN };
        let suffix = kids.named().find(|kid| matches!(kid.kind(), "call_suffix" | "constructor_suffix"));
        let callee = match of.kind() {
            // `.case(x)`: a member of a type that only the context determines.
            "prefix_expression" => UNKNOWN,
            _ => self.value(of),
        };
        let Some(suffix) = suffix else { return UNKNOWN };
        let receiver = match self.b.facts.expr(callee) {
            SourceExpr::Member(receiver, name) if per_element(self.b.facts.name(name)) => receiver,
            _ => UNKNOWN,
        };
        let element = if receiver == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::Element(receiver)) };
        let is_index = self.children(suffix).kind("value_arguments").is_some_and(|list| self.children(list).has("["));
        let args = self.arguments(suffix, element);
        if callee == UNKNOWN {
            return UNKNOWN;
        }
        if is_index {
            return self.b.expr(SourceExpr::Element(callee));
        }
        // `X.init(…)` and `Type.self.init(…)` construct.
        if let SourceExpr::Member(of, name) = self.b.facts.expr(callee)
            && self.b.facts.name(name) == "init"
            && !matches!(self.b.facts.expr(of), SourceExpr::Super | SourceExpr::This)
        {
            return self.b.call(of, CallKind::Plain, &args, span(node));
        }
        let mut at = span(node);
        // The position of a call in a chain is that of its name, not of the beginning of the chain.
        if let Some(suffix) = self.children(of).field("suffix") {
            at.line = line(suffix);
        }
        self.b.call(callee, CallKind::Plain, &args, at)
    }

    fn arguments(&mut self, suffix: TreeNode<'t>, element: ExprId) -> SmallVec<[Arg; 6]> {
        let mut args = SmallVec::new();
        let kids = self.children(suffix);
        for kid in kids.named() {
            match kid.kind() {
                "value_arguments" => {
                    let list = self.children(kid);
                    for argument in list.named().filter(|kid| kid.kind() == "value_argument") {
                        let parts = self.children(argument);
                        let value = match parts.field("value") {
                            Some(value) if value.kind() == "lambda_literal" => {
                                self.closure(value, element);
                                UNKNOWN
                            }
                            Some(value) => self.used(value),
                            None => UNKNOWN,
                        };
                        // Labels are part of the function's name, and parameters keep their order.
                        args.push(Arg { how: ArgKind::Place, value });
                    }
                }
                "lambda_literal" => {
                    self.closure(kid, element);
                    args.push(Arg { how: ArgKind::Place, value: UNKNOWN });
                }
                _ => {}
            }
        }
        args
    }

    /// Reads a closure. Its calls are attributed to the enclosing definition; only its parameters are its own.
    fn closure(&mut self, node: TreeNode<'t>, element: ExprId) {
        let kids = self.children(node);
        let before = self.b.open_scope();
        let list = kids.field("type").and_then(|ty| self.children(ty).kind("lambda_function_type_parameters"));
        match list {
            Some(list) => {
                let list = self.children(list);
                for (place, parameter) in list.named().filter(|kid| kid.kind() == "lambda_parameter").enumerate() {
                    let parts = self.children(parameter);
                    let Some(name) = parts.kind("simple_identifier") else { continue };
                    let ty = self.first_type(&parts);
                    self.local(self.text(name), ty, if place == 0 { element } else { UNKNOWN });
                }
            }
            None => self.local("$0", None, element),
        }
        for kid in kids.named().filter(|kid| kid.kind() == "statements") {
            self.closure_body(kid);
        }
        self.b.close_scope(before);
    }

    /// `return` in a closure is not a result of the enclosing function.
    fn closure_body(&mut self, statements: TreeNode<'t>) {
        let before = self.b.facts.returns.len();
        self.block(statements);
        self.b.facts.returns.truncate(before);
    }
}
