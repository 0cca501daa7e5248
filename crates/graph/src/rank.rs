//! The centrality of nodes: PageRank of all, and personalized PageRank around some.

use crate::flat::Csr;
use crate::snapshot::{Node, Snapshot, TypeNo};
use lukasa_model::types::Registry;
use rustc_hash::FxHashMap;
use std::sync::Arc;

mod personalized;

pub use personalized::{NodeRank, TransitionShares, ppr, push, walk};

/// The probability with which a walker follows an edge instead of starting again.
pub const DAMPING: f64 = 0.85;
/// Iterations of personalized PageRank.
pub const ITERATIONS: usize = 20;

/// When PageRank stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PageRankStop {
    /// After this many rounds.
    After(usize),
    /// Stops when ranks change by less than this in total, or after 200 rounds.
    Below(f64),
}

/// PageRank. Ranks sum to 1. Nodes without edges to others spread their rank over all nodes. Edges from a node to
/// itself are ignored.
pub fn pagerank(out: &Csr, into: &Csr, damping: f64, stop: PageRankStop) -> Vec<f64> {
    let n = out.len();
    if n == 0 {
        return vec![];
    }
    let count = n as f64;
    let mut rank = vec![1.0 / count; n];
    let mut next = vec![0.0; n];
    let mut share = vec![0.0; n];
    let away: Vec<usize> = (0..n).map(|v| out.of(v).iter().filter(|u| **u as usize != v).count()).collect();
    let (rounds, tolerance) = match stop {
        PageRankStop::After(rounds) => (rounds, -1.0),
        PageRankStop::Below(tolerance) => (200, tolerance),
    };
    for _ in 0..rounds {
        let mut loose = 0.0;
        for v in 0..n {
            match away[v] {
                0 => loose += rank[v],
                degree => share[v] = rank[v] / degree as f64,
            }
        }
        let base = (1.0 - damping) / count + damping * loose / count;
        let mut moved = 0.0;
        for v in 0..n {
            let sum: f64 = into.of(v).iter().filter(|u| **u as usize != v).map(|u| share[*u as usize]).sum();
            next[v] = base + damping * sum;
            moved += (next[v] - rank[v]).abs();
        }
        std::mem::swap(&mut rank, &mut next);
        if moved < tolerance {
            break;
        }
    }
    rank
}

impl Snapshot {
    /// PageRank of every visible node, by dense number. Computed once per snapshot.
    pub fn ranks(&self) -> &Arc<Vec<f64>> {
        self.beside.ranks.get_or_init(|| {
            let flat = self.flat();
            Arc::new(pagerank(&flat.out, &flat.into, DAMPING, PageRankStop::Below(1e-9)))
        })
    }

    /// The shares in which walkers spread by these weights. The result for the last weights is kept.
    pub fn spread(&self, weights: &EdgeWeights) -> Arc<TransitionShares> {
        let mut kept = self.beside.spread.lock();
        match &*kept {
            Some((by, spread)) if by == weights => Arc::clone(spread),
            _ => {
                let spread = Arc::new(TransitionShares::new(self.flat(), weights));
                *kept = Some((weights.clone(), Arc::clone(&spread)));
                spread
            }
        }
    }

    /// PageRank of one node, 0 for an ended one.
    pub fn rank(&self, node: Node) -> f64 {
        self.flat().dense(node).map_or(0.0, |dense| self.ranks()[dense as usize])
    }
}

/// The weight of following an edge of each type, in its direction and against it.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeWeights {
    forward: Vec<f64>,
    backward: Vec<f64>,
}

/// The weight against the direction of an edge, as a share, unless the type is declared reciprocal.
pub const REVERSE: f64 = 0.5;
/// Weights of Lukasa's own types.
const KNOWN: [(&str, f64); 7] = [
    ("CALLS", 0.9),
    ("IMPORTS", 0.7),
    ("DEFINED_IN", 0.6),
    ("CONTAINS", 0.5),
    ("TESTS", 0.4),
    ("APPLIES_TO", 0.4),
    ("INVOLVES", 0.3),
];
/// The weight of other types, if none is declared.
const OTHER: f64 = 0.5;

impl EdgeWeights {
    /// Weights by type number, from the declarations in the registry and from Lukasa's defaults. `given` overrides
    /// both.
    pub fn new(snapshot: &Snapshot, registry: &Registry, given: &[(String, f64)]) -> EdgeWeights {
        let named = |name: &str| given.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, weight)| *weight);
        let known = |name: &str| KNOWN.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, weight)| *weight);
        let (mut forward, mut backward) = (vec![], vec![]);
        for name in snapshot.names().types() {
            let declared = registry.ranking(name);
            // A declaration without a weight of its own keeps Lukasa's weight.
            let stated = declared.map(|r| r.base_weight).filter(|w| *w != 1.0 || known(name).is_none());
            let weight = named(name).or(stated).or_else(|| known(name)).unwrap_or(OTHER).max(0.0);
            let reverse = if declared.is_some_and(|r| r.reciprocal_boost) { 1.0 } else { REVERSE };
            forward.push(weight);
            backward.push(weight * reverse);
        }
        EdgeWeights { forward, backward }
    }

    /// Weights given directly by type number.
    pub fn by_type(forward: Vec<f64>, reverse: f64) -> EdgeWeights {
        let backward = forward.iter().map(|w| w * reverse).collect();
        EdgeWeights { forward, backward }
    }

    #[inline]
    fn forward(&self, type_no: TypeNo) -> f64 {
        self.forward[type_no.index()]
    }

    #[inline]
    fn backward(&self, type_no: TypeNo) -> f64 {
        self.backward[type_no.index()]
    }
}

/// In graphs with more edges than this, only nodes near the seeds are ranked.
pub const WHOLE: usize = 200_000;
/// The default mass that is left unspread: too little to change the order of the first hundred.
pub const REST: f64 = 1e-5;

/// How a ranking was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RankMethod {
    PowerIteration,
    ForwardPush,
}

/// Personalized PageRank, by the method that suits the size of the graph. Returns nodes with their ranks, the largest
/// first.
pub fn around(
    snapshot: &Snapshot,
    weights: &EdgeWeights,
    seeds: &[(Node, f64)],
    damping: f64,
) -> (Vec<(Node, f64)>, RankMethod) {
    if snapshot.edge_count() > WHOLE {
        let ranks = push(snapshot, weights, seeds, damping, REST);
        return (largest(snapshot, &ranks, ranks.len()), RankMethod::ForwardPush);
    }
    let flat = snapshot.flat();
    let dense: Vec<_> = seeds.iter().filter_map(|(node, w)| flat.dense(*node).map(|d| (d, *w))).collect();
    let ranks = ppr(&snapshot.spread(weights), &dense, damping, ITERATIONS);
    let mut all: Vec<_> =
        ranks.into_iter().enumerate().filter(|(_, r)| *r > 0.0).map(|(i, r)| (flat.nodes[i], r)).collect();
    // Dense numbers are in the order of fact numbers, and the sort is stable.
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    (all, RankMethod::PowerIteration)
}

/// The `most` nodes with the largest ranks, the largest first, ties by fact number.
pub fn largest(snapshot: &Snapshot, ranks: &FxHashMap<Node, f64>, most: usize) -> Vec<(Node, f64)> {
    let mut all: Vec<(Node, f64)> = ranks.iter().map(|(node, rank)| (*node, *rank)).collect();
    let order = |a: &(Node, f64), b: &(Node, f64)| {
        b.1.total_cmp(&a.1).then_with(|| snapshot.thing(a.0).cmp(&snapshot.thing(b.0)))
    };
    if all.len() > most {
        all.select_nth_unstable_by(most, order);
        all.truncate(most);
    }
    all.sort_unstable_by(order);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flat::FlatGraph;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pagerank_sums_to_one(n in 1usize..12, edges in prop::collection::vec((0u32..12, 0u32..12), 0..30)) {
            let edges: Vec<_> = edges.iter().map(|(a, b)| (a % n as u32, b % n as u32, 0)).collect();
            let flat = FlatGraph::from_edges(n, &edges);
            let rank = pagerank(&flat.out, &flat.into, DAMPING, PageRankStop::Below(1e-12));
            prop_assert!((rank.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(rank.iter().all(|r| *r > 0.0));
        }
    }

    #[test]
    fn pagerank_of_no_nodes_is_empty() {
        assert!(pagerank(&Csr::new(0, [].into_iter()), &Csr::default(), DAMPING, PageRankStop::After(3)).is_empty());
    }
}
