//! Derived data: vectors, jobs and marks, separate from facts and from other projects.

use super::*;
use lukasa_model::json::Hash;
use lukasa_model::{ErrorCode, ErrorKind, Scope};
use lukasa_store::Derived;
use lukasa_store::derived::{ERROR_CHARS, Job, JobCounts, JobFailure, JobLane, NewJob, Vector};
use std::collections::BTreeSet;
use std::sync::Barrier;

const MINUTE: i64 = 60_000_000;
const KIND: &str = "embedding";

fn ready(f: &Fixture) -> (&dyn Derived, Scope) {
    put(&f.ledger, "main", "a", 1);
    (f.store.derived(), f.ledger.scope().clone())
}

fn at(minutes: i64) -> Time {
    Time(lukasa_testkit::ManualClock::START.0 + minutes * MINUTE)
}

fn input(text: &str) -> Hash {
    Hash::of(text.as_bytes())
}

fn vector(text: &str, made: i64, redacted: u32) -> Vector {
    Vector { input: input(text), bytes: text.as_bytes().to_vec(), made_at: at(made), redacted }
}

fn job(key: &str) -> NewJob {
    NewJob {
        key: key.into(),
        lane: JobLane::Ordinary,
        required: false,
        priority: 0.0,
        payload: "{}".into(),
        not_before: Time::MIN,
    }
}

fn keys(jobs: &[Job]) -> Vec<&str> {
    jobs.iter().map(|job| job.key.as_str()).collect()
}

fn texts(keys: &[&str]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

pub fn vectors_are_kept_by_model_and_input(f: &Fixture) {
    let (d, s) = ready(f);
    assert_eq!(d.vectors(&s, "m1", &[input("x")]).unwrap(), []);
    d.put_vectors(&s, "m1", &[vector("x", 1, 0), vector("y", 2, 3)]).unwrap();
    d.put_vectors(&s, "m2", &[vector("x", 5, 0)]).unwrap();
    assert_eq!(d.vectors(&s, "m1", &[input("y"), input("none"), input("y")]).unwrap(), [vector("y", 2, 3)]);
    assert_eq!(d.known_vectors(&s, "m2", &[input("x"), input("y")]).unwrap(), [(input("x"), at(5))]);
    // A newer vector replaces an older one, also within one call.
    d.put_vectors(&s, "m1", &[vector("x", 3, 0), vector("x", 4, 1)]).unwrap();
    assert_eq!(d.vectors(&s, "m1", &[input("x")]).unwrap(), [vector("x", 4, 1)]);
    assert_eq!(d.vector_models(&s).unwrap(), ["m1", "m2"]);
    let counts = d.vector_counts(&s).unwrap();
    let summary: Vec<_> = counts.iter().map(|c| (c.model.as_str(), c.vectors, c.bytes, c.redacted)).collect();
    assert_eq!(summary, [("m1", 2, 2, 4), ("m2", 1, 1, 0)]);
    assert_eq!((counts[0].oldest, counts[0].newest), (at(2), at(4)));
    assert_eq!(d.remove_vectors(&s, "m1", &[input("x"), input("none")]).unwrap(), 1);
    assert_eq!(d.remove_model(&s, "m1").unwrap(), 1);
    assert_eq!(d.remove_model(&s, "m1").unwrap(), 0);
    assert_eq!(d.vectors(&s, "m1", &[input("y")]).unwrap(), []);
    assert_eq!(d.vector_counts(&s).unwrap().len(), 1, "those of the other model stay");
    assert_eq!(d.vector_models(&s).unwrap(), ["m2"]);
}

pub fn every_vector_is_visited_once(f: &Fixture) {
    let (d, s) = ready(f);
    let all: Vec<_> = (0..9_000).map(|i| vector(&format!("text {i}"), i % 7, 0)).collect();
    for part in all.chunks(2_500) {
        d.put_vectors(&s, "m", part).unwrap();
    }
    d.put_vectors(&s, "other", &all[..10]).unwrap();
    let mut seen = Vec::new();
    d.each_vector(&s, "m", &mut |v| {
        seen.push(v);
        Ok(())
    })
    .unwrap();
    let sorted = |mut list: Vec<Vector>| {
        list.sort_by_key(|v| v.input);
        list
    };
    assert!(sorted(seen) == sorted(all), "each vector of this model exactly once");
    let stopped = d.each_vector(&s, "m", &mut |_| Err(Error::internal("enough")));
    assert_eq!(stopped.unwrap_err().message, "enough");
}

pub fn jobs_are_leased_in_order(f: &Fixture) {
    let (d, s) = ready(f);
    let jobs = [
        NewJob { priority: 0.5, ..job("optional, wanted") },
        job("optional"),
        NewJob { required: true, ..job("required") },
        NewJob { required: true, priority: 9.0, ..job("required, wanted") },
        NewJob { lane: JobLane::Mismatch, ..job("other model") },
        NewJob { priority: -0.0, ..job("optional, again") },
        NewJob { not_before: at(10), priority: 99.0, ..job("later") },
    ];
    d.enqueue(&s, KIND, &jobs, at(1)).unwrap();
    d.enqueue(&s, KIND, &[job("a younger one")], at(2)).unwrap();
    let order = ["other model", "required, wanted", "required", "optional, wanted", "optional", "optional, again"];
    let all = d.lease(&s, KIND, 99, "w", at(3), at(8)).unwrap();
    assert_eq!(keys(&all), [&order[..], &["a younger one"]].concat());
    assert!(all.is_sorted_by(|a, b| a.order(b).is_lt()));
    assert_eq!((all[0].leased_until, all[0].enqueued_at, all[0].attempts), (at(8), at(1), 0));
    assert_eq!(d.lease(&s, KIND, 99, "v", at(9), at(20)).unwrap().len(), 7, "the lease has expired");
    assert_eq!(keys(&d.lease(&s, KIND, 99, "v", at(10), at(20)).unwrap()), ["later"]);
    assert_eq!(d.lease(&s, "another kind", 9, "w", at(10), at(20)).unwrap(), []);
    assert_eq!(
        d.enqueue(&s, KIND, &[NewJob { priority: f64::NAN, ..job("x") }], at(1)).unwrap_err().code,
        ErrorCode::InvalidNumber
    );
    // Failed jobs come after those that have not failed.
    d.remove_kind(&s, KIND).unwrap();
    d.enqueue(&s, KIND, &[job("a")], at(1)).unwrap();
    d.lease(&s, KIND, 1, "w", at(1), at(2)).unwrap();
    d.fail(&s, KIND, "w", &[JobFailure { key: "a".into(), error: "no".into(), not_before: at(1) }]).unwrap();
    d.enqueue(&s, KIND, &[job("b")], at(2)).unwrap();
    assert_eq!(keys(&d.lease(&s, KIND, 9, "w", at(3), at(4)).unwrap()), ["b", "a"]);
}

pub fn only_the_owner_of_a_lease_can_end_it(f: &Fixture) {
    let (d, s) = ready(f);
    d.enqueue(&s, KIND, &[job("a"), job("b"), job("c")], at(0)).unwrap();
    assert_eq!(d.lease(&s, KIND, 3, "one", at(1), at(5)).unwrap().len(), 3);
    assert_eq!(d.lease(&s, KIND, 3, "two", at(2), at(6)).unwrap(), [], "all jobs are leased");
    assert_eq!(d.finish(&s, KIND, "two", &texts(&["a"])).unwrap(), 0);
    assert_eq!(d.finish(&s, KIND, "one", &texts(&["a", "none"])).unwrap(), 1);
    // The lease expired and another owner took the job: the first owner is too late.
    assert_eq!(keys(&d.lease(&s, KIND, 3, "two", at(5), at(9)).unwrap()), ["b", "c"]);
    assert_eq!(d.finish(&s, KIND, "one", &texts(&["b"])).unwrap(), 0);
    let failure = JobFailure { key: "b".into(), error: "é\0".repeat(ERROR_CHARS), not_before: at(20) };
    assert_eq!(d.fail(&s, KIND, "one", std::slice::from_ref(&failure)).unwrap(), 0);
    assert_eq!(d.fail(&s, KIND, "two", std::slice::from_ref(&failure)).unwrap(), 1);
    let b = d.jobs_after(&s, KIND, "a", 1).unwrap().remove(0);
    assert_eq!((b.key.as_str(), b.attempts, b.not_before), ("b", 1, at(20)));
    assert_eq!(b.last_error.unwrap(), "é".repeat(ERROR_CHARS), "shortened, and without NUL characters");
    assert_eq!(d.lease(&s, KIND, 3, "two", at(19), at(25)).unwrap().len(), 1, "c only: b waits");
    // Added again while it is leased, the job starts over, and the previous owner cannot finish it.
    d.enqueue(&s, KIND, &[NewJob { required: true, payload: "2".into(), ..job("c") }], at(19)).unwrap();
    assert_eq!(d.finish(&s, KIND, "two", &texts(&["c"])).unwrap(), 0);
    d.enqueue(&s, KIND, &[job("b")], at(19)).unwrap();
    let again = d.lease(&s, KIND, 3, "three", at(19), at(25)).unwrap();
    assert_eq!(keys(&again), ["c", "b"]);
    assert_eq!((again[0].payload.as_str(), again[0].required, again[0].enqueued_at), ("2", true, at(0)));
    assert_eq!((again[1].attempts, again[1].last_error.as_ref()), (0, None), "attempts start over");
}

pub fn jobs_are_counted_listed_and_removed(f: &Fixture) {
    let (d, s) = ready(f);
    assert_eq!(d.job_counts(&s, KIND, at(0)).unwrap(), JobCounts::default());
    let mixed = [
        NewJob { required: true, ..job("a") },
        NewJob { required: true, lane: JobLane::Mismatch, ..job("b") },
        job("c"),
        job("d"),
    ];
    d.enqueue(&s, KIND, &mixed, at(1)).unwrap();
    d.enqueue(&s, KIND, &[job("e"), NewJob { required: true, ..job("e") }], at(0)).unwrap();
    d.lease(&s, KIND, 2, "w", at(2), at(9)).unwrap();
    d.fail(&s, KIND, "w", &[JobFailure { key: "b".into(), error: "no".into(), not_before: at(3) }]).unwrap();
    let counts = d.job_counts(&s, KIND, at(4)).unwrap();
    assert_eq!(
        counts,
        JobCounts { required: 3, optional: 2, leased: 1, failing: 1, mismatched: 1, oldest: Some(at(0)) }
    );
    assert_eq!(d.job_counts(&s, KIND, at(9)).unwrap().leased, 0);
    let mut listed = Vec::new();
    while let page @ [_, ..] = &d.jobs_after(&s, KIND, listed.last().map_or("", String::as_str), 2).unwrap()[..] {
        listed.extend(page.iter().map(|job| job.key.clone()));
    }
    assert_eq!(listed, ["a", "b", "c", "d", "e"]);
    assert_eq!(d.remove_jobs(&s, KIND, &texts(&["a", "none"])).unwrap(), 1);
    assert_eq!(d.remove_kind(&s, KIND).unwrap(), 4);
    assert_eq!(d.job_counts(&s, KIND, at(9)).unwrap(), JobCounts::default());
}

pub fn eight_workers_take_each_job_once(f: &Fixture) {
    let (d, s) = ready(f);
    const JOBS: usize = 2_000;
    let all: Vec<_> =
        (0..JOBS).map(|i| NewJob { required: i % 3 == 0, priority: (i % 5) as f64, ..job(&format!("j{i}")) }).collect();
    d.enqueue(&s, KIND, &all, at(0)).unwrap();
    let barrier = Barrier::new(8);
    let taken: Vec<Vec<String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|worker| {
                let (barrier, s) = (&barrier, &s);
                scope.spawn(move || {
                    barrier.wait();
                    let mut mine = Vec::new();
                    for step in 0.. {
                        let owner = format!("{worker}/{step}");
                        let jobs = d.lease(s, KIND, 17, &owner, at(1), at(10)).unwrap();
                        let own = texts(&keys(&jobs));
                        assert_eq!(
                            d.finish(s, KIND, &owner, &own).unwrap(),
                            own.len() as u64,
                            "only this owner holds them"
                        );
                        mine.extend(own);
                        // An empty lease may mean that other workers hold the remaining jobs.
                        if jobs.is_empty() && d.job_counts(s, KIND, at(1)).unwrap() == JobCounts::default() {
                            break;
                        }
                    }
                    mine
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let total: usize = taken.iter().map(Vec::len).sum();
    let different: BTreeSet<_> = taken.into_iter().flatten().collect();
    assert_eq!((total, different.len()), (JOBS, JOBS), "each job exactly once");
}

pub fn marks_are_named_numbers(f: &Fixture) {
    let (d, s) = ready(f);
    assert_eq!(d.mark(&s, "m").unwrap(), None);
    d.set_mark(&s, "m", 1).unwrap();
    d.set_mark(&s, "n", 7).unwrap();
    d.set_mark(&s, "m", 2).unwrap();
    assert_eq!((d.mark(&s, "m").unwrap(), d.mark(&s, "n").unwrap()), (Some(2), Some(7)));
    d.remove_mark(&s, "m").unwrap();
    d.remove_mark(&s, "m").unwrap();
    assert_eq!((d.mark(&s, "m").unwrap(), d.mark(&s, "n").unwrap()), (None, Some(7)));
    // The second caller gets the value of the first.
    assert_eq!([3, 4].map(|value| d.claim_mark(&s, "m", value).unwrap()), [3, 3]);
    assert_eq!((d.mark(&s, "m").unwrap(), d.claim_mark(&s, "n", 8).unwrap()), (Some(3), 7));
}

pub fn derived_data_is_no_fact_and_belongs_to_one_project(f: &Fixture) {
    let (d, s) = ready(f);
    let dump = |ledger: &Ledger| {
        let mut bytes = Vec::new();
        ledger.dump(&mut bytes, &mut |_, _| {}).unwrap();
        bytes
    };
    let before = (f.ledger.head().unwrap(), dump(&f.ledger));
    let other = f.project("other", "shop");
    put(&other, "main", "b", 1);
    let o = other.scope().clone();
    d.put_vectors(&s, "m", &[vector("x", 1, 0)]).unwrap();
    d.enqueue(&s, KIND, &[job("a")], at(0)).unwrap();
    d.set_mark(&s, "m", 1).unwrap();
    // Another tenant's project of the same name sees none of it and cannot change it.
    assert_eq!(d.vectors(&o, "m", &[input("x")]).unwrap(), []);
    assert_eq!(d.vector_counts(&o).unwrap(), []);
    assert_eq!(d.vector_models(&o).unwrap(), Vec::<String>::new());
    assert_eq!(d.lease(&o, KIND, 9, "w", at(1), at(2)).unwrap(), []);
    assert_eq!(d.jobs_after(&o, KIND, "", 9).unwrap(), []);
    assert_eq!((d.remove_model(&o, "m").unwrap(), d.remove_kind(&o, KIND).unwrap()), (0, 0));
    assert_eq!(d.mark(&o, "m").unwrap(), None);
    d.put_vectors(&o, "m", &[vector("x", 9, 0)]).unwrap();
    d.enqueue(&o, KIND, &[NewJob { payload: "theirs".into(), ..job("a") }], at(0)).unwrap();
    assert_eq!(d.vectors(&s, "m", &[input("x")]).unwrap(), [vector("x", 1, 0)]);
    assert_eq!(d.lease(&s, KIND, 9, "w", at(1), at(2)).unwrap()[0].payload, "{}");
    // A project that was never written to has no derived data and accepts none.
    let nowhere = Scope::new("test", "nowhere").unwrap();
    assert_eq!(d.job_counts(&nowhere, KIND, at(0)).unwrap(), JobCounts::default());
    assert_eq!(d.lease(&nowhere, KIND, 1, "w", at(0), at(1)).unwrap(), []);
    assert_eq!(d.finish(&nowhere, KIND, "w", &texts(&["a"])).unwrap(), 0);
    for refused in [
        d.put_vectors(&nowhere, "m", &[vector("x", 1, 0)]),
        d.enqueue(&nowhere, KIND, &[job("a")], at(0)),
        d.set_mark(&nowhere, "m", 1),
        d.claim_mark(&nowhere, "m", 1).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert_eq!((error.code, error.kind), (ErrorCode::UnknownProject, ErrorKind::NotFound));
    }
    assert!(before == (f.ledger.head().unwrap(), dump(&f.ledger)), "neither log nor dump contain it");
    verify(f);
}
