//! The `store` suite: what the ledger costs in addition to the database below it.

mod facts;
mod reference;

use crate::{peak_rss_mb, print};
use facts::SyntheticFacts;
use lukasa_model::{Batch, BranchMode, Reference, Scope};
use lukasa_store::ledger::{MergeRequest, NewBranch, NewRelease, ViewSpec};
use lukasa_store::sqlite::Durability;
use lukasa_store::{Ledger, SqliteStore, Store, SystemClock, VersionFields};
use lukasa_testkit::TestDatabase;
use serde_json::json;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows per transaction, for us and for the reference.
const BATCH: usize = 10_000;
/// Relationships per object.
const DEGREE: u64 = 3;
const GETS: usize = 2_000;

pub fn run(backend: &str, objects: u64, as_json: bool) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let database = match backend {
        "sqlite" => None,
        "postgres" => {
            let url = std::env::var("LUKASA_TEST_POSTGRES")
                .map_err(|_| "no server: run it as `tools/with-postgres lukasa-evals …`, or give a URL")?;
            Some(TestDatabase::on(&url))
        }
        url => Some(TestDatabase::on(url)),
    };
    let clock = Arc::new(SystemClock);
    let store: Arc<dyn Store> = match &database {
        None => Arc::new(SqliteStore::open(&folder.path().join("lukasa.db"), clock.clone(), Durability::Full)?),
        Some(database) => Arc::new(database.open(None)?),
    };
    let ledger = Ledger::new(store, clock, Scope::new("evals", "store")?);

    eprintln!("committing {objects} objects and {} relationships …", objects * DEGREE);
    let mut committing = Duration::ZERO;
    let mut rows = 0u64;
    for writes in SyntheticFacts::new(objects, DEGREE).batches(BATCH) {
        rows += writes.len() as u64;
        let batch = Batch { writes, ..Batch::on("main") };
        let start = Instant::now();
        ledger.commit(&batch)?;
        committing += start.elapsed();
    }
    // Read right after the commits: batches are made one at a time, so memory that grows with the import is seen here.
    let peak_rss_mb = peak_rss_mb();

    eprintln!("writing the same rows into plain tables …");
    let raw = match &database {
        None => reference::sqlite(&folder.path().join("raw.db"), &SyntheticFacts::new(objects, DEGREE), BATCH)?,
        Some(database) => reference::postgres(database, &SyntheticFacts::new(objects, DEGREE), BATCH)?,
    };

    eprintln!("reading …");
    let view = ledger.view(&ViewSpec::default())?;
    let mut gets = Vec::with_capacity(GETS);
    for i in 0..GETS * 2 {
        let key = facts::key((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % objects);
        let reference = Reference::exact("Function", &key);
        let start = Instant::now();
        ledger.find(&view, &reference)?;
        // The first half warms up.
        if i >= GETS {
            gets.push(start.elapsed());
        }
    }
    gets.sort_unstable();
    let percentile = |p: usize| gets[(gets.len() * p / 100).min(gets.len() - 1)].as_secs_f64() * 1e6;

    // The best of three passes: the first one warms up.
    let mut streamed = f64::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        let mut count = 0;
        for row in ledger.stream_view(&view, VersionFields::Content)? {
            row?;
            count += 1;
        }
        assert_eq!(count, rows, "every row is visible");
        streamed = streamed.min(start.elapsed().as_secs_f64());
    }

    let start = Instant::now();
    ledger.create_release(&NewRelease { name: "1".into(), ..NewRelease::default() }, &Default::default())?;
    let release_ms = start.elapsed().as_secs_f64() * 1e3;

    let pinned = NewBranch { name: "work".into(), mode: BranchMode::Pinned, ..NewBranch::default() };
    ledger.create_branch(&pinned, &Default::default())?;
    let changed = (objects / 100).max(1);
    ledger.commit(&Batch { writes: facts::changed(changed), ..Batch::on("work") })?;
    let start = Instant::now();
    let report = ledger.merge(&MergeRequest { source: "work".into(), ..MergeRequest::default() })?;
    let merge_ms = start.elapsed().as_secs_f64() * 1e3;
    assert_eq!(report.counts.fast_forward as u64, changed);

    let commit_rows_per_s = rows as f64 / committing.as_secs_f64();
    let ref_raw_rows_per_s = rows as f64 / raw.as_secs_f64();
    let line = json!({
        "suite": "store",
        "backend": if backend.starts_with("postgres") { "postgres" } else { backend },
        "objects": objects,
        "relationships": objects * DEGREE,
        "commit_rows_per_s": commit_rows_per_s.round(),
        "ref_raw_rows_per_s": ref_raw_rows_per_s.round(),
        "ratio": (commit_rows_per_s / ref_raw_rows_per_s * 1000.0).round() / 1000.0,
        "get_p50_us": (percentile(50) * 10.0).round() / 10.0,
        "get_p95_us": (percentile(95) * 10.0).round() / 10.0,
        "release_ms": release_ms.round(),
        "merge_ms": merge_ms.round(),
        "merge_changed": changed,
        "stream_rows_per_s": (rows as f64 / streamed).round(),
        "peak_rss_mb": peak_rss_mb,
    });
    print(&line, as_json);
    Ok(())
}
