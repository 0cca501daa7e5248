//! Names without a receiver, in languages where an enclosing type may provide one.

use crate::builder::{Builder, ScopeId};
use crate::facts::{DefId, DefKind, ExprId, NameId, ROOT, SourceExpr, VarKind};

/// Names read without a receiver, each with the scope and the definition that contain it. `settle` and the resolver
/// decide what they refer to.
#[derive(Default)]
pub(crate) struct BareNames(Vec<(ExprId, ScopeId, DefId, NameId)>);

impl BareNames {
    pub fn read(&mut self, b: &mut Builder<'_>, name: &str) -> ExprId {
        let name = b.name(name);
        let expr = b.expr(SourceExpr::Free(name));
        self.0.push((expr, b.scope, b.owner, name));
        expr
    }

    /// Resolves the names to locals, imports, types and, outside of types, functions of the file. A member may be
    /// inherited or overridden, so its name stays free.
    pub fn settle(self, b: &mut Builder<'_>) {
        for (expr, scope, written_in, name) in self.0 {
            let Some(var) = b.find(scope, name) else { continue };
            let found = &b.facts.vars[var];
            let owner = b.facts.def(found.owner).kind;
            let known = match found.what {
                VarKind::Def(def) => {
                    let kind = b.facts.def(def).kind;
                    kind.type_like() || owner.callable() || (owner == DefKind::File && !in_type(b, written_in))
                }
                VarKind::Import(_) | VarKind::TypeParam => true,
                _ => owner.callable(),
            };
            if known {
                b.facts.exprs[expr] = SourceExpr::Var(var);
            }
        }
    }
}

fn in_type(b: &Builder<'_>, def: DefId) -> bool {
    let mut at = def;
    while at != ROOT {
        let def = b.facts.def(at);
        if def.kind.type_like() || def.receiver.is_some() || def.kind == DefKind::Module {
            return true;
        }
        at = def.parent;
    }
    false
}
