//! Comparisons of indexed trees, and the impact of a change of a method, on every store.

use crate::made::Made;
use crate::test_engine::TestEngine;
use gix::ObjectId;
use gix::objs::tree::EntryKind;
use serde_json::{Value, json};
use std::fs;

const SHOP: &str = "class Store:
    def get(self, key):
        return key

    def put(self, key):
        return self.get(key)


def load(store: Store):
    return store.get('a')


def start():
    return load(Store())
";
const USERS: &str = "from shop import Store


def one():
    return Store()


def two():
    return Store()


def three(store: Store):
    return store.put('b')
";
const CACHED: &str = "from shop import Store


class Cached(Store):
    def get(self, key):
        return None
";
const TEST: &str = "from shop import load, Store


def test_load():
    assert load(Store())
";

fn commit(made: &Made, n: u32, parents: &[ObjectId], files: &[(&str, &str)]) -> ObjectId {
    for (path, text) in files {
        fs::write(made.root.join(path), text).unwrap();
    }
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, EntryKind::Blob, *text)).collect();
    let id = made.commit("main", n, parents, &files);
    made.file("HEAD", "ref: refs/heads/main\n");
    id
}

fn index(test: &TestEngine, made: &Made) {
    test.fixture.clock.advance(60_000_000);
    test.ok("index_directory", json!({"path": made.root}));
}

/// What a comparison lists, as `class Type:key` or `class Type between`.
fn listed(out: &Value) -> Vec<String> {
    let name = |change: &Value| match change["key"].as_str() {
        Some(key) => format!("{} {}:{key}", change["change"].as_str().unwrap(), change["type"].as_str().unwrap()),
        None => {
            format!("{} {} {}", change["change"].as_str().unwrap(), change["type"].as_str().unwrap(), change["between"])
        }
    };
    let mut all: Vec<String> = out["changes"].as_array().unwrap().iter().map(name).collect();
    all.sort();
    all
}

#[test]
fn code_that_only_moved_is_no_change() {
    for test in TestEngine::all() {
        let made = Made::new();
        let first = commit(&made, 1, &[], &[("shop.py", SHOP), ("users.py", USERS)]);
        index(&test, &made);
        test.ok("release_create", json!({"name": "1"}));
        let moved = format!("# A shop.\n\n{SHOP}");
        let second = commit(&made, 2, &[first], &[("shop.py", &moved), ("users.py", USERS)]);
        index(&test, &made);
        test.ok("release_create", json!({"name": "2"}));
        let between = json!({"from": format!("commit:{first}"), "to": format!("commit:{second}")});
        let out = test.ok("diff", between.clone());
        assert_eq!(listed(&out), ["modified File:shop.py"], "{out}");
        let paths = out["changes"][0]["change_summary"]["paths"].to_string();
        assert!(paths.contains("content_hash"), "{paths}");
        let out = test.ok("release_diff", json!({"from": "1", "to": "2"}));
        assert_eq!(listed(&out), ["modified File:shop.py"]);
        let since = test.ok("diff_since", json!({"since": format!("commit:{first}")}));
        assert_eq!(since["counts"], json!({"added": 0, "removed": 0, "modified": 1}));
        let mut all = between;
        all["all"] = json!(true);
        let all = test.ok("diff", all);
        assert!(listed(&all).contains(&"modified Method:shop.py::Store::get".to_owned()), "{all}");
        assert!(listed(&all).contains(&format!("added Commit:{second}")), "{all}");
        let line = test.ok("get", json!({"ref": "Store.get"}))["thing"]["properties"]["line"].clone();
        assert_eq!(line, 4, "the fact itself has moved");

        let changed = moved.replace("return key", "return key + 'x'");
        let third = commit(&made, 3, &[second], &[("shop.py", &changed), ("users.py", USERS)]);
        index(&test, &made);
        let out = test.ok("diff", json!({"from": format!("commit:{second}"), "to": format!("commit:{third}")}));
        assert_eq!(
            listed(&out),
            ["modified Class:shop.py::Store", "modified File:shop.py", "modified Method:shop.py::Store::get"]
        );
    }
}

#[test]
fn both_comparisons_mean_the_same_moments() {
    for test in TestEngine::all() {
        let made = Made::new();
        let first = commit(&made, 1, &[], &[("shop.py", SHOP)]);
        index(&test, &made);
        let time = test.ok("log", json!({}))["transactions"][0]["recorded_at"].as_str().unwrap().to_owned();
        commit(&made, 2, &[first], &[("shop.py", SHOP), ("users.py", USERS)]);
        index(&test, &made);
        for word in [format!("commit:{first}"), "tx:2".into(), format!("time:{time}"), time.clone()] {
            let (one, other) = (test.ok("diff", json!({"from": word})), test.ok("diff_since", json!({"since": word})));
            assert_eq!(one["from"], other["from"], "{word}");
            assert_eq!((&one["added"], &one["removed"]), (&other["counts"]["added"], &json!(0)), "{word}: {one}");
            assert!(listed(&one).iter().any(|change| change == "added File:users.py"), "{word}: {one}");
        }
    }
}

#[test]
fn types_are_listed_with_commas_and_unknown_ones_are_refused() {
    for test in TestEngine::all() {
        let made = Made::new();
        let first = commit(&made, 1, &[], &[("shop.py", SHOP)]);
        index(&test, &made);
        commit(&made, 2, &[first], &[("shop.py", SHOP), ("users.py", USERS)]);
        index(&test, &made);
        for types in [json!(["File,Function"]), json!(["file", "Function"]), json!(["File, Function"])] {
            let out = test.ok("diff", json!({"from": "tx:2", "types": types}));
            let expected = [
                "added File:users.py",
                "added Function:users.py::one",
                "added Function:users.py::three",
                "added Function:users.py::two",
            ];
            assert_eq!(listed(&out), expected, "{types}");
            assert_eq!(test.ok("diff_since", json!({"since": "tx:2", "types": types}))["counts"]["added"], 4);
        }
        let calls = test.ok("diff", json!({"from": "tx:2", "types": ["CALLS"]}));
        assert!(calls["added"].as_u64().unwrap() > 0, "{calls}");
        for (name, request) in [
            ("diff", json!({"from": "tx:2", "types": ["FUNCTIO"]})),
            ("diff_since", json!({"since": "tx:2", "types": ["File,FUNCTIO"]})),
        ] {
            assert_eq!(test.fails(name, request), "no_such_type", "{name}");
        }
    }
}

#[test]
fn what_depends_on_a_method_is_what_calls_it_and_not_what_uses_its_class() {
    for test in TestEngine::all() {
        let made = Made::new();
        let files = [("shop.py", SHOP), ("users.py", USERS), ("cached.py", CACHED), ("test_shop.py", TEST)];
        commit(&made, 1, &[], &files);
        index(&test, &made);
        let reached = |name: &str| {
            let out = test.ok("impact", json!({"ref": name}));
            let list = out["dependents"].as_array().unwrap();
            let mut names: Vec<String> = list
                .iter()
                .map(|one| format!("{} {}", one["via"].as_str().unwrap(), one["name"].as_str().unwrap()))
                .collect();
            names.sort();
            assert_eq!(out["total_dependents"], names.len(), "{out}");
            (names, out)
        };
        let (get, out) = reached("Store.get");
        assert_eq!(
            get,
            [
                "CALLS Function:shop.py::load",
                "CALLS Function:shop.py::start",
                "CALLS Function:users.py::three",
                "CALLS Method:shop.py::Store::put",
                "CALLS Test:test_shop.py::test_load",
                "OVERRIDES Method:cached.py::Cached::get",
            ]
        );
        assert_eq!(out["transitive_tests"], json!(["Test:test_shop.py::test_load"]));
        let (class, _) = reached("Store");
        for user in ["Function:users.py::one", "Function:users.py::two", "Class:cached.py::Cached"] {
            assert!(class.iter().any(|name| name.ends_with(user)), "{user}: {class:?}");
        }
    }
}
