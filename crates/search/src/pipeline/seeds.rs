//! Seeds: nodes that a query finds directly, by its words, its meaning, the titles and names it mentions, and its
//! anchors.

use crate::pipeline::fuse::best;
use crate::question::TaskText;
use crate::recipes::{CodeRecipe, MEANING, MeaningRecipe};
use crate::text::{Scoring, Term, TextIndex};
use crate::titles;
use lukasa_graph::walk::{Direction, Filter, Walk, walk};
use lukasa_graph::{Node, Snapshot};
use rustc_hash::FxHashMap;

/// Text: returns all nodes that contain one of the words, with scores, in the order of nodes.
pub fn by_words(index: &TextIndex, terms: &[Term], scoring: &Scoring) -> Vec<(Node, f64)> {
    index.scores(terms, scoring).into_iter().map(|(node, score)| (node, f64::from(score))).collect()
}

/// Text: returns the best nodes for each of several scorings, best first; `order` breaks ties.
pub fn best_by_words<const N: usize>(
    index: &TextIndex,
    terms: &[Term],
    scorings: [&Scoring; N],
    most: usize,
    order: impl Fn(Node) -> u64 + Copy,
) -> [Vec<(Node, f64)>; N] {
    let ranked = |found: Vec<(Node, f32)>| {
        best(found.into_iter().map(|(node, score)| (node, f64::from(score))).collect(), most, order)
    };
    index.best_by(terms, scorings, most).map(ranked)
}

/// The nearest vectors, and the likeness that counts as not near: that of the vector at place [`MeaningRecipe::near`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NearestNodes {
    /// The nearest nodes with their likeness (cosine), nearest first.
    pub found: Vec<(Node, f64)>,
    /// The likeness that counts as not near.
    pub base: f64,
}

/// Vector: returns the nodes with at least the likeness [`MeaningRecipe::least`], nearest first. Among few vectors all
/// may be near; among many, only those nearer than the one at place [`MeaningRecipe::near`] are.
pub fn by_meaning(all: &[(u32, f32)], recipe: &MeaningRecipe) -> NearestNodes {
    let found: Vec<(Node, f64)> = all
        .iter()
        .map(|(id, likeness)| (Node(*id), f64::from(*likeness)))
        .filter(|(_, likeness)| *likeness >= recipe.least)
        .collect();
    let last = all.get(recipe.near - 1).map_or(recipe.least, |(_, likeness)| f64::from(*likeness));
    NearestNodes { found, base: last }
}

/// The weight of the vector channel from 0 to 1, by the likeness of the nearest vector: 1 from [`MeaningRecipe::sure`]
/// on. The weight is needed because there is always a nearest vector, even if it is not near.
pub fn trust(best: f64) -> f64 {
    (best / MEANING.sure).clamp(0.0, 1.0)
}

/// Keys: returns the texts whose title the query mentions, in the order of nodes. Texts with the same title share its
/// weight; a title that more than `ambiguous` texts have does not count.
pub fn by_title(titles: &TextIndex, question: &str, ambiguous: usize) -> Vec<(Node, f64)> {
    let mut found: FxHashMap<Node, f64> = FxHashMap::default();
    let is_key = |key: &str| (1..=ambiguous).contains(&titles.frequency(key));
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

/// Keys: returns the files that define a name in the task, scored by the rarity of the name, in the order of nodes.
pub fn by_name(defined: &TextIndex, task: &TaskText, recipe: &CodeRecipe) -> Vec<(Node, f64)> {
    let mut best: FxHashMap<Node, f64> = FxHashMap::default();
    for (name, in_title) in task.names() {
        let score = f64::from(defined.rarity(&name)) * if in_title { recipe.in_title } else { 1.0 };
        for file in defined.having(&name) {
            let there = best.entry(file).or_default();
            *there = there.max(score);
        }
    }
    let mut all: Vec<_> = best.into_iter().collect();
    all.sort_by_key(|(node, _)| *node);
    all
}

/// Text: returns files with the weighted sum of the scores of their best symbols. `symbols` is sorted, best first.
pub fn by_symbols(
    symbols: &[(Node, f64)],
    recipe: &CodeRecipe,
    file_of: impl Fn(Node) -> Option<Node>,
) -> Vec<(Node, f64)> {
    let mut by_file: FxHashMap<Node, [f64; 3]> = FxHashMap::default();
    for (node, score) in symbols {
        let Some(file) = file_of(*node) else { continue };
        let best = by_file.entry(file).or_default();
        let place = best.iter().position(|other| score > other);
        if let Some(place) = place {
            best[place..].rotate_right(1);
            best[place] = *score;
        }
    }
    by_file.into_iter().map(|(file, best)| (file, best.iter().zip(recipe.further).map(|(s, w)| s * w).sum())).collect()
}

/// The nodes that can be reached from anchors, in the order in which they were reached.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vicinity {
    /// Each with its number of hops from the nearest anchor.
    pub nodes: Vec<(Node, u32)>,
    /// Whether a limit ended the walk.
    pub is_cut: bool,
}

/// Anchors: returns the nodes around some nodes, in both directions, within limits.
pub fn by_anchors(snapshot: &Snapshot, anchors: &[Node], depth: u32, max_nodes: usize, max_edges: usize) -> Vicinity {
    let filter = Filter::default();
    let plan = Walk { direction: Direction::Both, depth, max_nodes, max_edges, filter: &filter };
    let found = walk(snapshot, anchors, &plan);
    let nodes = (0..found.nodes.len()).map(|at| (found.nodes[at], found.depth(at))).collect();
    Vicinity { nodes, is_cut: found.cut.is_some() }
}

/// The largest share of a query, by the weight of its words, that one of these documents contains. Unlike scores, which
/// depend on the rarity of words in an index, shares of two indexes can be compared.
pub fn covered(index: &TextIndex, found: &[(Node, f64)], terms: &[Term]) -> f64 {
    let all: f32 = terms.iter().map(|term| term.weight).sum();
    let of = |node: Node| f64::from(index.matched_weight(node, terms) / all.max(f32::MIN_POSITIVE));
    found.iter().map(|(node, _)| of(*node)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_that_are_not_near_are_no_seeds() {
        let recipe = MeaningRecipe { near: 3, ..MEANING };
        let few = by_meaning(&[(1, 0.5), (2, 0.125)], &recipe);
        assert_eq!(few, NearestNodes { found: vec![(Node(1), 0.5)], base: recipe.least });
        let many = by_meaning(&[(1, 0.5), (2, 0.375), (3, 0.25), (4, 0.2)], &recipe);
        assert_eq!((many.found.len(), many.base), (4, 0.25));
        assert_eq!([0.0, 0.25, 0.5, 0.9].map(trust), [0.0, 0.5, 1.0, 1.0]);
    }
}
