//! One read or write transaction on one project of a PostgreSQL database.

use super::fault;
use crate::memory::empty_head;
use crate::{ClientBatch, Clock, Counts, Entry, Head, Reader, TransactionFilter, VersionFields, Writer};
use crate::{saturated, small};
use deadpool_postgres::Object;
use lukasa_model::content::ABSENT;
use lukasa_model::json::Hash;
use lukasa_model::plan::Side;
use lukasa_model::types::{Declaration, system};
use lukasa_model::version::{MergeRole, Provenance};
use lukasa_model::{
    BranchNo, Error, ErrorCode, ErrorKind, Fact, FactNo, Period, Position, RelationshipEnds, Result, Scope, Time,
    Transaction, Tx, Version, VersionId,
};
use std::ops::Range;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// A transaction that ends with `commit`, or is rolled back when dropped.
pub struct PostgresSession<'a> {
    client: Option<Object>,
    runtime: &'a Handle,
    scope: Scope,
    clock: Option<&'a dyn Clock>,
    /// The head that a reader sees, which does not change.
    head: Option<Head>,
    /// The project has grown much since its statistics were last updated.
    outgrown: bool,
    _permit: Option<OwnedSemaphorePermit>,
}

/// Whether to update the planner's statistics: each time a project has grown fourfold, from a thousand facts on.
fn needs_new_statistics(before: FactNo, after: FactNo) -> bool {
    let step = |n: FactNo| (n.0 / 1_000).checked_ilog(4).map_or(0, |log| log + 1);
    step(after) > step(before)
}

/// Begins a read transaction that sees one snapshot throughout.
async fn begin_read(client: &Object, scope: &Scope) -> Result<()> {
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.map_err(fault)?;
    set_scope(client, scope).await
}

/// Begins a write transaction with the project's lock. Numbers are assigned under the lock, so they are in commit
/// order.
async fn begin_write(client: &Object, scope: &Scope) -> Result<()> {
    client
        .batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '30s'")
        .await
        .map_err(fault)?;
    set_scope(client, scope).await?;
    let lock = client
        .prepare_cached("SELECT 1 FROM lukasa.projects WHERE tenant = $1 AND project = $2 FOR UPDATE")
        .await
        .map_err(fault)?;
    if client.query_opt(&lock, &[&scope.tenant, &scope.project]).await.map_err(fault)?.is_none() {
        let head = empty_head(scope);
        client
            .execute(
                "INSERT INTO lukasa.projects (tenant, project, namespace, tx, recorded_at, hash, next_thing, declared)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
                &[
                    &scope.tenant,
                    &scope.project,
                    &head.namespace,
                    &saturated(head.tx.0),
                    &head.recorded_at.0,
                    &&head.hash.0[..],
                    &saturated(head.next_thing.0),
                    &saturated(head.declared.tx.0),
                ],
            )
            .await
            .map_err(fault)?;
        client.query_one(&lock, &[&scope.tenant, &scope.project]).await.map_err(fault)?;
    }
    Ok(())
}

async fn set_scope(client: &Object, scope: &Scope) -> Result<()> {
    let set = client
        .prepare_cached("SELECT set_config('lukasa.tenant', $1, true), set_config('lukasa.project', $2, true)")
        .await
        .map_err(fault)?;
    client.query_one(&set, &[&scope.tenant, &scope.project]).await.map_err(fault)?;
    Ok(())
}

const THING: &str = "thing, id, type, key, src, dst, discriminator";
const HEADER: &str = "thing, branch, version, recorded_at, valid_from, valid_to, number, parents, hash";
const TRANSACTION: &str = "tx, recorded_at, branch, objects, relationships, header, hash";
pub(super) const OWN: &str = "tenant = $1 AND project = $2";

impl<'a> PostgresSession<'a> {
    /// Takes a connection; the caller must begin a transaction next.
    pub fn new(
        client: Object,
        runtime: &'a Handle,
        scope: Scope,
        clock: Option<&'a dyn Clock>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> PostgresSession<'a> {
        PostgresSession { client: Some(client), runtime, scope, clock, head: None, outgrown: false, _permit: permit }
    }

    /// Begins a transaction on the project. A writer waits for the lock of the project, and creates the
    /// project if it is missing.
    pub fn begin(&self, write: bool) -> Result<()> {
        self.runtime.block_on(async {
            if write {
                begin_write(self.client(), &self.scope).await
            } else {
                begin_read(self.client(), &self.scope).await
            }
        })
    }

    /// Begins a transaction for data other than facts: sees what is committed and does not take the project's lock.
    pub fn begin_without_lock(&self) -> Result<()> {
        self.runtime.block_on(async {
            let begin = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '30s'";
            self.client().batch_execute(begin).await.map_err(fault)?;
            set_scope(self.client(), &self.scope).await
        })
    }

    /// Drops the session and closes its connection.
    pub fn discard(mut self) {
        self.client.take().map(Object::take);
    }

    /// Commits changes to data other than facts. They can be repeated, so an unknown outcome is a plain failure.
    pub fn end(mut self: Box<Self>) -> Result<()> {
        let client = self.client.take().expect("taken only on drop");
        self.runtime.block_on(async {
            let ended = client.batch_execute("COMMIT").await;
            if ended.is_err() {
                drop(Object::take(client));
            }
            ended.map_err(fault)
        })
    }

    fn client(&self) -> &Object {
        self.client.as_ref().expect("taken only on drop")
    }

    /// Runs a prepared query; tenant and project are its first two parameters.
    pub(super) fn rows(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.try_rows(sql, params).map_err(fault)
    }

    /// Like `rows`, but returns the unconverted error of the server.
    pub(super) fn try_rows(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let mut all: Vec<&(dyn ToSql + Sync)> = vec![&self.scope.tenant, &self.scope.project];
        all.extend_from_slice(params);
        self.runtime.block_on(async {
            let query = self.client().prepare_cached(sql).await?;
            self.client().query(&query, &all).await
        })
    }

    /// Caches the head: a reader's does not change.
    pub fn fix_head(&mut self) -> Result<()> {
        let scope = self.scope.clone();
        self.head = Some(self.try_head()?.ok_or_else(|| crate::memory::unknown_project(&scope))?);
        Ok(())
    }

    /// Returns the head, or `None` if the project does not exist.
    pub fn try_head(&mut self) -> Result<Option<Head>> {
        let sql = format!(
            "SELECT tx, recorded_at, hash, next_thing, declared, namespace,
                    (SELECT t.hash FROM lukasa.transactions t WHERE t.tenant = $1 AND t.project = $2 AND t.tx = p.declared)
             FROM lukasa.projects p WHERE {OWN}"
        );
        let rows = self.rows(&sql, &[])?;
        let read = |row: &Row| {
            Ok(Head {
                tx: Tx(row.get::<_, i64>(0).unsigned_abs()),
                recorded_at: Time(row.get(1)),
                hash: hash(row.get(2))?,
                next_thing: fact_no(row.get(3)),
                declared: Position {
                    tx: Tx(row.get::<_, i64>(4).unsigned_abs()),
                    hash: row.get::<_, Option<&[u8]>>(6).map_or(Ok(Position::START.hash), hash)?,
                },
                namespace: row.get(5),
            })
        };
        rows.first().map(read).transpose()
    }

    /// Returns the names of all projects of the tenant, sorted.
    pub fn projects(&mut self) -> Result<Vec<String>> {
        let sql = "SELECT project FROM lukasa.projects WHERE tenant = $1 AND $2 = '' ORDER BY project";
        Ok(self.rows(sql, &[])?.iter().map(|row| row.get(0)).collect())
    }

    fn facts_where(&self, condition: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Fact>> {
        let sql = format!("SELECT {THING} FROM lukasa.things WHERE {OWN} AND {condition}");
        let mut names = crate::sqlite::TypeNameCache::default();
        let read = |row: &Row| Fact {
            no: fact_no(row.get(0)),
            id: row.get(1),
            type_name: names.share(row.get(2)),
            key: row.get::<_, Option<&str>>(3).map(Into::into),
            ends: row.get::<_, Option<i64>>(4).map(|src| RelationshipEnds {
                src: fact_no(src),
                dst: fact_no(row.get(5)),
                discriminator: row.get::<_, Option<&str>>(6).unwrap_or_default().into(),
            }),
        };
        Ok(self.rows(&sql, params)?.iter().map(read).collect())
    }

    fn versions_where(
        &self,
        condition: &str,
        params: &[&(dyn ToSql + Sync)],
        fields: VersionFields,
    ) -> Result<Vec<Version>> {
        let more = match fields {
            VersionFields::Header => "",
            VersionFields::Content => ", content",
            VersionFields::All => ", content, change",
        };
        let sql = format!("SELECT {HEADER}{more} FROM lukasa.statements WHERE {OWN} AND {condition}");
        let rows = self.rows(&sql, params)?;
        let text = |row: &Row, at: usize| {
            if at < row.len() { row.get::<_, Option<&str>>(at).map(Into::into) } else { None }
        };
        let read = |row: &Row| {
            let hash = hash(row.get(8))?;
            let parents: Option<&[u8]> = row.get(7);
            let number = |chunk: &[u8]| VersionId(u64::from_be_bytes(chunk.try_into().unwrap_or_default()));
            Ok(Version {
                thing: fact_no(row.get(0)),
                branch: BranchNo(row.get::<_, i32>(1).unsigned_abs()),
                version: VersionId(row.get::<_, i64>(2).unsigned_abs()),
                recorded_at: Time(row.get(3)),
                period: Period { from: Time(row.get(4)), to: Time(row.get(5)) },
                number: row.get::<_, i32>(6).unsigned_abs(),
                parents: parents.unwrap_or_default().chunks_exact(8).map(number).collect(),
                absent: hash == ABSENT,
                hash,
                content: text(row, 9),
                change: text(row, 10),
            })
        };
        rows.iter().map(read).collect()
    }

    fn provenance_where(&self, condition: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Provenance>> {
        let sql = format!("SELECT thing, child, parent, role FROM lukasa.provenance WHERE {OWN} AND {condition}");
        let read = |row: &Row| {
            Ok(Provenance {
                thing: fact_no(row.get(0)),
                child: VersionId(row.get::<_, i64>(1).unsigned_abs()),
                parent: VersionId(row.get::<_, i64>(2).unsigned_abs()),
                role: MergeRole::of(row.get(3))?,
            })
        };
        let mut found = self.rows(&sql, params)?.iter().map(read).collect::<Result<Vec<_>>>()?;
        found.sort();
        Ok(found)
    }

    fn transactions_where(&self, condition: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Transaction>> {
        let sql = format!("SELECT {TRANSACTION} FROM lukasa.transactions WHERE {OWN} AND {condition}");
        let read = |row: &Row| {
            let header = serde_json::from_str(row.get(5));
            Ok(Transaction {
                tx: Tx(row.get::<_, i64>(0).unsigned_abs()),
                recorded_at: Time(row.get(1)),
                branch: BranchNo(row.get::<_, i32>(2).unsigned_abs()),
                objects: row.get::<_, i32>(3).unsigned_abs(),
                relationships: row.get::<_, i32>(4).unsigned_abs(),
                header: header.map_err(|e| Error::internal(format!("a log entry is not readable: {e}")))?,
                hash: hash(row.get(6))?,
            })
        };
        self.rows(&sql, params)?.iter().map(read).collect()
    }
}

/// Whether the server reports that it did not commit. A server that is shutting down may have committed nevertheless.
fn is_refusal(error: &tokio_postgres::Error) -> bool {
    let going = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW];
    error.code().is_some_and(|code| !going.contains(code) && !code.code().starts_with("08"))
}

impl Drop for PostgresSession<'_> {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        // Runs in the background, because a drop must not wait. The connection is reused only once it is clean.
        self.runtime.spawn(async move {
            if client.batch_execute("ROLLBACK").await.is_err() {
                drop(Object::take(client));
            }
        });
    }
}

pub(super) fn hash(bytes: &[u8]) -> Result<Hash> {
    bytes
        .try_into()
        .map(Hash)
        .map_err(|_| Error::internal("a stored hash has the wrong length").hint("run `lukasa verify`"))
}

fn numbers(list: &[FactNo]) -> Vec<i64> {
    list.iter().map(|no| saturated(no.0)).collect()
}

/// The number in a column `thing`, `src` or `dst`.
fn fact_no(column: i64) -> FactNo {
    FactNo(column.unsigned_abs())
}

impl Reader for PostgresSession<'_> {
    fn head(&mut self) -> Result<Head> {
        if let Some(head) = self.head {
            return Ok(head);
        }
        let scope = self.scope.clone();
        self.try_head()?.ok_or_else(|| crate::memory::unknown_project(&scope))
    }

    fn position(&mut self, tx: Tx) -> Result<Option<Position>> {
        if tx == Tx::START {
            return Ok(Some(Position::START));
        }
        let sql = format!("SELECT hash FROM lukasa.transactions WHERE {OWN} AND tx = $3");
        let rows = self.rows(&sql, &[&saturated(tx.0)])?;
        rows.first().map(|row| Ok(Position { tx, hash: hash(row.get(0))? })).transpose()
    }

    fn facts(&mut self, ids: &[Uuid]) -> Result<Vec<Fact>> {
        if ids.is_empty() { Ok(vec![]) } else { self.facts_where("id = ANY($3)", &[&ids]) }
    }

    fn facts_numbered(&mut self, list: &[FactNo]) -> Result<Vec<Fact>> {
        if list.is_empty() { Ok(vec![]) } else { self.facts_where("thing = ANY($3)", &[&numbers(list)]) }
    }

    fn objects_keyed(&mut self, keys: &[String]) -> Result<Vec<Fact>> {
        self.facts_where("key = ANY($3)", &[&keys])
    }

    fn objects_like(&mut self, part: &str, limit: usize) -> Result<Vec<Fact>> {
        let pattern = format!("%{}%", part.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_"));
        self.facts_where("key ILIKE $3 ORDER BY thing LIMIT $4", &[&pattern, &saturated(limit)])
    }

    fn objects_with_prefix(&mut self, type_name: Option<&str>, prefix: &str) -> Result<Vec<Fact>> {
        let of_type = match type_name {
            Some(name) => format!("AND type = '{}'", name.replace('\'', "''")),
            None => String::new(),
        };
        let order = "ORDER BY key, thing";
        match crate::end_of_prefix(prefix) {
            Some(end) => {
                let condition = format!("key >= $3 AND key < $4 {of_type} {order}");
                self.facts_where(&condition, &[&prefix, &end])
            }
            None => {
                let condition = format!("key >= $3 {of_type} {order}");
                self.facts_where(&condition, &[&prefix])
            }
        }
    }

    fn facts_in(&mut self, range: Range<FactNo>) -> Result<Vec<Fact>> {
        let condition = "thing >= $3 AND thing < $4 ORDER BY thing";
        self.facts_where(condition, &[&saturated(range.start.0), &saturated(range.end.0)])
    }

    fn versions(&mut self, things: &[FactNo], fields: VersionFields) -> Result<Vec<Version>> {
        if things.is_empty() {
            return Ok(vec![]);
        }
        self.versions_where("thing = ANY($3) ORDER BY thing, branch, version", &[&numbers(things)], fields)
    }

    fn versions_in(&mut self, range: Range<FactNo>, fields: VersionFields) -> Result<Vec<Version>> {
        let condition = "thing >= $3 AND thing < $4 ORDER BY thing, branch, version";
        self.versions_where(condition, &[&saturated(range.start.0), &saturated(range.end.0)], fields)
    }

    fn versions_after(&mut self, after: VersionId, limit: usize) -> Result<Vec<Version>> {
        let condition = "version > $3 ORDER BY version LIMIT $4";
        self.versions_where(condition, &[&saturated(after.0), &saturated(limit)], VersionFields::All)
    }

    fn touched(&mut self, branch: BranchNo, from: Tx, to: Tx) -> Result<Vec<FactNo>> {
        let sql = format!(
            "SELECT DISTINCT thing FROM lukasa.statements
             WHERE {OWN} AND version BETWEEN $3 AND $4 AND branch = $5 ORDER BY thing"
        );
        let (first, last) = (saturated(VersionId::new(from, 0).0), saturated(VersionId::last_of(to).0));
        let rows = self.rows(&sql, &[&first, &last, &small(branch.0)])?;
        Ok(rows.iter().map(|row| fact_no(row.get(0))).collect())
    }

    fn relationships(&mut self, ends: &[(FactNo, Side)]) -> Result<Vec<Fact>> {
        let of = |side| numbers(&ends.iter().filter(|(_, s)| *s == side).map(|(no, _)| *no).collect::<Vec<_>>());
        let mut found = Vec::new();
        for (side, condition) in [(Side::Src, "src = ANY($3)"), (Side::Dst, "dst = ANY($3)")] {
            let list = of(side);
            if !list.is_empty() {
                found.extend(self.facts_where(condition, &[&list])?);
            }
        }
        found.sort_by_key(|t| t.no);
        found.dedup_by_key(|t| t.no);
        Ok(found)
    }

    fn declarations(&mut self) -> Result<Vec<Declaration>> {
        let sql = "SELECT s.version, t.type, t.key, s.content FROM lukasa.things t
                   JOIN lukasa.statements s ON s.tenant = t.tenant AND s.project = t.project AND s.thing = t.thing
                   WHERE t.tenant = $1 AND t.project = $2 AND t.system AND t.key IS NOT NULL ORDER BY s.version";
        let read = |row: &Row| Declaration {
            tx: VersionId(row.get::<_, i64>(0).unsigned_abs()).tx(),
            type_name: row.get::<_, &str>(1).into(),
            key: row.get::<_, &str>(2).into(),
            content: row.get::<_, Option<&str>>(3).map(Into::into),
        };
        Ok(self.rows(sql, &[])?.iter().map(read).collect())
    }

    fn provenance(&mut self, things: &[FactNo]) -> Result<Vec<Provenance>> {
        self.provenance_where("thing = ANY($3)", &[&numbers(things)])
    }

    fn provenance_of(&mut self, tx: Tx) -> Result<Vec<Provenance>> {
        self.provenance_where("tx = $3", &[&saturated(tx.0)])
    }

    fn transactions(&mut self, from: Tx, to: Tx, limit: usize) -> Result<Vec<Transaction>> {
        let condition = "tx BETWEEN $3 AND $4 ORDER BY tx LIMIT $5";
        self.transactions_where(condition, &[&saturated(from.0), &saturated(to.0), &saturated(limit)])
    }

    fn find_transactions(&mut self, find: &TransactionFilter, limit: usize) -> Result<Vec<Transaction>> {
        let limit = saturated(limit);
        match find {
            TransactionFilter::Commit(prefix) => self.transactions_where(
                "git_commit >= $3 AND git_commit < $4 ORDER BY tx DESC LIMIT $5",
                &[prefix, &format!("{prefix}g"), &limit],
            ),
            TransactionFilter::Agent(agent) => {
                self.transactions_where("agent = $3 ORDER BY tx DESC LIMIT $4", &[agent, &limit])
            }
            TransactionFilter::Until(time) => self.transactions_where(
                "recorded_at <= $3 ORDER BY recorded_at DESC, tx DESC LIMIT $4",
                &[&time.0, &limit],
            ),
        }
    }

    fn client_batch(&mut self, client_id: &str) -> Result<Option<ClientBatch>> {
        let sql = format!("SELECT digest, tx, unchanged FROM lukasa.client_batches WHERE {OWN} AND client_id = $3");
        self.rows(&sql, &[&client_id])?.first().map(|row| client_batch(row, 0)).transpose()
    }

    fn client_batches(&mut self) -> Result<Vec<(String, ClientBatch)>> {
        let sql = format!(
            "SELECT client_id, digest, tx, unchanged FROM lukasa.client_batches WHERE {OWN} ORDER BY client_id"
        );
        self.rows(&sql, &[])?.iter().map(|row| Ok((row.get(0), client_batch(row, 1)?))).collect()
    }

    fn counts(&mut self) -> Result<Counts> {
        let count = |table: &str| -> Result<u64> {
            let sql = format!("SELECT count(*) FROM lukasa.{table} WHERE {OWN}");
            Ok(self.rows(&sql, &[])?.first().map_or(0, |row| row.get::<_, i64>(0).unsigned_abs()))
        };
        Ok(Counts { things: count("things")?, statements: count("statements")?, provenance: count("provenance")? })
    }
}

/// Splits versions into slices that fit into one message, by the size of their contents.
fn in_pieces(mut rest: &[Version]) -> Vec<&[Version]> {
    /// Far below the server's limit of 1 GB per value.
    const BYTES: usize = 32 << 20;
    let weight =
        |s: &Version| 200 + s.content.as_ref().map_or(0, |c| c.len()) + s.change.as_ref().map_or(0, |c| c.len());
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|s| {
            bytes += weight(s);
            bytes <= BYTES
        });
        let (piece, later) = rest.split_at(fits.count().max(1));
        pieces.push(piece);
        rest = later;
    }
    pieces
}

fn client_batch(row: &Row, at: usize) -> Result<ClientBatch> {
    Ok(ClientBatch {
        digest: hash(row.get(at))?,
        tx: row.get::<_, Option<i64>>(at + 1).map(|tx| Tx(tx.unsigned_abs())),
        unchanged: u32::try_from(row.get::<_, i64>(at + 2)).unwrap_or(u32::MAX),
    })
}

impl Writer for PostgresSession<'_> {
    fn now(&mut self) -> Result<Time> {
        if let Some(clock) = self.clock {
            return Ok(clock.now());
        }
        // The server's clock, so that many Lukasa servers agree; read after the lock was taken.
        let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint WHERE $1 <> '' OR $2 <> ''";
        let rows = self.rows(sql, &[])?;
        rows.first().map(|row| Time(row.get(0))).ok_or_else(|| Error::internal("the server returned no time"))
    }

    /// PostgreSQL rejects COPY into tables with row-level security, so rows are inserted as arrays: one statement per
    /// table and call, checked by the same policies as any other insert.
    fn append(&mut self, entry: &Entry<'_>) -> Result<()> {
        if !entry.things.is_empty() {
            let t = entry.things;
            let end = |pick: fn(&RelationshipEnds) -> FactNo| -> Vec<Option<i64>> {
                t.iter().map(|t| t.ends.as_ref().map(|e| saturated(pick(e).0))).collect()
            };
            let sql =
                "INSERT INTO lukasa.things (tenant, project, thing, id, type, key, src, dst, discriminator, system)
                       SELECT $1, $2, * FROM unnest($3::bigint[], $4::uuid[], $5::text[], $6::text[], $7::bigint[],
                                                    $8::bigint[], $9::text[], $10::boolean[])";
            self.rows(
                sql,
                &[
                    &t.iter().map(|t| saturated(t.no.0)).collect::<Vec<_>>(),
                    &t.iter().map(|t| t.id).collect::<Vec<_>>(),
                    &t.iter().map(|t| &*t.type_name).collect::<Vec<&str>>(),
                    &t.iter().map(|t| t.key.as_deref()).collect::<Vec<_>>(),
                    &end(|e| e.src),
                    &end(|e| e.dst),
                    &t.iter()
                        .map(|t| t.ends.as_ref().map(|e| &*e.discriminator).filter(|d| !d.is_empty()))
                        .collect::<Vec<_>>(),
                    &t.iter().map(|t| system::is(&t.type_name)).collect::<Vec<_>>(),
                ],
            )?;
        }
        for s in in_pieces(entry.statements) {
            let parents = |s: &Version| {
                (!s.parents.is_empty()).then(|| s.parents.iter().flat_map(|v| v.0.to_be_bytes()).collect::<Vec<u8>>())
            };
            let sql = "INSERT INTO lukasa.statements (tenant, project, thing, branch, version, recorded_at, valid_from,
                                                      valid_to, number, parents, hash, content, change)
                       SELECT $1, $2, * FROM unnest($3::bigint[], $4::integer[], $5::bigint[], $6::bigint[], $7::bigint[],
                           $8::bigint[], $9::integer[], $10::bytea[], $11::bytea[], $12::text[], $13::text[])";
            self.rows(
                sql,
                &[
                    &s.iter().map(|s| saturated(s.thing.0)).collect::<Vec<_>>(),
                    &s.iter().map(|s| small(s.branch.0)).collect::<Vec<_>>(),
                    &s.iter().map(|s| saturated(s.version.0)).collect::<Vec<_>>(),
                    &s.iter().map(|s| s.recorded_at.0).collect::<Vec<_>>(),
                    &s.iter().map(|s| s.period.from.0).collect::<Vec<_>>(),
                    &s.iter().map(|s| s.period.to.0).collect::<Vec<_>>(),
                    &s.iter().map(|s| small(s.number)).collect::<Vec<_>>(),
                    &s.iter().map(parents).collect::<Vec<_>>(),
                    &s.iter().map(|s| &s.hash.0[..]).collect::<Vec<_>>(),
                    &s.iter().map(|s| s.content.as_deref()).collect::<Vec<_>>(),
                    &s.iter().map(|s| s.change.as_deref()).collect::<Vec<_>>(),
                ],
            )?;
        }
        if !entry.provenance.is_empty() {
            let p = entry.provenance;
            let sql = "INSERT INTO lukasa.provenance (tenant, project, thing, child, parent, role, tx)
                       SELECT $1, $2, u.*, $3 FROM unnest($4::bigint[], $5::bigint[], $6::bigint[], $7::smallint[]) u";
            self.rows(
                sql,
                &[
                    &saturated(entry.head.tx.0),
                    &p.iter().map(|p| saturated(p.thing.0)).collect::<Vec<_>>(),
                    &p.iter().map(|p| saturated(p.child.0)).collect::<Vec<_>>(),
                    &p.iter().map(|p| saturated(p.parent.0)).collect::<Vec<_>>(),
                    &p.iter().map(|p| p.role.number()).collect::<Vec<_>>(),
                ],
            )?;
        }
        if let Some(t) = entry.transaction {
            let header = serde_json::to_string(&t.header).expect("a header is plain data");
            let sql =
                "INSERT INTO lukasa.transactions (tenant, project, tx, recorded_at, branch, objects, relationships,
                                                        agent, git_commit, header, hash)
                       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
            self.rows(
                sql,
                &[
                    &saturated(t.tx.0),
                    &t.recorded_at.0,
                    &small(t.branch.0),
                    &small(t.objects),
                    &small(t.relationships),
                    &t.header.agent,
                    &t.header.git_commit.as_ref().map(|c| c.to_lowercase()),
                    &header,
                    &&t.hash.0[..],
                ],
            )?;
        }
        if let Some((client_id, batch)) = entry.client_batch {
            let sql = "INSERT INTO lukasa.client_batches (tenant, project, client_id, digest, tx, unchanged)
                       VALUES ($1, $2, $3, $4, $5, $6)";
            let tx = batch.tx.map(|tx| saturated(tx.0));
            self.rows(sql, &[&client_id, &&batch.digest.0[..], &tx, &i64::from(batch.unchanged)])?;
        }
        let head = entry.head;
        self.outgrown |=
            needs_new_statistics(entry.things.first().map_or(head.next_thing, |first| first.no), head.next_thing);
        let sql = format!(
            "UPDATE lukasa.projects SET namespace = $3, tx = $4, recorded_at = $5, hash = $6, next_thing = $7,
                                        declared = $8 WHERE {OWN}"
        );
        self.rows(
            &sql,
            &[
                &head.namespace,
                &saturated(head.tx.0),
                &head.recorded_at.0,
                &&head.hash.0[..],
                &saturated(head.next_thing.0),
                &saturated(head.declared.tx.0),
            ],
        )?;
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        let client = self.client.take().expect("taken only on drop");
        self.runtime.block_on(async {
            match client.batch_execute("COMMIT").await {
                Ok(()) => {
                    if self.outgrown && client.batch_execute("SELECT lukasa.refresh_statistics()").await.is_err() {
                        // The commit stands; without new statistics plans are only worse until autovacuum runs.
                        drop(Object::take(client));
                    }
                    Ok(())
                }
                Err(e) if is_refusal(&e) => {
                    drop(Object::take(client));
                    Err(fault(e))
                }
                Err(e) => {
                    drop(Object::take(client));
                    Err(Error::new(
                        ErrorKind::Unavailable,
                        ErrorCode::CommitOutcomeUnknown,
                        format!("the connection broke while committing: {}", fault(e).message),
                    )
                    .hint("send the batch again under the same client_id: it commits once"))
                }
            }
        })
    }
}
