//! `lukasa serve` on PostgreSQL when a standby takes over without the last transactions.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_testkit::http::{HttpReply, ask};
use lukasa_testkit::{Cluster, TestDatabase};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Timeout for events that must happen.
const NEVER: Duration = Duration::from_secs(120);

struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(folder: &Path, store: &str) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lukasa"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--no-watch", "--log-level", "warn"]);
        command.current_dir(folder).env("LUKASA_STORE", store).env("LUKASA_PROJECT", "shop");
        command.env("LUKASA_MODEL_URL", "off").env("XDG_RUNTIME_DIR", folder);
        for variable in ["LUKASA_TENANT", "LUKASA_AUTHOR", "LUKASA_AGENT", "LUKASA_SESSION", "LUKASA_CONFIG"] {
            command.env_remove(variable);
        }
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
    // The standby has none of these, although they were acknowledged: replication is asynchronous.
    for n in 0..5 {
        server.put(&format!("lost{n}"));
    }
    assert_eq!(server.services().len(), 8);
    let found = server.ok("search", &json!({"query": "what lost3 does"}));
    assert!(found["items"].to_string().contains("Service:lost3"), "{found}");
    let heard = server.ok("event_list", &json!({}))["cursor"].clone();
    cluster.fail_over();

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
    let figures = ask(server.address, "GET", "/metrics", &[], "").body;
    assert!(figures.contains("graph_log_replaced_total{tenant_id=\"local\"} 1"), "{figures}");
    let log = std::fs::read_to_string(folder.path().join("server.log")).unwrap();
    assert!(log.contains("store.log_replaced"), "{log}");
    server.ok("verify", &json!({}));
}
