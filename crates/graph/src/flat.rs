//! A whole graph as flat arrays with dense numbers, for algorithms that read all of it.

use crate::convert::to_u32;
use crate::snapshot::{Node, Snapshot, TypeNo};

/// Neighbours of dense node numbers `0..n` in compressed sparse rows: all lists in one array.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Csr {
    /// Where the list of each node begins. One entry more than there are nodes.
    pub offsets: Vec<u32>,
    /// Dense numbers of the neighbours.
    pub targets: Vec<u32>,
    /// Types of the edges, parallel to `targets`.
    pub types: Vec<TypeNo>,
}

impl Csr {
    /// Builds from `(from, to, type)`, and keeps the order of edges within a node.
    pub fn new(nodes: usize, edges: impl Iterator<Item = (u32, u32, u16)> + Clone) -> Csr {
        let mut offsets = vec![0u32; nodes + 1];
        for (from, _, _) in edges.clone() {
            offsets[from as usize + 1] += 1;
        }
        for i in 0..nodes {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let total = offsets[nodes] as usize;
        let (mut targets, mut types) = (vec![0; total], vec![TypeNo(0); total]);
        for (from, to, type_no) in edges {
            let i = next[from as usize] as usize;
            targets[i] = to;
            types[i] = TypeNo(type_no);
            next[from as usize] += 1;
        }
        Csr { offsets, targets, types }
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part of `targets` and `types` that belongs to a node.
    #[inline]
    pub fn range(&self, node: usize) -> std::ops::Range<usize> {
        self.offsets[node] as usize..self.offsets[node + 1] as usize
    }

    /// The neighbours of a node.
    #[inline]
    pub fn of(&self, node: usize) -> &[u32] {
        &self.targets[self.range(node)]
    }

    pub fn degree(&self, node: usize) -> usize {
        (self.offsets[node + 1] - self.offsets[node]) as usize
    }
}

/// Both directions of a graph. It contains visible nodes only, numbered in the order of facts, so that two snapshots of
/// the same view have equal flat graphs whatever their history.
pub struct FlatGraph {
    /// The node of each dense number.
    pub nodes: Vec<Node>,
    dense: Vec<u32>,
    /// Edges from their sources to their destinations.
    pub out: Csr,
    /// The same edges, from their destinations to their sources.
    pub into: Csr,
}

const NONE: u32 = u32::MAX;

impl FlatGraph {
    /// Builds the flat graph of a snapshot.
    pub fn of(snapshot: &Snapshot) -> FlatGraph {
        let nodes = snapshot.nodes();
        let mut dense = vec![NONE; snapshot.node_places()];
        for (i, node) in nodes.iter().enumerate() {
            dense[node.index()] = to_u32(i);
        }
        let gather = |outgoing: bool| {
            let mut csr = Csr {
                offsets: Vec::with_capacity(nodes.len() + 1),
                targets: Vec::with_capacity(snapshot.edge_count()),
                types: Vec::with_capacity(snapshot.edge_count()),
            };
            csr.offsets.push(0);
            for node in &nodes {
                let links = if outgoing { snapshot.outgoing(*node) } else { snapshot.incoming(*node) };
                for (other, _, type_no) in links.iter() {
                    let to = dense[other.index()];
                    if to != NONE {
                        csr.targets.push(to);
                        csr.types.push(type_no);
                    }
                }
                csr.offsets.push(to_u32(csr.targets.len()));
            }
            csr
        };
        let (out, into) = (gather(true), gather(false));
        FlatGraph { nodes, dense, out, into }
    }

    /// Builds from edges without a snapshot, for benchmarks and tests.
    pub fn from_edges(nodes: usize, edges: &[(u32, u32, u16)]) -> FlatGraph {
        FlatGraph {
            nodes: (0..nodes).map(Node::at).collect(),
            dense: (0..to_u32(nodes)).collect(),
            out: Csr::new(nodes, edges.iter().copied()),
            into: Csr::new(nodes, edges.iter().map(|(a, b, t)| (*b, *a, *t))),
        }
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The dense number of a visible node.
    pub fn dense(&self, node: Node) -> Option<u32> {
        self.dense.get(node.index()).copied().filter(|d| *d != NONE)
    }

    /// Bytes that the arrays take.
    pub fn bytes(&self) -> usize {
        let csr = |c: &Csr| c.offsets.capacity() * 4 + c.targets.capacity() * 4 + c.types.capacity() * 2;
        (self.nodes.capacity() + self.dense.capacity()) * 4 + csr(&self.out) + csr(&self.into)
    }
}
