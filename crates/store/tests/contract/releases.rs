//! Releases, tags, and the differences between releases.

use super::*;
use lukasa_model::ErrorCode;
use lukasa_model::transaction::Header;
use lukasa_model::types::Tag;
use lukasa_store::VersionFields;
use lukasa_store::ledger::NewRelease;
use serde_json::json;

fn release(l: &Ledger, name: &str, branch: &str) -> lukasa_model::types::Release {
    let new = NewRelease { name: name.into(), branch: branch.into(), ..NewRelease::default() };
    l.create_release(&new, &Header::default()).unwrap_or_else(|e| panic!("{e:?}"))
}

pub fn a_release_never_changes(f: &Fixture) {
    let l = &f.ledger;
    write(l, "main", vec![valued("a", 1).into(), valued("b", 1).into(), edge("a", "b").into()]);
    branch(l, "live", "main", lukasa_model::BranchMode::Live);
    let made = release(l, "1.0", "live");
    f.clock.advance(1);
    write(l, "main", vec![valued("a", 2).into(), End::new("b").into(), valued("c", 1).into()]);
    // A later backfill of its time does not change it either.
    write(l, "main", vec![PutObject { valid_from: Some(Time(0)), ..valued("a", 3) }.into()]);
    let view = l.view(&ViewSpec::default().as_of("release:1.0")).unwrap();
    let rows: Vec<_> =
        l.stream_view(&view, VersionFields::Content).unwrap().map(Result::unwrap).filter(|r| !r.is_system()).collect();
    let members = made.objects + made.relationships;
    assert_eq!(rows.len() as u64, members, "exactly its members");
    assert_eq!(x_at(l, "release:1.0", "a"), 1);
    assert_eq!(x_at(l, "1.0", "b"), 1);
    let fixed = ViewSpec { branch: Some("main".into()), ..ViewSpec::default().as_of("release:1.0") };
    assert_eq!(l.view(&fixed).unwrap_err().code, ErrorCode::ReleaseIsFixed);
    verify(f);
}

pub fn names_are_unique_regardless_of_case(f: &Fixture) {
    let l = &f.ledger;
    put(l, "main", "a", 1);
    release(l, "Spring", "main");
    let new = |name: &str, base: Option<&str>| NewRelease {
        name: name.into(),
        base: base.map(Into::into),
        ..NewRelease::default()
    };
    let code = |new| l.create_release(&new, &Header::default()).unwrap_err().code;
    assert_eq!(code(new("SPRING", None)), ErrorCode::ReleaseExists);
    assert_eq!(code(new("2", Some("winter"))), ErrorCode::UnknownRelease);
    assert_eq!(l.registry().unwrap().release("sPRING").unwrap().name, "Spring");
}

pub fn an_empty_release(f: &Fixture) {
    let l = &f.ledger;
    put(l, "main", "a", 1);
    f.clock.advance(1);
    end(l, "main", "a");
    let made = release(l, "0", "");
    assert_eq!((made.objects, made.relationships), (0, 0));
    verify(f);
}

pub fn diff_of_releases(f: &Fixture) {
    let l = &f.ledger;
    write(l, "main", vec![valued("a", 1).into(), valued("b", 1).into(), valued("c", 1).into()]);
    release(l, "1", "main");
    f.clock.advance(1);
    write(l, "main", vec![valued("a", 2).into(), End::new("b").into(), valued("d", 1).into(), edge("a", "d").into()]);
    release(l, "2", "main");
    let view = |name: &str| l.view(&ViewSpec::default().as_of(&format!("release:{name}"))).unwrap();
    let diff = l.diff(&view("1"), &view("2"), 99).unwrap();
    let names: Vec<_> = diff.changes.iter().filter_map(|c| c.thing.key.as_deref().map(|k| (c.class, k))).collect();
    use lukasa_store::ledger::ChangeClass::{Added, Modified, Removed};
    assert_eq!(names, [(Modified, "a"), (Removed, "b"), (Added, "d")]);
    assert_eq!((diff.added, diff.removed, diff.modified), (2, 1, 1), "the edge counts, the release itself does not");
}

pub fn tags_point_to_releases(f: &Fixture) {
    let l = &f.ledger;
    put(l, "main", "a", 1);
    release(l, "1.0", "main");
    f.clock.advance(1);
    put(l, "main", "a", 2);
    release(l, "2.0", "main");
    let tag = |name: &str, release: &str| Tag { name: name.into(), release: release.into(), description: None };
    let header = Header::default();
    l.create_tag(&tag("stable", "1.0"), &header).unwrap();
    assert_eq!(x_at(l, "tag:stable", "a"), 1);
    assert_eq!(l.create_tag(&tag("Stable", "2.0"), &header).unwrap_err().code, ErrorCode::TagExists);
    assert_eq!(l.create_tag(&tag("lts", "9"), &header).unwrap_err().code, ErrorCode::UnknownRelease);
    l.describe_tag("stable", Some("for everyone".into()), &header).unwrap();
    let known = l.registry().unwrap();
    assert_eq!(known.tag("stable").unwrap().description.as_deref(), Some("for everyone"));
    l.delete_tag("stable", &header).unwrap();
    assert_eq!(l.view(&ViewSpec::default().as_of("tag:stable")).unwrap_err().code, ErrorCode::UnknownTag);
    l.create_tag(&tag("stable", "2.0"), &header).unwrap();
    assert_eq!(x_at(l, "stable", "a"), 2);
    verify(f);
}

pub fn diff_since_every_kind_of_moment(f: &Fixture) {
    let l = &f.ledger;
    let by = |agent: &str, commit: &str, write: Write| {
        let header = Header { agent: Some(agent.into()), git_commit: Some(commit.into()), ..Header::default() };
        l.commit(&Batch { header, writes: vec![write], ..Batch::on("main") }).unwrap();
        f.clock.advance(10);
    };
    let start = f.clock.advance(0);
    by("ann", "aaaaaaa1", valued("a", 1).into());
    by("bob", "bbbbbbb2", valued("b", 1).into());
    by("bob", "ccccccc3", valued("a", 2).into());
    by("cat", "ddddddd4", End::new("b").into());
    let since = |moment: &str| {
        let before = l.view_since(None, moment).unwrap();
        let diff = l.diff(&before, &l.view(&ViewSpec::default()).unwrap(), 99).unwrap();
        (diff.added, diff.removed, diff.modified)
    };
    for (moment, want) in [
        ("tx:1", (0, 0, 1)),
        ("tx:2", (0, 1, 1)),
        ("tx:4", (0, 0, 0)),
        (time(start).as_str(), (0, 0, 1)),
        ("commit:bbbbbbb", (0, 1, 1)),
        ("agent:ann", (0, 0, 1)),
        ("agent:bob", (0, 1, 0)),
    ] {
        assert_eq!(since(moment), want, "{moment}");
    }
    assert_eq!(json!(1), x_at(l, "commit:aaaaaaa", "a"));
    // A later backfill of an earlier time counts as a change since then.
    let now = f.clock.advance(10);
    f.clock.advance(10);
    write(l, "main", vec![PutObject { valid_from: Some(Time(0)), ..valued("old", 1) }.into()]);
    assert_eq!(since(&time(now)), (1, 0, 0));
}
