//! Operations on code, called as surfaces call them, on every store.

use crate::test_engine::TestEngine;
use lukasa_engine::Context;
use lukasa_engine::features::graph::communities::CommunityCache;
use lukasa_model::{Error, ErrorCode, Scope};
use serde_json::{Value, json};

fn object(type_name: &str, key: &str, more: Value) -> Value {
    let name = key.rsplit("::").next().unwrap().rsplit('/').next().unwrap();
    let mut put = json!({"type": type_name, "key": key, "title": name});
    put.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    if let Some((path, _)) = key.split_once("::")
        && type_name != "External"
    {
        put["properties"]["path"] = json!(path);
    }
    json!({"object": put})
}

fn link(type_name: &str, src: &str, dst: &str) -> Value {
    json!({"relationship": {"type": type_name, "src": src, "dst": dst}})
}

fn call(src: &str, dst: &str, lines: &[u32], confidence: f64, derivation: &str) -> Value {
    let mut properties = json!({"line": lines[0]});
    if lines.len() > 1 {
        properties["calls"] = json!(lines.len());
        properties["lines"] = json!(lines);
    }
    json!({"relationship": {"type": "CALLS", "src": src, "dst": dst, "confidence": confidence,
        "derivation": derivation, "properties": properties}})
}

const AUTH: &str = "src/auth.py";
const LOGIN: &str = "src/auth.py::login";
const CLOSE: &str = "src/auth.py::Session::close";
const MADE: &str = "src/auth.py::Session::__init__";
const RENDER: &str = "src/web.py::render";
const MAIN: &str = "src/web.py::main";
const TEST: &str = "tests/test_auth.py::test_login";
const SHA: &str = "python:hashlib::sha256";

/// The facts that an index would record of a web page that logs in.
fn shop() -> Value {
    let at = |line: u32| json!({"properties": {"line": line, "end_line": line + 5}});
    let says = |line: u32, signature: &str, summary: &str| json!({"properties": {"line": line, "end_line": line + 5, "signature": signature, "summary": summary}});
    let mut writes = vec![
        object(
            "File",
            AUTH,
            json!({"properties": {"path": AUTH, "calls": 6, "lines": 80, "summary": "Who may come in."}}),
        ),
        object("File", "src/base.py", json!({"properties": {"path": "src/base.py", "calls": 0}})),
        object("File", "src/web.py", json!({"properties": {"path": "src/web.py", "calls": 10}})),
        object(
            "File",
            "tests/test_auth.py",
            json!({"labels": ["test"], "properties": {"path": "tests/test_auth.py", "calls": 4}}),
        ),
        object(
            "Function",
            LOGIN,
            json!({"properties": {"line": 10, "end_line": 20, "signature": "def login(user)", "summary": "Lets a user in.", "doc": "Lets a user in.\n\nOr not.", "exported": true, "unresolved_calls": 1}}),
        ),
        object("Function", "src/auth.py::check", says(30, "def check(hash)", "Compares hashes.")),
        object("Class", "src/auth.py::Session", says(40, "class Session(Closable)", "A visit.")),
        object(
            "Method",
            MADE,
            json!({"subtype": "constructor", "properties": {"line": 42, "signature": "def __init__(self)"}}),
        ),
        object("Method", CLOSE, says(50, "def close(self)", "Ends the visit.")),
        object("Interface", "src/base.py::Closable", at(1)),
        object("Method", "src/base.py::Closable::close", at(2)),
        object("Function", RENDER, at(3)),
        object("Function", MAIN, json!({"properties": {"line": 20, "entry": true, "unresolved_calls": 2}})),
        object("Function", "src/web.py::check", at(30)),
        object("Function", "src/web.py::unused_helper", json!({"properties": {"line": 40, "exported": true}})),
        object("Function", TEST, json!({"labels": ["test"], "properties": {"line": 4, "test": true}})),
        object("Package", "python:hashlib", json!({})),
        object("External", SHA, json!({"properties": {"package": "hashlib"}})),
        call(RENDER, LOGIN, &[5, 9], 0.95, "import"),
        call(TEST, LOGIN, &[6], 0.9, "type"),
        call("src/web.py::check", LOGIN, &[33], 0.3, "unique_name"),
        call("src/web.py::check", "src/web.py::check", &[34], 0.98, "exact"),
        call(MAIN, RENDER, &[22], 0.98, "exact"),
        call(RENDER, MAIN, &[8], 0.4, "unique_name"),
        call(LOGIN, "src/auth.py::check", &[12], 0.98, "exact"),
        call(LOGIN, SHA, &[13], 0.95, "import"),
        call(LOGIN, MADE, &[15], 0.98, "exact"),
        call(RENDER, "src/base.py::Closable::close", &[7], 0.9, "type"),
        link("IMPLEMENTS", "src/auth.py::Session", "src/base.py::Closable"),
        link("IMPORTS", "src/web.py", AUTH),
        link("IMPORTS", "src/web.py", "src/base.py"),
        link("IMPORTS", AUTH, "src/base.py"),
        link("IMPORTS", AUTH, "python:hashlib"),
        link("IMPORTS", "tests/test_auth.py", AUTH),
        link("TESTS", "tests/test_auth.py", AUTH),
    ];
    for (above, below) in [
        (AUTH, LOGIN),
        (AUTH, "src/auth.py::check"),
        (AUTH, "src/auth.py::Session"),
        ("src/auth.py::Session", MADE),
        ("src/auth.py::Session", CLOSE),
        ("src/base.py", "src/base.py::Closable"),
        ("src/base.py::Closable", "src/base.py::Closable::close"),
        ("src/web.py", RENDER),
        ("src/web.py", MAIN),
        ("src/web.py", "src/web.py::check"),
        ("src/web.py", "src/web.py::unused_helper"),
        ("tests/test_auth.py", TEST),
    ] {
        writes.push(link("CONTAINS", above, below));
    }
    json!({"kind": "full_rebuild", "writes": writes})
}

fn tests() -> Vec<TestEngine> {
    let all = TestEngine::all();
    for test in &all {
        test.ok("batch", shop());
        test.engine.state::<CommunityCache>().settle();
    }
    all
}

fn keys(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|n| n["key"].as_str().unwrap()).collect()
}

fn error(test: &TestEngine, name: &str, request: Value) -> Error {
    test.call(name, request.clone()).map(|v| panic!("{name} {request}: {v}")).unwrap_err()
}

#[test]
fn callers_are_listed_with_lines_and_confidence() {
    for test in tests() {
        let out = test.ok("get_callers", json!({"ref": "login"}));
        assert_eq!(keys(&out["callers"]), [RENDER, TEST]);
        assert_eq!(
            out["summary"],
            "2 functions call `login`, 1 of them a test; 1 call less sure left out; 3 calls in 2 files around it could \
             not be resolved, so callers may be missing"
        );
        let first = &out["callers"][0];
        assert_eq!(
            (&first["path"], &first["line"], &first["call_lines"]),
            (&json!("src/web.py"), &json!(3), &json!([5, 9]))
        );
        assert_eq!(
            (&first["confidence"], &first["derivation"], &first["depth"]),
            (&json!(0.95), &json!("import"), &json!(1))
        );
        assert_eq!((&first["title"], &first["type"], first.get("test")), (&json!("render"), &json!("Function"), None));
        assert_eq!(
            (&out["callers"][1]["test"], &out["total"], &out["truncated"]),
            (&json!(true), &json!(2), &json!(false))
        );
        assert_eq!(
            (&out["unresolved"]["calls"], &out["unresolved"]["files"], &out["less_sure"]),
            (&json!(3), &json!(2), &json!(1))
        );
        let deep =
            test.ok("get_callers", json!({"ref": LOGIN, "depth": 3, "include_tests": false, "min_confidence": 0}));
        assert_eq!(keys(&deep["callers"]), [RENDER, "src/web.py::check", MAIN]);
        assert_eq!((&deep["callers"][2]["via"], &deep["callers"][2]["depth"]), (&json!(RENDER), &json!(2)));
        assert!(deep["summary"].as_str().unwrap().starts_with("3 functions lead to `login` within 3 calls"));
        let few = test.ok("get_callers", json!({"ref": LOGIN, "limit": 1}));
        assert_eq!((keys(&few["callers"]), &few["total"], &few["truncated"]), (vec![RENDER], &json!(2), &json!(true)));
        let own = test.ok("get_callers", json!({"ref": "src/web.py::check"}));
        assert_eq!((&own["recursive"], &own["total"]), (&json!(true), &json!(0)));
        let made = test.ok("get_callers", json!({"ref": "Session"}));
        assert_eq!(
            (keys(&made["callers"]), &made["callers"][0]["via"]),
            (vec![LOGIN], &json!(MADE)),
            "making one calls its constructor"
        );
        for (field, value) in [("depth", json!(7)), ("limit", json!(0)), ("min_confidence", json!(2))] {
            assert_eq!(error(&test, "get_callers", json!({"ref": LOGIN, field: value})).code, ErrorCode::OutOfRange);
        }
    }
}

#[test]
fn calls_of_a_declared_method_may_reach_another() {
    for test in tests() {
        let out = test.ok("get_callers", json!({"ref": "Session.close"}));
        assert_eq!((keys(&out["callers"]).len(), &out["symbol"]["key"]), (0, &json!(CLOSE)));
        assert_eq!(out["through"][0]["declared"]["key"], "src/base.py::Closable::close");
        assert_eq!((keys(&out["through"][0]["symbols"]), &out["through"][0]["total"]), (vec![RENDER], &json!(1)));
        assert!(
            out["summary"].as_str().unwrap().starts_with("no call of `Session::close` was found; 1 more may reach it")
        );
        let out = test.ok("get_callees", json!({"ref": RENDER}));
        assert_eq!(keys(&out["callees"]), [LOGIN, "src/base.py::Closable::close", MAIN]);
        assert_eq!(keys(&out["through"][0]["symbols"]), [CLOSE], "may run in its place");
    }
}

#[test]
fn callees_inside_and_outside_of_the_project() {
    for test in tests() {
        let out = test.ok("get_callees", json!({"ref": "login"}));
        assert_eq!(keys(&out["callees"]), [MADE, "src/auth.py::check"]);
        assert_eq!((keys(&out["external"]), &out["external"][0]["call_lines"]), (vec![SHA], &json!([13])));
        assert_eq!(
            (&out["unresolved_calls"], &out["total"], &out["total_external"]),
            (&json!(1), &json!(2), &json!(1))
        );
        assert_eq!(
            out["summary"],
            "`login` calls 2 functions, and 1 name outside of the project; 1 call could not be resolved"
        );
        let deep = test.ok("get_callees", json!({"ref": MAIN, "depth": 2}));
        assert_eq!(keys(&deep["callees"]), [RENDER, LOGIN, "src/base.py::Closable::close"]);
        let file = test.ok("get_callees", json!({"ref": "web.py"}));
        assert_eq!(keys(&file["callees"]), [LOGIN, "src/base.py::Closable::close"], "what leads out of the file");
        assert_eq!((&file["callees"][0]["via"], &file["unresolved_calls"]), (&json!(RENDER), &json!(2)));
        let none = test.ok("get_callees", json!({"ref": "unused_helper"}));
        assert_eq!(none["summary"], "`unused_helper` calls nothing here");
    }
}

#[test]
fn callees_of_a_function_contain_the_functions_written_in_it() {
    for test in tests() {
        const OUTER: &str = "src/web.py::outer";
        const INNER: &str = "src/web.py::outer::inner";
        test.ok(
            "batch",
            json!({"writes": [
                object("Function", OUTER, json!({"properties": {"line": 50}})),
                object("Function", INNER, json!({"properties": {"line": 51}})),
                link("CONTAINS", "src/web.py", OUTER),
                link("CONTAINS", OUTER, INNER),
                call(OUTER, INNER, &[53], 0.98, "exact"),
                call(INNER, INNER, &[52], 0.98, "exact"),
                call(INNER, LOGIN, &[52], 0.95, "import"),
            ]}),
        );
        let out = test.ok("get_callees", json!({"ref": OUTER}));
        assert_eq!(keys(&out["callees"]), [INNER, LOGIN]);
        assert_eq!((&out["callees"][0].get("via"), &out["callees"][1]["via"]), (&None, &json!(INNER)));
        assert_eq!(out["summary"], "`outer` calls 2 functions");
        let inner = test.ok("get_callees", json!({"ref": INNER}));
        assert_eq!((keys(&inner["callees"]), &inner["recursive"]), (vec![LOGIN], &json!(true)));
    }
}

#[test]
fn unresolved_calls_of_the_same_name_are_reported_with_callers() {
    for test in tests() {
        let sites = |path: &str, sites: Value| {
            object("File", path, json!({"properties": {"path": path, "unresolved_sites": sites}}))
        };
        test.ok(
            "batch",
            json!({"writes": [
                sites("src/far.py", json!(["open:3", "unused_helper:7", "unused_helper:9"])),
                sites("src/far.go", json!(["unused_helper:1"])),
                sites("src/further.py", json!(["unused_helper:2", "unused_helpers:3"])),
            ]}),
        );
        let out = test.ok("get_callers", json!({"ref": "unused_helper"}));
        assert_eq!(
            out["summary"],
            "no call of `unused_helper` was found; 3 calls of a `unused_helper` in 2 files could not be resolved and may be \
             calls of it"
        );
        assert_eq!(
            out["unresolved_namesakes"],
            json!({"calls": 3, "files": 2, "sites": ["src/far.py:7", "src/far.py:9", "src/further.py:2"]})
        );
        let other = test.ok("get_callers", json!({"ref": "render"}));
        assert_eq!(other.get("unresolved_namesakes"), None);
        let doubt = "3 calls of a `unused_helper` in 2 files could not be resolved and may be calls of it";
        for operation in ["impact", "semantic_slice"] {
            let summary = test.ok(operation, json!({"ref": "unused_helper"}))["summary"].clone();
            assert!(summary.as_str().unwrap().ends_with(doubt), "{operation}: {summary}");
        }
    }
}

#[test]
fn chains_of_calls_or_why_there_is_none() {
    for test in tests() {
        let out = test.ok("call_chain", json!({"from": "main", "to": SHA}));
        let chain = &out["chains"][0];
        assert_eq!(keys(&chain["steps"]), [MAIN, RENDER, LOGIN, SHA]);
        assert_eq!(
            (&chain["calls"], &chain["confidence"], &chain["steps"][1]["call_lines"]),
            (&json!(3), &json!(0.95), &json!([5, 9]))
        );
        assert_eq!(out["summary"], "`main` leads to `sha256` by 3 calls, at confidence 0.95 or more");
        let none = test.ok("call_chain", json!({"from": "login", "to": "main"}));
        assert_eq!((keys(&none["reverse"]["steps"]), none.get("less_sure")), (vec![MAIN, RENDER, LOGIN], None));
        assert!(none["summary"].as_str().unwrap().ends_with("; there is one in the other direction"));
        let unsure = test.ok("call_chain", json!({"from": "src/web.py::check", "to": "login"}));
        assert_eq!((&unsure["less_sure"]["confidence"], &unsure["chains"]), (&json!(0.3), &json!([])));
        let short = test.ok("call_chain", json!({"from": "main", "to": SHA, "max_depth": 2}));
        assert_eq!(
            short["summary"],
            "no chain of calls from `main` to `sha256` within 2 calls, nor in the other direction"
        );
        let circle = test.ok("call_chain", json!({"from": "main", "to": "main"}));
        assert_eq!(keys(&circle["chains"][0]["steps"]), [MAIN, RENDER, MAIN]);
        let files = test.ok("call_chain", json!({"from": "src/web.py", "to": AUTH}));
        assert_eq!(keys(&files["chains"][0]["steps"]), [RENDER, LOGIN], "files stand for what is in them");
        assert_eq!(
            error(&test, "call_chain", json!({"from": "main", "to": "nowhere_at_all"})).code,
            ErrorCode::NotFound
        );
    }
}

#[test]
fn several_chains_of_one_length_come_surest_first() {
    for test in TestEngine::all() {
        let mut writes: Vec<Value> =
            ["a", "b", "c", "d", "e"].iter().map(|n| object("Function", &format!("x.py::{n}"), json!({}))).collect();
        for (through, confidence) in [("b", 0.6), ("c", 0.95), ("d", 0.8)] {
            writes.push(call("x.py::a", &format!("x.py::{through}"), &[1], confidence, "type"));
            writes.push(call(&format!("x.py::{through}"), "x.py::e", &[2], 0.98, "exact"));
        }
        test.ok("batch", json!({"writes": writes}));
        let out = test.ok("call_chain", json!({"from": "a", "to": "e", "limit": 2}));
        let sure: Vec<_> =
            out["chains"].as_array().unwrap().iter().map(|c| c["confidence"].as_f64().unwrap()).collect();
        assert_eq!((sure, &out["truncated"]), (vec![0.95, 0.8], &json!(true)));
        let all = test.ok("call_chain", json!({"from": "a", "to": "e"}));
        assert_eq!((all["chains"].as_array().unwrap().len(), &all["truncated"]), (3, &json!(false)));
    }
}

#[test]
fn the_call_graph_in_numbers() {
    for test in tests() {
        let out = test.ok("call_graph_stats", json!({}));
        assert_eq!(out["symbols"], json!({"File": 4, "Function": 7, "Class": 1, "Interface": 1, "Method": 3}));
        assert_eq!(
            (&out["calls"], &out["external"], &out["call_sites"], &out["unresolved"]),
            (&json!(10), &json!(1), &json!(20), &json!(3))
        );
        assert_eq!(out["unresolved_share"], 0.15);
        assert_eq!(out["by_derivation"]["import"], json!({"calls": 2, "mean_confidence": 0.95}));
        assert_eq!(out["most_called"][0], json!({"key": LOGIN, "type": "Function", "count": 3}));
        assert_eq!((&out["most_calling"][0]["key"], &out["most_calling"][0]["count"]), (&json!(LOGIN), &json!(3)));
        assert_eq!(out["entry_points"], json!({"total": 1, "symbols": [MAIN]}));
        assert_eq!(
            (&out["never_called"], &out["never_called_exported"]),
            (&json!(2), &json!(1)),
            "helper and Session::close"
        );
        assert_eq!(out["cycles"], json!({"total": 1, "largest": {"total": 2, "symbols": [MAIN, RENDER]}}));
        assert_eq!(out["recursive"], json!({"total": 1, "symbols": ["src/web.py::check"]}));
        let part = test.ok("call_graph_stats", json!({"path": "src/auth", "limit": 1}));
        assert_eq!(
            (&part["symbols"]["File"], &part["calls"], part["most_called"].as_array().unwrap().len()),
            (&json!(1), &json!(3), 1)
        );
        assert_eq!(part["cycles"]["total"], 0);
        let none = test.ok("call_graph_stats", json!({"path": "no/such"}));
        assert_eq!((&none["calls"], none.get("unresolved_share")), (&json!(0), None));
    }
}

#[test]
fn symbols_are_found_by_names_that_are_nearly_right() {
    for test in tests() {
        let out = test.ok("symbol_lookup", json!({"query": "login"}));
        assert_eq!(keys(&out["symbols"]), [LOGIN, TEST]);
        let first = &out["symbols"][0];
        assert_eq!((&first["score"], &first["match"], &first["callers"]), (&json!(1.0), &json!("exact"), &json!(3)));
        assert_eq!(
            (&first["signature"], &first["about"], &first["line"]),
            (&json!("def login(user)"), &json!("Lets a user in."), &json!(10))
        );
        assert_eq!(out["summary"], "1 symbol is named `login`; 1 name near it");
        let ask = |query: &str, more: Value| {
            let mut request = json!({"query": query});
            request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let out = test.ok("symbol_lookup", request);
            keys(&out["symbols"]).iter().map(|k| k.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(ask("LOGIN", json!({}))[0], LOGIN);
        assert_eq!(ask("helper unused", json!({})), ["src/web.py::unused_helper"]);
        assert_eq!(ask("lgoin", json!({})), [LOGIN]);
        assert_eq!(ask("Session.close", json!({}))[0], CLOSE);
        assert_eq!(ask("close", json!({"types": ["Method"], "path": "src/auth"})), [CLOSE]);
        assert_eq!(ask("check", json!({})), ["src/auth.py::check", "src/web.py::check"], "equally called: by key");
        assert_eq!(ask("zzzz", json!({})), Vec::<String>::new());
        let few = test.ok("symbol_lookup", json!({"query": "s", "limit": 2}));
        assert_eq!((few["symbols"].as_array().unwrap().len(), &few["truncated"]), (2, &json!(true)));
        assert_eq!(error(&test, "symbol_lookup", json!({"query": " "})).code, ErrorCode::InvalidRequest);
        assert_eq!(
            error(&test, "symbol_lookup", json!({"query": "x", "types": ["FUNKTION"]})).code,
            ErrorCode::NoSuchType
        );
    }
}

#[test]
fn a_symbol_is_explained() {
    for test in tests() {
        let text = test
            .engine
            .answer(
                &mut Context::of(test.fixture.ledger.scope().clone(), &mut |_, _| {}),
                "code_explain",
                json!({"ref": "login"}),
            )
            .unwrap()
            .text()
            .unwrap();
        assert!(text.starts_with("{\"summary\":") && text.find("\"dependencies\"") < text.find("\"symbol\""));
        let out = test.ok("code_explain", json!({"ref": "login"}));
        assert_eq!(
            out["summary"],
            "`login` is a function in src/auth.py:10: Lets a user in; 2 callers, 1 test, 3 callees"
        );
        let relations = |field: &str| -> Vec<(String, u64)> {
            let groups = out[field].as_array().unwrap().iter();
            groups.map(|g| (g["relation"].as_str().unwrap().to_string(), g["total"].as_u64().unwrap())).collect()
        };
        assert_eq!(relations("dependencies"), [("calls".to_string(), 2), ("calls_outside".to_string(), 1)]);
        assert_eq!(relations("dependents"), [("called_by".to_string(), 2), ("tested_by".to_string(), 1)]);
        assert_eq!(out["dependents"][0]["symbols"][0]["confidence"], 0.95);
        let symbol = &out["symbol"];
        assert_eq!(
            (&symbol["signature"], &symbol["end_line"], &symbol["flags"]),
            (&json!("def login(user)"), &json!(20), &json!(["exported"]))
        );
        assert!(symbol["doc"].as_str().unwrap().contains("Or not."));
        assert_eq!((&out["container"]["key"], &out["importance"]["of"]), (&json!(AUTH), &json!(16)));
        assert!(out["importance"]["place"].as_u64().unwrap() <= 16 && out["community"]["key"].is_string());
        assert_eq!((&out["history"]["tx"], &out["history"]["version"]), (&json!(1), &json!(1)));

        let file = test.ok("code_explain", json!({"ref": "auth.py"}));
        assert_eq!(keys(&file["members"]), [LOGIN, "src/auth.py::check", "src/auth.py::Session"]);
        assert_eq!((&file["members"][1]["signature"], &file["total_members"]), (&json!("def check(hash)"), &json!(3)));
        let groups: Vec<_> = file["dependents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|g| (g["relation"].as_str().unwrap(), keys(&g["symbols"])))
            .collect();
        assert_eq!(
            groups,
            [
                ("called_by", vec![RENDER, "src/web.py::check"]),
                ("imported_by", vec!["src/web.py", "tests/test_auth.py"]),
                ("tested_by", vec!["tests/test_auth.py"])
            ]
        );
        let interface = test.ok("code_explain", json!({"ref": "Closable"}));
        assert!(
            interface["summary"]
                .as_str()
                .unwrap()
                .starts_with("`Closable` is an interface in src/base.py:1; 1 caller, 1 subtype")
        );
        let few = test.ok("code_explain", json!({"ref": "auth.py", "limit": 1}));
        assert_eq!((&few["truncated"], few["dependents"][0]["symbols"].as_array().unwrap().len()), (&json!(true), 1));
    }
}

#[test]
fn names_that_are_not_clear_or_not_known() {
    for test in tests() {
        let unclear = error(&test, "get_callers", json!({"ref": "check"}));
        assert_eq!((unclear.code, unclear.kind.http_status()), (ErrorCode::Ambiguous, 400));
        assert_eq!(unclear.details["candidates"].as_array().unwrap().len(), 2);
        assert!(unclear.hint.unwrap().contains("Function:src/auth.py::check"));
        for one in ["Function:src/web.py::check", "web.py::check", "web.check", "src/web.py::check"] {
            assert_eq!(test.ok("get_callers", json!({"ref": one}))["symbol"]["key"], "src/web.py::check", "{one}");
        }
        for (asked, meant) in [
            ("Method:Session::close", CLOSE),
            ("auth.Session.close", CLOSE),
            ("sha256", SHA),
            ("hashlib", "python:hashlib"),
            ("File:auth.py", AUTH),
        ] {
            assert_eq!(test.ok("code_explain", json!({"ref": asked}))["symbol"]["key"], meant, "{asked}");
        }
        let id = test.ok("get", json!({"ref": LOGIN}))["thing"]["id"].clone();
        assert_eq!(test.ok("code_explain", json!({"ref": id}))["symbol"]["key"], LOGIN);
        let unknown = error(&test, "code_explain", json!({"ref": "lgoin"}));
        assert_eq!((unknown.code, unknown.kind.http_status()), (ErrorCode::NotFound, 404));
        assert_eq!(unknown.hint.unwrap(), "closest: `Function:src/auth.py::login`");
        assert!(error(&test, "code_explain", json!({"ref": "qqqqqqqq"})).hint.unwrap().contains("lukasa symbol"));
        let mut writes = Vec::new();
        for i in 0..14 {
            writes.push(object("Function", &format!("gen/f{i}.py::same"), json!({})));
        }
        test.ok("batch", json!({"writes": writes}));
        let many = error(&test, "get_callees", json!({"ref": "same"}));
        assert_eq!((many.details["candidates"].as_array().unwrap().len(), &many.details["total"]), (10, &json!(14)));
        assert!(many.hint.unwrap().ends_with(", and 4 more"));
        test.fixture.clock.advance(1);
        test.ok("delete", json!({"ref": LOGIN}));
        assert!(error(&test, "code_explain", json!({"ref": LOGIN})).hint.unwrap().contains("lukasa history"));
    }
}

#[test]
fn an_earlier_state_is_answered_as_it_was() {
    for test in tests() {
        test.fixture.clock.advance(60);
        test.ok(
            "batch",
            json!({"git_commit": "0123456789012345678901234567890123456789", "writes": [
                object("Function", LOGIN, json!({"properties": {"line": 11, "signature": "def login(user, code)"}})),
                object("Function", "src/web.py::logout", json!({"properties": {"line": 60}})),
                call("src/web.py::logout", LOGIN, &[61], 0.95, "import"),
                {"end": {"ref": RENDER}},
            ]}),
        );
        let now = test.ok("get_callers", json!({"ref": "login"}));
        assert_eq!((keys(&now["callers"]), &now["symbol"]["line"]), (vec!["src/web.py::logout", TEST], &json!(11)));
        let before = test.ok("get_callers", json!({"ref": "login", "as_of": "tx:1"}));
        assert_eq!((keys(&before["callers"]), &before["symbol"]["line"]), (vec![RENDER, TEST], &json!(10)));
        assert_eq!(before["view"]["known_at"], 1);
        let then = json!({"query": "logout", "as_of": "tx:1"});
        assert!(test.ok("symbol_lookup", then)["symbols"].as_array().unwrap().iter().all(|s| s["match"] != "exact"));
        assert_eq!(
            error(&test, "call_chain", json!({"from": "logout", "to": "login", "as_of": "tx:1"})).code,
            ErrorCode::NotFound
        );
        assert_eq!(test.ok("call_chain", json!({"from": "logout", "to": "login"}))["chains"][0]["calls"], 1);
        assert_eq!(test.ok("call_graph_stats", json!({"as_of": "tx:1"}))["calls"], 10);
        assert_eq!(test.ok("call_graph_stats", json!({}))["calls"], 7);
        let explained = |request: Value| test.ok("code_explain", request);
        let (old, new) = (explained(json!({"ref": "login", "as_of": "tx:1"})), explained(json!({"ref": "login"})));
        assert_eq!(
            (&old["history"]["tx"], &new["history"]["tx"], &new["history"]["version"]),
            (&json!(1), &json!(2), &json!(2))
        );
        assert_eq!(new["symbol"]["signature"], "def login(user, code)");
        assert_eq!(new["history"]["git_commit"], "0123456789012345678901234567890123456789");
        assert_eq!(new["history"]["author"], "ann");
    }
}

#[test]
fn projects_and_tenants_do_not_see_each_other() {
    for test in tests() {
        let ask = |tenant: &str, project: &str, name: &str, request: Value| {
            let scope = Scope::new(tenant, project).unwrap();
            test.engine.call(&mut Context::of(scope, &mut |_, _| {}), name, request)
        };
        for (tenant, project) in [("test", "other"), ("elsewhere", "shop")] {
            let writes = json!({"writes": [
                object("Function", LOGIN, json!({"properties": {"line": 99}})),
                object("Function", "src/own.py::guest", json!({})),
                call("src/own.py::guest", LOGIN, &[7], 0.98, "exact"),
            ]});
            ask(tenant, project, "batch", writes).unwrap();
            let out = ask(tenant, project, "get_callers", json!({"ref": "login"})).unwrap();
            assert_eq!((keys(&out["callers"]), &out["symbol"]["line"]), (vec!["src/own.py::guest"], &json!(99)));
            assert_eq!(ask(tenant, project, "symbol_lookup", json!({"query": "render"})).unwrap()["total"], 0);
            assert_eq!(
                ask(tenant, project, "code_explain", json!({"ref": MAIN})).unwrap_err().code,
                ErrorCode::NotFound
            );
            assert_eq!(ask(tenant, project, "call_graph_stats", json!({})).unwrap()["calls"], 1);
            let chain = ask(tenant, project, "call_chain", json!({"from": "guest", "to": "login"})).unwrap();
            assert_eq!(chain["chains"][0]["calls"], 1);
        }
        let own = test.ok("get_callers", json!({"ref": "login"}));
        assert_eq!(keys(&own["callers"]), [RENDER, TEST]);
    }
}
