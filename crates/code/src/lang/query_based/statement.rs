//! Names bound by imports, assignments, loops and lambdas, and labels that change the visibility of members.

use super::QueryReader;
use crate::convert::to_u32;
use crate::facts::{BindTarget, ExprId, SourceExpr, UNKNOWN, Visibility, flag};
use crate::tree::TreeNode;

impl<'t> QueryReader<'t> {
    /// Declares a variable of the current scope. A second declaration of the same name adds its value to the first.
    pub fn local(&mut self, name: &str, ty: Option<ExprId>, value: ExprId) {
        if name.is_empty() {
            return;
        }
        let name = self.b.name(name);
        let scope = self.b.scope;
        let known = self.b.declared_in(scope, name).is_some();
        let var = self.b.variable_in(scope, name);
        match ty {
            Some(ty) if known => {
                let instance = self.b.expr(SourceExpr::InstanceOf(ty));
                self.b.bind(BindTarget::Var(var), instance);
            }
            Some(ty) => self.b.facts.vars[var].ty = Some(ty),
            None => {}
        }
        self.b.bind(BindTarget::Var(var), value);
    }

    // --- assignments ---

    pub fn assignment(&mut self, node: TreeNode<'t>) -> ExprId {
        if let Some(made) = self.made.get(&node.id()) {
            return *made;
        }
        let kids = self.children(node);
        let (Some(left), Some(right)) = (kids.field("left"), kids.field("right")) else { return UNKNOWN };
        let value = self.used(right);
        self.made.insert(node.id(), value);
        // Ruby's constants are symbols.
        if left.kind() == "constant" && !self.owner().callable() && node.kind() == "assignment" {
            let name = self.text(left);
            self.variable(name, node, &kids, None, None, flag::CONSTANT);
            self.local(name, None, value);
        } else {
            self.assign(left, value);
        }
        value
    }

    pub fn assign(&mut self, target: TreeNode<'t>, value: ExprId) {
        self.deeper((), |reader| {
            if !reader.dialect.assign(reader, target, value) {
                reader.assign_inner(target, value);
            }
        });
    }

    fn assign_inner(&mut self, target: TreeNode<'t>, value: ExprId) {
        match target.kind() {
            "identifier" | "name" | "global_variable" | "constant" => {
                let name = self.text(target);
                self.b.bind_name(name, value);
            }
            "tuple_pattern"
            | "tuple_expression"
            | "left_assignment_list"
            | "list_literal"
            | "destructured_parameter"
            | "destructured_left_assignment"
            | "structured_binding_declarator"
            | "multi_variable_declaration" => {
                let kids = self.children(target);
                let declares = matches!(target.kind(), "tuple_pattern" | "structured_binding_declarator");
                for (index, part) in kids.named().enumerate() {
                    let at = match value {
                        UNKNOWN => UNKNOWN,
                        _ => self.b.expr(SourceExpr::AtIndex(value, to_u32(index))),
                    };
                    if declares && part.kind() == "identifier" {
                        self.local(self.text(part), None, at);
                    } else {
                        self.assign(part, at);
                    }
                }
            }
            "argument"
            | "array_element_initializer"
            | "pair"
            | "rest_assignment"
            | "parenthesized_expression"
            | "by_ref"
            | "pointer_expression" => {
                if let Some(inner) = self.last(target) {
                    self.assign(inner, value);
                }
            }
            "subscript_expression" | "element_access_expression" | "index_expression" | "element_reference" => {
                if let Some(of) = self.first(target) {
                    let of = self.value(of);
                    self.b.bind(BindTarget::Element(of), value);
                }
            }
            _ => {
                let place = self.value(target);
                if let SourceExpr::Member(of, name) = self.b.facts.expr(place) {
                    self.b.bind(BindTarget::Member(of, name), value);
                }
            }
        }
    }

    // --- loops, exceptions, returns ---

    /// The elements that a loop runs over.
    pub fn element_of(&mut self, over: Option<TreeNode<'t>>) -> ExprId {
        match over.map_or(UNKNOWN, |over| self.used(over)) {
            UNKNOWN => UNKNOWN,
            over => self.b.expr(SourceExpr::Element(over)),
        }
    }

    /// Declares a typed name inside a function: a caught exception, a match of a pattern, an `out` argument.
    pub fn caught(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let name = kids.field("name").or_else(|| kids.kind("identifier"));
        let ty = kids.field("type").or_else(|| kids.kind("user_type"));
        let ty = ty.and_then(|ty| self.ty(ty));
        if let Some(name) = name {
            self.local(self.text(name), ty, UNKNOWN);
        }
    }

    pub fn returned(&mut self, node: TreeNode<'t>) {
        if self.frames.iter().rev().take_while(|f| f.before.0 == self.b.owner).any(|f| f.returns) {
            return;
        }
        // `return@label` may return from a lambda only.
        if self.text(node).starts_with("return@") {
            return;
        }
        let Some(mut value) = self.last(node) else { return };
        if value.kind() == "argument_list" {
            let Some(inner) = self.first(value) else { return };
            value = inner;
        }
        if node.kind() == "yield_statement" || node.kind() == "yield_expression" {
            let owner = self.b.owner;
            self.b.def(owner).flags |= flag::GENERATOR;
        }
        let yields = node.kind().starts_with("yield");
        let ty = self.b.facts.def(self.b.owner).result.filter(|_| value.kind().starts_with("implicit_object"));
        let value = self.used_as(value, ty);
        self.b.returns(value, yields);
    }

    // --- lambdas and blocks ---

    /// Reads a lambda. Its calls are attributed to the enclosing definition; only its parameters are its own.
    pub fn lambda(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let element = self.elements.get(&node.id()).copied().unwrap_or(UNKNOWN);
        let head = self.dialect.lambda(node, &kids);
        let frame = self.open_scope(node.end_byte());
        frame.lambda = true;
        frame.returns = head.returns;
        let Some(list) = head.parameters else {
            return self.local(head.implicit.unwrap_or(""), None, element);
        };
        if matches!(list.kind(), "implicit_parameter" | "identifier") {
            return self.local(self.text(list), None, element);
        }
        let inner = self.children(list);
        for (index, parameter) in inner.named().enumerate() {
            let value = if index == 0 { element } else { UNKNOWN };
            if matches!(parameter.kind(), "identifier") {
                self.local(self.text(parameter), None, value);
                continue;
            }
            if matches!(
                parameter.kind(),
                "variable_declaration" | "multi_variable_declaration" | "destructured_parameter"
            ) {
                self.assign(parameter, value);
                continue;
            }
            let (name, ty) = self.name_and_type(parameter);
            self.local(name, ty, value);
        }
    }

    pub fn statics(&mut self, node: TreeNode<'t>) {
        let before = (self.b.owner, self.b.scope);
        self.frame(node.end_byte(), before).statics = true;
    }

    /// `public:` in C++; without the colon it belongs to a base class.
    pub fn access(&mut self, node: TreeNode<'t>) {
        let after = self.b.text.get(node.end_byte()..).unwrap_or("").trim_start();
        if !self.text(node).ends_with(':') && !after.starts_with(':') {
            return;
        }
        let visibility = match self.text(node).trim_end_matches(':').trim() {
            "private" => Visibility::Private,
            "protected" => Visibility::Protected,
            _ => Visibility::Public,
        };
        if let Some(frame) = self.frames.last_mut() {
            frame.visibility = visibility;
        }
    }

    // --- other ---

    /// Records uses: values in lists and references to functions.
    pub fn mentioned(&mut self, node: TreeNode<'t>) {
        if node.kind() == "callable_reference" {
            self.used(node);
            return;
        }
        let kids = self.children(node);
        for kid in kids.named() {
            let value = match kid.kind() {
                "initializer_pair" => self.children(kid).field("value"),
                "array_element_initializer" => self.last(kid),
                _ => Some(kid),
            };
            if let Some(value) = value
                && !matches!(value.kind(), "initializer_list" | "call_expression" | "assignment_expression")
            {
                self.used(value);
            }
        }
    }
}
