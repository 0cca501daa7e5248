//! Verbatim sentences that support a result.

use crate::count::count;
use crate::fields::sentences;
use crate::recipes::CITATIONS;
use crate::text::Term;
use crate::tokens;

/// A sentence that supports a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Citation {
    /// Verbatim from the source.
    pub span: String,
    /// The share of the query that it covers, by the weight of words.
    pub confidence: f64,
}

/// Returns the sentence of a text that covers most of the query; `None` if no sentence covers enough.
pub fn best(text: &str, question: &[Term]) -> Option<Citation> {
    let all: f32 = question.iter().map(|term| term.weight).sum();
    let mut best: Option<Citation> = None;
    for sentence in sentences(text) {
        let words = tokens::list(sentence);
        let covered: f32 = question.iter().filter(|term| words.contains(&term.word)).map(|term| term.weight).sum();
        let confidence = f64::from(covered / all.max(f32::MIN_POSITIVE));
        let span = sentence.trim();
        let is_better = confidence >= CITATIONS.least && best.as_ref().is_none_or(|b| confidence > b.confidence);
        if is_better && count(span) <= CITATIONS.longest {
            best = Some(Citation { span: span.to_owned(), confidence });
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_sentence_is_cited_verbatim() {
        let question: Vec<Term> = ["flag", "rollout"].iter().map(|w| Term { word: (*w).into(), weight: 1.0 }).collect();
        let text = "Nothing here. Decision depends on  consistent Flag rollout! The end.";
        let cited = best(text, &question).unwrap();
        assert_eq!(cited.span, "Decision depends on  consistent Flag rollout!");
        assert_eq!(cited.confidence, 1.0);
        assert_eq!(best("Nothing of that", &question), None);
        assert_eq!(best(&format!("flag {}", "x ".repeat(200)), &question), None, "too long to cite");
    }
}
