//! One immutable graph of a view: nodes, edges and both directions of adjacency, in shared chunks.

use crate::chunked::{Chunked, Heap};
use crate::contents::{LazyCells, ObjectContent, Properties, PropertyRow};
use crate::convert::to_u32;
use crate::flat::FlatGraph;
use crate::lookup::{ChangedNodes, LookupCache, SnapshotDerived};
use crate::names::NameTable;
use crate::rank::{EdgeWeights, TransitionShares};
use lukasa_model::types::Registry;
use lukasa_model::{FactNo, Time, View};
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};
use uuid::Uuid;

/// Declares an index with its own type, so that indexes of different tables cannot be confused.
macro_rules! index {
    ($(#[$doc:meta])* $name:ident($number:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $number);

        impl $name {
            /// The entry at this index of its table.
            #[inline]
            pub fn at(index: usize) -> $name {
                $name(<$number>::try_from(index).expect("tables of a graph are limited"))
            }

            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
pub(crate) use index;

index! {
    /// The place of a node in a snapshot. Places of removed nodes are assigned again; the permanent number is
    /// [`Snapshot::thing`].
    Node(u32)
}
index! {
    /// The place of an edge in a snapshot.
    Edge(u32)
}
index! {
    /// The number of an interned type name.
    TypeNo(u16)
}

pub(crate) const NODES: usize = 64;
pub(crate) const EDGES: usize = 128;
pub(crate) const PLACES: usize = 1_024;
const EDGE_TAG: u32 = 1 << 31;

/// The most nodes, and the most edges, of one graph.
pub const MOST: usize = (EDGE_TAG - 2) as usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FactPlace {
    Node(Node),
    Edge(Edge),
}

/// Whether a place holds a node, and whether it is visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NodePresence {
    #[default]
    Free,
    Live,
    /// Not visible itself, but shown as the end of a lasting relationship.
    Ended,
}

/// The fields of a node other than its key. They are stored together because they are read together.
#[derive(Clone, Copy, Default)]
pub(crate) struct NodeRecord {
    pub id: Uuid,
    pub thing: FactNo,
    pub labels: u32,
    pub type_no: TypeNo,
    pub presence: NodePresence,
}

#[derive(Clone)]
pub(crate) struct NodeChunk {
    pub rows: [NodeRecord; NODES],
    keyed: u64,
    key_ends: [u32; NODES],
    keys: String,
    pub contents: LazyCells<PropertyRow>,
    pub known: LazyCells<Arc<ObjectContent>>,
}

impl Default for NodeChunk {
    fn default() -> Self {
        let (rows, key_ends) = ([NodeRecord::default(); NODES], [0; NODES]);
        NodeChunk {
            rows,
            keyed: 0,
            key_ends,
            keys: String::new(),
            contents: LazyCells::default(),
            known: LazyCells::default(),
        }
    }
}

impl NodeChunk {
    pub fn key(&self, at: usize) -> Option<&str> {
        (self.keyed >> at & 1 == 1).then(|| &self.keys[self.key_range(at)])
    }

    fn key_range(&self, at: usize) -> std::ops::Range<usize> {
        let from = if at == 0 { 0 } else { self.key_ends[at - 1] };
        from as usize..self.key_ends[at] as usize
    }

    pub fn set_key(&mut self, at: usize, key: Option<&str>) {
        let range = self.key_range(at);
        let (old, new) = (range.len(), key.map_or(0, str::len));
        self.keys.replace_range(range, key.unwrap_or_default());
        for end in &mut self.key_ends[at..] {
            *end = to_u32(*end as usize + new - old);
        }
        self.keyed = self.keyed & !(1 << at) | u64::from(key.is_some()) << at;
    }

    /// Sets the key of a node. Keys of a chunk must be set in order.
    pub fn append_key(&mut self, at: usize, key: Option<&str>) {
        self.keys.push_str(key.unwrap_or_default());
        self.key_ends[at..].fill(to_u32(self.keys.len()));
        self.keyed = self.keyed & !(1 << at) | u64::from(key.is_some()) << at;
    }

    /// Forgets what was read of a node, because the node is about to change.
    pub fn forget(&mut self, at: usize, properties: &Properties) {
        properties.forgot_node(self.contents.forget(at), self.known.forget(at));
    }

    pub fn shrink(&mut self) {
        self.keys.shrink_to_fit();
    }
}

impl Heap for NodeChunk {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.keys.capacity()
    }
}

/// One direction of the edges of a chunk of nodes. The list of each node is in order of the fact numbers of its edges.
#[derive(Clone)]
pub(crate) struct Adjacency {
    ends: [u32; NODES],
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    types: Vec<TypeNo>,
}

impl Default for Adjacency {
    fn default() -> Self {
        Adjacency { ends: [0; NODES], nodes: vec![], edges: vec![], types: vec![] }
    }
}

impl Adjacency {
    pub fn new(ends: [u32; NODES], nodes: &[Node], edges: &[Edge], types: &[TypeNo]) -> Adjacency {
        Adjacency { ends, nodes: nodes.to_vec(), edges: edges.to_vec(), types: types.to_vec() }
    }

    #[inline]
    fn range(&self, at: usize) -> std::ops::Range<usize> {
        let from = if at == 0 { 0 } else { self.ends[at - 1] };
        from as usize..self.ends[at] as usize
    }

    #[inline]
    pub fn links(&self, at: usize) -> EdgeList<'_> {
        let range = self.range(at);
        EdgeList { nodes: &self.nodes[range.clone()], edges: &self.edges[range.clone()], types: &self.types[range] }
    }

    /// Inserts an edge at a position of the list of a node.
    pub fn insert(&mut self, at: usize, place: usize, node: Node, edge: Edge, type_no: TypeNo) {
        let i = self.range(at).start + place;
        if self.nodes.len() == self.nodes.capacity() {
            // Chunks are small and copied often, so they reserve room for a few edges instead of twice as many.
            self.nodes.reserve_exact(8);
            self.edges.reserve_exact(8);
            self.types.reserve_exact(8);
        }
        self.nodes.insert(i, node);
        self.edges.insert(i, edge);
        self.types.insert(i, type_no);
        self.ends[at..].iter_mut().for_each(|end| *end += 1);
    }

    pub fn remove(&mut self, at: usize, edge: Edge) {
        let range = self.range(at);
        let Some(place) = self.edges[range.clone()].iter().position(|e| *e == edge) else { return };
        let i = range.start + place;
        self.nodes.remove(i);
        self.edges.remove(i);
        self.types.remove(i);
        self.ends[at..].iter_mut().for_each(|end| *end -= 1);
    }
}

impl Heap for Adjacency {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.nodes.capacity() * 4 + self.edges.capacity() * 4 + self.types.capacity() * 2
    }
}

/// The edges of one node in one direction, as arrays of equal length. Most walks read only the other ends.
#[derive(Clone, Copy)]
pub struct EdgeList<'a> {
    /// The other ends.
    pub nodes: &'a [Node],
    /// In order of fact numbers.
    pub edges: &'a [Edge],
    pub types: &'a [TypeNo],
}

impl<'a> EdgeList<'a> {
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The other end, the edge and its type, for each edge.
    pub fn iter(&self) -> impl Iterator<Item = (Node, Edge, TypeNo)> + use<'a> {
        let links = *self;
        (0..links.nodes.len()).map(move |i| (links.nodes[i], links.edges[i], links.types[i]))
    }
}

/// The fields of an edge. They are stored together because they are read together.
#[derive(Clone, Copy)]
pub(crate) struct EdgeRecord {
    pub id: Uuid,
    pub thing: FactNo,
    /// NaN if there is none; likewise the weight.
    pub confidence: f64,
    pub weight: f64,
    pub src: Node,
    pub dst: Node,
    /// The number of its derivation; 0 if there is none.
    pub derivation: u32,
    /// When the version begins, or when it was recorded if it has no beginning, in days since 1970.
    pub since: u16,
    pub type_no: TypeNo,
}

/// A day in microseconds.
pub(crate) const DAY: i64 = 86_400_000_000;

#[derive(Clone)]
pub(crate) struct EdgeChunk {
    pub rows: [EdgeRecord; EDGES],
    pub contents: LazyCells<PropertyRow>,
}

impl Default for EdgeChunk {
    fn default() -> Self {
        let (id, thing, confidence, weight) = (Uuid::nil(), FactNo(0), f64::NAN, f64::NAN);
        let none = EdgeRecord {
            id,
            thing,
            confidence,
            weight,
            src: Node(0),
            dst: Node(0),
            since: 0,
            type_no: TypeNo(0),
            derivation: 0,
        };
        EdgeChunk { rows: [none; EDGES], contents: LazyCells::default() }
    }
}

impl Heap for EdgeChunk {
    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// The places of a range of facts, by fact number. 0 means that the fact is not in the graph.
#[derive(Clone)]
pub(crate) struct PlaceChunk(pub Vec<u32>);

impl Default for PlaceChunk {
    fn default() -> Self {
        PlaceChunk(vec![0; PLACES])
    }
}

impl Heap for PlaceChunk {
    fn bytes(&self) -> usize {
        self.0.capacity() * 4
    }
}

/// The graph of one view. It is cheap to clone and never changes.
#[derive(Clone)]
pub struct Snapshot {
    /// The view of this graph.
    pub view: View,
    /// The declared types, as of the view.
    pub registry: Arc<Registry>,
    /// Until this valid time, the graph changes only by new transactions.
    pub until: Time,
    pub(crate) nodes: Chunked<NodeChunk>,
    pub(crate) out: Chunked<Adjacency>,
    pub(crate) into: Chunked<Adjacency>,
    pub(crate) edges: Chunked<EdgeChunk>,
    pub(crate) places: Chunked<PlaceChunk>,
    pub(crate) names: Arc<NameTable>,
    pub(crate) properties: Arc<Properties>,
    /// Nodes that appeared, ended or changed since the build.
    pub(crate) touched: Arc<ChangedNodes>,
    pub(crate) live: usize,
    pub(crate) ended: usize,
    pub(crate) node_places: usize,
    pub(crate) edge_count: usize,
    pub(crate) edge_places: usize,
    pub(crate) beside: Arc<SnapshotCache>,
    /// Identifies the build that it goes back to. Snapshots of one build share unchanged chunks.
    pub(crate) build: u64,
    /// Identifies the bytes that it was decoded from, if it was.
    pub(crate) origin: Option<u64>,
}

/// Data computed from a snapshot on first use and kept with it.
#[derive(Default)]
pub(crate) struct SnapshotCache {
    pub flat: OnceLock<Arc<FlatGraph>>,
    pub ranks: OnceLock<Arc<Vec<f64>>>,
    pub spread: Mutex<Option<(EdgeWeights, Arc<TransitionShares>)>>,
    /// For the resolution it was computed with.
    pub communities: Mutex<Option<(f64, Arc<Vec<u32>>)>>,
    pub lookup: LookupCache,
    pub derived: Mutex<Vec<Arc<dyn SnapshotDerived>>>,
}

/// The memory that a snapshot takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GraphMemory {
    /// All of it, in bytes.
    pub bytes: usize,
    pub bytes_per_node: f64,
    pub bytes_per_edge: f64,
}

impl Snapshot {
    /// Identifies the bytes that this graph, or an earlier state of it, was decoded from; see [`crate::cache::GraphArchive`].
    pub fn origin(&self) -> Option<u64> {
        self.origin
    }

    /// The number of visible nodes.
    pub fn node_count(&self) -> usize {
        self.live
    }

    /// The number of visible edges.
    pub fn edge_count(&self) -> usize {
        self.edge_count
    }

    /// One more than the largest node place: the length of an array indexed by `Node`.
    pub fn node_places(&self) -> usize {
        self.node_places
    }

    /// Every place of a node, free ones included.
    pub(crate) fn all_places(&self) -> impl Iterator<Item = Node> + use<> {
        (0..self.node_places).map(Node::at)
    }

    /// Every visible node, in order of fact numbers.
    pub fn nodes(&self) -> Vec<Node> {
        let mut all: Vec<(FactNo, Node)> = Vec::with_capacity(self.live);
        for (c, chunk) in self.nodes.iter().enumerate() {
            for at in 0..NODES {
                if chunk.rows[at].presence == NodePresence::Live {
                    all.push((chunk.rows[at].thing, Node::at(c * NODES + at)));
                }
            }
        }
        if !all.is_sorted() {
            all.sort_unstable();
        }
        all.into_iter().map(|(_, node)| node).collect()
    }

    #[inline]
    pub(crate) fn node(&self, node: Node) -> &NodeRecord {
        &self.nodes.chunk(node.index() / NODES).rows[node.index() % NODES]
    }

    /// The fact number of the object. Answers list nodes in this order.
    pub fn thing(&self, node: Node) -> FactNo {
        self.node(node).thing
    }

    /// The id of the object.
    pub fn id(&self, node: Node) -> Uuid {
        self.node(node).id
    }

    /// The key of the object, if it has one.
    pub fn key(&self, node: Node) -> Option<&str> {
        self.nodes.chunk(node.index() / NODES).key(node.index() % NODES)
    }

    /// The type of the node.
    #[inline]
    pub fn type_no(&self, node: Node) -> TypeNo {
        self.node(node).type_no
    }

    /// The name of its type.
    pub fn type_name(&self, node: Node) -> &Arc<str> {
        self.names.type_name(self.type_no(node))
    }

    /// `Type:key`, or the id if there is no key.
    pub fn name(&self, node: Node) -> String {
        match self.key(node) {
            Some(key) => format!("{}:{key}", self.type_name(node)),
            None => self.id(node).to_string(),
        }
    }

    /// The number of the node's set of labels. 0 is the empty set.
    #[inline]
    pub fn label_set(&self, node: Node) -> u32 {
        self.node(node).labels
    }

    /// The labels of the node, sorted.
    pub fn labels(&self, node: Node) -> &[Arc<str>] {
        self.names.labels(self.label_set(node))
    }

    /// Whether there are ended nodes, which are shown only as ends of lasting relationships.
    pub fn has_ended(&self) -> bool {
        self.ended > 0
    }

    /// Whether the node is visible: not ended, and not a free place.
    #[inline]
    pub fn is_live(&self, node: Node) -> bool {
        self.node(node).presence == NodePresence::Live
    }

    #[inline]
    pub(crate) fn is_free(&self, node: Node) -> bool {
        self.node(node).presence == NodePresence::Free
    }

    /// Whether the node has ended and is shown only as the end of a lasting relationship.
    pub fn is_ended(&self, node: Node) -> bool {
        self.node(node).presence == NodePresence::Ended
    }

    /// The edges that lead out of a node.
    #[inline]
    pub fn outgoing(&self, node: Node) -> EdgeList<'_> {
        self.out.chunk(node.index() / NODES).links(node.index() % NODES)
    }

    /// The edges that lead to a node.
    #[inline]
    pub fn incoming(&self, node: Node) -> EdgeList<'_> {
        self.into.chunk(node.index() / NODES).links(node.index() % NODES)
    }

    /// The number of edges of a node, in both directions.
    pub fn degree(&self, node: Node) -> usize {
        self.outgoing(node).len() + self.incoming(node).len()
    }

    #[inline]
    pub(crate) fn edge(&self, edge: Edge) -> &EdgeRecord {
        &self.edges.chunk(edge.index() / EDGES).rows[edge.index() % EDGES]
    }

    /// The fact number of the relationship.
    pub fn edge_thing(&self, edge: Edge) -> FactNo {
        self.edge(edge).thing
    }

    /// The id of the relationship.
    pub fn edge_id(&self, edge: Edge) -> Uuid {
        self.edge(edge).id
    }

    /// The source and the destination.
    pub fn ends(&self, edge: Edge) -> (Node, Node) {
        let row = self.edge(edge);
        (row.src, row.dst)
    }

    /// The name of the type of the relationship.
    pub fn edge_type(&self, edge: Edge) -> &Arc<str> {
        self.names.type_name(self.edge(edge).type_no)
    }

    /// The recorded confidence, if there is one.
    pub fn confidence(&self, edge: Edge) -> Option<f64> {
        Some(self.edge(edge).confidence).filter(|c| !c.is_nan())
    }

    /// The recorded weight, if there is one.
    pub fn weight(&self, edge: Edge) -> Option<f64> {
        Some(self.edge(edge).weight).filter(|w| !w.is_nan())
    }

    /// When the relationship begins, to the day.
    pub fn since(&self, edge: Edge) -> Time {
        Time(i64::from(self.edge(edge).since) * DAY)
    }

    /// The recorded derivation, if there is one.
    pub fn derivation(&self, edge: Edge) -> Option<&Arc<str>> {
        self.names.derivation(self.edge(edge).derivation)
    }

    /// The names of the properties read so far.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The names of types, labels and derivations.
    pub fn names(&self) -> &NameTable {
        &self.names
    }

    pub(crate) fn place(&self, thing: FactNo) -> Option<FactPlace> {
        let index = thing.index();
        match self.places.get(index / PLACES)?.0[index % PLACES] {
            0 => None,
            place if place & EDGE_TAG != 0 => Some(FactPlace::Edge(Edge((place & !EDGE_TAG) - 1))),
            place => Some(FactPlace::Node(Node(place - 1))),
        }
    }

    /// The node of an object, if it is in the graph.
    pub fn find(&self, thing: FactNo) -> Option<Node> {
        match self.place(thing)? {
            FactPlace::Node(node) => Some(node),
            FactPlace::Edge(_) => None,
        }
    }

    /// The edge of a relationship, if it is in the graph.
    pub fn find_edge(&self, thing: FactNo) -> Option<Edge> {
        match self.place(thing)? {
            FactPlace::Edge(edge) => Some(edge),
            FactPlace::Node(_) => None,
        }
    }

    /// The whole graph as flat arrays. Computed once per snapshot.
    pub fn flat(&self) -> &Arc<FlatGraph> {
        self.beside.flat.get_or_init(|| Arc::new(FlatGraph::of(self)))
    }

    /// Measures the memory of the graph itself, without derived data.
    pub fn memory(&self) -> GraphMemory {
        let around_edges = self.out.bytes() + self.into.bytes() + self.edges.bytes();
        let around_nodes = self.nodes.bytes();
        let bytes = around_edges + around_nodes + self.places.bytes();
        let per = |bytes: usize, count: usize| if count == 0 { 0.0 } else { bytes as f64 / count as f64 };
        GraphMemory {
            bytes,
            bytes_per_node: per(around_nodes, self.live),
            bytes_per_edge: per(around_edges, self.edge_count),
        }
    }

    /// The same graph without derived data.
    pub(crate) fn bare(&self) -> Snapshot {
        Snapshot { beside: Arc::default(), ..self.clone() }
    }

    /// Bytes of derived data and of contents read so far.
    pub fn derived_bytes(&self) -> usize {
        let flat = self.beside.flat.get().map_or(0, |flat| flat.bytes());
        let spread = self.beside.spread.lock().as_ref().map_or(0, |(_, spread)| spread.bytes());
        let read = self.properties.bytes() + self.beside.lookup.bytes();
        let derived: usize = self.beside.derived.lock().iter().map(|derived| derived.bytes()).sum();
        flat + spread + read + derived + self.beside.ranks.get().map_or(0, |ranks| ranks.capacity() * 8)
    }

    /// Bytes that later snapshots of the same build have had to copy so far; see [`Chunked::copied`].
    pub fn copied(&self) -> u64 {
        self.nodes.copied() + self.out.copied() + self.into.copied() + self.edges.copied() + self.places.copied()
    }
}

impl FactPlace {
    pub(crate) fn tagged(self) -> u32 {
        match self {
            FactPlace::Node(node) => node.0 + 1,
            FactPlace::Edge(edge) => (edge.0 + 1) | EDGE_TAG,
        }
    }
}
