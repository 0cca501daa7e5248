//! Checks of the store: whether it is intact, what the project in it contains, and how far the index is behind.

use super::{Check, State};
use crate::config::{self, OpenedStore, StoreAccess};
use clap::ArgMatches;
use lukasa_engine::features::code::ops::graph_health::GraphHealth;
use lukasa_engine::features::code::working_tree::WorkingTree;
use lukasa_engine::features::search::ops::search_readiness::SearchReadiness;
use lukasa_engine::registry::Op;
use lukasa_engine::{Context, Engine};
use lukasa_model::json::Hash;
use lukasa_model::{Error, ErrorCode};
use lukasa_server::owner::{self, OwnerInfo};
use lukasa_store::Store;
use lukasa_store::audit::{AuditHead, Seals};
use lukasa_store::sqlite::inspect;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Free disk space below which a store is about to fail, and below which it soon will.
const ROOM: [(u64, State); 2] = [(100 << 20, State::Fail), (1 << 30, State::Warn)];

pub fn checks(matches: &ArgMatches) -> Vec<Check> {
    let named = config::text(matches, "store", "LUKASA_STORE");
    let mut checks = Vec::new();
    let sound = match named.filter(|url| config::is_postgres(url)) {
        Some(_) => true,
        None => match config::store_file(matches, None) {
            Ok(path) => {
                checks.extend(disk(&path));
                let sound = file(&path, &mut checks);
                checks.extend(path.exists().then(|| engine(&path)).flatten());
                sound
            }
            Err(e) => {
                checks.push(Check::of("store", State::Fail, e));
                false
            }
        },
    };
    if sound {
        match config::open(matches, StoreAccess::Existing, None) {
            Ok(opened) => open(opened, &mut checks),
            Err(e) => checks.push(unopened(e)),
        }
    }
    checks
}

/// Checks a store file without changing it. Returns whether it can be opened.
fn file(path: &Path, checks: &mut Vec<Check>) -> bool {
    if path.metadata().map_or(0, |m| m.len()) == 0 {
        let found = format!("there is no store at {} yet", path.display());
        checks.push(Check::warn("store", found, "`lukasa index` makes one; --store names another"));
        return false;
    }
    let seen = match inspect(path) {
        Ok(seen) => seen,
        Err(e) => {
            checks.push(Check::of("store", State::Fail, e));
            return false;
        }
    };
    if !seen.faults.is_empty() {
        let found = format!("{} is damaged: {}", path.display(), seen.faults.join("; "));
        checks.push(Check::fail("store", found, "restore a backup with `lukasa restore-backup`"));
        return false;
    }
    checks.push(Check::ok("store", format!("{} is intact", path.display())));
    let versions = format!("version {}, this Lukasa has {}", seen.schema, seen.newest);
    match seen.schema.cmp(&seen.newest) {
        std::cmp::Ordering::Equal => checks.push(Check::ok("schema", format!("version {}", seen.schema))),
        std::cmp::Ordering::Less => checks.push(Check::warn(
            "schema",
            format!("{versions}; its contents were not checked"),
            "any other command brings it up to date; `lukasa backup` of the Lukasa that wrote it keeps the old one",
        )),
        std::cmp::Ordering::Greater => {
            checks.push(Check::fail(
                "schema",
                versions,
                "use the newer Lukasa that wrote it, or restore an older backup",
            ));
        }
    }
    seen.schema == seen.newest
}

/// The process that owns the engine. None on systems where processes do not share one.
fn engine(path: &Path) -> Option<Check> {
    if cfg!(not(unix)) {
        return None;
    }
    let owner = owner::StoreLocation::of(path, None, &std::env::temp_dir()).ok()?.owner();
    let Some(OwnerInfo { pid, fault }) = owner else {
        return Some(Check::ok("engine", "no process has this store open; the next one to open it owns it"));
    };
    let who = pid.map_or_else(|| "a process that is just starting".into(), |pid| format!("process {pid}"));
    Some(match fault {
        None => Check::ok("engine", format!("{who} owns it, and others attach to it")),
        Some(fault) => Check::warn(
            "engine",
            format!("{who} owns it, and no other process can attach: {fault}"),
            "set XDG_RUNTIME_DIR to a folder of your own, and start that process again",
        ),
    })
}

/// Names the check that an error on opening belongs to.
fn unopened(error: Error) -> Check {
    let what = match error.code {
        ErrorCode::SchemaMissing | ErrorCode::NewerSchema => "schema",
        ErrorCode::PolicyDrift => "policies",
        ErrorCode::InvalidScope => "project",
        _ => "store",
    };
    Check::of(what, State::Fail, error)
}

fn open(opened: OpenedStore, checks: &mut Vec<Check>) {
    let OpenedStore { store, clock, scope, home, notes, runtime, .. } = opened;
    if runtime.is_some() {
        checks.push(Check::ok("store", format!("{} is reachable", store.describe())));
        checks.push(match notes.is_empty() {
            true => Check::ok("policies", "row-level security separates the tenants"),
            false => Check::warn("policies", notes.join("; "), "`lukasa setup-postgres` with an administrator's URL"),
        });
    }
    checks.extend(record(&*store, &scope.tenant));
    let mut engine = Engine::new(store, clock, std::env::temp_dir());
    // Wrong settings are reported by another check.
    if let Ok(embedding) = crate::cli::embedding() {
        engine = engine.with_embedding(embedding);
    }
    let here = WorkingTree::of(Path::new("."), None).ok();
    for root in [Some(home), here.as_ref().map(|place| place.root.clone())].into_iter().flatten() {
        // A folder that cannot be read shows up as missing sources.
        let _ = engine.sources().add(&scope, &root);
    }
    let mut progress = |_, _| {};
    let project = scope.project.clone();
    let mut context = Context::of(scope, &mut progress);
    match engine.call(&mut context, GraphHealth::META.name, json!({})) {
        Ok(health) => checks.push(index(&project, &health, here.as_ref())),
        Err(e) if e.code == ErrorCode::UnknownProject => {
            let found = format!("`{project}` is not in this store");
            let mend = e.hint.unwrap_or_else(|| "`lukasa index` adds it".into());
            checks.push(Check::warn("index", found, mend));
            return;
        }
        Err(e) => {
            checks.push(Check::of("index", State::Fail, e));
            return;
        }
    }
    match engine.call(&mut context, SearchReadiness::META.name, json!({})) {
        Ok(ready) => {
            checks.extend(sources(&ready));
            checks.push(embedded(&ready));
        }
        Err(e) => checks.push(Check::of("search", State::Fail, e)),
    }
}

/// Whether operations can be recorded. None if none ever were.
fn record(store: &dyn Store, tenant: &str) -> Option<Check> {
    /// Never used, because nothing is appended.
    struct NoKey;
    impl Seals for NoKey {
        fn seal(&self, head: &AuditHead) -> Hash {
            head.hash
        }

        fn key_id(&self) -> &str {
            ""
        }
    }
    let asked = store.audit().heads(tenant).and_then(|heads| {
        if !heads.is_empty() {
            store.audit().append("doctor", &[], &NoKey, false)?;
        }
        Ok(heads)
    });
    match asked {
        Ok(heads) if heads.is_empty() => None,
        Ok(heads) => {
            let entries: u64 = heads.iter().map(|head| head.number).sum();
            Some(Check::ok("record", format!("{entries} operations of {} servers; more can be added", heads.len())))
        }
        Err(e) => Some(Check::of("record", State::Fail, e)),
    }
}

/// What is indexed, and how far files and commits have moved on since.
fn index(project: &str, health: &Value, here: Option<&WorkingTree>) -> Check {
    let files = health["files"].as_u64().unwrap_or(0);
    let branch = health["view"]["branch"].as_str().unwrap_or_default();
    let short = |id: &str| id.chars().take(12).collect::<String>();
    let indexed = health["last_index"]["commit"].as_str();
    let head = here.and_then(|place| place.commit.as_ref()).map(|commit| commit.id.as_str());
    if files == 0 {
        return Check::warn("index", format!("`{project}` has no files on {branch}"), "lukasa index");
    }
    let at = indexed.map_or_else(String::new, |commit| format!(" at {}", short(commit)));
    let found = format!("{files} files of `{project}` on {branch}{at}");
    match (health["pending_changes"].as_u64(), head) {
        (Some(behind), _) if behind > 0 => {
            let head = head
                .filter(|head| Some(*head) != indexed)
                .map_or_else(String::new, |h| format!(", HEAD is {}", short(h)));
            Check::warn("index", format!("{found}: {behind} files behind{head}"), "lukasa index")
        }
        (Some(_), Some(head)) if Some(head) != indexed => {
            Check::ok("index", format!("{found}; HEAD is {}, and no file differs", short(head)))
        }
        (Some(_), _) => Check::ok("index", format!("{found}, up to date")),
        (None, _) => Check::ok("index", format!("{found}; no working tree here to compare with")),
    }
}

fn sources(ready: &Value) -> Option<Check> {
    let text = &ready["text"];
    let (files, without) = (text["files"].as_u64()?, text["without_source"].as_u64()?);
    Some(match without {
        0 => Check::ok("sources", format!("of all {files} files")),
        _ => Check::warn(
            "sources",
            format!(
                "the source of {without} of {files} files is not available: search finds them by names and comments only"
            ),
            "run it in the working tree that was indexed, or `lukasa index` there",
        ),
    })
}

fn embedded(ready: &Value) -> Check {
    let summary = ready["summary"].as_str().unwrap_or_default();
    let embedding = &ready["embedding"];
    let count = |name: &str, field: &str| embedding[name][field].as_u64().unwrap_or(0);
    let objects = count("required", "objects") + count("optional", "objects");
    let done = count("required", "embedded") + count("optional", "embedded");
    match embedding["ready"] == true && (objects == 0 || done > 0) {
        true => Check::ok("embedding", summary),
        false => Check::warn("embedding", summary, "`lukasa embed`"),
    }
}

#[cfg(unix)]
fn disk(path: &Path) -> Option<Check> {
    let path: PathBuf = std::path::absolute(path).ok()?;
    let there = path.ancestors().find(|folder| folder.is_dir())?;
    let disk = rustix::fs::statvfs(there).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let found = format!("{} MB free at {}", free >> 20, there.display());
    let short = ROOM.iter().find(|(room, _)| free < *room);
    Some(match short {
        None => Check::ok("disk", found),
        Some((_, state)) => Check {
            what: "disk",
            state: *state,
            found,
            mend: Some("make room, or name a store elsewhere with --store".into()),
        },
    })
}

/// Free space cannot be queried here without unsafe code.
#[cfg(not(unix))]
fn disk(_: &Path) -> Option<Check> {
    None
}
