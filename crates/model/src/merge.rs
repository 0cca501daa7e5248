//! Merges one fact from a source branch into a target branch: merge bases, classification, conflicts, writes.

use crate::branch::Lineage;
use crate::content::{ABSENT, Content};
use crate::id::VersionId;
use crate::json::rule::present;
use crate::json::{Hash, canonical};
use crate::three_way::{self, MergeStrategies, PathConflict};
use crate::time::{Period, Time};
use crate::timeline::{Segment, timeline};
use crate::version::{MergeRole, Provenance, Version};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeClass {
    Unchanged,
    Added,
    FastForward,
    Merged,
    Conflict,
}

/// The result of merging one fact.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeOutcome {
    /// The most far-reaching of the classes of all periods.
    pub class: MergeClass,
    /// In time order; empty if there are conflicts.
    pub writes: Vec<MergeWrite>,
    /// Provenance to record for versions that already agree.
    pub record: Vec<(VersionId, VersionId, MergeRole)>,
    /// Paths that both sides changed differently.
    pub conflicts: Vec<PathConflict>,
}

/// A version to write on the target, for one period.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeWrite {
    pub period: Period,
    /// Canonical content; `None` is absence.
    pub content: Option<Box<str>>,
    /// The hash of `content`.
    pub hash: Hash,
    /// The version of the source that is applied.
    pub source: VersionId,
    /// The version of the target that it overrides, if there is one.
    pub target: Option<VersionId>,
    /// The nearest common ancestors of both, oldest first; empty if they have none.
    pub bases: Vec<VersionId>,
}

/// Merges one fact. `statements` contains all its versions, on every branch, with content.
pub fn merge_fact(
    statements: &[Version],
    provenance: &[Provenance],
    source: &Lineage,
    target: &Lineage,
    now: Time,
    strategies: &MergeStrategies,
) -> MergeOutcome {
    let mut ancestry = Ancestry::of(statements, provenance);
    let ours = timeline(statements, target, Period::ALWAYS);
    let theirs = timeline(statements, source, Period::ALWAYS);
    let pieces = zip(&theirs, &ours);
    let mut record = Vec::new();
    let mut outcome = loop {
        let mut outcome =
            MergeOutcome { class: MergeClass::Unchanged, writes: vec![], record: vec![], conflicts: vec![] };
        // A source version taken at `now` is taken for its whole period, so the piece that contains `now` is decided
        // first.
        let mut taken = None;
        for at_now in [true, false] {
            for (period, s, t) in pieces.iter().filter(|(period, ..)| period.holds(now) == at_now) {
                if t.is_none_or(|t| t.version != s.version) {
                    let piece = Piece { period: *period, s, t: *t, now, taken };
                    merge_piece(&ancestry, &piece, strategies, &mut outcome);
                }
            }
            if at_now && matches!(outcome.class, MergeClass::Added | MergeClass::FastForward) {
                taken = outcome.writes.first().map(|write| write.source);
            }
        }
        outcome.writes.sort_by_key(|write| write.period);
        // Agreement found in one period is an ancestor for the others, so the merge repeats until no more is found.
        for (child, parent, role) in std::mem::take(&mut outcome.record) {
            if ancestry.add(child, parent) {
                record.push((child, parent, role));
                outcome.record.push((child, parent, role));
            }
        }
        if outcome.record.is_empty() {
            break outcome;
        }
    };
    join_neighbours(&mut outcome.writes);
    if outcome.conflicts.is_empty() {
        outcome.record = record;
    } else {
        outcome.class = MergeClass::Conflict;
        outcome.writes.clear();
    }
    outcome
}

/// A piece of valid time in which neither side changes.
struct Piece<'a> {
    period: Period,
    s: &'a Version,
    t: Option<&'a Version>,
    now: Time,
    /// The source version that was taken at `now`.
    taken: Option<VersionId>,
}

fn merge_piece(ancestry: &Ancestry<'_>, piece: &Piece<'_>, strategies: &MergeStrategies, outcome: &mut MergeOutcome) {
    let Piece { period, s, t, now, taken } = *piece;
    let mut remember = |t: &Version| {
        if !ancestry.related(s.version, t.version) {
            outcome.record.push((t.version, s.version, MergeRole::Source));
        }
    };
    // An ordinary edit (one that holds at `now`) does not change the target's history: where the target has a version
    // for another time, that version stays. If the target wrote it for that time only, it is recorded as merged with
    // the source.
    let ordinary = s.period.holds(now) && !period.holds(now);
    if let Some(t) = t
        && ordinary
        && taken != Some(s.version)
    {
        if !t.period.holds(now) && t.present_hash() != s.present_hash() {
            remember(t);
        }
        return;
    }
    let bases = t.map_or_else(Vec::new, |t| ancestry.bases(s.version, t.version));
    let (source_hash, target_hash) = (s.present_hash(), t.map_or(ABSENT, Version::present_hash));
    // Without a common ancestor, the base is empty.
    let equals_every_base = |hash: Hash| {
        if bases.is_empty() { hash == ABSENT } else { bases.iter().all(|base| ancestry.hash(*base) == hash) }
    };
    if source_hash == target_hash {
        return t.into_iter().for_each(remember);
    }
    let mut write = |class: MergeClass, content: Option<Box<str>>, hash: Hash| {
        outcome.class = outcome.class.max(class);
        let (source, target) = (s.version, t.map(|t| t.version));
        outcome.writes.push(MergeWrite { period, content, hash, source, target, bases: bases.clone() });
    };
    if equals_every_base(target_hash) {
        let class = if t.is_none() { MergeClass::Added } else { MergeClass::FastForward };
        return write(class, s.content.as_deref().map(|text| present(text).into()), source_hash);
    }
    if equals_every_base(source_hash) || (ordinary && t.is_some_and(|t| t.period.holds(now))) {
        return;
    }
    let whole = |outcome: &mut MergeOutcome| {
        outcome.conflicts.push(PathConflict {
            path: String::new(),
            base: bases.first().and_then(|base| ancestry.value(*base)),
            ours: t.and_then(value),
            theirs: value(s),
        });
    };
    // Both sides changed a period other than the present, or one side ended what the other changed.
    let (true, Some(theirs), Some(ours)) = (period.holds(now), value(s), t.and_then(value)) else {
        return whole(outcome);
    };
    let base_values: Vec<Value> =
        bases.iter().map(|base| ancestry.value(*base).unwrap_or_else(|| Value::Object(Default::default()))).collect();
    let whole = |mut value: Value| {
        // Content omits an empty `properties` map; it must not look as if it had been removed.
        if let Some(map) = value.as_object_mut() {
            map.entry("properties").or_insert_with(|| Value::Object(Default::default()));
        }
        value
    };
    let base_values: Vec<Value> = base_values.into_iter().map(whole).collect();
    match three_way::merge(&base_values, &whole(ours), &whole(theirs), strategies) {
        Err(clashes) => outcome.conflicts.extend(clashes),
        Ok(merged) => {
            let text = serde_json::from_value::<Content>(merged.clone())
                .map_or_else(|_| canonical(&merged), |content| content.canonical());
            let hash = Hash::of(text.as_bytes());
            write(MergeClass::Merged, Some(text.into()), hash);
        }
    }
}

/// Splits valid time into pieces where the source has a version, each with the target's version there, if any.
fn zip<'a>(theirs: &[Segment<'a>], ours: &[Segment<'a>]) -> Vec<(Period, &'a Version, Option<&'a Version>)> {
    let mut pieces = Vec::new();
    for source in theirs {
        let mut open = vec![source.period];
        for target in ours {
            if let Some(period) = source.period.intersect(&target.period) {
                pieces.push((period, source.statement, Some(target.statement)));
                open = open.iter().flat_map(|piece| piece.minus(&period)).collect();
            }
        }
        pieces.extend(open.into_iter().map(|period| (period, source.statement, None)));
    }
    pieces.sort_by_key(|(period, ..)| *period);
    pieces
}

fn join_neighbours(writes: &mut Vec<MergeWrite>) {
    writes.dedup_by(|next, kept| {
        let joined = kept.period.to == next.period.from
            && kept.hash == next.hash
            && kept.source == next.source
            && kept.target == next.target;
        if joined {
            kept.period.to = next.period.to;
        }
        joined
    });
}

fn value(statement: &Version) -> Option<Value> {
    statement.content.as_deref().and_then(|text| serde_json::from_str(text).ok())
}

/// The ancestry graph of one fact's versions: parents and merge provenance.
struct Ancestry<'a> {
    statements: FxHashMap<VersionId, &'a Version>,
    parents: FxHashMap<VersionId, Vec<VersionId>>,
}

impl<'a> Ancestry<'a> {
    fn of(statements: &'a [Version], provenance: &[Provenance]) -> Ancestry<'a> {
        let parents = statements.iter().map(|s| (s.version, s.parents.clone())).collect();
        let mut ancestry = Ancestry { statements: statements.iter().map(|s| (s.version, s)).collect(), parents };
        for p in provenance {
            ancestry.add(p.child, p.parent);
        }
        ancestry
    }

    /// Returns false if the parent was already recorded.
    fn add(&mut self, child: VersionId, parent: VersionId) -> bool {
        let parents = self.parents.entry(child).or_default();
        let new = !parents.contains(&parent);
        if new {
            parents.push(parent);
        }
        new
    }

    /// Returns the ancestors of a version, including itself.
    fn ancestors(&self, of: VersionId) -> FxHashSet<VersionId> {
        let mut seen = FxHashSet::default();
        let mut open = vec![of];
        while let Some(version) = open.pop() {
            if seen.insert(version) {
                open.extend(self.parents.get(&version).into_iter().flatten());
            }
        }
        seen
    }

    fn related(&self, a: VersionId, b: VersionId) -> bool {
        self.ancestors(a).contains(&b) || self.ancestors(b).contains(&a)
    }

    /// Returns the common ancestors that are not ancestors of another common ancestor, oldest first.
    fn bases(&self, a: VersionId, b: VersionId) -> Vec<VersionId> {
        let common: Vec<_> = self.ancestors(a).intersection(&self.ancestors(b)).copied().collect();
        // All ancestors of a common ancestor are common, so it is enough to check direct parents.
        let above: FxHashSet<_> = common.iter().filter_map(|version| self.parents.get(version)).flatten().collect();
        let mut bases: Vec<_> = common.into_iter().filter(|version| !above.contains(version)).collect();
        bases.sort_unstable();
        bases
    }

    fn hash(&self, version: VersionId) -> Hash {
        self.statements.get(&version).map_or(ABSENT, |s| s.present_hash())
    }

    fn value(&self, version: VersionId) -> Option<Value> {
        self.statements.get(&version).and_then(|s| value(s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::branch::{Branch, BranchMode};
    use crate::id::{BranchNo, FactNo, MAIN, Tx};

    /// Branches 2 and 3 are pinned to main at transaction 1.
    fn line(branch: u32) -> Lineage {
        Lineage::of(BranchNo(branch), Tx(99), |number, _| {
            let parent = (number != MAIN).then_some(MAIN);
            let mode = if number == MAIN { BranchMode::Live } else { BranchMode::Pinned };
            Some(Branch { number, parent, mode, fork: Tx(1), ..Branch::main() })
        })
        .unwrap()
    }

    fn version_of(branch: u32, tx: u64, parents: &[u64], content: Option<&str>) -> Version {
        let text = content.map(|c| canonical(&serde_json::from_str(c).unwrap()));
        Version {
            thing: FactNo(1),
            branch: BranchNo(branch),
            version: VersionId::new(Tx(tx), 0),
            recorded_at: Time(tx as i64),
            period: Period::since(Time(tx as i64)),
            number: tx as u32,
            parents: parents.iter().map(|p| VersionId::new(Tx(*p), 0)).collect(),
            hash: text.as_ref().map_or(ABSENT, |t| Hash::of(t.as_bytes())),
            absent: content.is_none(),
            content: text.map(Into::into),
            change: None,
        }
    }

    fn from(child: u64, parent: u64) -> Provenance {
        Provenance {
            thing: FactNo(1),
            child: VersionId::new(Tx(child), 0),
            parent: VersionId::new(Tx(parent), 0),
            role: MergeRole::Source,
        }
    }

    /// Merges branch 2 into branch 3 and compares the class, and the newest content or the conflicting paths.
    fn check(mut all: Vec<Version>, provenance: &[Provenance], want: (MergeClass, &str)) {
        all.sort_by_key(|s| (s.branch, s.version));
        let got = merge_fact(&all, provenance, &line(2), &line(3), Time(50), &MergeStrategies::new());
        let shown = match got.class {
            MergeClass::Conflict => got.conflicts.iter().map(|c| c.path.as_str()).collect::<Vec<_>>().join(" "),
            _ => got.writes.last().map_or_else(
                || got.record.iter().map(|(c, p, _)| format!("{c}<-{p}")).collect(),
                |w| w.content.as_deref().unwrap_or("absent").to_string(),
            ),
        };
        assert_eq!((got.class, shown.as_str()), want);
    }

    const A: Option<&str> = Some(r#"{"properties":{"x":1,"y":1}}"#);
    const X2: Option<&str> = Some(r#"{"properties":{"x":2,"y":1}}"#);
    const X3: Option<&str> = Some(r#"{"properties":{"x":3,"y":1}}"#);
    const Y2: Option<&str> = Some(r#"{"properties":{"x":1,"y":2}}"#);

    #[test]
    fn classes() {
        use MergeClass::{Added, Conflict, FastForward, Merged, Unchanged};
        check(vec![version_of(1, 1, &[], A)], &[], (Unchanged, ""));
        check(vec![version_of(2, 2, &[], A)], &[], (Added, A.unwrap()));
        check(vec![version_of(1, 1, &[], A), version_of(2, 2, &[1], X2)], &[], (FastForward, X2.unwrap()));
        check(vec![version_of(1, 1, &[], A), version_of(2, 2, &[1], None)], &[], (FastForward, "absent"));
        check(vec![version_of(1, 1, &[], A), version_of(3, 2, &[1], X2)], &[], (Unchanged, ""));
        check(
            vec![version_of(1, 1, &[], A), version_of(2, 2, &[1], X2), version_of(3, 3, &[1], Y2)],
            &[],
            (Merged, r#"{"properties":{"x":2,"y":2}}"#),
        );
        check(
            vec![version_of(1, 1, &[], A), version_of(2, 2, &[1], X2), version_of(3, 3, &[1], X3)],
            &[],
            (Conflict, "/properties/x"),
        );
        // One side ended, the other changed: the whole content conflicts.
        check(
            vec![version_of(1, 1, &[], A), version_of(2, 2, &[1], None), version_of(3, 3, &[1], Y2)],
            &[],
            (Conflict, ""),
        );
        check(
            vec![version_of(1, 1, &[], A), version_of(2, 2, &[1], X2), version_of(3, 3, &[1], None)],
            &[],
            (Conflict, ""),
        );
    }

    #[test]
    fn removing_the_last_property_does_not_conflict() {
        let all = vec![
            version_of(1, 1, &[], Some(r#"{"properties":{"x":1},"title":"t"}"#)),
            version_of(2, 2, &[1], Some(r#"{"title":"t"}"#)),
            version_of(3, 3, &[1], Some(r#"{"properties":{"x":1,"y":1},"title":"t"}"#)),
        ];
        check(all, &[], (MergeClass::Merged, r#"{"properties":{"y":1},"title":"t"}"#));
    }

    #[test]
    fn a_source_version_is_taken_for_its_whole_period() {
        // The source changes the past too: the target's past is unchanged, so it is fast-forwarded.
        let all =
            vec![version_of(1, 1, &[], A), Version { period: Period::since(Time(-9)), ..version_of(2, 2, &[1], X2) }];
        let mut all: Vec<_> = all;
        all.insert(0, Version { period: Period { from: Time(-9), to: Time(1) }, ..version_of(1, 0, &[], Y2) });
        all[2].parents.push(VersionId::new(Tx(0), 0));
        all.sort_by_key(|s| (s.branch, s.version));
        let got = merge_fact(&all, &[], &line(2), &line(3), Time(50), &MergeStrategies::new());
        let first = got.writes.first().map(|w| w.period.from.0);
        assert_eq!((got.class, first), (MergeClass::FastForward, Some(-9)), "{:?}", got.writes);
    }

    #[test]
    fn a_further_edit_after_equal_edits_is_a_fast_forward() {
        let mut all = vec![version_of(1, 1, &[], A), version_of(2, 2, &[1], X2), version_of(3, 3, &[1], X2)];
        check(all.clone(), &[], (MergeClass::Unchanged, "3.0<-2.0"));
        all.push(version_of(2, 4, &[2], X3));
        // Without provenance the base is A, and both sides changed x.
        check(all.clone(), &[], (MergeClass::Conflict, "/properties/x"));
        check(all, &[from(3, 2)], (MergeClass::FastForward, X3.unwrap()));
    }

    #[test]
    fn a_reverted_edit_changes_nothing() {
        let all = vec![version_of(1, 1, &[], A), version_of(2, 2, &[1], X2), version_of(2, 3, &[2], A)];
        check(all, &[], (MergeClass::Unchanged, ""));
    }

    #[test]
    fn criss_cross_bases_must_agree() {
        // 2 and 3 each merged the other's edit: two bases, 2.0 and 3.0, neither an ancestor of the other.
        let both = r#"{"properties":{"x":2,"y":2}}"#;
        let all = vec![
            version_of(1, 1, &[], A),
            version_of(2, 2, &[1], X2),
            version_of(3, 3, &[1], Y2),
            version_of(2, 4, &[2], Some(both)),
            version_of(3, 5, &[3], Some(both)),
        ];
        let all: Vec<_> = all.into_iter().map(|s| Version { period: Period::since(Time(1)), ..s }).collect();
        let crossed = [from(4, 3), from(5, 2)];
        check(all.clone(), &crossed, (MergeClass::Unchanged, "5.0<-4.0"));
        let mut further = all;
        further.push(version_of(2, 6, &[4], Some(r#"{"properties":{"x":2,"y":2,"z":1}}"#)));
        check(further.clone(), &crossed, (MergeClass::Merged, r#"{"properties":{"x":2,"y":2,"z":1}}"#));
        further.push(version_of(3, 7, &[5], Some(r#"{"properties":{"x":9,"y":2}}"#)));
        further.push(version_of(2, 8, &[6], Some(r#"{"properties":{"x":8,"y":2,"z":1}}"#)));
        check(further, &crossed, (MergeClass::Conflict, "/properties/x"));
    }

    #[test]
    fn other_periods_are_copied_or_conflict() {
        let backfill = |branch, tx, content| Version {
            period: Period { from: Time(-20), to: Time(-10) },
            parents: vec![],
            ..version_of(branch, tx, &[], content)
        };
        check(vec![version_of(1, 1, &[], A), backfill(2, 2, X2)], &[], (MergeClass::Added, X2.unwrap()));
        check(vec![version_of(1, 1, &[], A), backfill(2, 2, X2), backfill(3, 3, X3)], &[], (MergeClass::Conflict, ""));
        check(
            vec![version_of(1, 1, &[], A), backfill(2, 2, X2), backfill(3, 3, X2)],
            &[],
            (MergeClass::Unchanged, "3.0<-2.0"),
        );
    }

    #[test]
    fn edits_of_the_past_do_not_conflict() {
        // Both sides edited x in the past, then the source reverted: the past does not conflict.
        let all = vec![
            version_of(1, 1, &[], A),
            version_of(2, 10, &[1], X2),
            version_of(3, 20, &[1], X3),
            version_of(2, 30, &[10], A),
        ];
        check(all, &[], (MergeClass::Unchanged, ""));
        // A fact that the target never had is added with its history.
        let mut all = vec![version_of(2, 10, &[], A), version_of(2, 20, &[10], X2)];
        all.sort_by_key(|s| (s.branch, s.version));
        let got = merge_fact(&all, &[], &line(2), &line(3), Time(50), &MergeStrategies::new());
        let periods: Vec<_> = got.writes.iter().map(|w| (w.period.from.0, w.period.to.0)).collect();
        assert_eq!((got.class, periods), (MergeClass::Added, vec![(10, 20), (20, i64::MAX)]));
    }
}
