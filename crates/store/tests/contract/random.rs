//! Random histories on all stores at once: the same rows, the same answers, and those of the oracle.

use crate::dumps::dump;
use crate::oracle::{all_views, naive_views};
use lukasa_testkit::history::{Step, perform, step};
use lukasa_testkit::{Fixture, ManualClock};
use proptest::prelude::*;

fn check(fixtures: &[&Fixture], steps: &[(u8, Step)], project: &str) -> Result<(), TestCaseError> {
    let ledgers: Vec<_> = fixtures.iter().map(|f| f.project("random", project)).collect();
    for f in fixtures {
        f.clock.set(ManualClock::START);
    }
    for step in steps {
        let results: Vec<_> = fixtures.iter().zip(&ledgers).map(|(f, l)| perform(l, &f.clock, step)).collect();
        for other in &results[1..] {
            prop_assert_eq!(&results[0], other, "{:?}", step);
        }
    }
    if ledgers[0].head().is_err() {
        return Ok(());
    }
    let (rows, views) = (dump(&ledgers[0]), naive_views(&ledgers[0]));
    for (fixture, ledger) in fixtures.iter().zip(&ledgers) {
        prop_assert_eq!(&dump(ledger), &rows, "{}: the same rows", fixture.name);
        prop_assert_eq!(&all_views(ledger), &views, "{}: the views of the rules", fixture.name);
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
