//! Restricts targets to reachable code: non-test code does not reach tests, and a build does not reach files of others.

use super::eval::Eval;
use super::value::{DefRef, Derivation, InternedStr, PossibleValue, ValueSet};
use crate::languages::rules::Modules;

impl Eval<'_> {
    /// Whether a definition is a test or part of one.
    pub(super) fn is_test(&self, gid: DefRef) -> bool {
        self.link.is_test_file(gid.file) || self.file(gid.file).is_in_test(gid.def)
    }

    /// Whether one definition can depend on another: non-test code does not depend on tests.
    pub(super) fn can_depend(&self, from: DefRef, to: DefRef) -> bool {
        !self.is_test(to) || self.is_test(from)
    }

    /// Keeps the targets that a call in this definition can run.
    pub(super) fn keep_reachable(&self, from: DefRef, targets: &mut ValueSet) {
        let several = possible(targets).count() > 1;
        targets.values.retain(|(value, _)| definition(value).is_none_or(|to| self.can_depend(from, to)));
        if self.file(from.file).rules.modules == Modules::Folders {
            self.keep_built_with(from, targets);
        }
        // If only one of several candidates is left, it is no longer ambiguous.
        let mut left = possible(targets);
        if let (true, Some(only), None) = (several, left.next(), left.next()) {
            *only = Derivation::Dispatch;
        }
    }

    /// Keeps the targets in the build in which the file is analyzed, for each name that has one there.
    fn keep_built_with(&self, from: DefRef, targets: &mut ValueSet) {
        let here = self.file(from.file);
        let is_built = |to: DefRef| self.file(to.file).is_built_with(here);
        if targets.values.iter().all(|(value, _)| definition(value).is_none_or(is_built)) {
            return;
        }
        let mut kept = ValueSet { too_many: targets.too_many, ..ValueSet::default() };
        for (value, how) in &targets.values {
            let other = definition(value).filter(|to| !is_built(*to)).and_then(|to| self.in_build_of(from.file, to));
            let value = match (value, other) {
                (PossibleValue::Func(_), Some(other)) => PossibleValue::Func(other),
                (PossibleValue::Method(_, receiver), Some(other)) => PossibleValue::Method(other, *receiver),
                _ => *value,
            };
            kept.add(value, *how);
        }
        let name = |to: DefRef| self.file(to.file).sym(self.def(to).name);
        let built: Vec<InternedStr> =
            kept.values.iter().filter_map(|(v, _)| definition(v)).filter(|to| is_built(*to)).map(name).collect();
        kept.values.retain(|(v, _)| definition(v).is_none_or(|to| is_built(to) || !built.contains(&name(to))));
        *targets = kept;
    }
}

/// The targets whose derivation is `Possible`: candidates among others.
fn possible(targets: &mut ValueSet) -> impl Iterator<Item = &mut Derivation> {
    targets.values.iter_mut().map(|(_, how)| how).filter(|how| **how == Derivation::Possible)
}

fn definition(value: &PossibleValue) -> Option<DefRef> {
    match value {
        PossibleValue::Func(gid) | PossibleValue::Method(gid, _) | PossibleValue::Class(gid) => Some(*gid),
        _ => None,
    }
}
