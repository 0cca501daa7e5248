//! Keys of facts that name files outside of the working tree: these are neither shown nor compared, on every store.

#![cfg(unix)]

use crate::test_engine::TestEngine;
use lukasa_engine::features::code::git::blob_id;
use serde_json::{Value, json};
use std::path::Path;

/// A text in files that no answer may show.
const MARK: &str = "quartzmarmot";

/// A working tree beside a file that is none of it, and keys that try to reach that or worse, with the content each has.
fn tree(folder: &Path) -> (std::path::PathBuf, Vec<(String, Vec<u8>)>) {
    let root = folder.join("tree");
    std::fs::create_dir_all(root.join(".git")).unwrap();
    std::fs::write(root.join("a.py"), "def one():\n    return 1\n").unwrap();
    let secret = format!("def leaked():\n    return \"{MARK}\"\n").into_bytes();
    let outside = folder.join("outside.py");
    std::fs::write(&outside, &secret).unwrap();
    std::fs::write(root.join(".git/notes.py"), &secret).unwrap();
    std::os::unix::fs::symlink(&outside, root.join("link.py")).unwrap();
    std::os::unix::fs::symlink(folder, root.join("way")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(root.join("pipe.py")).status().unwrap().success());
    let of_secret = |key: &str| (key.to_owned(), secret.clone());
    let keys = vec![
        of_secret(outside.to_str().unwrap()),
        of_secret("../outside.py"),
        of_secret("a.py/../../outside.py"),
        of_secret("link.py"),
        of_secret("way/outside.py"),
        of_secret(".git/notes.py"),
        ("/etc/passwd".to_owned(), std::fs::read("/etc/passwd").unwrap()),
        ("/dev/zero".to_owned(), vec![]),
        ("/dev/ptmx".to_owned(), vec![]),
        ("pipe.py".to_owned(), vec![]),
    ];
    (root, keys)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file and a function in it, as an index would state them.
fn stated(key: &str, content: &[u8]) -> Value {
    let symbol = format!("{key}::leaked");
    json!({"writes": [
        {"object": {"type": "File", "key": key, "properties": {"path": key, "content_hash": hex(&blob_id(content)), "lines": 2}}},
        {"object": {"type": "Function", "key": symbol, "title": "leaked", "properties": {"path": key, "line": 1, "end_line": 2}}},
        {"relationship": {"type": "CONTAINS", "src": format!("File:{key}"), "dst": format!("Function:{symbol}")}},
    ]})
}

#[test]
fn files_outside_of_the_working_tree_are_neither_shown_nor_compared() {
    for test in TestEngine::all() {
        let folder = tempfile::tempdir().unwrap();
        let (root, keys) = tree(folder.path());
        test.ok("index_directory", json!({"path": root, "branch": "main"}));
        for (key, content) in &keys {
            test.ok("batch", stated(key, content));
        }
        for (key, _) in &keys {
            let out = test.ok("semantic_slice", json!({"symbol": format!("{key}::leaked"), "profile": "debug"}));
            let kind = test.fixture.name;
            assert!(out["code"].is_null() && out["freshness"]["differs_on_disk"].is_null(), "{kind} {key}: {out}");
        }
        for (operation, request) in [
            ("search", json!({"query": "leaked", "limit": 40})),
            ("context_pack", json!({"task": "mend leaked", "profile": "debug"})),
        ] {
            let out = test.ok(operation, request).to_string();
            assert!(out.contains("leaked") && !out.contains(MARK) && !out.contains("root:x:0"), "{operation}: {out}");
        }
        let own = test.ok("semantic_slice", json!({"symbol": "a.py::one"}));
        assert_eq!(
            (&own["code"], &own["freshness"]["differs_on_disk"]),
            (&json!("def one():\n    return 1\n"), &json!(false))
        );
    }
}
