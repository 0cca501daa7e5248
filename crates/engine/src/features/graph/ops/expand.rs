//! `expand`: traverses the graph hop by hop, with rules per hop, conditions on contents and selected fields.

use crate::convert::to_u32;
use crate::features::graph::rendering;
use crate::ranges::check_range;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::sensitive::is_sensitive;
use crate::telemetry::events::EndedOperation;
use crate::telemetry::{log, metrics};
use crate::view::{PathOut, ViewGraph};
use crate::{Context, Engine};
use lukasa_graph::expand::{ContentFilter, Dedupe, ExpandedGraph, ExpansionPlan as Plan, Phase, expand};
use lukasa_graph::predicate::{FieldPath, Predicate, Subject};
use lukasa_graph::walk::{Cap, Direction};
use lukasa_graph::{Edge, Node};
use lukasa_model::view::ViewEcho;
use lukasa_model::{Content, Error, ErrorCode, FactNo, Result, Time};
use lukasa_store::ledger::ViewSpec;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::Instant;

pub struct ExpandOp;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// 1 to 50 names of objects to start from.
    #[schemars(length(min = 1, max = 50))]
    pub roots: Vec<String>,
    /// Direction in which relationships are followed.
    #[serde(default)]
    pub direction: Direction,
    /// Maximum number of hops from the roots, 0 to 6; when left out, 2 or the number of `phases`.
    #[serde(default)]
    #[schemars(range(min = 0, max = 6))]
    pub max_depth: Option<u32>,
    /// Only relationships of these types.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub edge_types: Vec<String>,
    /// Only objects of these types; roots may have any type.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub node_types: Vec<String>,
    /// One rule per hop, replacing the general ones: `[{"edge_types": ["decides"], "direction": "in"}]`.
    #[serde(default)]
    #[schemars(length(max = 6))]
    pub phases: Vec<PhaseIn>,
    /// Conditions: `{"node": {"status": {"in": ["open"]}}, "edge": {"weight": {">=": 0.5}}}`.
    #[serde(default)]
    pub filters: ExpandFilters,
    /// Fields to return: `{"object": ["title", "properties.summary"], "edge": ["weight"]}`.
    #[serde(default)]
    pub include: ExpandFields,
    /// What is visited only once.
    #[serde(default)]
    pub dedupe: Dedupe,
    /// Return the paths that were followed.
    #[serde(default)]
    pub return_paths: bool,
    /// Valid time of the view; the same as `as_of` with a time.
    #[serde(default)]
    pub time: Option<Time>,
    /// Maximum number of objects, 1 to 10,000; multiplied by the depth it must stay below 60,000.
    #[serde(default = "limit_nodes")]
    #[schemars(range(min = 1, max = 10_000))]
    pub limit_nodes: usize,
    /// Maximum number of relationships, 1 to 20,000.
    #[serde(default = "limit_edges")]
    #[schemars(range(min = 1, max = 20_000))]
    pub limit_edges: usize,
    /// Maximum number of paths, 1 to 1,000.
    #[serde(default = "limit_paths")]
    #[schemars(range(min = 1, max = 1_000))]
    pub limit_paths: usize,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn limit_nodes() -> usize {
    500
}

fn limit_edges() -> usize {
    1_000
}

fn limit_paths() -> usize {
    100
}

/// The rule of one hop.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhaseIn {
    #[serde(default, alias = "edgeTypes", alias = "relationship_types")]
    pub edge_types: Vec<String>,
    #[serde(default)]
    pub direction: Direction,
    #[serde(default, alias = "nodeTypes", alias = "object_types")]
    pub node_types: Vec<String>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExpandFilters {
    pub node: Value,
    pub edge: Value,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExpandFields {
    #[serde(alias = "node")]
    pub object: Option<Vec<String>>,
    pub edge: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// In the order they were reached, with the requested fields.
    pub nodes: Vec<Map<String, Value>>,
    pub edges: Vec<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<PathOut>>,
    pub meta: ExpandMeta,
    pub view: ViewEcho,
}

/// How the answer was computed, and what was left out.
#[derive(Serialize, JsonSchema)]
pub struct ExpandMeta {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub roots_count: usize,
    pub depth_reached: u32,
    pub truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflow_type: Option<Cap>,
    pub nodes_returned: usize,
    pub edges_returned: usize,
    pub edge_scan_count: usize,
    /// Number of objects that a rule excluded.
    pub objects_filtered: usize,
    /// Number of the phase that found nothing, from 1; later phases were not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at_phase: Option<u32>,
    pub execution_ms: f64,
    /// Milliseconds since the Unix epoch.
    pub ts: i64,
}

impl Op for ExpandOp {
    const META: Meta = Meta {
        name: "expand",
        shown: ResponseView::Cut(rendering::traversed),
        answer: &["nodes.key", "nodes.type", "nodes.title", "nodes.depth", "meta.truncated"],
        rest: &["POST /graph/expand"],
        summary: "Walk hop by hop with rules, conditions and chosen fields",
        description: "Each phase is one hop with its own types and direction; an empty phase ends the walk. Conditions \
                      (= != < <= > >= in contains exists) may test type, key, subtype, title, status, labels \
                      and properties.NAME of objects, and also weight, confidence, derivation and roles of \
                      relationships. Each relationship has the score by which neighbours are chosen.",
        verb: "expand",
        toolset: "graph",
        names: &["roots"],
        positional: &["roots"],
        aliases: &[("relationship_types", "edge_types"), ("object_types", "node_types"), ("max_nodes", "limit_nodes")],
        examples: &[
            "lukasa expand Decision:7 --phases '[{\"edge_types\":[\"decides\"],\"direction\":\"in\"},{\"edge_types\":[\"attended_by\"],\"direction\":\"out\"}]'",
            "lukasa expand auth --filters '{\"node\":{\"status\":{\"in\":[\"open\"]}}}' --max-depth 3 --return-paths",
        ],
        ended: Some(ended),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let start = Instant::now();
        let depth = check(&request)?;
        let (nodes, edges) = (predicate(&request.filters.node, false)?, predicate(&request.filters.edge, true)?);
        let show_nodes = paths(request.include.object.as_deref().unwrap_or(&["title".into(), "status".into()]), false)?;
        let show_edges =
            paths(request.include.edge.as_deref().unwrap_or(&["weight".into(), "confidence".into()]), true)?;
        let mut spec = request.view.clone();
        if let Some(time) = request.time {
            if spec.as_of.is_some() {
                return Err(Error::invalid(ErrorCode::InvalidMoment, "`time` and `as_of` are both given")
                    .hint("`time` is short for `as_of` with a time: give one"));
            }
            spec.as_of = Some(format!("time:{time}"));
        }
        let look = engine.view_graph(context, &spec)?;
        let roots = engine.nodes(&look, &request.roots)?;
        let plan = plan(&look, &request, depth)?;
        let mut judge = ByContent { look: &look, nodes, edges, read: FxHashMap::default() };
        let found = expand(&look.snapshot, &roots, &plan, &mut judge)?;
        judge.read_nodes(&found.nodes, &show_nodes)?;
        judge.read_edges(&found.edges, &show_edges)?;
        let paths = found.paths.iter().map(|(nodes, edges)| look.path_out(nodes, edges));
        Ok(Response {
            summary: summary(&request, &found),
            nodes: (0..found.nodes.len()).map(|i| judge.node_out(&found, i, &show_nodes)).collect(),
            edges: (0..found.edges.len()).map(|i| judge.edge_out(&found, i, &show_edges)).collect(),
            paths: request.return_paths.then(|| paths.collect()),
            meta: ExpandMeta {
                kind: "graph.expand",
                roots_count: roots.len(),
                depth_reached: found.depth_reached,
                truncated: found.cut.is_some(),
                overflow_type: found.cut,
                nodes_returned: found.nodes.len(),
                edges_returned: found.edges.len(),
                edge_scan_count: found.scanned,
                objects_filtered: found.refused,
                stopped_at_phase: found.empty_phase.filter(|p| (*p as usize) < plan.phases.len()),
                execution_ms: start.elapsed().as_secs_f64() * 1e3,
                ts: engine.clock().now().0 / 1_000,
            },
            view: look.view.echo(),
        })
    }
}

/// Checks all limits and returns the number of hops.
fn check(request: &Request) -> Result<u32> {
    check_range("roots", request.roots.len(), 1, 50)?;
    check_range("phases", request.phases.len(), 0, 6)?;
    let depth = match (request.max_depth, to_u32(request.phases.len())) {
        (depth, 0) => depth.unwrap_or(2),
        (None, phases) => phases,
        (Some(depth), phases) => depth.min(phases),
    };
    check_range("max_depth", request.max_depth.unwrap_or(depth), 0, 6)?;
    check_range("edge_types", request.edge_types.len(), 0, 32)?;
    check_range("node_types", request.node_types.len(), 0, 64)?;
    for phase in &request.phases {
        check_range("phases.edge_types", phase.edge_types.len(), 0, 32)?;
        check_range("phases.node_types", phase.node_types.len(), 0, 64)?;
    }
    if request.limit_nodes * depth as usize >= 60_000 {
        return Err(Error::invalid(
            ErrorCode::ExpansionTooLarge,
            format!(
                "`limit_nodes` times the depth is {}, it must stay below 60000",
                request.limit_nodes * depth as usize
            ),
        )
        .hint("lower one of them"));
    }
    Ok(depth)
}

fn predicate(json: &Value, relationship: bool) -> Result<Predicate> {
    if json.is_null() { Ok(Predicate::default()) } else { Predicate::parse(json, relationship) }
}

fn paths(names: &[String], relationship: bool) -> Result<Vec<FieldPath>> {
    check_range("include", names.len(), 0, 64)?;
    let own = if relationship { ["id", "type", "src", "dst"] } else { ["id", "type", "key", "depth"] };
    names.iter().filter(|n| !own.contains(&n.as_str())).map(|n| FieldPath::parse(n, relationship)).collect()
}

fn plan(look: &ViewGraph, request: &Request, depth: u32) -> Result<Plan> {
    let phase = |direction, edge_types: &[String], node_types: &[String]| {
        look.filter(edge_types, node_types, &[]).map(|filter| Phase { direction, filter })
    };
    let phases: Result<Vec<Phase>> = if request.phases.is_empty() {
        (0..depth).map(|_| phase(request.direction, &request.edge_types, &request.node_types)).collect()
    } else {
        let each = request.phases.iter().take(depth as usize);
        each.map(|p| phase(p.direction, &p.edge_types, &p.node_types)).collect()
    };
    Ok(Plan {
        phases: phases?,
        dedupe: request.dedupe,
        max_nodes: request.limit_nodes,
        max_edges: request.limit_edges,
        max_paths: if request.return_paths { request.limit_paths } else { 0 },
    })
}

/// Reads contents from the store one layer at a time, and only if a condition or a field needs them.
struct ByContent<'a> {
    look: &'a ViewGraph,
    nodes: Predicate,
    edges: Predicate,
    read: FxHashMap<FactNo, Content>,
}

impl ByContent<'_> {
    fn load(&mut self, things: impl Iterator<Item = FactNo>) -> Result<()> {
        let missing: Vec<_> = things.filter(|t| !self.read.contains_key(t)).collect();
        if !missing.is_empty() {
            self.read.extend(self.look.contents(&missing)?);
        }
        Ok(())
    }

    fn read_nodes(&mut self, nodes: &[Node], show: &[FieldPath]) -> Result<()> {
        let snapshot = &self.look.snapshot;
        if show.is_empty() { Ok(()) } else { self.load(nodes.iter().map(|n| snapshot.thing(*n))) }
    }

    fn read_edges(&mut self, edges: &[Edge], show: &[FieldPath]) -> Result<()> {
        let snapshot = &self.look.snapshot;
        // Weights and confidences are in the snapshot.
        let more = show.iter().any(|p| !matches!(p, FieldPath::Field(f) if f == "weight" || f == "confidence"));
        if more { self.load(edges.iter().map(|e| snapshot.edge_thing(*e))) } else { Ok(()) }
    }

    fn node_out(&self, found: &ExpandedGraph, place: usize, show: &[FieldPath]) -> Map<String, Value> {
        let (node, s) = (found.nodes[place], &self.look.snapshot);
        let mut out = Map::new();
        out.insert("id".into(), json!(s.id(node)));
        out.insert("type".into(), json!(&**s.type_name(node)));
        if let Some(key) = s.key(node) {
            out.insert("key".into(), key.into());
        }
        out.insert("depth".into(), found.depths[place].into());
        if s.is_ended(node) {
            out.insert("ended".into(), true.into());
        }
        if let Some(content) = self.read.get(&s.thing(node)).filter(|content| !is_sensitive(content)) {
            let subject = Subject { type_name: s.type_name(node), key: s.key(node), content };
            project(&mut out, show, &subject);
        }
        out
    }

    fn edge_out(&self, found: &ExpandedGraph, place: usize, show: &[FieldPath]) -> Map<String, Value> {
        let (edge, s) = (found.edges[place], &self.look.snapshot);
        let (src, dst) = s.ends(edge);
        let mut out = Map::new();
        out.insert("id".into(), json!(s.edge_id(edge)));
        out.insert("type".into(), json!(&**s.edge_type(edge)));
        out.insert("src".into(), json!(s.id(src)));
        out.insert("dst".into(), json!(s.id(dst)));
        let score = s.edge_score(edge, found.against[place], found.edge_depths[place], self.look.view.valid);
        out.insert("score".into(), json!((score.score * 1e6).round() / 1e6));
        let (weight, confidence) = (s.weight(edge), s.confidence(edge));
        let at_hand = Content { weight, confidence, ..Content::default() };
        let content = self.read.get(&s.edge_thing(edge)).unwrap_or(&at_hand);
        project(&mut out, show, &Subject { type_name: s.edge_type(edge), key: None, content });
        out
    }
}

impl ContentFilter for ByContent<'_> {
    fn edges(&mut self, edges: &[Edge]) -> Result<Vec<bool>> {
        if self.edges.is_empty() {
            return Ok(vec![true; edges.len()]);
        }
        let s = &self.look.snapshot;
        self.load(edges.iter().map(|e| s.edge_thing(*e)))?;
        let holds = |edge: &Edge| {
            self.read
                .get(&s.edge_thing(*edge))
                .is_some_and(|content| self.edges.holds(&Subject { type_name: s.edge_type(*edge), key: None, content }))
        };
        Ok(edges.iter().map(holds).collect())
    }

    fn nodes(&mut self, nodes: &[Node]) -> Result<Vec<bool>> {
        if self.nodes.is_empty() {
            return Ok(vec![true; nodes.len()]);
        }
        let s = &self.look.snapshot;
        self.load(nodes.iter().map(|n| s.thing(*n)))?;
        let holds = |node: &Node| {
            self.read.get(&s.thing(*node)).is_some_and(|content| {
                self.nodes.holds(&Subject { type_name: s.type_name(*node), key: s.key(*node), content })
            })
        };
        Ok(nodes.iter().map(holds).collect())
    }
}

/// Adds the requested fields that exist, properties under `properties`.
fn project(out: &mut Map<String, Value>, show: &[FieldPath], subject: &Subject<'_>) {
    for path in show {
        let Some(value) = path.read(subject) else { continue };
        match path {
            FieldPath::Field(field) => drop(out.insert(field.clone(), value)),
            FieldPath::Property(name) => {
                let inner = out.entry("properties").or_insert_with(|| json!({}));
                if let Value::Object(inner) = inner {
                    inner.insert(name.clone(), value);
                }
            }
        }
    }
}

fn summary(request: &Request, found: &ExpandedGraph) -> String {
    let mut text = format!(
        "{} and {} from {}, {} deep",
        count(found.nodes.len(), "object"),
        count(found.edges.len(), "relationship"),
        count(request.roots.len(), "root"),
        count(found.depth_reached, "hop")
    );
    if found.refused > 0 {
        text += &format!("; {} kept out by a rule", found.refused);
    }
    if let Some(cap) = found.cut {
        let by = match cap {
            Cap::Node => "limit_nodes",
            Cap::Edge => "limit_edges",
            Cap::Path => "limit_paths",
            Cap::Steps => "the maximum of relationships for one walk",
        };
        text += &format!("; cut by {by}");
    }
    text
}

/// Records sizes, latency and the event of an expansion.
fn ended(context: &Context<'_>, ended: &EndedOperation<'_>) {
    let Ok(answer) = ended.answer else { return };
    let (nodes, edges) = (answer.number("nodes").unwrap_or(0.0), answer.number("edges").unwrap_or(0.0));
    let depth = answer.number("meta.depth_reached");
    metrics().expand_ms.record(ended.millis());
    metrics().expand_depth.record(depth.unwrap_or(0.0));
    metrics().expand_nodes.record(nodes);
    metrics().expand_edges.record(edges);
    if answer.truncated() {
        metrics().expand_truncated.inc();
    }
    ended.walked(context, depth);
    let asked = |name: &str| json!(ended.request.count(name));
    log::event(
        log::LogLevel::Info,
        "graph.expand",
        &[
            ("roots_count", json!(answer.count("meta.roots_count"))),
            (
                "requested",
                json!({
                    "max_depth": asked("max_depth"), "max_nodes": asked("limit_nodes"), "max_edges": asked("limit_edges"),
                    "direction": ended.request.text("direction"),
                }),
            ),
            ("node_count", json!(nodes)),
            ("edge_count", json!(edges)),
            ("max_depth_reached", json!(depth)),
            ("truncated", json!(answer.truncated())),
            (
                "filters",
                json!({
                    "relationship_types": ended.request.texts("edge_types"),
                    "object_types": ended.request.texts("node_types"),
                    "projection_include": ended.request.texts("include.object"),
                }),
            ),
            ("edge_scan_count", json!(answer.count("meta.edge_scan_count"))),
            ("objects_filtered", json!(answer.count("meta.objects_filtered"))),
            ("elapsed_ms", ended.elapsed_ms()),
        ],
    );
}
