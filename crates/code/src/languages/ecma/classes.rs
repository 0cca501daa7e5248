//! Classes, interfaces, enums, type aliases and namespaces with their members.

use super::{Around, Reader, Site};
use crate::builder::ScopeId;
use crate::convert::to_u32;
use crate::facts::{
    Arg, ArgKind, BaseKind, BindTarget, CallKind, DefId, DefKind, ExprId, SourceExpr, UNKNOWN, VarKind, Visibility,
    flag,
};
use crate::tree::{NodeChildren, TreeNode, line, span};

impl<'t> Reader<'t> {
    pub(super) fn class(&mut self, node: TreeNode<'t>, mut site: Site<'t>, outer: &[TreeNode<'t>]) -> DefId {
        let kids = self.children(node);
        let own = kids.field("name").map_or("", |n| self.text(n));
        let name = match (site.name, own) {
            ("", "") => "<anonymous>",
            ("", own) => own,
            (name, _) => name,
        };
        let def = self.b.add_def(name, DefKind::Class, site.span);
        let decorators: Vec<TreeNode<'t>> = outer.iter().copied().chain(kids.fields("decorator")).collect();
        if let Some(last) = decorators.last() {
            site.head = site.head.max(to_u32(last.end_byte()));
        }
        let abstract_class = if kids.has("abstract") { flag::ABSTRACT } else { 0 };
        self.describe(def, site, abstract_class, &kids, node);
        self.decorate(def, &decorators);
        // The name of a class expression is visible only inside of it.
        let outside = self.b.open_scope();
        if node.kind() == "class" && !own.is_empty() {
            let own = self.b.name(own);
            self.b.declare(own, VarKind::Def(def), None);
        }
        self.with_members(def, |reader| {
            reader.type_parameters(kids.field("type_parameters"));
            if let Some(heritage) = kids.kind("class_heritage") {
                reader.heritage(def, heritage);
            }
            if let Some(body) = kids.field("body") {
                reader.members(body, 0);
            }
        });
        self.b.close_scope(outside);
        def
    }

    fn describe(&mut self, def: DefId, site: Site<'t>, flags: u32, kids: &NodeChildren<'t>, node: TreeNode<'t>) {
        let end = kids.field("body").map_or(node.end_byte(), |body| body.start_byte());
        let signature = self.signature(site.head, end);
        let doc = self.doc_above(site.span.start as usize);
        let all = flags | site.flags | self.flags;
        let d = self.b.def(def);
        d.signature = signature.into();
        d.doc = doc;
        d.flags |= all;
        d.visibility = site.visibility;
    }

    /// Records calls of decorators, innermost first. The name still refers to the decorated definition.
    pub(super) fn decorate(&mut self, def: DefId, decorators: &[TreeNode<'t>]) {
        for decorator in decorators.iter().rev() {
            let inner = self.children(*decorator);
            let Some(called) = inner.named().next() else { continue };
            let callee = self.used(called);
            let value = self.b.expr(SourceExpr::Def(def));
            let arg = Arg { how: ArgKind::Place, value };
            let call = self.b.call(callee, CallKind::Decorator, &[arg], span(*decorator));
            self.b.def(def).decorators.push(call);
        }
    }

    /// Reads the body of a type. Its members have a separate scope, because bare names never refer to them.
    fn with_members(&mut self, def: DefId, read: impl FnOnce(&mut Self)) {
        let before = self.b.enter_def(def, false);
        let inside = self.b.scope;
        self.b.enter_def(def, true);
        let around = self.members.replace((def, self.b.scope));
        self.b.scope = inside;
        read(self);
        self.members = around;
        self.b.leave_def(before);
    }

    fn heritage(&mut self, def: DefId, node: TreeNode<'t>) {
        let kids = self.children(node);
        for kid in kids.named() {
            match kid.kind() {
                "extends_clause" => {
                    let inner = self.children(kid);
                    let mut base = UNKNOWN;
                    for (field, part) in inner.with_fields() {
                        match field {
                            Some("value") => {
                                base = self.base_value(def, part);
                                self.b.base(def, BaseKind::Extends, base, line(part));
                            }
                            Some("type_arguments") => {
                                let args = self.types(part);
                                let of = self.b.generic(base, &args);
                                if let Some(last) = self.b.def(def).bases.last_mut() {
                                    last.of = of;
                                }
                            }
                            _ => {}
                        }
                    }
                }
                "implements_clause" => {
                    let inner = self.children(kid);
                    for part in inner.named() {
                        let of = self.ty(part);
                        self.b.base(def, BaseKind::Implements, of, line(part));
                    }
                }
                // In JavaScript, the expression is a direct child.
                _ => {
                    let of = self.base_value(def, kid);
                    self.b.base(def, BaseKind::Extends, of, line(kid));
                }
            }
        }
    }

    /// The base of a class is evaluated in the scope around the class.
    fn base_value(&mut self, def: DefId, node: TreeNode<'t>) -> ExprId {
        let outer = self.b.facts.def(def).parent;
        let owner = std::mem::replace(&mut self.b.owner, outer);
        let value = self.value(node);
        self.b.owner = owner;
        value
    }

    /// The members of a class body, an interface or an object type.
    fn members(&mut self, body: TreeNode<'t>, flags: u32) {
        let mut decorators: Vec<TreeNode<'t>> = Vec::new();
        for kid in self.read_through(body) {
            match kid.kind() {
                "decorator" => {
                    decorators.push(kid);
                    continue;
                }
                "method_definition" => self.method(kid, flags, &decorators),
                "method_signature" => self.method(kid, flags | flag::DECLARED, &decorators),
                "abstract_method_signature" => {
                    self.method(kid, flags | flag::DECLARED | flag::ABSTRACT, &decorators);
                }
                "field_definition" | "public_field_definition" | "property_signature" => {
                    self.field(kid, flags, &decorators);
                }
                "class_static_block" => {
                    let inner = self.children(kid);
                    if let Some(body) = inner.field("body") {
                        self.nested(body);
                    }
                }
                // An interface with a call signature is a function with that result.
                "call_signature" => {
                    let result = self.function_type(kid);
                    let owner = self.b.owner;
                    self.b.def(owner).result.get_or_insert(result);
                }
                "construct_signature" | "index_signature" => {
                    self.ty(kid);
                }
                "ERROR" => self.deeper((), |reader| reader.members(kid, flags)),
                _ => self.nested(kid),
            }
            decorators.clear();
        }
    }

    /// Name, span and modifiers of a member.
    fn member_site(
        &mut self,
        node: TreeNode<'t>,
        kids: &NodeChildren<'t>,
        flags: u32,
        before: &[TreeNode<'t>],
    ) -> Site<'t> {
        let named = kids.field("name").or_else(|| kids.field("property"));
        let name = match named {
            Some(named) => self.property_name(named).unwrap_or_else(|| self.text(named)),
            None => "",
        };
        let mut site = Site::new(name, DefKind::Method, flags, node);
        if let Some(first) = before.first() {
            let from = span(*first);
            (site.span.start, site.span.line, site.span.column) = (from.start, from.line, from.column);
        }
        if let Some(last) = kids.fields("decorator").last() {
            site.head = to_u32(last.end_byte());
        }
        if name.starts_with('#') {
            site.visibility = Visibility::Private;
        } else if let Some(modifier) = kids.kind("accessibility_modifier") {
            site.visibility = self.visibility(modifier);
        }
        site
    }

    fn method(&mut self, node: TreeNode<'t>, flags: u32, before: &[TreeNode<'t>]) {
        let Some((_, members)) = self.members else { return };
        let kids = self.children(node);
        let mut site = self.member_site(node, &kids, flags, before);
        if site.name == "constructor" && !kids.has("static") {
            site.flags |= flag::CONSTRUCTOR;
        }
        let def = self.deeper(None, |reader| Some(reader.function(node, site)));
        let Some(def) = def else { return };
        let decorators: Vec<TreeNode<'t>> = before.iter().copied().chain(kids.fields("decorator")).collect();
        self.decorate(def, &decorators);
        self.b.declare_def(members, def);
    }

    fn field(&mut self, node: TreeNode<'t>, flags: u32, before: &[TreeNode<'t>]) {
        let Some((_, members)) = self.members else { return };
        let kids = self.children(node);
        let mut site = self.member_site(node, &kids, flags & flag::DECLARED, before);
        let of_class = kids.has("static");
        if of_class {
            site.flags |= flag::STATIC;
        }
        if kids.has("abstract") {
            site.flags |= flag::ABSTRACT;
        }
        let ty = kids.field("type").map(|ty| self.ty(ty)).filter(|ty| *ty != UNKNOWN);
        let value = kids.field("value");
        let read = value.map_or(UNKNOWN, |v| self.known(v, site));
        let name = self.b.name(site.name);
        let (def, var) = match self.b.facts.expr(read) {
            SourceExpr::Def(def) if self.b.facts.def(def).name == name => (def, self.b.declare_def(members, def)),
            _ => {
                if kids.has("readonly") {
                    site.flags |= flag::CONSTANT;
                }
                site.flags |= self.flags;
                let def = self.variable_symbol(site, value);
                self.b.def(def).result = ty;
                let var = self.b.variable_in(members, name);
                if of_class {
                    self.b.bind(BindTarget::Var(var), read);
                } else if read != UNKNOWN {
                    let this = self.b.expr(SourceExpr::This);
                    self.b.bind(BindTarget::Member(this, name), read);
                }
                (def, var)
            }
        };
        if ty.is_some() {
            self.b.facts.vars[var].ty = ty;
        }
        let decorators: Vec<TreeNode<'t>> = before.iter().copied().chain(kids.fields("decorator")).collect();
        self.decorate(def, &decorators);
    }

    // --- TypeScript only ---

    pub(super) fn type_declaration(&mut self, node: TreeNode<'t>, around: &Around<'t>) -> DefId {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.text(n));
        let kind = match node.kind() {
            "interface_declaration" => DefKind::Interface,
            "enum_declaration" => DefKind::Enum,
            _ => DefKind::Type,
        };
        let site = Site::new(name, kind, around.flags, around.whole);
        let def = self.b.add_def(name, kind, site.span);
        self.describe(def, site, 0, &kids, node);
        self.with_members(def, |reader| {
            reader.type_parameters(kids.field("type_parameters"));
            if let Some(clause) = kids.kind("extends_type_clause") {
                let inner = reader.children(clause);
                for part in inner.named() {
                    let of = reader.ty(part);
                    reader.b.base(def, BaseKind::Extends, of, line(part));
                }
            }
            match kind {
                DefKind::Interface => {
                    if let Some(body) = kids.field("body") {
                        reader.members(body, flag::ABSTRACT | flag::DECLARED);
                    }
                }
                DefKind::Enum => {
                    if let (Some(body), Some((_, members))) = (kids.field("body"), reader.members) {
                        reader.enum_members(body, members);
                    }
                }
                _ => {
                    if let Some(value) = kids.field("value") {
                        let mut parts = Vec::new();
                        reader.alias_parts(value, &mut parts);
                        let result = reader.b.either(&parts);
                        reader.b.def(def).result = (result != UNKNOWN).then_some(result);
                    }
                }
            }
        });
        def
    }

    /// `type A = B & { c: D }`: the members of the object type become members of the alias; the other parts are its
    /// target.
    fn alias_parts(&mut self, node: TreeNode<'t>, parts: &mut Vec<ExprId>) {
        match node.kind() {
            "object_type" => self.deeper((), |reader| reader.members(node, flag::ABSTRACT | flag::DECLARED)),
            "intersection_type" | "parenthesized_type" => self.deeper((), |reader| {
                let kids = reader.children(node);
                for kid in kids.named() {
                    reader.alias_parts(kid, parts);
                }
            }),
            _ => parts.push(self.ty(node)),
        }
    }

    fn enum_members(&mut self, body: TreeNode<'t>, members: ScopeId) {
        let kids = self.children(body);
        for kid in kids.named() {
            let inner = self.children(kid);
            let (named, value) = match kid.kind() {
                "enum_assignment" => (inner.field("name"), inner.field("value")),
                _ => (Some(kid), None),
            };
            let Some(name) = named.and_then(|n| self.property_name(n)) else { continue };
            let read = value.map_or(UNKNOWN, |v| self.used(v));
            let mut site = Site::new(name, DefKind::Method, flag::CONSTANT | flag::STATIC | self.flags, kid);
            site.visibility = Visibility::Public;
            self.variable_symbol(site, value);
            let name = self.b.name(name);
            let var = self.b.variable_in(members, name);
            self.b.bind(BindTarget::Var(var), read);
        }
    }

    /// `namespace A.B { … }`, `declare module "x" { … }`.
    pub(super) fn namespace(&mut self, node: TreeNode<'t>, around: &Around<'t>) {
        let kids = self.children(node);
        let Some(named) = kids.field("name") else { return };
        let foreign = named.kind() == "string";
        let text = if foreign { self.inner_text(named) } else { self.text(named) };
        let mut before = None;
        for part in text.split(|c| c == '.' && !foreign).map(str::trim) {
            let site = Site::new(part, DefKind::Module, around.flags, around.whole);
            let def = self.b.add_def(part, DefKind::Module, site.span);
            self.describe(def, site, 0, &kids, node);
            if !foreign {
                let scope = self.b.scope;
                self.b.declare_def(scope, def);
                self.give(def, around);
            }
            let outside = self.b.enter_def(def, false);
            before.get_or_insert(outside);
        }
        if let Some(body) = kids.field("body") {
            self.with_flags(around.flags & flag::DECLARED, |reader| reader.block(body));
        }
        if let Some(before) = before {
            self.b.leave_def(before);
        }
    }
}
