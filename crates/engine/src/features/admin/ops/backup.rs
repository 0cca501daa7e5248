//! `backup` and `restore-backup`: copies a store or project while it is in use, and restores the copy.

use crate::data_files::file_fault;
use crate::registry::META;
use crate::registry::{Effect, Meta, Op, StoreNeed};
use crate::rendering::ResponseView;
use crate::{Context, Engine, Grants};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Scope};
use lukasa_store::sqlite::Durability;
use lukasa_store::{Ledger, SqliteStore, Store, private};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ADMIN: Meta = Meta { effect: Effect::Admin, scope: "admin", toolset: "admin", ..META };

pub struct Backup;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// A new file ending in .db (SQLite copy of the whole store) or .jsonl (dump of this project), or a folder.
    pub path: PathBuf,
    /// In a folder: keep only this many backups, the newest.
    #[serde(default)]
    pub keep: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub path: PathBuf,
    pub bytes: u64,
    /// Older backups that were deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<PathBuf>,
}

impl Op for Backup {
    const META: Meta = Meta {
        name: "backup",
        long: true,
        shown: ResponseView::Summary,
        answer: &["path", "bytes", "removed"],
        files: &["path"],
        summary: "Back up while others write",
        description: "To a .db file: a copy of the whole SQLite store. To a .jsonl file: a dump of this project, from \
                      any store, that restores into any store. To a folder: a file named after the time, of the kind \
                      that fits the store. The copy is verified before it counts.",
        verb: "backup",
        positional: &["path"],
        examples: &["lukasa backup lukasa-copy.db", "lukasa backup backups/ --keep 7"],
        ..ADMIN
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let ledger = engine.ledger(&context.scope);
        let native = engine.store().has_own_format() && context.grants == Grants::All;
        let named_as_folder = request.path.extension().is_none();
        if request.keep.is_some() && !named_as_folder {
            return Err(Error::invalid(ErrorCode::KeepNeedsFolder, "`keep` counts the backups in a folder")
                .hint("name a folder, or leave out `keep`"));
        }
        if request.keep == Some(0) {
            return Err(Error::invalid(ErrorCode::InvalidKeep, "at least one backup must be kept"));
        }
        let folder = named_as_folder.then(|| request.path.clone());
        let home = folder.clone().or_else(|| request.path.parent().map(Path::to_path_buf));
        if let Some(home) = home.filter(|h| !h.as_os_str().is_empty()) {
            private::create_dir_all(&home).map_err(|e| file_fault(&home, &e))?;
        }
        let path = match &folder {
            Some(folder) => {
                let stamp: String =
                    engine.clock().now().to_string().chars().filter(|c| c.is_ascii_digit()).take(20).collect();
                folder.join(format!("{}{stamp}.{}", prefix(&context.scope), if native { "db" } else { "jsonl" }))
            }
            None => request.path.clone(),
        };
        if is_copy(&path) {
            check_owner(&context.grants)?;
        }
        if path.exists() {
            return Err(Error::conflict(ErrorCode::FileExists, format!("`{}` exists already", path.display()))
                .hint("name a new file"));
        }
        // The file gets its final name only after it was checked, so a file with a backup's name is always a valid
        // backup.
        let unchecked = path.with_extension(format!("unchecked-{}", engine.clock().new_id().simple()));
        let made = match path.extension().and_then(|e| e.to_str()) {
            Some("db") => engine.store().copy_to(&unchecked),
            Some("jsonl") => dump(&ledger, &unchecked, context.progress),
            _ => {
                return Err(Error::invalid(
                    ErrorCode::UnknownBackupKind,
                    format!("`{}` ends neither in .db nor in .jsonl", path.display()),
                )
                .hint("name a .db file, a .jsonl file or an existing folder"));
            }
        };
        let made = made.and_then(|()| check(engine, &unchecked, &context.scope));
        let made = made.and_then(|()| std::fs::rename(&unchecked, &path).map_err(|e| file_fault(&path, &e)));
        if made.is_err() {
            let _ = std::fs::remove_file(&unchecked);
        }
        made?;
        let bytes = path.metadata().map_err(|e| file_fault(&path, &e))?.len();
        let removed = match (folder, request.keep) {
            (Some(folder), Some(keep)) => prune(&folder, &prefix(&context.scope), &path, keep)?,
            _ => vec![],
        };
        let summary = format!("backed up to {} ({bytes} bytes, verified)", path.display());
        Ok(Response { summary, path, bytes, removed })
    }
}

/// Returns whether the path names a copy of the whole store.
fn is_copy(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "db")
}

/// Refuses callers other than the owner of the store. A copy contains the facts and keys of every tenant, and restoring
/// one writes to every project of a tenant.
fn check_owner(grants: &Grants) -> Result<()> {
    match grants {
        Grants::All => Ok(()),
        Grants::Of(_) => Err(Error::new(
            ErrorKind::Forbidden,
            ErrorCode::NotPermitted,
            "copies of a whole store are for who works on its machine",
        )
        .hint("name a .jsonl file: a dump of this project")),
    }
}

fn dump(ledger: &Ledger, path: &Path, progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<()> {
    let file = private::create_new(path).map_err(|e| file_fault(path, &e))?;
    let mut out = BufWriter::with_capacity(1 << 16, file);
    ledger.dump(&mut out, &mut |tx, of| progress(tx.0, Some(of.0)))?;
    out.flush().map_err(|e| file_fault(path, &e))?;
    out.get_ref().sync_all().map_err(|e| file_fault(path, &e))
}

/// Verifies a backup by reading every row of it.
fn check(engine: &Engine, path: &Path, scope: &Scope) -> Result<()> {
    if is_dump(path)? {
        // Restoring the dump into a temporary store checks every hash and count.
        let folder = engine.temp_dir.join(format!("lukasa-check-{}", engine.clock().new_id()));
        private::create_dir_all(&folder).map_err(|e| file_fault(&folder, &e))?;
        let checked = open(engine, &folder.join("check.db")).and_then(|store| {
            let ledger = Ledger::new(store, Arc::clone(engine.clock()), scope.clone());
            ledger.restore(&mut reader(path)?, &mut |_, _| {})?;
            ledger.verify(&mut |_, _| {})
        });
        let _ = std::fs::remove_dir_all(&folder);
        return checked.map(drop).map_err(|e| e.at("the backup"));
    }
    let store = open(engine, path)?;
    for project in store.projects(&scope.tenant)? {
        let scope = Scope { tenant: scope.tenant.clone(), project };
        Ledger::new(Arc::clone(&store), Arc::clone(engine.clock()), scope)
            .verify(&mut |_, _| {})
            .map_err(|e| e.at("the backup"))?;
    }
    Ok(())
}

fn open(engine: &Engine, path: &Path) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(SqliteStore::open(path, Arc::clone(engine.clock()), Durability::Rebuildable)?))
}

fn reader(path: &Path) -> Result<BufReader<File>> {
    File::open(path).map(|file| BufReader::with_capacity(1 << 16, file)).map_err(|e| file_fault(path, &e))
}

fn is_dump(path: &Path) -> Result<bool> {
    Ok(reader(path)?.fill_buf().map_err(|e| file_fault(path, &e))?.starts_with(b"{"))
}

/// Returns the file name prefix of a project's backups.
fn prefix(scope: &Scope) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    format!("lukasa-{}-", scope.project.chars().map(plain).collect::<String>())
}

/// Deletes the oldest backups of the project until `keep` are left, the new one included.
fn prune(folder: &Path, prefix: &str, new: &Path, keep: usize) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|e| file_fault(folder, &e))?;
    let ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let stamp = name.strip_prefix(prefix).and_then(|rest| rest.split('.').next()).unwrap_or_default();
        path != new && stamp.len() >= 14 && stamp.bytes().all(|b| b.is_ascii_digit())
    };
    let mut found: Vec<_> = entries.filter_map(|e| e.ok().map(|e| e.path())).filter(ours).collect();
    found.sort();
    let old: Vec<_> = found[..found.len().saturating_sub(keep - 1)].to_vec();
    for path in &old {
        std::fs::remove_file(path).map_err(|e| file_fault(path, &e))?;
    }
    Ok(old)
}

pub struct RestoreBackup;

#[derive(Deserialize, JsonSchema)]
pub struct RestoreBackupRequest {
    /// The .db or .jsonl file.
    pub path: PathBuf,
}

#[derive(Serialize, JsonSchema)]
pub struct RestoreBackupResponse {
    pub summary: String,
    pub projects: Vec<String>,
}

impl Op for RestoreBackup {
    const META: Meta = Meta {
        name: "restore_backup",
        long: true,
        shown: ResponseView::Summary,
        needs: StoreNeed::MayCreate,
        answer: &["projects"],
        destructive: true,
        files: &["path"],
        summary: "Restore a backup into this store",
        description: "From a dump: into this project, which must be empty. From a .db file: every project of the \
                      tenant, each of which must be empty here. Restores between SQLite and PostgreSQL either way, \
                      and verifies what it restored.",
        verb: "restore-backup",
        positional: &["path"],
        examples: &["lukasa restore-backup backups/lukasa-20260131090000.db --store new.db"],
        ..ADMIN
    };
    type Request = RestoreBackupRequest;
    type Response = RestoreBackupResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: RestoreBackupRequest) -> Result<RestoreBackupResponse> {
        let path = &request.path;
        let mut projects = Vec::new();
        let progress = &mut *context.progress;
        let mut one = |scope: &Scope, input: &mut dyn BufRead| -> Result<()> {
            let ledger = engine.ledger(scope);
            ledger.restore(input, &mut |tx, of| progress(tx.0, Some(of.0)))?;
            ledger.verify(&mut |_, _| {})?;
            projects.push(scope.project.clone());
            Ok(())
        };
        if is_dump(path)? {
            one(&context.scope, &mut reader(path)?)?;
        } else {
            check_owner(&context.grants)?;
            let from = open(engine, path)?;
            for project in from.projects(&context.scope.tenant)? {
                let scope = Scope { tenant: context.scope.tenant.clone(), project };
                let source = Ledger::new(Arc::clone(&from), Arc::clone(engine.clock()), scope.clone());
                // A project may be larger than memory, so it goes through a file.
                let passage = engine.temp_dir.join(format!("lukasa-restore-{}.jsonl", engine.clock().new_id()));
                let done = dump(&source, &passage, &mut |_, _| {}).and_then(|()| one(&scope, &mut reader(&passage)?));
                let _ = std::fs::remove_file(&passage);
                done?;
            }
        }
        let summary = format!("restored and verified project {}", projects.join(", "));
        Ok(RestoreBackupResponse { summary, projects })
    }
}
