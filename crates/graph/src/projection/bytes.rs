//! Encodes a projection as bytes and decodes it, so that a new process does not read everything from the store.
//!
//! The bytes contain only the graph itself; contents are read from the store later. They name their transaction and its
//! hash, so that they are used only with the log they were made from.

use super::Projection;
use crate::lookup::ChangedNodes;
use crate::names::NameTable;
use crate::snapshot::{
    EDGES, Edge, EdgeChunk, EdgeRecord, FactPlace, MOST, NODES, Node, NodeChunk, NodePresence, NodeRecord,
};
use crate::snapshot::{Snapshot, TypeNo};
use lukasa_model::{FactNo, Result, Time, Tx, View};
use lukasa_store::Ledger;
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// A projection that is more transactions behind than this is built again, which is no slower than following the log.
const BEHIND: u64 = 256;

impl Projection {
    /// Encodes the graph, under a number that identifies the bytes. Returns `None` while there are free places, because
    /// those are assigned again.
    pub(crate) fn to_bytes(&self, origin: u64, ledger: &Ledger) -> Result<Option<Vec<u8>>> {
        let s = &self.snapshot;
        let loose = !self.free_nodes.is_empty() || !self.free_edges.is_empty() || !self.loose.is_empty();
        let Some(made) = ledger.transactions(s.view.known, s.view.known, 1)?.pop() else { return Ok(None) };
        if loose || s.edge_count != s.edge_places || s.live + s.ended != s.node_places {
            return Ok(None);
        }
        let mut out = ByteWriter(Vec::with_capacity(s.node_places * 96 + s.edge_places * 56));
        out.u64(origin);
        out.u64(s.view.known.0);
        out.0.extend(made.hash.0);
        out.u64(u64::from(s.view.branch.0));
        for time in [s.view.valid, s.until] {
            out.u64(time.0.cast_unsigned());
        }
        for number in [self.next_thing.0, s.touches(), s.node_places as u64, s.edge_places as u64] {
            out.u64(number);
        }
        out.u64(self.agenda.len() as u64);
        for (due, thing) in &self.agenda {
            out.u64(due.0.cast_unsigned());
            out.u64(thing.0);
        }
        s.names.write(&mut out);
        for node in s.all_places() {
            let NodeRecord { id, thing, labels, type_no, presence } = s.node(node);
            out.0.extend(id.as_bytes());
            out.u64(thing.0);
            out.u32(*labels);
            out.u32(u32::from(type_no.0) << 8 | u32::from(*presence == NodePresence::Live));
            out.text(s.key(node));
        }
        for edge in (0..s.edge_places).map(Edge::at) {
            let EdgeRecord { id, thing, confidence, weight, src, dst, derivation, since, type_no } = s.edge(edge);
            out.0.extend(id.as_bytes());
            for number in [thing.0, confidence.to_bits(), weight.to_bits()] {
                out.u64(number);
            }
            for number in [src.0, dst.0, *derivation, u32::from(*since) << 16 | u32::from(type_no.0)] {
                out.u32(number);
            }
        }
        Ok(Some(out.0))
    }

    /// Decodes a graph and advances it to a view. Returns `None` if the bytes are of another log or branch, are too far
    /// behind, or are damaged.
    pub(crate) fn of_bytes(bytes: &[u8], ledger: &Ledger, view: &View) -> Result<Option<Projection>> {
        let mut from = ByteReader(bytes);
        let Some(head) = Head::read(&mut from) else { return Ok(None) };
        let fits = head.branch == u64::from(view.branch.0) && head.known <= view.known && head.valid <= view.valid;
        if !fits || view.known.since(head.known) > BEHIND {
            return Ok(None);
        }
        let made = ledger.transactions(head.known, head.known, 1)?.pop();
        if made.is_none_or(|made| made.hash.0 != head.hash) || ledger.head()?.next_thing < head.next_thing {
            return Ok(None);
        }
        let registry = ledger.registry_known(head.known)?;
        let then = ledger.view_fixed(view.branch, head.known, head.valid)?;
        let snapshot = Snapshot::empty(&then, registry);
        let Some(mut projection) = head.fill(snapshot, &mut from) else { return Ok(None) };
        Ok(projection.advance(ledger, view)?.then_some(projection))
    }
}

/// The header, before names, nodes and edges.
struct Head {
    origin: u64,
    known: Tx,
    hash: [u8; 32],
    branch: u64,
    valid: Time,
    until: Time,
    next_thing: FactNo,
    touches: u64,
    nodes: usize,
    edges: usize,
    agenda: BTreeSet<(Time, FactNo)>,
}

impl Head {
    fn read(from: &mut ByteReader<'_>) -> Option<Head> {
        let (origin, known, hash) = (from.u64()?, Tx(from.u64()?), *from.bytes::<32>()?);
        let (branch, valid, until) = (from.u64()?, Time(from.u64()?.cast_signed()), Time(from.u64()?.cast_signed()));
        let (next_thing, touches) = (FactNo(from.u64()?), from.u64()?);
        let (nodes, edges) = (usize::try_from(from.u64()?).ok()?, usize::try_from(from.u64()?).ok()?);
        // Checked against the number of bytes before any memory is reserved.
        if nodes.max(edges) > MOST || nodes.max(edges) > from.0.len() {
            return None;
        }
        let mut agenda = BTreeSet::new();
        for _ in 0..from.u64()? {
            agenda.insert((Time(from.u64()?.cast_signed()), FactNo(from.u64()?)));
        }
        Some(Head { origin, known, hash, branch, valid, until, next_thing, touches, nodes, edges, agenda })
    }

    fn fill(self, mut s: Snapshot, from: &mut ByteReader<'_>) -> Option<Projection> {
        let names = NameTable::read(from)?;
        for first in (0..self.nodes).step_by(NODES) {
            let mut chunk = NodeChunk::default();
            for at in 0..NODES.min(self.nodes - first) {
                let (id, thing, labels, packed) =
                    (Uuid::from_bytes(*from.bytes()?), FactNo(from.u64()?), from.u32()?, from.u32()?);
                let presence = if packed & 1 == 1 { NodePresence::Live } else { NodePresence::Ended };
                let type_no = TypeNo(u16::try_from(packed >> 8).ok()?);
                if thing >= self.next_thing || !names.has(type_no, labels, 0) {
                    return None;
                }
                chunk.rows[at] = NodeRecord { id, thing, labels, type_no, presence };
                chunk.append_key(at, from.text()?);
                s.set_place(thing, Some(FactPlace::Node(Node::at(first + at))));
                s.live += usize::from(presence == NodePresence::Live);
                s.ended += usize::from(presence == NodePresence::Ended);
            }
            s.nodes.push(chunk);
        }
        for first in (0..self.edges).step_by(EDGES) {
            let mut chunk = EdgeChunk::default();
            for at in 0..EDGES.min(self.edges - first) {
                let (id, thing) = (Uuid::from_bytes(*from.bytes()?), FactNo(from.u64()?));
                let (confidence, weight) = (f64::from_bits(from.u64()?), f64::from_bits(from.u64()?));
                let (src, dst) = (Node(from.u32()?), Node(from.u32()?));
                let (derivation, packed) = (from.u32()?, from.u32()?);
                let (since, type_no) = ((packed >> 16) as u16, TypeNo((packed & 0xffff) as u16));
                let ends = src.max(dst).index();
                if thing >= self.next_thing || ends >= self.nodes || !names.has(type_no, 0, derivation) {
                    return None;
                }
                chunk.rows[at] = EdgeRecord { id, thing, confidence, weight, src, dst, derivation, since, type_no };
                s.set_place(thing, Some(FactPlace::Edge(Edge::at(first + at))));
            }
            s.edges.push(chunk);
        }
        if !from.0.is_empty() {
            return None;
        }
        (s.node_places, s.edge_places, s.edge_count) = (self.nodes, self.edges, self.edges);
        (s.names, s.until, s.origin) = (Arc::new(names), self.until, Some(self.origin));
        s.touched = Arc::new(ChangedNodes::so_many(self.touches));
        s.lay_out();
        Some(Projection {
            snapshot: Arc::new(s),
            agenda: self.agenda,
            next_thing: self.next_thing,
            free_nodes: vec![],
            free_edges: vec![],
            loose: vec![],
        })
    }
}

/// An encoder: numbers are little-endian, texts follow their length.
pub(crate) struct ByteWriter(pub Vec<u8>);

impl ByteWriter {
    pub fn u32(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    /// `None` is distinct from an empty text.
    pub fn text(&mut self, text: Option<&str>) {
        let length = text.map_or(0, |text| text.len() + 1);
        self.u32(u32::try_from(length).expect("names and keys are shorter than 4 GB"));
        self.0.extend(text.unwrap_or_default().as_bytes());
    }
}

/// A decoder. Its methods return `None` if there are too few bytes.
pub(crate) struct ByteReader<'b>(&'b [u8]);

impl<'b> ByteReader<'b> {
    fn bytes<const N: usize>(&mut self) -> Option<&'b [u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.bytes().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes().map(|bytes| u64::from_le_bytes(*bytes))
    }

    pub fn text(&mut self) -> Option<Option<&'b str>> {
        let Some(length) = self.u32()?.checked_sub(1) else { return Some(None) };
        let (text, rest) = self.0.split_at_checked(length as usize)?;
        self.0 = rest;
        std::str::from_utf8(text).ok().map(Some)
    }
}
