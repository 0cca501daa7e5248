//! Access keys in a table of an SQLite file.

use super::{SqliteStore, WriterGuard, fault};
use crate::keys::{AccessKey, AccessKeys, key_exists};
use lukasa_model::json::Hash;
use lukasa_model::{Result, Time};
use rusqlite::types::Type;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, params};
use std::time::Duration;

const KEY: &str = "id, secret, tenant, project, user, scopes, created_at, expires_at, revoked_at, last_used, agents";

fn key(row: &Row<'_>) -> rusqlite::Result<AccessKey> {
    let time = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(Time));
    Ok(AccessKey {
        id: row.get(0)?,
        secret: Hash(row.get(1)?),
        tenant: row.get(2)?,
        project: row.get(3)?,
        user: row.get(4)?,
        scopes: AccessKey::scopes_of(&row.get::<_, String>(5)?),
        created_at: Time(row.get(6)?),
        expires_at: time(7)?,
        revoked_at: time(8)?,
        last_used: time(9)?,
        agents: AccessKey::agents_of(row.get::<_, Option<String>>(10)?.as_deref())
            .map_err(|e| rusqlite::Error::FromSqlConversionFailure(10, Type::Text, e.message.into()))?,
    })
}

fn by_id(connection: &Connection, id: &str) -> Result<Option<AccessKey>> {
    connection
        .prepare_cached(&format!("SELECT {KEY} FROM access_keys WHERE id = ?1"))
        .and_then(|mut query| query.query_row([id], key).optional())
        .map_err(fault)
}

impl SqliteStore {
    /// Runs one statement on the writer connection, which is a transaction in itself.
    fn change_keys<T>(&self, change: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        change(&WriterGuard { connection: self.writer.lock() })
    }
}

impl AccessKeys for SqliteStore {
    fn add(&self, key: &AccessKey) -> Result<()> {
        let time = |time: Option<Time>| time.map(|time| time.0);
        let added = self.change_keys(|connection| {
            let sql = format!("INSERT INTO access_keys ({KEY}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO NOTHING");
            connection
                .execute(
                    &sql,
                    params![
                        key.id,
                        key.secret.0,
                        key.tenant,
                        key.project,
                        key.user,
                        key.scope_text(),
                        key.created_at.0,
                        time(key.expires_at),
                        time(key.revoked_at),
                        time(key.last_used),
                        key.agent_text()
                    ],
                )
                .map_err(fault)
        })?;
        if added == 1 { Ok(()) } else { Err(key_exists(&key.id)) }
    }

    fn find(&self, id: &str) -> Result<Option<AccessKey>> {
        let connection = self.reader()?;
        by_id(&connection, id)
    }

    fn of_tenant(&self, tenant: &str) -> Result<Vec<AccessKey>> {
        let connection = self.reader()?;
        let sql = format!("SELECT {KEY} FROM access_keys WHERE tenant = ?1 ORDER BY created_at, id");
        let mut query = connection.prepare_cached(&sql).map_err(fault)?;
        let rows = query.query_map([tenant], key).map_err(fault)?;
        rows.collect::<Result<_, _>>().map_err(fault)
    }

    fn revoke(&self, tenant: &str, id: &str, at: Time) -> Result<Option<AccessKey>> {
        self.change_keys(|connection| {
            let sql = "UPDATE access_keys SET revoked_at = ?3 WHERE tenant = ?1 AND id = ?2 AND revoked_at IS NULL";
            connection.execute(sql, params![tenant, id, at.0]).map_err(fault)?;
            Ok(by_id(connection, id)?.filter(|key| key.tenant == tenant))
        })
    }

    fn note_use(&self, tenant: &str, id: &str, at: Time) -> Result<bool> {
        // Not on the writer connection, which a load may hold for minutes; and without waiting for other processes.
        let connection = self.reader()?;
        connection.busy_timeout(Duration::ZERO).map_err(fault)?;
        let sql = "UPDATE access_keys SET last_used = max(coalesce(last_used, ?3), ?3) WHERE tenant = ?1 AND id = ?2";
        let noted = connection.execute(sql, params![tenant, id, at.0]);
        connection.busy_timeout(super::BUSY).map_err(fault)?;
        match noted {
            Ok(rows) => Ok(rows > 0),
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(false),
            Err(e) => Err(fault(e)),
        }
    }
}
