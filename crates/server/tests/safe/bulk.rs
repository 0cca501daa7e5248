//! Bulk export and import: what is exported can be imported, within size limits and with permission.

use crate::house::House;
use crate::requests::furnish;
use lukasa_server::http::ClientLimits;
use lukasa_testkit::http::{HttpReply, ask, connect, read_reply};
use lukasa_testkit::{Fixture, fixtures};
use serde_json::json;
use std::io::Write;

fn import(house: &House, key: &str, query: &str, body: &str) -> HttpReply {
    ask(house.address, "POST", &format!("/graph/import{query}"), &[("x-api-key", key)], body)
}

#[test]
fn an_export_can_be_imported() {
    for fixture in fixtures() {
        let house = House::of(fixture, None);
        let [one, two, three] = ["one", "two", "three"].map(|tenant| house.key(tenant, "ann", &["admin"]));
        furnish(&house, &one, "ordinary", "plain");
        let out = house.get(&one, "/graph/export");
        assert_eq!((out.status, out.header("content-type")), (200, Some("application/x-ndjson")));
        assert!(out.body.lines().count() >= 14, "{}", out.body);
        let done = import(&house, &two, "?reason=copy", &out.body);
        assert_eq!(done.status, 200, "{}", done.all());
        assert_eq!(done.json()["lines"], out.body.lines().count());
        assert_eq!(house.get(&two, "/graph/export").body, out.body);
        assert_eq!(house.ok(&two, "log", json!({}))["transactions"][0]["reason"], "copy");
        assert_eq!(import(&house, &two, "", &out.body).json()["transactions"], 0, "the same again writes nothing");
        // As one document, and as the whole log.
        let graph = house.get(&one, "/graph/export?format=node-link&as_of=release:r1");
        assert_eq!(graph.header("content-type"), Some("application/json"));
        assert_eq!(graph.json()["nodes"].as_array().unwrap().len(), 9);
        let dump = house.get(&one, "/graph/export?history=true").body;
        assert_eq!(import(&house, &three, "", &dump).status, 200);
        assert_eq!(house.get(&three, "/graph/export?history=true").body, dump);
    }
}

#[test]
fn scopes_paths_and_sizes_are_checked() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("there.txt"), "kept").unwrap();
    let house = House::with(Fixture::memory(), Some(home.path()), |site| {
        site.patience = ClientLimits { import_bytes: 10_000, ..ClientLimits::default() };
    });
    let [admin, reader, writer] =
        [&["admin"][..], &["graph:read"], &["graph:write"]].map(|scopes| house.key("ours", "bob", scopes));
    let line =
        |n: usize| json!({"object": {"type": "Service", "key": format!("s{n}"), "title": "x".repeat(50)}}).to_string();
    let lines: String = (0..20).map(|n| line(n) + "\n").collect();
    assert_eq!(import(&house, &reader, "", &lines).code(), "missing_scope");
    assert_eq!(import(&house, &writer, "", &lines).code(), "ok");
    assert_eq!(house.get(&writer, "/graph/export").code(), "missing_scope");
    assert_eq!(house.get(&reader, "/graph/export").body.lines().count(), 20);
    for query in ["?file=/etc/passwd", "?file=-", "?nonsense=1", "?batch_size=0"] {
        assert_eq!(import(&house, &writer, query, &lines).status, 400, "{query}");
    }
    let wrong = import(&house, &writer, "", &format!("{}\nnonsense\n", line(77)));
    assert_eq!((wrong.status, wrong.code().as_str()), (400, "malformed_line"));
    assert!(wrong.body.contains("line 2"), "{}", wrong.body);
    // Larger than the limit, with and without a `content-length`.
    let large: String = (100..400).map(|n| line(n) + "\n").collect();
    assert_eq!(import(&house, &writer, "", &large).code(), "request_too_large");
    let mut stream = connect(house.address);
    write!(
        stream,
        "POST /graph/import HTTP/1.1\r\nhost: localhost\r\nx-api-key: {writer}\r\ntransfer-encoding: chunked\r\n\
         connection: close\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n",
        large.len()
    )
    .unwrap();
    assert_eq!(read_reply(&mut stream).unwrap().code(), "request_too_large");
    assert_eq!(house.ok(&admin, "list", json!({"limit": 1}))["total"], 20, "nothing of it was written");
    // The operations themselves write no file into the served tree for any caller.
    for file in ["there.txt", "new.txt", "../out.txt", "/tmp/out.txt"] {
        let refused = house.call(&admin, "export", &json!({"file": file})).code();
        assert!(["file_exists", "forbidden_path"].contains(&refused.as_str()), "{file}: {refused}");
    }
    assert_eq!(std::fs::read_to_string(home.path().join("there.txt")).unwrap(), "kept");
    assert_eq!(house.call(&admin, "import", &json!({"file": "/etc/passwd"})).code(), "forbidden_path");
}
