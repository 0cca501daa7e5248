//! `query_knowledge_graph`: full text and meaning over nodes of any type.

use crate::features::search::ReasonOut;
use crate::features::search::ops::search::{self, Search};
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::request_parts::Limit;
use crate::response_budget::NOTICE;
use crate::{Context, Engine};
use lukasa_model::Result;
use lukasa_model::view::ViewEcho;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The operation `query_knowledge_graph`.
pub struct QueryKnowledgeGraph;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// What to look for, 1 to 800 characters.
    pub query: String,
    /// Only nodes of these types; all when left out.
    #[serde(default)]
    pub node_types: Vec<String>,
    /// Maximum number of nodes, up to 40.
    #[serde(default)]
    pub limit: Limit<20>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// A notice for names and properties, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// Best first.
    pub nodes: Vec<KnowledgeNodeOut>,
    /// Number of matches.
    pub total: usize,
    /// Share of the embeddable facts that have a vector; absent if meaning was not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedded_share: Option<f64>,
    pub truncated: bool,
    pub view: ViewEcho,
}

/// A node that matches the query.
#[derive(Serialize, JsonSchema)]
pub struct KnowledgeNodeOut {
    /// `Type:key`, or its id.
    pub node_id: String,
    pub node_type: String,
    pub name: String,
    pub score: f64,
    /// The most informative properties.
    pub properties: Map<String, Value>,
    pub reasons: Vec<ReasonOut>,
}

impl Op for QueryKnowledgeGraph {
    const META: Meta = Meta {
        name: "query_knowledge_graph",
        answer: &["nodes.name", "nodes.node_id", "nodes.node_type", "nodes.properties"],
        summary: "Full text and meaning over nodes of any type",
        description: "Finds decisions, learnings, components, policies, documents and code by words and meaning, best first \
                      with the reasons. `search` does the same with more to choose from.",
        scope: Search::META.scope,
        verb: "query-knowledge",
        toolset: "memory",
        positional: &["query"],
        aliases: &[("object_types", "node_types"), ("types", "node_types")],
        examples: &["lukasa query-knowledge \"why two databases\" --node-types Decision"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let same = json!({"query": request.query, "limit": request.limit.get(), "object_types": request.node_types,
            "include_path_summaries": false, "neighbor": {"per_primary_limit": 0}});
        let mut same: search::Request =
            serde_json::from_value(same).map_err(|e| lukasa_model::Error::internal(e.to_string()))?;
        same.view = request.view;
        let found = Search::run(engine, context, same)?;
        let node = |item: crate::features::search::ItemOut| {
            let text = |name: &str| item.fields.get(name).and_then(Value::as_str).map(str::to_owned);
            KnowledgeNodeOut {
                node_type: text("type").unwrap_or_default(),
                name: text("title").unwrap_or_else(|| item.reference.clone()),
                node_id: item.reference,
                score: item.score,
                properties: item.fields,
                reasons: item.reasons,
            }
        };
        let nodes: Vec<KnowledgeNodeOut> = found.items.into_iter().map(node).collect();
        Ok(Response {
            summary: found.summary,
            notice: (!nodes.is_empty()).then_some(NOTICE),
            truncated: found.total > nodes.len(),
            total: found.total,
            embedded_share: found.meta.embedded_share,
            nodes,
            view: found.view,
        })
    }
}
