//! Access keys in PostgreSQL: a tenant sees its own keys, and authentication sees one key by its id.

use super::session::{PostgresSession, hash};
use super::{PostgresStore, fault, pool_fault};
use crate::keys::{AccessKey, AccessKeys, key_exists};
use lukasa_model::{Result, Scope, Time};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

const KEY: &str =
    "id, secret, tenant, project, username, scopes, created_at, expires_at, revoked_at, last_used, agents";

fn key(row: &Row) -> Result<AccessKey> {
    let time = |column: usize| row.get::<_, Option<i64>>(column).map(Time);
    Ok(AccessKey {
        id: row.get(0),
        secret: hash(row.get(1))?,
        tenant: row.get(2),
        project: row.get(3),
        user: row.get(4),
        scopes: AccessKey::scopes_of(row.get(5)),
        created_at: Time(row.get(6)),
        expires_at: time(7),
        revoked_at: time(8),
        last_used: time(9),
        agents: AccessKey::agents_of(row.get(10))?,
    })
}

impl PostgresStore {
    /// Begins a transaction that sees the tenant's rows that belong to no project.
    fn as_tenant(&self, tenant: &str) -> Result<Box<PostgresSession<'_>>> {
        self.session_without_lock(&Scope { tenant: tenant.into(), project: String::new() })
    }
}

impl AccessKeys for PostgresStore {
    fn add(&self, key: &AccessKey) -> Result<()> {
        let session = self.as_tenant(&key.tenant)?;
        let time = |time: Option<Time>| time.map(|time| time.0);
        let sql = "INSERT INTO lukasa.access_keys
                       (tenant, project, id, secret, username, scopes, created_at, expires_at, revoked_at, last_used, agents)
                   SELECT $1, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 WHERE $2 = ''";
        // Not ON CONFLICT DO NOTHING: it would need to see the row of another tenant.
        let added = session.try_rows(
            sql,
            &[
                &key.project,
                &key.id,
                &&key.secret.0[..],
                &key.user,
                &key.scope_text(),
                &key.created_at.0,
                &time(key.expires_at),
                &time(key.revoked_at),
                &time(key.last_used),
                &key.agent_text(),
            ],
        );
        match added {
            Err(e) if e.code() == Some(&SqlState::UNIQUE_VIOLATION) => Err(key_exists(&key.id)),
            added => added.map_err(fault).and_then(|_| session.end()),
        }
    }

    fn find(&self, id: &str) -> Result<Option<AccessKey>> {
        self.runtime.block_on(async {
            let mut client = self.pool.get().await.map_err(pool_fault)?;
            // Rolled back when dropped, which also ends the access to this key.
            let transaction = client.transaction().await.map_err(fault)?;
            let name = transaction.prepare_cached("SELECT set_config('lukasa.key', $1, true)").await.map_err(fault)?;
            transaction.query_one(&name, &[&id]).await.map_err(fault)?;
            let sql = format!("SELECT {KEY} FROM lukasa.access_keys WHERE id = $1");
            let query = transaction.prepare_cached(&sql).await.map_err(fault)?;
            let found = transaction.query_opt(&query, &[&id]).await.map_err(fault)?;
            transaction.rollback().await.map_err(fault)?;
            found.as_ref().map(key).transpose()
        })
    }

    fn of_tenant(&self, tenant: &str) -> Result<Vec<AccessKey>> {
        let sql = format!("SELECT {KEY} FROM lukasa.access_keys WHERE tenant = $1 AND $2 = '' ORDER BY created_at, id");
        self.as_tenant(tenant)?.rows(&sql, &[])?.iter().map(key).collect()
    }

    fn revoke(&self, tenant: &str, id: &str, at: Time) -> Result<Option<AccessKey>> {
        let session = self.as_tenant(tenant)?;
        let sql = format!(
            "UPDATE lukasa.access_keys SET revoked_at = coalesce(revoked_at, $4)
             WHERE tenant = $1 AND $2 = '' AND id = $3 RETURNING {KEY}"
        );
        let revoked = session.rows(&sql, &[&id, &at.0])?.first().map(key).transpose()?;
        session.end()?;
        Ok(revoked)
    }

    fn note_use(&self, tenant: &str, id: &str, at: Time) -> Result<bool> {
        let session = self.as_tenant(tenant)?;
        // Locked rows are skipped: a concurrent call records nearly the same time.
        let sql = "UPDATE lukasa.access_keys SET last_used = greatest(last_used, $4)
                   WHERE tenant = $1 AND $2 = '' AND id IN
                       (SELECT id FROM lukasa.access_keys WHERE tenant = $1 AND id = $3 FOR UPDATE SKIP LOCKED)
                   RETURNING 1";
        let noted = !session.rows(sql, &[&id, &at.0])?.is_empty();
        session.end()?;
        Ok(noted)
    }
}
