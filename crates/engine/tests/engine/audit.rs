//! The audit record: every operation that ends is recorded, without contents, and nothing is lost.

use lukasa_engine::audit::{AuditKey, AuditedOperations};
use lukasa_engine::{Audit, Context, Engine, Grants, operations};
use lukasa_model::{Error, ErrorCode, Scope};
use lukasa_store::audit::{AuditEntry, AuditFilter};
use lukasa_store::{Clock, Store, SystemClock};
use lukasa_testkit::{FaultyStore, Fixture, fixtures};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn engine(store: Arc<dyn Store>, keeps: AuditedOperations) -> Engine {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let key = Arc::new(AuditKey::new(&[7; 32]).unwrap());
    let audit = Audit::new(Arc::clone(&store), Arc::clone(&clock), "s1", key, keeps);
    Engine::new(store, clock, std::env::temp_dir()).with_audit(audit)
}

fn ask(engine: &Engine, tenant: &str, grants: Grants, name: &str, request: Value) -> Result<Value, Error> {
    let mut progress = |_, _| {};
    let scope = Scope::new(tenant, "shop").unwrap();
    let mut context = Context {
        author: Some("ada lovelace".into()),
        agent: Some("robot\n".into()),
        grants,
        request_id: Some(format!("of-{name}")),
        ..Context::of(scope, &mut progress)
    };
    engine.call(&mut context, name, request)
}

fn put(engine: &Engine, key: &str) -> Result<Value, Error> {
    ask(engine, "a", Grants::All, "put", json!({"type": "Service", "key": key}))
}

fn recorded(engine: &Engine) -> Vec<AuditEntry> {
    engine.audit().unwrap().flush().unwrap();
    let mut all = engine.store().audit().find("a", &AuditFilter::default(), 10_000).unwrap();
    all.sort_by_key(|entry| entry.number);
    all
}

#[test]
fn operations_are_recorded_with_their_outcome_and_without_contents() {
    for Fixture { store, name, .. } in &fixtures() {
        let engine = engine(Arc::clone(store), AuditedOperations::All);
        put(&engine, "secret-name").unwrap();
        let found = ask(&engine, "a", Grants::All, "list", json!({"type": "Service", "limit": 1}));
        assert_eq!(found.unwrap()["objects"].as_array().unwrap().len(), 1);
        let of = |scope: &str| Grants::of([scope]);
        assert_eq!(ask(&engine, "a", of("graph:read"), "put", json!({})).unwrap_err().code, ErrorCode::MissingScope);
        assert_eq!(
            ask(&engine, "a", of("graph:read"), "get", json!({"ref": "none"})).unwrap_err().code,
            ErrorCode::NotFound
        );
        assert_eq!(
            ask(&engine, "a", Grants::All, "get", json!({"nosuch": 1})).unwrap_err().code,
            ErrorCode::UnknownField
        );
        // A name with a character that some stores cannot keep.
        let mut progress = |_, _| {};
        let scope = Scope::new("b", "shop").unwrap();
        let mut context = Context { agent: Some("x\0y".into()), ..Context::of(scope, &mut progress) };
        assert_eq!(engine.call(&mut context, "projects", json!({})).unwrap_err().code, ErrorCode::NulByte);
        let all = recorded(&engine);
        let seen: Vec<_> = all.iter().map(|e| (e.note.operation.as_str(), e.note.status.as_str())).collect();
        let want =
            [("put", "ok"), ("list", "ok"), ("put", "missing_scope"), ("get", "not_found"), ("get", "unknown_field")];
        assert_eq!(seen, want, "{name}");
        assert_eq!((all[1].note.counts["objects"], all[2].note.scopes.as_str()), (1, "graph:read"));
        assert_eq!((all[0].note.scopes.as_str(), all[0].note.agent.as_deref()), ("*", Some("robot ")));
        assert_eq!(all[3].note.request_id.as_deref(), Some("of-get"));
        assert!(
            all.iter()
                .all(|entry| entry.note.user == all[0].note.user && entry.note.user.as_ref().unwrap().len() == 32)
        );
        let text = serde_json::to_string(&all).unwrap();
        for content in ["secret-name", "lovelace", "none", "nosuch"] {
            assert!(!text.contains(content), "{content} in {text}");
        }
        assert_ne!(all[3].note.request, all[4].note.request, "other requests, other hashes");
        let verified = ask(&engine, "a", Grants::All, "audit_verify", json!({})).unwrap();
        assert_eq!((verified["entries"].as_u64(), &verified["chains"][0]["sealed"]), (Some(5), &json!(true)), "{name}");
        let noted = verified["chains"][0]["head"].clone();
        let again = ask(&engine, "a", Grants::All, "audit_verify", json!({"noted": [noted]})).unwrap();
        assert_eq!(again["entries"], 6, "the check itself is recorded when it has ended");
        let wrong = json!({"noted": [noted.as_str().unwrap().replace("@5", "@4")]});
        assert_eq!(ask(&engine, "a", Grants::All, "audit_verify", wrong).unwrap_err().code, ErrorCode::AuditBroken);
    }
}

#[test]
fn a_chain_sealed_with_an_unknown_key_fails_verification_and_is_not_sealed_again() {
    let verify = |engine: &Engine| ask(engine, "a", Grants::All, "audit_verify", json!({}));
    let key = |byte: u8| AuditKey::new(&[byte; 32]).unwrap();
    for Fixture { store, name, .. } in &fixtures() {
        let with = |key: AuditKey| {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            let audit = Audit::new(Arc::clone(store), Arc::clone(&clock), "s1", Arc::new(key), AuditedOperations::All);
            Engine::new(Arc::clone(store), clock, std::env::temp_dir()).with_audit(audit)
        };
        let first = with(key(7));
        put(&first, "x").unwrap();
        verify(&first).unwrap();
        drop(first);
        // The key was replaced: neither verifying nor further operations repair that.
        let replaced = with(key(8));
        for _ in 0..2 {
            let error = verify(&replaced).unwrap_err();
            assert_eq!(
                (error.code, &error.details["flaw"]),
                (ErrorCode::AuditBroken, &json!("unknown_seal")),
                "{name}"
            );
            assert!(error.hint.unwrap().contains("LUKASA_AUDIT_KNOWN_KEY_FILES"));
            put(&replaced, "y").unwrap();
        }
        drop(replaced);
        let changed = with(key(8).knowing([key(7)]));
        let verified = verify(&changed).unwrap();
        let seen: Vec<_> =
            verified["chains"].as_array().unwrap().iter().map(|chain| chain["entries"].as_u64()).collect();
        assert_eq!(seen, [Some(2), Some(4)], "what was recorded meanwhile is in a chain of its own: {verified}");
        put(&changed, "z").unwrap();
        drop(changed);
        assert_eq!(
            verify(&with(key(7))).unwrap_err().code,
            ErrorCode::AuditBroken,
            "the old chain goes on under the new key"
        );
    }
}

#[test]
fn the_record_is_listed_and_exported_by_callers_with_the_scope() {
    let fixture = Fixture::sqlite();
    let engine = engine(Arc::clone(&fixture.store), AuditedOperations::All);
    put(&engine, "x").unwrap();
    let _ = ask(&engine, "a", Grants::All, "get", json!({"ref": "none"}));
    let list = |grants: Grants, request: Value| ask(&engine, "a", grants, "audit_list", request);
    let own = Grants::of(["graph:admin:audit"]);
    let by_user = list(own.clone(), json!({"user": "ada lovelace", "status": "not_found"})).unwrap();
    assert_eq!((by_user["entries"].as_array().unwrap().len(), &by_user["entries"][0]["operation"]), (1, &json!("get")));
    let hash = by_user["entries"][0]["user"].clone();
    assert_eq!(list(own.clone(), json!({"user": hash, "operation": "put"})).unwrap()["entries"][0]["status"], "ok");
    assert_eq!(list(own.clone(), json!({"user": "eve"})).unwrap()["entries"], json!([]));
    assert_eq!(list(own.clone(), json!({"limit": 1})).unwrap()["truncated"], true);
    assert_eq!(list(Grants::of(["graph:read"]), json!({})).unwrap_err().code, ErrorCode::MissingScope);
    assert_eq!(list(own, json!({"all_projects": true})).unwrap_err().code, ErrorCode::MissingScope);
    assert!(list(Grants::of(["graph:admin:*"]), json!({"all_projects": true})).is_ok());
    let (mut lines, mut progress) = (Vec::new(), |_: u64, _: Option<u64>| {});
    let mut context =
        Context { output: Some(&mut lines), ..Context::of(Scope::new("a", "shop").unwrap(), &mut progress) };
    let seen = engine.call(&mut context, "audit_export", json!({"operation": "put"})).unwrap();
    let entries: Vec<AuditEntry> =
        String::from_utf8(lines).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((seen["entries"].as_u64(), entries.len()), (Some(1), 1));
    assert_eq!(entries[0].hash, entries[0].digest(), "the hash can be verified from the entry alone");
}

#[test]
fn only_writes_or_nothing_is_recorded_if_configured() {
    for (keeps, want) in [(AuditedOperations::Writes, vec!["put"]), (AuditedOperations::Nothing, vec![])] {
        let engine = engine(Arc::clone(&Fixture::memory().store), keeps);
        put(&engine, "x").unwrap();
        ask(&engine, "a", Grants::All, "list", json!({})).unwrap();
        let seen: Vec<_> = recorded(&engine).into_iter().map(|entry| entry.note.operation).collect();
        assert_eq!(seen, want);
    }
}

#[test]
fn many_at_once_are_each_recorded_once() {
    for fixture in [Fixture::memory(), Fixture::sqlite()] {
        let engine = engine(Arc::clone(&fixture.store), AuditedOperations::All);
        put(&engine, "x").unwrap();
        std::thread::scope(|threads| {
            for thread in 0..16 {
                let engine = &engine;
                threads.spawn(move || {
                    for round in 0..25 {
                        match (thread + round) % 5 {
                            0 => drop(put(engine, &format!("{thread}-{round}")).unwrap()),
                            _ => drop(ask(engine, "a", Grants::All, "get", json!({"ref": "Service:x"})).unwrap()),
                        }
                    }
                });
            }
        });
        let all = recorded(&engine);
        assert_eq!(all.len(), 1 + 16 * 25, "{}", fixture.name);
        assert_eq!(all.iter().filter(|entry| entry.note.operation == "put").count(), 1 + 80);
        assert!(ask(&engine, "a", Grants::All, "audit_verify", json!({})).is_ok());
    }
}

#[test]
fn waiting_entries_are_recorded_when_the_process_ends() {
    let fixture = Fixture::sqlite();
    let own = engine(Arc::clone(&fixture.store), AuditedOperations::All);
    put(&own, "x").unwrap();
    for _ in 0..50 {
        ask(&own, "a", Grants::All, "get", json!({"ref": "x"})).unwrap();
    }
    drop(own);
    assert_eq!(fixture.store.audit().find("a", &AuditFilter::default(), 100).unwrap().len(), 51);
}

#[test]
fn while_nothing_can_be_recorded_nothing_is_written_and_nothing_is_lost() {
    let store = Arc::new(FaultyStore::new(Arc::clone(&Fixture::memory().store)));
    let engine = engine(Arc::clone(&store) as Arc<dyn Store>, AuditedOperations::All);
    put(&engine, "x").unwrap();
    store.deaf.store(true, Ordering::SeqCst);
    // The first write is committed before the failure is known; from then on writes are refused, reads are not.
    put(&engine, "y").unwrap();
    let fault = engine.audit().unwrap().state().fault.unwrap();
    assert_eq!(fault.code, ErrorCode::DiskFull);
    assert_eq!(put(&engine, "z").unwrap_err().code, ErrorCode::AuditUnavailable);
    ask(&engine, "a", Grants::All, "get", json!({"ref": "y"})).unwrap();
    assert_eq!(engine.audit().unwrap().state().waiting, 2);
    store.deaf.store(false, Ordering::SeqCst);
    let patience = std::time::Instant::now();
    while engine.audit().unwrap().state().fault.is_some() {
        assert!(patience.elapsed().as_secs() < 60, "recording never goes on");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    put(&engine, "z").unwrap();
    let seen: Vec<_> = recorded(&engine).into_iter().map(|entry| entry.note.operation).collect();
    assert_eq!(seen, ["put", "put", "get", "put"]);
}

#[test]
fn every_operation_is_recorded() {
    let engine = engine(Arc::clone(&Fixture::memory().store), AuditedOperations::All);
    for operation in operations() {
        // The caller has no scopes, so the requests need not be valid.
        let refused = ask(&engine, "a", Grants::of(["nothing"]), operation.meta.name, json!({})).unwrap_err();
        assert_eq!(refused.code, ErrorCode::MissingScope, "{}", operation.meta.name);
    }
    let seen: Vec<_> = recorded(&engine).into_iter().map(|entry| entry.note.operation).collect();
    let want: Vec<_> = operations().iter().map(|operation| operation.meta.name.to_string()).collect();
    assert_eq!(seen, want);
}
