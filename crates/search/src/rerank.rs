//! Reranking of the best hits: by a model behind this interface, or by the proximity of query words.

use crate::text::Term;
use crate::tokens;
use std::time::Duration;

/// The number of best hits that are reranked.
pub const POOL: usize = 60;
/// The weight of reranking against the first ranking.
pub const ALPHA: f64 = 0.35;
/// How long an answer waits for reranking by default.
pub const TIMEOUT_MS: u64 = 300;

/// Scores texts for a query. It may be slow: the caller waits for a limited time and continues without it.
pub trait Reranker: Send + Sync {
    fn name(&self) -> &str;

    /// How long an answer waits for it.
    fn patience(&self) -> Duration {
        Duration::from_millis(TIMEOUT_MS)
    }

    /// Returns one number between 0 and 1 for each text.
    fn judge(&self, question: &str, terms: &[Term], texts: &[String]) -> Result<Vec<f64>, String>;
}

/// The built-in reranker: the share of the query that occurs close together in the text. Needs no model.
pub struct Closeness;

/// Words further apart than this are unrelated.
const WINDOW: usize = 24;

impl Reranker for Closeness {
    fn name(&self) -> &str {
        "closeness-v1"
    }

    fn judge(&self, _question: &str, terms: &[Term], texts: &[String]) -> Result<Vec<f64>, String> {
        Ok(texts.iter().map(|text| closeness(terms, &tokens::list(text))).collect())
    }
}

/// The largest share of the query, by weight, within any window of `WINDOW` words.
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
        while at - places[first].0 >= WINDOW {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question;

    #[test]
    fn words_that_stand_together_count_more() {
        let terms = question::terms("feature flag rollout");
        let near = "the rollout of a feature flag".to_owned();
        let far = format!("feature {} flag {} rollout", "x ".repeat(40), "y ".repeat(40));
        let judged = Closeness.judge("", &terms, &[near, far, "nothing".into()]).unwrap();
        assert_eq!(judged[0], 1.0);
        assert!((judged[1] - 1.0 / 3.0).abs() < 1e-6);
        assert_eq!(judged[2], 0.0);
        assert_eq!(Closeness.judge("", &[], &["x".into()]).unwrap(), [0.0]);
    }
}
