//! Changes of single nodes and edges, which keep places, adjacency and counts consistent.

use super::{Projection, Seen};
use crate::names::NameTable;
use crate::snapshot::{Adjacency, EDGES, Edge, EdgeChunk, FactPlace, MOST, NODES, Node, NodeChunk, PLACES, PlaceChunk};
use crate::snapshot::{DAY, EdgeRecord, NodePresence, NodeRecord, Snapshot};
use lukasa_model::version::{Fact, Version};
use lukasa_model::{Error, ErrorCode, FactNo, Result, Time};
use serde::Deserialize;
use std::borrow::Cow;
use std::sync::Arc;

/// The fields of a content that the graph keeps. The others stay in the store.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct GraphFields<'a> {
    #[serde(borrow)]
    labels: Vec<Cow<'a, str>>,
    confidence: Option<f64>,
    weight: Option<f64>,
    #[serde(borrow)]
    derivation: Option<Cow<'a, str>>,
}

impl GraphFields<'_> {
    fn read(text: Option<&str>) -> Result<GraphFields<'_>> {
        text.map_or_else(
            || Ok(GraphFields::default()),
            |text| {
                serde_json::from_str(text).map_err(|e| {
                    Error::internal(format!("stored content is not readable: {e}")).hint("run `lukasa verify`")
                })
            },
        )
    }

    /// Most objects have no labels, which the canonical text shows without being parsed.
    fn labels(text: Option<&str>) -> Result<GraphFields<'_>> {
        GraphFields::read(text.filter(|t| t.contains("\"labels\":[")))
    }
}

fn day(statement: &Version) -> u16 {
    let since = if statement.period.from == Time::MIN { statement.recorded_at } else { statement.period.from };
    u16::try_from(since.0.max(0) / DAY).unwrap_or(u16::MAX)
}

fn full() -> Error {
    Error::too_large(ErrorCode::GraphTooLarge, format!("more than {MOST} nodes or edges in one graph"))
}

impl Snapshot {
    pub(super) fn set_place(&mut self, thing: FactNo, place: Option<FactPlace>) {
        let index = thing.index();
        let (chunk, at) = (index / PLACES, index % PLACES);
        while self.places.len() <= chunk {
            self.places.push(PlaceChunk::default());
        }
        self.places.chunk_mut(chunk).0[at] = place.map_or(0, FactPlace::tagged);
    }

    /// Records that existing lookups are out of date for this node.
    fn touch(&mut self, node: Node) {
        Arc::make_mut(&mut self.touched).add(node);
    }

    fn node_mut(&mut self, node: Node) -> &mut NodeRecord {
        &mut self.nodes.chunk_mut(node.index() / NODES).rows[node.index() % NODES]
    }

    fn edge_mut(&mut self, edge: Edge) -> &mut EdgeRecord {
        &mut self.edges.chunk_mut(edge.index() / EDGES).rows[edge.index() % EDGES]
    }

    fn write_node(
        &mut self,
        node: Node,
        thing: &Fact,
        statement: Option<&Version>,
        presence: NodePresence,
    ) -> Result<()> {
        let type_no = NameTable::type_no(&mut self.names, &thing.type_name)?;
        let hot = GraphFields::labels(statement.and_then(|s| s.content.as_deref()))?;
        let labels = NameTable::label_set_no(&mut self.names, &hot.labels);
        let chunk = self.nodes.chunk_mut(node.index() / NODES);
        let at = node.index() % NODES;
        chunk.rows[at] = NodeRecord { id: thing.id, thing: thing.no, labels, type_no, presence };
        chunk.set_key(at, thing.key.as_deref());
        chunk.forget(at, &self.properties);
        self.touch(node);
        Ok(())
    }

    fn write_edge(&mut self, edge: Edge, statement: &Version) -> Result<()> {
        let hot = GraphFields::read(statement.content.as_deref())?;
        let derivation = NameTable::derivation_no(&mut self.names, hot.derivation.as_deref());
        let chunk = self.edges.chunk_mut(edge.index() / EDGES);
        self.properties.forgot_edge(chunk.contents.forget(edge.index() % EDGES));
        let row = &mut chunk.rows[edge.index() % EDGES];
        row.confidence = hot.confidence.unwrap_or(f64::NAN);
        row.weight = hot.weight.unwrap_or(f64::NAN);
        row.since = day(statement);
        row.derivation = derivation;
        Ok(())
    }

    /// Adds a row to the edges without adding it to the adjacency of its ends.
    pub(super) fn append_edge(&mut self, thing: &Fact, statement: &Version, src: Node, dst: Node) -> Result<Edge> {
        let edge = self.edge_places;
        if edge >= MOST {
            return Err(full());
        }
        if edge / EDGES == self.edges.len() {
            self.edges.push(EdgeChunk::default());
        }
        self.edge_places += 1;
        let edge = Edge::at(edge);
        self.name_edge(edge, thing, statement, src, dst)?;
        Ok(edge)
    }

    fn name_edge(&mut self, edge: Edge, thing: &Fact, statement: &Version, src: Node, dst: Node) -> Result<()> {
        let type_no = NameTable::type_no(&mut self.names, &thing.type_name)?;
        let row = self.edge_mut(edge);
        (row.id, row.thing, row.src, row.dst, row.type_no) = (thing.id, thing.no, src, dst, type_no);
        self.write_edge(edge, statement)?;
        self.set_place(thing.no, Some(FactPlace::Edge(edge)));
        self.edge_count += 1;
        Ok(())
    }

    pub(super) fn append_node(
        &mut self,
        thing: &Fact,
        statement: Option<&Version>,
        presence: NodePresence,
    ) -> Result<Node> {
        let node = self.node_places;
        if node >= MOST {
            return Err(full());
        }
        if node / NODES == self.nodes.len() {
            self.nodes.push(NodeChunk::default());
            self.out.push(Adjacency::default());
            self.into.push(Adjacency::default());
        }
        self.node_places += 1;
        let node = Node::at(node);
        self.enter_node(node, thing, statement, presence)?;
        Ok(node)
    }

    fn enter_node(
        &mut self,
        node: Node,
        thing: &Fact,
        statement: Option<&Version>,
        presence: NodePresence,
    ) -> Result<()> {
        self.write_node(node, thing, statement, presence)?;
        self.set_place(thing.no, Some(FactPlace::Node(node)));
        self.live += usize::from(presence == NodePresence::Live);
        self.ended += usize::from(presence == NodePresence::Ended);
        Ok(())
    }

    fn presence(&self, node: Node) -> NodePresence {
        self.node(node).presence
    }

    fn set_presence(&mut self, node: Node, presence: NodePresence) {
        let was = self.presence(node);
        self.live -= usize::from(was == NodePresence::Live);
        self.live += usize::from(presence == NodePresence::Live);
        self.ended -= usize::from(was == NodePresence::Ended);
        self.ended += usize::from(presence == NodePresence::Ended);
        self.node_mut(node).presence = presence;
    }

    /// Adds an edge to the adjacency of both ends, in the order of fact numbers.
    fn tie(&mut self, edge: Edge) {
        let (src, dst) = self.ends(edge);
        let thing = self.edge_thing(edge);
        let type_no = self.edge(edge).type_no;
        let place = |links: crate::snapshot::EdgeList<'_>| links.edges.partition_point(|e| self.edge_thing(*e) < thing);
        let (after, before) = (place(self.outgoing(src)), place(self.incoming(dst)));
        self.out.chunk_mut(src.index() / NODES).insert(src.index() % NODES, after, dst, edge, type_no);
        self.into.chunk_mut(dst.index() / NODES).insert(dst.index() % NODES, before, src, edge, type_no);
    }

    fn untie(&mut self, edge: Edge) {
        let (src, dst) = self.ends(edge);
        self.out.chunk_mut(src.index() / NODES).remove(src.index() % NODES, edge);
        self.into.chunk_mut(dst.index() / NODES).remove(dst.index() % NODES, edge);
    }
}

impl Projection {
    fn edit(&mut self) -> &mut Snapshot {
        Arc::make_mut(&mut self.snapshot)
    }

    pub(super) fn add_node(
        &mut self,
        thing: &Fact,
        statement: Option<&Version>,
        presence: NodePresence,
    ) -> Result<Node> {
        match self.free_nodes.pop() {
            Some(node) => self.edit().enter_node(node, thing, statement, presence).map(|()| node),
            None => self.edit().append_node(thing, statement, presence),
        }
    }

    /// Updates a node to its visible state. Returns `true` if it is new: then it may have relationships that were
    /// hidden before.
    pub(super) fn set_node(&mut self, seen: &Seen) -> Result<bool> {
        match (self.snapshot.find(seen.no), &seen.statement) {
            (None, None) => Ok(false),
            (None, Some(statement)) => {
                let thing = seen.thing.as_ref().ok_or_else(|| Error::internal("a new node has no type and key"))?;
                self.add_node(thing, Some(statement), NodePresence::Live)?;
                Ok(true)
            }
            (Some(node), Some(statement)) => {
                let was = self.snapshot.presence(node);
                let hot = GraphFields::labels(statement.content.as_deref())?;
                let snapshot = self.edit();
                let labels = NameTable::label_set_no(&mut snapshot.names, &hot.labels);
                // Copied even if nothing visible changes, because what was read of the row belongs to the older
                // snapshot.
                let chunk = snapshot.nodes.chunk_mut(node.index() / NODES);
                chunk.rows[node.index() % NODES].labels = labels;
                chunk.forget(node.index() % NODES, &snapshot.properties);
                snapshot.touch(node);
                if was != NodePresence::Live {
                    snapshot.set_presence(node, NodePresence::Live);
                }
                Ok(was != NodePresence::Live)
            }
            (Some(node), None) => {
                if self.snapshot.presence(node) == NodePresence::Live {
                    self.end_node(node);
                }
                Ok(false)
            }
        }
    }

    fn end_node(&mut self, node: Node) {
        let ties = [self.snapshot.outgoing(node), self.snapshot.incoming(node)];
        let mut edges: Vec<Edge> = ties.iter().flat_map(|links| links.edges.iter().copied()).collect();
        edges.sort_unstable();
        edges.dedup();
        let registry = Arc::clone(&self.snapshot.registry);
        let snapshot = self.edit();
        snapshot.set_presence(node, NodePresence::Ended);
        snapshot.node_mut(node).labels = 0;
        let chunk = snapshot.nodes.chunk_mut(node.index() / NODES);
        chunk.forget(node.index() % NODES, &snapshot.properties);
        snapshot.touch(node);
        for edge in edges {
            if !registry.is_lasting(self.snapshot.edge_type(edge)) {
                self.remove_edge(edge);
            }
        }
        self.loose.push(node);
    }

    /// Frees ended nodes that no relationship shows any more. Called once all edges are updated.
    pub(super) fn release_loose(&mut self) {
        for node in std::mem::take(&mut self.loose) {
            self.release(node);
        }
    }

    fn release(&mut self, node: Node) {
        if self.snapshot.presence(node) != NodePresence::Ended || self.snapshot.degree(node) > 0 {
            return;
        }
        let thing = self.snapshot.thing(node);
        let snapshot = self.edit();
        snapshot.set_place(thing, None);
        snapshot.ended -= 1;
        let chunk = snapshot.nodes.chunk_mut(node.index() / NODES);
        chunk.rows[node.index() % NODES] = NodeRecord::default();
        chunk.set_key(node.index() % NODES, None);
        chunk.forget(node.index() % NODES, &snapshot.properties);
        self.free_nodes.push(node);
    }

    fn remove_edge(&mut self, edge: Edge) {
        let thing = self.snapshot.edge_thing(edge);
        let (src, dst) = self.snapshot.ends(edge);
        let snapshot = self.edit();
        snapshot.untie(edge);
        snapshot.set_place(thing, None);
        snapshot.edge_count -= 1;
        self.free_edges.push(edge);
        self.loose.extend([src, dst]);
    }

    /// Updates an edge to its visible state. Its ends must be updated already.
    pub(super) fn set_edge(&mut self, seen: &Seen) -> Result<()> {
        match (self.snapshot.find_edge(seen.no), &seen.statement) {
            (None, None) => Ok(()),
            (Some(edge), None) => {
                self.remove_edge(edge);
                Ok(())
            }
            (Some(edge), Some(statement)) => self.edit().write_edge(edge, statement),
            (None, Some(statement)) => {
                // An edge that is missing now was removed together with one of its ends.
                let Some(thing) = &seen.thing else { return Ok(()) };
                let Some(ends) = &thing.ends else { return Ok(()) };
                let (src, dst) = (self.snapshot.find(ends.src), self.snapshot.find(ends.dst));
                let (Some(src), Some(dst)) = (src, dst) else { return Ok(()) };
                let live = |node| self.snapshot.presence(node) == NodePresence::Live;
                if !(live(src) && live(dst) || self.snapshot.registry.is_lasting(&thing.type_name)) {
                    return Ok(());
                }
                let edge = match self.free_edges.pop() {
                    Some(edge) => {
                        self.edit().name_edge(edge, thing, statement, src, dst)?;
                        edge
                    }
                    None => self.edit().append_edge(thing, statement, src, dst)?,
                };
                self.edit().tie(edge);
                Ok(())
            }
        }
    }
}
