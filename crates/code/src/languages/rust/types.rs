//! Types, paths, type parameters and their bounds.

use super::Reader;
use crate::facts::{ExprId, Literal, SourceExpr, UNKNOWN, VarKind};
use crate::tree::{NodeChildren, TreeNode, line};

/// Bounds that reveal little about the available methods: used only if there is no other.
const COMMON: [&str; 16] = [
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Display",
    "Eq",
    "Hash",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Send",
    "Sized",
    "Static",
    "Sync",
    "Unpin",
    "UnwindSafe",
];

impl<'t> Reader<'t> {
    pub(super) fn ty(&mut self, node: TreeNode<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.ty_inner(node))
    }

    fn ty_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        match node.kind() {
            "type_identifier" | "identifier" | "scoped_type_identifier" | "scoped_identifier" => {
                let ty = self.path(node);
                if !matches!(self.b.facts.expr(ty), SourceExpr::ThisType) {
                    self.b.uses(ty, line(node));
                }
                ty
            }
            "primitive_type" => {
                let name = self.text(node);
                self.free(name)
            }
            "generic_type" | "generic_type_with_turbofish" => {
                let kids = self.children(node);
                let Some(base) = kids.field("type").map(|ty| self.ty(ty)) else { return UNKNOWN };
                let args = kids.field("type_arguments").map(|a| self.type_arguments(a)).unwrap_or_default();
                if args.is_empty() || base == UNKNOWN { base } else { self.b.generic(base, &args) }
            }
            "reference_type" | "pointer_type" | "higher_ranked_trait_bound" => {
                let kids = self.children(node);
                kids.field("type").map_or(UNKNOWN, |ty| self.ty(ty))
            }
            "dynamic_type" | "abstract_type" => {
                let kids = self.children(node);
                kids.field("trait").map_or(UNKNOWN, |ty| self.ty(ty))
            }
            "array_type" => {
                let kids = self.children(node);
                if let Some(length) = kids.field("length") {
                    self.used(length);
                }
                let element = kids.field("element").map_or(UNKNOWN, |ty| self.ty(ty));
                let list = self.free("[]");
                self.b.generic(list, &[element])
            }
            "tuple_type" => {
                let kids = self.children(node);
                let parts: Vec<ExprId> = kids.named().map(|part| self.ty(part)).collect();
                let tuple = self.free("()");
                self.b.generic(tuple, &parts)
            }
            "unit_type" => self.b.expr(SourceExpr::Literal(Literal::Nothing)),
            "function_type" => {
                let kids = self.children(node);
                if let Some(parameters) = kids.field("parameters") {
                    let inner = self.children(parameters);
                    for part in inner.named() {
                        let part = match part.kind() {
                            "parameter" => {
                                let inner = self.children(part);
                                inner.field("type")
                            }
                            "self_parameter" | "variadic_parameter" | "attribute_item" => None,
                            _ => Some(part),
                        };
                        if let Some(part) = part {
                            self.ty(part);
                        }
                    }
                }
                let result = kids.field("return_type").map_or(UNKNOWN, |ty| self.ty(ty));
                self.b.expr(SourceExpr::FunctionType(result))
            }
            "bounded_type" => self.bounds(node),
            "bracketed_type" => self.bracketed(node),
            "macro_invocation" => self.value(node),
            _ => UNKNOWN,
        }
    }

    /// `Item = T` counts as an argument, because the item of an iterator or future is its most useful property. `Self`
    /// is replaced by the type, because the arguments of a generic type are evaluated without the enclosing `impl`.
    fn type_arguments(&mut self, node: TreeNode<'t>) -> Vec<ExprId> {
        let kids = self.children(node);
        let mut args = Vec::new();
        for kid in kids.named() {
            match kid.kind() {
                "lifetime" | "trait_bounds" => {}
                "type_binding" => {
                    let inner = self.children(kid);
                    if let Some(ty) = inner.field("type") {
                        args.push(self.ty(ty));
                    }
                }
                "block" => {
                    self.value(kid);
                }
                _ => args.push(self.ty(kid)),
            }
        }
        if self.this_type != UNKNOWN {
            for arg in &mut args {
                if matches!(self.b.facts.expr(*arg), SourceExpr::ThisType) {
                    *arg = self.this_type;
                }
            }
        }
        args
    }

    /// Type arguments that are only recorded as references: `f::<T>()`.
    pub(super) fn type_arguments_used(&mut self, kids: &NodeChildren<'t>) {
        if let Some(arguments) = kids.field("type_arguments") {
            self.type_arguments(arguments);
        }
    }

    /// A type as the owner of methods: without references and arguments.
    pub(super) fn plain_type(&mut self, node: TreeNode<'t>) -> ExprId {
        let ty = self.ty(node);
        match self.b.facts.expr(ty) {
            SourceExpr::Generic(base, _) => base,
            SourceExpr::FunctionType(_) | SourceExpr::Literal(_) => UNKNOWN,
            SourceExpr::Either(items) => self.b.facts.items(items).first().map_or(UNKNOWN, |item| item.value),
            _ => ty,
        }
    }

    /// The name of a type, without references, arguments and other wrappers.
    pub(super) fn type_name(&mut self, node: TreeNode<'t>) -> Option<&'t str> {
        self.deeper(None, |reader| match node.kind() {
            "type_identifier" => Some(reader.word(node)),
            "scoped_type_identifier" => {
                let kids = reader.children(node);
                kids.field("name").map(|n| reader.word(n))
            }
            "generic_type" | "reference_type" => {
                let kids = reader.children(node);
                let inner = kids.field("type")?;
                reader.type_name(inner)
            }
            _ => None,
        })
    }

    // --- paths ---

    /// `a::b::C`, `<T as Trait>::f`, `T::<U>::new`. The first of several names is never a local variable.
    pub(super) fn path(&mut self, node: TreeNode<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.path_inner(node))
    }

    fn path_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        match node.kind() {
            "scoped_identifier" | "scoped_type_identifier" => {
                let kids = self.children(node);
                let name = kids.field("name").map_or("", |n| self.word(n));
                match kids.field("path") {
                    Some(path) => {
                        let of = self.path(path);
                        self.member(of, name)
                    }
                    None => self.free(name),
                }
            }
            "self" | "super" | "crate" => {
                let name = self.text(node);
                self.free(name)
            }
            "metavariable" if self.text(node) == "$crate" => self.free("crate"),
            "identifier" | "type_identifier" | "primitive_type" => {
                let name = self.word(node);
                self.head(name)
            }
            "generic_type" | "generic_type_with_turbofish" | "generic_pattern" => {
                let kids = self.children(node);
                self.type_arguments_used(&kids);
                let base = kids.field("type").or_else(|| kids.named().next());
                base.map_or(UNKNOWN, |ty| self.path(ty))
            }
            "bracketed_type" => self.bracketed(node),
            _ => UNKNOWN,
        }
    }

    /// `<T>` or `<T as Trait>`: the type.
    fn bracketed(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(inner) = kids.named().next() else { return UNKNOWN };
        if inner.kind() != "qualified_type" {
            return self.plain_type(inner);
        }
        let parts = self.children(inner);
        if let Some(through) = parts.field("alias") {
            self.ty(through);
        }
        parts.field("type").map_or(UNKNOWN, |ty| self.plain_type(ty))
    }

    // --- type parameters ---

    pub(super) fn type_parameters(&mut self, kids: &NodeChildren<'t>) {
        let Some(parameters) = kids.field("type_parameters") else { return };
        let inner = self.children(parameters);
        for kid in inner.named() {
            let parts = self.children(kid);
            let Some(name) = parts.field("name") else { continue };
            let ty = match kid.kind() {
                "type_parameter" => {
                    if let Some(default) = parts.field("default_type") {
                        self.ty(default);
                    }
                    parts.field("bounds").map(|bounds| self.bounds(bounds))
                }
                "const_parameter" => parts.field("type").map(|ty| self.ty(ty)),
                _ => continue,
            };
            let name = self.word(name);
            let name = self.b.name(name);
            self.b.declare(name, VarKind::TypeParam, ty.filter(|ty| *ty != UNKNOWN));
        }
    }

    /// The bounds of a type: of several traits, those that reveal most.
    pub(super) fn bounds(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let mut telling: Vec<ExprId> = Vec::new();
        let mut first = UNKNOWN;
        for kid in kids.named() {
            if matches!(kid.kind(), "lifetime" | "use_bounds") {
                continue;
            }
            let bound = self.ty(kid);
            if first == UNKNOWN {
                first = bound;
            }
            if !COMMON.contains(&self.text(kid)) {
                telling.push(bound);
            }
        }
        if telling.is_empty() { first } else { self.b.either(&telling) }
    }

    pub(super) fn where_clause(&mut self, kids: &NodeChildren<'t>) {
        for clause in kids.all().filter(|k| k.kind() == "where_clause") {
            let inner = self.children(clause);
            for predicate in inner.named() {
                let parts = self.children(predicate);
                let Some(bounds) = parts.field("bounds") else { continue };
                let bound = self.bounds(bounds);
                let Some(left) = parts.field("left") else { continue };
                if left.kind() != "type_identifier" {
                    self.ty(left);
                    continue;
                }
                let name = self.word(left);
                let name = self.b.name(name);
                if let Some(var) = self.b.find(self.b.scope, name)
                    && self.b.facts.vars[var].what == VarKind::TypeParam
                    && bound != UNKNOWN
                {
                    let both = match self.b.facts.vars[var].ty {
                        Some(before) => self.b.either(&[before, bound]),
                        None => bound,
                    };
                    self.b.facts.vars[var].ty = Some(both);
                }
            }
        }
    }
}
