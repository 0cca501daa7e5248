//! Definitions: packages, imports, types, functions, values.

use super::Reader;
use crate::convert::to_place;
use crate::facts::{
    BaseKind, BindTarget, CallKind, DefId, DefKind, ExprId, ImportKind, ROOT, SourceExpr, UNKNOWN, VarKind, Visibility,
    flag,
};
use crate::tree::{self, NodeChildren, TreeNode, line, one_line, span};

impl<'t> Reader<'t> {
    // --- packages and imports ---

    pub(super) fn package(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        if let Some(name) = kids.field("name") {
            let name: String = self.text(name).split_whitespace().collect();
            let before = &self.b.facts.package;
            // `package a` and then `package b` are `a.b`.
            let whole = if before.is_empty() { name } else { format!("{before}.{name}") };
            self.b.facts.package = whole.into();
        }
        if let Some(body) = kids.field("body") {
            self.block(body);
        }
    }

    /// `import a.b.C`, `a.b._`, `a.b.{C => D, _}`.
    pub(super) fn import(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let at = line(node);
        let mut path: Vec<&'t str> = Vec::new();
        let mut selected = false;
        for (field, kid) in kids.with_fields() {
            match (field, kid.kind()) {
                (Some("path"), "identifier" | "operator_identifier") => path.push(self.text(kid)),
                (_, "namespace_wildcard") => {
                    selected = true;
                    self.b.import(&path.join("."), ImportKind::All, None, at);
                }
                (_, "as_renamed_identifier" | "arrow_renamed_identifier") => {
                    selected = true;
                    self.selected(&path, kid, at);
                }
                (_, "namespace_selectors") => {
                    selected = true;
                    let inner = self.children(kid);
                    for one in inner.named() {
                        match one.kind() {
                            "namespace_wildcard" => _ = self.b.import(&path.join("."), ImportKind::All, None, at),
                            _ => self.selected(&path, one, at),
                        }
                    }
                }
                // `import a.b, c.d`
                (None, ",") => {
                    self.imported_name(&std::mem::take(&mut path), selected, at);
                    selected = false;
                }
                _ => {}
            }
        }
        self.imported_name(&path, selected, at);
    }

    fn imported_name(&mut self, path: &[&'t str], selected: bool, at: u32) {
        if let ([_, .., last], false) = (path, selected) {
            self.b.import(&path.join("."), ImportKind::Module, Some(last), at);
        }
    }

    fn selected(&mut self, path: &[&'t str], node: TreeNode<'t>, at: u32) {
        let kids = self.children(node);
        let name = kids.field("name").map_or_else(|| self.text(node), |name| self.text(name));
        let called = kids.field("alias").map_or(name, |alias| self.text(alias));
        if called != "_" {
            let whole = format!("{}.{name}", path.join("."));
            self.b.import(&whole, ImportKind::Module, Some(called), at);
        }
    }

    // --- types ---

    pub(super) fn type_declaration(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let name = kids.field("name").map_or("package", |name| self.text(name));
        let is_object = matches!(node.kind(), "object_definition" | "package_object");
        let kind = match node.kind() {
            "trait_definition" => DefKind::Interface,
            "enum_definition" => DefKind::Enum,
            _ => DefKind::Class,
        };
        let scope = self.b.scope;
        let known = self.b.name(name);
        let companion = is_object.then(|| self.b.declared_in(scope, known)).flatten();
        let companion = companion.and_then(|var| match self.b.facts.vars[var].what {
            VarKind::Def(def) if self.b.facts.def(def).kind.type_like() => Some(def),
            _ => None,
        });
        let def = match companion {
            Some(def) => def,
            None => {
                let def = self.define(name, kind, node, &kids);
                self.b.declare_def(scope, def);
                def
            }
        };
        let (is_static, in_tests) = (self.is_static, self.in_tests);
        let bases = self.bases(def, kind, &kids);
        let is_test = self.test_file && !is_object && bases.iter().any(|base| is_test_base(base));
        if is_test {
            self.b.def(def).flags |= flag::TEST;
        }
        (self.is_static, self.in_tests) = (is_object, is_test);
        let before = self.b.enter_def(def, false);
        let members = std::mem::replace(&mut self.members, self.b.scope);
        self.type_parameters(&kids);
        for list in kids.fields("class_parameters") {
            let inner = self.children(list);
            for parameter in inner.named().filter(|kid| kid.kind() == "class_parameter") {
                self.field(parameter);
            }
        }
        if let Some(extends) = kids.field("extend") {
            let inner = self.children(extends);
            for list in inner.fields("arguments") {
                let args = self.arguments(list, UNKNOWN);
                let callee = self.b.expr(SourceExpr::Super);
                self.b.call(callee, CallKind::Plain, &args, span(list));
            }
        }
        if let Some(body) = kids.field("body") {
            self.block(body);
        }
        self.b.leave_def(before);
        self.members = members;
        (self.is_static, self.in_tests) = (is_static, in_tests);
    }

    /// Reads the bases of a type; returns their last names.
    pub(super) fn bases(&mut self, def: DefId, kind: DefKind, kids: &NodeChildren<'t>) -> Vec<&'t str> {
        let mut names = Vec::new();
        let Some(extends) = kids.field("extend") else { return names };
        let inner = self.children(extends);
        for base in inner.named().filter(|kid| is_type(kid.kind())) {
            let text = self.text(base);
            names.push(text.split(['[', '(']).next().unwrap_or(text).rsplit('.').next().unwrap_or(text).trim());
            // Whether the first is a class or a trait is not written.
            let how =
                if names.len() == 1 || kind == DefKind::Interface { BaseKind::Extends } else { BaseKind::Implements };
            if let Some(of) = self.ty(base) {
                self.b.base(def, how, of, line(base));
            }
        }
        names
    }

    /// A parameter of a class is a field of it.
    fn field(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let Some(name) = kids.field("name") else { return };
        let def = self.define(self.text(name), DefKind::Field, node, &kids);
        let ty = kids.field("type").and_then(|ty| self.ty(ty));
        self.b.def(def).result = ty;
        let scope = self.b.scope;
        let var = self.b.declare_def(scope, def);
        self.b.facts.vars[var].ty = ty;
        if let Some(value) = kids.field("default_value") {
            self.used(value);
        }
    }

    pub(super) fn type_parameters(&mut self, kids: &NodeChildren<'t>) {
        let Some(list) = kids.kind("type_parameters") else { return };
        let list = self.children(list);
        for name in list.fields("name") {
            let name = self.b.name(self.text(name));
            self.b.declare(name, VarKind::TypeParam, None);
        }
    }

    pub(super) fn alias(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let Some(name) = kids.field("name") else { return };
        let def = self.define(self.text(name), DefKind::Type, node, &kids);
        let scope = self.b.scope;
        self.b.declare_def(scope, def);
        let of = kids.field("type").and_then(|ty| self.ty(ty));
        self.b.def(def).result = of;
    }

    pub(super) fn enum_case(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let Some(name) = kids.field("name") else { return };
        let is_class = node.kind() == "full_enum_case";
        let def = self.define(self.text(name), if is_class { DefKind::Class } else { DefKind::Field }, node, &kids);
        self.b.def(def).flags |= flag::STATIC | flag::CONSTANT;
        let scope = self.b.scope;
        let var = self.b.declare_def(scope, def);
        if !is_class {
            let of = self.b.expr(SourceExpr::ThisType);
            self.b.facts.vars[var].ty = Some(of);
        }
    }

    // --- functions and values ---

    /// `extension (s: Shop) def …`: functions whose first parameter is written before them.
    pub(super) fn extension(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let parameter = kids.fields("parameters").next();
        let ty = parameter.and_then(|list| self.children(list).kind("parameter"));
        let ty = ty.and_then(|parameter| self.children(parameter).field("type")).and_then(|ty| self.ty(ty));
        for body in kids.fields("body") {
            let parts = self.children(body);
            let all: Vec<TreeNode<'t>> = match body.kind() {
                "function_definition" | "function_declaration" => vec![body],
                _ => parts.named().collect(),
            };
            for function in all {
                self.function(function, ty, parameter);
            }
        }
    }

    pub(super) fn function(&mut self, node: TreeNode<'t>, receiver: Option<ExprId>, before_it: Option<TreeNode<'t>>) {
        let kids = self.children(node);
        let Some(name) = kids.field("name") else { return };
        let name = self.text(name);
        let outer = self.b.facts.def(self.b.owner).kind;
        let is_method = outer.type_like() || receiver.is_some();
        let kind = if is_method { DefKind::Method } else { DefKind::Function };
        let def = self.define(name, kind, node, &kids);
        let mut flags = 0;
        if self.is_static && is_method && receiver.is_none() {
            flags |= flag::STATIC;
        }
        if kids.field("body").is_none() && is_method {
            flags |= flag::ABSTRACT;
        }
        if name == "this" {
            flags |= flag::CONSTRUCTOR;
        }
        if name == "main" && self.is_static {
            flags |= flag::ENTRY;
        }
        // Without a parameter list, reading the name calls it.
        if kids.field("parameters").is_none() && is_method {
            flags |= flag::GETTER;
        }
        if self.in_tests && name.starts_with("test") {
            flags |= flag::TEST;
        }
        if receiver.is_none() {
            let scope = self.b.scope;
            self.b.declare_def(scope, def);
        } else {
            flags |= flag::TAKES_SELF;
        }
        let d = self.b.def(def);
        d.flags |= flags;
        d.receiver = receiver;
        let is_static = std::mem::replace(&mut self.is_static, false);
        let before = self.b.enter_def(def, false);
        self.type_parameters(&kids);
        for list in before_it.into_iter().chain(kids.fields("parameters")) {
            self.parameters(list);
        }
        let result = kids.field("return_type").and_then(|ty| self.ty(ty));
        self.b.def(def).result = result;
        if let Some(body) = kids.field("body") {
            let value = self.body(body);
            self.b.returns(value, false);
        }
        self.b.leave_def(before);
        self.is_static = is_static;
    }

    fn parameters(&mut self, list: TreeNode<'t>) {
        let inner = self.children(list);
        for parameter in inner.named().filter(|kid| kid.kind() == "parameter") {
            let parts = self.children(parameter);
            let Some(name) = parts.field("name") else { continue };
            let ty = parts.field("type").and_then(|ty| self.ty(ty));
            let place = to_place(self.b.facts.def(self.b.owner).params.len());
            let rest = self.text(parameter).ends_with('*').then_some(VarKind::Rest(place));
            let var = self.b.param(self.text(name), rest, ty);
            if let Some(value) = parts.field("default_value") {
                let value = self.used(value);
                self.b.bind_default(var, value);
            }
        }
    }

    /// `val`, `var`, `given`: a field, a variable of the file, or a local.
    pub(super) fn value_definition(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let owner = self.b.facts.def(self.b.owner).kind;
        let ty = kids.field("type").or_else(|| kids.field("return_type")).and_then(|ty| self.ty(ty));
        let pattern = kids.field("pattern").or_else(|| kids.field("name"));
        let value_node = kids.field("value").or_else(|| kids.field("body"));
        let value = |reader: &mut Self| value_node.map_or(UNKNOWN, |value| reader.used(value));
        let Some(pattern) = pattern else {
            value(self);
            return;
        };
        if owner.callable() || self.b.scope != self.members || pattern.kind() != "identifier" {
            let value = value(self);
            match pattern.kind() {
                "identifier" => self.local(self.text(pattern), ty, value),
                _ => self.pattern(pattern, value),
            }
            return;
        }
        let kind = if self.b.owner == ROOT { DefKind::Variable } else { DefKind::Field };
        let def = self.define(self.text(pattern), kind, node, &kids);
        let mut flags = if kids.has("val") { flag::CONSTANT } else { 0 };
        if self.is_static {
            flags |= flag::STATIC;
        }
        let d = self.b.def(def);
        d.flags |= flags;
        d.result = ty;
        let scope = self.b.scope;
        let var = self.b.declare_def(scope, def);
        self.b.facts.vars[var].ty = ty;
        let value = value(self);
        self.b.bind(BindTarget::Var(var), value);
    }

    pub(super) fn local(&mut self, name: &str, ty: Option<ExprId>, value: ExprId) {
        let name = self.b.name(name);
        let var = self.b.declare(name, VarKind::Local, ty);
        if value != UNKNOWN {
            self.b.bind(BindTarget::Var(var), value);
        }
    }

    // --- the common part ---

    pub(super) fn define(&mut self, name: &str, kind: DefKind, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> DefId {
        let outer = self.b.facts.def(self.b.owner).kind;
        let modifiers = kids.kind("modifiers").map_or("", |list| self.text(list));
        let mut visibility = Visibility::Public;
        let mut flags = 0;
        for word in modifiers.split(|c: char| c.is_whitespace() || c == '[') {
            match word {
                "private" => visibility = Visibility::Private,
                "protected" => visibility = Visibility::Protected,
                "abstract" => flags |= flag::ABSTRACT,
                "final" => flags |= flag::FINAL,
                _ => {}
            }
        }
        if outer.callable() {
            visibility = Visibility::Private;
        }
        if visibility == Visibility::Public && !outer.callable() {
            flags |= flag::EXPORTED;
        }
        let doc = tree::doc_above(node, self.b.text, |text| text.starts_with("/**"));
        let signature = self.signature(node, kids);
        let def = self.b.add_def(name, kind, span(node));
        let d = self.b.def(def);
        d.doc = doc;
        d.signature = signature.into();
        d.visibility = visibility;
        d.flags |= flags;
        def
    }

    /// The text up to the body, on one line, without annotations.
    fn signature(&self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> String {
        let first = kids.all().find(|kid| kid.kind() != "annotation");
        let start = first.map_or(node.start_byte(), |first| first.start_byte());
        let end = kids.field("body").map_or(node.end_byte(), |body| body.start_byte());
        let text = self.b.text.get(start..end.max(start)).unwrap_or("");
        one_line(text.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '=' | '{' | ':')))
    }
}

/// Classes by which munit, ScalaTest, specs2 and others find tests.
fn is_test_base(name: &str) -> bool {
    ["Suite", "Spec", "SpecLike", "Specification", "Test", "Tests"].iter().any(|end| name.ends_with(end))
        || matches!(name, "Properties" | "TestSuite")
}

pub(super) fn is_type(kind: &str) -> bool {
    matches!(
        kind,
        "type_identifier"
            | "stable_type_identifier"
            | "generic_type"
            | "compound_type"
            | "applied_constructor_type"
            | "function_type"
            | "tuple_type"
            | "lazy_parameter_type"
            | "repeated_parameter_type"
            | "infix_type"
            | "annotated_type"
            | "projected_type"
            | "singleton_type"
    )
}
