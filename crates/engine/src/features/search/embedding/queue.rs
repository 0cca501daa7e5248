//! The queue of objects to embed: follows the log and enqueues objects without a vector of the model.

use super::input::InputRules;
use super::kind;
use super::objects::{EmbeddableObject, PAGE, each_page, on_branch, view_now};
use lukasa_model::id::{MAIN, PROJECT_WIDE};
use lukasa_model::types::{EmbeddingPolicy, Registry};
use lukasa_model::{BranchNo, Error, FactNo, Position, Result, Time, Tx, VersionId};
use lukasa_search::embed::EmbedderModel;
use lukasa_store::derived::{JobLane, NewJob};
use lukasa_store::{Head, Ledger};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Minimum interval between embeddings of the same optional object, in microseconds.
const REST: i64 = 30_000_000;
/// Maximum number of objects remembered for that interval; beyond it, expired entries are dropped.
const REMEMBERED: usize = 10_000;

/// Enqueues the objects of one project for one model.
pub struct EmbeddingQueue {
    ledger: Ledger,
    model: String,
    kind: String,
    rules: InputRules,
    central: Option<Box<Centrality>>,
    /// The earliest time at which recently enqueued objects may be embedded again.
    recent: Mutex<FxHashMap<String, Time>>,
}

/// Returns the current centrality of objects of a branch, in their order; more central ones are embedded earlier.
type Centrality = dyn Fn(BranchNo, &[FactNo], Time) -> Result<Vec<f64>> + Send + Sync;

/// What was done with the objects that were examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnqueueCounts {
    /// Enqueued, or moved back to the beginning of the queue.
    pub required: usize,
    pub optional: usize,
    /// Of `required` and `optional`: those with a vector of another model.
    pub mismatched: usize,
    /// Without a significant change.
    pub unimportant: usize,
    /// With a vector already.
    pub known: usize,
    /// Of a type that is not embedded.
    pub disabled: usize,
    /// Already in the queue.
    pub waiting: usize,
}

impl EnqueueCounts {
    /// Number of objects that were enqueued.
    pub fn total(&self) -> usize {
        self.required + self.optional
    }
}

/// The payload of a job: an object on a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddingJob {
    pub thing: FactNo,
    pub branch: BranchNo,
}

/// The key of an object's job: one per object and branch.
pub fn job_key(branch: BranchNo, id: Uuid) -> String {
    format!("{branch}/{id}")
}

impl EmbeddingQueue {
    /// Creates the queue of a project for a model; embeds objects in the order they were enqueued.
    pub fn new(ledger: Ledger, model: &EmbedderModel, rules: InputRules) -> EmbeddingQueue {
        let model = model.id();
        EmbeddingQueue { ledger, kind: kind(&model), model, rules, central: None, recent: Mutex::default() }
    }

    /// Orders required and optional objects by centrality. The function is called with up to a thousand objects at a time;
    /// without it, objects are embedded in the order they were enqueued.
    #[must_use]
    pub fn by_centrality(
        mut self,
        central: impl Fn(BranchNo, &[FactNo], Time) -> Result<Vec<f64>> + Send + Sync + 'static,
    ) -> EmbeddingQueue {
        self.central = Some(Box::new(central));
        self
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub fn rules(&self) -> &InputRules {
        &self.rules
    }

    /// The id of the model that this queue is for.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The kind of its jobs in the store.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Examines everything committed since the last call, by any process; all objects on the first call for a model, and after
    /// a type was declared. Reads only the head if nothing was committed.
    pub fn follow(&self, now: Time) -> Result<EnqueueCounts> {
        let (derived, scope) = (self.ledger.store().derived(), self.ledger.scope());
        let head = self.ledger.head()?;
        let done = match derived.mark(scope, &self.kind)? {
            Some(mark) if mark == head.position().mark() => return Ok(EnqueueCounts::default()),
            Some(mark) if self.follows(mark, &head)? => self.since(Position::tx_of_mark(mark), head.tx, now)?,
            _ => self.catch_up(now)?,
        };
        // The mark is set last: examining an object twice is cheap, missing one is not.
        derived.set_mark(scope, &self.kind, head.position().mark())?;
        Ok(done)
    }

    /// Whether it suffices to examine the transactions after a mark: the log still contains the position of the mark, and no
    /// type was declared since.
    fn follows(&self, mark: u64, head: &Head) -> Result<bool> {
        let tx = Position::tx_of_mark(mark);
        if tx > head.tx || tx < head.declared.tx {
            return Ok(false);
        }
        let position = self.ledger.store().read(self.ledger.scope())?.position(tx)?;
        Ok(position.is_some_and(|position| position.mark() == mark))
    }

    /// Examines the facts of transactions `after+1..=to`.
    pub fn since(&self, after: Tx, to: Tx, now: Time) -> Result<EnqueueCounts> {
        let touched = self.touched(after, to)?;
        let registry = self.ledger.registry()?;
        let mut done = EnqueueCounts::default();
        for (branch, mut things) in touched {
            things.sort_unstable();
            things.dedup();
            let view = view_now(&self.ledger, branch, now)?;
            for things in things.chunks(PAGE) {
                let mut weighty = Vec::new();
                for (object, is_weighty) in on_branch(&self.ledger, &view, &registry, things, Some(after))? {
                    if is_weighty {
                        weighty.push(object);
                    } else {
                        done.unimportant += 1;
                    }
                }
                self.offer(&registry, weighty, None, now, &mut done)?;
            }
        }
        Ok(done)
    }

    /// Returns the facts that were changed, per branch. Only their numbers are kept, because a load may change a million.
    fn touched(&self, after: Tx, to: Tx) -> Result<BTreeMap<BranchNo, Vec<FactNo>>> {
        let mut touched: BTreeMap<BranchNo, Vec<FactNo>> = BTreeMap::new();
        let mut reader = self.ledger.store().read(self.ledger.scope())?;
        let mut last = VersionId::last_of(after);
        loop {
            let page = reader.versions_after(last, PAGE)?;
            let full = page.len() == PAGE;
            last = page.last().map_or(last, |statement| statement.version);
            for statement in page.iter().filter(|statement| statement.version.tx() <= to) {
                let branch = if statement.branch == PROJECT_WIDE { MAIN } else { statement.branch };
                touched.entry(branch).or_default().push(statement.thing);
            }
            if !full || last.tx() > to {
                return Ok(touched);
            }
        }
    }

    /// Examines all objects. Jobs that exist are left unchanged.
    pub fn catch_up(&self, now: Time) -> Result<EnqueueCounts> {
        let waiting = self.waiting()?;
        let registry = self.ledger.registry()?;
        let mut done = EnqueueCounts::default();
        each_page(&self.ledger, now, &mut |page| {
            for part in into_parts(page) {
                self.offer(&registry, part, Some(&waiting), now, &mut done)?;
            }
            Ok(())
        })?;
        Ok(done)
    }

    /// Returns the keys of existing jobs, and whether they are required.
    fn waiting(&self) -> Result<FxHashMap<String, bool>> {
        let mut keys = FxHashMap::default();
        let mut last = String::new();
        loop {
            let page = self.ledger.store().derived().jobs_after(self.ledger.scope(), &self.kind, &last, PAGE)?;
            let Some(end) = page.last() else { return Ok(keys) };
            last = end.key.clone();
            keys.extend(page.into_iter().map(|job| (job.key, job.required)));
        }
    }

    /// Enqueues those of some objects that have no vector yet.
    fn offer(
        &self,
        registry: &Registry,
        objects: Vec<EmbeddableObject>,
        waiting: Option<&FxHashMap<String, bool>>,
        now: Time,
        done: &mut EnqueueCounts,
    ) -> Result<()> {
        let mut wanted = Vec::new();
        for object in objects {
            let key = job_key(object.branch, object.thing.id);
            match object.policy(registry) {
                None => done.disabled += 1,
                Some(embedding) => {
                    let required = embedding.policy == EmbeddingPolicy::Required;
                    if waiting.and_then(|waiting| waiting.get(&key)) == Some(&required) {
                        done.waiting += 1;
                        continue;
                    }
                    let input = object.input(&embedding, &self.rules)?.hash;
                    wanted.push((key, input, required, object));
                }
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let inputs: Vec<_> = wanted.iter().map(|(_, input, ..)| *input).collect();
        let (derived, scope) = (self.ledger.store().derived(), self.ledger.scope());
        let known = |model: &str| -> Result<FxHashSet<_>> {
            Ok(derived.known_vectors(scope, model, &inputs)?.into_iter().map(|(input, _)| input).collect())
        };
        let own = known(&self.model)?;
        let before = wanted.len();
        wanted.retain(|(_, input, ..)| !own.contains(input));
        done.known += before - wanted.len();
        if wanted.is_empty() {
            return Ok(());
        }
        let mut elsewhere = FxHashSet::default();
        for model in derived.vector_models(scope)?.iter().filter(|model| **model != self.model) {
            elsewhere.extend(known(model)?);
        }
        let things: Vec<_> = wanted.iter().map(|(.., object)| (object.branch, object.thing.no)).collect();
        let priorities = self.priorities(&things, now)?;
        let mut jobs = Vec::with_capacity(wanted.len());
        for ((key, input, required, object), priority) in wanted.into_iter().zip(priorities) {
            let lane = if elsewhere.contains(&input) { JobLane::Mismatch } else { JobLane::Ordinary };
            done.required += usize::from(required);
            done.optional += usize::from(!required);
            done.mismatched += usize::from(lane == JobLane::Mismatch);
            let payload = EmbeddingJob { thing: object.thing.no, branch: object.branch };
            let payload = serde_json::to_string(&payload).expect("numbers are plain data");
            let not_before = if required { now } else { self.rested(&key, now) };
            jobs.push(NewJob { key, lane, required, priority, payload, not_before });
        }
        derived.enqueue(scope, &self.kind, &jobs, now)
    }

    /// Returns the priority of objects within their class (required or optional).
    fn priorities(&self, things: &[(BranchNo, FactNo)], now: Time) -> Result<Vec<f64>> {
        let Some(central) = &self.central else { return Ok(vec![0.0; things.len()]) };
        let mut all = Vec::with_capacity(things.len());
        for of_branch in things.chunk_by(|a, b| a.0 == b.0) {
            let numbers: Vec<FactNo> = of_branch.iter().map(|(_, thing)| *thing).collect();
            let found = central(of_branch[0].0, &numbers, now)?;
            if found.len() != numbers.len() {
                return Err(Error::internal("the centrality function returned another number of values than objects"));
            }
            all.extend(found);
        }
        Ok(all)
    }

    /// Returns the earliest time at which an object that is enqueued now may be embedded.
    fn rested(&self, key: &str, now: Time) -> Time {
        let mut recent = self.recent.lock();
        if recent.len() >= REMEMBERED {
            recent.retain(|_, last| last.0 > now.0 - REST);
            // More than can be remembered: a load, not repeated edits.
            if recent.len() >= REMEMBERED {
                recent.clear();
            }
        }
        let not_before = match recent.get(key) {
            // A time is already set; further edits do not postpone it.
            Some(last) if *last > now => *last,
            Some(last) => Time(last.0 + REST).max(now),
            None => now,
        };
        recent.insert(key.to_owned(), not_before);
        not_before
    }
}

fn into_parts(mut page: Vec<EmbeddableObject>) -> Vec<Vec<EmbeddableObject>> {
    let mut parts = Vec::new();
    while page.len() > PAGE {
        let rest = page.split_off(PAGE);
        parts.push(std::mem::replace(&mut page, rest));
    }
    parts.push(page);
    parts
}
