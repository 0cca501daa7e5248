//! Items: functions, types, traits, impls, constants, modules, macros.

use super::attributes::{AttributeEffects, PrecedingAttributes};
use super::{Place, Reader};
use crate::convert::to_place;
use crate::facts::{
    BaseKind, BindTarget, DefId, DefKind, ExprId, ImportKind, ROOT, SourceExpr, SourceSpan, UNKNOWN, VarKind,
    Visibility, flag,
};
use crate::tree::{NodeChildren, TreeNode, line, one_line, span};

/// Longest value of a constant that its signature shows.
const VALUE_BYTES: usize = 80;

/// The part of an item that becomes its signature.
#[derive(Clone, Copy)]
enum Signature {
    /// The text before the body.
    Head,
    Whole,
    /// The whole text, unless the value is long.
    Value,
}

impl<'t> Reader<'t> {
    /// Reads an item; `false` if the node is not an item.
    pub(super) fn item(&mut self, node: TreeNode<'t>, above: &PrecedingAttributes<'t>, place: Place) -> bool {
        match node.kind() {
            "function_item" | "function_signature_item" => self.function(node, above, place),
            "struct_item" | "union_item" => self.structure(node, above),
            "enum_item" => self.enumeration(node, above),
            "trait_item" => self.interface(node, above),
            "impl_item" => self.implementation(node),
            "type_item" | "associated_type" => self.alias(node, above, place),
            "const_item" | "static_item" => self.constant(node, above, place),
            "mod_item" => self.module(node, above),
            "use_declaration" => self.use_declaration(node),
            "extern_crate_declaration" => {
                let kids = self.children(node);
                if let Some(name) = kids.field("name") {
                    let module = self.word(name);
                    let called = kids.field("alias").map_or(module, |a| self.word(a));
                    let public = kids.kind("visibility_modifier").is_some();
                    self.import(module, ImportKind::Module, called, line(node), public);
                }
            }
            "macro_definition" => self.macro_rules(node, above),
            "foreign_mod_item" | "declaration_list" => {
                let foreign = node.kind() == "foreign_mod_item";
                let kids = self.children(node);
                let body = if foreign { kids.field("body") } else { Some(node) };
                if let Some(body) = body {
                    let kids = self.children(body);
                    self.statements(&kids, if foreign { Place::Foreign } else { place });
                }
            }
            _ => return false,
        }
        true
    }

    /// Defines an item: the common part of all kinds.
    fn define(
        &mut self,
        node: TreeNode<'t>,
        kids: &NodeChildren<'t>,
        name: &str,
        kind: DefKind,
        above: &PrecedingAttributes<'t>,
        signature: Signature,
    ) -> (DefId, AttributeEffects) {
        let mut whole = span(node);
        if let Some(first) = above.attributes.first() {
            let first = span(*first);
            whole = SourceSpan { start: first.start, line: first.line, column: first.column, ..whole };
        }
        let def = self.b.add_def(name, kind, whole);
        let signature = self.signature(node, kids, signature);
        let visibility = self.visibility(kids);
        let doc = above.doc();
        let d = self.b.def(def);
        d.signature = signature.into();
        d.doc = doc;
        d.visibility = visibility;
        if visibility == Visibility::Public {
            d.flags |= flag::EXPORTED;
        }
        let marks = self.attributes(def, above);
        if marks.only_in_tests {
            let helper = if marks.test { 0 } else { flag::ONLY_IN_TESTS };
            self.b.def(def).flags |= flag::TEST | helper;
        }
        (def, marks)
    }

    fn visibility(&self, kids: &NodeChildren<'t>) -> Visibility {
        match kids.kind("visibility_modifier").map(|v| self.text(v)) {
            None => Visibility::Private,
            Some("pub") => Visibility::Public,
            Some(limited) if limited.contains("self") => Visibility::Private,
            Some(_) => Visibility::Package,
        }
    }

    /// Sets the visibility of trait items, variants and trait implementations to that of their owner.
    fn seen_as(&mut self, def: DefId, owner: DefId) {
        let owner = self.b.facts.def(owner);
        let (visibility, exported) = (owner.visibility, owner.flags & flag::EXPORTED);
        let d = self.b.def(def);
        d.visibility = visibility;
        d.flags = d.flags & !flag::EXPORTED | exported;
    }

    fn signature(&self, node: TreeNode<'t>, kids: &NodeChildren<'t>, signature: Signature) -> String {
        let end = match signature {
            Signature::Head => kids.field("body").map_or(node.end_byte(), |body| body.start_byte()),
            Signature::Whole => node.end_byte(),
            Signature::Value => match kids.field("value") {
                Some(value) if value.end_byte() - value.start_byte() > VALUE_BYTES => value.start_byte(),
                _ => node.end_byte(),
            },
        };
        let text = self.b.text.get(node.start_byte()..end).unwrap_or("");
        let text = if text.contains("//") && !text.contains('"') {
            let lines: Vec<&str> = text.lines().map(|l| l.split("//").next().unwrap_or(l)).collect();
            one_line(&lines.join("\n"))
        } else {
            one_line(text)
        };
        let text = text.trim_end_matches([' ', ';', '=']);
        text.replace("( ", "(").replace(", )", ")")
    }

    // --- functions ---

    fn function(&mut self, node: TreeNode<'t>, above: &PrecedingAttributes<'t>, place: Place) {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.word(n));
        let body = kids.field("body");
        let kind = match place {
            Place::Trait(_) | Place::Impl { .. } => DefKind::Method,
            Place::Free | Place::Foreign => DefKind::Function,
        };
        let (def, marks) = self.define(node, &kids, name, kind, above, Signature::Head);
        let mut flags = 0;
        if let Some(modifiers) = kids.kind("function_modifiers") {
            let inner = self.children(modifiers);
            if inner.has("async") {
                flags |= flag::ASYNC;
            }
        }
        if marks.test {
            flags |= flag::TEST;
        }
        if name == "main" && self.program && self.b.owner == ROOT && kind == DefKind::Function {
            flags |= flag::ENTRY;
        }
        let parameters = kids.field("parameters");
        let takes_self = kind == DefKind::Method && parameters.is_some_and(|p| self.takes_self(p));
        if takes_self {
            flags |= flag::TAKES_SELF;
        } else if kind == DefKind::Method {
            flags |= flag::STATIC;
        }
        match place {
            Place::Trait(members) => {
                let owner = self.b.owner;
                self.seen_as(def, owner);
                if body.is_none() {
                    flags |= flag::ABSTRACT;
                }
                self.b.declare_def(members, def);
            }
            Place::Impl { receiver, through } => {
                if through.is_none() {
                    flags |= flag::FINAL;
                }
                self.belongs(def, receiver, through);
            }
            Place::Free | Place::Foreign => {
                if body.is_none() {
                    flags |= flag::DECLARED;
                }
                self.declare_def(def);
            }
        }
        self.b.def(def).flags |= flags;
        self.inside(def, |reader| {
            reader.type_parameters(&kids);
            if let Some(parameters) = parameters {
                reader.parameters(parameters);
            }
            let result = kids.field("return_type").map(|ty| reader.ty(ty)).filter(|ty| *ty != UNKNOWN);
            reader.b.def(def).result = result;
            reader.where_clause(&kids);
            if let Some(body) = body {
                let value = reader.value(body);
                reader.b.returns(value, false);
            }
        });
    }

    /// Attaches a method, constant or type of an impl to the impl's type.
    fn belongs(&mut self, def: DefId, receiver: ExprId, through: Option<ExprId>) {
        let d = self.b.def(def);
        d.receiver = Some(receiver).filter(|r| *r != UNKNOWN);
        d.through = through;
        if through.is_some() {
            d.visibility = Visibility::Public;
            d.flags |= flag::EXPORTED;
        }
    }

    fn takes_self(&mut self, parameters: TreeNode<'t>) -> bool {
        let kids = self.children(parameters);
        let first = kids.named().find(|k| k.kind() != "attribute_item");
        match first {
            Some(first) if first.kind() == "self_parameter" => true,
            Some(first) if first.kind() == "parameter" => {
                let inner = self.children(first);
                inner.field("pattern").is_some_and(|p| p.kind() == "self")
            }
            _ => false,
        }
    }

    /// The parameters of a function or closure.
    pub(super) fn parameters(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        for kid in kids.all() {
            match kid.kind() {
                "self_parameter" => {
                    let this = self.b.expr(SourceExpr::ThisType);
                    self.b.param("self", None, Some(this));
                }
                "parameter" => {
                    let inner = self.children(kid);
                    let ty = inner.field("type").map(|ty| self.ty(ty)).filter(|ty| *ty != UNKNOWN);
                    match inner.field("pattern") {
                        Some(pattern) => self.parameter(pattern, ty),
                        None => self.parameter(kid, ty),
                    }
                }
                "variadic_parameter" => {
                    let owner = self.b.owner;
                    let place = to_place(self.b.facts.def(owner).params.len());
                    self.b.param("...", Some(VarKind::Rest(place)), None);
                    self.b.def(owner).flags |= flag::VARIADIC;
                }
                "_" => {
                    self.b.param("_", None, None);
                }
                "attribute_item" | "line_comment" | "block_comment" => {}
                _ if kid.is_named() => self.parameter(kid, None),
                _ => {}
            }
        }
    }

    fn parameter(&mut self, pattern: TreeNode<'t>, ty: Option<ExprId>) {
        match pattern.kind() {
            "identifier" | "self" => {
                let name = self.word(pattern);
                self.b.param(name, None, ty);
            }
            "mut_pattern" | "ref_pattern" | "reference_pattern" => {
                let kids = self.children(pattern);
                match kids.named().find(|k| k.kind() != "mutable_specifier") {
                    Some(inner) => self.deeper((), |reader| reader.parameter(inner, ty)),
                    None => {
                        self.b.param("_", None, ty);
                    }
                }
            }
            _ => {
                let var = self.b.param("_", None, ty);
                let value = self.b.expr(SourceExpr::Var(var));
                self.pattern(pattern, value);
            }
        }
    }

    // --- types ---

    fn structure(&mut self, node: TreeNode<'t>, above: &PrecedingAttributes<'t>) {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.word(n));
        let body = kids.field("body");
        let signature = match body {
            Some(body) if body.kind() == "ordered_field_declaration_list" => Signature::Whole,
            _ => Signature::Head,
        };
        let (def, _) = self.define(node, &kids, name, DefKind::Struct, above, signature);
        self.declare_def(def);
        let this = self.this.replace(self.b.facts.def(def).name);
        self.inside(def, |reader| {
            reader.type_parameters(&kids);
            reader.where_clause(&kids);
            if let Some(body) = body {
                reader.fields(body, None);
            }
        });
        self.this = this;
    }

    /// The fields of a struct, or of a variant of an enum.
    fn fields(&mut self, body: TreeNode<'t>, variant: Option<(DefId, DefId)>) {
        let kids = self.children(body);
        let mut above = PrecedingAttributes::default();
        let mut place = 0u32;
        let mut visible = Visibility::Private;
        for (field, kid) in kids.with_fields() {
            match kid.kind() {
                "line_comment" | "block_comment" => above.comment(self.text(kid)),
                "attribute_item" => above.attributes.push(kid),
                "field_declaration" => {
                    let inner = self.children(kid);
                    let name = inner.field("name").map_or("", |n| self.word(n));
                    let ty = inner.field("type").map_or(UNKNOWN, |ty| self.ty(ty));
                    let (def, _) = self.define(kid, &inner, name, DefKind::Field, &above, Signature::Whole);
                    if let Some((owner, _)) = variant {
                        self.seen_as(def, owner);
                    }
                    self.field(name, Some(def), ty, variant);
                    above.clear();
                }
                "visibility_modifier" => {
                    let text = self.text(kid);
                    visible = if text == "pub" { Visibility::Public } else { Visibility::Package };
                }
                _ if field == Some("type") => {
                    let name = place.to_string();
                    let ty = self.ty(kid);
                    let mut def = None;
                    if variant.is_none() {
                        let signature = one_line(self.text(kid));
                        let added = self.b.add_def(&name, DefKind::Field, span(kid));
                        let doc = above.doc();
                        let d = self.b.def(added);
                        d.signature = signature.into();
                        d.visibility = visible;
                        d.doc = doc;
                        if visible == Visibility::Public {
                            d.flags |= flag::EXPORTED;
                        }
                        self.attributes(added, &above);
                        def = Some(added);
                    }
                    self.field(&name, def, ty, variant);
                    place += 1;
                    visible = Visibility::Private;
                    above.clear();
                }
                _ => {}
            }
        }
    }

    fn field(&mut self, name: &str, def: Option<DefId>, ty: ExprId, variant: Option<(DefId, DefId)>) {
        let declared = Some(ty).filter(|ty| *ty != UNKNOWN);
        if let Some(def) = def {
            self.b.def(def).result = declared;
        }
        let name = self.b.name(name);
        self.b.declare(name, VarKind::Local, declared);
        if let Some((owner, variant)) = variant
            && ty != UNKNOWN
        {
            let key = (self.b.facts.def(owner).name, self.b.facts.def(variant).name, name);
            self.payloads.insert(key, ty);
        }
    }

    fn enumeration(&mut self, node: TreeNode<'t>, above: &PrecedingAttributes<'t>) {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.word(n));
        let (def, _) = self.define(node, &kids, name, DefKind::Enum, above, Signature::Head);
        self.declare_def(def);
        let this = self.this.replace(self.b.facts.def(def).name);
        self.inside(def, |reader| {
            reader.type_parameters(&kids);
            reader.where_clause(&kids);
            let Some(body) = kids.field("body") else { return };
            let kids = reader.children(body);
            let own = reader.b.expr(SourceExpr::ThisType);
            let mut above = PrecedingAttributes::default();
            for kid in kids.all() {
                match kid.kind() {
                    "line_comment" | "block_comment" => above.comment(reader.text(kid)),
                    "attribute_item" => above.attributes.push(kid),
                    "enum_variant" => {
                        reader.variant(kid, def, own, &above);
                        above.clear();
                    }
                    _ => {}
                }
            }
        });
        self.this = this;
    }

    fn variant(&mut self, node: TreeNode<'t>, owner: DefId, own: ExprId, above: &PrecedingAttributes<'t>) {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.word(n));
        let (def, _) = self.define(node, &kids, name, DefKind::Field, above, Signature::Whole);
        self.seen_as(def, owner);
        let d = self.b.def(def);
        d.flags |= flag::CONSTANT;
        d.result = Some(own);
        let name = d.name;
        self.b.declare(name, VarKind::Local, Some(own));
        if let Some(value) = kids.field("value") {
            self.used(value);
        }
        if let Some(body) = kids.field("body") {
            self.inside(def, |reader| reader.fields(body, Some((owner, def))));
        }
    }

    fn interface(&mut self, node: TreeNode<'t>, above: &PrecedingAttributes<'t>) {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.word(n));
        let (def, _) = self.define(node, &kids, name, DefKind::Interface, above, Signature::Head);
        self.declare_def(def);
        let this = self.this.replace(self.b.facts.def(def).name);
        self.inside(def, |reader| {
            reader.type_parameters(&kids);
            if let Some(bounds) = kids.field("bounds") {
                let inner = reader.children(bounds);
                for bound in inner.named() {
                    let of = reader.ty(bound);
                    if of != UNKNOWN {
                        reader.b.base(def, BaseKind::Extends, of, line(bound));
                    }
                }
            }
            reader.where_clause(&kids);
            // Members are reached through `Self` or a value, not by their bare names, so their scope does not enclose
            // the bodies.
            let before = reader.open();
            let members = reader.b.scope;
            reader.b.close_scope(before);
            if let Some(body) = kids.field("body") {
                let kids = reader.children(body);
                reader.statements(&kids, Place::Trait(members));
            }
        });
        self.this = this;
    }

    fn implementation(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let before = self.open();
        let items = std::mem::replace(&mut self.items, self.b.scope);
        self.type_parameters(&kids);
        let receiver = kids.field("type").map_or(UNKNOWN, |ty| self.plain_type(ty));
        let through = kids.field("trait").map(|of| self.plain_type(of)).filter(|of| *of != UNKNOWN);
        self.where_clause(&kids);
        if let Some(through) = through
            && receiver != UNKNOWN
            && !kids.has("!")
        {
            let name = self.b.name("impl");
            let line = span(node).line;
            self.b.facts.impl_lines.push((self.b.facts.binds.next_id(), line));
            self.b.bind(BindTarget::Member(receiver, name), through);
        }
        let own = kids.field("type").and_then(|ty| self.type_name(ty));
        let own = own.map(|name| self.b.name(name));
        let this = std::mem::replace(&mut self.this, own);
        let this_type = std::mem::replace(&mut self.this_type, receiver);
        if let Some(body) = kids.field("body") {
            let kids = self.children(body);
            self.statements(&kids, Place::Impl { receiver, through });
        }
        self.this = this;
        self.this_type = this_type;
        self.items = items;
        self.b.close_scope(before);
    }

    fn alias(&mut self, node: TreeNode<'t>, above: &PrecedingAttributes<'t>, place: Place) {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.word(n));
        let (def, _) = self.define(node, &kids, name, DefKind::Type, above, Signature::Whole);
        match place {
            Place::Trait(members) => {
                let owner = self.b.owner;
                self.seen_as(def, owner);
                self.b.declare_def(members, def);
            }
            Place::Impl { receiver, through } => self.belongs(def, receiver, through),
            Place::Free | Place::Foreign => self.declare_def(def),
        }
        self.inside(def, |reader| {
            reader.type_parameters(&kids);
            let result = match kids.field("type") {
                Some(ty) => reader.ty(ty),
                None => kids.field("bounds").map_or(UNKNOWN, |bounds| reader.bounds(bounds)),
            };
            reader.b.def(def).result = Some(result).filter(|r| *r != UNKNOWN);
            reader.where_clause(&kids);
        });
    }

    fn constant(&mut self, node: TreeNode<'t>, above: &PrecedingAttributes<'t>, place: Place) {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.word(n));
        let ty = kids.field("type").map(|ty| self.ty(ty)).filter(|ty| *ty != UNKNOWN);
        let value = kids.field("value");
        if name == "_" {
            if let Some(value) = value {
                self.used(value);
            }
            return;
        }
        let module = matches!(self.b.facts.def(self.b.owner).kind, DefKind::File | DefKind::Module);
        let kind = match place {
            Place::Trait(_) | Place::Impl { .. } => Some(DefKind::Field),
            Place::Free | Place::Foreign => module.then_some(DefKind::Variable),
        };
        let def = kind.map(|kind| {
            let (def, _) = self.define(node, &kids, name, kind, above, Signature::Value);
            let d = self.b.def(def);
            d.flags |= flag::CONSTANT;
            d.result = ty;
            def
        });
        let symbol = self.b.name(name);
        let target = match (place, def) {
            (Place::Trait(members), Some(def)) => {
                let owner = self.b.owner;
                self.seen_as(def, owner);
                BindTarget::Var(self.b.declare_in(members, symbol, VarKind::Local, ty))
            }
            (Place::Impl { receiver, through }, Some(def)) => {
                self.belongs(def, receiver, through);
                BindTarget::Member(receiver, symbol)
            }
            _ => BindTarget::Var(self.b.declare(symbol, VarKind::Local, ty)),
        };
        if let Some(value) = value {
            let value = self.used(value);
            self.b.bind(target, value);
        }
    }

    // --- modules and macros ---

    fn module(&mut self, node: TreeNode<'t>, above: &PrecedingAttributes<'t>) {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.word(n));
        let Some(body) = kids.field("body") else {
            let public = kids.kind("visibility_modifier").is_some();
            let marks = self.attributes(self.b.owner, above);
            let import = self.b.facts.imports.len();
            self.import(&format!("self::{name}"), ImportKind::Module, name, line(node), public);
            if let Some(declared) = self.b.facts.imports.get_mut(import) {
                declared.only_in_tests = marks.only_in_tests;
            }
            return;
        };
        let (def, _) = self.define(node, &kids, name, DefKind::Module, above, Signature::Head);
        self.declare_def(def);
        let kids = self.children(body);
        if let Some(doc) = self.doc_inside(&kids) {
            let d = self.b.def(def);
            d.doc = match d.doc.take() {
                Some(above) => Some(format!("{above}\n{doc}").into()),
                None => Some(doc),
            };
        }
        let this = self.this.take();
        self.inside(def, |reader| reader.statements(&kids, Place::Free));
        self.this = this;
    }

    /// A macro: its expansions are read for calls, as if they were in a function.
    fn macro_rules(&mut self, node: TreeNode<'t>, above: &PrecedingAttributes<'t>) {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.word(n));
        let (def, marks) = self.define(node, &kids, name, DefKind::Function, above, Signature::Head);
        let d = self.b.def(def);
        d.signature = format!("macro_rules! {name}").into();
        d.flags |= flag::MACRO;
        d.visibility = Visibility::Package;
        if marks.macro_export {
            d.visibility = Visibility::Public;
            d.flags |= flag::EXPORTED;
        }
        let called = self.b.name(&format!("{name}!"));
        let scope = self.b.scope;
        match self.b.declared_in(scope, called) {
            Some(var) => {
                let value = self.b.expr(SourceExpr::Def(def));
                self.b.bind(BindTarget::Var(var), value);
            }
            None => {
                self.b.declare_in(scope, called, VarKind::Def(def), None);
            }
        }
        self.templates += 1;
        self.inside(def, |reader| {
            for rule in kids.named().filter(|k| k.kind() == "macro_rule") {
                let inner = reader.children(rule);
                if let Some(right) = inner.field("right") {
                    reader.token_block(right);
                }
            }
        });
        self.templates -= 1;
    }
}
