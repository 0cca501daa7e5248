//! Random histories: puts, links, ends, branches, forks, merges and releases, at all kinds of times.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use crate::ManualClock;
use lukasa_model::batch::{End, PutObject, PutRelationship};
use lukasa_model::id::{object_id, relationship_id};
use lukasa_model::transaction::Header;
use lukasa_model::{Batch, BranchMode, Reference, Time, Tx, Write};
use lukasa_store::ledger::{Ledger, MergeReport, MergeRequest, NewBranch, NewRelease};
use proptest::prelude::*;

/// One step of a history. Branch, key and transaction numbers are taken modulo the number of existing ones.
#[derive(Clone, Debug)]
pub enum Step {
    Put { branch: u8, key: u8, value: u8, when: When },
    Link { branch: u8, src: u8, dst: u8, value: u8, lasting: bool },
    End { branch: u8, key: u8, when: When },
    Unlink { branch: u8, src: u8, dst: u8, lasting: bool },
    Both { branch: u8, keys: (u8, u8), value: u8 },
    Branch { parent: u8, pinned: bool },
    Fork { branch: u8, tx: u8 },
    Merge { source: u8, target: u8, key: Option<u8> },
    Release { branch: u8 },
    Again { client: u8, value: u8 },
    Load { branch: u8, from: u8, count: u8, value: u8, when: When },
}

/// The period of a write: starts in seconds relative to the current time, and lengths in seconds.
#[derive(Clone, Copy, Debug)]
pub enum When {
    Now,
    From(i8),
    Between(i8, u8),
    /// Like `Between`, and changes nothing outside the period.
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

/// Generates steps, each with the number of seconds that pass before it.
pub fn step() -> impl Strategy<Value = (u8, Step)> {
    let n = any::<u8>;
    let step = prop_oneof![
        6 => (n(), n(), 0u8..3, when()).prop_map(|(branch, key, value, when)| Step::Put { branch, key, value, when }),
        4 => (n(), n(), n(), 0u8..3, any::<bool>())
            .prop_map(|(branch, src, dst, value, lasting)| Step::Link { branch, src, dst, value, lasting }),
        2 => (n(), n(), when()).prop_map(|(branch, key, when)| Step::End { branch, key, when }),
        2 => (n(), n(), n(), any::<bool>())
            .prop_map(|(branch, src, dst, lasting)| Step::Unlink { branch, src, dst, lasting }),
        1 => (n(), n(), n(), 0u8..3).prop_map(|(branch, a, b, value)| Step::Both { branch, keys: (a, b), value }),
        2 => (n(), any::<bool>()).prop_map(|(parent, pinned)| Step::Branch { parent, pinned }),
        1 => (n(), n()).prop_map(|(branch, tx)| Step::Fork { branch, tx }),
        3 => (n(), n(), prop::option::of(n())).prop_map(|(source, target, key)| Step::Merge { source, target, key }),
        1 => n().prop_map(|branch| Step::Release { branch }),
        1 => (0u8..2, 0u8..2).prop_map(|(client, value)| Step::Again { client, value }),
        2 => (n(), 0u8..14, 1u8..10, 0u8..3, when())
            .prop_map(|(branch, from, count, value, when)| Step::Load { branch, from, count, value, when }),
    ];
    (0u8..3, step)
}

/// Performs a step and returns its result as text, so that stores can be compared.
pub fn perform(l: &Ledger, clock: &ManualClock, (seconds, step): &(u8, Step)) -> String {
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
    let timed = |put: PutObject, when: When| match when {
        When::Now => put,
        When::From(s) => PutObject { valid_from: at(s), ..put },
        When::Between(s, len) => PutObject { valid_from: at(s), valid_to: span(s, len), ..put },
        When::Only(s, len) => PutObject { valid_from: at(s), valid_to: span(s, len), only_this_period: true, ..put },
    };
    match step {
        Step::Put { branch: b, key: k, value, when } => {
            commit(branch(b), vec![timed(valued(&key(k), *value), *when).into()])
        }
        Step::Load { branch: b, from, count, value, when } => {
            // Some of these objects exist already, some have an explicit period, and together they fill several runs.
            let range = *from..from + count;
            let keys: Vec<String> = range.map(|n| if n < 5 { key(&n) } else { format!("dir/{n}") }).collect();
            let text = "x".repeat(900 * usize::from(*value));
            let put = |key: &String| valued(key, *value).property("text", text.as_str());
            let (last, others) = keys.split_last().unwrap();
            let objects = others.iter().map(|key| put(key).into());
            let relations = others.windows(2).map(|pair| {
                let discriminator = if *value == 2 { pair[0].clone() } else { String::new() };
                let ends = pair.iter().map(|key| Reference::exact("Service", key)).collect::<Vec<_>>();
                let put = PutRelationship::new("CALLS", ends[0].clone(), ends[1].clone());
                PutRelationship { discriminator, ..put }.into()
            });
            let file = PutObject::new("FILE", &format!("dir/{from}.txt"));
            let parts: Vec<Vec<Write>> = vec![
                objects.collect(),
                relations.chain([timed(put(last), *when).into()]).collect(),
                vec![timed(file, *when).into()],
            ];
            match l.load(&branch(b), &Header::default(), parts.into_iter().map(Ok)) {
                Ok(done) => format!("{:?} {} {} {}", done.tx, done.objects, done.relationships, done.unchanged),
                Err(e) => e.code.to_string(),
            }
        }
        Step::Link { branch: b, src, dst, value, lasting } => {
            let put = PutRelationship {
                weight: Some(f64::from(*value)),
                confidence: (*value > 0).then_some(0.5),
                derivation: (*value > 1).then(|| "import".into()),
                ..PutRelationship::new(link_type(*lasting), key(src).as_str(), key(dst).as_str())
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
        Step::Unlink { branch: b, src, dst, lasting } => {
            let Ok(head) = l.head() else { return "empty".into() };
            let end = |k: &u8| object_id(head.namespace, "Service", &key(k));
            let id = relationship_id(head.namespace, link_type(*lasting), end(src), end(dst), "");
            commit(branch(b), vec![End::new(Reference::Id(id)).into()])
        }
        Step::Both { branch: b, keys, value } => {
            let (one, two) = (key(&keys.0), key(&keys.1));
            commit(
                branch(b),
                vec![
                    valued(&one, *value).into(),
                    valued(&format!("{two}-too"), *value).into(),
                    PutRelationship::new("CALLS", one.as_str(), format!("{two}-too").as_str()).into(),
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
            l.create_branch(&new, &Header::default()).map_or_else(|e| e.code.to_string(), |b| format!("{b:?}"))
        }
        Step::Fork { branch: b, tx } => {
            let head = l.head().map_or(0, |h| h.tx.0);
            let moved = l.move_fork(&branch(b), Some(Tx(u64::from(*tx) % (head + 1))), &Header::default());
            moved.map_or_else(|e| e.code.to_string(), |b| format!("{b:?}"))
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
                _ => panic!("the dry run differs: {dry:?} and {wet:?}"),
            }
            if let Ok(done) = &wet
                && done.conflicts.is_empty()
            {
                let again = l.merge(&request).unwrap();
                assert_eq!((again.tx, again.items.len()), (None, 0), "a repeated merge changes nothing");
                if whole && done.tx.is_some() {
                    agree(l, &request.source, &request.target);
                }
            }
            wet.map_or_else(|e| e.code.to_string(), |report| format!("{report:?}"))
        }
        Step::Release { branch: b } => {
            let name = format!("r{}", l.registry().map_or(0, |r| r.releases().count()));
            let made =
                l.create_release(&NewRelease { name, branch: branch(b), ..Default::default() }, &Header::default());
            made.map_or_else(|e| e.code.to_string(), |r| format!("{r:?}"))
        }
        Step::Again { client, value } => {
            let header = Header { client_id: Some(format!("c{client}")), ..Header::default() };
            match l.commit(&Batch { header, ..Batch::on("main") }.write(valued("again", *value))) {
                Ok(done) => format!("{:?} {}", done.tx, done.repeated),
                Err(e) => e.code.to_string(),
            }
        }
    }
}

fn link_type(lasting: bool) -> &'static str {
    if lasting { "INVOLVES" } else { "CALLS" }
}

fn valued(key: &str, value: u8) -> PutObject {
    let labels = (1..=value).map(|l| format!("l{l}")).collect();
    PutObject { labels, ..PutObject::new("Service", key).property("x", value) }
}

/// Checks that a merge back after a merge has no conflicts and merges no contents.
fn agree(l: &Ledger, source: &str, target: &str) {
    let request = MergeRequest { source: target.into(), target: source.into(), dry_run: true, ..Default::default() };
    if let Ok(back) = l.merge(&request) {
        assert!(back.conflicts.is_empty(), "the merge back has no conflicts: {back:?}");
        assert_eq!(back.counts.merged, 0, "no content is left to merge");
    }
}
