//! Tasks and features on every store: dependencies, ready tasks, and what follows from completing one.

use crate::test_engine::TestEngine;
use lukasa_engine::Context;
use serde_json::{Value, json};

fn by(test: &TestEngine, agent: &str, name: &str, request: Value) -> Value {
    let mut progress = |_, _| {};
    let scope = test.fixture.ledger.scope().clone();
    let mut context =
        Context { agent: Some(agent.into()), session: Some("s1".into()), ..Context::of(scope, &mut progress) };
    let answer = test.engine.call(&mut context, name, request);
    answer.unwrap_or_else(|e| panic!("{name} on {}: {e:?}", test.fixture.name))
}

fn keys(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|row| row["task_id"].as_str().unwrap()).collect()
}

/// Four tasks of a feature; two of them wait.
fn planned() -> Vec<TestEngine> {
    let tests = TestEngine::all();
    for test in &tests {
        for request in [
            json!({"task_id": "1", "title": "Draw the page", "feature_id": "login"}),
            json!({"task_id": "task:2", "title": "Check the password", "feature": "feature:login", "blocked_by": ["1"],
                "priority": "high", "targets": ["src/auth.py::check"]}),
            json!({"taskId": "3", "title": "Send the mail", "featureId": "login", "blockedBy": ["task:2"]}),
            json!({"task_id": "4", "title": "Choose a colour", "assignee": "bob", "priority": "low"}),
        ] {
            let out = by(test, "ada", "task_update", request);
            assert_eq!((&out["created"], &out["status"]), (&json!(true), &json!("pending")), "{out}");
        }
    }
    tests
}

#[test]
fn tasks_are_listed_by_feature_status_and_words_page_by_page() {
    for test in planned() {
        let all = test.ok("progress_query", json!({}));
        assert_eq!(keys(&all["tasks"]), ["task:1", "task:2", "task:3", "task:4"]);
        assert_eq!((&all["total"], &all["by_status"]), (&json!(4), &json!({"pending": 4})));
        let page = test.ok("progress_query", json!({"limit": 3}));
        assert_eq!((keys(&page["tasks"]).len(), &page["truncated"]), (3, &json!(true)));
        let rest = test.ok("progress_query", json!({"limit": 3, "after": page["next"]}));
        assert_eq!((keys(&rest["tasks"]), &rest["truncated"]), (vec!["task:4"], &json!(false)));
        for (request, expected) in [
            (json!({"feature_id": "login"}), vec!["task:1", "task:2", "task:3"]),
            (json!({"assignee": "bob"}), vec!["task:4"]),
            (json!({"query": "PASSWORD check"}), vec!["task:2"]),
            (json!({"status": "completed"}), vec![]),
        ] {
            assert_eq!(keys(&test.ok("progress_query", request)["tasks"]), expected);
        }
        let second = &all["tasks"][1];
        assert_eq!((&second["priority"], &second["belongs_to"]), (&json!(3), &json!(["feature:login"])));
        assert_eq!(
            (&second["blocked_by"][0]["id"], &second["targets"]),
            (&json!("task:1"), &json!(["src/auth.py::check"]))
        );
        assert_eq!(test.fails("progress_query", json!({"status": "perhaps"})), "invalid_status");
    }
}

#[test]
fn ready_tasks_follow_from_completed_and_claimed_ones() {
    for test in planned() {
        let ready = by(&test, "ada", "task_ready", json!({}));
        assert_eq!(keys(&ready["tasks"]), ["task:1", "task:4"]);
        assert_eq!(ready["tasks"][0]["unblocks"], 2);
        by(&test, "bob", "agent_claim", json!({"target_id": "task:1", "intent": "draw"}));
        assert_eq!(keys(&by(&test, "ada", "task_ready", json!({}))["tasks"]), ["task:4"]);
        let own = by(&test, "bob", "task_ready", json!({}));
        assert_eq!((keys(&own["tasks"]), &own["tasks"][0]["yours"]), (vec!["task:1", "task:4"], &json!(true)));
        by(&test, "bob", "task_update", json!({"task_id": "1", "status": "done"}));
        assert_eq!(keys(&by(&test, "ada", "task_ready", json!({}))["tasks"]), ["task:2", "task:4"]);
        // Its code is claimed by another agent.
        by(&test, "bob", "agent_claim", json!({"new": true, "target_id": "src/auth.py", "intent": "tidy up"}));
        assert_eq!(keys(&by(&test, "ada", "task_ready", json!({}))["tasks"]), ["task:4"]);
        let refused =
            by(&test, "ada", "agent_claim", json!({"new": true, "target_id": "src/auth.py::check", "intent": "check"}));
        assert_eq!(refused["status"], "CONFLICT");
        let blocking = by(&test, "ada", "blocking_issues", json!({"agent_id": "ada"}));
        let issues: Vec<(&str, &str)> = blocking["issues"]
            .as_array()
            .unwrap()
            .iter()
            .map(|issue| (issue["task_id"].as_str().unwrap(), issue["reason"].as_str().unwrap()))
            .collect();
        assert_eq!(issues, [("task:2", "bob has claimed src/auth.py: tidy up"), ("task:3", "waits for task:2")]);
        assert_eq!(blocking["claim_conflicts"][0]["wanted_by"], "ada");
        let one = by(&test, "ada", "blocking_issues", json!({"task_id": "3"}));
        assert_eq!(one["total"], 1);
    }
}

#[test]
fn cycles_of_tasks_are_reported_and_refused() {
    for test in planned() {
        let request = json!({"task_id": "1", "blocked_by": ["3"]});
        assert_eq!(test.fails("task_update", request), "dependency_cycle");
        assert_eq!(test.fails("task_update", json!({"task_id": "5", "blocked_by": ["9"]})), "unknown_task");
        // Cycles made by other operations are reported.
        test.ok("link", json!({"type": "BLOCKED_BY", "src": "Task:task:1", "dst": "Task:task:3"}));
        let ready = test.ok("task_ready", json!({}));
        assert_eq!(keys(&ready["tasks"]), ["task:4"]);
        assert_eq!(ready["cycles"], json!([["task:1", "task:3", "task:2"]]));
        assert!(ready["summary"].as_str().unwrap().contains("task:1 waits for task:3"), "{ready}");
        test.ok("task_update", json!({"task_id": "1", "unblock": ["3"]}));
        let ready = test.ok("task_ready", json!({}));
        assert!(ready["cycles"].is_null() && keys(&ready["tasks"]).contains(&"task:1"), "{ready}");
    }
}

#[test]
fn completing_a_task_gives_back_its_claims_reflects_and_records_a_decision() {
    for test in planned() {
        by(&test, "ada", "agent_claim", json!({"target_id": "task:2", "intent": "do it"}));
        by(
            &test,
            "ada",
            "agent_claim",
            json!({"new": true, "target_id": "src/auth.py", "intent": "check", "task_id": "2"}),
        );
        let other = by(
            &test,
            "ada",
            "agent_claim",
            json!({"new": true, "target_id": "src/mail.py", "intent": "read", "task_id": "3"}),
        );
        for n in 0..3 {
            by(
                &test,
                "ada",
                "episode_add",
                json!({"type": "OBSERVATION", "content": format!("looked at it {n}"), "task_id": "2"}),
            );
        }
        let request = json!({"task_id": "2", "status": "completed", "outcome": "passwords are hashed"});
        let done = by(&test, "ada", "task_update", request.clone());
        let ended: Vec<&str> =
            done["claims_released"].as_array().unwrap().iter().map(|c| c["target_id"].as_str().unwrap()).collect();
        assert_eq!(ended, ["src/auth.py", "task:2"]);
        assert_eq!(done["reflection"]["episodes"], 3, "{done}");
        let decision = test.ok("get", json!({"ref": done["decision_id"]}))["thing"].clone();
        assert_eq!((&decision["type"], &decision["properties"]["outcome"]), (&json!("Decision"), &json!("success")));
        assert!(decision["properties"]["content"].as_str().unwrap().contains("passwords are hashed"), "{decision}");
        let status = by(&test, "ada", "agent_status", json!({}));
        assert_eq!(status["active_claims"][0]["claim_id"], other["claim_id"], "of another task");
        assert!(!status["recent_episodes"].as_array().unwrap().is_empty(), "{status}");
        let again = by(&test, "ada", "task_update", request);
        assert_eq!(
            (&again["tx"], &again["decision_id"]),
            (&Value::Null, &done["decision_id"]),
            "recorded before: {again}"
        );
        assert_eq!(test.ok("list", json!({"type": "Decision"}))["total"], 1);
        let lineage = test.ok("trace_decision_lineage", json!({"decision_id": done["decision_id"]}));
        let side = |way: &str| lineage[way].to_string();
        assert!(
            side("upstream").contains("Task:task:2") && side("upstream").contains("Session:session:s1"),
            "{lineage}"
        );
        assert!(!side("downstream").contains("Task:task:2"), "what was decided came of the task: {lineage}");
        let feature = test.ok("feature_status", json!({"feature_id": "login"}));
        assert_eq!(
            (&feature["percent_complete"], &feature["by_status"]),
            (&json!(33.3), &json!({"completed": 1, "pending": 2}))
        );
        assert_eq!(feature["active_claims"][0]["target_id"], "src/mail.py");
        assert_eq!(feature["code_coverage"]["unknown"], json!(["src/auth.py::check"]));
        assert_eq!(test.fails("feature_status", json!({"feature_id": "nothing"})), "unknown_feature");
    }
}

#[test]
fn an_interrupted_completion_is_finished_by_the_next_one() {
    for test in planned() {
        by(&test, "ada", "agent_claim", json!({"target_id": "task:2", "intent": "do it"}));
        // As if the process that completed it had been stopped before anything else.
        test.ok("patch", json!({"ref": "Task:task:2", "status": "completed"}));
        let request = json!({"task_id": "2", "status": "completed"});
        let done = by(&test, "ada", "task_update", request.clone());
        assert!(done["tx"].is_null(), "it was completed before: {done}");
        assert_eq!(done["claims_released"][0]["target_id"], "task:2");
        assert_eq!(done["claims_released"][0]["invalidation_reason"], "task_completed");
        assert!(done["claims_released"][0]["valid_to"].is_string() && done["decision_id"].is_string(), "{done}");
        let again = by(&test, "bob", "task_update", request);
        assert_eq!((&again["decision_id"], &again["claims_released"]), (&done["decision_id"], &Value::Null));
        // When reopened and completed again, it gets another decision.
        by(&test, "ada", "task_update", json!({"task_id": "2", "status": "in progress"}));
        let other = by(&test, "ada", "task_update", json!({"task_id": "2", "status": "failed"}));
        assert_ne!(other["decision_id"], done["decision_id"]);
        test.ok("episode_add", json!({"type": "LEARNING", "content": "c", "task_id": "2", "id": "l"}));
        let learned = test.ok("trace_decision_lineage", json!({"decision_id": "learning:l", "direction": "upstream"}));
        assert!(learned["upstream"].to_string().contains("Task:task:2"), "{learned}");
    }
}

#[test]
fn what_holds_for_all_branches_does_so_from_the_first() {
    for test in TestEngine::all() {
        test.ok("put", json!({"type": "Service", "key": "auth"}));
        test.ok("branch_create", json!({"name": "feature"}));
        let put = json!({"branch": "feature", "client_id": "once", "writes": [{"object": {"type": "Policy", "key": "policy:cards"}}]});
        assert!(test.ok("batch", put.clone())["tx"].is_number());
        assert_eq!(test.ok("batch", put)["repeated"], true, "its id is that of the batch alone");
        test.ok(
            "batch",
            json!({"branch": "feature", "writes": [
                {"object": {"type": "Task", "key": "task:1", "status": "pending"}},
                {"object": {"type": "Task", "key": "task:2", "status": "pending"}},
                {"relationship": {"type": "BLOCKED_BY", "src": "Task:task:2", "dst": "Task:task:1"}}
            ]}),
        );
        for reference in ["Policy:policy:cards", "Task:task:1"] {
            test.ok("get", json!({"ref": reference}));
        }
        assert_eq!(keys(&test.ok("task_ready", json!({}))["tasks"]), ["task:1"], "and what waits for what");
        test.ok("link", json!({"type": "GOVERNED_BY", "src": "Service:auth", "dst": "Policy:policy:cards"}));
    }
}

#[test]
fn a_task_changes_only_from_the_version_that_was_read() {
    for test in planned() {
        let out = test.ok("task_update", json!({"task_id": "4", "status": "in progress", "expected_version": 1}));
        assert_eq!((&out["version"], &out["status"]), (&json!(2), &json!("in_progress")));
        assert_eq!(
            test.fails("task_update", json!({"task_id": "4", "status": "done", "expected_version": 1})),
            "version_conflict"
        );
        assert_eq!(test.fails("task_update", json!({"task_id": "4", "expected_version": 0})), "version_conflict");
        assert_eq!(test.fails("task_update", json!({"task_id": "4", "priority": "purple"})), "invalid_priority");
        let kept = test.ok("get", json!({"ref": "task:4"}))["thing"].clone();
        assert_eq!((&kept["title"], &kept["properties"]["assignee"]), (&json!("Choose a colour"), &json!("bob")));
    }
}

#[test]
fn a_pack_claims_what_it_returns_and_shows_blockers() {
    for test in TestEngine::all() {
        let folder = tempfile::tempdir().unwrap();
        let source = "class Till:\n    \"\"\"Adds up prices.\"\"\"\n\n    def discount(self, cents):\n        \"\"\"The discount of the till.\"\"\"\n        return cents // 10\n";
        std::fs::write(folder.path().join("till.py"), source).unwrap();
        let tested = "from till import Till\n\n\ndef test_discount():\n    assert Till().discount(100) == 10\n";
        std::fs::write(folder.path().join("test_till.py"), tested).unwrap();
        let pack = |agent: &str, more: Value| {
            let mut request =
                json!({"task": "the discount of the Till is wrong", "path": folder.path(), "profile": "balanced"});
            request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            by(&test, agent, "context_pack", request)
        };
        assert!(pack("ada", json!({}))["claims"].is_null(), "only when asked to");
        let first = pack("ada", json!({"claim": true, "task_id": null}));
        assert_eq!(first["claims"][0]["target_id"], first["entry_point"], "{first}");
        assert_eq!(first["claims"][0]["status"], "ok");
        assert!(first["token_estimate"].as_u64() <= first["token_budget"].as_u64() && first["token_budget"] == 1_200);
        let second = pack("bob", json!({"claim": true}));
        assert!(second["active_blockers"].as_array().unwrap().iter().all(|b| b["agent"] == "ada"), "{second}");
        assert_eq!(
            (&second["claims"][0]["status"], &second["claims"][0]["held_by"]),
            (&json!("CONFLICT"), &json!("ada"))
        );
        let compact = pack("ada", json!({"claim": true, "profile": "compact"}));
        assert!(compact["token_estimate"].as_u64().unwrap() <= 300, "{compact}");
        // A claim on the file around it also blocks; one that only shares words with the task does not.
        for claim in first["claims"].as_array().unwrap().iter().filter(|claim| claim["status"] == "ok") {
            by(&test, "ada", "agent_release", json!({"claim_id": claim["claim_id"]}));
        }
        by(
            &test,
            "eve",
            "agent_claim",
            json!({"target_id": "docs/discount.md", "new": true, "intent": "write about the discount of the till"}),
        );
        assert!(pack("bob", json!({}))["active_blockers"].is_null());
        by(&test, "eve", "agent_claim", json!({"target_id": "till.py", "intent": "tidy up"}));
        let blockers = pack("bob", json!({}))["active_blockers"].clone();
        assert_eq!((blockers.as_array().unwrap().len(), &blockers[0]["agent"]), (1, &json!("eve")), "{blockers}");
        by(&test, "eve", "task_update", json!({"task_id": "7", "feature_id": "till", "targets": ["till.py"]}));
        let coverage = test.ok("feature_status", json!({"feature_id": "till"}))["code_coverage"].clone();
        assert_eq!((&coverage["symbols"], &coverage["tested"]), (&json!(1), &json!(1)), "{coverage}");
    }
}
