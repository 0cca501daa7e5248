//! Spread: personalized PageRank from seeds, which raises nodes that many seeds lead to.

use crate::recipes::{PackRecipe, RecallRecipe};
use lukasa_graph::rank::{EdgeWeights, NodeRank, push, walk};
use lukasa_graph::{Node, Snapshot};
use lukasa_model::types::Registry;
use rustc_hash::FxHashMap;

/// Spreads along given links, a few steps from the seeds; returns masses in the order of nodes.
pub fn along(links: impl Fn(Node) -> Vec<(Node, f64)>, seeds: &[(Node, f64)], recipe: &RecallRecipe) -> Vec<NodeRank> {
    walk(links, seeds, recipe.damping, recipe.steps)
}

/// Spreads along all relationships of a graph, by the weights of their types; returns how often a random walk that
/// keeps returning to the seeds visits each node.
pub fn around(
    snapshot: &Snapshot,
    registry: &Registry,
    seeds: &[(Node, f64)],
    recipe: &PackRecipe,
) -> FxHashMap<Node, f64> {
    if seeds.is_empty() {
        return FxHashMap::default();
    }
    let weights = EdgeWeights::new(snapshot, registry, &[]);
    push(snapshot, &weights, seeds, recipe.damping, recipe.rest)
}
