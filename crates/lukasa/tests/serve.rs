//! `lukasa serve` as a process: killed under load, crowded, and followed by another.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_testkit::http::{Reply, ask, connect, tried};
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

/// Reached only by what never comes.
const NEVER: Duration = Duration::from_secs(90);

fn lukasa(folder: &Path, store: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lukasa"));
    command.current_dir(folder).env("LUKASA_STORE", store).env("LUKASA_PROJECT", "shop").env("LUKASA_MODEL_URL", "off");
    for variable in ["LUKASA_TENANT", "LUKASA_AUTHOR", "LUKASA_AGENT", "LUKASA_SESSION", "LUKASA_CONFIG"] {
        command.env_remove(variable);
    }
    // Who owns the store is agreed on beside it.
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

    fn of(mut command: Command) -> Server {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.split("http://").nth(1).and_then(|rest| rest.split(' ').next()).expect("it tells where it is");
        Server { address: address.parse().unwrap(), child }
    }

    fn call(&self, operation: &str, request: &Value) -> Reply {
        ask(self.address, "POST", &format!("/v1/{operation}"), &[], &request.to_string())
    }

    /// SIGKILL.
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

/// A little randomness without a crate: time is random enough for choosing moments.
fn random(below: u64) -> u64 {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos();
    (u64::from(nanos).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % below
}

const WRITERS: usize = 4;
const ROUNDS: usize = 5;
/// Objects in a batch, to see that it is there whole.
const EACH: usize = 5;

/// Writes until the server is gone; the batches that were acknowledged.
fn write(address: SocketAddr, round: usize, writer: usize, first: &AtomicBool) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for n in 0.. {
        let name = format!("{round}:{writer}:{n}");
        let object = |part: usize| json!({"object": {"type": "Note", "key": format!("{name}:{part}"), "title": name}});
        let writes: Vec<Value> = (0..EACH).map(object).collect();
        match tried(address, "POST", "/v1/batch", &[], &json!({"writes": writes}).to_string()) {
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
        // Whoever comes next sees everything that was acknowledged.
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

/// Serves, answers, and ends by itself at a signal.
fn ends_at_a_signal(folder: &Path, store: &str) {
    for signal in ["-TERM", "-INT"] {
        let mut command = lukasa(folder, store);
        command.args(["serve", "--listen", "127.0.0.1:0"]).stderr(Stdio::piped());
        let mut server = Server::of(command);
        assert_eq!(server.call("put", &json!({"type": "Service", "key": signal})).status, 200);
        let sent = Command::new("kill").args([signal, &server.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let mut told = String::new();
        server.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        let status = server.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{signal}: {told}");
        assert!(!told.contains("panicked"), "{told}");
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
fn a_thousand_idle_connections_keep_nobody_out() {
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

/// A repository, with two more working trees of it that have branches of their own.
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

/// Waits until a branch has a function.
fn wait_for(server: &Server, branch: &str, name: &str) {
    let began = Instant::now();
    loop {
        let reply = server.call("get", &json!({"ref": format!("FUNCTION:shop.py::{name}"), "branch": branch}));
        if reply.status == 200 {
            return;
        }
        assert!(began.elapsed() < NEVER, "{branch} is not followed: {}", reply.all());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_attached_processes_follow_is_followed_by_the_next_owner() {
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
fn up_where_there_is_no_repository_says_why_nothing_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("lukasa.db");
    for (more, tells) in [(&[][..], true), (&["--no-watch"][..], false)] {
        let mut command = lukasa(folder.path(), store.to_str().unwrap());
        command.args(["up", "--listen", "127.0.0.1:0"]).args(more).stderr(Stdio::piped());
        let mut server = Server::of(command);
        // Who is answered has been told before.
        assert_eq!(ask(server.address, "GET", "/healthz", &[], "").status, 200);
        let mut said = String::new();
        let mut told = server.child.stderr.take().unwrap();
        server.kill();
        told.read_to_string(&mut said).unwrap();
        assert_eq!(said.contains("is no git repository"), tells, "{said}");
    }
}

fn add(root: &Path, name: &str) {
    let file = root.join("shop.py");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(file, format!("{text}\n\ndef {name}():\n    return 2\n")).unwrap();
}

#[test]
fn vectors_come_by_themselves_unless_they_are_not_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let note = |key: &str| json!({"type": "Note", "key": key, "title": format!("Discount of {key}")});
    let embedded = |server: &Server| {
        let told = server.call("search_readiness", &json!({})).json();
        told["embedding"]["optional"]["embedded"].as_u64().unwrap()
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
    let told = server.call("search_readiness", &json!({})).json();
    assert_eq!(told["embedding"]["optional"]["percent"], 100.0, "{told}");
    let found = server.call("search", &json!({"query": "price cut", "channels": ["vector"]})).json();
    assert!(!found["items"].as_array().unwrap().is_empty(), "{found}");
    server.kill();
    let server = Server::start(folder.path(), "lukasa.db", &["--no-embed"]);
    assert_eq!(server.call("put", &note("rice")).status, 200);
    assert_eq!(server.call("embed", &json!({})).json()["embedded"], 1, "nobody else did");
}

/// Between a server and its database; what is paused passes nothing on, and closes nothing.
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

/// Waits for the end of a process, and no longer than for ever.
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
fn a_server_whose_database_is_paused_is_not_ready_and_ends_when_told() {
    let Some(database) = TestDatabase::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (between, url) = Between::of(&database.app_url);
    assert!(url.contains(&between.port.to_string()));
    let mut server = Server::start(folder.path(), &url, &["--no-watch", "--no-embed", "--time-limit", "2"]);
    let put = |key: &str| json!({"type": "Service", "key": key});
    assert_eq!(server.call("put", &put("a")).status, 200);
    assert_eq!(ask(server.address, "GET", "/readyz", &[], "").status, 200);
    between.paused.store(true, Ordering::SeqCst);
    // As many as have a place, and more.
    let address = server.address;
    let waiting: Vec<_> = (0..24)
        .map(|n| {
            let request = put(&format!("b{n}")).to_string();
            std::thread::spawn(move || tried(address, "POST", "/v1/put", &[], &request).ok().flatten())
        })
        .collect();
    let refused = ask(address, "GET", "/readyz", &[], "");
    assert_eq!(refused.status, 503, "{}", refused.all());
    assert_eq!(ask(address, "GET", "/healthz", &[], "").status, 200);
    for one in waiting {
        let reply = one.join().unwrap().expect("an answer");
        assert!(reply.status >= 400, "{}", reply.all());
    }
    assert!(Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap().success());
    ended(&mut server.child);
    // Whoever comes next goes on from there.
    between.paused.store(false, Ordering::SeqCst);
    let server = Server::start(folder.path(), &database.app_url, &["--no-watch", "--no-embed"]);
    assert_eq!(server.call("get", &json!({"ref": "Service:a"})).status, 200);
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
