//! Two tenants in one store with the same names for everything: no answer to one contains anything of the other.

use crate::house::House;
use crate::repository::dump;
use crate::requests::{furnish, in_order, plan, requests};
use lukasa_testkit::http::{ask, connect};
use lukasa_testkit::{Fixture, fixtures};
use serde_json::{Value, json};
use std::io::{Read, Write};

/// Occurs in everything of the other tenant, and never in a request.
const MARK: &str = "quartzmarmot";

/// Operations that read or write files of the machine or run programs, which this test leaves out.
const NEEDS_PLACES: [&str; 8] =
    ["audit_export", "backup", "export", "import", "import_scip", "index_file", "restore_backup", "test_run"];

/// Ids and names that occur only in the other tenant.
fn handles(house: &House, theirs: &str) -> Vec<String> {
    house.ok(
        theirs,
        "batch",
        json!({"client_id": "c-77", "git_commit": "0123456789abcdef0123456789abcdef01234567",
        "writes": [{"object": {"type": "Vault", "key": "gold", "title": MARK, "properties": {"note": MARK}}}]}),
    );
    house.ok(theirs, "branch_create", json!({"name": "under"}));
    house.ok(theirs, "release_create", json!({"name": "night", "description": MARK}));
    house.ok(theirs, "tag_create", json!({"name": "moon", "release": "night", "description": MARK}));
    house.ok(theirs, "type_object", json!({"name": "Vault", "description": MARK}));
    let gold = house.ok(theirs, "get", json!({"ref": "Vault:gold"}));
    let web = house.ok(theirs, "get", json!({"ref": "Service:web"}));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let head = house.ok(theirs, "log", json!({}))["head"].as_u64().unwrap();
    let release = house.ok(theirs, "release_show", json!({"name": "night"}));
    assert!(release.to_string().contains(MARK), "{release}");
    vec![
        text(&gold["thing"]["id"]),
        text(&web["thing"]["id"]),
        text(&web["links"][0]["id"]),
        text(&gold["thing"]["version_id"]),
        "Vault:gold".into(),
        "Vault".into(),
        "under".into(),
        "night".into(),
        "moon".into(),
        "release:night".into(),
        "tag:moon".into(),
        "commit:0123456789abcdef0123456789abcdef01234567".into(),
        "c-77".into(),
        format!("tx:{head}"),
        text(&house.ok(theirs, "traverse", json!({"roots": ["Service:web"], "limit": 1}))["next_cursor"]),
    ]
}

struct Both {
    house: House,
    home: tempfile::TempDir,
    ours: String,
    handles: Vec<String>,
}

const EVERYTHING: [&str; 1] = ["admin"];

fn both(fixture: Fixture, with_other: bool) -> Both {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("a.py"), "def one():\n    return 1\n").unwrap();
    let house = House::of(fixture, Some(home.path()));
    let ours = house.key("ours", "bob", &EVERYTHING);
    let mut names = Vec::new();
    if with_other {
        let theirs = house.key("theirs", MARK, &EVERYTHING);
        furnish(&house, &theirs, MARK, MARK);
        plan(&house, &theirs, MARK);
        names = handles(&house, &theirs);
        // A second project whose name must not be revealed.
        let put = json!({"type": "Service", "key": "x"}).to_string();
        let headers = [("x-api-key", theirs.as_str()), ("x-project-id", "quartzmarmot-plans")];
        assert_eq!(ask(house.address, "POST", "/v1/put", &headers, &put).status, 200);
    }
    furnish(&house, &ours, "ordinary", "plain");
    plan(&house, &ours, "ordinary");
    Both { house, home, ours, handles: names }
}

#[test]
fn no_request_reads_or_changes_the_other_tenant() {
    for fixture in fixtures() {
        let kind = fixture.name;
        let Both { house, home: _home, ours, handles } = both(fixture, true);
        let before = dump(&house, "theirs");
        assert!(before.matches(MARK).count() > 20, "there is something to find");
        let (mut asked, mut refused) = (0, Vec::new());
        for operation in in_order() {
            let name = operation.meta.name;
            for (at, request) in requests(operation, &handles).into_iter().enumerate() {
                let reply = house.call(&ours, name, &request);
                assert!(!reply.all().contains(MARK), "{kind}: {name} {request}\n{}", reply.all());
                assert!(reply.status < 500 || reply.status == 501, "{kind}: {name} {request}\n{}", reply.all());
                if at == 0 && reply.status != 200 {
                    refused.push(name);
                }
                asked += 1;
            }
        }
        refused.sort_unstable();
        assert_eq!(refused, NEEDS_PLACES, "{kind}: every other operation was really asked");
        assert!(asked > 1_000, "{asked}");
        assert_eq!(dump(&house, "theirs"), before, "{kind}: nothing was written there");
        assert!(dump(&house, "ours").len() > 1_000);
    }
}

#[test]
fn answers_do_not_depend_on_the_other_tenant() {
    let there = both(Fixture::memory(), true);
    let alone = both(Fixture::memory(), false);
    let mut compared = 0;
    for operation in in_order() {
        let name = operation.meta.name;
        for request in requests(operation, &there.handles) {
            let [with, without] = [&there, &alone].map(|both| {
                let reply = both.house.call(&both.ours, name, &request);
                // What a search skips, and how long anything takes, depends on the load of the machine.
                let busy = ["graph:search:read", "graph:admin:audit"].contains(&operation.meta.scope)
                    || !operation.meta.places.is_empty()
                    || !operation.meta.files.is_empty()
                    // The token count of random ids varies.
                    || name == "build_context_graph";
                if busy { reply.code() } else { plainly(&reply.all(), both) }
            });
            assert_eq!(with, without, "{name} {request}");
            compared += 1;
        }
    }
    assert!(compared > 1_000, "{compared}");
}

/// The text without parts that differ from run to run.
fn plainly(text: &str, both: &Both) -> String {
    let mut plain = text.replace(&both.home.path().display().to_string(), "home");
    plain = plain.replace(&both.house.address.to_string(), "address");
    let mut out = String::new();
    for word in plain.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c)) {
        let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        // Ids, digests and sealed cursors are long; durations are fractions.
        let drawn = (bare.len() >= 20 && bare.chars().any(|c| c.is_ascii_digit())) || is_event_cursor(bare);
        let measured = bare.contains('.') && bare.parse::<f64>().is_ok();
        out += if drawn || measured { "…" } else { word };
    }
    out.lines().filter(|line| !line.starts_with("date:") && !line.starts_with("content-length")).collect()
}

/// `42.<16 hexadecimal digits>`: a transaction and the start of its hash.
fn is_event_cursor(word: &str) -> bool {
    let hash = |text: &str| text.len() == 16 && text.chars().all(|c| c.is_ascii_hexdigit());
    word.split_once('.').is_some_and(|(tx, digest)| tx.parse::<u64>().is_ok() && hash(digest))
}

#[test]
fn a_cursor_of_one_project_is_refused_by_another_with_the_same_beginning() {
    for fixture in fixtures() {
        let house = House::of(fixture, None);
        let [ours, theirs] = ["ours", "theirs"].map(|tenant| house.key(tenant, "bob", &EVERYTHING));
        furnish(&house, &theirs, "ordinary", "plain");
        // Restores every transaction of one tenant in the other, byte for byte.
        let copy = dump(&house, "theirs");
        house.fixture.project("ours", "shop").restore(&mut copy.as_bytes(), &mut |_, _| ()).unwrap();
        let request = json!({"roots": ["Service:web"], "limit": 1});
        let cursor = house.ok(&theirs, "traverse", request.clone())["next_cursor"].clone();
        let mut on = request.as_object().unwrap().clone();
        on.insert("cursor".into(), cursor);
        assert_eq!(house.call(&theirs, "traverse", &Value::Object(on.clone())).code(), "ok");
        assert_eq!(house.call(&ours, "traverse", &Value::Object(on)).code(), "invalid_cursor");
    }
}

#[test]
fn mcp_events_and_metrics_show_nothing_of_the_other_tenant() {
    for fixture in fixtures() {
        let Both { house, home: _home, ours, handles } = both(fixture, true);
        let theirs = house.key("theirs", MARK, &EVERYTHING);
        let (mine, other) = (house.session(&ours, "agent"), house.session(&theirs, MARK));
        let send = |session: &str, method: &str, params: Value| {
            let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
            house.say(&ours, Some(session), &message)
        };
        let seen = |what: &str, text: &str| assert!(!text.contains(MARK), "{what}: {text}");
        for operation in in_order() {
            for request in requests(operation, &handles).into_iter().take(4) {
                let name = operation.meta.name;
                let mut arguments = request.as_object().unwrap().clone();
                arguments.insert("profile".into(), json!("debug"));
                let reply = send(&mine, "tools/call", json!({"name": name, "arguments": arguments}));
                assert_eq!(reply.status, 200, "{}", reply.all());
                seen(name, &reply.all());
            }
        }
        for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
            seen(method, &send(&mine, method, json!({})).all());
        }
        for handle in handles.iter().map(String::as_str).chain(["Service:web", "web"]) {
            for folder in ["object", "symbol", "history"] {
                let uri = format!("lukasa://project/{folder}/{}", handle.replace(':', "%3A"));
                seen(&uri, &send(&mine, "resources/read", json!({"uri": uri})).all());
            }
            let wanted = json!({"ref": {"type": "ref/resource", "uri": "lukasa://project/symbol/{symbol}"},
                "argument": {"name": "symbol", "value": handle}});
            seen("completion", &send(&mine, "completion/complete", wanted).all());
        }
        for path in ["overview", "health", "readiness", "branches", "releases", "log"] {
            let reply = send(&mine, "resources/read", json!({"uri": format!("lukasa://project/{path}")}));
            assert!(reply.body.contains("contents"), "{path}: {}", reply.body);
            seen(path, &reply.all());
        }
        // A session id of another caller is useless.
        let stolen = send(&other, "tools/call", json!({"name": "get", "arguments": {"ref": "Service:web"}}));
        assert_eq!((stolen.status, stolen.code().as_str()), (404, "unknown_session"));
        let ended = ask(house.address, "DELETE", "/mcp", &[("x-api-key", &ours), ("mcp-session-id", &other)], "");
        assert_eq!(ended.status, 404);
        for path in ["/metrics", "/.well-known/agent-card.json", "/openapi.json", "/readyz", "/healthz", "/"] {
            seen(path, &house.get(&ours, path).all());
        }
        // All events from the beginning to the last of ours.
        let head = house.ok(&ours, "log", json!({}))["head"].as_u64().unwrap();
        let mut stream = connect(house.address);
        write!(
            stream,
            "GET /v1/events HTTP/1.1\r\nhost: {}\r\nx-api-key: {ours}\r\nlast-event-id: 0\r\n\r\n",
            house.address
        )
        .unwrap();
        let (mut received, mut part) = (String::new(), [0; 4_096]);
        while !received.contains(&format!("id: {head}.")) {
            let read = stream.read(&mut part).unwrap();
            assert!(read > 0, "the stream goes on: {received}");
            received += &String::from_utf8_lossy(&part[..read]);
        }
        seen("events", &received);
    }
}
