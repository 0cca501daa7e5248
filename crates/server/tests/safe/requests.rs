//! Requests for every operation, generated from the registry, and the facts that they use.

use crate::house::House;
use lukasa_engine::registry::fields::{FieldSyntax, fields};
use lukasa_engine::{Effect, Operation, operations};
use serde_json::{Map, Value, json};

/// Facts with `word` in fields that every caller may read, and `secret` in `note` and `content`.
fn facts(word: &str, secret: &str) -> Vec<Value> {
    let object = |kind: &str, key: &str| {
        json!({"object": {"type": kind, "key": key, "title": format!("{key} {word}"), "status": "open", "labels": ["core"],
            "properties": {"name": key, "note": secret, "line": 1, "end_line": 2, "language": "python", "content": secret},
            "evidence": {"quote": word}}})
    };
    let link = |kind: &str, src: &str, dst: &str| json!({"relationship": {"type": kind, "src": src, "dst": dst, "properties": {"note": secret}, "confidence": 0.9}});
    vec![
        object("Service", "web"),
        object("Service", "auth"),
        object("File", "shop.py"),
        object("Function", "shop.py::price"),
        object("Function", "shop.py::total"),
        object("Decision", "cents"),
        object("EPISODE", "e1"),
        object("ContextGraph", "shown"),
        link("CALLS", "Service:web", "Service:auth"),
        link("CONTAINS", "File:shop.py", "Function:shop.py::price"),
        link("CONTAINS", "File:shop.py", "Function:shop.py::total"),
        link("CALLS", "Function:shop.py::total", "Function:shop.py::price"),
        link("CONCERNS", "Decision:cents", "Function:shop.py::price"),
        link("INVOLVES", "EPISODE:e1", "Service:web"),
    ]
}

/// Fills a project with every kind of data.
pub fn furnish(house: &House, key: &str, word: &str, secret: &str) {
    // Projects are identified by their first transaction, so this one must not be the same in two tenants.
    house.ok(key, "batch", json!({"writes": [{"object": {"type": "Start", "key": "start"}}]}));
    house.ok(key, "batch", json!({"writes": facts(word, secret), "reason": word}));
    house.ok(key, "type_object", json!({"name": "Thing", "description": word}));
    house.ok(key, "type_relationship", json!({"name": "MEETS", "description": word}));
    house.ok(key, "branch_create", json!({"name": "dev", "description": word}));
    house.ok(key, "put", json!({"type": "Service", "key": "web", "title": word, "branch": "dev"}));
    house.ok(key, "branch_create", json!({"name": "calm"}));
    house.ok(key, "put", json!({"type": "Lake", "key": "calm", "title": word, "branch": "calm"}));
    house.ok(key, "branch_create", json!({"name": "pinned", "pinned": true}));
    house.ok(key, "release_create", json!({"name": "r1", "description": word}));
    house.ok(key, "tag_create", json!({"name": "t1", "release": "r1", "description": word}));
}

/// Adds a task and an episode.
pub fn plan(house: &House, key: &str, word: &str) {
    let task = json!({"task_id": "1", "title": word, "feature_id": "f1", "agent_id": "ann"});
    house.ok(key, "task_update", task);
    let episode = json!({"content": format!("ann saw {word}"), "agent_id": "ann", "entities": ["Service:web"]});
    house.ok(key, "episode_add", episode);
}

/// A valid request for a project with the facts above.
fn plain(operation: &Operation) -> Map<String, Value> {
    let of = operation.meta.name;
    let mut request = Map::new();
    for field in fields(operation).into_iter().filter(|field| field.required) {
        let name = field.name.as_str();
        let text = match (of, name) {
            ("branch_create" | "release_create" | "tag_create", "name") => "fresh",
            ("type_object" | "type_relationship", "name") => "Fresh",
            ("type_show", "name") => "Thing",
            ("branch_move", "name") => "pinned",
            (_, "name") if of.starts_with("branch") => "dev",
            (_, "name") if of.starts_with("release") => "r1",
            (_, "name") if of.starts_with("tag") => "t1",
            ("release_diff", _) | (_, "release") => "r1",
            ("merge", "source") => "calm",
            ("rename", "to") => "web2",
            ("agent_claim", "target_id") | ("agent_release", "claim_id") => "shop.py",
            ("feature_status", _) => "f1",
            ("remove_model", "model") => "gte-small",
            (_, "task_id") => "1",
            ("context_graph_usage", "context_graph_id") => "ContextGraph:shown",
            ("call_chain", "from") => "Function:shop.py::total",
            ("call_chain", "to") => "Function:shop.py::price",
            ("get_callers" | "get_callees" | "code_explain" | "index_file", _) => "Function:shop.py::price",
            ("find_pattern", _) => "all",
            ("cypher", "query") => "MATCH (n) RETURN n LIMIT 100",
            ("diff_since", _) => "tx:1",
            ("put", "type") => "Service",
            ("link", "type") => "CALLS",
            (_, "dst" | "to") => "Service:auth",
            (_, "query" | "question" | "task") => "price of the web",
            _ => "Service:web",
        };
        let value = match field.shape {
            FieldSyntax::Texts => json!([text]),
            FieldSyntax::Json if name == "writes" => json!([{"object": {"type": "Service", "key": "web"}}]),
            FieldSyntax::Json => json!({}),
            FieldSyntax::Number => json!(1),
            FieldSyntax::Flag | FieldSyntax::Switch => json!(true),
            FieldSyntax::Choice(choices) => json!(choices.last()),
            FieldSyntax::Text => json!(text),
        };
        request.insert(name.to_owned(), value);
    }
    if ["agent_claim", "agent_release", "agent_status"].contains(&of) {
        request.insert("agent_id".into(), json!("ann"));
    }
    if of == "episode_add" {
        request.insert("content".into(), json!("the price was wrong"));
    }
    if of == "remove_model" {
        request.insert("force".into(), json!(true));
    }
    if of == "semantic_slice" {
        request.insert("symbol".into(), json!("shop.py::price"));
    }
    if of == "build_context_graph" {
        request.insert("anchors".into(), json!(["Service:web"]));
    }
    if of == "diff" {
        request.insert("from".into(), json!("tx:1"));
    }
    request
}

/// Fields whose text names nothing.
const WORDS: [&str; 9] =
    ["reason", "description", "title", "subtype", "status", "derivation", "role_src", "role_dst", "discriminator"];

/// The valid request, and further ones that put each handle into each text field.
pub fn requests(operation: &Operation, handles: &[String]) -> Vec<Value> {
    let plain = plain(operation);
    let mut requests = vec![Value::Object(plain.clone())];
    for field in fields(operation).into_iter().filter(|field| !WORDS.contains(&field.name.as_str())) {
        for handle in handles {
            let value = match field.shape {
                FieldSyntax::Text => json!(handle),
                FieldSyntax::Texts => json!([handle]),
                FieldSyntax::Number if handle.starts_with("tx:") => json!(handle[3..].parse::<u64>().unwrap()),
                FieldSyntax::Json if field.name == "writes" => {
                    json!([{"end": {"ref": handle}}, {"relationship": {"type": "CALLS", "src": "Service:web", "dst": handle}}])
                }
                _ => continue,
            };
            let mut request = plain.clone();
            request.insert(field.name.clone(), value);
            requests.push(Value::Object(request));
        }
    }
    // Handles as parameters of a query.
    if operation.meta.name == "cypher" {
        requests.extend(handles.iter().map(|handle| {
            json!({"query": "MATCH (n) WHERE n.key = $it OR id(n) = $it RETURN n", "parameters": {"it": handle}})
        }));
    }
    requests
}

/// All operations, reads first, so that writes do not remove what later requests use.
pub fn in_order() -> Vec<&'static Operation> {
    let (reads, writes): (Vec<_>, Vec<_>) = operations().iter().partition(|o| o.meta.effect == Effect::Read);
    reads.into_iter().chain(writes).collect()
}
