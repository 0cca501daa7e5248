//! The progress of embedding: coverage, staleness, backlog and the state of the model.

use super::breaker::{Breaker, BreakerState};
use super::kind;
use super::objects::{PAGE, each_page_of_main};
use super::queue::EmbeddingQueue;
use crate::telemetry::metrics;
use lukasa_model::json::Hash;
use lukasa_model::types::EmbeddingPolicy;
use lukasa_model::{Result, Time};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

/// Share of required objects with a vector from which search counts as ready.
const READY: f64 = 99.0;
/// More required objects than this in the queue raise an alert.
const BACKLOG: u64 = 500;

/// The progress of embedding a project.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Readiness {
    /// At least 99 % of the required objects have a vector.
    pub ready: bool,
    /// The model that computes vectors.
    pub model: String,
    /// The model whose vectors search reads, and to which coverage refers.
    pub reads: String,
    pub required: EmbeddingCoverage,
    pub optional: EmbeddingCoverage,
    /// Number of objects of types that are not embedded.
    pub disabled: u64,
    /// Absent if there is nothing to embed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staleness: Option<Staleness>,
    pub backlog: Backlog,
    pub breaker: BreakerReport,
    /// Every model with vectors.
    pub models: Vec<ModelCount>,
    /// Number of secrets redacted in the texts whose vectors search reads.
    pub redactions: u64,
}

/// How many objects have a vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct EmbeddingCoverage {
    pub objects: u64,
    pub embedded: u64,
    /// 100 if there are no objects.
    pub percent: f64,
}

impl EmbeddingCoverage {
    fn count(&mut self, embedded: bool) {
        self.objects += 1;
        self.embedded += u64::from(embedded);
    }

    fn done(self) -> EmbeddingCoverage {
        let percent = if self.objects == 0 { 100.0 } else { 100.0 * self.embedded as f64 / self.objects as f64 };
        EmbeddingCoverage { percent, ..self }
    }
}

/// Seconds between a change and its vector; for objects without a vector, the seconds they have been waiting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Staleness {
    pub p50_seconds: f64,
    pub p90_seconds: f64,
}

/// The jobs that wait.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Backlog {
    pub required: u64,
    pub optional: u64,
    pub leased: u64,
    pub failing: u64,
    /// Objects with a vector of another model only.
    pub mismatched: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Time>,
    /// More than 500 required objects wait.
    pub alert: bool,
}

/// The state of the circuit breaker, for answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum BreakerReport {
    Closed,
    Open { since: Time, next_probe: Time },
}

/// The vectors of one model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelCount {
    pub model: String,
    pub vectors: u64,
    pub bytes: u64,
    pub redactions: u64,
    pub newest: Time,
}

/// Examines every object of the main branch. `reads` is the model whose vectors search reads.
pub fn readiness(queue: &EmbeddingQueue, breaker: &Breaker, reads: &str, now: Time) -> Result<Readiness> {
    let ledger = queue.ledger();
    let (derived, scope) = (ledger.store().derived(), ledger.scope());
    let registry = ledger.registry()?;
    let (mut required, mut optional, mut disabled) = (EmbeddingCoverage::default(), EmbeddingCoverage::default(), 0);
    let mut lags = Vec::new();
    each_page_of_main(ledger, now, &mut |page| {
        for part in page.chunks(PAGE) {
            let mut wanted = Vec::new();
            for object in part {
                match object.policy(&registry) {
                    None => disabled += 1,
                    Some(embedding) => {
                        let input = object.input(&embedding, queue.rules())?.hash;
                        wanted.push((input, embedding.policy, object.statement.recorded_at));
                    }
                }
            }
            let inputs: Vec<Hash> = wanted.iter().map(|(input, ..)| *input).collect();
            let made: FxHashMap<Hash, Time> = derived.known_vectors(scope, reads, &inputs)?.into_iter().collect();
            for (input, policy, recorded_at) in wanted {
                let made = made.get(&input);
                let coverage = if policy == EmbeddingPolicy::Required { &mut required } else { &mut optional };
                coverage.count(made.is_some());
                lags.push((made.copied().unwrap_or(now).0 - recorded_at.0).max(0));
            }
        }
        Ok(())
    })?;
    let counts = derived.job_counts(scope, &kind(queue.model()), now)?;
    let models: Vec<ModelCount> = derived
        .vector_counts(scope)?
        .into_iter()
        .map(|c| ModelCount {
            model: c.model,
            vectors: c.vectors,
            bytes: c.bytes,
            redactions: c.redacted,
            newest: c.newest,
        })
        .collect();
    let (required, optional) = (required.done(), optional.done());
    for (policy, coverage, waiting) in
        [("required", required, counts.required), ("optional", optional, counts.optional)]
    {
        metrics().embedding_coverage.set_of(&[policy], coverage.percent);
        metrics().embedding_pending.set_of(&[&scope.tenant, &scope.project, policy], waiting as f64);
    }
    Ok(Readiness {
        ready: required.percent >= READY,
        model: queue.model().to_owned(),
        reads: reads.to_owned(),
        required,
        optional,
        disabled,
        staleness: staleness(lags),
        backlog: Backlog {
            required: counts.required,
            optional: counts.optional,
            leased: counts.leased,
            failing: counts.failing,
            mismatched: counts.mismatched,
            oldest: counts.oldest,
            alert: counts.required > BACKLOG,
        },
        breaker: match breaker.state() {
            BreakerState::Closed => BreakerReport::Closed,
            BreakerState::Open { since, next_probe } => BreakerReport::Open { since, next_probe },
        },
        redactions: models.iter().filter(|m| m.model == reads).map(|m| m.redactions).sum(),
        models,
    })
}

/// Returns the smallest value that at least this percentage of the values do not exceed.
fn staleness(mut lags: Vec<i64>) -> Option<Staleness> {
    lags.sort_unstable();
    let at = |percent: usize| {
        let place = (lags.len() * percent).div_ceil(100).max(1) - 1;
        lags.get(place).map(|micros| *micros as f64 / 1e6)
    };
    Some(Staleness { p50_seconds: at(50)?, p90_seconds: at(90)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_there() {
        let of = |lags: &[i64]| {
            staleness(lags.iter().map(|s| s * 1_000_000).collect()).map(|s| (s.p50_seconds, s.p90_seconds))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[7]), Some((7.0, 7.0)));
        assert_eq!(of(&[10, 9, 8, 7, 6, 5, 4, 3, 2, 1]), Some((5.0, 9.0)));
        assert_eq!(of(&[1, 2, 3]), Some((2.0, 3.0)));
    }
}
