//! Declared types: schemas, ends, multiplicity, strictness.

use super::*;
use lukasa_model::transaction::Header;
use lukasa_model::types::{Settings, TypePack};
use lukasa_model::{BranchMode, ErrorCode, ObjectType, RelationshipType};
use serde_json::json;

fn declare(l: &Ledger, value: Value) {
    let declared: ObjectType = serde_json::from_value(value).unwrap();
    l.declare_object_type(&declared, &Header::default()).unwrap_or_else(|e| panic!("{e:?}"));
}

fn relate(l: &Ledger, value: Value) {
    let declared: RelationshipType = serde_json::from_value(value).unwrap();
    l.declare_relationship_type(&declared, &Header::default()).unwrap_or_else(|e| panic!("{e:?}"));
}

fn refused(l: &Ledger, branch: &str, writes: Vec<Write>) -> Error {
    let before = l.head().unwrap();
    let error = l.commit(&Batch { writes, ..Batch::on(branch) }).unwrap_err();
    assert_eq!(l.head().unwrap(), before, "nothing was written");
    error
}

pub fn schemas_are_enforced(f: &Fixture) {
    let l = &f.ledger;
    declare(
        l,
        json!({"name": "Service", "schema": {
            "type": "object", "required": ["owner"],
            "properties": {"owner": {"type": "string"}, "port": {"type": "integer"}},
        }}),
    );
    let error = refused(
        l,
        "main",
        vec![object("fine").property("owner", "ann").into(), object("bad").property("port", "x").into()],
    );
    assert_eq!((error.kind.http_status(), error.code), (422, ErrorCode::SchemaViolation));
    assert_eq!(error.details["write"], 1);
    let mut paths: Vec<_> =
        error.details["fields"].as_array().unwrap().iter().map(|f| f["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["/properties", "/properties/port"]);
    assert_eq!(x(l, "main", "fine"), Value::Null);
    write(l, "main", vec![object("fine").property("owner", "ann").into()]);
    let broken = ObjectType { name: "X".into(), schema: json!({"type": 5}), ..Default::default() };
    assert_eq!(l.declare_object_type(&broken, &Header::default()).unwrap_err().code, ErrorCode::InvalidSchema);
}

pub fn strict_and_permissive(f: &Fixture) {
    let l = &f.ledger;
    let done = write(l, "main", vec![object("a").into(), object("b").into(), edge("a", "b").into()]);
    assert_eq!(done.warnings, ["unknown object type `Service`", "unknown relationship type `CALLS`"]);
    l.set_settings(Settings { strict: true }, &Header::default()).unwrap();
    assert_eq!(refused(l, "main", vec![object("c").into()]).code, ErrorCode::UnknownType);
    declare(l, json!({"name": "Service"}));
    assert_eq!(refused(l, "main", vec![object("c").into(), edge("c", "a").into()]).code, ErrorCode::UnknownType);
    relate(l, json!({"name": "CALLS"}));
    let done = write(l, "main", vec![object("c").into(), edge("c", "a").into()]);
    assert!(done.warnings.is_empty());
}

pub fn ends_and_multiplicity(f: &Fixture) {
    let l = &f.ledger;
    relate(l, json!({"name": "OWNS", "src_types": ["Team"], "dst_types": ["Service"], "multiplicity": {"dst": "one"}}));
    relate(l, json!({"name": "RUNS_ON", "multiplicity": {"src": "one"}}));
    let owns = |src: &str, dst: &str| PutRelationship::new("OWNS", src, dst);
    write(
        l,
        "main",
        vec![
            PutObject::new("Team", "red").into(),
            PutObject::new("Team", "blue").into(),
            object("a").into(),
            object("b").into(),
            owns("red", "a").into(),
            owns("red", "b").into(),
            PutRelationship::new("RUNS_ON", "a", "red").into(),
        ],
    );
    let error = refused(l, "main", vec![owns("a", "b").into()]);
    assert_eq!((error.code, error.kind.http_status()), (ErrorCode::RelationshipEndType, 422));
    let error = refused(l, "main", vec![owns("blue", "a").into()]);
    assert_eq!((error.code, &error.details["side"]), (ErrorCode::RelationshipMultiplicityViolation, &json!("dst")));
    let error = refused(l, "main", vec![PutRelationship::new("RUNS_ON", "a", "blue").into()]);
    assert_eq!((error.code, &error.details["side"]), (ErrorCode::RelationshipMultiplicityViolation, &json!("src")));
    // Two in one batch are rejected too.
    let error = refused(l, "main", vec![object("c").into(), owns("red", "c").into(), owns("blue", "c").into()]);
    assert_eq!(error.code, ErrorCode::RelationshipMultiplicityViolation);
    verify(f);
}

pub fn moving_a_limited_edge_in_one_batch(f: &Fixture) {
    let l = &f.ledger;
    relate(l, json!({"name": "OWNS", "multiplicity": {"dst": "one"}}));
    let owns = |src: &str| PutRelationship::new("OWNS", src, "a");
    let done =
        write(l, "main", vec![object("red").into(), object("blue").into(), object("a").into(), owns("red").into()]);
    f.clock.advance(1);
    write(l, "main", vec![End::new(done.written[3].id).into(), owns("blue").into()]);
    assert_eq!(refused(l, "main", vec![owns("red").into()]).code, ErrorCode::RelationshipMultiplicityViolation);
}

pub fn limited_edges_in_other_periods(f: &Fixture) {
    let l = &f.ledger;
    relate(l, json!({"name": "OWNS", "multiplicity": {"dst": "one"}}));
    let now = f.clock.advance(100);
    let at = |s: i64| Some(Time(now.0 + s * 1_000_000));
    let from = |key: &str| PutObject { valid_from: at(-90), ..object(key) };
    let owns = |src: &str, from, to| PutRelationship {
        valid_from: at(from),
        valid_to: at(to),
        only_this_period: true,
        ..PutRelationship::new("OWNS", src, "a")
    };
    write(l, "main", vec![from("red").into(), from("blue").into(), from("a").into(), owns("red", -50, -40).into()]);
    write(l, "main", vec![owns("blue", -40, -30).into()]);
    assert_eq!(
        refused(l, "main", vec![owns("blue", -45, -42).into()]).code,
        ErrorCode::RelationshipMultiplicityViolation
    );
}

pub fn a_parents_write_that_breaks_a_live_child_is_reported(f: &Fixture) {
    let l = &f.ledger;
    relate(l, json!({"name": "OWNS", "multiplicity": {"dst": "one"}}));
    let owns = |src: &str| PutRelationship::new("OWNS", src, "a");
    write(l, "main", vec![object("red").into(), object("blue").into(), object("a").into()]);
    branch(l, "child", "main", BranchMode::Live);
    write(l, "child", vec![owns("red").into()]);
    write(l, "main", vec![owns("blue").into()]);
    let report = l.verify(&mut |_, _| {}).unwrap();
    assert_eq!(report.warnings.len(), 1);
    assert!(report.warnings[0].starts_with("branch `child`"), "{:?}", report.warnings);
    // A merge checks the branch that it writes to, so it is rejected.
    let error = l.merge(&MergeRequest { source: "child".into(), dry_run: true, ..Default::default() }).unwrap_err();
    assert_eq!(error.code, ErrorCode::RelationshipMultiplicityViolation);
}

pub fn ignored_paths_make_no_version(f: &Fixture) {
    let l = &f.ledger;
    declare(l, json!({"name": "Service", "ignored_paths": ["/properties/seen"]}));
    let state = |x: i32, seen: i32| valued("a", x).property("seen", seen);
    write(l, "main", vec![state(1, 1).into()]);
    assert_eq!(write(l, "main", vec![state(1, 2).into()]).tx, None);
    f.clock.advance(1);
    let done = write(l, "main", vec![state(2, 3).into()]);
    assert!(done.tx.is_some());
    let found = find(l, &ViewSpec::default(), "a").unwrap();
    let change: Value = serde_json::from_str(found.statement.change.as_deref().unwrap()).unwrap();
    assert_eq!(change["paths"], json!(["/properties/x"]));
}

pub fn aliases_and_case(f: &Fixture) {
    let l = &f.ledger;
    declare(l, json!({"name": "Service", "aliases": ["svc"]}));
    relate(l, json!({"name": "EXTENDS", "aliases": ["INHERITS"]}));
    write(l, "main", vec![PutObject::new("SVC", "a").into(), PutObject::new("service", "b").into()]);
    let done = write(l, "main", vec![PutRelationship::new("inherits", "svc:a", "Service:b").into()]);
    let again = write(l, "main", vec![PutRelationship::new("EXTENDS", "Service:a", "svc:b").into()]);
    assert_eq!((again.tx, again.written[0].id), (None, done.written[0].id));
    assert_eq!(&*find(l, &ViewSpec::default(), "svc:a").unwrap().thing.type_name, "Service");
}

pub fn a_registry_is_read_as_of_the_view(f: &Fixture) {
    let l = &f.ledger;
    let done = write(l, "main", vec![object("a").into(), object("b").into(), edge("a", "b").into()]);
    let id = done.written[2].id.to_string();
    f.clock.advance(1);
    end(l, "main", "b");
    let before = l.head().unwrap().tx;
    f.clock.advance(1);
    relate(l, json!({"name": "CALLS", "lasting": true}));
    assert!(find(l, &ViewSpec::default(), &id).is_ok(), "lasting from now on");
    let spec = ViewSpec::default().as_of(&format!("tx:{before}"));
    assert_eq!(find(l, &spec, &id).unwrap_err().code, ErrorCode::NotFound, "a view with fixed times never changes");
}

fn pack(version: u32) -> TypePack {
    serde_json::from_value(json!({"name": "agent", "version": version,
        "object_types": [
            {"name": "Task", "branchless": true, "aliases": ["Todo"]}, {"name": "Service", "branchless": true},
            {"name": "Own", "description": format!("as of {version}")},
        ],
        "relationship_types": [{"name": "BLOCKED_BY", "branchless": true, "lasting": true}],
    }))
    .unwrap()
}

pub fn packs_are_declared_once(f: &Fixture) {
    let l = &f.ledger;
    write(l, "main", vec![object("a").into()]);
    declare(l, json!({"name": "Own", "description": "of the project"}));
    let tx = l.install(&pack(1), &Header::default()).unwrap();
    assert!(tx.is_some());
    assert_eq!(l.install(&pack(1), &Header::default()).unwrap(), None);
    let registry = l.registry().unwrap();
    assert!(registry.is_branchless("todo", false) && registry.is_branchless("BLOCKED_BY", true));
    assert!(!registry.is_branchless("Service", false), "it is in use on a branch");
    assert_eq!(registry.object_type("Own").unwrap().description.as_deref(), Some("of the project"));
    assert_eq!(registry.object_type("Task").unwrap().pack.as_deref(), Some("agent@1"));
    // The project is not strict because of it.
    write(l, "main", vec![object("b").into(), edge("a", "b").into()]);
    assert!(l.install(&pack(2), &Header::default()).unwrap().is_some_and(|later| Some(later) > tx));
    assert_eq!(l.registry().unwrap().object_type("Task").unwrap().pack.as_deref(), Some("agent@2"));
    assert_eq!(l.registry().unwrap().object_type("Own").unwrap().pack, None);
}

pub fn branchless_relationships_are_seen_everywhere(f: &Fixture) {
    let l = &f.ledger;
    l.install(&pack(1), &Header::default()).unwrap();
    write(l, "main", vec![PutObject::new("Task", "one").into(), PutObject::new("Task", "two").into()]);
    branch(l, "side", "main", BranchMode::Pinned);
    f.clock.advance(1);
    write(l, "side", vec![PutRelationship::new("BLOCKED_BY", "Task:one", "Task:two").into()]);
    let blocked = |branch: &str| {
        let view = l.view(&ViewSpec::on(branch)).unwrap();
        let one = l.find(&view, &Reference::from("Task:one")).unwrap().thing;
        l.links(&view, &one, 10).unwrap().0.len()
    };
    assert_eq!((blocked("main"), blocked("side")), (1, 1));
    assert_eq!(merge(l, "side", "main").tx, None, "never merged");
    f.clock.advance(1);
    l.commit(&Batch::on("main").write(End::new(Reference::from("Task:two")))).unwrap();
    assert_eq!((blocked("main"), blocked("side")), (1, 1), "it lasts");
    let late = RelationshipType { name: "BLOCKED_BY".into(), ..Default::default() };
    assert_eq!(l.declare_relationship_type(&late, &Header::default()).unwrap_err().code, ErrorCode::TypeInUse);
}
