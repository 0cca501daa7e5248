//! Derived data in plain maps, per project.

use super::{MemoryStore, unknown_project};
use crate::derived::{Derived, Job, JobCounts, JobFailure, NewJob, Vector, VectorCount, check_priorities};
use lukasa_model::json::Hash;
use lukasa_model::{Result, Scope, Time};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct DerivedData {
    vectors: BTreeMap<String, BTreeMap<Hash, Vector>>,
    jobs: BTreeMap<String, BTreeMap<String, HeldJob>>,
    marks: BTreeMap<String, u64>,
}

struct HeldJob {
    job: Job,
    owner: Option<String>,
}

impl MemoryStore {
    fn with_derived<T>(&self, scope: &Scope, read: impl FnOnce(&mut DerivedData) -> T) -> T {
        read(self.derived_data.lock().entry(scope.clone()).or_default())
    }

    fn must_exist(&self, scope: &Scope) -> Result<()> {
        if self.projects.read().contains_key(scope) { Ok(()) } else { Err(unknown_project(scope)) }
    }
}

impl Derived for MemoryStore {
    fn put_vectors(&self, scope: &Scope, model: &str, vectors: &[Vector]) -> Result<()> {
        self.must_exist(scope)?;
        self.with_derived(scope, |derived| {
            let of_model = derived.vectors.entry(model.into()).or_default();
            of_model.extend(vectors.iter().map(|v| (v.input, v.clone())));
        });
        Ok(())
    }

    fn vectors(&self, scope: &Scope, model: &str, inputs: &[Hash]) -> Result<Vec<Vector>> {
        Ok(self.with_derived(scope, |derived| {
            let Some(of_model) = derived.vectors.get(model) else { return vec![] };
            let mut inputs = inputs.to_vec();
            inputs.sort_unstable();
            inputs.dedup();
            inputs.iter().filter_map(|input| of_model.get(input)).cloned().collect()
        }))
    }

    fn known_vectors(&self, scope: &Scope, model: &str, inputs: &[Hash]) -> Result<Vec<(Hash, Time)>> {
        Ok(self.vectors(scope, model, inputs)?.into_iter().map(|v| (v.input, v.made_at)).collect())
    }

    fn each_vector(&self, scope: &Scope, model: &str, each: &mut dyn FnMut(Vector) -> Result<()>) -> Result<()> {
        let all: Vec<Vector> = self.with_derived(scope, |derived| {
            derived.vectors.get(model).map(|of_model| of_model.values().cloned().collect()).unwrap_or_default()
        });
        all.into_iter().try_for_each(each)
    }

    fn vector_models(&self, scope: &Scope) -> Result<Vec<String>> {
        Ok(self.with_derived(scope, |derived| derived.vectors.keys().cloned().collect()))
    }

    fn vector_counts(&self, scope: &Scope) -> Result<Vec<VectorCount>> {
        Ok(self.with_derived(scope, |derived| {
            let count = |(model, all): (&String, &BTreeMap<Hash, Vector>)| {
                Some(VectorCount {
                    model: model.clone(),
                    vectors: all.len() as u64,
                    bytes: all.values().map(|v| v.bytes.len() as u64).sum(),
                    redacted: all.values().map(|v| u64::from(v.redacted)).sum(),
                    oldest: all.values().map(|v| v.made_at).min()?,
                    newest: all.values().map(|v| v.made_at).max()?,
                })
            };
            derived.vectors.iter().filter_map(count).collect()
        }))
    }

    fn remove_vectors(&self, scope: &Scope, model: &str, inputs: &[Hash]) -> Result<u64> {
        Ok(self.with_derived(scope, |derived| {
            let Some(of_model) = derived.vectors.get_mut(model) else { return 0 };
            inputs.iter().filter(|input| of_model.remove(input).is_some()).count() as u64
        }))
    }

    fn remove_model(&self, scope: &Scope, model: &str) -> Result<u64> {
        Ok(self.with_derived(scope, |derived| derived.vectors.remove(model).map_or(0, |all| all.len() as u64)))
    }

    fn enqueue(&self, scope: &Scope, kind: &str, jobs: &[NewJob], now: Time) -> Result<()> {
        check_priorities(jobs)?;
        self.must_exist(scope)?;
        self.with_derived(scope, |derived| {
            let of_kind = derived.jobs.entry(kind.into()).or_default();
            for new in jobs {
                let enqueued_at = of_kind.get(&new.key).map_or(now, |held| held.job.enqueued_at);
                let job = Job {
                    key: new.key.clone(),
                    lane: new.lane,
                    required: new.required,
                    priority: new.priority,
                    payload: new.payload.clone(),
                    attempts: 0,
                    last_error: None,
                    not_before: new.not_before,
                    enqueued_at,
                    leased_until: Time::MIN,
                };
                of_kind.insert(new.key.clone(), HeldJob { job, owner: None });
            }
        });
        Ok(())
    }

    fn lease(&self, scope: &Scope, kind: &str, limit: usize, owner: &str, now: Time, until: Time) -> Result<Vec<Job>> {
        Ok(self.with_derived(scope, |derived| {
            let Some(of_kind) = derived.jobs.get_mut(kind) else { return vec![] };
            let mut due: Vec<&mut HeldJob> =
                of_kind.values_mut().filter(|h| h.job.not_before <= now && h.job.leased_until <= now).collect();
            due.sort_by(|a, b| a.job.order(&b.job));
            due.truncate(limit);
            let take = |held: &mut HeldJob| {
                held.owner = Some(owner.into());
                held.job.leased_until = until;
                held.job.clone()
            };
            due.into_iter().map(take).collect()
        }))
    }

    fn finish(&self, scope: &Scope, kind: &str, owner: &str, keys: &[String]) -> Result<u64> {
        Ok(self.with_derived(scope, |derived| {
            let Some(of_kind) = derived.jobs.get_mut(kind) else { return 0 };
            let mut done = 0;
            for key in keys {
                if of_kind.get(key).is_some_and(|held| held.owner.as_deref() == Some(owner)) {
                    of_kind.remove(key);
                    done += 1;
                }
            }
            done
        }))
    }

    fn fail(&self, scope: &Scope, kind: &str, owner: &str, failures: &[JobFailure]) -> Result<u64> {
        Ok(self.with_derived(scope, |derived| {
            let Some(of_kind) = derived.jobs.get_mut(kind) else { return 0 };
            let mut given_back = 0;
            for failure in failures {
                let Some(held) = of_kind.get_mut(&failure.key).filter(|h| h.owner.as_deref() == Some(owner)) else {
                    continue;
                };
                held.owner = None;
                held.job.attempts += 1;
                held.job.last_error = Some(failure.shortened());
                held.job.not_before = failure.not_before;
                held.job.leased_until = Time::MIN;
                given_back += 1;
            }
            given_back
        }))
    }

    fn job_counts(&self, scope: &Scope, kind: &str, now: Time) -> Result<JobCounts> {
        Ok(self.with_derived(scope, |derived| {
            let mut counts = JobCounts::default();
            for HeldJob { job, .. } in derived.jobs.get(kind).into_iter().flat_map(BTreeMap::values) {
                counts.required += u64::from(job.required);
                counts.optional += u64::from(!job.required);
                counts.leased += u64::from(job.leased_until > now);
                counts.failing += u64::from(job.attempts > 0);
                counts.mismatched += u64::from(job.lane == crate::derived::JobLane::Mismatch);
                counts.oldest = Some(counts.oldest.map_or(job.enqueued_at, |oldest| oldest.min(job.enqueued_at)));
            }
            counts
        }))
    }

    fn jobs_after(&self, scope: &Scope, kind: &str, after: &str, limit: usize) -> Result<Vec<Job>> {
        Ok(self.with_derived(scope, |derived| {
            let Some(of_kind) = derived.jobs.get(kind) else { return vec![] };
            let later = of_kind.values().filter(|held| held.job.key.as_str() > after);
            later.take(limit).map(|held| held.job.clone()).collect()
        }))
    }

    fn remove_jobs(&self, scope: &Scope, kind: &str, keys: &[String]) -> Result<u64> {
        Ok(self.with_derived(scope, |derived| {
            let Some(of_kind) = derived.jobs.get_mut(kind) else { return 0 };
            keys.iter().filter(|key| of_kind.remove(*key).is_some()).count() as u64
        }))
    }

    fn remove_kind(&self, scope: &Scope, kind: &str) -> Result<u64> {
        Ok(self.with_derived(scope, |derived| derived.jobs.remove(kind).map_or(0, |all| all.len() as u64)))
    }

    fn now(&self, _: &Scope) -> Result<Time> {
        Ok(self.clock.now())
    }

    fn mark(&self, scope: &Scope, name: &str) -> Result<Option<u64>> {
        Ok(self.with_derived(scope, |derived| derived.marks.get(name).copied()))
    }

    fn set_mark(&self, scope: &Scope, name: &str, value: u64) -> Result<()> {
        self.must_exist(scope)?;
        self.with_derived(scope, |derived| derived.marks.insert(name.into(), value));
        Ok(())
    }

    fn claim_mark(&self, scope: &Scope, name: &str, value: u64) -> Result<u64> {
        self.must_exist(scope)?;
        Ok(self.with_derived(scope, |derived| *derived.marks.entry(name.into()).or_insert(value)))
    }

    fn remove_mark(&self, scope: &Scope, name: &str) -> Result<()> {
        self.with_derived(scope, |derived| derived.marks.remove(name));
        Ok(())
    }
}
