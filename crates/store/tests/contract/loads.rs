//! Loads in parts: one transaction, equal to that of a single batch, or nothing.

use super::*;
use lukasa_model::transaction::Header;
use lukasa_model::{ErrorCode, Result, TransactionKind, Tx};
use lukasa_store::VersionFields;

fn parts(last: i64) -> Vec<Result<Vec<Write>>> {
    vec![
        Ok((0..40).map(|n| valued(&format!("s{n}"), n).into()).collect()),
        Ok(vec![valued("hub", last).into(), edge("Service:s1", "Service:hub").into()]),
        Ok((2..40).map(|n| edge(&format!("Service:s{n}"), "Service:hub").into()).collect()),
    ]
}

fn header() -> Header {
    Header { kind: TransactionKind::FullRebuild, author: Some("ann".into()), ..Header::default() }
}

pub fn a_load_is_one_transaction(f: &Fixture) {
    let l = &f.ledger;
    let done = l.load("main", &header(), parts(1).into_iter()).unwrap();
    assert_eq!((done.tx, done.objects, done.relationships, done.unchanged), (Some(Tx(1)), 41, 39, 0));
    let log = l.transactions(Tx(1), Tx(u64::MAX), 10).unwrap();
    assert_eq!((log.len(), log[0].objects, log[0].relationships), (1, 41, 39));
    assert_eq!((log[0].header.kind, log[0].header.author.as_deref()), (TransactionKind::FullRebuild, Some("ann")));
    assert_eq!(x(l, "main", "s7"), 7);
    let view = l.view(&ViewSpec::default()).unwrap();
    let hub = find(l, &ViewSpec::default(), "Service:hub").unwrap();
    assert_eq!(l.links(&view, &hub.thing, 100).unwrap().1, 39);
    verify(f);
    // Equal content creates no version; changed content creates a new version of the existing fact.
    let again = l.load("main", &header(), parts(1).into_iter()).unwrap();
    assert_eq!((again.tx, again.unchanged), (None, 80));
    f.clock.advance(1);
    let changed = l.load("main", &header(), parts(2).into_iter()).unwrap();
    assert_eq!((changed.tx, changed.objects, changed.relationships, changed.unchanged), (Some(Tx(2)), 1, 0, 79));
    assert_eq!(x(l, "main", "hub"), 2);
    assert_eq!(find(l, &ViewSpec::default(), "Service:hub").unwrap().statement.number, 2);
    // Relationships of existing objects, on a branch.
    branch(l, "side", "main", lukasa_model::BranchMode::Pinned);
    let ends: Vec<Result<Vec<Write>>> =
        vec![Ok(vec![End::new("Service:s3").into()]), Ok(vec![valued("s4", 44).into()])];
    l.load("side", &Header::default(), ends.into_iter()).unwrap();
    assert!(find(l, &ViewSpec::on("side"), "Service:s3").is_err());
    assert_eq!(x(l, "side", "s4"), 44);
    assert_eq!(x(l, "main", "s4"), 4);
    verify(f);
}

/// Later parts see what earlier parts wrote, for new and for existing facts.
pub fn parts_build_on_earlier_ones(f: &Fixture) {
    let l = &f.ledger;
    l.load("main", &header(), parts(1).into_iter()).unwrap();
    f.clock.advance(1);
    let ended: Vec<Result<Vec<Write>>> =
        vec![Ok(vec![End::new("Service:s1").into()]), Ok(vec![edge("Service:s1", "Service:s2").into()])];
    assert_eq!(l.load("main", &header(), ended.into_iter()).unwrap_err().code, ErrorCode::DanglingEnd);
    let grown: Vec<Result<Vec<Write>>> = vec![
        Ok(vec![valued("new", 1).into(), valued("s1", 10).into()]),
        Ok(vec![valued("newer", 2).into()]),
        Ok(vec![edge("Service:new", "Service:s1").into(), edge("Service:newer", "Service:new").into()]),
    ];
    let done = l.load("main", &header(), grown.into_iter()).unwrap();
    assert_eq!((done.tx, done.objects, done.relationships, done.unchanged), (Some(Tx(2)), 3, 2, 0));
    assert_eq!(x(l, "main", "s1"), 10);
    assert_eq!(x(l, "main", "newer"), 2);
    verify(f);
}

pub fn a_load_that_fails_leaves_nothing(f: &Fixture) {
    let l = &f.ledger;
    put(l, "main", "before", 1);
    let dangling: Vec<Result<Vec<Write>>> =
        vec![Ok(vec![valued("a", 1).into()]), Ok(vec![edge("Service:a", "Service:missing").into()])];
    assert_eq!(l.load("main", &header(), dangling.into_iter()).unwrap_err().code, ErrorCode::DanglingEnd);
    let broken: Vec<Result<Vec<Write>>> =
        vec![Ok(vec![valued("a", 1).into()]), Err(Error::invalid(ErrorCode::NoInput, "there is nothing to read"))];
    assert_eq!(l.load("main", &header(), broken.into_iter()).unwrap_err().code, ErrorCode::NoInput);
    let named = Header { client_id: Some("x".into()), ..Header::default() };
    assert_eq!(l.load("main", &named, parts(1).into_iter()).unwrap_err().code, ErrorCode::ClientIdInLoad);
    assert_eq!(l.head().unwrap().tx, Tx(1));
    assert!(find(l, &ViewSpec::default(), "Service:a").is_err());
    let empty: Vec<Result<Vec<Write>>> = vec![];
    assert_eq!(l.load("main", &header(), empty.into_iter()).unwrap().tx, None);
    verify(f);
}

pub fn objects_are_found_by_the_beginning_of_their_key(f: &Fixture) {
    let l = &f.ledger;
    let file = |key: &str| PutObject::new("FILE", key);
    let writes: Vec<Write> = vec![
        file("src/a.py").into(),
        file("src/a.pyi").into(),
        file("src/ä.py").into(),
        file("src/z_.py").into(),
        object("src/a.py::f").into(),
        object("src/a.py::g").into(),
        object("src/A.py::f").into(),
        object("src/a%py::f").into(),
    ];
    write(l, "main", writes);
    end(l, "main", "src/a.py::g");
    let view = l.view(&ViewSpec::default()).unwrap();
    let keys = |type_name: Option<&str>, prefix: &str| -> Vec<String> {
        let found = l.states_with_prefix(&view, type_name, prefix, VersionFields::Header).unwrap();
        found.iter().map(|s| s.thing.key.as_deref().unwrap().to_owned()).collect()
    };
    assert_eq!(
        keys(None, "src/a.py::"),
        ["src/a.py::f"],
        "ended objects are left out; case matters and wildcards are literal"
    );
    assert_eq!(keys(Some("FILE"), ""), ["src/a.py", "src/a.pyi", "src/z_.py", "src/ä.py"], "in the order of bytes");
    assert_eq!(keys(Some("FILE"), "src/a"), ["src/a.py", "src/a.pyi"]);
    assert_eq!(keys(None, "src/ä"), ["src/ä.py"]);
    assert_eq!(keys(None, "src/z_"), ["src/z_.py"]);
    assert_eq!(keys(Some("Nothing"), ""), Vec::<String>::new());
    assert_eq!(keys(None, "\u{10ffff}"), Vec::<String>::new());
}
