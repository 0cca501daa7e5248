//! Builds a projection from everything visible in a view.

use super::Projection;
use crate::chunked::Chunked;
use crate::snapshot::{Adjacency, Edge, NODES, Node, NodePresence, Snapshot, TypeNo};
use lukasa_model::types::{Registry, system};
use lukasa_model::{Result, Time, View};
use lukasa_store::ledger::ViewRow;
use lukasa_store::{Ledger, VersionFields};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

/// Pages of rows that are read ahead.
const AHEAD: usize = 4;

static BUILDS: AtomicU64 = AtomicU64::new(1);

impl Projection {
    /// Reads everything visible in the view. `progress` is called with the number of facts processed and their total.
    pub fn build(ledger: &Ledger, view: &View, progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<Projection> {
        let registry = ledger.registry_known(view.known)?;
        let next_thing = ledger.head()?.next_thing;
        let mut stream = ledger.stream_view(view, VersionFields::Content)?;
        let things = stream.fact_bound();
        let mut growing = Growing::new(view, ledger, registry);
        let mut agenda = std::collections::BTreeSet::new();
        // One thread reads the store while this one processes the rows.
        std::thread::scope(|scope| -> Result<()> {
            let (send, receive) = sync_channel(AHEAD);
            scope.spawn(move || {
                loop {
                    let page = stream.next_page();
                    let last = !matches!(page, Ok(Some(_)));
                    let upcoming = stream.upcoming();
                    // Sending fails only if the receiver has failed and is gone.
                    if send.send((page, upcoming)).is_err() || last {
                        return;
                    }
                }
            });
            for (page, upcoming) in receive {
                agenda.extend(upcoming);
                let Some(rows) = page? else { break };
                if let Some(last) = rows.last() {
                    progress(last.thing.no.0, Some(things.0));
                }
                growing.take_in(rows)?;
            }
            Ok(())
        })?;
        let until = agenda.first().map_or(Time::MAX, |(due, _)| *due);
        let snapshot = growing.finish(until);
        let (free_nodes, free_edges) = (vec![], vec![]);
        Ok(Projection { snapshot: Arc::new(snapshot), agenda, next_thing, free_nodes, free_edges, loose: vec![] })
    }
}

/// Collects nodes and edges in the order they are read. Adjacency is laid out at the end, when degrees are known.
struct Growing<'a> {
    ledger: &'a Ledger,
    snapshot: Snapshot,
}

impl<'a> Growing<'a> {
    fn new(view: &View, ledger: &'a Ledger, registry: Arc<Registry>) -> Growing<'a> {
        Growing { ledger, snapshot: Snapshot::empty(view, registry) }
    }

    fn take_in(&mut self, rows: Vec<ViewRow>) -> Result<()> {
        let ended = rows.iter().filter(|row| row.src_ended || row.dst_ended);
        let mut stubs: Vec<_> = ended
            .filter_map(|row| row.thing.ends.as_ref().map(|ends| (row, ends)))
            .flat_map(|(row, ends)| [row.src_ended.then_some(ends.src), row.dst_ended.then_some(ends.dst)])
            .flatten()
            .filter(|no| self.snapshot.find(*no).is_none())
            .collect();
        stubs.sort_unstable();
        stubs.dedup();
        if !stubs.is_empty() {
            let mut things = self.ledger.facts(&stubs)?;
            things.sort_unstable_by_key(|t| t.no);
            for thing in things.into_iter().filter(|t| !system::is(&t.type_name)) {
                self.snapshot.append_node(&thing, None, NodePresence::Ended)?;
            }
        }
        for row in rows.iter().filter(|row| !row.is_system()) {
            match &row.thing.ends {
                None => drop(self.snapshot.append_node(&row.thing, Some(&row.statement), NodePresence::Live)?),
                Some(ends) => {
                    // Lukasa's own objects are not in the graph, so nothing new can be connected to them.
                    let (Some(src), Some(dst)) = (self.snapshot.find(ends.src), self.snapshot.find(ends.dst)) else {
                        continue;
                    };
                    self.snapshot.append_edge(&row.thing, &row.statement, src, dst)?;
                }
            }
        }
        Ok(())
    }

    fn finish(mut self, until: Time) -> Snapshot {
        for chunk in 0..self.snapshot.nodes.len() {
            self.snapshot.nodes.chunk_mut(chunk).shrink();
        }
        self.snapshot.lay_out();
        self.snapshot.until = until;
        self.snapshot
    }
}

impl Snapshot {
    /// A graph without nodes.
    pub(super) fn empty(view: &View, registry: Arc<Registry>) -> Snapshot {
        Snapshot {
            view: view.clone(),
            registry,
            until: Time::MAX,
            nodes: Chunked::default(),
            out: Chunked::default(),
            into: Chunked::default(),
            edges: Chunked::default(),
            places: Chunked::default(),
            names: Arc::default(),
            properties: Arc::default(),
            touched: Arc::default(),
            live: 0,
            ended: 0,
            node_places: 0,
            edge_count: 0,
            edge_places: 0,
            beside: Arc::default(),
            build: BUILDS.fetch_add(1, Ordering::Relaxed),
            origin: None,
        }
    }

    /// Builds the adjacency of all nodes, once all edges are read.
    pub(super) fn lay_out(&mut self) {
        self.out = lay_out(self, |src, _| src, |_, dst| dst);
        self.into = lay_out(self, |_, dst| dst, |src, _| src);
    }
}

/// Sorts all edges by one end. Edges are read in order of fact numbers and keep that order within a node.
fn lay_out(
    snapshot: &Snapshot,
    at: impl Fn(Node, Node) -> Node,
    other: impl Fn(Node, Node) -> Node,
) -> Chunked<Adjacency> {
    let places = snapshot.nodes.len() * NODES;
    let mut next = vec![0u32; places + 1];
    let all = || {
        (0..snapshot.edge_places).map(|edge| {
            let edge = Edge::at(edge);
            let row = snapshot.edge(edge);
            (edge, row.src, row.dst, row.type_no)
        })
    };
    for (_, src, dst, _) in all() {
        next[at(src, dst).index() + 1] += 1;
    }
    for i in 0..places {
        next[i + 1] += next[i];
    }
    let starts: Vec<u32> = next.clone();
    let total = snapshot.edge_places;
    let (mut nodes, mut edges, mut types) = (vec![Node(0); total], vec![Edge(0); total], vec![TypeNo(0); total]);
    for (edge, src, dst, type_no) in all() {
        let place = &mut next[at(src, dst).index()];
        let i = *place as usize;
        nodes[i] = other(src, dst);
        edges[i] = edge;
        types[i] = type_no;
        *place += 1;
    }
    (0..snapshot.nodes.len())
        .map(|chunk| {
            let first = starts[chunk * NODES];
            let last = starts[(chunk + 1) * NODES];
            let ends = std::array::from_fn(|i| starts[chunk * NODES + i + 1] - first);
            let range = first as usize..last as usize;
            Adjacency::new(ends, &nodes[range.clone()], &edges[range.clone()], &types[range])
        })
        .collect()
}
