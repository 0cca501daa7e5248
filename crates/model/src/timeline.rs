//! Visibility: which version of a fact holds on a lineage, at a time or over a period.

use crate::branch::Lineage;
use crate::id::VersionId;
use crate::time::{Period, Time};
use crate::version::Version;

/// A piece of valid time and the version that holds there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment<'a> {
    /// The part of the version's own period in which no other version precedes it.
    pub period: Period,
    pub statement: &'a Version,
}

/// Returns the version of a fact that holds at `at`, content or absence. `statements` contains all versions of the
/// fact, ordered by branch and version.
pub fn holding<'a>(statements: &'a [Version], lineage: &Lineage, at: Time) -> Option<&'a Version> {
    by_precedence(statements, lineage).find(|s| s.period.holds(at))
}

/// Like `holding`, but `None` for absence.
pub fn visible<'a>(statements: &'a [Version], lineage: &Lineage, at: Time) -> Option<&'a Version> {
    holding(statements, lineage, at).filter(|s| !s.absent)
}

/// Returns which version holds when inside `window`, in time order. Periods without a version are omitted.
pub fn timeline<'a>(statements: &'a [Version], lineage: &Lineage, window: Period) -> Vec<Segment<'a>> {
    if statements.is_empty() {
        return Vec::new();
    }
    let mut open = vec![window];
    let mut found = Vec::new();
    for statement in by_precedence(statements, lineage) {
        if open.is_empty() {
            break;
        }
        let mut left = Vec::with_capacity(open.len());
        for piece in open {
            match piece.intersect(&statement.period) {
                None => left.push(piece),
                Some(period) => {
                    found.push(Segment { period, statement });
                    left.extend(piece.minus(&period));
                }
            }
        }
        open = left;
    }
    found.sort_by_key(|s| s.period);
    found
}

/// Whether the fact has content anywhere inside `window`.
pub fn has_content(statements: &[Version], lineage: &Lineage, window: Period) -> bool {
    match by_precedence(statements, lineage).next() {
        None => false,
        // Fast path: usually the version with the highest precedence covers the whole window.
        Some(first) if first.period.from <= window.from && window.to <= first.period.to => !first.absent,
        Some(_) => timeline(statements, lineage, window).iter().any(|s| !s.statement.absent),
    }
}

/// Returns the next moment after `after` at which another version may begin to hold; `Time::MAX` when there is none.
pub fn next_border(statements: &[Version], lineage: &Lineage, after: Time) -> Time {
    by_precedence(statements, lineage)
        .flat_map(|s| [s.period.from, s.period.to])
        .filter(|border| *border > after)
        .min()
        .unwrap_or(Time::MAX)
}

/// Iterates over visible versions in order of precedence: nearest branch first, then the latest recorded.
fn by_precedence<'a>(statements: &'a [Version], lineage: &Lineage) -> impl Iterator<Item = &'a Version> {
    debug_assert!(statements.is_sorted_by_key(|s| (s.branch, s.version)));
    lineage.entries().iter().flat_map(move |&(branch, cap)| {
        let last = VersionId::last_of(cap);
        let from = statements.partition_point(|s| s.branch < branch);
        let to = statements.partition_point(|s| (s.branch, s.version) <= (branch, last));
        statements[from..to.max(from)].iter().rev()
    })
}

/// Returns the highest version number along a lineage.
pub fn last_number(statements: &[Version], lineage: &Lineage) -> u32 {
    by_precedence(statements, lineage).map(|s| s.number).max().unwrap_or(0)
}

/// Returns the recording time at which later versions on the same branch had replaced a version for its whole period.
pub fn superseded_at(statements: &[Version], version: VersionId) -> Option<Time> {
    let this = statements.iter().find(|s| s.version == version)?;
    let mut open = vec![this.period];
    for later in statements.iter().filter(|s| s.branch == this.branch && s.version > version) {
        open = open.iter().flat_map(|piece| piece.minus(&later.period)).collect();
        if open.is_empty() {
            return Some(later.recorded_at);
        }
    }
    None
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::branch::{Branch, BranchMode};
    use crate::content::ABSENT;
    use crate::id::{BranchNo, FactNo, MAIN, PROJECT_WIDE, Tx};
    use crate::json::Hash;
    use proptest::prelude::*;

    pub fn statement(branch: u32, tx: u64, from: i64, to: i64, content: Option<u8>) -> Version {
        Version {
            thing: FactNo(1),
            branch: BranchNo(branch),
            version: VersionId::new(Tx(tx), 0),
            recorded_at: Time(tx as i64),
            period: Period { from: Time(from), to: Time(to) },
            number: tx as u32,
            parents: vec![],
            hash: content.map_or(ABSENT, |c| Hash::of(&[c])),
            absent: content.is_none(),
            content: content.map(|c| format!("{{\"title\":\"{c}\"}}").into()),
            change: None,
        }
    }

    /// main(1) <- 2 pinned at 6 <- 3 live.
    pub fn branches(number: BranchNo, _: Tx) -> Option<Branch> {
        let (parent, mode, fork) = match number.0 {
            1 => (None, BranchMode::Live, Tx(0)),
            2 => (Some(BranchNo(1)), BranchMode::Pinned, Tx(6)),
            3 => (Some(BranchNo(2)), BranchMode::Live, Tx(0)),
            _ => return None,
        };
        Some(Branch { number, parent, mode, fork, ..Branch::main() })
    }

    /// A direct transcription of the visibility rule, scanning all versions.
    fn naive(all: &[Version], branch: BranchNo, known: Tx, at: Time) -> Option<&Version> {
        let on = |b, t| {
            all.iter().filter(|s| s.branch == b && s.version.tx() <= t && s.period.holds(at)).max_by_key(|s| s.version)
        };
        let mut next = Some((branch, known));
        while let Some((b, t)) = next {
            if let Some(found) = on(b, t) {
                return Some(found);
            }
            let here = branches(b, t)?;
            next = here.parent.map(|p| (p, if here.mode == BranchMode::Pinned { t.min(here.fork) } else { t }));
        }
        on(PROJECT_WIDE, known)
    }

    fn statements() -> impl Strategy<Value = Vec<Version>> {
        let one = (0u32..=3, 0i64..12, 1i64..12, prop::option::of(0u8..3), any::<bool>());
        prop::collection::vec(one, 0..12).prop_map(|list| {
            let mut all: Vec<_> = list
                .into_iter()
                .enumerate()
                .map(|(i, (branch, from, len, content, open))| {
                    let to = if open { i64::MAX } else { from + len };
                    statement(branch, i as u64 + 1, from, to, content)
                })
                .collect();
            all.sort_by_key(|s| (s.branch, s.version));
            all
        })
    }

    proptest! {
        #[test]
        fn visibility_equals_a_naive_scan(all in statements(), branch in 1u32..=3, known in 0u64..13, at in -1i64..26) {
            let lineage = Lineage::of(BranchNo(branch), Tx(known), branches).unwrap();
            let want = naive(&all, BranchNo(branch), Tx(known), Time(at));
            prop_assert_eq!(holding(&all, &lineage, Time(at)), want);
            prop_assert_eq!(visible(&all, &lineage, Time(at)), want.filter(|s| !s.absent));
        }

        #[test]
        fn a_timeline_agrees_with_every_moment(all in statements(), branch in 1u32..=3, known in 0u64..13) {
            let lineage = Lineage::of(BranchNo(branch), Tx(known), branches).unwrap();
            let line = timeline(&all, &lineage, Period::ALWAYS);
            prop_assert!(line.windows(2).all(|w| w[0].period.to <= w[1].period.from));
            for at in -1..26 {
                let here = line.iter().find(|s| s.period.holds(Time(at))).map(|s| s.statement);
                prop_assert_eq!(here, naive(&all, BranchNo(branch), Tx(known), Time(at)));
            }
        }

        #[test]
        fn is_there_agrees_with_the_timeline(
            all in statements(), branch in 1u32..=3, known in 0u64..13, from in -1i64..26, len in 1i64..26
        ) {
            let lineage = Lineage::of(BranchNo(branch), Tx(known), branches).unwrap();
            let window = Period { from: Time(from), to: Time(from + len) };
            let some = timeline(&all, &lineage, window).iter().any(|s| !s.statement.absent);
            prop_assert_eq!(has_content(&all, &lineage, window), some);
        }

        #[test]
        fn nothing_changes_before_the_next_border(all in statements(), branch in 1u32..=3, known in 0u64..13, at in -1i64..26) {
            let lineage = Lineage::of(BranchNo(branch), Tx(known), branches).unwrap();
            let next = next_border(&all, &lineage, Time(at));
            for later in (at..26).take_while(|t| Time(*t) < next) {
                prop_assert_eq!(holding(&all, &lineage, Time(later)), holding(&all, &lineage, Time(at)));
            }
        }

        #[test]
        fn a_view_never_changes_as_the_log_grows(all in statements(), known in 0u64..13, at in 0i64..26) {
            let lineage = Lineage::of(BranchNo(3), Tx(known), branches).unwrap();
            let then: Vec<_> = all.iter().filter(|s| s.version.tx() <= Tx(known)).cloned().collect();
            prop_assert_eq!(holding(&all, &lineage, Time(at)), holding(&then, &lineage, Time(at)));
        }

        #[test]
        fn superseded_when_it_holds_nowhere_on_its_branch(all in statements()) {
            for s in &all {
                let own: Vec<_> = all.iter().filter(|o| o.branch == s.branch).cloned().collect();
                let only = Lineage::of(MAIN, Tx(99), |n, _| (n == MAIN).then(Branch::main)).unwrap();
                let moved: Vec<_> = own.iter().map(|o| Version { branch: MAIN, ..o.clone() }).collect();
                let holds = timeline(&moved, &only, Period::ALWAYS).iter().any(|g| g.statement.version == s.version);
                prop_assert_eq!(superseded_at(&all, s.version).is_none(), holds);
            }
        }
    }
}
