//! For read models that follow the log: what was recorded after a position, and the state of facts in a view.

use super::{Ledger, by_fact};
use crate::{Reader, VersionFields};
use lukasa_model::id::{PROJECT_WIDE, object_id};
use lukasa_model::plan::Side;
use lukasa_model::timeline::{next_border, visible};
use lukasa_model::types::Registry;
use lukasa_model::{Error, Fact, FactNo, Position, Result, Time, Transaction, Tx, Version, VersionId, View};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use uuid::Uuid;

/// The versions that some transactions recorded, in order of recording, with content.
#[derive(Clone, Debug, Default)]
pub struct RecordedChanges {
    /// The facts of these versions, as far as they are in memory; others must be read from the store.
    pub things: Vec<Fact>,
    /// Without change summaries if they come from memory.
    pub statements: Vec<Version>,
}

/// The state of a fact in a view by its own versions, regardless of its ends.
#[derive(Clone, Debug)]
pub struct FactState {
    pub thing: Fact,
    /// The visible version, if there is one.
    pub statement: Option<Version>,
    /// When the visible version may next change with valid time alone.
    pub next: Time,
    /// Sensitive properties that were removed from the version.
    pub hidden: Vec<Box<str>>,
}

/// Versions read per page when the log is read from the store.
const PAGE: usize = 10_000;
/// Transactions with more versions are not kept in memory, but read from the store again.
const KEPT_EACH: usize = 4_096;
/// Most versions and most transactions kept; followers further behind read the store.
const KEPT: usize = 65_536;
const KEPT_TRANSACTIONS: usize = 4_096;

/// The last transactions written by this process, so that its read models need not read them back.
#[derive(Default)]
pub(super) struct RecentTransactions {
    /// In order of transactions.
    entries: VecDeque<WrittenTransaction>,
    statements: usize,
}

/// One transaction written by this process.
struct WrittenTransaction {
    before: Position,
    after: Position,
    changes: Arc<RecordedChanges>,
}

impl RecentTransactions {
    /// Adds a transaction that this process has written.
    pub fn add(&mut self, before: Position, after: Position, things: &[Fact], statements: &[Version]) {
        if statements.len() > KEPT_EACH {
            return;
        }
        let statements: Vec<_> = statements.iter().map(|s| Version { change: None, ..s.clone() }).collect();
        self.statements += statements.len();
        let changes = Arc::new(RecordedChanges { things: things.to_vec(), statements });
        // Concurrent writers may arrive here in either order.
        let later = self.entries.iter().rev().take_while(|other| other.after.tx > after.tx).count();
        self.entries.insert(self.entries.len() - later, WrittenTransaction { before, after, changes });
        while self.statements > KEPT || self.entries.len() > KEPT_TRANSACTIONS {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.statements -= oldest.changes.statements.len();
        }
    }

    /// Returns everything between two positions, or `None` when a part of it is not in memory.
    fn get(&self, after: Position, to: Position) -> Option<Vec<Arc<RecordedChanges>>> {
        let place = |tx: Tx| self.entries.partition_point(|other| other.after.tx <= tx);
        let mut at = after;
        let mut found = Vec::new();
        for written in self.entries.range(place(after.tx)..place(to.tx)) {
            if written.before != at {
                return None;
            }
            at = written.after;
            found.push(Arc::clone(&written.changes));
        }
        (at == to).then_some(found)
    }

    /// Returns what the transaction ending at a position recorded, if it is in memory.
    fn one(&self, position: Position) -> Option<Arc<RecordedChanges>> {
        self.entries.iter().rev().find(|written| written.after == position).map(|written| Arc::clone(&written.changes))
    }
}

impl Ledger {
    /// Returns what was recorded between two positions; `None` if the log does not contain both, so that one does not
    /// lead to the other.
    pub fn changes(&self, after: Position, to: Position) -> Result<Option<RecordedChanges>> {
        if after == to {
            return Ok(Some(RecordedChanges::default()));
        }
        if after.tx >= to.tx {
            return Ok(None);
        }
        let kept = self.tail.lock().get(after, to);
        if let Some(kept) = kept {
            let mut all = RecordedChanges::default();
            for changes in kept {
                all.things.extend_from_slice(&changes.things);
                all.statements.extend_from_slice(&changes.statements);
            }
            return Ok(Some(all));
        }
        let mut reader = self.store.read(&self.scope)?;
        if !reader.holds(after)? {
            return Ok(None);
        }
        Ok(Some(RecordedChanges { things: vec![], statements: versions_between(&mut *reader, after.tx, to.tx)? }))
    }

    /// Returns what one transaction recorded.
    pub fn changes_of(&self, transaction: &Transaction) -> Result<RecordedChanges> {
        let position = transaction.position();
        let kept = self.tail.lock().one(position);
        match kept {
            Some(changes) => Ok(RecordedChanges::clone(&changes)),
            None => {
                let mut reader = self.store.read(&self.scope)?;
                Ok(RecordedChanges {
                    things: vec![],
                    statements: versions_between(&mut *reader, position.tx.previous(), position.tx)?,
                })
            }
        }
    }

    /// Returns the state of these facts in a view, ascending by number, without sensitive properties, so that no graph,
    /// index or vector built from it can reveal them. Unknown numbers are an error, because numbers come from the log.
    pub fn states(&self, view: &View, things: &[FactNo], fields: VersionFields) -> Result<Vec<FactState>> {
        let mut states = self.states_unredacted(view, things, fields)?;
        self.hide(&mut states)?;
        Ok(states)
    }

    /// Removes the properties that types mark as sensitive now, not at the time of the view.
    pub fn hide(&self, states: &mut [FactState]) -> Result<()> {
        let registry = self.latest_registry()?;
        if registry.all_sensitive().is_empty() {
            return Ok(());
        }
        for state in states {
            let Some(statement) = &mut state.statement else { continue };
            state.hidden = hide(&registry, &state.thing, statement)?;
        }
        Ok(())
    }

    /// Like `states`, but with sensitive properties, for callers that write the content back.
    pub fn states_unredacted(&self, view: &View, things: &[FactNo], fields: VersionFields) -> Result<Vec<FactState>> {
        let mut reader = self.store.read(&self.scope)?;
        let mut found = reader.facts_numbered(things)?;
        if found.len() < things.len() {
            return Err(Error::internal("the log refers to facts that do not exist").hint("run `lukasa verify`"));
        }
        found.sort_by_key(|t| t.no);
        let mut statements: FxHashMap<_, _> = by_fact(reader.versions(things, fields)?);
        let states = found.into_iter().map(|thing| {
            let own = statements.remove(&thing.no).unwrap_or_default();
            let next = next_border(&own, &view.lineage, view.valid);
            FactState { statement: visible(&own, &view.lineage, view.valid).cloned(), thing, next, hidden: vec![] }
        });
        Ok(states.collect())
    }

    /// Returns the objects of a type that are visible in a view under these keys, in no particular order.
    pub fn states_keyed(
        &self,
        view: &View,
        type_name: &str,
        keys: &[String],
        fields: VersionFields,
    ) -> Result<Vec<FactState>> {
        let mut reader = self.store.read(&self.scope)?;
        let namespace = reader.head()?.namespace;
        let registry = self.latest_registry()?;
        let spelled = registry.spelling(type_name, false);
        let ids: Vec<Uuid> = keys.iter().map(|key| object_id(namespace, spelled, key)).collect();
        let found = reader.facts(&ids)?;
        let numbers: Vec<FactNo> = found.iter().map(|t| t.no).collect();
        let mut statements: FxHashMap<_, _> = by_fact(reader.versions(&numbers, fields)?);
        let states = found.into_iter().filter_map(|thing| {
            let own = statements.remove(&thing.no).unwrap_or_default();
            let statement = visible(&own, &view.lineage, view.valid)?.clone();
            let next = next_border(&own, &view.lineage, view.valid);
            (!statement.absent).then_some(FactState { statement: Some(statement), thing, next, hidden: vec![] })
        });
        Ok(states.collect())
    }

    /// Returns the numbers of project-wide facts that were written between two positions; `None` if the log does not
    /// lead from one to the other.
    pub fn changed_project_wide(&self, after: Position, to: Position) -> Result<Option<Vec<FactNo>>> {
        let mut reader = self.store.read(&self.scope)?;
        if after.tx > to.tx || !reader.holds(after)? {
            return Ok(None);
        }
        reader.touched(PROJECT_WIDE, after.tx.next(), to.tx).map(Some)
    }

    /// Returns visible objects whose key begins with the prefix, of one type or of any, ordered by key.
    pub fn states_with_prefix(
        &self,
        view: &View,
        type_name: Option<&str>,
        prefix: &str,
        fields: VersionFields,
    ) -> Result<Vec<FactState>> {
        let mut reader = self.store.read(&self.scope)?;
        let found = reader.objects_with_prefix(type_name, prefix)?;
        let numbers: Vec<FactNo> = found.iter().map(|t| t.no).collect();
        let mut statements: FxHashMap<_, _> = by_fact(reader.versions(&numbers, fields)?);
        let states = found.into_iter().filter_map(|thing| {
            let own = statements.remove(&thing.no).unwrap_or_default();
            let statement = visible(&own, &view.lineage, view.valid)?.clone();
            let next = next_border(&own, &view.lineage, view.valid);
            (!statement.absent).then_some(FactState { statement: Some(statement), thing, next, hidden: vec![] })
        });
        Ok(states.collect())
    }

    /// Returns every relationship that ever existed at one of these objects, ascending by number.
    pub fn relationships_at(&self, objects: &[FactNo]) -> Result<Vec<Fact>> {
        let ends: Vec<_> = objects.iter().flat_map(|no| [(*no, Side::Src), (*no, Side::Dst)]).collect();
        self.store.read(&self.scope)?.relationships(&ends)
    }

    /// Returns facts by number, in no particular order.
    pub fn facts(&self, numbers: &[FactNo]) -> Result<Vec<Fact>> {
        self.store.read(&self.scope)?.facts_numbered(numbers)
    }
}

/// Returns the versions recorded by transactions `after+1..=to`, in order of recording.
fn versions_between(reader: &mut dyn Reader, after: Tx, to: Tx) -> Result<Vec<Version>> {
    let mut statements: Vec<Version> = Vec::new();
    let mut last = VersionId::last_of(after);
    loop {
        let page = reader.versions_after(last, PAGE)?;
        let full = page.len() == PAGE;
        last = page.last().map_or(last, |s| s.version);
        statements.extend(page.into_iter().filter(|s| s.version.tx() <= to));
        if !full || last.tx() > to {
            return Ok(statements);
        }
    }
}

/// Removes sensitive properties from a version and returns their names.
pub fn hide(registry: &Registry, thing: &Fact, statement: &mut Version) -> Result<Vec<Box<str>>> {
    let names = registry.sensitive(&thing.type_name, thing.ends.is_some());
    if names.is_empty() {
        return Ok(vec![]);
    }
    // The change summary contains values too.
    statement.change = None;
    if statement.content.is_none() {
        return Ok(vec![]);
    }
    let mut content = statement.parsed()?;
    let hidden = content.hide(names);
    if !hidden.is_empty() {
        statement.content = Some(content.canonical().into());
    }
    Ok(hidden)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lukasa_model::json::Hash;

    /// The position of a transaction in the log with this name.
    fn at(log: &str, tx: u64) -> Position {
        if tx == 0 {
            Position::START
        } else {
            Position { tx: Tx(tx), hash: Hash::of(format!("{log} {tx}").as_bytes()) }
        }
    }

    fn add(tail: &mut RecentTransactions, tx: u64) {
        let thing = Fact { no: FactNo(tx), id: Uuid::nil(), type_name: "Note".into(), key: None, ends: None };
        tail.add(at("log", tx - 1), at("log", tx), &[thing], &[]);
    }

    fn places(tail: &RecentTransactions, after: Position, to: Position) -> Option<Vec<u64>> {
        let found = tail.get(after, to)?;
        Some(found.iter().map(|changes| changes.things[0].no.0).collect())
    }

    fn between(tail: &RecentTransactions, after: u64, to: u64) -> Option<Vec<u64>> {
        places(tail, at("log", after), at("log", to))
    }

    #[test]
    fn the_last_transactions_are_kept_in_order() {
        let mut tail = RecentTransactions::default();
        for tx in [1, 3, 2, 4, 7, 6] {
            add(&mut tail, tx);
        }
        assert_eq!(between(&tail, 0, 4), Some(vec![1, 2, 3, 4]));
        assert_eq!(between(&tail, 2, 3), Some(vec![3]));
        assert_eq!(between(&tail, 3, 6), None, "transaction 5 was not added");
        add(&mut tail, 5);
        assert_eq!(between(&tail, 3, 7), Some(vec![4, 5, 6, 7]));
        for tx in 8..KEPT_TRANSACTIONS as u64 + 20 {
            add(&mut tail, tx);
        }
        assert_eq!(between(&tail, 0, 9), None, "no longer kept");
        assert_eq!(tail.entries.len(), KEPT_TRANSACTIONS);
        let last = KEPT_TRANSACTIONS as u64 + 19;
        assert_eq!(between(&tail, last - 2, last), Some(vec![last - 1, last]));
    }

    #[test]
    fn transactions_of_another_log_are_not_returned() {
        let mut tail = RecentTransactions::default();
        for tx in 1..=4 {
            add(&mut tail, tx);
        }
        assert_eq!(places(&tail, at("other", 2), at("log", 4)), None);
        assert_eq!(places(&tail, at("log", 2), at("other", 4)), None);
        assert_eq!(places(&tail, at("other", 2), at("other", 4)), None);
    }
}
