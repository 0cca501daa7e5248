//! Statements, values, calls, patterns and types.

use super::Reader;
use super::definitions::is_type;
use crate::convert::to_u32;
use crate::facts::{Arg, ArgKind, BindTarget, CallKind, DefKind, ExprId, Literal, SourceExpr, UNKNOWN, flag};
use crate::tree::{TreeNode, line, span};
use smallvec::SmallVec;

/// Methods that call a function with each element of their receiver.
fn per_element(name: &str) -> bool {
    matches!(
        name,
        "foreach"
            | "map"
            | "flatMap"
            | "filter"
            | "filterNot"
            | "withFilter"
            | "exists"
            | "forall"
            | "find"
            | "collect"
            | "count"
            | "partition"
            | "sortBy"
            | "groupBy"
            | "takeWhile"
            | "dropWhile"
    )
}

impl<'t> Reader<'t> {
    // --- statements ---

    pub(super) fn block(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        for kid in kids.named() {
            self.visit(kid);
        }
    }

    fn visit(&mut self, node: TreeNode<'t>) {
        self.deeper((), |reader| reader.statement(node));
    }

    fn statement(&mut self, node: TreeNode<'t>) {
        match node.kind() {
            "package_clause" => self.package(node),
            "import_declaration" => self.import(node),
            "class_definition" | "trait_definition" | "object_definition" | "enum_definition" | "package_object" => {
                self.type_declaration(node);
            }
            "type_definition" => self.alias(node),
            "simple_enum_case" | "full_enum_case" => self.enum_case(node),
            "function_definition" | "function_declaration" => self.function(node, None, None),
            "extension_definition" => self.extension(node),
            "val_definition" | "var_definition" | "val_declaration" | "var_declaration" | "given_definition" => {
                self.value_definition(node);
            }
            "enum_case_definitions" | "template_body" | "enum_body" | "with_template_body" => self.block(node),
            "annotation" | "modifiers" | "comment" | "block_comment" => {}
            _ => {
                self.used(node);
            }
        }
    }

    /// Reads a body in a scope of its own; its value is that of its last statement.
    pub(super) fn body(&mut self, node: TreeNode<'t>) -> ExprId {
        if !matches!(node.kind(), "block" | "indented_block") {
            return self.used(node);
        }
        let before = self.b.open_scope();
        let kids = self.children(node);
        let last = kids.named().next_back();
        let mut value = UNKNOWN;
        for kid in kids.named() {
            match Some(kid) == last && !kid.kind().ends_with("_definition") && !kid.kind().ends_with("_declaration") {
                true => value = self.used(kid),
                false => self.visit(kid),
            }
        }
        self.b.close_scope(before);
        value
    }

    // --- values ---

    /// Reads a value and records a reference to the symbol it names.
    pub(super) fn used(&mut self, node: TreeNode<'t>) -> ExprId {
        let value = self.value(node);
        if matches!(self.b.facts.expr(value), SourceExpr::Free(_) | SourceExpr::Member(..)) {
            self.b.uses(value, line(node));
        }
        value
    }

    fn value(&mut self, node: TreeNode<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.value_inner(node))
    }

    fn value_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        match node.kind() {
            "identifier" | "type_identifier" => match self.text(node) {
                "this" => self.b.expr(SourceExpr::This),
                "super" => self.b.expr(SourceExpr::Super),
                "_" => UNKNOWN,
                name => self.bare.read(&mut self.b, name),
            },
            "field_expression" => {
                let of = kids.field("value").map_or(UNKNOWN, |of| self.value(of));
                match (of, kids.field("field")) {
                    (UNKNOWN, _) | (_, None) => UNKNOWN,
                    (of, Some(name)) => self.b.member(of, self.text(name)),
                }
            }
            "call_expression" => self.call(node),
            "generic_function" => kids.field("function").map_or(UNKNOWN, |of| self.value(of)),
            "instance_expression" => self.instance(node),
            "infix_expression" => self.infix(node),
            "block" | "indented_block" => self.body(node),
            "parenthesized_expression" => kids.named().next().map_or(UNKNOWN, |inner| self.value(inner)),
            "ascription_expression" => {
                for kid in kids.named().filter(|kid| !is_type(kid.kind())) {
                    self.used(kid);
                }
                let ty = kids.named().find(|kid| is_type(kid.kind())).and_then(|ty| self.ty(ty));
                ty.map_or(UNKNOWN, |ty| self.b.expr(SourceExpr::InstanceOf(ty)))
            }
            "if_expression" => {
                if let Some(condition) = kids.field("condition") {
                    self.used(condition);
                }
                let yes = kids.field("consequence").map_or(UNKNOWN, |yes| self.body(yes));
                let no = kids.field("alternative").map_or(UNKNOWN, |no| self.body(no));
                self.b.either(&[yes, no])
            }
            "match_expression" => {
                let subject = kids.field("value").map_or(UNKNOWN, |value| self.used(value));
                kids.field("body").map_or(UNKNOWN, |cases| self.cases(cases, subject))
            }
            "case_block" | "indented_cases" => self.cases(node, UNKNOWN),
            "try_expression" => {
                let value = kids.field("body").map_or(UNKNOWN, |body| self.body(body));
                for kid in kids.named().filter(|kid| kid.kind().ends_with("_clause")) {
                    let inner = self.children(kid);
                    for part in inner.named() {
                        self.used(part);
                    }
                }
                value
            }
            "for_expression" => {
                self.for_each(node);
                UNKNOWN
            }
            "lambda_expression" => {
                self.lambda(node, UNKNOWN);
                UNKNOWN
            }
            "return_expression" => {
                let value = kids.named().next().map_or(UNKNOWN, |value| self.used(value));
                self.b.returns(value, false);
                UNKNOWN
            }
            "assignment_expression" => {
                let value = kids.field("right").map_or(UNKNOWN, |value| self.used(value));
                let target = kids.field("left").map_or(UNKNOWN, |target| self.value(target));
                match self.b.facts.expr(target) {
                    SourceExpr::Member(of, name) => self.b.bind(BindTarget::Member(of, name), value),
                    SourceExpr::Free(name) => {
                        let name = self.b.facts.name(name).to_owned();
                        self.b.bind_name(&name, value);
                    }
                    _ => {}
                }
                UNKNOWN
            }
            "string" | "interpolated_string_expression" => {
                self.interpolated(node);
                self.b.expr(SourceExpr::Literal(Literal::Template))
            }
            "integer_literal" | "floating_point_literal" => self.b.expr(SourceExpr::Literal(Literal::Number)),
            "boolean_literal" => self.b.expr(SourceExpr::Literal(Literal::Bool)),
            "null_literal" => self.b.expr(SourceExpr::Literal(Literal::Nothing)),
            kind if kind.ends_with("_definition") || kind.ends_with("_declaration") => {
                self.visit(node);
                UNKNOWN
            }
            kind if is_type(kind) => self.ty(node).unwrap_or(UNKNOWN),
            _ => {
                for kid in kids.named() {
                    self.used(kid);
                }
                UNKNOWN
            }
        }
    }

    fn interpolated(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        for kid in kids.named() {
            match kid.kind() {
                "interpolated_string" => self.deeper((), |reader| reader.interpolated(kid)),
                "interpolation" => {
                    let inner = self.children(kid);
                    for value in inner.named() {
                        self.used(value);
                    }
                }
                _ => {}
            }
        }
    }

    // --- calls ---

    fn call(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let (Some(function), Some(list)) = (kids.field("function"), kids.field("arguments")) else { return UNKNOWN };
        // `f(a)(b)`: a call with two lists of arguments is one call.
        if function.kind() == "call_expression" {
            let value = self.call(function);
            self.arguments(list, UNKNOWN);
            return value;
        }
        let callee = self.value(function);
        let receiver = match self.b.facts.expr(callee) {
            SourceExpr::Member(receiver, name) if per_element(self.b.facts.name(name)) => receiver,
            _ => UNKNOWN,
        };
        let element = if receiver == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::Element(receiver)) };
        let args = self.arguments(list, element);
        if callee == UNKNOWN {
            return UNKNOWN;
        }
        let mut at = span(node);
        // The position of a call in a chain is that of its name, not of the beginning of the chain.
        if let Some(name) = self.children(function).field("field") {
            at.line = line(name);
        }
        self.b.call(callee, CallKind::Plain, &args, at)
    }

    pub(super) fn arguments(&mut self, list: TreeNode<'t>, element: ExprId) -> SmallVec<[Arg; 6]> {
        let mut args = SmallVec::new();
        let kids = self.children(list);
        let whole =
            matches!(list.kind(), "block" | "case_block" | "indented_block" | "indented_cases" | "colon_argument");
        if whole {
            match list.kind() {
                "case_block" | "indented_cases" => _ = self.cases(list, element),
                "colon_argument" => {
                    for kid in kids.named() {
                        self.argument(kid, element);
                    }
                }
                _ => match kids.named().next() {
                    Some(lambda) if lambda.kind() == "lambda_expression" => self.lambda(lambda, element),
                    _ => _ = self.body(list),
                },
            }
            args.push(Arg { how: ArgKind::Place, value: UNKNOWN });
            return args;
        }
        for kid in kids.named() {
            // `f(name = value)`
            let named = (kid.kind() == "assignment_expression").then(|| self.children(kid));
            if let Some((name, value)) = named.and_then(|kids| Some((kids.field("left")?, kids.field("right")?))) {
                let value = self.argument(value, element);
                let name = self.b.name(self.text(name));
                args.push(Arg { how: ArgKind::Named(name), value });
            } else {
                let value = self.argument(kid, element);
                args.push(Arg { how: ArgKind::Place, value });
            }
        }
        args
    }

    fn argument(&mut self, node: TreeNode<'t>, element: ExprId) -> ExprId {
        match node.kind() {
            "lambda_expression" => {
                self.lambda(node, element);
                UNKNOWN
            }
            // `_.name()` is a function of the element.
            "call_expression" | "field_expression" if element != UNKNOWN && self.begins_with_wildcard(node) => {
                self.of_element(node, element)
            }
            _ => self.used(node),
        }
    }

    fn begins_with_wildcard(&self, node: TreeNode<'t>) -> bool {
        let mut at = node;
        while let Some(inner) = at.children().field("function").or_else(|| at.children().field("value")) {
            at = inner;
        }
        at.kind() == "wildcard"
    }

    fn of_element(&mut self, node: TreeNode<'t>, element: ExprId) -> ExprId {
        let kids = self.children(node);
        let inner = kids.field("function").or_else(|| kids.field("value"));
        let of = match inner {
            Some(inner) if inner.kind() != "wildcard" => self.deeper(UNKNOWN, |r| r.of_element(inner, element)),
            _ => element,
        };
        if let Some(name) = kids.field("field") {
            return self.b.member(of, self.text(name));
        }
        let args = kids.field("arguments").map(|list| self.arguments(list, UNKNOWN)).unwrap_or_default();
        self.b.call(of, CallKind::Plain, &args, span(node));
        UNKNOWN
    }

    /// `a op b` is `a.op(b)`, where `op` is a name.
    fn infix(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let left = kids.field("left").map_or(UNKNOWN, |left| self.used(left));
        let name = kids.field("operator").filter(|operator| operator.kind() == "identifier");
        let element = match name {
            Some(name) if left != UNKNOWN && per_element(self.text(name)) => self.b.expr(SourceExpr::Element(left)),
            _ => UNKNOWN,
        };
        let right = match kids.field("right") {
            Some(right) if matches!(right.kind(), "block" | "case_block" | "lambda_expression") => {
                self.argument(right, element)
            }
            Some(right) => self.used(right),
            None => UNKNOWN,
        };
        let Some(name) = name.filter(|_| left != UNKNOWN) else { return UNKNOWN };
        let callee = self.b.member(left, self.text(name));
        let args = [Arg { how: ArgKind::Place, value: right }];
        self.b.call(callee, CallKind::Plain, &args, span(node))
    }

    /// `new T(…)`, `new T with U { … }`.
    fn instance(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let written = kids.named().find(|kid| is_type(kid.kind()));
        let list = kids.field("arguments").or_else(|| {
            let compound = self.children(written?).field("base").or(written)?;
            self.children(compound).kind("arguments")
        });
        let args = list.map(|list| self.arguments(list, UNKNOWN)).unwrap_or_default();
        let ty = written.and_then(|ty| self.ty(ty));
        if let Some(body) = kids.kind("template_body") {
            let def = self.define("<anonymous>", DefKind::Class, node, &kids);
            if let Some(ty) = ty {
                self.b.base(def, crate::facts::BaseKind::Extends, ty, line(node));
            }
            self.b.def(def).flags &= !flag::EXPORTED;
            let is_static = std::mem::replace(&mut self.is_static, false);
            let before = self.b.enter_def(def, false);
            let members = std::mem::replace(&mut self.members, self.b.scope);
            self.block(body);
            self.b.leave_def(before);
            self.members = members;
            self.is_static = is_static;
            let class = self.b.expr(SourceExpr::Def(def));
            return self.b.expr(SourceExpr::InstanceOf(class));
        }
        match ty {
            Some(ty) => self.b.call(ty, CallKind::New, &args, span(node)),
            None => UNKNOWN,
        }
    }

    // --- functions as values, loops, patterns ---

    /// Reads a lambda. Its calls are attributed to the enclosing definition; only its parameters are its own.
    fn lambda(&mut self, node: TreeNode<'t>, element: ExprId) {
        let kids = self.children(node);
        let before = self.b.open_scope();
        let parameters = kids.field("parameters");
        if let Some(parameters) = parameters {
            match parameters.kind() {
                "identifier" => self.local(self.text(parameters), None, element),
                _ => {
                    let inner = self.children(parameters);
                    for (place, parameter) in inner.named().enumerate() {
                        let parts = self.children(parameter);
                        let Some(name) = parts.field("name") else { continue };
                        let ty = parts.field("type").and_then(|ty| self.ty(ty));
                        self.local(self.text(name), ty, if place == 0 { element } else { UNKNOWN });
                    }
                }
            }
        }
        let returns = self.b.facts.returns.len();
        for kid in kids.named().filter(|kid| Some(*kid) != parameters) {
            self.visit(kid);
        }
        self.b.facts.returns.truncate(returns);
        self.b.close_scope(before);
    }

    fn for_each(&mut self, node: TreeNode<'t>) {
        let before = self.b.open_scope();
        let kids = self.children(node);
        for list in kids.named().filter(|kid| kid.kind() == "enumerators") {
            let inner = self.children(list);
            for one in inner.named().filter(|kid| kid.kind() == "enumerator") {
                let parts = self.children(one);
                let is_element = parts.has("<-");
                let mut named = parts.named().filter(|kid| kid.kind() != "guard");
                let (Some(pattern), Some(value)) = (named.next(), named.next()) else { continue };
                let mut value = self.used(value);
                if is_element && value != UNKNOWN {
                    value = self.b.expr(SourceExpr::Element(value));
                }
                self.pattern(pattern, value);
                for guard in parts.named().filter(|kid| kid.kind() == "guard") {
                    self.block(guard);
                }
            }
        }
        if let Some(body) = kids.field("body") {
            self.body(body);
        }
        self.b.close_scope(before);
    }

    /// Reads the cases of a match; the value is that of any of them.
    fn cases(&mut self, node: TreeNode<'t>, subject: ExprId) -> ExprId {
        let mut values: Vec<ExprId> = Vec::new();
        let kids = self.children(node);
        for case in kids.named().filter(|kid| kid.kind() == "case_clause") {
            let before = self.b.open_scope();
            let parts = self.children(case);
            if let Some(pattern) = parts.field("pattern") {
                self.pattern(pattern, subject);
            }
            let mut value = UNKNOWN;
            for part in parts.named().filter(|part| Some(*part) != parts.field("pattern")) {
                value = if part.kind() == "guard" { self.used(part) } else { self.body(part) };
            }
            values.push(value);
            self.b.close_scope(before);
        }
        self.b.either(&values)
    }

    /// Declares the names of a pattern.
    pub(super) fn pattern(&mut self, node: TreeNode<'t>, value: ExprId) {
        let kids = self.children(node);
        match node.kind() {
            "identifier" => {
                let name = self.text(node);
                // A capitalised name is a constant.
                if name != "_" && name.starts_with(|c: char| c.is_lowercase() || c == '_') {
                    self.local(name, None, value);
                }
            }
            "typed_pattern" => {
                let ty = kids.field("type").and_then(|ty| self.ty(ty));
                if let Some(name) = kids.field("pattern") {
                    self.local(self.text(name), ty, UNKNOWN);
                }
            }
            "tuple_pattern" => {
                for (place, part) in kids.named().enumerate() {
                    let value = match value {
                        UNKNOWN => UNKNOWN,
                        _ => self.b.expr(SourceExpr::AtIndex(value, to_u32(place))),
                    };
                    self.deeper((), |reader| reader.pattern(part, value));
                }
            }
            _ => {
                for part in kids.named().filter(|part| !is_type(part.kind())) {
                    self.deeper((), |reader| reader.pattern(part, UNKNOWN));
                }
            }
        }
    }

    // --- types ---

    pub(super) fn ty(&mut self, node: TreeNode<'t>) -> Option<ExprId> {
        let read = self.deeper(UNKNOWN, |reader| reader.type_inner(node));
        (read != UNKNOWN).then_some(read)
    }

    fn type_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        match node.kind() {
            "type_identifier" => self.b.read(self.text(node)),
            "stable_type_identifier" | "projected_type" => {
                let text = self.text(node);
                self.b.read_path(text.split(['.', '#']).map(str::trim))
            }
            "generic_type" => {
                let of = kids.field("type").map_or(UNKNOWN, |of| self.type_inner(of));
                let Some(list) = kids.field("type_arguments").filter(|_| of != UNKNOWN) else { return of };
                let list = self.children(list);
                let args: Vec<ExprId> =
                    list.named().map(|arg| self.deeper(UNKNOWN, |reader| reader.type_inner(arg))).collect();
                self.b.generic(of, &args)
            }
            "function_type" => {
                let result = kids.field("return_type").map_or(UNKNOWN, |result| self.type_inner(result));
                self.b.expr(SourceExpr::FunctionType(result))
            }
            _ => {
                let first = kids.named().find(|kid| is_type(kid.kind()));
                first.map_or(UNKNOWN, |first| self.deeper(UNKNOWN, |reader| reader.type_inner(first)))
            }
        }
    }
}
