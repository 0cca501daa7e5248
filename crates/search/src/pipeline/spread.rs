//! Spread: personalized PageRank from seeds, so that what many of them lead to gains.

use crate::recipes::{PackRecipe, RecallRecipe};
use lukasa_graph::rank::{Stay, Weights, push, walk};
use lukasa_graph::{Node, Snapshot};
use lukasa_model::types::Registry;
use rustc_hash::FxHashMap;

/// Along given links, a few steps from the seeds, in the order of nodes.
pub fn along(links: impl Fn(Node) -> Vec<(Node, f64)>, seeds: &[(Node, f64)], recipe: &RecallRecipe) -> Vec<Stay> {
    walk(links, seeds, recipe.damping, recipe.steps)
}

/// Along all relationships of a graph, by the weights of their types: how often a walk that returns to the seeds again and
/// again comes by each node.
pub fn around(
    snapshot: &Snapshot,
    registry: &Registry,
    seeds: &[(Node, f64)],
    recipe: &PackRecipe,
) -> FxHashMap<Node, f64> {
    if seeds.is_empty() {
        return FxHashMap::default();
    }
    let weights = Weights::new(snapshot, registry, &[]);
    push(snapshot, &weights, seeds, recipe.damping, recipe.rest)
}
