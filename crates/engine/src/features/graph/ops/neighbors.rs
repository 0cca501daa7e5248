//! `neighbors`: lists the objects around one object, nearest first, then most central.

use crate::features::facts::ops::put::{Put, WRITTEN};
use crate::features::graph::rendering;
use crate::registry::META;
use crate::registry::{Meta, Op, OperationLink};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::view::{ComputedNode, EdgesOut, NodesOut, TypeFilter, ViewGraph};
use crate::{Context, Engine};
use lukasa_graph::walk::{Direction, Filter, Walk, walk};
use lukasa_graph::{Edge, Node};
use lukasa_model::Result;
use lukasa_model::view::ViewEcho;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct Neighbors;

/// Maximum number of objects visited.
const MOST: usize = 200_000;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The object at the center: `Type:key`, a key alone, or an id.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Maximum number of hops, 1 to 8.
    #[serde(default = "radius")]
    #[schemars(range(min = 1, max = 8))]
    pub radius: u32,
    /// Direction in which relationships are followed.
    #[serde(default)]
    pub direction: Direction,
    #[serde(flatten)]
    pub types: TypeFilter,
    /// Maximum number of objects, including the center, 1 to 1,000.
    #[serde(default = "max_nodes")]
    #[schemars(range(min = 1, max = 1_000))]
    pub max_nodes: usize,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn radius() -> u32 {
    2
}

fn max_nodes() -> usize {
    50
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// The name of the object at the center.
    pub center_node: String,
    /// The center first, then by distance, then by PageRank.
    pub nodes: NodesOut,
    /// Relationships among these.
    pub edges: EdgesOut,
    /// Number of objects within the radius, listed or not.
    pub total_nodes_in_neighborhood: usize,
    pub truncated: bool,
    pub view: ViewEcho,
}

impl Op for Neighbors {
    const META: Meta = Meta {
        name: "neighbors",
        shown: ResponseView::Cut(rendering::neighbors),
        answer: &[
            "nodes.key",
            "nodes.type",
            "nodes.title",
            "nodes.depth",
            "total_nodes_in_neighborhood",
            "center_node",
        ],
        rest: &["GET /graph/objects/{ref}/neighbors"],
        follows: &[OperationLink { to: Put::META.name, route: 1, with: &[("ref", WRITTEN)] }],
        summary: "Show the objects around an object",
        description: "All objects within a radius, nearest first, then most central, with the relationships among the \
                      listed objects. Objects of other types than requested are not listed, but paths may lead \
                      through them.",
        verb: "neighbors",
        toolset: "graph",
        names: &["ref"],
        positional: &["ref"],
        aliases: &[
            ("node_id", "ref"),
            ("entity", "ref"),
            ("filter_node_types", "object_types"),
            ("node_types", "object_types"),
            ("filter_edge_types", "relationship_types"),
            ("edge_types", "relationship_types"),
        ],
        examples: &["lukasa neighbors Service:auth", "lukasa neighbors auth --radius 1 --direction in"],
        ended: Some(|context, ended| ended.walked(context, Some(1.0))),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let found = around(engine, context, &request)?;
        let s = &found.look.snapshot;
        let row = |(distance, node): &(u32, Node)| ComputedNode {
            distance: Some(*distance),
            pagerank: Some(s.rank(*node)),
            ..ComputedNode::new(*node)
        };
        Ok(Response {
            summary: found.summary,
            center_node: s.name(found.center),
            nodes: found.look.titled_out(found.near.iter().map(row).collect())?,
            edges: found.look.edges_out(found.edges),
            total_nodes_in_neighborhood: found.total,
            truncated: found.truncated,
            view: found.look.view.echo(),
        })
    }
}

/// The objects around one object.
pub struct Neighborhood {
    pub look: ViewGraph,
    pub center: Node,
    /// Distances and nodes, the center first.
    pub near: Vec<(u32, Node)>,
    pub edges: Vec<Edge>,
    pub total: usize,
    pub truncated: bool,
    pub summary: String,
}

/// Finds the objects around the center of a request.
pub fn around(engine: &Engine, context: &mut Context<'_>, request: &Request) -> Result<Neighborhood> {
    request.types.check()?;
    let look = engine.view_graph(context, &request.view)?;
    let center = look.node(&request.reference)?;
    let walked = Filter { node_types: None, ..request.types.filter(&look, &[])? };
    let plan = Walk {
        direction: request.direction,
        depth: request.radius,
        max_nodes: MOST,
        max_edges: usize::MAX,
        filter: &walked,
    };
    let found = walk(&look.snapshot, &[center], &plan);
    let listed = request.types.filter(&look, &[])?;
    let s = &look.snapshot;
    let mut near: Vec<(u32, Node)> = (0..found.nodes.len())
        .map(|i| (found.depth(i), found.nodes[i]))
        .filter(|(depth, node)| *depth == 0 || listed.node(s, *node))
        .collect();
    let total = near.len();
    near.sort_by(|a, b| {
        let central = s.rank(b.1).total_cmp(&s.rank(a.1));
        a.0.cmp(&b.0).then(central).then(s.thing(a.1).cmp(&s.thing(b.1)))
    });
    near.truncate(request.max_nodes);
    let nodes: Vec<Node> = near.iter().map(|(_, node)| *node).collect();
    let edges = among(&look, &nodes, &walked);
    let truncated = total > near.len() || found.cut.is_some();
    let hops = count(request.radius, "hop");
    let mut summary = format!("{} within {hops} of {}", count(total - 1, "object"), s.name(center));
    if found.cut.is_some() {
        summary = format!("more than {summary}");
    }
    if truncated {
        summary += &format!("; the nearest {} are shown", near.len() - 1);
    }
    Ok(Neighborhood { center, near, edges, total, truncated, summary, look })
}

/// Relationships with both ends among these nodes, in the order they were first recorded.
pub fn among(look: &ViewGraph, nodes: &[Node], filter: &Filter) -> Vec<Edge> {
    let s = &look.snapshot;
    let inside: rustc_hash::FxHashSet<Node> = nodes.iter().copied().collect();
    let mut edges: Vec<Edge> = nodes
        .iter()
        .flat_map(|node| s.outgoing(*node).iter().collect::<Vec<_>>())
        .filter(|(other, edge, type_no)| inside.contains(other) && filter.edge(s, *edge, *type_no))
        .map(|(_, edge, _)| edge)
        .collect();
    edges.sort_by_key(|e| s.edge_thing(*e));
    edges
}
