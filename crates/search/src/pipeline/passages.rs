//! Expansion among passages and turns: to the turns before and after, and to texts that supply what a hit lacks.

use crate::pipeline::fuse::{Candidate, sort};
use crate::pipeline::rerank::multiply;
use crate::pipeline::seeds::by_words;
use crate::pipeline::whole_count;
use crate::recipes::{PASSAGES, RecallRecipe};
use crate::text::{Term, TextIndex};
use lukasa_graph::Node;
use rustc_hash::FxHashMap;

/// How texts are connected.
pub trait PassageLinks {
    /// The next turn of a conversation.
    fn next(&self, node: Node) -> Option<Node>;
    /// The previous turn of a conversation.
    fn previous(&self, node: Node) -> Option<Node>;
    /// Whether a turn asks something.
    fn asks(&self, node: Node) -> bool;
    /// Whether the speaker is another than the one that the query names; false if it names none or several.
    fn is_of_another(&self, node: Node) -> bool;
    /// Mentions in both directions, with weights.
    fn mentions(&self, node: Node) -> Vec<(Node, f64)>;
}

/// Passes scores on to neighbouring turns, and lowers turns of speakers whom the query does not name; best first.
pub fn turns(
    mut seeds: Vec<Candidate>,
    recipe: &RecallRecipe,
    ties: &impl PassageLinks,
    order: impl Fn(Node) -> u64,
) -> Vec<Candidate> {
    let mut places: FxHashMap<Node, usize> = seeds.iter().enumerate().map(|(at, seed)| (seed.node, at)).collect();
    let mut own: Vec<(Node, f64)> = seeds.iter().map(|seed| (seed.node, seed.score())).collect();
    let mut give = |node: Node, channel: &'static str, score: f64| {
        let at = *places.entry(node).or_insert_with(|| {
            seeds.push(Candidate::new(node));
            seeds.len() - 1
        });
        seeds[at].add(channel, score);
    };
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
    multiply(&mut seeds, "another_speaker", recipe.others, |node| ties.is_of_another(node));
    sort(&mut seeds, order);
    seeds
}

/// Texts that one of the best seeds leads to: they share names or a mention with it, and contain query words that it
/// lacks.
pub fn bridges(
    texts: &TextIndex,
    names: &TextIndex,
    terms: &[Term],
    lexical: &[(Node, f64)],
    firsts: &[(Node, f64)],
    recipe: &RecallRecipe,
    ties: &impl PassageLinks,
) -> Vec<(Node, f64)> {
    let top = lexical.iter().map(|(_, score)| *score).fold(0.0, f64::max);
    let mut bridges: FxHashMap<Node, f64> = FxHashMap::default();
    if top <= 0.0 {
        return vec![];
    }
    for (from, score) in firsts {
        let contained: Vec<String> = texts.words(*from).into_iter().map(|(word, _)| word.to_owned()).collect();
        let open: Vec<Term> = terms.iter().filter(|term| !contained.contains(&term.word)).cloned().collect();
        let shared = shared_names(names, *from, recipe);
        let linked = ties.mentions(*from);
        if open.is_empty() || (shared.is_empty() && linked.is_empty()) {
            continue;
        }
        let most = linked.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
        let linked: FxHashMap<Node, f64> = linked.into_iter().map(|(node, weight)| (node, weight / most)).collect();
        for (to, rest) in by_words(texts, &open, &PASSAGES) {
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

/// The similarity of texts by their rarer names: the cosine, with names weighted by rarity.
fn shared_names(names: &TextIndex, from: Node, recipe: &RecallRecipe) -> FxHashMap<Node, f64> {
    let n = names.len();
    let most = whole_count(n as f64 * recipe.common_name).max(recipe.few_names);
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
