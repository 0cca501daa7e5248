//! Corrects what cannot be derived from commits: jobs of deleted objects, objects missing in the queue, unused vectors.

use super::objects::{PAGE, each_page, on_branch, view_now};
use super::queue::{EmbeddingJob, EmbeddingQueue, EnqueueCounts};
use lukasa_model::json::Hash;
use lukasa_model::{BranchNo, Result, Time};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Unused vectors are kept for this long, in microseconds, because an edit may be reverted.
pub const KEPT: i64 = 30 * 24 * 3_600 * 1_000_000;

/// What a reconciliation changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReconcileCounts {
    /// Jobs of objects that were deleted or are no longer embedded.
    pub orphans: u64,
    /// Vectors of texts that no branch contains any more.
    pub forgotten: u64,
    pub enqueued: EnqueueCounts,
}

/// Run it about once a day, in the background.
pub fn reconcile(queue: &EmbeddingQueue, now: Time) -> Result<ReconcileCounts> {
    let orphans = remove_orphans(queue, now)?;
    let enqueued = queue.catch_up(now)?;
    Ok(ReconcileCounts { orphans, forgotten: forget(queue, now)?, enqueued })
}

fn remove_orphans(queue: &EmbeddingQueue, now: Time) -> Result<u64> {
    let ledger = queue.ledger();
    let (derived, scope) = (ledger.store().derived(), ledger.scope());
    let registry = ledger.registry()?;
    let (mut last, mut removed) = (String::new(), 0);
    loop {
        let page = derived.jobs_after(scope, queue.kind(), &last, PAGE)?;
        let Some(end) = page.last() else { return Ok(removed) };
        last = end.key.clone();
        let mut orphans: FxHashSet<&String> = page.iter().map(|job| &job.key).collect();
        let mut by_branch: BTreeMap<BranchNo, Vec<(&String, EmbeddingJob)>> = BTreeMap::new();
        for job in &page {
            // A job with an unreadable payload belongs to no object.
            if let Ok(payload) = serde_json::from_str::<EmbeddingJob>(&job.payload) {
                by_branch.entry(payload.branch).or_default().push((&job.key, payload));
            }
        }
        for (branch, jobs) in by_branch {
            let view = view_now(ledger, branch, now)?;
            let things: Vec<_> = jobs.iter().map(|(_, payload)| payload.thing).collect();
            let alive: FxHashSet<_> = on_branch(ledger, &view, &registry, &things, None)?
                .iter()
                .filter(|(object, _)| object.policy(&registry).is_some())
                .map(|(object, _)| object.thing.no)
                .collect();
            for (key, _) in jobs.iter().filter(|(_, payload)| alive.contains(&payload.thing)) {
                orphans.remove(key);
            }
        }
        let orphans: Vec<String> = orphans.into_iter().cloned().collect();
        removed += derived.remove_jobs(scope, queue.kind(), &orphans)?;
    }
}

/// Removes old vectors, of every model, whose text no object has now.
fn forget(queue: &EmbeddingQueue, now: Time) -> Result<u64> {
    let ledger = queue.ledger();
    let (derived, scope) = (ledger.store().derived(), ledger.scope());
    let old = Time(now.0 - KEPT);
    let candidates: Vec<_> = derived.vector_counts(scope)?.into_iter().filter(|c| c.oldest < old).collect();
    if candidates.is_empty() {
        return Ok(0);
    }
    let registry = ledger.registry()?;
    let mut in_use: FxHashSet<Hash> = FxHashSet::default();
    each_page(ledger, now, &mut |page| {
        for object in page {
            if let Some(embedding) = object.policy(&registry) {
                in_use.insert(object.input(&embedding, queue.rules())?.hash);
            }
        }
        Ok(())
    })?;
    let mut gone = 0;
    for model in candidates {
        let mut unused = Vec::new();
        derived.each_vector(scope, &model.model, &mut |vector| {
            if vector.made_at < old && !in_use.contains(&vector.input) {
                unused.push(vector.input);
            }
            Ok(())
        })?;
        for part in unused.chunks(PAGE) {
            gone += derived.remove_vectors(scope, &model.model, part)?;
        }
    }
    Ok(gone)
}
