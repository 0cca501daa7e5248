//! Types: their definitions, and the expressions that represent them.

use super::docs::PrecedingComments;
use super::{Reader, Values};
use crate::builder::ScopeId;
use crate::facts::{BaseKind, DefId, DefKind, ExprId, SourceExpr, UNKNOWN, VarKind, Visibility, flag};
use crate::tree::{TreeNode, line, one_line, span};

impl<'t> Reader<'t> {
    // --- definitions ---

    pub(super) fn type_declaration(&mut self, node: TreeNode<'t>, doc: Option<Box<str>>) {
        let kids = self.children(node);
        if !kids.has("(") {
            let mut doc = doc;
            for kid in kids.named() {
                self.type_definition(kid, node, doc.take());
            }
            return;
        }
        let mut above = PrecedingComments::new();
        for kid in kids.all() {
            if above.pass(kid) && kid.is_named() {
                let doc = above.doc(kid, self.b.text);
                self.type_definition(kid, kid, doc);
            }
        }
    }

    fn type_definition(&mut self, node: TreeNode<'t>, whole: TreeNode<'t>, doc: Option<Box<str>>) {
        if !matches!(node.kind(), "type_spec" | "type_alias") {
            self.nested(node);
            return;
        }
        let kids = self.children(node);
        let (Some(name), Some(ty)) = (kids.field("name"), kids.field("type")) else { return };
        let name = self.text(name);
        let kind = match ty.kind() {
            "struct_type" => DefKind::Struct,
            "interface_type" => DefKind::Interface,
            _ => DefKind::Type,
        };
        let def = self.b.add_def(name, kind, span(whole));
        self.access(def, name);
        let end = match kind {
            DefKind::Type => node.end_byte(),
            // Up to and including the word `struct` or `interface`.
            _ => ty.children().all().next().map_or(ty.end_byte(), |word| word.end_byte()),
        };
        let written = one_line(self.b.text.get(node.start_byte()..end).unwrap_or(""));
        let d = self.b.def(def);
        d.signature = ["type ", &written].concat().into();
        d.doc = doc;
        let scope = self.b.scope;
        self.b.declare_def(scope, def);
        self.inside(def, |reader| {
            if let Some(list) = kids.field("type_parameters") {
                reader.type_parameters(list);
            }
            match kind {
                DefKind::Struct => reader.fields(def, ty, true),
                DefKind::Interface => reader.methods(def, ty),
                _ => {
                    let stands_for = reader.ty(ty);
                    reader.b.def(def).result = Some(stands_for);
                }
            }
        });
    }

    /// A separate scope for members, because bare names in the type never refer to them.
    fn member_scope(&mut self, def: DefId) -> ScopeId {
        let before = self.b.enter_def(def, false);
        let scope = self.b.scope;
        self.b.leave_def(before);
        scope
    }

    fn fields(&mut self, def: DefId, node: TreeNode<'t>, symbols: bool) {
        let scope = self.member_scope(def);
        let kids = self.children(node);
        if let Some(list) = kids.kind("field_declaration_list") {
            self.field_list(def, list, scope, symbols);
        }
    }

    fn field_list(&mut self, def: DefId, list: TreeNode<'t>, scope: ScopeId, symbols: bool) {
        let kids = self.children(list);
        let mut above = PrecedingComments::new();
        for kid in kids.all() {
            if !above.pass(kid) {
                continue;
            }
            match kid.kind() {
                "field_declaration" => {
                    let doc = above.doc(kid, self.b.text);
                    self.field(def, kid, scope, symbols.then_some(doc));
                }
                "ERROR" => self.deeper((), |reader| reader.field_list(def, kid, scope, symbols)),
                _ => {}
            }
        }
    }

    /// `symbol` is `Some` if the field is a symbol; it contains its doc comment.
    fn field(&mut self, def: DefId, node: TreeNode<'t>, scope: ScopeId, symbol: Option<Option<Box<str>>>) {
        let kids = self.children(node);
        let Some(type_node) = kids.field("type") else { return };
        let ty = self.ty(type_node);
        let end = kids.field("tag").map_or(node.end_byte(), |tag| tag.start_byte());
        let embeds = kids.field("name").is_none();
        if embeds {
            self.b.base(def, BaseKind::Embeds, ty, line(node));
            let name = self.last_name(type_node);
            self.one_field(name, node, end, ty, scope, &symbol);
        }
        for name in kids.fields("name") {
            let name = self.text(name);
            if name != "_" {
                self.one_field(name, node, end, ty, scope, &symbol);
            }
        }
    }

    fn one_field(
        &mut self,
        text: &'t str,
        node: TreeNode<'t>,
        end: usize,
        ty: ExprId,
        scope: ScopeId,
        symbol: &Option<Option<Box<str>>>,
    ) {
        if let Some(doc) = symbol {
            let field = self.b.add_def(text, DefKind::Field, span(node));
            self.access(field, text);
            let signature = one_line(self.b.text.get(node.start_byte()..end).unwrap_or(""));
            let d = self.b.def(field);
            d.signature = signature.into();
            d.doc = doc.clone();
            d.result = Some(ty);
        }
        let name = self.b.name(text);
        if self.channels.types.contains(&ty) {
            self.channels.fields.insert(name);
        }
        self.b.declare_in(scope, name, VarKind::Local, Some(ty));
    }

    /// The name of an embedded type as a member.
    fn last_name(&mut self, node: TreeNode<'t>) -> &'t str {
        let text = self.text(node);
        let text = text.split('[').next().unwrap_or(text);
        text.rsplit(['.', '*']).next().unwrap_or(text).trim()
    }

    fn methods(&mut self, def: DefId, node: TreeNode<'t>) {
        let scope = self.member_scope(def);
        self.method_list(def, node, scope);
    }

    fn method_list(&mut self, def: DefId, node: TreeNode<'t>, scope: ScopeId) {
        let kids = self.children(node);
        let mut above = PrecedingComments::new();
        for kid in kids.all() {
            if !above.pass(kid) || !kid.is_named() {
                continue;
            }
            match kid.kind() {
                "method_elem" => {
                    let doc = above.doc(kid, self.b.text);
                    let inner = self.children(kid);
                    let name = inner.field("name").map_or("", |n| self.text(n));
                    let method = self.b.add_def(name, DefKind::Method, span(kid));
                    self.access(method, name);
                    let signature = one_line(self.text(kid));
                    let d = self.b.def(method);
                    d.flags |= flag::ABSTRACT;
                    d.signature = signature.into();
                    d.doc = doc;
                    self.b.declare_def(scope, method);
                    self.callable(method, &inner);
                }
                "ERROR" => self.deeper((), |reader| reader.method_list(def, kid, scope)),
                _ => {
                    let of = self.ty(kid);
                    if self.embeddable(kid) {
                        self.b.base(def, BaseKind::Embeds, of, line(kid));
                    }
                }
            }
        }
    }

    /// Whether an element of an interface is another interface, not a set of types.
    fn embeddable(&mut self, node: TreeNode<'t>) -> bool {
        let kids = self.children(node);
        let mut parts = kids.named();
        let (Some(part), None) = (parts.next(), parts.next()) else { return false };
        match part.kind() {
            "type_identifier" => {
                let name = self.text(part);
                name == "error" || !is_predeclared(name)
            }
            kind => matches!(kind, "qualified_type" | "generic_type"),
        }
    }

    // --- expressions ---

    pub(super) fn ty(&mut self, node: TreeNode<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.ty_inner(node))
    }

    fn ty_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        match node.kind() {
            "type_identifier" | "identifier" => {
                let text = self.text(node);
                let named = self.read_name(text);
                if !is_predeclared(text) || matches!(self.b.facts.expr(named), SourceExpr::Var(_)) {
                    self.note(named, node);
                }
                named
            }
            "qualified_type" | "selector_expression" => {
                let kids = self.children(node);
                let mut named = kids.named();
                let (Some(package), Some(name)) = (named.next(), named.next()) else { return UNKNOWN };
                let package = self.text(package);
                let package = self.read_name(package);
                let name = self.text(name);
                let ty = self.b.member(package, name);
                self.note(ty, node);
                ty
            }
            "generic_type" | "type_instantiation_expression" | "index_expression" => {
                let kids = self.children(node);
                let mut named = kids.named();
                let base = named.next().map_or(UNKNOWN, |n| self.ty(n));
                let mut arguments = Values::new();
                for kid in named {
                    if kid.kind() == "type_arguments" {
                        let inner = self.children(kid);
                        for argument in inner.named() {
                            arguments.push(self.ty(argument));
                        }
                    } else {
                        arguments.push(self.ty(kid));
                    }
                }
                if base == UNKNOWN { UNKNOWN } else { self.b.generic(base, &arguments) }
            }
            "slice_type" | "array_type" | "implicit_length_array_type" => {
                let kids = self.children(node);
                if let Some(length) = kids.field("length") {
                    self.used(length);
                }
                let element = kids.field("element").map_or(UNKNOWN, |n| self.ty(n));
                self.list_of(element)
            }
            "map_type" => {
                let kids = self.children(node);
                let key = kids.field("key").map_or(UNKNOWN, |n| self.ty(n));
                let value = kids.field("value").map_or(UNKNOWN, |n| self.ty(n));
                self.b.generic(self.words.map, &[key, value])
            }
            "channel_type" => {
                let kids = self.children(node);
                let element = kids.field("value").map_or(UNKNOWN, |n| self.ty(n));
                let ty = self.list_of(element);
                self.channels.types.insert(ty);
                ty
            }
            "function_type" => {
                let kids = self.children(node);
                if let Some(list) = kids.field("parameters") {
                    self.parameters(list);
                }
                let result = kids.field("result").and_then(|n| self.result(n).0);
                self.b.expr(SourceExpr::FunctionType(result.unwrap_or(UNKNOWN)))
            }
            "struct_type" => self.unnamed_struct(node),
            "interface_type" => self.unnamed_interface(node),
            // Transparent: pointers, parentheses, `~T`; and unions of types.
            "pointer_type"
            | "parenthesized_type"
            | "negated_type"
            | "type_elem"
            | "type_constraint"
            | "parenthesized_expression"
            | "unary_expression"
            | "ERROR" => {
                let kids = self.children(node);
                let parts: Values = kids.named().map(|n| self.ty(n)).collect();
                self.b.either(&parts)
            }
            _ => UNKNOWN,
        }
    }

    pub(super) fn list_of(&mut self, element: ExprId) -> ExprId {
        self.b.generic(self.words.list, &[element])
    }

    fn unnamed_struct(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(list) = kids.kind("field_declaration_list") else { return UNKNOWN };
        if list.children().named().next().is_none() {
            return UNKNOWN;
        }
        let def = self.b.add_def("<struct>", DefKind::Struct, span(node));
        self.b.def(def).visibility = Visibility::Private;
        self.b.def(def).signature = "struct".into();
        self.fields(def, node, false);
        self.b.expr(SourceExpr::Def(def))
    }

    fn unnamed_interface(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        if kids.kind("method_elem").is_none() {
            // `interface{ ~int | ~string }`, `interface{ A }`: equivalent to the union of types.
            let parts: Values = kids.named().map(|n| self.ty(n)).collect();
            return self.b.either(&parts);
        }
        let def = self.b.add_def("<interface>", DefKind::Interface, span(node));
        self.b.def(def).visibility = Visibility::Private;
        self.b.def(def).signature = "interface".into();
        self.inside(def, |reader| reader.methods(def, node));
        self.b.expr(SourceExpr::Def(def))
    }
}

/// Whether a type is predeclared: naming it is not a reference.
pub(super) fn is_predeclared(name: &str) -> bool {
    matches!(
        name,
        "string"
            | "int"
            | "error"
            | "bool"
            | "byte"
            | "any"
            | "int64"
            | "int32"
            | "int16"
            | "int8"
            | "uint"
            | "uint64"
            | "uint32"
            | "uint16"
            | "uint8"
            | "uintptr"
            | "float64"
            | "float32"
            | "rune"
            | "comparable"
            | "complex64"
            | "complex128"
    )
}
