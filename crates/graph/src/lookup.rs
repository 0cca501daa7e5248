//! Lookups in a snapshot: nodes by label and by the value of a property. They are built on first use, and carried over
//! to later snapshots while few nodes change.

use crate::contents::{PropertyNo, PropertyReader};
use crate::cypher::value::{GroupKey, Value, order};
use crate::snapshot::{Node, NodePresence, Snapshot, SnapshotCache};
use lukasa_model::Result;
use parking_lot::Mutex;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::any::Any;
use std::hash::BuildHasher;
use std::sync::Arc;

/// The nodes that changed since lookups may have been built. After a few thousand, lookups are built again.
#[derive(Clone, Default)]
pub struct ChangedNodes {
    epoch: u64,
    nodes: Vec<Node>,
    /// The latest changed nodes, and how many older ones were dropped. For derived data, which is updated over more
    /// changes.
    log: Vec<Node>,
    forgotten: u64,
}

const MOST_TOUCHED: usize = 4_096;
/// The most nodes in the log of changed nodes.
const MOST_LOGGED: usize = 1 << 16;

impl ChangedNodes {
    /// A log that counts this many changes but holds none of them.
    pub(crate) fn so_many(forgotten: u64) -> ChangedNodes {
        ChangedNodes { forgotten, ..ChangedNodes::default() }
    }

    pub(crate) fn add(&mut self, node: Node) {
        if self.nodes.len() == MOST_TOUCHED {
            self.nodes.clear();
            self.epoch += 1;
        }
        self.nodes.push(node);
        if self.log.len() == MOST_LOGGED {
            self.log.drain(..MOST_LOGGED / 2);
            self.forgotten += MOST_LOGGED as u64 / 2;
        }
        self.log.push(node);
    }
}

/// Derived data that another module computes from a whole snapshot and keeps with it.
pub trait SnapshotDerived: Any + Send + Sync {
    /// Bytes that it takes.
    fn bytes(&self) -> usize;
}

impl Snapshot {
    /// The derived data of this type. It may be computed from an earlier snapshot; see [`Snapshot::touched_since`].
    pub fn derived<T: SnapshotDerived>(&self) -> Option<Arc<T>> {
        let kept = self.beside.derived.lock();
        kept.iter().find_map(|derived| (Arc::clone(derived) as Arc<dyn Any + Send + Sync>).downcast::<T>().ok())
    }

    /// Keeps derived data with this snapshot and all later ones, in place of any of the same type.
    pub fn keep<T: SnapshotDerived>(&self, value: Arc<T>) {
        let mut kept = self.beside.derived.lock();
        kept.retain(|derived| (&**derived as &dyn Any).downcast_ref::<T>().is_none());
        kept.push(value);
    }

    /// How many times a node changed since the graph was built.
    pub fn touches(&self) -> u64 {
        self.touched.forgotten + self.touched.log.len() as u64
    }

    /// Nodes that appeared, ended or changed since the count of changes was `touches`. A node may occur twice. `None`
    /// if that is too long ago.
    pub fn touched_since(&self, touches: u64) -> Option<&[Node]> {
        let from = touches.checked_sub(self.touched.forgotten)?;
        self.touched.log.get(usize::try_from(from).ok()?..)
    }
}

/// Nodes by the hash of a property's value.
pub struct Index {
    epoch: u64,
    /// How many of the touched nodes were known when it was built.
    seen: usize,
    /// Hash and node, sorted.
    places: Vec<(u64, Node)>,
    /// The number of different hashes.
    values: usize,
}

impl Index {
    /// The average number of nodes per value.
    pub fn selectivity(&self) -> f64 {
        self.places.len() as f64 / self.values.max(1) as f64
    }
}

/// Values of a property by the place of the node, for properties that are read often after all nodes have been read.
pub struct Column {
    epoch: u64,
    seen: usize,
    values: Vec<Value>,
}

impl Column {
    /// The value of a node, or null.
    #[inline]
    pub fn of(&self, node: Node) -> &Value {
        &self.values[node.index()]
    }
}

/// Graphs with fewer nodes are fast enough without columns.
const WORTH: usize = 256;

/// Counts of nodes and edges by type. They are good enough for planning, even if they are some commits old.
#[derive(Clone, Default)]
pub struct Stats {
    pub nodes: usize,
    pub edges: usize,
    /// Nodes by [`TypeNo`].
    pub by_type: Vec<usize>,
    /// Nodes by the number of their set of labels.
    pub by_label_set: Vec<usize>,
    /// Edges by [`TypeNo`].
    pub by_edge_type: Vec<usize>,
}

/// How often an order was requested, and the order once it was requested often.
type Sorted = (u32, Option<Arc<Vec<Node>>>);

#[derive(Default)]
pub(crate) struct LookupCache {
    properties: Mutex<FxHashMap<PropertyNo, Arc<Index>>>,
    columns: Mutex<FxHashMap<PropertyNo, Arc<Column>>>,
    /// How often a property was requested.
    asked: Mutex<FxHashMap<PropertyNo, u32>>,
    labels: Mutex<FxHashMap<String, Arc<Vec<Node>>>>,
    /// Nodes of a label in the order of a property.
    orders: Mutex<FxHashMap<(String, PropertyNo), Sorted>>,
    stats: Mutex<Option<Arc<Stats>>>,
}

/// How often an order must be requested in one snapshot before it is kept.
const OFTEN: u32 = 3;
/// More nodes than this take longer to sort than a query may run past its deadline.
const MOST_ORDERED: usize = 200_000;

impl LookupCache {
    pub fn bytes(&self) -> usize {
        let indexes: usize = self.properties.lock().values().map(|i| i.places.capacity() * 16).sum();
        let columns: usize = self.columns.lock().values().map(|c| c.values.capacity() * size_of::<Value>()).sum();
        let orders: usize = self.orders.lock().values().flat_map(|(_, o)| o).map(|o| o.capacity() * 4).sum();
        indexes + columns + orders + self.labels.lock().values().map(|l| l.capacity() * 4).sum::<usize>()
    }
}

impl SnapshotCache {
    /// The derived data that is still valid after the graph has advanced.
    pub(crate) fn carried(&self, touched: &ChangedNodes) -> SnapshotCache {
        let mut properties = self.lookup.properties.lock().clone();
        properties.retain(|_, index| index.epoch == touched.epoch);
        let stats = self.lookup.stats.lock().clone();
        let mut columns = self.lookup.columns.lock().clone();
        columns.retain(|_, column| column.epoch == touched.epoch);
        let lookup = LookupCache {
            properties: Mutex::new(properties),
            columns: Mutex::new(columns),
            asked: Mutex::new(self.lookup.asked.lock().clone()),
            labels: Mutex::default(),
            orders: Mutex::default(),
            stats: Mutex::new(stats),
        };
        let derived = Mutex::new(self.derived.lock().clone());
        SnapshotCache { lookup, derived, ..SnapshotCache::default() }
    }
}

fn hash(value: &Value) -> u64 {
    FxBuildHasher.hash_one(KeyRef(value))
}

struct KeyRef<'a>(&'a Value);

impl std::hash::Hash for KeyRef<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        GroupKey::hash_of(self.0, state);
    }
}

impl Snapshot {
    /// Approximate counts of nodes and edges.
    pub fn stats(&self) -> Arc<Stats> {
        let mut kept = self.beside.lookup.stats.lock();
        let near = |a: usize, b: usize| a.abs_diff(b) <= b / 10;
        if let Some(stats) = &*kept
            && near(self.live, stats.nodes)
            && near(self.edge_count, stats.edges)
            && stats.by_type.len() == self.names.types().len()
            && stats.by_label_set.len() == self.names.label_sets()
        {
            return Arc::clone(stats);
        }
        let mut stats = Stats { nodes: self.live, edges: self.edge_count, ..Stats::default() };
        stats.by_type.resize(self.names.types().len(), 0);
        stats.by_edge_type.resize(self.names.types().len(), 0);
        stats.by_label_set.resize(self.names.label_sets(), 0);
        for chunk in self.nodes.iter() {
            for row in chunk.rows.iter().filter(|row| row.presence == NodePresence::Live) {
                stats.by_type[row.type_no.index()] += 1;
                stats.by_label_set[row.labels as usize] += 1;
            }
        }
        for node in self.all_places() {
            self.outgoing(node).types.iter().for_each(|t| stats.by_edge_type[t.index()] += 1);
        }
        let stats = Arc::new(stats);
        *kept = Some(Arc::clone(&stats));
        stats
    }

    /// Every node, ended ones too, for which `fits` returns true. The list is cached under `name`.
    pub(crate) fn labelled(&self, name: &str, fits: impl Fn(Node) -> bool) -> Arc<Vec<Node>> {
        if let Some(found) = self.beside.lookup.labels.lock().get(name) {
            return Arc::clone(found);
        }
        let there = |node: &Node| self.node(*node).presence != NodePresence::Free;
        let found: Arc<Vec<Node>> = Arc::new(self.all_places().filter(there).filter(|n| fits(*n)).collect());
        self.beside.lookup.labels.lock().insert(name.to_owned(), Arc::clone(&found));
        found
    }

    /// Whether every node has a label.
    pub(crate) fn all_labelled(&self, name: &str, fits: impl Fn(Node) -> bool) -> bool {
        self.labelled(name, fits).len() == self.live + self.ended
    }

    /// The values of a property, if it was requested before and all nodes have been read. `rest` is called regularly
    /// and can stop the work with an error.
    pub fn column<E: From<lukasa_model::Error>>(
        &self,
        contents: &PropertyReader<'_>,
        property: PropertyNo,
        mut rest: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<Arc<Column>>, E> {
        if self.live < WORTH || property == crate::contents::KEY {
            return Ok(None);
        }
        let asked = {
            let mut asked = self.beside.lookup.asked.lock();
            let count = asked.entry(property).or_default();
            *count = count.saturating_add(1);
            *count
        };
        let kept = self.beside.lookup.columns.lock().get(&property).cloned();
        let (epoch, seen) = (self.touched.epoch, self.touched.nodes.len());
        let values = match kept {
            Some(column) if column.epoch == epoch && column.seen == seen => return Ok(Some(column)),
            Some(column) if column.epoch == epoch => {
                let mut values = column.values.clone();
                values.resize(self.node_places, Value::Null);
                for node in &self.touched.nodes[column.seen..] {
                    rest()?;
                    values[node.index()] = self.value(contents, *node, property)?;
                }
                values
            }
            _ if asked < 2 || !contents.knows_nodes() => return Ok(None),
            _ => {
                let mut values = Vec::with_capacity(self.node_places);
                for node in self.all_places() {
                    rest()?;
                    values.push(self.value(contents, node, property)?);
                }
                values
            }
        };
        let column = Arc::new(Column { epoch, seen, values });
        self.beside.lookup.columns.lock().insert(property, Arc::clone(&column));
        Ok(Some(column))
    }

    /// Nodes in the order of a property, once the order was requested several times. `nodes` returns the nodes to sort.
    pub(crate) fn ordered(
        &self,
        name: &str,
        property: PropertyNo,
        column: &Column,
        nodes: impl FnOnce() -> Vec<Node>,
    ) -> Option<Arc<Vec<Node>>> {
        if self.live > MOST_ORDERED {
            return None;
        }
        let mut orders = self.beside.lookup.orders.lock();
        let (asked, kept) = orders.entry((name.to_owned(), property)).or_default();
        *asked += 1;
        if kept.is_none() && *asked >= OFTEN {
            let mut nodes = nodes();
            nodes.sort_by(|a, b| order(column.of(*a), column.of(*b)));
            *kept = Some(Arc::new(nodes));
        }
        kept.clone()
    }

    fn value(&self, contents: &PropertyReader<'_>, node: Node, property: PropertyNo) -> Result<Value> {
        if self.is_free(node) { Ok(Value::Null) } else { contents.node_property(node, property) }
    }

    /// The index of a property, if it is built already.
    pub fn index_made(&self, property: PropertyNo) -> Option<Arc<Index>> {
        let index = self.beside.lookup.properties.lock().get(&property).cloned()?;
        (index.epoch == self.touched.epoch).then_some(index)
    }

    /// The index of a property, built if necessary. `rest` is called regularly and can stop the work with an error.
    pub fn index<E: From<lukasa_model::Error>>(
        &self,
        contents: &PropertyReader<'_>,
        property: PropertyNo,
        mut rest: impl FnMut() -> Result<(), E>,
    ) -> Result<Arc<Index>, E> {
        if let Some(index) = self.index_made(property) {
            return Ok(index);
        }
        let mut places = Vec::new();
        for node in self.all_places() {
            rest()?;
            if self.node(node).presence == NodePresence::Free {
                continue;
            }
            let value = contents.node_property(node, property)?;
            if !value.is_null() {
                places.push((hash(&value), node));
            }
        }
        places.sort_unstable();
        places.shrink_to_fit();
        let values = places.chunk_by(|a, b| a.0 == b.0).count();
        let index = Arc::new(Index { epoch: self.touched.epoch, seen: self.touched.nodes.len(), places, values });
        self.beside.lookup.properties.lock().insert(property, Arc::clone(&index));
        Ok(index)
    }

    /// Nodes that may have this value. The caller must check each of them.
    pub fn candidates<'a>(&'a self, index: &'a Index, value: &Value) -> impl Iterator<Item = Node> + use<'a> {
        let wanted = hash(value);
        let from = index.places.partition_point(|(hash, _)| *hash < wanted);
        let touched = &self.touched.nodes[index.seen.min(self.touched.nodes.len())..];
        let found = index.places[from..].iter().take_while(move |(hash, _)| *hash == wanted).map(|(_, node)| *node);
        let mut others: Vec<Node> = touched.to_vec();
        others.sort_unstable();
        others.dedup();
        let again = others.clone();
        others.retain(|node| self.node(*node).presence != NodePresence::Free);
        found.filter(move |node| again.binary_search(node).is_err()).chain(others)
    }
}
