//! Leaves out results that repeat what others already contain.

use crate::recipes::GAIN;
use rustc_hash::FxHashSet;

/// Words that accepted results contain.
#[derive(Default)]
pub struct CoveredWords {
    words: FxHashSet<String>,
    accepted: usize,
    /// The number of results that were left out.
    pub rejected: usize,
}

impl CoveredWords {
    /// Whether all words are already covered; such a text is left out however short it is.
    pub fn repeats(&mut self, words: &[String]) -> bool {
        let repeats = self.accepted >= GAIN.floor && words.iter().all(|word| self.words.contains(word));
        self.rejected += usize::from(repeats);
        repeats
    }

    /// Whether a text of `tokens` tokens adds enough new words to be accepted; if so, its words count as covered.
    pub fn take(&mut self, words: &[String], tokens: usize) -> bool {
        let new: FxHashSet<&String> = words.iter().filter(|word| !self.words.contains(*word)).collect();
        let gain = new.len() as f64 / tokens.max(1) as f64;
        if gain < GAIN.least && self.accepted >= GAIN.floor {
            self.rejected += 1;
            return false;
        }
        self.accepted += 1;
        self.words.extend(new.into_iter().cloned().collect::<Vec<_>>());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens;

    #[test]
    fn repetitions_are_left_out_after_the_minimum() {
        let mut covered = CoveredWords::default();
        let words = tokens::list("adopt feature flags for every rollout");
        for _ in 0..GAIN.floor {
            assert!(covered.take(&words, 8));
        }
        assert!(!covered.take(&words, 8));
        assert!(covered.repeats(&words) && !covered.repeats(&tokens::list("feature flags for nothing")));
        assert!(covered.take(&tokens::list("something else entirely"), 8));
        assert!(!covered.take(&tokens::list("novel"), 60), "one new word in sixty tokens");
        assert_eq!(covered.rejected, 3);
    }
}
