//! Types: references to them, in annotations and clauses.

use super::Reader;
use crate::facts::{ExprId, SourceExpr, UNKNOWN};
use crate::tree::{NodeChildren, TreeNode};

impl<'t> Reader<'t> {
    /// The type after the colon of an annotation.
    pub(super) fn annotated(&mut self, kids: &NodeChildren<'t>) -> Option<ExprId> {
        let annotation = kids.kind("type_annotation")?;
        let kids = self.children(annotation);
        self.first_type(&kids)
    }

    /// The first child that is a type.
    pub(super) fn first_type(&mut self, kids: &NodeChildren<'t>) -> Option<ExprId> {
        let node = kids.named().find(|kid| is_type(kid.kind()))?;
        self.ty(node)
    }

    pub(super) fn ty(&mut self, node: TreeNode<'t>) -> Option<ExprId> {
        let read = self.deeper(UNKNOWN, |reader| reader.type_inner(node));
        (read != UNKNOWN).then_some(read)
    }

    fn type_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        match node.kind() {
            "type_identifier" | "simple_identifier" => self.b.read(self.text(node)),
            "user_type" => {
                let names: Vec<&str> =
                    kids.named().filter(|kid| kid.kind() == "type_identifier").map(|kid| self.text(kid)).collect();
                if names == ["Self"] {
                    return self.b.expr(SourceExpr::ThisType);
                }
                let of = self.b.read_path(names);
                let Some(list) = kids.kind("type_arguments") else { return of };
                let list = self.children(list);
                let args: Vec<ExprId> = list.named().map(|arg| self.type_inner(arg)).collect();
                self.b.generic(of, &args)
            }
            "array_type" => {
                let element = self.first_type(&kids).unwrap_or(UNKNOWN);
                self.built_in("[]", &[element])
            }
            "dictionary_type" => {
                let parts: Vec<ExprId> =
                    kids.named().filter(|kid| is_type(kid.kind())).map(|kid| self.type_inner(kid)).collect();
                self.built_in("{}", &parts)
            }
            "function_type" => {
                let result = kids.named().rfind(|kid| is_type(kid.kind()));
                let result = result.map_or(UNKNOWN, |result| self.type_inner(result));
                self.b.expr(SourceExpr::FunctionType(result))
            }
            "tuple_type" => {
                let parts: Vec<ExprId> = kids
                    .named()
                    .filter(|kid| kid.kind() == "tuple_type_item")
                    .map(|item| {
                        let kids = self.children(item);
                        self.first_type(&kids).unwrap_or(UNKNOWN)
                    })
                    .collect();
                match parts.as_slice() {
                    [] => UNKNOWN,
                    [one] => *one,
                    _ => self.built_in("()", &parts),
                }
            }
            // `T?`, `any P`, `some P`, `P & Q`: the first type in it.
            _ => self.first_type(&kids).unwrap_or(UNKNOWN),
        }
    }

    fn built_in(&mut self, name: &str, args: &[ExprId]) -> ExprId {
        let name = self.b.name(name);
        let of = self.b.expr(SourceExpr::Free(name));
        self.b.generic(of, args)
    }
}

pub(super) fn is_type(kind: &str) -> bool {
    matches!(
        kind,
        "user_type"
            | "array_type"
            | "dictionary_type"
            | "optional_type"
            | "function_type"
            | "tuple_type"
            | "existential_type"
            | "opaque_type"
            | "metatype"
            | "protocol_composition_type"
            | "type_identifier"
    )
}
