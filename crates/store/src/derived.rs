//! Data that is derived from facts and stored to save work: embedding vectors, queued jobs, and how far a follower has
//! read.
//!
//! None of it is part of the log, of dumps or of verification, and all of it may be dropped at any time. Unlike facts,
//! it is updated and deleted.

use lukasa_model::json::Hash;
use lukasa_model::{Error, ErrorCode, Result, Scope, Time};
use std::cmp::Ordering;

/// Vectors, jobs and marks of many projects.
///
/// Contract, checked by `tests/contract/derived.rs` on every store:
/// - Each call is atomic and durable. No call waits for a writer of facts longer than for its turn on the disk.
/// - Reading what a project does not have returns nothing; writing to a project that does not exist is `unknown_project`.
/// - The caller passes the time, so that leases can be tested and all workers of a server agree.
pub trait Derived: Send + Sync {
    /// Stores vectors of a model, replacing existing ones.
    fn put_vectors(&self, scope: &Scope, model: &str, vectors: &[Vector]) -> Result<()>;

    /// Returns the vectors of a model for these inputs, as far as they exist, in no particular order.
    fn vectors(&self, scope: &Scope, model: &str, inputs: &[Hash]) -> Result<Vec<Vector>>;

    /// Like `vectors`, but returns only the inputs and when their vectors were made.
    fn known_vectors(&self, scope: &Scope, model: &str, inputs: &[Hash]) -> Result<Vec<(Hash, Time)>>;

    /// Visits every vector of a model, in no particular order, with at most one page in memory.
    fn each_vector(&self, scope: &Scope, model: &str, each: &mut dyn FnMut(Vector) -> Result<()>) -> Result<()>;

    /// Returns the names of the models that have or had vectors, sorted.
    fn vector_models(&self, scope: &Scope) -> Result<Vec<String>>;

    /// Returns counts per model, ordered by name. Reads every vector.
    fn vector_counts(&self, scope: &Scope) -> Result<Vec<VectorCount>>;

    /// Removes these vectors of a model and returns how many existed.
    fn remove_vectors(&self, scope: &Scope, model: &str, inputs: &[Hash]) -> Result<u64>;

    /// Removes all vectors of a model and returns how many existed.
    fn remove_model(&self, scope: &Scope, model: &str) -> Result<u64>;

    /// Adds jobs. An existing job with the same kind and key is replaced and starts over without attempts, error or
    /// lease, so that the worker holding it cannot finish it. It keeps its age.
    fn enqueue(&self, scope: &Scope, kind: &str, jobs: &[NewJob], now: Time) -> Result<()>;

    /// Leases up to `limit` jobs to `owner` until `until`, in the order of [`Job::order`]. Jobs leased to another owner
    /// are skipped until their lease expires. Use a new `owner` for every call: `finish` and `fail` identify the lease
    /// by it.
    fn lease(&self, scope: &Scope, kind: &str, limit: usize, owner: &str, now: Time, until: Time) -> Result<Vec<Job>>;

    /// Removes finished jobs and returns how many of them `owner` still held.
    fn finish(&self, scope: &Scope, kind: &str, owner: &str, keys: &[String]) -> Result<u64>;

    /// Returns failed jobs to the queue with one more attempt each. Returns how many of them `owner` still held.
    fn fail(&self, scope: &Scope, kind: &str, owner: &str, failures: &[JobFailure]) -> Result<u64>;

    /// Counts the jobs of a kind.
    fn job_counts(&self, scope: &Scope, kind: &str, now: Time) -> Result<JobCounts>;

    /// Returns jobs with a key after this one, ordered by key, at most `limit`.
    fn jobs_after(&self, scope: &Scope, kind: &str, after: &str, limit: usize) -> Result<Vec<Job>>;

    /// Removes jobs, whether leased or not, and returns how many existed.
    fn remove_jobs(&self, scope: &Scope, kind: &str, keys: &[String]) -> Result<u64>;

    /// Removes all jobs of a kind and returns how many existed.
    fn remove_kind(&self, scope: &Scope, kind: &str) -> Result<u64>;

    /// The wall-clock time that all processes on this store share: the database server's, if there is one.
    fn now(&self, scope: &Scope) -> Result<Time>;

    /// Returns the number stored under a name, for example how far a follower has read.
    fn mark(&self, scope: &Scope, name: &str) -> Result<Option<u64>>;

    /// Stores a number under a name, replacing an existing one.
    fn set_mark(&self, scope: &Scope, name: &str, value: u64) -> Result<()>;

    /// Sets a mark unless it exists and returns its value. Of several concurrent callers, exactly one sets it.
    fn claim_mark(&self, scope: &Scope, name: &str, value: u64) -> Result<u64>;

    /// Removes a mark; a missing mark is not an error.
    fn remove_mark(&self, scope: &Scope, name: &str) -> Result<()>;
}

/// The vector of one text by one model. Its bytes are opaque to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// The hash of the embedded text.
    pub input: Hash,
    pub bytes: Vec<u8>,
    pub made_at: Time,
    /// The number of secrets that were removed from the text first.
    pub redacted: u32,
}

/// Counts of the vectors of one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorCount {
    pub model: String,
    pub vectors: u64,
    /// The total size of the vectors, without keys and indexes.
    pub bytes: u64,
    /// The total number of secrets that were removed from the texts.
    pub redacted: u64,
    /// When the first of them was made.
    pub oldest: Time,
    /// When the last of them was made.
    pub newest: Time,
}

/// A job to add. Its key is unique within its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    pub key: String,
    pub lane: JobLane,
    /// Required jobs run before optional ones.
    pub required: bool,
    /// Among otherwise equal jobs, the highest runs first.
    pub priority: f64,
    /// Data for the worker, small.
    pub payload: String,
    /// The job is not leased before this time.
    pub not_before: Time,
}

/// The most significant part of the order of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobLane {
    /// Inputs whose vectors were made by another version of the model.
    Mismatch,
    Ordinary,
}

impl JobLane {
    pub(crate) fn number(self) -> i16 {
        match self {
            JobLane::Mismatch => 0,
            JobLane::Ordinary => 1,
        }
    }

    pub(crate) fn of(number: i16) -> Result<JobLane> {
        match number {
            0 => Ok(JobLane::Mismatch),
            1 => Ok(JobLane::Ordinary),
            other => Err(Error::internal(format!("there is no lane {other} for jobs"))),
        }
    }
}

/// A stored job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub key: String,
    pub lane: JobLane,
    pub required: bool,
    pub priority: f64,
    pub payload: String,
    /// The number of failed attempts.
    pub attempts: u32,
    /// The reason of the last failed attempt, truncated to [`ERROR_CHARS`] characters.
    pub last_error: Option<String>,
    /// The job is not leased before this time.
    pub not_before: Time,
    /// When a job was first added under this key; replacing it does not change it.
    pub enqueued_at: Time,
    /// When the lease ends; in the past when the job is not leased.
    pub leased_until: Time,
}

impl Job {
    /// The order in which jobs are leased: lane, required, priority, attempts, age, key.
    pub fn order(&self, other: &Job) -> Ordering {
        let first = |j: &Job| (j.lane, !j.required);
        first(self)
            .cmp(&first(other))
            // Priorities are finite, and -0.0 equals 0.0.
            .then(other.priority.partial_cmp(&self.priority).unwrap_or(Ordering::Equal))
            .then(self.attempts.cmp(&other.attempts))
            .then(self.enqueued_at.cmp(&other.enqueued_at))
            .then_with(|| self.key.cmp(&other.key))
    }
}

/// The failure of a leased job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFailure {
    pub key: String,
    /// Truncated to [`ERROR_CHARS`] characters when stored.
    pub error: String,
    /// The job is not leased again before this time.
    pub not_before: Time,
}

/// Longest stored error of a job: a reason, not a log.
pub const ERROR_CHARS: usize = 500;

impl JobFailure {
    pub(crate) fn shortened(&self) -> String {
        // PostgreSQL cannot store NUL characters.
        self.error.chars().filter(|c| *c != '\0').take(ERROR_CHARS).collect()
    }
}

/// Counts of the jobs in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// Required jobs, leased or not.
    pub required: u64,
    /// Optional jobs, leased or not.
    pub optional: u64,
    /// Jobs of either kind that are leased.
    pub leased: u64,
    /// Jobs of either kind that have failed and wait for a retry.
    pub failing: u64,
    /// Jobs of either kind in the lane `Mismatch`.
    pub mismatched: u64,
    /// When the oldest job of either kind was added; `None` if there are no jobs.
    pub oldest: Option<Time>,
}

/// Rejects priorities that are not finite, because stores order them differently.
pub(crate) fn check_priorities(jobs: &[NewJob]) -> Result<()> {
    match jobs.iter().find(|job| !job.priority.is_finite()) {
        Some(job) => Err(Error::invalid(
            ErrorCode::InvalidNumber,
            format!("the priority of job `{}` is not a finite number", job.key),
        )),
        None => Ok(()),
    }
}

/// Keeps only the last of the rows with the same key.
pub(crate) fn last_of_each<'a, T, K: std::hash::Hash + Eq>(rows: &'a [T], key: impl Fn(&'a T) -> K) -> Vec<&'a T> {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut last: Vec<_> = rows.iter().rev().filter(|row| seen.insert(key(row))).collect();
    last.reverse();
    last
}
