//! The audit trail in PostgreSQL: a tenant sees its own entries, and the application may add but not change them.

use super::session::hash;
use super::{PostgresStore, fault, pool_fault};
use crate::audit::{AuditEntry, AuditFilter, AuditHead, AuditNote, AuditTrail, Seals, counts_of, counts_text, linked};
use crate::saturated;
use lukasa_model::json::Hash;
use lukasa_model::{Result, Time};
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Transaction};

const ENTRY: &str = "tenant, server, number, at, project, username, agent, operation, scopes, request, status, counts, \
                     truncated, took_us, request_id, previous, hash, address";

fn entry(row: &Row) -> Result<AuditEntry> {
    Ok(AuditEntry {
        server: row.get(1),
        number: row.get::<_, i64>(2).unsigned_abs(),
        note: AuditNote {
            tenant: row.get(0),
            at: Time(row.get(3)),
            project: row.get(4),
            user: row.get(5),
            agent: row.get(6),
            operation: row.get(7),
            scopes: row.get(8),
            request: row.get(9),
            status: row.get(10),
            counts: counts_of(row.get(11)),
            truncated: row.get(12),
            took_us: row.get::<_, i64>(13).unsigned_abs(),
            request_id: row.get(14),
            address: row.get(17),
        },
        previous: hash(row.get(15))?,
        hash: hash(row.get(16))?,
    })
}

/// Restricts the transaction to the tenant's rows that belong to no project.
async fn as_tenant(transaction: &Transaction<'_>, tenant: &str) -> Result<()> {
    let sql = "SELECT set_config('lukasa.tenant', $1, true), set_config('lukasa.project', '', true)";
    let set = transaction.prepare(sql).await.map_err(fault)?;
    transaction.query_one(&set, &[&tenant]).await.map(drop).map_err(fault)
}

/// Returns the head of the chain and locks the chain until the transaction ends.
async fn end_of(transaction: &Transaction<'_>, tenant: &str, server: &str) -> Result<Option<AuditHead>> {
    as_tenant(transaction, tenant).await?;
    // An advisory lock, because two servers may start the same chain and a missing row cannot be locked.
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1 || chr(10) || $2, 7813502))";
    transaction.query_one(lock, &[&tenant, &server]).await.map_err(fault)?;
    let sql = format!("SELECT {HEAD} FROM lukasa.audit_heads WHERE tenant = $1 AND server = $2");
    let end = transaction.query_opt(&sql, &[&tenant, &server]).await.map_err(fault)?;
    end.as_ref().map(head).transpose()
}

const HEAD: &str = "tenant, server, number, hash, seal, seal_key";

/// Reads the columns of [`HEAD`].
fn head(row: &Row) -> Result<AuditHead> {
    Ok(AuditHead {
        tenant: row.get(0),
        server: row.get(1),
        number: row.get::<_, i64>(2).unsigned_abs(),
        hash: hash(row.get(3))?,
        seal: hash(row.get(4))?,
        seal_key: row.get(5),
    })
}

async fn add(transaction: &Transaction<'_>, head: &AuditHead, entries: &[AuditEntry]) -> Result<()> {
    as_tenant(transaction, &head.tenant).await?;
    // One statement for all entries: one array per column.
    let texts = |of: fn(&AuditEntry) -> &str| entries.iter().map(of).collect::<Vec<&str>>();
    let numbers = |of: fn(&AuditEntry) -> i64| entries.iter().map(of).collect::<Vec<i64>>();
    let perhaps = |of: fn(&AuditEntry) -> &Option<String>| {
        entries.iter().map(|e| of(e).as_deref()).collect::<Vec<Option<&str>>>()
    };
    let counts: Vec<String> = entries.iter().map(|entry| counts_text(&entry.note.counts)).collect();
    let truncated: Vec<bool> = entries.iter().map(|entry| entry.note.truncated).collect();
    let hashes = |of: fn(&AuditEntry) -> &Hash| entries.iter().map(|e| &of(e).0[..]).collect::<Vec<&[u8]>>();
    let sql = format!(
        "INSERT INTO lukasa.audit ({ENTRY})
         SELECT $1, $2, * FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[],
             $9::text[], $10::text[], $11::text[], $12::text[], $13::boolean[], $14::bigint[], $15::text[],
             $16::bytea[], $17::bytea[], $18::text[])"
    );
    let values: [&(dyn ToSql + Sync); 18] = [
        &head.tenant,
        &head.server,
        &numbers(|e| saturated(e.number)),
        &numbers(|e| e.note.at.0),
        &texts(|e| &e.note.project),
        &perhaps(|e| &e.note.user),
        &perhaps(|e| &e.note.agent),
        &texts(|e| &e.note.operation),
        &texts(|e| &e.note.scopes),
        &texts(|e| &e.note.request),
        &texts(|e| &e.note.status),
        &counts,
        &truncated,
        &numbers(|e| saturated(e.note.took_us)),
        &perhaps(|e| &e.note.request_id),
        &hashes(|e| &e.previous),
        &hashes(|e| &e.hash),
        &perhaps(|e| &e.note.address),
    ];
    transaction.execute(&sql, &values).await.map_err(fault)?;
    let sql =
        "INSERT INTO lukasa.audit_heads (tenant, server, number, hash, seal, seal_key) VALUES ($1, $2, $3, $4, $5, $6)
               ON CONFLICT (tenant, server) DO UPDATE SET number = excluded.number, hash = excluded.hash,
               seal = excluded.seal, seal_key = excluded.seal_key";
    let AuditHead { tenant, server, number, hash, seal, seal_key } = head;
    transaction
        .execute(sql, &[tenant, server, &saturated(*number), &&hash.0[..], &&seal.0[..], seal_key])
        .await
        .map(drop)
        .map_err(fault)
}

impl PostgresStore {
    fn audit_rows(&self, tenant: &str, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.runtime.block_on(async {
            let mut client = self.pool.get().await.map_err(pool_fault)?;
            let transaction = client.transaction().await.map_err(fault)?;
            as_tenant(&transaction, tenant).await?;
            let rows = transaction.query(sql, values).await.map_err(fault)?;
            transaction.rollback().await.map_err(fault)?;
            Ok(rows)
        })
    }
}

impl AuditTrail for PostgresStore {
    fn append(&self, server: &str, notes: &[AuditNote], seals: &dyn Seals, durable: bool) -> Result<()> {
        // Ordered by tenant, so that concurrent appends cannot deadlock.
        let tenants: BTreeSet<&str> = notes.iter().map(|note| note.tenant.as_str()).collect();
        let appended = self.runtime.block_on(async {
            let mut client = self.pool.get().await.map_err(pool_fault)?;
            // Rolled back when dropped.
            let transaction = client.transaction().await.map_err(fault)?;
            let synchronous = if durable { "on" } else { "off" };
            let set = format!("SET LOCAL lock_timeout = '30s'; SET LOCAL synchronous_commit = {synchronous}");
            transaction.batch_execute(&set).await.map_err(fault)?;
            let mut ends = BTreeMap::new();
            for tenant in tenants {
                ends.insert(tenant, end_of(&transaction, tenant, server).await?);
            }
            let end = |tenant: &str| Ok(ends.get_mut(tenant).and_then(Option::take));
            for (head, entries) in linked(server, notes, seals, end)? {
                add(&transaction, &head, &entries).await?;
            }
            transaction.commit().await.map_err(fault)
        });
        self.seen(appended)
    }

    fn heads(&self, tenant: &str) -> Result<Vec<AuditHead>> {
        let sql = format!("SELECT {HEAD} FROM lukasa.audit_heads WHERE tenant = $1 ORDER BY server");
        self.audit_rows(tenant, &sql, &[&tenant])?.iter().map(head).collect()
    }

    fn servers(&self, tenant: &str) -> Result<Vec<String>> {
        let sql = "SELECT DISTINCT server FROM lukasa.audit WHERE tenant = $1 ORDER BY server";
        Ok(self.audit_rows(tenant, sql, &[&tenant])?.iter().map(|row| row.get(0)).collect())
    }

    fn chain(&self, tenant: &str, server: &str, after: u64, limit: usize) -> Result<Vec<AuditEntry>> {
        let sql = format!(
            "SELECT {ENTRY} FROM lukasa.audit WHERE tenant = $1 AND server = $2 AND number > $3 ORDER BY number LIMIT $4"
        );
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        self.audit_rows(tenant, &sql, &[&tenant, &server, &after, &saturated(limit)])?.iter().map(entry).collect()
    }

    fn find(&self, tenant: &str, find: &AuditFilter, limit: usize) -> Result<Vec<AuditEntry>> {
        let sql = format!(
            "SELECT {ENTRY} FROM lukasa.audit WHERE tenant = $1
             AND ($2::text IS NULL OR project = $2) AND ($3::text IS NULL OR operation = $3)
             AND ($4::text IS NULL OR username = $4) AND ($5::text IS NULL OR status = $5)
             AND at >= $6 AND at < $7 ORDER BY at DESC, server, number DESC LIMIT $8"
        );
        let since = find.since.map_or(i64::MIN, |time| time.0);
        let until = find.until.map_or(i64::MAX, |time| time.0);
        let AuditFilter { project, operation, user, status, .. } = find;
        let values: [&(dyn ToSql + Sync); 8] =
            [&tenant, project, operation, user, status, &since, &until, &saturated(limit)];
        self.audit_rows(tenant, &sql, &values)?.iter().map(entry).collect()
    }
}
