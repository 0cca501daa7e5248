//! The simplest store: rows in vectors, searched linearly; the oracle for the others.

mod audit;
mod derived;
mod keys;

use crate::{
    AccessKey, AccessKeys, AuditTrail, ClientBatch, Clock, Counts, Derived, Entry, Head, Reader, Store,
    TransactionFilter, VersionFields, Writer,
};
use lukasa_model::plan::Side;
use lukasa_model::transaction::TransactionHasher;
use lukasa_model::types::{Declaration, system};
use lukasa_model::version::Provenance;
use lukasa_model::{
    BranchNo, Error, ErrorCode, ErrorKind, Fact, FactNo, Position, Result, Scope, Time, Transaction, Tx, Version,
    VersionId,
};
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use uuid::Uuid;

/// A store in memory, for tests. Nothing is durable.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    projects: RwLock<BTreeMap<Scope, Arc<MemoryRows>>>,
    writing: Mutex<()>,
    derived_data: Mutex<BTreeMap<Scope, derived::DerivedData>>,
    keys: Mutex<BTreeMap<String, AccessKey>>,
    audit: Mutex<audit::AuditChains>,
}

impl MemoryStore {
    pub fn new(clock: Arc<dyn Clock>) -> MemoryStore {
        MemoryStore {
            clock,
            projects: RwLock::default(),
            writing: Mutex::new(()),
            derived_data: Mutex::default(),
            keys: Mutex::default(),
            audit: Mutex::default(),
        }
    }
}

#[derive(Clone)]
struct MemoryRows {
    head: Head,
    things: Vec<Fact>,
    statements: Vec<Version>,
    provenance: Vec<(Tx, Provenance)>,
    transactions: Vec<Transaction>,
    client_batches: Vec<(String, ClientBatch)>,
}

impl MemoryRows {
    fn new(scope: &Scope) -> MemoryRows {
        MemoryRows {
            head: empty_head(scope),
            things: vec![],
            statements: vec![],
            provenance: vec![],
            transactions: vec![],
            client_batches: vec![],
        }
    }
}

/// The head of a new project.
pub(crate) fn empty_head(scope: &Scope) -> Head {
    let (hash, namespace) = (TransactionHasher::START, scope.namespace());
    Head {
        tx: Tx::START,
        recorded_at: Time::MIN,
        hash,
        next_thing: FactNo::FIRST,
        declared: Position::START,
        namespace,
    }
}

pub(crate) fn unknown_project(scope: &Scope) -> Error {
    Error::not_found(ErrorCode::UnknownProject, format!("no project `{}`", scope.project))
        .hint("it begins with its first write, for example `lukasa put Service auth`")
}

impl Store for MemoryStore {
    fn read<'a>(&'a self, scope: &Scope) -> Result<Box<dyn Reader + 'a>> {
        let rows = self.projects.read().get(scope).cloned().ok_or_else(|| unknown_project(scope))?;
        Ok(Box::new(MemorySession { rows, store: self, scope: scope.clone(), _alone: None }))
    }

    fn write<'a>(&'a self, scope: &Scope) -> Result<Box<dyn Writer + 'a>> {
        let alone = Some(self.writing.lock());
        let rows = self.projects.read().get(scope).cloned().unwrap_or_else(|| Arc::new(MemoryRows::new(scope)));
        Ok(Box::new(MemorySession { rows, store: self, scope: scope.clone(), _alone: alone }))
    }

    fn derived(&self) -> &dyn Derived {
        self
    }

    fn access_keys(&self) -> &dyn AccessKeys {
        self
    }

    fn audit(&self) -> &dyn AuditTrail {
        self
    }

    fn projects(&self, tenant: &str) -> Result<Vec<String>> {
        Ok(self.projects.read().keys().filter(|s| s.tenant == tenant).map(|s| s.project.clone()).collect())
    }

    fn copy_to(&self, _: &Path) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, ErrorCode::NoNativeCopy, "the memory store has no file format"))
    }

    fn describe(&self) -> String {
        "memory".into()
    }
}

/// A snapshot of the rows from when the session was opened, plus what it appended since.
struct MemorySession<'a> {
    rows: Arc<MemoryRows>,
    store: &'a MemoryStore,
    scope: Scope,
    /// The writer lock, held by writers only.
    _alone: Option<MutexGuard<'a, ()>>,
}

fn cut(mut statement: Version, fields: VersionFields) -> Version {
    if fields == VersionFields::Header {
        statement.content = None;
    }
    if fields != VersionFields::All {
        statement.change = None;
    }
    statement
}

impl MemorySession<'_> {
    fn facts_where(&self, keep: impl Fn(&Fact) -> bool) -> Vec<Fact> {
        self.rows.things.iter().filter(|t| keep(t)).cloned().collect()
    }

    fn versions_where(&self, fields: VersionFields, keep: impl Fn(&Version) -> bool) -> Vec<Version> {
        let mut found: Vec<_> =
            self.rows.statements.iter().filter(|s| keep(s)).cloned().map(|s| cut(s, fields)).collect();
        found.sort_by_key(|s| (s.thing, s.branch, s.version));
        found
    }
}

impl Reader for MemorySession<'_> {
    fn head(&mut self) -> Result<Head> {
        Ok(self.rows.head)
    }

    fn facts(&mut self, ids: &[Uuid]) -> Result<Vec<Fact>> {
        Ok(self.facts_where(|t| ids.contains(&t.id)))
    }

    fn facts_numbered(&mut self, numbers: &[FactNo]) -> Result<Vec<Fact>> {
        Ok(self.facts_where(|t| numbers.contains(&t.no)))
    }

    fn objects_keyed(&mut self, keys: &[String]) -> Result<Vec<Fact>> {
        Ok(self.facts_where(|t| t.key.as_deref().is_some_and(|key| keys.iter().any(|k| k == key))))
    }

    fn objects_with_prefix(&mut self, type_name: Option<&str>, prefix: &str) -> Result<Vec<Fact>> {
        let mut found = self.facts_where(|t| {
            t.key.as_deref().is_some_and(|k| k.starts_with(prefix)) && type_name.is_none_or(|n| *t.type_name == *n)
        });
        found.sort_by(|a, b| (&a.key, a.no).cmp(&(&b.key, b.no)));
        Ok(found)
    }

    fn objects_like(&mut self, part: &str, limit: usize) -> Result<Vec<Fact>> {
        let part = part.to_lowercase();
        let mut found = self.facts_where(|t| t.key.as_deref().is_some_and(|key| key.to_lowercase().contains(&part)));
        found.truncate(limit);
        Ok(found)
    }

    fn facts_in(&mut self, range: Range<FactNo>) -> Result<Vec<Fact>> {
        Ok(self.facts_where(|t| range.contains(&t.no)))
    }

    fn versions(&mut self, things: &[FactNo], fields: VersionFields) -> Result<Vec<Version>> {
        Ok(self.versions_where(fields, |s| things.contains(&s.thing)))
    }

    fn versions_in(&mut self, range: Range<FactNo>, fields: VersionFields) -> Result<Vec<Version>> {
        Ok(self.versions_where(fields, |s| range.contains(&s.thing)))
    }

    fn versions_after(&mut self, after: VersionId, limit: usize) -> Result<Vec<Version>> {
        let mut found = self.versions_where(VersionFields::All, |s| s.version > after);
        found.sort_by_key(|s| s.version);
        found.truncate(limit);
        Ok(found)
    }

    fn touched(&mut self, branch: BranchNo, from: Tx, to: Tx) -> Result<Vec<FactNo>> {
        let hits =
            self.versions_where(VersionFields::Header, |s| s.branch == branch && (from..=to).contains(&s.version.tx()));
        let mut found: Vec<_> = hits.iter().map(|s| s.thing).collect();
        found.dedup();
        Ok(found)
    }

    fn relationships(&mut self, ends: &[(FactNo, Side)]) -> Result<Vec<Fact>> {
        Ok(self.facts_where(|t| {
            let at = |e: &lukasa_model::RelationshipEnds| {
                ends.contains(&(e.src, Side::Src)) || ends.contains(&(e.dst, Side::Dst))
            };
            t.ends.as_ref().is_some_and(at)
        }))
    }

    fn declarations(&mut self) -> Result<Vec<Declaration>> {
        let mut found = Vec::new();
        for s in &self.rows.statements {
            let thing = self.rows.things.iter().find(|t| t.no == s.thing).filter(|t| system::is(&t.type_name));
            if let Some(Fact { type_name, key: Some(key), .. }) = thing {
                let (type_name, key) = (Arc::clone(type_name), key.clone());
                found.push(Declaration { tx: s.version.tx(), type_name, key, content: s.content.clone() });
            }
        }
        Ok(found)
    }

    fn provenance(&mut self, things: &[FactNo]) -> Result<Vec<Provenance>> {
        let mut found: Vec<_> =
            self.rows.provenance.iter().map(|(_, p)| *p).filter(|p| things.contains(&p.thing)).collect();
        found.sort();
        Ok(found)
    }

    fn provenance_of(&mut self, tx: Tx) -> Result<Vec<Provenance>> {
        let mut found: Vec<_> = self.rows.provenance.iter().filter(|(t, _)| *t == tx).map(|(_, p)| *p).collect();
        found.sort();
        Ok(found)
    }

    fn transactions(&mut self, from: Tx, to: Tx, limit: usize) -> Result<Vec<Transaction>> {
        let all = self.rows.transactions.iter().filter(|t| (from..=to).contains(&t.tx));
        Ok(all.take(limit).cloned().collect())
    }

    fn find_transactions(&mut self, find: &TransactionFilter, limit: usize) -> Result<Vec<Transaction>> {
        let hit = |t: &&Transaction| match find {
            TransactionFilter::Commit(prefix) => {
                t.header.git_commit.as_ref().is_some_and(|c| c.to_lowercase().starts_with(prefix.as_str()))
            }
            TransactionFilter::Agent(agent) => t.header.agent.as_ref() == Some(agent),
            TransactionFilter::Until(time) => t.recorded_at <= *time,
        };
        Ok(self.rows.transactions.iter().rev().filter(hit).take(limit).cloned().collect())
    }

    fn client_batch(&mut self, client_id: &str) -> Result<Option<ClientBatch>> {
        Ok(self.rows.client_batches.iter().find(|(id, _)| id == client_id).map(|(_, batch)| *batch))
    }

    fn client_batches(&mut self) -> Result<Vec<(String, ClientBatch)>> {
        let mut all = self.rows.client_batches.clone();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(all)
    }

    fn counts(&mut self) -> Result<Counts> {
        Ok(Counts {
            things: self.rows.things.len() as u64,
            statements: self.rows.statements.len() as u64,
            provenance: self.rows.provenance.len() as u64,
        })
    }
}

impl Writer for MemorySession<'_> {
    fn now(&mut self) -> Result<Time> {
        Ok(self.store.clock.now())
    }

    fn append(&mut self, entry: &Entry<'_>) -> Result<()> {
        let rows = Arc::make_mut(&mut self.rows);
        let tx = entry.head.tx;
        rows.things.extend_from_slice(entry.things);
        rows.statements.extend_from_slice(entry.statements);
        rows.provenance.extend(entry.provenance.iter().map(|p| (tx, *p)));
        rows.transactions.extend(entry.transaction.cloned());
        rows.client_batches.extend(entry.client_batch.map(|(id, batch)| (id.to_string(), batch)));
        rows.head = entry.head;
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.store.projects.write().insert(self.scope.clone(), Arc::clone(&self.rows));
        Ok(())
    }
}
