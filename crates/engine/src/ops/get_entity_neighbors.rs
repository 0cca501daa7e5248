//! `get_entity_neighbors`: what is around an entity, in the words of knowledge graphs.

use super::META;
use super::neighbors::{self, Neighbors};
use crate::graph::Types;
use crate::registry::{Meta, Op};
use crate::{Context, Engine};
use lukasa_graph::walk::Direction;
use lukasa_model::Result;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::Deserialize;

pub struct GetEntityNeighbors;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The entity: `Type:key`, a key alone such as `decision:42`, or an id.
    pub node_id: String,
    /// Only relationships of these types; all when left out.
    #[serde(default)]
    pub edge_types: Vec<String>,
    /// Hops, 1 to 8.
    #[serde(default = "depth")]
    pub depth: u32,
    /// Most entities to tell, 1 to 1,000, the named one included.
    #[serde(default = "max_nodes")]
    pub max_nodes: usize,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn depth() -> u32 {
    1
}

fn max_nodes() -> usize {
    50
}

impl Op for GetEntityNeighbors {
    const META: Meta = Meta {
        name: "get_entity_neighbors",
        summary: "What is around an entity",
        description: "Neighbours of an entity of any kind, nearest first, with the relationships among them. Same answer as \
                      `neighbors`, which has more to choose from.",
        verb: "entity-neighbors",
        toolset: "memory",
        positional: &["node_id"],
        aliases: &[("ref", "node_id"), ("radius", "depth"), ("relationship_types", "edge_types")],
        examples: &["lukasa entity-neighbors decision:42 --edge-types INVOLVES"],
        ..META
    };
    type Request = Request;
    type Response = neighbors::Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<neighbors::Response> {
        let types = Types { relationship_types: request.edge_types, ..Types::default() };
        let same = neighbors::Request {
            reference: request.node_id,
            radius: request.depth,
            direction: Direction::Both,
            types,
            max_nodes: request.max_nodes,
            view: request.view,
        };
        Neighbors::run(engine, context, same)
    }
}
