//! Events are reported once, in order, to every subscriber, on every store.

use crate::test_engine::TestEngine;
use serde_json::{Value, json};

fn kinds(answer: &Value) -> Vec<&str> {
    answer["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect()
}

#[test]
fn events_are_reported_once_and_in_order() {
    for test in TestEngine::all() {
        test.ok("put", json!({"type": "Service", "key": "auth"}));
        let first = test.ok("event_list", json!({}));
        assert_eq!((kinds(&first), &first["head"]), (vec!["transaction"], &json!(1)));
        // Declares the types of the objects below.
        test.ok("put", json!({"type": "Track", "key": "track:1"}));
        let first = test.ok("event_list", json!({}));
        let listened = first["cursor"].as_str().unwrap().to_owned();
        assert_eq!(test.ok("event_list", json!({"after": listened}))["summary"], "nothing happened");
        test.fixture.clock.advance(1);
        test.ok(
            "batch",
            json!({"reason": "morning", "writes": [
                {"object": {"type": "Claim", "key": "claim:1", "status": "active",
                    "properties": {"agent_id": "ada", "claim_type": "task", "target": "task:1", "intent": "mend it"}}},
                {"object": {"type": "Episode", "key": "episode:1", "subtype": "ERROR", "title": "it broke"}},
                {"object": {"type": "Episode", "key": "episode:2", "title": "the password",
                    "properties": {"sensitive": true}}},
                {"object": {"type": "Task", "key": "task:1", "status": "open"}},
                {"relationship": {"type": "INVOLVES", "src": "Episode:episode:1", "dst": "Service:auth"}}
            ]}),
        );
        let answer = test.ok("event_list", json!({"after": listened}));
        assert_eq!(kinds(&answer), ["claim", "episode", "episode", "task", "transaction"]);
        let claim = &answer["events"][0];
        assert_eq!(
            (&claim["holder"], &claim["target"], &claim["reason"], &claim["status"]),
            (&json!("ada"), &json!("task:1"), &json!("mend it"), &json!("active"))
        );
        assert_eq!(
            (&answer["events"][1]["title"], &answer["events"][1]["subtype"]),
            (&json!("it broke"), &json!("ERROR"))
        );
        assert!(!answer.to_string().contains("password"), "sensitive episodes are not reported");
        assert_eq!((&answer["events"][4]["reason"], &answer["events"][4]["stated"]), (&json!("morning"), &json!(5)));
        let some = test.ok("event_list", json!({"after": listened, "kinds": ["claim", "task"]}));
        assert_eq!(kinds(&some), ["claim", "task"]);
        test.ok("delete", json!({"ref": "Claim:claim:1"}));
        let answer = test.ok("event_list", json!({"after": answer["cursor"], "kinds": ["claim"]}));
        assert_eq!((kinds(&answer), &answer["events"][0]["status"]), (vec!["claim"], &json!("ended")));
    }
}

#[test]
fn a_conflict_is_reported_though_nothing_was_written() {
    for test in TestEngine::all() {
        let claim = |agent: &str| {
            test.ok(
                "agent_claim",
                json!({"target_id": "task:1", "agent_id": agent, "intent": format!("{agent} mends it")}),
            )
        };
        test.ok("task_update", json!({"task_id": "1", "title": "Mend it", "agent_id": "ada"}));
        let listened = test.ok("event_list", json!({}))["cursor"].clone();
        assert_eq!(claim("ada")["status"], "ok");
        let answer = test.ok("event_list", json!({"after": listened, "kinds": ["claim", "conflict"]}));
        assert_eq!((kinds(&answer), &answer["events"][0]["holder"]), (vec!["claim"], &json!("ada")));
        assert_eq!(claim("bob")["status"], "CONFLICT");
        let answer = test.ok("event_list", json!({"after": answer["cursor"]}));
        assert_eq!(kinds(&answer), ["conflict"]);
        let conflict = &answer["events"][0];
        assert_eq!(
            (&conflict["holder"], &conflict["agent"], &conflict["target"], &conflict["reason"]),
            (&json!("ada"), &json!("bob"), &json!("task:1"), &json!("ada mends it"))
        );
        assert_eq!(kinds(&test.ok("event_list", json!({"after": answer["cursor"]}))), [""; 0], "reported once");
        let head = answer["head"].to_string();
        // A subscriber that begins at a transaction receives conflicts from then on.
        assert_eq!(kinds(&test.ok("event_list", json!({"after": head}))), [""; 0]);
    }
}

#[test]
fn long_logs_come_in_parts_and_wrong_cursors_are_refused() {
    for test in TestEngine::all() {
        for n in 0..5 {
            test.ok("put", json!({"type": "Service", "key": format!("s{n}")}));
        }
        let part = test.ok("event_list", json!({"after": "0", "limit": 3}));
        assert_eq!((kinds(&part).len(), &part["truncated"]), (3, &json!(true)));
        let rest = test.ok("event_list", json!({"after": part["cursor"]}));
        assert_eq!((kinds(&rest).len(), &rest["truncated"]), (2, &json!(false)));
        assert_eq!(test.fails("event_list", json!({"after": "yesterday"})), "invalid_argument");
        assert_eq!(test.fails("event_list", json!({"limit": 0})), "out_of_range");
        assert_eq!(test.fails("event_list", json!({"kinds": ["weather"]})), "invalid_request");
    }
}
