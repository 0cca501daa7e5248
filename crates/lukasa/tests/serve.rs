//! `lukasa serve` as a process: killed under load, overloaded, and restarted.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_testkit::http::{HttpReply, ask, connect, try_ask};
use lukasa_testkit::{TestDatabase, git, has_git};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Timeout for events that must happen.
const NEVER: Duration = Duration::from_secs(90);

fn lukasa(folder: &Path, store: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lukasa"));
    command.current_dir(folder).env("LUKASA_STORE", store).env("LUKASA_PROJECT", "shop").env("LUKASA_MODEL_URL", "off");
    for variable in ["LUKASA_TENANT", "LUKASA_AUTHOR", "LUKASA_AGENT", "LUKASA_SESSION", "LUKASA_CONFIG"] {
        command.env_remove(variable);
    }
    // The owner's socket is in this folder.
    command.env("XDG_RUNTIME_DIR", folder).stdin(Stdio::null()).stderr(Stdio::null());
    command
}

struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(folder: &Path, store: &str, more: &[&str]) -> Server {
        let mut command = lukasa(folder, store);
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(more);
        Server::of(command)
    }

    /// Does only what requests ask for, and writes its log to a file.
    fn logging(folder: &Path, store: &str, log: &Path, more: &[&str]) -> Server {
        let mut command = lukasa(folder, store);
        command.args(["serve", "--listen", "127.0.0.1:0", "--no-watch", "--no-embed"]).args(more);
        command.stderr(std::fs::File::create(log).unwrap());
        Server::of(command)
    }

    fn of(mut command: Command) -> Server {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.split("http://").nth(1).and_then(|rest| rest.split(' ').next()).expect("it prints its address");
        Server { address: address.parse().unwrap(), child }
    }

    fn call(&self, operation: &str, request: &Value) -> HttpReply {
        ask(self.address, "POST", &format!("/v1/{operation}"), &[], &request.to_string())
    }

    /// Sends SIGKILL.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Cheap randomness without a crate; the clock is random enough to choose moments.
fn random(below: u64) -> u64 {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos();
    (u64::from(nanos).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % below
}

const WRITERS: usize = 4;
const ROUNDS: usize = 5;
/// Objects in a batch, to check that batches are atomic.
const EACH: usize = 5;

/// Writes until the server is gone. Returns the acknowledged batches.
fn write(address: SocketAddr, round: usize, writer: usize, first: &AtomicBool) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for n in 0.. {
        let name = format!("{round}:{writer}:{n}");
        let object = |part: usize| json!({"object": {"type": "Note", "key": format!("{name}:{part}"), "title": name}});
        let writes: Vec<Value> = (0..EACH).map(object).collect();
        match try_ask(address, "POST", "/v1/batch", &[], &json!({"writes": writes}).to_string()) {
            Ok(Some(reply)) if reply.status == 200 => {
                acknowledged.push(name);
                first.store(true, Ordering::SeqCst);
            }
            Ok(Some(reply)) => panic!("{}", reply.all()),
            Ok(None) | Err(_) => break,
        }
    }
    acknowledged
}

fn killed_under_load(folder: &Path, store: &str) {
    let mut acknowledged: BTreeSet<String> = BTreeSet::new();
    for round in 0..ROUNDS {
        let mut server = Server::start(folder, store, &["--no-watch"]);
        let (address, first) = (server.address, AtomicBool::new(false));
        let acks: Vec<String> = std::thread::scope(|scope| {
            let first = &first;
            let writers: Vec<_> = (0..WRITERS).map(|w| scope.spawn(move || write(address, round, w, first))).collect();
            let began = Instant::now();
            while !first.load(Ordering::SeqCst) {
                assert!(began.elapsed() < NEVER, "nothing was ever acknowledged");
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(random(300)));
            server.kill();
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
        });
        assert!(!acks.is_empty());
        acknowledged.extend(acks);
        // The next process sees everything that was acknowledged.
        let out = lukasa(folder, store).args(["export", "-"]).output().unwrap();
        assert!(out.status.success());
        let mut there: BTreeMap<String, usize> = BTreeMap::new();
        for line in String::from_utf8(out.stdout).unwrap().lines() {
            let fact: Value = serde_json::from_str(line).unwrap();
            *there.entry(fact["object"]["title"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        let lost: Vec<_> = acknowledged.iter().filter(|name| !there.contains_key(*name)).collect();
        assert!(lost.is_empty(), "acknowledged and gone: {lost:?}");
        assert!(there.values().all(|parts| *parts == EACH), "a batch is there in part: {there:?}");
    }
    let verified = lukasa(folder, store).args(["verify", "--json"]).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    eprintln!("{} batches acknowledged in {ROUNDS} rounds, none lost", acknowledged.len());
}

#[test]
fn a_server_killed_under_load_loses_nothing_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("lukasa.db");
    killed_under_load(folder.path(), store.to_str().unwrap());
}

#[test]
fn a_server_on_postgres_killed_under_load_loses_nothing_it_acknowledged() {
    let Some(database) = TestDatabase::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    killed_under_load(folder.path(), &database.app_url);
}

/// Serves, answers, and ends on a signal.
fn ends_at_a_signal(folder: &Path, store: &str) {
    for signal in ["-TERM", "-INT"] {
        let mut command = lukasa(folder, store);
        command.args(["serve", "--listen", "127.0.0.1:0"]).stderr(Stdio::piped());
        let mut server = Server::of(command);
        assert_eq!(server.call("put", &json!({"type": "Service", "key": signal})).status, 200);
        let sent = Command::new("kill").args([signal, &server.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let mut log = String::new();
        server.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        let status = server.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{signal}: {log}");
        assert!(!log.contains("panicked"), "{log}");
    }
    let listed = lukasa(folder, store).args(["audit", "verify"]).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
}

#[test]
fn a_server_ends_with_success_at_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("lukasa.db");
    ends_at_a_signal(folder.path(), store.to_str().unwrap());
}

#[test]
fn a_server_on_postgres_ends_with_success_at_a_signal() {
    let Some(database) = TestDatabase::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    ends_at_a_signal(folder.path(), &database.app_url);
}

#[test]
fn a_thousand_idle_connections_do_not_block_others() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("lukasa.db");
    let server = Server::start(folder.path(), store.to_str().unwrap(), &["--no-watch"]);
    let idle: Vec<_> = (0..1_000).map(|_| connect(server.address)).collect();
    for n in 0..50 {
        let reply = server.call("put", &json!({"type": "Service", "key": format!("s{n}")}));
        assert_eq!(reply.status, 200, "{}", reply.all());
    }
    assert_eq!(server.call("list", &json!({"limit": 1})).json()["total"], 50);
    drop(idle);
}

/// A repository with two more worktrees, each on its own branch.
fn trees(root: &Path) -> [PathBuf; 2] {
    std::fs::write(root.join("shop.py"), "def first():\n    return 1\n").unwrap();
    std::fs::write(root.join(".gitignore"), "trees/\n*.db*\n").unwrap();
    git(root, &["init", "-q", "-b", "main"]);
    git(root, &["add", "-A"]);
    git(root, &["commit", "-qm", "first"]);
    ["two", "three"].map(|branch| {
        let tree = root.join("trees").join(branch);
        git(root, &["worktree", "add", "-q", "-b", branch, tree.to_str().unwrap()]);
        tree
    })
}

/// Waits until a branch contains a function.
fn wait_for(server: &Server, branch: &str, name: &str) {
    let began = Instant::now();
    loop {
        let reply = server.call("get", &json!({"ref": format!("Function:shop.py::{name}"), "branch": branch}));
        if reply.status == 200 {
            return;
        }
        assert!(began.elapsed() < NEVER, "{branch} is not followed: {}", reply.all());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn trees_watched_for_attached_processes_are_watched_by_the_next_owner() {
    if !has_git() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trees = trees(folder.path());
    let store = folder.path().join("lukasa.db");
    let start = || Server::start(folder.path(), store.to_str().unwrap(), &[]);
    let mut first = start();
    wait_for(&first, "main", "first");
    let others = [start(), start()];
    let branches = ["two", "three"];
    for ((server, tree), branch) in others.iter().zip(&trees).zip(branches) {
        let reply = server.call("graph_set_workspace", &json!({"path": format!("trees/{branch}")}));
        assert_eq!(reply.status, 200, "{}", reply.all());
        add(tree, "second");
        wait_for(&first, branch, "second");
    }
    first.kill();
    for (tree, branch) in trees.iter().zip(branches) {
        add(tree, "third");
        others.iter().for_each(|server| wait_for(server, branch, "third"));
    }
}

#[test]
fn up_indexes_a_repository_follows_it_and_serves_agents() {
    if !has_git() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    trees(folder.path());
    let store = folder.path().join("lukasa.db");
    let mut command = lukasa(folder.path(), store.to_str().unwrap());
    command.args(["up", "--listen", "127.0.0.1:0", "--at-once", "2", "--time-limit", "60"]);
    let server = Server::of(command);
    wait_for(&server, "main", "first");
    add(folder.path(), "second");
    wait_for(&server, "main", "second");
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "ada", "version": "1"}}});
    let accept = [("accept", "application/json, text/event-stream")];
    assert_eq!(ask(server.address, "POST", "/mcp", &accept, &hello.to_string()).status, 200);
}

#[test]
fn up_outside_of_a_repository_explains_why_nothing_is_watched() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("lukasa.db");
    for (more, warns) in [(&[][..], true), (&["--no-watch"][..], false)] {
        let mut command = lukasa(folder.path(), store.to_str().unwrap());
        command.args(["up", "--listen", "127.0.0.1:0"]).args(more).stderr(Stdio::piped());
        let mut server = Server::of(command);
        // The message is printed before the server answers.
        assert_eq!(ask(server.address, "GET", "/healthz", &[], "").status, 200);
        let mut log = String::new();
        let mut stderr = server.child.stderr.take().unwrap();
        server.kill();
        stderr.read_to_string(&mut log).unwrap();
        assert_eq!(log.contains("is no git repository"), warns, "{log}");
    }
}

fn add(root: &Path, name: &str) {
    let file = root.join("shop.py");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(file, format!("{text}\n\ndef {name}():\n    return 2\n")).unwrap();
}

#[test]
fn vectors_are_computed_in_the_background_unless_disabled() {
    let folder = tempfile::tempdir().unwrap();
    let note = |key: &str| json!({"type": "Note", "key": key, "title": format!("Discount of {key}")});
    let embedded = |server: &Server| {
        let readiness = server.call("search_readiness", &json!({})).json();
        readiness["embedding"]["optional"]["embedded"].as_u64().unwrap()
    };
    let until = |server: &Server, number: u64| {
        let begun = Instant::now();
        while embedded(server) < number {
            assert!(begun.elapsed() < NEVER, "vectors come");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let mut server = Server::start(folder.path(), "lukasa.db", &[]);
    for key in ["tea", "milk", "salt"] {
        assert_eq!(server.call("put", &note(key)).status, 200);
    }
    until(&server, 3);
    let readiness = server.call("search_readiness", &json!({})).json();
    assert_eq!(readiness["embedding"]["optional"]["percent"], 100.0, "{readiness}");
    let found = server.call("search", &json!({"query": "price cut", "channels": ["vector"]})).json();
    assert!(!found["items"].as_array().unwrap().is_empty(), "{found}");
    server.kill();
    let server = Server::start(folder.path(), "lukasa.db", &["--no-embed"]);
    assert_eq!(server.call("put", &note("rice")).status, 200);
    assert_eq!(server.call("embed", &json!({})).json()["embedded"], 1, "no other process did");
}

/// A proxy between a server and its database. While paused it forwards nothing and closes nothing.
struct Between {
    port: u16,
    paused: Arc<AtomicBool>,
}

impl Between {
    fn of(url: &str) -> (Between, String) {
        let (before, rest) = url.rsplit_once('@').unwrap();
        let (target, database) = rest.split_once('/').unwrap();
        let (target, paused) = (target.to_owned(), Arc::new(AtomicBool::new(false)));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stops = Arc::clone(&paused);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&target) else { return };
                let ways = [
                    (client.try_clone().unwrap(), server.try_clone().unwrap()),
                    (server.try_clone().unwrap(), client.try_clone().unwrap()),
                ];
                for (from, to) in ways {
                    let stops = Arc::clone(&stops);
                    std::thread::spawn(move || pass(from, to, &stops));
                }
            }
        });
        let url = format!("{before}@127.0.0.1:{port}/{database}");
        (Between { port, paused }, url)
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, paused: &AtomicBool) {
    let mut bytes = [0; 8_192];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        while paused.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(20));
        }
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// Waits for the end of a process, with a timeout.
fn ended(child: &mut Child) -> std::process::ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(began.elapsed() < NEVER, "the process does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_whose_database_is_paused_is_not_ready_and_ends_on_a_signal() {
    let Some(database) = TestDatabase::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (between, url) = Between::of(&database.app_url);
    assert!(url.contains(&between.port.to_string()));
    let log = folder.path().join("server.log");
    let mut server = Server::logging(folder.path(), &url, &log, &["--time-limit", "2"]);
    let put = |key: &str| json!({"type": "Service", "key": key});
    assert_eq!(server.call("put", &put("a")).status, 200);
    assert_eq!(ask(server.address, "GET", "/readyz", &[], "").status, 200);
    between.paused.store(true, Ordering::SeqCst);
    // More requests than can run at once.
    let address = server.address;
    let waiting: Vec<_> = (0..24)
        .map(|n| {
            let request = put(&format!("b{n}")).to_string();
            std::thread::spawn(move || try_ask(address, "POST", "/v1/put", &[], &request).ok().flatten())
        })
        .collect();
    let refused = ask(address, "GET", "/readyz", &[], "");
    assert_eq!(refused.status, 503, "{}", refused.all());
    assert_eq!(ask(address, "GET", "/healthz", &[], "").status, 200);
    for one in waiting {
        let reply = one.join().unwrap().expect("an answer");
        assert!(reply.status >= 400, "{}", reply.all());
    }
    stuck_workers_are_reported_and_abandoned(&mut server, &log);
    // The next server continues from there.
    between.paused.store(false, Ordering::SeqCst);
    let server = Server::start(folder.path(), &database.app_url, &["--no-watch", "--no-embed"]);
    assert_eq!(server.call("get", &json!({"ref": "Service:a"})).status, 200);
}

/// Waits until the watchdog has reported workers of `put` that did not stop at their time limit. Then ends the server
/// with a signal: it does not wait for these workers, and its exit code is that of an unclean end.
fn stuck_workers_are_reported_and_abandoned(server: &mut Server, log: &Path) {
    let logged = || std::fs::read_to_string(log).unwrap();
    let began = Instant::now();
    while !logged().lines().any(|line| line.contains("worker.stuck") && line.contains("put")) {
        assert!(began.elapsed() < NEVER, "no worker is reported: {}", logged());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!logged().contains("serve.abandoned"), "{}", logged());
    assert!(Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap().success());
    let status = ended(&mut server.child);
    assert_eq!(status.code(), Some(1), "{}", logged());
    assert!(logged().contains("serve.abandoned"), "{}", logged());
}

#[test]
fn workers_that_do_not_stop_are_reported_and_do_not_keep_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let (store, log) = (folder.path().join("lukasa.db"), folder.path().join("server.log"));
    let limits = ["--time-limit", "1", "--at-once", "2"];
    let mut server = Server::logging(folder.path(), store.to_str().unwrap(), &log, &limits);
    let put = |key: &str| json!({"type": "Service", "key": key}).to_string();
    // Its first answer may take longer than the limit.
    let began = Instant::now();
    while ask(server.address, "POST", "/v1/put", &[], &put("a")).status != 200 {
        assert!(began.elapsed() < NEVER, "the server answers");
    }
    // Another program holds the file, so that writes wait for longer than the server may take to end: one for the
    // file, and one for the other.
    let other = rusqlite::Connection::open(&store).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let address = server.address;
    let waiting = ["b", "c"].map(|key| std::thread::spawn(move || ask(address, "POST", "/v1/put", &[], &put(key))));
    for reply in waiting.map(|one| one.join().unwrap()) {
        assert_eq!(reply.code(), "timeout", "{}", reply.all());
    }
    let (ready, began) = (|| ask(address, "GET", "/readyz", &[], ""), Instant::now());
    while ready().code() != "workers_stuck" {
        assert!(began.elapsed() < NEVER, "the server is ready: {}", ready().all());
        std::thread::sleep(Duration::from_millis(20));
    }
    let figures = ask(address, "GET", "/metrics", &[], "").body;
    assert!(figures.contains("workers_stuck_total{operation=\"put\"} 2"), "{figures}");
    stuck_workers_are_reported_and_abandoned(&mut server, &log);
    drop(other);
    let server = Server::start(folder.path(), store.to_str().unwrap(), &["--no-watch", "--no-embed"]);
    let there = |key: &str| server.call("get", &json!({"ref": format!("Service:{key}")})).status;
    assert_eq!((there("a"), there("b"), there("c")), (200, 404, 404));
}

#[test]
fn without_the_key_of_the_record_a_server_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("lukasa.db");
    let server = Server::start(folder.path(), store.to_str().unwrap(), &["--no-watch", "--no-embed"]);
    assert_eq!(server.call("put", &json!({"type": "Service", "key": "a"})).status, 200);
    let ready = || ask(server.address, "GET", "/readyz", &[], "");
    assert_eq!(ready().status, 200);
    let (key, away) = (folder.path().join("lukasa.audit.key"), folder.path().join("away"));
    std::fs::rename(&key, &away).unwrap();
    let refused = ready();
    assert_eq!((refused.status, refused.code().as_str()), (503, "keys_unreadable"), "{}", refused.all());
    std::fs::write(&key, "short").unwrap();
    assert_ne!(ready().status, 200);
    std::fs::rename(&away, &key).unwrap();
    assert_eq!(ready().status, 200);
}

/// A folder with a source file, settings and agent keys.
fn furnish(folder: &Path) {
    let keys = folder.join("agents.keys");
    std::fs::write(&keys, format!("ada={}\n", "c0ffee42".repeat(8))).unwrap();
    let settings = format!("[memory]\nagent_keys_file = {:?}\n[log]\nlevel = \"error\"\n", keys.display().to_string());
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    std::fs::write(folder.join("token.secret"), "quartzmarmot-".repeat(4)).unwrap();
    std::fs::write(folder.join("shop.py"), "def price():\n    return 1\n").unwrap();
}

/// A server with authentication in its folder, and a key of an administrator.
struct Guarded {
    server: Server,
    key: String,
    folder: PathBuf,
    // The folder of the owner's socket.
    _runtime: tempfile::TempDir,
}

impl Guarded {
    fn start(folder: &Path, store: &str, more: &[&str]) -> Guarded {
        let runtime = tempfile::tempdir().unwrap();
        let command = || {
            let mut command = lukasa(folder, store);
            command.env("LUKASA_CONFIG", folder.join("config.toml")).env("XDG_RUNTIME_DIR", runtime.path());
            command
        };
        let made = command().args(["key", "create", "--user", "eve", "--scope", "admin"]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut serve = command();
        serve.args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--no-watch",
            "--no-embed",
            "--access-keys",
            "--rate",
            "10000",
        ]);
        serve.args(more);
        let key = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        Guarded { server: Server::of(serve), key, folder: folder.to_owned(), _runtime: runtime }
    }

    /// The answers over REST and over MCP.
    fn answers(&self, operation: &str, request: &Value) -> [HttpReply; 2] {
        let key = ("x-api-key", self.key.as_str());
        let rest = ask(self.server.address, "POST", &format!("/v1/{operation}"), &[key], &request.to_string());
        let accept = ("accept", "application/json, text/event-stream");
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": {"name": "eve", "version": "1"}}});
        let begun = ask(self.server.address, "POST", "/mcp", &[key, accept], &hello.to_string());
        let session = ("mcp-session-id", begun.header("mcp-session-id").unwrap());
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": operation, "arguments": request}});
        let mcp = ask(self.server.address, "POST", "/mcp", &[key, accept, session], &call.to_string());
        [rest, mcp]
    }

    /// The contents of the files with secrets, trimmed.
    fn secrets(&self) -> Vec<String> {
        let named = ["agents.keys", "token.secret", "lukasa.audit.key", "audit.key"].map(|name| self.folder.join(name));
        let secrets = named.iter().filter_map(|file| std::fs::read_to_string(file).ok());
        let secrets: Vec<_> = secrets.map(|text| text.trim().to_owned()).collect();
        assert!(secrets.len() >= 2, "there is a key of the record, and one of an agent");
        secrets
    }

    /// Calls, on every surface, all operations that could index this folder or show its contents. No answer contains a
    /// secret.
    fn shows_no_secret(&self) {
        let here = self.folder.display().to_string();
        let mut requests = vec![("context_pack", json!({"task": "where is the key, the token, the secret"}))];
        for path in [".", &here, "shop.py"] {
            requests.push(("context_pack", json!({"task": "where is the key", "path": path})));
            for operation in ["index_directory", "index_file", "graph_rebuild", "graph_health"] {
                requests.push((operation, json!({"path": path})));
            }
        }
        requests.extend(["index_directory", "graph_rebuild", "graph_health"].map(|operation| (operation, json!({}))));
        requests.push(("graph_set_workspace", json!({"no_watch": true})));
        for entry in std::fs::read_dir(&self.folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            requests.push(("semantic_slice", json!({"file": name, "profile": "debug"})));
            requests.push(("semantic_slice", json!({"symbol": name, "query": name, "profile": "debug"})));
            requests.push(("get", json!({"ref": name, "profile": "debug"})));
        }
        requests.extend(["key", "secret", "token", "ada"].map(|word| ("search", json!({"query": word}))));
        let secrets = self.secrets();
        for (operation, request) in requests {
            for reply in self.answers(operation, &request) {
                let shown = secrets.iter().find(|secret| reply.all().contains(*secret));
                assert!(shown.is_none(), "{operation} {request}: {}", reply.all());
            }
        }
    }

    /// The names of indexed files.
    fn indexed(&self) -> BTreeSet<String> {
        let named = |name: &String| self.answers("get", &json!({"ref": name}))[0].status == 200;
        let there =
            std::fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        there.filter(named).collect()
    }
}

fn outside_of_a_repository_nothing_is_indexed(folder: &Path, store: &str) {
    furnish(folder);
    let secret = folder.join("token.secret");
    let guarded = Guarded::start(folder, store, &["--jwt-secret-file", secret.to_str().unwrap()]);
    let put = guarded.answers("put", &json!({"type": "Service", "key": "web"}));
    assert_eq!(put[0].status, 200, "{}", put[0].all());
    let head = guarded.answers("log", &json!({}))[0].json()["head"].clone();
    guarded.shows_no_secret();
    assert_eq!(guarded.answers("log", &json!({}))[0].json()["head"], head, "nothing was written");
    assert_eq!(guarded.indexed(), BTreeSet::new());
}

#[test]
fn a_guarded_server_outside_of_a_repository_indexes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("lukasa.db");
    outside_of_a_repository_nothing_is_indexed(folder.path(), store.to_str().unwrap());
}

#[test]
fn a_guarded_server_on_postgres_outside_of_a_repository_indexes_nothing() {
    let Some(database) = TestDatabase::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    outside_of_a_repository_nothing_is_indexed(folder.path(), &database.app_url);
}

fn in_a_repository_its_own_files_are_left_out(folder: &Path, store: &str) {
    furnish(folder);
    let secret = folder.join("token.secret");
    git(folder, &["init", "-q", "-b", "main"]);
    git(folder, &["add", "shop.py"]);
    git(folder, &["commit", "-qm", "first"]);
    let guarded = Guarded::start(folder, store, &["--jwt-secret-file", secret.to_str().unwrap()]);
    assert_eq!(guarded.answers("index_directory", &json!({}))[0].status, 200);
    guarded.shows_no_secret();
    assert_eq!(guarded.indexed(), BTreeSet::from(["shop.py".to_owned()]));
    let all = ask(guarded.server.address, "GET", "/graph/export?history=true", &[("x-api-key", &guarded.key)], "");
    assert!(all.status == 200 && all.body.contains("shop.py"), "{}", all.all());
    assert!(!guarded.secrets().iter().any(|secret| all.body.contains(secret)));
    // Other users cannot read the files that the server created.
    let ours = ["shop.py", "config.toml", "agents.keys", "token.secret", ".git"];
    let mut left: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    left.retain(|path| !ours.iter().any(|name| path.ends_with(name)));
    assert!(!left.is_empty());
    while let Some(path) = left.pop() {
        let Ok(about) = path.symlink_metadata() else { continue };
        let mode = std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777;
        assert_eq!(mode, if about.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
        if about.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
}

#[test]
fn a_guarded_server_in_a_repository_leaves_its_own_files_out() {
    if !has_git() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("lukasa.db");
    in_a_repository_its_own_files_are_left_out(folder.path(), store.to_str().unwrap());
}

#[test]
fn a_guarded_server_on_postgres_in_a_repository_leaves_its_own_files_out() {
    if !has_git() {
        return;
    }
    let Some(database) = TestDatabase::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    in_a_repository_its_own_files_are_left_out(folder.path(), &database.app_url);
}

#[test]
fn no_answer_shows_the_password_of_the_database() {
    let Some(database) = TestDatabase::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    furnish(folder.path());
    let guarded = Guarded::start(folder.path(), &database.app_url, &[]);
    let (role, rest) = database.app_url.trim_start_matches("postgres://").split_once(':').unwrap();
    let encoded = rest.split_once('@').unwrap().0;
    let plain = encoded.replace("%20", " ").replace("%22", "\"").replace("%5C", "\\");
    let in_json = json!(plain).to_string().trim_matches('"').to_owned();
    let hidden = |replies: &[HttpReply]| {
        for reply in replies {
            let shown = [encoded, &plain, &in_json].into_iter().find(|form| reply.all().contains(form));
            assert!(shown.is_none(), "{}", reply.all());
        }
    };
    assert_eq!(guarded.answers("put", &json!({"type": "Service", "key": "web"}))[0].status, 200);
    let projects = guarded.answers("projects", &json!({}));
    assert!(projects.iter().all(|reply| reply.body.contains("postgres")), "{}", projects[0].all());
    hidden(&projects);
    // The database runs, but refuses logins.
    let session = guarded.answers("get", &json!({"ref": "Service:web"}));
    hidden(&session);
    database.as_admin(&format!("ALTER ROLE {role} NOLOGIN"));
    database.as_admin(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"));
    let key = ("x-api-key", guarded.key.as_str());
    for path in ["/v1/get", "/v1/put", "/mcp", "/readyz", "/metrics"] {
        let method = if path.starts_with("/v1") || path == "/mcp" { "POST" } else { "GET" };
        let reply = ask(guarded.server.address, method, path, &[key], r#"{"ref": "Service:web"}"#);
        assert!(reply.status >= 400, "{path}: {}", reply.all());
        hidden(&[reply]);
    }
}
