//! Dumps transfer everything exactly between any two stores; damage is detected and reported.

use super::*;
use crate::oracle::all_views;
use lukasa_model::BranchMode::{Live, Pinned};
use lukasa_model::transaction::Header;
use lukasa_model::{ErrorCode, Tx};
use lukasa_store::ledger::NewRelease;
use lukasa_testkit::fixtures;

/// Writes some of everything: facts, branches, merges, releases and ends.
pub fn story(f: &Fixture) {
    let l = &f.ledger;
    let client = Header { client_id: Some("c1".into()), git_commit: Some("abcdef12".into()), ..Header::default() };
    let writes = vec![valued("a", 1).into(), valued("b", 1).into(), edge("a", "b").into()];
    l.commit(&Batch { header: client, writes, ..Batch::on("main") }).unwrap();
    branch(l, "live", "main", Live);
    branch(l, "pinned", "main", Pinned);
    f.clock.advance(5);
    put(l, "pinned", "a", 2);
    put(l, "main", "b", 2);
    f.clock.advance(5);
    merge(l, "pinned", "main");
    l.create_release(&NewRelease { name: "1".into(), ..Default::default() }, &Header::default()).unwrap();
    f.clock.advance(5);
    end(l, "main", "b");
    let backfill = PutObject {
        valid_from: Some(Time(0)),
        valid_to: Some(Time(9)),
        only_this_period: true,
        ..valued("a", "é\n\"")
    };
    write(l, "live", vec![backfill.into()]);
}

pub fn dump(l: &Ledger) -> String {
    let mut out = Vec::new();
    l.dump(&mut out, &mut |_, _| {}).unwrap();
    String::from_utf8(out).unwrap()
}

pub fn a_dump_restores_into_any_store(f: &Fixture) {
    story(f);
    let text = dump(&f.ledger);
    let views = all_views(&f.ledger);
    for other in fixtures() {
        let target = other.project("moved", "elsewhere");
        let report = target.restore(&mut text.as_bytes(), &mut |_, _| {}).unwrap();
        assert_eq!(report.tx, f.ledger.head().unwrap().tx);
        target.verify(&mut |_, _| {}).unwrap();
        assert_eq!(dump(&target).replace("elsewhere", "shop"), text, "{}: the same dump", other.name);
        assert_eq!(all_views(&target), views, "{}: the same answers in every view", other.name);
        // Writing continues: a repeated batch is recognised, and a new one gets the next number.
        let client = Header { client_id: Some("c1".into()), git_commit: Some("abcdef12".into()), ..Header::default() };
        let writes = vec![valued("a", 1).into(), valued("b", 1).into(), edge("a", "b").into()];
        assert!(target.commit(&Batch { header: client, writes, ..Batch::on("main") }).unwrap().repeated);
        assert_eq!(put(&target, "main", "later", 1).tx, Some(report.tx.next()));
        let error = target.restore(&mut text.as_bytes(), &mut |_, _| {}).unwrap_err();
        assert_eq!(error.code, ErrorCode::ProjectNotEmpty);
    }
}

pub fn damage_to_a_dump_is_reported(f: &Fixture) {
    story(f);
    let text = dump(&f.ledger);
    let target = || f.project("damaged", &uuid::Uuid::now_v7().to_string());
    // A change of the text is detected at its transaction.
    for (from, to) in
        [("\"number\":2", "\"number\":3"), ("merge of pinned", "merge of nothing"), ("abcdef12", "abcdef13")]
    {
        assert!(text.contains(from), "{from}");
        let error = target().restore(&mut text.replace(from, to).as_bytes(), &mut |_, _| {}).unwrap_err();
        assert_eq!(error.code, ErrorCode::MalformedDump, "{from}");
        assert!(error.message.contains("does not match its hash"), "{}", error.message);
    }
    let forged = text.replace("\\\"x\\\":2", "\\\"x\\\":7");
    assert_ne!(forged, text);
    let error = target().restore(&mut forged.as_bytes(), &mut |_, _| {}).unwrap_err();
    assert_eq!(error.code, ErrorCode::MalformedDump);
    assert!(error.message.ends_with("the content of version 4.0 does not match its hash"), "{}", error.message);
}

pub fn a_broken_dump_restores_nothing(f: &Fixture) {
    story(f);
    let text = dump(&f.ledger);
    let lines: Vec<_> = text.lines().collect();
    let cut = lines[..lines.len() - 1].join("\n");
    let mut swapped = lines.clone();
    swapped.swap(1, 2);
    let mut garbage = lines.clone();
    garbage[3] = "{oops";
    let newer = text.replacen("\"format\":2", "\"format\":99", 1);
    for (broken, code, place) in [
        (String::new(), "truncated_dump", ""),
        (cut, "truncated_dump", ""),
        (swapped.join("\n"), "malformed_dump", "line 2"),
        (garbage.join("\n"), "malformed_dump", "line 4"),
        (lines[1..].join("\n"), "malformed_dump", "line 1"),
        (newer, "newer_format", "line 1"),
    ] {
        let target = f.project("broken", "target");
        let error = target.restore(&mut broken.as_bytes(), &mut |_, _| {}).unwrap_err();
        assert_eq!(error.code.name(), code);
        assert!(error.message.starts_with(place), "{}", error.message);
        assert!(target.head().is_err() || target.head().unwrap().tx == Tx::START, "nothing was restored");
    }
}
