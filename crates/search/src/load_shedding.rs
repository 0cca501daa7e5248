//! Load shedding: which optional stages of a search are left out, and in which order, to meet a time budget.

use crate::recipes::{SHEDDING, SheddingRecipe};
use serde::Serialize;

/// A stage that a search may leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SheddingStep {
    /// Fewer candidates are reranked.
    RerankPoolReduced,
    /// Nothing is reranked.
    RerankDisabledPerf,
    /// Half of the neighbours.
    ExpansionTrimmed,
    /// No paths between results.
    PathsDisabledPerf,
    /// Three quarters of the candidates.
    CandidatePoolReduced,
    /// No search by meaning.
    VectorDisabledPerf,
}

impl SheddingStep {
    /// All steps, in the order in which they are taken.
    pub const ORDER: [SheddingStep; 6] = [
        SheddingStep::RerankPoolReduced,
        SheddingStep::RerankDisabledPerf,
        SheddingStep::ExpansionTrimmed,
        SheddingStep::PathsDisabledPerf,
        SheddingStep::CandidatePoolReduced,
        SheddingStep::VectorDisabledPerf,
    ];

    /// Encodes steps as bits, by their order.
    pub fn bits(steps: &[SheddingStep]) -> u8 {
        SheddingStep::ORDER.iter().enumerate().filter(|(_, step)| steps.contains(step)).map(|(at, _)| 1 << at).sum()
    }

    /// Decodes the result of [`SheddingStep::bits`].
    pub fn of_bits(bits: u8) -> Vec<SheddingStep> {
        SheddingStep::ORDER
            .into_iter()
            .enumerate()
            .filter(|(at, _)| bits >> at & 1 == 1)
            .map(|(_, step)| step)
            .collect()
    }

    /// Describes what is left out, for people.
    pub fn left_out(self) -> &'static str {
        match self {
            SheddingStep::RerankPoolReduced => "part of the reranking",
            SheddingStep::RerankDisabledPerf => "reranking",
            SheddingStep::ExpansionTrimmed => "half of the neighbours",
            SheddingStep::PathsDisabledPerf => "paths",
            SheddingStep::CandidatePoolReduced => "a quarter of the candidates",
            SheddingStep::VectorDisabledPerf => "vectors",
        }
    }

    /// The code of the warning in an answer.
    pub fn warning(self) -> &'static str {
        match self {
            SheddingStep::RerankPoolReduced => "rerank_pool_reduced",
            SheddingStep::RerankDisabledPerf => "rerank_disabled_perf",
            SheddingStep::ExpansionTrimmed => "expansion_trimmed",
            SheddingStep::PathsDisabledPerf => "paths_disabled_perf",
            SheddingStep::CandidatePoolReduced => "candidate_pool_reduced",
            SheddingStep::VectorDisabledPerf => "vector_disabled_perf",
        }
    }
}

/// Milliseconds per stage, averaged over requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StageTimes {
    pub lexical_ms: f64,
    pub vector_ms: f64,
    pub expansion_ms: f64,
    pub paths_ms: f64,
    pub rerank_ms: f64,
    /// All other stages.
    pub rest_ms: f64,
}

impl StageTimes {
    /// The sum over all stages, in milliseconds.
    pub fn total(&self) -> f64 {
        self.lexical_ms + self.vector_ms + self.expansion_ms + self.paths_ms + self.rerank_ms + self.rest_ms
    }
}

/// Average costs of the stages of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AverageStageTimes {
    costs: StageTimes,
    requests: u32,
}

impl AverageStageTimes {
    /// Returns the averages after one more request. The averages of stages that were left out decay slowly, so that the
    /// stages are tried again.
    #[must_use]
    pub fn after(&self, seen: &StageTimes, shed: &[SheddingStep]) -> AverageStageTimes {
        let left_out = |step: SheddingStep| shed.contains(&step);
        let SheddingRecipe { newest, decay, settling, .. } = SHEDDING;
        let average = |old: f64, new: f64, skipped: bool| match skipped {
            true => old * (1.0 - newest * decay),
            false if old == 0.0 => new,
            // Of the first requests, the fastest time of each stage counts, because others include one-time loading.
            false if self.requests < settling => old.min(new),
            false => old * (1.0 - newest) + new * newest,
        };
        let old = &self.costs;
        let costs = StageTimes {
            lexical_ms: average(old.lexical_ms, seen.lexical_ms, false),
            vector_ms: average(old.vector_ms, seen.vector_ms, left_out(SheddingStep::VectorDisabledPerf)),
            expansion_ms: average(old.expansion_ms, seen.expansion_ms, false),
            paths_ms: average(old.paths_ms, seen.paths_ms, left_out(SheddingStep::PathsDisabledPerf)),
            rerank_ms: average(old.rerank_ms, seen.rerank_ms, left_out(SheddingStep::RerankDisabledPerf)),
            rest_ms: average(old.rest_ms, seen.rest_ms, false),
        };
        AverageStageTimes { costs, requests: self.requests.saturating_add(1) }
    }

    /// Returns the steps to take, in order, until the projected time is within the budget. Steps that save nothing,
    /// because the request did not include their stage, are omitted.
    pub fn shed(&self, budget_ms: f64, reranks: bool) -> Vec<SheddingStep> {
        if self.requests < SHEDDING.settling {
            return vec![];
        }
        shed(&self.costs, budget_ms, reranks)
    }
}

fn shed(averages: &StageTimes, budget_ms: f64, reranks: bool) -> Vec<SheddingStep> {
    let mut left = *averages;
    if !reranks {
        left.rerank_ms = 0.0;
    }
    let mut steps = Vec::new();
    for step in SheddingStep::ORDER {
        if left.total() <= budget_ms {
            break;
        }
        let before = left.total();
        match step {
            SheddingStep::RerankPoolReduced => left.rerank_ms *= SHEDDING.pool,
            SheddingStep::RerankDisabledPerf => left.rerank_ms = 0.0,
            SheddingStep::ExpansionTrimmed => left.expansion_ms *= SHEDDING.expansion,
            SheddingStep::PathsDisabledPerf => left.paths_ms = 0.0,
            SheddingStep::CandidatePoolReduced => {
                left.lexical_ms *= SHEDDING.pool;
                left.vector_ms *= SHEDDING.pool;
            }
            SheddingStep::VectorDisabledPerf => left.vector_ms = 0.0,
        }
        if left.total() < before {
            steps.push(step);
        }
    }
    if steps.contains(&SheddingStep::RerankDisabledPerf) {
        steps.retain(|step| *step != SheddingStep::RerankPoolReduced);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(rerank: f64, vector: f64) -> StageTimes {
        StageTimes {
            lexical_ms: 40.0,
            vector_ms: vector,
            expansion_ms: 40.0,
            paths_ms: 20.0,
            rerank_ms: rerank,
            rest_ms: 20.0,
        }
    }

    #[test]
    fn stages_are_shed_in_order_and_only_as_many_as_needed() {
        assert!(shed(&costs(50.0, 30.0), 300.0, true).is_empty());
        assert_eq!(shed(&costs(180.0, 30.0), 300.0, true), [SheddingStep::RerankPoolReduced]);
        assert_eq!(shed(&costs(500.0, 30.0), 300.0, true), [SheddingStep::RerankDisabledPerf]);
        assert_eq!(
            shed(&costs(500.0, 30.0), 300.0, false),
            [],
            "a stage that the request does not include is not left out"
        );
        assert_eq!(
            shed(&costs(500.0, 190.0), 300.0, true),
            [SheddingStep::RerankDisabledPerf, SheddingStep::ExpansionTrimmed]
        );
        let all = shed(&costs(500.0, 900.0), 300.0, true);
        assert_eq!(all, SheddingStep::ORDER[1..]);
        assert_eq!(SheddingStep::of_bits(SheddingStep::bits(&all)), all);
        assert_eq!((SheddingStep::bits(&[]), SheddingStep::of_bits(0b10_0001).len()), (0, 2));
    }

    #[test]
    fn a_stage_that_was_shed_is_tried_again() {
        let mut averages = AverageStageTimes { costs: costs(0.0, 2_000.0), requests: SHEDDING.settling };
        let mut turns = 0;
        while averages.shed(300.0, false).contains(&SheddingStep::VectorDisabledPerf) {
            averages = averages.after(&costs(0.0, 0.0), &[SheddingStep::VectorDisabledPerf]);
            turns += 1;
            assert!(turns < 200);
        }
        assert!(turns > 3);
        let fast = averages.after(&costs(0.0, 5.0), &[]);
        assert!(fast.costs.vector_ms < averages.costs.vector_ms);
    }

    #[test]
    fn one_time_loading_sheds_nothing() {
        let mut averages = AverageStageTimes::default();
        for vector_ms in [2_000.0, 5.0, 900.0] {
            assert!(averages.shed(300.0, true).is_empty());
            averages = averages.after(&costs(0.0, vector_ms), &[]);
        }
        assert!((averages.costs.vector_ms - 5.0).abs() < 1e-9, "the fastest of the first counts");
        assert!(averages.shed(300.0, true).is_empty());
        // A permanently slow stage is shed.
        let mut slow = AverageStageTimes::default();
        for _ in 0..SHEDDING.settling {
            slow = slow.after(&costs(0.0, 900.0), &[]);
        }
        assert!(slow.shed(300.0, true).contains(&SheddingStep::VectorDisabledPerf));
    }
}
