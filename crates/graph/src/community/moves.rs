//! The steps of Leiden and Louvain: moving nodes, refining groups, and merging groups into nodes of a smaller graph.

use super::{SplitMix64, Undirected};
use crate::convert::to_u32;
use std::collections::VecDeque;

/// Gains below this are rounding errors.
const EPSILON: f64 = 1e-10;

/// A division of a graph's nodes into communities, with the degrees and the size of each.
pub struct Partition {
    pub community: Vec<u32>,
    /// Sum of degrees of each community.
    degrees: Vec<f64>,
    sizes: Vec<u32>,
    empty: Vec<u32>,
}

impl Partition {
    /// Every number in `community` must be below the number of nodes.
    pub fn new(graph: &Undirected, community: Vec<u32>) -> Partition {
        let (mut degrees, mut sizes) = (vec![0.0; graph.len()], vec![0; graph.len()]);
        for (v, c) in community.iter().enumerate() {
            degrees[*c as usize] += graph.degrees[v];
            sizes[*c as usize] += 1;
        }
        let empty = (0..to_u32(graph.len())).rev().filter(|c| sizes[*c as usize] == 0).collect();
        Partition { community, degrees, sizes, empty }
    }

    /// The number of communities that have members.
    pub fn count(&self) -> usize {
        self.sizes.len() - self.empty.len()
    }

    fn shift(&mut self, node: usize, degree: f64, to: u32) {
        let from = std::mem::replace(&mut self.community[node], to) as usize;
        if self.sizes[to as usize] == 0 {
            // The caller only ever offers the last of the empty communities.
            self.empty.pop();
        }
        self.degrees[to as usize] += degree;
        self.sizes[to as usize] += 1;
        self.degrees[from] -= degree;
        self.sizes[from] -= 1;
        if self.sizes[from] == 0 {
            self.degrees[from] = 0.0;
            self.empty.push(to_u32(from));
        }
    }
}

/// Sums of edge weights from one node to each community. Clearing resets only the communities that were touched.
struct Pull {
    weights: Vec<f64>,
    touched: Vec<u32>,
}

impl Pull {
    fn new(communities: usize) -> Pull {
        Pull { weights: vec![0.0; communities], touched: Vec::new() }
    }

    #[inline]
    fn add(&mut self, c: u32, weight: f64) {
        if self.weights[c as usize] == 0.0 {
            self.touched.push(c);
        }
        self.weights[c as usize] += weight;
    }

    fn clear(&mut self) {
        for c in self.touched.drain(..) {
            self.weights[c as usize] = 0.0;
        }
    }
}

/// Moves single nodes to the community where they gain most, until no move gains. Returns whether a node was moved.
pub fn move_nodes(graph: &Undirected, partition: &mut Partition, resolution: f64, random: &mut SplitMix64) -> bool {
    if graph.total == 0.0 {
        return false;
    }
    let scale = resolution / graph.total;
    let mut order: Vec<u32> = (0..to_u32(graph.len())).collect();
    random.shuffle(&mut order);
    let mut queue = VecDeque::from(order);
    let mut waiting = vec![true; graph.len()];
    let mut pull = Pull::new(graph.len());
    let mut any = false;
    while let Some(v) = queue.pop_front() {
        let v = v as usize;
        waiting[v] = false;
        let degree = graph.degrees[v];
        let old = partition.community[v];
        for (u, w) in graph.of_node(v) {
            pull.add(partition.community[u as usize], w);
        }
        let own = partition.degrees[old as usize] - degree;
        let mut best = (pull.weights[old as usize] - scale * degree * own, old);
        for &c in &pull.touched {
            if c != old {
                let gain = pull.weights[c as usize] - scale * degree * partition.degrees[c as usize];
                if gain > best.0 + EPSILON {
                    best = (gain, c);
                }
            }
        }
        pull.clear();
        // A community of its own has gain 0, which is better than a loss.
        if best.0 < -EPSILON
            && partition.sizes[old as usize] > 1
            && let Some(&alone) = partition.empty.last()
        {
            best = (0.0, alone);
        }
        if best.1 == old {
            continue;
        }
        any = true;
        let new = best.1;
        partition.shift(v, degree, new);
        for (u, _) in graph.of_node(v) {
            if partition.community[u as usize] != new && !waiting[u as usize] {
                waiting[u as usize] = true;
                queue.push_back(u);
            }
        }
    }
    any
}

/// Divides each community into well connected parts, so that a later level can move the parts.
pub fn refine(graph: &Undirected, partition: &Partition, resolution: f64, random: &mut SplitMix64) -> Vec<u32> {
    let scale = resolution / graph.total;
    let n = graph.len();
    let mut fine: Vec<u32> = (0..to_u32(n)).collect();
    let mut degrees = graph.degrees.clone();
    let mut sizes = vec![1u32; n];
    // Weight from each part to the rest of its community.
    let mut outward: Vec<f64> = (0..n)
        .map(|v| {
            let own = partition.community[v];
            graph.of_node(v).filter(|(u, _)| partition.community[*u as usize] == own).map(|(_, w)| w).sum()
        })
        .collect();
    let mut order: Vec<u32> = (0..to_u32(n)).collect();
    random.shuffle(&mut order);
    let mut pull = Pull::new(n);
    for v in order {
        let v = v as usize;
        let (own, whole) = (partition.community[v], partition.degrees[partition.community[v] as usize]);
        let degree = graph.degrees[v];
        // Only a node that is still alone, and well connected to its community, is moved.
        if sizes[fine[v] as usize] != 1 || outward[v] < scale * degree * (whole - degree) {
            continue;
        }
        for (u, w) in graph.of_node(v) {
            if partition.community[u as usize] == own {
                pull.add(fine[u as usize], w);
            }
        }
        let mut best = (0.0, u32::MAX);
        for &c in &pull.touched {
            let part = degrees[c as usize];
            let belongs = outward[c as usize] >= scale * part * (whole - part);
            let gain = pull.weights[c as usize] - scale * degree * part;
            if c != fine[v] && belongs && gain > best.0 + EPSILON {
                best = (gain, c);
            }
        }
        if best.1 != u32::MAX {
            let (old, new) = (fine[v] as usize, best.1 as usize);
            outward[new] += outward[old] - 2.0 * pull.weights[new];
            degrees[new] += degree;
            sizes[new] += 1;
            degrees[old] = 0.0;
            sizes[old] = 0;
            fine[v] = best.1;
        }
        pull.clear();
    }
    fine
}

/// Merges each group into one node. Returns the smaller graph, and for each old node the number of its new node.
pub fn aggregate(graph: &Undirected, group: &[u32]) -> (Undirected, Vec<u32>) {
    let of = super::dense(group);
    let count = of.iter().max().map_or(0, |c| *c as usize + 1);
    let mut starts = vec![0u32; count + 1];
    of.iter().for_each(|c| starts[*c as usize + 1] += 1);
    for i in 0..count {
        starts[i + 1] += starts[i];
    }
    let mut next = starts.clone();
    let mut members = vec![0u32; of.len()];
    for (v, c) in of.iter().enumerate() {
        members[next[*c as usize] as usize] = to_u32(v);
        next[*c as usize] += 1;
    }
    let mut loops = vec![0.0; count];
    let mut pairs: Vec<(u32, u32, f64)> = Vec::new();
    let mut pull = Pull::new(count);
    for c in 0..count {
        for &v in &members[starts[c] as usize..starts[c + 1] as usize] {
            loops[c] += graph.loops[v as usize];
            for (u, w) in graph.of_node(v as usize) {
                let to = of[u as usize];
                if to as usize == c {
                    // Each such edge is seen from both of its ends.
                    loops[c] += w / 2.0;
                } else if to as usize > c {
                    pull.add(to, w);
                }
            }
        }
        pairs.extend(pull.touched.iter().map(|to| (to_u32(c), *to, pull.weights[*to as usize])));
        pull.clear();
    }
    (Undirected::from_pairs(count, &pairs, loops), of)
}

/// Splits communities that are not connected.
pub fn split(graph: &Undirected, community: &mut [u32]) {
    let mut part = vec![u32::MAX; community.len()];
    let mut next = 0;
    let mut stack = Vec::new();
    for v in 0..community.len() {
        if part[v] != u32::MAX {
            continue;
        }
        part[v] = next;
        stack.push(v);
        while let Some(at) = stack.pop() {
            for (u, _) in graph.of_node(at) {
                if part[u as usize] == u32::MAX && community[u as usize] == community[v] {
                    part[u as usize] = next;
                    stack.push(u as usize);
                }
            }
        }
        next += 1;
    }
    community.copy_from_slice(&part);
}
