//! The running requests and open streams of one user do not delay another user, on every store.

use crate::house::House;
use lukasa_server::{ProjectFolders, RequestGate, RequestLimits};
use lukasa_store::Store;
use lukasa_testkit::http::{ask, connect, try_ask};
use lukasa_testkit::{FaultyStore, Fixture, fixtures};
use serde_json::json;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

const READER: [&str; 2] = ["graph:read", "graph:write"];
/// Longer than any test takes, so that no request times out.
const LONG: Duration = Duration::from_secs(600);

/// A server over a store whose reads can be blocked.
fn held_up(mut fixture: Fixture, limits: RequestLimits) -> (House, Arc<FaultyStore>) {
    let faulty = Arc::new(FaultyStore::new(Arc::clone(&fixture.store)));
    fixture.store = Arc::clone(&faulty) as Arc<dyn Store>;
    let store = Arc::clone(&faulty);
    let house = House::with(fixture, None, move |site| {
        let engine = site.front.engine_handle().engine().unwrap();
        assert!(engine.store().describe().starts_with("faulty"), "{}", store.describe());
        site.front = RequestGate::new(engine, limits, ProjectFolders::default());
    });
    (house, faulty)
}

/// Starts an MCP session in another project than the default one.
fn session_in(house: &House, key: &str, project: &str) -> String {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}});
    let mut headers = vec![("x-api-key", key), ("x-project-id", project)];
    headers.push(("accept", "application/json, text/event-stream"));
    let session = ask(house.address, "POST", "/mcp", &headers, &hello.to_string());
    let session = session.header("mcp-session-id").expect("sessions have ids").to_owned();
    headers.push(("mcp-session-id", &session));
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    assert_eq!(ask(house.address, "POST", "/mcp", &headers, &initialized).status, 202);
    session
}

fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..6_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("never: {what}");
}

#[test]
fn another_users_request_is_answered_while_one_users_are_held() {
    for fixture in fixtures() {
        let limits = RequestLimits { at_once: 4, time: LONG, ..RequestLimits::default() };
        let (house, store) = held_up(fixture, limits);
        let (ada, bob) = (house.key("ours", "ada", &READER), house.key("ours", "bob", &READER));
        let other = house.key("theirs", "cid", &READER);
        let headers = [("x-api-key", ada.as_str()), ("x-project-id", "slow")];
        let put = json!({"type": "Service", "key": "a"}).to_string();
        assert_eq!(ask(house.address, "POST", "/v1/put", &headers, &put).status, 200);
        house.ok(&bob, "put", json!({"type": "Service", "key": "a"}));
        house.ok(&other, "put", json!({"type": "Service", "key": "a"}));
        let session = house.session(&bob, "agent");
        let hers = session_in(&house, &ada, "slow");
        store.gate.shut(Some("slow"));
        std::thread::scope(|scope| {
            let held: Vec<_> = (0..24)
                .map(|n| {
                    let (house, key, hers) = (&house, ada.as_str(), hers.as_str());
                    scope.spawn(move || {
                        let request = json!({"ref": "Service:a"});
                        let call = json!({"jsonrpc": "2.0", "id": n, "method": "tools/call",
                            "params": {"name": "get", "arguments": request}});
                        let (path, body) = if n % 2 == 0 { ("/v1/get", request) } else { ("/mcp", call) };
                        let mut headers = vec![("x-api-key", key), ("x-project-id", "slow")];
                        headers.extend([("accept", "application/json, text/event-stream"), ("mcp-session-id", hers)]);
                        try_ask(house.address, "POST", path, &headers, &body.to_string())
                    })
                })
                .collect();
            until("her share is under way", || store.gate.waiting() == 2);
            for n in 0..3 {
                let request = json!({"ref": "Service:a"});
                assert_eq!(house.call(&bob, "get", &request).status, 200, "{n}");
                assert_eq!(house.tool(&bob, &session, "get", request.clone())["ok"], true, "{n}");
                assert_eq!(house.call(&other, "get", &request).status, 200, "{n}");
                house.ok(&bob, "put", json!({"type": "Service", "key": format!("b{n}")}));
            }
            assert_eq!(store.gate.waiting(), 2, "hers are still held, and no more than her share");
            store.gate.open();
            for one in held {
                let reply = one.join().unwrap().unwrap().unwrap();
                assert!(reply.status == 200 && reply.body.contains("Service"), "each has its turn: {}", reply.all());
            }
        });
    }
}

/// A query that computes for as long as it may.
const HEAVY: &str = "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b WITH a, b WHERE a + b < 0 \
                     RETURN count(*)";

#[test]
fn short_requests_do_not_wait_behind_long_ones_even_of_the_same_user() {
    for fixture in fixtures() {
        let limits = RequestLimits { time: LONG, ..RequestLimits::default() };
        let (house, store) = held_up(fixture, limits);
        let (ada, bob) = (house.key("ours", "ada", &READER), house.key("ours", "bob", &READER));
        for key in [&ada, &bob] {
            house.ok(key, "put", json!({"type": "Service", "key": "a"}));
        }
        let headers = [("x-api-key", ada.as_str()), ("x-project-id", "slow")];
        let put = json!({"type": "Service", "key": "a"}).to_string();
        assert_eq!(ask(house.address, "POST", "/v1/put", &headers, &put).status, 200);
        let hers = house.session(&ada, "agent");
        // First all of them are held, to know that she has as many under way as she may have.
        store.gate.shut(Some("slow"));
        let heavy = json!({"query": HEAVY, "timeout_ms": 30_000}).to_string();
        let running: Vec<_> = (0..24)
            .map(|_| {
                let mut stream = connect(house.address);
                let (length, address) = (heavy.len(), house.address);
                write!(
                    stream,
                    "POST /v1/cypher HTTP/1.1\r\nhost: {address}\r\nx-api-key: {ada}\r\nx-project-id: slow\r\n\
                     content-type: application/json\r\ncontent-length: {length}\r\n\r\n{heavy}"
                )
                .unwrap();
                stream
            })
            .collect();
        let share = RequestLimits::default().at_once.div_ceil(2);
        until("her share is under way", || store.gate.waiting() == share);
        // Then they compute.
        store.gate.open();
        let answered = |stream: &std::net::TcpStream| {
            stream.set_nonblocking(true).unwrap();
            stream.peek(&mut [0]).is_ok()
        };
        for n in 0..3 {
            let request = json!({"ref": "Service:a"});
            for key in [&ada, &bob] {
                assert_eq!(house.call(key, "get", &request).status, 200, "{n}");
                house.ok(key, "put", json!({"type": "Service", "key": format!("b{n}")}));
            }
            assert_eq!(house.tool(&ada, &hers, "get", request)["ok"], true, "{n}");
            assert_eq!(running.iter().filter(|stream| answered(stream)).count(), 0, "{n}: none has ended before");
        }
        // Clients that leave end their queries.
        drop(running);
        let quick = json!({"query": "RETURN 1"});
        until("her next query is answered", || house.call(&ada, "cypher", &quick).status == 200);
    }
}

#[test]
fn work_that_does_not_stop_keeps_its_turn_and_no_further_thread() {
    let limits =
        RequestLimits { at_once: 4, waiting: 100, time: Duration::from_millis(50), ..RequestLimits::default() };
    let (house, store) = held_up(Fixture::sqlite(), limits);
    let (ada, bob) = (house.key("ours", "ada", &READER), house.key("ours", "bob", &READER));
    // Written directly to the engine, because the time limit of the server is short.
    let mut progress = |_, _| ();
    for project in ["slow", "shop"] {
        let scope = lukasa_model::Scope::new("ours", project).unwrap();
        let mut owner = lukasa_engine::Context::of(scope, &mut progress);
        house.engine.call(&mut owner, "put", json!({"type": "Service", "key": "a"})).unwrap();
    }
    store.gate.shut(Some("slow"));
    let headers = [("x-api-key", ada.as_str()), ("x-project-id", "slow")];
    let codes: Vec<String> = (0..12)
        .map(|_| ask(house.address, "POST", "/v1/get", &headers, &json!({"ref": "Service:a"}).to_string()).code())
        .collect();
    assert_eq!(codes[..2], ["timeout", "timeout"], "stopped by the time limit, but still running");
    assert!(codes[2..].iter().all(|code| code == "too_busy"), "{codes:?}");
    assert_eq!(store.gate.waiting(), 2, "one thread for each place");
    // Retried because the time limit is short; once the data is in memory it is fast enough.
    until("another user is served", || house.call(&bob, "get", &json!({"ref": "Service:a"})).status == 200);
    store.gate.open();
    until("places come back", || {
        ask(house.address, "POST", "/v1/get", &headers, &json!({"ref": "Service:a"}).to_string()).status == 200
    });
}

#[test]
fn sessions_of_one_user_are_limited() {
    let house = House::of(Fixture::memory(), None);
    let (ada, bob) = (house.key("ours", "ada", &READER), house.key("ours", "bob", &READER));
    house.ok(&bob, "put", json!({"type": "Service", "key": "a"}));
    let others = house.session(&bob, "agent");
    let all: Vec<String> = (0..66).map(|_| house.session(&ada, "agent")).collect();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let status = |key: &str, session: &str| house.say(key, Some(session), &ping).status;
    assert_eq!((status(&ada, &all[0]), status(&ada, &all[1])), (404, 404), "the oldest two ended");
    assert_eq!((status(&ada, &all[2]), status(&ada, &all[65])), (200, 200));
    assert_eq!(status(&bob, &others), 200, "sessions of other users did not");
}

#[test]
fn event_streams_of_one_user_are_limited() {
    let house = House::of(Fixture::memory(), None);
    let (ada, bob) = (house.key("ours", "ada", &READER), house.key("ours", "bob", &READER));
    house.ok(&bob, "put", json!({"type": "Service", "key": "a"}));
    let listen = |key: &str| {
        let mut stream = connect(house.address);
        write!(stream, "GET /v1/events HTTP/1.1\r\nhost: {}\r\nx-api-key: {key}\r\n\r\n", house.address).unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        (String::from_utf8(head[9..].to_vec()).unwrap(), stream)
    };
    let open: Vec<_> = (0..64).map(|_| listen(&ada)).collect();
    assert!(open.iter().all(|(status, _)| status == "200"));
    assert_eq!(listen(&ada).0, "429");
    assert_eq!(house.get(&ada, "/v1/events").code(), "too_many_listeners");
    assert_eq!(listen(&bob).0, "200");
    drop(open);
    until("those that ended are not counted", || listen(&ada).0 == "200");
}
