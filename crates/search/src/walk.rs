//! Personalized PageRank near its seeds, over weighted links in both directions.

use lukasa_graph::Node;
use rustc_hash::FxHashMap;

/// Mass too small to matter for the order of what is shown; it is not carried on.
const LEAST: f64 = 1e-7;

/// Where a walk can go from a node, with weights; the same links whenever asked.
pub trait Links {
    fn links(&self, node: Node) -> Vec<(Node, f64)>;
}

impl<F: Fn(Node) -> Vec<(Node, f64)>> Links for F {
    fn links(&self, node: Node) -> Vec<(Node, f64)> {
        self(node)
    }
}

/// Where walkers are in the end: come along links, or gone home.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stay {
    pub node: Node,
    pub walked: f64,
    pub home: f64,
}

impl Stay {
    pub fn mass(&self) -> f64 {
        self.walked + self.home
    }
}

/// Walkers start at the seeds, go along a link with probability `damping`, and else go home; where nothing leads away, they
/// go home too. So many steps, at least one; sums to 1 but for what is too little to matter; in the order of nodes.
pub fn walk(links: &impl Links, seeds: &[(Node, f64)], damping: f64, steps: usize) -> Vec<Stay> {
    let total: f64 = seeds.iter().map(|(_, weight)| weight.max(0.0)).sum();
    if total <= 0.0 {
        return vec![];
    }
    let home: Vec<(Node, f64)> =
        seeds.iter().filter(|(_, weight)| *weight > 0.0).map(|(node, weight)| (*node, weight / total)).collect();
    let mut known: FxHashMap<Node, Vec<(Node, f64)>> = FxHashMap::default();
    let home = summed(home);
    let mut rank = home.clone();
    let mut stays = Vec::new();
    for _ in 0..steps.max(1) {
        let mut back = 1.0 - damping;
        let mut next: Vec<(Node, f64)> = Vec::with_capacity(rank.len() * 2);
        for (node, mass) in &rank {
            let links = known.entry(*node).or_insert_with(|| shares(links.links(*node)));
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

/// What came along links and what went home, both in the order of nodes.
fn joined(walked: Vec<(Node, f64)>, home: &[(Node, f64)], back: f64) -> Vec<Stay> {
    let mut all: Vec<Stay> = walked.into_iter().map(|(node, walked)| Stay { node, walked, home: 0.0 }).collect();
    for (node, weight) in home {
        match all.binary_search_by_key(node, |stay| stay.node) {
            Ok(at) => all[at].home = back * weight,
            Err(at) => all.insert(at, Stay { node: *node, walked: 0.0, home: back * weight }),
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

/// One entry for each node, in their order: sums come out the same however they were found.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_power_iteration(
            edges in prop::collection::vec((0u32..9, 0u32..9, 1u32..5), 0..25),
            seeds in prop::collection::vec((0u32..9, 0u32..4), 1..4),
        ) {
            let links = |node: Node| -> Vec<(Node, f64)> {
                edges.iter().filter(|e| e.0 == node).map(|e| (e.1, f64::from(e.2))).collect()
            };
            let seeds: Vec<(Node, f64)> = seeds.into_iter().map(|(n, w)| (n, f64::from(w))).collect();
            let total: f64 = seeds.iter().map(|s| s.1).sum();
            let found = walk(&links, &seeds, 0.5, 12);
            prop_assume!(total > 0.0);
            let mut home = [0.0; 9];
            seeds.iter().for_each(|(n, w)| home[*n as usize] += w / total);
            let mut rank = home;
            for _ in 0..12 {
                let mut next = [0.0; 9];
                let mut back = 0.5;
                for node in 0..9u32 {
                    let out = links(node);
                    let sum: f64 = out.iter().map(|l| l.1).sum();
                    if out.is_empty() {
                        back += 0.5 * rank[node as usize];
                    }
                    out.iter().for_each(|(to, w)| next[*to as usize] += 0.5 * rank[node as usize] * w / sum);
                }
                (0..9).for_each(|n| next[n] += back * home[n]);
                rank = next;
            }
            for (n, expected) in rank.iter().enumerate() {
                let mass = found.iter().find(|f| f.node == n as Node).map_or(0.0, |f| f.mass());
                prop_assert!((mass - expected).abs() < 1e-5, "{n}: {mass} {expected}");
            }
        }
    }
}
