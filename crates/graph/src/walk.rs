//! Breadth-first walks with filters and caps: what lies within some hops of some nodes.

use crate::snapshot::{Edge, Links, Node, Snapshot, TypeNo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;

/// Which way edges are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From source to destination.
    #[serde(alias = "outbound")]
    Out,
    /// From destination to source.
    #[serde(alias = "inbound")]
    In,
    #[default]
    Both,
}

impl Direction {
    pub fn turned(self) -> Direction {
        match self {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
            Direction::Both => Direction::Both,
        }
    }
}

/// What may be walked on. Tables are by type number or label set number; none lets everything pass.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub edge_types: Option<Vec<bool>>,
    pub node_types: Option<Vec<bool>>,
    pub label_sets: Option<Vec<bool>>,
    /// Edges stated to be less sure than this are passed over; those that say nothing count as sure.
    pub min_confidence: Option<f64>,
}

impl Filter {
    /// Lets pass what has at least one of these labels.
    pub fn label_sets(snapshot: &Snapshot, labels: &[String]) -> Vec<bool> {
        let names = snapshot.names();
        let has = |set: usize| names.labels(set as u32).iter().any(|have| labels.iter().any(|want| **have == **want));
        (0..names.label_sets()).map(has).collect()
    }

    #[inline]
    pub fn edge_type(&self, type_no: TypeNo) -> bool {
        self.edge_types.as_ref().is_none_or(|table| table[usize::from(type_no)])
    }

    #[inline]
    pub fn edge(&self, snapshot: &Snapshot, edge: Edge, type_no: TypeNo) -> bool {
        self.edge_type(type_no)
            && self.min_confidence.is_none_or(|least| snapshot.confidence(edge).is_none_or(|c| c >= least))
    }

    #[inline]
    pub fn node(&self, snapshot: &Snapshot, node: Node) -> bool {
        self.node_types.as_ref().is_none_or(|table| table[usize::from(snapshot.type_no(node))])
            && self.label_sets.as_ref().is_none_or(|table| table[snapshot.label_set(node) as usize])
    }

    fn is_open_to_nodes(&self) -> bool {
        self.node_types.is_none() && self.label_sets.is_none()
    }
}

/// Both sides of a direction that apply, with whether it is the outgoing one.
pub(crate) fn sides(snapshot: &Snapshot, node: Node, direction: Direction) -> impl Iterator<Item = (Links<'_>, bool)> {
    let out = (direction != Direction::In).then(|| (snapshot.outgoing(node), true));
    let into = (direction != Direction::Out).then(|| (snapshot.incoming(node), false));
    out.into_iter().chain(into)
}

#[derive(Clone, Debug)]
pub struct Walk<'a> {
    pub direction: Direction,
    pub depth: u32,
    pub max_nodes: usize,
    pub max_edges: usize,
    pub filter: &'a Filter,
}

/// The cap that cut an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cap {
    Node,
    Edge,
    Path,
    /// So many steps were taken that it was given up.
    Steps,
}

/// What a walk found, in the order it was found.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    /// Roots first. A root is there whatever the filter says.
    pub nodes: Vec<Node>,
    pub depths: Vec<u32>,
    /// Each edge once, if both its ends are in `nodes`.
    pub edges: Vec<Edge>,
    /// For each edge, the place in `nodes` of the end that was found later.
    pub edge_places: Vec<u32>,
    /// For each node, the place in `nodes` it was found from, and by which edge; none for roots.
    pub from: Vec<Option<(u32, Edge)>>,
    pub cut: Option<Cap>,
    /// Edges looked at.
    pub scanned: usize,
}

impl Reached {
    pub fn depth_reached(&self) -> u32 {
        self.depths.last().copied().unwrap_or(0)
    }

    /// The way from a root to the node at a place: nodes and the edges between them.
    pub fn path(&self, place: usize) -> (Vec<Node>, Vec<Edge>) {
        let (mut nodes, mut edges) = (vec![self.nodes[place]], vec![]);
        let mut at = place;
        while let Some((before, edge)) = self.from[at] {
            at = before as usize;
            nodes.push(self.nodes[at]);
            edges.push(edge);
        }
        nodes.reverse();
        edges.reverse();
        (nodes, edges)
    }
}

/// Where nodes stand in the walk of this thread; emptied by counting on, not by clearing.
#[derive(Default)]
struct Marks {
    round: u32,
    places: Vec<u64>,
}

const OUT: u32 = u32::MAX;

thread_local! {
    static MARKS: RefCell<Marks> = RefCell::default();
}

impl Marks {
    fn begin(&mut self, nodes: usize) {
        // Room for a graph much larger than this one is given back.
        if self.places.len() < nodes || self.places.len() > nodes * 4 + (1 << 16) || self.round == u32::MAX {
            self.places = vec![0; nodes];
            self.round = 0;
        }
        self.round += 1;
    }

    #[inline]
    fn get(&self, node: Node) -> Option<u32> {
        let mark = self.places[node as usize];
        (mark >> 32 == u64::from(self.round)).then_some(mark as u32)
    }

    #[inline]
    fn set(&mut self, node: Node, place: u32) {
        self.places[node as usize] = u64::from(self.round) << 32 | u64::from(place);
    }
}

/// Walks from the roots, nearest first, in the order of edges' thing numbers.
pub fn walk(snapshot: &Snapshot, roots: &[Node], walk: &Walk<'_>) -> Reached {
    MARKS.with_borrow_mut(|marks| {
        marks.begin(snapshot.node_places());
        run(snapshot, roots, walk, marks)
    })
}

fn run(snapshot: &Snapshot, roots: &[Node], walk: &Walk<'_>, marks: &mut Marks) -> Reached {
    let mut found = Reached::default();
    let free = walk.filter.is_open_to_nodes();
    let plain = walk.filter.edge_types.is_none() && walk.filter.min_confidence.is_none();
    let both = walk.direction == Direction::Both;
    for root in roots {
        if marks.get(*root).is_none() {
            if found.nodes.len() == walk.max_nodes {
                found.cut = Some(Cap::Node);
                return found;
            }
            marks.set(*root, found.nodes.len() as u32);
            found.nodes.push(*root);
            found.depths.push(0);
            found.from.push(None);
        }
    }
    let mut at = 0;
    while at < found.nodes.len() && found.depths[at] < walk.depth {
        let (node, depth) = (found.nodes[at], found.depths[at]);
        for (links, outgoing) in sides(snapshot, node, walk.direction) {
            found.scanned += links.len();
            for i in 0..links.nodes.len() {
                let (other, edge) = (links.nodes[i], links.edges[i]);
                if !plain && !walk.filter.edge(snapshot, edge, links.types[i]) {
                    continue;
                }
                let place = match marks.get(other) {
                    Some(OUT) => continue,
                    // It was told when the other end was left, or, if it leads back to itself, on the way out.
                    Some(place) if both && ((place as usize) < at || place as usize == at && !outgoing) => continue,
                    Some(place) => place,
                    None if !free && !walk.filter.node(snapshot, other) => {
                        marks.set(other, OUT);
                        continue;
                    }
                    None if found.nodes.len() == walk.max_nodes => {
                        found.cut = Some(Cap::Node);
                        return found;
                    }
                    None => found.nodes.len() as u32,
                };
                if found.edges.len() == walk.max_edges {
                    found.cut = Some(Cap::Edge);
                    return found;
                }
                if place as usize == found.nodes.len() {
                    marks.set(other, place);
                    found.nodes.push(other);
                    found.depths.push(depth + 1);
                    found.from.push(Some((at as u32, edge)));
                }
                found.edges.push(edge);
                found.edge_places.push(place.max(at as u32));
            }
        }
        at += 1;
    }
    found
}
