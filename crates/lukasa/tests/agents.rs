//! Agents over MCP, as separate processes: each sees what the others did.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_testkit::{Agent, git, has_git};
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
fn a_subscriber_is_notified_of_changes_by_others() {
    let folder = tempfile::tempdir().unwrap();
    let (mut ada, mut bob) = (agent(folder.path(), "ada"), agent(folder.path(), "bob"));
    ada.ok("put", json!({"type": "Service", "key": "auth"}));
    let uri = "lukasa://project/events";
    bob.request("resources/subscribe", json!({"uri": uri})).unwrap();
    ada.ok("put", json!({"type": "Episode", "key": "episode:1", "title": "it broke"}));
    assert_eq!(bob.wait_for_notification("notifications/resources/updated")["uri"], uri);
    let read = bob.request("resources/read", json!({"uri": uri})).unwrap();
    let text = read["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("it broke") && text.contains("episode"), "{text}");
    bob.request("resources/unsubscribe", json!({"uri": uri})).unwrap();
    let uri = "lukasa://project/claims";
    bob.request("resources/subscribe", json!({"uri": uri})).unwrap();
    ada.ok("agent_claim", json!({"target_id": "src/auth.ts", "intent": "mend it", "new": true}));
    assert_eq!(bob.wait_for_notification("notifications/resources/updated")["uri"], uri);
    let read = bob.request("resources/read", json!({"uri": uri})).unwrap();
    let text = read["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("src/auth.ts") && text.contains("mend it"), "{text}");
    let refused = bob.request("resources/subscribe", json!({"uri": "lukasa://project/overview"})).unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("lukasa://project/events"), "{refused}");
}

#[test]
fn long_work_reports_progress() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    for n in 0..400 {
        let lines: String = (0..20).map(|m| format!("def f{n}_{m}(a):\n    return f{n}_{m}(a)\n\n\n")).collect();
        std::fs::write(tree.join(format!("m{n}.py")), lines).unwrap();
    }
    let mut ada = agent(folder.path(), "ada");
    let call = json!({"name": "index_directory", "arguments": {"path": tree}, "_meta": {"progressToken": "far"}});
    let answer = ada.request("tools/call", call).unwrap();
    assert_eq!(answer["structuredContent"]["ok"], true, "{answer}");
    let notice = ada.wait_for_notification("notifications/progress");
    assert_eq!((&notice["progressToken"], notice["total"].as_f64()), (&json!("far"), Some(400.0)), "{notice}");
    assert!(notice["progress"].as_f64().is_some_and(|done| (0.0..=400.0).contains(&done)), "{notice}");
}

/// Waits until the condition holds.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed().as_secs() < 90, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn cancelled_work_stops() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::write(root.join("slow.sh"), "echo $$ > began\nexec sleep 600\n").unwrap();
    let mut ada = agent(root, "ada");
    let arguments = json!({"path": root, "command": ["sh", "slow.sh"], "timeout_seconds": 300});
    let id = ada.begin("tools/call", &json!({"name": "test_run", "arguments": arguments}));
    let pid = || std::fs::read_to_string(root.join("began")).ok().filter(|text| text.ends_with('\n'));
    wait_until("the tests never began", || pid().is_some());
    let process = Path::new("/proc").join(pid().unwrap().trim());
    if cfg!(target_os = "linux") {
        assert!(process.exists(), "they run");
    }
    ada.notify("notifications/cancelled", &json!({"requestId": id, "reason": "enough"}));
    if cfg!(target_os = "linux") {
        wait_until("what was cancelled still runs", || !process.exists());
    }
    // After a cancellation the agent can continue.
    ada.ok("put", json!({"type": "Note", "key": "after"}));
    let recalled = ada.ok("episode_recall", json!({"query": "tests"}));
    assert_eq!(recalled["episodes"], json!([]), "cancelled work is not recorded");
}

const BEFORE: &str = "def refresh_token(user):\n    \"\"\"A fresh token for a user.\"\"\"\n    return sign(user)\n\n\n\
                      def sign(user):\n    return user\n";
const AFTER: &str = "def refresh_token(user):\n    \"\"\"A fresh token for a user.\"\"\"\n    \
                     return sign(user, lifetime_minutes=60)\n\n\ndef sign(user, lifetime_minutes):\n    return user\n";

/// A small program under version control, with tests of which one fails.
fn repository(folder: &Path) {
    std::fs::write(folder.join("auth.py"), BEFORE).unwrap();
    std::fs::write(folder.join("tests.sh"), "echo '=== 1 failed, 1 passed in 0.01s ==='\nexit 1\n").unwrap();
    std::fs::write(folder.join(".gitignore"), "lukasa*\n").unwrap();
    git(folder, &["init", "-q", "-b", "main"]);
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-qm", "first"]);
}

/// One agent works, records and finishes; all processes restart; another agent gets what it needs, and nothing more.
#[test]
fn an_agent_can_recall_what_another_recorded() {
    if !has_git() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    repository(root);
    let (mut ada, mut bob) = (agent(root, "ada"), agent(root, "bob"));
    ada.ok("index_directory", json!({"path": root}));
    ada.ok(
        "task_update",
        json!({"task_id": "7", "title": "Tokens must expire", "status": "in_progress",
        "targets": ["auth.py"]}),
    );
    let head = ada.ok("log", json!({}))["head"].as_u64().unwrap();

    // It claims a function; another agent cannot claim the file, and the answer gives the reason.
    let claim = json!({"target_id": "auth.py::refresh_token", "intent": "give tokens an end", "task_id": "7"});
    assert_eq!(ada.ok("agent_claim", claim)["status"], "ok");
    let refused = bob.ok("agent_claim", json!({"target_id": "auth.py", "intent": "rename things"}));
    assert_eq!((&refused["status"], &refused["conflict"]["agent_id"]), (&json!("CONFLICT"), &json!("ada")));
    assert_eq!(refused["conflict"]["intent"], "give tokens an end");

    // It edits, decides, makes a mistake, and records something sensitive.
    std::fs::write(root.join("auth.py"), AFTER).unwrap();
    ada.ok("index_directory", json!({"path": root}));
    for (n, change) in ["a lifetime is handed on", "it is in minutes", "sixty of them"].iter().enumerate() {
        ada.ok(
            "episode_add",
            json!({"type": "EDIT", "content": format!("Edited auth.py: {change}"), "task_id": "7",
            "entities": ["auth.py::refresh_token"], "metadata": {"file": "auth.py", "diff_summary": change,
            "lines_before": 7, "lines_after": 7, "reason": format!("step {n}")}}),
        );
    }
    let decided = ada.ok(
        "episode_add",
        json!({"type": "DECISION", "task_id": "7",
        "content": "Refreshed tokens last sixty minutes, because stolen ones must end by themselves.",
        "entities": ["auth.py::refresh_token"], "metadata": {"title": "Tokens last an hour",
        "rationale": "stolen tokens must end by themselves", "tradeoffs": ["more refreshing"],
        "affected_files": ["auth.py"]}}),
    );
    ada.ok("episode_add", json!({"type": "ERROR", "task_id": "7", "content": "sign was called without a lifetime",
        "entities": ["auth.py::sign"], "metadata": {"error_type": "TypeError", "stack_summary": "refresh_token -> sign"}}));
    ada.ok(
        "episode_add",
        json!({"type": "OBSERVATION", "task_id": "7", "sensitive": true,
        "content": "the signing key of refresh_token is xyzzy-plugh", "entities": ["auth.py::refresh_token"]}),
    );
    let tested = ada.ok(
        "test_run",
        json!({"path": root, "command": ["sh", "tests.sh"], "task_id": "7",
        "entities": ["auth.py::refresh_token"]}),
    );
    assert_eq!((&tested["status"], &tested["failed"]), (&json!("failed"), &json!(1)));
    let done = ada.ok("task_update", json!({"task_id": "7", "status": "completed", "outcome": "tokens end"}));
    assert_eq!(done["claims_released"].as_array().unwrap().len(), 1, "{done}");
    assert!(done["reflection"].is_object() && done["decision_id"].is_string(), "{done}");
    let retry = bob.ok("agent_claim", json!({"target_id": "auth.py", "intent": "rename things"}));
    assert_eq!(retry["status"], "ok", "what is done is free again");

    // Every process ends; nothing is forgotten.
    ada.leave();
    bob.leave();
    let mut carol = agent(root, "carol");
    let pack = carol.ok(
        "context_pack",
        json!({"task": "why do refreshed tokens expire in refresh_token?",
        "path": root, "profile": "balanced"}),
    );
    let text = pack.to_string();
    assert!(text.contains("Tokens last an hour") || text.contains("last sixty minutes"), "the decision: {pack}");
    assert!(!pack["learnings"].as_array().unwrap().is_empty(), "the learning: {pack}");
    assert!(text.contains("lifetime_minutes"), "the changed code: {pack}");
    let recalled = carol.ok("episode_recall", json!({"query": "signing key of refresh_token", "limit": 50}));
    for shown in [&text, &recalled.to_string()] {
        assert!(!shown.contains("xyzzy"), "nothing sensitive: {shown}");
    }

    // The causes and consequences of the decision; before it, there were none.
    let decision = decided["episode_id"].as_str().unwrap();
    let lineage = carol.ok("trace_decision_lineage", json!({"decision_id": decision}));
    let (up, down) = (lineage["upstream"].to_string(), lineage["downstream"].to_string());
    assert!(up.contains("Episode:") && up.contains("Session"), "what led to it: {lineage}");
    assert!(up.contains("Task:task:7") && up.contains("PRODUCES"), "the task it was decided for: {lineage}");
    assert!(!down.contains("Task:task:7"), "which did not come of it: {lineage}");
    assert!(down.contains("refresh_token"), "what came of it: {lineage}");
    let before = format!("tx:{head}");
    let gone = carol.answer("trace_decision_lineage", json!({"decision_id": decision, "as_of": before}));
    assert_eq!((&gone["ok"], &gone["errorCode"]), (&json!(false), &json!("not_found")));
    let pack = carol.ok(
        "context_pack",
        json!({"task": "why do refreshed tokens expire in refresh_token?",
        "as_of": before, "profile": "balanced"}),
    );
    let text = pack.to_string();
    assert!(!text.contains("sixty minutes") && !text.contains("Tokens last an hour"), "as it was before: {pack}");
    assert!(
        carol.ok("episode_recall", json!({"query": "tokens", "as_of": before}))["episodes"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

/// A command that cannot open its own engine still gets its answer from the running one.
#[test]
fn a_command_asks_the_process_that_has_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let mut ada = agent(folder.path(), "ada");
    ada.ok("put", json!({"type": "Service", "key": "auth", "title": "Login"}));
    let run = |arguments: &[&str], spoiled: bool| {
        let mut command = lukasa(folder.path());
        if spoiled {
            // Only read by a process that opens an engine.
            command.env("LUKASA_GRAPH_MEMORY_MB", "none");
        }
        let done = command.args(arguments).stderr(Stdio::piped()).output().unwrap();
        (done.status.success(), String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
    };
    let (ok, out, _) = run(&["--json", "get", "Service:auth"], true);
    assert!(ok && out.contains("Login"), "{out}");
    let (ok, ..) = run(&["--author", "bea", "--agent", "cli", "put", "Service", "mail"], true);
    assert!(ok, "writes too");
    let log = ada.ok("log", json!({"limit": 1, "profile": "debug"})).to_string();
    assert!(log.contains("bea") && log.contains("cli"), "the caller travels with the request: {log}");
    let (ok, _, error) = run(&["get", "Service:nothing"], true);
    assert!(!ok && error.contains("nothing"), "errors too: {error}");
    let (ok, out, _) = run(&["export"], false);
    assert!(ok && out.contains("Login"), "what is a stream is read here: {out}");
    drop(ada);
    let (ok, _, error) = run(&["get", "Service:auth"], true);
    assert!(!ok && error.contains("LUKASA_GRAPH_MEMORY_MB"), "no process owns the store any more: {error}");
    let (ok, out, _) = run(&["get", "Service:auth"], false);
    assert!(ok && out.contains("Login"), "{out}");
}
