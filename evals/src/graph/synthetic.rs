//! A synthetic code graph with modules, hubs and several types of edges; the same for the same seed.

use lukasa_model::Write;
use lukasa_model::batch::{PutObject, PutRelationship, Reference};

/// Types of edges with their default weight in Lukasa, and their share in percent.
pub const TYPES: [(&str, f64, u64); 4] =
    [("CALLS", 0.9, 60), ("IMPORTS", 0.7, 20), ("CONTAINS", 0.5, 12), ("TESTS", 0.4, 8)];
/// Nodes of one module.
const MODULE: u64 = 60;
/// Nodes of one file.
pub const FILE: u64 = 50;

pub struct SyntheticGraph {
    pub nodes: u64,
    /// Source, destination, type.
    pub edges: Vec<(u32, u32, u16)>,
}

pub use lukasa_testkit::random_queries::SeededRandom;

fn share(dice: &mut SeededRandom) -> f64 {
    dice.below(1 << 53) as f64 / (1u64 << 53) as f64
}

impl SyntheticGraph {
    /// Two edges of three stay in their module; the others go anywhere, mostly to a few popular nodes.
    pub fn new(nodes: u64, edges: u64, seed: u64) -> SyntheticGraph {
        let mut dice = SeededRandom(seed);
        // Popular nodes are spread over all modules.
        let stride = (0..).map(|i| 1_000_003 + 2 * i).find(|s| gcd(*s, nodes) == 1).unwrap_or(1);
        let mut seen = std::collections::HashSet::with_capacity(edges as usize);
        let mut made = Vec::with_capacity(edges as usize);
        while (made.len() as u64) < edges {
            let mut src = dice.below(nodes);
            let mut dst = if dice.below(3) < 2 {
                let module = src / MODULE * MODULE;
                module + dice.below(MODULE.min(nodes - module))
            } else {
                let popular = (nodes as f64 * share(&mut dice).powi(4)) as u64;
                (popular.min(nodes - 1) * stride) % nodes
            };
            // Some popular nodes have many outgoing edges.
            if src / MODULE != dst / MODULE && dice.below(3) == 0 {
                std::mem::swap(&mut src, &mut dst);
            }
            let mut roll = dice.below(100);
            let type_no = TYPES.iter().position(|(_, _, share)| {
                let hit = roll < *share;
                roll = roll.saturating_sub(*share);
                hit
            });
            let edge = (src as u32, dst as u32, type_no.unwrap_or(0) as u16);
            if src != dst && seen.insert(edge) {
                made.push(edge);
            }
        }
        SyntheticGraph { nodes, edges: made }
    }

    pub fn writes(&self) -> impl Iterator<Item = Write> {
        let objects = (0..self.nodes).map(|i| Write::from(object(i, 1)));
        objects.chain(self.edges.iter().enumerate().map(|(i, edge)| relationship(*edge, (i % 50) as f64 / 100.0 + 0.5)))
    }

    /// The nodes with the most edges, the largest first.
    pub fn hubs(&self, count: usize) -> Vec<u32> {
        let mut degree = vec![0u32; self.nodes as usize];
        for (src, dst, _) in &self.edges {
            degree[*src as usize] += 1;
            degree[*dst as usize] += 1;
        }
        let mut all: Vec<u32> = (0..self.nodes as u32).collect();
        all.sort_by_key(|v| (std::cmp::Reverse(degree[*v as usize]), *v));
        all.truncate(count);
        all
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

pub fn key(i: u64) -> String {
    format!("src/module_{:05}/file_{:06}.rs::function_{i:07}", i / MODULE, i / FILE)
}

pub fn reference(i: u64) -> Reference {
    Reference::exact("Function", &key(i))
}

pub fn object(i: u64, line: u64) -> PutObject {
    PutObject::new("Function", &key(i))
        .title(&format!("function_{i:07}"))
        .property("language", "rust")
        .property("line", line)
}

pub fn relationship((src, dst, type_no): (u32, u32, u16), confidence: f64) -> Write {
    let (src, dst) = (reference(u64::from(src)), reference(u64::from(dst)));
    PutRelationship {
        confidence: Some(confidence),
        derivation: Some("import".into()),
        ..PutRelationship::new(TYPES[usize::from(type_no)].0, src, dst)
    }
    .into()
}
