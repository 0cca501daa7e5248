//! The hand-written reference: flat arrays and plain loops.

use std::time::{Duration, Instant};

pub struct Csr {
    pub offsets: Vec<u32>,
    pub targets: Vec<u32>,
}

impl Csr {
    pub fn new(nodes: usize, edges: &[(u32, u32, u16)]) -> Csr {
        let mut offsets = vec![0u32; nodes + 1];
        for (src, _, _) in edges {
            offsets[*src as usize + 1] += 1;
        }
        for i in 0..nodes {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut targets = vec![0; edges.len()];
        for (src, dst, _) in edges {
            targets[next[*src as usize] as usize] = *dst;
            next[*src as usize] += 1;
        }
        Csr { offsets, targets }
    }
}

/// Breadth-first search with a visited array that is never cleared.
pub struct ReferenceWalk {
    seen: Vec<u32>,
    round: u32,
    queue: Vec<u32>,
}

impl ReferenceWalk {
    pub fn new(nodes: usize) -> ReferenceWalk {
        ReferenceWalk { seen: vec![0; nodes], round: 0, queue: Vec::new() }
    }

    /// Nodes within `depth` hops, the start included.
    pub fn run(&mut self, csr: &Csr, start: u32, depth: u32) -> usize {
        self.round += 1;
        self.queue.clear();
        self.queue.push(start);
        self.seen[start as usize] = self.round;
        let (mut from, mut hop) = (0, 0);
        while hop < depth && from < self.queue.len() {
            let to = self.queue.len();
            for i in from..to {
                let v = self.queue[i] as usize;
                for u in &csr.targets[csr.offsets[v] as usize..csr.offsets[v + 1] as usize] {
                    if self.seen[*u as usize] != self.round {
                        self.seen[*u as usize] = self.round;
                        self.queue.push(*u);
                    }
                }
            }
            from = to;
            hop += 1;
        }
        self.queue.len()
    }
}

/// Personalized PageRank over one array of neighbours in both directions with ready-made probabilities.
pub struct ReferencePageRank {
    offsets: Vec<u32>,
    sources: Vec<u32>,
    shares: Vec<f64>,
}

impl ReferencePageRank {
    pub fn new(nodes: usize, edges: &[(u32, u32, u16)], weights: &[f64], reverse: f64) -> ReferencePageRank {
        let both = || {
            edges.iter().flat_map(|(src, dst, t)| {
                let w = weights[usize::from(*t)];
                [(*src, *dst, w), (*dst, *src, w * reverse)]
            })
        };
        let mut total = vec![0.0; nodes];
        let mut offsets = vec![0u32; nodes + 1];
        for (from, to, w) in both() {
            total[from as usize] += w;
            offsets[to as usize + 1] += 1;
        }
        for i in 0..nodes {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let (mut sources, mut shares) = (vec![0; edges.len() * 2], vec![0.0; edges.len() * 2]);
        for (from, to, w) in both() {
            let i = next[to as usize] as usize;
            sources[i] = from;
            shares[i] = w / total[from as usize];
            next[to as usize] += 1;
        }
        ReferencePageRank { offsets, sources, shares }
    }

    pub fn run(&self, seeds: &[(u32, f64)], damping: f64, iterations: usize) -> (Vec<f64>, Duration) {
        let start = Instant::now();
        let n = self.offsets.len() - 1;
        let sum: f64 = seeds.iter().map(|(_, w)| w).sum();
        let mut rank = vec![0.0; n];
        seeds.iter().for_each(|(v, w)| rank[*v as usize] += w / sum);
        let mut next = vec![0.0; n];
        for _ in 0..iterations {
            for (v, next) in next.iter_mut().enumerate() {
                let mut here = 0.0;
                for i in self.offsets[v] as usize..self.offsets[v + 1] as usize {
                    here += rank[self.sources[i] as usize] * self.shares[i];
                }
                *next = damping * here;
            }
            let arrived: f64 = next.iter().sum();
            seeds.iter().for_each(|(v, w)| next[*v as usize] += (1.0 - arrived) * w / sum);
            std::mem::swap(&mut rank, &mut next);
        }
        (rank, start.elapsed())
    }
}
