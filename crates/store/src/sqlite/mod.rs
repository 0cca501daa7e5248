//! SQLite in one file: WAL, one writer, a pool of readers, durable when a commit returns.

mod audit;
mod bulk;
mod derived;
mod facts;
mod flush;
mod inspect;
mod keys;
mod packed_rows;
mod rows;
mod session;

use crate::memory::{empty_head, unknown_project};
use crate::{AccessKeys, AuditTrail, Clock, Derived, Reader, Store, Writer};
pub use inspect::{Inspection, inspect};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Scope};
use parking_lot::{Mutex, MutexGuard};
pub(crate) use rows::TypeNameCache;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use session::SqliteSession;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

mod audit_migrations {
    refinery::embed_migrations!("migrations/sqlite_audit");
}

mod embedded {
    refinery::embed_migrations!("migrations/sqlite");
}

/// Readers kept for reuse; more are opened when needed and closed afterwards.
const IDLE_READERS: usize = 8;
/// Cache size of a connection, and size of its write-ahead log before a checkpoint.
const CACHE_PRAGMAS: &str = "PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 4096;";
/// Cache size of a reader: small, because every commit invalidates it and there are several readers.
const READER_PRAGMAS: &str = "PRAGMA cache_size = -16384;";
/// How long a writer waits for a writer in another process.
const BUSY: Duration = Duration::from_secs(30);

/// A store in an SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    writer: Mutex<Connection>,
    idle: Mutex<Vec<Connection>>,
    /// Connection for appending to the audit trail; opened on first use.
    audit: Mutex<Option<Connection>>,
}

/// When commits reach the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Every commit is on disk before it returns.
    #[default]
    Full,
    /// For imports that can be repeated: a power failure may lose the last commits, but never a part of one.
    Rebuildable,
}

impl SqliteStore {
    /// Opens or creates the file, and brings its schema up to date.
    pub fn open(path: &Path, clock: Arc<dyn Clock>, durability: Durability) -> Result<SqliteStore> {
        refuse_foreign(path)?;
        let mut writer = connect(path, durability)?;
        migrate(&mut writer, path, embedded::migrations::runner())?;
        let writer = Mutex::new(writer);
        Ok(SqliteStore { path: path.into(), clock, writer, idle: Mutex::default(), audit: Mutex::default() })
    }

    fn reader(&self) -> Result<Pooled<'_>> {
        let idle = self.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => {
                let connection = connect(&self.path, Durability::Full)?;
                connection.execute_batch(READER_PRAGMAS).map_err(fault)?;
                connection
            }
        };
        Ok(Pooled { store: self, connection: Some(connection) })
    }
}

/// Rejects a file that is a database of another program, without changing it.
fn refuse_foreign(path: &Path) -> Result<()> {
    if path.metadata().map_or(0, |m| m.len()) == 0 {
        return Ok(());
    }
    let at = |e: rusqlite::Error| fault(e).at(path.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(at)?;
    connection.busy_timeout(BUSY).map_err(at)?;
    let ours: bool = connection
        .query_row(
            "SELECT count(*) = 0 OR total(name = 'refinery_schema_history') > 0 FROM sqlite_schema WHERE type = 'table'",
            [],
            |row| row.get(0),
        )
        .map_err(at)?;
    if ours {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidInput,
        ErrorCode::NotAStore,
        format!("`{}` is a database, but not a Lukasa store", path.display()),
    )
    .hint("name a store of Lukasa's, or a new file, with --store"))
}

fn connect(path: &Path, durability: Durability) -> Result<Connection> {
    let at = |e: rusqlite::Error| fault(e).at(path.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    make_private(path);
    let connection = Connection::open_with_flags(path, flags).map_err(at)?;
    connection.busy_timeout(BUSY).map_err(at)?;
    let synchronous = match durability {
        Durability::Full => "FULL",
        Durability::Rebuildable => "NORMAL",
    };
    // Large pages keep a version and its content in one page; the rest trades memory for fewer reads.
    let pragmas = format!(
        "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};
         PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; {CACHE_PRAGMAS} PRAGMA trusted_schema = OFF;"
    );
    connection.execute_batch(&pragmas).map_err(at)?;
    // Plans do not depend on bound values, so statements are prepared once.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(at)?;
    connection.set_prepared_statement_cache_capacity(64);
    bulk::load(&connection).map_err(at)?;
    Ok(connection)
}

/// Creates the file with private permissions, because SQLite creates files that others can read. SQLite gives the
/// write-ahead log and its index the mode of the database. If the file cannot be created, SQLite reports why when it
/// tries.
fn make_private(path: &Path) {
    let _ = crate::private::touch(path);
}

fn migrate(connection: &mut Connection, path: &Path, runner: refinery::Runner) -> Result<()> {
    let ours = runner.get_migrations().iter().map(|m| m.version()).max().unwrap_or(0);
    let known = connection
        .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'refinery_schema_history'", [], |r| {
            r.get::<_, i64>(0)
        })
        .map_err(|e| fault(e).at(path.display()))?;
    if known > 0 {
        let theirs: Option<i64> = connection
            .query_row("SELECT max(version) FROM refinery_schema_history", [], |r| r.get(0))
            .map_err(|e| fault(e).at(path.display()))?;
        if theirs.is_some_and(|theirs| theirs > i64::from(ours)) {
            return Err(newer_schema(&path.display().to_string(), theirs.unwrap_or_default(), i64::from(ours)));
        }
        if theirs == Some(i64::from(ours)) {
            return Ok(());
        }
    }
    let ran = runner.set_grouped(true).run(connection);
    // Another process may have migrated it at the same moment.
    let current = |connection: &Connection| {
        let newest =
            connection.query_row("SELECT max(version) FROM refinery_schema_history", [], |r| r.get::<_, i64>(0));
        newest.is_ok_and(|newest| newest == i64::from(ours))
    };
    if ran.is_err() && current(connection) {
        return Ok(());
    }
    ran.map_err(|e| {
        Error::new(
            ErrorKind::Unavailable,
            ErrorCode::MigrationFailed,
            format!("{}: the schema could not be brought up to date: {e}", path.display()),
        )
    })?;
    Ok(())
}

pub(crate) fn newer_schema(place: &str, theirs: i64, ours: i64) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        ErrorCode::NewerSchema,
        format!("{place} has schema version {theirs}, this Lukasa knows up to {ours}"),
    )
    .hint("use the newer Lukasa that wrote it, or restore an older backup")
}

impl Store for SqliteStore {
    fn read<'a>(&'a self, scope: &Scope) -> Result<Box<dyn Reader + 'a>> {
        let connection = self.reader()?;
        connection.execute_batch("BEGIN").map_err(fault)?;
        let number = find_project(&connection, scope)?.ok_or_else(|| unknown_project(scope))?;
        Ok(Box::new(SqliteSession::new(connection, number, &*self.clock)))
    }

    fn write<'a>(&'a self, scope: &Scope) -> Result<Box<dyn Writer + 'a>> {
        let connection = WriterGuard { connection: self.writer.lock() };
        connection.execute_batch("BEGIN IMMEDIATE").map_err(fault)?;
        let number = match find_project(&connection, scope)? {
            Some(number) => number,
            None => create_project(&connection, scope)?,
        };
        Ok(Box::new(SqliteSession::new(connection, number, &*self.clock)))
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
        let connection = self.reader()?;
        let mut query = connection
            .prepare_cached("SELECT project FROM projects WHERE tenant = ?1 ORDER BY project")
            .map_err(fault)?;
        let rows = query.query_map([tenant], |r| r.get(0)).map_err(fault)?;
        rows.collect::<Result<_, _>>().map_err(fault)
    }

    fn copy_to(&self, path: &Path) -> Result<()> {
        if path.exists() {
            return Err(Error::conflict(ErrorCode::FileExists, format!("`{}` exists already", path.display()))
                .hint("name a new file"));
        }
        let source = self.reader()?;
        make_private(path);
        let mut target = Connection::open(path).map_err(|e| fault(e).at(path.display()))?;
        // Pages are copied inside one read transaction, so writers neither wait nor restart the copy.
        source.execute_batch("BEGIN; SELECT count(*) FROM projects;").map_err(fault)?;
        let copied = rusqlite::backup::Backup::new(&source, &mut target)
            .and_then(|backup| backup.run_to_completion(4096, Duration::ZERO, None));
        copied.map_err(|e| fault(e).at(path.display()))?;
        target.execute_batch("PRAGMA journal_mode = DELETE;").map_err(|e| fault(e).at(path.display()))?;
        target.close().map_err(|(_, e)| fault(e))
    }

    fn has_own_format(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        format!("sqlite {}", self.path.display())
    }
}

fn find_project(connection: &Connection, scope: &Scope) -> Result<Option<i64>> {
    connection
        .prepare_cached("SELECT scope FROM projects WHERE tenant = ?1 AND project = ?2")
        .and_then(|mut q| q.query_row([&scope.tenant, &scope.project], |r| r.get(0)).optional())
        .map_err(fault)
}

fn create_project(connection: &Connection, scope: &Scope) -> Result<i64> {
    let head = empty_head(scope);
    connection
        .execute(
            "INSERT INTO projects (tenant, project, namespace, tx, recorded_at, hash, next_thing, declared)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                scope.tenant,
                scope.project,
                head.namespace.as_bytes(),
                head.tx.0,
                head.recorded_at.0,
                head.hash.0,
                head.next_thing.0,
                head.declared.tx.0
            ],
        )
        .map_err(fault)?;
    Ok(connection.last_insert_rowid())
}

/// A reader that returns to the pool when dropped.
struct Pooled<'a> {
    store: &'a SqliteStore,
    connection: Option<Connection>,
}

impl Deref for Pooled<'_> {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("taken only on drop")
    }
}

impl Drop for Pooled<'_> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        // A connection that cannot end its transaction is closed instead of reused.
        let clean = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
        let mut idle = self.store.idle.lock();
        if clean && idle.len() < IDLE_READERS {
            idle.push(connection);
        }
    }
}

/// Exclusive use of the writer connection; what was not committed is rolled back on drop.
struct WriterGuard<'a> {
    connection: MutexGuard<'a, Connection>,
}

impl Deref for WriterGuard<'_> {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for WriterGuard<'_> {
    fn drop(&mut self) {
        if !self.connection.is_autocommit() {
            // If this fails, SQLite rolls back when the file is next opened.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

/// Converts an error of SQLite.
pub(crate) fn fault(error: rusqlite::Error) -> Error {
    use rusqlite::ErrorCode as SqliteCode;
    let message = error.to_string();
    match error.sqlite_error_code() {
        Some(SqliteCode::DatabaseBusy | SqliteCode::DatabaseLocked) => {
            Error::new(ErrorKind::Unavailable, ErrorCode::StoreBusy, "another process is writing to the store")
                .hint("try again in a moment")
        }
        Some(SqliteCode::DiskFull) => {
            Error::new(ErrorKind::Unavailable, ErrorCode::DiskFull, "the disk is full, nothing was written")
                .hint("make room and repeat the write")
        }
        Some(SqliteCode::ReadOnly | SqliteCode::PermissionDenied) => {
            Error::new(ErrorKind::Unavailable, ErrorCode::ReadOnlyStore, "the store cannot be written to")
                .hint("check the permissions of the file and its folder, or name another with --store")
        }
        Some(SqliteCode::CannotOpen) => {
            Error::new(ErrorKind::Unavailable, ErrorCode::CannotOpen, "the store cannot be opened")
                .hint("check that the folder exists and may be written to, or name another with --store")
        }
        Some(SqliteCode::DatabaseCorrupt | SqliteCode::NotADatabase) => {
            Error::new(ErrorKind::Internal, ErrorCode::CorruptStore, format!("the store is damaged: {message}"))
                .hint("restore a backup with `lukasa restore-backup`")
        }
        Some(SqliteCode::SystemIoFailure) => Error::new(
            ErrorKind::Unavailable,
            ErrorCode::IoFailure,
            format!("reading or writing the file failed: {message}"),
        ),
        _ => Error::internal(format!("SQLite: {message}")),
    }
}
