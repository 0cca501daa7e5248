//! `get_entity_neighbors`: neighbours of an entity, with the field names of knowledge-graph APIs.

use crate::features::graph::ops::neighbors::{self, around};
use crate::features::memory::context_graph::{ContextEdgeOut, ContextNodeOut};
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::response_budget::NOTICE;
use crate::view::NodeContents;
use crate::view::TypeFilter;
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_graph::walk::Direction;
use lukasa_model::Result;
use lukasa_model::view::ViewEcho;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operation `get_entity_neighbors`.
pub struct GetEntityNeighbors;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The entity: `Type:key`, a key alone such as `decision:42`, or an id.
    pub node_id: String,
    /// Only relationships of these types; all when left out.
    #[serde(default)]
    pub edge_types: Vec<String>,
    /// Maximum number of hops, 1 to 8.
    #[serde(default = "depth")]
    pub depth: u32,
    /// Maximum number of entities, 1 to 1,000, the named one included.
    #[serde(default = "max_nodes")]
    pub max_nodes: usize,
    /// Include their properties.
    #[serde(default)]
    pub include_properties: bool,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn depth() -> u32 {
    1
}

fn max_nodes() -> usize {
    50
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// The requested entity.
    pub node_id: String,
    /// Warning about names and properties.
    pub notice: &'static str,
    /// The entity first, then by distance, then by PageRank.
    pub nodes: Vec<ContextNodeOut>,
    /// Relationships between these entities.
    pub edges: Vec<ContextEdgeOut>,
    /// Number of entities within the depth.
    pub total: usize,
    pub truncated: bool,
    pub view: ViewEcho,
}

impl Op for GetEntityNeighbors {
    const META: Meta = Meta {
        name: "get_entity_neighbors",
        answer: &["nodes.node_id", "nodes.name", "nodes.node_type", "nodes.properties", "edges.edge_type"],
        summary: "What is around an entity",
        description: "Neighbours of an entity of any kind, nearest first, with the relationships among them; names as \
                      `build_context_graph` has them. `neighbors` has more to choose from.",
        verb: "entity-neighbors",
        toolset: "memory",
        names: &["node_id"],
        positional: &["node_id"],
        aliases: &[("ref", "node_id"), ("radius", "depth"), ("relationship_types", "edge_types")],
        examples: &["lukasa entity-neighbors decision:42 --edge-types INVOLVES"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let types = TypeFilter { relationship_types: request.edge_types, ..TypeFilter::default() };
        let same = neighbors::Request {
            reference: request.node_id,
            radius: request.depth,
            direction: Direction::Both,
            types,
            max_nodes: request.max_nodes,
            view: request.view,
        };
        let found = around(engine, context, &same)?;
        let s = &found.look.snapshot;
        let read = NodeContents::of(&found.look, &found.near.iter().map(|(_, node)| *node).collect::<Vec<_>>())?;
        let node =
            |(depth, node): &(u32, Node)| ContextNodeOut::of(s, &read, *node, *depth, request.include_properties);
        Ok(Response {
            summary: found.summary,
            node_id: s.name(found.center),
            notice: NOTICE,
            nodes: found.near.iter().map(node).collect(),
            edges: found.edges.iter().map(|edge| ContextEdgeOut::of(s, *edge)).collect(),
            total: found.total,
            truncated: found.truncated,
            view: found.look.view.echo(),
        })
    }
}
