//! One read or write transaction on one project of an SQLite file.

use super::flush::{Flusher, checkpoint_later};
use super::rows::{self, Names, tid};
use super::runs::{self, Packed};
use super::{bulk, fault};
use crate::after_all;
use crate::{ClientBatch, Clock, Counts, Entry, Fields, Find, Head, Reader, Writer};
use lukasa_model::json::Hash;
use lukasa_model::plan::Side;
use lukasa_model::statement::{Provenance, Role};
use lukasa_model::types::Declaration;
use lukasa_model::{BranchNo, Error, Position, Result, Statement, Thing, ThingNo, Time, Transaction, Tx, VersionId};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use std::borrow::Borrow;
use std::cell::RefCell;
use std::ops::{ControlFlow, Deref, Range};
use std::path::Path;
use uuid::Uuid;

pub struct Session<'a, C: Deref<Target = Connection>> {
    connection: C,
    scope: i64,
    clock: &'a dyn Clock,
    names: RefCell<Names>,
    load: Option<Load>,
}

/// A load in progress.
struct Load {
    _flusher: Option<Flusher>,
    /// Ids of the facts and ends of the relationships in runs. Sorted only once all are known.
    ids: Vec<(Uuid, ThingNo)>,
    ends: Vec<runs::End>,
}

impl<'a, C: Deref<Target = Connection>> Session<'a, C> {
    pub fn new(connection: C, scope: i64, clock: &'a dyn Clock) -> Self {
        Session { connection, scope, clock, names: RefCell::default(), load: None }
    }

    /// Runs a cached query and visits every row.
    fn each<P: Params>(&self, sql: &str, params: P, mut row: impl FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
        let mut query = self.connection.prepare_cached(sql).map_err(fault)?;
        let mut found = query.query(params).map_err(fault)?;
        while let Some(next) = found.next().map_err(fault)? {
            row(next)?;
        }
        Ok(())
    }

    fn things_where<P: Params>(&self, condition: &str, params: P, out: &mut Vec<Thing>) -> Result<()> {
        let sql = format!("SELECT {} FROM things WHERE {condition}", rows::THING);
        let mut names = self.names.borrow_mut();
        self.each(&sql, params, |row| {
            out.push(rows::thing(row, &mut names).map_err(fault)?);
            Ok(())
        })
    }

    fn statements_where<P: Params>(
        &self,
        condition: &str,
        params: P,
        fields: Fields,
        out: &mut Vec<Statement>,
    ) -> Result<()> {
        let (more, columns) = match fields {
            Fields::Header => ("", 9),
            Fields::Content => (", content", 10),
            Fields::All => (", content, change", 11),
        };
        let sql = format!("SELECT {}{more} FROM statements WHERE {condition}", rows::HEADER);
        self.each(&sql, params, |row| {
            out.push(rows::statement(row, columns).map_err(fault)?);
            Ok(())
        })
    }

    fn provenance_where<P: Params>(&self, condition: &str, params: P, out: &mut Vec<Provenance>) -> Result<()> {
        let sql = format!("SELECT tid, child, parent, role FROM provenance WHERE {condition}");
        self.each(&sql, params, |row| {
            out.push(Provenance {
                thing: rows::number(row.get(0).map_err(fault)?),
                child: VersionId(row.get::<_, i64>(1).map_err(fault)? as u64),
                parent: VersionId(row.get::<_, i64>(2).map_err(fault)? as u64),
                role: Role::of(row.get(3).map_err(fault)?)?,
            });
            Ok(())
        })
    }

    fn transactions_where<P: Params>(&self, condition: &str, params: P) -> Result<Vec<Transaction>> {
        let mut found = Vec::new();
        let sql = format!("SELECT {} FROM transactions WHERE {condition}", rows::TRANSACTION);
        self.each(&sql, params, |row| {
            found.push(rows::transaction(row)?);
            Ok(())
        })?;
        Ok(found)
    }

    fn append_rows<T: Borrow<Thing>, S: Borrow<Statement>>(&self, things: &[T], statements: &[S]) -> Result<()> {
        bulk::insert(&self.connection, rows::ADD_THINGS, &rows::Things(self.scope, things)).map_err(fault)?;
        // Sorted by id, so that neighbours go to the same page.
        let mut by_id: Vec<&Thing> = things.iter().map(Borrow::borrow).collect();
        by_id.sort_unstable_by_key(|thing| thing.id);
        bulk::insert(&self.connection, rows::ADD_IDS, &rows::Things(self.scope, &by_id)).map_err(fault)?;
        bulk::insert(&self.connection, rows::ADD_STATEMENTS, &rows::Statements(self.scope, statements)).map_err(fault)
    }

    fn append_runs(&mut self, entry: &Entry<'_>) -> Result<()> {
        let (runs, things, statements) = runs::pack(entry.things, entry.statements);
        bulk::insert(&self.connection, runs::ADD_RUNS, &runs::Runs(self.scope, &runs)).map_err(fault)?;
        let in_runs = &entry.things[..entry.things.len() - things.len()];
        let mut keyed: Vec<&Thing> = in_runs.iter().filter(|thing| thing.key.is_some()).collect();
        keyed.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        bulk::insert(&self.connection, runs::ADD_KEYS, &runs::Keys(self.scope, &keyed)).map_err(fault)?;
        if let Some(load) = &mut self.load {
            load.ids.extend(in_runs.iter().map(|thing| (thing.id, thing.no)));
            load.ends.extend(in_runs.iter().flat_map(runs::ends));
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
                        Err(Error::invalid("duplicate_in_batch", twice).hint("write each thing once"))
                    }
                    None => Ok(runs::Lists::of_ids(scope, &ids)),
                }
            });
            let ends = runs::by_end(ends);
            bulk::insert(connection, runs::ADD_ENDS, &runs::Lists::of_ends(scope, &ends)).map_err(fault)?;
            drop(ends);
            let ids = ids.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            bulk::insert(connection, runs::ADD_IDS, &ids).map_err(fault)
        })
    }

    fn tids(&self, range: &Range<ThingNo>) -> (i64, i64) {
        (tid(self.scope, range.start), tid(self.scope, range.end))
    }

    /// Visits every run that matches a condition, until the callback stops.
    fn each_run<P: Params>(
        &self,
        condition: &str,
        params: P,
        mut show: impl FnMut(&Packed<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let sql = format!("SELECT {} FROM runs WHERE {condition}", runs::RUN);
        let mut query = self.connection.prepare_cached(&sql).map_err(fault)?;
        let mut found = query.query(params).map_err(fault)?;
        while let Some(row) = found.next().map_err(fault)? {
            if show(&Packed::read(row)?)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Visits those of the facts that are in runs. `things` must be ascending.
    fn in_runs(&self, things: &[ThingNo], mut show: impl FnMut(&Packed<'_>, ThingNo) -> Result<()>) -> Result<()> {
        let mut left = things;
        while let Some(next) = left.first() {
            let mut done = 1;
            let (from, to) = self.tids(&(0..*next));
            self.each_run("first BETWEEN ?1 AND ?2 ORDER BY first DESC LIMIT 1", [from, to], |run| {
                done = left.partition_point(|no| *no < run.end()).max(1);
                for no in left[..done].iter().filter(|no| run.holds(**no)) {
                    show(run, *no)?;
                }
                Ok(ControlFlow::Continue(()))
            })?;
            left = &left[done..];
        }
        Ok(())
    }

    /// Visits all facts of a range that are in runs, ascending.
    fn runs_in(&self, range: &Range<ThingNo>, mut show: impl FnMut(&Packed<'_>, ThingNo) -> Result<()>) -> Result<()> {
        let (from, to) = self.tids(range);
        let condition = "first >= coalesce((SELECT max(first) FROM runs WHERE first BETWEEN ?3 AND ?1), ?1)
            AND first < ?2 ORDER BY first";
        self.each_run(condition, [from, to, tid(self.scope, 0)], |run| {
            for no in run.first.max(range.start)..run.end().min(range.end) {
                show(run, no)?;
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Appends the facts in runs whose keys match a condition on `run_keys`.
    fn keyed_in_runs<P: Params>(&self, condition: &str, params: P, out: &mut Vec<Thing>) -> Result<()> {
        let mut numbers = Vec::new();
        self.each(&format!("SELECT tid FROM run_keys WHERE {condition}"), params, |row| {
            numbers.push(rows::number(row.get(0).map_err(fault)?));
            Ok(())
        })?;
        numbers.sort_unstable();
        self.listed(&numbers, out)
    }

    /// Appends facts in runs that were found through a list. They must exist.
    fn listed(&self, numbers: &[ThingNo], out: &mut Vec<Thing>) -> Result<()> {
        let (mut names, mut found) = (self.names.borrow_mut(), 0);
        self.in_runs(numbers, |run, no| {
            found += 1;
            out.push(run.thing(no, &mut names)?);
            Ok(())
        })?;
        if found == numbers.len() { Ok(()) } else { Err(runs::damaged()) }
    }
}

impl<C: Deref<Target = Connection>> Drop for Session<'_, C> {
    fn drop(&mut self) {
        // Also after a failed load.
        if self.load.take().is_some() {
            let _ = self.connection.execute_batch(super::KEPT);
        }
    }
}

impl<C: Deref<Target = Connection>> Reader for Session<'_, C> {
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
                        tx: row.get::<_, i64>(0)? as u64,
                        recorded_at: Time(row.get(1)?),
                        hash: Hash(row.get(2)?),
                        next_thing: row.get::<_, i64>(3)? as u64,
                        declared: Position {
                            tx: row.get::<_, i64>(4)? as u64,
                            hash: row.get::<_, Option<_>>(6)?.map_or(Position::START.hash, Hash),
                        },
                        namespace: Uuid::from_bytes(row.get(5)?),
                    })
                })
            })
            .map_err(fault)
    }

    fn things(&mut self, ids: &[Uuid]) -> Result<Vec<Thing>> {
        let mut found = Vec::new();
        for id in ids {
            let by_id = "SELECT tid FROM row_ids WHERE scope = ?1 AND id = ?2";
            self.each(by_id, params![self.scope, id.as_bytes()], |row| {
                found.push(rows::number(row.get(0).map_err(fault)?));
                Ok(())
            })?;
            let lists = "SELECT list FROM run_ids WHERE scope = ?1 AND prefix = ?2";
            self.each(lists, [self.scope, i64::from(runs::prefix(id))], |row| {
                found.extend(runs::find_id(list(row)?, id)?);
                Ok(())
            })?;
        }
        self.things_numbered(&found)
    }

    fn things_numbered(&mut self, numbers: &[ThingNo]) -> Result<Vec<Thing>> {
        let (mut found, mut rest) = (Vec::new(), numbers.to_vec());
        rest.sort_unstable();
        rest.dedup();
        let mut names = self.names.borrow_mut();
        self.in_runs(&rest, |run, no| {
            found.push(run.thing(no, &mut names)?);
            Ok(())
        })?;
        drop(names);
        // `found` has the same order as `rest`.
        let mut in_runs = found.iter().map(|thing| thing.no).peekable();
        rest.retain(|no| in_runs.next_if_eq(no).is_none());
        for number in rest {
            self.things_where("tid = ?1", [tid(self.scope, number)], &mut found)?;
        }
        Ok(found)
    }

    fn things_keyed(&mut self, keys: &[String]) -> Result<Vec<Thing>> {
        let mut found = Vec::new();
        for key in keys {
            let condition = "scope = ?1 AND key = ?2";
            self.things_where(condition, params![self.scope, key], &mut found)?;
            self.keyed_in_runs(condition, params![self.scope, key], &mut found)?;
        }
        Ok(found)
    }

    fn things_like(&mut self, part: &str, limit: usize) -> Result<Vec<Thing>> {
        let mut found = Vec::new();
        let pattern = format!("%{}%", part.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_"));
        let condition = "scope = ?1 AND key LIKE ?2 ESCAPE '\\' ORDER BY tid LIMIT ?3";
        self.things_where(condition, params![self.scope, pattern, limit as i64], &mut found)?;
        self.keyed_in_runs(condition, params![self.scope, pattern, limit as i64], &mut found)?;
        found.sort_by_key(|thing| thing.no);
        found.truncate(limit);
        Ok(found)
    }

    fn things_beginning(&mut self, type_name: Option<&str>, prefix: &str) -> Result<Vec<Thing>> {
        let mut found = Vec::new();
        // The partial index on files is only used if the query contains the type as a literal.
        let of_type = match type_name {
            Some(name) => format!("AND type = '{}'", name.replace('\'', "''")),
            None => String::new(),
        };
        match after_all(prefix) {
            Some(end) => {
                let condition = format!("scope = ?1 AND key >= ?2 AND key < ?3 {of_type}");
                self.things_where(&condition, params![self.scope, prefix, end], &mut found)?;
                self.keyed_in_runs(&condition, params![self.scope, prefix, end], &mut found)?;
            }
            None => {
                let condition = format!("scope = ?1 AND key >= ?2 {of_type}");
                self.things_where(&condition, params![self.scope, prefix], &mut found)?;
                self.keyed_in_runs(&condition, params![self.scope, prefix], &mut found)?;
            }
        }
        found.sort_by(|a, b| (&a.key, a.no).cmp(&(&b.key, b.no)));
        Ok(found)
    }

    fn things_in(&mut self, range: Range<ThingNo>) -> Result<Vec<Thing>> {
        let mut found = Vec::new();
        let (from, to) = self.tids(&range);
        self.things_where("tid >= ?1 AND tid < ?2 ORDER BY tid", [from, to], &mut found)?;
        let mut names = self.names.borrow_mut();
        self.runs_in(&range, |run, no| {
            found.push(run.thing(no, &mut names)?);
            Ok(())
        })?;
        found.sort_by_key(|thing| thing.no);
        Ok(found)
    }

    fn statements(&mut self, things: &[ThingNo], fields: Fields) -> Result<Vec<Statement>> {
        let mut found = Vec::new();
        let mut things = things.to_vec();
        things.sort_unstable();
        things.dedup();
        self.in_runs(&things, |run, no| {
            found.push(run.statement(no, fields)?);
            Ok(())
        })?;
        for thing in things {
            self.statements_where("tid = ?1", [tid(self.scope, thing)], fields, &mut found)?;
        }
        found.sort_by_key(|s| (s.thing, s.branch, s.version));
        Ok(found)
    }

    fn statements_in(&mut self, range: Range<ThingNo>, fields: Fields) -> Result<Vec<Statement>> {
        let mut found = Vec::new();
        let (from, to) = self.tids(&range);
        let condition = "tid >= ?1 AND tid < ?2 ORDER BY tid, branch, version";
        self.statements_where(condition, [from, to], fields, &mut found)?;
        self.runs_in(&range, |run, no| {
            found.push(run.statement(no, fields)?);
            Ok(())
        })?;
        found.sort_by_key(|s| (s.thing, s.branch, s.version));
        Ok(found)
    }

    fn statements_after(&mut self, after: VersionId, limit: usize) -> Result<Vec<Statement>> {
        let mut found = Vec::new();
        let condition = "scope = ?1 AND version > ?2 ORDER BY version LIMIT ?3";
        let values = params![self.scope, after.0 as i64, limit as i64];
        self.statements_where(condition, values, Fields::All, &mut found)?;
        let from_rows = found.len();
        // Versions ascend within a run and from one run to the next.
        self.each_run("scope = ?1 AND last > ?2 ORDER BY last", [self.scope, after.0 as i64], |run| {
            for no in run.first..run.end() {
                let statement = run.statement(no, Fields::Header)?;
                if statement.version > after {
                    found.push(run.statement(no, Fields::All)?);
                }
                if found.len() - from_rows == limit {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        found.sort_by_key(|s| s.version);
        found.truncate(limit);
        Ok(found)
    }

    fn touched(&mut self, branch: BranchNo, from: Tx, to: Tx) -> Result<Vec<ThingNo>> {
        let (first, last) = (VersionId::new(from.min(to), 0).0 as i64, VersionId::last_of(to).0 as i64);
        let mut found = Vec::new();
        let sql = "SELECT DISTINCT tid FROM statements INDEXED BY statements_by_version
                   WHERE scope = ?1 AND version BETWEEN ?2 AND ?3 AND branch = ?4 ORDER BY tid";
        if from <= to {
            self.each(sql, [self.scope, first, last, i64::from(branch)], |row| {
                found.push(rows::number(row.get(0).map_err(fault)?));
                Ok(())
            })?;
            self.each_run("scope = ?1 AND last >= ?2 ORDER BY last", [self.scope, first], |run| {
                for no in run.first..run.end() {
                    let statement = run.statement(no, Fields::Header)?;
                    if statement.version.0 as i64 > last {
                        return Ok(ControlFlow::Break(()));
                    }
                    if statement.branch == branch && statement.version.0 as i64 >= first {
                        found.push(no);
                    }
                }
                Ok(ControlFlow::Continue(()))
            })?;
            found.sort_unstable();
            found.dedup();
        }
        Ok(found)
    }

    fn relationships(&mut self, ends: &[(ThingNo, Side)]) -> Result<Vec<Thing>> {
        let (mut found, mut in_runs) = (Vec::new(), Vec::new());
        for (number, side) in ends {
            let condition = if *side == Side::Src { "src = ?1 AND scope = ?2" } else { "dst = ?1 AND scope = ?2" };
            let node = tid(self.scope, *number);
            self.things_where(condition, [node, self.scope], &mut found)?;
            let lists = "SELECT list FROM run_ends WHERE node = ?1 AND side = ?2";
            self.each(lists, [node, i64::from(*side == Side::Dst)], |row| runs::read_list(list(row)?, &mut in_runs))?;
        }
        in_runs.sort_unstable();
        in_runs.dedup();
        self.listed(&in_runs, &mut found)?;
        found.sort_by_key(|t| t.no);
        found.dedup_by_key(|t| t.no);
        Ok(found)
    }

    fn declarations(&mut self) -> Result<Vec<Declaration>> {
        let mut found = Vec::new();
        let mut names = self.names.borrow_mut();
        let sql = "SELECT s.version, t.type, t.key, s.content
                   FROM things t INDEXED BY things_system JOIN statements s ON s.tid = t.tid
                   WHERE t.scope = ?1 AND t.system = 1 AND t.key IS NOT NULL ORDER BY s.version";
        self.each(sql, [self.scope], |row| {
            found.push(Declaration {
                tx: VersionId(row.get::<_, i64>(0).map_err(fault)? as u64).tx(),
                type_name: names.share(&row.get::<_, String>(1).map_err(fault)?),
                key: row.get::<_, String>(2).map_err(fault)?.into(),
                content: row.get::<_, Option<String>>(3).map_err(fault)?.map(Into::into),
            });
            Ok(())
        })?;
        Ok(found)
    }

    fn provenance(&mut self, things: &[ThingNo]) -> Result<Vec<Provenance>> {
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
        self.provenance_where("scope = ?1 AND tx = ?2", [self.scope, tx as i64], &mut found)?;
        found.sort();
        Ok(found)
    }

    fn transactions(&mut self, from: Tx, to: Tx, limit: usize) -> Result<Vec<Transaction>> {
        let to = i64::try_from(to).unwrap_or(i64::MAX);
        self.transactions_where(
            "scope = ?1 AND tx BETWEEN ?2 AND ?3 ORDER BY tx LIMIT ?4",
            params![self.scope, i64::try_from(from).unwrap_or(i64::MAX), to, limit as i64],
        )
    }

    fn find_transactions(&mut self, find: &Find, limit: usize) -> Result<Vec<Transaction>> {
        let limit = limit as i64;
        match find {
            Find::Commit(prefix) => self.transactions_where(
                "scope = ?1 AND git_commit >= ?2 AND git_commit < ?3 ORDER BY tx DESC LIMIT ?4",
                params![self.scope, prefix, format!("{prefix}g"), limit],
            ),
            Find::Agent(agent) => self.transactions_where(
                "scope = ?1 AND agent = ?2 ORDER BY tx DESC LIMIT ?3",
                params![self.scope, agent, limit],
            ),
            Find::Until(time) => self.transactions_where(
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
                        tx: row.get::<_, Option<i64>>(1)?.map(|tx| tx as u64),
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
        self.each(sql, [self.scope], |row| {
            let batch = ClientBatch {
                digest: Hash(row.get(1).map_err(fault)?),
                tx: row.get::<_, Option<i64>>(2).map_err(fault)?.map(|tx| tx as u64),
                unchanged: row.get(3).map_err(fault)?,
            };
            found.push((row.get(0).map_err(fault)?, batch));
            Ok(())
        })?;
        Ok(found)
    }

    fn counts(&mut self) -> Result<Counts> {
        let count = |table: &str| -> Result<u64> {
            let sql = format!("SELECT count(*) FROM {table} WHERE scope = ?1");
            self.connection.query_row(&sql, [self.scope], |r| r.get::<_, i64>(0)).map(|n| n as u64).map_err(fault)
        };
        let sql = "SELECT coalesce(sum(things), 0) FROM runs WHERE scope = ?1";
        let in_runs = self.connection.query_row(sql, [self.scope], |r| r.get::<_, i64>(0)).map_err(fault)? as u64;
        Ok(Counts {
            things: count("things")? + in_runs,
            statements: count("statements")? + in_runs,
            provenance: count("provenance")?,
        })
    }
}

impl<C: Deref<Target = Connection>> Writer for Session<'_, C> {
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
                    p.child.0 as i64,
                    p.parent.0 as i64,
                    p.role.number(),
                    self.scope,
                    entry.head.tx as i64
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
                        t.tx as i64,
                        t.recorded_at.0,
                        t.branch,
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
                    params![self.scope, client_id, batch.digest.0, batch.tx.map(|tx| tx as i64), batch.unchanged],
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
                    entry.head.tx as i64,
                    entry.head.recorded_at.0,
                    entry.head.hash.0,
                    entry.head.next_thing as i64,
                    entry.head.declared.tx as i64
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

/// The bytes of a list in a row's only column.
fn list<'r>(row: &'r Row<'_>) -> Result<&'r [u8]> {
    row.get_ref(0).map_err(fault)?.as_blob().map_err(|e| fault(e.into()))
}
