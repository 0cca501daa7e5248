//! What happens is told once, in order, to whoever listens, on every store.

use crate::desk::Desk;
use serde_json::{Value, json};

fn kinds(told: &Value) -> Vec<&str> {
    told["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect()
}

#[test]
fn what_happens_is_told_once_and_in_order() {
    for desk in Desk::all() {
        desk.ok("put", json!({"type": "Service", "key": "auth"}));
        let first = desk.ok("event_list", json!({}));
        assert_eq!((kinds(&first), &first["head"]), (vec!["transaction"], &json!(1)));
        // Declares the types of what follows.
        desk.ok("put", json!({"type": "Track", "key": "track:1"}));
        let first = desk.ok("event_list", json!({}));
        let listened = first["cursor"].as_str().unwrap().to_owned();
        assert_eq!(desk.ok("event_list", json!({"after": listened}))["summary"], "nothing happened");
        desk.fixture.clock.advance(1);
        desk.ok(
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
        let told = desk.ok("event_list", json!({"after": listened}));
        assert_eq!(kinds(&told), ["claim", "episode", "episode", "task", "transaction"]);
        let claim = &told["events"][0];
        assert_eq!(
            (&claim["holder"], &claim["target"], &claim["reason"], &claim["status"]),
            (&json!("ada"), &json!("task:1"), &json!("mend it"), &json!("active"))
        );
        assert_eq!((&told["events"][1]["title"], &told["events"][1]["subtype"]), (&json!("it broke"), &json!("ERROR")));
        assert!(!told.to_string().contains("password"), "what is sensitive is not told");
        assert_eq!((&told["events"][4]["reason"], &told["events"][4]["stated"]), (&json!("morning"), &json!(5)));
        let some = desk.ok("event_list", json!({"after": listened, "kinds": ["claim", "task"]}));
        assert_eq!(kinds(&some), ["claim", "task"]);
        desk.ok("delete", json!({"ref": "Claim:claim:1"}));
        let told = desk.ok("event_list", json!({"after": told["cursor"], "kinds": ["claim"]}));
        assert_eq!((kinds(&told), &told["events"][0]["status"]), (vec!["claim"], &json!("ended")));
    }
}

#[test]
fn a_conflict_is_told_though_nothing_was_written() {
    for desk in Desk::all() {
        let claim = |agent: &str| {
            desk.ok(
                "agent_claim",
                json!({"target_id": "task:1", "agent_id": agent, "intent": format!("{agent} mends it")}),
            )
        };
        desk.ok("task_update", json!({"task_id": "1", "title": "Mend it", "agent_id": "ada"}));
        let listened = desk.ok("event_list", json!({}))["cursor"].clone();
        assert_eq!(claim("ada")["status"], "ok");
        let told = desk.ok("event_list", json!({"after": listened, "kinds": ["claim", "conflict"]}));
        assert_eq!((kinds(&told), &told["events"][0]["holder"]), (vec!["claim"], &json!("ada")));
        assert_eq!(claim("bob")["status"], "CONFLICT");
        let told = desk.ok("event_list", json!({"after": told["cursor"]}));
        assert_eq!(kinds(&told), ["conflict"]);
        let conflict = &told["events"][0];
        assert_eq!(
            (&conflict["holder"], &conflict["agent"], &conflict["target"], &conflict["reason"]),
            (&json!("ada"), &json!("bob"), &json!("task:1"), &json!("ada mends it"))
        );
        assert_eq!(kinds(&desk.ok("event_list", json!({"after": told["cursor"]}))), [""; 0], "told once");
        let head = told["head"].to_string();
        // Who begins by a transaction alone listens for conflicts from then on.
        assert_eq!(kinds(&desk.ok("event_list", json!({"after": head}))), [""; 0]);
    }
}

#[test]
fn long_logs_come_in_parts_and_wrong_cursors_are_refused() {
    for desk in Desk::all() {
        for n in 0..5 {
            desk.ok("put", json!({"type": "Service", "key": format!("s{n}")}));
        }
        let part = desk.ok("event_list", json!({"after": "0", "limit": 3}));
        assert_eq!((kinds(&part).len(), &part["truncated"]), (3, &json!(true)));
        let rest = desk.ok("event_list", json!({"after": part["cursor"]}));
        assert_eq!((kinds(&rest).len(), &rest["truncated"]), (2, &json!(false)));
        assert_eq!(desk.fails("event_list", json!({"after": "yesterday"})), "invalid_argument");
        assert_eq!(desk.fails("event_list", json!({"limit": 0})), "out_of_range");
        assert_eq!(desk.fails("event_list", json!({"kinds": ["weather"]})), "invalid_request");
    }
}
