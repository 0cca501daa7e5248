//! Finding passages whose answer is spread over several of them: words, meaning, names, then a walk over mentions.
//!
//! A question names one thing and asks about another that only a second passage links to it. So what was found by words,
//! meaning and names sends walkers along mentions; and of the best found, each looks for passages that share its names
//! and speak of what the question asks and it does not answer itself.

use crate::fuse::{Candidate, Channel, best, sort};
use crate::text::{Scoring, Term, TextIndex};
use crate::titles;
use crate::walk::{Links, walk};
use lukasa_graph::Node;
use rustc_hash::FxHashMap;

/// What each channel and stage counts.
#[derive(Clone, Debug, PartialEq)]
pub struct PassageRecipe {
    pub lexical: f64,
    pub vector: f64,
    pub keys: f64,
    /// Walkers start from so many of the best.
    pub seeds: usize,
    pub damping: f64,
    pub steps: usize,
    /// What a bridge to one of the best adds; so many of the best are tried.
    pub bridge: f64,
    pub bridges: usize,
}

impl Default for PassageRecipe {
    fn default() -> Self {
        PassageRecipe {
            lexical: 0.5,
            vector: 0.5,
            keys: 1.0,
            seeds: 20,
            damping: 0.5,
            steps: 10,
            bridge: 0.3,
            bridges: 5,
        }
    }
}

/// What is looked in.
pub struct PassageIndexes<'a> {
    pub texts: &'a TextIndex,
    /// By the keys of titles.
    pub titles: &'a TextIndex,
    /// By words that are names.
    pub names: &'a TextIndex,
}

/// The vector channel's part: all that were compared, or the nearest, and the mean over all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nearest {
    pub found: Vec<(Node, f64)>,
    pub mean: f64,
}

/// What came of it, best first, and what each channel found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub candidates: Vec<Candidate>,
    pub channels: Vec<Channel>,
}

/// A title counts as much as a text twice as long would.
pub fn scoring() -> Scoring {
    Scoring { boosts: [2.0, 0.0, 1.0, 1.0], ..Scoring::default() }
}

/// How far above `base` scores are, the best being 1: the head of a list keeps its distances, which deviations from the mean
/// do not.
pub fn peak(found: &[(Node, f64)], base: f64) -> Vec<(Node, f64)> {
    let top = found.iter().map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max);
    if found.is_empty() || top <= base {
        return vec![];
    }
    found
        .iter()
        .map(|(node, score)| (*node, (score - base).max(0.0) / (top - base)))
        .filter(|(_, s)| *s > 0.0)
        .collect()
}

/// Finds passages for a question; `links` are mentions in both directions.
pub fn find(
    indexes: &PassageIndexes<'_>,
    question: &str,
    terms: &[Term],
    nearest: &Nearest,
    recipe: &PassageRecipe,
    links: &impl Links,
    order: impl Fn(Node) -> u64 + Copy,
) -> Found {
    let lexical = scores(indexes.texts, terms);
    let mut channels = vec![
        Channel { name: "lexical", weight: recipe.lexical, found: peak(&lexical, 0.0) },
        Channel { name: "vector", weight: recipe.vector, found: peak(&nearest.found, nearest.mean) },
        Channel { name: "keys", weight: recipe.keys, found: named(indexes.titles, question) },
    ];
    channels.retain(|channel| channel.weight > 0.0 && !channel.found.is_empty());
    let seeds = seeds(&channels, order);
    let start: Vec<(Node, f64)> = seeds.iter().take(recipe.seeds).map(|(node, score)| (*node, score.powi(3))).collect();
    let walked = peak(&walk(links, &start, recipe.damping, recipe.steps), 0.0);
    let bridged = peak(&bridges(indexes, terms, &lexical, &seeds, recipe, links), 0.0);
    channels.push(Channel { name: "graph", weight: 1.0, found: best(walked, usize::MAX, order) });
    channels.push(Channel { name: "bridge", weight: recipe.bridge, found: best(bridged, usize::MAX, order) });
    let mut places: FxHashMap<Node, usize> = FxHashMap::default();
    let mut candidates: Vec<Candidate> = Vec::new();
    for channel in &channels[channels.len() - 2..] {
        for (node, score) in &channel.found {
            let at = *places.entry(*node).or_insert_with(|| {
                candidates.push(Candidate { node: *node, reasons: vec![] });
                candidates.len() - 1
            });
            candidates[at].add(channel.name, channel.weight * score);
        }
    }
    // Whatever was found at all comes after, by how it was found.
    let least = candidates.iter().map(Candidate::score).fold(f64::INFINITY, f64::min).min(1.0) * 1e-3;
    for (node, score) in seeds {
        if !places.contains_key(&node) {
            let mut candidate = Candidate { node, reasons: vec![] };
            candidate.add("seed", score * least);
            candidates.push(candidate);
        }
    }
    sort(&mut candidates, order);
    channels.iter_mut().for_each(|channel| channel.found = best(std::mem::take(&mut channel.found), usize::MAX, order));
    Found { candidates, channels }
}

fn scores(index: &TextIndex, terms: &[Term]) -> Vec<(Node, f64)> {
    index.scores(terms, &scoring()).into_iter().map(|(node, score)| (node, f64::from(score))).collect()
}

/// The channels' sum, as shares of the best.
fn seeds(channels: &[Channel], order: impl Fn(Node) -> u64) -> Vec<(Node, f64)> {
    let mut sums: FxHashMap<Node, f64> = FxHashMap::default();
    for channel in channels {
        channel.found.iter().for_each(|(node, score)| *sums.entry(*node).or_default() += channel.weight * score);
    }
    best(peak(&sums.into_iter().collect::<Vec<_>>(), 0.0), usize::MAX, order)
}

/// Passages whose title the question names; those that share a title share what it counts.
fn named(titles: &TextIndex, question: &str) -> Vec<(Node, f64)> {
    let mut found: FxHashMap<Node, f64> = FxHashMap::default();
    let is_key = |key: &str| (1..=titles::AMBIGUOUS).contains(&titles.frequency(key));
    for key in titles::mentions(question, true, is_key) {
        let having = titles.having(&key);
        having.iter().for_each(|node| *found.entry(*node).or_default() += 1.0 / having.len() as f64);
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(node, _)| *node);
    found
}

/// Passages that one of the best leads to: they share its names or a mention, and speak of what it leaves open.
fn bridges(
    indexes: &PassageIndexes<'_>,
    terms: &[Term],
    lexical: &[(Node, f64)],
    seeds: &[(Node, f64)],
    recipe: &PassageRecipe,
    links: &impl Links,
) -> Vec<(Node, f64)> {
    let top = lexical.iter().map(|(_, score)| *score).fold(0.0, f64::max);
    let mut bridges: FxHashMap<Node, f64> = FxHashMap::default();
    if top <= 0.0 {
        return vec![];
    }
    for (from, score) in seeds.iter().take(recipe.bridges) {
        let said: Vec<String> = indexes.texts.words(*from).into_iter().map(|(word, _)| word.to_owned()).collect();
        let open: Vec<Term> = terms.iter().filter(|term| !said.contains(&term.word)).cloned().collect();
        let rest = scores(indexes.texts, &open);
        let shared = shared_names(indexes.names, *from);
        let linked = links.links(*from);
        let most = linked.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
        let linked: FxHashMap<Node, f64> = linked.into_iter().map(|(node, weight)| (node, weight / most)).collect();
        for (to, rest) in rest {
            let link = shared.get(&to).map_or(0.0, |cosine| cosine.sqrt()) + linked.get(&to).copied().unwrap_or(0.0);
            if to != *from && link > 0.0 {
                let bridge = score * link * rest / top;
                let best = bridges.entry(to).or_default();
                *best = best.max(bridge);
            }
        }
    }
    let mut all: Vec<_> = bridges.into_iter().collect();
    all.sort_by_key(|(node, _)| *node);
    all
}

/// How alike two passages are in the rarer names they have: the cosine, with names by rarity.
fn shared_names(names: &TextIndex, from: Node) -> FxHashMap<Node, f64> {
    let n = names.len();
    let most = (n / 20).max(3);
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

    const PASSAGES: [(&str, &str); 5] = [
        ("Journal of Integration", "The Journal of Integration is published by the Society for Exploration."),
        ("Society for Exploration", "The Society for Exploration was founded by Paul Wachtel, its first president."),
        ("Another Society", "The first president of another society was somebody else, a president of societies."),
        ("Cooking", "Onions and salt."),
        ("Paul Wachtel", "Paul Wachtel studied in New York."),
    ];

    fn found(question: &str) -> Found {
        let (mut texts, mut titles, mut names) = (Gathered::default(), Gathered::default(), Gathered::default());
        for (n, (title, text)) in PASSAGES.iter().enumerate() {
            let node = n as Node;
            texts.begin(node);
            texts.add(Field::Name, title);
            texts.add(Field::Text, text);
            titles.begin(node);
            titles::keys(title).iter().for_each(|key| titles.add_word(Field::Name, key));
            names.begin(node);
            titles::names(&format!("{title} {text}")).iter().for_each(|name| names.add_word(Field::Name, name));
        }
        let [texts, titles, names] = [texts, titles, names].map(|gathered| TextIndex::build(vec![gathered]));
        let indexes = PassageIndexes { texts: &texts, titles: &titles, names: &names };
        let links = |node: Node| -> Vec<(Node, f64)> {
            match node {
                0 => vec![(1, 1.0)],
                1 => vec![(0, 0.5), (4, 1.0)],
                4 => vec![(1, 0.5)],
                _ => vec![],
            }
        };
        let terms = question::terms(question);
        find(&indexes, question, &terms, &Nearest::default(), &PassageRecipe::default(), &links, u64::from)
    }

    #[test]
    fn the_second_hop_comes_before_what_only_sounds_alike() {
        let found = found("Who was the first president of the society which published Journal of Integration?");
        let order: Vec<Node> = found.candidates.iter().map(|c| c.node).collect();
        assert_eq!(order[..2], [0, 1], "{found:?}");
        assert!(!order.contains(&3));
        let names: Vec<_> = found.channels.iter().map(|c| c.name).collect();
        assert_eq!(names, ["lexical", "keys", "graph", "bridge"]);
        assert!(found.candidates.iter().all(|c| !c.reasons.is_empty()));
    }

    #[test]
    fn nothing_asked_is_nothing_found() {
        assert!(found("").candidates.is_empty());
        assert!(found("zebra").candidates.is_empty());
    }

    #[test]
    fn peaks_keep_distances() {
        assert_eq!(peak(&[(1, 3.0), (2, 1.0), (3, 2.0)], 1.0), [(1, 1.0), (3, 0.5)]);
        assert!(peak(&[], 0.0).is_empty() && peak(&[(1, 1.0)], 1.0).is_empty());
    }
}
