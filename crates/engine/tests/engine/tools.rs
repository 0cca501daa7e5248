//! The answers to a realistic mix of tool calls are small in the compact profile.

use crate::test_engine::TestEngine;
use lukasa_engine::{registry, response_budget};
use lukasa_search::count::count;
use serde_json::{Value, json};
use std::path::Path;

/// The requests of an agent in an hour of work on this crate.
const MIX: [(&str, &str); 50] = [
    ("context_pack", r#"{"task": "branches merge twice when the base moved"}"#),
    ("context_pack", r#"{"task": "add a hint to errors about unknown fields"}"#),
    ("context_pack", r#"{"task": "time is compared wrongly for open periods"}"#),
    ("context_pack", r#"{"task": "hash JSON canonically", "profile": "compact"}"#),
    ("search", r#"{"query": "three way merge"}"#),
    ("search", r#"{"query": "content hash"}"#),
    ("search", r#"{"query": "validity period", "limit": 5}"#),
    ("search", r#"{"query": "multiplicity of relationships", "limit": 3}"#),
    ("symbol_lookup", r#"{"query": "merge_fact"}"#),
    ("symbol_lookup", r#"{"query": "Period"}"#),
    ("symbol_lookup", r#"{"query": "Error"}"#),
    ("symbol_lookup", r#"{"query": "plan", "limit": 5}"#),
    ("code_explain", r#"{"ref": "merge_fact"}"#),
    ("code_explain", r#"{"ref": "merge.rs"}"#),
    ("code_explain", r#"{"ref": "time.rs"}"#),
    ("get_callers", r#"{"ref": "merge_fact"}"#),
    ("get_callers", r#"{"ref": "json.rs::canonical"}"#),
    ("get_callees", r#"{"ref": "merge_fact"}"#),
    ("get_callees", r#"{"ref": "merge_piece"}"#),
    ("semantic_slice", r#"{"symbol": "merge_piece"}"#),
    ("semantic_slice", r#"{"symbol": "merge_fact", "context": "signature"}"#),
    ("semantic_slice", r#"{"query": "where are JSON documents hashed"}"#),
    ("impact", r#"{"ref": "merge.rs::merge_piece"}"#),
    ("impact", r#"{"ref": "json.rs::canonical"}"#),
    ("call_chain", r#"{"from": "merge_fact", "to": "three_way.rs::merge"}"#),
    ("graph_query", r#"{"query": "who decides about conflicts"}"#),
    ("graph_query", r#"{"query": "MATCH (f:File) RETURN count(f)", "language": "cypher"}"#),
    (
        "cypher",
        r#"{"query": "MATCH (f:Function)-[:CALLS]->(g) RETURN g.key, count(f) ORDER BY count(f) DESC LIMIT 5"}"#,
    ),
    ("find_pattern", r#"{"pattern": "circular_imports"}"#),
    ("find_pattern", r#"{"pattern": "long_functions"}"#),
    ("graph_stats", "{}"),
    ("call_graph_stats", "{}"),
    ("graph_health", "{}"),
    ("search_readiness", "{}"),
    ("communities", r#"{"limit": 5}"#),
    ("rank", r#"{"limit": 10}"#),
    ("neighbors", r#"{"ref": "File:merge.rs"}"#),
    ("get", r#"{"ref": "File:merge.rs"}"#),
    ("list", r#"{"type": "File"}"#),
    ("put", r#"{"type": "Decision", "key": "d1", "title": "Merges are pure"}"#),
    ("link", r#"{"type": "CONCERNS", "src": "Decision:d1", "dst": "File:merge.rs"}"#),
    ("get", r#"{"ref": "Decision:d1"}"#),
    ("history", r#"{"ref": "Decision:d1"}"#),
    ("log", "{}"),
    ("branch_list", "{}"),
    ("branch_create", r#"{"name": "try"}"#),
    ("diff_since", r#"{"since": "tx:1"}"#),
    ("release_create", r#"{"name": "v1"}"#),
    ("type_list", "{}"),
    ("find_tools", r#"{"query": "compare two releases", "limit": 2}"#),
];

#[test]
fn answers_to_an_agent_take_three_hundred_tokens() {
    let test = TestEngine::all().remove(0);
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().canonicalize().unwrap();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/src")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, source.join(path.file_name().unwrap())).unwrap();
        }
    }
    test.ok("index_directory", json!({"path": source}));
    for (name, arguments) in MIX {
        let operation = registry::find(name).unwrap();
        let asked: Value = serde_json::from_str(arguments).unwrap();
        let Value::Object(mut arguments) = asked.clone() else { panic!("{name}") };
        if operation.meta.places.contains(&"path") {
            arguments.insert("path".into(), json!(source));
        }
        let options = response_budget::take_response_options(operation, &mut arguments).unwrap();
        let answer =
            response_budget::fit_response(operation, test.ok(name, Value::Object(arguments)), options).unwrap();
        let tokens = count(&answer.to_string());
        assert!(tokens <= 300, "{name}: {tokens}");
        assert!(answer["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{name}");
        let wants_lines = name == "semantic_slice" && asked["context"] != "signature";
        assert!(!wants_lines || answer["data"]["code"].is_string(), "{asked}: {answer}");
    }
}

#[test]
fn lines_that_do_not_fit_are_on_the_next_page() {
    let test = TestEngine::all().remove(0);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    // Functions of every length around what has room, so that some fit without the frame and not within it.
    let body = |lines: usize| "    total = total + 1\n".repeat(lines);
    let source: String = (1..60).map(|n| format!("def f{n}(total):\n{}\n\n", body(n))).collect();
    std::fs::write(root.join("a.py"), source).unwrap();
    test.ok("index_directory", json!({"path": root}));
    let operation = registry::find("semantic_slice").unwrap();
    for n in 1..60 {
        let (mut code, mut page) = (String::new(), 1);
        loop {
            let mut arguments = json!({"symbol": format!("f{n}"), "page": page}).as_object().unwrap().clone();
            let options = response_budget::take_response_options(operation, &mut arguments).unwrap();
            let answer =
                response_budget::fit_response(operation, test.ok("semantic_slice", Value::Object(arguments)), options)
                    .unwrap();
            assert!(count(&answer.to_string()) <= 300, "{answer}");
            let part = answer["data"]["code"].as_str().unwrap_or_else(|| panic!("f{n}: {answer}"));
            assert!(page > 1 || part.lines().count() > 10.min(n), "f{n}: {answer}");
            code.push_str(part.strip_suffix('…').unwrap_or(part));
            match answer["nextPage"].as_u64() {
                Some(next) => page = next,
                None => break,
            }
        }
        assert_eq!(code, format!("def f{n}(total):\n{}", body(n)));
    }
}

#[test]
fn the_best_tool_that_is_found_has_all_its_arguments_in_every_profile() {
    let test = TestEngine::all().remove(0);
    let operation = registry::find("find_tools").unwrap();
    for asked in registry::operations() {
        for (profile, most) in [("compact", 300), ("balanced", 1_200)] {
            let query = format!("{} {}", asked.meta.name, asked.meta.summary);
            let mut arguments = json!({"query": query, "profile": profile}).as_object().unwrap().clone();
            let options = response_budget::take_response_options(operation, &mut arguments).unwrap();
            let answer = response_budget::fit_response(
                lukasa_engine::registry::find("find_tools").unwrap(),
                test.ok("find_tools", Value::Object(arguments)),
                options,
            )
            .unwrap();
            assert!(count(&answer.to_string()) <= most && answer.get("truncated").is_none(), "{answer}");
            let best = &answer["data"]["tools"][0];
            let named = best["arguments"]["properties"].as_object().unwrap_or_else(|| panic!("{query}: {answer}"));
            let own = registry::find(best["name"].as_str().unwrap()).unwrap();
            assert!(own.fields().keys().all(|field| named.contains_key(field)), "{query}: {answer}");
            let required = own.fields().keys().filter(|field| own.requires(field)).count();
            assert_eq!(best["arguments"]["required"].as_array().map_or(0, Vec::len), required, "{query}: {answer}");
        }
    }
}
