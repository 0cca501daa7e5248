//! Operations that traverse the graph, called as surfaces call them, on every store.

use crate::test_engine::TestEngine;
use lukasa_engine::features::graph::communities::CommunityCache;
use lukasa_model::id::MAIN;
use lukasa_model::{ErrorCode, Tx};
use serde_json::{Value, json};

/// A shop: services, files with functions, a test, a decision made in a meeting, and a document.
fn shop(test: &TestEngine) {
    let object = |t: &str, k: &str, more: Value| {
        let mut put = json!({"type": t, "key": k});
        put.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"object": put})
    };
    let link = |t: &str, src: &str, dst: &str, confidence: f64| json!({"relationship": {"type": t, "src": src, "dst": dst, "confidence": confidence, "derivation": "import"}});
    test.ok(
        "batch",
        json!({"kind": "full_rebuild", "writes": [
            object("Service", "web", json!({"title": "Web", "labels": ["edge"]})),
            object("Service", "auth", json!({"title": "Auth", "labels": ["core"], "properties": {"port": 8080}})),
            object("File", "src/auth/login.ts", json!({})),
            object("Function", "src/auth/login.ts::login", json!({"status": "open"})),
            object("Function", "src/auth/login.ts::check", json!({"status": "shut"})),
            object("File", "src/web/page.ts", json!({})),
            object("Function", "src/web/page.ts::render", json!({"status": "open"})),
            object("Test", "src/web/page.test.ts", json!({})),
            object("Meeting", "sprint-34", json!({"title": "Sprint 34"})),
            object("Decision", "flags", json!({"title": "Adopt flags", "status": "accepted"})),
            object("Person", "ann", json!({})),
            object("Person", "bob", json!({})),
            object("Document", "handbook", json!({"title": "Handbook"})),
            link("CONTAINS", "auth", "src/auth/login.ts", 1.0),
            link("CONTAINS", "src/auth/login.ts", "src/auth/login.ts::login", 1.0),
            link("CONTAINS", "src/auth/login.ts", "src/auth/login.ts::check", 1.0),
            link("CONTAINS", "web", "src/web/page.ts", 1.0),
            link("CONTAINS", "src/web/page.ts", "src/web/page.ts::render", 1.0),
            link("CALLS", "src/web/page.ts::render", "src/auth/login.ts::login", 0.9),
            link("CALLS", "src/auth/login.ts::login", "src/auth/login.ts::check", 0.8),
            link("TESTS", "src/web/page.test.ts", "src/web/page.ts::render", 0.6),
            link("decides", "sprint-34", "flags", 1.0),
            link("attended_by", "sprint-34", "ann", 1.0),
            link("attended_by", "sprint-34", "bob", 0.4),
            link("DESCRIBES", "handbook", "auth", 0.7),
        ]}),
    );
}

fn keys(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|n| n["key"].as_str().unwrap()).collect()
}

fn code(test: &TestEngine, name: &str, request: Value) -> &'static str {
    test.call(name, request.clone()).map(|v| panic!("{name} {request}: {v}")).unwrap_err().code.name()
}

#[test]
fn a_walk_lists_what_is_near_and_reports_what_was_left_out() {
    for test in TestEngine::all() {
        shop(&test);
        let out = test.ok("traverse", json!({"root_ids": ["Service:web"], "direction": "out", "maxDepth": 3}));
        assert_eq!(
            keys(&out["nodes"]),
            ["web", "src/web/page.ts", "src/web/page.ts::render", "src/auth/login.ts::login"]
        );
        let depths: Vec<_> = out["nodes"].as_array().unwrap().iter().map(|n| n["depth"].as_u64().unwrap()).collect();
        assert_eq!(depths, [0, 1, 2, 3]);
        assert_eq!(out["edges"][2]["confidence"], 0.9);
        assert_eq!(out["edges"][2]["derivation"], "import");
        assert_eq!(
            (&out["truncated"], &out["max_depth_reached"], &out["nodes"][0]["labels"]),
            (&json!(false), &json!(3), &json!(["edge"]))
        );
        assert_eq!(out["meta"]["type"], "graph.traverse.page");
        assert_eq!((out["meta"]["roots_count"].as_u64(), out["meta"]["edge_scan_count"].as_u64()), (Some(1), Some(3)));
        let few = test.ok("traverse", json!({"roots": ["web", "auth"], "direction": "out", "max_nodes": 3}));
        assert_eq!(
            (few["nodes"].as_array().unwrap().len(), &few["truncated"], &few["overflow_type"]),
            (3, &json!(true), &json!("node"))
        );
        let few = test.ok("traverse", json!({"roots": ["web"], "max_edges": 1}));
        assert_eq!((&few["overflow_type"], few["edges"].as_array().unwrap().len()), (&json!("edge"), 1));
        let none = test.ok("traverse", json!({"roots": ["web"], "max_depth": 0}));
        assert_eq!((keys(&none["nodes"]), none["truncated"].as_bool()), (vec!["web"], Some(false)));
        let calls = test.ok("traverse", json!({"roots": ["src/auth/login.ts::check"], "direction": "in", "relationship_types": ["calls"], "max_depth": 8}));
        assert_eq!(calls["nodes"].as_array().unwrap().len(), 3, "types match in any case");
        let core = test.ok("traverse", json!({"roots": ["handbook"], "labels": ["core"]}));
        assert_eq!(keys(&core["nodes"]), ["handbook", "auth"]);
        let people = test.ok("traverse", json!({"roots": ["sprint-34"], "object_types": ["Person"]}));
        assert_eq!(keys(&people["nodes"]), ["sprint-34", "ann", "bob"]);
        let error = test.call("traverse", json!({"roots": ["web"], "relationship_types": ["NO_SUCH"]})).unwrap_err();
        assert_eq!(error.code, ErrorCode::NoSuchType);
        assert!(error.hint.unwrap().contains("CALLS, CONTAINS"), "the types there are");
        for request in
            [json!({"ref": "web", "object_types": ["Fil"]}), json!({"ref": "web", "object_types": ["Service,File"]})]
        {
            assert_eq!(code(&test, "neighbors", request), "no_such_type");
        }
    }
}

#[test]
fn pages_fit_together_forwards_and_backwards_while_others_write() {
    for test in TestEngine::all() {
        let mut writes = vec![json!({"object": {"type": "T", "key": "hub"}})];
        writes.extend((0..23).map(|i| json!({"object": {"type": "T", "key": format!("k{i}")}})));
        writes.extend((0..23).map(|i| json!({"relationship": {"type": "TO", "src": "hub", "dst": format!("k{i}")}})));
        test.ok("batch", json!({"writes": writes}));
        let ask = |cursor: &Value| test.ok("traverse", json!({"roots": ["hub"], "limit": 10, "cursor": cursor}));
        let whole = test.ok("traverse", json!({"roots": ["hub"]}));
        let first = ask(&Value::Null);
        assert_eq!((&first["has_previous_page"], &first["has_next_page"]), (&json!(false), &json!(true)));
        test.fixture.clock.advance(5);
        test.ok("batch", json!({"writes": [{"object": {"type": "T", "key": "new"}}, {"relationship": {"type": "TO", "src": "hub", "dst": "new"}}, {"end": {"ref": "k3"}}]}));
        let second = ask(&first["next_cursor"]);
        let third = ask(&second["next_cursor"]);
        assert_eq!((&third["has_next_page"], third["nodes"].as_array().unwrap().len()), (&json!(false), 4));
        let all = |field: &str| -> Vec<Value> {
            [&first, &second, &third].iter().flat_map(|p| p[field].as_array().unwrap().clone()).collect()
        };
        assert_eq!(all("nodes"), *whole["nodes"].as_array().unwrap(), "{}", test.fixture.name);
        assert_eq!(all("edges"), *whole["edges"].as_array().unwrap(), "each edge once, with its second end");
        assert_eq!(second["view"]["known_at"], first["view"]["known_at"]);
        let back = ask(&third["previous_cursor"]);
        assert_eq!((&back["nodes"], &back["edges"]), (&second["nodes"], &second["edges"]));
        assert_eq!(back["meta"]["page_direction"], "backward");
        let front = ask(&back["previous_cursor"]);
        assert_eq!((&front["nodes"], &front["has_previous_page"]), (&first["nodes"], &json!(false)));
        assert_eq!(
            test.ok("traverse", json!({"roots": ["hub"]}))["total_nodes"],
            24,
            "a new request sees the new objects"
        );
        // A cursor must be complete, of this project and of this request.
        let cursor = first["next_cursor"].as_str().unwrap();
        assert_eq!(
            code(&test, "traverse", json!({"roots": ["k1"], "limit": 10, "cursor": cursor})),
            "cursor_of_another_request"
        );
        let forged = format!("{}{}", &cursor[..10], cursor[10..].replace(|c: char| c.is_ascii_lowercase(), "x"));
        for bad in [forged.as_str(), "", "AAAA", "not a cursor"] {
            assert_eq!(code(&test, "traverse", json!({"roots": ["hub"], "cursor": bad})), "invalid_cursor");
        }
        assert_eq!(
            ask(&json!(cursor))["nodes"],
            second["nodes"],
            "another page size is another page, from the same place"
        );
    }
}

#[test]
fn bad_input_is_refused_with_the_way_out() {
    for test in TestEngine::all() {
        shop(&test);
        let error = test.call("traverse", json!({"roots": ["Service:aut"]})).unwrap_err();
        assert_eq!((error.code, error.kind.http_status()), (ErrorCode::NotFound, 404));
        assert!(error.hint.unwrap().contains("`Service:auth`"), "near keys are offered");
        let root = json!(["web"]);
        for (name, request) in [
            ("traverse", json!({"roots": []})),
            ("traverse", json!({"roots": vec!["web"; 51]})),
            ("traverse", json!({"roots": root, "max_depth": 9})),
            ("traverse", json!({"roots": root, "max_nodes": 0})),
            ("traverse", json!({"roots": root, "max_nodes": 5001})),
            ("traverse", json!({"roots": root, "max_edges": 10001})),
            ("traverse", json!({"roots": root, "limit": 0})),
            ("traverse", json!({"roots": root, "relationship_types": vec!["x"; 33]})),
            ("traverse", json!({"roots": root, "object_types": vec!["x"; 65]})),
            ("traverse", json!({"roots": root, "labels": vec!["x"; 65]})),
            ("expand", json!({"roots": root, "max_depth": 7})),
            ("expand", json!({"roots": root, "limit_nodes": 10001})),
            ("expand", json!({"roots": root, "phases": vec![json!({}); 7]})),
            ("graph_traverse", json!({"entry_entity_ids": root, "max_hops": 5})),
            ("graph_traverse", json!({"entry_entity_ids": root, "max_hops": 0})),
            ("graph_traverse", json!({"entry_entity_ids": root, "min_confidence": 1.5})),
            ("graph_traverse", json!({"entry_entity_ids": root, "max_results": 201})),
            ("neighbors", json!({"ref": "web", "radius": 9})),
            ("neighbors", json!({"ref": "web", "max_nodes": 1001})),
            ("impact", json!({"ref": "web", "max_depth": 0})),
            ("shortest_path", json!({"from": "web", "to": "auth", "max_depth": 33})),
            ("paths", json!({"from": "web", "to": "auth", "max_depth": 11})),
            ("subgraph", json!({"roots": root, "radius": 5})),
            ("rank", json!({"seeds": ["web=0"]})),
            ("rank", json!({"damping": 1.0})),
            ("rank", json!({"edge_weights": {"CALLS": -1.0}})),
            ("communities", json!({"resolution": 0.0})),
        ] {
            assert_eq!(code(&test, name, request), "out_of_range");
        }
        assert_eq!(code(&test, "rank", json!({"edge_weights": {"CALLS": 1.0}})), "weights_need_seeds");
        for (request, want) in [
            (json!({"filters": {"node": {"evidence": 1}}}), "forbidden_path"),
            (json!({"filters": {"edge": {"$where": 1}}}), "forbidden_path"),
            (json!({"filters": {"node": {"status": {"like": "x"}}}}), "invalid_predicate"),
            (json!({"filters": {"node": 7}}), "invalid_predicate"),
            (json!({"filters": {"nodes": {}}}), "invalid_request"),
            (json!({"include": {"object": ["evidence"]}}), "forbidden_path"),
            (json!({"limit_nodes": 10000, "max_depth": 6}), "expansion_too_large"),
            (json!({"time": "2026-01-01", "as_of": "tx:1"}), "invalid_moment"),
            (json!({"dedupe": "no"}), "invalid_request"),
            (json!({"direction": "sideways"}), "invalid_request"),
        ] {
            let mut whole = json!({"roots": root});
            whole.as_object_mut().unwrap().extend(request.as_object().unwrap().clone());
            assert_eq!(code(&test, "expand", whole), want, "{request}");
        }
        for name in ["neighbors", "impact"] {
            assert_eq!(
                code(&test, name, json!({"ref": "web", "as_of": "1999-01-01"})),
                "not_found",
                "before the beginning"
            );
            assert_eq!(code(&test, name, json!({"ref": "web", "as_of": "tx:0"})), "unknown_transaction");
            assert_eq!(code(&test, name, json!({"ref": "web", "branch": "nowhere"})), "unknown_branch");
        }
        let link = test.ok("get", json!({"ref": "web"}))["links"][0]["id"].clone();
        assert_eq!(code(&test, "neighbors", json!({"ref": link})), "not_an_object");
        assert_eq!(code(&test, "batch", json!({"kind": "merge", "writes": []})), "invalid_kind");
    }
}

#[test]
fn an_expansion_follows_its_phases_and_rules() {
    for test in TestEngine::all() {
        shop(&test);
        let people = test.ok(
            "expand",
            json!({"roots": ["Decision:flags"], "returnPaths": true, "phases": [
                {"edgeTypes": ["decides"], "direction": "inbound", "nodeTypes": ["Meeting"]},
                {"edgeTypes": ["attended_by"], "direction": "outbound", "nodeTypes": ["Person"]}]}),
        );
        assert_eq!(keys(&people["nodes"]), ["flags", "sprint-34", "ann", "bob"]);
        assert_eq!(people["paths"][1]["nodes"], json!(["Decision:flags", "Meeting:sprint-34", "Person:bob"]));
        assert_eq!((&people["paths"][1]["confidence"], &people["meta"]["depth_reached"]), (&json!(0.4), &json!(2)));
        assert_eq!(people["nodes"][0]["title"], "Adopt flags");
        let stopped = test.ok("expand", json!({"roots": ["flags"], "phases": [{"edge_types": ["TESTS"]}, {}]}));
        assert_eq!((&stopped["meta"]["stopped_at_phase"], stopped["nodes"].as_array().unwrap().len()), (&json!(1), 1));
        let open = test.ok(
            "expand",
            json!({"roots": ["web"], "direction": "out", "max_depth": 6,
                "filters": {"node": {"type": {"in": ["File", "Function"]}, "status": {"!=": "shut"}}},
                "include": {"object": ["status"], "edge": ["confidence", "derivation"]}}),
        );
        assert_eq!(open["meta"]["objects_filtered"], 1, "a file has no status, so `!=` does not hold: {open}");
        let open = test.ok(
            "expand",
            json!({"roots": ["src/web/page.ts::render"], "direction": "out", "max_depth": 6,
                "filters": {"node": {"status": {"in": ["open"]}}, "edge": {"confidence": {">=": 0.85}}},
                "include": {"object": ["status", "properties.port"], "edge": ["confidence", "derivation"]}}),
        );
        assert_eq!(keys(&open["nodes"]), ["src/web/page.ts::render", "src/auth/login.ts::login"]);
        assert_eq!((&open["nodes"][1]["status"], &open["edges"][0]["derivation"]), (&json!("open"), &json!("import")));
        assert!(open["edges"][0]["score"].as_f64().unwrap() > 0.0);
        assert!(open["nodes"][1].get("title").is_none(), "only what was asked for");
        let ports = test.ok("expand", json!({"roots": ["handbook"], "filters": {"node": {"properties.port": {">=": 8000, "<": 9000}}}, "include": {"object": ["properties.port"]}}));
        assert_eq!(ports["nodes"][1]["properties"]["port"], 8080);
        let cut = test.ok("expand", json!({"roots": ["sprint-34"], "limit_nodes": 2}));
        assert_eq!((&cut["meta"]["truncated"], &cut["meta"]["overflow_type"]), (&json!(true), &json!("node")));
        let past = json!({"roots": ["web"], "time": "2020-01-01T00:00:00Z"});
        assert_eq!(code(&test, "expand", past), "not_found");
        for dedupe in ["node", "edge", "path"] {
            let found =
                test.ok("expand", json!({"roots": ["web"], "dedupe": dedupe, "max_depth": 4, "limit_paths": 1000}));
            assert_eq!(found["meta"]["truncated"], false, "{dedupe}");
        }
    }
}

#[test]
fn sure_relationships_are_followed_and_documents_named() {
    for test in TestEngine::all() {
        shop(&test);
        let found = test.ok("graph_traverse", json!({"entry_entity_ids": ["src/web/page.ts::render"], "max_hops": 4}));
        let names: Vec<_> = found["entities"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"Handbook") && names.contains(&"Auth"), "{names:?}");
        assert_eq!(found["connected_document_ids"].as_array().unwrap().len(), 1);
        let login =
            found["entities"].as_array().unwrap().iter().position(|e| e["key"] == "src/auth/login.ts::login").unwrap();
        assert_eq!(found["paths"][login]["total_confidence"], 0.9);
        assert_eq!(found["paths"][login]["edges"], json!(["CALLS"]));
        let check =
            found["entities"].as_array().unwrap().iter().position(|e| e["key"] == "src/auth/login.ts::check").unwrap();
        assert_eq!(found["entities"][check]["confidence"], 0.9, "by the file, which is surer than the call");
        assert!(found["trace_id"].is_string() && found["nodes_explored"].as_u64().unwrap() > 5);
        let sure = test.ok(
            "graph_traverse",
            json!({"entry_entity_ids": ["sprint-34"], "min_confidence": 0.5, "include_paths": false}),
        );
        assert_eq!(sure["total_entities"], 2, "bob is not sure enough");
        assert!(sure.get("paths").is_none());
        let only = test.ok("graph_traverse", json!({"entry_entity_ids": ["sprint-34"], "entity_types": ["Person"], "min_confidence": 0.0, "max_results": 1}));
        assert_eq!(
            (only["entities"].as_array().unwrap().len(), &only["total_entities"], &only["truncated"]),
            (1, &json!(2), &json!(true))
        );
    }
}

#[test]
fn neighbors_paths_and_parts() {
    for test in TestEngine::all() {
        shop(&test);
        let near = test.ok("neighbors", json!({"node_id": "Service:auth", "max_nodes": 3}));
        assert_eq!((&near["nodes"][0]["distance"], &near["truncated"]), (&json!(0), &json!(true)));
        assert_eq!(near["total_nodes_in_neighborhood"], 5);
        assert!(near["nodes"][1]["pagerank"].as_f64() >= near["nodes"][2]["pagerank"].as_f64());
        let functions = test.ok("neighbors", json!({"ref": "auth", "node_types": ["Function"]}));
        assert_eq!(functions["total_nodes_in_neighborhood"], 3, "paths lead through the file, which is not listed");
        let chain = test.ok("shortest_path", json!({"from": "src/web/page.ts::render", "to": "src/auth/login.ts::check", "relationship_types": ["CALLS"], "direction": "out"}));
        assert_eq!(
            chain["path"]["nodes"],
            json!([
                "Function:src/web/page.ts::render",
                "Function:src/auth/login.ts::login",
                "Function:src/auth/login.ts::check"
            ])
        );
        let sure = test.ok(
            "shortest_path",
            json!({"from": "src/auth/login.ts::login", "to": "src/auth/login.ts::check", "by": "confidence"}),
        );
        assert_eq!((&sure["path"]["hops"], &sure["path"]["confidence"]), (&json!(2), &json!(1.0)), "through the file");
        let none = test.ok("shortest_path", json!({"from": "web", "to": "ann"}));
        assert!(none["path"].is_null() && none["summary"].as_str().unwrap().starts_with("no path"));
        let all = test.ok("paths", json!({"from": "src/auth/login.ts::login", "to": "src/auth/login.ts::check"}));
        assert_eq!(
            all["paths"].as_array().unwrap().iter().map(|p| p["hops"].as_u64().unwrap()).collect::<Vec<_>>(),
            [1, 2]
        );
        let part = test.ok("subgraph", json!({"roots": ["web", "src/web/page.ts", "auth"], "draw": "mermaid"}));
        assert_eq!((part["nodes"].as_array().unwrap().len(), part["edges"].as_array().unwrap().len()), (3, 1));
        assert!(part["drawing"].as_str().unwrap().contains("n0 -->|\"CONTAINS\"| n1"));
        assert!(
            test.ok("subgraph", json!({"roots": ["web"], "radius": 1, "draw": "dot"}))["drawing"]
                .as_str()
                .unwrap()
                .starts_with("digraph")
        );
        let stats = test.ok("graph_stats", json!({}));
        assert_eq!((&stats["nodes"], &stats["edges"], &stats["components"]), (&json!(13), &json!(12), &json!(2)));
        assert_eq!(stats["edges_by_type"]["CONTAINS"], 5);
        assert!(stats["memory"]["bytes_per_edge"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn impact_names_dependents_tests_services_and_contracts() {
    for test in TestEngine::all() {
        shop(&test);
        test.ok(
            "batch",
            json!({"writes": [
                {"object": {"type": "Contract", "key": "auth-api"}},
                {"object": {"type": "Endpoint", "key": "POST /login"}},
                {"object": {"type": "domain_entity", "key": "User"}},
                {"object": {"type": "Function", "key": "lonely", "properties": {"service_name": "cron"}}},
                {"object": {"type": "Episode", "key": "e1"}},
                {"relationship": {"type": "INVOLVES", "src": "e1", "dst": "src/auth/login.ts::login"}},
                {"relationship": {"type": "PROVIDES_CONTRACT", "src": "auth", "dst": "auth-api"}},
                {"relationship": {"type": "EXPOSES_ENDPOINT", "src": "auth-api", "dst": "POST /login"}},
                {"relationship": {"type": "HANDLES_ENDPOINT", "src": "src/auth/login.ts::login", "dst": "POST /login"}},
                {"relationship": {"type": "IMPLEMENTS_ENTITY", "src": "src/auth/login.ts::login", "dst": "User"}},
                {"relationship": {"type": "OWNS_ENTITY", "src": "auth", "dst": "User"}},
                {"relationship": {"type": "CALLS", "src": "lonely", "dst": "src/auth/login.ts::login"}},
            ]}),
        );
        let impact = test.ok("impact", json!({"ref": "src/auth/login.ts::login"}));
        assert_eq!(impact["source_service"], "Service:auth");
        assert_eq!(impact["transitive_tests"], json!(["Test:src/web/page.test.ts"]));
        assert_eq!(impact["direct_tests"], json!([]));
        let services: Vec<_> = impact["impacted_services"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["service_name"].as_str().unwrap())
            .collect();
        assert_eq!(services, ["Service:cron", "Service:web"]);
        assert_eq!(
            (&impact["impacted_services"][1]["impact_count"], &impact["impacted_services"][1]["dependencies"]),
            (&json!(1), &json!(0))
        );
        let file = test.ok("impact", json!({"ref": "src/auth/login.ts"}));
        assert_eq!(file["blast_radius"], impact["blast_radius"], "a change of a file is one of what it contains");
        let of_test = test.ok("impact", json!({"ref": "src/web/page.test.ts"}));
        assert!(
            of_test["summary"].as_str().unwrap().starts_with("0 objects depend")
                && !of_test["summary"].as_str().unwrap().contains("service"),
            "{of_test}"
        );
        assert_eq!(
            impact["impacted_services"][1]["path"],
            json!(["Function:src/auth/login.ts::login", "Function:src/web/page.ts::render"])
        );
        assert_eq!(
            impact["impacted_entities"],
            json!([{"entity": "domain_entity:User", "owning_service": "Service:auth"}])
        );
        let names: Vec<_> =
            impact["dependents"].as_array().unwrap().iter().map(|d| d["name"].as_str().unwrap()).collect();
        assert!(!names.contains(&"Episode:e1"), "a record is not a dependent: {names:?}");
        assert_eq!(impact["blast_radius"].as_u64().unwrap() as usize, names.len());
        let direct = test.ok("impact", json!({"ref": "src/web/page.ts::render"}));
        assert_eq!(direct["direct_tests"], json!(["Test:src/web/page.test.ts"]));
        let deep = test.ok("impact", json!({"ref": "POST /login"}));
        assert_eq!(deep["impacted_contracts"][0]["contract"], "Contract:auth-api");
        assert_eq!(test.ok("impact", json!({"ref": "web", "limit": 1}))["truncated"], true);
    }
}

#[test]
fn ranks_say_what_is_central_and_what_is_near() {
    for test in TestEngine::all() {
        shop(&test);
        let all = test.ok("rank", json!({"limit": 1000}));
        let sum: f64 = all["nodes"].as_array().unwrap().iter().map(|n| n["score"].as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-9);
        assert_eq!(all["method"], "pagerank");
        let near = test.ok("rank", json!({"seeds": ["src/web/page.ts::render", "web=0.2"], "type": "Function"}));
        let mut two = keys(&near["nodes"])[..2].to_vec();
        two.sort_unstable();
        assert_eq!(two, ["src/auth/login.ts::login", "src/web/page.ts::render"], "the seed, and what it calls");
        assert_eq!(near["method"], "power_iteration");
        let heavy = test.ok("rank", json!({"seeds": ["src/web/page.ts::render"], "edge_weights": {"TESTS": 100.0}}));
        assert_eq!(keys(&heavy["nodes"])[1], "src/web/page.test.ts", "weights decide");
    }
}

#[test]
fn communities_are_found_named_and_never_written() {
    for test in TestEngine::all() {
        let mut writes = Vec::new();
        for part in ["auth", "billing"] {
            writes.extend(
                (0..6).map(|i| json!({"object": {"type": "Function", "key": format!("src/{part}/f{i}.ts::run")}})),
            );
            for i in 0..6 {
                for j in (i + 1)..6 {
                    writes.push(json!({"relationship": {"type": "CALLS", "src": format!("src/{part}/f{i}.ts::run"), "dst": format!("src/{part}/f{j}.ts::run")}}));
                }
            }
        }
        writes.push(
            json!({"relationship": {"type": "CALLS", "src": "src/auth/f0.ts::run", "dst": "src/billing/f0.ts::run"}}),
        );
        writes.push(json!({"object": {"type": "Function", "key": "alone"}}));
        test.ok("batch", json!({"kind": "full_rebuild", "writes": writes}));
        test.engine.state::<CommunityCache>().settle();
        let head = test.fixture.ledger.head().unwrap();
        let kept = test
            .engine
            .state::<CommunityCache>()
            .kept(&test.fixture.ledger, MAIN, head.tx, &Default::default())
            .unwrap();
        assert!(kept.is_some(), "{}: found in the background after a rebuild", test.fixture.name);
        let found = test.ok("communities", json!({}));
        assert_eq!(found["total"], 2, "who is alone is in none");
        let mut labels: Vec<_> =
            found["communities"].as_array().unwrap().iter().map(|c| c["label"].as_str().unwrap()).collect();
        labels.sort_unstable();
        assert_eq!(labels, ["auth", "billing"]);
        assert_eq!(
            (&found["communities"][0]["size"], &found["communities"][0]["type"]),
            (&json!(6), &json!("COMMUNITY"))
        );
        assert!(found["communities"][0]["summary"].as_str().unwrap().contains("6 Function around"), "{found}");
        assert_eq!((&found["computed_at"], &found["transactions_since"]), (&json!(1), &json!(0)));
        let members = test.ok("communities", json!({"community": "COMMUNITY:auth"}));
        assert_eq!(members["members"].as_array().unwrap().len(), 6);
        let part = test.ok("subgraph", json!({"roots": ["COMMUNITY:auth"]}));
        assert_eq!((&part["nodes"].as_array().unwrap().len(), &part["total_edges"]), (&6, &json!(15)));
        assert_eq!(code(&test, "traverse", json!({"roots": ["COMMUNITY:nope"]})), "not_found");
        let near = test.ok("rank", json!({"seeds": ["COMMUNITY:auth"], "limit": 6}));
        assert!(keys(&near["nodes"]).iter().all(|k| k.starts_with("src/auth/")), "{near}");
        let own = test.ok("communities", json!({"of": "src/billing/f3.ts::run"}));
        assert_eq!(own["communities"][0]["label"], "billing");
        assert_eq!(code(&test, "communities", json!({"of": "alone"})), "not_found");
        assert_eq!(code(&test, "communities", json!({"community": "nope"})), "not_found");
        // After later writes the cached communities are older, but still valid; --fresh computes them again.
        test.fixture.clock.advance(1);
        test.ok("put", json!({"type": "Function", "key": "more"}));
        assert_eq!(test.ok("communities", json!({}))["transactions_since"], 1);
        let fresh = test.ok("communities", json!({"fresh": true}));
        assert_eq!((&fresh["transactions_since"], &fresh["computed_at"]), (&json!(0), &json!(2)));
        let louvain = test.ok("communities", json!({"algorithm": "louvain", "resolution": 0.5, "seed": 7}));
        assert!(louvain["total"].as_u64().unwrap() >= 1);
        assert_eq!(test.fixture.ledger.head().unwrap().tx, Tx(2), "nothing was written");
        assert_eq!(test.ok("communities", json!({"as_of": "tx:1"}))["total"], 2);
    }
}

/// An answer without times and durations.
fn timeless(mut answer: Value) -> String {
    for path in ["/meta/elapsed_ms", "/meta/execution_ms", "/meta/ts", "/latency_ms", "/trace_id"] {
        if let Some(value) = answer.pointer_mut(path) {
            *value = Value::Null;
        }
    }
    answer.to_string()
}

#[test]
fn the_same_question_gives_the_same_bytes_on_every_store_and_after_any_history() {
    let questions = [
        ("traverse", json!({"roots": ["web", "sprint-34"], "max_depth": 8})),
        ("expand", json!({"roots": ["web"], "max_depth": 6, "dedupe": "path", "return_paths": true})),
        ("graph_traverse", json!({"entry_entity_ids": ["web"], "max_hops": 4, "min_confidence": 0.0})),
        ("neighbors", json!({"ref": "src/auth/login.ts", "radius": 8})),
        ("impact", json!({"ref": "src/auth/login.ts::login", "max_depth": 8})),
        ("paths", json!({"from": "web", "to": "src/auth/login.ts::check", "max_depth": 8})),
        ("rank", json!({"seeds": ["web"]})),
        ("communities", json!({"fresh": true})),
    ];
    let mut all_answers: Vec<Vec<String>> = Vec::new();
    for test in TestEngine::all() {
        shop(&test);
        // An engine that followed every step, and a new one.
        test.ok("neighbors", json!({"ref": "web"}));
        test.fixture.clock.advance(1);
        test.ok("delete", json!({"ref": "src/auth/login.ts"}));
        test.ok("neighbors", json!({"ref": "web"}));
        test.fixture.clock.advance(1);
        test.ok("restore", json!({"ref": "src/auth/login.ts"}));
        test.ok("put", json!({"type": "Service", "key": "extra"}));
        let fresh = lukasa_engine::Engine::new(
            std::sync::Arc::clone(&test.fixture.store),
            std::sync::Arc::clone(&test.fixture.clock) as _,
            std::env::temp_dir(),
        );
        let answers =
            |test: &TestEngine| questions.iter().map(|(n, q)| timeless(test.ok(n, q.clone()))).collect::<Vec<_>>();
        all_answers.push(answers(&test));
        all_answers.push(answers(&TestEngine { engine: fresh, ..test }));
    }
    for other in &all_answers[1..] {
        for (i, answer) in other.iter().enumerate() {
            assert_eq!(answer, &all_answers[0][i], "{}", questions[i].0);
        }
    }
}

#[test]
fn ended_objects_are_shown_as_ended_by_lasting_relationships() {
    for test in TestEngine::all() {
        shop(&test);
        test.ok(
            "batch",
            json!({"writes": [
            {"object": {"type": "Episode", "key": "e1"}},
            {"relationship": {"type": "INVOLVES", "src": "e1", "dst": "src/auth/login.ts::check"}}]}),
        );
        test.fixture.clock.advance(1);
        test.ok("delete", json!({"ref": "src/auth/login.ts::check"}));
        let near = test.ok("neighbors", json!({"ref": "e1", "radius": 1}));
        assert_eq!(
            (&near["nodes"][1]["key"], &near["nodes"][1]["ended"]),
            (&json!("src/auth/login.ts::check"), &json!(true))
        );
        let file = test.ok("neighbors", json!({"ref": "src/auth/login.ts", "radius": 1}));
        assert!(!keys(&file["nodes"]).contains(&"src/auth/login.ts::check"), "others no longer lead there");
        let before = test.ok("neighbors", json!({"ref": "src/auth/login.ts", "radius": 1, "as_of": "tx:2"}));
        assert!(keys(&before["nodes"]).contains(&"src/auth/login.ts::check"), "and the past keeps it");
    }
}

#[test]
fn queries_are_answered_in_their_view_and_within_their_limits() {
    for test in TestEngine::all() {
        shop(&test);
        let rows = |request: Value| test.ok("cypher", request)["rows"].clone();
        let port = "MATCH (s:Service {key: 'auth'}) RETURN s.port, s.title, labels(s)";
        assert_eq!(rows(json!({"query": port})), json!([[8080, "Auth", ["Service", "core"]]]));
        test.fixture.clock.advance(60);
        test.ok("branch_create", json!({"name": "next", "pinned": true}));
        test.ok("patch", json!({"ref": "Service:auth", "set": ["port=1"]}));
        test.ok("patch", json!({"ref": "Service:auth", "set": ["port=2"], "branch": "next"}));
        let asked = "MATCH (s:Service {key: 'auth'}) RETURN s.port";
        assert_eq!(rows(json!({"query": asked})), json!([[1]]), "{}", test.fixture.name);
        assert_eq!(rows(json!({"query": asked, "branch": "next"})), json!([[2]]));
        assert_eq!(rows(json!({"query": asked, "as_of": "tx:1"})), json!([[8080]]));
        let calls = "MATCH (a)-[r:CALLS]->(b) WHERE r.confidence >= $least RETURN a.key, r.derivation, b.status";
        assert_eq!(
            rows(json!({"query": calls, "parameters": {"least": 0.85}})),
            json!([["src/web/page.ts::render", "import", "open"]])
        );
        let shown = test.ok("cypher", json!({"query": "MATCH p = (:Decision)<-[r]-(m) RETURN m, r, p"}));
        let (node, edge, path) = (&shown["rows"][0][0], &shown["rows"][0][1], &shown["rows"][0][2]);
        assert_eq!((&node["type"], &node["properties"]["title"]), (&json!("Meeting"), &json!("Sprint 34")));
        assert_eq!(
            (&edge["type"], &edge["src"], &edge["dst"]),
            (&json!("decides"), &json!("Meeting:sprint-34"), &json!("Decision:flags"))
        );
        assert_eq!((path["nodes"].as_array().unwrap().len(), path["relationships"][0] == *edge), (2, true));
        let cut = test.ok("cypher", json!({"query": "MATCH (n) RETURN n.key", "limit": 3}));
        assert_eq!((cut["rows"].as_array().unwrap().len(), &cut["truncated"]), (3, &json!(true)));
        assert_eq!(cut["summary"], "the first 3 rows of more");
        let slip = test.ok("cypher", json!({"query": "MATCH (n:Servce)-[:CALL]->() RETURN n"}));
        assert_eq!(slip["warnings"].as_array().unwrap().len(), 2, "{slip}");
        assert!(test.ok("cypher", json!({"query": "MATCH (n:Service) RETURN n"})).get("warnings").is_none());
        let dates = test.ok(
            "cypher",
            json!({"query": "RETURN date($d) AS d, $t.year AS y, 1.0 / 0 AS i",
            "parameters": {"d": "2026-01-31", "t": {"$date": "2020-02-03"}}}),
        );
        assert_eq!(dates["rows"], json!([["2026-01-31", 2020, "Infinity"]]));
        for (request, want) in [
            (json!({"query": "MATCH (n) RETURN"}), "cypher_syntax_error"),
            (json!({"query": "MATCH (n) DETACH DELETE n"}), "read_only"),
            (json!({"query": "RETURN $x"}), "cypher_parameter_missing"),
            (json!({"query": "RETURN 1 / 0"}), "cypher_arithmetic_error"),
            (json!({"query": "RETURN toInteger([])"}), "cypher_type_error"),
            (json!({"query": "RETURN range(1, 2, 0)"}), "cypher_argument_error"),
            (json!({"query": "CALL nothing()"}), "cypher_procedure_error"),
            (
                json!({"query": "UNWIND range(1, 2000000) AS a UNWIND range(1, 2000000) AS b RETURN sum(a)", "timeout_ms": 50}),
                "query_timeout",
            ),
            (
                json!({"query": "UNWIND range(1, 20) AS a UNWIND range(1, 2000000) AS b RETURN collect([a, b])", "timeout_ms": 30_000}),
                "query_memory",
            ),
            (
                json!({"query": "MATCH (n) WITH collect(n) AS l UNWIND range(1, 9000) AS i RETURN [l, l, l, l]", "limit": 10_000}),
                "answer_too_large",
            ),
            (json!({"query": "RETURN 1", "timeout_ms": 30_001}), "out_of_range"),
            (json!({"query": "RETURN 1", "limit": 0}), "out_of_range"),
            (json!({"query": "RETURN 1", "branch": "nowhere"}), "unknown_branch"),
        ] {
            assert_eq!(code(&test, "cypher", request), want);
        }
        let wrong = test.call("cypher", json!({"query": "MATCH (n)\nRETURN m"})).unwrap_err();
        assert_eq!((&wrong.details["line"], &wrong.details["column"]), (&json!(2), &json!(8)));
        assert_eq!(wrong.details["detail"], "UndefinedVariable");
    }
}
