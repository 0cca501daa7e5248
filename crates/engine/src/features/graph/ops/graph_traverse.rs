//! `graph_traverse`: follows relationships of high confidence from entities, with the most confident path to each.

use crate::features::graph::rendering;
use crate::ranges::check_range;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::sensitive::is_sensitive;
use crate::telemetry::events::EndedOperation;
use crate::telemetry::log;
use crate::view::ViewGraph;
use crate::{Context, Engine};
use lukasa_graph::paths::{LikelyPath, most_likely};
use lukasa_graph::walk::{Direction, Filter};
use lukasa_graph::{Edge, Node};
use lukasa_model::Result;
use lukasa_model::view::ViewEcho;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::{Map, Value};
use std::time::Instant;
use uuid::Uuid;

pub struct GraphTraverse;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Entities to start from: 1 to 50 names or ids.
    #[schemars(length(min = 1, max = 50))]
    pub entry_entity_ids: Vec<String>,
    /// Maximum number of hops, 1 to 4.
    #[serde(default = "max_hops")]
    #[schemars(range(min = 1, max = 4))]
    pub max_hops: u32,
    /// Direction in which relationships are followed.
    #[serde(default)]
    pub direction: Direction,
    /// Only relationships of these types.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub relationship_types: Vec<String>,
    /// Return only entities of these types; paths may lead through others.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub entity_types: Vec<String>,
    /// Ignore relationships with lower confidence, 0 to 1; relationships without a confidence count as 1.
    #[serde(default = "min_confidence")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_confidence: f64,
    /// Maximum number of entities, 1 to 200.
    #[serde(default = "max_results")]
    #[schemars(range(min = 1, max = 200))]
    pub max_results: usize,
    /// Leave out the paths.
    #[serde(default)]
    pub no_paths: bool,
    /// For programs: `false` is the same as `no_paths`.
    #[serde(default)]
    pub include_paths: Option<bool>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn max_hops() -> u32 {
    2
}

fn min_confidence() -> f64 {
    0.5
}

fn max_results() -> usize {
    50
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Highest confidence first, then nearest, then most central.
    pub entities: Vec<TraversedEntityOut>,
    /// Relationships on the paths to these entities.
    pub relationships: Vec<RelationshipOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<GraphPath>>,
    /// Documents among all entities that were reached.
    pub connected_document_ids: Vec<Uuid>,
    pub traversal_depth_reached: u32,
    pub nodes_explored: usize,
    /// There are more entities than listed, or the search stopped at a limit.
    pub truncated: bool,
    pub total_entities: usize,
    pub latency_ms: f64,
    pub trace_id: Uuid,
    pub view: ViewEcho,
}

#[derive(Serialize, JsonSchema)]
pub struct TraversedEntityOut {
    pub id: Uuid,
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its title, else its key, else its id.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub properties: Map<String, Value>,
    /// PageRank.
    pub centrality_score: f64,
    pub hops: u32,
    pub confidence: f64,
    /// It has ended and is shown because a lasting relationship leads to it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct RelationshipOut {
    #[serde(rename = "type")]
    pub type_name: String,
    pub from_entity_id: Uuid,
    pub to_entity_id: Uuid,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub properties: Map<String, Value>,
    /// Left out if none is recorded; it then counts as 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derivation: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct GraphPath {
    pub nodes: Vec<Uuid>,
    pub edges: Vec<String>,
    /// For each edge `out`, or `in` if it was followed from its destination.
    pub directions: Vec<&'static str>,
    /// Product of the confidences on the path.
    pub total_confidence: f64,
}

impl Op for GraphTraverse {
    const META: Meta = Meta {
        name: "graph_traverse",
        shown: ResponseView::Cut(rendering::entities),
        answer: &[
            "entities.key",
            "entities.type",
            "entities.name",
            "entities.hops",
            "relationships.type",
            "total_entities",
        ],
        rest: &["POST /v1/graph/traverse"],
        summary: "Follow relationships of high confidence from entities",
        description: "Ignores relationships below a confidence and returns each entity with its most confident path: \
                      the one whose confidences have the largest product. Also lists the documents that were reached.",
        verb: "graph-traverse",
        toolset: "graph",
        names: &["entry_entity_ids"],
        positional: &["entry_entity_ids"],
        aliases: &[("entry_entities", "entry_entity_ids")],
        examples: &["lukasa graph-traverse Product:shop --max-hops 3 --min-confidence 0.7"],
        ended: Some(ended),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let start = Instant::now();
        check_range("entry_entity_ids", request.entry_entity_ids.len(), 1, 50)?;
        check_range("relationship_types", request.relationship_types.len(), 0, 32)?;
        check_range("entity_types", request.entity_types.len(), 0, 64)?;
        let look = engine.view_graph(context, &request.view)?;
        let roots = engine.nodes(&look, &request.entry_entity_ids)?;
        let filter = Filter {
            min_confidence: Some(request.min_confidence),
            ..look.filter(&request.relationship_types, &[], &[])?
        };
        let (reached, explored, cut) =
            most_likely(&look.snapshot, &roots, None, request.direction, &filter, request.max_hops);
        let wanted = look.filter(&[], &request.entity_types, &[])?;
        let mut listed: Vec<&LikelyPath> =
            reached.iter().filter(|sure| wanted.node(&look.snapshot, sure.node)).collect();
        let s = &look.snapshot;
        listed.sort_by(|a, b| {
            let surest = b.confidence.total_cmp(&a.confidence).then(a.hops.cmp(&b.hops));
            surest.then_with(|| s.rank(b.node).total_cmp(&s.rank(a.node))).then(s.thing(a.node).cmp(&s.thing(b.node)))
        });
        let total_entities = listed.len();
        listed.truncate(request.max_results);
        let documents = reached.iter().filter(|r| s.type_name(r.node).eq_ignore_ascii_case("document"));
        let mut edges: Vec<Edge> = listed.iter().flat_map(|sure| sure.path.edges.iter().copied()).collect();
        edges.sort_by_key(|e| s.edge_thing(*e));
        edges.dedup();
        let (entities, relationships) = shape(&look, &listed, &edges)?;
        let with_paths = !request.no_paths && request.include_paths != Some(false);
        let truncated = cut.is_some() || total_entities > listed.len();
        let mut summary = format!("{} reached, {} explored", count(total_entities, "entity"), count(explored, "node"));
        summary = summary.replace("entitys", "entities");
        if truncated {
            summary += &format!("; {} listed", listed.len());
        }
        Ok(Response {
            summary,
            entities,
            relationships,
            paths: with_paths.then(|| listed.iter().map(|sure| path(&look, sure)).collect()),
            connected_document_ids: documents.map(|r| s.id(r.node)).collect(),
            traversal_depth_reached: reached.iter().map(|r| r.hops).max().unwrap_or(0),
            nodes_explored: explored,
            truncated,
            total_entities,
            latency_ms: start.elapsed().as_secs_f64() * 1e3,
            trace_id: engine.clock().new_id(),
            view: look.view.echo(),
        })
    }
}

fn path(look: &ViewGraph, sure: &LikelyPath) -> GraphPath {
    GraphPath {
        nodes: sure.path.nodes.iter().map(|n| look.snapshot.id(*n)).collect(),
        edges: sure.path.edges.iter().map(|e| look.snapshot.edge_type(*e).to_string()).collect(),
        directions: sure.path.edges.iter().zip(&sure.path.nodes).map(|(e, from)| look.direction(*e, *from)).collect(),
        total_confidence: sure.confidence,
    }
}

fn shape(
    look: &ViewGraph,
    listed: &[&LikelyPath],
    edges: &[Edge],
) -> Result<(Vec<TraversedEntityOut>, Vec<RelationshipOut>)> {
    let s = &look.snapshot;
    let things: Vec<_> = listed.iter().map(|t| s.thing(t.node)).chain(edges.iter().map(|e| s.edge_thing(*e))).collect();
    let mut contents = look.contents(&things)?;
    let key = |node: Node| s.key(node).map(str::to_owned);
    let entities = listed.iter().map(|sure| {
        let content = contents.remove(&s.thing(sure.node)).filter(|content| !is_sensitive(content)).unwrap_or_default();
        TraversedEntityOut {
            id: s.id(sure.node),
            type_name: s.type_name(sure.node).to_string(),
            name: content.title.or_else(|| key(sure.node)).unwrap_or_else(|| s.id(sure.node).to_string()),
            key: key(sure.node),
            properties: content.properties,
            centrality_score: s.rank(sure.node),
            hops: sure.hops,
            confidence: sure.confidence,
            ended: s.is_ended(sure.node),
        }
    });
    let entities = entities.collect();
    let relationships = edges.iter().map(|edge| {
        let (src, dst) = s.ends(*edge);
        RelationshipOut {
            type_name: s.edge_type(*edge).to_string(),
            from_entity_id: s.id(src),
            to_entity_id: s.id(dst),
            properties: contents.remove(&s.edge_thing(*edge)).unwrap_or_default().properties,
            confidence: s.confidence(*edge),
            derivation: s.derivation(*edge).map(|d| d.to_string()),
        }
    });
    Ok((entities, relationships.collect()))
}

/// Records latency and the event of a query.
fn ended(context: &Context<'_>, ended: &EndedOperation<'_>) {
    let Ok(answer) = ended.answer else { return };
    ended.walked(context, answer.number("traversal_depth_reached"));
    log::event(
        log::LogLevel::Info,
        "graph_query",
        &[
            ("entry_entities", json!(ended.request.count("entry_entity_ids"))),
            ("hops", json!(answer.count("traversal_depth_reached"))),
            ("nodes_explored", json!(answer.count("nodes_explored"))),
            ("nodes_returned", json!(answer.count("entities"))),
            ("relationships_returned", json!(answer.count("relationships"))),
            ("connected_documents", json!(answer.count("connected_document_ids"))),
            ("truncated", json!(answer.truncated())),
            ("latency_ms", ended.elapsed_ms()),
        ],
    );
}
