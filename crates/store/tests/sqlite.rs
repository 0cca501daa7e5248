//! SQLite files: damage, missing rights, a full disk, other processes, and backups while writers run.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_model::batch::{PutObject, PutRelationship};
use lukasa_model::transaction::Header;
use lukasa_model::{Batch, ErrorCode, FactNo, Scope, Tx, Write};
use lukasa_store::sqlite::Durability;
use lukasa_store::{Ledger, SqliteStore, SystemClock};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn open(path: &Path) -> lukasa_model::Result<Ledger> {
    let store = SqliteStore::open(path, Arc::new(SystemClock), Durability::Full)?;
    Ok(Ledger::new(Arc::new(store), Arc::new(SystemClock), Scope::new("local", "shop").unwrap()))
}

fn put(ledger: &Ledger, key: &str, bytes: usize) -> lukasa_model::Result<()> {
    let text = "x".repeat(bytes);
    ledger.commit(&Batch::on("main").write(PutObject::new("Service", key).property("text", text))).map(drop)
}

/// A small separate file system, if the machine allows one.
struct Mount(PathBuf);

impl Mount {
    fn new(folder: &Path, megabytes: u32) -> Option<Mount> {
        let size = format!("size={megabytes}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder).output();
        if mounted.is_ok_and(|out| out.status.success()) {
            return Some(Mount(folder.into()));
        }
        assert!(std::env::var_os("CI").is_none(), "CI must be able to mount a small tmpfs");
        eprintln!("SKIPPED: mounting a small tmpfs needs root");
        None
    }

    fn make_read_only(&self) {
        assert!(Command::new("mount").args(["-o", "remount,ro"]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_newer_schema_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lukasa.db");
    put(&open(&path).unwrap(), "a", 1).unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute(
        "INSERT INTO refinery_schema_history (version, name, applied_on, checksum) VALUES (999, 'later', 'x', '1')",
        [],
    )
    .unwrap();
    drop(raw);
    let error = open(&path).err().unwrap();
    assert_eq!(error.code, ErrorCode::NewerSchema);
    assert!(error.message.contains("schema version 999") && error.hint.is_some());
}

#[test]
fn a_store_with_an_older_schema_is_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lukasa.db");
    let ledger = open(&path).unwrap();
    put(&ledger, "a", 1).unwrap();
    put(&ledger, "b", 1).unwrap();
    drop(ledger);
    // Reverts the schema to version 2: without derived data, the table of ids and runs.
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch(
        "DROP TABLE vectors; DROP TABLE vector_models; DROP TABLE jobs; DROP TABLE marks;
         DROP TABLE access_keys; DROP TABLE runs; DROP TABLE run_ids; DROP TABLE run_keys; DROP TABLE run_ends;
         DROP TABLE row_ids; CREATE UNIQUE INDEX things_by_id ON things (scope, id);
         DELETE FROM refinery_schema_history WHERE version > 2;",
    )
    .unwrap();
    drop(raw);
    let ledger = open(&path).unwrap();
    ledger.store().derived().set_mark(ledger.scope(), "m", 1).unwrap();
    put(&ledger, "b", 2).unwrap();
    put(&ledger, "c", 1).unwrap();
    let head = ledger.head().unwrap();
    assert_eq!((head.tx, head.next_thing), (Tx(4), FactNo(4)), "existing facts are found by id");
    assert_eq!(ledger.verify(&mut |_, _| {}).unwrap().transactions, 4);
}

#[test]
fn rows_cannot_be_changed_and_damage_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lukasa.db");
    let ledger = open(&path).unwrap();
    put(&ledger, "a", 10).unwrap();
    put(&ledger, "b", 10).unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    for sql in [
        "UPDATE statements SET content = '{}'",
        "DELETE FROM statements",
        "UPDATE things SET key = 'z'",
        "DELETE FROM things",
        "UPDATE row_ids SET tid = 0",
        "DELETE FROM row_ids",
        "UPDATE transactions SET header = '{}'",
        "DELETE FROM transactions",
    ] {
        assert!(raw.execute(sql, []).is_err(), "{sql}");
    }
    // Verification detects changes even after the triggers were dropped.
    let version = "(SELECT max(version) FROM statements)";
    for (sql, says) in [
        (format!("UPDATE statements SET content = '{{}}' WHERE version = {version}"), "the content of version 2.0 does not match its hash"),
        (format!("DELETE FROM statements WHERE version = {version}"), "transaction 2 has 0 versions, 1 are expected"),
        ("UPDATE statements SET valid_from = 5 WHERE number = 1".to_string(), "transaction 1 does not match its hash"),
        ("UPDATE transactions SET header = '{\"kind\":\"merge\"}' WHERE tx = 1".to_string(), "transaction 1 does not match its hash"),
        ("DELETE FROM transactions WHERE tx = 1".to_string(), "transaction 1 is missing"),
        ("DELETE FROM transactions WHERE tx = 2".to_string(), "transaction 2 is missing"),
        ("UPDATE things SET key = 'z' WHERE key = 'b'".to_string(), "the id of `Service:z` (fact 2) does not follow from its name"),
        ("DELETE FROM things WHERE key = 'a'".to_string(), "fact 1 is missing"),
        ("DELETE FROM row_ids WHERE id = (SELECT id FROM things WHERE key = 'b')".to_string(), "fact 2 is not found by its id"),
        ("UPDATE projects SET hash = zeroblob(32)".to_string(), "the head does not match the last transaction"),
        ("INSERT INTO statements SELECT tid, 7, version + 8 * 16777216, scope, recorded_at, valid_from, valid_to, number, parents, hash, content, change FROM statements LIMIT 1".to_string(), "3 statements are stored, 2 belong to the log"),
    ] {
        let copy = folder.path().join("damaged.db");
        ledger.store().copy_to(&copy).unwrap();
        let raw = rusqlite::Connection::open(&copy).unwrap();
        for trigger in ["things_keep", "things_stay", "thing_ids_keep", "thing_ids_stay", "statements_keep", "statements_stay", "transactions_keep", "transactions_stay"] {
            raw.execute(&format!("DROP TRIGGER {trigger}"), []).unwrap();
        }
        raw.pragma_update(None, "foreign_keys", false).unwrap();
        raw.execute(&sql, []).unwrap();
        drop(raw);
        let error = open(&copy).unwrap().verify(&mut |_, _| {}).expect_err(&sql);
        assert_eq!((error.code, error.message.as_str()), (ErrorCode::VerificationFailed, says), "{sql}");
        std::fs::remove_file(&copy).unwrap();
        for rest in ["damaged.db-wal", "damaged.db-shm"] {
            let _ = std::fs::remove_file(folder.path().join(rest));
        }
    }
}

#[test]
fn packed_rows_cannot_be_changed_and_damage_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lukasa.db");
    let ledger = open(&path).unwrap();
    let object = |n: u32| PutObject::new("Service", &format!("s{n}")).property("x", "0123456789".repeat(20)).into();
    let parts: Vec<lukasa_model::Result<Vec<Write>>> = vec![
        Ok((0..100).map(object).collect()),
        Ok((1..100)
            .map(|n| PutRelationship::new("CALLS", "Service:s0", format!("Service:s{n}").as_str()).into())
            .collect()),
    ];
    ledger.load("main", &Header::default(), parts.into_iter()).unwrap();
    let call = || PutRelationship::new("CALLS", "Service:s1", "Service:s2").into();
    let twice: Vec<lukasa_model::Result<Vec<Write>>> = vec![Ok(vec![call()]), Ok(vec![call()])];
    let error = ledger.load("main", &Header::default(), twice.into_iter()).unwrap_err();
    assert_eq!(error.code, ErrorCode::DuplicateInBatch, "{error:?}");
    assert!(error.message.contains("written twice in one load"), "{error:?}");
    let raw = rusqlite::Connection::open(&path).unwrap();
    let runs: i64 = raw.query_row("SELECT count(*) FROM runs", [], |r| r.get(0)).unwrap();
    assert!((3..15).contains(&runs), "199 facts in {runs} rows");
    assert_eq!(raw.query_row("SELECT count(*) FROM things", [], |r| r.get::<_, i64>(0)).unwrap(), 0);
    let guards = [
        "runs_keep",
        "runs_stay",
        "run_ids_keep",
        "run_ids_stay",
        "run_keys_keep",
        "run_keys_stay",
        "run_ends_keep",
        "run_ends_stay",
    ];
    for sql in [
        "UPDATE runs SET last = 0",
        "DELETE FROM runs",
        "UPDATE run_ids SET prefix = 0",
        "DELETE FROM run_ids",
        "UPDATE run_keys SET tid = 0",
        "DELETE FROM run_keys",
        "UPDATE run_ends SET node = 0",
        "DELETE FROM run_ends",
    ] {
        assert!(raw.execute(sql, []).is_err(), "{sql}");
    }
    let first = "WHERE first = (SELECT min(first) FROM runs)";
    for (sql, says) in [
        (
            format!("UPDATE runs SET body = CAST(replace(body, '01234', '11234') AS BLOB) {first}"),
            "the content of version 1.0 does not match its hash",
        ),
        (format!("UPDATE runs SET body = substr(body, 1, length(body) / 2) {first}"), "a run of facts is not readable"),
        (format!("UPDATE runs SET body = zeroblob(4000) {first}"), "a run of facts is not readable"),
        (format!("UPDATE runs SET things = 1000000 {first}"), "a run of facts is not readable"),
        (format!("UPDATE runs SET things = -1 {first}"), "a run of facts is not readable"),
        (format!("DELETE FROM runs {first}"), "fact 1 is missing"),
        (format!("UPDATE runs SET recorded_at = 7 {first}"), "version 1.0 has impossible times or parents"),
        ("DELETE FROM run_ids".to_string(), "fact 1 is not found by its id"),
        ("UPDATE run_ids SET list = x'80'".to_string(), "a run of facts is not readable"),
    ] {
        let copy = folder.path().join("damaged.db");
        ledger.store().copy_to(&copy).unwrap();
        let raw = rusqlite::Connection::open(&copy).unwrap();
        for trigger in guards {
            raw.execute(&format!("DROP TRIGGER {trigger}"), []).unwrap();
        }
        raw.execute(&sql, []).unwrap();
        drop(raw);
        let error = open(&copy).unwrap().verify(&mut |_, _| {}).expect_err(&sql);
        assert_eq!(error.message.as_str(), says, "{sql}");
        for file in ["damaged.db", "damaged.db-wal", "damaged.db-shm"] {
            let _ = std::fs::remove_file(folder.path().join(file));
        }
    }
}

#[test]
fn corrupt_files_are_reported_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let garbage = folder.path().join("garbage.db");
    std::fs::write(&garbage, "this is not a database, but it is long enough to look like one".repeat(100)).unwrap();
    let before = std::fs::read(&garbage).unwrap();
    let error = open(&garbage).err().unwrap();
    assert_eq!(error.code, ErrorCode::CorruptStore, "{error:?}");
    assert!(error.message.contains("garbage.db") && error.hint.is_some());
    assert_eq!(std::fs::read(&garbage).unwrap(), before);
    // A real store with a hole in the middle.
    let path = folder.path().join("lukasa.db");
    let ledger = open(&path).unwrap();
    for i in 0..300 {
        put(&ledger, &format!("k{i}"), 2_000).unwrap();
    }
    drop(ledger);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 40_000].fill(0xa5);
    let torn = folder.path().join("torn.db");
    std::fs::write(&torn, bytes).unwrap();
    let error = open(&torn).and_then(|l| l.verify(&mut |_, _| {})).expect_err("the damage is detected");
    assert!(
        [ErrorCode::CorruptStore, ErrorCode::VerificationFailed, ErrorCode::InternalError].contains(&error.code),
        "{error:?}"
    );
}

#[test]
fn a_foreign_database_is_rejected_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("foreign.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1);").unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = open(&path).err().unwrap();
    assert_eq!(error.code, ErrorCode::NotAStore);
    assert!(error.hint.is_some());
    assert_eq!(std::fs::read(&path).unwrap(), before, "the file is unchanged");
}

#[test]
fn a_read_only_folder_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::new(folder.path(), 8) else { return };
    let path = folder.path().join("lukasa.db");
    put(&open(&path).unwrap(), "a", 1).unwrap();
    mount.make_read_only();
    for path in [path, folder.path().join("new.db")] {
        let error = open(&path).and_then(|l| put(&l, "b", 1)).err().unwrap();
        assert!([ErrorCode::ReadOnlyStore, ErrorCode::CannotOpen].contains(&error.code), "{error:?}");
        assert!(error.hint.is_some());
    }
}

#[test]
fn a_full_disk_rejects_the_batch_and_keeps_earlier_ones() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_mount) = Mount::new(folder.path(), 4) else { return };
    let path = folder.path().join("lukasa.db");
    let ledger = open(&path).unwrap();
    let mut kept = 0;
    let error = loop {
        match put(&ledger, &format!("k{kept}"), 100_000) {
            Ok(()) => kept += 1,
            Err(e) => break e,
        }
        assert!(kept < 1_000, "the disk was never full");
    };
    assert_eq!(error.code, ErrorCode::DiskFull, "{error:?}");
    assert!(kept > 3);
    assert_eq!(ledger.head().unwrap().tx, Tx(kept), "the rejected batch wrote nothing");
    ledger.verify(&mut |_, _| {}).unwrap();
    drop(ledger);
    let again = open(&path).unwrap();
    assert_eq!(again.head().unwrap().tx, Tx(kept));
    again.verify(&mut |_, _| {}).unwrap();
}

#[test]
fn a_backup_while_writers_run_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(&folder.path().join("lukasa.db")).unwrap();
    put(&ledger, "first", 1_000).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut i = 0;
            while !done.load(Ordering::SeqCst) {
                put(&ledger, &format!("k{i}"), 5_000).unwrap();
                i += 1;
            }
            i
        });
        let mut seen = Vec::new();
        for i in 0..10 {
            let copy = folder.path().join(format!("copy{i}.db"));
            ledger.store().copy_to(&copy).unwrap();
            let copy = open(&copy).unwrap();
            copy.verify(&mut |_, _| {}).unwrap();
            seen.push(copy.head().unwrap().tx);
        }
        done.store(true, Ordering::SeqCst);
        assert!(writer.join().unwrap() > 10, "the writer continued meanwhile");
        assert!(seen.is_sorted());
        let existing = folder.path().join("copy0.db");
        assert_eq!(ledger.store().copy_to(&existing).unwrap_err().code, ErrorCode::FileExists);
    });
}

#[test]
fn two_stores_on_one_file_share_one_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lukasa.db");
    let (one, two) = (open(&path).unwrap(), open(&path).unwrap());
    std::thread::scope(|scope| {
        for (name, ledger) in [("a", &one), ("b", &two)] {
            scope.spawn(move || (0..30).for_each(|i| put(ledger, &format!("{name}{i}"), 10).unwrap()));
        }
    });
    assert_eq!((one.head().unwrap().tx, two.head().unwrap().tx), (Tx(60), Tx(60)));
    one.verify(&mut |_, _| {}).unwrap();
}

mod record {
    use super::*;
    use lukasa_model::Time;
    use lukasa_model::json::Hash;
    use lukasa_store::Store;
    use lukasa_store::audit::{AuditFault, AuditFlaw, AuditHead, AuditNote, ChainReport, Seals, walk};

    struct Key;

    impl Seals for Key {
        fn seal(&self, head: &AuditHead) -> Hash {
            Hash::of(format!("secret {} {} {}", head.server, head.number, head.hash).as_bytes())
        }

        fn key_id(&self) -> &str {
            "k"
        }
    }

    fn store(path: &Path) -> SqliteStore {
        SqliteStore::open(path, Arc::new(SystemClock), Durability::Full).unwrap()
    }

    fn append(store: &SqliteStore, server: &str, numbers: std::ops::RangeInclusive<u64>) {
        let notes: Vec<_> = numbers
            .map(|number| AuditNote {
                tenant: "local".into(),
                project: "shop".into(),
                at: Time(number as i64),
                user: Some("u".into()),
                agent: None,
                operation: format!("op{number}"),
                scopes: "*".into(),
                request: "r".into(),
                status: "ok".into(),
                counts: [("hits".to_string(), number)].into(),
                truncated: false,
                took_us: 9,
                request_id: None,
                address: None,
            })
            .collect();
        store.audit().append(server, &notes, &Key, true).unwrap();
    }

    fn verify(path: &Path) -> Result<Vec<ChainReport>, AuditFault> {
        walk(store(path).audit(), "local", &Key, &[], &mut |_| {}).unwrap()
    }

    /// Verifies a record of ten entries of one server and three of another after this change of its file.
    fn tampered(sql: &str) -> Result<Vec<ChainReport>, AuditFault> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lukasa.db");
        let own = store(&path);
        append(&own, "s1", 1..=10);
        append(&own, "s2", 1..=3);
        drop(own);
        assert_eq!(verify(&path).unwrap().len(), 2);
        let raw = rusqlite::Connection::open(folder.path().join("lukasa.audit.db")).unwrap();
        let refused = raw.execute_batch("UPDATE audit SET status = 'x' WHERE number = 2").unwrap_err().to_string();
        assert!(refused.contains("never changed"), "{refused}");
        raw.execute_batch("DROP TRIGGER audit_keep; DROP TRIGGER audit_stay; DROP TRIGGER audit_heads_grow; DROP TRIGGER audit_heads_stay;").unwrap();
        raw.execute_batch(sql).unwrap();
        drop(raw);
        verify(&path)
    }

    #[test]
    fn tampering_with_the_record_is_reported_with_its_place() {
        let of_first = "WHERE server = 's1' AND number";
        for (sql, number, flaw) in [
            ("UPDATE audit SET status = 'forbidden'", 4, AuditFlaw::Changed),
            ("UPDATE audit SET took_us = 10", 4, AuditFlaw::Changed),
            ("UPDATE audit SET counts = '{\"hits\":5}'", 4, AuditFlaw::Changed),
            ("UPDATE audit SET counts = 'none'", 1, AuditFlaw::Changed),
            ("UPDATE audit SET user = NULL", 10, AuditFlaw::Changed),
            ("UPDATE audit SET previous = hash", 3, AuditFlaw::Changed),
            ("UPDATE audit SET hash = zeroblob(32)", 10, AuditFlaw::Changed),
            ("UPDATE audit SET hash = x'00'", 7, AuditFlaw::Changed),
            ("DELETE FROM audit", 1, AuditFlaw::Missing),
            ("DELETE FROM audit", 6, AuditFlaw::Missing),
        ] {
            let fault = tampered(&format!("{sql} {of_first} = {number}")).unwrap_err();
            assert_eq!((fault.server.as_str(), fault.number, fault.flaw), ("s1", number, flaw), "{sql} {number}");
        }
        let swapped = format!(
            "UPDATE audit SET number = -4 {of_first} = 4; UPDATE audit SET number = 4 {of_first} = 7; UPDATE audit SET number = 7 {of_first} = -4"
        );
        let swapped = swapped.replacen("UPDATE", "PRAGMA ignore_check_constraints = ON; UPDATE", 1);
        let whole = |sql: &str| tampered(sql).map_err(|f| (f.server, f.number, f.flaw));
        let fault = |server: &str, number, flaw| Err((server.to_string(), number, flaw));
        assert_eq!(whole(&swapped), fault("s1", 4, AuditFlaw::Reordered));
        assert_eq!(whole(&format!("DELETE FROM audit {of_first} > 8")), fault("s1", 8, AuditFlaw::CutOff));
        assert_eq!(whole("DELETE FROM audit WHERE server = 's2'"), fault("s2", 0, AuditFlaw::CutOff));
        assert_eq!(whole("DELETE FROM audit_heads WHERE server = 's2'"), fault("s2", 3, AuditFlaw::NoHead));
        // The last entries are removed and the head is moved back, but the seal belongs to the previous end.
        let cut = format!(
            "DELETE FROM audit {of_first} > 8; UPDATE audit_heads SET number = 8,
             hash = (SELECT hash FROM audit {of_first} = 8) WHERE server = 's1'"
        );
        assert_eq!(whole(&cut), fault("s1", 8, AuditFlaw::WrongSeal));
        // Removing a chain together with its head is only detected with a hash that was noted elsewhere.
        let gone = whole("DELETE FROM audit WHERE server = 's2'; DELETE FROM audit_heads WHERE server = 's2'");
        assert_eq!(gone.unwrap().len(), 1);
    }

    #[test]
    fn the_record_is_a_separate_file_that_is_created_on_first_use() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lukasa.db");
        let (own, file) = (store(&path), folder.path().join("lukasa.audit.db"));
        assert!(verify(&path).unwrap().is_empty() && !file.exists(), "verification creates no file");
        append(&own, "s1", 1..=2);
        assert!(file.exists());
        // Another process continues the same chain.
        append(&store(&path), "s1", 3..=3);
        append(&own, "s1", 4..=4);
        assert_eq!(verify(&path).unwrap()[0].entries, 4);
        drop(own);
        // The write-ahead log stays after closing, but its size is bounded.
        for number in 5..=200 {
            append(&store(&path), "s1", number..=number);
        }
        let log = folder.path().join("lukasa.audit.db-wal").metadata().map_or(0, |log| log.len());
        assert!(log > 0 && log < 4 << 20, "{log}");
        assert_eq!(verify(&path).unwrap()[0].entries, 200);
        // A copy of the store does not contain the record.
        let copy = folder.path().join("copy.db");
        store(&path).copy_to(&copy).unwrap();
        assert!(verify(&copy).unwrap().is_empty());
    }
}

mod clock {
    use super::*;
    use lukasa_model::{Error, Result, Time};
    use lukasa_store::guarded_clock::{LONGEST_STEP, SteadyReading};
    use lukasa_store::{Clock, GuardedClock};
    use lukasa_testkit::ManualClock;
    use parking_lot::Mutex;
    use std::sync::atomic::AtomicI64;

    /// A machine with a wall clock that can be set, and a steady clock.
    struct Machine {
        wall: Arc<ManualClock>,
        steady: Arc<AtomicI64>,
        boot: Arc<Mutex<String>>,
        reported: Arc<Mutex<Vec<Error>>>,
        folder: tempfile::TempDir,
    }

    impl Machine {
        fn new() -> Machine {
            let folder = tempfile::tempdir().unwrap();
            let boot = Arc::new(Mutex::new("first".to_string()));
            Machine { wall: Arc::default(), steady: Arc::default(), boot, reported: Arc::default(), folder }
        }

        /// A process that opens the store.
        fn process(&self, allows: bool) -> Ledger {
            let path = self.folder.path().join("lukasa.db");
            let (steady, boot, reported) =
                (Arc::clone(&self.steady), Arc::clone(&self.boot), Arc::clone(&self.reported));
            let wall = Arc::clone(&self.wall) as Arc<dyn Clock>;
            let clock = GuardedClock::new(wall, allows, move |jump| reported.lock().push(jump.clone()))
                .with_steady(move || {
                    Some(SteadyReading { boot: boot.lock().clone(), micros: steady.load(Ordering::SeqCst) })
                })
                .beside(&path);
            let clock: Arc<dyn Clock> = Arc::new(clock);
            let store = SqliteStore::open(&path, Arc::clone(&clock), Durability::Full).unwrap();
            Ledger::new(Arc::new(store), clock, Scope::new("local", "shop").unwrap())
        }

        fn passes(&self, hours: i64) {
            self.steady.fetch_add(hours * 3_600_000_000, Ordering::SeqCst);
            self.wall.advance(hours * 3_600);
        }
    }

    fn code(written: Result<()>) -> Option<&'static str> {
        written.err().map(|e| e.code.name())
    }

    #[test]
    fn a_clock_that_jumps_forward_prevents_writes() {
        let machine = Machine::new();
        let ledger = machine.process(false);
        put(&ledger, "a", 1).unwrap();
        machine.passes(24 * 90);
        put(&ledger, "b", 1).unwrap();
        let head = ledger.head().unwrap();
        machine.wall.advance(25 * 3_600);
        assert_eq!(code(put(&ledger, "c", 1)), Some("clock_jumped"));
        assert_eq!(code(put(&machine.process(false), "c", 1)), Some("clock_jumped"), "another process detects it too");
        assert_eq!((ledger.head().unwrap(), machine.reported.lock().len()), (head, 2));
        let loaded =
            ledger.load("main", &Header::default(), std::iter::once(Ok(vec![PutObject::new("S", "d").into()])));
        assert_eq!(loaded.unwrap_err().code, ErrorCode::ClockJumped);
        machine.wall.advance(-25 * 3_600);
        put(&ledger, "c", 1).unwrap();
        // An hour or a day is no jump: clocks are corrected by that much.
        machine.wall.advance(23 * 3_600);
        put(&ledger, "d", 1).unwrap();
    }

    #[test]
    fn time_without_writes_and_time_switched_off_are_no_jump() {
        let machine = Machine::new();
        put(&machine.process(false), "a", 1).unwrap();
        machine.passes(24 * 400);
        put(&machine.process(false), "b", 1).unwrap();
        // Switched off for a month: the steady clock starts again.
        *machine.boot.lock() = "second".into();
        machine.steady.store(0, Ordering::SeqCst);
        machine.wall.advance(30 * 24 * 3_600);
        put(&machine.process(false), "c", 1).unwrap();
        assert!(machine.reported.lock().is_empty());
    }

    #[test]
    fn a_clock_that_was_not_set_yet_may_be_set() {
        let machine = Machine::new();
        machine.wall.set(Time(0));
        let ledger = machine.process(false);
        put(&ledger, "a", 1).unwrap();
        machine.wall.set(ManualClock::START);
        put(&ledger, "b", 1).unwrap();
    }

    #[test]
    fn a_jump_that_is_allowed_is_reported_once() {
        let machine = Machine::new();
        let ledger = machine.process(true);
        put(&ledger, "a", 1).unwrap();
        machine.wall.advance(48 * 3_600);
        put(&ledger, "b", 1).unwrap();
        put(&ledger, "c", 1).unwrap();
        let reported: Vec<_> = machine.reported.lock().iter().map(|jump| jump.message.clone()).collect();
        assert_eq!(reported, ["the clock went forward by 48 hours"]);
    }

    #[test]
    fn a_database_server_far_ahead_of_this_machine_prevents_writes() {
        let wall: Arc<ManualClock> = Arc::default();
        let clock = GuardedClock::new(Arc::clone(&wall) as Arc<dyn Clock>, false, |_| ()).with_steady(|| None);
        assert!(clock.check(Time(ManualClock::START.0 + LONGEST_STEP)).is_ok());
        let ahead = clock.check(Time(ManualClock::START.0 + LONGEST_STEP + 1)).unwrap_err();
        assert_eq!((ahead.code, ahead.kind.http_status()), (ErrorCode::ClockJumped, 503));
    }
}

#[cfg(unix)]
#[test]
fn files_of_a_store_are_readable_only_by_their_owner() {
    use lukasa_store::private;
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("made/by us");
    private::create_dir_all(&deep).unwrap();
    let path = deep.join("lukasa.db");
    let ledger = open(&path).unwrap();
    put(&ledger, "a", 1).unwrap();
    ledger.store().copy_to(&deep.join("copy.db")).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&deep), mode(deep.parent().unwrap())), (0o700, 0o700));
    let files: Vec<_> = std::fs::read_dir(&deep).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.iter().any(|file| file.ends_with("lukasa.db-wal")) && files.len() >= 3, "{files:?}");
    for file in &files {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
}
