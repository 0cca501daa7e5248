//! Sensitive properties are hidden from callers without the scope, by every operation and on every surface.

use crate::house::House;
use crate::requests::{furnish, in_order, requests};
use lukasa_engine::telemetry::metrics;
use lukasa_engine::{Context, Grants};
use lukasa_model::Scope;
use lukasa_testkit::{Fixture, fixtures};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Occurs only in sensitive properties.
const MARK: &str = "quartzmarmot";

/// All scopes except the one for sensitive properties.
const READER: [&str; 4] = ["graph:read", "graph:search:read", "graph:write", "types:write"];
const TRUSTED: [&str; 2] = ["graph:read", "graph:sensitive:read"];

fn mark_types(house: &House, key: &str) {
    let schema = json!({"type": "object", "properties": {
        "note": {"type": "string", "sensitive": true},
        // A nested mark applies to the whole property.
        "content": {"anyOf": [{"type": "string", "sensitive": true}, {"type": "number"}]}
    }});
    for name in ["Service", "File", "Function", "Decision", "EPISODE", "ContextGraph"] {
        let branchless = name == "ContextGraph";
        house.ok(key, "type_object", json!({"name": name, "schema": schema, "branchless": branchless}));
    }
    for name in ["CALLS", "CONTAINS", "CONCERNS", "INVOLVES"] {
        house.ok(key, "type_relationship", json!({"name": name, "schema": schema, "lasting": name == "INVOLVES"}));
    }
}

fn furnished(fixture: Fixture) -> (House, String) {
    // A small working tree, so that indexing is fast.
    static HOME: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("a.py"), "def one():\n    return 1\n").unwrap();
        home
    });
    let house = House::of(fixture, Some(HOME.path()));
    let admin = house.key("ours", "ann", &["admin"]);
    furnish(&house, &admin, "ordinary", MARK);
    house.fixture.clock.advance(5);
    // Both branches change a sensitive property, so that the merge conflicts on it.
    let note = |branch: &str, end: &str| json!({"ref": "Service:auth", "branch": branch, "properties": {"note": format!("{MARK}-{end}")}});
    house.ok(&admin, "patch", note("dev", "dev"));
    house.ok(&admin, "patch", note("main", "main"));
    (house, admin)
}

fn handles() -> Vec<String> {
    let all = [
        "Service:web",
        "Service:auth",
        "Function:shop.py::price",
        "Decision:cents",
        "EPISODE:e1",
        "note",
        "dev",
        "release:r1",
        "r1",
        "tag:t1",
        "tx:2",
        "tx:9",
        "2.0",
        "web",
    ];
    all.map(str::to_owned).to_vec()
}

#[test]
fn no_operation_shows_sensitive_values_without_the_scope() {
    for fixture in fixtures() {
        let kind = fixture.name;
        let (house, admin) = furnished(fixture);
        let reader = house.key("ours", "bob", &READER);
        // Caches the values in memory before they become sensitive.
        let query = json!({"query": "MATCH (n) WHERE n.note IS NOT NULL RETURN n.note, n"});
        assert!(house.call(&reader, "cypher", &query).body.contains(MARK));
        assert!(house.call(&reader, "search", &json!({"query": "web auth price"})).body.contains(MARK));
        mark_types(&house, &admin);
        let (mut asked, mut answered) = (0, 0);
        for operation in in_order() {
            let name = operation.meta.name;
            let mut all = requests(operation, &handles());
            if kind != "memory" {
                // The hiding is done above the stores, so for other stores one request per operation is enough.
                all.truncate(1);
            }
            all.extend(more(name));
            for request in all {
                let reply = house.call(&reader, name, &request);
                assert!(!reply.all().contains(MARK), "{kind}: {name} {request}\n{}", reply.all());
                asked += 1;
                answered += usize::from(reply.status == 200);
            }
        }
        let least = if kind == "memory" { (1_000, 300) } else { (80, 60) };
        assert!(asked > least.0 && answered > least.1, "{kind}: {answered} of {asked}");
        // The same requests do show the values to a caller with the scope.
        let house = {
            drop(house);
            let (house, admin) = furnished(Fixture::memory());
            mark_types(&house, &admin);
            house
        };
        let trusted = house.key("ours", "eve", &TRUSTED);
        for (name, request) in [
            ("get", json!({"ref": "Service:web"})),
            ("list", json!({"type": "Service"})),
            ("history", json!({"ref": "Service:auth", "changes": true})),
            ("diff", json!({"from": "release:r1"})),
        ] {
            let reply = house.call(&trusted, name, &request);
            assert!(reply.body.contains(MARK), "{name}: {}", reply.body);
        }
    }
}

/// Requests that reach values in special ways.
fn more(operation: &str) -> Vec<Value> {
    let expand = |more: Value| {
        let mut request = json!({"roots": ["Service:web", "Service:auth", "EPISODE:e1"]});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request
    };
    match operation {
        "cypher" => [
            "MATCH (n) RETURN n.note, n.content, properties(n), keys(n)",
            "MATCH ()-[r]->() RETURN r, r.note, properties(r)",
            "MATCH (n) WHERE n.note STARTS WITH 'quartz' RETURN n.key, n.note",
            "MATCH (n) RETURN collect(n.note), max(n.note), n {.*}",
            "MATCH p = (a)-[r*1..2]->(b) RETURN p",
            "MATCH (n) RETURN toUpper(n.note), size(n.note), n['note']",
        ]
        .map(|query| json!({"query": query}))
        .to_vec(),
        "expand" => vec![
            expand(json!({"include": {"object": ["properties.note", "properties"], "edge": ["properties.note"]}})),
            expand(json!({"include": {"object": ["title", "properties.note"]}})),
            expand(json!({"filters": {"node": {"properties.note": {"contains": "quartz"}}}})),
        ],
        "history" => vec![
            json!({"ref": "Service:auth", "changes": true, "all_branches": true}),
            json!({"ref": "Service:web", "changes": true, "branch": "dev"}),
        ],
        "merge" => vec![json!({"source": "dev", "dry_run": true}), json!({"source": "dev"})],
        "diff" => vec![json!({"from_branch": "main", "to_branch": "dev"}), json!({"from": "tx:1", "to": "tx:5"})],
        "search" => vec![
            json!({"query": "web auth price cents", "limit": 40}),
            json!({"query": "service web", "include_debug": true}),
            json!({"query": "shop price", "include": ["note", "content"]}),
        ],
        "patch" => vec![
            // The schema refuses this, and the error gives the reason.
            json!({"ref": "Service:web", "properties": {"note": 7}}),
            json!({"ref": "Service:web", "properties": {"note": null, "line": 3}}),
        ],
        "graph_query" => vec![json!({"question": "what is the note of web"}), json!({"query": "note of service web"})],
        "get" => vec![json!({"ref": "Service:web", "as_of": "tx:2"}), json!({"ref": "Service:auth", "branch": "dev"})],
        "list" => vec![json!({"limit": 1_000}), json!({"as_of": "tx:2"})],
        _ => vec![],
    }
}

#[test]
fn answers_list_the_redacted_fields_and_they_are_counted() {
    let (house, admin) = furnished(Fixture::memory());
    mark_types(&house, &admin);
    let [reader, trusted] = [&READER[..], &TRUSTED[..]].map(|scopes| house.key("ours", "bob", scopes));
    let redacted = || metrics().redacted.now(&[]);
    let before = redacted();
    let got = house.ok(&reader, "get", json!({"ref": "Service:web"}));
    assert_eq!(got["thing"]["redacted"], json!(["content", "note"]));
    assert_eq!((&got["thing"]["properties"]["name"], got["thing"]["properties"].get("note")), (&json!("web"), None));
    assert!(house.ok(&trusted, "get", json!({"ref": "Service:web"}))["thing"].get("redacted").is_none());
    assert!(redacted() >= before + 2.0);
    let found = house.ok(&reader, "search", json!({"query": "service web"}));
    let item = found["items"].as_array().unwrap().iter().find(|item| item["ref"] == "Service:web").unwrap();
    let truncated: Vec<_> = item["truncated_fields"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(truncated.contains(&"note") && truncated.contains(&"content"), "{item}");
    // A search for the hidden text finds nothing, even for an administrator.
    let admin_finds = house.ok(&admin, "search", json!({"query": MARK, "channels": ["lexical"]}));
    assert_eq!(admin_finds["items"].as_array().unwrap().len(), 0, "{admin_finds}");
    let conflict = house.call(&reader, "merge", &json!({"source": "dev"}));
    assert_eq!(conflict.code(), "merge_conflict");
    assert!(conflict.body.contains("[sensitive]") && conflict.body.contains("/properties/note"), "{}", conflict.body);
    let text = house.get(&admin, "/metrics").body;
    let line = text.lines().find(|line| line.starts_with("graph_search_sensitive_fields_redacted_total ")).unwrap();
    assert!(line.split(' ').nth(1).unwrap().parse::<u64>().unwrap() >= 3, "{line}");
}

#[test]
fn a_write_without_the_scope_keeps_sensitive_values() {
    let (house, admin) = furnished(Fixture::memory());
    mark_types(&house, &admin);
    let reader = house.key("ours", "bob", &READER);
    house.ok(&reader, "patch", json!({"ref": "Service:web", "title": "Web"}));
    house.ok(&reader, "rename", json!({"ref": "Service:web", "to": "front"}));
    let kept = house.ok(&admin, "get", json!({"ref": "Service:front"}));
    assert_eq!((&kept["thing"]["properties"]["note"], &kept["thing"]["title"]), (&json!(MARK), &json!("Web")));
}

#[test]
fn exports_omit_sensitive_values_and_dumps_need_the_scope() {
    for fixture in fixtures() {
        let (house, admin) = furnished(fixture);
        mark_types(&house, &admin);
        let export = |scopes: &[&str], request: Value| {
            let (mut out, mut quiet) = (Vec::new(), |_, _| ());
            let mut context = Context::of(Scope::new("ours", "shop").unwrap(), &mut quiet);
            context.grants = Grants::of(scopes.iter().copied());
            context.output = Some(&mut out);
            let done = house.engine.call(&mut context, "export", request);
            done.map(|_| String::from_utf8(out).unwrap()).map_err(|e| e.code.name())
        };
        for format in ["jsonl", "node-link"] {
            let exported = export(&READER, json!({"format": format})).unwrap();
            assert!(!exported.contains(MARK) && exported.contains("ordinary"), "{exported}");
            assert!(export(&TRUSTED, json!({"format": format})).unwrap().contains(MARK));
        }
        assert_eq!(export(&READER, json!({"history": true})), Err("missing_scope"));
        assert!(export(&TRUSTED, json!({"history": true})).unwrap().contains(MARK));
    }
}
