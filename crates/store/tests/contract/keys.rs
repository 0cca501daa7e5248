//! Access keys: found by id, listed and revoked only by their tenant, and separate from facts.

use super::*;
use lukasa_model::ErrorCode;
use lukasa_model::json::Hash;
use lukasa_store::{AccessKey, AccessKeys};
use std::sync::Barrier;

fn at(hours: i64) -> Time {
    Time(lukasa_testkit::ManualClock::START.0 + hours * 3_600_000_000)
}

fn key(id: &str, tenant: &str, made: i64) -> AccessKey {
    AccessKey {
        id: id.into(),
        secret: Hash::of(id.as_bytes()),
        tenant: tenant.into(),
        project: None,
        user: "ada".into(),
        scopes: ["graph:read", "graph:search:*"].map(String::from).into(),
        agents: Default::default(),
        created_at: at(made),
        expires_at: None,
        revoked_at: None,
        last_used: None,
    }
}

fn ids(keys: &[AccessKey]) -> Vec<&str> {
    keys.iter().map(|key| key.id.as_str()).collect()
}

pub fn keys_are_found_by_id_and_listed_by_tenant(f: &Fixture) {
    // Keys can exist before the first project.
    let keys = f.store.access_keys();
    assert_eq!(keys.find("a1").unwrap(), None);
    assert_eq!(keys.find("").unwrap(), None);
    assert_eq!(keys.of_tenant("a").unwrap(), []);
    let agents = ["Claude Code", "team/*", "ä\"'"].map(String::from).into();
    let full = AccessKey { project: Some("shop".into()), expires_at: Some(at(9)), agents, ..key("a1", "a", 2) };
    let bare = AccessKey { scopes: Default::default(), ..key("a3", "a", 1) };
    for key in [&full, &key("b1", "b", 0), &key("a2", "a", 1), &bare] {
        keys.add(key).unwrap();
    }
    assert_eq!(keys.find("a1").unwrap(), Some(full.clone()));
    assert_eq!(keys.find("a3").unwrap(), Some(bare));
    assert_eq!(keys.find("b1").unwrap().unwrap().tenant, "b", "a key is found by its id in any tenant");
    assert_eq!((keys.find("A1").unwrap(), keys.find("a").unwrap()), (None, None), "only the exact id matches");
    assert_eq!(ids(&keys.of_tenant("a").unwrap()), ["a2", "a3", "a1"]);
    assert_eq!(ids(&keys.of_tenant("b").unwrap()), ["b1"]);
    assert_eq!(keys.of_tenant("").unwrap(), []);
    // An id is unique across tenants, and the existing key stays.
    for tenant in ["a", "b"] {
        let again = AccessKey { user: "eve".into(), ..key("a1", tenant, 5) };
        assert_eq!(keys.add(&again).unwrap_err().code, ErrorCode::KeyExists);
    }
    assert_eq!(keys.find("a1").unwrap(), Some(full));
}

pub fn a_key_is_revoked_once_and_by_its_tenant(f: &Fixture) {
    let keys = f.store.access_keys();
    keys.add(&key("a1", "a", 0)).unwrap();
    assert_eq!(keys.revoke("b", "a1", at(1)).unwrap(), None);
    assert_eq!(keys.revoke("a", "none", at(1)).unwrap(), None);
    assert_eq!(keys.find("a1").unwrap().unwrap().revoked_at, None);
    let revoked = AccessKey { revoked_at: Some(at(2)), ..key("a1", "a", 0) };
    assert_eq!(keys.revoke("a", "a1", at(2)).unwrap(), Some(revoked.clone()));
    assert_eq!(keys.revoke("a", "a1", at(3)).unwrap(), Some(revoked.clone()), "the first revocation counts");
    assert_eq!(keys.find("a1").unwrap(), Some(revoked.clone()));
    assert_eq!(keys.of_tenant("a").unwrap(), [revoked]);
    assert_eq!(keys.add(&key("a1", "a", 4)).unwrap_err().code, ErrorCode::KeyExists, "its id is not used again");
}

pub fn the_last_use_of_a_key_never_moves_back(f: &Fixture) {
    let keys = f.store.access_keys();
    keys.add(&key("a1", "a", 0)).unwrap();
    assert!(!keys.note_use("b", "a1", at(9)).unwrap(), "another tenant's");
    assert!(!keys.note_use("a", "none", at(9)).unwrap());
    let used = || keys.find("a1").unwrap().unwrap().last_used;
    for (noted, left) in [(2, 2), (1, 2), (2, 2), (5, 5)] {
        assert!(keys.note_use("a", "a1", at(noted)).unwrap());
        assert_eq!(used(), Some(at(left)));
    }
    keys.revoke("a", "a1", at(6)).unwrap();
    assert_eq!(used(), Some(at(5)));
}

pub fn recording_a_use_does_not_wait_for_writers(f: &Fixture) {
    let keys = f.store.access_keys();
    keys.add(&key("a1", "test", 0)).unwrap();
    put(&f.ledger, "main", "a", 1);
    let writer = f.store.write(f.ledger.scope()).unwrap();
    // The use may be recorded or not, but the call must not wait for the writer, which waits for this thread.
    let noted = keys.note_use("test", "a1", at(1)).unwrap();
    assert_eq!(keys.find("a1").unwrap().unwrap().last_used, noted.then(|| at(1)));
    drop(writer);
    assert!(keys.note_use("test", "a1", at(2)).unwrap());
    assert_eq!(keys.find("a1").unwrap().unwrap().last_used, Some(at(2)));
}

pub fn one_of_eight_concurrent_creations_of_a_key_succeeds(f: &Fixture) {
    let start = Barrier::new(8);
    let made = std::thread::scope(|threads| {
        let one = |number: usize| {
            let (start, keys) = (&start, f.store.access_keys());
            move || {
                start.wait();
                keys.add(&AccessKey { user: format!("user {number}"), ..key("a1", "a", 0) }).map(|()| number)
            }
        };
        let all: Vec<_> = (0..8).map(|number| threads.spawn(one(number))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let won: Vec<_> = made.iter().flatten().collect();
    assert_eq!(won.len(), 1, "{made:?}");
    assert!(made.iter().flat_map(|made| made.as_ref().err()).all(|e| e.code == ErrorCode::KeyExists), "{made:?}");
    assert_eq!(f.store.access_keys().find("a1").unwrap().unwrap().user, format!("user {}", won[0]));
}

pub fn keys_are_no_facts(f: &Fixture) {
    put(&f.ledger, "main", "a", 1);
    let before = f.ledger.head().unwrap();
    let keys: &dyn AccessKeys = f.store.access_keys();
    keys.add(&key("a1", "test", 0)).unwrap();
    keys.revoke("test", "a1", at(1)).unwrap();
    assert_eq!(f.ledger.head().unwrap(), before);
    verify(f);
    let mut dump = Vec::new();
    f.ledger.dump(&mut dump, &mut |_, _| {}).unwrap();
    assert!(!String::from_utf8(dump).unwrap().contains("graph:search"), "dumps contain no keys");
    assert_eq!(f.store.projects("test").unwrap(), ["shop"], "keys create no project");
}
