//! The agent of a caller is bound to its token or key: no caller reads, writes or releases as the agent of another.

use crate::house::{House, SURFACES};
use crate::requests::requests;
use lukasa_engine::operations;
use lukasa_testkit::fixtures;
use serde_json::{Value, json};

/// Occurs only in what one agent may read.
const MARK: &str = "quartzmarmot";
const SCOPES: [&str; 4] = ["graph:read", "graph:write", "graph:search:read", "graph:sensitive:read"];

/// A project in which ada's agent `claude` has recorded a sensitive episode and claimed a file.
fn claimed(house: &House) -> String {
    let ada = house.key_of("ours", "ada", &SCOPES, &["claude"]);
    house.ok(&ada, "put", json!({"type": "File", "key": "src/a.py", "properties": {"path": "src/a.py"}}));
    let kept = house.ok(&ada, "episode_add", json!({"content": format!("the word is {MARK}"), "sensitive": true}));
    assert!(kept["episode_id"].is_string(), "{kept}");
    let claim = house.ok(&ada, "agent_claim", json!({"target_id": "src/a.py", "intent": "mend it"}));
    assert_eq!(claim["status"], "ok", "{claim}");
    ada
}

fn recalled() -> Value {
    json!({"query": "the word", "agent_id": "claude", "include_sensitive": true})
}

#[test]
fn a_key_acts_only_as_its_own_agents() {
    for fixture in fixtures() {
        let house = House::of(fixture, None);
        let ada = claimed(&house);
        let kind = house.fixture.name;
        // A key without named agents acts as agents under its user's name.
        let eve = house.key_of("ours", "eve", &SCOPES, &[]);
        for (operation, request) in [
            ("agent_release", json!({"target_id": "src/a.py", "agent_id": "claude"})),
            ("agent_release", json!({"target_id": "src/a.py", "agentId": "claude", "force": true, "reason": "x"})),
            ("episode_add", json!({"content": "x", "agent_id": "claude"})),
            (
                "episode_add",
                json!({"episodes": [{"content": "x", "agent_id": "eve"}, {"content": "x", "agentId": "claude"}]}),
            ),
            ("decision_add", json!({"title": "x", "rationale": "x", "agent_id": "claude"})),
            ("agent_claim", json!({"target_id": "src/a.py", "intent": "x", "agent_id": "eve2"})),
        ] {
            let refused = house.call(&eve, operation, &request);
            assert_eq!(
                (refused.status, refused.code().as_str()),
                (403, "forbidden_agent"),
                "{kind} {request}: {}",
                refused.all()
            );
            let session = house.session(&eve, "claude");
            let answer = house.tool(&eve, &session, operation, request);
            assert_eq!(answer["errorCode"], "forbidden_agent", "{kind}: {answer}");
        }
        // A client that calls itself `claude` over MCP is still the agent `eve/claude`.
        let session = house.session(&eve, "claude");
        let answer = house.tool(&eve, &session, "agent_release", json!({"target_id": "src/a.py"}));
        assert_eq!(answer["errorCode"], "not_holder", "{kind}: {answer}");
        assert!(answer["summary"].as_str().unwrap().contains("eve/claude"), "{answer}");
        for (way, text) in [
            ("REST", house.ok(&eve, "episode_recall", recalled()).to_string()),
            ("MCP", house.tool(&eve, &session, "episode_recall", recalled()).to_string()),
        ] {
            assert!(!text.contains(MARK), "{kind} {way}: {text}");
        }
        for agent in ["eve", "eve/codex"] {
            house.ok(&eve, "episode_add", json!({"content": "x", "agent_id": agent}));
        }
        // The agent sees and ends its own claims, whatever name the client sends.
        let session = house.session(&ada, "some client");
        for (way, text) in [
            ("REST", house.ok(&ada, "episode_recall", recalled()).to_string()),
            ("MCP", house.tool(&ada, &session, "episode_recall", recalled()).to_string()),
        ] {
            assert!(text.contains(MARK), "{kind} {way}: {text}");
        }
        assert_eq!(
            house.call(&ada, "episode_add", &json!({"content": "x", "agent_id": "ada"})).code(),
            "forbidden_agent"
        );
        let answer = house.tool(&ada, &session, "agent_release", json!({"target_id": "src/a.py"}));
        assert_eq!(answer["ok"], true, "{kind}: {answer}");
    }
}

#[test]
fn every_operation_with_an_agent_field_checks_the_agent() {
    for fixture in fixtures() {
        let (kind, home) = (fixture.name, tempfile::tempdir().unwrap());
        // With a tree and a folder, so that no operation is refused because they are missing.
        let house = House::of(fixture, Some(home.path()));
        let eve = house.client(&house.key_of("ours", "eve", &["admin"], &[]));
        house.ok(&eve.key, "put", json!({"type": "Service", "key": "web"}));
        for surface in SURFACES {
            let (mut open, mut checked) = (Vec::new(), 0);
            for operation in operations().iter().filter(|operation| operation.fields().contains_key("agent_id")) {
                let mut request = requests(operation, &[]).remove(0);
                request["agent_id"] = json!("other");
                match eve.ask(surface, operation.meta.name, &request).code == "forbidden_agent" {
                    true => checked += 1,
                    false => open.push(operation.meta.name),
                }
            }
            assert!(checked >= 8, "{kind} {surface:?}: {checked}");
            open.sort_unstable();
            assert_eq!(
                open,
                ["agent_status", "blocking_issues", "decision_query", "episode_recall"],
                "{kind} {surface:?}: these read what is shared"
            );
        }
    }
}
