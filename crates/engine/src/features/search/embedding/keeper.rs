//! Embeds beside serving, for every project the engine is asked about: a little at a time, on one core, after who waits.

use super::reconcile::reconcile;
use super::{Queue, Worker};
use crate::Engine;
use crate::beat::Beat;
use crate::telemetry::log;
use lukasa_model::{Result, Scope};
use lukasa_search::embed::{EmbedError, Embedder, Model, Purpose};
use rayon::{ThreadPool, ThreadPoolBuilder};
use rustc_hash::FxHashMap;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Jobs done between two looks at whether somebody waits for an answer.
const STEP: usize = 16;
/// Between looks when there is nothing to do.
const POLL: Duration = Duration::from_secs(1);
/// How soon it is looked again while somebody waits, and how often in a row: who always asks something is not to keep
/// everything from being embedded.
const SOON: Duration = Duration::from_millis(10);
const PATIENCE: u32 = 100;
/// What no commit tells is put right so often, in microseconds.
const DAY: u64 = 24 * 3_600 * 1_000_000;

/// Makes the vectors of these projects, and of whichever else the engine is asked about, until it is dropped.
pub fn keep(engine: &Engine, scopes: &[Scope]) -> Beat {
    scopes.iter().for_each(|scope| drop(engine.ledger(scope)));
    let mut keeper = Keeper {
        engine: engine.unwatched(),
        // Without a thread to be had it is done on ours.
        core: ThreadPoolBuilder::new().num_threads(1).build().ok().map(Arc::new),
        lines: FxHashMap::default(),
        more: false,
        gave_way: 0,
    };
    Beat::paced("embed", move || keeper.step())
}

struct Keeper {
    engine: Engine,
    core: Option<Arc<ThreadPool>>,
    lines: FxHashMap<Scope, Line>,
    /// The last step left something to do.
    more: bool,
    /// How often in a row.
    gave_way: u32,
}

/// What is done for a project.
struct Line {
    queue: Queue,
    worker: Worker,
    /// Vectors were made that searches have not been told of.
    fresh: bool,
}

impl Keeper {
    /// Does a little; when to go on.
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
                // The store may be busy or away; what waits is in it, and so is there later.
                Err(error) if error.code != "unknown_project" => log::event(
                    log::Level::Warn,
                    "embedding.step",
                    &[("tenant", json!(scope.tenant)), ("project", json!(scope.project)), ("code", json!(error.code))],
                ),
                Err(_) => {}
            }
        }
        if self.more { Duration::ZERO } else { POLL }
    }

    /// Whether there is more to do at once.
    fn work(&mut self, scope: &Scope) -> Result<bool> {
        if !self.lines.contains_key(scope) {
            let (queue, worker) = self.engine.embedding_line(scope, |embedder| match &self.core {
                Some(core) => Arc::new(OneCore { embedder, core: Arc::clone(core) }),
                None => embedder,
            })?;
            self.lines.insert(scope.clone(), Line { queue, worker, fresh: false });
        }
        let Some(line) = self.lines.get_mut(scope) else { return Ok(false) };
        let now = self.engine.clock().now();
        let (derived, mark) = (self.engine.store().derived(), format!("reconciled/{}", line.queue.kind()));
        let today = u64::try_from(now.0).unwrap_or_default();
        line.queue.follow(now)?;
        let last = derived.mark(scope, &mark)?;
        if last.is_none_or(|last| today.saturating_sub(last) >= DAY) {
            // Noted first: of several servers one is enough.
            derived.set_mark(scope, &mark, today)?;
            if last.is_some() {
                reconcile(&line.queue, now)?;
            }
        }
        let worked = line.worker.work(now, STEP)?;
        line.fresh |= worked.embedded > 0;
        let more = worked.leased > 0 && worked.failed == 0;
        if !more && std::mem::take(&mut line.fresh) {
            // Searches look by themselves now and then; now there is reason to.
            self.engine.searching().vectors_changed();
        }
        Ok(more)
    }
}

/// A model that leaves the other cores to who waits for answers.
struct OneCore {
    embedder: Arc<dyn Embedder>,
    core: Arc<ThreadPool>,
}

impl Embedder for OneCore {
    fn model(&self) -> &Model {
        self.embedder.model()
    }

    fn batch(&self) -> usize {
        self.embedder.batch()
    }

    fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.core.install(|| self.embedder.embed(texts, purpose))
    }
}
