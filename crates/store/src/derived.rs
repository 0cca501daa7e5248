//! What can be made again from facts and is kept to save work: vectors of texts, jobs that wait, how far a follower came.
//!
//! None of it is part of the log, of dumps or of verification, and all of it may be dropped at any time. Unlike facts it
//! is changed and removed.

use lukasa_model::json::Hash;
use lukasa_model::{Error, Result, Scope, Time};
use std::cmp::Ordering;

/// Vectors, jobs and marks of many projects.
///
/// Contract, checked by `tests/contract/derived.rs` on every store:
/// - Each call is atomic and durable by itself; no call waits for a writer of facts longer than for its turn on the disk.
/// - Reading what a project does not have gives nothing; writing to a project that does not exist is `unknown_project`.
/// - Time comes from the caller, so that leases can be tested and all workers of a server agree.
pub trait Derived: Send + Sync {
    /// Keeps vectors of a model; one that is there already is replaced.
    fn put_vectors(&self, scope: &Scope, model: &str, vectors: &[Vector]) -> Result<()>;

    /// Those of these inputs that have a vector of the model, in no particular order.
    fn vectors(&self, scope: &Scope, model: &str, inputs: &[Hash]) -> Result<Vec<Vector>>;

    /// Like `vectors`, but only which ones there are and when they were made.
    fn known_vectors(&self, scope: &Scope, model: &str, inputs: &[Hash]) -> Result<Vec<(Hash, Time)>>;

    /// Every vector of a model, in no particular order, without holding more than a page of them.
    fn each_vector(&self, scope: &Scope, model: &str, each: &mut dyn FnMut(Vector) -> Result<()>) -> Result<()>;

    /// Names of the models that have vectors, or had some, sorted.
    fn vector_models(&self, scope: &Scope) -> Result<Vec<String>>;

    /// What there is of each model, by its name. Looks at every vector.
    fn vector_counts(&self, scope: &Scope) -> Result<Vec<VectorCount>>;

    /// Removes these vectors of a model; how many there were.
    fn remove_vectors(&self, scope: &Scope, model: &str, inputs: &[Hash]) -> Result<u64>;

    /// Removes all vectors of a model; how many there were.
    fn remove_model(&self, scope: &Scope, model: &str) -> Result<u64>;

    /// Adds jobs. One that is there already under its kind and key starts over with what is said now: no attempts, no
    /// error, no lease, so that whoever works on it at the moment cannot finish it. It keeps its age.
    fn enqueue(&self, scope: &Scope, kind: &str, jobs: &[NewJob], now: Time) -> Result<()>;

    /// Takes up to `limit` jobs for `owner` until `until`, best first (see [`Job::order`]). Jobs that somebody else holds
    /// are passed over until their lease has run out. Give every call its own `owner`: it is what `finish` and `fail` go by.
    fn lease(&self, scope: &Scope, kind: &str, limit: usize, owner: &str, now: Time, until: Time) -> Result<Vec<Job>>;

    /// Removes jobs that are done; how many of them `owner` still held.
    fn finish(&self, scope: &Scope, kind: &str, owner: &str, keys: &[String]) -> Result<u64>;

    /// Gives jobs back that could not be done, each with one attempt more; how many of them `owner` still held.
    fn fail(&self, scope: &Scope, kind: &str, owner: &str, failures: &[Failure]) -> Result<u64>;

    fn job_counts(&self, scope: &Scope, kind: &str, now: Time) -> Result<JobCounts>;

    /// Jobs with a key after this one, ordered by key, at most `limit`.
    fn jobs_after(&self, scope: &Scope, kind: &str, after: &str, limit: usize) -> Result<Vec<Job>>;

    /// Removes jobs, whoever holds them; how many there were.
    fn remove_jobs(&self, scope: &Scope, kind: &str, keys: &[String]) -> Result<u64>;

    /// Removes all jobs of a kind; how many there were.
    fn remove_kind(&self, scope: &Scope, kind: &str) -> Result<u64>;

    /// The time of day that all processes on this store agree on: the database server's, where there is one.
    fn now(&self, scope: &Scope) -> Result<Time>;

    /// How far somebody came: a number under a name.
    fn mark(&self, scope: &Scope, name: &str) -> Result<Option<u64>>;

    fn set_mark(&self, scope: &Scope, name: &str, value: u64) -> Result<()>;

    /// Sets a mark unless there is one; what it is now. Of several that try at the same moment, one succeeds.
    fn claim_mark(&self, scope: &Scope, name: &str, value: u64) -> Result<u64>;

    /// Removes a mark; one that is not there is no error.
    fn remove_mark(&self, scope: &Scope, name: &str) -> Result<()>;
}

/// A vector of one text by one model. What its bytes mean is the business of who made them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Of the text it was made from.
    pub input: Hash,
    pub bytes: Vec<u8>,
    pub made_at: Time,
    /// How many secrets were taken out of the text first.
    pub redacted: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorCount {
    pub model: String,
    pub vectors: u64,
    pub bytes: u64,
    pub redacted: u64,
    pub oldest: Time,
    pub newest: Time,
}

/// Work to be done, under a key that is its own among its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    pub key: String,
    pub lane: Lane,
    /// Before what is optional.
    pub required: bool,
    /// Among equals, the highest first.
    pub priority: f64,
    /// Whatever the worker needs, small.
    pub payload: String,
    /// Not handed out earlier.
    pub not_before: Time,
}

/// Goes before everything else about a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// What was made by another version of the model than the one in use.
    Mismatch,
    Ordinary,
}

impl Lane {
    pub(crate) fn number(self) -> i16 {
        match self {
            Lane::Mismatch => 0,
            Lane::Ordinary => 1,
        }
    }

    pub(crate) fn of(number: i16) -> Result<Lane> {
        match number {
            0 => Ok(Lane::Mismatch),
            1 => Ok(Lane::Ordinary),
            other => Err(Error::internal(format!("there is no lane {other} for jobs"))),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub key: String,
    pub lane: Lane,
    pub required: bool,
    pub priority: f64,
    pub payload: String,
    /// How often it has failed.
    pub attempts: u32,
    pub last_error: Option<String>,
    pub not_before: Time,
    pub enqueued_at: Time,
    /// Until when somebody works on it; long past when nobody does.
    pub leased_until: Time,
}

impl Job {
    /// The order in which jobs are handed out: lane, required, priority, attempts, age, key.
    pub fn order(&self, other: &Job) -> Ordering {
        let first = |j: &Job| (j.lane, !j.required);
        first(self)
            .cmp(&first(other))
            // Priorities are finite, and zero is zero.
            .then(other.priority.partial_cmp(&self.priority).unwrap_or(Ordering::Equal))
            .then(self.attempts.cmp(&other.attempts))
            .then(self.enqueued_at.cmp(&other.enqueued_at))
            .then_with(|| self.key.cmp(&other.key))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub key: String,
    /// Kept up to [`ERROR_CHARS`] characters.
    pub error: String,
    pub not_before: Time,
}

/// A reason, not a log.
pub const ERROR_CHARS: usize = 500;

impl Failure {
    pub(crate) fn shortened(&self) -> String {
        // PostgreSQL keeps no NUL.
        self.error.chars().filter(|c| *c != '\0').take(ERROR_CHARS).collect()
    }
}

/// How a queue stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    pub required: u64,
    pub optional: u64,
    /// Of all of them: somebody works on it.
    pub leased: u64,
    /// Of all of them: has failed and waits for another try.
    pub failing: u64,
    /// Of all of them: in the lane of model versions that differ.
    pub mismatched: u64,
    pub oldest: Option<Time>,
}

/// Refuses what does not order the same everywhere.
pub(crate) fn check_priorities(jobs: &[NewJob]) -> Result<()> {
    match jobs.iter().find(|job| !job.priority.is_finite()) {
        Some(job) => {
            Err(Error::invalid("invalid_number", format!("the priority of job `{}` is not a finite number", job.key)))
        }
        None => Ok(()),
    }
}

/// Of rows with the same key only the last counts.
pub(crate) fn last_of_each<'a, T, K: std::hash::Hash + Eq>(rows: &'a [T], key: impl Fn(&'a T) -> K) -> Vec<&'a T> {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut last: Vec<_> = rows.iter().rev().filter(|row| seen.insert(key(row))).collect();
    last.reverse();
    last
}
