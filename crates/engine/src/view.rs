//! Shared by operations on the graph: the snapshot of a view, resolving names to nodes, and how nodes and edges are
//! written.

use crate::cursor::Cursor;
use crate::names::Origin;
use crate::ranges::check_range;
use crate::sensitive::is_sensitive;
use crate::{Context, Engine};
use lukasa_code::type_names;
use lukasa_graph::cache::Projections;
use lukasa_graph::contents::known;
use lukasa_graph::walk::Filter;
use lukasa_graph::{Edge, Node, Snapshot};
use lukasa_model::json::Hash;
use lukasa_model::types::Registry;
use lukasa_model::{Content, Error, ErrorCode, FactNo, Result, Scope, Tx, View};
use lukasa_store::ledger::ViewSpec;
use lukasa_store::{Ledger, VersionFields};
use memories as links;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::sync::Arc;
use uuid::Uuid;

pub mod memories;
mod node_contents;
pub mod symbols;

pub use node_contents::NodeContents;

/// The type under which communities are shown.
pub const COMMUNITY: &str = "COMMUNITY";

/// Graphs held in memory, and the keys of cursors in them.
pub struct Graphs {
    pub projections: Projections,
    /// Cursor keys by project, each with the epoch of the log it was computed for.
    keys: Mutex<FxHashMap<Scope, (u64, Hash)>>,
}

impl Graphs {
    /// Graphs that use up to `limit` bytes.
    pub fn new(limit: usize) -> Graphs {
        Graphs { projections: Projections::new(limit), keys: Mutex::default() }
    }

    /// The key that seals cursors of a project: a hash of its first transaction, which never changes, and its name,
    /// because a copy of the project begins with the same transaction. It rejects damaged and foreign cursors. It is no
    /// secret: a caller who can read the log can compute it, and gains nothing.
    pub fn cursor_key(&self, ledger: &Ledger) -> Result<Hash> {
        let epoch = ledger.epoch();
        if let Some((_, key)) = self.keys.lock().get(ledger.scope()).filter(|(of, _)| *of == epoch) {
            return Ok(*key);
        }
        let first = ledger.transactions(Tx::FIRST, Tx::FIRST, 1)?.pop();
        let first =
            first.map(|t| t.hash).ok_or_else(|| Error::not_found(ErrorCode::NotFound, "the project is empty"))?;
        let Scope { tenant, project } = ledger.scope();
        // The zero byte separates the names: neither can contain one.
        let key = Hash::of(&[&first.0[..], tenant.as_bytes(), &[0], project.as_bytes()].concat());
        self.keys.lock().insert(ledger.scope().clone(), (epoch, key));
        Ok(key)
    }
}

/// A view with its graph.
#[derive(Clone)]
pub struct ViewGraph {
    pub ledger: Ledger,
    pub view: View,
    pub snapshot: Arc<Snapshot>,
    pub registry: Arc<Registry>,
    /// Whether the view is the current head of a branch.
    pub is_head: bool,
    /// The folder that paths in names are relative to.
    pub origin: Origin,
}

impl Engine {
    /// The graph of the view that a request names.
    pub fn view_graph(&self, context: &mut Context<'_>, spec: &ViewSpec) -> Result<ViewGraph> {
        let ledger = self.ledger(&context.scope);
        let (view, snapshot) = self.graphs().projections.view_graph(&ledger, spec, context.progress)?;
        let head = spec.as_of.is_none() && spec.known_at.is_none();
        Ok(ViewGraph::new(ledger, view, snapshot, head).seen_from(Origin::of(context)))
    }

    /// The graph of the view in which a cursor was issued, also when the branch has moved since. Returns an error if
    /// the log was replaced.
    pub fn view_graph_at(&self, context: &mut Context<'_>, spec: &ViewSpec, cursor: &Cursor) -> Result<ViewGraph> {
        let ledger = self.ledger(&context.scope);
        let mut view = ledger.view(spec)?;
        if (view.branch, view.known, view.valid) != (cursor.branch, cursor.known, cursor.valid) {
            view = ledger.view_fixed(cursor.branch, cursor.known, cursor.valid)?;
        }
        if (view.known, view.position().digest()) != (cursor.known, cursor.digest) {
            return Err(Error::invalid(
                ErrorCode::CursorOfAReplacedLog,
                "the log that this cursor was given for is there no more",
            )
            .hint("the database was restored or failed over; ask again without a cursor"));
        }
        let head = spec.as_of.is_none() && spec.known_at.is_none();
        self.look_at(context, view, head)
    }

    /// The graph of a view from an earlier response; `was_head` is whether it was the head of its branch then.
    pub fn look_at(&self, context: &mut Context<'_>, view: View, was_head: bool) -> Result<ViewGraph> {
        let ledger = self.ledger(&context.scope);
        let snapshot = self.graphs().projections.at(&ledger, &view, context.progress)?;
        Ok(ViewGraph::new(ledger, view, snapshot, was_head).seen_from(Origin::of(context)))
    }
}

impl ViewGraph {
    pub fn new(ledger: Ledger, view: View, snapshot: Arc<Snapshot>, is_head: bool) -> ViewGraph {
        let registry = Arc::clone(&snapshot.registry);
        ViewGraph { ledger, view, snapshot, registry, is_head, origin: Origin::default() }
    }

    /// The same view for a caller in another folder of a working tree.
    #[must_use]
    pub fn seen_from(self, origin: Origin) -> ViewGraph {
        ViewGraph { origin, ..self }
    }

    /// A filter by types and labels; an empty list lets everything pass. Returns an error for a type that is neither
    /// used nor declared, because an empty result would look like a fact.
    pub fn filter(&self, edge_types: &[String], node_types: &[String], labels: &[String]) -> Result<Filter> {
        let names = self.snapshot.names();
        self.check_types(edge_types, true)?;
        self.check_types(node_types, false)?;
        let some = |list: &[String]| !list.is_empty();
        Ok(Filter {
            edge_types: some(edge_types).then(|| names.chosen(edge_types, &self.registry, true)),
            node_types: some(node_types).then(|| names.chosen(node_types, &self.registry, false)),
            label_sets: some(labels).then(|| Filter::label_sets(&self.snapshot, labels)),
            min_confidence: None,
        })
    }

    /// The spellings of a type of objects or of relationships. Returns an error if it is neither.
    pub fn spelled_types(&self, name: &str) -> Result<Vec<String>> {
        let asked = [name.to_owned()];
        let checks = [self.check_types(&asked, false), self.check_types(&asked, true)];
        let known = symbols::SymbolKind::of_type(name).is_some() || type_names::relationship_type(name).is_some();
        if let ([Err(e), Err(_)], false) = (checks, known) {
            return Err(e);
        }
        Ok([false, true].map(|kind| self.registry.spelling(name, kind).to_owned()).to_vec())
    }

    fn check_types(&self, asked: &[String], relationships: bool) -> Result<()> {
        if asked.is_empty() {
            return Ok(());
        }
        let (what, declared) = if relationships {
            ("relationship", self.registry.relationship_types().iter().map(|t| t.name.clone()).collect::<Vec<_>>())
        } else {
            ("object", self.registry.object_types().iter().map(|t| t.name.clone()).collect())
        };
        for name in asked {
            let is_meant = |known: &str| self.registry.is_same_type(name, known, relationships);
            let stated = self.snapshot.names().types().iter().any(|t| is_meant(t));
            if !stated && !declared.iter().any(|t| is_meant(t)) {
                let mut known = self.types_in_use(relationships);
                known.extend(declared);
                known.sort();
                known.dedup();
                known.truncate(30);
                return Err(Error::invalid(ErrorCode::NoSuchType, format!("no {what} here has the type `{name}`"))
                    .hint(format!("there are: {}", known.join(", "))));
            }
        }
        Ok(())
    }

    fn types_in_use(&self, relationships: bool) -> Vec<String> {
        let s = &self.snapshot;
        let mut seen = vec![false; s.names().types().len()];
        for node in s.nodes() {
            if relationships {
                s.outgoing(node).types.iter().for_each(|t| seen[t.index()] = true);
            } else {
                seen[s.type_no(node).index()] = true;
            }
        }
        let named = s.names().types().iter().zip(seen).filter(|(_, seen)| *seen);
        named.map(|(name, _)| name.to_string()).collect()
    }

    /// The contents of facts in the view.
    pub fn contents(&self, things: &[FactNo]) -> Result<FxHashMap<FactNo, Content>> {
        let mut numbers = things.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let states = self.ledger.states(&self.view, &numbers, VersionFields::Content)?;
        let read = |s: lukasa_store::ledger::FactState| {
            let content = s.statement.map(|statement| statement.parsed()).transpose()?.unwrap_or_default();
            Ok((s.thing.no, content))
        };
        states.into_iter().map(read).collect()
    }

    /// Nodes as a response writes them.
    pub fn nodes_out(&self, rows: Vec<ComputedNode>) -> NodesOut {
        NodesOut { snapshot: Arc::clone(&self.snapshot), rows, titles: FxHashMap::default() }
    }

    /// Like `nodes_out`, with titles, which are read from the store. Sensitive objects have none.
    pub fn titled_out(&self, rows: Vec<ComputedNode>) -> Result<NodesOut> {
        let nodes: Vec<_> = rows.iter().map(|row| row.node).collect();
        let title = |content: &Content| content.title.clone().filter(|_| !is_sensitive(content));
        let known = known(&self.snapshot, &self.ledger, &nodes)?;
        let titles = known.iter().filter_map(|(no, known)| Some((self.snapshot.thing(*no), title(&known.content)?)));
        Ok(NodesOut { titles: titles.collect(), ..self.nodes_out(rows) })
    }

    /// Edges as a response writes them.
    pub fn edges_out(&self, edges: Vec<Edge>) -> EdgesOut {
        EdgesOut { snapshot: Arc::clone(&self.snapshot), edges }
    }

    /// `out` if `from` is the source of the edge, else `in`.
    pub fn direction(&self, edge: Edge, from: Node) -> &'static str {
        if self.snapshot.ends(edge).0 == from { "out" } else { "in" }
    }

    /// A path with the names of its nodes and the types of its edges.
    pub fn path_out(&self, nodes: &[Node], edges: &[Edge]) -> PathOut {
        let s = &self.snapshot;
        let steps = edges.iter().zip(nodes).map(|(edge, from)| PathStepOut {
            type_name: Arc::clone(s.edge_type(*edge)),
            direction: self.direction(*edge, *from),
            confidence: s.confidence(*edge),
        });
        PathOut {
            hops: edges.len(),
            nodes: nodes.iter().map(|n| s.name(*n)).collect(),
            node_ids: nodes.iter().map(|n| s.id(*n)).collect(),
            edges: steps.collect(),
            confidence: edges.iter().map(|e| s.confidence(*e).unwrap_or(1.0)).product(),
        }
    }
}

/// Nodes in a response; serialized directly from the snapshot.
pub struct NodesOut {
    snapshot: Arc<Snapshot>,
    rows: Vec<ComputedNode>,
    titles: FxHashMap<FactNo, String>,
}

/// A node with the values that the operation computed for it.
#[derive(Clone, Copy, Debug)]
pub struct ComputedNode {
    pub node: Node,
    pub depth: Option<u32>,
    pub distance: Option<u32>,
    pub pagerank: Option<f64>,
    pub score: Option<f64>,
    pub degree: Option<usize>,
}

impl ComputedNode {
    pub fn new(node: Node) -> ComputedNode {
        ComputedNode { node, depth: None, distance: None, pagerank: None, score: None, degree: None }
    }
}

/// A node as it is serialized.
#[derive(Serialize, JsonSchema)]
pub struct NodeOut<'a> {
    id: Uuid,
    #[serde(rename = "type")]
    type_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(with = "Vec<String>")]
    labels: &'a [Arc<str>],
    /// The object has ended and is shown because a lasting relationship leads to it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ended: bool,
    /// Its current name.
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed_to: Option<String>,
    /// Hops from the nearest root.
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    /// Hops from the center.
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pagerank: Option<f64>,
    /// The requested rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// Relationships, in both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    degree: Option<usize>,
}

impl Serialize for NodesOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let s = &self.snapshot;
        serializer.collect_seq(self.rows.iter().map(|row| NodeOut {
            id: s.id(row.node),
            type_name: s.type_name(row.node),
            key: s.key(row.node),
            title: self.titles.get(&s.thing(row.node)).map(String::as_str),
            labels: s.labels(row.node),
            ended: s.is_ended(row.node),
            renamed_to: links::renamed_to(s, row.node),
            depth: row.depth,
            distance: row.distance,
            pagerank: row.pagerank,
            score: row.score,
            degree: row.degree,
        }))
    }
}

impl JsonSchema for NodesOut {
    fn schema_name() -> Cow<'static, str> {
        "Nodes".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        <Vec<NodeOut<'static>>>::json_schema(generator)
    }
}

/// Edges in a response; serialized directly from the snapshot.
pub struct EdgesOut {
    snapshot: Arc<Snapshot>,
    edges: Vec<Edge>,
}

/// An edge as it is serialized, with its confidence and derivation.
#[derive(Serialize, JsonSchema)]
pub struct EdgeOut<'a> {
    id: Uuid,
    #[serde(rename = "type")]
    type_name: &'a str,
    src_id: Uuid,
    dst_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    derivation: Option<&'a str>,
}

impl Serialize for EdgesOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let s = &self.snapshot;
        serializer.collect_seq(self.edges.iter().map(|edge| {
            let (src, dst) = s.ends(*edge);
            EdgeOut {
                id: s.edge_id(*edge),
                type_name: s.edge_type(*edge),
                src_id: s.id(src),
                dst_id: s.id(dst),
                confidence: s.confidence(*edge),
                weight: s.weight(*edge),
                derivation: s.derivation(*edge).map(|d| &**d),
            }
        }))
    }
}

impl JsonSchema for EdgesOut {
    fn schema_name() -> Cow<'static, str> {
        "Edges".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        <Vec<EdgeOut<'static>>>::json_schema(generator)
    }
}

/// A path from one node to another.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PathOut {
    pub hops: usize,
    /// Names of the nodes, in order.
    pub nodes: Vec<String>,
    pub node_ids: Vec<Uuid>,
    pub edges: Vec<PathStepOut>,
    /// Product of the confidences on the path; an edge without one counts as 1.
    pub confidence: f64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PathStepOut {
    #[serde(rename = "type")]
    #[schemars(with = "String")]
    pub type_name: Arc<str>,
    /// `in`: walked from destination to source.
    pub direction: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

/// The relationships and objects to traverse; shared by several operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TypeFilter {
    /// Only relationships of these types, at most 32; all when left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relationship_types: Vec<String>,
    /// Only objects of these types, at most 64; all when left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub object_types: Vec<String>,
}

impl TypeFilter {
    pub fn check(&self) -> Result<()> {
        check_range("relationship_types", self.relationship_types.len(), 0, 32)?;
        check_range("object_types", self.object_types.len(), 0, 64)
    }

    pub fn filter(&self, look: &ViewGraph, labels: &[String]) -> Result<Filter> {
        look.filter(&self.relationship_types, &self.object_types, labels)
    }
}
