//! Inspects the file of a store without changing it.

use super::{BUSY, embedded, fault, refuse_foreign};
use lukasa_model::Result;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// Most faults listed.
const LISTED: usize = 5;

/// The result of an inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The schema version of the file; 0 if it has no schema yet.
    pub schema: i64,
    /// The schema version of this Lukasa.
    pub newest: i64,
    /// Damaged pages as reported by SQLite; empty when the file is sound.
    pub faults: Vec<String>,
}

/// Reads every page, so it takes as long as reading the file. Also works for files whose schema `SqliteStore::open`
/// rejects.
pub fn inspect(path: &Path) -> Result<Inspection> {
    refuse_foreign(path)?;
    let at = |e: rusqlite::Error| fault(e).at(path.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(at)?;
    connection.busy_timeout(BUSY).map_err(at)?;
    let known: bool = connection
        .query_row("SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'refinery_schema_history'", [], |r| r.get(0))
        .map_err(at)?;
    let schema = match known {
        true => connection
            .query_row("SELECT coalesce(max(version), 0) FROM refinery_schema_history", [], |r| r.get(0))
            .map_err(at)?,
        false => 0,
    };
    let mut query = connection.prepare(&format!("PRAGMA quick_check({LISTED})")).map_err(at)?;
    let reports = query.query_map([], |row| row.get::<_, String>(0)).map_err(at)?;
    let mut faults = reports.collect::<rusqlite::Result<Vec<_>>>().map_err(at)?;
    faults.retain(|report| report != "ok");
    let newest = embedded::migrations::runner().get_migrations().iter().map(|m| i64::from(m.version())).max();
    Ok(Inspection { schema, newest: newest.unwrap_or(0), faults })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;
    use crate::sqlite::Durability;
    use crate::{SqliteStore, SystemClock};
    use std::sync::Arc;

    #[test]
    fn an_inspection_reports_version_and_damage_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        drop(SqliteStore::open(&path, Arc::new(SystemClock), Durability::Full).unwrap());
        let seen = inspect(&path).unwrap();
        assert!(seen.schema == seen.newest && seen.newest > 0 && seen.faults.is_empty(), "{seen:?}");
        // A file with an older schema is not migrated; one with a newer schema is reported, not rejected.
        for change in [
            "DELETE FROM refinery_schema_history WHERE version = (SELECT max(version) FROM refinery_schema_history)",
            "UPDATE refinery_schema_history SET version = 99 WHERE version = 3",
        ] {
            Connection::open(&path).unwrap().execute(change, []).unwrap();
            let (first, second) = (inspect(&path).unwrap(), inspect(&path).unwrap());
            assert!(first == second && first.schema != first.newest, "{first:?}");
        }
        let mut bytes = std::fs::read(&path).unwrap();
        let whole = bytes.len();
        bytes[whole / 2..].fill(0xff);
        std::fs::write(&path, bytes).unwrap();
        assert!(inspect(&path).map_or(true, |seen| !seen.faults.is_empty()), "half of the file is overwritten");
    }
}
