//! Branches and merges: visibility, conflicts and provenance.

use super::*;
use lukasa_model::BranchMode::{Live, Pinned};
use lukasa_model::batch::PutRelationship;
use lukasa_model::transaction::Header;
use lukasa_model::version::MergeRole;
use lukasa_model::{ErrorCode, ObjectType, TransactionKind, Tx};
use lukasa_store::ledger::{ChangeClass, MergeCounts};
use serde_json::json;

pub fn a_live_branch_follows_and_a_pinned_one_does_not(f: &Fixture) {
    let l = &f.ledger;
    put(l, "main", "a", 1);
    branch(l, "live", "main", Live);
    branch(l, "pinned", "main", Pinned);
    f.clock.advance(1);
    put(l, "main", "a", 2);
    put(l, "main", "b", 1);
    assert_eq!((x(l, "live", "a"), x(l, "pinned", "a")), (json!(2), json!(1)));
    assert_eq!((x(l, "live", "b"), x(l, "pinned", "b")), (json!(1), Value::Null));
    verify(f);
}

pub fn an_edit_on_a_branch_does_not_change_its_parent(f: &Fixture) {
    let l = &f.ledger;
    put(l, "main", "a", 1);
    branch(l, "feature", "main", Live);
    branch(l, "deeper", "feature", Live);
    f.clock.advance(1);
    let done = put(l, "feature", "a", 2);
    assert_eq!(done.written[0].number, 2, "numbers count along the lineage");
    assert_eq!((x(l, "main", "a"), x(l, "feature", "a"), x(l, "deeper", "a")), (json!(1), json!(2), json!(2)));
    f.clock.advance(1);
    put(l, "main", "a", 9);
    assert_eq!(x(l, "feature", "a"), 2, "its own version precedes that of its parent");
    assert_eq!(put(l, "feature", "a", 2).tx, None);
    assert_eq!(put(l, "deeper", "a", 2).tx, None, "an inherited version is not recorded again");
    verify(f);
}

pub fn changes_of_main_under_a_pinned_branch(f: &Fixture) {
    let l = &f.ledger;
    put(l, "main", "a", 1);
    branch(l, "work", "main", Pinned);
    f.clock.advance(1);
    put(l, "main", "a", 2);
    put(l, "main", "new", 1);
    put(l, "work", "mine", 1);
    let seen = l.view(&ViewSpec::on("work")).unwrap();
    let keys: Vec<_> = l
        .stream_view(&seen, lukasa_store::VersionFields::Header)
        .unwrap()
        .map(|row| row.unwrap().thing.key.unwrap().to_string())
        .filter(|key| key != "work")
        .collect();
    assert_eq!(keys, ["a", "mine"]);
    // A relationship to an object that main created later has no end on the pinned branch.
    let error = l.commit(&Batch::on("work").write(edge("mine", "new"))).unwrap_err();
    assert_eq!(error.code, ErrorCode::DanglingEnd);
    // Merging it back applies only its own changes, and main's newer version stays.
    let report = merge(l, "work", "main");
    assert_eq!((report.counts.added, report.counts.fast_forward, report.counts.merged), (1, 0, 0));
    assert_eq!(x(l, "main", "a"), 2);
    verify(f);
}

pub fn moving_the_fork_is_part_of_the_log(f: &Fixture) {
    let l = &f.ledger;
    put(l, "main", "a", 1);
    branch(l, "work", "main", Pinned);
    f.clock.advance(1);
    put(l, "main", "a", 2);
    let before = l.head().unwrap().tx;
    assert_eq!(x(l, "work", "a"), 1);
    f.clock.advance(1);
    l.move_fork("work", None, &Header::default()).unwrap();
    assert_eq!(x(l, "work", "a"), 2);
    let spec = ViewSpec { known_at: Some(format!("tx:{before}")), ..ViewSpec::on("work") };
    assert_eq!(x_in(l, &spec, "a"), 1, "an old view keeps its old fork");
    assert_eq!(l.move_fork("main", None, &Header::default()).unwrap_err().code, ErrorCode::BranchIsLive);
    assert_eq!(l.move_fork("work", Some(Tx(99)), &Header::default()).unwrap_err().code, ErrorCode::UnknownTransaction);
    let kinds: Vec<_> = l.transactions(Tx(1), Tx(9), 9).unwrap().iter().map(|t| t.header.kind).collect();
    use TransactionKind::{Api, Branch};
    assert_eq!(kinds, [Api, Branch, Api, Branch]);
}

pub fn tombstones_hide_the_parent(f: &Fixture) {
    let l = &f.ledger;
    put(l, "main", "a", 1);
    branch(l, "feature", "main", Live);
    f.clock.advance(1);
    end(l, "feature", "a");
    f.clock.advance(1);
    put(l, "main", "a", 2);
    assert_eq!((x(l, "feature", "a"), x(l, "main", "a")), (Value::Null, json!(2)));
}

pub fn merge_classes_and_provenance(f: &Fixture) {
    let l = &f.ledger;
    let two = |key: &str, x: i32, y: i32| valued(key, x).property("y", y);
    write(
        l,
        "main",
        vec![two("ff", 1, 1).into(), two("both", 1, 1).into(), two("gone", 1, 1).into(), two("same", 1, 1).into()],
    );
    branch(l, "feature", "main", Pinned);
    f.clock.advance(1);
    write(
        l,
        "feature",
        vec![
            two("ff", 2, 1).into(),
            two("both", 2, 1).into(),
            two("added", 1, 1).into(),
            End::new("gone").into(),
            edge("added", "ff").into(),
        ],
    );
    f.clock.advance(1);
    write(l, "main", vec![two("both", 1, 2).into()]);
    f.clock.advance(1);
    let report = merge(l, "feature", "main");
    assert_eq!(report.counts, MergeCounts { added: 2, fast_forward: 2, merged: 1, conflict: 0, unchanged: 0 });
    let log = l.transactions(report.tx.unwrap(), Tx(u64::MAX), 9).unwrap();
    assert_eq!((log.len(), log[0].header.kind), (1, TransactionKind::Merge));
    let both = find(l, &ViewSpec::default(), "both").unwrap();
    assert_eq!(both.statement.parsed().unwrap().properties, *json!({"x": 2, "y": 2}).as_object().unwrap());
    assert_eq!((x(l, "main", "ff"), x(l, "main", "gone"), x(l, "main", "added")), (json!(2), Value::Null, json!(1)));
    let view = l.view(&ViewSpec::default()).unwrap();
    let (_, history) = l.history(&view, &Reference::from("both"), false).unwrap();
    let roles: Vec<_> = history.last().unwrap().provenance.iter().map(|p| (p.role, p.parent.to_string())).collect();
    assert_eq!(
        roles,
        [(MergeRole::Base, "1.1".into()), (MergeRole::Source, "3.1".into()), (MergeRole::Target, "4.0".into())]
    );
    verify(f);
}

pub fn merge_conflicts_write_nothing(f: &Fixture) {
    let l = &f.ledger;
    write(l, "main", vec![valued("a", 1).into(), valued("b", 1).into(), valued("c", 1).into()]);
    branch(l, "feature", "main", Pinned);
    f.clock.advance(1);
    write(l, "feature", vec![valued("a", 2).into(), valued("b", 2).into(), valued("c", 2).into()]);
    write(l, "main", vec![valued("a", 3).into(), End::new("c").into()]);
    let tx = l.head().unwrap().tx;
    let report = merge(l, "feature", "main");
    assert_eq!((report.tx, report.counts.conflict, report.counts.fast_forward), (None, 2, 1));
    let listed: Vec<_> = report
        .conflicts
        .iter()
        .map(|c| (c.key.as_deref().unwrap(), c.path.as_str(), c.base.clone(), c.ours.clone(), c.theirs.clone()))
        .collect();
    let whole = |x: i32| json!({"properties": {"x": x}});
    assert_eq!(
        listed,
        [("a", "/properties/x", json!(1), json!(3), json!(2)), ("c", "", whole(1), Value::Null, whole(2)),]
    );
    assert_eq!(l.head().unwrap().tx, tx);
    assert_eq!(x(l, "main", "b"), 1, "nothing was applied");
    let error = report.refusal("feature", "main");
    assert_eq!((error.kind.http_status(), error.details["conflicts"].as_array().unwrap().len()), (409, 2));
}

pub fn merging_again_changes_nothing(f: &Fixture) {
    let l = &f.ledger;
    put(l, "main", "a", 1);
    branch(l, "feature", "main", Pinned);
    branch(l, "idle", "main", Live);
    f.clock.advance(1);
    put(l, "feature", "a", 2);
    put(l, "feature", "b", 1);
    f.clock.advance(1);
    assert!(merge(l, "feature", "main").tx.is_some());
    for _ in 0..2 {
        f.clock.advance(1);
        let again = merge(l, "feature", "main");
        assert_eq!((again.tx, again.items.len()), (None, 0));
    }
    assert_eq!(merge(l, "idle", "main").tx, None, "a branch without changes merges nothing");
    let error = l.merge(&MergeRequest { source: "main".into(), ..Default::default() }).unwrap_err();
    assert_eq!(error.code, ErrorCode::MergeIntoItself);
}

pub fn merging_both_ways_leaves_both_equal(f: &Fixture) {
    let l = &f.ledger;
    write(l, "main", vec![valued("a", 1).into(), valued("b", 1).into(), valued("c", 1).into()]);
    branch(l, "feature", "main", Pinned);
    f.clock.advance(1);
    write(l, "feature", vec![valued("a", 2).into(), valued("new", 1).into(), End::new("c").into()]);
    f.clock.advance(1);
    write(l, "main", vec![valued("b", 5).into(), valued("other", 1).into()]);
    merge(l, "feature", "main");
    f.clock.advance(1);
    merge(l, "main", "feature");
    let diff = l.diff(&l.view(&ViewSpec::on("main")).unwrap(), &l.view(&ViewSpec::on("feature")).unwrap(), 99).unwrap();
    assert_eq!((diff.added, diff.removed, diff.modified), (0, 0, 0));
    f.clock.advance(1);
    assert_eq!(merge(l, "feature", "main").tx, None);
    assert_eq!(merge(l, "main", "feature").tx, None);
    verify(f);
}

pub fn convergent_edits_then_a_further_edit(f: &Fixture) {
    let l = &f.ledger;
    put(l, "main", "a", 1);
    branch(l, "feature", "main", Pinned);
    f.clock.advance(1);
    put(l, "feature", "a", 2);
    f.clock.advance(1);
    put(l, "main", "a", 2);
    f.clock.advance(1);
    let report = merge(l, "feature", "main");
    assert!(report.tx.is_some() && report.items.is_empty(), "only the provenance is recorded");
    assert_eq!(merge(l, "feature", "main").tx, None);
    f.clock.advance(1);
    put(l, "feature", "a", 3);
    let report = merge(l, "feature", "main");
    assert_eq!((report.counts.fast_forward, x(l, "main", "a")), (1, json!(3)));
    verify(f);
}

pub fn tied_merge_bases(f: &Fixture) {
    let l = &f.ledger;
    let two = |x: i32, y: i32| valued("a", x).property("y", y);
    write(l, "main", vec![two(1, 1).into()]);
    branch(l, "left", "main", Pinned);
    branch(l, "right", "main", Pinned);
    f.clock.advance(1);
    write(l, "left", vec![two(2, 1).into()]);
    write(l, "right", vec![two(1, 2).into()]);
    // Both branches are copied, then each merges the copy of the other: a criss-cross.
    branch(l, "left-then", "left", Pinned);
    branch(l, "right-then", "right", Pinned);
    f.clock.advance(1);
    assert_eq!(merge(l, "right-then", "left").counts.merged, 1);
    assert_eq!(merge(l, "left-then", "right").counts.merged, 1);
    f.clock.advance(1);
    // Two bases, (2,1) and (1,2), which disagree on both values.
    write(l, "left", vec![two(2, 2).property("z", 1).into()]);
    let report = merge(l, "left", "right");
    assert_eq!((report.counts.merged, report.counts.conflict), (1, 0));
    f.clock.advance(1);
    branch(l, "left-2", "left", Pinned);
    write(l, "left", vec![two(7, 2).property("z", 1).into()]);
    write(l, "right", vec![two(8, 2).property("z", 1).into()]);
    let report = merge(l, "left", "right");
    assert_eq!(report.conflicts.iter().map(|c| c.path.as_str()).collect::<Vec<_>>(), ["/properties/x"]);
    verify(f);
}

pub fn the_same_edge_made_on_two_branches(f: &Fixture) {
    let l = &f.ledger;
    write(l, "main", vec![object("a").into(), object("b").into(), object("c").into()]);
    branch(l, "feature", "main", Pinned);
    f.clock.advance(1);
    let sure = |dst: &str, confidence| PutRelationship { confidence: Some(confidence), ..edge("a", dst) };
    write(l, "feature", vec![sure("b", 0.9).into(), sure("c", 0.5).into()]);
    write(l, "main", vec![sure("b", 0.9).into()]);
    let report = merge(l, "feature", "main");
    assert_eq!((report.counts.unchanged, report.counts.added), (1, 1), "the same edge counts once");
    f.clock.advance(1);
    write(l, "feature", vec![sure("b", 0.3).into()]);
    write(l, "main", vec![sure("b", 0.7).into()]);
    let report = merge(l, "feature", "main");
    assert_eq!(report.conflicts.iter().map(|c| c.path.as_str()).collect::<Vec<_>>(), ["/confidence"]);
}

pub fn merge_of_chosen_keys(f: &Fixture) {
    let l = &f.ledger;
    write(l, "main", vec![valued("a", 1).into(), valued("b", 1).into()]);
    branch(l, "feature", "main", Pinned);
    f.clock.advance(1);
    write(l, "feature", vec![valued("a", 2).into(), valued("b", 2).into()]);
    let chosen = |keys: &[&str]| MergeRequest {
        source: "feature".into(),
        keys: keys.iter().map(|k| Reference::from(*k)).collect(),
        ..Default::default()
    };
    let report = l.merge(&chosen(&["Service:a"])).unwrap();
    assert_eq!(report.counts.fast_forward, 1);
    assert_eq!((x(l, "main", "a"), x(l, "main", "b")), (json!(2), json!(1)));
    assert_eq!(l.merge(&chosen(&["missing"])).unwrap_err().code, ErrorCode::NotFound);
    f.clock.advance(1);
    assert_eq!(merge(l, "feature", "main").counts.fast_forward, 1, "the rest is merged later");
    verify(f);
}

pub fn merge_checks_ends_in_the_dry_run_too(f: &Fixture) {
    let l = &f.ledger;
    put(l, "main", "a", 1);
    branch(l, "feature", "main", Pinned);
    f.clock.advance(1);
    write(l, "feature", vec![valued("b", 1).into(), edge("a", "b").into()]);
    let id = write(l, "feature", vec![edge("a", "b").into()]).written[0].id;
    for dry_run in [true, false] {
        let request = MergeRequest { source: "feature".into(), keys: vec![id.into()], dry_run, ..Default::default() };
        assert_eq!(l.merge(&request).unwrap_err().code, ErrorCode::DanglingEnd, "the edge alone would dangle");
    }
}

pub fn merge_strategies_decide(f: &Fixture) {
    let l = &f.ledger;
    let declared = ObjectType {
        name: "Service".into(),
        merge: serde_json::from_value(json!({
            "/properties/list": "union", "/properties/text": "concat",
            "/properties/mine": "target_wins", "/properties/theirs": "source_wins",
        }))
        .unwrap(),
        ..Default::default()
    };
    l.declare_object_type(&declared, &Header::default()).unwrap();
    let state = |list: Value, word: &str| {
        object("a").property("list", list).property("text", word).property("mine", word).property("theirs", word)
    };
    write(l, "main", vec![state(json!([1]), "").into()]);
    branch(l, "feature", "main", Pinned);
    f.clock.advance(1);
    write(l, "feature", vec![state(json!([1, 3]), "S").into()]);
    write(l, "main", vec![state(json!([1, 2]), "T").into()]);
    assert_eq!(merge(l, "feature", "main").counts.merged, 1);
    let merged = find(l, &ViewSpec::default(), "a").unwrap().statement.parsed().unwrap().properties;
    assert_eq!(Value::Object(merged), json!({"list": [1, 2, 3], "text": "TS", "mine": "T", "theirs": "S"}));
}

pub fn merge_from_a_live_parent(f: &Fixture) {
    let l = &f.ledger;
    write(l, "main", vec![valued("a", 1).property("y", 1).into(), valued("b", 1).into()]);
    branch(l, "feature", "main", Live);
    f.clock.advance(1);
    write(l, "feature", vec![valued("a", 2).property("y", 1).into()]);
    f.clock.advance(1);
    write(l, "main", vec![valued("a", 1).property("y", 2).into(), valued("b", 2).into()]);
    let report = merge(l, "main", "feature");
    assert_eq!((report.counts.merged, report.counts.fast_forward), (1, 0), "inherited versions need no merge");
    assert_eq!((x(l, "feature", "a"), x(l, "feature", "b")), (json!(2), json!(2)));
    assert_eq!(find(l, &ViewSpec::on("feature"), "a").unwrap().statement.parsed().unwrap().properties["y"], 2);
}

pub fn merge_copies_other_periods(f: &Fixture) {
    let l = &f.ledger;
    let now = f.clock.advance(100);
    let past = |key: &str, value: i32| PutObject {
        valid_from: Some(Time(now.0 - 50_000_000)),
        valid_to: Some(Time(now.0 - 40_000_000)),
        only_this_period: true,
        ..valued(key, value)
    };
    write(l, "main", vec![valued("a", 1).into(), valued("b", 1).into()]);
    branch(l, "feature", "main", Pinned);
    f.clock.advance(1);
    write(l, "feature", vec![past("a", 2).into(), past("b", 2).into()]);
    write(l, "main", vec![past("b", 3).into()]);
    let report = merge(l, "feature", "main");
    assert_eq!(report.conflicts.iter().map(|c| c.key.as_deref()).collect::<Vec<_>>(), [Some("b")]);
    let request = MergeRequest { source: "feature".into(), keys: vec!["a".into()], ..Default::default() };
    assert!(l.merge(&request).unwrap().tx.is_some());
    let then = time(Time(now.0 - 45_000_000));
    assert_eq!((x_at(l, &then, "a"), x(l, "main", "a")), (json!(2), json!(1)));
    verify(f);
}

pub fn closed_branches_refuse_writes(f: &Fixture) {
    let l = &f.ledger;
    put(l, "main", "a", 1);
    branch(l, "feature", "main", Live);
    l.set_closed("feature", true, &Header::default()).unwrap();
    let error = l.commit(&Batch::on("feature").write(valued("a", 2))).unwrap_err();
    assert_eq!(error.code, ErrorCode::BranchClosed);
    assert_eq!(x(l, "feature", "a"), 1, "it can still be read");
    l.set_closed("feature", false, &Header::default()).unwrap();
    put(l, "feature", "a", 2);
    assert_eq!(l.set_closed("main", true, &Header::default()).unwrap_err().code, ErrorCode::MainStaysOpen);
}

pub fn branchless_types_are_seen_everywhere(f: &Fixture) {
    let l = &f.ledger;
    let declared = ObjectType { name: "Claim".into(), branchless: true, ..Default::default() };
    l.declare_object_type(&declared, &Header::default()).unwrap();
    put(l, "main", "a", 1);
    branch(l, "pinned", "main", Pinned);
    f.clock.advance(1);
    write(l, "pinned", vec![PutObject::new("Claim", "c").property("x", 1).into()]);
    assert_eq!((x(l, "main", "Claim:c"), x(l, "pinned", "Claim:c")), (json!(1), json!(1)));
    f.clock.advance(1);
    write(l, "main", vec![PutObject::new("Claim", "c").property("x", 2).into()]);
    assert_eq!(x(l, "pinned", "Claim:c"), 2);
    assert_eq!(merge(l, "pinned", "main").tx, None, "never merged");
    let late = ObjectType { name: "Service".into(), branchless: true, ..Default::default() };
    assert_eq!(l.declare_object_type(&late, &Header::default()).unwrap_err().code, ErrorCode::TypeInUse);
}

pub fn diff_of_branches(f: &Fixture) {
    let l = &f.ledger;
    write(l, "main", vec![valued("a", 1).into(), valued("b", 1).into(), valued("c", 1).into(), edge("a", "b").into()]);
    branch(l, "feature", "main", Pinned);
    f.clock.advance(1);
    write(l, "feature", vec![valued("a", 2).into(), End::new("b").into(), valued("d", 1).into()]);
    let views = (l.view(&ViewSpec::on("main")).unwrap(), l.view(&ViewSpec::on("feature")).unwrap());
    let diff = l.diff(&views.0, &views.1, 99).unwrap();
    assert_eq!((diff.added, diff.removed, diff.modified), (1, 2, 1), "the edge goes with its end");
    let modified = diff.changes.iter().find(|c| c.class == ChangeClass::Modified).unwrap();
    assert_eq!(modified.summary.as_ref().unwrap().updated, json!({"/properties/x": {"from": 1, "to": 2}}));
    let back = l.diff(&views.1, &views.0, 1).unwrap();
    assert_eq!((back.added, back.removed, back.modified, back.changes.len()), (2, 1, 1, 1), "all are counted");
}
