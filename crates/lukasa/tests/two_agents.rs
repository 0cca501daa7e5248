//! Two agents over MCP on a feature branch with uncommitted changes: every answer is about that tree.
//!
//! `docs/two-agents.md` is the transcript; `UPDATE_EXPECT=1` writes it again.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_testkit::{Agent, git, has_git};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const COMMITTED: &str = "\"\"\"Tokens of the shop.\"\"\"\n\n\ndef sign(user):\n    return f\"signed:{user}\"\n\n\n\
    def refresh_token(user):\n    \"\"\"A fresh token for a user.\"\"\"\n    return sign(user)\n";
/// On the feature branch, uncommitted.
const EDITED: &str = "\"\"\"Tokens of the shop.\"\"\"\n\nHOUR = 3600\n\n\ndef sign(user, lifetime=HOUR):\n    \
    return f\"signed:{user}:{lifetime}\"\n\n\ndef refresh_token(user):\n    \"\"\"A fresh token for a user, for an hour.\"\"\"\n    \
    return sign(user, lifetime=HOUR)\n\n\ndef guest_token():\n    \"\"\"A token for a visitor, for a minute.\"\"\"\n    \
    return sign(\"guest\", lifetime=60)\n";

/// A program on a feature branch, with uncommitted changes.
fn repository(folder: &Path) {
    std::fs::write(folder.join("tokens.py"), COMMITTED).unwrap();
    std::fs::write(
        folder.join("login.py"),
        "from tokens import refresh_token\n\n\ndef login(user):\n    return refresh_token(user)\n",
    )
    .unwrap();
    std::fs::write(folder.join(".gitignore"), ".lukasa/\n").unwrap();
    git(folder, &["init", "-q", "-b", "main"]);
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-qm", "first"]);
    git(folder, &["checkout", "-qb", "feature/expiry"]);
    std::fs::write(folder.join("tokens.py"), EDITED).unwrap();
}

fn agent(folder: &Path, home: &Path, name: &str) -> Agent {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lukasa"));
    for variable in
        ["LUKASA_STORE", "LUKASA_TENANT", "LUKASA_AUTHOR", "LUKASA_AGENT", "LUKASA_SESSION", "LUKASA_CONFIG"]
    {
        command.env_remove(variable);
    }
    command.current_dir(folder).args(["mcp", "--no-watch"]).env("LUKASA_MODEL_URL", "off").env("HOME", home);
    // The ids of objects depend on the project, and the order of equals on their ids.
    command.env("LUKASA_PROJECT", "shop").env("XDG_RUNTIME_DIR", home).stderr(Stdio::null());
    Agent::start(command, name)
}

/// The calls, and the answers as an agent reads them.
struct Transcript(String);

impl Transcript {
    /// Calls a tool of the default list, and returns the structured answer.
    fn call(&mut self, who: (&str, &mut Agent), tool: &str, arguments: Value) -> Value {
        let (name, agent) = who;
        let answer = agent.request("tools/call", json!({"name": tool, "arguments": arguments})).unwrap();
        assert_ne!(answer["isError"], true, "{tool}: {answer}");
        let text = answer["content"][0]["text"].as_str().unwrap();
        let pretty = serde_json::from_str(text)
            .map_or(text.to_owned(), |value: Value| serde_json::to_string_pretty(&value).unwrap());
        self.0 += &format!("**{name}** calls `{tool}` `{arguments}`\n\n```json\n{}\n```\n\n", steady(&pretty));
        answer["structuredContent"].clone()
    }
}

/// The text without parts that differ from run to run: ids, times, and estimates of tokens, because ids vary in tokens.
fn steady(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if rest.get(..36).is_some_and(|part| part.parse::<uuid::Uuid>().is_ok()) {
            out.push('…');
            rest = &rest[36..];
        } else if is_time(rest) {
            out += "(time)";
            rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || "-:.TZ".contains(c));
        } else if let Some((name, after)) = ESTIMATES.iter().find_map(|name| Some((name, rest.strip_prefix(name)?))) {
            out += name;
            out += "\"(tokens)\"";
            rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// Fields of estimates, up to their number.
const ESTIMATES: [&str; 2] = ["\"_tokenEstimate\": ", "\"token_estimate\": "];

/// Whether a text begins with a timestamp such as `2026-01-02T03:04:05Z`.
fn is_time(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00";
    let fits = |(wanted, byte): (&u8, &u8)| if *wanted == b'0' { byte.is_ascii_digit() } else { wanted == byte };
    text.len() >= FORM.len() && FORM.iter().zip(text.as_bytes()).all(fits)
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/two-agents.md")
}

#[test]
fn two_agents_on_a_feature_branch_see_one_tree() {
    if !has_git() {
        return;
    }
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = folder.path();
    repository(root);
    let (mut ada, mut bob) = (agent(root, home.path(), "ada"), agent(root, home.path(), "bob"));
    let mut transcript = Transcript(String::new());

    let task = json!({"task": "refresh_token must hand out tokens that expire"});
    let pack = transcript.call(("ada", &mut ada), "context_pack", task);
    let entry = &pack["data"]["core_symbols"][0];
    assert_eq!((&entry["symbol_name"], &entry["start_line"]), (&json!("refresh_token"), &json!(10)), "{pack}");
    assert!(entry["code"].as_str().unwrap().contains("lifetime=HOUR"), "the code as it is on disk: {pack}");
    assert!(pack["data"]["low_confidence"].is_null(), "{pack}");

    let slice = transcript.call(("ada", &mut ada), "semantic_slice", json!({"symbol": "refresh_token"}));
    let lines: String = EDITED.split_inclusive('\n').skip(9).take(3).collect();
    assert_eq!(slice["data"]["code"], json!(lines), "{slice}");

    let callers = transcript.call(("bob", &mut bob), "get_callers", json!({"symbol": "sign"}));
    let keys: Vec<&Value> = callers["data"]["callers"].as_array().unwrap().iter().map(|c| &c["key"]).collect();
    assert_eq!(keys, ["tokens.py::guest_token", "tokens.py::refresh_token"], "one was never committed: {callers}");

    let claim = json!({"target_id": "refresh_token", "intent": "give tokens an end"});
    let claimed = transcript.call(("ada", &mut ada), "agent_claim", claim);
    assert_eq!(claimed["data"]["target_id"], "tokens.py::refresh_token", "{claimed}");
    let other = json!({"target_id": "tokens.py", "intent": "rename things"});
    let refused = transcript.call(("bob", &mut bob), "agent_claim", other);
    let conflict = &refused["data"]["conflict"];
    assert_eq!(
        (&conflict["agent_id"], &conflict["intent"]),
        (&json!("ada"), &json!("give tokens an end")),
        "{refused}"
    );

    let note = "sign() took no lifetime before: old tokens never end";
    let seen = json!({"content": note, "type": "OBSERVATION", "entities": ["sign"]});
    let remembered = transcript.call(("ada", &mut ada), "episode_add", seen);
    assert_eq!(remembered["data"]["entities"], json!([{"ref": "Function:tokens.py::sign"}]), "{remembered}");
    let decision = json!({"title": "Tokens last an hour", "rationale": "stolen ones must end soon",
        "affected_files": ["tokens.py"]});
    transcript.call(("ada", &mut ada), "decision_add", decision);
    let recalled = transcript.call(("bob", &mut bob), "episode_recall", json!({"query": "why do tokens expire"}));
    let episodes = &recalled["data"]["episodes"];
    assert_eq!(
        (&episodes[0]["rationale"], &episodes[1]["content"]),
        (&json!("stolen ones must end soon"), &json!(note))
    );

    let again =
        transcript.call(("bob", &mut bob), "context_pack", json!({"task": "shorten how long guest_token lasts"}));
    assert_eq!(again["data"]["core_symbols"][0]["symbol_name"], "guest_token", "{again}");
    assert_eq!(again["data"]["active_blockers"][0]["agent"], "ada", "{again}");
    assert!(again["data"]["decisions"].to_string().contains("Tokens last an hour"), "{again}");
    for answer in [&pack, &slice, &callers, &recalled, &again] {
        assert!(answer.to_string().contains("feature/expiry at tx "), "of the branch that is checked out: {answer}");
    }
    compare(&transcript.0);
}

/// Checks that the page has these calls with these answers.
fn compare(transcript: &str) {
    let text = format!("{}\n", format!("{}{transcript}", include_str!("two_agents.md")).trim_end());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(page(), &text).unwrap();
    }
    let written = std::fs::read_to_string(page()).unwrap_or_default();
    let (kept, now) = (parts(&written), parts(&text));
    let calls = |parts: &[(String, Value)]| parts.iter().map(|(before, _)| before.clone()).collect::<Vec<_>>();
    assert_eq!(calls(&kept), calls(&now), "UPDATE_EXPECT=1 writes docs/two-agents.md again");
    for ((call, kept), (_, now)) in kept.iter().zip(&now) {
        let is_cut = [kept, now].iter().any(|answer| answer["truncated"].is_array());
        if let Err(path) = same(kept, now, is_cut) {
            panic!("{call}\nat {path}: UPDATE_EXPECT=1 writes docs/two-agents.md again\nkept {kept:#}\nnow {now:#}");
        }
    }
}

/// The answers of a page, each with the text before it.
fn parts(page: &str) -> Vec<(String, Value)> {
    let answer = |part: &str| {
        let (before, after) = part.split_once("```json\n")?;
        Some((before.trim().to_owned(), serde_json::from_str(after).unwrap()))
    };
    page.split("\n```\n").filter_map(answer).collect()
}

/// Whether two answers are equal. Random ids vary in tokens, so the same answer may be cut to its budget a field earlier
/// or later: what only one of two cut answers has does not count. Otherwise returns where they differ.
fn same(kept: &Value, now: &Value, is_cut: bool) -> Result<(), String> {
    match (kept, now) {
        (Value::Object(kept), Value::Object(now)) => {
            let names: std::collections::BTreeSet<&String> = kept.keys().chain(now.keys()).collect();
            names.into_iter().try_for_each(|name| match (kept.get(name), now.get(name)) {
                (Some(kept), Some(now)) => same(kept, now, is_cut).map_err(|path| format!("{name} {path}")),
                _ if is_cut => Ok(()),
                _ => Err(name.clone()),
            })
        }
        (Value::Array(kept), Value::Array(now)) if is_cut || kept.len() == now.len() => {
            let pairs = kept.iter().zip(now).enumerate();
            pairs
                .into_iter()
                .try_for_each(|(at, (kept, now))| same(kept, now, is_cut).map_err(|path| format!("{at} {path}")))
        }
        _ if kept == now => Ok(()),
        _ => Err(String::new()),
    }
}

#[test]
fn answers_that_differ_are_found() {
    let kept = json!({"data": {"callers": [{"key": "a", "line": 1}], "total": 1}});
    for (other, path) in [
        (json!({"data": {"callers": [{"key": "a", "line": 2}], "total": 1}}), "data callers 0 line "),
        (json!({"data": {"callers": [{"key": "a"}], "total": 1}}), "data callers 0 line"),
        (json!({"data": {"callers": [], "total": 1}}), "data callers "),
    ] {
        assert_eq!(same(&kept, &other, false), Err(path.to_owned()));
        assert_eq!(same(&kept, &other, true).is_err(), path.ends_with("line "), "{path}");
    }
    assert_eq!(same(&kept, &kept, false), Ok(()));
}
