//! What earlier builds left on disk: audit records are continued, and caches of another build are ignored and replaced.
//!
//! Fixtures are made by the build whose format they show and are never changed. A format without one fails a test, which
//! writes it with `UPDATE_FIXTURES=1` in the environment.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_testkit::TestDatabase;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Operations in the fixtures of audit records.
const ENTRIES: u64 = 4;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// The program on a store, with the key of the fixtures.
fn lukasa(folder: &Path, store: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lukasa"));
    for variable in ["LUKASA_AGENT", "LUKASA_SESSION", "LUKASA_CONFIG", "LUKASA_AUDIT_KNOWN_KEY_FILES"] {
        command.env_remove(variable);
    }
    command.current_dir(folder).env("XDG_RUNTIME_DIR", folder).env("HOME", folder).env("LUKASA_MODEL_URL", "off");
    command.env("LUKASA_STORE", store).env("LUKASA_TENANT", "test").env("LUKASA_PROJECT", "shop");
    command.env("LUKASA_AUTHOR", "ada").env("LUKASA_AUDIT", "all").env("LUKASA_SERVER_ID", "local");
    command.env("LUKASA_AUDIT_KEY_FILE", fixture("audit-schema-3.key")).stdin(Stdio::null());
    command
}

fn run(mut command: Command, arguments: &[&str]) -> Output {
    command.args(arguments).output().unwrap()
}

fn ok(command: Command, arguments: &[&str]) -> Value {
    let out = run(command, &[arguments, &["--json"]].concat());
    assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Verifies the record of the fixture, continues it, and verifies again.
fn the_record_goes_on(folder: &Path, store: &str) {
    let verified = ok(lukasa(folder, store), &["audit", "verify"]);
    let chain = &verified["chains"][0];
    assert_eq!((verified["entries"].as_u64(), chain["sealed"].as_bool()), (Some(ENTRIES), Some(true)), "{verified}");
    let (server, head) = (&chain["server"], chain["head"].as_str().unwrap());
    assert!(server == "local" && head.starts_with(&format!("local@{ENTRIES}=")), "{verified}");
    let listed = ok(lukasa(folder, store), &["audit", "list", "--operation", "get"]);
    let statuses: Vec<&Value> = listed["entries"].as_array().unwrap().iter().map(|entry| &entry["status"]).collect();
    assert_eq!(statuses, ["not_found", "ok"], "{listed}");
    ok(lukasa(folder, store), &["put", "Service", "web"]);
    // The end of the fixture is still part of the chain.
    let verified = ok(lukasa(folder, store), &["audit", "verify", "--noted", head]);
    assert_eq!(verified["chains"].as_array().unwrap().len(), 1, "{verified}");
    assert!(verified["entries"].as_u64().unwrap() > ENTRIES, "{verified}");
    ok(lukasa(folder, store), &["verify"]);
    // With another key nobody can continue the chain as if it were the same server.
    let key = folder.join("other.key");
    std::fs::write(&key, "0123456789abcdef".repeat(4)).unwrap();
    let mut other = lukasa(folder, store);
    other.env("LUKASA_AUDIT_KEY_FILE", key);
    let refused = run(other, &["audit", "verify"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && text.contains("audit_broken"), "{text}");
}

#[test]
fn a_sqlite_store_of_schema_9_with_an_audit_record_of_schema_3_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("lukasa.db");
    std::fs::copy(fixture("sqlite-schema-9.db"), &store).unwrap();
    std::fs::copy(fixture("audit-schema-3.audit.db"), folder.path().join("lukasa.audit.db")).unwrap();
    the_record_goes_on(folder.path(), store.to_str().unwrap());
}

/// The fixture is what `pg_dump --inserts` wrote.
#[test]
fn a_postgresql_database_of_schema_9_with_its_audit_record_goes_on() {
    let Some(database) = TestDatabase::new() else { return };
    database.as_admin("DROP SCHEMA lukasa CASCADE");
    database.as_admin(&std::fs::read_to_string(fixture("postgres-schema-9.sql")).unwrap());
    // The login role of the test has its rights from the setup.
    database.setup_again().unwrap();
    let folder = tempfile::tempdir().unwrap();
    the_record_goes_on(folder.path(), &database.app_url);
}

/// A program that is large enough for its graph and texts to be kept, and its store.
fn indexed(folder: &Path) -> PathBuf {
    let tree = folder.join("tree");
    std::fs::create_dir(&tree).unwrap();
    for file in 0..20 {
        let text: String = (0..30).map(|n| format!("def price_{file}_{n}():\n    return {n}\n\n\n")).collect();
        std::fs::write(tree.join(format!("shop{file}.py")), text).unwrap();
    }
    let store = tree.join(".lukasa/lukasa.db");
    ok(lukasa(&tree, store.to_str().unwrap()), &["index"]);
    store
}

/// The build in the first line of a cache, `lukasa facts BUILD …` or `lukasa index 1 BUILD`, and where it begins.
fn build(file: &Path) -> (usize, String) {
    let bytes = std::fs::read(file).unwrap();
    let line: String = bytes.into_iter().take_while(|byte| *byte != b'\n').map(char::from).collect();
    let before = if line.starts_with("lukasa facts ") { "lukasa facts " } else { "lukasa index 1 " };
    let build = line.strip_prefix(before).and_then(|rest| rest.split(' ').next()).expect("a cache names its build");
    (before.len(), build.to_owned())
}

/// Makes a cache one of another build; nothing else of it differs.
fn of_another_build(file: &Path) {
    let (start, build) = build(file);
    let mut bytes = std::fs::read(file).unwrap();
    bytes[start] = if build.starts_with('a') { b'b' } else { b'a' };
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn caches_of_another_build_are_ignored_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let store = indexed(folder.path());
    let (tree, store) = (folder.path().join("tree"), store.to_str().unwrap());
    let search = || ok(lukasa(&tree, store), &["search", "price_7_21"]);
    let first = search();
    assert!(first["items"][0].to_string().contains("shop7.py::price_7_21"), "{first}");
    let kept = || -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> =
            std::fs::read_dir(tree.join(".lukasa/cache")).unwrap().map(|entry| entry.unwrap().path()).collect();
        let is_kept = |name: &str| name == "facts" || name.starts_with("graph-") || name.starts_with("texts-");
        all.retain(|file| is_kept(file.file_name().unwrap().to_str().unwrap()));
        all.sort();
        all
    };
    let files = kept();
    assert_eq!(files.len(), 3, "the facts of the sources, a graph and its texts: {files:?}");
    let builds = || files.iter().map(|file| build(file).1).collect::<Vec<_>>();
    let own = builds();
    files.iter().for_each(|file| of_another_build(file));
    assert!(own.iter().zip(builds()).all(|(own, foreign)| *own != foreign), "{own:?}");

    // A file is read again: its facts come from its text, and not from the cache. Every index is built again.
    let changed = tree.join("shop7.py");
    let text = std::fs::read_to_string(&changed).unwrap();
    std::fs::write(&changed, text.replace("price_7_21", "price_7_99")).unwrap();
    ok(lukasa(&tree, store), &["index"]);
    let found = ok(lukasa(&tree, store), &["search", "price_7_99"]);
    assert!(found["items"][0].to_string().contains("shop7.py::price_7_99"), "{found}");
    assert_ne!(search()["items"][0]["ref"], first["items"][0]["ref"]);
    // A cache that had been read would not have been written again.
    assert_eq!((kept(), builds()), (files.clone(), own));
}

/// The formats that this build writes have fixtures. With `UPDATE_FIXTURES=1`, missing ones are written.
#[test]
fn the_formats_of_this_build_have_fixtures() {
    let folder = tempfile::tempdir().unwrap();
    let fill = |store: &str| {
        ok(lukasa(folder.path(), store), &["put", "Service", "auth", "--title", "Auth"]);
        ok(lukasa(folder.path(), store), &["get", "Service:auth"]);
        assert_eq!(run(lukasa(folder.path(), store), &["get", "Service:gone"]).status.code(), Some(1));
        ok(lukasa(folder.path(), store), &["log"]);
    };
    fill(folder.path().join("lukasa.db").to_str().unwrap());
    for (file, kind) in [("lukasa.db", "sqlite-schema-N.db"), ("lukasa.audit.db", "audit-schema-N.audit.db")] {
        let raw = rusqlite::Connection::open(folder.path().join(file)).unwrap();
        let schema: i64 =
            raw.query_row("SELECT max(version) FROM refinery_schema_history", [], |row| row.get(0)).unwrap();
        let named = fixture(&kind.replace('N', &schema.to_string()));
        // Small pages, because many trees contain few rows.
        let write = || {
            raw.execute_batch(&format!("PRAGMA page_size = 512; VACUUM INTO '{}'", named.display())).unwrap();
        };
        exists(&named, write);
    }
    let Some(database) = TestDatabase::new() else { return };
    let schema = database.as_admin_rows("SELECT max(version) FROM lukasa.refinery_schema_history");
    let named = fixture(&format!("postgres-schema-{}.sql", schema[0]));
    exists(&named, || {
        fill(&database.app_url);
        std::fs::write(&named, dumped(&database)).unwrap();
    });
}

/// Checks that a fixture exists, and writes it before if that was requested. An existing one is never changed.
fn exists(fixture: &Path, write: impl FnOnce()) {
    if !fixture.exists() && std::env::var_os("UPDATE_FIXTURES").is_some_and(|value| value == "1") {
        write();
    }
    assert!(fixture.exists(), "{} is missing: run this test with UPDATE_FIXTURES=1", fixture.display());
}

/// What `pg_dump` writes of a database, without lines that are for `psql` only.
fn dumped(database: &TestDatabase) -> String {
    let dump = ["--inserts", "--schema=lukasa", "--no-owner", "--no-privileges", "--no-comments", &database.admin_url];
    let out = Command::new("pg_dump").args(dump).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let kept: Vec<&str> =
        text.lines().filter(|line| !line.is_empty() && !line.starts_with("--") && !line.starts_with('\\')).collect();
    kept.join("\n") + "\n"
}
