//! Isolation of tenants and projects.

use super::*;
use lukasa_model::plan::Side;
use lukasa_model::{ErrorCode, FactNo, Tx, VersionId};
use lukasa_store::{Store, VersionFields};

pub fn ids_of_another_tenant_are_not_found(f: &Fixture) {
    let (a, b) = (f.project("a", "shop"), f.project("b", "shop"));
    let secret =
        write(&b, "main", vec![valued("secret", 42).into(), object("other").into(), edge("secret", "other").into()]);
    branch(&b, "hidden", "main", lukasa_model::BranchMode::Live);
    put(&b, "hidden", "secret", 43);
    let ids: Vec<_> = secret.written.iter().map(|w| w.id).collect();
    // Before the first write of A, and after it.
    assert_eq!(find(&a, &ViewSpec::default(), "secret").unwrap_err().code, ErrorCode::UnknownProject);
    put(&a, "main", "mine", 1);
    let never_made = find(&a, &ViewSpec::default(), "00000000-0000-5000-8000-000000000000").unwrap_err();
    for id in &ids {
        let error = find(&a, &ViewSpec::default(), &id.to_string()).unwrap_err();
        assert_eq!((error.code, error.kind), (never_made.code, never_made.kind));
        let words = |e: &Error| e.message.split('`').next().unwrap().to_string();
        assert_eq!(words(&error), words(&never_made), "the same error as for an id that never existed");
        assert_eq!(a.commit(&Batch::on("main").write(End::new(*id))).unwrap_err().code, ErrorCode::NotFound);
        let link = PutRelationship::new("CALLS", "mine", *id);
        assert_eq!(a.commit(&Batch::on("main").write(link)).unwrap_err().code, ErrorCode::DanglingEnd);
        let request = MergeRequest { source: "hidden".into(), keys: vec![(*id).into()], ..Default::default() };
        assert_eq!(a.merge(&request).unwrap_err().code, ErrorCode::UnknownBranch);
    }
    assert_eq!(a.view(&ViewSpec::on("hidden")).unwrap_err().code, ErrorCode::UnknownBranch);
    assert_eq!(a.view(&ViewSpec::default().as_of("tx:2")).unwrap_err().code, ErrorCode::UnknownTransaction);
    let view = a.view(&ViewSpec::default()).unwrap();
    assert_eq!(a.stream_view(&view, VersionFields::All).unwrap().count(), 1);
    assert_eq!(a.transactions(Tx(0), Tx(u64::MAX), 99).unwrap().len(), 1);
    // Rows cannot be read by number either.
    let mut rows = f.store.read(a.scope()).unwrap();
    assert_eq!(rows.facts(&ids).unwrap(), []);
    assert_eq!(rows.objects_keyed(&["secret".into()]).unwrap(), []);
    assert_eq!(rows.objects_like("secret", 9).unwrap(), []);
    assert_eq!(rows.facts_numbered(&[1, 2, 3, 4].map(FactNo)).unwrap().len(), 1);
    assert_eq!(rows.versions(&[2, 3, 4].map(FactNo), VersionFields::All).unwrap(), []);
    assert_eq!(rows.versions_in(FactNo(0)..FactNo(99), VersionFields::All).unwrap().len(), 1);
    assert_eq!(rows.versions_after(VersionId(0), 99).unwrap().len(), 1);
    assert_eq!(rows.relationships(&[(FactNo(1), Side::Src), (FactNo(2), Side::Dst)]).unwrap(), []);
    assert!(rows.declarations().unwrap().is_empty());
    drop(rows);
    // A fact with the same id in A is independent of the one in B.
    let own = PutObject {
        id: Some(uuid::Uuid::from_u128(7)),
        ..PutObject { type_name: "Note".into(), ..Default::default() }
    };
    write(&b, "main", vec![own.clone().property("x", 1).into()]);
    write(&a, "main", vec![own.property("x", 2).into()]);
    let id = uuid::Uuid::from_u128(7).to_string();
    assert_eq!((x(&a, "main", &id), x(&b, "main", &id)), (2.into(), 1.into()));
    for ledger in [&a, &b] {
        ledger.verify(&mut |_, _| {}).unwrap();
    }
}

pub fn same_names_in_two_tenants(f: &Fixture) {
    let ledgers = [f.project("a", "shop"), f.project("b", "shop"), f.project("a", "other")];
    for (i, ledger) in ledgers.iter().enumerate() {
        put(ledger, "main", "k", i as i64);
        let header = lukasa_model::transaction::Header { client_id: Some("one".into()), ..Default::default() };
        let batch = Batch { header, ..Batch::on("main") }.write(valued("client", i as i64));
        assert!(!ledger.commit(&batch).unwrap().repeated, "client ids are the project's own");
    }
    for (i, ledger) in ledgers.iter().enumerate() {
        assert_eq!(x(ledger, "main", "k"), i as i64);
        assert_eq!(ledger.head().unwrap().tx, Tx(2), "every project has its own log");
    }
}

pub fn projects_are_listed_per_tenant(f: &Fixture) {
    for (tenant, project) in [("a", "two"), ("a", "one"), ("b", "three")] {
        put(&f.project(tenant, project), "main", "k", 1);
    }
    let store: &dyn Store = &*f.store;
    assert_eq!(store.projects("a").unwrap(), ["one", "two"]);
    assert_eq!(store.projects("c").unwrap(), Vec::<String>::new());
    assert_eq!(store.projects("").unwrap(), Vec::<String>::new());
}
