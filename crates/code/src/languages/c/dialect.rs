//! The syntax of C and C++, for the reader that they share with other languages.

use crate::builder::FILE_SCOPE;
use crate::facts::{
    BindTarget, CallKind, DefKind, ExprId, ImportKind, ROOT, SourceExpr, UNKNOWN, VarKind, Visibility, flag,
};
use crate::lang::query_based::{QueryDialect, QueryReader, QueryTag};
use crate::tree::{NodeChildren, TreeNode, line, one_line, span};

/// `classes` distinguishes C++ from C.
pub(super) struct CDialect {
    pub classes: bool,
}

impl QueryDialect for CDialect {
    fn visit<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>, tag: QueryTag) -> bool {
        match tag {
            QueryTag::Import => reader.include(node),
            QueryTag::Define(DefKind::Field) => reader.macro_or_enumerator(node),
            QueryTag::Define(DefKind::Type) if node.kind() == "type_definition" => reader.second_names(node),
            QueryTag::Define(DefKind::Function) => reader.declared_function(node, self.classes),
            QueryTag::Declaration => reader.declaration(node, self.classes),
            QueryTag::Each => reader.range_loop(node),
            QueryTag::Caught => reader.catch_clause(node),
            QueryTag::Lambda => reader.captured_lambda(node),
            QueryTag::Alias => reader.using(node),
            _ => return false,
        }
        true
    }

    fn value<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>) -> Option<ExprId> {
        match node.kind() {
            "field_expression" => Some(reader.member_of(node, "argument", "field")),
            "pointer_expression" => {
                let of = reader.children(node).field("argument");
                Some(of.map_or(UNKNOWN, |of| reader.value(of)))
            }
            _ => None,
        }
    }

    fn call<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> Option<ExprId> {
        match node.kind() {
            "call_expression" => Some(reader.function_call(node, kids)),
            "field_initializer" => Some(reader.field_initializer(node, kids)),
            "compound_literal_expression" => {
                let ty = kids.field("type").and_then(|ty| reader.ty(ty));
                Some(match (ty, kids.field("value")) {
                    (Some(ty), Some(value)) => reader.initialized(value, ty),
                    _ => UNKNOWN,
                })
            }
            _ => None,
        }
    }

    fn parameter<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>, place: u16) -> bool {
        match node.kind() {
            "parameter_declaration" | "optional_parameter_declaration" => reader.declared_parameter(node, None),
            "variadic_parameter_declaration" => reader.declared_parameter(node, Some(VarKind::Rest(place))),
            "variadic_parameter" => {
                let owner = reader.b.owner;
                reader.b.def(owner).flags |= flag::VARIADIC;
            }
            _ => return false,
        }
        true
    }

    fn calls_what_is_declared(&self) -> bool {
        true
    }

    fn usual_visibility(&self, outer: DefKind, given: Visibility, flags: &mut u32) -> Visibility {
        if outer.type_like() {
            return given;
        }
        // Outside of classes, `static` makes a name private to its file.
        let hidden = *flags & flag::STATIC != 0;
        *flags &= !flag::STATIC;
        if hidden { Visibility::Private } else { given }
    }

    fn is_constructor(&self, name: &str, outer: DefKind, name_of_outer: &str) -> bool {
        self.classes && outer.type_like() && name == name_of_outer
    }

    fn is_entry(&self, name: &str, outer: DefKind) -> bool {
        name == "main" && outer == DefKind::File
    }

    fn lists_construct(&self) -> bool {
        self.classes
    }
}

impl<'t> QueryReader<'t> {
    fn include(&mut self, node: TreeNode<'t>) {
        self.comments.clear();
        let Some(path) = self.children(node).field("path") else { return };
        let text = self.text(path);
        match text.strip_prefix('"') {
            Some(rest) => self.b.import(rest.trim_end_matches('"'), ImportKind::All, None, line(node)),
            None => self.b.import(text, ImportKind::Nothing, None, line(node)),
        };
    }

    fn macro_or_enumerator(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.text(n));
        match node.kind() {
            "preproc_function_def" => {
                let def = self.define(name, DefKind::Function, node, &kids);
                let params = kids.field("parameters").map_or("()", |p| self.text(p));
                self.b.def(def).signature = one_line(&format!("#define {name}{params}")).into();
                self.b.declare_def(FILE_SCOPE, def);
            }
            // A macro without a value only serves `#ifdef`.
            "preproc_def" if kids.field("value").is_some() && self.b.owner == ROOT => {
                self.variable(name, node, &kids, None, None, flag::CONSTANT);
            }
            "enumerator" => {
                let def = self.variable(name, node, &kids, None, None, flag::CONSTANT);
                self.b.def(def).visibility = Visibility::Public;
                self.declare_around_enum(name);
            }
            _ => {}
        }
    }

    /// Declares a name of an enumeration in the scope around it too.
    fn declare_around_enum(&mut self, name: &str) {
        let name = self.b.name(name);
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

    fn declared_parameter(&mut self, node: TreeNode<'t>, what: Option<VarKind>) {
        let parts = self.children(node);
        let ty = parts.field("type").and_then(|ty| self.ty(ty));
        let declared = parts.field("declarator").map(|d| self.declarator(d));
        let name = declared.as_ref().map_or("", |d| d.name);
        if name.is_empty() && parts.field("type").is_some_and(|ty| self.text(ty) == "void") {
            return;
        }
        let ty = if declared.is_some_and(|d| d.array) { self.list_of(ty) } else { ty };
        self.b.param(name, what, ty);
    }

    fn range_loop(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let element = self.element_of(kids.field("right"));
        let Some(target) = kids.field("declarator") else { return };
        let ty = kids.field("type").and_then(|ty| self.ty(ty));
        let declared = self.declarator(target);
        match declared.parts {
            Some(parts) => self.assign(parts, element),
            None => self.local(declared.name, ty, element),
        }
    }

    fn catch_clause(&mut self, node: TreeNode<'t>) {
        let Some(list) = self.children(node).field("parameters") else { return };
        if let Some(parameter) = self.first(list) {
            self.local_parameter(parameter);
        }
    }

    fn captured_lambda(&mut self, node: TreeNode<'t>) {
        let frame = self.open_scope(node.end_byte());
        frame.lambda = true;
        frame.returns = true;
        let declarator = self.children(node).field("declarator");
        let Some(list) = declarator.and_then(|d| self.children(d).field("parameters")) else { return };
        let inner = self.children(list);
        for parameter in inner.named() {
            self.local_parameter(parameter);
        }
    }

    /// A parameter of a lambda or of `catch`, which is a local of the function.
    fn local_parameter(&mut self, node: TreeNode<'t>) {
        let parts = self.children(node);
        let ty = parts.field("type").and_then(|ty| self.ty(ty));
        if let Some(declarator) = parts.field("declarator") {
            let declared = self.declarator(declarator);
            self.local(declared.name, ty, UNKNOWN);
        }
    }

    /// `using a::b`.
    fn using(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        if kids.has("namespace") {
            return;
        }
        if let Some(path) = kids.kind("qualified_identifier") {
            let name = self.last_name(path);
            let value = self.path(path);
            // A plain name would refer to itself.
            if matches!(self.b.facts.expr(value), SourceExpr::Member(..)) {
                self.local(name, None, value);
            }
        }
    }

    fn function_call(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> ExprId {
        let Some(function) = kids.field("function") else { return UNKNOWN };
        let arguments = kids.field("arguments");
        // `make_unique<T>(…)` creates a T, a cast returns one, `move` returns its argument.
        let named = match function.kind() {
            "qualified_identifier" => self.children(function).field("name"),
            _ => Some(function),
        };
        if let Some(named) = named.filter(|n| n.kind() == "template_function") {
            let parts = self.children(named);
            let name = parts.field("name").map_or("", |n| self.text(n));
            let held = matches!(name, "make_unique" | "make_shared" | "make_optional");
            if held || name.ends_with("_cast") {
                let list = parts.field("arguments");
                let ty = list.and_then(|list| self.first(list)).and_then(|ty| self.ty(ty));
                if !held {
                    return self.instance(ty);
                }
                let args = self.arguments(arguments);
                return self.b.call(ty.unwrap_or(UNKNOWN), CallKind::New, &args, span(node));
            }
        } else if matches!(self.text(function), "std::move" | "std::forward") {
            let moved = arguments.and_then(|list| self.first(list));
            return moved.map_or(UNKNOWN, |n| self.used(n));
        }
        // `int(x)` is a conversion.
        if function.kind() == "primitive_type" {
            return UNKNOWN;
        }
        let callee = self.callee(function);
        self.made_call(node, function, callee, arguments)
    }

    /// `: Base(x), field_(y)` before the body of a constructor.
    fn field_initializer(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> ExprId {
        let Some(name) = kids.named().next() else { return UNKNOWN };
        let arguments = kids.named().nth(1);
        let args = self.arguments(arguments);
        let text = self.last_name(name);
        if name.kind() != "field_identifier" || text.starts_with(|c: char| c.is_ascii_uppercase()) {
            let callee = if name.kind() == "field_identifier" { self.b.read(text) } else { self.path(name) };
            return self.b.call(callee, CallKind::Implicit, &args, span(node));
        }
        if let [one] = args.as_slice() {
            let this = self.b.expr(SourceExpr::This);
            let field = self.b.name(text);
            self.b.bind(BindTarget::Member(this, field), one.value);
        }
        UNKNOWN
    }
}
