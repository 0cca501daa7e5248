//! Operations called as surfaces call them, on every store.

use crate::test_engine::TestEngine;
use lukasa_engine::{Context, Engine, operations};
use lukasa_model::ErrorCode;
use lukasa_store::{Clock, Store};
use lukasa_testkit::FaultyStore;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn port(test: &TestEngine, reference: &str) -> Value {
    test.call("get", json!({"ref": reference})).map_or(Value::Null, |got| got["thing"]["properties"]["port"].clone())
}

#[test]
fn every_operation_is_named_once_and_explained() {
    let mut names: Vec<_> = operations().iter().map(|o| o.meta.name).collect();
    let mut verbs: Vec<_> = operations().iter().map(|o| o.meta.verb).collect();
    let count = names.len();
    for list in [&mut names, &mut verbs] {
        list.sort_unstable();
        list.dedup();
        assert_eq!(list.len(), count, "two operations share a name");
    }
    for o in operations() {
        assert!(!o.meta.summary.is_empty() && !o.meta.description.is_empty(), "{}", o.meta.name);
        assert!(o.meta.examples.iter().all(|e| e.starts_with(&format!("lukasa {}", o.meta.verb))), "{}", o.meta.name);
        for field in o.meta.positional {
            assert!(o.fields().contains_key(*field), "{} has no field {field}", o.meta.name);
        }
        for (name, field) in o.fields() {
            assert!(field.get("description").is_some(), "{}.{name} is not explained", o.meta.name);
        }
    }
}

#[test]
fn a_nul_character_anywhere_in_a_request_is_invalid_input_on_every_store() {
    for test in TestEngine::all() {
        test.ok("put", json!({"type": "Service", "key": "web"}));
        let refused = |name: &str, request: Value| {
            let error =
                test.call(name, request.clone()).map(|answer| panic!("{name} {request}: {answer}")).unwrap_err();
            let refusal = (error.code, error.kind.http_status());
            assert_eq!(refusal, (ErrorCode::NulByte, 400), "{name} {request} on {}: {error:?}", test.fixture.name);
        };
        for operation in operations() {
            for field in operation.fields().keys() {
                for value in [json!("a\0b"), json!(["x", "\0"]), json!({"a": {"b\0": 1}})] {
                    refused(operation.meta.name, json!({field: value}));
                }
            }
        }
        // Values that are made only when a query runs.
        let made = test.call("cypher", json!({"query": "MATCH (n) WHERE n.key = 'a\\u0000' RETURN n"}));
        assert!(made.map_or_else(|e| e.kind.http_status() == 400, |rows| rows["rows"] == json!([])));
    }
}

/// A tool with a name that agents depend on, the fields of its request, and those of its response: the path and type of
/// each. A `?` marks a field that is left out if there is nothing to report.
type KnownTool = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

const RECALLED: [(&str, &str); 13] = [
    ("episodes[].episode_id", "string"),
    ("episodes[].type", "string"),
    ("episodes[].content", "string"),
    ("episodes[].agent_id", "string"),
    ("episodes[].session_id", "string"),
    ("episodes[].task_id", "string"),
    ("episodes[].entities", "array"),
    ("episodes[].outcome", "string"),
    ("episodes[].metadata", "object"),
    ("episodes[].sensitive?", "bool"),
    ("episodes[].timestamp", "string"),
    ("episodes[].prev_episode_id", "string"),
    ("episodes[].score", "number"),
];

const KNOWN: [KnownTool; 22] = [
    (
        "episode_add",
        &["type", "content", "entities", "taskId", "outcome", "metadata", "sensitive"],
        &[("episode_id", "string"), ("summary", "string")],
    ),
    ("episode_recall", &["query", "agentId", "taskId", "types", "limit", "since", "profile"], &RECALLED),
    ("decision_query", &["query", "affectedFiles", "limit"], &RECALLED),
    (
        "reflect",
        &["taskId", "agentId", "limit"],
        &[
            ("reflection_id", "string"),
            ("insight", "string"),
            ("learnings_created", "number"),
            ("patterns[].confidence", "number"),
        ],
    ),
    (
        "agent_claim",
        &["targetId", "claimType", "intent", "taskId"],
        &[
            ("claim_id", "string"),
            ("status", "string"),
            ("conflict?", "object"),
            ("conflict.agent_id?", "string"),
            ("conflict.intent?", "string"),
            ("conflict.since?", "string"),
            ("target_version_sha", "string"),
        ],
    ),
    (
        "agent_status",
        &["agentId"],
        &[
            ("agent_id", "string"),
            ("active_claims[].claim_id", "string"),
            ("active_claims[].agent_id", "string"),
            ("active_claims[].session_id?", "string"),
            ("active_claims[].task_id", "string"),
            ("active_claims[].claim_type", "string"),
            ("active_claims[].target_id", "string"),
            ("active_claims[].intent", "string"),
            ("active_claims[].valid_from", "string"),
            ("active_claims[].target_version_sha", "string"),
            ("active_claims[].valid_to?", "string"),
            ("active_claims[].invalidation_reason?", "string"),
            ("active_claims[].project_id", "string"),
            ("recent_episodes[].episode_id", "string"),
            ("current_task", "string"),
        ],
    ),
    (
        "coordination_overview",
        &[],
        &[
            ("active_claims[].claim_id", "string"),
            ("stale_claims", "array"),
            ("conflicts[].target_id", "string"),
            ("agent_summary[].agent_id", "string"),
            ("agent_summary[].claim_count", "number"),
            ("agent_summary[].last_seen", "string"),
            ("total_claims", "number"),
        ],
    ),
    (
        "context_pack",
        &["task", "taskId", "agentId", "profile", "includeDecisions", "includeEpisodes", "includeLearnings"],
        &[
            ("summary", "string"),
            ("entry_point", "string"),
            ("core_symbols[].file", "string"),
            ("core_symbols[].start_line", "number"),
            ("core_symbols[].end_line", "number"),
            ("core_symbols[].code", "string"),
            ("core_symbols[].symbol_name", "string"),
            ("core_symbols[].ppr_score", "number"),
            ("core_symbols[].incoming_callers", "array"),
            ("core_symbols[].outgoing_calls", "array"),
            ("core_symbols[].valid_from", "string"),
            ("core_symbols[].relevant_decisions", "array"),
            ("core_symbols[].relevant_learnings", "array"),
            ("dependencies", "array"),
            ("decisions", "array"),
            ("learnings", "array"),
            ("active_blockers", "array"),
            ("plan", "object"),
            ("token_estimate", "number"),
            ("ppr_scores", "object"),
        ],
    ),
    (
        "semantic_slice",
        &["file", "symbol", "query", "context", "pprScore", "profile"],
        &[
            ("file", "string"),
            ("start_line", "number"),
            ("end_line", "number"),
            ("code", "string"),
            ("symbol_name", "string"),
            ("ppr_score", "number"),
            ("incoming_callers", "array"),
            ("outgoing_calls", "array"),
            ("valid_from", "string"),
            ("relevant_decisions", "array"),
            ("relevant_learnings", "array"),
        ],
    ),
    (
        "diff_since",
        &["since", "types", "profile"],
        &[
            ("summary", "string"),
            ("added[].scip_id", "string"),
            ("added[].type", "string"),
            ("added[].path", "string"),
            ("added[].symbol_name", "string"),
            ("added[].valid_from", "string"),
            ("removed[].valid_to", "string"),
            ("modified[].scip_id", "string"),
            ("tx_ids", "array"),
        ],
    ),
    ("index_file", &["path"], &[("summary", "string")]),
    ("index_directory", &["path"], &[("summary", "string")]),
    ("get_callers", &["ref"], &[("callers", "array")]),
    ("get_callees", &["ref"], &[("callees", "array")]),
    ("call_chain", &["from", "to"], &[("chains", "array")]),
    ("memory_linked_search", &["query"], &[("items[].ref", "string"), ("items[].memories[].session_id", "string")]),
    ("call_graph_stats", &[], &[("summary", "string")]),
    (
        "build_context_graph",
        &["anchors", "mode", "maxNodes", "maxDepth", "policies"],
        &[
            ("nodes[].node_id", "string"),
            ("nodes[].node_type", "string"),
            ("nodes[].name", "string"),
            ("nodes[].properties", "object"),
            ("edges[].edge_type", "string"),
            ("edges[].from_node", "string"),
            ("edges[].to_node", "string"),
            ("edges[].weight", "number"),
            ("governance.policies_applied", "array"),
        ],
    ),
    (
        "query_knowledge_graph",
        &["query", "nodeTypes", "limit"],
        &[
            ("nodes[].node_id", "string"),
            ("nodes[].node_type", "string"),
            ("nodes[].name", "string"),
            ("nodes[].properties", "object"),
        ],
    ),
    (
        "get_entity_neighbors",
        &["nodeId", "edgeTypes", "depth"],
        &[
            ("nodes[].node_id", "string"),
            ("nodes[].node_type", "string"),
            ("nodes[].name", "string"),
            ("nodes[].properties?", "object"),
            ("edges[].edge_type", "string"),
            ("edges[].from_node", "string"),
            ("edges[].to_node", "string"),
            ("edges[].weight", "number"),
        ],
    ),
    ("trace_decision_lineage", &["decisionId", "direction"], &[("upstream", "array"), ("downstream", "array")]),
    ("agent_release", &["claimId", "outcome"], &[("summary", "string"), ("invalidation_reason", "string")]),
];

/// The schema of what a path leads to.
fn described<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    let whole = |mut at: &'a Value| -> &'a Value {
        loop {
            let named = at["anyOf"].as_array().and_then(|all| all.iter().find(|one| one["$ref"].is_string()));
            let Some(name) = named.unwrap_or(at)["$ref"].as_str() else { return at };
            at = schema.pointer(name.trim_start_matches('#')).unwrap();
        }
    };
    let mut at = schema;
    for part in path.trim_end_matches('?').split('.') {
        at = whole(at)["properties"].get(part.trim_end_matches("[]"))?;
        if part.ends_with("[]") {
            at = &whole(at)["items"];
        }
    }
    Some(at)
}

/// The values at a path in an answer.
fn values_at<'a>(answer: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut at = vec![answer];
    for part in path.trim_end_matches('?').split('.') {
        at = at.into_iter().filter_map(|value| value.get(part.trim_end_matches("[]"))).collect();
        if part.ends_with("[]") {
            at = at.into_iter().flat_map(|value| value.as_array().into_iter().flatten()).collect();
        }
    }
    at
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[test]
fn tools_that_agents_know_have_the_names_and_fields_they_know() {
    let mut missing = Vec::new();
    for (name, asked, answered) in KNOWN {
        let Some(operation) = operations().iter().find(|operation| operation.meta.name == name) else {
            missing.push(name.to_owned());
            continue;
        };
        for field in asked {
            // `profile` is every tool's, whatever the operation.
            if *field != "profile" && operation.read(json!({*field: null})).is_err() {
                missing.push(format!("{name} is not asked by {field}"));
            }
        }
        let schema = operation.response.as_value();
        let unknown = answered.iter().filter(|(path, _)| described(schema, path).is_none());
        missing.extend(unknown.map(|(path, _)| format!("{name} does not describe {path}")));
    }
    assert_eq!(missing, [""; 0]);
}

#[test]
fn tools_that_agents_know_answer_with_their_fields() {
    for test in TestEngine::all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap().to_owned();
        let write = |text: &str| std::fs::write(folder.path().join("auth.py"), text).unwrap();
        write("def old_token(user):\n    return user\n\n\ndef login(user):\n    return user\n");
        test.ok("index_directory", json!({"path": path, "branch": "main"}));
        let head = test.ok("log", json!({}))["head"].as_u64().unwrap();
        test.fixture.clock.advance(60);
        write(
            "def clock():\n    return 1\n\n\ndef refresh_token(user):\n    return clock()\n\n\ndef login(user):\n    return \
             refresh_token(user)\n",
        );
        test.ok("index_directory", json!({"path": path, "branch": "main"}));
        let symbol = "auth.py::refresh_token";
        test.ok("task_update", json!({"task_id": "1", "title": "Refresh early", "agent_id": "ada"}));
        let edit =
            json!({"file": "auth.py", "diff_summary": "later", "lines_before": 1, "lines_after": 2, "reason": "r"});
        let own = |mut request: Value| {
            for (name, value) in [("agent_id", "ada"), ("session_id", "s1"), ("task_id", "1"), ("outcome", "partial")] {
                request[name] = json!(value);
            }
            request
        };
        for n in 0..4 {
            let content = format!("edit {n} of the token");
            test.ok("episode_add", own(json!({"type": "EDIT", "content": content, "metadata": edit})));
        }
        let early = json!({"type": "LEARNING", "content": "Refresh a minute early", "entities": [symbol],
            "metadata": {"confidence": 0.9}});
        test.ok("episode_add", early);
        test.ok(
            "decision_add",
            own(json!({"title": "Refresh the token on login", "rationale": "clocks differ", "entities": [symbol], "id": "d"})),
        );
        let claim = |agent: &str| json!({"target_id": symbol, "agent_id": agent, "intent": "refresh", "task_id": "1"});
        let mut held = String::new();
        let mut missing = Vec::new();
        for (name, _, fields) in KNOWN {
            let request = match name {
                "episode_add" => own(json!({"content": "the token is late", "entities": [symbol]})),
                "episode_recall" => json!({"query": "the token is late", "limit": 20}),
                "decision_query" => json!({"query": "refresh the token", "affected_files": ["auth.py"]}),
                "reflect" => json!({"task_id": "1"}),
                "agent_claim" => claim("ada"),
                "agent_release" => json!({"claim_id": held, "agent_id": "ada", "outcome": "it is early now"}),
                "agent_status" => json!({"agent_id": "ada"}),
                "coordination_overview" | "call_graph_stats" => json!({}),
                "context_pack" => {
                    json!({"task": "refresh token too late", "task_id": "1", "agent_id": "bob", "profile": "debug"})
                }
                "semantic_slice" => json!({"symbol": "refresh_token", "context": "full", "profile": "debug"}),
                "diff_since" => json!({"since": format!("tx:{head}"), "types": ["File", "Function"]}),
                "index_file" => json!({"path": format!("{path}/auth.py"), "branch": "main"}),
                "index_directory" => json!({"path": path, "branch": "main"}),
                "call_chain" => json!({"from": "login", "to": "clock"}),
                "get_callers" | "get_callees" => json!({"ref": "refresh_token"}),
                "memory_linked_search" | "query_knowledge_graph" => json!({"query": "refresh token"}),
                "build_context_graph" => json!({"anchors": [symbol], "include_properties": true}),
                "get_entity_neighbors" => json!({"node_id": symbol}),
                "trace_decision_lineage" => json!({"decision_id": "decision:d"}),
                _ => panic!("{name} is not asked"),
            };
            let answer = test.ok(name, request);
            if name == "agent_claim" {
                held = answer["claim_id"].as_str().unwrap().to_owned();
                let refused = test.ok(name, claim("bob"));
                assert!(
                    fields.iter().all(|(path, _)| !path.contains("conflict") || !values_at(&refused, path).is_empty())
                );
            }
            for (path, expected) in fields {
                let found = values_at(&answer, path);
                let right = found.iter().all(|value| kind(value) == *expected);
                if !right || found.is_empty() && !path.ends_with('?') {
                    missing.push(format!("{name}: {path} is {:?} in {answer}", found.first()));
                }
            }
        }
        assert_eq!(missing, [""; 0]);
    }
}

#[test]
fn requests_take_camel_case_and_refuse_what_does_not_exist() {
    for test in TestEngine::all() {
        test.ok("put", json!({"type": "Service", "key": "a", "expectedVersion": 0, "validFrom": "2026-01-01"}));
        let error = test.call("put", json!({"type": "Service", "key": "a", "tilte": "x"})).unwrap_err();
        assert_eq!((error.code, &error.details["field"]), (ErrorCode::UnknownField, &json!("tilte")));
        assert!(error.hint.unwrap().contains("title"));
        assert_eq!(test.call("get", json!([])).unwrap_err().code, ErrorCode::InvalidRequest);
        assert_eq!(test.call("get", json!({"ref": 7})).unwrap_err().code, ErrorCode::InvalidRequest);
        assert_eq!(test.call("frobnicate", json!({})).unwrap_err().code, ErrorCode::UnknownOperation);
    }
}

#[test]
fn a_patch_changes_only_the_version_it_saw() {
    for test in TestEngine::all() {
        let now = test.fixture.clock.advance(1);
        let later = |s: i64| lukasa_model::Time(now.0 + s * 1_000_000).to_string();
        test.ok("put", json!({"type": "Service", "key": "a", "set": ["port=1"], "valid_to": later(100)}));
        test.ok("patch", json!({"ref": "a", "set": ["port=2"]}));
        assert_eq!(port(&test, "a"), 2);
        test.fixture.clock.advance(200);
        assert_eq!(port(&test, "a"), Value::Null, "its end was not put off");
        test.ok("put", json!({"type": "Service", "key": "b", "set": ["port=1"]}));
        test.ok("put", json!({"type": "Service", "key": "b", "set": ["port=9"], "valid_from": later(1000)}));
        test.ok("patch", json!({"ref": "b", "set": ["port=2"]}));
        test.fixture.clock.advance(2000);
        assert_eq!(port(&test, "b"), 9, "what was planned still comes");
    }
}

#[test]
fn names_lead_on_after_renames_there_and_back() {
    for test in TestEngine::all() {
        test.ok(
            "batch",
            json!({"writes": [
            {"object": {"type": "Service", "key": "a", "properties": {"port": 1}}},
            {"object": {"type": "Service", "key": "web"}},
            {"object": {"type": "Episode", "key": "e"}},
            {"relationship": {"type": "CALLS", "src": "web", "dst": "a"}},
            {"relationship": {"type": "INVOLVES", "src": "e", "dst": "a"}}]}),
        );
        test.fixture.clock.advance(1);
        test.ok("rename", json!({"ref": "a", "to": "b"}));
        assert_eq!((port(&test, "Service:a"), port(&test, "b")), (json!(1), json!(1)));
        let got = test.ok("get", json!({"ref": "web"}));
        assert_eq!(got["links"][0]["other"]["key"], "b", "the call moved along");
        let got = test.ok("get", json!({"ref": "e"}));
        assert_eq!(got["links"][0]["other"]["renamed_to"], "Service:b", "what lasts shows the new name");
        assert_eq!(test.call("rename", json!({"ref": "web", "to": "b"})).unwrap_err().code, ErrorCode::KeyTaken);
        test.fixture.clock.advance(1);
        test.ok("rename", json!({"ref": "b", "to": "a"}));
        assert_eq!((port(&test, "Service:a"), port(&test, "Service:b")), (json!(1), json!(1)));
        test.ok("verify", json!({}));
    }
}

#[test]
fn restore_brings_back_what_was_ended() {
    for test in TestEngine::all() {
        let now = test.fixture.clock.advance(1_000);
        let earlier = |s: i64| lukasa_model::Time(now.0 - s * 1_000_000).to_string();
        test.ok("put", json!({"type": "Service", "key": "a", "set": ["port=1"]}));
        test.ok(
            "put",
            json!({"type": "Service", "key": "a", "set": ["port=7"], "valid_from": earlier(500),
            "valid_to": earlier(400), "only_this_period": true}),
        );
        test.fixture.clock.advance(1);
        test.ok("delete", json!({"ref": "a"}));
        test.fixture.clock.advance(1);
        test.ok("restore", json!({"ref": "a"}));
        assert_eq!(port(&test, "a"), 1, "not the backfill, though it was recorded later");
        test.fixture.clock.advance(1);
        test.ok("restore", json!({"ref": "a", "version_id": "2.0"}));
        assert_eq!(port(&test, "a"), 7);
        assert_eq!(
            test.call("restore", json!({"ref": "a", "version_id": "99.0"})).unwrap_err().code,
            ErrorCode::UnknownVersion
        );
    }
}

#[test]
fn a_store_that_takes_no_writes_is_still_read() {
    for test in TestEngine::all() {
        test.ok("put", json!({"type": "Service", "key": "a", "set": ["port=1"]}));
        let faulty = Arc::new(FaultyStore::new(Arc::clone(&test.fixture.store)));
        let clock = Arc::clone(&test.fixture.clock) as Arc<dyn Clock>;
        let engine = Engine::new(Arc::clone(&faulty) as Arc<dyn Store>, clock, std::env::temp_dir());
        let test = TestEngine { engine, ..test };
        faulty.broken.store(true, Ordering::SeqCst);
        for (name, request) in [
            ("put", json!({"type": "Service", "key": "a", "set": ["port=2"]})),
            ("patch", json!({"ref": "a", "set": ["port=2"]})),
            ("branch_create", json!({"name": "b"})),
            ("release_create", json!({"name": "1"})),
            ("type_object", json!({"name": "T"})),
        ] {
            let error = test.call(name, request).unwrap_err();
            assert_eq!((error.code, error.kind.http_status()), (ErrorCode::StoreBusy, 503), "{name}");
        }
        assert_eq!(port(&test, "a"), 1);
        assert_eq!(test.ok("log", json!({}))["head"], 1, "no refused write left a trace");
        faulty.broken.store(false, Ordering::SeqCst);
        test.ok("put", json!({"type": "Service", "key": "a", "set": ["port=2"]}));
        assert_eq!(port(&test, "a"), 2);
    }
}

#[test]
fn lists_come_in_pages_that_fit_together() {
    for test in TestEngine::all() {
        let writes: Vec<_> = (0..25).map(|i| json!({"object": {"type": "Service", "key": format!("k{i}")}})).collect();
        test.ok("batch", json!({"writes": writes}));
        let mut seen = Vec::new();
        let mut after = Value::Null;
        loop {
            let page = test.ok("list", json!({"limit": 10, "after": after}));
            assert_eq!(page["total"], 25);
            seen.extend(page["objects"].as_array().unwrap().iter().map(|o| o["key"].as_str().unwrap().to_string()));
            after = page["next"].clone();
            if after.is_null() {
                assert_eq!(page["truncated"], false);
                break;
            }
        }
        assert_eq!(seen, (0..25).map(|i| format!("k{i}")).collect::<Vec<_>>());
    }
}

#[test]
fn changes_since_a_moment_can_be_asked_for_by_type() {
    for test in TestEngine::all() {
        test.ok("put", json!({"type": "Service", "key": "a"}));
        test.fixture.clock.advance(1);
        test.ok("put", json!({"type": "Team", "key": "b"}));
        test.ok("patch", json!({"ref": "a", "title": "A"}));
        test.ok("link", json!({"type": "OWNS", "src": "b", "dst": "a"}));
        let all = test.ok("diff_since", json!({"since": "tx:1"}));
        assert_eq!(all["counts"], json!({"added": 2, "removed": 0, "modified": 1}));
        assert_eq!(
            (&all["summary"], &all["tx_ids"]),
            (&json!("3 changes: 2 added, 0 removed, 1 modified"), &json!([2, 3, 4]))
        );
        assert_eq!((&all["modified"][0]["ref"], &all["modified"][0]["title"]), (&json!("Service:a"), &json!("A")));
        assert_eq!(all["added"][1]["between"], json!(["Team:b", "Service:a"]));
        for (types, added, modified) in
            [(json!(["service"]), 0, 1), (json!(["Team", "OWNS"]), 2, 0), (json!(["Team,OWNS"]), 2, 0)]
        {
            let some = test.ok("diff_since", json!({"since": "tx:1", "types": types}));
            let listed = |field: &str| some[field].as_array().unwrap().len();
            assert_eq!((listed("added"), listed("modified"), listed("removed")), (added, modified, 0));
            assert_eq!((&some["counts"]["added"], &some["counts"]["modified"]), (&json!(added), &json!(modified)));
        }
        assert_eq!(test.fails("diff_since", json!({"since": "tx:1", "types": ["X"]})), "no_such_type");
        let few = test.ok("diff_since", json!({"since": "tx:1", "limit": 1}));
        assert_eq!((&few["truncated"], &few["counts"]), (&json!(true), &all["counts"]), "all are counted");
    }
}

#[test]
fn changes_of_code_are_listed_by_symbol_file_and_time() {
    for test in TestEngine::all() {
        let folder = tempfile::tempdir().unwrap();
        let index = |text: &str| {
            std::fs::write(folder.path().join("auth.py"), text).unwrap();
            test.ok("index_directory", json!({"path": folder.path().to_str().unwrap(), "branch": "main"}));
            test.fixture.clock.advance(60)
        };
        index("def check(word):\n    return word\n\n\ndef login(user):\n    return user\n");
        let head = test.ok("log", json!({}))["head"].as_u64().unwrap();
        let before = test.fixture.clock.advance(0);
        index("def login(user):\n    return page(user)\n\n\ndef page(user):\n    return user\n");
        let since = json!({"since": format!("tx:{head}"), "types": ["File", "Function"]});
        let out = test.ok("diff_since", since);
        let named = |field: &str| -> Vec<&str> {
            out[field].as_array().unwrap().iter().map(|row| row["scip_id"].as_str().unwrap()).collect()
        };
        assert_eq!((named("added"), named("removed")), (vec!["auth.py::page"], vec!["auth.py::check"]));
        assert_eq!(named("modified"), ["auth.py", "auth.py::login"]);
        let (added, removed) = (&out["added"][0], &out["removed"][0]);
        assert_eq!(
            (&added["type"], &added["path"], &added["symbol_name"], &added["ref"]),
            (&json!("Function"), &json!("auth.py"), &json!("page"), &json!("Function:auth.py::page"))
        );
        let time = |value: &Value| serde_json::from_value::<lukasa_model::Time>(value.clone()).unwrap();
        assert!(time(&added["valid_from"]) >= before && added["valid_to"].is_null(), "{added}");
        assert!(time(&removed["valid_from"]) < before && time(&removed["valid_to"]) >= before, "{removed}");
        assert!(out["modified"][0]["symbol_name"].is_null(), "a file is no symbol");
    }
}

#[test]
fn a_query_stops_when_its_caller_has_gone() {
    for test in TestEngine::all() {
        test.ok("put", json!({"type": "Service", "key": "a"}));
        let mut progress = |_, _| {};
        let mut context = Context::of(test.fixture.ledger.scope().clone(), &mut progress);
        context.stop.stop();
        let long = "UNWIND range(1, 10000) AS a UNWIND range(1, 10000) AS b RETURN count(a + b)";
        let stopped = test.engine.call(&mut context, "cypher", json!({"query": long, "timeout_ms": 10_000}));
        assert_eq!(stopped.unwrap_err().code, ErrorCode::Cancelled);
    }
}
