//! Stores and dumps of every released format can be opened, verified and written to, as fixtures show.
//!
//! Fixtures are made by the build whose format they show and are never changed. A format without one fails a test, which
//! writes it with `UPDATE_FIXTURES=1` in the environment.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_model::batch::{PutObject, PutRelationship};
use lukasa_model::json::rule::CanonicalRule;
use lukasa_model::transaction::Header;
use lukasa_model::{Batch, ErrorCode, Reference, Scope, Transaction, Tx};
use lukasa_store::guarded_clock::{GuardedClock, SteadyReading};
use lukasa_store::ledger::{Ledger, NewBranch, ViewSpec};
use lukasa_store::sqlite::Durability;
use lukasa_store::{Clock, SqliteStore, SystemClock};
use lukasa_testkit::{Fixture, ManualClock, TestDatabase, fixtures};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn open(path: &Path) -> Ledger {
    let store = SqliteStore::open(path, Arc::new(SystemClock), Durability::Rebuildable).unwrap();
    Ledger::new(Arc::new(store), Arc::new(SystemClock), Scope::new("test", "shop").unwrap())
}

/// A copy of a store, opened.
fn copied(name: &str) -> (tempfile::TempDir, Ledger) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lukasa.db");
    std::fs::copy(fixture(name), &path).unwrap();
    let ledger = open(&path);
    (folder, ledger)
}

fn transactions(ledger: &Ledger) -> Vec<Transaction> {
    let head = ledger.head().unwrap();
    ledger.store().read(ledger.scope()).unwrap().transactions(Tx(1), head.tx, 1_000).unwrap()
}

fn properties(ledger: &Ledger, spec: &ViewSpec, name: &str) -> Value {
    let found = ledger.find(&ledger.view(spec).unwrap(), &Reference::from(name)).unwrap();
    Value::Object(found.statement.parsed().unwrap().properties)
}

/// The properties of `auth` in the fixtures of the first rule: numbers and names that the rules write differently.
fn numbers() -> Value {
    json!({"ratio": 1e-6, "large": 1e16, "huge": 1e300, "exact": 9_007_199_254_740_993_u64, "whole": 2.0,
        "edge": 9_007_199_254_740_992.0, "\u{e000}": 1, "\u{1f600}": 2})
}

fn auth(properties: &Value) -> PutObject {
    let mut object = PutObject::new("Service", "auth");
    object.title = Some("Auth \"é\"".into());
    object.properties = properties.as_object().unwrap().clone();
    object
}

/// Verifies, writes equal content, writes another, and verifies again.
fn goes_on(ledger: &Ledger, name: &str) {
    ledger.verify(&mut |_, _| {}).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    let before = transactions(ledger);
    assert!(before.iter().all(|t| t.header.rule == CanonicalRule::First), "{name}");
    let first = ViewSpec::default().as_of("tx:2");
    assert_eq!(properties(ledger, &first, "Service:auth").to_string(), numbers_as_read().to_string(), "{name}");
    // On a branch that sees the version written under the first rule.
    let branch = NewBranch {
        name: "again".into(),
        at: Some(Tx(2)),
        mode: lukasa_model::BranchMode::Pinned,
        ..NewBranch::default()
    };
    ledger.create_branch(&branch, &Header::default()).unwrap();
    let again = ledger.commit(&Batch::on("again").write(auth(&numbers()))).unwrap();
    assert_eq!((again.tx, again.unchanged), (None, 1), "{name}: equal content creates no version under another rule");
    let mut other = numbers();
    other["large"] = json!(2e16);
    let changed = ledger.commit(&Batch::on("again").write(auth(&other))).unwrap();
    assert!(changed.tx.is_some(), "{name}");
    let after = transactions(ledger);
    assert_eq!(after.last().unwrap().header.rule, CanonicalRule::Second, "{name}");
    assert_eq!(after[..before.len()], before[..], "{name}");
    ledger.verify(&mut |_, _| {}).unwrap_or_else(|e| panic!("{name}: {e:?}"));
}

/// Whole floats below 2^53 have always been kept as integers.
fn numbers_as_read() -> Value {
    let mut read = json!({"edge": 9_007_199_254_740_992.0, "exact": 9_007_199_254_740_993_u64, "huge": 1e300, "large": 1e16,
        "ratio": 1e-6, "whole": 2});
    read["\u{e000}"] = json!(1);
    read["\u{1f600}"] = json!(2);
    read
}

#[test]
fn a_sqlite_store_of_schema_6_opens_and_goes_on() {
    let (_folder, ledger) = copied("sqlite-schema-6.db");
    assert_eq!(ledger.verify(&mut |_, _| {}).unwrap().transactions, 12);
    goes_on(&ledger, "schema 6");
}

#[test]
fn a_dump_of_format_1_restores_into_every_store_and_goes_on() {
    let (_folder, whole) = copied("sqlite-schema-6.db");
    for Fixture { ledger, name, .. } in &fixtures() {
        let text = std::fs::read(fixture("dump-format-1.jsonl")).unwrap();
        ledger.restore(&mut &text[..], &mut |_, _| {}).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!(ledger.head().unwrap().hash, whole.head().unwrap().hash, "{name}: the dump is of that store");
        goes_on(ledger, name);
    }
}

#[test]
fn sqlite_stores_of_schemas_8_and_9_open_with_rows_and_runs() {
    for name in ["sqlite-schema-8.db", "sqlite-schema-9.db"] {
        let (folder, ledger) = copied(name);
        let report = ledger.verify(&mut |_, _| {}).unwrap();
        assert_eq!((report.transactions, report.releases), (transactions(&ledger).len() as u64, 0), "{name}");
        assert!(transactions(&ledger).iter().all(|t| t.header.rule == CanonicalRule::Second), "{name}");
        let raw = rusqlite::Connection::open(folder.path().join("lukasa.db")).unwrap();
        let runs: i64 = raw.query_row("SELECT count(*) FROM runs", [], |row| row.get(0)).unwrap();
        assert!(runs > 0, "{name} has runs");
        assert_eq!(ledger.commit(&Batch::on("main").write(auth(&numbers()))).unwrap().tx, None, "{name}");
        let spec = ViewSpec::default();
        assert_eq!(properties(&ledger, &spec, "Service:s7")["n"], json!(7), "{name}");
        assert_eq!(properties(&ledger, &ViewSpec::on("dev"), "Service:s7")["n"], json!(8), "{name}");
    }
}

#[test]
fn a_dump_of_format_2_restores_into_every_store() {
    let (_folder, whole) = copied("sqlite-schema-8.db");
    for Fixture { ledger, name, .. } in &fixtures() {
        let text = std::fs::read(fixture("dump-format-2.jsonl")).unwrap();
        ledger.restore(&mut &text[..], &mut |_, _| {}).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!(ledger.head().unwrap().hash, whole.head().unwrap().hash, "{name}");
        ledger.verify(&mut |_, _| {}).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!(ledger.commit(&Batch::on("main").write(auth(&numbers()))).unwrap().tx, None, "{name}");
    }
}

/// The fixture is the dump of format 1, restored, as `pg_dump --inserts` wrote it from a database of schema 6.
#[test]
fn a_postgresql_database_of_schema_6_is_refused_until_it_is_migrated_and_goes_on() {
    let Some(database) = TestDatabase::new() else { return };
    database.as_admin("DROP SCHEMA lukasa CASCADE");
    database.as_admin(&std::fs::read_to_string(fixture("postgres-schema-6.sql")).unwrap());
    // Roles are not part of a schema; the setup replaces these rights.
    database.as_admin("GRANT USAGE ON SCHEMA lukasa TO PUBLIC");
    database.as_admin("GRANT SELECT ON lukasa.refinery_schema_history TO PUBLIC");
    assert_eq!(database.open(None).err().unwrap().code, ErrorCode::SchemaMissing);
    database.setup_again().unwrap();
    let store = database.open(None).unwrap();
    let ledger = Ledger::new(Arc::new(store), Arc::new(SystemClock), Scope::new("test", "shop").unwrap());
    let (_folder, whole) = copied("sqlite-schema-6.db");
    assert_eq!(ledger.head().unwrap().hash, whole.head().unwrap().hash, "the same log as the SQLite fixture");
    goes_on(&ledger, "PostgreSQL schema 6");
}

#[test]
fn readings_of_the_clock_of_format_1_are_used_and_other_formats_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let (store, file) = (folder.path().join("lukasa.db"), folder.path().join("lukasa.clock"));
    let text = std::fs::read_to_string(fixture("clock-format-1.clock")).unwrap();
    let check_after = |hours: i64| {
        let wall = Arc::new(ManualClock::default());
        let now = wall.advance(hours * 3_600);
        let steady = || Some(SteadyReading { boot: "first".into(), micros: 1_000_000 });
        GuardedClock::new(wall, false, |_| ()).with_steady(steady).beside(&store).check(now)
    };
    check_after(0).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "this build writes format 1");
    std::fs::write(&file, &text).unwrap();
    assert_eq!(check_after(25).unwrap_err().code, ErrorCode::ClockJumped);
    std::fs::write(&file, text.replace("\"format\":1", "\"format\":2")).unwrap();
    check_after(25).unwrap();
}

#[test]
fn verification_finds_content_that_is_not_canonical_under_its_rule() {
    let (folder, ledger) = copied("sqlite-schema-8.db");
    let raw = rusqlite::Connection::open(folder.path().join("lukasa.db")).unwrap();
    let triggers: Vec<String> = raw
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'transactions'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for trigger in triggers {
        raw.execute_batch(&format!("DROP TRIGGER {trigger}")).unwrap();
    }
    let changed = raw.execute("UPDATE transactions SET header = replace(header, ',\"rule\":2', '')", []).unwrap();
    assert!(changed > 0);
    let found = ledger.verify(&mut |_, _| {}).unwrap_err();
    assert_eq!(found.code, ErrorCode::VerificationFailed);
    assert!(found.message.contains("transaction 1"), "the header is part of what is hashed: {}", found.message);
    let text = ledger.store().read(ledger.scope()).unwrap().versions_after(lukasa_model::VersionId(0), 100).unwrap();
    let depends =
        text.iter().filter_map(|s| s.content.as_deref()).filter(|text| !CanonicalRule::First.holds(text)).count();
    assert_eq!(depends, 1, "one content is not canonical under the first rule");
}

/// The formats that this build writes have fixtures of the same layout. With `UPDATE_FIXTURES=1`, missing ones are written.
#[test]
fn the_formats_of_this_build_have_fixtures() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("small.db");
    let dump = store_with_everything(&folder.path().join("lukasa.db"), &made);
    let format = |dump: &str| {
        let first: Value = serde_json::from_str(dump.lines().next().unwrap()).unwrap();
        first["dump"]["format"].as_u64().unwrap()
    };
    let dumped = fixture(&format!("dump-format-{}.jsonl", format(&dump)));
    let (schema, tables) = layout(&made);
    let stored = fixture(&format!("sqlite-schema-{schema}.db"));
    if std::env::var_os("UPDATE_FIXTURES").is_some_and(|value| value == "1") {
        if !dumped.exists() {
            std::fs::write(&dumped, &dump).unwrap();
        }
        if !stored.exists() {
            std::fs::copy(&made, &stored).unwrap();
        }
    }
    for fixture in [&dumped, &stored] {
        assert!(fixture.exists(), "{} is missing: run this test with UPDATE_FIXTURES=1", fixture.display());
    }
    assert_eq!(layout(&stored), (schema, tables), "a schema that changes gets a new number");
    assert_eq!(format(&std::fs::read_to_string(&dumped).unwrap()), format(&dump));
}

/// The number of the schema of an SQLite store, and its tables, indexes and triggers.
fn layout(path: &Path) -> (i64, Vec<String>) {
    let raw = rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let schema = raw.query_row("SELECT max(version) FROM refinery_schema_history", [], |row| row.get(0)).unwrap();
    let mut tables = raw.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name").unwrap();
    let tables = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    (schema, tables)
}

/// Makes a store with rows, runs and branches, and a small copy of it. Returns its dump.
fn store_with_everything(path: &Path, small: &Path) -> String {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    let store = SqliteStore::open(path, Arc::clone(&clock), Durability::Full).unwrap();
    let ledger = Ledger::new(Arc::new(store), clock, Scope::new("test", "shop").unwrap());
    let service = |n: i64| PutObject::new("Service", &format!("s{n}")).property("n", n);
    let part: Vec<_> = (0..12).map(|n| service(n).into()).collect();
    ledger.load("main", &Header::default(), std::iter::once(Ok(part))).unwrap();
    ledger.commit(&Batch::on("main").write(auth(&numbers()))).unwrap();
    let mut link = PutRelationship::new("CALLS", "Service:s1", "Service:auth");
    link.weight = Some(1e-7);
    ledger.commit(&Batch::on("main").write(link)).unwrap();
    let branch = NewBranch { name: "dev".into(), ..NewBranch::default() };
    ledger.create_branch(&branch, &Header::default()).unwrap();
    ledger.commit(&Batch::on("dev").write(service(7).property("n", 8))).unwrap();
    let mut dump = Vec::new();
    ledger.dump(&mut dump, &mut |_, _| {}).unwrap();
    drop(ledger);
    // Small pages, because many trees contain few rows.
    let raw = rusqlite::Connection::open(path).unwrap();
    raw.execute_batch(&format!("PRAGMA page_size = 512; VACUUM INTO '{}'", small.display())).unwrap();
    String::from_utf8(dump).unwrap()
}
