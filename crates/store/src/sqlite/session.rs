//! One read or write transaction on one project of an SQLite file.

use super::facts::FactReader;
use super::flush::{Flusher, checkpoint_later};
use super::rows::{self, TypeNameCache, each, tid};
use super::{bulk, fault, packed_rows};
use crate::{ClientBatch, Clock, Counts, Entry, Head, Reader, TransactionFilter, VersionFields, Writer, saturated};
use lukasa_model::json::Hash;
use lukasa_model::plan::Side;
use lukasa_model::types::Declaration;
use lukasa_model::version::{MergeRole, Provenance};
use lukasa_model::{
    BranchNo, Error, ErrorCode, Fact, FactNo, Position, Result, Time, Transaction, Tx, Version, VersionId,
};
use rusqlite::{Connection, OptionalExtension, Params, params};
use std::borrow::Borrow;
use std::cell::RefCell;
use std::ops::{Deref, Range};
use std::path::Path;
use uuid::Uuid;

/// A transaction on one project. `C` is a pooled reader, or the writer connection.
pub struct SqliteSession<'a, C: Deref<Target = Connection>> {
    connection: C,
    scope: i64,
    clock: &'a dyn Clock,
    names: RefCell<TypeNameCache>,
    load: Option<Load>,
}

/// A load in progress.
struct Load {
    _flusher: Option<Flusher>,
    /// Ids of the facts and ends of the relationships in runs. Sorted only once all are known.
    ids: Vec<(Uuid, FactNo)>,
    ends: Vec<packed_rows::PackedEnd>,
}

impl<'a, C: Deref<Target = Connection>> SqliteSession<'a, C> {
    pub fn new(connection: C, scope: i64, clock: &'a dyn Clock) -> Self {
        SqliteSession { connection, scope, clock, names: RefCell::default(), load: None }
    }

    fn fact_reader(&self) -> FactReader<'_> {
        FactReader { connection: &self.connection, scope: self.scope, names: &self.names }
    }

    fn provenance_where<P: Params>(&self, condition: &str, params: P, out: &mut Vec<Provenance>) -> Result<()> {
        let sql = format!("SELECT tid, child, parent, role FROM provenance WHERE {condition}");
        each(&self.connection, &sql, params, |row| {
            out.push(Provenance {
                thing: rows::number(row.get(0).map_err(fault)?),
                child: VersionId(row.get(1).map_err(fault)?),
                parent: VersionId(row.get(2).map_err(fault)?),
                role: MergeRole::of(row.get(3).map_err(fault)?)?,
            });
            Ok(())
        })
    }

    fn transactions_where<P: Params>(&self, condition: &str, params: P) -> Result<Vec<Transaction>> {
        let mut found = Vec::new();
        let sql = format!("SELECT {} FROM transactions WHERE {condition}", rows::TRANSACTION);
        each(&self.connection, &sql, params, |row| {
            found.push(rows::read_transaction(row)?);
            Ok(())
        })?;
        Ok(found)
    }

    fn append_rows<T: Borrow<Fact>, S: Borrow<Version>>(&self, things: &[T], statements: &[S]) -> Result<()> {
        bulk::insert(&self.connection, rows::ADD_FACTS, &rows::NewFacts(self.scope, things)).map_err(fault)?;
        // Sorted by id, so that neighbours go to the same page.
        let mut by_id: Vec<&Fact> = things.iter().map(Borrow::borrow).collect();
        by_id.sort_unstable_by_key(|thing| thing.id);
        bulk::insert(&self.connection, rows::ADD_IDS, &rows::NewFacts(self.scope, &by_id)).map_err(fault)?;
        bulk::insert(&self.connection, rows::ADD_VERSIONS, &rows::NewVersions(self.scope, statements)).map_err(fault)
    }

    fn append_runs(&mut self, entry: &Entry<'_>) -> Result<()> {
        let (runs, things, statements) = packed_rows::pack(entry.things, entry.statements);
        bulk::insert(&self.connection, packed_rows::ADD_RUNS, &packed_rows::NewPackedRows(self.scope, &runs))
            .map_err(fault)?;
        let in_runs = &entry.things[..entry.things.len() - things.len()];
        let mut keyed: Vec<&Fact> = in_runs.iter().filter(|thing| thing.key.is_some()).collect();
        keyed.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        bulk::insert(&self.connection, packed_rows::ADD_KEYS, &packed_rows::NewPackedKeys(self.scope, &keyed))
            .map_err(fault)?;
        if let Some(load) = &mut self.load {
            load.ids.extend(in_runs.iter().map(|thing| (thing.id, thing.no)));
            load.ends.extend(in_runs.iter().flat_map(packed_rows::ends));
        }
        self.append_rows(&things, &statements)
    }

    /// Writes the lists by which facts in runs are found, each list at once.
    fn write_lists(&mut self) -> Result<()> {
        let Some(load) = &mut self.load else { return Ok(()) };
        let (mut ids, ends) = (std::mem::take(&mut load.ids), std::mem::take(&mut load.ends));
        let (connection, scope) = (&*self.connection, self.scope);
        std::thread::scope(|threads| {
            let ids = threads.spawn(move || {
                ids.sort_unstable();
                // A table of single ids would reject duplicates by its unique key; here they must be checked.
                match ids.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                    Some(pair) => {
                        let twice = format!("{} is written twice in one load", pair[0].0);
                        Err(Error::invalid(ErrorCode::DuplicateInBatch, twice).hint("write each fact once"))
                    }
                    None => Ok(packed_rows::FactLists::of_ids(scope, &ids)),
                }
            });
            let ends = packed_rows::by_end(ends);
            bulk::insert(connection, packed_rows::ADD_ENDS, &packed_rows::FactLists::of_ends(scope, &ends))
                .map_err(fault)?;
            drop(ends);
            let ids = ids.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            bulk::insert(connection, packed_rows::ADD_IDS, &ids).map_err(fault)
        })
    }
}

impl<C: Deref<Target = Connection>> Drop for SqliteSession<'_, C> {
    fn drop(&mut self) {
        // Also after a failed load.
        if self.load.take().is_some() {
            let _ = self.connection.execute_batch(super::CACHE_PRAGMAS);
        }
    }
}

impl<C: Deref<Target = Connection>> Reader for SqliteSession<'_, C> {
    fn head(&mut self) -> Result<Head> {
        self.connection
            .prepare_cached(
                "SELECT tx, recorded_at, hash, next_thing, declared, namespace,
                        (SELECT t.hash FROM transactions t WHERE t.scope = projects.scope AND t.tx = declared)
                 FROM projects WHERE scope = ?1",
            )
            .and_then(|mut q| {
                q.query_row([self.scope], |row| {
                    Ok(Head {
                        tx: Tx(row.get(0)?),
                        recorded_at: Time(row.get(1)?),
                        hash: Hash(row.get(2)?),
                        next_thing: FactNo(row.get(3)?),
                        declared: Position {
                            tx: Tx(row.get(4)?),
                            hash: row.get::<_, Option<_>>(6)?.map_or(Position::START.hash, Hash),
                        },
                        namespace: Uuid::from_bytes(row.get(5)?),
                    })
                })
            })
            .map_err(fault)
    }

    fn facts(&mut self, ids: &[Uuid]) -> Result<Vec<Fact>> {
        self.fact_reader().facts(ids)
    }

    fn facts_numbered(&mut self, numbers: &[FactNo]) -> Result<Vec<Fact>> {
        self.fact_reader().facts_numbered(numbers)
    }

    fn objects_keyed(&mut self, keys: &[String]) -> Result<Vec<Fact>> {
        self.fact_reader().objects_keyed(keys)
    }

    fn objects_like(&mut self, part: &str, limit: usize) -> Result<Vec<Fact>> {
        self.fact_reader().objects_like(part, limit)
    }

    fn objects_with_prefix(&mut self, type_name: Option<&str>, prefix: &str) -> Result<Vec<Fact>> {
        self.fact_reader().objects_with_prefix(type_name, prefix)
    }

    fn facts_in(&mut self, range: Range<FactNo>) -> Result<Vec<Fact>> {
        self.fact_reader().facts_in(range)
    }

    fn versions(&mut self, things: &[FactNo], fields: VersionFields) -> Result<Vec<Version>> {
        self.fact_reader().versions(things, fields)
    }

    fn versions_in(&mut self, range: Range<FactNo>, fields: VersionFields) -> Result<Vec<Version>> {
        self.fact_reader().versions_in(range, fields)
    }

    fn versions_after(&mut self, after: VersionId, limit: usize) -> Result<Vec<Version>> {
        self.fact_reader().versions_after(after, limit)
    }

    fn touched(&mut self, branch: BranchNo, from: Tx, to: Tx) -> Result<Vec<FactNo>> {
        self.fact_reader().touched(branch, from, to)
    }

    fn relationships(&mut self, ends: &[(FactNo, Side)]) -> Result<Vec<Fact>> {
        self.fact_reader().relationships(ends)
    }

    fn declarations(&mut self) -> Result<Vec<Declaration>> {
        self.fact_reader().declarations()
    }

    fn provenance(&mut self, things: &[FactNo]) -> Result<Vec<Provenance>> {
        let mut found = Vec::new();
        for thing in things {
            self.provenance_where("tid = ?1", [tid(self.scope, *thing)], &mut found)?;
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    fn provenance_of(&mut self, tx: Tx) -> Result<Vec<Provenance>> {
        let mut found = Vec::new();
        self.provenance_where("scope = ?1 AND tx = ?2", [self.scope, saturated(tx.0)], &mut found)?;
        found.sort();
        Ok(found)
    }

    fn transactions(&mut self, from: Tx, to: Tx, limit: usize) -> Result<Vec<Transaction>> {
        self.transactions_where(
            "scope = ?1 AND tx BETWEEN ?2 AND ?3 ORDER BY tx LIMIT ?4",
            [self.scope, saturated(from.0), saturated(to.0), saturated(limit)],
        )
    }

    fn find_transactions(&mut self, find: &TransactionFilter, limit: usize) -> Result<Vec<Transaction>> {
        let limit = saturated(limit);
        match find {
            TransactionFilter::Commit(prefix) => self.transactions_where(
                "scope = ?1 AND git_commit >= ?2 AND git_commit < ?3 ORDER BY tx DESC LIMIT ?4",
                params![self.scope, prefix, format!("{prefix}g"), limit],
            ),
            TransactionFilter::Agent(agent) => self.transactions_where(
                "scope = ?1 AND agent = ?2 ORDER BY tx DESC LIMIT ?3",
                params![self.scope, agent, limit],
            ),
            TransactionFilter::Until(time) => self.transactions_where(
                "scope = ?1 AND recorded_at <= ?2 ORDER BY recorded_at DESC, tx DESC LIMIT ?3",
                params![self.scope, time.0, limit],
            ),
        }
    }

    fn client_batch(&mut self, client_id: &str) -> Result<Option<ClientBatch>> {
        self.connection
            .prepare_cached("SELECT digest, tx, unchanged FROM client_batches WHERE scope = ?1 AND client_id = ?2")
            .and_then(|mut q| {
                q.query_row(params![self.scope, client_id], |row| {
                    Ok(ClientBatch {
                        digest: Hash(row.get(0)?),
                        tx: row.get::<_, Option<u64>>(1)?.map(Tx),
                        unchanged: row.get(2)?,
                    })
                })
                .optional()
            })
            .map_err(fault)
    }

    fn client_batches(&mut self) -> Result<Vec<(String, ClientBatch)>> {
        let mut found = Vec::new();
        let sql = "SELECT client_id, digest, tx, unchanged FROM client_batches WHERE scope = ?1 ORDER BY client_id";
        each(&self.connection, sql, [self.scope], |row| {
            let batch = ClientBatch {
                digest: Hash(row.get(1).map_err(fault)?),
                tx: row.get::<_, Option<u64>>(2).map_err(fault)?.map(Tx),
                unchanged: row.get(3).map_err(fault)?,
            };
            found.push((row.get(0).map_err(fault)?, batch));
            Ok(())
        })?;
        Ok(found)
    }

    fn counts(&mut self) -> Result<Counts> {
        self.fact_reader().counts()
    }
}

impl<C: Deref<Target = Connection>> Writer for SqliteSession<'_, C> {
    fn now(&mut self) -> Result<Time> {
        Ok(self.clock.now())
    }

    fn expect_many(&mut self) -> Result<()> {
        let few = "SELECT count(*) <= 1000 AND NOT EXISTS (SELECT 1 FROM runs) FROM (SELECT 1 FROM things LIMIT 1001)";
        if self.connection.query_row(few, [], |row| row.get(0)).map_err(fault)? {
            // Nearly everything is written sequentially, so its pages need not stay in memory.
            self.connection.execute_batch("PRAGMA cache_size = -8192").map_err(fault)?;
        }
        self.connection.execute_batch("PRAGMA wal_autocheckpoint = 0").map_err(fault)?;
        let flusher = self.connection.path().map(|path| Flusher::start(Path::new(path)));
        self.load = Some(Load { _flusher: flusher, ids: vec![], ends: vec![] });
        Ok(())
    }

    fn append(&mut self, entry: &Entry<'_>) -> Result<()> {
        match self.load {
            Some(_) => self.append_runs(entry)?,
            None => self.append_rows(entry.things, entry.statements)?,
        }
        let mut insert = self
            .connection
            .prepare_cached(
                "INSERT INTO provenance (tid, child, parent, role, scope, tx) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )
            .map_err(fault)?;
        for p in entry.provenance {
            insert
                .execute(params![
                    tid(self.scope, p.thing),
                    p.child.0,
                    p.parent.0,
                    p.role.number(),
                    self.scope,
                    entry.head.tx.0
                ])
                .map_err(fault)?;
        }
        if let Some(t) = entry.transaction {
            let header = serde_json::to_string(&t.header).expect("a header is plain data");
            self.connection
                .prepare_cached(
                    "INSERT INTO transactions (scope, tx, recorded_at, branch, objects, relationships, agent,
                                               git_commit, header, hash)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                )
                .and_then(|mut q| {
                    q.execute(params![
                        self.scope,
                        t.tx.0,
                        t.recorded_at.0,
                        t.branch.0,
                        t.objects,
                        t.relationships,
                        t.header.agent,
                        t.header.git_commit.as_ref().map(|c| c.to_lowercase()),
                        header,
                        t.hash.0
                    ])
                })
                .map_err(fault)?;
        }
        if let Some((client_id, batch)) = entry.client_batch {
            self.connection
                .execute(
                    "INSERT INTO client_batches (scope, client_id, digest, tx, unchanged) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![self.scope, client_id, batch.digest.0, batch.tx.map(|tx| tx.0), batch.unchanged],
                )
                .map_err(fault)?;
        }
        self.connection
            .prepare_cached(
                "UPDATE projects SET namespace = ?2, tx = ?3, recorded_at = ?4, hash = ?5, next_thing = ?6, declared = ?7
                 WHERE scope = ?1",
            )
            .and_then(|mut q| {
                q.execute(params![
                    self.scope,
                    entry.head.namespace.as_bytes(),
                    entry.head.tx.0,
                    entry.head.recorded_at.0,
                    entry.head.hash.0,
                    entry.head.next_thing.0,
                    entry.head.declared.tx.0
                ])
            })
            .map_err(fault)?;
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        self.write_lists()?;
        self.connection.execute_batch("COMMIT").map_err(fault)?;
        if let (Some(_), Some(path)) = (&self.load, self.connection.path()) {
            checkpoint_later(path.into());
        }
        Ok(())
    }
}
