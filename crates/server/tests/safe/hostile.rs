//! A client that is slow or sends too much or invalid data is refused, and other clients are served meanwhile.

use crate::house::House;
use lukasa_engine::Context;
use lukasa_model::Scope;
use lukasa_server::auth::failures::{FailureLimit, LoginFailures};
use lukasa_server::auth::rate::{RateLimit, RateLimiter, RateLimits};
use lukasa_server::http::ClientLimits;
use lukasa_server::{ProjectFolders, RequestGate, RequestLimits};
use lukasa_testkit::Fixture;
use lukasa_testkit::http::{HttpReply, ask, connect, parse_reply, read_reply, try_ask};
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Short, so that tests need not wait. No test depends on how long anything takes.
const SHORT: Duration = Duration::from_millis(500);
/// Bytes sent before a test gives up; many times what the server waits for.
const DRIPS: usize = 600;
const BYTES: usize = 20_000;

fn house() -> House {
    House::with(Fixture::memory(), None, |site| {
        site.patience = ClientLimits { head: SHORT, body: SHORT, ..ClientLimits::default() };
    })
}

fn small() -> House {
    limited(RequestLimits { bytes: BYTES, ..RequestLimits::default() })
}

/// With these limits on concurrent work.
fn limited(limits: RequestLimits) -> House {
    House::with(Fixture::memory(), None, |site| {
        let engine = site.front.engine_handle().engine().unwrap();
        site.front = RequestGate::new(engine, limits, ProjectFolders::default());
    })
}

/// With these rate limits.
fn rated(soft: u32, hard: u32) -> House {
    let limit = |burst| RateLimit { per_second: 1, burst };
    House::with(Fixture::memory(), None, |site| {
        let limits = RateLimits { soft: limit(soft), hard: limit(hard), ..RateLimits::default() };
        site.rates = Some(Arc::new(RateLimiter::new(limits)));
    })
}

fn is_well(house: &House) {
    assert_eq!(ask(house.address, "GET", "/healthz", &[], "").status, 200);
}

/// Sends a byte at a time until the server closes the connection. Returns its last reply.
fn drip(mut stream: TcpStream, byte: u8) -> Option<HttpReply> {
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut received = Vec::new();
    for _ in 0..DRIPS {
        let gone = stream.write_all(&[byte]).is_err();
        let mut part = [0; 4_096];
        match stream.read(&mut part) {
            Ok(0) => return parse_reply(&received),
            Ok(read) => received.extend(&part[..read]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return parse_reply(&received),
        }
        if gone {
            return parse_reply(&received);
        }
    }
    panic!("it was never cut off");
}

#[test]
fn a_client_that_drips_headers_is_disconnected_and_others_are_served() {
    let house = house();
    let slow: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = connect(house.address);
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: ").unwrap();
            std::thread::spawn(move || drip(stream, b'a'))
        })
        .collect();
    for _ in 0..20 {
        is_well(&house);
    }
    for one in slow {
        let last = one.join().unwrap();
        assert!(last.is_none_or(|reply| reply.status == 408), "no answer without a whole request");
    }
    is_well(&house);
}

#[test]
fn a_silent_client_is_disconnected() {
    let house = house();
    let mut idle: Vec<_> = (0..100).map(|_| connect(house.address)).collect();
    is_well(&house);
    for stream in &mut idle {
        assert!(read_reply(stream).is_none_or(|reply| reply.status == 408));
    }
    // A connection that has sent a request may be idle no longer than a new one.
    let mut stream = connect(house.address);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    assert_eq!(read_reply(&mut stream).unwrap().status, 200);
}

#[test]
fn a_client_that_drips_a_body_is_refused_in_time() {
    let house = house();
    let key = house.key("ours", "bob", &["admin"]);
    for (path, kind) in [
        ("/v1/put", "content-length: 9000"),
        ("/v1/put", "transfer-encoding: chunked"),
        ("/mcp", "content-length: 9000"),
    ] {
        let mut stream = connect(house.address);
        let accept = "application/json, text/event-stream";
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\naccept: {accept}\r\n\
             content-type: application/json\r\n{kind}\r\n\r\n"
        )
        .unwrap();
        // A chunk size or a text that never ends.
        let last = drip(stream, b'0').expect("the server answers with the reason");
        match path {
            "/mcp" => assert!((400..600).contains(&last.status), "{}", last.all()),
            _ => assert_eq!((last.status, last.code().as_str()), (408, "request_too_slow"), "{}", last.all()),
        }
        is_well(&house);
    }
}

#[test]
fn large_bodies_are_refused_with_and_without_a_length() {
    let house = small();
    let key = house.key("ours", "bob", &["admin"]);
    let long = json!({"type": "Service", "key": "a", "title": "x".repeat(BYTES)}).to_string();
    let received = ask(house.address, "POST", "/v1/put", &[("x-api-key", &key)], &long);
    assert_eq!((received.status, received.code().as_str()), (413, "request_too_large"), "{}", received.all());
    for path in ["/v1/put", "/mcp"] {
        let mut stream = connect(house.address);
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let chunk = format!("400\r\n{}\r\n", "x".repeat(0x400));
        // The server may close the connection before everything is sent.
        let sent = (0..2_000).take_while(|_| stream.write_all(chunk.as_bytes()).is_ok()).count();
        let mut received = Vec::new();
        let _ = stream.read_to_end(&mut received);
        let reply = parse_reply(&received);
        assert!(reply.is_some() || sent < 2_000, "{path}: it neither answered nor hung up");
        if let Some(reply) = reply {
            assert_eq!(reply.status, 413, "{path}: {}", reply.all());
        }
    }
    assert_eq!(house.call(&key, "list", &json!({})).code(), "unknown_project", "nothing was written");
    is_well(&house);
}

/// Every kind of invalid request, and the expected status.
#[test]
fn invalid_requests_are_refused() {
    let house = house();
    let many: String = (0..500).map(|n| format!("x-{n}: y\r\n")).collect();
    for (what, text, due) in [
        ("many headers", format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{many}\r\n"), 431),
        (
            "a long header",
            format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(1 << 20)),
            431,
        ),
        ("a long address", format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "a".repeat(70_000)), 414),
        ("no HTTP", "\u{1}\u{2}\u{3}\r\n\r\n".into(), 400),
        (
            "a new line in a value",
            "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: a\n b\r\nset-cookie\r\n\r\n".into(),
            400,
        ),
        (
            "a bare return in a value",
            "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: a\rset-cookie: b\r\n\r\n".into(),
            400,
        ),
        ("a zero byte in a value", "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: a\0b\r\n\r\n".into(), 400),
        ("a space in a name", "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx y: a\r\n\r\n".into(), 400),
        (
            "two lengths",
            "POST /v1/put HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab".into(),
            400,
        ),
        (
            "a length below nothing",
            "POST /v1/put HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n".into(),
            400,
        ),
        ("two hosts", "GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n\r\n".into(), 400),
        (
            "another host in the address",
            "GET http://evil.example/healthz HTTP/1.1\r\nhost: localhost\r\n\r\n".into(),
            403,
        ),
        ("an unknown method", "FROB /v1/put HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".into(), 405),
        (
            "a path of dots",
            "GET /../../etc/passwd HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".into(),
            404,
        ),
        (
            "a path that is no text",
            "GET /v1/%ff%fe HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".into(),
            404,
        ),
    ] {
        let mut stream = connect(house.address);
        // The server may close the connection before it has read everything.
        let _ = stream.write_all(text.as_bytes());
        let mut received = Vec::new();
        let _ = stream.read_to_end(&mut received);
        if let Some(reply) = parse_reply(&received) {
            assert_eq!(reply.status, due, "{what}: {}", reply.all());
            assert!(reply.header("set-cookie").is_none(), "{what}");
        }
        is_well(&house);
    }
}

#[test]
fn echoed_values_cannot_add_headers() {
    let house = house();
    let key = house.key("ours", "bob", &["admin"]);
    let evil = "x%0d%0aset-cookie:%20stolen=1%0d%0a%0d%0a%3Cscript%3E";
    for path in [
        format!("/{evil}"),
        format!("/v1/{evil}"),
        format!("/graph/objects/{evil}"),
        format!("/product-versions/{evil}"),
        format!("/v1/get?ref={evil}"),
        format!("/graph/objects/a?{evil}=1"),
    ] {
        let reply = house.get(&key, &path);
        assert!((400..500).contains(&reply.status), "{path}: {}", reply.all());
        assert!(reply.header("set-cookie").is_none(), "{}", reply.head);
        assert_eq!(reply.header("content-type"), Some("application/json"), "no page is made of it");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    }
    // Values of headers and host names are escaped in responses.
    let odd = r#"a"b<c>d"#;
    let reply = ask(house.address, "GET", "/v1/log", &[("x-api-key", &key), ("x-project-id", odd)], "");
    assert!((400..500).contains(&reply.status) && reply.json()["error"]["code"].is_string(), "{}", reply.all());
    let mut stream = connect(house.address);
    write!(stream, "GET /.well-known/agent-card.json HTTP/1.1\r\nhost: a\"b\r\nconnection: close\r\n\r\n").unwrap();
    assert_eq!(read_reply(&mut stream).unwrap().code(), "forbidden_host");
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let house = house();
    let mut stream = connect(house.address);
    let mut text = String::new();
    for path in ["/healthz", "/nowhere", "/readyz", "/v1/log"] {
        text += &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    }
    text += "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(text.as_bytes()).unwrap();
    let mut received = String::new();
    stream.read_to_string(&mut received).unwrap();
    let statuses: Vec<&str> =
        received.split("HTTP/1.1 ").skip(1).map(|answer| answer.split(' ').next().unwrap_or_default()).collect();
    assert_eq!(statuses, ["200", "404", "200", "405", "200"], "{received}");
}

#[test]
fn half_closed_and_broken_connections_do_no_harm() {
    let house = house();
    let key = house.key("ours", "bob", &["admin"]);
    for how in [Shutdown::Write, Shutdown::Read, Shutdown::Both] {
        for text in [
            "GET /healthz HTTP/1.1\r\nhost: loc",
            "POST /v1/put HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{",
        ] {
            let mut stream = connect(house.address);
            stream.write_all(text.as_bytes()).unwrap();
            stream.shutdown(how).unwrap();
            let mut received = Vec::new();
            let _ = stream.read_to_end(&mut received);
        }
    }
    is_well(&house);
    house.ok(&key, "put", json!({"type": "Service", "key": "a"}));
    assert_eq!(house.ok(&key, "list", json!({}))["total"], 1);
}

#[test]
fn closed_connections_make_room_for_others() {
    let house = House::with(Fixture::memory(), None, |site| {
        site.patience = ClientLimits { head: SHORT, connections: 4, ..ClientLimits::default() };
    });
    let _idle: Vec<_> = (0..12).map(|_| connect(house.address)).collect();
    // Waits until the server has closed the idle connections.
    is_well(&house);
}

#[test]
fn an_address_with_too_many_failures_is_refused_for_a_while() {
    let house = House::with(Fixture::memory(), None, |site| {
        let limit = FailureLimit { failures: 5, window_seconds: 60, ..FailureLimit::default() };
        site.failures = Some(Arc::new(LoginFailures::new(limit)));
    });
    let good = house.key("ours", "bob", &["admin"]);
    let wrong = format!("{}{}", &good[..good.len() - 4], if good.ends_with("AAAA") { "BBBB" } else { "AAAA" });
    house.ok(&good, "put", json!({"type": "Service", "key": "a"}));
    // A request without credential is not a guess.
    for _ in 0..10 {
        assert_eq!(ask(house.address, "POST", "/v1/log", &[], "").code(), "missing_token");
    }
    for guess in [&wrong, "lk_0123456789abcdef_nothing", "lk_", "a.b.c", &wrong] {
        assert_eq!(house.call(guess, "log", &json!({})).status, 401);
    }
    for key in [&wrong, &good] {
        let refused = house.call(key, "log", &json!({}));
        assert_eq!((refused.status, refused.code().as_str()), (429, "too_many_failures"));
        assert_eq!(refused.header("retry-after"), Some("60"));
    }
    is_well(&house);
    house.fixture.clock.advance(59);
    assert_eq!(house.call(&good, "log", &json!({})).header("retry-after"), Some("1"));
    house.fixture.clock.advance(1);
    assert_eq!(house.call(&good, "log", &json!({})).status, 200);
}

#[test]
fn too_many_requests_are_warned_then_refused_with_a_time_to_retry() {
    let house = rated(1, 2);
    let [bob, ann] = ["bob", "ann"].map(|user| house.key("ours", user, &["admin"]));
    let first = house.call(&bob, "projects", &json!({}));
    assert_eq!((first.status, first.header("x-ratelimit-remaining")), (200, Some("1")), "{}", first.all());
    assert!(first.header("x-ratelimit-warning").is_none(), "{}", first.head);
    let second = house.call(&bob, "projects", &json!({}));
    assert_eq!((second.status, second.header("x-ratelimit-remaining")), (200, Some("0")), "{}", second.all());
    assert!(second.header("x-ratelimit-warning").is_some(), "more than the soft limit: {}", second.head);
    // Every path counts and is refused.
    for (method, path, body) in [
        ("POST", "/v1/projects", "{}"),
        ("GET", "/graph/objects", ""),
        ("GET", "/v1/events", ""),
        ("GET", "/metrics", ""),
        ("POST", "/mcp", r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#),
    ] {
        let refused = ask(house.address, method, path, &[("x-api-key", &bob)], body);
        assert_eq!((refused.status, refused.code().as_str()), (429, "rate_limited"), "{path}: {}", refused.all());
        assert_eq!(refused.header("retry-after"), Some("1"), "{path}");
        assert_eq!(refused.json()["error"]["details"]["retry_after"], 1, "{path}");
    }
    // Other users and public paths are not affected.
    assert_eq!(house.call(&ann, "projects", &json!({})).status, 200);
    is_well(&house);
    house.fixture.clock.advance(1);
    assert_eq!(house.call(&bob, "projects", &json!({})).status, 200);
    assert_eq!(house.call(&bob, "projects", &json!({})).status, 429, "a second gives one request");
}

#[test]
fn with_one_limit_the_second_request_is_refused() {
    let house = rated(1, 1);
    let key = house.key("ours", "bob", &["admin"]);
    assert_eq!(house.call(&key, "projects", &json!({})).status, 200);
    let refused = house.call(&key, "projects", &json!({}));
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")), "{}", refused.all());
}

#[test]
fn a_request_that_finds_the_queue_full_is_refused_with_a_time_to_retry() {
    let house = limited(RequestLimits { at_once: 1, waiting: 0, ..RequestLimits::default() });
    let key = house.key("ours", "bob", &["admin"]);
    house.ok(&key, "put", json!({"type": "Service", "key": "a"}));
    // A query that counts to a hundred million occupies the only turn of long operations while others are refused.
    let long = json!({"query": "UNWIND range(1, 10000) AS a UNWIND range(1, 10000) AS b RETURN count(a + b)",
        "timeout_ms": 10_000});
    let (address, sent) = (house.address, key.clone());
    // Its result is not used. If another request has the turn when it arrives, it is sent again.
    std::thread::spawn(move || {
        let ask = || try_ask(address, "POST", "/v1/cypher", &[("x-api-key", &sent)], &long.to_string());
        while ask().is_ok_and(|reply| reply.is_some_and(|reply| reply.status == 429)) {}
    });
    let refused = (0..DRIPS).find_map(|_| {
        let reply = house.call(&key, "cypher", &json!({"query": "RETURN 1"}));
        std::thread::sleep(Duration::from_millis(5));
        (reply.status != 200).then_some(reply)
    });
    let refused = refused.expect("some request is refused");
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_busy"), "{}", refused.all());
    assert_eq!(refused.header("retry-after"), Some("1"));
    is_well(&house);
}

#[test]
fn requests_that_take_too_long_time_out() {
    let house = limited(RequestLimits { time: Duration::from_millis(1), ..RequestLimits::default() });
    let key = house.key("ours", "bob", &["admin"]);
    let long = json!({"query": "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b RETURN count(a + b)"});
    let mut progress = |_, _| ();
    let mut owner = Context::of(Scope::new("ours", "shop").unwrap(), &mut progress);
    house.engine.call(&mut owner, "put", json!({"type": "Service", "key": "a"})).unwrap();
    let refused = house.call(&key, "cypher", &long);
    assert_eq!((refused.status, refused.code().as_str()), (504, "timeout"), "{}", refused.all());
    assert!(refused.json()["error"]["hint"].is_string());
    is_well(&house);
}
