//! Combines the raw scores of several channels into one score, with the reasons that add up to it.

use crate::recipes::{FUSION, FusionRecipe};
use lukasa_graph::Node;
use rustc_hash::FxHashMap;
use serde::Serialize;
use smallvec::SmallVec;
use std::cmp::Ordering;

/// Version of the normalisation; changes whenever the same raw scores would be normalised differently.
pub const NORMALIZATION: &str = "zscore_v2";

/// The distribution of scores in one channel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScoreDistribution {
    pub count: usize,
    pub mean: f64,
    pub std: f64,
    pub min: f64,
    pub max: f64,
}

impl ScoreDistribution {
    /// Computes the distribution of some scores.
    pub fn of(scores: impl Iterator<Item = f64> + Clone) -> ScoreDistribution {
        let count = scores.clone().count();
        let mean = scores.clone().sum::<f64>() / count.max(1) as f64;
        let variance = scores.clone().map(|s| (s - mean) * (s - mean)).sum::<f64>() / count.max(1) as f64;
        let min = scores.clone().fold(f64::INFINITY, f64::min);
        let max = scores.fold(f64::NEG_INFINITY, f64::max);
        ScoreDistribution { count, mean, std: variance.sqrt(), min, max }
    }

    /// Normalises a score to between 0 and 1: by deviations from the mean, or as a share of the largest where there are
    /// few scores. The range is not used for few scores, because the second of two would get 0, however good it is.
    pub fn normal(&self, score: f64) -> f64 {
        let FusionRecipe { clamp, few, epsilon, .. } = FUSION;
        if self.count >= few {
            let z = (score - self.mean) / (self.std + epsilon);
            (z.clamp(-clamp, clamp) + clamp) / (clamp + clamp)
        } else if self.max > 0.0 {
            (score / self.max).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }
}

/// What one channel found, best first.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    pub name: &'static str,
    pub weight: f64,
    /// Nodes with raw scores.
    pub found: Vec<(Node, f64)>,
}

impl Channel {
    /// The distribution of its raw scores.
    pub fn spread(&self) -> ScoreDistribution {
        ScoreDistribution::of(self.found.iter().map(|(_, score)| *score))
    }
}

/// How channels are combined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fusion {
    /// Normalised scores, weighted by channel.
    WeightedSum,
    /// Scores as shares of the best of their channel, weighted: for channels in which 0 means no match.
    WeightedMax,
    /// Reciprocal rank fusion: weight over `k` + rank.
    Rrf { k: f64 },
    /// Scores as they are, weighted: for channels that are scaled already, by [`peak`].
    Sum,
}

impl Fusion {
    pub fn name(self) -> String {
        match self {
            Fusion::WeightedSum => "weighted_sum:v2".into(),
            Fusion::WeightedMax => "weighted_max:v1".into(),
            Fusion::Rrf { k } => format!("rrf:{k}"),
            Fusion::Sum => "recall:v1".into(),
        }
    }
}

/// A candidate with the reasons for its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub node: Node,
    pub reasons: Reasons,
}

/// Inline storage for the usual number of reasons, because a query has thousands of candidates.
pub type Reasons = SmallVec<[Reason; 4]>;

/// One part of a score.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    pub channel: &'static str,
    pub score: f64,
}

impl Candidate {
    /// Creates a candidate without reasons.
    pub fn new(node: Node) -> Candidate {
        Candidate { node, reasons: Reasons::new() }
    }

    /// The sum of its reasons.
    pub fn score(&self) -> f64 {
        self.reasons.iter().map(|reason| reason.score).sum()
    }

    /// Adds to the score of a channel.
    pub fn add(&mut self, channel: &'static str, score: f64) {
        match self.reasons.iter_mut().find(|reason| reason.channel == channel) {
            Some(reason) => reason.score += score,
            None => self.reasons.push(Reason { channel, score }),
        }
    }
}

/// What each candidate of a channel adds to its score, in the order of the channel.
pub fn normalise(channel: &Channel, fusion: Fusion) -> Vec<f64> {
    let Channel { weight, found, .. } = channel;
    let scores = found.iter().map(|(_, score)| score);
    match fusion {
        Fusion::WeightedSum => {
            let spread = channel.spread();
            scores.map(|score| weight * spread.normal(*score)).collect()
        }
        Fusion::WeightedMax => {
            let most = channel.spread().max.max(f64::MIN_POSITIVE);
            scores.map(|score| weight * score / most).collect()
        }
        Fusion::Rrf { k } => (0..found.len()).map(|place| weight / (k + place as f64 + 1.0)).collect(),
        Fusion::Sum => scores.map(|score| weight * score).collect(),
    }
}

/// Scales scores above `base` so that the best is 1. This keeps the distances at the top of the list; with deviations
/// from the mean, the best of a large corpus would all look alike.
pub fn peak(found: &[(Node, f64)], base: f64) -> Vec<(Node, f64)> {
    let top = found.iter().map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max);
    if found.is_empty() || top <= base {
        return vec![];
    }
    let share = |score: f64| (score - base).max(0.0) / (top - base);
    found.iter().map(|(node, score)| (*node, share(*score))).filter(|(_, share)| *share > 0.0).collect()
}

/// Scales a list so that its first has the score `best`.
pub fn scale_best(candidates: &mut [Candidate], best: f64) {
    let top = candidates.first().map_or(0.0, Candidate::score);
    if top > 0.0 {
        let scale = best / top;
        candidates.iter_mut().flat_map(|c| &mut c.reasons).for_each(|reason| reason.score *= scale);
    }
}

/// Combines all channels into one list, best first; `order` breaks ties.
pub fn fuse(channels: &[Channel], fusion: Fusion, order: impl Fn(Node) -> u64) -> Vec<Candidate> {
    let mut places: FxHashMap<Node, usize> = FxHashMap::default();
    let mut all: Vec<Candidate> = Vec::new();
    for channel in channels {
        for ((node, _), part) in channel.found.iter().zip(normalise(channel, fusion)) {
            let at = *places.entry(*node).or_insert_with(|| {
                all.push(Candidate::new(*node));
                all.len() - 1
            });
            all[at].add(channel.name, part);
        }
    }
    sort(&mut all, order);
    all
}

/// Sorts candidates, best first; `order` breaks ties.
pub fn sort(all: &mut [Candidate], order: impl Fn(Node) -> u64) {
    // Computes each key once, not once per comparison.
    all.sort_by_cached_key(|candidate| place(candidate.score(), order(candidate.node)));
}

/// Combines a score and its tie-breaker into one sort key; the best is the smallest.
fn place(score: f64, order: u64) -> u128 {
    // The bits of positive floats sort like their values, those of negative floats in reverse.
    let bits = score.to_bits();
    let falling = if bits >> 63 == 0 { !(bits | 1 << 63) } else { bits };
    u128::from(falling) << 64 | u128::from(order)
}

/// Returns the best of some scores, best first; `order` breaks ties.
pub fn best(mut found: Vec<(Node, f64)>, most: usize, order: impl Fn(Node) -> u64) -> Vec<(Node, f64)> {
    if most == 0 {
        return vec![];
    }
    if found.len() > most {
        // Selects by score alone first; ties only matter among scores equal to the last one selected.
        let (_, (_, last), _) = found.select_nth_unstable_by(most - 1, |a, b| b.1.total_cmp(&a.1));
        let last = *last;
        let (mut better, mut equal): (Vec<_>, Vec<_>) = (Vec::with_capacity(most), Vec::new());
        for entry in found {
            match entry.1.total_cmp(&last) {
                Ordering::Greater => better.push(entry),
                Ordering::Equal => equal.push(entry),
                Ordering::Less => {}
            }
        }
        equal.sort_by_cached_key(|(node, _)| order(*node));
        better.extend(equal.into_iter().take(most - better.len()));
        found = better;
    }
    found.sort_by_cached_key(|(node, score)| place(*score, order(*node)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(name: &'static str, weight: f64, found: &[(u32, f64)]) -> Channel {
        Channel { name, weight, found: found.iter().map(|(node, score)| (Node(*node), *score)).collect() }
    }

    fn order(node: Node) -> u64 {
        u64::from(node.0)
    }

    #[test]
    fn many_scores_are_normalised_by_deviations() {
        let spread = ScoreDistribution::of([1.0, 2.0, 3.0, 4.0, 5.0].into_iter());
        assert!((spread.mean - 3.0).abs() < 1e-12 && (spread.std - 2f64.sqrt()).abs() < 1e-12);
        assert!((spread.normal(3.0) - 0.5).abs() < 1e-9);
        assert_eq!(spread.normal(1e9), 1.0);
        assert_eq!(spread.normal(-1e9), 0.0);
        let flat = ScoreDistribution::of([2.0; 9].into_iter());
        assert!((flat.normal(2.0) - 0.5).abs() < 1e-9, "equal scores are all in the middle");
    }

    #[test]
    fn few_scores_are_normalised_by_the_best() {
        let spread = ScoreDistribution::of([2.0, 4.0, 3.0].into_iter());
        assert_eq!([2.0, 3.0, 4.0].map(|s| spread.normal(s)), [0.5, 0.75, 1.0]);
        assert_eq!(ScoreDistribution::of([7.0].into_iter()).normal(7.0), 1.0);
        assert_eq!(ScoreDistribution::of([7.0, 7.0].into_iter()).normal(7.0), 1.0, "equal scores are all the best");
        for nothing in [0.0, -0.25] {
            assert_eq!(
                ScoreDistribution::of([nothing].into_iter()).normal(nothing),
                0.0,
                "a score of nothing is no score"
            );
        }
    }

    #[test]
    fn reasons_add_up_and_ties_are_ordered() {
        let a = channel("lexical", 0.6, &[(1, 9.0), (2, 5.0), (3, 5.0), (4, 1.0), (5, 1.0)]);
        let b = channel("vector", 0.4, &[(3, 0.9), (2, 0.9), (9, 0.2)]);
        for fusion in [Fusion::WeightedSum, Fusion::Rrf { k: 60.0 }] {
            let all = fuse(&[a.clone(), b.clone()], fusion, order);
            assert_eq!(all.len(), 6);
            assert!(all.windows(2).all(|w| w[0].score() >= w[1].score()));
            assert!(all.iter().all(|c| !c.reasons.is_empty()));
        }
        let rrf = fuse(&[a, b], Fusion::Rrf { k: 60.0 }, order);
        let three = rrf.iter().find(|c| c.node == Node(3)).unwrap();
        assert!((three.score() - (0.6 / 63.0 + 0.4 / 61.0)).abs() < 1e-12);
        let sum = fuse(&[channel("x", 1.0, &[(8, 1.0), (7, 1.0)])], Fusion::WeightedSum, order);
        assert_eq!(sum.iter().map(|c| c.node).collect::<Vec<_>>(), [Node(7), Node(8)]);
    }

    #[test]
    fn peaks_keep_distances() {
        assert_eq!(peak(&[(Node(1), 3.0), (Node(2), 1.0), (Node(3), 2.0)], 1.0), [(Node(1), 1.0), (Node(3), 0.5)]);
        assert!(peak(&[], 0.0).is_empty() && peak(&[(Node(1), 1.0)], 1.0).is_empty());
        let scaled = fuse(&[channel("x", 2.0, &[(1, 1.0), (2, 0.5)])], Fusion::Sum, order);
        assert_eq!(scaled.iter().map(Candidate::score).collect::<Vec<_>>(), [2.0, 1.0]);
    }

    #[test]
    fn the_first_of_a_scaled_list_has_the_given_score() {
        let mut all = fuse(&[channel("x", 1.0, &[(1, 4.0), (2, 1.0)])], Fusion::Sum, order);
        scale_best(&mut all, 0.5);
        assert_eq!(all.iter().map(Candidate::score).collect::<Vec<_>>(), [0.5, 0.125]);
        scale_best(&mut [], 0.5);
    }

    #[test]
    fn the_best_are_the_first_of_the_sorted_list() {
        let all: Vec<(Node, f64)> = (0..100).map(|n| (Node(n), f64::from(n * 37 % 11))).collect();
        let mut sorted = all.clone();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        assert_eq!(best(all.clone(), 10, order), sorted[..10]);
        assert_eq!(best(all, 1_000, order), sorted);
    }

    #[test]
    fn the_best_equal_those_of_sorting_all() {
        // Few distinct scores and many ties, so that `order` decides.
        for (count, most) in [(0, 3), (5, 0), (5, 9), (40, 1), (40, 7), (40, 39), (400, 128)] {
            let found: Vec<(Node, f64)> = (0..count).map(|i: u32| (Node(i), f64::from(i * 7 % 5))).collect();
            let order = |node: Node| u64::from(node.0 * 13 % 101) << 32 | u64::from(node.0);
            let mut all = found.clone();
            all.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| order(a.0).cmp(&order(b.0))));
            all.truncate(most);
            assert_eq!(best(found, most, order), all, "{most} of {count}");
        }
    }
}
