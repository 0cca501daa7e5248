//! The `index` suite: indexing a whole repository into an empty store, compared with raw parallel parsing of the same
//! files.

use crate::{peak_rss_mb, print, round};
use lukasa_code::{LanguageId, lang};
use lukasa_engine::features::code::watch::WatchState;
use lukasa_engine::{Context, Engine};
use lukasa_model::Scope;
use lukasa_store::sqlite::Durability;
use lukasa_store::{Clock, SqliteStore, SystemClock};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

type Fault = Box<dyn Error>;

/// Files that are changed one by one, for a percentile.
const TOUCHES: usize = 200;
/// Files that differ between the two branches.
const SWITCHED: usize = 40;
/// Linked worktrees, each with different changes.
const BESIDE: usize = 10;
/// Files that were not written for this long are recognised by their stamps.
const SETTLED: Duration = Duration::from_secs(4);
/// Time between two checks whether the watcher is done.
const LOOK: Duration = Duration::from_millis(5);

pub fn run(repo: &Path, as_json: bool) -> Result<(), Fault> {
    let repo = repo.canonicalize()?;
    let temp = TempDir::new()?;
    // Everything is done on a copy: the repository itself is never touched.
    let work = temp.path().join("work");
    let is_git = repo.join(".git").exists() && clone(&repo, &work).is_ok();
    if !is_git {
        copy(&repo, &work)?;
    }
    // Files that were just written are read again each time. In a working tree such files are rare.
    std::thread::sleep(SETTLED);
    // Once to warm up and to measure the memory of indexing alone.
    let (first, _) = timed_index(&temp.path().join("warm.db"), &work)?;
    let peak = peak_rss_mb();
    eprintln!("{}", first["summary"].as_str().unwrap_or_default());
    let texts = sources(&work);
    let parse = || {
        let began = Instant::now();
        texts.par_iter().for_each(|(path, language)| {
            if let Ok(text) = fs::read_to_string(path) {
                std::hint::black_box(lang::tree(&text, *language));
            }
        });
        began.elapsed().as_secs_f64()
    };
    let (mut parses, mut indexes, mut cpus) = (Vec::new(), Vec::new(), Vec::new());
    let mut report = Value::Null;
    let db = temp.path().join("lukasa.db");
    for turn in 0..3 {
        parses.push(parse());
        let _ = fs::remove_file(&db);
        let _ = fs::remove_file(db.with_extension("db-wal"));
        let _ = fs::remove_dir_all(db.with_extension("cache"));
        let cpu = crate::cpu_seconds();
        let (answer, seconds) = timed_index(&db, &work)?;
        cpus.push(crate::cpu_seconds() - cpu);
        indexes.push(seconds);
        report = answer;
        eprintln!("turn {turn}: parse {:.2} s, index {seconds:.2} s, steps {}", parses[turn], report["steps"]);
    }
    parses.push(parse());
    let (parse_s, index_s, cpu_s) = (median(&mut parses), median(&mut indexes), median(&mut cpus));
    // Again with a new engine, as in a new process: only the store and its cache folder are left.
    let mut again: Vec<f64> = Vec::new();
    for _ in 0..5 {
        again.push(timed_index(&db, &work)?.1);
    }
    let again_s = median(&mut again);
    let db_mb = fs::metadata(&db)?.len() as f64 / 1e6;
    let (p50, p95) = touch(&db, &work, &texts, IndexedBy::ByPass)?;
    let (_, watched_p95) = touch(&db, &work, &texts, IndexedBy::ByWatcher)?;
    let calls = report["calls"].as_f64().unwrap_or(0.0);
    let edges: u64 = report["relationships"].as_object().map_or(0, |m| m.values().filter_map(Value::as_u64).sum());
    let mut line = json!({"suite": "index", "repo": repo.file_name().map(|n| n.to_string_lossy()),
        "files": report["files"], "sources": report["sources"], "lines": report["lines"], "bytes": report["bytes"],
        "symbols": report["symbols"], "edges": edges, "derivations": report["derivations"],
        "unresolved_share": round4(report["calls_unresolved"].as_f64().unwrap_or(0.0) / calls.max(1.0)),
        "index_s": round(index_s), "cpu_s": round(cpu_s), "ref_parse_s": round(parse_s), "ratio": round(index_s / parse_s),
        "again_s": round4(again_s), "again_share": round4(again_s / index_s), "touch_one_p50_ms": round(p50),
        "touch_one_p95_ms": round(p95), "touch_one_watched_p95_ms": round(watched_p95), "peak_rss_mb": peak, "db_mb": round(db_mb), "steps": report["steps"]});
    if is_git && let Some(more) = switch(&db, &work, temp.path())? {
        line.as_object_mut().expect("an object").extend(more);
    }
    print(&line, as_json);
    Ok(())
}

fn engine(db: &Path) -> Result<Engine, Fault> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store = SqliteStore::open(db, Arc::clone(&clock), Durability::Full)?;
    // Next to the store, as the command line does it.
    let cache = db.with_extension("cache");
    Ok(Engine::new(Arc::new(store), clock, std::env::temp_dir()).with_cache(cache))
}

fn ask(engine: &Engine, name: &str, request: Value) -> Result<Value, Fault> {
    let mut progress = |_: u64, _: Option<u64>| {};
    let mut context = Context::of(Scope::new("local", "evals")?, &mut progress);
    Ok(engine.call(&mut context, name, request)?)
}

fn timed_index(db: &Path, work: &Path) -> Result<(Value, f64), Fault> {
    let engine = engine(db)?;
    let began = Instant::now();
    let answer = ask(&engine, "index_directory", json!({"path": work}))?;
    Ok((answer, began.elapsed().as_secs_f64()))
}

/// How a saved file is indexed.
#[derive(Clone, Copy, PartialEq)]
enum IndexedBy {
    /// By a call of `index_directory`.
    ByPass,
    /// By the watcher, including its wait for further saves.
    ByWatcher,
}

/// Saves one file at a time and measures until its new symbol is found; returns p50 and p95 in milliseconds.
fn touch(db: &Path, work: &Path, sources: &[(PathBuf, LanguageId)], seen: IndexedBy) -> Result<(f64, f64), Fault> {
    let engine = engine(db)?;
    ask(&engine, "index_directory", json!({"path": work}))?;
    let scope = Scope::new("local", "evals")?;
    if seen == IndexedBy::ByWatcher {
        engine.watch(&scope, work)?;
    }
    let mut times = Vec::new();
    let mut pick = 0x9e37_79b9_u64;
    let usable: Vec<&(PathBuf, LanguageId)> = sources.par_iter().filter(|(path, l)| is_whole(path, *l)).collect();
    if usable.is_empty() {
        return Ok((0.0, 0.0));
    }
    // The first change also resolves everything once. It is printed separately.
    for turn in 0..=TOUCHES {
        pick = pick.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (path, language) = usable[(pick >> 33) as usize % usable.len()];
        let mut text = fs::read_to_string(path).unwrap_or_default();
        let name = format!("lukasa_touch_{turn}{}", if seen == IndexedBy::ByWatcher { "_watched" } else { "" });
        let kind = if language.name() == "java" { "Class" } else { "Function" };
        text.push_str(&match language.name() {
            "java" => format!("\nclass {name} {{}}\n"),
            "python" => format!("\n\ndef {name}():\n    return {name}\n"),
            "go" => format!("\nfunc {name}() {{}}\n"),
            "rust" => format!("\nfn {name}() {{}}\n"),
            _ => format!("\nfunction {name}() {{}}\n"),
        });
        while seen == IndexedBy::ByWatcher
            && engine.watch_health(&scope).iter().any(|(_, of)| of.state != WatchState::Idle)
        {
            std::thread::sleep(LOOK);
        }
        let before = last(&engine)?;
        fs::write(path, text)?;
        let began = Instant::now();
        let key = format!("{}::{name}", path.strip_prefix(work)?.display());
        let get = || ask(&engine, "get", json!({"ref": format!("{kind}:{key}")}));
        match seen {
            IndexedBy::ByPass => {
                let report = ask(&engine, "index_directory", json!({"path": work}))?;
                get()?;
                if turn % 50 == 1 {
                    eprintln!("one file: {:.0} ms, steps {}", began.elapsed().as_secs_f64() * 1e3, report["steps"]);
                }
            }
            IndexedBy::ByWatcher => {
                // A request for a missing symbol searches for similar names, so it is made only after a new
                // transaction.
                while last(&engine)? == before || get().is_err() {
                    if began.elapsed() > Duration::from_secs(60) {
                        return Err(format!("the watcher has not seen `{key}` for a minute").into());
                    }
                    std::thread::sleep(LOOK);
                }
            }
        }
        if turn > 0 {
            times.push(began.elapsed().as_secs_f64() * 1e3);
        } else {
            eprintln!("first change: {:.0} ms", began.elapsed().as_secs_f64() * 1e3);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok((times[times.len() / 2], times[times.len() * 95 / 100]))
}

/// Whether a text parses without errors, so that a definition can be appended. Some files are broken on purpose.
fn is_whole(path: &Path, language: LanguageId) -> bool {
    let read = matches!(language.name(), "python" | "javascript" | "typescript" | "tsx" | "go" | "rust" | "java");
    // A file with a NUL byte counts as binary.
    let whole = |text: String| !text.contains('\0') && lang::parse("", &text, language).faults.is_empty();
    read && fs::read_to_string(path).is_ok_and(whole)
}

/// The number of the last transaction.
fn last(engine: &Engine) -> Result<Value, Fault> {
    Ok(ask(engine, "log", json!({"limit": 1}))?["head"].clone())
}

/// Measures checking out a branch with changed files, and the space of linked worktrees.
fn switch(db: &Path, work: &Path, temp: &Path) -> Result<Option<serde_json::Map<String, Value>>, Fault> {
    let files =
        |dir: &Path| sources(dir).into_iter().map(|(path, _)| path).step_by(7).take(SWITCHED).collect::<Vec<_>>();
    let change = |dir: &Path, word: &str| -> Result<usize, Fault> {
        let files = files(dir);
        for path in &files {
            let mut text = fs::read_to_string(path).unwrap_or_default();
            text.push_str(&format!("\n{} {word}\n", comment(path)));
            fs::write(path, text)?;
        }
        Ok(files.len())
    };
    if git(work, &["checkout", "-q", "--", "."]).is_err()
        || git(work, &["checkout", "-q", "-b", "lukasa-evals"]).is_err()
    {
        return Ok(None);
    }
    let base = git(work, &["rev-parse", "HEAD"])?;
    let changed = change(work, "changed on a branch")?;
    let commit = ["-c", "user.name=evals", "-c", "user.email=evals@localhost", "commit", "-qam", "changes"];
    git(work, &commit)?;
    git(work, &["checkout", "-q", base.trim()])?;
    git(work, &["branch", "-q", "-f", "lukasa-main", base.trim()])?;
    let engine = engine(db)?;
    ask(&engine, "index_directory", json!({"path": work, "branch": "main"}))?;
    let mut times = Vec::new();
    for _ in 0..3 {
        for (name, branch) in [("lukasa-evals", "lukasa-evals"), ("lukasa-main", "main")] {
            git(work, &["checkout", "-q", name])?;
            let began = Instant::now();
            ask(&engine, "index_directory", json!({"path": work, "branch": branch}))?;
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    let size = || -> Result<f64, Fault> {
        rusqlite::Connection::open(db)?.pragma_update(None, "wal_checkpoint", "TRUNCATE").ok();
        Ok(fs::metadata(db)?.len() as f64)
    };
    drop(engine);
    let before = size()?;
    for number in 0..BESIDE {
        let (branch, beside) = (format!("lukasa-beside-{number}"), temp.join(format!("beside-{number}")));
        let place = beside.to_string_lossy().into_owned();
        git(work, &["worktree", "add", "-q", "-b", &branch, &place, "lukasa-evals"])?;
        change(&beside, &format!("changed in worktree {number}"))?;
        let engine = self::engine(db)?;
        ask(&engine, "index_directory", json!({"path": beside, "branch": branch}))?;
    }
    let after = size()?;
    let mut out = serde_json::Map::new();
    out.insert("switch_branch_ms".into(), json!(round(median(&mut times))));
    out.insert("switch_changed_files".into(), json!(changed));
    out.insert("worktree_extra_share".into(), json!(round4((after - before) / before / BESIDE as f64)));
    out.insert("worktrees".into(), json!(BESIDE));
    Ok(Some(out))
}

fn comment(path: &Path) -> &'static str {
    match path.extension().and_then(|e| e.to_str()) {
        Some("py" | "pyi" | "rb") => "#",
        _ => "//",
    }
}

fn git(dir: &Path, args: &[&str]) -> Result<String, Fault> {
    let out = Command::new("git").arg("-C").arg(dir).args(args).output()?;
    if !out.status.success() {
        return Err(format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&out.stderr).trim()).into());
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

fn clone(repo: &Path, to: &Path) -> Result<(), Fault> {
    let (from, to) = (repo.to_string_lossy().into_owned(), to.to_string_lossy().into_owned());
    git(Path::new("."), &["clone", "-q", "--shared", &from, &to]).map(drop)
}

fn copy(from: &Path, to: &Path) -> Result<(), Fault> {
    let listed = lukasa_engine::features::code::files::list(from, &Default::default())?.files;
    for file in listed {
        let place = to.join(&file.path);
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::copy(from.join(&file.path), place)?;
    }
    Ok(())
}

fn sources(work: &Path) -> Vec<(PathBuf, LanguageId)> {
    let Ok(listing) = lukasa_engine::features::code::files::list(work, &Default::default()) else { return vec![] };
    let listed = listing.files;
    let fits = |size: u64| size <= lukasa_engine::features::code::files::SOURCE_BYTES;
    listed
        .into_iter()
        .filter(|f| fits(f.stamp.size))
        .filter_map(|f| Some((work.join(&f.path), LanguageId::of(&f.path, "")?)))
        .collect()
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}

fn round4(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}
