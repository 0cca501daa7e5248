//! Kills processes and servers at random moments: acknowledged batches are complete, and no batch is stored in part.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_model::{Scope, Tx, VersionId};
use lukasa_store::ledger::{Ledger, ViewSpec};
use lukasa_store::sqlite::Durability;
use lukasa_store::{SqliteStore, Store, SystemClock, VersionFields};
use lukasa_testkit::TestDatabase;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

fn spawn(place: &str, writer: &str, first: u64) -> Child {
    Command::new(env!("CARGO_BIN_EXE_lukasa-committer"))
        .args([place, writer, &first.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the committer starts")
}

/// Reads the output of a committer: acknowledged batches, and errors.
fn listen(out: ChildStdout) -> (BTreeSet<u64>, Vec<String>) {
    let (mut acks, mut errors) = (BTreeSet::new(), Vec::new());
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        match line.split_once(' ') {
            Some(("ack", i)) => drop(acks.insert(i.parse::<u64>().expect("a number"))),
            Some(("err", code)) => errors.push(code.to_string()),
            _ => {}
        }
    }
    (acks, errors)
}

fn kill(child: &mut Child) {
    // SIGKILL, on Unix.
    child.kill().expect("the process can be killed");
    child.wait().expect("the process has ended");
}

/// A random number from the clock, which is random enough for choosing moments.
fn random(below: u64) -> u64 {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos();
    (u64::from(nanos).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % below
}

/// Returns the number of stored objects per batch, by writer and number of the batch.
fn found(ledger: &Ledger) -> BTreeMap<(String, u64), usize> {
    let mut batches = BTreeMap::new();
    for row in ledger.stream_view(&ledger.view(&ViewSpec::default()).unwrap(), VersionFields::Content).unwrap() {
        let row = row.unwrap();
        let key = row.thing.key.clone().unwrap();
        let parts: Vec<_> = key.split(':').collect();
        let i: u64 = parts[1].parse().unwrap();
        assert_eq!(row.statement.parsed().unwrap().properties["x"], i);
        *batches.entry((parts[0].to_string(), i)).or_default() += 1;
    }
    batches
}

fn check(ledger: &Ledger, acked: &BTreeSet<(String, u64)>) {
    let batches = found(ledger);
    for batch in acked {
        assert!(batches.contains_key(batch), "{batch:?} was acknowledged and is missing");
    }
    for (batch, objects) in &batches {
        assert_eq!(*objects, 5, "{batch:?} is stored in part");
    }
    assert_eq!(ledger.head().unwrap().tx, Tx(batches.len() as u64), "every batch made one transaction");
    ledger.verify(&mut |_, _| {}).unwrap();
}

#[test]
fn a_process_killed_200_times_loses_nothing_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lukasa.db");
    let place = path.to_str().unwrap();
    let mut acked = BTreeSet::new();
    let mut next = 0;
    let mut silent = 0;
    for _ in 0..200 {
        let mut child = spawn(place, "w", next);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut output = String::new();
        // Half of the time, wait for the first line, so that the process is killed while it commits.
        if random(2) == 0 {
            out.read_line(&mut output).unwrap();
        }
        std::thread::sleep(Duration::from_micros(random(30_000)));
        kill(&mut child);
        out.read_to_string(&mut output).unwrap();
        // An incomplete line does not count as acknowledged.
        let whole = output.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let acks: Vec<u64> = whole.lines().filter_map(|line| line.strip_prefix("ack ")?.parse().ok()).collect();
        silent += u32::from(acks.is_empty());
        acked.extend(acks.iter().map(|i| ("w".to_string(), *i)));
        // A batch may have been committed but not acknowledged: continue after it.
        let store = SqliteStore::open(&path, Arc::new(SystemClock), Durability::Full).unwrap();
        let head = store.read(&Scope::new("crash", "test").unwrap()).and_then(|mut r| r.head());
        next = head.map_or(0, |h| h.tx.0);
    }
    assert!(acked.len() > 100, "only {} batches were acknowledged", acked.len());
    assert!(silent < 200, "no process acknowledged a batch");
    let store = Arc::new(SqliteStore::open(&path, Arc::new(SystemClock), Durability::Full).unwrap());
    check(&Ledger::new(store, Arc::new(SystemClock), Scope::new("crash", "test").unwrap()), &acked);
}

/// A private PostgreSQL server that the test can kill.
struct Server {
    keeper: Child,
    /// Servers started after the first was killed.
    later: Vec<Child>,
    url: String,
    data: String,
}

impl Server {
    fn start() -> Option<Server> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/with-postgres");
        let mut keeper = Command::new(script)
            .args(["sh", "-c", "echo \"url $LUKASA_TEST_POSTGRES\"; exec cat"])
            .env_remove("LUKASA_TEST_POSTGRES")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the script starts");
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("url ").unwrap_or_default().to_string();
        if url.is_empty() {
            assert!(std::env::var_os("CI").is_none(), "CI must test PostgreSQL");
            eprintln!("SKIPPED: there is no PostgreSQL server to kill");
            kill(&mut keeper);
            return None;
        }
        Some(Server { keeper, later: vec![], data: String::new(), url })
    }

    fn learn(&mut self, database: &TestDatabase) {
        self.data = database.as_admin_rows("SHOW data_directory").pop().expect("it has a data directory");
    }

    /// Kills the postmaster with SIGKILL; its child processes then exit.
    fn kill(&self) {
        let pid = std::fs::read_to_string(format!("{}/postmaster.pid", self.data)).unwrap();
        let pid = pid.lines().next().unwrap().to_string();
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
        std::thread::sleep(Duration::from_millis(150));
        let _ = std::fs::remove_file(format!("{}/postmaster.pid", self.data));
    }

    /// Starts the server again with the same options, and waits until it accepts connections.
    fn restart(&mut self) {
        let options = std::fs::read_to_string(format!("{}/postmaster.opts", self.data)).unwrap();
        let script = format!(
            "cd / && if [ $(id -u) = 0 ]; then u=$(stat -c %u {0}); g=$(stat -c %g {0}); \
             exec setpriv --reuid $u --regid $g --clear-groups {1}; else exec {1}; fi",
            self.data,
            options.trim()
        );
        for _ in 0..20 {
            let server = Command::new("sh").args(["-c", &script]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            self.later.push(server.unwrap());
            for _ in 0..50 {
                std::thread::sleep(Duration::from_millis(100));
                if TestDatabase::answers(&self.url) {
                    return;
                }
            }
        }
        panic!("PostgreSQL did not restart");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Closing the standard input makes the script continue, which stops the server.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
        for server in &mut self.later {
            let _ = server.wait();
        }
    }
}

#[test]
fn a_postgres_server_killed_under_its_writers_loses_nothing() {
    const WRITERS: usize = 4;
    let Some(mut server) = Server::start() else { return };
    let database = TestDatabase::on(&server.url);
    server.learn(&database);
    let mut children: Vec<_> = (0..WRITERS).map(|w| spawn(&database.app_url, &format!("w{w}"), 0)).collect();
    let listeners: Vec<_> = children
        .iter_mut()
        .map(|child| {
            let out = child.stdout.take().unwrap();
            std::thread::spawn(move || listen(out))
        })
        .collect();
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(400 + random(600)));
        server.kill();
        server.restart();
    }
    std::thread::sleep(Duration::from_millis(500));
    children.iter_mut().for_each(kill);
    let mut acked = BTreeSet::new();
    let mut errors = Vec::new();
    for (w, listener) in listeners.into_iter().enumerate() {
        let (acks, reported) = listener.join().unwrap();
        assert!(!acks.is_empty(), "writer {w} acknowledged no batch");
        acked.extend(acks.into_iter().map(|i| (format!("w{w}"), i)));
        errors.extend(reported);
    }
    assert!(!errors.is_empty(), "writers got errors while the server was down");
    assert!(errors.iter().all(|code| code != "internal_error"), "{:?}", errors.iter().collect::<BTreeSet<_>>());
    let store = Arc::new(database.open(None).unwrap());
    let scope = Scope::new("crash", "test").unwrap();
    let ledger = Ledger::new(Arc::clone(&store) as Arc<dyn Store>, Arc::new(SystemClock), scope.clone());
    check(&ledger, &acked);
    let rows = store.read(&scope).unwrap().versions_after(VersionId(0), usize::MAX >> 1).unwrap();
    assert_eq!(rows.len() % 5, 0);
}
