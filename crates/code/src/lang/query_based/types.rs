//! Converts declared types into expressions.

use super::QueryReader;
use crate::facts::{ExprId, SourceExpr, UNKNOWN};
use crate::tree::{TreeNode, line};
use smallvec::SmallVec;

/// Generic types that evaluate to their content.
fn is_holder(name: &str) -> bool {
    matches!(
        name,
        "unique_ptr"
            | "shared_ptr"
            | "weak_ptr"
            | "optional"
            | "reference_wrapper"
            | "Task"
            | "ValueTask"
            | "Lazy"
            | "Nullable"
            | "Deferred"
    )
}
fn is_list(name: &str) -> bool {
    matches!(
        name,
        "vector"
            | "list"
            | "deque"
            | "set"
            | "unordered_set"
            | "array"
            | "span"
            | "List"
            | "IList"
            | "IEnumerable"
            | "ICollection"
            | "IReadOnlyList"
            | "IReadOnlyCollection"
            | "IAsyncEnumerable"
            | "IQueryable"
            | "HashSet"
            | "ISet"
            | "Queue"
            | "Stack"
            | "MutableList"
            | "ArrayList"
            | "Collection"
            | "MutableCollection"
            | "Iterable"
            | "Set"
            | "MutableSet"
            | "Sequence"
            | "Array"
            | "Flow"
    )
}
fn is_map(name: &str) -> bool {
    matches!(
        name,
        "map"
            | "unordered_map"
            | "Dictionary"
            | "IDictionary"
            | "IReadOnlyDictionary"
            | "ConcurrentDictionary"
            | "Map"
            | "MutableMap"
            | "HashMap"
    )
}

impl<'t> QueryReader<'t> {
    /// The expression of a type; `None` if it is not relevant for calls.
    pub fn ty(&mut self, node: TreeNode<'t>) -> Option<ExprId> {
        let ty = self.deeper(UNKNOWN, |reader| reader.ty_inner(node));
        (ty != UNKNOWN).then_some(ty)
    }

    fn ty_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        match node.kind() {
            "identifier" | "type_identifier" | "name" | "constant" | "namespace_identifier" => {
                let name = self.text(node);
                match name {
                    "self" | "static" => self.b.expr(SourceExpr::ThisType),
                    "parent" => self.b.expr(SourceExpr::Super),
                    "var" => UNKNOWN,
                    _ => {
                        let ty = self.b.read(name);
                        self.b.uses(ty, line(node));
                        ty
                    }
                }
            }
            "qualified_identifier" | "qualified_name" | "scope_resolution" | "alias_qualified_name" => {
                // Wrapper types of the standard library are not relevant; their arguments are.
                if let Some(name) = self.children(node).field("name")
                    && name.kind() == "template_type"
                    && self.text(node).starts_with("std::")
                {
                    return self.ty_inner(name);
                }
                let ty = self.path(node);
                self.b.uses(ty, line(node));
                ty
            }
            "user_type" => {
                let kids = self.children(node);
                let names: SmallVec<[&str; 4]> =
                    kids.named().filter(|k| k.kind() == "identifier").map(|k| self.text(k)).collect();
                let base = self.b.read_path(names.iter().copied());
                self.b.uses(base, line(node));
                match kids.kind("type_arguments") {
                    Some(list) => self.generic(base, names.last().copied().unwrap_or(""), list),
                    None => base,
                }
            }
            "generic_name" | "template_type" => {
                let kids = self.children(node);
                let Some(name) = kids.field("name").or_else(|| kids.named().next()) else { return UNKNOWN };
                let text = self.text(name);
                let base = self.b.read(text);
                let Some(list) = kids.field("arguments").or_else(|| kids.kind("type_argument_list")) else {
                    return base;
                };
                self.generic(base, text, list)
            }
            "array_type" => {
                let kids = self.children(node);
                let element = kids.field("type").or_else(|| kids.named().next()).and_then(|ty| self.ty(ty));
                self.list_of(element).unwrap_or(UNKNOWN)
            }
            "union_type" | "type_list" | "intersection_type" => {
                let kids = self.children(node);
                let parts: SmallVec<[ExprId; 4]> = kids.named().filter_map(|part| self.ty(part)).collect();
                self.b.either(&parts)
            }
            "function_type" => {
                let result = self.last(node).and_then(|ty| self.ty(ty)).unwrap_or(UNKNOWN);
                self.b.expr(SourceExpr::FunctionType(result))
            }
            "struct_specifier" | "union_specifier" | "enum_specifier" | "class_specifier" => {
                match self.children(node).field("name") {
                    Some(name) => self.ty_inner(name),
                    None => UNKNOWN,
                }
            }
            "nullable_type"
            | "optional_type"
            | "pointer_type"
            | "ref_type"
            | "type_descriptor"
            | "named_type"
            | "type_projection"
            | "parenthesized_type"
            | "non_nullable_type"
            | "dependent_type"
            | "superclass"
            | "constructor_invocation"
            | "scoped_type" => {
                let kids = self.children(node);
                let inner = kids.field("type").or_else(|| kids.named().find(|k| k.kind() != "type_qualifier"));
                inner.and_then(|ty| self.ty(ty)).unwrap_or(UNKNOWN)
            }
            _ => UNKNOWN,
        }
    }

    fn generic(&mut self, base: ExprId, name: &str, list: TreeNode<'t>) -> ExprId {
        let kids = self.children(list);
        let args: SmallVec<[ExprId; 4]> = kids.named().map(|arg| self.ty(arg).unwrap_or(UNKNOWN)).collect();
        if is_holder(name) {
            return args.first().copied().unwrap_or(UNKNOWN);
        }
        if matches!(name, "Func" | "function") {
            let result = args.last().copied().unwrap_or(UNKNOWN);
            return self.b.expr(SourceExpr::FunctionType(result));
        }
        let built_in = if is_list(name) {
            "[]"
        } else if is_map(name) {
            "{}"
        } else {
            return self.b.generic(base, &args);
        };
        let name = self.b.name(built_in);
        let base = self.b.expr(SourceExpr::Free(name));
        self.b.generic(base, &args)
    }

    pub fn list_of(&mut self, element: Option<ExprId>) -> Option<ExprId> {
        let element = element?;
        let name = self.b.name("[]");
        let base = self.b.expr(SourceExpr::Free(name));
        Some(self.b.generic(base, &[element]))
    }

    /// `a::b::C`, `A.B.C`, `A\B\C` as a path of members, without type arguments.
    pub fn path(&mut self, node: TreeNode<'t>) -> ExprId {
        let mut names: SmallVec<[&'t str; 4]> = SmallVec::new();
        self.path_names(node, &mut names);
        self.b.read_path(names)
    }

    pub fn path_names(&mut self, node: TreeNode<'t>, names: &mut SmallVec<[&'t str; 4]>) {
        self.deeper((), |reader| match node.kind() {
            "qualified_identifier"
            | "scope_resolution"
            | "qualified_name"
            | "alias_qualified_name"
            | "namespace_name"
            | "qualified_type_identifier"
            | "nested_namespace_specifier"
            | "dependent_name" => {
                let kids = reader.children(node);
                for kid in kids.named() {
                    reader.path_names(kid, names);
                }
            }
            "template_type" | "template_function" | "template_method" | "generic_name" => {
                if let Some(name) = reader.first(node) {
                    reader.path_names(name, names);
                }
            }
            _ => {
                let text = reader.text(node);
                if text != "global" {
                    names.push(text);
                }
            }
        });
    }

    /// The last name of a possibly qualified or generic one.
    pub fn last_name(&mut self, node: TreeNode<'t>) -> &'t str {
        let mut names: SmallVec<[&'t str; 4]> = SmallVec::new();
        self.path_names(node, &mut names);
        names.last().copied().unwrap_or("")
    }
}
