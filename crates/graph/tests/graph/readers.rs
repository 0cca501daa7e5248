//! Many concurrent readers with a writer, and many graphs within a memory limit.

use lukasa_graph::{Projections, Snapshot};
use lukasa_model::batch::{End, PutObject, PutRelationship};
use lukasa_model::{Batch, BranchMode, Time, Tx, Write};
use lukasa_store::Ledger;
use lukasa_store::ledger::{NewBranch, ViewSpec};
use lukasa_testkit::{Fixture, fixtures};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const OBJECTS: u64 = 40;

/// Writes that mark every object and edge with generation `g`. Odd and even generations have different edges.
fn generation(g: u64) -> Vec<Write> {
    let key = |i: u64| format!("k{}", i % OBJECTS);
    let objects = (0..OBJECTS).map(|i| {
        let labels = [format!("g{g}")].into();
        Write::from(PutObject { labels, ..PutObject::new("T", &key(i)) })
    });
    let edges = (0..OBJECTS).map(|i| {
        let step = 1 + g % 2;
        let put = PutRelationship::new("NEXT", key(i).as_str(), key(i + step).as_str());
        Write::from(PutRelationship { weight: Some(g as f64), ..put })
    });
    objects.chain(edges).collect()
}

fn ends(ledger: &Ledger, g: u64) -> Vec<Write> {
    use lukasa_model::id::{object_id, relationship_id};
    let namespace = ledger.head().unwrap().namespace;
    let id = |i: u64| object_id(namespace, "T", &format!("k{}", i % OBJECTS));
    let edge = |i: u64| relationship_id(namespace, "NEXT", id(i), id(i + 1 + (g + 1) % 2), "");
    (0..OBJECTS).map(|i| End::new(lukasa_model::Reference::Id(edge(i))).into()).collect()
}

/// The generation of a snapshot. Panics unless everything in it is of the same generation.
fn whole(s: &Snapshot) -> u64 {
    assert_eq!((s.node_count() as u64, s.edge_count() as u64), (OBJECTS, OBJECTS));
    let nodes = s.nodes();
    let g: u64 = s.labels(nodes[0])[0][1..].parse().unwrap();
    for node in &nodes {
        assert_eq!(*s.labels(*node)[0], *format!("g{g}"), "part of a batch");
        let out = s.outgoing(*node);
        assert_eq!((out.len(), s.incoming(*node).len()), (1, 1), "part of a batch");
        assert_eq!(s.weight(out.edges[0]), Some(g as f64), "part of a batch");
    }
    g
}

#[test]
fn no_reader_sees_part_of_a_batch() {
    for fixture in fixtures() {
        let ledger = &fixture.ledger;
        ledger.commit(&Batch { writes: generation(0), ..Batch::on("main") }).unwrap();
        let projections = Projections::new(usize::MAX);
        let (done, reads) = (AtomicBool::new(false), AtomicU64::new(0));
        let commits = if fixture.name == "sqlite" { 120 } else { 30 };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut last = 0;
                    while !done.load(Ordering::Relaxed) {
                        let (view, snapshot) =
                            projections.view_graph(ledger, &ViewSpec::default(), &mut |_, _| {}).unwrap();
                        let g = whole(&snapshot);
                        assert_eq!(Tx(g + 1), view.known, "{}: the view matches the graph", fixture.name);
                        assert!(g >= last, "a later read is never older");
                        last = g;
                        // A snapshot does not change.
                        if g.is_multiple_of(7) {
                            std::thread::yield_now();
                            assert_eq!(whole(&snapshot), g);
                        }
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            scope.spawn(|| {
                for g in 1..=commits {
                    let mut writes = generation(g);
                    writes.extend(ends(ledger, g));
                    fixture.clock.advance(1);
                    ledger.commit(&Batch { writes, ..Batch::on("main") }).unwrap();
                }
                done.store(true, Ordering::Relaxed);
            });
        });
        let (_, snapshot) = projections.view_graph(ledger, &ViewSpec::default(), &mut |_, _| {}).unwrap();
        assert_eq!(whole(&snapshot), commits);
        assert!(reads.load(Ordering::Relaxed) > 8);
    }
}

fn fill(ledger: &Ledger, objects: u64) {
    let writes = (0..objects).map(|i| PutObject::new("T", &format!("k{i}")).into()).collect();
    ledger.commit(&Batch { writes, ..Batch::on("main") }).unwrap();
}

#[test]
fn the_least_recently_used_graph_is_dropped_first() {
    let fixture = Fixture::memory();
    let ledgers: Vec<_> = (0..4).map(|i| fixture.project("t", &format!("p{i}"))).collect();
    ledgers.iter().for_each(|l| fill(l, 300));
    let look = |p: &Projections, i: usize| p.view_graph(&ledgers[i], &ViewSpec::default(), &mut |_, _| {}).unwrap().1;
    let one = look(&Projections::new(usize::MAX), 0).memory().bytes;
    let projections = Projections::new(one * 5 / 2);
    let held = |p: &Projections| {
        let mut names: Vec<_> = p.uses().iter().map(|u| u.scope.project.clone()).collect();
        names.sort();
        names
    };
    let first = look(&projections, 0);
    look(&projections, 1);
    assert_eq!(held(&projections), ["p0", "p1"]);
    look(&projections, 0);
    look(&projections, 2);
    assert_eq!(held(&projections), ["p0", "p2"], "p1 is the least recently used");
    assert!(projections.uses().iter().map(|u| u.bytes).sum::<usize>() <= projections.limit());
    assert_eq!(first.node_count(), 300, "the owner of a snapshot can still read it");
    look(&projections, 1);
    assert_eq!(look(&projections, 1).node_count(), 300, "a dropped graph is loaded again");
    // A graph that is larger than the limit is still served, as the only one.
    let tight = Projections::new(1);
    assert_eq!((look(&tight, 0).node_count(), look(&tight, 3).node_count()), (300, 300));
    assert_eq!(held(&tight), ["p3"]);
}

#[test]
fn a_graph_of_the_past_is_built_once_and_then_advanced() {
    for fixture in fixtures() {
        let ledger = &fixture.ledger;
        fill(ledger, 5);
        let then = fixture.clock.advance(10);
        fixture.clock.advance(10);
        ledger.commit(&Batch::on("main").write(PutObject::new("T", "late"))).unwrap();
        let projections = Projections::new(usize::MAX);
        let look = |spec: &ViewSpec| projections.view_graph(ledger, spec, &mut |_, _| {}).unwrap();
        let past = ViewSpec::default().as_of(&format!("time:{then}"));
        assert_eq!(look(&past).1.node_count(), 5);
        assert_eq!(look(&ViewSpec::default()).1.node_count(), 6);
        assert_eq!(look(&ViewSpec::default().as_of("tx:1")).1.node_count(), 5);
        assert_eq!(projections.uses().len(), 3);
        let (_, first) = look(&past);
        assert!(std::sync::Arc::ptr_eq(&first, &look(&past).1), "{}: cached", fixture.name);
        // A fact is recorded for that valid time.
        let backfill = PutObject { valid_from: Some(Time(then.0 - 1)), ..PutObject::new("T", "was") };
        ledger.commit(&Batch::on("main").write(backfill)).unwrap();
        let (view, moved) = look(&past);
        assert_eq!((moved.node_count(), first.node_count(), view.known), (6, 5, Tx(3)));
        assert_eq!(projections.uses().len(), 3, "{}: advanced, not built again", fixture.name);
        let early = ViewSpec::default().as_of("time:1970-01-01");
        assert_eq!(look(&early).1.node_count(), 0, "before the first fact there is nothing");
    }
}

#[test]
fn pinned_snapshots_share_memory_with_the_head() {
    let fixture = Fixture::memory();
    let ledger = &fixture.ledger;
    fill(ledger, 2_000);
    let projections = Projections::new(usize::MAX);
    let look = || projections.view_graph(ledger, &ViewSpec::default(), &mut |_, _| {}).unwrap();
    let (view, snapshot) = look();
    projections.pin(ledger.scope(), &view, &snapshot);
    drop(snapshot);
    fixture.clock.advance(1);
    ledger.commit(&Batch::on("main").write(PutObject::new("T", "new"))).unwrap();
    assert_eq!(look().1.node_count(), 2_001);
    assert_eq!(projections.at(ledger, &view, &mut |_, _| {}).unwrap().node_count(), 2_000);
    let pin = projections.uses().into_iter().find(|u| u.past.is_some()).unwrap();
    let head = projections.uses().into_iter().find(|u| u.past.is_none()).unwrap();
    assert!(pin.bytes < head.bytes / 4, "{} of {}", pin.bytes, head.bytes);
    for i in 0..100 {
        let view = lukasa_model::View { valid: Time(view.valid.0 + i), ..view.clone() };
        projections.pin(ledger.scope(), &view, &look().1);
    }
    assert!(projections.uses().len() < 70, "the number of pins is limited");
}

#[test]
fn a_graph_advances_with_the_clock_alone() {
    for fixture in fixtures() {
        let ledger = &fixture.ledger;
        let now = fixture.clock.advance(1);
        let at = |s: i64| Some(Time(now.0 + s * 1_000_000));
        let batch = Batch::on("main")
            .write(PutObject::new("T", "always"))
            .write(PutObject { valid_from: at(10), valid_to: at(20), ..PutObject::new("T", "guest") })
            .write(PutRelationship { valid_from: at(10), ..PutRelationship::new("SEES", "always", "guest") });
        ledger.commit(&batch).unwrap();
        let projections = Projections::new(usize::MAX);
        let sizes = || {
            let (_, s) = projections.view_graph(ledger, &ViewSpec::default(), &mut |_, _| {}).unwrap();
            (s.node_count(), s.edge_count())
        };
        assert_eq!(sizes(), (1, 0));
        fixture.clock.advance(12);
        assert_eq!(sizes(), (2, 1), "{}: it has begun", fixture.name);
        fixture.clock.advance(12);
        assert_eq!(sizes(), (1, 0), "{}: it has ended", fixture.name);
    }
}

#[test]
fn each_branch_has_its_own_graph() {
    let fixture = Fixture::memory();
    let ledger = &fixture.ledger;
    fill(ledger, 3);
    let new = NewBranch { name: "work".into(), mode: BranchMode::Pinned, ..NewBranch::default() };
    ledger.create_branch(&new, &Default::default()).unwrap();
    let projections = Projections::new(usize::MAX);
    let count =
        |branch: &str| projections.view_graph(ledger, &ViewSpec::on(branch), &mut |_, _| {}).unwrap().1.node_count();
    assert_eq!((count("main"), count("work")), (3, 3));
    ledger.commit(&Batch::on("work").write(PutObject::new("T", "w"))).unwrap();
    ledger.commit(&Batch::on("main").write(PutObject::new("T", "m")).write(PutObject::new("T", "n"))).unwrap();
    assert_eq!((count("main"), count("work")), (5, 4));
    ledger.move_fork("work", None, &Default::default()).unwrap();
    assert_eq!(count("work"), 6, "after its fork was moved, the graph is built again");
}
