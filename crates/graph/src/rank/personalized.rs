//! Personalized PageRank: the proximity of nodes to seeds.
//!
//! Walkers start at the seeds, in proportion to their weights. At each step a walker follows a link with probability
//! `damping`, chosen in proportion to the weights of the links, and returns to the seeds otherwise; where there is no
//! link, it returns too. The rank of a node is the share of walkers there. There are three ways to compute it:
//! - [`ppr`] for every node of a graph that is small enough, from flat arrays;
//! - [`push`] for the nodes near the seeds of a large graph, as exactly as `rest` demands;
//! - [`walk`] over links that are no edges of a graph, for a fixed number of steps.

use super::EdgeWeights;
use crate::convert::to_u32;
use crate::flat::{Csr, FlatGraph};
use crate::snapshot::{Node, Snapshot};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// For each node, its neighbours in both directions and the share of their walkers that move to it.
pub struct TransitionShares {
    offsets: Vec<u32>,
    sources: Vec<u32>,
    shares: Vec<f64>,
    /// Nodes without edges to other nodes.
    loose: Vec<u32>,
}

impl TransitionShares {
    pub fn new(flat: &FlatGraph, weights: &EdgeWeights) -> TransitionShares {
        let n = flat.len();
        let (forward, backward) = (&weights.forward[..], &weights.backward[..]);
        let sum = |csr: &Csr, v: usize, by: &[f64]| -> f64 {
            let away = csr.range(v).filter(|i| csr.targets[*i] as usize != v);
            away.map(|i| by[csr.types[i].index()]).sum()
        };
        let total: Vec<f64> = (0..n).map(|v| sum(&flat.out, v, forward) + sum(&flat.into, v, backward)).collect();
        let entries = flat.out.targets.len() * 2;
        let mut spread = TransitionShares {
            offsets: Vec::with_capacity(n + 1),
            sources: Vec::with_capacity(entries),
            shares: Vec::with_capacity(entries),
            loose: (0..to_u32(n)).filter(|v| total[*v as usize] <= 0.0).collect(),
        };
        spread.offsets.push(0);
        for v in 0..n {
            // Along edges that lead to it, and against edges that lead out of it.
            for (csr, by) in [(&flat.into, forward), (&flat.out, backward)] {
                for i in csr.range(v) {
                    let (from, weight) = (csr.targets[i], by[csr.types[i].index()]);
                    if weight > 0.0 && from as usize != v {
                        spread.sources.push(from);
                        spread.shares.push(weight / total[from as usize]);
                    }
                }
            }
            spread.offsets.push(to_u32(spread.sources.len()));
        }
        spread
    }

    pub fn bytes(&self) -> usize {
        (self.offsets.capacity() + self.sources.capacity() + self.loose.capacity()) * 4 + self.shares.capacity() * 8
    }
}

/// Power iteration over the whole graph, in both directions of its edges. Seeds and ranks are by dense number; ranks
/// sum to 1.
pub fn ppr(spread: &TransitionShares, seeds: &[(u32, f64)], damping: f64, iterations: usize) -> Vec<f64> {
    let n = spread.offsets.len() - 1;
    let home = normalised(seeds);
    let mut rank = vec![0.0; n];
    if home.is_empty() {
        return rank;
    }
    home.iter().for_each(|(v, weight)| rank[*v as usize] += weight);
    let mut next = vec![0.0; n];
    for _ in 0..iterations {
        let loose: f64 = spread.loose.iter().map(|v| rank[*v as usize]).sum();
        for (next, bounds) in next.iter_mut().zip(spread.offsets.windows(2)) {
            let range = bounds[0] as usize..bounds[1] as usize;
            let mut sum = 0.0;
            for (u, share) in spread.sources[range.clone()].iter().zip(&spread.shares[range]) {
                sum += rank[*u as usize] * share;
            }
            *next = damping * sum;
        }
        let back = (1.0 - damping) + damping * loose;
        home.iter().for_each(|(v, weight)| next[*v as usize] += back * weight);
        std::mem::swap(&mut rank, &mut next);
    }
    rank
}

/// Forward push from the seeds, in both directions of edges. It reads only nodes near the seeds, and leaves at most
/// `rest` of the mass unspread at each node, per unit of the node's weight.
pub fn push(
    snapshot: &Snapshot,
    weights: &EdgeWeights,
    seeds: &[(Node, f64)],
    damping: f64,
    rest: f64,
) -> FxHashMap<Node, f64> {
    let home = normalised(seeds);
    // Walkers do not move to ended nodes or along an edge from a node to itself, as in `ppr`.
    let open = |from: Node, v: Node| v != from && (!snapshot.has_ended() || !snapshot.is_ended(v));
    let total = |v: Node| -> f64 {
        let out: f64 = snapshot.outgoing(v).iter().filter(|l| open(v, l.0)).map(|l| weights.forward(l.2)).sum();
        out + snapshot.incoming(v).iter().filter(|l| open(v, l.0)).map(|l| weights.backward(l.2)).sum::<f64>()
    };
    let mut spots: FxHashMap<Node, Spot> = FxHashMap::default();
    let mut queue: VecDeque<Node> = VecDeque::new();
    for (node, weight) in &home {
        spots.entry(*node).or_default().left += weight;
        queue.push_back(*node);
    }
    while let Some(v) = queue.pop_front() {
        let at = spots.entry(v).or_default();
        let (here, mass) = (*at.total.get_or_insert_with(|| total(v)), at.left);
        if mass <= rest * here.max(1.0) && mass < 1.0 {
            // Too little to spread. It stays until more arrives.
            continue;
        }
        at.left = 0.0;
        at.rank += (1.0 - damping) * mass;
        let mut give = |node: Node, mass: f64| {
            let there = spots.entry(node).or_default();
            let was = there.left;
            there.left += mass;
            if there.left <= rest {
                // Too little at any node. This is the usual case, and it avoids reading the node's edges.
                return;
            }
            let enough = rest * there.total.get_or_insert_with(|| total(node)).max(1.0);
            if was <= enough && there.left > enough {
                queue.push_back(node);
            }
        };
        if here > 0.0 {
            let share = damping * mass / here;
            for (node, _, type_no) in snapshot.outgoing(v).iter().filter(|l| open(v, l.0)) {
                give(node, share * weights.forward(type_no));
            }
            for (node, _, type_no) in snapshot.incoming(v).iter().filter(|l| open(v, l.0)) {
                give(node, share * weights.backward(type_no));
            }
        } else {
            home.iter().for_each(|(node, weight)| give(*node, damping * mass * weight));
        }
    }
    // Mass that was not spread counts where it is.
    spots.into_iter().map(|(node, spot)| (node, spot.rank + spot.left)).filter(|(_, rank)| *rank > 0.0).collect()
}

/// A node that mass has reached.
#[derive(Default)]
struct Spot {
    /// The weight of all its edges, computed when it is first needed.
    total: Option<f64>,
    rank: f64,
    /// Mass that has not been spread yet.
    left: f64,
}

/// The rank of a node: what arrived along links, and what returned to it because it is a seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeRank {
    pub node: Node,
    /// The share that arrived along links.
    pub walked: f64,
    /// The share that returned to the node as a seed; 0 for others.
    pub home: f64,
}

impl NodeRank {
    pub fn mass(&self) -> f64 {
        self.walked + self.home
    }
}

/// Mass that [`walk`] does not spread further, because it is too little to change the order of results.
const LEAST: f64 = 1e-7;

/// Power iteration over the links that `links` returns for a node, with their weights. `links` must return the same
/// links for the same node. It takes `steps` steps, at least one. Ranks are in the order of nodes, and sum to 1 except
/// for masses below [`LEAST`].
pub fn walk(
    links: impl Fn(Node) -> Vec<(Node, f64)>,
    seeds: &[(Node, f64)],
    damping: f64,
    steps: usize,
) -> Vec<NodeRank> {
    let home = summed(normalised(seeds));
    if home.is_empty() {
        return vec![];
    }
    let mut known: FxHashMap<Node, Vec<(Node, f64)>> = FxHashMap::default();
    let mut rank = home.clone();
    let mut stays = Vec::new();
    for _ in 0..steps.max(1) {
        let mut back = 1.0 - damping;
        let mut next: Vec<(Node, f64)> = Vec::with_capacity(rank.len() * 2);
        for (node, mass) in &rank {
            let links = known.entry(*node).or_insert_with(|| shares(links(*node)));
            if links.is_empty() {
                back += damping * mass;
            } else if damping * mass >= LEAST {
                next.extend(links.iter().map(|(to, share)| (*to, damping * mass * share)));
            }
        }
        stays = joined(summed(next), &home, back);
        rank = stays.iter().map(|stay| (stay.node, stay.mass())).collect();
    }
    stays
}

/// Adds what returned to the seeds to what arrived along links. Both are in the order of nodes.
fn joined(walked: Vec<(Node, f64)>, home: &[(Node, f64)], back: f64) -> Vec<NodeRank> {
    let mut all: Vec<NodeRank> =
        walked.into_iter().map(|(node, walked)| NodeRank { node, walked, home: 0.0 }).collect();
    for (node, weight) in home {
        match all.binary_search_by_key(node, |stay| stay.node) {
            Ok(at) => all[at].home = back * weight,
            Err(at) => all.insert(at, NodeRank { node: *node, walked: 0.0, home: back * weight }),
        }
    }
    all
}

/// Weights as shares of their sum.
fn shares(mut links: Vec<(Node, f64)>) -> Vec<(Node, f64)> {
    let total: f64 = links.iter().map(|(_, weight)| weight).sum();
    links.retain(|(_, weight)| *weight > 0.0);
    links.iter_mut().for_each(|(_, weight)| *weight /= total);
    links
}

/// Merges entries of the same node, sorted by node, so that sums do not depend on the order of the input.
fn summed(mut all: Vec<(Node, f64)>) -> Vec<(Node, f64)> {
    all.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.total_cmp(&b.1)));
    all.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    all
}

/// Seeds with weights that sum to 1. Seeds without a weight are left out.
fn normalised<N: Copy>(seeds: &[(N, f64)]) -> Vec<(N, f64)> {
    let total: f64 = seeds.iter().map(|(_, w)| w.max(0.0)).sum();
    seeds.iter().filter(|(_, w)| *w > 0.0).map(|(v, w)| (*v, w / total)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{DAMPING, ITERATIONS, REVERSE};
    use super::*;
    use crate::snapshot::TypeNo;
    use proptest::prelude::*;

    /// The definition, over a matrix of weights.
    fn by_matrix(weights: &[Vec<f64>], seeds: &[(u32, f64)], damping: f64, rounds: usize) -> Vec<f64> {
        let n = weights.len();
        let home = normalised(seeds);
        let mut rank = vec![0.0; n];
        home.iter().for_each(|(v, x)| rank[*v as usize] += x);
        for _ in 0..rounds {
            let mut next = vec![0.0; n];
            for u in 0..n {
                let total: f64 = weights[u].iter().sum();
                for v in 0..n {
                    if total > 0.0 {
                        next[v] += damping * rank[u] * weights[u][v] / total;
                    }
                }
                let back = if total > 0.0 { 1.0 - damping } else { 1.0 };
                home.iter().for_each(|(v, x)| next[*v as usize] += back * rank[u] * x);
            }
            rank = next;
        }
        rank
    }

    fn graphs() -> impl Strategy<Value = (usize, Vec<(u32, u32, u16)>)> {
        (1usize..12).prop_flat_map(|n| {
            let n32 = n as u32;
            (Just(n), prop::collection::vec((0..n32, 0..n32, 0u16..2), 0..30))
        })
    }

    proptest! {
        #[test]
        fn power_iteration_matches_the_definition((n, edges) in graphs(), a in 0u32..12, b in 0u32..12) {
            let flat = FlatGraph::from_edges(n, &edges);
            let weights = EdgeWeights::by_type(vec![0.9, 0.4], REVERSE);
            let mut matrix = vec![vec![0.0; n]; n];
            for (from, to, of_type) in edges.iter().filter(|(from, to, _)| from != to) {
                matrix[*from as usize][*to as usize] += weights.forward(TypeNo(*of_type));
                matrix[*to as usize][*from as usize] += weights.backward(TypeNo(*of_type));
            }
            let seeds = [(a % n as u32, 1.0), (b % n as u32, 0.25)];
            let got = ppr(&TransitionShares::new(&flat, &weights), &seeds, DAMPING, ITERATIONS);
            let want = by_matrix(&matrix, &seeds, DAMPING, ITERATIONS);
            for v in 0..n {
                prop_assert!((got[v] - want[v]).abs() < 1e-12);
            }
            prop_assert!((got.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        }

        #[test]
        fn a_walk_over_links_matches_the_definition(
            edges in prop::collection::vec((0u32..9, 0u32..9, 1u32..5), 0..25),
            seeds in prop::collection::vec((0u32..9, 0u32..4), 1..4),
        ) {
            let links = |node: Node| -> Vec<(Node, f64)> {
                edges.iter().filter(|e| e.0 == node.0).map(|e| (Node(e.1), f64::from(e.2))).collect()
            };
            let mut matrix = vec![vec![0.0; 9]; 9];
            edges.iter().for_each(|(from, to, weight)| matrix[*from as usize][*to as usize] += f64::from(*weight));
            let seeds: Vec<(u32, f64)> = seeds.into_iter().map(|(n, w)| (n, f64::from(w))).collect();
            let nodes: Vec<(Node, f64)> = seeds.iter().map(|(n, w)| (Node(*n), *w)).collect();
            let found = walk(links, &nodes, 0.5, 12);
            for (node, expected) in (0..).zip(by_matrix(&matrix, &seeds, 0.5, 12)) {
                let mass = found.iter().find(|stay| stay.node == Node(node)).map_or(0.0, NodeRank::mass);
                prop_assert!((mass - expected).abs() < 1e-5, "{node}: {mass} {expected}");
            }
        }
    }

    #[test]
    fn without_seeds_all_ranks_are_zero() {
        let flat = FlatGraph::from_edges(3, &[(0, 1, 0)]);
        let spread = TransitionShares::new(&flat, &EdgeWeights::by_type(vec![1.0], REVERSE));
        assert_eq!(ppr(&spread, &[], DAMPING, 5), [0.0; 3]);
        assert_eq!(ppr(&spread, &[(2, 1.0)], DAMPING, 5), [0.0, 0.0, 1.0]);
        assert!(walk(|_| vec![], &[(Node(2), 0.0)], DAMPING, 5).is_empty());
    }
}
