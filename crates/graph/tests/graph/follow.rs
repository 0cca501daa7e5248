//! A projection that follows the log equals a newly built one, and contains what the ledger reports as visible.

use lukasa_graph::{Projection, Snapshot};
use lukasa_model::types::RelationshipType;
use lukasa_model::{Content, ErrorCode, FactNo, Time, View};
use lukasa_store::ledger::ViewSpec;
use lukasa_store::{Ledger, VersionFields};
use lukasa_testkit::history::{Step, perform, step};
use lukasa_testkit::{Fixture, ManualClock};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;

type EdgeContents = (String, FactNo, FactNo, Option<f64>, Option<f64>, Option<String>, i64);

/// Everything in a snapshot, independent of places.
#[derive(Debug, PartialEq)]
struct GraphContents {
    nodes: BTreeMap<FactNo, (String, Option<String>, Vec<String>, bool)>,
    edges: BTreeMap<FactNo, EdgeContents>,
    out: BTreeMap<FactNo, Vec<FactNo>>,
    into: BTreeMap<FactNo, Vec<FactNo>>,
    counts: (usize, usize),
}

fn contents_of(s: &Snapshot, things: FactNo) -> GraphContents {
    let (mut nodes, mut edges, mut out, mut into) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    // Ended nodes too, which lasting relationships show.
    let every = FactNo::each(FactNo::FIRST..things).filter_map(|no| s.find(no));
    for node in every {
        let labels = s.labels(node).iter().map(|l| l.to_string()).collect();
        nodes.insert(
            s.thing(node),
            (s.type_name(node).to_string(), s.key(node).map(Into::into), labels, s.is_ended(node)),
        );
        out.insert(s.thing(node), s.outgoing(node).edges.iter().map(|e| s.edge_thing(*e)).collect::<Vec<_>>());
        into.insert(s.thing(node), s.incoming(node).edges.iter().map(|e| s.edge_thing(*e)).collect::<Vec<_>>());
        for (other, edge, _) in s.outgoing(node).iter() {
            assert_eq!(s.ends(edge), (node, other));
            assert_eq!(s.find_edge(s.edge_thing(edge)), Some(edge));
            edges.insert(
                s.edge_thing(edge),
                (
                    s.edge_type(edge).to_string(),
                    s.thing(node),
                    s.thing(other),
                    s.confidence(edge),
                    s.weight(edge),
                    s.derivation(edge).map(|d| d.to_string()),
                    s.since(edge).0,
                ),
            );
        }
    }
    GraphContents { nodes, edges, out, into, counts: (s.node_count(), s.edge_count()) }
}

/// What is visible according to the ledger, read without snapshots.
fn visible(ledger: &Ledger, view: &View) -> (Vec<FactNo>, Vec<FactNo>, BTreeMap<FactNo, Vec<String>>) {
    let (mut nodes, mut edges, mut labels) = (vec![], vec![], BTreeMap::new());
    for row in ledger.stream_view(view, VersionFields::Content).unwrap() {
        let row = row.unwrap();
        match row.thing.ends {
            Some(_) => edges.push(row.thing.no),
            None if row.is_system() => {}
            None => {
                let content = Content::parse(row.statement.content.as_deref().unwrap()).unwrap();
                labels.insert(row.thing.no, content.labels.into_iter().collect());
                nodes.push(row.thing.no);
            }
        }
    }
    (nodes, edges, labels)
}

fn check(ledger: &Ledger, spec: ViewSpec, follower: &mut Option<Projection>) -> Result<(), TestCaseError> {
    let view = ledger.view(&spec).unwrap();
    let fresh = Projection::build(ledger, &view, &mut |_, _| {}).unwrap();
    let followed = match follower {
        Some(projection) => projection.advance(ledger, &view).unwrap(),
        None => false,
    };
    if !followed {
        *follower = Some(Projection::build(ledger, &view, &mut |_, _| {}).unwrap());
    }
    let things = ledger.head().unwrap().next_thing;
    let followed_contents = contents_of(follower.as_ref().unwrap().snapshot(), things);
    prop_assert_eq!(&followed_contents, &contents_of(fresh.snapshot(), things), "{:?}", spec);
    prop_assert_eq!(fresh.snapshot().nodes().len(), fresh.snapshot().node_count());
    prop_assert_eq!(follower.as_ref().unwrap().snapshot().until, fresh.snapshot().until);
    let (nodes, edges, labels) = visible(ledger, &view);
    prop_assert_eq!(followed_contents.nodes.iter().filter(|(_, n)| !n.3).map(|(no, _)| *no).collect::<Vec<_>>(), nodes);
    prop_assert_eq!(followed_contents.edges.keys().copied().collect::<Vec<_>>(), edges.clone());
    prop_assert_eq!(followed_contents.counts, (labels.len(), edges.len()));
    for (no, labels) in labels {
        prop_assert_eq!(&followed_contents.nodes[&no].2, &labels);
    }
    Ok(())
}

fn run(fixture: &Fixture, cases: u32) {
    let config =
        ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 2_000, ..ProptestConfig::default() };
    let count = std::cell::Cell::new(0);
    let tried = TestRunner::new(config).run(&prop::collection::vec(step(), 1..60), |steps: Vec<(u8, Step)>| {
        count.set(count.get() + 1);
        fixture.clock.set(ManualClock::START);
        let ledger = fixture.project("graph", &format!("p{}", count.get()));
        let mut followers: BTreeMap<String, Option<Projection>> = BTreeMap::new();
        for (i, one) in steps.iter().enumerate() {
            perform(&ledger, &fixture.clock, one);
            let Ok(registry) = ledger.registry() else { continue };
            for branch in registry.branches() {
                // Sometimes after each step, sometimes after several.
                if (i * 7 + branch.number.0 as usize * 5) % 11 < 4 {
                    check(&ledger, ViewSpec::on(&branch.name), followers.entry(branch.name.clone()).or_default())?;
                }
                // A valid time in the past, for which further facts are recorded later.
                if (i * 5 + branch.number.0 as usize * 3) % 7 < 2 {
                    let then = Time(ManualClock::START.0 + 10_000_000).to_string();
                    let spec = ViewSpec::on(&branch.name).as_of(&format!("time:{then}"));
                    check(&ledger, spec, followers.entry(format!("{} then", branch.name)).or_default())?;
                }
            }
        }
        Ok(())
    });
    if let Err(e) = tried {
        panic!("{e}");
    }
}

#[test]
fn following_equals_a_new_build_in_memory() {
    run(&Fixture::memory(), std::env::var("CASES").map_or(128, |c| c.parse().unwrap()));
}

#[test]
fn following_equals_a_new_build_on_sqlite() {
    run(&Fixture::sqlite(), 24);
}

#[test]
fn following_equals_a_new_build_on_postgres() {
    if let Some(fixture) = Fixture::postgres() {
        run(&fixture, 4);
    }
}

#[test]
fn a_type_that_becomes_lasting_requires_a_new_build() {
    use lukasa_model::batch::{End, PutObject, PutRelationship};
    use lukasa_model::{Batch, Write};
    let fixture = Fixture::memory();
    let ledger = &fixture.ledger;
    let write = |w: Vec<Write>| ledger.commit(&Batch { writes: w, ..Batch::on("main") }).unwrap();
    write(vec![
        PutObject::new("A", "x").into(),
        PutObject::new("A", "y").into(),
        PutRelationship::new("SEES", "x", "y").into(),
    ]);
    let view = || ledger.view(&ViewSpec::default()).unwrap();
    let mut projection = Projection::build(ledger, &view(), &mut |_, _| {}).unwrap();
    fixture.clock.advance(1);
    write(vec![End::new("y").into()]);
    assert!(projection.advance(ledger, &view()).unwrap());
    assert_eq!((projection.snapshot().node_count(), projection.snapshot().edge_count()), (1, 0));
    let lasting = RelationshipType { name: "SEES".into(), lasting: true, ..Default::default() };
    ledger.declare_relationship_type(&lasting, &Default::default()).unwrap();
    assert!(
        !projection.advance(ledger, &view()).unwrap(),
        "hidden relationships become visible, so it must be built again"
    );
    let rebuilt = Projection::build(ledger, &view(), &mut |_, _| {}).unwrap();
    assert_eq!((rebuilt.snapshot().node_count(), rebuilt.snapshot().edge_count()), (1, 1));
    // Also if no relationship of that type was visible when the graph was built.
    write(vec![PutObject::new("A", "y").into(), PutRelationship::new("HEARS", "x", "y").into()]);
    fixture.clock.advance(1);
    write(vec![End::new("y").into()]);
    let mut built_late = Projection::build(ledger, &view(), &mut |_, _| {}).unwrap();
    let lasting = RelationshipType { name: "HEARS".into(), lasting: true, ..Default::default() };
    ledger.declare_relationship_type(&lasting, &Default::default()).unwrap();
    assert!(!built_late.advance(ledger, &view()).unwrap());
}

#[test]
fn an_ended_object_moves_between_lasting_relationships() {
    use lukasa_model::batch::{End, PutObject, PutRelationship};
    use lukasa_model::id::{object_id, relationship_id};
    use lukasa_model::{Batch, Reference, Write};
    let fixture = Fixture::memory();
    let ledger = &fixture.ledger;
    let write = |w: Vec<Write>| {
        fixture.clock.advance(1);
        ledger.commit(&Batch { writes: w, ..Batch::on("main") }).unwrap()
    };
    write(vec![
        PutObject::new("E", "a").into(),
        PutObject::new("E", "b").into(),
        PutObject::new("F", "x").into(),
        PutObject::new("F", "z").into(),
        PutRelationship::new("INVOLVES", "a", "x").into(),
        PutRelationship::new("CALLS", "x", "z").into(),
    ]);
    let namespace = ledger.head().unwrap().namespace;
    let view = || ledger.view(&ViewSpec::default()).unwrap();
    let mut projection = Projection::build(ledger, &view(), &mut |_, _| {}).unwrap();
    // An edge is updated and then ends with its object, within one advance.
    let call = PutRelationship { confidence: Some(0.5), ..PutRelationship::new("CALLS", "x", "z") };
    write(vec![call.into()]);
    write(vec![End::new("x").into()]);
    assert!(projection.advance(ledger, &view()).unwrap());
    assert_eq!((projection.snapshot().node_count(), projection.snapshot().edge_count()), (3, 1));
    // The only relationship that shows the ended object ends, and another one begins.
    let (a, x) = (object_id(namespace, "E", "a"), object_id(namespace, "F", "x"));
    let first = relationship_id(namespace, "INVOLVES", a, x, "");
    let second = PutRelationship::new("INVOLVES", "b", Reference::Id(x));
    write(vec![End::new(Reference::Id(first)).into(), second.into()]);
    assert!(projection.advance(ledger, &view()).unwrap());
    let fresh = Projection::build(ledger, &view(), &mut |_, _| {}).unwrap();
    let things = ledger.head().unwrap().next_thing;
    assert_eq!(fresh.snapshot().edge_count(), 1);
    assert_eq!(contents_of(projection.snapshot(), things), contents_of(fresh.snapshot(), things));
}

#[test]
fn relationships_to_objects_of_lukasa_itself_are_refused() {
    use lukasa_model::Batch;
    use lukasa_model::batch::{PutObject, PutRelationship};
    use lukasa_store::ledger::NewRelease;
    let fixture = Fixture::memory();
    let ledger = &fixture.ledger;
    ledger.commit(&Batch::on("main").write(PutObject::new("Decision", "7"))).unwrap();
    ledger.create_release(&NewRelease { name: "1.0".into(), ..Default::default() }, &Default::default()).unwrap();
    let relate = Batch::on("main").write(PutRelationship::new("APPLIES_TO", "7", "Release:1.0"));
    assert_eq!(ledger.commit(&relate).unwrap_err().code, ErrorCode::SystemType);
}

#[test]
fn a_thousand_commits_of_updates_do_not_grow_memory() {
    use lukasa_model::batch::{End, PutObject, PutRelationship};
    use lukasa_model::id::{object_id, relationship_id};
    use lukasa_model::{Batch, Reference, Write};
    let fixture = Fixture::sqlite();
    let ledger = &fixture.ledger;
    let key = |i: u64| format!("src/file_{:03}.rs::f{i}", i / 20);
    let object = |i: u64, round: u64| {
        let labels = [format!("r{}", round % 5)].into();
        Write::from(PutObject { labels, ..PutObject::new("Function", &key(i)).property("round", round) })
    };
    let edge = |src: u64, dst: u64, round: u64| {
        let put = PutRelationship::new("CALLS", key(src).as_str(), key(dst).as_str());
        Write::from(PutRelationship { confidence: Some((round % 10) as f64 / 10.0), ..put })
    };
    const N: u64 = 1_000;
    let mut first = Batch::on("main");
    first.writes.extend((0..N).map(|i| object(i, 0)));
    first.writes.extend((0..N * 4).map(|e| edge(e % N, (e * 7 + e / N + 1) % N, 0)));
    let namespace = {
        ledger.commit(&first).unwrap();
        ledger.head().unwrap().namespace
    };
    let id = |i: u64| object_id(namespace, "Function", &key(i));
    let view = || ledger.view(&ViewSpec::default()).unwrap();
    let mut projection = Projection::build(ledger, &view(), &mut |_, _| {}).unwrap();
    let before = projection.snapshot().memory().bytes;
    let mut most = 0;
    for round in 1..=1_000u64 {
        fixture.clock.advance(1);
        let start = round * 20 % N;
        let mut batch = Batch::on("main");
        batch.writes.extend((start..start + 20).map(|i| object(i, round)));
        // Some edges are updated, some end, and ended ones begin again in the next round.
        for i in start..start + 20 {
            let dst = (i * 7 + 1) % N;
            batch.writes.push(edge(i, (i * 7 + 2) % N, round));
            let calls = relationship_id(namespace, "CALLS", id(i), id(dst), "");
            let again = round / (N / 20) % 2 == 1;
            batch.writes.push(if again { edge(i, dst, round) } else { End::new(Reference::Id(calls)).into() });
        }
        ledger.commit(&batch).unwrap();
        // A reader keeps the snapshot from before, as readers do.
        let held = std::sync::Arc::clone(projection.snapshot());
        assert!(projection.advance(ledger, &view()).unwrap());
        drop(held);
        most = most.max(projection.snapshot().memory().bytes);
    }
    assert!(most < before * 11 / 10, "{before} bytes have become {most}");
    let fresh = Projection::build(ledger, &view(), &mut |_, _| {}).unwrap();
    let things = ledger.head().unwrap().next_thing;
    assert_eq!(contents_of(projection.snapshot(), things), contents_of(fresh.snapshot(), things));
}
