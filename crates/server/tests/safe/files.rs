//! Over REST and MCP, no caller reads or learns of a file outside the working tree, even if a fact names it.

#![cfg(unix)]

use crate::house::{House, SURFACES};
use lukasa_engine::features::code::git::blob_id;
use lukasa_model::Scope;
use lukasa_testkit::fixtures;
use serde_json::{Value, json};

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

#[test]
fn an_existing_and_a_missing_path_outside_get_the_same_answer() {
    for fixture in fixtures() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("tree");
        std::fs::create_dir(&home).unwrap();
        std::fs::create_dir(folder.path().join("d")).unwrap();
        for existing in ["x.py", "d/x.py"] {
            std::fs::write(folder.path().join(existing), "def leaked():\n    return 7\n").unwrap();
        }
        for name in ["x.py", "y.py"] {
            let link = home.join(format!("link_{name}"));
            std::os::unix::fs::symlink(folder.path().join(name), link).unwrap();
        }
        let house = House::of(fixture, Some(&home));
        house.engine.workspace(&Scope::new("ours", "shop").unwrap(), &home).unwrap();
        let client = house.client(&house.key("ours", "bob", &WRITER));
        let outside = folder.path().display().to_string();
        let absolute = ["x.py", "y.py"].map(|name| format!("{outside}/{name}"));
        let pairs = [
            ["../x.py", "../y.py"],
            ["../d/x.py", "../e/x.py"],
            [absolute[0].as_str(), absolute[1].as_str()],
            ["link_x.py", "link_y.py"],
        ];
        for [existing, missing] in pairs {
            // Facts that name them, as any caller that may write can make them.
            let writes: Vec<_> = [existing, missing].into_iter().flat_map(facts_of).collect();
            house.ok(&client.key, "batch", json!({"writes": writes}));
            let requests = |path: &str| {
                let symbol = format!("{path}::leaked");
                vec![
                    ("semantic_slice", json!({"symbol": symbol, "profile": "debug"})),
                    ("code_explain", json!({"symbol": symbol})),
                    ("semantic_slice", json!({"file": path, "profile": "debug"})),
                    ("index_file", json!({"path": path})),
                    ("index_directory", json!({"path": path})),
                    ("context_pack", json!({"task": "mend it", "path": path})),
                    ("export", json!({"file": path})),
                    ("import", json!({"file": path})),
                ]
            };
            for ((operation, of_existing), (_, of_missing)) in requests(existing).into_iter().zip(requests(missing)) {
                for surface in SURFACES {
                    let answer = |path: &str, request: &Value| {
                        let answer = client.ask(surface, operation, request);
                        (answer.code.clone(), comparable(&answer.text, path))
                    };
                    let (there, not_there) = (answer(existing, &of_existing), answer(missing, &of_missing));
                    assert_eq!(there, not_there, "{} {surface:?} {operation} {existing}", house.fixture.name);
                }
            }
        }
    }
}

/// A file with a function in it.
fn facts_of(file: &str) -> Vec<Value> {
    let symbol = format!("{file}::leaked");
    vec![
        json!({"object": {"type": "File", "key": file, "properties": {"path": file, "lines": 2}}}),
        json!({"object": {"type": "Function", "key": symbol, "title": "leaked",
            "properties": {"path": file, "line": 1, "end_line": 2}}}),
        json!({"relationship": {"type": "CONTAINS", "src": format!("File:{file}"), "dst": format!("Function:{symbol}")}}),
    ]
}

/// The body of an answer without its path, and without what differs from fact to fact and from request to request.
fn comparable(text: &str, path: &str) -> String {
    let mut body: Value = serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap();
    if !body["result"].is_null() {
        body = body["result"]["structuredContent"].take();
    }
    without(
        &mut body,
        &["request_id", "requestId", "_tokenEstimate", "token_estimate", "version", "version_id", "place", "object_id"],
    );
    let name = path.rsplit('/').next().unwrap_or(path);
    body.to_string().replace(path, "PATH").replace(name, "NAME")
}

fn without(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !names.contains(&name.as_str()));
            fields.values_mut().for_each(|value| without(value, names));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| without(value, names)),
        _ => {}
    }
}
