//! Variables, constants and fields, and the declarators of C and C++.

use super::define::{is_type, place};
use super::function::FunctionHead;
use super::{QueryDialect, Reader};
use crate::builder::FILE_SCOPE;
use crate::facts::{Arg, BindTarget, CallKind, DefId, DefKind, ExprId, ROOT, SourceExpr, UNKNOWN, Visibility, flag};
use crate::tree::{NodeChildren, TreeNode, one_line, span};
use smallvec::SmallVec;

/// The parts of a C or C++ declarator.
pub(super) struct Declarator<'t> {
    pub name: &'t str,
    /// `a`, `b` in `a::b::name`.
    pub path: SmallVec<[&'t str; 2]>,
    /// The part with the parameters, if a function is declared, not a pointer to one.
    pub function: Option<TreeNode<'t>>,
    pub value: Option<TreeNode<'t>>,
    pub array: bool,
    pub pointer: bool,
    pub parts: Option<TreeNode<'t>>,
}

impl<'t> Reader<'t> {
    /// Defines a variable of a file or type: a symbol and a variable for its value.
    pub(super) fn variable(
        &mut self,
        name: &str,
        node: TreeNode<'t>,
        kids: &NodeChildren<'t>,
        ty: Option<ExprId>,
        value: Option<TreeNode<'t>>,
        flags: u32,
    ) -> DefId {
        let kind = if self.owner().type_like() { DefKind::Field } else { DefKind::Variable };
        let def = self.define(name, kind, node, kids);
        let d = self.b.def(def);
        d.flags |= flags;
        d.result = ty;
        let value = value.map_or(UNKNOWN, |value| self.used_as(value, ty));
        self.local(name, ty, value);
        def
    }

    /// Fields and constants whose kind follows from their node.
    pub(super) fn fields(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        match node.kind() {
            "preproc_function_def" => {
                let name = kids.field("name").map_or("", |n| self.text(n));
                let def = self.define(name, DefKind::Function, node, &kids);
                let params = kids.field("parameters").map_or("()", |p| self.text(p));
                self.b.def(def).signature = one_line(&format!("#define {name}{params}")).into();
                self.b.declare_def(FILE_SCOPE, def);
            }
            "preproc_def" => {
                let name = kids.field("name").map_or("", |n| self.text(n));
                // A macro without a value only serves `#ifdef`.
                if kids.field("value").is_some() && self.b.owner == ROOT {
                    self.variable(name, node, &kids, None, None, flag::CONSTANT);
                }
            }
            "enumerator" => {
                let name = kids.field("name").map_or("", |n| self.text(n));
                let def = self.variable(name, node, &kids, None, None, flag::CONSTANT);
                self.b.def(def).visibility = Visibility::Public;
                let name = self.b.name(name);
                // The names of a C enumeration are visible in the scope around it.
                if let (Some(frame), Some(var)) = (self.frames.last(), self.b.declared_in(self.b.scope, name))
                    && self.owner() == DefKind::Enum
                {
                    let inside = std::mem::replace(&mut self.b.scope, frame.before.1);
                    if self.b.declared_in(self.b.scope, name).is_none() {
                        self.b.alias(name, var);
                    }
                    self.b.scope = inside;
                }
            }
            "enum_member_declaration" | "enum_case" | "enum_entry" => {
                let name = kids.field("name").or_else(|| kids.kind("identifier")).map_or("", |n| self.text(n));
                let def = self.variable(name, node, &kids, None, None, flag::CONSTANT | flag::STATIC);
                // A case is an instance of its enumeration.
                let owner = self.b.facts.def(def).parent;
                let of = self.b.expr(SourceExpr::Def(owner));
                let value = self.b.expr(SourceExpr::InstanceOf(of));
                let name = self.b.name(name);
                if let Some(var) = self.b.declared_in(self.b.scope, name) {
                    self.b.bind(BindTarget::Var(var), value);
                }
            }
            "field_declaration" | "event_field_declaration" => {
                if let Some(declaration) = kids.kind("variable_declaration") {
                    self.made.insert(declaration.id(), UNKNOWN);
                    self.csharp_variables(declaration, Some((node, &kids)));
                }
            }
            "property_declaration" if self.language == QueryDialect::CSharp => self.csharp_property(node, &kids),
            "event_declaration" => self.csharp_property(node, &kids),
            "property_declaration" => {
                let ty = kids.field("type").and_then(|ty| self.ty(ty));
                for element in kids.named().filter(|k| k.kind() == "property_element") {
                    let parts = self.children(element);
                    let name = parts.field("name").map_or("", |n| self.text(n)).trim_start_matches('$');
                    self.variable(name, node, &kids, ty, parts.field("default_value"), 0);
                }
            }
            "const_declaration" => {
                for element in kids.named().filter(|k| k.kind() == "const_element") {
                    let parts = self.children(element);
                    let name = parts.named().next().map_or("", |n| self.text(n));
                    let flags = if self.owner().type_like() { flag::CONSTANT | flag::STATIC } else { flag::CONSTANT };
                    self.variable(name, node, &kids, None, parts.named().nth(1), flags);
                }
            }
            "class_parameter" => {
                let name = kids.kind("identifier").map_or("", |n| self.text(n));
                let ty = kids.named().find(|k| is_type(k.kind())).and_then(|ty| self.ty(ty));
                if kids.has("val") || kids.has("var") {
                    self.variable(name, node, &kids, ty, None, 0);
                } else {
                    self.local(name, ty, UNKNOWN);
                }
            }
            _ => {}
        }
    }

    pub(super) fn csharp_variables(&mut self, node: TreeNode<'t>, field: Option<(TreeNode<'t>, &NodeChildren<'t>)>) {
        let kids = self.children(node);
        let ty = kids.field("type").and_then(|ty| self.ty(ty));
        for declarator in kids.named().filter(|k| k.kind() == "variable_declarator") {
            let parts = self.children(declarator);
            let pattern = parts.kind("tuple_pattern");
            let name = parts.field("name");
            let value = parts.named().next_back().filter(|v| Some(*v) != name && Some(*v) != pattern);
            match (name, field) {
                (Some(name), Some((node, kids))) => {
                    self.variable(self.text(name), node, kids, ty, value, 0);
                }
                (Some(name), None) => {
                    let value = value.map_or(UNKNOWN, |value| self.used_as(value, ty));
                    self.local(self.text(name), ty, value);
                }
                _ => {
                    let value = value.map_or(UNKNOWN, |value| self.used(value));
                    if let Some(pattern) = pattern {
                        self.assign(pattern, value);
                    }
                }
            }
        }
    }

    /// A property with code is a getter; one without is a field.
    fn csharp_property(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>) {
        let name = kids.field("name").map_or("", |n| self.text(n));
        let value = kids.field("value");
        let arrow = value.filter(|v| v.kind() == "arrow_expression_clause");
        let code = arrow.is_some() || kids.field("accessors").is_some_and(|list| self.has_code(list));
        if code {
            let head = FunctionHead {
                name: name.to_owned(),
                receiver: None,
                parameters: None,
                result: kids.field("type"),
                body: arrow.or(Some(node)),
                flags: flag::GETTER,
                parameters_are_names: false,
            };
            self.function_of(node, kids, head);
        } else {
            let ty = kids.field("type").and_then(|ty| self.ty(ty));
            self.variable(name, node, kids, ty, value, 0);
        }
    }

    fn has_code(&mut self, accessors: TreeNode<'t>) -> bool {
        let inner = self.children(accessors);
        inner.named().any(|accessor| self.children(accessor).field("body").is_some())
    }

    /// A Kotlin property: a field, a variable of the file or a local, depending on its position.
    pub(super) fn kotlin_property(&mut self, node: TreeNode<'t>) {
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

    /// C and C++: reads the declarators of a `declaration` or `field_declaration`.
    pub(super) fn declaration(&mut self, node: TreeNode<'t>) {
        match node.kind() {
            "property_declaration" => return self.kotlin_property(node),
            "variable_declaration" if self.made.contains_key(&node.id()) => return,
            "variable_declaration" => return self.csharp_variables(node, None),
            "declaration_pattern" | "declaration_expression" => return self.caught(node),
            _ => {}
        }
        let kids = self.children(node);
        let ty = kids.field("type").and_then(|ty| self.ty(ty));
        let inside = self.owner().callable();
        let field_value = kids.field("default_value").or_else(|| kids.field("value"));
        for declarator in kids.fields("declarator") {
            let declared = self.declarator(declarator);
            // Initializing a pointer does not construct an object.
            let value = declared.value.or(field_value).filter(|v| !declared.pointer || !v.kind().ends_with("_list"));
            if declared.function.is_some() && !inside {
                self.prototype(node, &kids, &declared);
            } else if let (Some(function), Some(ty), true) = (declared.function, ty, self.language == QueryDialect::Cpp)
            {
                // `T x(a);` in a function is parsed as a prototype, but constructs a T.
                let value = self.constructed(function, ty);
                self.local(declared.name, Some(ty), value);
            } else if let Some(parts) = declared.parts {
                let value = value.map_or(UNKNOWN, |value| self.used(value));
                self.assign(parts, value);
            } else if !declared.path.is_empty() {
                // A static member gets its value outside of the class that declares it.
                let value = value.map_or(UNKNOWN, |value| self.used_as(value, ty));
                let of = self.b.read_path(declared.path.iter().copied());
                let name = self.b.name(declared.name);
                self.b.bind(BindTarget::Member(of, name), value);
            } else if !declared.name.is_empty() {
                let ty = if declared.array { self.list_of(ty) } else { ty };
                if inside {
                    let value = value.map_or(UNKNOWN, |value| self.used_as(value, ty));
                    self.local(declared.name, ty, value);
                } else {
                    self.variable(declared.name, node, &kids, ty, value, 0);
                }
            }
        }
    }

    fn constructed(&mut self, function: TreeNode<'t>, ty: ExprId) -> ExprId {
        let Some(list) = self.children(function).field("parameters") else { return UNKNOWN };
        let inner = self.children(list);
        let args: SmallVec<[Arg; 4]> = inner
            .named()
            .map(|parameter| {
                let name = self.first(parameter).filter(|name| name.kind() == "type_identifier");
                place(name.map_or(UNKNOWN, |name| self.used(name)))
            })
            .collect();
        if args.is_empty() {
            return UNKNOWN;
        }
        self.b.call(ty, CallKind::New, &args, span(function))
    }

    /// A function that is declared here and defined elsewhere.
    fn prototype(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>, declared: &Declarator<'t>) {
        let Some(head) = self.c_head(declared, kids) else { return };
        let pure = kids.field("default_value").is_some() || declared.value.is_some();
        let def = self.function_of(node, kids, head);
        let d = self.b.def(def);
        d.flags &= !flag::DECLARED;
        d.flags |= if pure { flag::ABSTRACT } else { flag::DECLARED };
    }

    pub(super) fn declarator(&mut self, node: TreeNode<'t>) -> Declarator<'t> {
        let mut declared = Declarator {
            name: "",
            path: SmallVec::new(),
            function: None,
            value: None,
            array: false,
            pointer: false,
            parts: None,
        };
        let mut at = node;
        // Bounds the nesting of declarators; meaningful ones are not deeper.
        for _ in 0..64 {
            match at.kind() {
                "init_declarator" => {
                    let kids = self.children(at);
                    declared.value = kids.field("value");
                    let Some(inner) = kids.field("declarator") else { break };
                    at = inner;
                    continue;
                }
                "function_declarator" => declared.function = Some(at),
                "pointer_declarator" | "reference_declarator" => {
                    // A pointer to a function is not a function; a pointer before the declarator belongs to the result
                    // type.
                    declared.function = None;
                    declared.pointer = true;
                }
                "array_declarator" => declared.array = true,
                "structured_binding_declarator" => {
                    declared.parts = Some(at);
                    break;
                }
                "qualified_identifier" => {
                    let kids = self.children(at);
                    if let Some(scope) = kids.field("scope") {
                        declared.path.push(self.last_name(scope));
                    }
                    let Some(inner) = kids.field("name") else { break };
                    at = inner;
                    continue;
                }
                "template_function" | "template_method" => {
                    let name = self.children(at).field("name");
                    declared.name = name.map_or("", |n| self.text(n));
                    break;
                }
                "parenthesized_declarator" | "attributed_declarator" | "variadic_declarator" => {}
                kind => {
                    if kind.ends_with("identifier") || matches!(kind, "destructor_name" | "operator_name") {
                        declared.name = self.text(at);
                    } else if kind == "operator_cast" {
                        declared.name = self.text(at).split('(').next().unwrap_or("").trim();
                        declared.function = Some(at);
                    }
                    break;
                }
            }
            let kids = self.children(at);
            let Some(inner) = kids.field("declarator").or_else(|| kids.named().next()) else { break };
            at = inner;
        }
        declared
    }
}
