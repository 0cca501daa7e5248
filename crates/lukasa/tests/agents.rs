//! Agents over MCP, as processes of their own: what one does, the others are told.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_testkit::Agent;
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};

fn lukasa(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lukasa"));
    command.current_dir(folder).env("LUKASA_STORE", folder.join("lukasa.db")).env("LUKASA_PROJECT", "shop");
    for variable in ["LUKASA_TENANT", "LUKASA_AUTHOR", "LUKASA_AGENT", "LUKASA_SESSION", "LUKASA_CONFIG"] {
        command.env_remove(variable);
    }
    command.env("XDG_RUNTIME_DIR", folder).env("LUKASA_MODEL_URL", "off").stderr(Stdio::null());
    command
}

fn agent(folder: &Path, name: &str) -> Agent {
    let mut command = lukasa(folder);
    command.args(["mcp", "--no-watch"]);
    Agent::start(command, name)
}

#[test]
fn who_subscribes_is_told_what_others_do() {
    let folder = tempfile::tempdir().unwrap();
    let (mut ada, mut bob) = (agent(folder.path(), "ada"), agent(folder.path(), "bob"));
    ada.ok("put", json!({"type": "Service", "key": "auth"}));
    let uri = "lukasa://project/events";
    bob.request("resources/subscribe", json!({"uri": uri})).unwrap();
    ada.ok("put", json!({"type": "Episode", "key": "episode:1", "title": "it broke"}));
    assert_eq!(bob.notice("notifications/resources/updated")["uri"], uri);
    let read = bob.request("resources/read", json!({"uri": uri})).unwrap();
    let text = read["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("it broke") && text.contains("episode"), "{text}");
    bob.request("resources/unsubscribe", json!({"uri": uri})).unwrap();
    let refused = bob.request("resources/subscribe", json!({"uri": "lukasa://project/overview"})).unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("lukasa://project/events"), "{refused}");
}
