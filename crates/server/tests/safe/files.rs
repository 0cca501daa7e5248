//! Over REST and MCP, no caller reads or learns of a file outside the working tree, even if a fact names it.

#![cfg(unix)]

use crate::house::House;
use lukasa_engine::features::code::git::blob_id;
use lukasa_model::Scope;
use lukasa_testkit::fixtures;
use serde_json::json;

const WRITER: [&str; 3] = ["graph:read", "graph:write", "graph:search:read"];

#[test]
fn keys_of_files_outside_the_working_tree_are_not_read() {
    for fixture in fixtures() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("tree");
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join("a.py"), "def one():\n    return 1\n").unwrap();
        std::fs::create_dir(home.join(".hg")).unwrap();
        std::fs::write(home.join(".hg/hgrc"), "[ui]\n").unwrap();
        std::fs::write(folder.path().join("x"), "def leaked():\n    return 7\n").unwrap();
        std::os::unix::fs::symlink(folder.path().join("x"), home.join("link")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(home.join("pipe")).status().unwrap().success());
        let house = House::of(fixture, None);
        house.engine.workspace(&Scope::new("ours", "shop").unwrap(), &home).unwrap();
        let key = house.key("ours", "bob", &WRITER);
        let session = house.session(&key, "agent");
        let passwords = std::fs::read("/etc/passwd").unwrap();
        let cases = [
            ("/etc/passwd", &passwords[..]),
            ("../x", b"def leaked():\n    return 7\n"),
            ("link", b"def leaked():\n    return 7\n"),
            ("pipe", b""),
            ("/dev/zero", b""),
            ("/dev/ptmx", b""),
            ("..", b""),
            (".hg/hgrc", b"[ui]\n"),
        ];
        for (file, content) in cases {
            let hash: String = blob_id(content).iter().map(|byte| format!("{byte:02x}")).collect();
            let symbol = format!("{file}::leaked");
            house.ok(&key, "batch", json!({"writes": [
                {"object": {"type": "File", "key": file, "properties": {"path": file, "content_hash": hash, "lines": 2}}},
                {"object": {"type": "Function", "key": symbol, "title": "leaked", "properties": {"path": file, "line": 1, "end_line": 2}}},
                {"relationship": {"type": "CONTAINS", "src": format!("File:{file}"), "dst": format!("Function:{symbol}")}},
            ]}));
            let request = json!({"symbol": symbol, "profile": "debug"});
            let rest = house.ok(&key, "semantic_slice", request.clone());
            let by_mcp = house.tool(&key, &session, "semantic_slice", request);
            assert!(by_mcp["ok"] == true && by_mcp["data"].is_object(), "{by_mcp}");
            for (way, answer, code) in [("REST", &rest, &rest["code"]), ("MCP", &by_mcp, &by_mcp["data"]["code"])] {
                let compared = answer.to_string().contains("differs_on_disk\":");
                assert!(code.is_null() && !compared, "{} {way} {file}: {answer}", house.fixture.name);
            }
        }
        let found = house.ok(&key, "search", json!({"query": "leaked"})).to_string();
        assert!(!found.contains("return 7") && !found.contains("root:x:0"), "{found}");
    }
}
