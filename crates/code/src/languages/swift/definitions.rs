//! Definitions: types, extensions, functions, properties.

use super::Reader;
use super::types::is_type;
use crate::convert::to_place;
use crate::facts::{
    BaseKind, BindTarget, DefId, DefKind, ExprId, ImportKind, ROOT, SourceExpr, UNKNOWN, VarKind, Visibility, flag,
};
use crate::tree::{self, NodeChildren, TreeNode, line, one_line, span};

/// The combined modifiers and attributes of a definition.
#[derive(Default)]
struct Modifiers {
    visibility: Visibility,
    flags: u32,
    is_test: bool,
}

impl<'t> Reader<'t> {
    pub(super) fn import(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let Some(path) = kids.kind("identifier") else { return };
        let module = self.text(path).split('.').next().unwrap_or("");
        self.b.import(module, ImportKind::All, None, line(node));
    }

    // --- types ---

    pub(super) fn type_declaration(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let Some(name) = kids.field("name") else { return };
        let kind = match kids.field("declaration_kind").map_or("", |word| word.kind()) {
            "extension" => return self.extension(node, &kids, name),
            "struct" => DefKind::Struct,
            "enum" => DefKind::Enum,
            "protocol" => DefKind::Interface,
            _ => DefKind::Class,
        };
        let (def, modifiers) = self.define(self.text(name), kind, node, &kids);
        let scope = self.b.scope;
        self.b.declare_def(scope, def);
        let mut is_test = modifiers.is_test;
        for (at, base) in kids.named().filter(|kid| kid.kind() == "inheritance_specifier").enumerate() {
            let inner = self.children(base);
            let Some(of) = self.first_type(&inner) else { continue };
            is_test |= self.text(base).ends_with("XCTestCase");
            // Only the first type of a class may be its base class; by convention a base of a test is a test.
            let how = if at == 0 && matches!(kind, DefKind::Class | DefKind::Interface) {
                BaseKind::Extends
            } else {
                BaseKind::Implements
            };
            self.b.base(def, how, of, line(base));
        }
        is_test |= self.test_file && kind == DefKind::Class && self.text(name).ends_with("Tests");
        if is_test {
            self.b.def(def).flags |= flag::TEST;
        }
        let (extended, in_tests) = (self.extended.take(), std::mem::replace(&mut self.in_tests, is_test));
        let before = self.b.enter_def(def, false);
        self.type_parameters(&kids);
        if let Some(body) = kids.field("body") {
            self.block(body);
        }
        self.b.leave_def(before);
        (self.extended, self.in_tests) = (extended, in_tests);
    }

    fn extension(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>, name: TreeNode<'t>) {
        let Some(ty) = self.ty(name) else { return };
        // `extension Array<Int>`: the methods belong to the type without arguments.
        let ty = match self.b.facts.expr(ty) {
            SourceExpr::Generic(of, _) => of,
            _ => ty,
        };
        for base in kids.named().filter(|kid| kid.kind() == "inheritance_specifier") {
            let inner = self.children(base);
            if let Some(of) = self.first_type(&inner) {
                let name = self.b.name("impl");
                self.b.facts.impl_lines.push((self.b.facts.binds.next_id(), span(node).line));
                self.b.bind(BindTarget::Member(ty, name), of);
            }
        }
        let extended = self.extended.replace(ty);
        let before = self.b.open_scope();
        if let Some(body) = kids.field("body") {
            self.block(body);
        }
        self.b.close_scope(before);
        self.extended = extended;
    }

    pub(super) fn type_parameters(&mut self, kids: &NodeChildren<'t>) {
        let Some(list) = kids.kind("type_parameters") else { return };
        let list = self.children(list);
        for parameter in list.named().filter(|kid| kid.kind() == "type_parameter") {
            let parts = self.children(parameter);
            let Some(name) = parts.kind("type_identifier") else { continue };
            let bound = parts.kind("user_type").and_then(|ty| self.ty(ty));
            let name = self.b.name(self.text(name));
            self.b.declare(name, VarKind::TypeParam, bound);
        }
    }

    pub(super) fn alias(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let Some(name) = kids.field("name") else { return };
        let (def, _) = self.define(self.text(name), DefKind::Type, node, &kids);
        let scope = self.b.scope;
        self.b.declare_def(scope, def);
        let of = kids.named().rfind(|kid| is_type(kid.kind()) && *kid != name);
        let of = of.and_then(|of| self.ty(of));
        self.b.def(def).result = of;
    }

    /// `case a, b(Int)`.
    pub(super) fn enum_entry(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        for name in kids.fields("name").filter(|kid| kid.kind() == "simple_identifier") {
            let (def, _) = self.define(self.text(name), DefKind::Field, name, &kids);
            let owner = self.b.owner;
            let signature = one_line(&format!("case {}", self.text(name)));
            let d = self.b.def(def);
            d.flags |= flag::STATIC | flag::CONSTANT;
            d.signature = signature.into();
            // A case is an instance of its enum.
            let of = self.b.expr(SourceExpr::ThisType);
            let scope = self.b.scope;
            let var = self.b.declare_def(scope, def);
            if self.b.facts.def(owner).kind == DefKind::Enum {
                self.b.facts.vars[var].ty = Some(of);
            }
        }
    }

    // --- functions ---

    pub(super) fn function(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let name = match node.kind() {
            "init_declaration" => "init",
            "deinit_declaration" => "deinit",
            "subscript_declaration" => "subscript",
            _ => kids.field("name").map_or("", |name| self.text(name)),
        };
        if name.is_empty() {
            return;
        }
        let outer = self.b.facts.def(self.b.owner).kind;
        let is_method = outer.type_like() || self.extended.is_some();
        let kind = if is_method { DefKind::Method } else { DefKind::Function };
        let (def, modifiers) = self.define(name, kind, node, &kids);
        let mut flags = modifiers.flags;
        if node.kind() == "init_declaration" {
            flags |= flag::CONSTRUCTOR;
        }
        if outer == DefKind::Interface {
            flags |= flag::ABSTRACT;
        }
        if modifiers.is_test || (is_method && self.in_tests && name.starts_with("test")) {
            flags |= flag::TEST;
        }
        let body = kids.field("body").or_else(|| kids.kind("computed_property"));
        self.callable(def, flags, &kids, body, |reader, kids| {
            reader.parameters(kids);
            // The result follows the parameters; those of a function are nodes of their own.
            let result = kids.named().skip_while(|kid| kid.kind() != "parameter").find(|kid| is_type(kid.kind()));
            let result =
                result.or_else(|| kids.named().find(|kid| is_type(kid.kind()) && kid.kind() != "type_identifier"));
            result.and_then(|ty| reader.ty(ty))
        });
    }

    /// Reads a function in a scope of its own. `head` reads its parameters and returns its result.
    fn callable(
        &mut self,
        def: DefId,
        flags: u32,
        kids: &NodeChildren<'t>,
        body: Option<TreeNode<'t>>,
        head: impl FnOnce(&mut Self, &NodeChildren<'t>) -> Option<ExprId>,
    ) {
        let receiver = self.extended.take();
        let is_static = flags & flag::STATIC != 0;
        if receiver.is_none() {
            let scope = self.b.scope;
            self.b.declare_def(scope, def);
        }
        let d = self.b.def(def);
        d.flags |= flags;
        d.receiver = receiver;
        let before = self.b.enter_def(def, false);
        if receiver.is_some() && !is_static {
            self.b.def(def).flags |= flag::TAKES_SELF;
            self.b.param("self", None, None);
        }
        self.type_parameters(kids);
        let result = head(self, kids);
        self.b.def(def).result = result;
        if let Some(body) = body {
            self.body(body);
        }
        self.b.leave_def(before);
        self.extended = receiver;
    }

    fn parameters(&mut self, kids: &NodeChildren<'t>) {
        let mut last = None;
        for (field, kid) in kids.with_fields() {
            if kid.kind() == "parameter" {
                let parts = self.children(kid);
                // `at place: Place`: the second name is the variable inside of the function.
                let name = parts.named().rfind(|part| part.kind() == "simple_identifier");
                let ty = self.first_type(&parts);
                let place = to_place(self.b.facts.def(self.b.owner).params.len());
                let rest = self.text(kid).ends_with("...").then_some(VarKind::Rest(place));
                last = Some(self.b.param(name.map_or("", |name| self.text(name)), rest, ty));
            } else if field == Some("default_value")
                && let Some(var) = last
            {
                let value = self.used(kid);
                self.b.bind_default(var, value);
            }
        }
    }

    /// A body: its statements, or its only expression as the result.
    fn body(&mut self, body: TreeNode<'t>) {
        let kids = self.children(body);
        if let Some(statements) = kids.kind("statements") {
            let inner = self.children(statements);
            let mut all = inner.named();
            if let (Some(only), None) = (all.next(), all.next())
                && super::statements::is_expression(only.kind())
            {
                let value = self.used(only);
                self.b.returns(value, false);
                return;
            }
        }
        self.block(body);
    }

    // --- properties ---

    /// `let`, `var`: a field, a global, a local, or a function if it is computed.
    pub(super) fn property(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let outer = self.b.facts.def(self.b.owner).kind;
        let is_member = outer.type_like() || self.extended.is_some();
        let is_local = !is_member && self.b.owner != ROOT;
        let ty = self.annotated(&kids);
        let computed = kids.field("computed_value");
        let mut values = kids.fields("value");
        for pattern in kids.fields("name") {
            let Some(name) = self.children(pattern).field("bound_identifier") else {
                // `let (a, b) = pair`
                let value = values.next().map_or(UNKNOWN, |value| self.used(value));
                self.destructured(pattern, value);
                continue;
            };
            let name = self.text(name);
            if let Some(body) = computed.filter(|_| !is_local).or_else(|| kids.kind("protocol_property_requirements")) {
                let kind = if is_member { DefKind::Method } else { DefKind::Function };
                let (def, modifiers) = self.define(name, kind, node, &kids);
                let declared = if outer == DefKind::Interface { flag::ABSTRACT } else { 0 };
                self.callable(def, modifiers.flags | flag::GETTER | declared, &kids, Some(body), |_, _| ty);
                continue;
            }
            if is_local {
                let value = values.next().map_or(UNKNOWN, |value| self.used(value));
                self.local(name, ty, value);
                if let Some(body) = computed {
                    self.block(body);
                }
                continue;
            }
            let kind = if is_member { DefKind::Field } else { DefKind::Variable };
            let (def, modifiers) = self.define(name, kind, node, &kids);
            let constant = if kids.kind("value_binding_pattern").is_some_and(|word| self.text(word) == "let") {
                flag::CONSTANT
            } else {
                0
            };
            let d = self.b.def(def);
            d.flags |= modifiers.flags | constant;
            d.result = ty;
            let scope = self.b.scope;
            let var = self.b.declare_def(scope, def);
            self.b.facts.vars[var].ty = ty;
            if let Some(value) = values.next() {
                let value = self.used(value);
                self.b.bind(BindTarget::Var(var), value);
            }
            for observer in kids.named().filter(|kid| kid.kind() == "willset_didset_block") {
                self.block(observer);
            }
        }
    }

    pub(super) fn local(&mut self, name: &str, ty: Option<ExprId>, value: ExprId) {
        let name = self.b.name(name);
        let var = self.b.declare(name, VarKind::Local, ty);
        if value != UNKNOWN {
            self.b.bind(BindTarget::Var(var), value);
        }
    }

    /// Declares the names of a pattern: `(a, b)`, `.case(let x)`.
    pub(super) fn destructured(&mut self, pattern: TreeNode<'t>, value: ExprId) {
        let kids = self.children(pattern);
        let ty = self.first_type(&kids);
        let mut place = 0;
        for (field, kid) in kids.with_fields() {
            if field == Some("bound_identifier") {
                let value = if ty.is_some() { UNKNOWN } else { value };
                self.local(self.text(kid), ty, value);
            } else if kid.kind() == "pattern" {
                let part = match value {
                    UNKNOWN => UNKNOWN,
                    _ => self.b.expr(SourceExpr::AtIndex(value, place)),
                };
                place += 1;
                // `let e as Error`: the inner pattern has the name, the outer one the type.
                match (ty, self.children(kid).field("bound_identifier")) {
                    (Some(ty), Some(name)) => self.local(self.text(name), Some(ty), UNKNOWN),
                    _ => self.destructured(kid, part),
                }
            }
        }
    }

    // --- the common part ---

    fn define(&mut self, name: &str, kind: DefKind, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> (DefId, Modifiers) {
        let mut modifiers = self.modifiers(kids);
        let outer = self.b.facts.def(self.b.owner).kind;
        if outer.callable() {
            modifiers.visibility = Visibility::Private;
        }
        let doc = tree::doc_above(node, self.b.text, |text| text.starts_with("///") || text.starts_with("/**"));
        let signature = self.signature(node, kids);
        let def = self.b.add_def(name, kind, span(node));
        let d = self.b.def(def);
        d.doc = doc;
        d.signature = signature.into();
        d.visibility = modifiers.visibility;
        if matches!(modifiers.visibility, Visibility::Public | Visibility::Package) && !outer.callable() {
            d.flags |= flag::EXPORTED;
        }
        (def, modifiers)
    }

    fn modifiers(&mut self, kids: &NodeChildren<'t>) -> Modifiers {
        // Without a modifier, a name is visible in its module.
        let mut found = Modifiers { visibility: Visibility::Package, ..Modifiers::default() };
        let Some(list) = kids.kind("modifiers") else {
            if kids.has("async") {
                found.flags |= flag::ASYNC;
            }
            return found;
        };
        if kids.has("async") {
            found.flags |= flag::ASYNC;
        }
        let list = self.children(list);
        for kid in list.named() {
            let text = self.text(kid);
            match text {
                "public" | "open" => found.visibility = Visibility::Public,
                "private" | "fileprivate" => found.visibility = Visibility::Private,
                "static" | "class" => found.flags |= flag::STATIC,
                "final" => found.flags |= flag::FINAL,
                _ if kid.kind() == "attribute" => {
                    let name = text.trim_start_matches('@');
                    let name = name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(name);
                    match name {
                        "Test" | "Suite" => found.is_test = true,
                        "main" => found.flags |= flag::ENTRY,
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// The text from the first word that is not an attribute to the body, on one line.
    fn signature(&self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> String {
        let mut start = node.start_byte();
        if let Some(list) = kids.kind("modifiers") {
            let words = list.children();
            let first = words.named().find(|kid| kid.kind() != "attribute");
            let after = kids.all().find(|kid| kid.start_byte() >= list.end_byte());
            start = first.or(after).map_or(start, |word| word.start_byte());
        }
        let is_body = |kid: &TreeNode<'t>| {
            matches!(
                kid.kind(),
                "class_body" | "enum_class_body" | "protocol_body" | "function_body" | "computed_property"
            )
        };
        let end = kids.all().find(is_body).map_or(node.end_byte(), |body| body.start_byte());
        one_line(self.b.text.get(start..end.max(start)).unwrap_or("").trim_end())
    }
}
