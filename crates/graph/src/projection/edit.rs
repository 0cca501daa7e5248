//! Changes of single nodes and edges, which keep places, adjacency and counts consistent.

use super::{Projection, Seen};
use crate::names::Names;
use crate::snapshot::{Adjacency, EDGES, Edge, EdgeChunk, MOST, NODES, Node, NodeChunk, PLACES, Place, Places};
use crate::snapshot::{DAY, EdgeRow, NodeRow, Presence, Snapshot};
use lukasa_model::statement::{Statement, Thing};
use lukasa_model::{Error, ErrorCode, Result, ThingNo, Time};
use serde::Deserialize;
use std::borrow::Cow;
use std::sync::Arc;

/// The fields of a content that the graph keeps. The others stay in the store.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Hot<'a> {
    #[serde(borrow)]
    labels: Vec<Cow<'a, str>>,
    confidence: Option<f64>,
    weight: Option<f64>,
    #[serde(borrow)]
    derivation: Option<Cow<'a, str>>,
}

impl Hot<'_> {
    fn read(text: Option<&str>) -> Result<Hot<'_>> {
        text.map_or_else(
            || Ok(Hot::default()),
            |text| {
                serde_json::from_str(text).map_err(|e| {
                    Error::internal(format!("stored content is not readable: {e}")).hint("run `lukasa verify`")
                })
            },
        )
    }

    /// Most objects have no labels, which the canonical text shows without being parsed.
    fn labels(text: Option<&str>) -> Result<Hot<'_>> {
        Hot::read(text.filter(|t| t.contains("\"labels\":[")))
    }
}

fn day(statement: &Statement) -> u16 {
    let since = if statement.period.from == Time::MIN { statement.recorded_at } else { statement.period.from };
    u16::try_from(since.0.max(0) / DAY).unwrap_or(u16::MAX)
}

fn full() -> Error {
    Error::too_large(ErrorCode::GraphTooLarge, format!("more than {MOST} nodes or edges in one graph"))
}

impl Snapshot {
    pub(super) fn set_place(&mut self, thing: ThingNo, place: Option<Place>) {
        let index = usize::try_from(thing).expect("fact numbers of a graph fit into its memory");
        let (chunk, at) = (index / PLACES, index % PLACES);
        while self.places.len() <= chunk {
            self.places.push(Places::default());
        }
        self.places.chunk_mut(chunk).0[at] = place.map_or(0, Place::tagged);
    }

    /// Records that existing lookups are out of date for this node.
    fn touch(&mut self, node: Node) {
        Arc::make_mut(&mut self.touched).add(node);
    }

    fn node_mut(&mut self, node: Node) -> &mut NodeRow {
        &mut self.nodes.chunk_mut(node.index() / NODES).rows[node.index() % NODES]
    }

    fn edge_mut(&mut self, edge: Edge) -> &mut EdgeRow {
        &mut self.edges.chunk_mut(edge.index() / EDGES).rows[edge.index() % EDGES]
    }

    fn write_node(
        &mut self,
        node: Node,
        thing: &Thing,
        statement: Option<&Statement>,
        presence: Presence,
    ) -> Result<()> {
        let type_no = Names::type_no(&mut self.names, &thing.type_name)?;
        let hot = Hot::labels(statement.and_then(|s| s.content.as_deref()))?;
        let labels = Names::label_set_no(&mut self.names, &hot.labels);
        let chunk = self.nodes.chunk_mut(node.index() / NODES);
        let at = node.index() % NODES;
        chunk.rows[at] = NodeRow { id: thing.id, thing: thing.no, labels, type_no, presence };
        chunk.set_key(at, thing.key.as_deref());
        chunk.forget(at, &self.properties);
        self.touch(node);
        Ok(())
    }

    fn write_edge(&mut self, edge: Edge, statement: &Statement) -> Result<()> {
        let hot = Hot::read(statement.content.as_deref())?;
        let derivation = Names::derivation_no(&mut self.names, hot.derivation.as_deref());
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
    pub(super) fn append_edge(&mut self, thing: &Thing, statement: &Statement, src: Node, dst: Node) -> Result<Edge> {
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

    fn name_edge(&mut self, edge: Edge, thing: &Thing, statement: &Statement, src: Node, dst: Node) -> Result<()> {
        let type_no = Names::type_no(&mut self.names, &thing.type_name)?;
        let row = self.edge_mut(edge);
        (row.id, row.thing, row.src, row.dst, row.type_no) = (thing.id, thing.no, src, dst, type_no);
        self.write_edge(edge, statement)?;
        self.set_place(thing.no, Some(Place::Edge(edge)));
        self.edge_count += 1;
        Ok(())
    }

    pub(super) fn append_node(
        &mut self,
        thing: &Thing,
        statement: Option<&Statement>,
        presence: Presence,
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
        thing: &Thing,
        statement: Option<&Statement>,
        presence: Presence,
    ) -> Result<()> {
        self.write_node(node, thing, statement, presence)?;
        self.set_place(thing.no, Some(Place::Node(node)));
        self.live += usize::from(presence == Presence::Live);
        self.ended += usize::from(presence == Presence::Ended);
        Ok(())
    }

    fn presence(&self, node: Node) -> Presence {
        self.node(node).presence
    }

    fn set_presence(&mut self, node: Node, presence: Presence) {
        let was = self.presence(node);
        self.live -= usize::from(was == Presence::Live);
        self.live += usize::from(presence == Presence::Live);
        self.ended -= usize::from(was == Presence::Ended);
        self.ended += usize::from(presence == Presence::Ended);
        self.node_mut(node).presence = presence;
    }

    /// Adds an edge to the adjacency of both ends, in the order of fact numbers.
    fn tie(&mut self, edge: Edge) {
        let (src, dst) = self.ends(edge);
        let thing = self.edge_thing(edge);
        let type_no = self.edge(edge).type_no;
        let place = |links: crate::snapshot::Links<'_>| links.edges.partition_point(|e| self.edge_thing(*e) < thing);
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
        thing: &Thing,
        statement: Option<&Statement>,
        presence: Presence,
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
                self.add_node(thing, Some(statement), Presence::Live)?;
                Ok(true)
            }
            (Some(node), Some(statement)) => {
                let was = self.snapshot.presence(node);
                let hot = Hot::labels(statement.content.as_deref())?;
                let snapshot = self.edit();
                let labels = Names::label_set_no(&mut snapshot.names, &hot.labels);
                // Copied even if nothing visible changes, because what was read of the row belongs to the older
                // snapshot.
                let chunk = snapshot.nodes.chunk_mut(node.index() / NODES);
                chunk.rows[node.index() % NODES].labels = labels;
                chunk.forget(node.index() % NODES, &snapshot.properties);
                snapshot.touch(node);
                if was != Presence::Live {
                    snapshot.set_presence(node, Presence::Live);
                }
                Ok(was != Presence::Live)
            }
            (Some(node), None) => {
                if self.snapshot.presence(node) == Presence::Live {
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
        snapshot.set_presence(node, Presence::Ended);
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
        if self.snapshot.presence(node) != Presence::Ended || self.snapshot.degree(node) > 0 {
            return;
        }
        let thing = self.snapshot.thing(node);
        let snapshot = self.edit();
        snapshot.set_place(thing, None);
        snapshot.ended -= 1;
        let chunk = snapshot.nodes.chunk_mut(node.index() / NODES);
        chunk.rows[node.index() % NODES] = NodeRow::default();
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
                let live = |node| self.snapshot.presence(node) == Presence::Live;
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
