//! Rust: several impls of one type, and aliases of generic types.

use crate::facts::{DefKind, SourceExpr, VarKind};
use crate::resolve::eval::Eval;
use crate::resolve::{DefRef, PossibleValue};

/// Whether more than one inherent `impl` of a generic type has these methods. A type without parameters repeats a
/// name only for different platforms or features.
pub(super) fn is_in_several_impls(eval: &Eval<'_>, class: DefRef, attached: &[DefRef]) -> bool {
    let here = eval.file(class.file);
    if attached.len() < 2 {
        return false;
    }
    let generic = here.facts.vars.iter().any(|v| v.owner == class.def && v.what == VarKind::TypeParam);
    let written_in = |method: &DefRef| (method.file, eval.def(*method).receiver);
    let mut impls = attached.iter().filter(|m| eval.def(**m).through.is_none()).map(written_in);
    let first = impls.next();
    generic && impls.any(|other| Some(other) != first)
}

/// Whether an alias such as `type Result<T> = std::result::Result<T, Error>` names a generic type outside the
/// program, of which only the arguments are known.
pub(super) fn is_open_alias(eval: &mut Eval<'_>, alias: DefRef, levels: u8) -> bool {
    let here = eval.file(alias.file);
    let def = here.facts.def(alias.def);
    if def.kind != DefKind::Type {
        return false;
    }
    let Some(SourceExpr::Generic(of, _)) = def.result.map(|result| here.facts.expr(result)) else { return false };
    let of_several = crate::keys::type_name(&here.facts, of).is_some_and(|name| name == "()");
    let base = eval.expr(alias.file, of, alias.def, levels);
    !of_several && !base.values.iter().any(|(v, _)| matches!(v, PossibleValue::Class(_)))
}
