//! Processes the queue: leases jobs, embeds the current text of their objects, stores the vectors, returns failed jobs.

use super::backoff;
use super::breaker::{AllowedJobs, Breaker};
use super::input::{EmbeddingInput, InputRules};
use super::objects::{on_branch, view_now};
use super::queue::{EmbeddingJob, EmbeddingQueue};
use crate::telemetry::metrics;
use lukasa_model::json::Hash;
use lukasa_model::{BranchNo, Error, Result, Time};
use lukasa_search::embed::{EmbedError, Embedder, Purpose};
use lukasa_search::vectors::Quantised;
use lukasa_store::Ledger;
use lukasa_store::derived::{Job, JobFailure, Vector};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Longer than any call of a model with all its retries. If a worker dies, its jobs are released after this time.
const LEASE: i64 = 10 * 60_000_000;
/// Weight of the latest call in the moving average of the failure rate.
const RECENT: f64 = 0.1;
/// Prefix of the error of a job whose text may be the cause; the job is then retried alone.
const BROKEN: &str = "broken: ";

/// Computes the vectors of one project with one model. Any number of workers may run at the same time, in any process.
pub struct EmbeddingWorker {
    ledger: Ledger,
    kind: String,
    model: String,
    embedder: Arc<dyn Embedder>,
    rules: InputRules,
    breaker: Arc<Mutex<Breaker>>,
    /// Random source, from -1 to 1.
    jitter: Box<dyn Fn() -> f64 + Send + Sync>,
    name: String,
    steps: AtomicU64,
}

/// The outcome of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerStep {
    pub leased: usize,
    /// Vectors that were computed.
    pub embedded: usize,
    /// Jobs whose text already had a vector.
    pub known: usize,
    /// Jobs whose object was deleted or is no longer embedded.
    pub gone: usize,
    pub failed: usize,
    /// Number of redacted secrets.
    pub redacted: u64,
    /// The model fails too often and is not called before this time.
    pub paused_until: Option<Time>,
    /// The last error.
    pub error: Option<String>,
}

impl EmbeddingWorker {
    /// Creates a worker for a queue. Fails if the embedder has another model than the queue.
    pub fn new(
        queue: &EmbeddingQueue,
        embedder: Arc<dyn Embedder>,
        breaker: Arc<Mutex<Breaker>>,
    ) -> Result<EmbeddingWorker> {
        let model = embedder.model().id();
        if model != queue.model() {
            return Err(Error::internal("a worker has another model than its queue"));
        }
        let ledger = queue.ledger().clone();
        let clock = Arc::clone(ledger.clock());
        #[expect(clippy::cast_possible_truncation, reason = "the lowest bits of an id are random")]
        let drawn = move || f64::from(clock.new_id().as_u128() as u32) / f64::from(u32::MAX) * 2.0 - 1.0;
        Ok(EmbeddingWorker {
            kind: queue.kind().to_owned(),
            model,
            embedder,
            rules: queue.rules().clone(),
            breaker,
            jitter: Box::new(drawn),
            name: ledger.clock().new_id().to_string(),
            steps: AtomicU64::new(0),
            ledger,
        })
    }

    /// Sets the random source of retry delays, for tests.
    #[must_use]
    pub fn with_jitter(mut self, jitter: impl Fn() -> f64 + Send + Sync + 'static) -> EmbeddingWorker {
        self.jitter = Box::new(jitter);
        self
    }

    pub fn breaker(&self) -> &Arc<Mutex<Breaker>> {
        &self.breaker
    }

    /// Processes up to `limit` jobs, with one call of the model per batch. Stops at the first failure; the remaining jobs stay
    /// in the queue.
    pub fn work(&self, now: Time, limit: usize) -> Result<WorkerStep> {
        let mut worked = WorkerStep::default();
        while worked.leased < limit {
            let most = match self.breaker.lock().allowed(now) {
                AllowedJobs::All => self.embedder.batch().max(1).min(limit - worked.leased),
                AllowedJobs::Probe(few) => few.min(limit - worked.leased),
                AllowedJobs::NotBefore(then) => {
                    worked.paused_until = Some(then);
                    break;
                }
            };
            let owner = format!("{}/{}", self.name, self.steps.fetch_add(1, Ordering::Relaxed));
            let until = Time(now.0 + LEASE);
            let (derived, scope) = (self.ledger.store().derived(), self.ledger.scope());
            let jobs = derived.lease(scope, &self.kind, most, &owner, now, until)?;
            if jobs.is_empty() {
                break;
            }
            worked.leased += jobs.len();
            let failed_before = worked.failed;
            self.batch(&owner, &jobs, now, &mut worked)?;
            if worked.failed > failed_before {
                break;
            }
        }
        Ok(worked)
    }

    fn batch(&self, owner: &str, jobs: &[Job], now: Time, worked: &mut WorkerStep) -> Result<()> {
        let (derived, scope) = (self.ledger.store().derived(), self.ledger.scope());
        let mut inputs = self.inputs(jobs, now)?;
        let hashes: Vec<Hash> = inputs.values().map(|input| input.hash).collect();
        let known: FxHashMap<Hash, Time> = derived.known_vectors(scope, &self.model, &hashes)?.into_iter().collect();
        // Jobs that need no call of the model: already done, or without an object.
        let mut done = Vec::new();
        let mut left = Vec::new();
        for job in jobs {
            match inputs.remove(&job.key) {
                None => worked.gone += 1,
                Some(input) if known.contains_key(&input.hash) => worked.known += 1,
                Some(input) => {
                    left.push((job, input));
                    continue;
                }
            }
            done.push(job.key.clone());
        }
        if !done.is_empty() {
            derived.finish(scope, &self.kind, owner, &done)?;
        }
        let suspect = |job: &Job| job.last_error.as_deref().is_some_and(|error| error.starts_with(BROKEN));
        let (alone, together): (Vec<_>, Vec<_>) = left.into_iter().partition(|(job, _)| suspect(job));
        let mut calls: Vec<Vec<(&Job, EmbeddingInput)>> = Vec::new();
        if !together.is_empty() {
            calls.push(together);
        }
        calls.extend(alone.into_iter().map(|one| vec![one]));
        let mut down = None;
        for call in calls {
            for (job, _) in &call {
                metrics().embedding_attempt.inc_of(&[&(job.attempts + 1).to_string()]);
            }
            // If the model does not answer, it is not called for each text separately.
            let made = match &down {
                Some(error) => Err(EmbedError::clone(error)),
                None => self.embed(&call, now),
            };
            match made {
                Ok(vectors) => {
                    derived.put_vectors(scope, &self.model, &vectors)?;
                    let keys: Vec<String> = call.iter().map(|(job, _)| job.key.clone()).collect();
                    derived.finish(scope, &self.kind, owner, &keys)?;
                    self.breaker.lock().record(now, keys.len() as u64, 0);
                    metrics().embedding_failure_rate.blend_of(&[], 0.0, RECENT);
                    for (job, _) in &call {
                        metrics().embedding_staleness.record((now.0 - job.enqueued_at.0).max(0) as f64 / 1e6);
                    }
                    worked.embedded += vectors.len();
                    worked.redacted += vectors.iter().map(|v| u64::from(v.redacted)).sum::<u64>();
                }
                Err(error) => {
                    let message = match &error {
                        EmbedError::Unavailable(_) => error.to_string(),
                        EmbedError::Broken(_) => format!("{BROKEN}{error}"),
                    };
                    let failures: Vec<JobFailure> =
                        call.iter().map(|(job, _)| self.failure(job, &message, now)).collect();
                    derived.fail(scope, &self.kind, owner, &failures)?;
                    self.breaker.lock().record(now, 0, failures.len() as u64);
                    metrics().embedding_failure_rate.blend_of(&[], 1.0, RECENT);
                    worked.failed += failures.len();
                    worked.error = Some(message);
                    if matches!(error, EmbedError::Unavailable(_)) {
                        down = Some(error);
                    }
                }
            }
        }
        Ok(())
    }

    fn failure(&self, job: &Job, error: &str, now: Time) -> JobFailure {
        let wait = backoff::wait(job.attempts, (self.jitter)());
        JobFailure { key: job.key.clone(), error: error.to_owned(), not_before: Time(now.0 + wait) }
    }

    /// Returns the current input of each job, by key: the object may have changed or been deleted since it was enqueued.
    fn inputs(&self, jobs: &[Job], now: Time) -> Result<FxHashMap<String, EmbeddingInput>> {
        let mut by_branch: BTreeMap<BranchNo, Vec<(&Job, EmbeddingJob)>> = BTreeMap::new();
        for job in jobs {
            // A job with an unreadable payload is removed like one without an object.
            if let Ok(payload) = serde_json::from_str::<EmbeddingJob>(&job.payload) {
                by_branch.entry(payload.branch).or_default().push((job, payload));
            }
        }
        let registry = self.ledger.registry()?;
        let mut inputs = FxHashMap::default();
        for (branch, jobs) in by_branch {
            let view = view_now(&self.ledger, branch, now)?;
            let things: Vec<_> = jobs.iter().map(|(_, payload)| payload.thing).collect();
            let objects = on_branch(&self.ledger, &view, &registry, &things, None)?;
            let objects: FxHashMap<_, _> = objects.into_iter().map(|(object, _)| (object.thing.no, object)).collect();
            for (job, payload) in jobs {
                let Some(object) = objects.get(&payload.thing) else { continue };
                if let Some(embedding) = object.policy(&registry) {
                    inputs.insert(job.key.clone(), object.input(&embedding, &self.rules)?);
                }
            }
        }
        Ok(inputs)
    }

    /// Embeds each distinct text once.
    fn embed(&self, call: &[(&Job, EmbeddingInput)], now: Time) -> Result<Vec<Vector>, EmbedError> {
        let different: BTreeMap<Hash, &EmbeddingInput> = call.iter().map(|(_, input)| (input.hash, input)).collect();
        let texts: Vec<&str> = different.values().map(|input| input.text.as_str()).collect();
        let began = Instant::now();
        let made = self.embedder.embed(&texts, Purpose::Keep)?;
        metrics().embedding_ms.record_of(&[&self.model], began.elapsed().as_secs_f64() * 1e3);
        let dimensions = self.embedder.model().dimensions;
        if made.len() != texts.len() || made.iter().any(|vector| vector.len() != dimensions) {
            return Err(EmbedError::Broken("the model gave other vectors than it was asked for".into()));
        }
        let keep = |(input, vector): (&&EmbeddingInput, &Vec<f32>)| {
            let kept = Quantised::from_f32(vector).map_err(|e| EmbedError::Broken(e.to_string()))?;
            Ok(Vector { input: input.hash, bytes: kept.to_bytes(), made_at: now, redacted: input.redacted })
        };
        different.values().zip(&made).map(keep).collect()
    }
}
