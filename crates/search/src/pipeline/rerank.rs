//! Changes the order after fusion: by a reranker, by age, by nearness to an anchor, by factors.
//!
//! A reranker is a model behind an interface, or the proximity of query words.

use crate::pipeline::fuse::{Candidate, scale_best, sort};
use crate::recipes::SEARCH;
use crate::text::Term;
use crate::tokens;
use lukasa_graph::Node;
use std::time::Duration;

/// How long an answer waits for reranking by default.
pub const TIMEOUT_MS: u64 = 300;

/// Scores texts for a query. It may be slow: the caller waits for a limited time and continues without it.
pub trait Reranker: Send + Sync {
    /// The name in answers for debugging.
    fn name(&self) -> &str;

    /// How long an answer waits for it.
    fn timeout(&self) -> Duration {
        Duration::from_millis(TIMEOUT_MS)
    }

    /// Returns one number between 0 and 1 for each text.
    fn judge(&self, question: &str, terms: &[Term], texts: &[String]) -> Result<Vec<f64>, String>;
}

/// The built-in reranker: the share of the query that occurs close together in the text. Needs no model.
pub struct WordProximity;

impl Reranker for WordProximity {
    fn name(&self) -> &str {
        "closeness-v1"
    }

    fn judge(&self, _question: &str, terms: &[Term], texts: &[String]) -> Result<Vec<f64>, String> {
        Ok(texts.iter().map(|text| closeness(terms, &tokens::list(text))).collect())
    }
}

/// The largest share of the query, by weight, within any window of `rerank_window` words.
fn closeness(terms: &[Term], words: &[String]) -> f64 {
    let all: f32 = terms.iter().map(|term| term.weight).sum();
    let places: Vec<(usize, usize)> = words
        .iter()
        .enumerate()
        .filter_map(|(at, word)| {
            terms.binary_search_by(|term| term.word.as_str().cmp(word)).ok().map(|term| (at, term))
        })
        .collect();
    let mut counts = vec![0u32; terms.len()];
    let (mut first, mut weight, mut best) = (0, 0.0f32, 0.0f32);
    for (at, term) in &places {
        if counts[*term] == 0 {
            weight += terms[*term].weight;
        }
        counts[*term] += 1;
        while at - places[first].0 >= SEARCH.rerank_window {
            let gone = places[first].1;
            counts[gone] -= 1;
            if counts[gone] == 0 {
                weight -= terms[gone].weight;
            }
            first += 1;
        }
        best = best.max(weight);
    }
    if all > 0.0 { f64::from(best / all).clamp(0.0, 1.0) } else { 0.0 }
}

/// Combines the scores of the first candidates with judgements from 0 to 1, in the order of the candidates, and sorts
/// these candidates again.
pub fn blend(candidates: &mut [Candidate], judged: &[f64], weight: f64, order: impl Fn(Node) -> u64) {
    for (candidate, judged) in candidates.iter_mut().zip(judged) {
        let change = weight * (judged.clamp(0.0, 1.0) - candidate.score());
        candidate.add("reranker", change);
    }
    let pool = judged.len().min(candidates.len());
    sort(&mut candidates[..pool], order);
}

/// Lowers the score of older facts: the given share of a score decays to about a third in `fades_days`. `age_days`
/// returns `None` for what does not age.
pub fn fade(
    candidates: &mut [Candidate],
    share: f64,
    fades_days: f64,
    age_days: impl Fn(Node) -> Option<f64>,
    order: impl Fn(Node) -> u64,
) {
    for candidate in candidates.iter_mut() {
        let Some(days) = age_days(candidate.node) else { continue };
        let lost = candidate.score() * share * (1.0 - (-days / fades_days).exp());
        candidate.add("recency", -lost);
    }
    sort(candidates, order);
}

/// Combines each score, as a share of the best, with the nearness to an anchor, 1 / (1 + hops).
pub fn towards(
    candidates: &mut [Candidate],
    semantic: f64,
    graph: f64,
    hops: impl Fn(Node) -> Option<u32>,
    order: impl Fn(Node) -> u64,
) {
    scale_best(candidates, semantic);
    for candidate in candidates.iter_mut() {
        if let Some(hops) = hops(candidate.node) {
            candidate.add("anchor", graph / (1.0 + f64::from(hops)));
        }
    }
    sort(candidates, order);
}

/// Multiplies the score of some candidates by a factor, as a reason of its own. The order is left as it is.
pub fn multiply(
    candidates: &mut [Candidate],
    channel: &'static str,
    factor: f64,
    mut is_meant: impl FnMut(Node) -> bool,
) {
    for candidate in candidates.iter_mut() {
        if is_meant(candidate.node) {
            let lost = candidate.score() * (factor - 1.0);
            candidate.add(channel, lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question;

    #[test]
    fn words_close_together_count_more() {
        let terms = question::terms("feature flag rollout");
        let near = "the rollout of a feature flag".to_owned();
        let far = format!("feature {} flag {} rollout", "x ".repeat(40), "y ".repeat(40));
        let judged = WordProximity.judge("", &terms, &[near, far, "nothing".into()]).unwrap();
        assert_eq!(judged[0], 1.0);
        assert!((judged[1] - 1.0 / 3.0).abs() < 1e-6);
        assert_eq!(judged[2], 0.0);
        assert_eq!(WordProximity.judge("", &[], &["x".into()]).unwrap(), [0.0]);
    }

    fn scored(scores: &[f64]) -> Vec<Candidate> {
        let of = |(node, score): (usize, &f64)| {
            let mut candidate = Candidate::new(Node::at(node));
            candidate.add("x", *score);
            candidate
        };
        scores.iter().enumerate().map(of).collect()
    }

    fn ranked(all: &[Candidate]) -> Vec<(u32, f64)> {
        all.iter().map(|candidate| (candidate.node.0, candidate.score())).collect()
    }

    #[test]
    fn judgements_order_the_judged_candidates() {
        let mut all = scored(&[1.0, 0.5, 0.25]);
        blend(&mut all, &[0.0, 1.0], 0.5, |node| u64::from(node.0));
        assert_eq!(ranked(&all), [(1, 0.75), (0, 0.5), (2, 0.25)]);
    }

    #[test]
    fn only_facts_that_age_lose_score() {
        let mut all = scored(&[1.0, 1.0, 0.875]);
        fade(&mut all, 0.5, 30.0, |node| [Some(1e9), Some(0.0), None][node.index()], |node| u64::from(node.0));
        assert_eq!(ranked(&all), [(1, 1.0), (2, 0.875), (0, 0.5)]);
    }

    #[test]
    fn nearness_to_an_anchor_raises_the_score() {
        let mut all = scored(&[4.0, 2.0]);
        towards(&mut all, 0.5, 0.5, |node| (node == Node(1)).then_some(0), |node| u64::from(node.0));
        assert_eq!(ranked(&all), [(1, 0.75), (0, 0.5)]);
    }

    #[test]
    fn a_factor_is_a_reason() {
        let mut all = scored(&[1.0, 0.5]);
        multiply(&mut all, "is_test", 0.25, |node| node == Node(0));
        assert_eq!(ranked(&all), [(0, 0.25), (1, 0.5)]);
        assert_eq!(all[0].reasons[1].channel, "is_test");
    }
}
