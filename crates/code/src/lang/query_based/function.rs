//! Functions and methods: heads, parameters and results.

use super::QueryReader;
use super::define::is_type;
use crate::convert::to_place;
use crate::facts::{DefId, DefKind, ExprId, VarId, VarKind, flag};
use crate::tree::{NodeChildren, TreeNode};

/// The head of a function, the same for all languages.
pub(crate) struct FunctionHead<'t> {
    pub name: String,
    pub receiver: Option<ExprId>,
    pub parameters: Option<TreeNode<'t>>,
    pub result: Option<TreeNode<'t>>,
    pub body: Option<TreeNode<'t>>,
    pub flags: u32,
    /// Whether the parameter list contains names, not parameters: GoogleTest's `TEST(Suite, Name)`.
    pub parameters_are_names: bool,
}

impl<'t> QueryReader<'t> {
    pub fn function(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let head = self.head(&kids, 0);
        self.function_of(node, &kids, head);
    }

    /// The head of a function whose parts are fields of its node.
    pub fn head(&mut self, kids: &NodeChildren<'t>, flags: u32) -> FunctionHead<'t> {
        FunctionHead {
            name: kids.field("name").map_or("", |n| self.text(n)).to_owned(),
            receiver: None,
            parameters: kids.field("parameters"),
            result: kids.field("return_type"),
            body: kids.field("body"),
            flags,
            parameters_are_names: false,
        }
    }

    pub fn function_of(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>, head: FunctionHead<'t>) -> DefId {
        let outer = self.owner();
        let method = outer.type_like()
            || head.receiver.is_some()
            || (outer == DefKind::Module && self.dialect.modules_have_methods());
        let kind = if method { DefKind::Method } else { DefKind::Function };
        let def = self.define(&head.name, kind, node, kids);
        let scope = self.b.scope;
        let outer_name = self.b.facts.def(self.b.owner).name;
        let outer_name = self.b.facts.name(outer_name).to_owned();
        let flags = head.flags | self.function_flags(&head, outer, &outer_name);
        // A method outside its class is found by its receiver, a constructor by its class: their bare names refer to
        // something else here.
        let hidden = head.name == outer_name && flags & flag::CONSTRUCTOR != 0;
        if (head.receiver.is_none() || self.dialect.extensions_are_names() || outer.type_like()) && !hidden {
            self.b.declare_def(scope, def);
        }
        {
            let d = self.b.def(def);
            d.flags |= flags;
            d.receiver = head.receiver;
        }
        if self.dialect.is_test_case(self, &head.name, def, &outer_name) {
            self.b.def(def).flags |= flag::TEST;
        }
        self.open(def, node.end_byte());
        self.type_parameters(kids);
        let result = head.result.and_then(|ty| self.ty(ty));
        self.b.def(def).result = result;
        if let Some(parameters) = head.parameters
            && !head.parameters_are_names
        {
            self.parameters(parameters);
        }
        let given = head.body.and_then(|body| self.dialect.result_of(self, body));
        if let Some(given) = given.filter(|given| given.kind() == "implicit_object_creation_expression") {
            let value = self.used_as(given, result);
            self.b.returns(value, false);
        } else if let Some(frame) = self.frames.last_mut() {
            frame.result = given;
        }
        def
    }

    fn function_flags(&self, head: &FunctionHead<'t>, outer: DefKind, outer_name: &str) -> u32 {
        let name = head.name.as_str();
        let mut flags = 0;
        if self.dialect.is_constructor(name, outer, outer_name) {
            flags |= flag::CONSTRUCTOR;
        }
        if head.body.is_none() && outer == DefKind::Interface {
            flags |= flag::ABSTRACT;
        }
        if self.dialect.is_entry(name, outer) {
            flags |= flag::ENTRY;
        }
        flags
    }

    fn parameters(&mut self, list: TreeNode<'t>) {
        let inner = self.children(list);
        let owner = self.b.owner;
        // Whether the next parameter takes all further arguments.
        let mut rest = false;
        for (field, kid) in inner.with_fields() {
            let place = to_place(self.b.facts.def(owner).params.len());
            if !kid.is_named() {
                rest |= kid.kind() == "params";
                continue;
            }
            if self.dialect.parameter(self, kid, place) {
                continue;
            }
            let all_further = Some(VarKind::Rest(place));
            match kid.kind() {
                "parameter_modifiers" => rest = self.text(kid).contains("vararg"),
                "parameter" | "simple_parameter" | "optional_parameter" | "keyword_parameter" => {
                    self.named_parameter(kid, all_further.filter(|_| rest));
                    rest = false;
                }
                "variadic_parameter" | "splat_parameter" => _ = self.named_parameter(kid, all_further),
                "identifier" => _ = self.b.param(self.text(kid), all_further.filter(|_| field == Some("name")), None),
                _ => {}
            }
        }
    }

    /// A parameter with a name and possibly a type.
    pub fn named_parameter(&mut self, node: TreeNode<'t>, what: Option<VarKind>) -> VarId {
        let (name, ty) = self.name_and_type(node);
        self.b.param(name, what, ty)
    }

    /// The name and the declared type of a parameter.
    pub fn name_and_type(&mut self, node: TreeNode<'t>) -> (&'t str, Option<ExprId>) {
        let parts = self.children(node);
        let name = parts.field("name").or_else(|| parts.kind("identifier")).map_or("", |n| self.text(n));
        let ty = parts.field("type").or_else(|| parts.named().find(|k| is_type(k.kind())));
        (name, ty.and_then(|ty| self.ty(ty)))
    }
}
