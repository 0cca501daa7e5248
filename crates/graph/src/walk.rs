//! Breadth-first walks with filters and caps: what lies within some hops of some nodes.

use crate::convert::to_u32;
use crate::snapshot::{Edge, EdgeList, Node, Snapshot, TypeNo};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;

/// In which direction edges are followed.
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
    /// The opposite direction.
    pub fn turned(self) -> Direction {
        match self {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
            Direction::Both => Direction::Both,
        }
    }
}

/// Which edges and nodes a walk may use. Tables are by type number or by number of the label set; `None` accepts
/// everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// By type number of the edge.
    pub edge_types: Option<Vec<bool>>,
    /// By type number of the node.
    pub node_types: Option<Vec<bool>>,
    /// By number of the label set of the node.
    pub label_sets: Option<Vec<bool>>,
    /// Edges with a lower confidence are skipped. Edges without one count as certain.
    pub min_confidence: Option<f64>,
}

impl Filter {
    /// A table that accepts nodes with at least one of these labels.
    pub fn label_sets(snapshot: &Snapshot, labels: &[String]) -> Vec<bool> {
        let names = snapshot.names();
        let has = |set: usize| names.labels(to_u32(set)).iter().any(|have| labels.iter().any(|want| **have == **want));
        (0..names.label_sets()).map(has).collect()
    }

    #[inline]
    pub fn edge_type(&self, type_no: TypeNo) -> bool {
        self.edge_types.as_ref().is_none_or(|table| table[type_no.index()])
    }

    #[inline]
    pub fn edge(&self, snapshot: &Snapshot, edge: Edge, type_no: TypeNo) -> bool {
        self.edge_type(type_no)
            && self.min_confidence.is_none_or(|least| snapshot.confidence(edge).is_none_or(|c| c >= least))
    }

    #[inline]
    pub fn node(&self, snapshot: &Snapshot, node: Node) -> bool {
        self.node_types.as_ref().is_none_or(|table| table[snapshot.type_no(node).index()])
            && self.label_sets.as_ref().is_none_or(|table| table[snapshot.label_set(node) as usize])
    }

    fn is_open_to_nodes(&self) -> bool {
        self.node_types.is_none() && self.label_sets.is_none()
    }
}

/// The lists of edges in a direction, each with whether it is the outgoing one.
pub(crate) fn sides(
    snapshot: &Snapshot,
    node: Node,
    direction: Direction,
) -> impl Iterator<Item = (EdgeList<'_>, bool)> {
    let out = (direction != Direction::In).then(|| (snapshot.outgoing(node), true));
    let into = (direction != Direction::Out).then(|| (snapshot.incoming(node), false));
    out.into_iter().chain(into)
}

/// The parameters of a walk.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    /// The direction in which edges are followed.
    pub direction: Direction,
    /// The most hops from a root.
    pub depth: u32,
    /// The most nodes to return, roots included.
    pub max_nodes: usize,
    /// The most edges to return.
    pub max_edges: usize,
    /// The edges and nodes that are allowed.
    pub filter: &'a Filter,
}

/// The cap that cut an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cap {
    Node,
    Edge,
    Path,
    /// The number of steps.
    Steps,
}

/// The result of a walk. When dropped, its memory is used again by the next walk of the thread.
#[derive(Debug, Default)]
pub struct PooledWalkResult(WalkResult);

impl std::ops::Deref for PooledWalkResult {
    type Target = WalkResult;
    fn deref(&self) -> &WalkResult {
        &self.0
    }
}

/// Nodes and edges in the order they were found.
#[derive(Debug, Default)]
pub struct WalkResult {
    /// Roots first. The filter does not apply to roots.
    pub nodes: Vec<Node>,
    /// The cap that ended the walk early, if one did.
    pub cut: Option<Cap>,
    /// Edges examined.
    pub scanned: usize,
    /// The position in `nodes` where each depth begins.
    layers: Vec<u32>,
    /// For each expanded node, in order, the number of edges in the result after it.
    left: Vec<u32>,
    /// The edges of the result, if not all edges of a node are part of it.
    chosen: Vec<Edge>,
    /// Set if all edges of expanded nodes in this direction are part of the result.
    whole: Option<Direction>,
}

impl WalkResult {
    /// The depth of the node that was reached last.
    pub fn depth_reached(&self) -> u32 {
        self.depth(self.nodes.len().saturating_sub(1))
    }

    /// Hops from the nearest root to the node at a position.
    pub fn depth(&self, place: usize) -> u32 {
        to_u32(self.layers.partition_point(|first| *first as usize <= place).saturating_sub(1))
    }

    /// The number of edges in the result.
    pub fn edge_count(&self) -> usize {
        self.left.last().map_or(0, |end| *end as usize)
    }

    /// Each edge once, in the order it was followed. Both its ends are in `nodes`.
    pub fn edges(&self, snapshot: &Snapshot) -> Vec<Edge> {
        let Some(direction) = self.whole else { return self.chosen.clone() };
        let mut edges = Vec::with_capacity(self.edge_count());
        for node in &self.nodes[..self.left.len()] {
            sides(snapshot, *node, direction).for_each(|(links, _)| edges.extend_from_slice(links.edges));
        }
        // The last node may have been expanded in part.
        edges.truncate(self.edge_count());
        edges
    }

    /// How each node was reached. Computed by this call, because most callers do not need it.
    pub fn trails(&self, snapshot: &Snapshot) -> WalkPaths<'_> {
        let mut places: FxHashMap<Node, u32> = FxHashMap::default();
        let roots = self.layers.get(1).map_or(self.nodes.len(), |first| *first as usize);
        places.extend(self.nodes[..roots].iter().copied().zip(0..));
        let mut from = vec![None; roots];
        let edges = self.edges(snapshot);
        let mut edge_places = Vec::with_capacity(edges.len());
        let mut first = 0;
        for (at, end) in self.left.iter().map(|end| *end as usize).enumerate() {
            for &edge in &edges[first..end] {
                let (src, dst) = snapshot.ends(edge);
                let other = if src == self.nodes[at] { dst } else { src };
                let place = *places.entry(other).or_insert_with(|| {
                    from.push(Some((to_u32(at), edge)));
                    to_u32(from.len() - 1)
                });
                edge_places.push(place.max(to_u32(at)));
            }
            first = end;
        }
        WalkPaths { found: self, from, edges, edge_places }
    }

    fn clear(&mut self) {
        self.nodes.clear();
        self.chosen.clear();
        self.whole = None;
        self.layers.clear();
        self.left.clear();
        (self.cut, self.scanned) = (None, 0);
    }
}

/// How a walk reached its nodes.
pub struct WalkPaths<'a> {
    found: &'a WalkResult,
    from: Vec<Option<(u32, Edge)>>,
    /// The edges, in the order they were followed.
    pub edges: Vec<Edge>,
    /// For each edge, the position in `nodes` of the end that was reached later.
    pub edge_places: Vec<u32>,
}

impl WalkPaths<'_> {
    /// The edge by which the node at a position was reached. `None` for roots.
    pub fn edge_to(&self, place: usize) -> Option<Edge> {
        self.from[place].map(|(_, edge)| edge)
    }

    /// The path from a root to the node at a position: nodes and the edges between them.
    pub fn path(&self, place: usize) -> (Vec<Node>, Vec<Edge>) {
        let (mut nodes, mut edges) = (vec![self.found.nodes[place]], vec![]);
        let mut at = place;
        while let Some((before, edge)) = self.from[at] {
            at = before as usize;
            nodes.push(self.found.nodes[at]);
            edges.push(edge);
        }
        nodes.reverse();
        edges.reverse();
        (nodes, edges)
    }
}

impl Drop for PooledWalkResult {
    fn drop(&mut self) {
        // Memory that has grown too large is not kept. A thread that is ending keeps none.
        if self.nodes.capacity().max(self.chosen.capacity()) <= 1 << 16 {
            let room = std::mem::take(&mut self.0);
            let _ = SCRATCH.try_with(|scratch| scratch.borrow_mut().room = room);
        }
    }
}

/// Marks a node that a filter excludes.
const OUT: u32 = u32::MAX;

/// The positions of nodes in the current walk of this thread. Each walk uses a new round number instead of clearing.
#[derive(Default)]
struct Scratch {
    round: u32,
    /// The round in which a node was last reached.
    seen: Vec<u32>,
    /// The position of the node in that round, if the walk needs it.
    places: Vec<u32>,
    /// The memory of the last result that was dropped.
    room: WalkResult,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Scratch {
    fn begin(&mut self, nodes: usize, places: bool) {
        // Memory for a much larger graph is freed.
        if self.seen.len() < nodes || self.seen.len() > nodes * 4 + (1 << 16) || self.round == u32::MAX {
            // With room for nodes that are added next.
            self.seen = vec![0; nodes + nodes / 8];
            self.places = Vec::new();
            self.round = 0;
        }
        if places && self.places.len() < self.seen.len() {
            self.places = vec![0; self.seen.len()];
        }
        self.round += 1;
    }

    /// Marks a node as reached. Returns whether this is the first time in this round.
    #[inline]
    fn is_new(&mut self, node: Node) -> bool {
        std::mem::replace(&mut self.seen[node.index()], self.round) != self.round
    }

    #[inline]
    fn get(&self, node: Node) -> Option<u32> {
        (self.seen[node.index()] == self.round).then(|| self.places[node.index()])
    }

    #[inline]
    fn set(&mut self, node: Node, place: u32) {
        self.seen[node.index()] = self.round;
        self.places[node.index()] = place;
    }
}

/// Walks from the roots, nearest first, in the order of the edges' fact numbers.
pub fn walk(snapshot: &Snapshot, roots: &[Node], walk: &Walk<'_>) -> PooledWalkResult {
    SCRATCH.with_borrow_mut(|scratch| {
        let filter = walk.filter;
        let plain = filter.is_open_to_nodes() && filter.edge_types.is_none() && filter.min_confidence.is_none();
        let both = walk.direction == Direction::Both;
        scratch.begin(snapshot.node_places(), !plain || both);
        let mut found = std::mem::take(&mut scratch.room);
        found.clear();
        found.whole = (plain && !both).then_some(walk.direction);
        let mut run = Run { snapshot, walk, marks: scratch, found: &mut found, edge_count: 0 };
        match (plain, both) {
            (true, false) => run.all::<true, false>(roots),
            (true, true) => run.all::<true, true>(roots),
            (false, false) => run.all::<false, false>(roots),
            (false, true) => run.all::<false, true>(roots),
        }
        PooledWalkResult(found)
    })
}

struct Run<'a> {
    snapshot: &'a Snapshot,
    walk: &'a Walk<'a>,
    marks: &'a mut Scratch,
    found: &'a mut WalkResult,
    /// The number of edges in the result so far.
    edge_count: usize,
}

/// The result is full.
struct Full;

impl Run<'_> {
    fn all<const PLAIN: bool, const BOTH: bool>(&mut self, roots: &[Node]) {
        self.found.layers.push(0);
        for root in roots {
            if self.marks.is_new(*root) {
                if self.found.nodes.len() == self.walk.max_nodes {
                    self.found.cut = Some(Cap::Node);
                    return;
                }
                if !PLAIN || BOTH {
                    self.marks.set(*root, to_u32(self.found.nodes.len()));
                }
                self.found.nodes.push(*root);
            }
        }
        let mut first = 0;
        for _ in 0..self.walk.depth {
            let end = self.found.nodes.len();
            if first == end {
                return;
            }
            self.found.layers.push(to_u32(end));
            for at in first..end {
                let node = self.found.nodes[at];
                let full = match self.walk.direction {
                    Direction::Out => self.leave::<PLAIN, BOTH, true>(at, self.snapshot.outgoing(node)),
                    Direction::In => self.leave::<PLAIN, BOTH, false>(at, self.snapshot.incoming(node)),
                    Direction::Both => self
                        .leave::<PLAIN, BOTH, true>(at, self.snapshot.outgoing(node))
                        .and_then(|()| self.leave::<PLAIN, BOTH, false>(at, self.snapshot.incoming(node))),
                };
                self.found.left.push(to_u32(self.edge_count));
                if full.is_err() {
                    return;
                }
            }
            first = end;
        }
    }

    /// Follows the edges of one direction of the node at a position.
    #[inline]
    fn leave<const PLAIN: bool, const BOTH: bool, const OUTGOING: bool>(
        &mut self,
        at: usize,
        links: EdgeList<'_>,
    ) -> Result<(), Full> {
        self.found.scanned += links.len();
        if PLAIN && !BOTH {
            return self.leave_plainly(links);
        }
        for (other, edge, type_no) in links.iter() {
            if !PLAIN && !self.walk.filter.edge(self.snapshot, edge, type_no) {
                continue;
            }
            match self.marks.get(other) {
                Some(OUT) => continue,
                // It was added when the other end was expanded, or, if it leads back to the same node, as an outgoing
                // edge.
                Some(place) if BOTH && ((place as usize) < at || place as usize == at && !OUTGOING) => continue,
                Some(_) => self.room_for_an_edge()?,
                None => {
                    if !PLAIN && !self.walk.filter.node(self.snapshot, other) {
                        self.marks.set(other, OUT);
                        continue;
                    }
                    self.room_for_a_node()?;
                    self.room_for_an_edge()?;
                    self.marks.set(other, to_u32(self.found.nodes.len()));
                    self.found.nodes.push(other);
                }
            }
            self.found.chosen.push(edge);
            self.edge_count += 1;
        }
        Ok(())
    }

    /// Without filters, and with each edge seen from one end only: every edge and every new end is added.
    #[inline]
    fn leave_plainly(&mut self, links: EdgeList<'_>) -> Result<(), Full> {
        let room = (self.walk.max_nodes - self.found.nodes.len()).min(self.walk.max_edges - self.edge_count);
        if links.len() <= room {
            for &other in links.nodes {
                if self.marks.is_new(other) {
                    self.found.nodes.push(other);
                }
            }
            self.edge_count += links.len();
            return Ok(());
        }
        for &other in links.nodes {
            if self.marks.is_new(other) {
                self.room_for_a_node()?;
                self.room_for_an_edge()?;
                self.found.nodes.push(other);
            }
            self.room_for_an_edge()?;
            self.edge_count += 1;
        }
        Ok(())
    }

    #[inline]
    fn room_for_a_node(&mut self) -> Result<(), Full> {
        if self.found.nodes.len() < self.walk.max_nodes {
            return Ok(());
        }
        self.found.cut = Some(Cap::Node);
        Err(Full)
    }

    #[inline]
    fn room_for_an_edge(&mut self) -> Result<(), Full> {
        if self.edge_count < self.walk.max_edges {
            return Ok(());
        }
        self.found.cut = Some(Cap::Edge);
        Err(Full)
    }
}
