//! Background embedding for every project of the engine: in small steps, on one core, with lower priority than requests.

use super::reconcile::reconcile;
use super::{EmbeddingQueue, EmbeddingWorker};
use crate::Engine;
use crate::periodic::PeriodicWork;
use crate::telemetry::log;
use lukasa_model::{ErrorCode, Result, Scope};
use lukasa_search::embed::{EmbedError, Embedder, EmbedderModel, Purpose, TokenVectors};
use rayon::{ThreadPool, ThreadPoolBuilder};
use rustc_hash::FxHashMap;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Number of jobs between two checks for pending requests.
const STEP: usize = 16;
/// Interval between checks of an empty queue.
const POLL: Duration = Duration::from_secs(1);
/// Interval between checks while requests are pending, and how many such checks in a row; after that a step is done anyway, so
/// that constant requests cannot stop embedding.
const SOON: Duration = Duration::from_millis(10);
const PATIENCE: u32 = 100;
/// Interval of reconciliation, in microseconds. It corrects what cannot be derived from commits.
const DAY: u64 = 24 * 3_600 * 1_000_000;

/// Computes the vectors of these projects, and of every other project the engine receives requests for, until it is dropped.
pub fn embed_in_background(engine: &Engine, scopes: &[Scope]) -> PeriodicWork {
    scopes.iter().for_each(|scope| drop(engine.ledger(scope)));
    let mut keeper = BackgroundEmbedder {
        engine: engine.unwatched(),
        // Without a thread for the pool, the current thread does the work.
        core: ThreadPoolBuilder::new().num_threads(1).build().ok().map(Arc::new),
        lines: FxHashMap::default(),
        more: false,
        gave_way: 0,
    };
    PeriodicWork::paced("embed", move || keeper.step())
}

struct BackgroundEmbedder {
    engine: Engine,
    core: Option<Arc<ThreadPool>>,
    lines: FxHashMap<Scope, ProjectEmbedding>,
    /// The last step did not finish its work.
    more: bool,
    /// Number of consecutive delays.
    gave_way: u32,
}

/// The embedding state of a project.
struct ProjectEmbedding {
    queue: EmbeddingQueue,
    worker: EmbeddingWorker,
    /// Vectors were computed that searches have not loaded yet.
    fresh: bool,
}

impl BackgroundEmbedder {
    /// Does one step; returns when the next one is due.
    fn step(&mut self) -> Duration {
        if self.more && self.engine.is_answering() && self.gave_way < PATIENCE {
            self.gave_way += 1;
            return SOON;
        }
        self.gave_way = 0;
        self.more = false;
        for scope in self.engine.scopes() {
            match self.work(&scope) {
                Ok(left) => self.more |= left,
                // The store may be busy or unavailable. The queue is persistent, so the next step continues.
                Err(error) if error.code != ErrorCode::UnknownProject => log::event(
                    log::LogLevel::Warn,
                    "embedding.step",
                    &[("tenant", json!(scope.tenant)), ("project", json!(scope.project)), ("code", json!(error.code))],
                ),
                Err(_) => {}
            }
        }
        if self.more { Duration::ZERO } else { POLL }
    }

    /// Returns whether there is more to do immediately.
    fn work(&mut self, scope: &Scope) -> Result<bool> {
        if !self.lines.contains_key(scope) {
            let (queue, worker) = self.engine.embedding_pipeline(scope, |embedder| match &self.core {
                Some(core) => Arc::new(OneCore { embedder, core: Arc::clone(core) }),
                None => embedder,
            })?;
            self.lines.insert(scope.clone(), ProjectEmbedding { queue, worker, fresh: false });
        }
        let Some(line) = self.lines.get_mut(scope) else { return Ok(false) };
        let now = self.engine.clock().now();
        let (derived, mark) = (self.engine.store().derived(), format!("reconciled/{}", line.queue.kind()));
        let today = u64::try_from(now.0).unwrap_or_default();
        line.queue.follow(now)?;
        let last = derived.mark(scope, &mark)?;
        if last.is_none_or(|last| today.saturating_sub(last) >= DAY) {
            // The mark is written first, so that one of several servers reconciles.
            derived.set_mark(scope, &mark, today)?;
            if last.is_some() {
                reconcile(&line.queue, now)?;
            }
        }
        let worked = line.worker.work(now, STEP)?;
        line.fresh |= worked.embedded > 0;
        let more = worked.leased > 0 && worked.failed == 0;
        if !more && std::mem::take(&mut line.fresh) {
            // Searches look for new vectors at intervals; this makes them look now.
            self.engine.searching().vectors_changed();
        }
        Ok(more)
    }
}

/// Limits a model to one core, so that requests have the others.
struct OneCore {
    embedder: Arc<dyn Embedder>,
    core: Arc<ThreadPool>,
}

impl Embedder for OneCore {
    fn model(&self) -> &EmbedderModel {
        self.embedder.model()
    }

    fn batch(&self) -> usize {
        self.embedder.batch()
    }

    fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.core.install(|| self.embedder.embed(texts, purpose))
    }

    fn embed_tokens(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<TokenVectors>, EmbedError> {
        self.core.install(|| self.embedder.embed_tokens(texts, purpose))
    }
}
