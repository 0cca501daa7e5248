//! Types, and the patterns that declare variables of them.

use super::{Reader, known};
use crate::facts::{ExprId, SourceExpr, UNKNOWN, VarKind};
use crate::tree::{TreeNode, line};

impl<'t> Reader<'t> {
    /// Reads a type and records references to the types it names.
    pub(super) fn ty(&mut self, node: TreeNode<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.type_inner(node, true))
    }

    /// Reads a type without a reference, because a call or a base already refers to it; its arguments are references.
    pub(super) fn named_type(&mut self, node: TreeNode<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.type_inner(node, false))
    }

    fn type_inner(&mut self, node: TreeNode<'t>, counts: bool) -> ExprId {
        match node.kind() {
            "type_identifier" | "identifier" => {
                let name = self.text(node);
                if name.is_empty() {
                    return UNKNOWN;
                }
                let named = self.b.read(name);
                if counts {
                    self.b.uses(named, line(node));
                }
                named
            }
            "scoped_type_identifier" | "scoped_identifier" => {
                let kids = self.children(node);
                let mut named = UNKNOWN;
                for kid in kids.named() {
                    match kid.kind() {
                        "marker_annotation" | "annotation" => {
                            self.value(kid);
                        }
                        _ if named == UNKNOWN => {
                            let outer = self.named_type(kid);
                            named = self.without_arguments(outer);
                        }
                        _ => {
                            let name = self.text(kid);
                            named = self.b.member(named, name);
                        }
                    }
                }
                if counts {
                    self.b.uses(named, line(node));
                }
                named
            }
            "generic_type" => {
                let kids = self.children(node);
                let mut of = UNKNOWN;
                let mut args = Vec::new();
                for kid in kids.named() {
                    if kid.kind() == "type_arguments" {
                        args = self.type_arguments(kid);
                    } else {
                        of = if counts { self.ty(kid) } else { self.named_type(kid) };
                    }
                }
                // `new ArrayList<>()` is equivalent to `new ArrayList()` here.
                if of == UNKNOWN || args.is_empty() { of } else { self.b.generic(of, &args) }
            }
            "array_type" => {
                let kids = self.children(node);
                let element = kids.field("element").map_or(UNKNOWN, |n| self.ty(n));
                // An array of unknown elements is still an array.
                let depth = kids.field("dimensions").map_or(1, |n| self.depth(n));
                (0..depth).fold(element, |of, _| self.array_of(of))
            }
            "annotated_type" | "wildcard" => {
                let kids = self.children(node);
                let mut ty = UNKNOWN;
                for kid in kids.named() {
                    match kid.kind() {
                        "marker_annotation" | "annotation" => {
                            self.value(kid);
                        }
                        "super" => {}
                        _ => ty = if counts { self.ty(kid) } else { self.named_type(kid) },
                    }
                }
                ty
            }
            // Recorded by name, because they are needed to select overloads.
            "integral_type" | "floating_point_type" | "boolean_type" => {
                let name = self.text(node);
                let name = self.b.name(name);
                self.b.expr(SourceExpr::Free(name))
            }
            "ERROR" => {
                self.nested(node);
                UNKNOWN
            }
            _ => UNKNOWN,
        }
    }

    /// The type without its arguments.
    pub(super) fn without_arguments(&self, ty: ExprId) -> ExprId {
        match self.b.facts.expr(ty) {
            SourceExpr::Generic(of, _) => of,
            _ => ty,
        }
    }

    pub(super) fn type_arguments(&mut self, node: TreeNode<'t>) -> Vec<ExprId> {
        let kids = self.children(node);
        kids.named().map(|kid| self.ty(kid)).collect()
    }

    pub(super) fn array_of(&mut self, element: ExprId) -> ExprId {
        let name = self.b.name("[]");
        let list = self.b.expr(SourceExpr::Free(name));
        self.b.generic(list, &[element])
    }

    /// The type of a variable; `None` for `var`.
    pub(super) fn declared_type(
        &mut self,
        ty: Option<TreeNode<'t>>,
        dimensions: Option<TreeNode<'t>>,
    ) -> Option<ExprId> {
        let ty = ty?;
        if ty.kind() == "type_identifier" && self.text(ty) == "var" {
            return None;
        }
        let ty = self.ty(ty);
        self.arrays(known(ty), dimensions)
    }

    /// `int a[]`: dimensions after the name.
    pub(super) fn arrays(&mut self, ty: Option<ExprId>, dimensions: Option<TreeNode<'t>>) -> Option<ExprId> {
        let Some(dimensions) = dimensions else { return ty };
        let depth = self.depth(dimensions);
        Some((0..depth).fold(ty?, |of, _| self.array_of(of)))
    }

    pub(super) fn depth(&mut self, dimensions: TreeNode<'t>) -> usize {
        let kids = self.children(dimensions);
        kids.all().filter(|k| k.kind() == "[").count()
    }

    pub(super) fn type_parameters(&mut self, node: Option<TreeNode<'t>>) {
        let Some(node) = node else { return };
        let kids = self.children(node);
        for parameter in kids.named() {
            let inner = self.children(parameter);
            let mut name = "";
            let mut bounds = Vec::new();
            for kid in inner.named() {
                match kid.kind() {
                    "type_identifier" | "identifier" => name = self.text(kid),
                    "type_bound" => {
                        let inner = self.children(kid);
                        bounds.extend(inner.named().map(|bound| self.ty(bound)));
                    }
                    _ => {
                        self.visit(kid);
                    }
                }
            }
            if !name.is_empty() {
                let bound = self.b.either(&bounds);
                let name = self.b.name(name);
                self.b.declare(name, VarKind::TypeParam, known(bound));
            }
        }
    }

    // --- patterns ---

    /// Declares the variables of a pattern of `instanceof` or `case`.
    pub(super) fn pattern(&mut self, node: TreeNode<'t>) {
        self.deeper((), |reader| match node.kind() {
            "type_pattern" | "record_pattern_component" => {
                let kids = reader.children(node);
                let mut named = kids.named();
                let ty = named.next();
                let Some(name) = named.last() else { return };
                let ty = reader.declared_type(ty, None);
                let name = reader.text(name);
                reader.local(name, ty);
            }
            "record_pattern" => {
                let kids = reader.children(node);
                for kid in kids.named() {
                    if kid.kind() == "record_pattern_body" {
                        reader.pattern(kid);
                    } else {
                        reader.ty(kid);
                    }
                }
            }
            "pattern" | "record_pattern_body" => {
                let kids = reader.children(node);
                for kid in kids.named() {
                    reader.pattern(kid);
                }
            }
            "ERROR" => reader.nested(node),
            _ => {}
        });
    }
}
