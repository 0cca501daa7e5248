//! The meaning of a project's rows: commits, views, reads, merges, releases; implemented once for every store.

mod commit;
mod declare;
mod diff;
mod dump;
mod find;
mod follow;
mod load;
mod merge;
mod observe;
mod recent;
mod stream;
mod trail;
mod verify;
mod views;

pub use commit::Committed;
pub use declare::{NewBranch, NewRelease};
pub use diff::{ChangeClass, DiffOptions, FactChange, ViewDifference};
pub use dump::{DumpReport, RestoreReport};
pub use find::{HistoryEntry, NamedFact, ObjectRelationship, VisibleFact};
pub use follow::{FactState, RecordedChanges, hide};
pub use merge::{MergeConflict, MergeCounts, MergeItem, MergeReport, MergeRequest};
pub use observe::{ChangeStats, CommitStats, observe};
pub use stream::{ViewRow, ViewStream};
pub use trail::{LogReplacement, observe_replaced};
pub use verify::VerifyReport;
pub use views::ViewSpec;

use crate::{Clock, Head, Reader, Store};
use follow::RecentTransactions;
use lukasa_model::types::{Declaration, Registry};
use lukasa_model::{Fact, FactNo, Position, Result, Scope, Transaction, Tx, Version};
use parking_lot::Mutex;
use recent::RecentFacts;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use trail::LogTrail;

/// One project in a store. Cheap to clone; safe to share.
#[derive(Clone)]
pub struct Ledger {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    scope: Scope,
    declared: Arc<Mutex<Option<DeclarationCache>>>,
    recent: Arc<Mutex<RecentFacts>>,
    tail: Arc<Mutex<RecentTransactions>>,
    trail: Arc<Mutex<LogTrail>>,
}

/// Cached declarations up to a transaction, valid until the next declaration.
#[derive(Clone)]
struct DeclarationCache {
    at: Position,
    declarations: Arc<Vec<Declaration>>,
    registry: Arc<Registry>,
}

impl Ledger {
    /// Creates a ledger for a project, which need not exist yet. Clones of it share their caches.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, scope: Scope) -> Ledger {
        Ledger {
            store,
            clock,
            scope,
            declared: Arc::default(),
            recent: Arc::default(),
            tail: Arc::default(),
            trail: Arc::default(),
        }
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns the end of the log. Fails with `unknown_project` if nothing was ever written.
    pub fn head(&self) -> Result<Head> {
        Ok(self.open()?.1)
    }

    /// Returns log entries `from..=to`, oldest first, at most `limit`.
    pub fn transactions(&self, from: Tx, to: Tx, limit: usize) -> Result<Vec<Transaction>> {
        self.store.read(&self.scope)?.transactions(from, to, limit)
    }

    /// Returns everything declared so far.
    pub fn registry(&self) -> Result<Arc<Registry>> {
        let (mut reader, head) = self.open()?;
        self.registry_in(&mut *reader, &head)
    }

    /// Returns the declarations as of the last read of a head, from memory if possible. Every request opens a view
    /// first, so they are current enough.
    pub fn latest_registry(&self) -> Result<Arc<Registry>> {
        let known = self.declared.lock().as_ref().map(|declared| Arc::clone(&declared.registry));
        known.map_or_else(|| self.registry(), Ok)
    }

    /// Returns everything declared up to a transaction, as a view at that transaction sees it.
    pub fn registry_known(&self, known: Tx) -> Result<Arc<Registry>> {
        let (mut reader, head) = self.open()?;
        self.registry_at(&mut *reader, &head, known)
    }

    fn registry_in(&self, reader: &mut dyn Reader, head: &Head) -> Result<Arc<Registry>> {
        Ok(self.declared_in(reader, head)?.registry)
    }

    /// Returns everything declared up to a transaction.
    fn registry_at(&self, reader: &mut dyn Reader, head: &Head, known: Tx) -> Result<Arc<Registry>> {
        let declared = self.declared_in(reader, head)?;
        if known >= declared.at.tx {
            return Ok(declared.registry);
        }
        Registry::at(&declared.declarations, known).map(Arc::new)
    }

    fn declared_in(&self, reader: &mut dyn Reader, head: &Head) -> Result<DeclarationCache> {
        if let Some(declared) = self.declared.lock().as_ref().filter(|d| d.at == head.declared) {
            return Ok(declared.clone());
        }
        let mut declarations = reader.declarations()?;
        // The reader may already see later declarations than those up to this head.
        declarations.retain(|d| d.tx <= head.declared.tx);
        let registry = Arc::new(Registry::at(&declarations, head.declared.tx)?);
        let declared = DeclarationCache { at: head.declared, declarations: Arc::new(declarations), registry };
        *self.declared.lock() = Some(declared.clone());
        Ok(declared)
    }
}

/// Groups versions by fact, keeping their order.
fn by_fact(statements: Vec<Version>) -> FxHashMap<FactNo, Vec<Version>> {
    let mut found: FxHashMap<_, Vec<_>> = FxHashMap::default();
    for statement in statements {
        found.entry(statement.thing).or_default().push(statement);
    }
    found
}

/// Returns the names of both ends by relationship number: `Type:key`, or an id.
fn end_names<'a>(
    reader: &mut dyn Reader,
    things: impl Iterator<Item = &'a Fact>,
) -> Result<FxHashMap<FactNo, [String; 2]>> {
    let edges: Vec<_> = things.filter_map(|t| t.ends.as_ref().map(|ends| (t.no, ends.src, ends.dst))).collect();
    let ends = unique(edges.iter().flat_map(|(_, src, dst)| [*src, *dst]).collect());
    let names: FxHashMap<_, _> = reader.facts_numbered(&ends)?.iter().map(|t| (t.no, t.name())).collect();
    let name = |no: &FactNo| names.get(no).cloned().unwrap_or_default();
    Ok(edges.iter().map(|(no, src, dst)| (*no, [name(src), name(dst)])).collect())
}

pub(crate) fn unique<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort_unstable();
    list.dedup();
    list
}
