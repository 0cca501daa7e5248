//! A second look at the best: by a model behind this interface, or by how close the question's words stand together.

use crate::text::Term;
use crate::tokens;
use std::time::Duration;

/// Best candidates that are looked at again.
pub const POOL: usize = 60;
/// What the second look counts against the first.
pub const ALPHA: f64 = 0.35;
/// How long an answer waits for it, unless somebody says otherwise.
pub const TIMEOUT_MS: u64 = 300;

/// Judges texts for a question. May take its time: whoever asks waits for a while and does without.
pub trait Reranker: Send + Sync {
    fn name(&self) -> &str;

    /// How long an answer waits for it.
    fn patience(&self) -> Duration {
        Duration::from_millis(TIMEOUT_MS)
    }

    /// One number between 0 and 1 for each text.
    fn judge(&self, question: &str, terms: &[Term], texts: &[String]) -> Result<Vec<f64>, String>;
}

/// The built-in one: how much of the question stands close together in the text. Needs no model.
pub struct Closeness;

/// Words further apart than this have nothing to do with one another.
const WINDOW: usize = 24;

impl Reranker for Closeness {
    fn name(&self) -> &str {
        "closeness-v1"
    }

    fn judge(&self, _question: &str, terms: &[Term], texts: &[String]) -> Result<Vec<f64>, String> {
        Ok(texts.iter().map(|text| closeness(terms, &tokens::list(text))).collect())
    }
}

/// The best share of the question, by weight, that any stretch of so many words has.
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
