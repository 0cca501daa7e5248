//! Functions and methods: heads, parameters and results.

use super::define::is_type;
use super::variable::Declarator;
use super::{QueryDialect, Reader};
use crate::facts::{BindTarget, DefId, DefKind, ExprId, SourceExpr, UNKNOWN, VarId, VarKind, flag};
use crate::tree::{NodeChildren, TreeNode};
use smallvec::SmallVec;

/// The head of a function, the same for all languages.
pub(super) struct FunctionHead<'t> {
    pub name: String,
    pub receiver: Option<ExprId>,
    pub parameters: Option<TreeNode<'t>>,
    pub result: Option<TreeNode<'t>>,
    pub body: Option<TreeNode<'t>>,
    pub flags: u32,
    /// Whether the parameter list contains names, not parameters: GoogleTest's `TEST(Suite, Name)`.
    pub parameters_are_names: bool,
}

impl<'t> Reader<'t> {
    pub(super) fn function(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let head = match self.language {
            QueryDialect::C | QueryDialect::Cpp => {
                let Some(declarator) = kids.field("declarator") else { return };
                let declared = self.declarator(declarator);
                if declared.function.is_none() {
                    return self.exported_class(node, &kids, &declared);
                }
                self.c_head(&declared, &kids)
            }
            QueryDialect::CSharp => self.csharp_head(node, &kids),
            QueryDialect::Kotlin => self.kotlin_head(node, &kids),
            _ => Some(FunctionHead {
                name: kids.field("name").map_or("", |n| self.text(n)).to_owned(),
                receiver: None,
                parameters: kids.field("parameters"),
                result: kids.field("return_type"),
                body: kids.field("body"),
                flags: if node.kind() == "singleton_method" { flag::STATIC } else { 0 },
                parameters_are_names: false,
            }),
        };
        let Some(head) = head else { return };
        self.function_of(node, &kids, head);
        if let Some(name) = kids.field("name").filter(|_| self.language == QueryDialect::Ruby) {
            self.no_call(name);
        }
    }

    /// Ruby: marks a name as not a call, because it only names something.
    pub(super) fn no_call(&mut self, node: TreeNode<'t>) {
        self.made.insert(node.id(), UNKNOWN);
        if node.kind() == "setter"
            && let Some(name) = self.first(node)
        {
            self.made.insert(name.id(), UNKNOWN);
        }
    }

    /// `class API Name { … }` with a macro for `API` is parsed as a function without parameters.
    fn exported_class(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>, declared: &Declarator<'t>) {
        let Some(ty) = kids.field("type").filter(|_| self.language == QueryDialect::Cpp) else { return };
        let kind = match ty.kind() {
            "class_specifier" => DefKind::Class,
            "struct_specifier" => DefKind::Struct,
            _ => return,
        };
        if declared.name.is_empty() || self.children(ty).field("body").is_some() {
            return;
        }
        let def = self.define(declared.name, kind, node, kids);
        let scope = self.b.scope;
        self.b.declare_def(scope, def);
        self.open_type(def, node, kids);
    }

    pub(super) fn function_of(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>, head: FunctionHead<'t>) -> DefId {
        let outer = self.owner();
        let method = outer.type_like()
            || head.receiver.is_some()
            || (outer == DefKind::Module && self.language == QueryDialect::Ruby);
        let kind = if method { DefKind::Method } else { DefKind::Function };
        let def = self.define(&head.name, kind, node, kids);
        let scope = self.b.scope;
        let outer_name = self.b.facts.def(self.b.owner).name;
        let outer_name = self.b.facts.name(outer_name).to_owned();
        let flags = head.flags | self.function_flags(&head, outer, &outer_name);
        // A method outside its class is found by its receiver, a constructor by its class: their bare names refer to
        // something else here.
        let hidden = head.name == outer_name && flags & flag::CONSTRUCTOR != 0;
        if (head.receiver.is_none() || self.language == QueryDialect::Kotlin || outer.type_like()) && !hidden {
            self.b.declare_def(scope, def);
        }
        {
            let d = self.b.def(def);
            d.flags |= flags;
            d.receiver = head.receiver;
        }
        if self.test_case(&head.name, def, &outer_name) {
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
        let given = head.body.and_then(|body| self.given(body));
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
        let constructor = match self.language {
            QueryDialect::Cpp => outer.type_like() && name == outer_name,
            QueryDialect::Php => name == "__construct",
            QueryDialect::Ruby => name == "initialize",
            _ => false,
        };
        if constructor {
            flags |= flag::CONSTRUCTOR;
        }
        if head.body.is_none() && outer == DefKind::Interface {
            flags |= flag::ABSTRACT;
        }
        let entry = match self.language {
            QueryDialect::C | QueryDialect::Cpp | QueryDialect::Kotlin => name == "main" && outer == DefKind::File,
            QueryDialect::CSharp => name == "Main" && outer.type_like(),
            _ => false,
        };
        if entry { flags | flag::ENTRY } else { flags }
    }

    fn test_case(&self, name: &str, def: DefId, outer_name: &str) -> bool {
        match self.language {
            QueryDialect::Ruby => self.test_file && name.starts_with("test_"),
            QueryDialect::Php => {
                let d = self.b.facts.def(def);
                let marked = name.starts_with("test") || d.doc.as_deref().is_some_and(|doc| doc.contains("@test"));
                d.kind == DefKind::Method && outer_name.ends_with("Test") && marked
            }
            _ => false,
        }
    }

    pub(super) fn c_head(&mut self, declared: &Declarator<'t>, kids: &NodeChildren<'t>) -> Option<FunctionHead<'t>> {
        let function = declared.function?;
        let parts = self.children(function);
        let mut head = FunctionHead {
            name: declared.name.split_whitespace().collect::<Vec<_>>().join(" "),
            receiver: None,
            parameters: parts.field("parameters"),
            result: kids.field("type"),
            body: kids.field("body"),
            flags: 0,
            parameters_are_names: false,
        };
        if let Some(trailing) = parts.kind("trailing_return_type") {
            head.result = self.first(trailing);
        }
        if !declared.path.is_empty() {
            head.receiver = Some(self.b.read_path(declared.path.iter().copied()));
            if declared.path.last() == Some(&declared.name) {
                head.flags |= flag::CONSTRUCTOR;
            }
        }
        // GoogleTest: `TEST(Suite, Name) { … }` is parsed as a function without a type.
        if self.language == QueryDialect::Cpp
            && matches!(declared.name, "TEST" | "TEST_F" | "TEST_P" | "TYPED_TEST")
            && head.result.is_none()
            && let Some(list) = head.parameters
        {
            let inner = self.children(list);
            let names: SmallVec<[&str; 2]> = inner.named().map(|n| self.text(n)).collect();
            head.name = names.join(".");
            head.flags |= flag::TEST;
            head.parameters_are_names = true;
            if declared.name != "TEST"
                && let Some(fixture) = names.first()
            {
                head.receiver = Some(self.b.read(fixture));
            }
        }
        (!head.name.is_empty()).then_some(head)
    }

    fn csharp_head(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> Option<FunctionHead<'t>> {
        let mut flags = 0;
        let name = kids.field("name").map_or("", |n| self.text(n));
        let name = match node.kind() {
            "constructor_declaration" => {
                flags |= flag::CONSTRUCTOR;
                name.to_owned()
            }
            "destructor_declaration" => format!("~{name}"),
            "operator_declaration" => format!("operator {}", kids.field("operator").map_or("", |n| self.text(n))),
            "conversion_operator_declaration" => {
                format!("operator {}", kids.field("type").map_or("", |n| self.text(n)))
            }
            "indexer_declaration" => "this[]".to_owned(),
            _ => name.to_owned(),
        };
        let parameters = kids.field("parameters");
        // `static T Name(this Type x)` is a method of Type.
        let mut receiver = None;
        if let Some(list) = parameters.filter(|list| self.text(*list).trim_start_matches('(').starts_with("this ")) {
            let first = self.first(list);
            let ty = first.and_then(|first| self.children(first).field("type"));
            receiver = ty.and_then(|ty| self.ty(ty));
            flags |= flag::TAKES_SELF;
        }
        let body = kids.field("body").or_else(|| kids.field("value"));
        let result = kids.field("returns").or_else(|| kids.field("type"));
        Some(FunctionHead { name, receiver, parameters, result, body, flags, parameters_are_names: false })
    }

    fn kotlin_head(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> Option<FunctionHead<'t>> {
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
        Some(head)
    }

    /// The result of a body that is an expression; in Ruby, its last statement.
    fn given(&mut self, body: TreeNode<'t>) -> Option<TreeNode<'t>> {
        match body.kind() {
            "arrow_expression_clause" => self.last(body),
            "function_body" => self.first(body).filter(|inner| inner.kind() != "block"),
            "body_statement" => self.last(body).filter(|n| !matches!(n.kind(), "rescue" | "ensure" | "else")),
            "block" | "compound_statement" => None,
            _ if self.language == QueryDialect::Ruby => Some(body),
            _ => None,
        }
    }

    fn parameters(&mut self, list: TreeNode<'t>) {
        let inner = self.children(list);
        let owner = self.b.owner;
        let mut rest = false;
        for (field, kid) in inner.with_fields() {
            let place = self.b.facts.def(owner).params.len() as u16;
            if !kid.is_named() {
                rest |= kid.kind() == "params";
                continue;
            }
            match kid.kind() {
                "parameter_declaration" | "optional_parameter_declaration" | "variadic_parameter_declaration" => {
                    let parts = self.children(kid);
                    let ty = parts.field("type").and_then(|ty| self.ty(ty));
                    let declared = parts.field("declarator").map(|d| self.declarator(d));
                    let name = declared.as_ref().map_or("", |d| d.name);
                    if name.is_empty() && parts.field("type").is_some_and(|ty| self.text(ty) == "void") {
                        continue;
                    }
                    let ty = if declared.is_some_and(|d| d.array) { self.list_of(ty) } else { ty };
                    let rest = kid.kind() == "variadic_parameter_declaration";
                    self.b.param(name, rest.then_some(VarKind::Rest(place)), ty);
                }
                "variadic_parameter" if self.c_like() => self.b.def(owner).flags |= flag::VARIADIC,
                "parameter_modifiers" => rest = self.text(kid).contains("vararg"),
                // Kotlin, C# and PHP; Ruby's parameters have other kinds.
                "parameter"
                | "simple_parameter"
                | "variadic_parameter"
                | "property_promotion_parameter"
                | "optional_parameter"
                | "keyword_parameter"
                | "splat_parameter"
                | "hash_splat_parameter"
                | "block_parameter" => {
                    let parts = self.children(kid);
                    let name = parts.field("name").or_else(|| parts.kind("identifier")).map_or("", |n| self.text(n));
                    let ty = parts.field("type").or_else(|| parts.named().find(|k| is_type(k.kind())));
                    let ty = ty.and_then(|ty| self.ty(ty));
                    let what = match kid.kind() {
                        "variadic_parameter" | "splat_parameter" => Some(VarKind::Rest(place)),
                        "hash_splat_parameter" => Some(VarKind::Keywords),
                        "block_parameter" => Some(VarKind::Local),
                        _ if rest => Some(VarKind::Rest(place)),
                        _ => None,
                    };
                    rest = false;
                    if what == Some(VarKind::Local) {
                        self.local(name, ty, UNKNOWN);
                        continue;
                    }
                    let var = self.b.param(name, what, ty);
                    if kid.kind() == "property_promotion_parameter" {
                        self.promoted(name, kid, &parts, ty, var);
                    }
                }
                "identifier" if field == Some("name") => {
                    self.b.param(self.text(kid), Some(VarKind::Rest(place)), None);
                }
                "identifier" => {
                    self.b.param(self.text(kid), None, None);
                }
                "destructured_parameter" => {
                    let var = self.b.param("", None, None);
                    let whole = self.b.expr(SourceExpr::Var(var));
                    self.assign(kid, whole);
                }
                _ => {}
            }
        }
    }

    /// PHP: a constructor parameter that is also a property.
    fn promoted(&mut self, name: &str, node: TreeNode<'t>, kids: &NodeChildren<'t>, ty: Option<ExprId>, var: VarId) {
        let Some(frame) = self.frames.last() else { return };
        let inside = (self.b.owner, self.b.scope);
        (self.b.owner, self.b.scope) = frame.before;
        let name = name.trim_start_matches('$');
        self.variable(name, node, kids, ty, None, 0);
        (self.b.owner, self.b.scope) = inside;
        let this = self.b.expr(SourceExpr::This);
        let name = self.b.name(name);
        let value = self.b.expr(SourceExpr::Var(var));
        self.b.bind(BindTarget::Member(this, name), value);
    }
}
