//! Communities: groups of nodes with more edges inside than expected by chance, by Leiden or Louvain.

mod describe;
mod moves;

pub use describe::{Community, describe};

use crate::convert::to_u32;
use crate::flat::FlatGraph;
use moves::{Partition, aggregate, move_nodes, refine, split};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    #[default]
    Leiden,
    Louvain,
}

/// The parameters of community detection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CommunityOptions {
    pub algorithm: Algorithm,
    /// A larger value gives more and smaller communities.
    pub resolution: f64,
    /// The same seed gives the same communities.
    pub seed: u64,
}

impl Default for CommunityOptions {
    fn default() -> Self {
        CommunityOptions { algorithm: Algorithm::Leiden, resolution: 1.0, seed: 42 }
    }
}

/// A weighted undirected graph. Every edge is in the lists of both its ends.
#[derive(Clone, Debug, Default)]
pub struct Undirected {
    pub(crate) offsets: Vec<u32>,
    pub(crate) targets: Vec<u32>,
    pub(crate) weights: Vec<f64>,
    /// Weight of a node's edges to itself, counted once.
    pub(crate) loops: Vec<f64>,
    /// Sum of the weights of a node's edges, with loops counted twice.
    pub(crate) degrees: Vec<f64>,
    /// Sum of all degrees, which is twice the weight of all edges.
    pub(crate) total: f64,
}

impl Undirected {
    /// Merges edges between the same two nodes, in either direction, into one with the sum of their weights. Edges from
    /// a node to itself are left out.
    pub fn new(nodes: usize, edges: impl Iterator<Item = (u32, u32, f64)>) -> Undirected {
        let mut pairs: Vec<(u32, u32, f64)> =
            edges.filter(|(a, b, w)| a != b && *w > 0.0).map(|(a, b, w)| (a.min(b), a.max(b), w)).collect();
        pairs.sort_by_key(|(a, b, _)| (*a, *b));
        pairs.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 += next.2;
            }
            same
        });
        Undirected::from_pairs(nodes, &pairs, vec![0.0; nodes])
    }

    /// Builds from pairs of which each occurs once.
    pub(crate) fn from_pairs(nodes: usize, pairs: &[(u32, u32, f64)], loops: Vec<f64>) -> Undirected {
        let mut offsets = vec![0u32; nodes + 1];
        for (a, b, _) in pairs {
            offsets[*a as usize + 1] += 1;
            offsets[*b as usize + 1] += 1;
        }
        for i in 0..nodes {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut targets = vec![0; pairs.len() * 2];
        let mut weights = vec![0.0; pairs.len() * 2];
        let mut degrees: Vec<f64> = loops.iter().map(|w| 2.0 * w).collect();
        for (a, b, w) in pairs {
            for (from, to) in [(*a, *b), (*b, *a)] {
                let i = next[from as usize] as usize;
                targets[i] = to;
                weights[i] = *w;
                next[from as usize] += 1;
                degrees[from as usize] += w;
            }
        }
        let total = degrees.iter().sum();
        Undirected { offsets, targets, weights, loops, degrees, total }
    }

    /// Every edge has weight 1, whatever its type.
    pub fn of(flat: &FlatGraph) -> Undirected {
        let edges = (0..flat.len()).flat_map(|v| flat.out.of(v).iter().map(move |u| (to_u32(v), *u, 1.0)));
        Undirected::new(flat.len(), edges)
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.loops.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every edge once.
    pub fn edges(&self) -> usize {
        self.targets.len() / 2
    }

    #[inline]
    pub(crate) fn of_node(&self, node: usize) -> impl Iterator<Item = (u32, f64)> {
        let range = self.offsets[node] as usize..self.offsets[node + 1] as usize;
        self.targets[range.clone()].iter().copied().zip(self.weights[range].iter().copied())
    }

    /// Modularity: how much more edge weight is inside communities than expected by chance.
    pub fn modularity(&self, community: &[u32], resolution: f64) -> f64 {
        if self.total == 0.0 {
            return 0.0;
        }
        let count = community.iter().max().map_or(0, |c| *c as usize + 1);
        let (mut inside, mut degree) = (vec![0.0; count], vec![0.0; count]);
        for v in 0..self.len() {
            let c = community[v] as usize;
            degree[c] += self.degrees[v];
            inside[c] += 2.0 * self.loops[v];
            inside[c] +=
                self.of_node(v).filter(|(u, _)| community[*u as usize] == community[v]).map(|(_, w)| w).sum::<f64>();
        }
        let part = |c: usize| inside[c] / self.total - resolution * (degree[c] / self.total).powi(2);
        (0..count).map(part).sum()
    }

    /// Whether every community is connected without leaving it.
    pub fn all_connected(&self, community: &[u32]) -> bool {
        let mut parts = community.to_vec();
        let count = parts.iter().max().map_or(0, |c| *c as usize + 1);
        split(self, &mut parts);
        parts.iter().max().map_or(0, |c| *c as usize + 1) == count
    }
}

/// The communities of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct DetectedCommunities {
    /// The community of each node. 0 is the largest; ties are ordered by their first node.
    pub community: Vec<u32>,
    /// The number of communities.
    pub count: usize,
    /// The modularity of the division.
    pub modularity: f64,
}

/// The most rounds of improvement, each over all levels. Later rounds improve little.
const ROUNDS: usize = 12;
/// In graphs with this many edges or more, rounds are expensive and two are enough.
const LARGE: usize = 100_000;
/// A small graph is tried from several random starts, up to about this many edges in total.
const EFFORT: usize = 40_000;
const ATTEMPTS: usize = 10;

/// Finds communities. Leiden communities are always connected.
pub fn detect(graph: &Undirected, options: &CommunityOptions) -> DetectedCommunities {
    let attempts = match options.algorithm {
        Algorithm::Leiden => (EFFORT / graph.edges().max(1)).clamp(1, ATTEMPTS),
        Algorithm::Louvain => 1,
    };
    let rounds = if graph.edges() >= LARGE { 2 } else { ROUNDS };
    let mut best: Option<(Vec<u32>, f64)> = None;
    for attempt in 0..attempts {
        let mut random = SplitMix64(options.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(attempt as u64));
        let mut community: Vec<u32> = (0..to_u32(graph.len())).collect();
        for _ in 0..rounds {
            let moved = match options.algorithm {
                Algorithm::Leiden => leiden(graph, &mut community, options.resolution, &mut random),
                Algorithm::Louvain => louvain(graph, &mut community, options.resolution, &mut random),
            };
            if !moved || options.algorithm == Algorithm::Louvain {
                break;
            }
        }
        if options.algorithm == Algorithm::Leiden {
            // Splitting a disconnected community never lowers modularity.
            split(graph, &mut community);
        }
        let modularity = graph.modularity(&community, options.resolution);
        if best.as_ref().is_none_or(|(_, so_far)| modularity > *so_far) {
            best = Some((community, modularity));
        }
    }
    let (community, modularity) = best.unwrap_or_default();
    let (community, count) = by_size(&community);
    DetectedCommunities { community, count, modularity }
}

/// One round over all levels: moves, refines and merges, then again on the smaller graph. Returns whether a node moved.
fn leiden(graph: &Undirected, community: &mut [u32], resolution: f64, random: &mut SplitMix64) -> bool {
    let mut level = None::<Undirected>;
    // For each node of the graph, its node at the current level.
    let mut place: Vec<u32> = (0..to_u32(graph.len())).collect();
    let mut start = community.to_vec();
    let mut any = false;
    loop {
        let here = level.as_ref().unwrap_or(graph);
        let mut partition = Partition::new(here, start);
        let moved = move_nodes(here, &mut partition, resolution, random);
        any |= moved;
        for (v, c) in community.iter_mut().enumerate() {
            *c = partition.community[place[v] as usize];
        }
        if !moved && level.is_some() || partition.count() == here.len() {
            return any;
        }
        let fine = refine(here, &partition, resolution, random);
        let (next, of) = aggregate(here, &fine);
        if next.len() == here.len() {
            return any;
        }
        // The smaller graph starts with the communities found before refining.
        start = vec![0; next.len()];
        for v in 0..here.len() {
            start[of[v] as usize] = partition.community[v];
        }
        start = dense(&start);
        place.iter_mut().for_each(|p| *p = of[*p as usize]);
        level = Some(next);
    }
}

fn louvain(graph: &Undirected, community: &mut [u32], resolution: f64, random: &mut SplitMix64) -> bool {
    let mut level = None::<Undirected>;
    let mut any = false;
    loop {
        let here = level.as_ref().unwrap_or(graph);
        let mut partition = Partition::new(here, (0..to_u32(here.len())).collect());
        if !move_nodes(here, &mut partition, resolution, random) {
            return any;
        }
        any = true;
        let (next, of) = aggregate(here, &partition.community);
        community.iter_mut().for_each(|c| *c = of[*c as usize]);
        level = Some(next);
    }
}

/// The same groups, numbered without gaps in order of first appearance.
fn dense(community: &[u32]) -> Vec<u32> {
    let mut numbers = vec![u32::MAX; community.iter().max().map_or(0, |c| *c as usize + 1)];
    let mut next = 0;
    let number = |c: &u32| {
        let slot = &mut numbers[*c as usize];
        if *slot == u32::MAX {
            *slot = next;
            next += 1;
        }
        *slot
    };
    community.iter().map(number).collect()
}

/// The same groups, numbered by size, the largest first, ties by their first node.
fn by_size(community: &[u32]) -> (Vec<u32>, usize) {
    let dense = dense(community);
    let count = dense.iter().max().map_or(0, |c| *c as usize + 1);
    let mut sizes = vec![0usize; count];
    dense.iter().for_each(|c| sizes[*c as usize] += 1);
    let mut order: Vec<u32> = (0..to_u32(count)).collect();
    order.sort_by_key(|c| (std::cmp::Reverse(sizes[*c as usize]), *c));
    let mut rank = vec![0; count];
    (0..).zip(&order).for_each(|(i, c)| rank[*c as usize] = i);
    (dense.iter().map(|c| rank[*c as usize]).collect(), count)
}

/// SplitMix64: a small and fast generator with the same sequence on every platform.
pub(crate) struct SplitMix64(pub u64);

impl SplitMix64 {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from((u128::from(self.next()) * n as u128) >> 64).expect("the high half of the product is below n")
    }

    pub fn shuffle(&mut self, list: &mut [u32]) {
        for i in (1..list.len()).rev() {
            list.swap(i, self.below(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Zachary's karate club.
    pub const KARATE: [(u32, u32); 78] = [
        (0, 1),
        (0, 2),
        (0, 3),
        (0, 4),
        (0, 5),
        (0, 6),
        (0, 7),
        (0, 8),
        (0, 10),
        (0, 11),
        (0, 12),
        (0, 13),
        (0, 17),
        (0, 19),
        (0, 21),
        (0, 31),
        (1, 2),
        (1, 3),
        (1, 7),
        (1, 13),
        (1, 17),
        (1, 19),
        (1, 21),
        (1, 30),
        (2, 3),
        (2, 7),
        (2, 8),
        (2, 9),
        (2, 13),
        (2, 27),
        (2, 28),
        (2, 32),
        (3, 7),
        (3, 12),
        (3, 13),
        (4, 6),
        (4, 10),
        (5, 6),
        (5, 10),
        (5, 16),
        (6, 16),
        (8, 30),
        (8, 32),
        (8, 33),
        (9, 33),
        (13, 33),
        (14, 32),
        (14, 33),
        (15, 32),
        (15, 33),
        (18, 32),
        (18, 33),
        (19, 33),
        (20, 32),
        (20, 33),
        (22, 32),
        (22, 33),
        (23, 25),
        (23, 27),
        (23, 29),
        (23, 32),
        (23, 33),
        (24, 25),
        (24, 27),
        (24, 31),
        (25, 31),
        (26, 29),
        (26, 33),
        (27, 33),
        (28, 31),
        (28, 33),
        (29, 32),
        (29, 33),
        (30, 32),
        (30, 33),
        (31, 32),
        (31, 33),
        (32, 33),
    ];

    fn karate() -> Undirected {
        Undirected::new(34, KARATE.iter().map(|(a, b)| (*a, *b, 1.0)))
    }

    #[test]
    fn communities_of_the_karate_club() {
        let graph = karate();
        for seed in 0..20 {
            let found = detect(&graph, &CommunityOptions { seed, ..CommunityOptions::default() });
            assert!((found.modularity - 0.4198).abs() < 1e-4, "seed {seed}: {}", found.modularity);
            assert_eq!(found.count, 4);
            assert_eq!(
                found,
                detect(&graph, &CommunityOptions { seed, ..CommunityOptions::default() }),
                "the same seed, the same answer"
            );
        }
        let louvain =
            detect(&graph, &CommunityOptions { algorithm: Algorithm::Louvain, ..CommunityOptions::default() });
        assert!(louvain.modularity > 0.39, "{}", louvain.modularity);
        let coarse = detect(&graph, &CommunityOptions { resolution: 0.3, ..CommunityOptions::default() });
        let fine = detect(&graph, &CommunityOptions { resolution: 3.0, ..CommunityOptions::default() });
        assert!(coarse.count < 4 && fine.count > 4, "{} {}", coarse.count, fine.count);
    }

    #[test]
    fn empty_and_degenerate_graphs() {
        for (n, edges) in [(0, vec![]), (1, vec![]), (3, vec![(0, 0, 1.0)]), (2, vec![(0, 1, 1.0), (1, 0, 2.0)])] {
            let graph = Undirected::new(n, edges.into_iter());
            for algorithm in [Algorithm::Leiden, Algorithm::Louvain] {
                let found = detect(&graph, &CommunityOptions { algorithm, ..CommunityOptions::default() });
                assert_eq!(found.community.len(), n);
            }
        }
    }

    /// Modularity by its definition over pairs.
    fn naive(n: usize, edges: &[(u32, u32, f64)], community: &[u32]) -> f64 {
        let mut a = vec![vec![0.0; n]; n];
        for (u, v, w) in edges.iter().filter(|(u, v, _)| u != v) {
            a[*u as usize][*v as usize] += w;
            a[*v as usize][*u as usize] += w;
        }
        let k: Vec<f64> = a.iter().map(|row| row.iter().sum()).collect();
        let m2: f64 = k.iter().sum();
        let mut q = 0.0;
        for u in 0..n {
            for v in 0..n {
                if m2 > 0.0 && community[u] == community[v] {
                    q += a[u][v] / m2 - k[u] * k[v] / (m2 * m2);
                }
            }
        }
        q
    }

    proptest! {
        #[test]
        fn modularity_matches_its_definition((n, edges) in (1usize..25).prop_flat_map(|n| {
            let v = 0..n as u32;
            (Just(n), prop::collection::vec((v.clone(), v, 1u8..4), 0..60))
        }), seed: u64) {
            let edges: Vec<_> = edges.into_iter().map(|(a, b, w)| (a, b, f64::from(w))).collect();
            let graph = Undirected::new(n, edges.iter().copied());
            for algorithm in [Algorithm::Leiden, Algorithm::Louvain] {
                let found = detect(&graph, &CommunityOptions { algorithm, seed, ..CommunityOptions::default() });
                prop_assert!((found.modularity - naive(n, &edges, &found.community)).abs() < 1e-9);
                if algorithm == Algorithm::Leiden {
                    prop_assert!(graph.all_connected(&found.community));
                }
                // At least as good as single nodes, and as one community of all.
                let alone: Vec<u32> = (0..n as u32).collect();
                prop_assert!(found.modularity >= graph.modularity(&alone, 1.0) - 1e-9);
                prop_assert!(found.modularity >= graph.modularity(&vec![0; n], 1.0) - 1e-9);
            }
        }
    }
}
