//! Patterns in code, and questions in words, on every store.

use crate::test_engine::TestEngine;
use lukasa_engine::features::graph::communities::CommunityCache;
use lukasa_model::ErrorCode;
use serde_json::{Value, json};
use tempfile::TempDir;

fn object(type_name: &str, key: &str, more: Value) -> Value {
    let mut put = json!({"type": type_name, "key": key, "title": key.rsplit("::").next().unwrap()});
    put.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"object": put})
}

fn link(type_name: &str, src: &str, dst: &str) -> Value {
    json!({"relationship": {"type": type_name, "src": src, "dst": dst}})
}

/// Cyclic imports, a hierarchy, and a class and a file that do too much, as an index would record them.
fn muddle() -> Value {
    let mut writes = vec![];
    for file in ["a.py", "b.py", "c.py", "d.py", "big.py"] {
        writes.push(object("File", file, json!({"properties": {"calls": 10, "lines": 100}})));
    }
    writes.push(object("File", "test_a.py", json!({"labels": ["test"]})));
    for (from, to) in [("a.py", "b.py"), ("b.py", "c.py"), ("c.py", "a.py"), ("c.py", "b.py"), ("d.py", "a.py")] {
        writes.push(link("IMPORTS", from, to));
    }
    writes.push(link("TESTS", "test_a.py", "a.py"));
    let mut symbol = |type_name: &str, key: &str, more: Value| {
        writes.push(object(type_name, key, more));
        let above = key.rsplit_once("::").unwrap().0;
        writes.push(link("CONTAINS", above, key));
    };
    symbol("Function", "a.py::used", json!({"properties": {"line": 1, "end_line": 3, "hash": "h1"}}));
    symbol("Function", "a.py::idle", json!({"properties": {"line": 5, "end_line": 9}}));
    symbol("Function", "a.py::again", json!({"properties": {"line": 10, "end_line": 11}}));
    symbol("Function", "a.py::shown", json!({"properties": {"line": 12, "end_line": 13, "exported": true}}));
    symbol("Function", "a.py::main", json!({"properties": {"line": 14, "end_line": 15, "entry": true}}));
    symbol("Function", "b.py::used", json!({"properties": {"line": 1, "end_line": 3, "hash": "h1"}}));
    symbol(
        "Function",
        "b.py::long",
        json!({"properties": {"line": 10, "end_line": 110, "unresolved_calls": 6, "exported": true}}),
    );
    symbol("Function", "test_a.py::test_used", json!({"labels": ["test"], "properties": {"line": 1, "test": true}}));
    for n in 0..6 {
        symbol("Class", &format!("d.py::C{n}"), json!({"properties": {"line": n * 10 + 1}}));
    }
    symbol("Interface", "d.py::Closable", json!({}));
    symbol("Method", "d.py::Closable::close", json!({"properties": {"abstract": true}}));
    symbol("Method", "d.py::C0::close", json!({}));
    symbol("Class", "big.py::Big", json!({}));
    for n in 0..45 {
        symbol("Method", &format!("big.py::Big::m{n:02}"), json!({"properties": {"line": n + 1, "end_line": n + 1}}));
    }
    for n in 0..5 {
        writes.push(link("EXTENDS", &format!("d.py::C{}", n + 1), &format!("d.py::C{n}")));
    }
    writes.push(link("IMPLEMENTS", "d.py::C0", "d.py::Closable"));
    for (from, to) in [
        ("a.py::main", "a.py::used"),
        ("test_a.py::test_used", "a.py::used"),
        ("a.py::again", "a.py::again"),
        ("a.py::used", "b.py::used"),
        ("b.py::long", "big.py::Big::m00"),
    ] {
        writes.push(link("CALLS", from, to));
    }
    json!({"kind": "full_rebuild", "writes": writes})
}

fn tests() -> Vec<TestEngine> {
    let all = TestEngine::all();
    for test in &all {
        test.ok("batch", muddle());
        test.engine.state::<CommunityCache>().settle();
    }
    all
}

/// What a pattern finds: reference and detail.
fn found(test: &TestEngine, request: Value) -> Vec<(String, String)> {
    let out = test.ok("find_pattern", request.clone());
    let groups = out["groups"].as_array().unwrap();
    assert!(groups.len() <= 1, "{request}: {out}");
    let items = groups.first().map(|group| group["items"].as_array().unwrap().clone()).unwrap_or_default();
    let text = |item: &Value, field: &str| item[field].as_str().unwrap().to_string();
    items.iter().map(|item| (text(item, "ref"), text(item, "detail"))).collect()
}

#[test]
fn named_patterns_are_found() {
    for test in tests() {
        for (pattern, expected) in [
            ("circular_imports", vec![("File:a.py", "a.py -> b.py -> c.py -> a.py")]),
            ("circular imports", vec![("File:a.py", "a.py -> b.py -> c.py -> a.py")]),
            ("unused-exports", vec![("Function:a.py::shown", "no use found"), ("Function:b.py::long", "no use found")]),
            ("long_functions", vec![("Function:b.py::long", "101 lines (10-110), calls 1 symbol")]),
            ("deep_inheritance", vec![("Class:d.py::C5", "5 levels: C5 -> C4 -> C3 -> C2 -> C1 -> C0")]),
            ("duplicate_names", vec![("Function:a.py::used", "`used` in 2 files: a.py, b.py; 2 are the same")]),
            ("unresolved_hotspots", vec![("File:b.py", "6 of 10 calls (60 %)")]),
            ("god_classes", vec![("Class:big.py::Big", "45 methods, 0 fields, called from 1 place")]),
            ("god_files", vec![("File:big.py", "46 symbols, 100 lines, imports 0 files, imported by 0")]),
            (
                "untested",
                vec![
                    ("File:big.py", "45 functions, imported by 0 files; no test reaches it"),
                    ("File:d.py", "2 functions, imported by 0 files; no test reaches it"),
                    ("File:b.py", "2 functions, imported by 2 files; tests reach it only through others"),
                ],
            ),
        ] {
            let places = found(&test, json!({"pattern": pattern}));
            let places: Vec<(&str, &str)> = places.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            assert_eq!(places, expected, "{pattern}");
        }
        let idle = found(&test, json!({"pattern": "unreferenced", "path": "a.py"}));
        assert_eq!(
            idle,
            [
                ("Function:a.py::idle".to_string(), "5 lines".to_string()),
                ("Function:a.py::again".to_string(), "2 lines; only it calls itself".to_string())
            ]
        );
        // It reports what was not found, and where that may be wrong; it never advises to delete anything.
        let whole = test.ok("find_pattern", json!({"pattern": "unreferenced"}));
        let group = &whole["groups"][0];
        let advice = group["suggestion"].as_str().unwrap();
        assert!(
            advice.starts_with("no call of them and no reference to them was found in the indexed files"),
            "{advice}"
        );
        assert!(["reflection", "macros", "not seen"].iter().all(|word| advice.contains(word)), "{advice}");
        let all = test.ok("find_pattern", json!({"pattern": "all"})).to_string().to_lowercase();
        assert!(!all.contains("delete") && !all.contains("remove"), "{all}");
        test.ok(
            "batch",
            json!({"writes": [object("File", "far.py", json!({"properties": {"unresolved_sites": ["idle:4", "idle:9"]}}))]}),
        );
        let idle = found(&test, json!({"pattern": "unreferenced", "path": "a.py"}));
        assert_eq!(idle[0].1, "5 lines; 2 calls of that name could not be resolved");
        test.ok(
            "batch",
            json!({"writes": [object("File", "far.py", json!({"properties": {"unresolved_sites": ["shown:4"]}}))]}),
        );
        let exports = found(&test, json!({"pattern": "unused_exports", "path": "a.py"}));
        assert_eq!(exports[0].1, "no use found; 1 call of that name could not be resolved");
        let methods = found(&test, json!({"pattern": "unreferenced", "path": "d.py"}));
        assert!(methods.is_empty(), "an interface's method is called through it: {methods:?}");
    }
}

#[test]
fn answers_are_grouped_and_cut_where_they_say_so() {
    for test in tests() {
        let all = test.ok("find_pattern", json!({"pattern": "all", "limit": 3}));
        let groups = all["groups"].as_array().unwrap();
        assert_eq!(groups.len(), 10);
        assert_eq!(all["truncated"], true);
        for group in groups {
            let (listed, count) = (group["items"].as_array().unwrap().len(), group["count"].as_u64().unwrap() as usize);
            assert_eq!(listed, count.min(3), "{group}");
            assert_eq!(group["truncated"], count > 3);
            assert!(!group["suggestion"].as_str().unwrap().is_empty() && !group["severity"].is_null());
        }
        let again = test.ok("find_pattern", json!({"pattern": "all", "limit": 3}));
        assert_eq!(all, again, "the same question has the same answer");
        let none = test.ok("find_pattern", json!({"pattern": "circular_imports", "path": "big.py"}));
        assert_eq!((none["groups"].as_array().unwrap().len(), &none["truncated"]), (0, &json!(false)));
        assert!(none["summary"].as_str().unwrap().contains("nothing found"));
    }
}

#[test]
fn shapes_are_found() {
    for test in tests() {
        let class = |n: usize| format!("Class:d.py::C{n}");
        let places = found(&test, json!({"pattern": "Class -EXTENDS-> Class -IMPLEMENTS-> Interface"}));
        assert_eq!(places, [(class(1), "d.py::C1 -EXTENDS-> d.py::C0 -IMPLEMENTS-> d.py::Closable".to_string())]);
        let places = found(&test, json!({"pattern": "Class:C2 <-EXTENDS- *"}));
        assert_eq!(places, [(class(2), "d.py::C2 <-EXTENDS- d.py::C3".to_string())]);
        assert_eq!(found(&test, json!({"pattern": "Class -EXTENDS-> Class", "limit": 2})).len(), 2);
        assert!(found(&test, json!({"pattern": "Class -EXTENDS-> Class", "path": "a.py"})).is_empty());
        // A relationship stands for one step only.
        assert!(found(&test, json!({"pattern": "Class:C5 -EXTENDS-> Class:C4 <-EXTENDS- Class"})).is_empty());
        for (pattern, code) in
            [("Class -EXTENDS->", "invalid_pattern"), ("Nothing -> *", "no_such_type"), (" ", "invalid_request")]
        {
            assert_eq!(
                test.call("find_pattern", json!({"pattern": pattern})).unwrap_err().code.name(),
                code,
                "{pattern}"
            );
        }
    }
}

fn indexed() -> Vec<(TestEngine, TempDir)> {
    let make = |test: TestEngine| {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            std::fs::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(folder.path().join(path), text).unwrap();
        };
        write(
            "auth/login.py",
            "from auth.hashes import digest\n\n\ndef login(user):\n    \"\"\"Checks the password of a user.\"\"\"\n    return digest(user)\n",
        );
        write("auth/hashes.py", "def digest(word):\n    \"\"\"The hash of a password.\"\"\"\n    return word\n");
        write("billing/invoice.py", "from billing.tax import rate\n\n\ndef invoice(order):\n    return rate(order)\n");
        write("billing/tax.py", "def rate(order):\n    \"\"\"What the state takes.\"\"\"\n    return order\n");
        test.ok("index_directory", json!({"path": folder.path().to_str().unwrap(), "branch": "main"}));
        test.engine.state::<CommunityCache>().settle();
        (test, folder)
    };
    TestEngine::all().into_iter().map(make).collect()
}

#[test]
fn questions_find_things_areas_or_both() {
    for (test, _folder) in indexed() {
        let out = test.ok("graph_query", json!({"query": "how is the password of a user checked"}));
        let best = &out["local"]["rows"][0];
        assert_eq!(
            (&best["ref"], &best["name"], &best["path"]),
            (&json!("Function:auth/login.py::login"), &json!("login"), &json!("auth/login.py"))
        );
        assert_eq!(best["summary"], "Checks the password of a user.");
        let sum: f64 = best["why"].as_array().unwrap().iter().map(|why| why["score"].as_f64().unwrap()).sum();
        assert!((sum - best["score"].as_f64().unwrap()).abs() < 1e-3, "the score is the sum of its reasons: {best}");
        assert_eq!(
            (&out["local"]["recipe"], &out["global"], &out["cypher"]),
            (&json!("code"), &Value::Null, &Value::Null)
        );
        let one = test.ok("graph_query", json!({"query": "password", "limit": 1}));
        assert_eq!((one["local"]["rows"].as_array().unwrap().len(), &one["truncated"]), (1, &json!(true)));
        let all = test.ok("communities", json!({}));
        let total = all["total"].as_u64().unwrap();
        assert!(total >= 2, "{all}");
        let whole = test.ok("graph_query", json!({"query": "overview of the codebase", "mode": "global"}));
        assert_eq!((&whole["global"]["open_ended"], &whole["global"]["total"]), (&json!(true), &json!(total)));
        assert!(whole["local"].is_null());
        let sizes: Vec<u64> =
            whole["global"]["rows"].as_array().unwrap().iter().map(|r| r["size"].as_u64().unwrap()).collect();
        assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
        let tax = test.ok("graph_query", json!({"query": "where is tax on an invoice computed", "mode": "global"}));
        let best = &tax["global"]["rows"][0];
        assert!(
            tax["global"]["open_ended"] == false && best["central_node"].as_str().unwrap().contains("billing/"),
            "{tax}"
        );
        assert!(!best["why"].as_array().unwrap().is_empty());
        let both = test.ok("graph_query", json!({"query": "tax on an invoice", "mode": "hybrid"}));
        assert!(both["local"]["rows"][0]["path"].as_str().unwrap().starts_with("billing/"), "{both}");
        assert!(!both["global"]["rows"].as_array().unwrap().is_empty());
        let nothing = test.ok("graph_query", json!({"query": "zebra quagga"}));
        assert_eq!((&nothing["local"]["total"], &nothing["truncated"]), (&json!(0), &json!(false)));
        assert_eq!(test.call("graph_query", json!({"query": " "})).unwrap_err().code, ErrorCode::InvalidRequest);
    }
}

#[test]
fn cypher_is_asked_as_by_its_own_name() {
    for (test, _folder) in indexed() {
        let query = "MATCH (f:Function) RETURN f.key ORDER BY f.key";
        let out = test.ok("graph_query", json!({"query": query, "language": "cypher", "limit": 3}));
        let own = test.ok("cypher", json!({"query": query, "limit": 3}));
        assert_eq!(
            (&out["cypher"]["rows"], &out["summary"], &out["truncated"]),
            (&own["rows"], &own["summary"], &json!(true))
        );
        let wrong = test.call("graph_query", json!({"query": "MATCH (", "language": "cypher"})).unwrap_err();
        assert_eq!(wrong.code, ErrorCode::CypherSyntaxError);
        let words = test.ok("find_pattern", json!({"pattern": "password hash"}));
        assert_eq!(words["groups"][0]["items"][0]["ref"], "Function:auth/hashes.py::digest");
        assert!(words["groups"][0]["suggestion"].as_str().unwrap().contains("circular_imports"));
    }
}
