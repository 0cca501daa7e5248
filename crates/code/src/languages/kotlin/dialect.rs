//! The syntax of Kotlin, for the reader that it shares with other languages.

use crate::facts::{DefKind, ExprId, ImportKind, SourceExpr, UNKNOWN, flag};
use crate::lang::query_based::{FunctionHead, LambdaHead, QueryDialect, QueryReader, QueryTag, is_type};
use crate::tree::{NodeChildren, TreeNode, line, span};

pub(super) struct KotlinDialect;

impl QueryDialect for KotlinDialect {
    fn visit<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>, tag: QueryTag) -> bool {
        match tag {
            QueryTag::Import => reader.imported_name(node),
            QueryTag::Define(DefKind::Field) if node.kind() == "enum_entry" => reader.enum_constant(node),
            QueryTag::Define(DefKind::Field) => reader.class_parameter(node),
            QueryTag::Define(DefKind::Function) => reader.function_or_constructor(node),
            QueryTag::Declaration => reader.property_or_local(node),
            QueryTag::Each => reader.for_statement(node),
            _ => return false,
        }
        true
    }

    fn value<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>) -> Option<ExprId> {
        if node.kind() != "navigation_expression" {
            return None;
        }
        let kids = reader.children(node);
        let mut named = kids.named();
        let (Some(of), Some(name)) = (named.next(), named.next_back()) else { return Some(UNKNOWN) };
        let of = reader.without_sign(of);
        let of = reader.value(of);
        let name = reader.text(name);
        Some(reader.b.member(of, name))
    }

    fn call<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> Option<ExprId> {
        match node.kind() {
            "call_expression" => Some(reader.call_with_lambda(node, kids)),
            "infix_expression" => {
                let mut named = kids.named();
                let (Some(of), Some(name), Some(arg)) = (named.next(), named.next(), named.next()) else {
                    return Some(UNKNOWN);
                };
                let (of, arg) = (reader.used(of), reader.used(arg));
                let name = reader.text(name);
                Some(reader.b.implicit(of, name, &[arg], span(node)))
            }
            _ => None,
        }
    }

    fn assign<'t>(&self, reader: &mut QueryReader<'t>, target: TreeNode<'t>, value: ExprId) -> bool {
        if target.kind() != "variable_declaration" {
            return false;
        }
        let kids = reader.children(target);
        let ty = kids.named().find(|k| is_type(k.kind())).and_then(|ty| reader.ty(ty));
        if let Some(name) = kids.kind("identifier") {
            let name = reader.text(name);
            reader.local(name, ty, value);
        }
        true
    }

    fn is_doc(&self, comment: &str) -> bool {
        comment.starts_with("/**")
    }

    fn kind_of_type<'t>(&self, _node: TreeNode<'t>, kids: &NodeChildren<'t>, by_node: DefKind) -> DefKind {
        if kids.has("interface") {
            DefKind::Interface
        } else if kids.kind("enum_class_body").is_some() {
            DefKind::Enum
        } else {
            by_node
        }
    }

    fn extensions_are_names(&self) -> bool {
        true
    }

    fn is_entry(&self, name: &str, outer: DefKind) -> bool {
        name == "main" && outer == DefKind::File
    }

    fn result_of<'t>(&self, reader: &mut QueryReader<'t>, body: TreeNode<'t>) -> Option<TreeNode<'t>> {
        if body.kind() != "function_body" {
            return None;
        }
        reader.first(body).filter(|inner| inner.kind() != "block")
    }

    fn lambda<'t>(&self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> LambdaHead<'t> {
        match node.kind() {
            "lambda_literal" => {
                LambdaHead { parameters: kids.kind("lambda_parameters"), implicit: Some("it"), returns: false }
            }
            "anonymous_function" => {
                LambdaHead { parameters: kids.kind("function_value_parameters"), implicit: None, returns: true }
            }
            _ => LambdaHead { parameters: None, implicit: None, returns: false },
        }
    }

    fn containers_call_lambdas(&self) -> bool {
        true
    }
}

impl<'t> QueryReader<'t> {
    fn imported_name(&mut self, node: TreeNode<'t>) {
        self.comments.clear();
        let kids = self.children(node);
        let Some(path) = kids.kind("qualified_identifier") else { return };
        let text: String = self.text(path).split_whitespace().collect();
        if kids.has("*") || self.text(node).trim_end().ends_with(".*") {
            self.b.import(&text, ImportKind::All, None, line(node));
        } else {
            let (module, symbol) = text.rsplit_once('.').unwrap_or(("", &text));
            let called = kids.kind("identifier").map_or(symbol, |n| self.text(n));
            let symbol = self.b.name(symbol);
            self.b.import(module, ImportKind::Symbol(symbol), Some(called), line(node));
        }
    }

    /// `class A(val x: B)` has a field; without `val`, it is a name for initializers.
    fn class_parameter(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let name = kids.kind("identifier").map_or("", |n| self.text(n));
        let ty = kids.named().find(|k| is_type(k.kind())).and_then(|ty| self.ty(ty));
        if kids.has("val") || kids.has("var") {
            self.variable(name, node, &kids, ty, None, 0);
        } else {
            self.local(name, ty, UNKNOWN);
        }
    }

    fn function_or_constructor(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let constructor = node.kind() == "secondary_constructor";
        let name = kids.field("name").map_or("constructor", |n| self.text(n));
        let mut head = FunctionHead {
            name: name.to_owned(),
            receiver: None,
            parameters: kids.kind("function_value_parameters"),
            result: None,
            body: kids.kind("function_body").or_else(|| kids.kind("block")),
            flags: if constructor { flag::CONSTRUCTOR } else { 0 },
            parameters_are_names: false,
        };
        let after = head.parameters.map_or(usize::MAX, |p| p.end_byte());
        for kid in kids.named().filter(|k| is_type(k.kind())) {
            if kid.start_byte() >= after {
                head.result = Some(kid);
            } else {
                head.receiver = self.ty(kid);
            }
        }
        self.function_of(node, &kids, head);
    }

    /// A property: a field, a variable of the file or a local, depending on its position.
    fn property_or_local(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let skip = ["modifiers", "type_parameters", "type_constraints", "getter", "setter", "comment"];
        let mut name = None;
        let mut value = None;
        for kid in kids.named() {
            match kid.kind() {
                "variable_declaration" | "multi_variable_declaration" if name.is_none() => name = Some(kid),
                "property_delegate" => value = self.delegated(kid),
                kind if name.is_some() && !skip.contains(&kind) => value = Some(kid),
                _ => {}
            }
        }
        let Some(pattern) = name else { return };
        if pattern.kind() == "multi_variable_declaration" {
            let value = value.map_or(UNKNOWN, |value| self.used(value));
            return self.assign(pattern, value);
        }
        let parts = self.children(pattern);
        let name = parts.kind("identifier").map_or("", |n| self.text(n));
        let ty_node = parts.named().find(|k| is_type(k.kind()));
        if let Some(getter) = kids.kind("getter").filter(|_| !self.owner().callable()) {
            let head = FunctionHead {
                name: name.to_owned(),
                receiver: None,
                parameters: None,
                result: ty_node,
                body: self.children(getter).kind("function_body").or(Some(getter)),
                flags: flag::GETTER,
                parameters_are_names: false,
            };
            self.function_of(node, &kids, head);
            return;
        }
        let ty = ty_node.and_then(|ty| self.ty(ty));
        if self.owner().callable() || self.frames.last().is_some_and(|f| f.lambda) {
            let value = value.map_or(UNKNOWN, |value| self.used_as(value, ty));
            self.local(name, ty, value);
        } else {
            self.variable(name, node, &kids, ty, value, 0);
        }
    }

    /// The value of `by lazy { value }`.
    fn delegated(&mut self, node: TreeNode<'t>) -> Option<TreeNode<'t>> {
        let call = self.first(node)?;
        let lambda = self.children(call).kind("annotated_lambda")?;
        let literal = self.first(lambda)?;
        self.last(literal)
    }

    fn for_statement(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let target = kids.named().find(|k| k.kind().ends_with("variable_declaration"));
        let element = self.element_of(kids.named().skip_while(|k| Some(*k) != target).nth(1));
        if let Some(target) = target {
            self.assign(target, element);
        }
    }

    fn call_with_lambda(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> ExprId {
        let Some(function) = kids.named().next() else { return UNKNOWN };
        let function = self.without_sign(function);
        let arguments = kids.kind("value_arguments");
        let lambda = kids.kind("annotated_lambda").and_then(|lambda| self.children(lambda).kind("lambda_literal"));
        // `f(x) { … }` is one call with the lambda as its last argument.
        if arguments.is_none() && function.kind() == "call_expression" {
            let value = self.call(function);
            if let (SourceExpr::Call(call), Some(lambda)) = (self.b.facts.expr(value), lambda) {
                let callee = self.b.facts.calls[call].callee;
                self.lambdas(callee, Some(lambda));
            }
            return value;
        }
        let callee = self.callee(function);
        let value = self.made_call(node, function, callee, arguments);
        self.lambdas(callee, lambda);
        value
    }

    /// The grammar reads `!f(x)` as `(!f)(x)` and `!x.y` as `(!x).y`.
    fn without_sign(&mut self, mut node: TreeNode<'t>) -> TreeNode<'t> {
        while node.kind() == "unary_expression"
            && let Some(inner) = self.children(node).field("argument")
        {
            node = inner;
        }
        node
    }
}
