//! How central nodes are: PageRank of all, and personalized PageRank around some.

use crate::flat::{Csr, Flat};
use crate::snapshot::{Node, Snapshot, TypeNo};
use lukasa_model::types::Registry;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

pub const DAMPING: f64 = 0.85;
/// Iterations of personalized PageRank.
pub const ITERATIONS: usize = 20;

/// When PageRank stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    After(usize),
    /// When ranks move by less than this in all, at the latest after 200 rounds.
    Below(f64),
}

/// PageRank; sums to 1. Nodes that lead nowhere else spread their rank over all: an edge from a node to itself says
/// nothing about others.
pub fn pagerank(out: &Csr, into: &Csr, damping: f64, stop: Stop) -> Vec<f64> {
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
        Stop::After(rounds) => (rounds, -1.0),
        Stop::Below(tolerance) => (200, tolerance),
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
    /// PageRank of every visible node, by dense number; computed once per snapshot.
    pub fn ranks(&self) -> &Arc<Vec<f64>> {
        self.beside.ranks.get_or_init(|| {
            let flat = self.flat();
            Arc::new(pagerank(&flat.out, &flat.into, DAMPING, Stop::Below(1e-9)))
        })
    }

    /// How walkers spread by these weights. The last one asked for is kept.
    pub fn spread(&self, weights: &Weights) -> Arc<Spread> {
        let mut kept = self.beside.spread.lock();
        match &*kept {
            Some((by, spread)) if by == weights => Arc::clone(spread),
            _ => {
                let spread = Arc::new(Spread::new(self.flat(), weights));
                *kept = Some((weights.clone(), Arc::clone(&spread)));
                spread
            }
        }
    }

    /// PageRank of one node; 0 for one that has ended.
    pub fn rank(&self, node: Node) -> f64 {
        self.flat().dense(node).map_or(0.0, |dense| self.ranks()[dense as usize])
    }
}

/// How much a walk along a type of edge counts, and against it.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    forward: Vec<f64>,
    backward: Vec<f64>,
}

/// Against an edge a walk counts half, unless the type is declared reciprocal.
pub const REVERSE: f64 = 0.5;
/// Weights of the types that Lukasa itself knows.
const KNOWN: [(&str, f64); 7] = [
    ("CALLS", 0.9),
    ("IMPORTS", 0.7),
    ("DEFINED_IN", 0.6),
    ("CONTAINS", 0.5),
    ("TESTS", 0.4),
    ("APPLIES_TO", 0.4),
    ("INVOLVES", 0.3),
];
/// What any other type counts when nobody declared it.
const OTHER: f64 = 0.5;

impl Weights {
    /// By type number, from the registry's declarations and Lukasa's defaults; `given` overrides both.
    pub fn new(snapshot: &Snapshot, registry: &Registry, given: &[(String, f64)]) -> Weights {
        let named = |name: &str| given.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, weight)| *weight);
        let known = |name: &str| KNOWN.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, weight)| *weight);
        let (mut forward, mut backward) = (vec![], vec![]);
        for name in snapshot.names().types() {
            let declared = registry.ranking(name);
            // A declaration that says nothing about ranking leaves Lukasa's own weight.
            let stated = declared.map(|r| r.base_weight).filter(|w| *w != 1.0 || known(name).is_none());
            let weight = named(name).or(stated).or_else(|| known(name)).unwrap_or(OTHER).max(0.0);
            let reverse = if declared.is_some_and(|r| r.reciprocal_boost) { 1.0 } else { REVERSE };
            forward.push(weight);
            backward.push(weight * reverse);
        }
        Weights { forward, backward }
    }

    /// By type number, directly.
    pub fn by_type(forward: Vec<f64>, reverse: f64) -> Weights {
        let backward = forward.iter().map(|w| w * reverse).collect();
        Weights { forward, backward }
    }

    #[inline]
    fn forward(&self, type_no: TypeNo) -> f64 {
        self.forward[usize::from(type_no)]
    }

    #[inline]
    fn backward(&self, type_no: TypeNo) -> f64 {
        self.backward[usize::from(type_no)]
    }
}

/// Where walkers come from: for each node its neighbours in both directions, and the share of them that come.
pub struct Spread {
    offsets: Vec<u32>,
    sources: Vec<u32>,
    shares: Vec<f64>,
    /// Nodes that nothing leads away from; their walkers go home.
    loose: Vec<u32>,
}

impl Spread {
    pub fn new(flat: &Flat, weights: &Weights) -> Spread {
        let n = flat.len();
        let (forward, backward) = (&weights.forward[..], &weights.backward[..]);
        let sum = |csr: &Csr, v: usize, by: &[f64]| -> f64 {
            let away = csr.range(v).filter(|i| csr.targets[*i] as usize != v);
            away.map(|i| by[usize::from(csr.types[i])]).sum()
        };
        let total: Vec<f64> = (0..n).map(|v| sum(&flat.out, v, forward) + sum(&flat.into, v, backward)).collect();
        let entries = flat.out.targets.len() * 2;
        let mut spread = Spread {
            offsets: Vec::with_capacity(n + 1),
            sources: Vec::with_capacity(entries),
            shares: Vec::with_capacity(entries),
            loose: (0..n as u32).filter(|v| total[*v as usize] <= 0.0).collect(),
        };
        spread.offsets.push(0);
        for v in 0..n {
            // Along edges into it, and against edges out of it.
            for (csr, by) in [(&flat.into, forward), (&flat.out, backward)] {
                for i in csr.range(v) {
                    let (from, weight) = (csr.targets[i], by[usize::from(csr.types[i])]);
                    if weight > 0.0 && from as usize != v {
                        spread.sources.push(from);
                        spread.shares.push(weight / total[from as usize]);
                    }
                }
            }
            spread.offsets.push(spread.sources.len() as u32);
        }
        spread
    }

    pub fn bytes(&self) -> usize {
        (self.offsets.capacity() + self.sources.capacity() + self.loose.capacity()) * 4 + self.shares.capacity() * 8
    }
}

/// Personalized PageRank by power iteration over the whole graph, by dense number. The walk goes both ways; a
/// node without edges sends its walkers home. `seeds` are dense numbers with weights; sums to 1.
pub fn ppr(spread: &Spread, seeds: &[(u32, f64)], damping: f64, iterations: usize) -> Vec<f64> {
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

/// Personalized PageRank by forward push from the seeds: looks only at what matters, and leaves at most
/// `rest` of the mass unspread at each node per unit of its weight.
pub fn push(
    snapshot: &Snapshot,
    weights: &Weights,
    seeds: &[(Node, f64)],
    damping: f64,
    rest: f64,
) -> FxHashMap<Node, f64> {
    let home = normalised(seeds);
    // What has ended, and where one is already, are no places to walk to; nor are they for `ppr`.
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
            // Too little to matter; it waits here for more.
            continue;
        }
        at.left = 0.0;
        at.rank += (1.0 - damping) * mass;
        let mut give = |node: Node, mass: f64| {
            let there = spots.entry(node).or_default();
            let was = there.left;
            there.left += mass;
            if there.left <= rest {
                // Too little wherever it is: most of what is met is met like this, and its edges need not be looked at.
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
    // What still waits is where it is.
    spots.into_iter().map(|(node, spot)| (node, spot.rank + spot.left)).filter(|(_, rank)| *rank > 0.0).collect()
}

/// The `most` that have the largest rank, largest first, ties by thing number.
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

/// What is known of a node that mass has come to.
#[derive(Default)]
struct Spot {
    /// Weight of all its edges, once it matters.
    total: Option<f64>,
    rank: f64,
    /// Mass that has not been spread yet.
    left: f64,
}

/// Beyond this many edges only what is near the seeds is looked at.
pub const WHOLE: usize = 200_000;
/// Mass left unspread by default: below what decides the order of the first hundred.
pub const REST: f64 = 1e-5;

/// How a ranking was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    PowerIteration,
    ForwardPush,
}

/// Personalized PageRank by whichever way suits the size of the graph; nodes with rank, largest first.
pub fn around(
    snapshot: &Snapshot,
    weights: &Weights,
    seeds: &[(Node, f64)],
    damping: f64,
) -> (Vec<(Node, f64)>, Method) {
    if snapshot.edge_count() > WHOLE {
        let ranks = push(snapshot, weights, seeds, damping, REST);
        return (largest(snapshot, &ranks, ranks.len()), Method::ForwardPush);
    }
    let flat = snapshot.flat();
    let dense: Vec<_> = seeds.iter().filter_map(|(node, w)| flat.dense(*node).map(|d| (d, *w))).collect();
    let ranks = ppr(&snapshot.spread(weights), &dense, damping, ITERATIONS);
    let mut all: Vec<_> =
        ranks.into_iter().enumerate().filter(|(_, r)| *r > 0.0).map(|(i, r)| (flat.nodes[i], r)).collect();
    // Dense numbers are in the order of things, and the sort is stable.
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    (all, Method::PowerIteration)
}

/// Seeds with weights that sum to 1; those without weight are left out.
fn normalised(seeds: &[(u32, f64)]) -> Vec<(u32, f64)> {
    let total: f64 = seeds.iter().map(|(_, w)| w.max(0.0)).sum();
    seeds.iter().filter(|(_, w)| *w > 0.0).map(|(v, w)| (*v, w / total)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, as a matrix.
    fn by_matrix(n: usize, edges: &[(u32, u32, u16)], seeds: &[(u32, f64)], w: &Weights, rounds: usize) -> Vec<f64> {
        let mut m = vec![vec![0.0; n]; n];
        for (a, b, t) in edges.iter().filter(|(a, b, _)| a != b) {
            m[*a as usize][*b as usize] += w.forward(*t);
            m[*b as usize][*a as usize] += w.backward(*t);
        }
        let home = normalised(seeds);
        let mut rank = vec![0.0; n];
        home.iter().for_each(|(v, x)| rank[*v as usize] += x);
        for _ in 0..rounds {
            let mut next = vec![0.0; n];
            for u in 0..n {
                let total: f64 = m[u].iter().sum();
                for v in 0..n {
                    if total > 0.0 {
                        next[v] += 0.85 * rank[u] * m[u][v] / total;
                    }
                }
                let back = if total > 0.0 { 0.15 } else { 1.0 };
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
        fn power_iteration_is_the_definition((n, edges) in graphs(), a in 0u32..12, b in 0u32..12) {
            let flat = Flat::from_edges(n, &edges);
            let weights = Weights::by_type(vec![0.9, 0.4], REVERSE);
            let seeds = [(a % n as u32, 1.0), (b % n as u32, 0.25)];
            let got = ppr(&Spread::new(&flat, &weights), &seeds, DAMPING, ITERATIONS);
            let want = by_matrix(n, &edges, &seeds, &weights, ITERATIONS);
            for v in 0..n {
                prop_assert!((got[v] - want[v]).abs() < 1e-12);
            }
            prop_assert!((got.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        }

        #[test]
        fn pagerank_sums_to_one((n, edges) in graphs()) {
            let flat = Flat::from_edges(n, &edges);
            let rank = pagerank(&flat.out, &flat.into, DAMPING, Stop::Below(1e-12));
            prop_assert!((rank.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(rank.iter().all(|r| *r > 0.0));
        }
    }

    #[test]
    fn a_walk_from_nowhere_is_nowhere() {
        let flat = Flat::from_edges(3, &[(0, 1, 0)]);
        let spread = Spread::new(&flat, &Weights::by_type(vec![1.0], REVERSE));
        assert_eq!(ppr(&spread, &[], DAMPING, 5), [0.0; 3]);
        assert_eq!(ppr(&spread, &[(2, 1.0)], DAMPING, 5), [0.0, 0.0, 1.0]);
        assert!(pagerank(&Csr::new(0, [].into_iter()), &Csr::default(), DAMPING, Stop::After(3)).is_empty());
    }
}
