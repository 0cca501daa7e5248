//! Measures of a whole graph: components, distances, degrees.

use crate::convert::{to_index, to_u32};
use crate::flat::{Csr, FlatGraph};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Distances from a node along `csr`, in hops. `None` for nodes that cannot be reached.
pub fn distances(csr: &Csr, from: u32) -> Vec<Option<u32>> {
    let mut found = vec![None; csr.len()];
    found[from as usize] = Some(0);
    let mut queue = VecDeque::from([from]);
    while let Some(v) = queue.pop_front() {
        let next = found[v as usize].map(|d: u32| d + 1);
        for u in csr.of(v as usize) {
            if found[*u as usize].is_none() {
                found[*u as usize] = next;
                queue.push_back(*u);
            }
        }
    }
    found
}

/// Lowest costs of paths from a node, with a cost of at least 0 for each entry of `csr.targets`. Infinite for nodes
/// that cannot be reached.
pub fn costs(csr: &Csr, cost: &[f64], from: u32) -> Vec<f64> {
    #[derive(PartialEq)]
    struct At(f64, u32);
    impl Eq for At {}
    impl PartialOrd for At {
        fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }
    impl Ord for At {
        fn cmp(&self, other: &Self) -> std::cmp::Ordering {
            self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
        }
    }
    let mut best = vec![f64::INFINITY; csr.len()];
    best[from as usize] = 0.0;
    let mut heap = BinaryHeap::from([Reverse(At(0.0, from))]);
    while let Some(Reverse(At(so_far, v))) = heap.pop() {
        if so_far > best[v as usize] {
            continue;
        }
        for i in csr.range(v as usize) {
            let (u, there) = (csr.targets[i], so_far + cost[i]);
            if there < best[u as usize] {
                best[u as usize] = there;
                heap.push(Reverse(At(there, u)));
            }
        }
    }
    best
}

/// For each node, the smallest node number of its component, with edges followed in both directions.
pub fn components(flat: &FlatGraph) -> Vec<u32> {
    let n = flat.len();
    let mut parent: Vec<u32> = (0..to_u32(n)).collect();
    fn root(parent: &mut [u32], mut v: u32) -> u32 {
        while parent[v as usize] != v {
            parent[v as usize] = parent[parent[v as usize] as usize];
            v = parent[v as usize];
        }
        v
    }
    for v in 0..n {
        for u in flat.out.of(v) {
            let (a, b) = (root(&mut parent, to_u32(v)), root(&mut parent, *u));
            // The smaller number becomes the root, so that a component has the number of its first node.
            parent[a.max(b) as usize] = a.min(b);
        }
    }
    (0..to_u32(n)).map(|v| root(&mut parent, v)).collect()
}

/// The number of components, and the size of the largest.
pub fn component_sizes(of: &[u32]) -> (usize, usize) {
    let mut sizes = vec![0usize; of.len()];
    of.iter().for_each(|c| sizes[*c as usize] += 1);
    (sizes.iter().filter(|s| **s > 0).count(), sizes.into_iter().max().unwrap_or(0))
}

/// For each node, the number of its strongly connected component, by Tarjan's algorithm. Without recursion, because a
/// path can be as long as the graph.
pub fn strong_components(csr: &Csr) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let n = csr.len();
    let (mut component, mut order, mut low) = (vec![NONE; n], vec![NONE; n], vec![0u32; n]);
    let (mut path, mut open): (Vec<u32>, Vec<(u32, usize)>) = (Vec::new(), Vec::new());
    let (mut next, mut components) = (0, 0);
    for root in 0..to_u32(n) {
        if order[root as usize] != NONE {
            continue;
        }
        open.push((root, 0));
        while let Some((node, at)) = open.pop() {
            let v = node as usize;
            if at == 0 {
                (order[v], low[v]) = (next, next);
                next += 1;
                path.push(node);
            } else {
                // Returns from the neighbour visited last.
                let u = csr.of(v)[at - 1] as usize;
                if component[u] == NONE {
                    low[v] = low[v].min(low[u]);
                }
            }
            match csr.of(v).get(at) {
                Some(u) => {
                    open.push((node, at + 1));
                    if order[*u as usize] == NONE {
                        open.push((*u, 0));
                    }
                }
                None if low[v] == order[v] => {
                    while let Some(member) = path.pop() {
                        component[member as usize] = components;
                        if member == node {
                            break;
                        }
                    }
                    components += 1;
                }
                None => {}
            }
        }
    }
    component
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Degrees {
    pub mean: f64,
    pub median: usize,
    pub p95: usize,
    pub max: usize,
    /// Nodes without any edge.
    pub isolated: usize,
}

/// Statistics of a list of degrees.
pub fn degrees(mut all: Vec<usize>) -> Degrees {
    if all.is_empty() {
        return Degrees::default();
    }
    all.sort_unstable();
    let at = |share: f64| all[to_index(((all.len() - 1) as f64 * share).round())];
    Degrees {
        mean: all.iter().sum::<usize>() as f64 / all.len() as f64,
        median: at(0.5),
        p95: at(0.95),
        max: at(1.0),
        isolated: all.iter().take_while(|d| **d == 0).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strong_components_of_an_example() {
        // 0→1→2→0, 2→3, 3→4→3, 5→5, 6 alone, 5→0.
        let edges = [(0, 1, 0), (1, 2, 0), (2, 0, 0), (2, 3, 0), (3, 4, 0), (4, 3, 0), (5, 5, 0), (5, 0, 0)];
        let of = strong_components(&FlatGraph::from_edges(7, &edges).out);
        assert!(of[0] == of[1] && of[1] == of[2] && of[3] == of[4]);
        let mut different = of.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 4);
        assert!(strong_components(&Csr::default()).is_empty());
        let long: Vec<_> = (0..200_000).map(|v| (v, (v + 1) % 200_000, 0)).collect();
        assert!(strong_components(&FlatGraph::from_edges(200_000, &long).out).iter().all(|c| *c == 0));
    }

    #[test]
    fn strong_components_are_mutually_reachable() {
        let mut state = 7u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        for _ in 0..200 {
            let n = 2 + random(9);
            let edges: Vec<_> = (0..random(24)).map(|_| (random(n), random(n), 0)).collect();
            let flat = FlatGraph::from_edges(n as usize, &edges);
            let of = strong_components(&flat.out);
            let reach: Vec<_> = (0..n).map(|v| distances(&flat.out, v)).collect();
            for a in 0..n as usize {
                for b in 0..n as usize {
                    assert_eq!(of[a] == of[b], reach[a][b].is_some() && reach[b][a].is_some(), "{edges:?} {a} {b}");
                }
            }
        }
    }

    #[test]
    fn distances_costs_components_degrees() {
        let edges = [(0, 1, 0), (1, 2, 0), (0, 2, 0), (3, 4, 0), (4, 4, 0)];
        let flat = FlatGraph::from_edges(6, &edges);
        assert_eq!(distances(&flat.out, 0), [Some(0), Some(1), Some(1), None, None, None]);
        assert_eq!(distances(&flat.into, 2), [Some(1), Some(1), Some(0), None, None, None]);
        // 0→1, 0→2, 1→2, 3→4, 4→4 in the order of the lists.
        let costs = costs(&flat.out, &[1.0, 5.0, 1.5, 1.0, 0.0], 0);
        assert_eq!(&costs[..3], [0.0, 1.0, 2.5]);
        assert!(costs[3..].iter().all(|c| c.is_infinite()));
        assert_eq!(components(&flat), [0, 0, 0, 3, 3, 5]);
        assert_eq!(component_sizes(&components(&flat)), (3, 3));
        let all = degrees((0..6).map(|v| flat.out.degree(v) + flat.into.degree(v)).collect());
        assert_eq!((all.max, all.isolated, all.median), (3, 1, 2));
        assert_eq!(degrees(vec![]), Degrees::default());
    }
}
