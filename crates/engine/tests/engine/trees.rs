//! Requests without a view are about the working tree of their caller, and a tree is indexed into its own branch only.

use crate::made::Made;
use crate::test_engine::TestEngine;
use gix::objs::tree::EntryKind;
use lukasa_engine::features::code::files::ExcludedPaths;
use lukasa_engine::registry::Operation;
use lukasa_engine::{Effect, Grants, operations};
use lukasa_model::ErrorCode;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const BEFORE: &str = "def one():\n    return two()\n\n\ndef two():\n    pass\n";
const AFTER: &str = "def one():\n    return three()\n\n\ndef two():\n    pass\n\n\ndef three():\n    return 3\n";

/// A clone on its default branch, and the commit a branch can begin at.
fn clone(default: &str) -> Made {
    let made = Made::new();
    let files = [("a.py", EntryKind::Blob, BEFORE)];
    let first = made.commit(default, 1, &[], &files);
    made.commit("feature/x", 2, &[first], &[("a.py", EntryKind::Blob, AFTER)]);
    check_out(&made, default, BEFORE);
    made
}

fn check_out(made: &Made, branch: &str, text: &str) {
    fs::write(made.root.join("a.py"), text).unwrap();
    made.file("HEAD", format!("ref: refs/heads/{branch}\n"));
}

fn callers(answer: &Value) -> Vec<&str> {
    answer["callers"].as_array().unwrap().iter().map(|caller| caller["key"].as_str().unwrap()).collect()
}

#[test]
fn reads_follow_the_branch_that_is_checked_out_and_what_changed_since() {
    for test in TestEngine::all() {
        let made = clone("master");
        test.ok_from(&made.root, "index_directory", json!({"path": made.root}));
        test.ok_from(&made.root, "put", json!({"type": "Service", "key": "web"}));
        check_out(&made, "feature/x", AFTER);
        // A read of a tree that was never indexed.
        let out = test.ok_from(&made.root, "get_callers", json!({"symbol": "three"}));
        assert_eq!((callers(&out), &out["view"]["branch"]), (vec!["a.py::one"], &json!("feature/x")), "{out}");
        assert!(out["behind"].is_null());
        let slice = test.ok_from(&made.root, "semantic_slice", json!({"symbol": "three"}));
        assert_eq!(slice["code"], "def three():\n    return 3\n");
        let rows =
            test.ok_from(&made.root, "cypher", json!({"query": "MATCH (f:Function) RETURN f.title ORDER BY f.title"}));
        assert_eq!(rows["rows"], json!([["one"], ["three"], ["two"]]));
        let found = test.ok_from(&made.root, "search", json!({"query": "three"}));
        assert!(found.to_string().contains("a.py::three"), "{found}");
        let explained = test.ok_from(&made.root, "code_explain", json!({"symbol": "three"}));
        assert_eq!(explained["view"]["branch"], "feature/x");
        let pack = test.ok_from(&made.root, "context_pack", json!({"task": "what does three return"}));
        assert!(pack["freshness"].as_str().unwrap().starts_with("feature/x"), "{pack}");
        // Saved, but not indexed.
        let before = test.fixture.ledger.head().unwrap().tx;
        fs::write(made.root.join("a.py"), format!("{AFTER}\n\ndef four():\n    return three()\n")).unwrap();
        let changed = test.ok_from(&made.root, "diff", json!({"from": format!("tx:{before}")}));
        assert_eq!(changed["to"]["branch"], "feature/x", "{changed}");
        assert!(changed["changes"].to_string().contains("a.py::four"), "{changed}");
        let out = test.ok_from(&made.root, "get_callers", json!({"symbol": "three"}));
        assert_eq!(callers(&out), ["a.py::four", "a.py::one"], "{out}");
        // Writes without a branch are visible to reads without one.
        test.ok_from(&made.root, "put", json!({"type": "Service", "key": "api"}));
        test.ok_from(&made.root, "get", json!({"ref": "Service:api"}));
        assert_eq!(test.fails("get", json!({"ref": "Service:api"})), "not_found", "it is on the branch");
        // A view in the request has precedence, also by git's name of the branch.
        for branch in ["main", "master"] {
            let out = test.ok_from(&made.root, "get_callers", json!({"symbol": "two", "branch": branch}));
            assert_eq!((callers(&out), &out["view"]["branch"]), (vec!["a.py::one"], &json!("main")), "{branch}");
        }
        assert_eq!(
            test.call_from(&made.root, Grants::All, "get", json!({"ref": "web", "branch": "nobody"})).unwrap_err().code,
            ErrorCode::UnknownBranch
        );
        check_out(&made, "master", BEFORE);
        let out = test.ok_from(&made.root, "get_callers", json!({"symbol": "two"}));
        assert_eq!((callers(&out), &out["view"]["branch"]), (vec!["a.py::one"], &json!("main")));
    }
}

/// Reads, each with `word` in its required fields.
fn reads_with(word: &Value, picked: fn(&Operation) -> bool) -> Vec<(&'static str, Value)> {
    let reads = operations().iter().filter(|operation| operation.meta.effect == Effect::Read && picked(operation));
    let request = |operation: &'static Operation| {
        let fields = operation.fields().keys().filter(|field| operation.requires(field));
        (operation.meta.name, fields.map(|field| (field.clone(), word.clone())).collect())
    };
    reads.map(request).collect()
}

/// Whether an operation reads a view, and not a working tree that it names.
fn takes_a_view(operation: &Operation) -> bool {
    operation.fields().contains_key(operation.meta.branch_field) && operation.meta.places.is_empty()
}

#[test]
fn every_read_that_answers_is_about_the_branch_that_is_checked_out() {
    let test = TestEngine::all().swap_remove(0);
    let made = clone("main");
    test.ok_from(&made.root, "index_directory", json!({"path": made.root}));
    check_out(&made, "feature/x", AFTER);
    let mut about = vec![];
    for word in [json!("three"), json!(["three"])] {
        for (name, request) in reads_with(&word, takes_a_view) {
            let Ok(answer) = test.call_from(&made.root, Grants::All, name, request) else { continue };
            if let Some(branch) = answer["view"]["branch"].as_str() {
                assert_eq!(branch, "feature/x", "{name}: {answer}");
                about.push(name);
            }
        }
    }
    about.sort_unstable();
    about.dedup();
    assert!(about.len() >= 30, "{} of {}: {about:?}", about.len(), reads_with(&Value::Null, takes_a_view).len());
}

#[test]
fn reads_of_a_tree_that_was_never_indexed_report_whose_code_they_are_about() {
    for test in TestEngine::all() {
        let (ours, theirs) = (clone("main"), clone("main"));
        test.ok_from(&theirs.root, "put", json!({"type": "Service", "key": "web"}));
        let read =
            |branch: Option<&str>| test.ok_from(&theirs.root, "get", json!({"ref": "Service:web", "branch": branch}));
        assert_eq!(read(None).get("behind"), None, "no code is there yet");
        test.ok_from(&ours.root, "index_directory", json!({"path": ours.root}));
        let head = test.fixture.ledger.head().unwrap().tx;
        let callers_of = |request| test.ok_from(&theirs.root, "get_callers", request);
        let out = callers_of(json!({"symbol": "two"}));
        assert_eq!((callers(&out), &out["behind"]["branch"]), (vec!["a.py::one"], &json!("main")), "{out}");
        assert!(out["behind"]["because"].as_str().unwrap().contains("`lukasa index`"), "{out}");
        // A branch of that name from another clone is nearer than `main`.
        check_out(&theirs, "feature/x", AFTER);
        assert_eq!(callers_of(json!({"symbol": "two"}))["behind"]["branch"], "main");
        check_out(&ours, "feature/x", AFTER);
        test.ok_from(&ours.root, "index_directory", json!({"path": ours.root}));
        let out = callers_of(json!({"symbol": "three"}));
        assert_eq!((callers(&out), &out["behind"]["branch"]), (vec!["a.py::one"], &json!("feature/x")), "{out}");
        // A view in the request is answered as it is.
        assert_eq!(read(Some("main")).get("behind"), None);
        assert!(test.fixture.ledger.head().unwrap().tx > head);
        test.ok_from(&theirs.root, "index_directory", json!({"path": theirs.root}));
        assert_eq!(callers_of(json!({"symbol": "three"})).get("behind"), None);
    }
}

#[test]
fn a_release_and_a_whole_log_have_no_branch_added_to_them() {
    for test in TestEngine::all() {
        let made = clone("main");
        test.ok_from(&made.root, "index_directory", json!({"path": made.root}));
        test.ok_from(&made.root, "release_create", json!({"name": "1.0"}));
        check_out(&made, "feature/x", AFTER);
        for as_of in ["release:1.0", "1.0"] {
            let out = test.ok_from(&made.root, "get_callers", json!({"symbol": "two", "as_of": as_of}));
            assert_eq!((callers(&out), &out["view"]["release"]), (vec!["a.py::one"], &json!("1.0")));
        }
        let out = test.ok_from(&made.root, "get_callers", json!({"symbol": "two", "as_of": "tx:2"}));
        assert_eq!(callers(&out), ["a.py::one"], "{out}");
        let all = made.beside("all.jsonl");
        test.ok_from(&made.root, "export", json!({"file": all, "history": true}));
    }
}

#[test]
fn a_caller_without_write_scope_gets_the_index_and_how_far_it_is_behind() {
    for test in TestEngine::all() {
        let made = clone("main");
        let reader = || Grants::of(["graph:read", "graph:search:read"]);
        // Nothing is indexed for a reader, also not for a pack.
        let refused = test.call_from(&made.root, reader(), "context_pack", json!({"task": "one"}));
        assert!(refused.is_err() && test.fixture.ledger.head().is_err(), "{refused:?}");
        test.ok_from(&made.root, "index_directory", json!({"path": made.root}));
        let head = test.fixture.ledger.head().unwrap().tx;
        fs::write(made.root.join("a.py"), AFTER).unwrap();
        fs::write(made.root.join("b.py"), "def b(): pass\n").unwrap();
        for (operation, request) in
            [("get_callers", json!({"symbol": "two"})), ("context_pack", json!({"task": "one calls two"}))]
        {
            let out = test.call_from(&made.root, reader(), operation, request).unwrap();
            assert_eq!(out["behind"]["files"], 2, "{operation}: {out}");
            assert_eq!(out["behind"]["branch"], "main");
            let options = lukasa_engine::response_budget::ResponseOptions::default();
            let answer = lukasa_engine::response_budget::fit_response(
                lukasa_engine::registry::find(operation).unwrap(),
                out,
                options,
            )
            .unwrap();
            let freshness = answer["freshness"].as_str().unwrap();
            assert!(freshness.ends_with("; 2 files behind the working tree"), "{answer}");
        }
        assert_eq!(test.fixture.ledger.head().unwrap().tx, head, "nothing was written");
    }
}

#[test]
fn a_tree_that_was_never_indexed_is_left_alone_by_every_read() {
    let test = TestEngine::all().swap_remove(0);
    test.ok("put", json!({"type": "Service", "key": "web"}));
    let head = test.fixture.ledger.head().unwrap().tx;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("secret.py"), "def secret(): pass\n").unwrap();
    let reads = reads_with(&json!("web"), |operation| !operation.meta.indexes_first);
    assert!(reads.len() > 40, "{}", reads.len());
    for (name, request) in reads {
        // Most refuse such a request; none may index.
        let _ = test.call_from(folder.path(), Grants::All, name, request);
        assert_eq!(test.fixture.ledger.head().unwrap().tx, head, "{name}");
    }
}

fn files(test: &TestEngine, branch: &str) -> Vec<Value> {
    let rows = test.ok("cypher", json!({"query": "MATCH (f:File) RETURN f.key ORDER BY f.key", "branch": branch}));
    rows["rows"].as_array().unwrap().iter().map(|row| row[0].clone()).collect()
}

#[test]
fn two_clones_on_one_branch_do_not_overwrite_each_other() {
    for test in TestEngine::all() {
        let (ours, theirs) = (clone("main"), clone("main"));
        fs::write(theirs.root.join("b.py"), "def b(): pass\n").unwrap();
        let index = |root: &Path| test.ok_from(root, "index_directory", json!({"path": root}));
        assert_eq!(index(&ours.root)["branch"], "main");
        let second = index(&theirs.root);
        let branch = second["branch"].as_str().unwrap().to_owned();
        assert!(branch.starts_with("main@work-"), "{branch}");
        assert!(second["apart"].as_str().unwrap().contains("--take-over"), "{second}");
        let head = test.fixture.ledger.head().unwrap().tx;
        // Turn by turn, nothing changes any more, and each sees its own files.
        for _ in 0..3 {
            assert_eq!((&index(&ours.root)["tx"], &index(&theirs.root)["tx"]), (&Value::Null, &Value::Null));
            assert_eq!(test.ok_from(&theirs.root, "get", json!({"ref": "File:b.py"}))["view"]["branch"], json!(branch));
            let missing = test.call_from(&ours.root, Grants::All, "get", json!({"ref": "File:b.py"}));
            assert_eq!(missing.unwrap_err().code, ErrorCode::NotFound);
        }
        assert_eq!(test.fixture.ledger.head().unwrap().tx, head);
        assert_eq!((files(&test, "main").len(), files(&test, &branch).len()), (1, 2));
        // With `take_over`, the second clone takes the branch; the first gets a separate one.
        let taken = test.ok_from(&theirs.root, "index_directory", json!({"path": theirs.root, "take_over": true}));
        assert_eq!((&taken["branch"], files(&test, "main").len()), (&json!("main"), 2), "{taken}");
        assert!(index(&ours.root)["branch"].as_str().unwrap().starts_with("main@work-"));
    }
}

#[test]
fn folders_outside_of_git_do_not_end_what_others_have_indexed() {
    for test in TestEngine::all() {
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        fs::write(one.path().join("a.py"), BEFORE).unwrap();
        fs::write(other.path().join("b.py"), BEFORE).unwrap();
        test.ok("index_directory", json!({"path": one.path()}));
        test.ok("index_directory", json!({"path": other.path()}));
        assert_eq!(files(&test, "main"), [json!("a.py")], "an empty folder or another one ends nothing");
    }
}

#[test]
fn a_store_with_its_keys_is_never_indexed_wherever_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir(root.join("data")).unwrap();
    for name in ["main.db", "main.db-wal", "main.audit.db", "main.audit.key", "jwt.txt", "main.go", "data/x.txt"] {
        fs::write(root.join(name), "text\n").unwrap();
    }
    let kept_out = ExcludedPaths {
        exact: vec![root.clone(), root.join("data"), root.join("jwt.txt")],
        beginnings: vec![root.join("main.db"), root.join("main.audit.")],
    };
    let mut test = TestEngine::all().swap_remove(0);
    test.engine = test.engine.clone().with_kept_out(kept_out);
    test.ok("index_directory", json!({"path": root}));
    assert_eq!(files(&test, "main"), [json!("main.go")]);
}
