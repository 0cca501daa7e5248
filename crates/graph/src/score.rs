//! The score of an edge, by which neighbours are selected and explained.

use crate::snapshot::{DAY, Edge, Snapshot};
use lukasa_model::Time;
use lukasa_model::types::{Ranking, Registry};

/// The age at which an edge counts 1/e of a new one, in microseconds.
pub const HALF_LIFE: i64 = 30 * DAY;
/// Weights are clamped to this range.
const WEIGHT: std::ops::RangeInclusive<f64> = 0.25..=2.0;
/// The factor for following an edge of a reciprocal type against its direction.
const RECIPROCAL: f64 = 1.15;

/// The factors of a score. `score` is their product, mapped to the range 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// [`base_weight`] of the type.
    pub type_factor: f64,
    /// The recorded weight, clamped; 1 without one.
    pub confidence_factor: f64,
    /// 1 for a new edge, falling to 0 with age.
    pub recency_factor: f64,
    /// Above 1 for a reciprocal type that is followed against its direction.
    pub direction_factor: f64,
    /// 1 at depth 0, 1/2 at depth 1, 1/3 at depth 2.
    pub depth_penalty: f64,
    /// 1 between nodes without edges, smaller the more edges both ends have.
    pub hub_damping: f64,
    pub score: f64,
}

/// The weight of a type: the declared one, or a default by its name.
pub fn base_weight(type_name: &str, registry: &Registry) -> f64 {
    if let Some(declared) = registry.ranking(type_name) {
        return declared.base_weight;
    }
    match type_name.to_ascii_lowercase().as_str() {
        "decides" | "satisfy" | "verify" => 1.6,
        "trace_to" | "refine" => 1.3,
        "implement" | "realize" => 1.2,
        "depend_on" => 1.0,
        "relate_to" => 0.6,
        _ => Ranking::default().base_weight,
    }
}

/// What the score of an edge is computed from.
#[derive(Clone, Copy, Debug)]
pub struct ScoreInputs {
    /// [`base_weight`] of the type.
    pub base_weight: f64,
    /// The recorded weight.
    pub weight: Option<f64>,
    /// Microseconds since the edge began. Negative ages count as 0.
    pub age: i64,
    /// Whether it is followed against its direction, and its type is reciprocal.
    pub boosted: bool,
    /// Hops between the start and the edge.
    pub depth: u32,
    pub src_degree: usize,
    pub dst_degree: usize,
}

/// Computes the score of an edge.
pub fn score(facts: &ScoreInputs) -> Score {
    let type_factor = facts.base_weight;
    let confidence_factor = facts.weight.unwrap_or(1.0).clamp(*WEIGHT.start(), *WEIGHT.end());
    let recency_factor = (-(facts.age.max(0) as f64) / HALF_LIFE as f64).exp();
    let direction_factor = if facts.boosted { RECIPROCAL } else { 1.0 };
    let depth_penalty = 1.0 / (1.0 + f64::from(facts.depth));
    let hub_damping = 1.0 / (1.0 + (facts.src_degree as f64).ln_1p() + (facts.dst_degree as f64).ln_1p());
    let raw = type_factor * confidence_factor * recency_factor * direction_factor * depth_penalty * hub_damping;
    let score = raw / (raw + 1.0);
    Score { type_factor, confidence_factor, recency_factor, direction_factor, depth_penalty, hub_damping, score }
}

impl Snapshot {
    /// The score of an edge at a depth and a moment.
    pub fn edge_score(&self, edge: Edge, against: bool, depth: u32, at: Time) -> Score {
        let registry = &*self.registry;
        let (src, dst) = self.ends(edge);
        let type_name = self.edge_type(edge);
        let since: Time = self.since(edge);
        let boost = registry.ranking(type_name).is_some_and(|r| r.reciprocal_boost);
        score(&ScoreInputs {
            base_weight: base_weight(type_name, registry),
            weight: self.weight(edge),
            age: at.0.saturating_sub(since.0),
            boosted: against && boost,
            depth,
            src_degree: self.degree(src),
            dst_degree: self.degree(dst),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: ScoreInputs =
        ScoreInputs { base_weight: 1.0, weight: None, age: 0, boosted: false, depth: 1, src_degree: 3, dst_degree: 3 };

    fn of(facts: ScoreInputs) -> f64 {
        score(&facts).score
    }

    #[test]
    fn each_factor_raises_or_lowers_the_score() {
        let plain = of(PLAIN);
        assert!(of(ScoreInputs { base_weight: 1.6, ..PLAIN }) > plain, "a specific type outranks a generic one");
        assert!(of(ScoreInputs { age: HALF_LIFE, ..PLAIN }) < plain, "an old edge counts less");
        assert!(of(ScoreInputs { depth: 2, ..PLAIN }) < plain);
        assert!(of(ScoreInputs { src_degree: 900, ..PLAIN }) < plain, "hubs are damped");
        assert!(of(ScoreInputs { boosted: true, ..PLAIN }) > plain);
        assert_eq!(of(ScoreInputs { weight: Some(99.0), ..PLAIN }), of(ScoreInputs { weight: Some(2.0), ..PLAIN }));
        assert_eq!(of(ScoreInputs { weight: Some(-1.0), ..PLAIN }), of(ScoreInputs { weight: Some(0.25), ..PLAIN }));
        assert_eq!(of(ScoreInputs { age: -5, ..PLAIN }), plain, "the future is not fresher than now");
    }

    #[test]
    fn the_score_matches_the_formula() {
        let s = score(&ScoreInputs { weight: Some(0.5), age: HALF_LIFE, boosted: true, ..PLAIN });
        let raw = 1.0 * 0.5 * (-1.0f64).exp() * 1.15 * 0.5 / (1.0 + 2.0 * 4.0f64.ln());
        assert!((s.score - raw / (raw + 1.0)).abs() < 1e-15);
    }
}
