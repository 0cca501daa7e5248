//! Works the queue off: takes jobs, embeds what they mean now, keeps the vectors, gives back what failed.

use super::backoff;
use super::breaker::{Allowed, Breaker};
use super::input::{Input, InputRules};
use super::objects::{on_branch, view_now};
use super::queue::{Payload, Queue};
use crate::telemetry::metrics;
use lukasa_model::json::Hash;
use lukasa_model::{BranchNo, Error, Result, Time};
use lukasa_search::embed::{EmbedError, Embedder, Purpose};
use lukasa_search::vectors::Quantised;
use lukasa_store::Ledger;
use lukasa_store::derived::{Failure, Job, Vector};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Longer than any call of a model with all its tries; who dies meanwhile holds his jobs no longer than this.
const LEASE: i64 = 10 * 60_000_000;
/// What the last call counts in the share of calls that failed.
const RECENT: f64 = 0.1;
/// Begins the error of a job whose text itself may be at fault; it is tried alone the next time.
const BROKEN: &str = "broken: ";

/// Makes the vectors of one project with one model. Any number of them may work side by side, in any processes.
pub struct Worker {
    ledger: Ledger,
    kind: String,
    model: String,
    embedder: Arc<dyn Embedder>,
    rules: InputRules,
    breaker: Arc<Mutex<Breaker>>,
    /// Draws from -1 to 1.
    jitter: Box<dyn Fn() -> f64 + Send + Sync>,
    name: String,
    steps: AtomicU64,
}

/// What one step did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worked {
    pub leased: usize,
    /// Vectors that were made.
    pub embedded: usize,
    /// Jobs whose text had a vector already.
    pub known: usize,
    /// Jobs about what is no longer there, or no longer embedded.
    pub gone: usize,
    pub failed: usize,
    /// Secrets taken out of what was embedded.
    pub redacted: u64,
    /// Nothing is tried before then: the model fails too often.
    pub paused_until: Option<Time>,
    /// The last thing that went wrong.
    pub error: Option<String>,
}

impl Worker {
    pub fn new(queue: &Queue, embedder: Arc<dyn Embedder>, breaker: Arc<Mutex<Breaker>>) -> Result<Worker> {
        let model = embedder.model().id();
        if model != queue.model() {
            return Err(Error::internal("a worker has another model than its queue"));
        }
        let ledger = queue.ledger().clone();
        let clock = Arc::clone(ledger.clock());
        let drawn = move || f64::from(clock.new_id().as_u128() as u32) / f64::from(u32::MAX) * 2.0 - 1.0;
        Ok(Worker {
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

    #[must_use]
    pub fn with_jitter(mut self, jitter: impl Fn() -> f64 + Send + Sync + 'static) -> Worker {
        self.jitter = Box::new(jitter);
        self
    }

    pub fn breaker(&self) -> &Arc<Mutex<Breaker>> {
        &self.breaker
    }

    /// Does up to `limit` jobs, one call of the model for each of its batches. Stops at the first that fails: what waits
    /// is not touched, and so not lost.
    pub fn work(&self, now: Time, limit: usize) -> Result<Worked> {
        let mut worked = Worked::default();
        while worked.leased < limit {
            let most = match self.breaker.lock().allowed(now) {
                Allowed::All => self.embedder.batch().max(1).min(limit - worked.leased),
                Allowed::Probe(few) => few.min(limit - worked.leased),
                Allowed::NotBefore(then) => {
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

    fn batch(&self, owner: &str, jobs: &[Job], now: Time, worked: &mut Worked) -> Result<()> {
        let (derived, scope) = (self.ledger.store().derived(), self.ledger.scope());
        let mut inputs = self.inputs(jobs, now)?;
        let hashes: Vec<Hash> = inputs.values().map(|input| input.hash).collect();
        let known: FxHashMap<Hash, Time> = derived.known_vectors(scope, &self.model, &hashes)?.into_iter().collect();
        // What needs no model: done, or pointless.
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
        let mut calls: Vec<Vec<(&Job, Input)>> = Vec::new();
        if !together.is_empty() {
            calls.push(together);
        }
        calls.extend(alone.into_iter().map(|one| vec![one]));
        let mut down = None;
        for call in calls {
            for (job, _) in &call {
                metrics().embedding_attempt.inc_of(&[&(job.attempts + 1).to_string()]);
            }
            // A model that does not answer is not asked once more for each text.
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
                    let told = match &error {
                        EmbedError::Unavailable(_) => error.to_string(),
                        EmbedError::Broken(_) => format!("{BROKEN}{error}"),
                    };
                    let failures: Vec<Failure> = call.iter().map(|(job, _)| self.failure(job, &told, now)).collect();
                    derived.fail(scope, &self.kind, owner, &failures)?;
                    self.breaker.lock().record(now, 0, failures.len() as u64);
                    metrics().embedding_failure_rate.blend_of(&[], 1.0, RECENT);
                    worked.failed += failures.len();
                    worked.error = Some(told);
                    if matches!(error, EmbedError::Unavailable(_)) {
                        down = Some(error);
                    }
                }
            }
        }
        Ok(())
    }

    fn failure(&self, job: &Job, error: &str, now: Time) -> Failure {
        let wait = backoff::wait(job.attempts, (self.jitter)());
        Failure { key: job.key.clone(), error: error.to_owned(), not_before: Time(now.0 + wait) }
    }

    /// What jobs mean now, by their keys: the object may have changed since it was queued, or be gone.
    fn inputs(&self, jobs: &[Job], now: Time) -> Result<FxHashMap<String, Input>> {
        let mut by_branch: BTreeMap<BranchNo, Vec<(&Job, Payload)>> = BTreeMap::new();
        for job in jobs {
            // A payload that cannot be read is nobody's: the job goes as one about nothing.
            if let Ok(payload) = serde_json::from_str::<Payload>(&job.payload) {
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

    /// One vector for each different text.
    fn embed(&self, call: &[(&Job, Input)], now: Time) -> Result<Vec<Vector>, EmbedError> {
        let different: BTreeMap<Hash, &Input> = call.iter().map(|(_, input)| (input.hash, input)).collect();
        let texts: Vec<&str> = different.values().map(|input| input.text.as_str()).collect();
        let began = Instant::now();
        let made = self.embedder.embed(&texts, Purpose::Keep)?;
        metrics().embedding_ms.record_of(&[&self.model], began.elapsed().as_secs_f64() * 1e3);
        let dimensions = self.embedder.model().dimensions;
        if made.len() != texts.len() || made.iter().any(|vector| vector.len() != dimensions) {
            return Err(EmbedError::Broken("the model gave other vectors than it was asked for".into()));
        }
        let keep = |(input, vector): (&&Input, &Vec<f32>)| {
            let kept = Quantised::from_f32(vector).map_err(|e| EmbedError::Broken(e.to_string()))?;
            Ok(Vector { input: input.hash, bytes: kept.to_bytes(), made_at: now, redacted: input.redacted })
        };
        different.values().zip(&made).map(keep).collect()
    }
}
