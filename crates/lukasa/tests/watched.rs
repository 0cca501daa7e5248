//! The audit log and the log of a running binary: as a command, as a server, and when it is killed.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

fn lukasa(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lukasa"));
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LUKASA_")) {
        command.env_remove(name);
    }
    command.env("USER", "tester-by-name").env("LUKASA_PROJECT", "shop");
    // The settings of the developer are not used.
    command.env("HOME", folder).env_remove("XDG_CONFIG_HOME");
    command
}

fn run(folder: &Path, args: &[&str]) -> Result<Value, Value> {
    let out = lukasa(folder).args(args).arg("--json").output().unwrap();
    let read = |bytes: &[u8]| {
        serde_json::from_slice(bytes)
            .unwrap_or_else(|e| panic!("{args:?}: {e}: {}", String::from_utf8_lossy(&out.stderr)))
    };
    if out.status.success() { Ok(read(&out.stdout)) } else { Err(read(&out.stderr)) }
}

/// A server, killed when it is dropped.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(folder: &Path, args: &[&str]) -> Server {
        let mut child =
            lukasa(folder).args(["serve", "--listen", "127.0.0.1:0", "--no-watch"]).args(args).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.split("http://").nth(1).unwrap_or_else(|| panic!("{line}")).split(' ').next().unwrap().to_string();
        Server { child, address }
    }

    /// Status and response. None if the server has gone.
    fn ask(&self, head: &str, headers: &[(&str, &str)], body: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let mut text = format!(
            "{head} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n",
            self.address,
            body.len()
        );
        headers.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let status = answer.split(' ').nth(1)?.parse().ok()?;
        Some((status, answer))
    }

    /// Ends the server with a signal. Returns its standard error.
    fn end(mut self, signal: &str) -> String {
        Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        self.child.wait().unwrap();
        log
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn commands_are_recorded_and_tampering_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    run(here, &["put", "Service", "auth", "--set", "note=confidential-text"]).unwrap();
    run(here, &["get", "Service:auth"]).unwrap();
    assert_eq!(run(here, &["get", "Service:none"]).unwrap_err()["error"]["code"], "not_found");
    let list = run(here, &["audit", "list"]).unwrap();
    let recorded: Vec<_> =
        list["entries"].as_array().unwrap().iter().map(|e| (e["operation"].clone(), e["status"].clone())).collect();
    let want = [("get", "not_found"), ("get", "ok"), ("put", "ok")];
    assert_eq!(recorded, want.map(|(operation, status)| (json!(operation), json!(status))), "newest first");
    assert_eq!(
        run(here, &["audit", "list", "--user", "tester-by-name", "--operation", "put"]).unwrap()["entries"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let verified = run(here, &["audit", "verify"]).unwrap();
    assert_eq!(
        (&verified["entries"], &verified["chains"][0]["sealed"]),
        (&json!(5), &json!(true)),
        "one chain of all commands"
    );
    let exported = lukasa(here).args(["audit", "export"]).output().unwrap();
    let lines = String::from_utf8(exported.stdout).unwrap();
    assert_eq!(lines.lines().count(), 6);
    for text in ["confidential", "tester-by-name", "Service", "auth\""] {
        assert!(!lines.contains(text), "{text} in {lines}");
    }
    let doctor = lukasa(here).arg("doctor").output().unwrap();
    let report = String::from_utf8(doctor.stdout).unwrap();
    assert!(
        report.lines().any(|line| line.starts_with("ok") && line.contains("record") && line.contains("7 operations")),
        "{report}"
    );
    let raw = rusqlite::Connection::open(here.join(".lukasa/lukasa.audit.db")).unwrap();
    raw.execute_batch("DROP TRIGGER audit_keep; UPDATE audit SET status = 'ok' WHERE number = 3").unwrap();
    drop(raw);
    let broken = run(here, &["audit", "verify"]).unwrap_err()["error"].clone();
    assert_eq!((&broken["code"], &broken["details"]["number"]), (&json!("audit_broken"), &json!(3)), "{broken}");
    assert_eq!((&broken["details"]["flaw"], &broken["details"]["server"]), (&json!("changed"), &json!("local")));
    // Without recording, no file is created.
    let other = tempfile::tempdir().unwrap();
    let off = lukasa(other.path()).args(["put", "Service", "auth"]).env("LUKASA_AUDIT", "off").output().unwrap();
    assert!(off.status.success() && !other.path().join(".lukasa/lukasa.audit.db").exists());
}

#[test]
fn every_write_that_a_killed_server_acknowledged_is_in_the_audit_log() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    run(here, &["put", "Service", "first"]).unwrap();
    let answered = Mutex::new(Vec::new());
    for round in 0..3 {
        let server = Server::start(here, &["--log-level", "error"]);
        std::thread::scope(|threads| {
            for thread in 0..4 {
                let (server, answered) = (&server, &answered);
                threads.spawn(move || {
                    for turn in 0.. {
                        let id = format!("write-{round}-{thread}-{turn}");
                        let body = json!({"type": "Service", "key": id}).to_string();
                        match server.ask("POST /v1/put", &[("x-request-id", &id)], &body) {
                            Some((200, _)) => answered.lock().unwrap().push(id),
                            Some((status, text)) => panic!("{status}: {text}"),
                            None => return,
                        }
                        if server.ask("POST /v1/get", &[], &json!({"ref": "Service:first"}).to_string()).is_none() {
                            return;
                        }
                    }
                });
            }
            let before = answered.lock().unwrap().len();
            while answered.lock().unwrap().len() < before + 20 + 7 * round {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            Command::new("kill").args(["-9", &server.child.id().to_string()]).status().unwrap();
        });
    }
    assert!(run(here, &["audit", "verify"]).is_ok());
    let out = lukasa(here).args(["audit", "export", "--operation", "put", "--status", "ok"]).output().unwrap();
    let recorded = String::from_utf8(out.stdout).unwrap();
    for id in answered.into_inner().unwrap() {
        assert!(recorded.contains(&format!("\"request_id\":\"{id}\"")), "{id} was answered and is not recorded");
    }
}

#[test]
fn logs_contain_every_request_and_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    run(here, &["put", "Service", "first", "--set", "note=text-of-a-fact"]).unwrap();
    let key = run(here, &["key", "create", "--user", "user-by-name", "--scope", "graph:*,types:write"]).unwrap();
    let key = key["key"].as_str().unwrap().to_string();
    // Without embedding, because results would depend on timing.
    let server = Server::start(here, &["--access-keys", "--no-embed", "--log-level", "debug", "--log-format", "json"]);
    let bearer = format!("Bearer {key}");
    let own = [("authorization", bearer.as_str()), ("x-request-id", "id-of-request-1")];
    let (status, answer) =
        server.ask("POST /v1/search", &own, &json!({"query": "words-of-a-question"}).to_string()).unwrap();
    assert!(status == 200 && answer.to_lowercase().contains("x-request-id: id-of-request-1"), "{answer}");
    for (head, body) in [
        ("POST /v1/traverse", json!({"roots": ["Service:first"]})),
        ("POST /v1/expand", json!({"roots": ["Service:first"]})),
        ("POST /v1/graph_traverse", json!({"entry_entity_ids": ["Service:first"]})),
        ("POST /v1/put", json!({"type": "Service", "key": "x", "properties": {"password": "pass-in-request"}})),
        ("POST /v1/get", json!({"ref": "name-of-nothing"})),
        ("GET /v1/nowhere?token=token-in-path", json!({})),
    ] {
        assert!(server.ask(head, &own, &body.to_string()).is_some(), "{head}");
    }
    let forged = "lk_0123456789abcdef_forged-secret";
    assert_eq!(server.ask("POST /v1/get", &[("x-api-key", forged)], "{}").unwrap().0, 401);
    assert_eq!(server.ask("POST /v1/get", &[("authorization", "Bearer eyJforged.token.here")], "{}").unwrap().0, 401);
    // A request id with unsafe characters is not accepted.
    let (_, answer) = server.ask("POST /v1/projects", &[own[0], ("x-request-id", "bad id {\"x\":1}")], "{}").unwrap();
    assert!(!answer.contains("bad id"), "{answer}");
    let metrics = server.ask("GET /metrics", &own[..1], "").unwrap();
    assert_eq!(metrics.0, 200, "graph:* covers graph:admin:metrics");
    for figure in [
        "graph_queries_total{operation=\"search\",status=\"ok\"} 1",
        "graph_queries_total{operation=\"get\",status=\"not_found\"} 1",
        "graph_search_latency_seconds_count 1",
        "graph_expand_nodes_sum 1",
        "graph_traversal_latency_seconds_count{hops=\"0\",tenant_id=\"local\"} 3",
        "graph_total_nodes{entity_type=\"Service\",tenant_id=\"local\"} 2",
        "graph_entities_extracted_total{entity_type=\"Service\",source_system=\"api\",tenant_id=\"local\"} 1",
        "graph_search_latency_ms_count{stage=\"lexical\",intent=\"none\",rerank_applied=\"false\"} 1",
        "graph_search_candidate_pool_size 0",
        "audit_append_failures_total 0",
    ] {
        assert!(metrics.1.lines().any(|line| line.trim() == figure), "{figure} in {}", metrics.1);
    }
    let memory = metrics.1.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes ")).unwrap();
    assert!(!cfg!(target_os = "linux") || memory.trim().parse::<f64>().unwrap() > 1e6, "{memory}");
    let reader = run(here, &["key", "create", "--user", "reader", "--scope", "graph:read"]).unwrap();
    let refused = server.ask("GET /metrics", &[("x-api-key", reader["key"].as_str().unwrap())], "").unwrap();
    assert!(refused.0 == 403 && refused.1.contains("missing_scope"), "{}", refused.1);
    // As supervisors end a process.
    let log = server.end("-TERM");
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect();
    let of =
        |event: &str| lines.iter().find(|line| line["event"] == event).unwrap_or_else(|| panic!("{event} in {log}"));
    for event in [
        "request",
        "graph.search",
        "graph.search.access",
        "graph.search.pagination",
        "graph.traverse.page",
        "graph.expand",
        "graph_query",
    ] {
        assert_eq!(of(event)["request_id"], "id-of-request-1", "{event}");
    }
    let request = of("request");
    assert_eq!(
        (&request["operation"], &request["status"], &request["tenant"]),
        (&json!("search"), &json!("ok"), &json!("local"))
    );
    assert!(request["latency_ms"].is_number() && request["user"].as_str().unwrap().len() == 32, "{request}");
    assert_eq!(of("graph.traverse.page")["total_nodes"], 1);
    assert_eq!(of("graph.search.access")["scopes"], json!(["graph:*", "types:write"]));
    for secret in [
        key.as_str(),
        "forged-secret",
        "eyJforged",
        "words-of-a-question",
        "pass-in-request",
        "text-of-a-fact",
        "user-by-name",
        "token-in-path",
        "bad id",
    ] {
        assert!(!log.contains(secret), "{secret} in {log}");
        assert!(!metrics.1.contains(secret), "{secret} in figures");
    }
    // A server that ends on a signal has recorded everything.
    let list = run(here, &["audit", "list", "--user", "user-by-name"]).unwrap();
    assert_eq!(list["entries"].as_array().unwrap().len(), 7, "{list}");
}
