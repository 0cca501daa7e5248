//! Events are streamed as they happen, and the stream can be resumed after a disconnect.

use crate::house::House;
use lukasa_testkit::fixtures;
use lukasa_testkit::http::connect;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

/// A subscriber to the event stream.
pub struct Listener {
    lines: BufReader<TcpStream>,
    last: Option<String>,
}

impl Listener {
    fn new(house: &House, key: &str, path: &str, last: Option<&str>) -> Listener {
        Listener::with(house, &format!("x-api-key: {key}\r\n"), path, last)
    }

    /// Subscribes after the event `last`, or from now on. Every event after this returns is received.
    pub fn with(house: &House, headers: &str, path: &str, last: Option<&str>) -> Listener {
        let mut stream = connect(house.address);
        let last_id = last.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n{headers}{last_id}\r\n", house.address);
        stream.write_all(head.as_bytes()).unwrap();
        let mut listener = Listener { lines: BufReader::new(stream), last: last.map(str::to_owned) };
        assert!(listener.line().contains("200"));
        while !listener.line().is_empty() {}
        listener
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "the stream goes on");
        line.trim_end().to_owned()
    }

    /// The next event; lines with the lengths of chunks are skipped.
    pub fn next(&mut self) -> (String, Value) {
        let (mut kind, mut data) = (String::new(), Value::Null);
        loop {
            let line = self.line();
            match line.split_once(": ") {
                Some(("event", name)) => kind = name.to_owned(),
                Some(("data", text)) => data = serde_json::from_str(text).unwrap(),
                Some(("id", id)) => self.last = Some(id.to_owned()),
                _ if line.is_empty() && !kind.is_empty() => return (kind, data),
                _ => {}
            }
        }
    }

    /// The kinds of all events up to the first of this kind, and its data.
    fn until(&mut self, wanted: &str) -> (Vec<String>, Value) {
        let mut kinds = Vec::new();
        loop {
            let (kind, data) = self.next();
            kinds.push(kind.clone());
            if kind == wanted {
                return (kinds, data);
            }
        }
    }
}

fn claim(house: &House, key: &str, agent: &str, target: &str) -> Value {
    house.ok(
        key,
        "agent_claim",
        json!({"target_id": target, "agent_id": agent, "intent": format!("{agent} mends it"), "new": true}),
    )
}

#[test]
fn claims_conflicts_and_transactions_arrive_in_order_and_the_stream_resumes() {
    for fixture in fixtures() {
        let house = House::of(fixture, None);
        let key = house.key("acme", "ann", &["admin"]);
        // Declares the types that the following writes use.
        house.ok(&key, "task_update", json!({"task_id": "1", "title": "Mend it"}));
        let mut all = Listener::new(&house, &key, "/v1/events", None);
        assert_eq!(claim(&house, &key, "ada", "src/auth.ts")["status"], "ok");
        let (kinds, _) = all.until("transaction");
        assert_eq!(kinds, ["claim", "transaction"], "what it is about before the transaction itself");
        assert_eq!(claim(&house, &key, "bob", "src/auth.ts")["status"], "CONFLICT");
        let (kind, conflict) = all.next();
        assert_eq!(
            (kind.as_str(), &conflict["holder"], &conflict["agent"]),
            ("conflict", &json!("ada"), &json!("bob"))
        );

        // After a disconnect the client receives what happened meanwhile, also a refused claim, and nothing twice.
        let last = all.last.take().unwrap();
        drop(all);
        assert_eq!(claim(&house, &key, "eve", "src/auth.ts")["status"], "CONFLICT");
        house.ok(&key, "agent_release", json!({"claim_id": "src/auth.ts", "agent_id": "ada"}));
        let mut again = Listener::new(&house, &key, "/v1/events", Some(&last));
        let (mut seen, mut data) = (vec![], vec![]);
        while !seen.contains(&"conflict".to_owned()) {
            let (kind, event) = again.next();
            seen.push(kind);
            data.push(event);
        }
        assert_eq!(seen, ["claim", "transaction", "conflict"], "{data:?}");
        assert_eq!((&data[0]["reason"], &data[2]["agent"]), (&json!("released"), &json!("eve")));
    }
}

#[test]
fn a_subscriber_to_some_kinds_resumes_with_them() {
    let house = House::of(fixtures().remove(0), None);
    let key = house.key("acme", "ann", &["admin"]);
    house.ok(&key, "task_update", json!({"task_id": "1", "title": "Mend it"}));
    let mut claims = Listener::new(&house, &key, "/v1/events?kinds=claim", None);
    claim(&house, &key, "ada", "src/auth.ts");
    let (kind, first) = claims.next();
    assert_eq!((kind.as_str(), &first["target"]), ("claim", &json!("src/auth.ts")));
    let last = claims.last.take().expect("the last event has a cursor");
    drop(claims);
    house.ok(&key, "put", json!({"type": "Service", "key": "auth"}));
    claim(&house, &key, "ada", "src/mail.ts");
    let mut again = Listener::new(&house, &key, "/v1/events?kinds=claim", Some(&last));
    let (kind, next) = again.next();
    assert_eq!((kind.as_str(), &next["target"]), ("claim", &json!("src/mail.ts")), "only what is new, of its kind");
}
