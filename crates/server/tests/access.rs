//! For every operation: a caller needs its scope, and a remote caller cannot name a path outside what its project was
//! given.
#![allow(clippy::unwrap_used)]

use lukasa_engine::{Engine, Grants, operations};
use lukasa_model::{ErrorCode, Scope};
use lukasa_server::{Caller, ProjectFolders, RequestGate, RequestLimits};
use lukasa_store::{Clock, MemoryStore, SystemClock};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;

fn front(home: &Path) -> RequestGate {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store = Arc::new(MemoryStore::new(Arc::clone(&clock)));
    let engine = Engine::new(store, clock, std::env::temp_dir());
    let shop = Scope::new("local", "shop").unwrap();
    let given = ProjectFolders::default().with_tree(shop.clone(), home).with_folder(shop, home);
    RequestGate::new(engine, RequestLimits::default(), given)
}

fn caller(grants: Grants) -> Caller {
    Caller { grants, local: false, ..Caller::owner(Scope::new("local", "shop").unwrap()) }
}

#[tokio::test]
async fn every_operation_needs_its_scope() {
    let home = tempfile::tempdir().unwrap();
    let front = front(home.path());
    let all: Vec<&str> = operations().iter().map(|operation| operation.meta.scope).collect();
    for operation in operations() {
        let meta = &operation.meta;
        // Every scope except this one and `admin`, which covers all.
        let others = all.iter().filter(|scope| **scope != meta.scope && **scope != "admin").copied();
        let refused = front.call(&caller(Grants::of(others)), meta.name, json!({}), None).await.map(drop).unwrap_err();
        assert_eq!(refused.code, ErrorCode::MissingScope, "{}", meta.name);
    }
}

#[tokio::test]
async fn no_operation_accepts_a_path_outside_the_given_folders() {
    let outside = tempfile::tempdir().unwrap();
    let home = outside.path().join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(outside.path().join("secret.txt"), "x").unwrap();
    std::os::unix::fs::symlink(outside.path(), home.join("way_out")).unwrap();
    let front = front(&home);
    let mut tried = 0;
    for operation in operations() {
        for place in operation.meta.places.iter().chain(operation.meta.files) {
            for path in ["..", "../secret.txt", "/etc/passwd", "way_out/secret.txt", "./way_out", "-", "no\0where"] {
                let mut request = Map::new();
                for field in operation.fields().keys().filter(|field| operation.requires(field)) {
                    request.insert(field.clone(), json!("."));
                }
                request.insert((*place).into(), json!(path));
                let asked = front.call(&caller(Grants::All), operation.meta.name, Value::Object(request), None).await;
                let refused = asked.map(drop).unwrap_err();
                let expected = if path.contains('\0') { "nul_byte" } else { "forbidden_path" };
                assert_eq!(refused.code.name(), expected, "{} {place}: {path}", operation.meta.name);
                tried += 1;
            }
        }
    }
    assert!(tried >= 70, "{tried}");
}

/// Fields with path prefixes in the graph. They do not access the file system.
const OF_THE_GRAPH: [(&str, &str); 4] =
    [("symbol_lookup", "path"), ("call_graph_stats", "path"), ("semantic_slice", "file"), ("find_pattern", "path")];

#[test]
fn every_field_with_a_path_is_confined_to_the_given_folders() {
    let mut exempt = Vec::new();
    for operation in operations() {
        let meta = &operation.meta;
        for (name, field) in operation.fields() {
            let words: Vec<&str> = name.split('_').collect();
            let says = ["path", "file", "folder", "dir", "directory", "root", "worktree", "workspace", "output"];
            let is_text = field["type"] == "string" || field["type"] == json!(["string", "null"]);
            if !is_text || !words.iter().any(|word| says.contains(word)) {
                continue;
            }
            match meta.places.iter().chain(meta.files).any(|place| place == name) {
                true => {}
                false => exempt.push((meta.name, name)),
            }
        }
        for place in meta.places.iter().chain(meta.files) {
            assert!(operation.fields().contains_key(*place), "{}: {place}", meta.name);
        }
    }
    let exempt: Vec<(&str, &str)> = exempt.iter().map(|(operation, field)| (*operation, field.as_str())).collect();
    assert_eq!(exempt, OF_THE_GRAPH);
}

#[tokio::test]
async fn remote_callers_cannot_choose_commands_to_run() {
    let home = tempfile::tempdir().unwrap();
    let front = front(home.path());
    let mut tried = Vec::new();
    for operation in operations() {
        for field in operation.meta.local {
            let request = json!({*field: ["true"]});
            let asked = front.call(&caller(Grants::All), operation.meta.name, request, None).await;
            assert_eq!(asked.map(drop).unwrap_err().code, ErrorCode::NotPermitted, "{} {field}", operation.meta.name);
            tried.push((operation.meta.name, *field));
        }
    }
    assert_eq!(tried, [("test_run", "command")]);
}

#[tokio::test]
async fn a_caller_that_may_only_read_does_not_index() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("a.py"), "def price():\n    return 1\n").unwrap();
    let front = front(home.path());
    let reader = caller(Grants::of(["graph:search:read"]));
    let asked = json!({"task": "the price is wrong", "path": "."});
    let refused = front.call(&reader, "context_pack", asked.clone(), None).await.map(drop).unwrap_err();
    assert_eq!(refused.code, ErrorCode::MissingScope);
    // The same request by a caller that may write indexes the tree.
    front.call(&caller(Grants::of(["graph:search:read", "graph:write"])), "context_pack", asked, None).await.unwrap();
}
