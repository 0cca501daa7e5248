//! Types of the code index by name: as promised, in any case, and under the names they had before.

use crate::test_engine::TestEngine;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn write(root: &Path, path: &str, text: &str) {
    let place = root.join(path);
    fs::create_dir_all(place.parent().expect("inside the root")).unwrap();
    fs::write(place, text).unwrap();
}

/// One of every type, in several languages.
pub fn program() -> TempDir {
    let folder = TempDir::new().unwrap();
    let root = folder.path();
    write(
        root,
        "shop.py",
        "import requests\n\nLIMIT = 3\n\n\nclass Base:\n    pass\n\n\nclass Shop(Base):\n    def open(self):\n        \
         return requests.get('x')\n\n\ndef make():\n    return Shop()\n",
    );
    write(
        root,
        "test_shop.py",
        "from shop import make\n\n\ndef helper():\n    return make()\n\n\ndef test_open():\n    make().open()\n",
    );
    write(
        root,
        "src/lib.rs",
        "pub mod inner {\n    pub trait Speak { fn speak(&self); }\n}\npub struct Dog;\n\nimpl inner::Speak for Dog {\n    \
         fn speak(&self) {}\n}\npub type Animal = Dog;\n\n#[cfg(test)]\nfn only_for_tests() {}\n\n#[cfg(test)]\nmod tests \
         {\n    fn dog() -> super::Dog { super::Dog }\n\n    #[test]\n    fn speaks() { dog(); super::only_for_tests(); }\n}\n",
    );
    folder
}

fn cypher(test: &TestEngine, query: &str) -> BTreeSet<String> {
    let answer = test.ok("cypher", json!({"query": query}));
    let rows = answer["rows"].as_array().unwrap_or_else(|| panic!("{query}: {answer}"));
    rows.iter().map(|row| row[0].as_str().unwrap_or_default().to_owned()).collect()
}

fn set(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

#[test]
fn symbols_have_the_types_that_are_promised() {
    for test in TestEngine::all() {
        let folder = program();
        test.ok("index_directory", json!({"path": folder.path()}));
        for (type_name, keys) in [
            ("File", &["shop.py", "src/lib.rs", "test_shop.py"][..]),
            ("Module", &["src/lib.rs::inner", "src/lib.rs::tests"]),
            ("Class", &["shop.py::Base", "shop.py::Shop", "src/lib.rs::Dog"]),
            ("Interface", &["src/lib.rs::inner::Speak"]),
            ("Type", &["src/lib.rs::Animal"]),
            (
                "Function",
                &["shop.py::make", "src/lib.rs::only_for_tests", "src/lib.rs::tests::dog", "test_shop.py::helper"],
            ),
            ("Variable", &["shop.py::LIMIT"]),
            ("Test", &["src/lib.rs::tests::speaks", "test_shop.py::test_open"]),
            ("Package", &["python:requests"]),
        ] {
            let query = format!("MATCH (n:{type_name}) RETURN n.key");
            assert_eq!(cypher(&test, &query), set(keys), "{type_name} on {}", test.fixture.name);
            let listed = test.ok("list", json!({"type": type_name.to_uppercase()}));
            assert_eq!(listed["objects"].as_array().map(Vec::len), Some(keys.len()), "{type_name}: {listed}");
        }
    }
}

#[test]
fn types_are_matched_in_any_case_and_by_their_other_names() {
    for test in TestEngine::all() {
        let folder = program();
        test.ok("index_directory", json!({"path": folder.path()}));
        for label in ["Method", "METHOD", "method"] {
            let query = format!("MATCH (m:{label}) RETURN m.key");
            let found = cypher(&test, &query);
            assert!(found.contains("shop.py::Shop::open"), "{query}: {found:?}");
            let by_predicate = format!("MATCH (m) WHERE m:{label} RETURN m.key");
            assert_eq!(cypher(&test, &by_predicate), found);
        }
        let tests = cypher(&test, "MATCH (t:Test) RETURN t.key");
        assert_eq!(cypher(&test, "MATCH (t:test) RETURN t.key"), tests);
        assert!(cypher(&test, "MATCH (f:File:test_code) RETURN f.key").contains("test_shop.py"));
        for name in ["EXTENDS", "extends", "INHERITS", "Inherits"] {
            let query = format!("MATCH (a)-[:{name}]->(b) RETURN b.key");
            assert_eq!(cypher(&test, &query), set(&["shop.py::Base"]), "{query}");
            let predicate = format!("MATCH (a)-[r]->(b) WHERE r:{name} RETURN b.key");
            assert_eq!(cypher(&test, &predicate), set(&["shop.py::Base"]), "{predicate}");
            let shape = test.ok("find_pattern", json!({"pattern": format!("class -{name}-> CLASS")}));
            assert_eq!(shape["groups"][0]["count"], 1, "{shape}");
            let near = test.ok("neighbors", json!({"ref": "shop.py::Shop", "relationship_types": [name]}));
            assert!(near.to_string().contains("shop.py::Base"), "{name}: {near}");
        }
        for reference in ["Method:shop.py::Shop::open", "METHOD:shop.py::Shop::open", "Function:Shop.open"] {
            assert_eq!(test.ok("get", json!({"ref": reference}))["thing"]["key"], "shop.py::Shop::open", "{reference}");
        }
        // What is put by hand has the declared spelling, and is one object whatever case it is written in.
        test.ok("put", json!({"type": "FILE", "key": "notes/a.txt"}));
        let again = test.ok("get", json!({"ref": "file:notes/a.txt"}));
        assert_eq!(again["thing"]["type"], "File", "{again}");
        test.ok("link", json!({"src": "shop.py::Base", "type": "inherits", "dst": "src/lib.rs::Dog"}));
        let all = cypher(&test, "MATCH ()-[r]->() RETURN type(r)");
        assert!(all.contains("EXTENDS") && !all.iter().any(|name| name.eq_ignore_ascii_case("INHERITS")), "{all:?}");
    }
}

#[test]
fn edges_of_code_say_how_sure_they_are_and_where_they_come_from() {
    let with_line = ["IMPORTS", "CALLS", "EXTENDS", "IMPLEMENTS", "REFERENCES", "TESTS"];
    for test in TestEngine::all() {
        let folder = program();
        test.ok("index_directory", json!({"path": folder.path()}));
        let query = "MATCH ()-[r]->() RETURN type(r) AS t, count(r) AS n, count(r.confidence) AS sure, \
                     count(r.derivation) AS how, count(r.line) AS lines";
        let answer = test.ok("cypher", json!({"query": query}));
        let rows: Vec<&Value> = answer["rows"].as_array().unwrap().iter().collect();
        let types: BTreeSet<&str> = rows.iter().filter_map(|row| row[0].as_str()).collect();
        for needed in with_line.iter().chain(&["CONTAINS", "DEFINED_IN"]) {
            assert!(types.contains(needed), "{needed} is missing: {types:?}");
        }
        for row in rows {
            assert_eq!((&row[2], &row[3]), (&row[1], &row[1]), "confidence and derivation: {row}");
            let lines = if with_line.contains(&row[0].as_str().unwrap()) { row[1].clone() } else { json!(0) };
            assert_eq!(row[4], lines, "lines: {row}");
        }
        let implemented = test.ok("cypher", json!({"query": "MATCH ()-[r:IMPLEMENTS]->() RETURN r.line"}));
        assert_eq!(implemented["rows"], json!([[6]]), "the line of the `impl`");
    }
}

#[test]
fn what_was_recorded_under_earlier_names_is_found() {
    for test in TestEngine::all() {
        // As an earlier version recorded it, before the types were declared.
        test.ok("put", json!({"type": "CLASS", "key": "a.py::A"}));
        test.ok("put", json!({"type": "CLASS", "key": "a.py::B"}));
        test.ok("link", json!({"src": "a.py::A", "type": "INHERITS", "dst": "a.py::B"}));
        let folder = program();
        test.ok("index_directory", json!({"path": folder.path()}));
        let extends = cypher(&test, "MATCH (a)-[:EXTENDS]->(b) RETURN b.key");
        assert_eq!(extends, set(&["a.py::B", "shop.py::Base"]), "{}", test.fixture.name);
        let classes = cypher(&test, "MATCH (c:Class) RETURN c.key");
        assert!(classes.contains("a.py::A") && classes.contains("shop.py::Shop"), "{classes:?}");
        let explained = test.ok("code_explain", json!({"symbol": "a.py::A"}));
        assert!(explained.to_string().contains("a.py::B"), "{explained}");
    }
}
