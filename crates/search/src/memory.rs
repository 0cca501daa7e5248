//! Finding turns of conversations and episodes: words and meaning, then what stands right before and after.
//!
//! A turn often answers the one before it and shares none of its words with the question. So what is found speaks for its
//! neighbours too, more for the next than for the one before.

use crate::fuse::{Candidate, Channel, best, sort};
use crate::passages::{Nearest, peak};
use crate::text::{Scoring, Term, TextIndex};
use lukasa_graph::Node;
use rustc_hash::FxHashMap;

/// What each channel and neighbour counts.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryRecipe {
    pub lexical: f64,
    pub vector: f64,
    /// What is carried over to the next two, and to the two before.
    pub after: [f64; 2],
    pub before: [f64; 2],
    /// What turns of others keep when the question names one speaker.
    pub others: f64,
}

impl Default for MemoryRecipe {
    fn default() -> Self {
        MemoryRecipe { lexical: 1.0, vector: 0.5, after: [0.5, 0.25], before: [0.3, 0.15], others: 0.7 }
    }
}

/// The order of turns, and who speaks.
pub trait Turns {
    fn next(&self, node: Node) -> Option<Node>;
    fn previous(&self, node: Node) -> Option<Node>;
    /// Whether it is said by someone else than the one the question names; false where it names none or several.
    fn is_of_another(&self, node: Node) -> bool;
}

/// Finds turns; every score is the sum of what channels and neighbours gave.
pub fn find(
    texts: &TextIndex,
    terms: &[Term],
    nearest: &Nearest,
    recipe: &MemoryRecipe,
    turns: &impl Turns,
    order: impl Fn(Node) -> u64 + Copy,
) -> (Vec<Candidate>, Vec<Channel>) {
    let scored = texts.scores(terms, &scoring()).into_iter().map(|(node, score)| (node, f64::from(score)));
    let lexical = peak(&scored.collect::<Vec<_>>(), 0.0);
    // Squared: only what is near speaks.
    let vector: Vec<_> = peak(&nearest.found, nearest.mean).into_iter().map(|(node, s)| (node, s * s)).collect();
    let channels = [("lexical", recipe.lexical, lexical), ("vector", recipe.vector, vector)];
    let channels: Vec<Channel> = channels
        .into_iter()
        .filter(|(_, weight, found)| *weight > 0.0 && !found.is_empty())
        .map(|(name, weight, found)| Channel { name, weight, found: best(found, usize::MAX, order) })
        .collect();
    let mut all: FxHashMap<Node, Candidate> = FxHashMap::default();
    let mut give = |node: Node, channel: &'static str, score: f64| {
        all.entry(node).or_insert_with(|| Candidate { node, reasons: vec![] }).add(channel, score);
    };
    let mut own: FxHashMap<Node, f64> = FxHashMap::default();
    for channel in &channels {
        for (node, score) in &channel.found {
            give(*node, channel.name, channel.weight * score);
            *own.entry(*node).or_default() += channel.weight * score;
        }
    }
    let mut own: Vec<_> = own.into_iter().collect();
    own.sort_by_key(|(node, _)| *node);
    for (node, score) in own {
        let mut at = Some(node);
        for share in recipe.after {
            at = at.and_then(|node| turns.next(node));
            at.into_iter().for_each(|to| give(to, "turn_before", share * score));
        }
        let mut at = Some(node);
        for share in recipe.before {
            at = at.and_then(|node| turns.previous(node));
            at.into_iter().for_each(|to| give(to, "turn_after", share * score));
        }
    }
    let mut all: Vec<Candidate> = all.into_values().collect();
    for candidate in &mut all {
        if turns.is_of_another(candidate.node) {
            let lost = candidate.score() * (recipe.others - 1.0);
            candidate.add("another_speaker", lost);
        }
    }
    sort(&mut all, order);
    (all, channels)
}

/// Who speaks is a word like any other.
pub fn scoring() -> Scoring {
    Scoring { boosts: [1.0, 0.0, 1.0, 1.0], ..Scoring::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question;
    use crate::text::{Field, Gathered};

    struct Line(Vec<&'static str>, Option<&'static str>);

    impl Turns for Line {
        fn next(&self, node: Node) -> Option<Node> {
            Some(node + 1).filter(|n| (*n as usize) < self.0.len())
        }
        fn previous(&self, node: Node) -> Option<Node> {
            node.checked_sub(1)
        }
        fn is_of_another(&self, node: Node) -> bool {
            self.1.is_some_and(|name| !self.0[node as usize].starts_with(name))
        }
    }

    #[test]
    fn the_answer_follows_the_turn_that_has_the_words() {
        let turns =
            vec!["Ann Hello there", "Bob What instrument do you play?", "Ann The violin", "Bob Nice", "Ann Bye"];
        let mut gathered = Gathered::default();
        for (n, text) in turns.iter().enumerate() {
            gathered.begin(n as Node);
            gathered.add(Field::Text, text);
        }
        let texts = TextIndex::build(vec![gathered]);
        let ask = |name| {
            let terms = question::terms("Which instrument does she play?");
            let line = Line(turns.clone(), name);
            find(&texts, &terms, &Nearest::default(), &MemoryRecipe::default(), &line, u64::from).0
        };
        let nodes = |found: &[Candidate]| found.iter().map(|c| c.node).collect::<Vec<_>>();
        assert_eq!(nodes(&ask(None)), [1, 2, 0, 3]);
        let named = ask(Some("Ann"));
        assert_eq!(nodes(&named)[..2], [1, 2]);
        let of_bob = named.iter().find(|c| c.node == 3).unwrap();
        assert_eq!(of_bob.reasons.last().unwrap().channel, "another_speaker");
        assert!((of_bob.score() - 0.25 * 0.7).abs() < 1e-6);
    }
}
