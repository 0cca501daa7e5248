//! Facts in time: valid time and recording time.

use super::*;
use lukasa_model::transaction::Header;
use lukasa_model::{ErrorCode, ErrorKind, Precondition, Tx};
use lukasa_store::VersionFields;
use serde_json::json;

pub fn equal_content_creates_no_version(f: &Fixture) {
    let l = &f.ledger;
    let first = write(l, "main", vec![valued("auth", 1).title("Auth").into()]);
    assert_eq!((first.tx, first.objects, first.unchanged), (Some(Tx(1)), 1, 0));
    let found = find(l, &ViewSpec::default(), "Service:auth").unwrap();
    assert_eq!(found.statement.parsed().unwrap().title.as_deref(), Some("Auth"));
    assert_eq!((found.statement.version.to_string().as_str(), found.statement.number), ("1.0", 1));
    // By key, by id, and by type in another case.
    for name in ["auth", "service:auth", &found.thing.id.to_string()] {
        assert_eq!(find(l, &ViewSpec::default(), name).unwrap().thing.id, found.thing.id, "{name}");
    }
    f.clock.advance(5);
    let again = write(l, "main", vec![valued("auth", 1).title("Auth").into()]);
    assert_eq!((again.tx, again.unchanged), (None, 1), "no change, no transaction");
    let second = put(l, "main", "auth", 2);
    assert_eq!((second.tx, second.written[0].number), (Some(Tx(2)), 2));
    verify(f);
}

pub fn version_numbers_are_dense_and_times_never_decrease(f: &Fixture) {
    let l = &f.ledger;
    for (seconds, value) in [(10, 1), (-20, 2), (0, 3), (50, 4)] {
        f.clock.advance(seconds);
        put(l, "main", "a", value);
    }
    let log = l.transactions(Tx(1), Tx(u64::MAX), 100).unwrap();
    assert_eq!(log.iter().map(|t| t.tx).collect::<Vec<_>>(), [1, 2, 3, 4].map(Tx));
    assert!(log.is_sorted_by_key(|t| t.recorded_at));
    assert_eq!(x(l, "main", "a"), 4, "the last version counts even if the clock went backwards");
    verify(f);
}

pub fn a_batch_sent_twice_commits_once(f: &Fixture) {
    let l = &f.ledger;
    let header = Header { client_id: Some("job-1".into()), ..Header::default() };
    let batch = |value: i32| Batch { header: header.clone(), ..Batch::on("main") }.write(valued("a", value));
    let first = l.commit(&batch(1)).unwrap();
    put(l, "main", "a", 2);
    let again = l.commit(&batch(1)).unwrap();
    assert_eq!((again.tx, again.repeated, again.objects), (first.tx, true, 1));
    assert_eq!(x(l, "main", "a"), 2, "the repeated batch did not write");
    assert_eq!(l.commit(&batch(7)).unwrap_err().code, ErrorCode::ClientIdReused);
    // Also for a batch that changed nothing.
    let idle = Header { client_id: Some("job-2".into()), ..Header::default() };
    let idle = Batch { header: idle, ..Batch::on("main") }.write(valued("a", 2));
    assert_eq!(l.commit(&idle).unwrap().tx, None);
    put(l, "main", "a", 3);
    assert!(l.commit(&idle).unwrap().repeated);
    assert_eq!(x(l, "main", "a"), 3);
    verify(f);
}

pub fn narrowing_the_period_of_a_fact(f: &Fixture) {
    let l = &f.ledger;
    let t = |days: i64| Time(lukasa_testkit::ManualClock::START.0 + days * 86_400_000_000);
    write(l, "main", vec![PutObject { valid_from: Some(t(-10)), ..valued("a", 1) }.into()]);
    // The fact began later than recorded at first, and ended yesterday.
    f.clock.advance(1);
    write(l, "main", vec![End { from: Some(t(-10)), to: Some(t(-5)), ..End::new("a") }.into()]);
    write(l, "main", vec![End { from: Some(t(-1)), ..End::new("a") }.into()]);
    for (days, want) in
        [(-11, json!(null)), (-7, json!(null)), (-5, json!(1)), (-2, json!(1)), (-1, json!(null)), (0, json!(null))]
    {
        assert_eq!(x_at(l, time(t(days)), "a"), want, "{days} days");
    }
    // The previous state of knowledge is still visible.
    let then = ViewSpec { known_at: Some("tx:1".into()), ..ViewSpec::default().as_of(&time(t(-7))) };
    assert_eq!(x_in(l, &then, "a"), 1);
    verify(f);
}

pub fn backfilling_history_after_the_head(f: &Fixture) {
    let l = &f.ledger;
    let now = f.clock.advance(1000);
    put(l, "main", "a", "today");
    let (past, until) = (Time(now.0 - 500_000_000), Time(now.0 - 100_000_000));
    let backfill =
        PutObject { valid_from: Some(past), valid_to: Some(until), only_this_period: true, ..valued("a", "then") };
    f.clock.advance(1);
    write(l, "main", vec![backfill.clone().into()]);
    assert_eq!(x(l, "main", "a"), "today", "a backfill does not change the present");
    assert_eq!(x_at(l, time(past), "a"), "then");
    assert_eq!(x_at(l, time(until), "a"), Value::Null);
    assert_eq!(write(l, "main", vec![backfill.into()]).tx, None, "a repeated backfill changes nothing");
    verify(f);
}

pub fn an_ended_fact_is_visible_before_and_absent_after(f: &Fixture) {
    let l = &f.ledger;
    let before = f.clock.advance(10);
    put(l, "main", "a", 1);
    let after = f.clock.advance(10);
    assert_eq!(end(l, "main", "a").objects, 1);
    assert_eq!(x(l, "main", "a"), Value::Null);
    assert_eq!(x_at(l, time(before), "a"), 1, "ending a fact does not change the past");
    assert_eq!(x_at(l, time(after), "a"), Value::Null);
    assert_eq!(x_at(l, "tx:1", "a"), 1);
    assert_eq!(end(l, "main", "a").tx, None, "ended already");
    f.clock.advance(10);
    assert_eq!(put(l, "main", "a", 2).written[0].number, 3, "numbers continue after an end");
    assert_eq!(x_at(l, time(after), "a"), Value::Null);
    assert_eq!(find(l, &ViewSpec::default(), "missing").unwrap_err().kind, ErrorKind::NotFound);
    verify(f);
}

pub fn a_put_with_an_end_is_absent_afterwards(f: &Fixture) {
    let l = &f.ledger;
    let now = f.clock.advance(10);
    let until = Time(now.0 + 60_000_000);
    put(l, "main", "a", 1);
    write(l, "main", vec![PutObject { valid_to: Some(until), ..valued("a", 2) }.into()]);
    assert_eq!((x(l, "main", "a"), x_at(l, time(until), "a")), (json!(2), Value::Null));
    f.clock.advance(61);
    assert_eq!(x(l, "main", "a"), Value::Null, "its period has ended");
    put(l, "main", "a", 3);
    assert_eq!(x_at(l, time(until), "a"), Value::Null);
    verify(f);
}

pub fn future_versions_become_visible_in_time(f: &Fixture) {
    let l = &f.ledger;
    let soon = Time(f.clock.advance(1).0 + 30_000_000);
    put(l, "main", "a", "now");
    write(l, "main", vec![PutObject { valid_from: Some(soon), ..valued("a", "soon") }.into()]);
    assert_eq!(x(l, "main", "a"), "now");
    // Writing what is valid now does not change a future version.
    f.clock.advance(1);
    assert_eq!(put(l, "main", "a", "now").tx, None);
    f.clock.advance(60);
    assert_eq!(x(l, "main", "a"), "soon");
    // A put of other content is valid from now on and overrides future versions.
    write(l, "main", vec![PutObject { valid_from: Some(Time(soon.0 + 900_000_000)), ..valued("a", "later") }.into()]);
    put(l, "main", "a", "other");
    f.clock.advance(2_000);
    assert_eq!(x(l, "main", "a"), "other");
    verify(f);
}

pub fn several_periods_in_one_batch(f: &Fixture) {
    let l = &f.ledger;
    let now = f.clock.advance(100);
    let at = |s: i64| Some(Time(now.0 + s * 1_000_000));
    let piece = |from, to, value: i32| PutObject { valid_from: at(from), valid_to: at(to), ..valued("a", value) };
    let done = write(l, "main", vec![piece(-30, -20, 1).into(), piece(-20, -10, 2).into()]);
    assert_eq!(done.objects, 3, "two contents, and absent after the last");
    for (s, want) in [(-25, json!(1)), (-20, json!(2)), (-10, Value::Null), (0, Value::Null)] {
        assert_eq!(x_at(l, time(at(s).unwrap()), "a"), want);
    }
    verify(f);
}

pub fn known_at_and_valid_time_are_independent(f: &Fixture) {
    let l = &f.ledger;
    let monday = f.clock.advance(10);
    put(l, "main", "a", 1);
    f.clock.advance(100);
    // On Thursday it is recorded that the value was 2 since Monday.
    write(l, "main", vec![PutObject { valid_from: Some(monday), ..valued("a", 2) }.into()]);
    let ask = |known: &str| {
        x_in(l, &ViewSpec { known_at: Some(known.into()), ..ViewSpec::default().as_of(&time(monday)) }, "a")
    };
    assert_eq!((ask("tx:1"), ask("tx:2"), ask(&time(monday))), (json!(1), json!(2), json!(1)));
    assert_eq!(x_at(l, "tx:1", "a"), 1);
}

pub fn moments_in_every_form(f: &Fixture) {
    let l = &f.ledger;
    let commit_time = Time(f.clock.advance(10).0 - 5_000_000);
    let by = |agent: &str, commit: Option<&str>, value: i32| {
        let header = Header {
            agent: Some(agent.into()),
            git_commit: commit.map(Into::into),
            valid_at: commit.map(|_| commit_time),
            ..Header::default()
        };
        f.clock.advance(10);
        l.commit(&Batch { header, ..Batch::on("main") }.write(valued("a", value))).unwrap();
    };
    by("ann", Some("abc1234def"), 1);
    by("bob", None, 2);
    by("ann", None, 3);
    by("bob", None, 4);
    assert_eq!(x_at(l, "commit:abc1234", "a"), 1);
    assert_eq!(x_at(l, "ABC1234", "a"), 1, "the form decides");
    assert_eq!(x_at(l, "agent:ann", "a"), 3);
    assert_eq!(x_at(l, "ann", "a"), 3);
    assert_eq!(x_at(l, "2", "a"), 2);
    let code = |word: &str| l.view(&ViewSpec::default().as_of(word)).unwrap_err().code;
    assert_eq!(code("commit:ffff999"), ErrorCode::UnknownCommit);
    assert_eq!(code("tx:99"), ErrorCode::UnknownTransaction);
    assert_eq!(code("missing"), ErrorCode::UnknownMoment);
    by("bob", Some("abc1299def"), 5);
    assert_eq!(code("commit:abc12"), ErrorCode::AmbiguousCommit);
    let new = lukasa_store::ledger::NewRelease { name: "ann".into(), ..Default::default() };
    l.create_release(&new, &Header::default()).unwrap();
    let error = l.view(&ViewSpec::default().as_of("ann")).unwrap_err();
    assert_eq!(
        (error.code, error.hint.as_deref()),
        (ErrorCode::AmbiguousMoment, Some("write one of: release:ann, agent:ann"))
    );
}

pub fn a_rename_with_links_to_it(f: &Fixture) {
    let l = &f.ledger;
    write(
        l,
        "main",
        vec![
            valued("old", 1).into(),
            object("caller").into(),
            PutObject::new("Episode", "e1").into(),
            edge("caller", "old").into(),
            PutRelationship::new("INVOLVES", "e1", "old").into(),
        ],
    );
    f.clock.advance(1);
    write(
        l,
        "main",
        vec![
            End::new("old").into(),
            valued("new", 1).into(),
            PutRelationship::new("RENAMED_FROM", "Service:new", "Service:old").into(),
        ],
    );
    let found = find(l, &ViewSpec::default(), "Service:old").unwrap();
    assert_eq!((found.thing.key.as_deref(), found.renamed_from.as_deref()), (Some("new"), Some("Service:old")));
    let view = l.view(&ViewSpec::default()).unwrap();
    let links = |key: &str| {
        let thing = l.find(&view, &Reference::from(key)).unwrap().thing;
        let (links, total) = l.links(&view, &thing, 10).unwrap();
        assert_eq!(links.len(), total);
        links
    };
    assert!(links("caller").is_empty(), "an ordinary relationship is hidden with its end");
    let involved = links("e1");
    assert_eq!(involved.len(), 1, "a lasting one stays");
    assert!(involved[0].other_ended);
    assert_eq!(involved[0].other_renamed_to.as_ref().and_then(|t| t.key.as_deref()), Some("new"));
    assert_eq!(x_at(l, "tx:1", "old"), 1);
    // Streams agree with look-ups.
    let rows: Vec<_> = l.stream_view(&view, VersionFields::Header).unwrap().map(Result::unwrap).collect();
    let names: Vec<_> = rows.iter().map(|r| (&*r.thing.type_name, r.src_ended, r.dst_ended)).collect();
    assert_eq!(
        names,
        [
            ("Service", false, false),
            ("Episode", false, false),
            ("INVOLVES", false, true),
            ("Service", false, false),
            ("RENAMED_FROM", false, true)
        ]
    );
    verify(f);
}

pub fn a_relationship_is_hidden_while_an_end_is_absent(f: &Fixture) {
    let l = &f.ledger;
    let declared = lukasa_model::RelationshipType {
        name: "OWNS".into(),
        multiplicity: serde_json::from_value(json!({"dst": "one"})).unwrap(),
        ..Default::default()
    };
    l.declare_relationship_type(&declared, &Header::default()).unwrap();
    let owns = |src: &str| PutRelationship::new("OWNS", src, "thing");
    write(l, "main", vec![object("ann").into(), object("bob").into(), object("thing").into(), owns("ann").into()]);
    let id = write(l, "main", vec![owns("ann").into()]).written[0].id.to_string();
    let there = || find(l, &ViewSpec::default(), &id).is_ok();
    assert!(there());
    f.clock.advance(1);
    end(l, "main", "ann");
    assert!(!there(), "hidden with its end");
    f.clock.advance(1);
    let refused = l.commit(&Batch::on("main").write(owns("bob"))).unwrap_err();
    assert_eq!(refused.code, ErrorCode::RelationshipMultiplicityViolation, "hidden, but not ended");
    put(l, "main", "ann", 1);
    assert!(there(), "visible again with its end");
    assert_eq!(
        l.history(&l.view(&ViewSpec::default()).unwrap(), &Reference::from(id.as_str()), false).unwrap().1.len(),
        1
    );
    verify(f);
}

pub fn only_the_derivation_of_an_edge_changes(f: &Fixture) {
    let l = &f.ledger;
    let by = |derivation: &str| PutRelationship {
        derivation: Some(derivation.into()),
        confidence: Some(0.5),
        ..edge("a", "b")
    };
    write(l, "main", vec![object("a").into(), object("b").into(), by("unique_name").into()]);
    let done = write(l, "main", vec![by("import").into()]);
    assert_eq!((done.tx, done.relationships), (Some(Tx(2)), 1));
    let view = l.view(&ViewSpec::default()).unwrap();
    let (_, history) = l.history(&view, &Reference::Id(done.written[0].id), false).unwrap();
    let change: Value = serde_json::from_str(history[1].statement.change.as_deref().unwrap()).unwrap();
    assert_eq!(change["updated"], json!({"/derivation": {"from": "unique_name", "to": "import"}}));
    assert_eq!(change["paths"], json!(["/derivation"]));
}

pub fn history_reports_changes_and_when_versions_were_superseded(f: &Fixture) {
    let l = &f.ledger;
    put(l, "main", "a", 1);
    f.clock.advance(10);
    // Valid from before the first version on, which therefore is superseded completely.
    let over = PutObject { valid_from: Some(Time(0)), ..valued("a", 2) };
    write(l, "main", vec![over.into()]);
    f.clock.advance(10);
    put(l, "main", "a", 3);
    f.clock.advance(10);
    end(l, "main", "a");
    let view = l.view(&ViewSpec::default()).unwrap();
    let (_, history) = l.history(&view, &Reference::from("a"), false).unwrap();
    let log = l.transactions(Tx(1), Tx(9), 9).unwrap();
    let superseded: Vec<_> = history.iter().map(|h| h.superseded_at).collect();
    assert_eq!(superseded, [Some(log[1].recorded_at), None, None, None], "the others are still valid in the past");
    assert_eq!(history.iter().map(|h| h.statement.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(history[0].statement.change.is_none() && history[3].statement.absent);
    assert_eq!(history[2].statement.parents, [history[1].statement.version]);
}

pub fn parallel_edges_by_discriminator(f: &Fixture) {
    let l = &f.ledger;
    let second = PutRelationship { discriminator: "line 9".into(), ..edge("a", "b") };
    let done = write(l, "main", vec![object("a").into(), object("b").into(), edge("a", "b").into(), second.into()]);
    assert_ne!(done.written[2].id, done.written[3].id);
    let view = l.view(&ViewSpec::default()).unwrap();
    assert_eq!(l.stream_view(&view, VersionFields::Header).unwrap().count(), 4);
    verify(f);
}

pub fn names_with_more_than_one_reading(f: &Fixture) {
    let l = &f.ledger;
    write(
        l,
        "main",
        vec![
            PutObject::new("File", "a").into(),
            PutObject::new("Module", "a").into(),
            PutObject::new("Decision", "decision:42").into(),
        ],
    );
    let error = find(l, &ViewSpec::default(), "a").unwrap_err();
    assert_eq!((error.code, error.hint.as_deref()), (ErrorCode::Ambiguous, Some("name one of: File:a, Module:a")));
    assert_eq!(&*find(l, &ViewSpec::default(), "Module:a").unwrap().thing.type_name, "Module");
    assert_eq!(&*find(l, &ViewSpec::default(), "decision:42").unwrap().thing.type_name, "Decision");
    let error = l.commit(&Batch::on("main").write(edge("a", "decision:42"))).unwrap_err();
    assert_eq!(error.code, ErrorCode::Ambiguous);
    f.clock.advance(1);
    write(l, "main", vec![End::new("File:a").into()]);
    assert_eq!(&*find(l, &ViewSpec::default(), "a").unwrap().thing.type_name, "Module", "only visible ones count");
}

pub fn similar_names_are_suggested(f: &Fixture) {
    let l = &f.ledger;
    write(l, "main", vec![object("auth::Login").into(), object("auth::Logout").into(), object("100%_sure").into()]);
    let error = find(l, &ViewSpec::default(), "auth::Loginn").unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound);
    assert!(error.hint.unwrap().starts_with("closest: `Service:auth::Login`"));
    let error = find(l, &ViewSpec::default(), "%_x").unwrap_err();
    assert!(!error.hint.unwrap().contains("auth"), "wildcards are matched literally");
}

pub fn links_report_their_total_number(f: &Fixture) {
    let l = &f.ledger;
    let mut writes: Vec<Write> = vec![object("hub").into()];
    for i in 0..20 {
        writes.push(object(&format!("n{i}")).into());
        writes.push(edge("hub", &format!("n{i}")).into());
    }
    write(l, "main", writes);
    let view = l.view(&ViewSpec::default()).unwrap();
    let hub = l.find(&view, &Reference::from("hub")).unwrap().thing;
    let (links, total) = l.links(&view, &hub, 5).unwrap();
    assert_eq!((links.len(), total), (5, 20));
}

pub fn preconditions_on_other_facts(f: &Fixture) {
    let l = &f.ledger;
    put(l, "main", "lock", 1);
    let with = |precondition: Precondition| {
        l.commit(&Batch { preconditions: vec![precondition], ..Batch::on("main") }.write(valued("a", 1)))
    };
    let version = |name: &str, expected_version| Precondition::Version { reference: name.into(), expected_version };
    assert_eq!(with(version("lock", 2)).unwrap_err().code, ErrorCode::VersionConflict);
    assert_eq!(with(version("nothing", 1)).unwrap_err().code, ErrorCode::VersionConflict);
    assert_eq!(with(Precondition::Absent { reference: "lock".into() }).unwrap_err().code, ErrorCode::VersionConflict);
    assert_eq!(x(l, "main", "a"), Value::Null);
    assert!(with(version("lock", 1)).is_ok());
    assert!(with(Precondition::Absent { reference: "nothing".into() }).is_ok());
}
