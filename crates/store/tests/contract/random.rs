//! Random histories on all stores at once: the same rows, the same answers, and those of the oracle.

use super::*;
use crate::dumps::dump;
use crate::oracle::{all_views, naive_views};
use lukasa_model::BranchMode;
use lukasa_model::transaction::Header;
use lukasa_store::ledger::NewRelease;
use lukasa_testkit::{Fixture, ManualClock};
use proptest::prelude::*;

/// One step of a history. Numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Step {
    Put { branch: u8, key: u8, value: u8, when: When },
    Link { branch: u8, src: u8, dst: u8, value: u8, lasting: bool },
    End { branch: u8, key: u8, when: When },
    Both { branch: u8, keys: (u8, u8), value: u8 },
    Branch { parent: u8, pinned: bool },
    Fork { branch: u8, tx: u8 },
    Merge { source: u8, target: u8, key: Option<u8> },
    Release { branch: u8 },
    Again { client: u8, value: u8 },
}

#[derive(Clone, Copy, Debug)]
enum When {
    Now,
    From(i8),
    Between(i8, u8),
    Only(i8, u8),
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        4 => Just(When::Now),
        1 => (-20i8..10).prop_map(When::From),
        1 => (-20i8..10, 1u8..20).prop_map(|(a, b)| When::Between(a, b)),
        1 => (-20i8..10, 1u8..20).prop_map(|(a, b)| When::Only(a, b)),
    ]
}

fn step() -> impl Strategy<Value = (u8, Step)> {
    let n = any::<u8>;
    let step = prop_oneof![
        6 => (n(), n(), 0u8..3, when()).prop_map(|(branch, key, value, when)| Step::Put { branch, key, value, when }),
        4 => (n(), n(), n(), 0u8..3, any::<bool>())
            .prop_map(|(branch, src, dst, value, lasting)| Step::Link { branch, src, dst, value, lasting }),
        2 => (n(), n(), when()).prop_map(|(branch, key, when)| Step::End { branch, key, when }),
        1 => (n(), n(), n(), 0u8..3).prop_map(|(branch, a, b, value)| Step::Both { branch, keys: (a, b), value }),
        2 => (n(), any::<bool>()).prop_map(|(parent, pinned)| Step::Branch { parent, pinned }),
        1 => (n(), n()).prop_map(|(branch, tx)| Step::Fork { branch, tx }),
        3 => (n(), n(), prop::option::of(n())).prop_map(|(source, target, key)| Step::Merge { source, target, key }),
        1 => n().prop_map(|branch| Step::Release { branch }),
        1 => (0u8..2, 0u8..2).prop_map(|(client, value)| Step::Again { client, value }),
    ];
    (0u8..3, step)
}

/// Takes a step; what came of it, so that stores can be compared.
fn take(l: &Ledger, clock: &ManualClock, (seconds, step): &(u8, Step)) -> String {
    clock.advance(i64::from(*seconds));
    let now = lukasa_store::Clock::now(clock);
    let branches: Vec<String> =
        l.registry().map_or_else(|_| vec!["main".into()], |r| r.branches().iter().map(|b| b.name.clone()).collect());
    let branch = |n: &u8| branches[*n as usize % branches.len()].clone();
    let key = |n: &u8| format!("k{}", n % 5);
    let at = |s: i8| Some(Time(now.0 + i64::from(s) * 1_000_000));
    let span = |s: i8, len: u8| Some(Time(now.0 + (i64::from(s) + i64::from(len)) * 1_000_000));
    let commit = |branch: String, writes: Vec<Write>| match l.commit(&Batch { writes, ..Batch::on(&branch) }) {
        Ok(done) => format!("{:?} {:?}", done.tx, done.written),
        Err(e) => e.code.to_string(),
    };
    match step {
        Step::Put { branch: b, key: k, value, when } => {
            let put = valued(&key(k), *value);
            let put = match *when {
                When::Now => put,
                When::From(s) => PutObject { valid_from: at(s), ..put },
                When::Between(s, len) => PutObject { valid_from: at(s), valid_to: span(s, len), ..put },
                When::Only(s, len) => {
                    PutObject { valid_from: at(s), valid_to: span(s, len), only_this_period: true, ..put }
                }
            };
            commit(branch(b), vec![put.into()])
        }
        Step::Link { branch: b, src, dst, value, lasting } => {
            let type_name = if *lasting { "INVOLVES" } else { "CALLS" };
            let put = PutRelationship {
                weight: Some(f64::from(*value)),
                ..PutRelationship::new(type_name, key(src).as_str(), key(dst).as_str())
            };
            commit(branch(b), vec![put.into()])
        }
        Step::End { branch: b, key: k, when } => {
            let (from, to) = match *when {
                When::Now => (None, None),
                When::From(s) => (at(s), None),
                When::Between(s, len) | When::Only(s, len) => (at(s), span(s, len)),
            };
            commit(branch(b), vec![End { from, to, ..End::new(key(k).as_str()) }.into()])
        }
        Step::Both { branch: b, keys, value } => {
            let (one, two) = (key(&keys.0), key(&keys.1));
            commit(
                branch(b),
                vec![
                    valued(&one, *value).into(),
                    valued(&format!("{two}-too"), *value).into(),
                    edge(&one, &format!("{two}-too")).into(),
                ],
            )
        }
        Step::Branch { parent, pinned } => {
            let mode = if *pinned { BranchMode::Pinned } else { BranchMode::Live };
            if branches.len() > 4 {
                return "enough".into();
            }
            let new =
                NewBranch { name: format!("b{}", branches.len()), parent: branch(parent), mode, ..Default::default() };
            l.create_branch(&new, &Header::default()).map_or_else(|e| e.code.into(), |b| format!("{b:?}"))
        }
        Step::Fork { branch: b, tx } => {
            let head = l.head().map_or(0, |h| h.tx);
            let moved = l.move_fork(&branch(b), Some(u64::from(*tx) % (head + 1)), &Header::default());
            moved.map_or_else(|e| e.code.into(), |b| format!("{b:?}"))
        }
        Step::Merge { source, target, key: only } => {
            let keys = only.iter().map(|k| Reference::from(key(k).as_str())).collect::<Vec<_>>();
            let whole = keys.is_empty();
            let request = MergeRequest { source: branch(source), target: branch(target), keys, ..Default::default() };
            let dry = l.merge(&MergeRequest { dry_run: true, ..request.clone() });
            let wet = l.merge(&request);
            match (&dry, &wet) {
                (Ok(dry), Ok(wet)) => assert_eq!(*dry, MergeReport { tx: None, ..wet.clone() }),
                (Err(dry), Err(wet)) => assert_eq!(dry.code, wet.code),
                _ => panic!("the dry run says something else: {dry:?} and {wet:?}"),
            }
            if let Ok(done) = &wet
                && done.conflicts.is_empty()
            {
                let again = l.merge(&request).unwrap();
                assert_eq!((again.tx, again.items.len()), (None, 0), "merging again at once changes nothing");
                if whole && done.tx.is_some() {
                    agree(l, &request.source, &request.target);
                }
            }
            wet.map_or_else(|e| e.code.into(), |report| format!("{report:?}"))
        }
        Step::Release { branch: b } => {
            let name = format!("r{}", l.registry().map_or(0, |r| r.releases().count()));
            let made =
                l.create_release(&NewRelease { name, branch: branch(b), ..Default::default() }, &Header::default());
            made.map_or_else(|e| e.code.into(), |r| format!("{r:?}"))
        }
        Step::Again { client, value } => {
            let header = Header { client_id: Some(format!("c{client}")), ..Header::default() };
            match l.commit(&Batch { header, ..Batch::on("main") }.write(valued("again", *value))) {
                Ok(done) => format!("{:?} {}", done.tx, done.repeated),
                Err(e) => e.code.into(),
            }
        }
    }
}

/// After a merge, the target has nothing left to take, and taking it back leaves both the same.
fn agree(l: &Ledger, source: &str, target: &str) {
    let request = MergeRequest { source: target.into(), target: source.into(), dry_run: true, ..Default::default() };
    if let Ok(back) = l.merge(&request) {
        assert!(back.conflicts.is_empty(), "the way back is free: {back:?}");
        assert_eq!(back.counts.merged, 0, "there is nothing left to weave together");
    }
}

fn check(fixtures: &[&Fixture], steps: &[(u8, Step)], project: &str) -> Result<(), TestCaseError> {
    let ledgers: Vec<_> = fixtures.iter().map(|f| f.project("random", project)).collect();
    for f in fixtures {
        f.clock.set(ManualClock::START);
    }
    for step in steps {
        let told: Vec<_> = fixtures.iter().zip(&ledgers).map(|(f, l)| take(l, &f.clock, step)).collect();
        for other in &told[1..] {
            prop_assert_eq!(&told[0], other, "{:?}", step);
        }
    }
    if ledgers[0].head().is_err() {
        return Ok(());
    }
    let (rows, views) = (dump(&ledgers[0]), naive_views(&ledgers[0]));
    for (fixture, ledger) in fixtures.iter().zip(&ledgers) {
        prop_assert_eq!(&dump(ledger), &rows, "{}: the same rows", fixture.name);
        prop_assert_eq!(&all_views(ledger), &views, "{}: what the rules say", fixture.name);
        let verified = ledger.verify(&mut |_, _| {});
        prop_assert!(verified.is_ok(), "{:?}", verified);
    }
    Ok(())
}

fn run(fixtures: &[&Fixture], cases: u32) {
    let config =
        ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 2_000, ..ProptestConfig::default() };
    let count = std::cell::Cell::new(0);
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&prop::collection::vec(step(), 1..40), |steps| {
        count.set(count.get() + 1);
        check(fixtures, &steps, &format!("p{}", count.get()))
    });
    if let Err(e) = result {
        panic!("{e}");
    }
}

#[test]
fn memory_and_sqlite_agree_with_the_rules() {
    run(&[&Fixture::memory(), &Fixture::sqlite()], std::env::var("CASES").map_or(96, |c| c.parse().unwrap()));
}

#[test]
fn all_three_stores_agree_with_the_rules() {
    if let Some(postgres) = Fixture::postgres() {
        run(&[&Fixture::memory(), &Fixture::sqlite(), &postgres], 12);
    }
}
