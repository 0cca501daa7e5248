//! `lukasa serve` on PostgreSQL when a standby takes over without the last transactions.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_testkit::http::{HttpReply, ask, connect};
use lukasa_testkit::{Agent, Cluster, TestDatabase};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Timeout for events that must happen.
const NEVER: Duration = Duration::from_secs(120);

fn lukasa(folder: &Path, store: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lukasa"));
    command.current_dir(folder).env("LUKASA_STORE", store).env("LUKASA_PROJECT", "shop");
    command.env("LUKASA_MODEL_URL", "off").env("XDG_RUNTIME_DIR", folder);
    for variable in ["LUKASA_TENANT", "LUKASA_AUTHOR", "LUKASA_AGENT", "LUKASA_SESSION", "LUKASA_CONFIG"] {
        command.env_remove(variable);
    }
    command
}

/// An open stream of events.
struct EventStream(BufReader<TcpStream>);

impl EventStream {
    /// Subscribes from now on.
    fn open(server: &Server) -> EventStream {
        let mut stream = connect(server.address);
        write!(stream, "GET /v1/events HTTP/1.1\r\nhost: {}\r\n\r\n", server.address).unwrap();
        let mut events = EventStream(BufReader::new(stream));
        assert!(events.line().contains("200"));
        while !events.line().is_empty() {}
        events
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream has ended");
        line.trim_end().to_owned()
    }

    /// The data of the next event.
    fn next(&mut self) -> Value {
        loop {
            let line = self.line();
            assert_ne!(line, "event: error");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).unwrap();
            }
        }
    }

    /// The kind and transaction of as many events.
    fn take(&mut self, count: usize) -> Vec<(String, u64)> {
        let next = |_| {
            let event = self.next();
            (event["kind"].as_str().unwrap().to_owned(), event["tx"].as_u64().unwrap())
        };
        (0..count).map(next).collect()
    }
}

/// Waits until a subscriber is notified of a change of this resource.
fn updated(agent: &mut Agent, uri: &str) {
    while agent.wait_for_notification("notifications/resources/updated")["uri"] != uri {}
}

struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(folder: &Path, store: &str) -> Server {
        let mut command = lukasa(folder, store);
        command.args(["serve", "--listen", "127.0.0.1:0", "--no-watch", "--log-level", "warn"]);
        let log = std::fs::File::create(folder.join("server.log")).unwrap();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).and_then(|rest| rest.split(' ').next());
        Server { address: address.expect("it prints where it listens").parse().unwrap(), child }
    }

    fn call(&self, operation: &str, request: &Value) -> HttpReply {
        ask(self.address, "POST", &format!("/v1/{operation}"), &[], &request.to_string())
    }

    fn ok(&self, operation: &str, request: &Value) -> Value {
        let reply = self.call(operation, request);
        assert_eq!(reply.status, 200, "{operation}: {}", reply.all());
        reply.json()
    }

    /// As `ok`, retried while the database is unavailable.
    fn until_ok(&self, operation: &str, request: &Value) -> Value {
        let began = Instant::now();
        loop {
            let reply = self.call(operation, request);
            if reply.status == 200 {
                return reply.json();
            }
            assert!(reply.status == 503, "{operation}: {}", reply.all());
            assert!(began.elapsed() < NEVER, "{operation}: {}", reply.all());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn put(&self, key: &str) {
        self.until_ok("put", &json!({"type": "Service", "key": key, "title": format!("what {key} does")}));
    }

    /// Waits until every service has a vector, and searches by meaning only.
    fn found_by_meaning(&self, services: usize) -> String {
        let began = Instant::now();
        loop {
            let readiness = self.until_ok("search_readiness", &json!({}));
            let coverage = &readiness["embedding"]["optional"];
            if (&coverage["embedded"], &coverage["objects"]) == (&json!(services), &json!(services)) {
                break;
            }
            assert!(began.elapsed() < NEVER, "{readiness}");
            std::thread::sleep(Duration::from_millis(100));
        }
        let request = json!({"query": "what lost3 does", "channels": ["vector"], "limit": 40});
        self.until_ok("search", &request)["items"].to_string()
    }

    fn services(&self) -> Vec<String> {
        let rows = self.until_ok("cypher", &json!({"query": "MATCH (s:Service) RETURN s.key ORDER BY s.key"}));
        rows["rows"].as_array().unwrap().iter().map(|row| row[0].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn answers_follow_a_standby_that_lacks_the_end_of_the_log() {
    let Some(cluster) = Cluster::start() else { return };
    let database = std::mem::ManuallyDrop::new(TestDatabase::on(&cluster.primary_url()));
    let store = cluster.both(&database.app_url);
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &store);
    for n in 0..3 {
        server.put(&format!("kept{n}"));
    }
    assert_eq!(server.services(), ["kept0", "kept1", "kept2"]);
    cluster.settle();
    cluster.cut_off();
    let mut stream = EventStream::open(&server);
    // The standby has none of these, although they were acknowledged: replication is asynchronous.
    for n in 0..5 {
        server.put(&format!("lost{n}"));
    }
    assert_eq!(server.services().len(), 8);
    let found = server.ok("search", &json!({"query": "what lost3 does"}));
    assert!(found["items"].to_string().contains("Service:lost3"), "{found}");
    let heard = server.ok("event_list", &json!({}))["cursor"].clone();
    assert_eq!(stream.take(5), (4..=8).map(|tx| ("transaction".to_owned(), tx)).collect::<Vec<_>>());
    let by_meaning = server.found_by_meaning(8);
    assert!(by_meaning.contains("Service:lost3"), "{by_meaning}");
    // An agent in a process of its own, which follows claims only.
    let mut mcp = lukasa(folder.path(), &store);
    mcp.args(["mcp", "--no-watch", "--no-embed"]).stderr(Stdio::null());
    let (mut ada, claims) = (Agent::start(mcp, "ada"), "lukasa://project/claims");
    ada.request("resources/subscribe", json!({"uri": claims})).unwrap();
    cluster.fail_over();
    // Subscribers of any kinds are notified of the replacement.
    updated(&mut ada, claims);

    assert_eq!(server.services(), ["kept0", "kept1", "kept2"]);
    for n in 0..5 {
        server.put(&format!("new{n}"));
    }
    let expected = ["kept0", "kept1", "kept2", "new0", "new1", "new2", "new3", "new4"];
    assert_eq!(server.services(), expected);
    let found = server.until_ok("search", &json!({"query": "what lost3 does"}));
    assert!(!found["items"].to_string().contains("Service:lost3"), "{found}");
    let events = server.until_ok("event_list", &json!({"after": heard, "limit": 100}));
    let events: Vec<(&str, u64)> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| (event["kind"].as_str().unwrap(), event["tx"].as_u64().unwrap()))
        .collect();
    let due = [("replaced", 3)].into_iter().chain((4..=8).map(|tx| ("transaction", tx))).collect::<Vec<_>>();
    assert_eq!(events, due);
    let due: Vec<(String, u64)> = due.into_iter().map(|(kind, tx)| (kind.to_owned(), tx)).collect();
    assert_eq!(stream.take(due.len()), due, "the stream that was open before goes on with the new log");
    let by_meaning = server.found_by_meaning(8);
    assert!(!by_meaning.contains("Service:lost") && by_meaning.contains("Service:new4"), "{by_meaning}");
    let claim = json!({"target_id": "src/auth.ts", "agent_id": "bob", "intent": "mend it", "new": true});
    assert_eq!(server.until_ok("agent_claim", &claim)["status"], "ok");
    updated(&mut ada, claims);
    let read = ada.request("resources/read", json!({"uri": claims})).unwrap();
    assert!(read["contents"][0]["text"].as_str().unwrap().contains("src/auth.ts"), "{read}");
    let figures = ask(server.address, "GET", "/metrics", &[], "").body;
    assert!(figures.contains("graph_log_replaced_total{tenant_id=\"local\"} 1"), "{figures}");
    let log = std::fs::read_to_string(folder.path().join("server.log")).unwrap();
    assert!(log.contains("store.log_replaced"), "{log}");
    server.ok("verify", &json!({}));
}

#[test]
fn streams_and_subscriptions_outlive_an_outage_of_the_database() {
    let Some(database) = TestDatabase::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &database.app_url);
    server.put("before");
    let mut stream = EventStream::open(&server);
    let mut mcp = lukasa(folder.path(), &database.app_url);
    mcp.args(["mcp", "--no-watch", "--no-embed"]).stderr(Stdio::null());
    let (mut ada, log) = (Agent::start(mcp, "ada"), "lukasa://project/log");
    ada.request("resources/subscribe", json!({"uri": log})).unwrap();
    // The database runs, but refuses this login.
    let (role, _) = database.app_url.trim_start_matches("postgres://").split_once(':').unwrap();
    database.as_admin(&format!("ALTER ROLE {role} NOLOGIN"));
    database.as_admin(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"));
    let refused = server.call("get", &json!({"ref": "Service:before"}));
    assert_eq!(refused.status, 503, "{}", refused.all());
    // Longer than the time between two polls for events.
    std::thread::sleep(Duration::from_secs(2));
    database.as_admin(&format!("ALTER ROLE {role} LOGIN"));
    server.put("after");
    assert_eq!(stream.take(1), [("transaction".to_owned(), 2)]);
    updated(&mut ada, log);
}
