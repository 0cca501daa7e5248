//! The audit trail: one append-only chain per server and tenant, in which tampering is detectable.

use super::*;
use lukasa_model::ErrorCode;
use lukasa_model::json::Hash;
use lukasa_store::AuditTrail;
use lukasa_store::audit::{AuditEntry, AuditFilter, AuditFlaw, AuditHead, AuditNote, ChainReport, Seals, walk};
use std::collections::BTreeMap;

pub struct Key(&'static str);

impl Seals for Key {
    fn seal(&self, head: &AuditHead) -> Hash {
        Hash::of(format!("{} {} {} {} {}", self.0, head.tenant, head.server, head.number, head.hash).as_bytes())
    }

    fn key_id(&self) -> &str {
        &self.0[..1]
    }
}

const KEY: Key = Key("1 secret");

fn at(second: i64) -> Time {
    Time(lukasa_testkit::ManualClock::START.0 + second * 1_000_000)
}

fn note(tenant: &str, operation: &str, second: i64) -> AuditNote {
    AuditNote {
        tenant: tenant.into(),
        project: "shop".into(),
        at: at(second),
        user: Some("u1".into()),
        agent: None,
        operation: operation.into(),
        scopes: "graph:read graph:write".into(),
        request: "r1".into(),
        status: "ok".into(),
        counts: BTreeMap::from([("hits".to_string(), 3)]),
        truncated: second % 2 == 0,
        took_us: 1_234,
        request_id: Some(format!("id-{second}")),
        address: None,
    }
}

fn append(trail: &dyn AuditTrail, server: &str, notes: &[AuditNote]) {
    trail.append(server, notes, &KEY, false).unwrap();
}

fn walked(trail: &dyn AuditTrail, tenant: &str) -> Vec<ChainReport> {
    walk(trail, tenant, &KEY, &[], &mut |_| {}).unwrap().unwrap()
}

pub fn entries_form_a_chain_for_each_server_and_tenant(f: &Fixture) {
    let trail = f.store.audit();
    assert_eq!((trail.heads("a").unwrap(), trail.servers("a").unwrap()), (vec![], vec![]));
    assert_eq!(walked(trail, "a"), []);
    trail.append("s1", &[], &KEY, true).unwrap();
    append(trail, "s1", &[note("a", "get", 1), note("b", "put", 2), note("a", "search", 3)]);
    let bare = AuditNote {
        user: None,
        request_id: None,
        address: Some("2001:db8::1".into()),
        agent: Some("ä\"'\n".into()),
        counts: BTreeMap::new(),
        ..note("a", "put", 4)
    };
    trail.append("s1", std::slice::from_ref(&bare), &KEY, true).unwrap();
    append(trail, "s2", &[note("a", "list", 5)]);
    let chain = trail.chain("a", "s1", 0, 10).unwrap();
    let operations: Vec<_> = chain.iter().map(|e| (e.number, e.note.operation.as_str())).collect();
    assert_eq!(operations, [(1, "get"), (2, "search"), (3, "put")]);
    assert_eq!(chain[0].previous, AuditEntry::start("a", "s1"));
    assert!(chain.windows(2).all(|two| two[1].previous == two[0].hash));
    assert!(chain.iter().all(|entry| entry.hash == entry.digest()), "the stored hash matches the entry");
    assert_eq!((&chain[0].note, &chain[2].note), (&note("a", "get", 1), &bare));
    assert_eq!(trail.chain("a", "s1", 1, 1).unwrap(), chain[1..2]);
    assert_eq!(trail.chain("b", "s1", 0, 10).unwrap()[0].note.operation, "put");
    assert_eq!(trail.chain("a", "s3", 0, 10).unwrap(), []);
    assert_eq!(trail.servers("a").unwrap(), ["s1", "s2"]);
    let reports = walked(trail, "a");
    let summary: Vec<_> = reports.iter().map(|r| (r.server.as_str(), r.entries, r.sealed, r.last_at)).collect();
    assert_eq!(summary, [("s1", 3, true, Some(at(4))), ("s2", 1, true, Some(at(5)))]);
    assert_eq!(walked(trail, "b").len(), 1);
    assert_eq!(walked(trail, "c"), []);
}

pub fn entries_are_found_newest_first(f: &Fixture) {
    let trail = f.store.audit();
    let other = AuditNote {
        project: "other".into(),
        user: Some("u2".into()),
        status: "not_found".into(),
        ..note("a", "get", 7)
    };
    append(trail, "s1", &[note("a", "get", 1), note("a", "put", 2), note("b", "get", 3), other]);
    append(trail, "s2", &[note("a", "get", 2)]);
    let found = |find: AuditFilter| -> Vec<String> {
        let all = trail.find("a", &find, 10).unwrap();
        all.iter().map(|e| format!("{}{} {}", e.server, e.number, e.note.operation)).collect()
    };
    let any = AuditFilter::default();
    assert_eq!(found(any.clone()), ["s13 get", "s12 put", "s21 get", "s11 get"]);
    assert_eq!(found(AuditFilter { operation: Some("get".into()), ..any.clone() }), ["s13 get", "s21 get", "s11 get"]);
    assert_eq!(found(AuditFilter { project: Some("other".into()), ..any.clone() }), ["s13 get"]);
    assert_eq!(found(AuditFilter { user: Some("u1".into()), ..any.clone() }), ["s12 put", "s21 get", "s11 get"]);
    assert_eq!(found(AuditFilter { status: Some("not_found".into()), ..any.clone() }), ["s13 get"]);
    assert_eq!(found(AuditFilter { since: Some(at(2)), until: Some(at(7)), ..any.clone() }), ["s12 put", "s21 get"]);
    assert_eq!(trail.find("a", &any, 2).unwrap().len(), 2);
    assert_eq!(trail.find("c", &any, 2).unwrap(), []);
}

pub fn concurrent_appends_keep_every_entry_once(f: &Fixture) {
    let trail = f.store.audit();
    std::thread::scope(|threads| {
        for thread in 0..8 {
            threads.spawn(move || {
                for round in 0..10 {
                    let (a, b) = (note("a", &format!("{thread}-{round}"), 1), note("b", "get", 1));
                    // Two servers, each with four threads that append to the same chains in either order.
                    let notes = if round % 2 == 0 { [a, b] } else { [b, a] };
                    trail.append(&format!("s{}", thread % 2), &notes, &KEY, thread == 0).unwrap();
                }
            });
        }
    });
    for tenant in ["a", "b"] {
        let entries: Vec<_> = walked(trail, tenant).iter().map(|report| report.entries).collect();
        assert_eq!(entries, [40, 40], "{tenant}");
    }
    let kept = trail.find("a", &AuditFilter::default(), 1_000).unwrap();
    let names: std::collections::BTreeSet<_> = kept.iter().map(|entry| &entry.note.operation).collect();
    assert_eq!(names.len(), 80);
}

pub fn appending_does_not_wait_for_writers(f: &Fixture) {
    put(&f.ledger, "main", "a", 1);
    let writer = f.store.write(f.ledger.scope()).unwrap();
    append(f.store.audit(), "s1", &[note("test", "get", 1)]);
    assert_eq!(walked(f.store.audit(), "test")[0].entries, 1);
    drop(writer);
}

pub fn entries_noted_elsewhere_are_compared(f: &Fixture) {
    let trail = f.store.audit();
    append(trail, "s1", &[note("a", "get", 1), note("a", "get", 2)]);
    let second = trail.chain("a", "s1", 1, 1).unwrap()[0].hash;
    let check =
        |server: &str, number, hash| walk(trail, "a", &KEY, &[(server.into(), number, hash)], &mut |_| {}).unwrap();
    assert!(check("s1", 2, second).is_ok());
    for (server, number, hash) in [("s1", 1, second), ("s1", 3, second), ("s1", 0, second), ("s9", 1, second)] {
        let fault = check(server, number, hash).unwrap_err();
        assert_eq!((fault.server.as_str(), fault.number, fault.flaw), (server, number, AuditFlaw::NotAsNoted));
    }
}

pub fn a_seal_depends_on_its_key(f: &Fixture) {
    let trail = f.store.audit();
    append(trail, "s1", &[note("a", "get", 1)]);
    let by = |key: &Key| walk(trail, "a", key, &[], &mut |_| {}).unwrap();
    assert!(by(&KEY).unwrap()[0].sealed);
    assert_eq!(by(&Key("2 secret")).unwrap_err().flaw, AuditFlaw::UnknownSeal);
    assert_eq!(by(&Key("1 guess")).unwrap_err().flaw, AuditFlaw::WrongSeal);
}

pub fn a_chain_with_a_foreign_seal_is_not_sealed_again(f: &Fixture) {
    let trail = f.store.audit();
    append(trail, "s1", &[note("a", "get", 1)]);
    let before = trail.heads("a").unwrap();
    for key in [Key("2 secret"), Key("1 guess")] {
        // One chain that is sealed with another key prevents the whole group from being appended.
        let refused = trail.append("s1", &[note("a", "put", 2), note("b", "put", 2)], &key, true).unwrap_err();
        assert_eq!(refused.code, ErrorCode::ForeignSeal);
    }
    assert_eq!(trail.heads("a").unwrap(), before, "heads and seals are unchanged");
    assert_eq!(trail.servers("b").unwrap(), Vec::<String>::new());
    append(trail, "s1", &[note("a", "put", 2)]);
    assert_eq!(walked(trail, "a")[0].entries, 2);
}

pub fn audit_entries_are_no_facts(f: &Fixture) {
    put(&f.ledger, "main", "a", 1);
    let before = f.ledger.head().unwrap();
    append(f.store.audit(), "s1", &[note("test", "uncommon_operation", 1), note("unknown", "get", 1)]);
    assert_eq!(f.ledger.head().unwrap(), before);
    verify(f);
    let mut dump = Vec::new();
    f.ledger.dump(&mut dump, &mut |_, _| {}).unwrap();
    assert!(!String::from_utf8(dump).unwrap().contains("uncommon_operation"));
    assert_eq!(f.store.projects("unknown").unwrap(), Vec::<String>::new());
}
