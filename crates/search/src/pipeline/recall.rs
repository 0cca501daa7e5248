//! Passages, notes and conversation turns, also when the answer is spread over several of them.
//!
//! Seeds are found by words, by vectors and by titles that the query mentions. Seeds pass a part of their score to the
//! neighbouring turns of a conversation, because a turn often answers the one before it without sharing a word with the
//! query. Then a random walk follows mentions. Finally, each of the best seeds leads to texts that share its rarer
//! names and contain the words of the query that it lacks (bridges). `docs/ranking.md` explains how the weights were
//! found.

use crate::pipeline::fuse::{Candidate, Channel, Fusion, best, fuse, peak, sort};
use crate::pipeline::passages::{PassageLinks, bridges, turns};
use crate::pipeline::seeds::{NearestNodes, by_title, by_words};
use crate::pipeline::spread;
use crate::recipes::{PASSAGES, RecallRecipe};
use crate::text::{Term, TextIndex};
use lukasa_graph::Node;
use lukasa_graph::rank::NodeRank;
use rustc_hash::FxHashMap;

/// The text indexes to search.
pub struct RecallIndexes<'a> {
    /// Indexed by their words.
    pub texts: &'a TextIndex,
    /// Indexed by title keys.
    pub titles: &'a TextIndex,
    /// Indexed by words that are names.
    pub names: &'a TextIndex,
}

/// The candidates, best first, and what each channel found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankedPassages {
    pub candidates: Vec<Candidate>,
    pub channels: Vec<Channel>,
}

/// Ranks what answers a query, in whole or in part.
pub fn recall(
    indexes: &RecallIndexes<'_>,
    question: &str,
    terms: &[Term],
    nearest: &NearestNodes,
    recipe: &RecallRecipe,
    ties: &impl PassageLinks,
    order: impl Fn(Node) -> u64 + Copy,
) -> RankedPassages {
    let lexical = by_words(indexes.texts, terms, &PASSAGES);
    let near = peak(&nearest.found, nearest.base).into_iter().map(|(node, share)| (node, share * share)).collect();
    let channels = [
        ("lexical", recipe.lexical, peak(&lexical, 0.0)),
        ("vector", recipe.vector, near),
        ("keys", recipe.keys, by_title(indexes.titles, question, recipe.ambiguous)),
    ];
    let mut channels: Vec<Channel> = channels
        .into_iter()
        .filter(|(_, weight, found)| *weight > 0.0 && !found.is_empty())
        .map(|(name, weight, found)| Channel { name, weight, found: best(found, usize::MAX, order) })
        .collect();
    let seeds = turns(fuse(&channels, Fusion::Sum, order), recipe, ties, order);
    let Some(top) = seeds.first().map(Candidate::score).filter(|top| *top > 0.0) else {
        return RankedPassages::default();
    };
    let share = |candidate: &Candidate| candidate.score() / top;
    let firsts: Vec<(Node, f64)> = seeds.iter().take(recipe.bridges).map(|c| (c.node, share(c))).collect();
    let bridged = bridges(indexes.texts, indexes.names, terms, &lexical, &firsts, recipe, ties);
    let start: Vec<(Node, f64)> =
        seeds.iter().take(recipe.seeds).map(|c| (c.node, share(c).powi(recipe.sharpen))).collect();
    let walked = spread::along(|node| ties.mentions(node), &start, recipe);
    let candidates = joined(&seeds, &walked, &bridged, recipe, order);
    let graph = walked.iter().map(|at| (at.node, at.mass())).collect();
    channels.push(Channel { name: "graph", weight: 1.0, found: best(graph, usize::MAX, order) });
    channels.push(Channel { name: "bridge", weight: recipe.bridge, found: best(bridged, usize::MAX, order) });
    channels.retain(|channel| !channel.found.is_empty());
    RankedPassages { candidates, channels }
}

/// Seeds, what the walk reached and bridges as one list; best first.
fn joined(
    seeds: &[Candidate],
    walked: &[NodeRank],
    bridged: &[(Node, f64)],
    recipe: &RecallRecipe,
    order: impl Fn(Node) -> u64,
) -> Vec<Candidate> {
    let top = seeds.first().map_or(1.0, Candidate::score);
    let most = walked.iter().map(|at| at.mass()).fold(f64::MIN_POSITIVE, f64::max);
    let mut places: FxHashMap<Node, usize> = FxHashMap::default();
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut give = |node: Node, channel: &'static str, score: f64| {
        let at = *places.entry(node).or_insert_with(|| {
            candidates.push(Candidate::new(node));
            candidates.len() - 1
        });
        candidates[at].add(channel, score);
    };
    let home: FxHashMap<Node, f64> = walked.iter().map(|at| (at.node, at.home / most)).collect();
    for candidate in seeds {
        // A seed's own share is attributed to the channels that found it. `last` keeps seeds that the walk does not
        // reach in order.
        let sum = candidate.score();
        let own = home.get(&candidate.node).copied().unwrap_or(0.0) + recipe.last * (sum / top);
        candidate.reasons.iter().for_each(|reason| give(candidate.node, reason.channel, reason.score / sum * own));
    }
    walked.iter().filter(|at| at.walked > 0.0).for_each(|at| give(at.node, "graph", at.walked / most));
    bridged.iter().for_each(|(node, score)| give(*node, "bridge", recipe.bridge * score));
    sort(&mut candidates, order);
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question;
    use crate::recipes::RECALL;
    use crate::text::{DocumentBatch, TextField};
    use crate::titles;

    /// Texts with titles, their mentions, whether they form a conversation, and which speaker the query names.
    struct Corpus {
        texts: Vec<(&'static str, &'static str)>,
        mentions: Vec<(Node, Node)>,
        is_talk: bool,
        named: Option<&'static str>,
    }

    impl PassageLinks for Corpus {
        fn next(&self, node: Node) -> Option<Node> {
            Some(Node(node.0 + 1)).filter(|n| self.is_talk && n.index() < self.texts.len())
        }
        fn previous(&self, node: Node) -> Option<Node> {
            node.0.checked_sub(1).filter(|_| self.is_talk).map(Node)
        }
        fn asks(&self, node: Node) -> bool {
            self.texts[node.index()].1.ends_with('?')
        }
        fn is_of_another(&self, node: Node) -> bool {
            self.named.is_some_and(|name| self.texts[node.index()].0 != name)
        }
        fn mentions(&self, node: Node) -> Vec<(Node, f64)> {
            let out = self.mentions.iter().filter(|(from, _)| *from == node).map(|(_, to)| (*to, 1.0));
            out.chain(self.mentions.iter().filter(|(_, to)| *to == node).map(|(from, _)| (*from, 0.5))).collect()
        }
    }

    impl Corpus {
        fn ask(&self, question: &str) -> RankedPassages {
            let [mut texts, mut titles, mut names] = std::array::from_fn(|_| DocumentBatch::prose());
            for (n, (title, text)) in self.texts.iter().enumerate() {
                let node = Node::at(n);
                texts.begin(node);
                texts.add(TextField::Name, title);
                texts.add(TextField::Text, text);
                titles.begin(node);
                if !self.is_talk {
                    titles::keys(title).iter().for_each(|key| titles.add_word(TextField::Name, key));
                }
                names.begin(node);
                titles::names(&format!("{title} {text}")).iter().for_each(|name| names.add_word(TextField::Name, name));
            }
            let [texts, titles, names] = [texts, titles, names].map(|gathered| TextIndex::build(vec![gathered]));
            let indexes = RecallIndexes { texts: &texts, titles: &titles, names: &names };
            let terms = question::prose_terms(question);
            let found =
                recall(&indexes, question, &terms, &NearestNodes::default(), &RECALL, self, |node| u64::from(node.0));
            assert!(found.candidates.iter().all(|c| !c.reasons.is_empty()));
            assert!(found.candidates.windows(2).all(|w| w[0].score() >= w[1].score()));
            found
        }
    }

    fn nodes(found: &RankedPassages) -> Vec<u32> {
        found.candidates.iter().map(|c| c.node.0).collect()
    }

    #[test]
    fn the_second_hop_ranks_before_texts_that_only_share_words() {
        let corpus = Corpus {
            texts: vec![
                ("Journal of Integration", "The Journal of Integration is published by the Society for Exploration."),
                (
                    "Society for Exploration",
                    "The Society for Exploration was founded by Paul Wachtel, its first president.",
                ),
                (
                    "Another Society",
                    "The first president of another society was someone else, a president of societies.",
                ),
                ("Cooking", "Onions and salt."),
                ("Paul Wachtel", "Paul Wachtel studied in New York."),
            ],
            mentions: vec![(Node(0), Node(1)), (Node(1), Node(4))],
            is_talk: false,
            named: None,
        };
        let found = corpus.ask("Who was the first president of the society which published Journal of Integration?");
        assert_eq!(nodes(&found)[..2], [0, 1], "{found:?}");
        assert!(!nodes(&found).contains(&3));
        let names: Vec<_> = found.channels.iter().map(|c| c.name).collect();
        assert_eq!(names, ["lexical", "keys", "graph", "bridge"]);
        assert!(corpus.ask("").candidates.is_empty());
        assert!(corpus.ask("zebra").candidates.is_empty());
    }

    #[test]
    fn the_answer_follows_the_turn_that_has_the_words() {
        let texts = vec![
            ("Ann", "Hello there"),
            ("Bob", "What instrument do you play?"),
            ("Ann", "The violin"),
            ("Bob", "Nice"),
            ("Ann", "Bye"),
        ];
        let corpus = |named| Corpus { texts: texts.clone(), mentions: vec![], is_talk: true, named };
        let found = corpus(None).ask("Which instrument does she play?");
        assert_eq!(nodes(&found), [1, 2, 0, 3]);
        let found = corpus(Some("Ann")).ask("Which instrument does she play?");
        assert_eq!(nodes(&found)[..2], [1, 2]);
        let of_bob = found.candidates.iter().find(|c| c.node == Node(3)).unwrap();
        assert!(of_bob.reasons.iter().any(|reason| reason.channel == "another_speaker" && reason.score < 0.0));
    }
}
