//! Invalid input: each has an error code and a hint, and changes nothing.

use super::*;
use lukasa_model::transaction::Header;
use lukasa_store::ledger::NewBranch;
use serde_json::json;

pub fn every_invalid_input_has_a_code_and_changes_nothing(f: &Fixture) {
    let l = &f.ledger;
    write(l, "main", vec![object("a").into(), object("b").into(), edge("a", "b").into()]);
    let relationship = write(l, "main", vec![edge("a", "b").into()]).written[0].id;
    branch(l, "dev", "main", lukasa_model::BranchMode::Live);
    let head = l.head().unwrap();

    let batch = |writes: Vec<Write>| Batch { writes, ..Batch::on("main") };
    let one = |put: PutObject| batch(vec![put.into()]);
    let mut bomb = json!(1);
    for _ in 0..100 {
        bomb = json!([bomb]);
    }
    let header = |header: Header| Batch { header, ..one(object("a")) };
    let cases: Vec<(&str, Batch)> = vec![
        ("unknown_branch", Batch { branch: "nowhere".into(), ..one(object("a")) }),
        ("duplicate_in_batch", batch(vec![valued("k", 1).into(), valued("k", 2).into()])),
        ("duplicate_in_batch", batch(vec![valued("a", 1).into(), End::new("Service:a").into()])),
        ("dangling_end", batch(vec![edge("a", "missing").into()])),
        ("dangling_end", batch(vec![object("c").into(), End::new("b").into(), edge("c", "b").into()])),
        ("relationship_as_end", batch(vec![PutRelationship::new("CALLS", "a", relationship).into()])),
        ("not_found", batch(vec![End::new("missing").into()])),
        ("text_too_long", one(object(&"k".repeat(1_025)))),
        ("empty_name", one(object(""))),
        ("nul_byte", one(object("a\0b"))),
        ("nul_byte", one(valued("a", "x\0y"))),
        ("nul_byte", one(object("a").property("p\0", 1))),
        ("properties_too_large", one(valued("a", "x".repeat(1 << 20)))),
        ("json_too_deep", one(valued("a", bomb))),
        ("invalid_type_name", one(PutObject::new("no spaces", "a"))),
        ("empty_name", one(PutObject::new("", "a"))),
        ("reversed_period", one(PutObject { valid_from: Some(Time(5)), valid_to: Some(Time(4)), ..object("a") })),
        ("reversed_period", batch(vec![End { from: Some(Time(5)), to: Some(Time(5)), ..End::new("a") }.into()])),
        ("id_and_key", one(PutObject { id: Some(uuid::Uuid::from_u128(1)), ..object("a") })),
        ("derived_id", one(PutObject { key: None, id: Some(relationship), ..object("") })),
        ("version_conflict", one(PutObject { expected_version: Some(7), ..object("a") })),
        ("version_conflict", one(PutObject { expected_version: Some(0), ..object("a") })),
        ("system_type", one(PutObject::new("branch", "x"))),
        ("system_type", batch(vec![End::new("Branch:dev").into()])),
        ("invalid_confidence", batch(vec![PutRelationship { confidence: Some(2.0), ..edge("a", "b") }.into()])),
        ("invalid_commit", header(Header { git_commit: Some("not a commit".into()), ..Header::default() })),
        ("nul_byte", header(Header { reason: Some("\0".into()), ..Header::default() })),
    ];
    for (code, batch) in cases {
        let error = l.commit(&batch).expect_err(code);
        assert_eq!(error.code.name(), code, "{error:?}");
        assert!(!error.message.ends_with('.') && error.message.starts_with(|c: char| !c.is_uppercase() || c == '`'));
        assert_eq!(l.head().unwrap(), head, "{code} changed something");
    }
    let new = |name: &str, parent: &str| NewBranch { name: name.into(), parent: parent.into(), ..NewBranch::default() };
    for (code, new) in [
        ("cyclic_branch", new("loop", "loop")),
        ("unknown_branch", new("x", "nowhere")),
        ("branch_exists", new("dev", "main")),
        ("branch_exists", new("main", "dev")),
        ("invalid_name", new("two words", "main")),
        ("empty_name", new("", "main")),
    ] {
        assert_eq!(l.create_branch(&new, &Header::default()).expect_err(code).code.name(), code);
        assert_eq!(l.head().unwrap(), head, "{code} changed something");
    }
    verify(f);
}
