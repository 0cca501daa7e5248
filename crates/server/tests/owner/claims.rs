//! Claims end with the connection they were made over, whichever process owns the engine.

use super::{NEVER, Site, caller};
use lukasa_engine::registry;
use lukasa_server::{Caller, Connection, EngineHandle, EngineRole};
use serde_json::{Value, json};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

async fn claim(desk: &EngineHandle, connection: &Connection, agent: &str, target: &str) -> Value {
    let caller = Caller { agent: Some(agent.into()), connection: Some(connection.id().into()), ..caller() };
    let request = json!({"target_id": target, "intent": "mend it", "new": true});
    desk.call(&caller, registry::find("agent_claim").unwrap(), request, None).await.unwrap().value().unwrap()
}

async fn held(desk: &EngineHandle) -> Vec<String> {
    let overview = registry::find("coordination_overview").unwrap();
    let out = desk.call(&caller(), overview, json!({}), None).await.unwrap().value().unwrap();
    out["active_claims"].as_array().unwrap().iter().map(|c| c["target_id"].as_str().unwrap().to_owned()).collect()
}

/// Waits until the condition holds; messages over a socket take a moment.
async fn until(mut so: impl FnMut() -> bool) {
    let waiting = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(NEVER, waiting).await.unwrap();
}

async fn role(desk: &EngineHandle, wanted: fn(EngineRole) -> bool) {
    let mut role = desk.role();
    while !wanted(role) {
        role = tokio::time::timeout(NEVER, desk.role_after(role)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_outlives_the_owner_of_the_engine_but_not_its_connection() {
    let site = Site::new();
    let owner = site.desk();
    role(&owner, |role| role == EngineRole::Owner).await;
    let (first, second) = (site.desk(), site.desk());
    for desk in [&first, &second] {
        role(desk, |role| matches!(role, EngineRole::Attached { .. })).await;
    }
    let (c0, c1, c2, idle) = (owner.connect(), first.connect(), second.connect(), second.connect());
    assert_eq!(claim(&owner, &c0, "ada", "a.rs").await["status"], "ok");
    assert_eq!(claim(&first, &c1, "bob", "b.rs").await["status"], "ok");
    assert_eq!(claim(&second, &c2, "eve", "c.rs").await["status"], "ok");
    assert_eq!(claim(&second, &idle, "ian", "d.rs").await["status"], "ok");
    let lost = claim(&second, &c2, "eve", "b.rs::f").await;
    assert_eq!((&lost["status"], &lost["conflict"]["agent_id"]), (&json!("CONFLICT"), &json!("bob")));
    let engine = owner.engine().unwrap();
    let here = |engine: &lukasa_engine::Engine, connection: &str| engine.coordination().presence().is_open(connection);
    assert!([&c0, &c1, &c2, &idle].iter().all(|connection| here(&engine, connection.id())));
    for seconds in [0, 100, 200] {
        let engine = engine.clone();
        assert_eq!(tokio::task::spawn_blocking(move || engine.sweep_claims(seconds * SECOND)).await.unwrap(), 0);
    }
    // An attached process ends; only its claims end.
    let gone = c1.id().to_owned();
    drop((c1, first));
    until(|| !here(&engine, &gone)).await;
    let sweep = engine.clone();
    let ended =
        tokio::task::spawn_blocking(move || (sweep.sweep_claims(210 * SECOND), sweep.sweep_claims(271 * SECOND)));
    assert_eq!(ended.await.unwrap(), (0, 1));
    assert_eq!(held(&second).await, ["a.rs", "c.rs", "d.rs"]);
    // The owner ends and an attached process takes over: its clients still count as connected, even an idle one.
    drop((engine, c0, owner));
    role(&second, |role| role == EngineRole::Owner).await;
    assert_eq!(held(&second).await.len(), 3);
    let engine = second.engine().unwrap();
    until(|| here(&engine, idle.id())).await;
    let sweep = engine.clone();
    let ended = tokio::task::spawn_blocking(move || (sweep.sweep_claims(SECOND), sweep.sweep_claims(62 * SECOND)));
    assert_eq!(ended.await.unwrap(), (0, 1), "what the last owner held has the whole time too");
    assert_eq!(held(&second).await, ["c.rs", "d.rs"]);
}
