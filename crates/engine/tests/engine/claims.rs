//! Claims on every store: who may claim, what ends a claim, and that no target is ever held twice.

use crate::test_engine::TestEngine;
use lukasa_engine::claims::EditPolicy;
use lukasa_engine::features::coordination::{ClaimRules, ConnectionSource};
use lukasa_engine::{Context, Engine};
use lukasa_model::claims::{BOARD, ClaimTarget, held_in};
use lukasa_model::{Error, ErrorCode};
use lukasa_store::ledger::ViewSpec;
use lukasa_store::{Clock, Ledger, VersionFields};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

fn ask(
    engine: &Engine,
    test: &TestEngine,
    who: (&str, Option<&str>),
    name: &str,
    request: Value,
) -> Result<Value, Error> {
    let mut progress = |_, _| {};
    let mut context = Context {
        agent: Some(who.0.into()),
        session: (who.0 == "ada").then(|| "s1".into()),
        connection: who.1.map(str::to_owned),
        ..Context::of(test.fixture.ledger.scope().clone(), &mut progress)
    };
    engine.call(&mut context, name, request)
}

impl TestEngine {
    fn by(&self, agent: &str, name: &str, request: Value) -> Value {
        let answer = ask(&self.engine, self, (agent, None), name, request);
        answer.unwrap_or_else(|e| panic!("{name} on {}: {e:?}", self.fixture.name))
    }

    fn refused(&self, agent: &str, name: &str, request: Value) -> Error {
        match ask(&self.engine, self, (agent, None), name, request) {
            Ok(answer) => panic!("{name} on {}: {answer}", self.fixture.name),
            Err(error) => error,
        }
    }

    fn another(&self, rules: ClaimRules) -> Engine {
        let clock = Arc::clone(&self.fixture.clock) as Arc<dyn Clock>;
        Engine::new(Arc::clone(&self.fixture.store), clock, std::env::temp_dir()).with_claim_rules(rules)
    }
}

fn claim(target: &str) -> Value {
    json!({"target_id": target, "intent": "mend the retry", "new": true})
}

#[test]
fn a_conflict_reports_holder_intent_and_start() {
    for test in TestEngine::all() {
        let first = test.by("ada", "agent_claim", claim("src/auth.ts"));
        assert_eq!((&first["status"], &first["target_id"]), (&json!("ok"), &json!("src/auth.ts")));
        assert!(first["claim_id"].as_str().unwrap().starts_with("claim:") && first["target_version_sha"].is_null());
        test.fixture.clock.advance(5_000_000);
        for (target, relation, claim_type) in [
            ("./src//auth.ts", "same", "file"),
            ("File:src/auth.ts", "same", "file"),
            ("src/auth.ts::login", "within", "function"),
        ] {
            let second = test.by("bob", "agent_claim", claim(target));
            assert_eq!((&second["status"], &second["claim_id"]), (&json!("CONFLICT"), &Value::Null), "{target}");
            let conflict = &second["conflict"];
            assert_eq!((&conflict["agent_id"], &conflict["intent"]), (&json!("ada"), &json!("mend the retry")));
            assert_eq!((&conflict["relation"], &second["claim_type"]), (&json!(relation), &json!(claim_type)));
            assert_eq!(conflict["claim_id"], first["claim_id"]);
            assert!(second["summary"].as_str().unwrap().contains("ada"), "{second}");
        }
        assert_eq!(test.by("bob", "agent_claim", claim("src/auth.tsx"))["status"], "ok", "another file");
        let again =
            test.by("ada", "agent_claim", json!({"targetId": "src/auth.ts", "intent": "something else", "new": true}));
        assert_eq!((&again["already_yours"], &again["claim_id"]), (&json!(true), &first["claim_id"]));
        let status = test.by("ada", "agent_status", json!({}));
        assert_eq!(status["active_claims"][0]["intent"], "something else");
        test.by("ada", "agent_release", json!({"claim_id": first["claim_id"], "outcome": "done"}));
        let third = test.by("bob", "agent_claim", claim("src/auth.ts::login"));
        assert_eq!(third["status"], "ok");
        let whole = test.by("ada", "agent_claim", claim("src/auth.ts"));
        assert_eq!((&whole["status"], &whole["conflict"]["relation"]), (&json!("CONFLICT"), &json!("contains")));
        let before = test.by("ada", "agent_release", json!({"claim_id": first["claim_id"]}));
        assert_eq!((&before["status"], &before["invalidation_reason"]), (&json!("ended"), &json!("released")));
        let who = test.by("ada", "coordination_overview", json!({}));
        assert_eq!((who["active_claims"].as_array().unwrap().len(), &who["total_claims"]), (2, &json!(3)));
        assert_eq!(who["conflicts"][0]["wanted_by"], "ada");
        assert_eq!(
            (&who["agent_summary"][0]["agent_id"], &who["agent_summary"][0]["claim_count"]),
            (&json!("bob"), &json!(2))
        );
        assert!(who["agent_summary"][0]["last_seen"].is_string());
    }
}

#[test]
fn tasks_and_features_are_claimed_by_any_of_their_names() {
    for test in TestEngine::all() {
        test.by("ada", "agent_claim", claim("task:12"));
        for target in [claim("Task:task:12"), json!({"target_id": "12", "claim_type": "task", "intent": "x"})] {
            assert_eq!(test.by("bob", "agent_claim", target)["conflict"]["target_id"], "task:12");
        }
        assert_eq!(test.by("bob", "agent_claim", claim("feature:12"))["status"], "ok");
        assert_eq!(test.by("ada", "agent_status", json!({}))["current_task"], "task:12");
        assert_eq!(test.refused("ada", "agent_claim", claim("Service:auth")).code, ErrorCode::InvalidTarget);
        assert_eq!(test.refused("ada", "agent_claim", claim("../elsewhere.rs")).code, ErrorCode::OutsideWorkspace);
        let unknown = test.refused("ada", "agent_claim", claim("nowhere"));
        assert_eq!(unknown.code, ErrorCode::UnknownTarget, "{unknown:?}");
        assert_eq!(test.fails("agent_claim", claim("a.rs")), "no_agent");
    }
}

#[test]
fn another_agents_claim_is_released_by_force_and_with_a_reason() {
    for test in TestEngine::all() {
        let id = test.by("ada", "agent_claim", claim("a.rs"))["claim_id"].clone();
        let error = test.refused("bob", "agent_release", json!({"claim_id": id}));
        assert!(error.code == ErrorCode::NotHolder && error.message.contains("ada"), "{error}");
        assert_eq!(
            test.refused("bob", "agent_release", json!({"claim_id": id, "force": true})).code,
            ErrorCode::NoReason
        );
        let request = json!({"claim_id": "a.rs", "force": true, "reason": "her machine is gone"});
        let out = test.by("bob", "agent_release", request);
        assert_eq!((&out["status"], &out["agent_id"]), (&json!("released"), &json!("ada")));
        let kept = test.ok("get", json!({"ref": id}))["thing"].clone();
        let properties = &kept["properties"];
        assert_eq!((&kept["status"], &properties["invalidation_reason"]), (&json!("ended"), &json!("released")));
        assert_eq!((&properties["ended_by"], &properties["forced"]), (&json!("bob"), &json!(true)));
        assert_eq!(properties["release_reason"], "her machine is gone");
        assert!(properties["ended_at"].is_string());
        assert_eq!(test.refused("bob", "agent_release", json!({"claim_id": "a.rs"})).code, ErrorCode::NoClaim);
        assert_eq!(
            test.refused("bob", "agent_release", json!({"claim_id": "claim:nothing"})).code,
            ErrorCode::InvalidTarget
        );
    }
}

#[test]
fn writes_of_others_about_a_claimed_target_get_a_warning_or_are_refused() {
    for test in TestEngine::all() {
        test.ok("put", json!({"type": "Task", "key": "task:1", "title": "One"}));
        test.by("ada", "agent_claim", claim("task:1"));
        test.by("ada", "agent_claim", claim("a.py::A"));
        let patch = json!({"ref": "Task:task:1", "status": "pending"});
        assert!(test.by("ada", "patch", patch.clone())["warnings"].is_null(), "her own");
        let patch = json!({"ref": "Task:task:1", "status": "done"});
        let answer = test.by("bob", "patch", patch);
        assert!(answer["warnings"][0].as_str().unwrap().contains("claimed by ada"), "{answer}");
        let strict = test.another(ClaimRules { edits: EditPolicy::Refuse, ..ClaimRules::default() });
        let by = |agent: &str, name: &str, request: Value| ask(&strict, &test, (agent, None), name, request);
        for (name, request) in [
            ("patch", json!({"ref": "Task:task:1", "status": "open"})),
            ("delete", json!({"ref": "task:1"})),
            ("put", json!({"type": "Method", "key": "a.py::A::run"})),
            ("batch", json!({"writes": [{"object": {"type": "File", "key": "a.py"}}]})),
        ] {
            let error = by("bob", name, request.clone()).unwrap_err();
            assert_eq!(error.code, ErrorCode::Claimed, "{name}: {error:?}");
            assert_eq!(
                (&error.details["agent_id"], &error.details["intent"]),
                (&json!("ada"), &json!("mend the retry"))
            );
            assert!(error.details["since"].is_string());
            assert!(by("ada", name, request).is_ok(), "{name}: her own");
        }
        assert!(by("bob", "put", json!({"type": "File", "key": "b.py"})).is_ok());
        let edit = json!({"type": "EDIT", "content": "tidied up", "metadata": {"file": "a.py", "diff_summary": "shorter",
            "lines_before": 9, "lines_after": 5, "reason": "too long"}});
        let answer = test.by("bob", "episode_add", edit.clone());
        assert!(answer["warnings"].to_string().contains("claimed in part"), "{answer}");
        assert_eq!(by("bob", "episode_add", edit.clone()).unwrap_err().code, ErrorCode::Claimed);
        assert!(by("ada", "episode_add", edit).is_ok());
        let unclaimed = |target: &str| json!({"writes": [{"object": {"type": "Note", "key": target}}], "preconditions": [{"unclaimed": {"ref": target}}]});
        assert_eq!(
            test.refused("bob", "batch", unclaimed("a.py")).code,
            ErrorCode::Claimed,
            "asked for, whatever the rules"
        );
        test.by("ada", "batch", unclaimed("a.py"));
        test.by("bob", "batch", unclaimed("b.py"));
    }
}

/// A repository of two files, indexed.
#[test]
fn impact_lists_claims_on_the_code_it_reaches() {
    for test in TestEngine::all() {
        test.ok(
            "batch",
            json!({"writes": [
                {"object": {"type": "File", "key": "a.py"}}, {"object": {"type": "File", "key": "b.py"}},
                {"object": {"type": "Function", "key": "a.py::f"}}, {"object": {"type": "Function", "key": "a.py::h"}},
                {"object": {"type": "Function", "key": "b.py::g"}}, {"object": {"type": "File", "key": "c.py"}},
                {"relationship": {"type": "CALLS", "src": "b.py::g", "dst": "a.py::f"}},
                {"relationship": {"type": "CONTAINS", "src": "File:a.py", "dst": "a.py::f"}},
                {"relationship": {"type": "CONTAINS", "src": "File:a.py", "dst": "a.py::h"}},
                {"relationship": {"type": "CONTAINS", "src": "File:b.py", "dst": "b.py::g"}}
            ]}),
        );
        for (agent, target) in [("ada", "a.py::h"), ("bob", "b.py"), ("eve", "c.py")] {
            test.by(agent, "agent_claim", claim(target));
        }
        let who = |reference: &str| -> Vec<String> {
            let out = test.ok("impact", json!({"ref": reference}));
            let claims = out["claims"].as_array().cloned().unwrap_or_default();
            claims.iter().map(|claim| claim["agent_id"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(who("a.py::f"), ["bob"], "the agent that works on its caller");
        assert_eq!(who("File:a.py"), ["ada", "bob"], "and on what is in it");
    }
}

#[test]
fn another_agents_merge_gets_a_warning_or_is_refused_and_ends_claims() {
    for test in TestEngine::all() {
        let put = |branch: &str, hash: &str| {
            json!({"branch": branch, "writes": [
                {"object": {"type": "File", "key": "src/auth.ts", "properties": {"content_hash": hash}}},
                {"object": {"type": "Function", "key": "src/auth.ts::login", "properties": {"hash": hash}}},
                {"object": {"type": "File", "key": "src/mail.ts", "properties": {"content_hash": hash}}}
            ]})
        };
        test.ok("batch", put("main", "1"));
        test.ok("branch_create", json!({"name": "feature"}));
        test.ok("batch", put("feature", "2"));
        test.by("ada", "agent_claim", claim("src/auth.ts"));
        test.by("bob", "agent_claim", claim("src/mail.ts"));
        let strict = test.another(ClaimRules { edits: EditPolicy::Refuse, ..ClaimRules::default() });
        let merge = json!({"source": "feature"});
        let refused = ask(&strict, &test, ("bob", None), "merge", merge.clone()).unwrap_err();
        assert!(refused.code == ErrorCode::Claimed && refused.message.contains("ada"), "{refused:?}");
        let tried = test.by("bob", "merge", json!({"source": "feature", "dry_run": true}));
        assert!(tried["warnings"][0].as_str().unwrap().contains("claimed by ada"), "{tried}");
        assert_eq!(tried["warnings"].as_array().unwrap().len(), 1, "each claim once");
        let holders = || -> Vec<String> {
            let all = test.ok("coordination_overview", json!({}));
            all["active_claims"].as_array().unwrap().iter().map(|c| c["agent_id"].as_str().unwrap().into()).collect()
        };
        assert_eq!(holders(), ["ada", "bob"], "nothing has changed yet");
        let done = test.by("bob", "merge", merge.clone());
        let warnings = done["warnings"].to_string();
        assert!(warnings.contains("claimed by ada") && warnings.contains("this ended the claim of ada"), "{done}");
        assert_eq!(holders(), ["bob"], "one's own merge leaves one's own claims alone");
        assert!(test.by("bob", "merge", merge)["warnings"].is_null());
    }
}

fn repository(test: &TestEngine) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n");
    write(&folder, "b.py", "def h():\n    return 3\n");
    test.ok("index_directory", json!({"path": folder.path()}));
    folder
}

fn write(folder: &tempfile::TempDir, name: &str, text: &str) {
    std::fs::write(folder.path().join(name), text).unwrap();
}

#[test]
fn another_agents_change_ends_a_claim_and_the_holders_own_does_not() {
    for test in TestEngine::all() {
        let folder = repository(&test);
        let here = |target: &str| json!({"target_id": target, "intent": "tidy up", "path": folder.path()});
        let f = test.by("ada", "agent_claim", here("a.py::f"));
        assert_eq!(f["target_version_sha"].as_str().unwrap().len(), 16, "the hash of its text");
        let b = test.by("ada", "agent_claim", here(&folder.path().join("b.py").display().to_string()));
        assert_eq!((&b["target_id"], b["target_version_sha"].as_str().unwrap().len()), (&json!("b.py"), 40));
        let g = test.by("ada", "agent_claim", here("g"));
        assert_eq!(g["target_id"], "a.py::g", "a name that only it has");
        let held = |test: &TestEngine| {
            let all = test.by("ada", "agent_status", json!({}))["active_claims"].as_array().unwrap().clone();
            all.iter().map(|claim| claim["target_id"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
        };
        let all = BTreeSet::from(["a.py::f".to_owned(), "a.py::g".to_owned(), "b.py".to_owned()]);
        // Saved in her working tree, detected by the watcher or by a pack that another agent requests.
        write(&folder, "b.py", "def h():\n    return 4\n");
        test.ok("index_directory", json!({"path": folder.path()}));
        write(&folder, "b.py", "def h():\n    return 5\n");
        test.by("bob", "context_pack", json!({"task": "what does h return", "path": folder.path()}));
        assert_eq!(held(&test), all);
        let stale = test.by("bob", "coordination_overview", json!({}))["stale_claims"].clone();
        assert_eq!((stale.as_array().unwrap().len(), &stale[0]["target_id"]), (1, &json!("b.py")));
        // Another agent changes one function of the file.
        write(&folder, "a.py", "# moved\ndef f():\n    return 10\n\n\ndef g():\n    return 2\n");
        let report = test.by("bob", "index_directory", json!({"path": folder.path()}));
        assert_eq!(report["claims_ended"][0]["claim_id"], f["claim_id"], "{report}");
        assert_eq!(held(&test), BTreeSet::from(["a.py::g".to_owned(), "b.py".to_owned()]));
        let kept = test.ok("get", json!({"ref": f["claim_id"]}))["thing"].clone();
        assert_eq!(
            (&kept["properties"]["invalidation_reason"], &kept["properties"]["ended_by"]),
            (&json!("code_changed"), &json!("bob"))
        );
        // The same by a batch that records an edit.
        let edit =
            json!({"kind": "agent_edit", "writes": [{"object": {"type": "File", "key": "b.py", "title": "edited"}}]});
        let answer = test.by("bob", "batch", edit);
        assert!(
            answer["warnings"]
                .as_array()
                .unwrap()
                .iter()
                .any(|w| w.as_str().unwrap().contains("ended the claim of ada")),
            "{answer}"
        );
        assert_eq!(held(&test), BTreeSet::from(["a.py::g".to_owned()]));
    }
}

#[test]
fn a_save_in_another_working_tree_is_another_agents() {
    for test in TestEngine::all() {
        let folder = repository(&test);
        let elsewhere = tempfile::tempdir().unwrap();
        let request = json!({"target_id": "a.py", "intent": "tidy up", "path": elsewhere.path()});
        let id = test.by("ada", "agent_claim", request)["claim_id"].clone();
        write(&folder, "a.py", "def f():\n    return 7\n");
        test.ok("index_directory", json!({"path": folder.path()}));
        let kept = test.ok("get", json!({"ref": id}))["thing"].clone();
        assert_eq!(kept["properties"]["invalidation_reason"], "code_changed", "{kept}");
    }
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn programs_of_one_name_are_distinguished_by_their_connections() {
    for test in TestEngine::all() {
        let engine = &test.engine;
        let presence = engine.coordination().presence();
        presence.own(set(&["c1", "c2"]));
        let by = |connection, target: &str| {
            ask(engine, &test, ("cli", Some(connection)), "agent_claim", claim(target)).unwrap()
        };
        assert_eq!(by("c1", "a.rs")["status"], "ok");
        assert_eq!(by("c1", "a.rs")["already_yours"], true);
        for target in ["a.rs", "a.rs::f"] {
            let second = by("c2", target);
            assert_eq!(
                (&second["status"], &second["conflict"]["agent_id"]),
                (&json!("CONFLICT"), &json!("cli")),
                "{target}"
            );
        }
        // A connection to another server, which refreshes its mark.
        let other = test.another(ClaimRules::default());
        other.coordination().presence().own(set(&["c9"]));
        ask(&other, &test, ("cli", Some("c9")), "agent_claim", claim("b.rs")).unwrap();
        other.sweep_claims(SECOND);
        assert_eq!(by("c2", "b.rs")["status"], "CONFLICT");
        // After a restart, the process has the same connections.
        presence.own(set(&["c3"]));
        assert_eq!(by("c3", "a.rs")["already_yours"], true);
        assert_eq!(engine.sweep_claims(100 * SECOND), 0);
        assert_eq!(engine.sweep_claims(200 * SECOND), 1, "what the other server did not vouch for again");
    }
}

#[test]
fn claims_end_when_their_connection_is_gone_for_the_grace_time() {
    for test in TestEngine::all() {
        let engine = &test.engine;
        let presence = engine.coordination().presence();
        presence.own(set(&["c1"]));
        let other: ConnectionSource = presence.source();
        presence.here(other, set(&["c2"]));
        let by = |who, target: &str| ask(engine, &test, who, "agent_claim", claim(target)).unwrap();
        by(("ada", Some("c1")), "a.rs");
        by(("bob", Some("c2")), "b.rs");
        by(("eve", None), "c.rs");
        let held =
            || engine.claims_held(&test.fixture.ledger).unwrap().into_iter().map(|c| c.target).collect::<Vec<_>>();
        assert_eq!(engine.sweep_claims(SECOND), 0);
        assert_eq!(engine.sweep_claims(100 * SECOND), 0, "as long as they are connected, nothing ends by time alone");
        presence.gone(other);
        assert_eq!(engine.sweep_claims(120 * SECOND), 0, "not at once");
        assert_eq!(engine.sweep_claims(159 * SECOND), 0);
        assert_eq!(engine.sweep_claims(160 * SECOND), 1);
        assert_eq!(held(), ["a.rs", "c.rs"]);
        // An agent that reconnects in time keeps its claims, whichever the connection.
        presence.own(set(&[]));
        assert_eq!(engine.sweep_claims(161 * SECOND), 0);
        presence.own(set(&["c3"]));
        ask(engine, &test, ("ada", Some("c3")), "agent_status", json!({})).unwrap();
        assert_eq!(engine.sweep_claims(400 * SECOND), 0);
        presence.own(set(&[]));
        assert_eq!(engine.sweep_claims(500 * SECOND), 1);
        assert_eq!(held(), ["c.rs"], "made without a connection, it ends by release only");
    }
}

#[test]
fn what_a_killed_server_left_is_ended_by_another_and_what_a_living_one_has_is_not() {
    for test in TestEngine::all() {
        let (dead, alive) = (test.another(ClaimRules::default()), test.another(ClaimRules::default()));
        dead.coordination().presence().own(set(&["d"]));
        alive.coordination().presence().own(set(&["l"]));
        ask(&dead, &test, ("ada", Some("d")), "agent_claim", claim("a.rs")).unwrap();
        ask(&alive, &test, ("bob", Some("l")), "agent_claim", claim("b.rs")).unwrap();
        let third = &test.engine;
        test.ok("list", json!({}));
        for second in 0..65 {
            test.fixture.clock.advance(1);
            alive.sweep_claims(second * SECOND);
            if second < 10 {
                dead.sweep_claims(second * SECOND);
            }
            let ended = third.sweep_claims(second * SECOND);
            assert_eq!(ended, 0, "after {second} s");
        }
        drop(dead);
        let mut ended = 0;
        for second in 65..80 {
            test.fixture.clock.advance(1);
            ended += alive.sweep_claims(second * SECOND) + third.sweep_claims(second * SECOND);
        }
        let held: Vec<String> =
            third.claims_held(&test.fixture.ledger).unwrap().into_iter().map(|claim| claim.target).collect();
        assert_eq!((ended, held), (1, vec!["b.rs".to_owned()]));
    }
}

#[test]
fn what_was_left_while_no_process_ran_is_free_after_the_grace_time() {
    for test in TestEngine::all() {
        let strict = || test.another(ClaimRules { edits: EditPolicy::Refuse, ..ClaimRules::default() });
        let begin = |connection: &str| {
            let engine = strict();
            engine.coordination().presence().own(set(&[connection]));
            engine
        };
        let held = |engine: &Engine| engine.claims_held(&test.fixture.ledger).unwrap().len();
        let by = |engine: &Engine, who, target: &str| ask(engine, &test, who, "agent_claim", claim(target)).unwrap();
        let seconds = |n: i64| test.fixture.clock.advance(n);
        // One was refreshed and then left; the other's process was killed before it could refresh it.
        for (target, vouched) in [("a.rs", true), ("b.rs", false)] {
            let first = begin("c1");
            assert_eq!(by(&first, ("ada", Some("c1")), target)["status"], "ok");
            if vouched {
                seconds(100);
                first.sweep_claims(100 * SECOND);
            }
            drop(first);
            seconds(59);
            let next = begin("c2");
            assert_eq!(by(&next, ("bob", Some("c2")), target)["status"], "CONFLICT", "{target}: not at once");
            assert_eq!((held(&next), next.sweep_claims(Duration::ZERO)), (1, 0));
            drop(next);
            seconds(51);
            let last = begin("c3");
            assert_eq!(held(&last), 0, "{target}: no agent holds it after 110 s");
            assert_eq!(by(&last, ("eve", Some("c3")), target)["status"], "ok", "{target}");
            assert_eq!(held(&last), 1);
            drop(last);
            seconds(110);
            let other = strict();
            ask(&other, &test, ("ann", None), "list", json!({})).unwrap();
            assert_eq!(other.sweep_claims(Duration::ZERO), 1, "{target}: a process that only looks ends it too");
        }
        // Edits are not refused because of agents that are gone.
        let first = begin("c4");
        by(&first, ("ada", Some("c4")), "d.rs");
        drop(first);
        let edit = json!({"type": "File", "key": "d.rs"});
        let next = begin("c5");
        assert_eq!(ask(&next, &test, ("bob", Some("c5")), "put", edit.clone()).unwrap_err().code, ErrorCode::Claimed);
        seconds(110);
        ask(&next, &test, ("bob", Some("c5")), "put", edit).unwrap();
    }
}

#[test]
fn all_changes_of_claims_are_reported_as_events() {
    for test in TestEngine::all() {
        test.by("ada", "agent_claim", claim("first.rs"));
        let from = test.ok("event_list", json!({}))["cursor"].clone();
        let other = test.another(ClaimRules::default());
        let id = ask(&other, &test, ("ada", None), "agent_claim", claim("a.rs")).unwrap()["claim_id"].clone();
        test.by("bob", "agent_claim", claim("a.rs::f"));
        test.by("ada", "agent_release", json!({"claim_id": id}));
        let answer = test.ok("event_list", json!({"after": from, "kinds": ["claim", "conflict"]}));
        let events: Vec<String> = answer["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| {
                let field = |name: &str| event[name].as_str().unwrap_or("-").to_owned();
                format!("{} {} {} {}", field("kind"), field("status"), field("agent"), field("target"))
            })
            .collect();
        let want = ["claim active ada a.rs", "claim ended ada a.rs", "conflict - bob a.rs::f"];
        assert_eq!(events, want, "also what another process did");
    }
}

/// Every state of every board, in the order of the log: at most one agent on each target at any time.
fn never_held_twice(ledger: &Ledger) -> usize {
    let view = ledger.view(&ViewSpec::default()).unwrap();
    let mut states = 0;
    for board in ledger.states_with_prefix(&view, Some(BOARD), "", VersionFields::Header).unwrap() {
        let (_, history) = ledger.history(&view, &lukasa_model::Reference::Id(board.thing.id), false).unwrap();
        for entry in history {
            let held = held_in(&entry.statement.parsed().unwrap()).unwrap();
            for (at, one) in held.iter().enumerate() {
                for other in &held[at + 1..] {
                    let related = one.at().relation(&other.at()).is_some();
                    assert!(!related || one.agent_id == other.agent_id, "{one:?} and {other:?}");
                }
            }
            states += 1;
        }
    }
    states
}

#[test]
fn no_interleaving_gives_one_target_to_two_agents() {
    const AGENTS: u64 = 8;
    const STEPS: u64 = 60;
    for test in TestEngine::all() {
        test.by("nobody", "agent_claim", claim("begin.rs"));
        // Two processes, from the store's point of view.
        let engines = [test.engine.clone(), test.another(ClaimRules::default())];
        let results: Vec<(u64, u64)> = std::thread::scope(|scope| {
            let agents: Vec<_> = (0..AGENTS)
                .map(|agent| {
                    let (engine, test) = (&engines[(agent % 2) as usize], &test);
                    scope.spawn(move || race(engine, test, agent, STEPS))
                })
                .collect();
            agents.into_iter().map(|agent| agent.join().unwrap()).collect()
        });
        let (won, lost) = results.iter().fold((0, 0), |(won, lost), (w, l)| (won + w, lost + l));
        assert!(won > 0 && lost > 0, "{won} won, {lost} lost on {}", test.fixture.name);
        assert!(never_held_twice(&test.fixture.ledger) > 0);
        let left: BTreeMap<String, usize> = test.engine.claims_held(&test.fixture.ledger).unwrap().into_iter().fold(
            BTreeMap::new(),
            |mut count, claim| {
                *count.entry(ClaimTarget { kind: claim.claim_type, name: claim.target }.board()).or_default() += 1;
                count
            },
        );
        assert_eq!(left, BTreeMap::from([("board:begin.rs".to_owned(), 1)]), "every agent released its claims");
    }
}

/// Claims and releases in an order of its own; returns how often it won and lost.
fn race(engine: &Engine, test: &TestEngine, agent: u64, steps: u64) -> (u64, u64) {
    let name = format!("agent-{agent}");
    let (mut won, mut lost, mut held) = (0, 0, Vec::new());
    let mut dice = agent.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    for _ in 0..steps {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        let target = match dice % 5 {
            0 => "a.rs".to_owned(),
            1 => "a.rs::A".to_owned(),
            2 => "a.rs::A::run".to_owned(),
            3 => "task:1".to_owned(),
            _ => "b.rs".to_owned(),
        };
        if dice.is_multiple_of(3)
            && let Some(id) = held.pop()
        {
            ask(engine, test, (&name, None), "agent_release", json!({"claim_id": id})).unwrap();
            continue;
        }
        let out = ask(engine, test, (&name, None), "agent_claim", claim(&target)).unwrap();
        if out["status"] == "ok" {
            won += 1;
            if !held.contains(&out["claim_id"]) {
                held.push(out["claim_id"].clone());
            }
        } else {
            lost += 1;
            assert!(out["conflict"]["agent_id"].is_string() && out["conflict"]["intent"] == "mend the retry", "{out}");
            assert_ne!(out["conflict"]["agent_id"], name);
        }
    }
    for id in held {
        ask(engine, test, (&name, None), "agent_release", json!({"claim_id": id})).unwrap();
    }
    (won, lost)
}
