//! A literal implementation of the visibility rules over all rows of a project, to compare every view with.

use lukasa_model::branch::{Branch, BranchMode};
use lukasa_model::content::Content;
use lukasa_model::id::PROJECT_WIDE;
use lukasa_model::transaction::TransactionHasher;
use lukasa_model::{BranchNo, Fact, FactNo, Time, Tx, Version, View};
use lukasa_store::ledger::Ledger;
use lukasa_store::{Reader, VersionFields};
use std::collections::BTreeMap;

/// Everything visible in one view: id and version of each fact.
pub type Seen = Vec<(uuid::Uuid, String)>;

/// Returns what a ledger shows for every branch, every transaction and a selection of times.
pub fn all_views(l: &Ledger) -> BTreeMap<(String, Tx, Time), Seen> {
    let registry = l.registry().unwrap();
    let mut views = BTreeMap::new();
    for branch in registry.branches() {
        for known in (0..=l.head().unwrap().tx.0).map(Tx) {
            for valid in times(l) {
                let lineage = registry.lineage(branch.number, known).unwrap();
                let name = branch.name.clone();
                let hash = l.transactions(known, known, 1).unwrap().pop().map_or(TransactionHasher::START, |t| t.hash);
                let view = View {
                    branch: branch.number,
                    branch_name: name.clone(),
                    known,
                    hash,
                    valid,
                    lineage,
                    release: None,
                };
                let rows = l.stream_view(&view, VersionFields::Header).unwrap();
                let seen = rows.map(Result::unwrap).map(|r| (r.thing.id, r.statement.version.to_string())).collect();
                views.insert((name, known, valid), seen);
            }
        }
    }
    views
}

/// Returns the same, computed by the rules.
pub fn naive_views(l: &Ledger) -> BTreeMap<(String, Tx, Time), Seen> {
    let mut reader = l.store().read(l.scope()).unwrap();
    let rows = Rows::load(&mut *reader);
    let branches: Vec<_> = rows.branches.iter().map(|(_, b)| b.clone()).collect();
    let mut views = BTreeMap::new();
    for branch in branches {
        for known in (0..=reader.head().unwrap().tx.0).map(Tx) {
            for valid in times(l) {
                let seen = rows.seen(branch.number, known, valid);
                views.insert((branch.name.clone(), known, valid), seen);
            }
        }
    }
    views
}

/// Returns the moments at which a period begins or ends, and one before each.
fn times(l: &Ledger) -> Vec<Time> {
    let mut reader = l.store().read(l.scope()).unwrap();
    let rows = reader.versions_after(lukasa_model::VersionId(0), usize::MAX >> 1).unwrap();
    let mut times: Vec<_> = rows.iter().flat_map(|s| [s.period.from, s.period.to, s.recorded_at]).collect();
    times.retain(|t| *t != Time::MIN && *t != Time::MAX);
    times.push(Time(times.iter().map(|t| t.0).min().unwrap_or(0) - 1));
    times.sort_unstable();
    times.dedup();
    // Enough to hit every kind of border, few enough to query them all.
    let step = times.len().div_ceil(12).max(1);
    let last = times.last().copied();
    times.into_iter().step_by(step).chain(last).collect()
}

struct Rows {
    things: Vec<Fact>,
    statements: Vec<Version>,
    branches: Vec<(Tx, Branch)>,
}

impl Rows {
    fn load(reader: &mut dyn Reader) -> Rows {
        let things = reader.facts_in(FactNo(0)..FactNo(u64::from(u32::MAX))).unwrap();
        let statements = reader.versions_after(lukasa_model::VersionId(0), usize::MAX >> 1).unwrap();
        let mut branches = vec![(Tx::START, Branch::main())];
        for s in &statements {
            let thing = things.iter().find(|t| t.no == s.thing).unwrap();
            if &*thing.type_name == "Branch" {
                let properties = Content::parse(s.content.as_deref().unwrap()).unwrap().properties;
                branches.push((s.version.tx(), serde_json::from_value(properties.into()).unwrap()));
            }
        }
        Rows { things, statements, branches }
    }

    fn seen(&self, branch: BranchNo, known: Tx, valid: Time) -> Seen {
        let mut seen = Vec::new();
        for thing in &self.things {
            let Some(statement) = self.visible(thing.no, branch, known, known, valid) else { continue };
            if let Some(ends) = &thing.ends {
                let lasting = ["INVOLVES", "APPLIES_TO", "DERIVED_FROM", "RENAMED_FROM"].contains(&&*thing.type_name);
                let there = |no| self.visible(no, branch, known, known, valid).is_some();
                if !(lasting || there(ends.src) && there(ends.dst)) {
                    continue;
                }
            }
            seen.push((thing.id, statement.version.to_string()));
        }
        seen
    }

    /// The version recorded last, among those on the branch recorded at or before `t` whose period contains `valid`. If
    /// there is none, that of the parent: with the same `t` on a live branch, with `min(t, fork)` on a pinned one.
    fn visible(&self, thing: FactNo, branch: BranchNo, t: Tx, known: Tx, valid: Time) -> Option<&Version> {
        let on = |branch: BranchNo, t: Tx| {
            self.statements
                .iter()
                .filter(|s| s.thing == thing && s.branch == branch && s.version.tx() <= t && s.period.holds(valid))
                .max_by_key(|s| s.version)
        };
        if let Some(found) = on(branch, t) {
            return (!found.absent).then_some(found);
        }
        let states = || self.branches.iter().filter(|(_, b)| b.number == branch);
        let state = states().rfind(|(at, _)| *at <= t).or_else(|| states().next()).map(|(_, b)| b)?;
        match state.parent {
            Some(parent) => {
                let t = if state.mode == BranchMode::Pinned { t.min(state.fork) } else { t };
                self.visible(thing, parent, t, known, valid)
            }
            // Project-wide versions are visible on every branch.
            None => on(PROJECT_WIDE, known).filter(|s| !s.absent),
        }
    }
}
