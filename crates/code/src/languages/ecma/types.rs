//! Type annotations: the types that a value may be an instance of.

use super::Reader;
use crate::facts::{ExprId, SourceExpr, UNKNOWN, VarKind};
use crate::tree::{TreeNode, line};

impl<'t> Reader<'t> {
    pub(super) fn type_parameters(&mut self, node: Option<TreeNode<'t>>) {
        let Some(node) = node else { return };
        let kids = self.children(node);
        for kid in kids.named() {
            let inner = self.children(kid);
            let Some(name) = inner.field("name") else { continue };
            let name = self.b.name(self.text(name));
            let var = self.b.declare(name, VarKind::TypeParam, None);
            let bound = inner.field("constraint").map(|c| self.ty(c)).filter(|ty| *ty != UNKNOWN);
            self.b.facts.vars[var].ty = bound;
            if let Some(default) = inner.field("value") {
                self.ty(default);
            }
        }
    }

    /// The types among the children of a node, such as type arguments.
    pub(super) fn types(&mut self, node: TreeNode<'t>) -> Vec<ExprId> {
        let kids = self.children(node);
        kids.named().map(|kid| self.ty(kid)).collect()
    }

    pub(super) fn ty(&mut self, node: TreeNode<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.ty_inner(node))
    }

    fn ty_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        match node.kind() {
            "type_annotation"
            | "constraint"
            | "default_type"
            | "parenthesized_type"
            | "readonly_type"
            | "optional_type"
            | "rest_type"
            | "flow_maybe_type"
            | "opting_type_annotation"
            | "omitting_type_annotation"
            | "adding_type_annotation" => {
                let kids = self.children(node);
                kids.named().next().map_or(UNKNOWN, |n| self.ty(n))
            }
            "type_identifier" | "identifier" | "nested_type_identifier" | "nested_identifier" => {
                let value = self.type_name(node);
                self.b.uses(value, line(node));
                value
            }
            "this_type" => self.b.expr(SourceExpr::ThisType),
            "generic_type" => {
                let kids = self.children(node);
                let Some(name) = kids.field("name") else { return UNKNOWN };
                let args = kids.field("type_arguments").map_or(vec![], |args| self.types(args));
                self.generic_type(name, &args)
            }
            "array_type" => {
                let kids = self.children(node);
                let element = kids.named().next().map_or(UNKNOWN, |n| self.ty(n));
                self.built_in("[]", &[element])
            }
            "tuple_type" => {
                let parts = self.types(node);
                self.built_in("()", &parts)
            }
            "required_parameter" | "optional_parameter" => {
                let kids = self.children(node);
                kids.field("type").map_or(UNKNOWN, |ty| self.ty(ty))
            }
            "union_type" | "intersection_type" => {
                // Long unions nest to the left: follow the left operands in a loop.
                let mut parts = Vec::new();
                let mut spine = Some(node);
                while let Some(at) = spine.take() {
                    let kids = self.children(at);
                    for kid in kids.named().rev() {
                        if kid.kind() == node.kind() && spine.is_none() {
                            spine = Some(kid);
                        } else {
                            parts.push(self.ty(kid));
                        }
                    }
                }
                parts.reverse();
                self.b.either(&parts)
            }
            "function_type" | "constructor_type" | "call_signature" | "construct_signature" | "method_signature" => {
                self.function_type(node)
            }
            // `import("x").T`
            "member_expression" => {
                let kids = self.children(node);
                let (Some(object), Some(property)) = (kids.field("object"), kids.field("property")) else {
                    return UNKNOWN;
                };
                let object = self.ty(object);
                if object == UNKNOWN {
                    return UNKNOWN;
                }
                let value = self.b.member(object, self.text(property));
                self.b.uses(value, line(node));
                value
            }
            "call_expression" => self.for_types(|reader| reader.value(node)),
            "type_query" => {
                let kids = self.children(node);
                self.for_types(|reader| {
                    for kid in kids.named() {
                        reader.used(kid);
                    }
                });
                UNKNOWN
            }
            "type_predicate" => {
                let kids = self.children(node);
                if let Some(ty) = kids.field("type") {
                    self.ty(ty);
                }
                UNKNOWN
            }
            "asserts" => {
                let kids = self.children(node);
                if let Some(predicate) = kids.kind("type_predicate") {
                    self.ty(predicate);
                }
                UNKNOWN
            }
            "infer_type" => {
                let kids = self.children(node);
                for kid in kids.named().skip(1) {
                    self.ty(kid);
                }
                UNKNOWN
            }
            "index_signature" => self.index_signature(node),
            "predefined_type"
            | "literal_type"
            | "existential_type"
            | "comment"
            | "property_identifier"
            | "string"
            | "number"
            | "computed_property_name"
            | "private_property_identifier" => UNKNOWN,
            // Object, mapped, conditional and lookup types: the names inside are read, the result is unknown.
            _ => {
                let kids = self.children(node);
                for kid in kids.named() {
                    self.ty(kid);
                }
                UNKNOWN
            }
        }
    }

    /// Marks imports that occur meanwhile as imports of types only.
    fn for_types<R>(&mut self, read: impl FnOnce(&mut Self) -> R) -> R {
        let imports = self.b.facts.imports.len();
        let result = read(self);
        for import in self.b.facts.imports.iter_mut().skip(imports) {
            import.type_only = true;
        }
        result
    }

    /// `[key: K]: V` and `[K in Keys]: V`.
    fn index_signature(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let before = self.b.open_scope();
        if let Some(mapped) = kids.kind("mapped_type_clause") {
            let inner = self.children(mapped);
            if let Some(name) = inner.field("name") {
                let name = self.b.name(self.text(name));
                self.b.declare(name, VarKind::TypeParam, None);
            }
            for field in ["type", "alias"] {
                if let Some(ty) = inner.field(field) {
                    self.ty(ty);
                }
            }
        }
        for field in ["index_type", "type"] {
            if let Some(ty) = kids.field(field) {
                self.ty(ty);
            }
        }
        self.b.close_scope(before);
        UNKNOWN
    }

    pub(super) fn function_type(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let before = self.b.open_scope();
        self.type_parameters(kids.field("type_parameters"));
        let mut takes = Vec::new();
        if let Some(parameters) = kids.field("parameters") {
            let inner = self.children(parameters);
            for kid in inner.named() {
                let parts = self.children(kid);
                let ty = parts.field("type").map_or(UNKNOWN, |ty| self.ty(ty));
                match parts.field("pattern").map(|pattern| pattern.kind()) {
                    Some("this") | None => {}
                    // From here on, the arguments are elements of the list.
                    Some("rest_pattern") => break,
                    Some(_) => takes.push(ty),
                }
            }
        }
        let result = kids.field("return_type").or_else(|| kids.field("type")).map_or(UNKNOWN, |ty| self.ty(ty));
        self.b.close_scope(before);
        let function = self.b.expr(SourceExpr::FunctionType(result));
        if takes.iter().all(|ty| *ty == UNKNOWN) { function } else { self.b.generic(function, &takes) }
    }

    fn type_name(&mut self, node: TreeNode<'t>) -> ExprId {
        self.b.read_path(self.text(node).split('.').map(str::trim))
    }

    /// A type with arguments. Containers and utility types of the standard library are mapped to builtin collections or
    /// to their argument.
    pub(super) fn generic_type(&mut self, name: TreeNode<'t>, args: &[ExprId]) -> ExprId {
        let text = self.text(name);
        let known = match (text, args) {
            ("Array" | "ReadonlyArray" | "Set" | "ReadonlySet" | "WeakSet", [one]) => Some(("[]", [*one].to_vec())),
            ("Map" | "ReadonlyMap" | "WeakMap" | "Record", [key, value]) => Some(("{}", [*key, *value].to_vec())),
            ("Partial" | "Required" | "Readonly" | "NonNullable" | "Pick" | "Omit", [first, ..]) => {
                Some(("", [*first].to_vec()))
            }
            _ => None,
        };
        if let Some((holder, args)) = known {
            let declared = self.b.name(text);
            if self.b.find(self.b.scope, declared).is_none() {
                return if holder.is_empty() { args[0] } else { self.built_in(holder, &args) };
            }
        }
        let base = match name.kind() {
            // `import("x").T`
            "member_expression" => self.ty(name),
            _ => {
                let base = self.type_name(name);
                self.b.uses(base, line(name));
                base
            }
        };
        if base == UNKNOWN { UNKNOWN } else { self.b.generic(base, args) }
    }

    fn built_in(&mut self, name: &str, args: &[ExprId]) -> ExprId {
        let name = self.b.name(name);
        let base = self.b.expr(SourceExpr::Free(name));
        self.b.generic(base, args)
    }
}
