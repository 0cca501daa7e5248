//! Exact lines of symbols, within budgets and as of any time, on every store.

use crate::test_engine::TestEngine;
use lukasa_model::ErrorCode;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

const AUTH: &str = "import hashlib\n\n\nclass Session:\n    \"\"\"A visit.\"\"\"\n\n    def close(self):\n        return check(self)\n\n\ndef check(word):\n    \"\"\"Compares the password with its hash.\"\"\"\n    return hashlib.sha256(word)\n\n\ndef login(user):\n    return check(user)\n";
const WEB: &str = "from shop.auth import login, check\n\n\ndef page(user):\n    return login(user)\n\n\ndef close(user):\n    return check(user)\n";

fn write(folder: &Path, path: &str, text: &str) {
    std::fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
    std::fs::write(folder.join(path), text).unwrap();
}

fn index(test: &TestEngine, folder: &TempDir) {
    test.ok("index_directory", json!({"path": folder.path().to_str().unwrap(), "branch": "main"}));
}

fn shops() -> Vec<(TestEngine, TempDir)> {
    let indexed = |test: TestEngine| {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "shop/auth.py", AUTH);
        write(folder.path(), "shop/web.py", WEB);
        index(&test, &folder);
        (test, folder)
    };
    TestEngine::all().into_iter().map(indexed).collect()
}

fn keys(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|n| n["key"].as_str().unwrap()).collect()
}

#[test]
fn the_lines_are_those_of_the_source() {
    for (test, _folder) in shops() {
        let out = test.ok("semantic_slice", json!({"symbol": "login"}));
        assert_eq!(out["code"], "def login(user):\n    return check(user)\n");
        assert_eq!(
            (&out["start_line"], &out["end_line"], &out["file"]),
            (&json!(16), &json!(17), &json!("shop/auth.py"))
        );
        assert_eq!(out["summary"], "`login` in shop/auth.py, lines 16-17, called by 1");
        assert_eq!((&out["found_by"], &out["truncated"]), (&json!("name"), &json!(false)));
        assert_eq!(out["freshness"]["differs_on_disk"], false);
        assert!(out["valid_from"].is_string() && out["signature"].as_str().unwrap().contains("login"));
        assert!(out["incoming_callers"].is_null() && out["total_callers"].is_null(), "only where they are asked for");
        let text = test.ok("semantic_slice", json!({"symbol": "login"})).to_string();
        let tokens = lukasa_search::count::count(&text);
        assert!(out["token_estimate"].as_u64().unwrap().abs_diff(tokens as u64) <= 2, "{tokens}");
        for (request, key, by, first, last) in [
            (json!({"symbol": "shop/auth.py::login"}), "shop/auth.py::login", "key", 16, 17),
            (json!({"symbol": "Session.close"}), "shop/auth.py::Session::close", "name", 7, 8),
            (json!({"symbol": "Session::close"}), "shop/auth.py::Session::close", "name", 7, 8),
            (json!({"symbol": "close", "file": "web.py"}), "shop/web.py::close", "file_and_name", 8, 9),
            (json!({"symbol": "close", "file": "shop/auth.py"}), "shop/auth.py::Session::close", "file_and_name", 7, 8),
            (json!({"file": "web.py"}), "shop/web.py", "file", 1, 9),
            (json!({"query": "compare the password with its hash"}), "shop/auth.py::check", "question", 11, 13),
            (json!({"symbol": "nobody", "query": "password hash"}), "shop/auth.py::check", "question", 11, 13),
            (json!({"symbol": "where is the password compared"}), "shop/auth.py::check", "question", 11, 13),
        ] {
            let out = test.ok("semantic_slice", request.clone());
            assert_eq!((&out["key"], &out["found_by"]), (&json!(key), &json!(by)), "{request}");
            assert_eq!((&out["start_line"], &out["end_line"]), (&json!(first), &json!(last)), "{request}");
            let source = if key.starts_with("shop/web.py") { WEB } else { AUTH };
            let expected: Vec<&str> = source.split_inclusive('\n').collect();
            assert_eq!(out["code"], expected[first - 1..last].concat(), "{request}");
        }
        let whole = test.ok("semantic_slice", json!({"symbol": "login", "context": "signature"}));
        assert!(whole["code"].is_null() && whole["signature"].as_str().unwrap().starts_with("def login"), "{whole}");
    }
}

/// Sources that are not UTF-8: the same facts and the same lines as if they were.
#[test]
fn the_lines_are_those_of_the_text_in_any_encoding() {
    const GREET: &str = "# Grüße\n\n\ndef begrüßen(wer):\n    return \"Grüß dich, \" + wer\n\n\ndef grüß_alle():\n    return begrüßen(\"Ü\")\n";
    let utf_16 = |order: fn(u16) -> [u8; 2]| -> Vec<u8> {
        "\u{feff}".encode_utf16().chain(GREET.encode_utf16()).flat_map(order).collect()
    };
    let latin_1: Vec<u8> = GREET.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect();
    for bytes in [utf_16(u16::to_le_bytes), utf_16(u16::to_be_bytes), latin_1] {
        let test = TestEngine::all().remove(0);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("greet.py"), &bytes).unwrap();
        index(&test, &folder);
        let slice = test.ok("semantic_slice", json!({"symbol": "begrüßen", "context": "with-deps"}));
        assert_eq!(slice["code"], "def begrüßen(wer):\n    return \"Grüß dich, \" + wer\n");
        assert_eq!((&slice["start_line"], &slice["freshness"]["differs_on_disk"]), (&json!(4), &json!(false)));
        assert_eq!(keys(&slice["incoming_callers"]), ["greet.py::grüß_alle"]);
        // The hash is that of the bytes, as git has it.
        let file = test.ok("get", json!({"ref": "File:greet.py"}));
        let hash: String =
            lukasa_engine::features::code::git::blob_id(&bytes).iter().map(|b| format!("{b:02x}")).collect();
        assert!(file.to_string().contains(&hash), "{file}");
    }
}

#[test]
fn unknown_names_are_answered_with_near_ones() {
    for (test, _folder) in shops() {
        let error = |request: Value| test.call("semantic_slice", request).unwrap_err();
        let unknown = error(json!({"symbol": "lgoin"}));
        assert_eq!(unknown.code, ErrorCode::NotFound);
        assert!(unknown.hint.unwrap().contains("shop/auth.py::login"));
        let elsewhere = error(json!({"symbol": "pgae", "file": "shop/web.py"}));
        assert_eq!(elsewhere.code, ErrorCode::NotFound);
        assert!(elsewhere.hint.unwrap().contains("shop/web.py::page"));
        assert_eq!(error(json!({"symbol": "close"})).code, ErrorCode::Ambiguous);
        assert_eq!(error(json!({"symbol": "x", "file": "nofile.py"})).code, ErrorCode::NotFound);
        assert_eq!(error(json!({"query": "zebra quagga"})).code, ErrorCode::NotFound);
        assert_eq!(error(json!({})).code, ErrorCode::InvalidRequest);
        test.ok("put", json!({"type": "Service", "key": "zebra"}));
        assert_eq!(error(json!({"symbol": "zebra"})).code, ErrorCode::NotASymbol, "it is no symbol");
    }
}

#[test]
fn neighbours_and_what_is_known_come_along() {
    for (test, _folder) in shops() {
        let out = test.ok("semantic_slice", json!({"symbol": "check", "context": "with-deps"}));
        assert_eq!(
            keys(&out["incoming_callers"]),
            ["shop/auth.py::Session::close", "shop/auth.py::login", "shop/web.py::close"]
        );
        assert_eq!((&out["total_callers"], &out["incoming_callers"][1]["call_lines"]), (&json!(3), &json!([17])));
        assert_eq!(keys(&out["outgoing_calls"]), ["python:hashlib::sha256"]);
        assert!(out["relevant_decisions"].is_null());
        let mut writes = Vec::new();
        for n in 0..5 {
            writes
                .push(json!({"object": {"type": "Decision", "key": format!("d{n}"), "title": format!("Decision {n}"),
                "properties": {"rationale": "because"}, "valid_from": format!("2025-01-0{}T00:00:00Z", n + 1)}}));
            writes.push(json!({"object": {"type": "Learning", "key": format!("l{n}"),
                "properties": {"content": format!("learnt {n}"), "confidence": f64::from(n) / 10.0}}}));
            writes.push(json!({"relationship": {"type": "APPLIES_TO", "src": format!("Learning:l{n}"), "dst": "shop/auth.py::check"}}));
            writes.push(json!({"relationship": {"type": "INVOLVES", "src": format!("Decision:d{n}"), "dst": "shop/auth.py::check"}}));
        }
        writes.push(json!({"object": {"type": "Episode", "key": "e1", "subtype": "DECISION", "title": "Hash it",
            "valid_from": "2025-02-01T00:00:00Z"}}));
        writes.push(json!({"object": {"type": "Episode", "key": "e2", "subtype": "OBSERVATION", "title": "Saw it"}}));
        for episode in ["e1", "e2"] {
            writes.push(json!({"relationship": {"type": "INVOLVES", "src": format!("Episode:{episode}"), "dst": "shop/auth.py::check"}}));
        }
        test.ok("batch", json!({"writes": writes}));
        let out = test.ok("semantic_slice", json!({"symbol": "check", "context": "full"}));
        let refs = |field: &str| -> Vec<String> {
            out[field].as_array().unwrap().iter().map(|k| k["ref"].as_str().unwrap().to_string()).collect()
        };
        assert_eq!(refs("relevant_decisions"), ["Episode:e1", "Decision:d4", "Decision:d3"]);
        assert_eq!(refs("relevant_learnings"), ["Learning:l4", "Learning:l3", "Learning:l2"]);
        assert_eq!(out["relevant_learnings"][0]["content"], "learnt 4");
    }
}

#[test]
fn as_many_lines_as_fit_are_given_with_a_mark() {
    for (test, folder) in shops() {
        let body: String = (0..200).map(|n| format!("    total = total + value_{n}\n")).collect();
        let callers: String = (0..30).map(|n| format!("def caller_{n}(x):\n    return large(x)\n\n\n")).collect();
        let large = format!("def large(total):\n{body}    return total\n\n\n{callers}");
        write(folder.path(), "shop/large.py", &large);
        index(&test, &folder);
        let mut hints = Vec::new();
        for (profile, budget) in [("compact", 300), ("balanced", 1_200)] {
            for context in ["signature", "body", "with-deps", "full"] {
                let out = test.ok("semantic_slice", json!({"symbol": "large", "context": context, "profile": profile}));
                assert!(
                    out["token_estimate"].as_u64().unwrap() <= budget,
                    "{profile} {context}: {}",
                    out["token_estimate"]
                );
                assert!(out["signature"].is_string());
                let lines = out["code"].as_str().map_or(0, |code| code.lines().count());
                let least = if context == "signature" { 0 } else { budget as usize / 60 };
                assert!(lines >= least && lines < 200, "{profile} {context}: {out}");
                if let Some(code) = out["code"].as_str() {
                    let shown = code.strip_suffix('…').expect("what goes on is marked");
                    assert!(large.starts_with(shown) && shown.ends_with('\n'), "{code}");
                }
                assert_eq!(out["truncated"], context != "signature", "{profile} {context}: {out}");
                hints.extend(out["hint"].as_str().map(str::to_owned));
                if context == "with-deps" {
                    assert_eq!(out["total_callers"], 30);
                    assert!(!out["incoming_callers"].as_array().unwrap().is_empty());
                }
            }
        }
        assert!(hints[0].contains("balanced") && hints.last().unwrap().contains("debug"), "{hints:?}");
        let out = test.ok("semantic_slice", json!({"symbol": "large", "profile": "debug", "context": "with-deps"}));
        assert_eq!(out["code"], format!("def large(total):\n{body}    return total\n"));
        assert_eq!((out["incoming_callers"].as_array().unwrap().len(), &out["truncated"]), (10, &json!(false)));
    }
}

#[test]
fn wrong_lines_are_never_shown() {
    for (test, folder) in shops() {
        let first = test.ok("log", json!({}))["head"].clone();
        let before = AUTH.replace("return check(user)", "return check(user.name)");
        write(folder.path(), "shop/auth.py", &format!("# moved\n{before}"));
        let stale = test.ok("semantic_slice", json!({"symbol": "login"}));
        assert!(stale["code"].is_null(), "what is on disk is not what was indexed");
        assert_eq!(stale["freshness"]["differs_on_disk"], true);
        assert!(stale["freshness"]["says"].as_str().unwrap().contains("lukasa index"), "{stale}");
        assert!(stale["signature"].is_string());
        test.fixture.clock.advance(60);
        index(&test, &folder);
        let now = test.ok("semantic_slice", json!({"symbol": "login"}));
        assert_eq!(now["code"], "def login(user):\n    return check(user.name)\n");
        assert_eq!((&now["start_line"], &now["freshness"]["differs_on_disk"]), (&json!(17), &json!(false)));
        let then = test.ok("semantic_slice", json!({"symbol": "login", "as_of": format!("tx:{first}")}));
        assert_eq!(
            (&then["start_line"], &then["code"]),
            (&json!(16), &Value::Null),
            "no repository keeps the old text"
        );
        std::fs::remove_file(folder.path().join("shop/auth.py")).unwrap();
        let gone = test.ok("semantic_slice", json!({"symbol": "login"}));
        assert!(gone["code"].is_null() && gone["freshness"]["differs_on_disk"].is_null());
    }
}

/// Methods that are written outside of the file of their type, in every language that allows it.
const APART: [(&str, &str); 14] = [
    (
        "go/context.go",
        "package web\n\nimport \"fmt\"\n\n// Context is a request.\ntype Context struct {\n\tname string\n}\n\nfunc (c *Context) Name() string {\n\treturn fmt.Sprint(c.name)\n}\n",
    ),
    (
        "go/deprecated.go",
        "package web\n\n// BindWith is old.\nfunc (c *Context) BindWith(to string) string {\n\thelp := c.Name()\n\treturn help + to\n}\n",
    ),
    ("rust/Cargo.toml", "[package]\nname = \"part\"\n"),
    (
        "rust/src/lib.rs",
        "mod more;\n\npub struct Part {\n    pub size: u32,\n}\n\nimpl Part {\n    pub fn size(&self) -> u32 {\n        self.size\n    }\n}\n",
    ),
    (
        "rust/src/more.rs",
        "use crate::Part;\n\nimpl Part {\n    pub fn double(&self) -> u32 {\n        let twice = |n: u32| n * 2;\n        twice(self.size())\n    }\n}\n",
    ),
    ("kotlin/Shop.kt", "package shop\n\nclass Shop(val name: String) {\n    fun open() = name\n}\n"),
    ("kotlin/Extra.kt", "package shop\n\nfun Shop.close(): String {\n    return open() + \"!\"\n}\n"),
    ("cpp/stack.h", "#pragma once\n\nclass Stack {\npublic:\n    int depth() const;\n    void push(int value);\n};\n"),
    (
        "cpp/stack.cpp",
        "#include \"stack.h\"\n\nint Stack::depth() const {\n    return 1;\n}\n\nvoid Stack::push(int value) {\n    (void)value;\n}\n",
    ),
    (
        "cs/Order.cs",
        "namespace Shop {\n    public partial class Order {\n        public int Total() { return 1; }\n    }\n}\n",
    ),
    (
        "cs/OrderMore.cs",
        "namespace Shop {\n    public static class OrderMore {\n        public static int Twice(this Order order) {\n            return order.Total() * 2;\n        }\n    }\n}\n",
    ),
    ("swift/Shop.swift", "public class Shop {\n    let name = \"a\"\n    func open() -> String { name }\n}\n"),
    (
        "swift/Extra.swift",
        "extension Shop {\n    /// Closes it.\n    func close() -> String {\n        return open() + \"!\"\n    }\n}\n",
    ),
    ("ruby/shop.rb", "class Shop\n  def open\n    1\n  end\nend\n\nclass Shop\n  def close\n    open\n  end\nend\n"),
];

#[test]
fn every_slice_is_of_the_file_it_names() {
    for test in TestEngine::all() {
        let folder = tempfile::tempdir().unwrap();
        APART.iter().for_each(|(path, text)| write(folder.path(), path, text));
        index(&test, &folder);
        let rows = test.ok(
            "cypher",
            json!({"query": "MATCH (n) WHERE n.line IS NOT NULL RETURN n.key, n.path, n.line, n.end_line, labels(n)"}),
        );
        let rows = rows["rows"].as_array().unwrap();
        for needed in [
            "go/deprecated.go::Context::BindWith",
            "rust/src/more.rs::Part::double",
            "cpp/stack.cpp::Stack::push",
            "swift/Extra.swift::Shop::close",
        ] {
            assert!(rows.iter().any(|row| row[0] == needed), "{needed} is indexed");
        }
        for row in rows {
            let (key, path) = (row[0].as_str().unwrap(), row[1].as_str().unwrap());
            let (first, last) = (row[2].as_u64().unwrap() as usize, row[3].as_u64().unwrap() as usize);
            let text = APART.iter().find(|(of, _)| *of == path).unwrap().1;
            let expected: String = text.split_inclusive('\n').skip(first - 1).take(last + 1 - first).collect();
            let mut types = row[4].as_array().unwrap().iter().map(|label| label.as_str().unwrap());
            let typed = types.find(|label| label.chars().next().is_some_and(char::is_uppercase)).unwrap();
            let symbol = format!("{typed}:{key}");
            let out = test.ok("semantic_slice", json!({"symbol": symbol, "profile": "debug"}));
            assert_eq!((out["file"].as_str(), out["code"].as_str()), (Some(path), Some(&*expected)), "{key}");
            assert_eq!(out["freshness"]["differs_on_disk"], false, "{key}");
        }
        // A file is what is written in it, wherever the types of its methods are.
        let out = test.ok("semantic_slice", json!({"symbol": "BindWith", "file": "go/deprecated.go"}));
        assert_eq!(out["key"], "go/deprecated.go::Context::BindWith");
        let pack = test.ok("context_pack", json!({"task": "BindWith help", "profile": "balanced"}));
        let mut code = pack["core_symbols"].as_array().unwrap().iter().filter_map(|symbol| symbol["code"].as_str());
        assert!(code.any(|code| code.starts_with("func (c *Context) BindWith")), "{pack}");
    }
}
