//! Concurrent writers: one winner per race, a log without gaps, and readers that never see part of a batch.

use super::*;
use lukasa_model::transaction::Header;
use lukasa_model::{ErrorCode, RelationshipType, Tx};
use lukasa_store::VersionFields;
use serde_json::json;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

const WRITERS: usize = 8;

/// Starts all writers at the same moment and returns their results.
fn race<T: Send>(run: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(WRITERS);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS)
            .map(|i| {
                let (barrier, run) = (&barrier, &run);
                scope.spawn(move || {
                    barrier.wait();
                    run(i)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

pub fn eight_writers_one_winner(f: &Fixture) {
    let l = &f.ledger;
    const KEYS: usize = 4;
    for round in 0..8u32 {
        // All writers try to write the next version of every key; all have read version `round`.
        let results = race(|writer| {
            (0..KEYS)
                .map(|k| {
                    let put = valued(&format!("k{k}"), json!([round, writer]));
                    l.commit(&Batch::on("main").write(PutObject { expected_version: Some(round), ..put }))
                })
                .collect::<Vec<_>>()
        });
        for k in 0..KEYS {
            let mut winners = Vec::new();
            for (writer, of_writer) in results.iter().enumerate() {
                match &of_writer[k] {
                    Ok(_) => winners.push(writer),
                    Err(e) => assert_eq!(e.code, ErrorCode::VersionConflict, "{e:?}"),
                }
            }
            assert_eq!(winners.len(), 1, "exactly one wins");
            assert_eq!(x(l, "main", &format!("k{k}")), json!([round, winners[0]]), "and its value is visible");
        }
    }
    verify(f);
}

pub fn eight_writers_dense_log(f: &Fixture) {
    let l = &f.ledger;
    const EACH: usize = 10;
    let mine = race(|writer| {
        let mut seen = 0;
        let mut mine = Vec::new();
        for i in 0..EACH {
            let writes =
                vec![valued(&format!("w{writer}"), i as i64).into(), valued("shared", json!([writer, i])).into()];
            mine.push(write(l, "main", writes).tx.unwrap());
            // A follower that has read up to here never finds a gap before it.
            let log = l.transactions(Tx(1), Tx(u64::MAX), 10_000).unwrap();
            assert!(log.iter().enumerate().all(|(at, t)| t.tx == Tx(at as u64 + 1)), "the log has a gap");
            assert!(log.len() >= seen);
            seen = log.len();
        }
        mine
    });
    let mut all: Vec<_> = mine.into_iter().flatten().collect();
    all.sort_unstable();
    assert_eq!(all, (1..=(WRITERS * EACH) as u64).map(Tx).collect::<Vec<_>>());
    verify(f);
}

pub fn eight_writers_multiplicity(f: &Fixture) {
    let l = &f.ledger;
    let declared = RelationshipType {
        name: "OWNS".into(),
        multiplicity: serde_json::from_value(json!({"dst": "one"})).unwrap(),
        ..Default::default()
    };
    l.declare_relationship_type(&declared, &Header::default()).unwrap();
    for round in 0..6 {
        let thing = format!("thing{round}");
        let mut writes: Vec<Write> = vec![object(&thing).into()];
        writes.extend((0..WRITERS).map(|i| object(&format!("owner{i}")).into()));
        write(l, "main", writes);
        let results = race(|writer| {
            l.commit(&Batch::on("main").write(PutRelationship::new(
                "OWNS",
                format!("owner{writer}").as_str(),
                thing.as_str(),
            )))
        });
        assert_eq!(results.iter().filter(|r| r.is_ok()).count(), 1);
        for error in results.into_iter().filter_map(Result::err) {
            assert_eq!(error.code, ErrorCode::RelationshipMultiplicityViolation, "{error:?}");
        }
    }
    verify(f);
}

pub fn readers_see_whole_batches(f: &Fixture) {
    let l = &f.ledger;
    const KEYS: usize = 20;
    let all = |value: i64| (0..KEYS).map(|k| valued(&format!("k{k}"), value).into()).collect::<Vec<Write>>();
    write(l, "main", all(0));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut looks = 0;
            while !done.load(Ordering::SeqCst) || looks == 0 {
                let view = l.view(&ViewSpec::default()).unwrap();
                let values: Vec<_> = l
                    .stream_view(&view, VersionFields::Content)
                    .unwrap()
                    .map(|row| row.unwrap().statement.parsed().unwrap().properties["x"].clone())
                    .collect();
                assert_eq!(values.len(), KEYS);
                assert!(values.iter().all(|v| *v == values[0]), "half a batch: {values:?}");
                looks += 1;
            }
        });
        for value in 1..15 {
            f.clock.advance(1);
            write(l, "main", all(value));
        }
        done.store(true, Ordering::SeqCst);
        reader.join().unwrap();
    });
}
