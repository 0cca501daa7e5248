//! The audit trail in a file beside the store: appending does not wait for writers of facts, and restoring facts from a
//! backup does not revert it.

use super::{BUSY, Durability, SqliteStore, audit_migrations, connect, fault, migrate, refuse_foreign};
use crate::audit::{AuditEntry, AuditFilter, AuditHead, AuditNote, AuditTrail, Seals, counts_of, counts_text, linked};
use crate::saturated;
use lukasa_model::json::Hash;
use lukasa_model::{Result, Time};
use parking_lot::MappedMutexGuard;
use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, TransactionBehavior, params, params_from_iter};
use std::path::{Path, PathBuf};
use std::time::Duration;

const ENTRY: &str = "tenant, server, number, at, project, user, agent, operation, scopes, request, status, counts, \
                     truncated, took_us, request_id, previous, hash, address";

/// Size of the write-ahead log above which it is checkpointed on open: some sixty entries.
const LOG_BYTES: u64 = 2 << 20;

/// The path of the audit trail of a store.
pub(super) fn file_of(store: &Path) -> PathBuf {
    store.with_extension("audit.db")
}

fn entry(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    Ok(AuditEntry {
        server: row.get(1)?,
        number: row.get(2)?,
        note: AuditNote {
            tenant: row.get(0)?,
            at: Time(row.get(3)?),
            project: row.get(4)?,
            user: row.get(5)?,
            agent: row.get(6)?,
            operation: row.get(7)?,
            scopes: row.get(8)?,
            request: row.get(9)?,
            status: row.get(10)?,
            counts: counts_of(&row.get::<_, String>(11)?),
            truncated: row.get(12)?,
            took_us: row.get(13)?,
            request_id: row.get(14)?,
            address: row.get(17)?,
        },
        previous: hash(row, 15)?,
        hash: hash(row, 16)?,
    })
}

const HEAD: &str = "tenant, server, number, hash, seal, seal_key";

/// Reads the columns of [`HEAD`].
fn head(row: &Row<'_>) -> rusqlite::Result<AuditHead> {
    Ok(AuditHead {
        tenant: row.get(0)?,
        server: row.get(1)?,
        number: row.get(2)?,
        hash: hash(row, 3)?,
        seal: hash(row, 4)?,
        seal_key: row.get(5)?,
    })
}

/// Reads a hash. A value of the wrong length becomes zeros, which equal no stored hash.
fn hash(row: &Row<'_>, column: usize) -> rusqlite::Result<Hash> {
    let bytes: Vec<u8> = row.get(column)?;
    Ok(Hash(bytes.try_into().unwrap_or([0; 32])))
}

/// Disables the checkpoint on close, so that a short command does not wait for the disk; its entries are in the
/// write-ahead log. A large log is checkpointed on open, unless another process is using it.
fn settle(connection: &Connection, path: &Path) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if Path::new(&log).metadata().map_or(0, |log| log.len()) > LOG_BYTES {
        connection.busy_timeout(Duration::ZERO)?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        connection.busy_timeout(BUSY)?;
    }
    Ok(())
}

impl SqliteStore {
    /// Returns the connection for appending, creating the file on first use.
    fn audit_writer(&self) -> Result<MappedMutexGuard<'_, Connection>> {
        let mut writer = self.audit.lock();
        if writer.is_none() {
            let path = file_of(&self.path);
            refuse_foreign(&path)?;
            let mut connection = connect(&path, Durability::Full)?;
            // Appending does not read old pages again, so a large cache would be wasted.
            connection.execute_batch("PRAGMA cache_size = -2048").map_err(|e| fault(e).at(path.display()))?;
            migrate(&mut connection, &path, audit_migrations::migrations::runner())?;
            settle(&connection, &path).map_err(|e| fault(e).at(path.display()))?;
            *writer = Some(connection);
        }
        Ok(parking_lot::MutexGuard::map(writer, |writer| writer.as_mut().expect("opened just now")))
    }

    /// Opens a connection for reading; `None` before the first entry. Not pooled, because it is rarely needed.
    fn audit_reader(&self) -> Result<Option<Connection>> {
        let path = file_of(&self.path);
        if path.metadata().map_or(0, |m| m.len()) == 0 {
            return Ok(None);
        }
        // The file may have an older schema; opening the writer migrates it.
        drop(self.audit_writer()?);
        let at = |e: rusqlite::Error| fault(e).at(path.display());
        // Not read-only: a killed process may have left a write-ahead log that must be recovered.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags).map_err(at)?;
        connection.busy_timeout(BUSY).map_err(at)?;
        connection.execute_batch("PRAGMA query_only = ON; PRAGMA trusted_schema = OFF;").map_err(at)?;
        Ok(Some(connection))
    }

    fn audit_entries(&self, rest: &str, values: Vec<Value>) -> Result<Vec<AuditEntry>> {
        let Some(connection) = self.audit_reader()? else { return Ok(Vec::new()) };
        let mut query = connection.prepare(&format!("SELECT {ENTRY} FROM audit WHERE {rest}")).map_err(fault)?;
        let rows = query.query_map(params_from_iter(values), entry).map_err(fault)?;
        rows.collect::<Result<_, _>>().map_err(fault)
    }
}

impl AuditTrail for SqliteStore {
    fn append(&self, server: &str, notes: &[AuditNote], seals: &dyn Seals, durable: bool) -> Result<()> {
        let mut connection = self.audit_writer()?;
        let synchronous = if durable { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" };
        connection.execute_batch(synchronous).map_err(fault)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
        let chains = linked(server, notes, seals, |tenant| {
            let sql = format!("SELECT {HEAD} FROM audit_heads WHERE tenant = ?1 AND server = ?2");
            transaction
                .prepare_cached(&sql)
                .and_then(|mut query| query.query_row([tenant, server], head).optional())
                .map_err(fault)
        })?;
        {
            let sql = format!(
                "INSERT INTO audit ({ENTRY})
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)"
            );
            let mut insert = transaction.prepare_cached(&sql).map_err(fault)?;
            for AuditEntry { server, number, note, previous, hash } in chains.iter().flat_map(|(_, entries)| entries) {
                insert
                    .execute(params![
                        note.tenant,
                        server,
                        number,
                        note.at.0,
                        note.project,
                        note.user,
                        note.agent,
                        note.operation,
                        note.scopes,
                        note.request,
                        note.status,
                        counts_text(&note.counts),
                        note.truncated,
                        note.took_us,
                        note.request_id,
                        previous.0,
                        hash.0,
                        note.address
                    ])
                    .map_err(fault)?;
            }
            let sql =
                "INSERT INTO audit_heads (tenant, server, number, hash, seal, seal_key) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                       ON CONFLICT (tenant, server) DO UPDATE SET number = excluded.number, hash = excluded.hash,
                       seal = excluded.seal, seal_key = excluded.seal_key";
            let mut upsert = transaction.prepare_cached(sql).map_err(fault)?;
            for (AuditHead { tenant, server, number, hash, seal, seal_key }, _) in &chains {
                upsert.execute(params![tenant, server, number, hash.0, seal.0, seal_key]).map_err(fault)?;
            }
        }
        transaction.commit().map_err(fault)
    }

    fn heads(&self, tenant: &str) -> Result<Vec<AuditHead>> {
        let Some(connection) = self.audit_reader()? else { return Ok(Vec::new()) };
        let sql = format!("SELECT {HEAD} FROM audit_heads WHERE tenant = ?1 ORDER BY server");
        let mut query = connection.prepare(&sql).map_err(fault)?;
        let rows = query.query_map([tenant], head);
        rows.map_err(fault)?.collect::<Result<_, _>>().map_err(fault)
    }

    fn servers(&self, tenant: &str) -> Result<Vec<String>> {
        let Some(connection) = self.audit_reader()? else { return Ok(Vec::new()) };
        let mut query =
            connection.prepare("SELECT DISTINCT server FROM audit WHERE tenant = ?1 ORDER BY server").map_err(fault)?;
        let rows = query.query_map([tenant], |row| row.get(0)).map_err(fault)?;
        rows.collect::<Result<_, _>>().map_err(fault)
    }

    fn chain(&self, tenant: &str, server: &str, after: u64, limit: usize) -> Result<Vec<AuditEntry>> {
        let values = vec![
            Value::Text(tenant.into()),
            Value::Text(server.into()),
            saturated(after).into(),
            saturated(limit).into(),
        ];
        self.audit_entries("tenant = ?1 AND server = ?2 AND number > ?3 ORDER BY number LIMIT ?4", values)
    }

    fn find(&self, tenant: &str, find: &AuditFilter, limit: usize) -> Result<Vec<AuditEntry>> {
        let mut values = vec![Value::Text(tenant.into())];
        let mut rest = String::from("tenant = ?1");
        let mut and = |condition: &str, value: Option<Value>| {
            if let Some(value) = value {
                values.push(value);
                rest += &format!(" AND {condition} ?{}", values.len());
            }
        };
        let text = |text: &Option<String>| text.clone().map(Value::Text);
        let time = |time: Option<Time>| time.map(|time| Value::Integer(time.0));
        and("project =", text(&find.project));
        and("operation =", text(&find.operation));
        and("user =", text(&find.user));
        and("status =", text(&find.status));
        and("at >=", time(find.since));
        and("at <", time(find.until));
        rest += &format!(" ORDER BY at DESC, server, number DESC LIMIT {limit}");
        self.audit_entries(&rest, values)
    }
}
