//! Facts written recently by this ledger, so that a bulk load need not look up what it has just written.

use lukasa_model::plan::LoadedFacts;
use lukasa_model::{Fact, FactNo, Position, Version};
use rustc_hash::{FxHashMap, FxHashSet};
use uuid::Uuid;

/// Most facts kept: about 40 MB.
const THINGS: usize = 1 << 17;
/// A fact with more versions than this is read from the store.
const STATEMENTS: usize = 4;

/// Valid for one position of the log. When another writer moves the log on, everything is dropped.
#[derive(Default)]
pub struct RecentFacts {
    at: Option<Position>,
    things: FxHashMap<Uuid, (Fact, Vec<Version>)>,
}

impl RecentFacts {
    /// Adds the facts kept for this position to `known` and returns the ids that must be looked up.
    pub fn fill(&mut self, at: Position, ids: Vec<Uuid>, known: &mut LoadedFacts<'_>) -> Vec<Uuid> {
        if self.at != Some(at) {
            self.things.clear();
            self.at = Some(at);
        }
        if self.things.is_empty() {
            return ids;
        }
        let mut missing = Vec::new();
        for id in ids {
            match self.things.get(&id) {
                _ if known.things.contains_key(&id) => {}
                Some((thing, statements)) => {
                    known.statements.insert(thing.no, statements.clone());
                    known.things.insert(id, thing.clone());
                }
                None => missing.push(id),
            }
        }
        missing
    }

    /// Adds what the transaction between two positions recorded, unless the log moved in between.
    pub fn add(&mut self, before: Position, after: Position, things: Vec<Fact>, statements: Vec<Version>) {
        if self.at != Some(before) {
            return;
        }
        self.at = Some(after);
        if self.things.len() + things.len() > THINGS {
            self.things.clear();
        }
        // New facts have consecutive numbers. Facts that existed before are dropped and read again when needed.
        let first = things.first().map_or(FactNo(u64::MAX), |t| t.no);
        let mut own: Vec<Vec<Version>> = vec![Vec::new(); things.len()];
        let mut again = FxHashSet::default();
        for s in statements {
            match s.thing.index_from(first) {
                Some(at) => own[at].push(Version { content: None, change: None, ..s }),
                None => drop(again.insert(s.thing)),
            }
        }
        if !again.is_empty() {
            self.things.retain(|_, (thing, _)| !again.contains(&thing.no));
        }
        for (thing, mut statements) in things.into_iter().zip(own) {
            if thing.ends.is_none() && statements.len() <= STATEMENTS && self.things.len() < THINGS {
                statements.sort_by_key(|s| (s.branch, s.version));
                self.things.insert(thing.id, (thing, statements));
            }
        }
    }
}
