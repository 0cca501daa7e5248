//! Operations through the one way in, on every store.

use crate::desk::Desk;
use lukasa_engine::{Engine, operations};
use lukasa_store::{Clock, Store};
use lukasa_testkit::FaultyStore;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn port(desk: &Desk, reference: &str) -> Value {
    desk.call("get", json!({"ref": reference})).map_or(Value::Null, |got| got["thing"]["properties"]["port"].clone())
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

/// Tools that agents know by these names, with the fields they are asked by and answer with.
const KNOWN: [(&str, &[&str], &[&str]); 22] = [
    (
        "episode_add",
        &["type", "content", "entities", "taskId", "outcome", "metadata", "sensitive"],
        &["episode_id", "summary"],
    ),
    ("episode_recall", &["query", "agentId", "taskId", "types", "limit", "since", "profile"], &["episodes"]),
    ("decision_query", &["query", "affectedFiles", "limit"], &["episodes"]),
    ("reflect", &["taskId", "agentId", "limit"], &["reflection_id", "insight", "learnings_created", "patterns"]),
    (
        "agent_claim",
        &["targetId", "claimType", "intent", "taskId"],
        &["claim_id", "status", "conflict", "target_version_sha"],
    ),
    ("agent_release", &["claimId", "outcome"], &["summary"]),
    ("agent_status", &["agentId"], &["agent_id", "active_claims", "recent_episodes", "current_task"]),
    ("coordination_overview", &[], &["active_claims", "stale_claims", "conflicts", "agent_summary", "total_claims"]),
    (
        "context_pack",
        &["task", "taskId", "agentId", "profile", "includeDecisions", "includeEpisodes", "includeLearnings"],
        &[
            "summary",
            "entry_point",
            "core_symbols",
            "dependencies",
            "decisions",
            "learnings",
            "active_blockers",
            "plan",
            "token_estimate",
        ],
    ),
    ("semantic_slice", &["file", "symbol", "query", "context"], &["summary"]),
    ("diff_since", &["since", "types"], &["summary", "added", "removed", "modified", "tx_ids"]),
    ("index_file", &["path"], &["summary"]),
    ("index_directory", &["path"], &["summary"]),
    ("get_callers", &["ref"], &["summary"]),
    ("get_callees", &["ref"], &["summary"]),
    ("call_chain", &["from", "to"], &["summary"]),
    ("memory_linked_search", &["query"], &["items"]),
    ("call_graph_stats", &[], &["summary"]),
    ("build_context_graph", &["anchors", "mode", "maxNodes", "maxDepth"], &["nodes", "edges"]),
    ("query_knowledge_graph", &["query", "nodeTypes", "limit"], &["nodes"]),
    ("get_entity_neighbors", &["nodeId", "edgeTypes", "depth"], &["nodes"]),
    ("trace_decision_lineage", &["decisionId", "direction"], &["upstream", "downstream"]),
];

#[test]
fn tools_that_agents_know_have_the_names_and_fields_they_know() {
    let mut missing = Vec::new();
    for (name, asked, told) in KNOWN {
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
        let fields = operation.response.as_value()["properties"].as_object().unwrap();
        missing.extend(told.iter().filter(|f| !fields.contains_key(**f)).map(|f| format!("{name} does not tell {f}")));
    }
    assert_eq!(missing, [""; 0]);
}

#[test]
fn requests_take_camel_case_and_refuse_what_does_not_exist() {
    for desk in Desk::all() {
        desk.ok("put", json!({"type": "Service", "key": "a", "expectedVersion": 0, "validFrom": "2026-01-01"}));
        let error = desk.call("put", json!({"type": "Service", "key": "a", "tilte": "x"})).unwrap_err();
        assert_eq!((error.code, &error.details["field"]), ("unknown_field", &json!("tilte")));
        assert!(error.hint.unwrap().contains("title"));
        assert_eq!(desk.call("get", json!([])).unwrap_err().code, "invalid_request");
        assert_eq!(desk.call("get", json!({"ref": 7})).unwrap_err().code, "invalid_request");
        assert_eq!(desk.call("frobnicate", json!({})).unwrap_err().code, "unknown_operation");
    }
}

#[test]
fn a_patch_changes_only_the_version_it_saw() {
    for desk in Desk::all() {
        let now = desk.fixture.clock.advance(1);
        let later = |s: i64| lukasa_model::Time(now.0 + s * 1_000_000).to_string();
        desk.ok("put", json!({"type": "Service", "key": "a", "set": ["port=1"], "valid_to": later(100)}));
        desk.ok("patch", json!({"ref": "a", "set": ["port=2"]}));
        assert_eq!(port(&desk, "a"), 2);
        desk.fixture.clock.advance(200);
        assert_eq!(port(&desk, "a"), Value::Null, "its end was not put off");
        desk.ok("put", json!({"type": "Service", "key": "b", "set": ["port=1"]}));
        desk.ok("put", json!({"type": "Service", "key": "b", "set": ["port=9"], "valid_from": later(1000)}));
        desk.ok("patch", json!({"ref": "b", "set": ["port=2"]}));
        desk.fixture.clock.advance(2000);
        assert_eq!(port(&desk, "b"), 9, "what was planned still comes");
    }
}

#[test]
fn names_lead_on_after_renames_there_and_back() {
    for desk in Desk::all() {
        desk.ok(
            "batch",
            json!({"writes": [
            {"object": {"type": "Service", "key": "a", "properties": {"port": 1}}},
            {"object": {"type": "Service", "key": "web"}},
            {"object": {"type": "Episode", "key": "e"}},
            {"relationship": {"type": "CALLS", "src": "web", "dst": "a"}},
            {"relationship": {"type": "INVOLVES", "src": "e", "dst": "a"}}]}),
        );
        desk.fixture.clock.advance(1);
        desk.ok("rename", json!({"ref": "a", "to": "b"}));
        assert_eq!((port(&desk, "Service:a"), port(&desk, "b")), (json!(1), json!(1)));
        let got = desk.ok("get", json!({"ref": "web"}));
        assert_eq!(got["links"][0]["other"]["key"], "b", "the call moved along");
        let got = desk.ok("get", json!({"ref": "e"}));
        assert_eq!(got["links"][0]["other"]["renamed_to"], "Service:b", "what lasts shows the new name");
        assert_eq!(desk.call("rename", json!({"ref": "web", "to": "b"})).unwrap_err().code, "key_taken");
        desk.fixture.clock.advance(1);
        desk.ok("rename", json!({"ref": "b", "to": "a"}));
        assert_eq!((port(&desk, "Service:a"), port(&desk, "Service:b")), (json!(1), json!(1)));
        desk.ok("verify", json!({}));
    }
}

#[test]
fn restore_brings_back_what_was_ended() {
    for desk in Desk::all() {
        let now = desk.fixture.clock.advance(1_000);
        let earlier = |s: i64| lukasa_model::Time(now.0 - s * 1_000_000).to_string();
        desk.ok("put", json!({"type": "Service", "key": "a", "set": ["port=1"]}));
        desk.ok(
            "put",
            json!({"type": "Service", "key": "a", "set": ["port=7"], "valid_from": earlier(500),
            "valid_to": earlier(400), "only_this_period": true}),
        );
        desk.fixture.clock.advance(1);
        desk.ok("delete", json!({"ref": "a"}));
        desk.fixture.clock.advance(1);
        desk.ok("restore", json!({"ref": "a"}));
        assert_eq!(port(&desk, "a"), 1, "not the backfill, though it was recorded later");
        desk.fixture.clock.advance(1);
        desk.ok("restore", json!({"ref": "a", "version_id": "2.0"}));
        assert_eq!(port(&desk, "a"), 7);
        assert_eq!(
            desk.call("restore", json!({"ref": "a", "version_id": "99.0"})).unwrap_err().code,
            "unknown_version"
        );
    }
}

#[test]
fn a_store_that_takes_no_writes_is_still_read() {
    for desk in Desk::all() {
        desk.ok("put", json!({"type": "Service", "key": "a", "set": ["port=1"]}));
        let faulty = Arc::new(FaultyStore::new(Arc::clone(&desk.fixture.store)));
        let clock = Arc::clone(&desk.fixture.clock) as Arc<dyn Clock>;
        let engine = Engine::new(Arc::clone(&faulty) as Arc<dyn Store>, clock, std::env::temp_dir());
        let desk = Desk { engine, ..desk };
        faulty.broken.store(true, Ordering::SeqCst);
        for (name, request) in [
            ("put", json!({"type": "Service", "key": "a", "set": ["port=2"]})),
            ("patch", json!({"ref": "a", "set": ["port=2"]})),
            ("branch_create", json!({"name": "b"})),
            ("release_create", json!({"name": "1"})),
            ("type_object", json!({"name": "T"})),
        ] {
            let error = desk.call(name, request).unwrap_err();
            assert_eq!((error.code, error.kind.http_status()), ("store_busy", 503), "{name}");
        }
        assert_eq!(port(&desk, "a"), 1);
        assert_eq!(desk.ok("log", json!({}))["head"], 1, "no refused write left a trace");
        faulty.broken.store(false, Ordering::SeqCst);
        desk.ok("put", json!({"type": "Service", "key": "a", "set": ["port=2"]}));
        assert_eq!(port(&desk, "a"), 2);
    }
}

#[test]
fn lists_come_in_pages_that_fit_together() {
    for desk in Desk::all() {
        let writes: Vec<_> = (0..25).map(|i| json!({"object": {"type": "Service", "key": format!("k{i}")}})).collect();
        desk.ok("batch", json!({"writes": writes}));
        let mut seen = Vec::new();
        let mut after = Value::Null;
        loop {
            let page = desk.ok("list", json!({"limit": 10, "after": after}));
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
    for desk in Desk::all() {
        desk.ok("put", json!({"type": "Service", "key": "a"}));
        desk.fixture.clock.advance(1);
        desk.ok("put", json!({"type": "Team", "key": "b"}));
        desk.ok("patch", json!({"ref": "a", "title": "A"}));
        desk.ok("link", json!({"type": "OWNS", "src": "b", "dst": "a"}));
        let all = desk.ok("diff_since", json!({"since": "tx:1"}));
        assert_eq!((&all["added"], &all["modified"], &all["tx_ids"]), (&json!(2), &json!(1), &json!([2, 3, 4])));
        for (types, added, modified) in
            [(json!(["service"]), 0, 1), (json!(["Team", "OWNS"]), 2, 0), (json!(["X"]), 0, 0)]
        {
            let some = desk.ok("diff_since", json!({"since": "tx:1", "types": types}));
            let listed = some["changes"].as_array().unwrap().len();
            assert_eq!(
                (&some["added"], &some["modified"], listed),
                (&json!(added), &json!(modified), added + modified)
            );
        }
    }
}
