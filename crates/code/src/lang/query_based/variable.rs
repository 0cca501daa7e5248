//! Variables, constants and fields.

use super::QueryReader;
use crate::facts::{BindTarget, DefId, DefKind, ExprId, SourceExpr, UNKNOWN, flag};
use crate::tree::{NodeChildren, TreeNode};

impl<'t> QueryReader<'t> {
    /// Defines a variable of a file or type: a symbol and a variable for its value.
    pub fn variable(
        &mut self,
        name: &str,
        node: TreeNode<'t>,
        kids: &NodeChildren<'t>,
        ty: Option<ExprId>,
        value: Option<TreeNode<'t>>,
        flags: u32,
    ) -> DefId {
        let kind = if self.owner().type_like() { DefKind::Field } else { DefKind::Variable };
        let def = self.define(name, kind, node, kids);
        let d = self.b.def(def);
        d.flags |= flags;
        d.result = ty;
        let value = value.map_or(UNKNOWN, |value| self.used_as(value, ty));
        self.local(name, ty, value);
        def
    }

    /// Defines a constant of an enumeration, which is an instance of it.
    pub fn enum_constant(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let name = kids.field("name").or_else(|| kids.kind("identifier")).map_or("", |n| self.text(n));
        let def = self.variable(name, node, &kids, None, None, flag::CONSTANT | flag::STATIC);
        let owner = self.b.facts.def(def).parent;
        let of = self.b.expr(SourceExpr::Def(owner));
        let value = self.b.expr(SourceExpr::InstanceOf(of));
        let name = self.b.name(name);
        if let Some(var) = self.b.declared_in(self.b.scope, name) {
            self.b.bind(BindTarget::Var(var), value);
        }
    }
}
