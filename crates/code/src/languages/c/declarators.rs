//! Declarators: what a declaration, a parameter or a type definition names, and how.

use crate::facts::{Arg, BindTarget, CallKind, DefKind, ExprId, SourceExpr, UNKNOWN, flag};
use crate::lang::query_based::{FunctionHead, QueryReader, place};
use crate::tree::{NodeChildren, TreeNode, span};
use smallvec::SmallVec;

/// The parts of a declarator.
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

impl<'t> QueryReader<'t> {
    /// Reads the declarators of a declaration or of fields. `classes` is whether types have constructors.
    pub(super) fn declaration(&mut self, node: TreeNode<'t>, classes: bool) {
        let kids = self.children(node);
        let ty = kids.field("type").and_then(|ty| self.ty(ty));
        let inside = self.owner().callable();
        let field_value = kids.field("default_value").or_else(|| kids.field("value"));
        for declarator in kids.fields("declarator") {
            let declared = self.declarator(declarator);
            // Initializing a pointer does not construct an object.
            let value = declared.value.or(field_value).filter(|v| !declared.pointer || !v.kind().ends_with("_list"));
            if declared.function.is_some() && !inside {
                self.prototype(node, &kids, &declared, classes);
            } else if let (Some(function), Some(ty), true) = (declared.function, ty, classes) {
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
    fn prototype(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>, declared: &Declarator<'t>, classes: bool) {
        let Some(head) = self.declared_head(declared, kids, classes) else { return };
        let pure = kids.field("default_value").is_some() || declared.value.is_some();
        let def = self.function_of(node, kids, head);
        let d = self.b.def(def);
        d.flags &= !flag::DECLARED;
        d.flags |= if pure { flag::ABSTRACT } else { flag::DECLARED };
    }

    /// Defines a function; `classes` is whether it may be a method, a test, or a class that looks like a function.
    pub(super) fn declared_function(&mut self, node: TreeNode<'t>, classes: bool) {
        let kids = self.children(node);
        let Some(declarator) = kids.field("declarator") else { return };
        let declared = self.declarator(declarator);
        if declared.function.is_some() {
            if let Some(head) = self.declared_head(&declared, &kids, classes) {
                self.function_of(node, &kids, head);
            }
        } else if classes {
            self.exported_class(node, &kids, &declared);
        }
    }

    fn declared_head(
        &mut self,
        declared: &Declarator<'t>,
        kids: &NodeChildren<'t>,
        classes: bool,
    ) -> Option<FunctionHead<'t>> {
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
        if classes
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

    /// `class API Name { … }` with a macro for `API` is parsed as a function without parameters.
    fn exported_class(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>, declared: &Declarator<'t>) {
        let Some(ty) = kids.field("type") else { return };
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

    /// `typedef`: second names of a type.
    pub(super) fn second_names(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let ty = kids.field("type");
        for (index, declarator) in kids.fields("declarator").enumerate() {
            let declared = self.declarator(declarator);
            if declared.name.is_empty() {
                continue;
            }
            // `typedef struct { … } Name`: the struct has no other name.
            if let Some(body) = ty.filter(|_| index == 0) {
                let inner = self.children(body);
                if inner.field("name").is_none() && inner.field("body").is_some() {
                    let kind = if body.kind() == "enum_specifier" { DefKind::Enum } else { DefKind::Struct };
                    let def = self.define(declared.name, kind, node, &kids);
                    let signature =
                        format!("typedef {} {}", inner.all().next().map_or("", |k| k.kind()), declared.name);
                    self.b.def(def).signature = signature.into();
                    let scope = self.b.scope;
                    self.b.declare_def(scope, def);
                    self.made.insert(body.id(), UNKNOWN);
                    self.open_type(def, body, &inner);
                    return;
                }
            }
            let def = self.define(declared.name, DefKind::Type, node, &kids);
            let mut result = ty.and_then(|ty| self.ty(ty));
            if declarator.kind() == "function_declarator" {
                let given = result.unwrap_or(UNKNOWN);
                result = Some(self.b.expr(SourceExpr::FunctionType(given)));
            }
            self.b.def(def).result = result;
            // `typedef struct node { … } node`: both names refer to the same type.
            if ty.and_then(|ty| self.children(ty).field("name")).map(|n| self.text(n)) != Some(declared.name) {
                let scope = self.b.scope;
                self.b.declare_def(scope, def);
            }
        }
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
