//! A graph that stays current: built from a view once, then updated from the log and the clock at the cost of what
//! changes.

mod build;
mod bytes;
mod edit;

pub(crate) use bytes::{ByteReader, ByteWriter};

use crate::snapshot::{Edge, FactPlace, Node, NodePresence, Snapshot};
use lukasa_model::types::{Registry, system};
use lukasa_model::version::{Fact, Version};
use lukasa_model::{FactNo, Lineage, Result, Time, Tx, View};
use lukasa_store::ledger::FactState;
use lukasa_store::{Ledger, VersionFields};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The only writer of a graph. Readers hold snapshots, which it never changes.
pub struct Projection {
    snapshot: Arc<Snapshot>,
    /// Facts that become visible or invisible as time passes, and when.
    agenda: BTreeSet<(Time, FactNo)>,
    /// Facts with this number or a higher one did not exist when it was built or last advanced.
    next_thing: FactNo,
    free_nodes: Vec<Node>,
    free_edges: Vec<Edge>,
    /// Ended nodes that may have to be removed once all edges are updated.
    loose: Vec<Node>,
}

impl Projection {
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// Advances to a later view of the same branch. Returns `false` if that is not possible: a fork was moved, a type
    /// became lasting, or the view is an earlier one or of another log. Then the projection must be built again. After
    /// an error it must not be used again.
    pub fn advance(&mut self, ledger: &Ledger, view: &View) -> Result<bool> {
        let old = &self.snapshot.view;
        if view.position() == old.position() && view.lineage == old.lineage && view.valid < self.snapshot.until {
            if view.valid < old.valid {
                return Ok(false);
            }
            return Ok(true);
        }
        if view.known < old.known || view.valid < old.valid || !follows(old.known, &old.lineage, view) {
            return Ok(false);
        }
        let registry = ledger.registry_known(view.known)?;
        if self.lasting_changed(&registry) || self.snapshot.names.outgrow(self.snapshot.live) {
            return Ok(false);
        }
        Arc::make_mut(&mut self.snapshot).registry = registry;
        let old = &self.snapshot.view;
        let next_thing = ledger.head()?.next_thing;
        let Some(changes) = ledger.changes(old.position(), view.position())? else { return Ok(false) };
        let mut known: FxHashMap<FactNo, Fact> = changes.things.into_iter().map(|t| (t.no, t)).collect();
        let mut updated: FxHashMap<FactNo, Version> = FxHashMap::default();
        let mut unclear: FxHashSet<FactNo> = FxHashSet::default();
        let nearest = view.lineage.entries()[0].0;
        for statement in changes.statements {
            if view.lineage.cap(statement.branch).is_none_or(|cap| statement.version.tx() > cap) {
                continue;
            }
            if statement.branch != nearest {
                // A nearer branch may override it.
                unclear.insert(statement.thing);
                continue;
            }
            let borders = [statement.period.from, statement.period.to];
            for border in borders.into_iter().filter(|b| *b > view.valid && *b < Time::MAX) {
                self.agenda.insert((border, statement.thing));
            }
            if statement.period.holds(view.valid) {
                // The last statement on the nearest branch: nothing overrides it.
                updated.insert(statement.thing, statement);
            }
        }
        while let Some((_, thing)) = self.agenda.first().copied().filter(|(due, _)| *due <= view.valid) {
            self.agenda.pop_first();
            unclear.insert(thing);
        }
        updated.retain(|thing, _| !unclear.contains(thing));
        let mut states = self.states(ledger, view, sorted(unclear))?;
        let unknown = updated.keys().filter(|no| !known.contains_key(no) && self.snapshot.place(**no).is_none());
        let unknown = sorted(unknown.copied());
        known.extend(ledger.facts(&unknown)?.into_iter().map(|t| (t.no, t)));
        for (no, statement) in updated {
            let thing = known.remove(&no);
            states.push(Seen { no, thing, statement: Some(statement).filter(|s| !s.absent) });
        }
        states.sort_unstable_by_key(|s| s.no);
        self.apply(ledger, view, states)?;
        self.next_thing = next_thing;
        Ok(true)
    }

    /// The state of some facts in the view, read from the store.
    fn states(&mut self, ledger: &Ledger, view: &View, things: Vec<FactNo>) -> Result<Vec<Seen>> {
        if things.is_empty() {
            return Ok(vec![]);
        }
        let states = ledger.states(view, &things, VersionFields::Content)?;
        Ok(states.into_iter().map(|state| self.seen(state)).collect())
    }

    fn seen(&mut self, state: FactState) -> Seen {
        if state.next < Time::MAX {
            self.agenda.insert((state.next, state.thing.no));
        }
        Seen { no: state.thing.no, thing: Some(state.thing), statement: state.statement }
    }

    /// Updates objects first, because relationships appear and end with their objects.
    fn apply(&mut self, ledger: &Ledger, view: &View, states: Vec<Seen>) -> Result<()> {
        let mut edges = Vec::new();
        let mut back = Vec::new();
        for seen in states {
            let is_node = match self.snapshot.place(seen.no) {
                Some(place) => matches!(place, FactPlace::Node(_)),
                None => seen.thing.as_ref().is_some_and(|t| t.ends.is_none()),
            };
            if !is_node {
                edges.push(seen);
            } else if seen.thing.as_ref().is_none_or(|t| !system::is(&t.type_name)) && self.set_node(&seen)? {
                back.push(seen.no);
            }
        }
        // Relationships of a new object are all new themselves, so they are among the changes already.
        let first_new = self.next_thing;
        back.retain(|no| *no < first_new);
        if !back.is_empty() {
            let known: FxHashSet<_> = edges.iter().map(|e| e.no).collect();
            let all = ledger.relationships_at(&back)?.into_iter().map(|t| t.no);
            let hidden = all.filter(|no| !known.contains(no)).collect();
            edges.extend(self.states(ledger, view, hidden)?);
        }
        edges.sort_unstable_by_key(|e| e.no);
        let stubs = self.missing_ends(&edges);
        if !stubs.is_empty() {
            for thing in ledger.facts(&stubs)?.into_iter().filter(|t| !system::is(&t.type_name)) {
                self.add_node(&thing, None, NodePresence::Ended)?;
            }
        }
        for seen in edges {
            self.set_edge(&seen)?;
        }
        self.release_loose();
        let until = self.agenda.first().map_or(Time::MAX, |(due, _)| *due);
        let snapshot = Arc::make_mut(&mut self.snapshot);
        snapshot.view = view.clone();
        snapshot.until = until;
        snapshot.beside = Arc::new(snapshot.beside.carried(&snapshot.touched));
        Ok(())
    }

    /// Ends of lasting relationships that must be shown although they are not visible themselves.
    fn missing_ends(&self, edges: &[Seen]) -> Vec<FactNo> {
        let shown = edges.iter().filter(|seen| seen.statement.is_some() && self.snapshot.place(seen.no).is_none());
        let lasting =
            shown.filter_map(|seen| seen.thing.as_ref()).filter(|t| self.snapshot.registry.is_lasting(&t.type_name));
        let ends = lasting.filter_map(|t| t.ends.as_ref()).flat_map(|ends| [ends.src, ends.dst]);
        sorted(ends.filter(|no| self.snapshot.find(*no).is_none()))
    }

    /// Whether some type became lasting or stopped being so, which changes which relationships are visible.
    fn lasting_changed(&self, registry: &Registry) -> bool {
        let old = &self.snapshot.registry;
        if std::ptr::eq(&**old, registry) {
            return false;
        }
        let declared = old.relationship_types().into_iter().chain(registry.relationship_types());
        let names = declared.flat_map(|t| t.aliases.iter().chain([&t.name])).map(String::as_str);
        let here = self.snapshot.names.types().iter().map(|t| &**t);
        names.chain(here).any(|name| old.is_lasting(name) != registry.is_lasting(name))
    }
}

/// A fact and the statement that makes it visible. `thing` may be missing if the fact is in the graph already.
struct Seen {
    no: FactNo,
    thing: Option<Fact>,
    statement: Option<Version>,
}

/// Whether the lineage is the same as before, except that the branch itself has advanced.
fn follows(known: Tx, old: &Lineage, view: &View) -> bool {
    let new = view.lineage.entries();
    new.len() == old.entries().len()
        && old
            .entries()
            .iter()
            .zip(new)
            .all(|(&(branch, cap), &(now, to))| branch == now && (cap == to || (cap == known && to == view.known)))
}

fn sorted(numbers: impl IntoIterator<Item = FactNo>) -> Vec<FactNo> {
    let mut all: Vec<_> = numbers.into_iter().collect();
    all.sort_unstable();
    all.dedup();
    all
}
