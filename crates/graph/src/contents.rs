//! Properties of nodes and edges: read from the store on first use, kept next to the rows they belong to.

use crate::cypher::stored;
use crate::cypher::value::Value;
use crate::snapshot::{EDGES, Edge, NODES, Node, NodePresence, Snapshot, index};
use lukasa_model::{Content, FactNo, Result, Time, Version};
use lukasa_store::{Ledger, VersionFields};
use parking_lot::{Mutex, RwLock};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

index! {
    /// Number of an interned name of a property.
    PropertyNo(u32)
}

/// The number of `key`, which every node has without its contents being read.
pub const KEY: PropertyNo = PropertyNo(0);

/// Properties of one node or edge, sorted by number.
pub type PropertyRow = Arc<[(PropertyNo, Value)]>;

/// What was read for each row of a chunk. Allocated on first use; a changed row is forgotten without the others.
#[derive(Clone)]
pub(crate) struct LazyCells<T>(OnceLock<Box<[OnceLock<T>]>>);

impl<T> Default for LazyCells<T> {
    fn default() -> Self {
        LazyCells(OnceLock::new())
    }
}

impl<T> LazyCells<T> {
    pub fn get(&self, at: usize) -> Option<&T> {
        self.0.get()?[at].get()
    }

    fn all(&self, len: usize) -> &[OnceLock<T>] {
        self.0.get_or_init(|| (0..len).map(|_| OnceLock::new()).collect())
    }

    /// Removes what was read for a row, because the row is about to change.
    pub fn forget(&mut self, at: usize) -> Option<T> {
        self.0.get_mut()?[at].take()
    }
}

/// The content of an object in one version, without its sensitive properties.
#[derive(Debug)]
pub struct ObjectContent {
    pub content: Content,
    /// When the version begins, or when it was recorded if it has no beginning.
    pub stated: Time,
    /// Names of sensitive properties that were taken out.
    pub hidden: Vec<Box<str>>,
    bytes: usize,
}

impl ObjectContent {
    fn of(statement: &Version, hidden: Vec<Box<str>>) -> Result<ObjectContent> {
        let stated = if statement.period.from == Time::MIN { statement.recorded_at } else { statement.period.from };
        // A parsed content takes about three times the memory of its text.
        let bytes = size_of::<ObjectContent>() + 3 * statement.content.as_deref().map_or(0, str::len);
        Ok(ObjectContent { content: statement.parsed()?, stated, hidden, bytes })
    }
}

/// Bytes of parsed contents that one graph keeps. Contents beyond that are read from the store on every use.
const REMEMBERED: usize = 64 << 20;

/// The contents of some nodes, in no particular order. Ended nodes are left out. Contents are kept in memory, because
/// the readers of a store lose their cached pages with every commit.
pub fn known(snapshot: &Snapshot, ledger: &Ledger, nodes: &[Node]) -> Result<Vec<(Node, Arc<ObjectContent>)>> {
    let cell = |node: Node| &snapshot.nodes.chunk(node.index() / NODES).known;
    let mut all = Vec::with_capacity(nodes.len());
    let mut missing: Vec<FactNo> = Vec::new();
    for node in nodes {
        match cell(*node).get(node.index() % NODES) {
            Some(known) => all.push((*node, Arc::clone(known))),
            None => missing.push(snapshot.thing(*node)),
        }
    }
    if missing.is_empty() {
        return Ok(all);
    }
    missing.sort_unstable();
    missing.dedup();
    let sum = &snapshot.properties.known;
    for state in ledger.states(&snapshot.view, &missing, VersionFields::Content)? {
        let (Some(node), Some(statement)) = (snapshot.find(state.thing.no), &state.statement) else { continue };
        let known = Arc::new(ObjectContent::of(statement, state.hidden)?);
        all.push((node, Arc::clone(&known)));
        let bytes = known.bytes;
        if sum.load(Ordering::Relaxed) + bytes <= REMEMBERED
            && cell(node).all(NODES)[node.index() % NODES].set(known).is_ok()
        {
            sum.fetch_add(bytes, Ordering::Relaxed);
        }
    }
    Ok(all)
}

/// Names by number, and numbers by name.
type Interned = (Vec<Arc<str>>, FxHashMap<Arc<str>, PropertyNo>);

/// Names of properties, each kept once, and the memory that contents take. Shared by all snapshots of one build.
pub struct Properties {
    names: RwLock<Interned>,
    bytes: AtomicUsize,
    /// Bytes of the contents that are kept as a whole.
    known: AtomicUsize,
    /// Nodes whose properties have been read.
    nodes: AtomicUsize,
    /// By property number: whether a row that was read has the property.
    stated: RwLock<Vec<bool>>,
    /// Short texts that were read before. Many facts have equal texts, which share one copy.
    texts: Mutex<FxHashSet<Arc<str>>>,
}

/// The longest text that is shared, in bytes, and the most texts that are shared.
const SHORT: usize = 40;
const TEXTS: usize = 100_000;

impl Default for Properties {
    fn default() -> Self {
        let properties = Properties {
            names: RwLock::default(),
            bytes: AtomicUsize::new(0),
            known: AtomicUsize::new(0),
            nodes: AtomicUsize::new(0),
            stated: RwLock::default(),
            texts: Mutex::default(),
        };
        properties.number("key");
        properties
    }
}

impl Properties {
    /// The number of a name. A new name gets the next number.
    pub fn number(&self, name: &str) -> PropertyNo {
        if let Some(number) = self.names.read().1.get(name) {
            return *number;
        }
        let mut names = self.names.write();
        if let Some(number) = names.1.get(name) {
            return *number;
        }
        let number = PropertyNo::at(names.0.len());
        let name: Arc<str> = name.into();
        names.0.push(Arc::clone(&name));
        names.1.insert(name, number);
        number
    }

    /// The number of a name, if it has one.
    pub fn find(&self, name: &str) -> Option<PropertyNo> {
        self.names.read().1.get(name).copied()
    }

    /// The name with this number.
    pub fn name(&self, number: PropertyNo) -> Arc<str> {
        Arc::clone(&self.names.read().0[number.index()])
    }

    /// All names read so far, sorted.
    pub fn all(&self) -> Vec<Arc<str>> {
        let mut all = self.names.read().0.clone();
        all.sort();
        all
    }

    /// Whether any node has been read.
    pub fn has_read(&self) -> bool {
        self.nodes.load(Ordering::Relaxed) > 0
    }

    /// Whether a row that was read has this property.
    pub fn is_stated(&self, number: PropertyNo) -> bool {
        number == KEY || self.stated.read().get(number.index()) == Some(&true)
    }

    /// Bytes that the rows and contents read so far take.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed) + self.known.load(Ordering::Relaxed)
    }

    /// Subtracts what was read for a node that has been forgotten.
    pub(crate) fn forgot_node(&self, row: Option<PropertyRow>, known: Option<Arc<ObjectContent>>) {
        if let Some(row) = row {
            less(&self.bytes, bytes(&row));
            less(&self.nodes, 1);
        }
        if let Some(known) = known {
            less(&self.known, known.bytes);
        }
    }

    /// Subtracts what was read for an edge that has been forgotten.
    pub(crate) fn forgot_edge(&self, row: Option<PropertyRow>) {
        if let Some(row) = row {
            less(&self.bytes, bytes(&row));
        }
    }

    /// The same value, with its text shared with equal texts that were read before.
    fn shared(&self, value: Value) -> Value {
        let Value::Text(text) = &value else { return value };
        if text.len() > SHORT {
            return value;
        }
        let mut texts = self.texts.lock();
        if let Some(known) = texts.get(text) {
            return Value::Text(Arc::clone(known));
        }
        if texts.len() < TEXTS {
            texts.insert(Arc::clone(text));
        }
        value
    }

    fn row(&self, content: &Content) -> PropertyRow {
        let own = content.properties.iter();
        let mut row: Vec<(PropertyNo, Value)> =
            own.map(|(name, value)| (self.number(name), self.shared(stored::from_json(value)))).collect();
        let texts = content.texts().filter_map(|(name, text)| Some((name, self.shared(Value::text(text.as_ref()?)))));
        let numbers = [("weight", content.weight), ("confidence", content.confidence)];
        let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, Value::Float(number?))));
        let evidence = (!content.evidence.is_null()).then(|| ("evidence", stored::from_json(&content.evidence)));
        for (name, value) in texts.chain(numbers).chain(evidence) {
            let number = self.number(name);
            // A property with the name of a field takes precedence over the field.
            if row.iter().all(|(other, _)| *other != number) {
                row.push((number, value));
            }
        }
        row.retain(|(_, value)| !value.is_null());
        row.sort_unstable_by_key(|(number, _)| *number);
        let new = |stated: &[bool]| row.iter().any(|(number, _)| stated.get(number.index()) != Some(&true));
        if new(&self.stated.read()) {
            let mut stated = self.stated.write();
            for (number, _) in &row {
                let place = number.index();
                if stated.len() <= place {
                    stated.resize(place + 1, false);
                }
                stated[place] = true;
            }
        }
        row.into()
    }
}

/// Subtracts without going below 0: copies of a chunk share what was read, so it may be subtracted more than once.
fn less(count: &AtomicUsize, by: usize) {
    let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_sub(by)));
}

fn bytes(row: &PropertyRow) -> usize {
    size_of::<OnceLock<PropertyRow>>()
        + row.iter().map(|(_, v)| size_of::<(PropertyNo, Value)>() + v.heap()).sum::<usize>()
}

/// The value of a property in a row.
#[inline]
pub fn in_row(row: &PropertyRow, property: PropertyNo) -> Option<&Value> {
    row.iter().find(|(number, _)| *number == property).map(|(_, value)| value)
}

/// The most chunks that are read ahead at once.
const AHEAD: usize = 64;

/// Reads properties in a snapshot. Each miss doubles the number of chunks that are read ahead.
pub struct PropertyReader<'a> {
    pub snapshot: &'a Snapshot,
    ledger: &'a Ledger,
    node_ahead: Cell<usize>,
    edge_ahead: Cell<usize>,
}

impl<'a> PropertyReader<'a> {
    /// A reader of the properties in `snapshot`, which reads missing ones from `ledger`.
    pub fn new(snapshot: &'a Snapshot, ledger: &'a Ledger) -> PropertyReader<'a> {
        PropertyReader { snapshot, ledger, node_ahead: Cell::new(1), edge_ahead: Cell::new(1) }
    }

    /// All properties of a node.
    #[inline]
    pub fn node(&self, node: Node) -> Result<&'a PropertyRow> {
        let chunk = node.index() / NODES;
        match self.snapshot.nodes.chunk(chunk).contents.get(node.index() % NODES) {
            Some(row) => Ok(row),
            None => self.read_nodes(node),
        }
    }

    /// All properties of an edge.
    #[inline]
    pub fn edge(&self, edge: Edge) -> Result<&'a PropertyRow> {
        let chunk = edge.index() / EDGES;
        match self.snapshot.edges.chunk(chunk).contents.get(edge.index() % EDGES) {
            Some(row) => Ok(row),
            None => self.read_edges(edge),
        }
    }

    #[cold]
    fn read_nodes(&self, node: Node) -> Result<&'a PropertyRow> {
        let first = node.index() / NODES;
        let ahead = self.node_ahead.get();
        self.node_ahead.set((ahead * 2).min(AHEAD));
        let mut missing = Vec::new();
        for chunk in first..(first + ahead).min(self.snapshot.nodes.len()) {
            let chunk = self.snapshot.nodes.chunk(chunk);
            let cells = chunk.contents.all(NODES);
            for (row, cell) in chunk.rows.iter().zip(cells) {
                if cell.get().is_none() && row.presence != NodePresence::Free {
                    missing.push((row.thing, cell));
                }
            }
        }
        self.fill(missing, true)?;
        let cells = self.snapshot.nodes.chunk(first).contents.all(NODES);
        Ok(cells[node.index() % NODES].get_or_init(PropertyRow::default))
    }

    #[cold]
    fn read_edges(&self, edge: Edge) -> Result<&'a PropertyRow> {
        let first = edge.index() / EDGES;
        let ahead = self.edge_ahead.get();
        self.edge_ahead.set((ahead * 2).min(AHEAD));
        let mut missing = Vec::new();
        for number in first..(first + ahead).min(self.snapshot.edges.len()) {
            let chunk = self.snapshot.edges.chunk(number);
            let cells = chunk.contents.all(EDGES);
            for (at, (row, cell)) in chunk.rows.iter().zip(cells).enumerate() {
                // This edge may have ended or moved to another place, and an older snapshot may still share the chunk.
                let place = Edge::at(number * EDGES + at);
                if cell.get().is_none() && row.thing != FactNo(0) && self.snapshot.find_edge(row.thing) == Some(place) {
                    missing.push((row.thing, cell));
                }
            }
        }
        self.fill(missing, false)?;
        let cells = self.snapshot.edges.chunk(first).contents.all(EDGES);
        Ok(cells[edge.index() % EDGES].get_or_init(PropertyRow::default))
    }

    fn fill(&self, missing: Vec<(FactNo, &OnceLock<PropertyRow>)>, nodes: bool) -> Result<()> {
        let mut numbers: Vec<FactNo> = missing.iter().map(|(no, _)| *no).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let names = &self.snapshot.properties;
        let mut rows: FxHashMap<FactNo, PropertyRow> = FxHashMap::default();
        for state in self.ledger.states(&self.snapshot.view, &numbers, VersionFields::Content)? {
            let content = state.statement.map(|s| s.parsed()).transpose()?.unwrap_or_default();
            rows.insert(state.thing.no, names.row(&content));
        }
        for (no, cell) in missing {
            let row = rows.get(&no).cloned().unwrap_or_default();
            let size = bytes(&row);
            // Another thread may have read it at the same time.
            if cell.set(row).is_ok() {
                names.bytes.fetch_add(size, Ordering::Relaxed);
                names.nodes.fetch_add(usize::from(nodes), Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Whether the properties of nearly every node have been read.
    pub fn knows_nodes(&self) -> bool {
        let read = self.snapshot.properties.nodes.load(Ordering::Relaxed);
        read * 10 >= self.snapshot.node_count() * 9
    }

    /// A property of a node. Its key is one of them.
    #[inline]
    pub fn node_property(&self, node: Node, property: PropertyNo) -> Result<Value> {
        if property == KEY
            && let Some(key) = self.snapshot.key(node)
        {
            return Ok(Value::text(key));
        }
        Ok(in_row(self.node(node)?, property).cloned().unwrap_or_default())
    }

    #[inline]
    pub fn edge_property(&self, edge: Edge, property: PropertyNo) -> Result<Value> {
        Ok(in_row(self.edge(edge)?, property).cloned().unwrap_or_default())
    }

    /// All properties of a node, by name.
    pub fn node_properties(&self, node: Node) -> Result<Vec<(Arc<str>, Value)>> {
        let key = self.snapshot.key(node).map(|key| (Arc::from("key"), Value::text(key)));
        let rest = self.named(self.node(node)?).into_iter().filter(|(name, _)| key.is_none() || &**name != "key");
        let mut all: Vec<_> = key.clone().into_iter().chain(rest).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(all)
    }

    pub fn edge_properties(&self, edge: Edge) -> Result<Vec<(Arc<str>, Value)>> {
        let mut all = self.named(self.edge(edge)?);
        all.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(all)
    }

    fn named(&self, row: &PropertyRow) -> Vec<(Arc<str>, Value)> {
        row.iter().map(|(number, value)| (self.snapshot.properties.name(*number), value.clone())).collect()
    }
}
