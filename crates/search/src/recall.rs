//! Finds passages, notes and conversation turns, also when the answer is spread over several of them.
//!
//! Seeds are found by words, by vectors and by titles that the query mentions. Seeds pass a part of their score to the
//! neighbouring turns of a conversation, because a turn often answers the one before it without sharing a word with the
//! query. Then a random walk follows mentions. Finally, each of the best seeds leads to texts that share its rarer
//! names and contain the words of the query that it lacks (bridges). `docs/ranking.md` explains how the weights were
//! found.

use crate::fuse::{Candidate, Channel, best, sort};
use crate::text::{Scoring, Term, TextIndex};
use crate::titles;
use lukasa_graph::Node;
use lukasa_graph::rank::walk;
use rustc_hash::FxHashMap;

/// The weights of each channel and stage.
#[derive(Clone, Debug, PartialEq)]
pub struct RecallRecipe {
    pub lexical: f64,
    pub vector: f64,
    pub keys: f64,
    /// The share of a score that is passed to neighbouring turns per hop; `answer` applies after a turn that asks.
    pub next: f64,
    pub answer: f64,
    pub hops: usize,
    /// The factor for turns of other speakers when the query names one speaker.
    pub others: f64,
    /// The walk starts from this many of the best seeds, weighted by their score to the power of `sharpen`.
    pub seeds: usize,
    pub sharpen: i32,
    pub damping: f64,
    pub steps: usize,
    /// The weight of a bridge, and how many of the best seeds are tried.
    pub bridge: f64,
    pub bridges: usize,
}

impl Default for RecallRecipe {
    fn default() -> Self {
        RecallRecipe {
            lexical: 1.0,
            vector: 0.5,
            keys: 2.0,
            next: 0.4,
            answer: 0.6,
            hops: 2,
            others: 0.7,
            seeds: 20,
            sharpen: 3,
            damping: 0.5,
            steps: 10,
            bridge: 0.4,
            bridges: 5,
        }
    }
}

/// The text indexes to search.
pub struct RecallIndexes<'a> {
    pub texts: &'a TextIndex,
    /// Indexed by title keys.
    pub titles: &'a TextIndex,
    /// Indexed by words that are names.
    pub names: &'a TextIndex,
}

/// The nearest vectors, and the score that counts as not near: that of about the two-hundredth.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nearest {
    pub found: Vec<(Node, f64)>,
    pub base: f64,
}

/// How texts are connected.
pub trait Ties {
    /// The next and the previous turn of a conversation.
    fn next(&self, node: Node) -> Option<Node>;
    fn previous(&self, node: Node) -> Option<Node>;
    /// Whether a turn asks something.
    fn asks(&self, node: Node) -> bool;
    /// Whether the speaker is another than the one that the query names; false if it names none or several.
    fn is_of_another(&self, node: Node) -> bool;
    /// Mentions in both directions, with weights.
    fn mentions(&self, node: Node) -> Vec<(Node, f64)>;
}

/// The candidates, best first, and what each channel found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub candidates: Vec<Candidate>,
    pub channels: Vec<Channel>,
}

/// A word in a title counts twice.
pub fn scoring() -> Scoring {
    Scoring { boosts: [2.0, 0.0, 1.0, 1.0], ..Scoring::default() }
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

/// Finds what answers a query, in whole or in part.
pub fn find(
    indexes: &RecallIndexes<'_>,
    question: &str,
    terms: &[Term],
    nearest: &Nearest,
    recipe: &RecallRecipe,
    ties: &impl Ties,
    order: impl Fn(Node) -> u64 + Copy,
) -> Found {
    let lexical = scores(indexes.texts, terms);
    let near = peak(&nearest.found, nearest.base).into_iter().map(|(node, share)| (node, share * share)).collect();
    let channels = [
        ("lexical", recipe.lexical, peak(&lexical, 0.0)),
        ("vector", recipe.vector, near),
        ("keys", recipe.keys, named(indexes.titles, question)),
    ];
    let mut channels: Vec<Channel> = channels
        .into_iter()
        .filter(|(_, weight, found)| *weight > 0.0 && !found.is_empty())
        .map(|(name, weight, found)| Channel { name, weight, found: best(found, usize::MAX, order) })
        .collect();
    let seeds = seeds(&channels, recipe, ties, order);
    let Some(top) = seeds.first().map(Candidate::score).filter(|top| *top > 0.0) else { return Found::default() };
    let share = |candidate: &Candidate| candidate.score() / top;
    let firsts: Vec<(Node, f64)> = seeds.iter().take(recipe.bridges).map(|c| (c.node, share(c))).collect();
    let bridged = bridges(indexes, terms, &lexical, &firsts, ties);
    let start: Vec<(Node, f64)> =
        seeds.iter().take(recipe.seeds).map(|c| (c.node, share(c).powi(recipe.sharpen))).collect();
    let walked = walk(|node| ties.mentions(node), &start, recipe.damping, recipe.steps);
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
    for candidate in &seeds {
        // A seed's own share is attributed to the channels that found it. `LAST` keeps seeds that the walk does not
        // reach in order.
        let own = home.get(&candidate.node).copied().unwrap_or(0.0) + LAST * share(candidate);
        let sum = candidate.score();
        candidate.reasons.iter().for_each(|reason| give(candidate.node, reason.channel, reason.score / sum * own));
    }
    walked.iter().filter(|at| at.walked > 0.0).for_each(|at| give(at.node, "graph", at.walked / most));
    bridged.iter().for_each(|(node, score)| give(*node, "bridge", recipe.bridge * score));
    sort(&mut candidates, order);
    let graph = walked.iter().map(|at| (at.node, at.mass())).collect();
    channels.push(Channel { name: "graph", weight: 1.0, found: best(graph, usize::MAX, order) });
    channels.push(Channel { name: "bridge", weight: recipe.bridge, found: best(bridged, usize::MAX, order) });
    channels.retain(|channel| !channel.found.is_empty());
    Found { candidates, channels }
}

/// A tiny weight that keeps all other candidates in the order of the seeds.
const LAST: f64 = 1e-6;

fn scores(index: &TextIndex, terms: &[Term]) -> Vec<(Node, f64)> {
    index.scores(terms, &scoring()).into_iter().map(|(node, score)| (node, f64::from(score))).collect()
}

/// Sums the channels and passes scores on to neighbouring turns; best first.
fn seeds(channels: &[Channel], recipe: &RecallRecipe, ties: &impl Ties, order: impl Fn(Node) -> u64) -> Vec<Candidate> {
    let mut all: FxHashMap<Node, Candidate> = FxHashMap::default();
    let mut give = |node: Node, channel: &'static str, score: f64| {
        all.entry(node).or_insert_with(|| Candidate::new(node)).add(channel, score);
    };
    let mut own: FxHashMap<Node, f64> = FxHashMap::default();
    for channel in channels {
        for (node, score) in &channel.found {
            give(*node, channel.name, channel.weight * score);
            *own.entry(*node).or_default() += channel.weight * score;
        }
    }
    let mut own: Vec<_> = own.into_iter().collect();
    own.sort_by_key(|(node, _)| *node);
    for (node, score) in own {
        let (mut at, mut carried) = (node, score);
        for _ in 0..recipe.hops {
            carried *= if ties.asks(at) { recipe.answer } else { recipe.next };
            let Some(next) = ties.next(at) else { break };
            give(next, "turn_before", carried);
            at = next;
        }
        let (mut at, mut carried) = (node, score);
        for _ in 0..recipe.hops {
            carried *= recipe.next;
            let Some(previous) = ties.previous(at) else { break };
            give(previous, "turn_after", carried);
            at = previous;
        }
    }
    let mut all: Vec<Candidate> = all.into_values().collect();
    for candidate in all.iter_mut().filter(|candidate| ties.is_of_another(candidate.node)) {
        let lost = candidate.score() * (recipe.others - 1.0);
        candidate.add("another_speaker", lost);
    }
    sort(&mut all, order);
    all
}

/// Texts whose title the query mentions; texts with the same title share its weight.
fn named(titles: &TextIndex, question: &str) -> Vec<(Node, f64)> {
    let mut found: FxHashMap<Node, f64> = FxHashMap::default();
    let is_key = |key: &str| (1..=titles::AMBIGUOUS).contains(&titles.frequency(key));
    for key in titles::mentions(question, true, is_key) {
        let having = titles.having(&key);
        for node in &having {
            let best = found.entry(*node).or_default();
            *best = best.max(1.0 / having.len() as f64);
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(node, _)| *node);
    found
}

/// Texts that one of the best seeds leads to: they share names or a mention with it, and contain query words that it
/// lacks.
fn bridges(
    indexes: &RecallIndexes<'_>,
    terms: &[Term],
    lexical: &[(Node, f64)],
    firsts: &[(Node, f64)],
    ties: &impl Ties,
) -> Vec<(Node, f64)> {
    let top = lexical.iter().map(|(_, score)| *score).fold(0.0, f64::max);
    let mut bridges: FxHashMap<Node, f64> = FxHashMap::default();
    if top <= 0.0 {
        return vec![];
    }
    for (from, score) in firsts {
        let said: Vec<String> = indexes.texts.words(*from).into_iter().map(|(word, _)| word.to_owned()).collect();
        let open: Vec<Term> = terms.iter().filter(|term| !said.contains(&term.word)).cloned().collect();
        let shared = shared_names(indexes.names, *from);
        let linked = ties.mentions(*from);
        if open.is_empty() || (shared.is_empty() && linked.is_empty()) {
            continue;
        }
        let most = linked.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
        let linked: FxHashMap<Node, f64> = linked.into_iter().map(|(node, weight)| (node, weight / most)).collect();
        for (to, rest) in scores(indexes.texts, &open) {
            let link = shared.get(&to).map_or(0.0, |cosine| cosine.sqrt()) + linked.get(&to).copied().unwrap_or(0.0);
            if to != *from && link > 0.0 {
                let best = bridges.entry(to).or_default();
                *best = best.max(score * link * rest / top);
            }
        }
    }
    let mut all: Vec<_> = bridges.into_iter().collect();
    all.sort_by_key(|(node, _)| *node);
    all
}

/// Names in more than this share of all texts are ignored, but those in only a few texts always count.
const COMMON_NAME: f64 = 0.05;
const FEW_NAMES: usize = 3;

/// The similarity of texts by their rarer names: the cosine, with names weighted by rarity.
fn shared_names(names: &TextIndex, from: Node) -> FxHashMap<Node, f64> {
    let n = names.len();
    let most = ((n as f64 * COMMON_NAME) as usize).max(FEW_NAMES);
    let weight = |word: &str| {
        let frequency = names.frequency(word);
        if (2..=most).contains(&frequency) { (n as f64 / frequency as f64).ln() } else { 0.0 }
    };
    let length = |node: Node| names.words(node).iter().map(|(word, _)| weight(word).powi(2)).sum::<f64>().sqrt();
    let mut dots: FxHashMap<Node, f64> = FxHashMap::default();
    for (word, _) in names.words(from) {
        let weight = weight(word);
        if weight > 0.0 {
            names.having(word).iter().for_each(|node| *dots.entry(*node).or_default() += weight * weight);
        }
    }
    let own = length(from);
    dots.iter_mut().for_each(|(node, dot)| *dot /= own * length(*node));
    dots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question;
    use crate::text::{Field, Gathered};

    /// Texts with titles, their mentions, whether they form a conversation, and which speaker the query names.
    struct Corpus {
        texts: Vec<(&'static str, &'static str)>,
        mentions: Vec<(Node, Node)>,
        is_talk: bool,
        named: Option<&'static str>,
    }

    impl Ties for Corpus {
        fn next(&self, node: Node) -> Option<Node> {
            Some(node + 1).filter(|n| self.is_talk && (*n as usize) < self.texts.len())
        }
        fn previous(&self, node: Node) -> Option<Node> {
            node.checked_sub(1).filter(|_| self.is_talk)
        }
        fn asks(&self, node: Node) -> bool {
            self.texts[node as usize].1.ends_with('?')
        }
        fn is_of_another(&self, node: Node) -> bool {
            self.named.is_some_and(|name| self.texts[node as usize].0 != name)
        }
        fn mentions(&self, node: Node) -> Vec<(Node, f64)> {
            let out = self.mentions.iter().filter(|(from, _)| *from == node).map(|(_, to)| (*to, 1.0));
            out.chain(self.mentions.iter().filter(|(_, to)| *to == node).map(|(from, _)| (*from, 0.5))).collect()
        }
    }

    impl Corpus {
        fn ask(&self, question: &str) -> Found {
            let [mut texts, mut titles, mut names] = std::array::from_fn(|_| Gathered::prose());
            for (n, (title, text)) in self.texts.iter().enumerate() {
                let node = n as Node;
                texts.begin(node);
                texts.add(Field::Name, title);
                texts.add(Field::Text, text);
                titles.begin(node);
                if !self.is_talk {
                    titles::keys(title).iter().for_each(|key| titles.add_word(Field::Name, key));
                }
                names.begin(node);
                titles::names(&format!("{title} {text}")).iter().for_each(|name| names.add_word(Field::Name, name));
            }
            let [texts, titles, names] = [texts, titles, names].map(|gathered| TextIndex::build(vec![gathered]));
            let indexes = RecallIndexes { texts: &texts, titles: &titles, names: &names };
            let terms = question::prose_terms(question);
            let found =
                find(&indexes, question, &terms, &Nearest::default(), &RecallRecipe::default(), self, u64::from);
            assert!(found.candidates.iter().all(|c| !c.reasons.is_empty()));
            assert!(found.candidates.windows(2).all(|w| w[0].score() >= w[1].score()));
            found
        }
    }

    fn nodes(found: &Found) -> Vec<Node> {
        found.candidates.iter().map(|c| c.node).collect()
    }

    #[test]
    fn the_second_hop_comes_before_what_only_sounds_alike() {
        let corpus = Corpus {
            texts: vec![
                ("Journal of Integration", "The Journal of Integration is published by the Society for Exploration."),
                (
                    "Society for Exploration",
                    "The Society for Exploration was founded by Paul Wachtel, its first president.",
                ),
                (
                    "Another Society",
                    "The first president of another society was somebody else, a president of societies.",
                ),
                ("Cooking", "Onions and salt."),
                ("Paul Wachtel", "Paul Wachtel studied in New York."),
            ],
            mentions: vec![(0, 1), (1, 4)],
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
        let of_bob = found.candidates.iter().find(|c| c.node == 3).unwrap();
        assert!(of_bob.reasons.iter().any(|reason| reason.channel == "another_speaker" && reason.score < 0.0));
    }

    #[test]
    fn peaks_keep_distances() {
        assert_eq!(peak(&[(1, 3.0), (2, 1.0), (3, 2.0)], 1.0), [(1, 1.0), (3, 0.5)]);
        assert!(peak(&[], 0.0).is_empty() && peak(&[(1, 1.0)], 1.0).is_empty());
    }
}
