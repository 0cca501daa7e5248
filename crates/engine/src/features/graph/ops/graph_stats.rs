//! `graph_stats`: reports the size, the structure and the memory use of the graph.

use crate::features::graph::rendering;
use crate::registry::META;
use crate::registry::{Meta, Op, Resource};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_graph::measures::{Degrees, component_sizes, components, degrees};
use lukasa_model::Result;
use lukasa_model::view::ViewEcho;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub struct GraphStats;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    #[serde(flatten)]
    pub view: ViewSpec,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub nodes: usize,
    /// Between visible objects.
    pub edges: usize,
    /// Lasting relationships whose source or destination has ended.
    #[serde(skip_serializing_if = "is_zero")]
    pub edges_to_ended: usize,
    pub nodes_by_type: BTreeMap<String, usize>,
    pub edges_by_type: BTreeMap<String, usize>,
    pub components: usize,
    pub largest_component: usize,
    /// Relationships of an object, in both directions.
    pub degrees: Degrees,
    pub memory: GraphMemoryOut,
    pub view: ViewEcho,
}

/// Memory of this graph and of all cached graphs.
#[derive(Serialize, JsonSchema)]
pub struct GraphMemoryOut {
    pub bytes: usize,
    pub bytes_per_node: f64,
    pub bytes_per_edge: f64,
    /// Number of cached graphs, of all projects of this process.
    pub graphs_held: usize,
    pub bytes_held: usize,
    pub limit: usize,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Op for GraphStats {
    const META: Meta = Meta {
        name: "graph_stats",
        long: true,
        shown: ResponseView::Cut(rendering::stats),
        answer: &["nodes", "edges", "nodes_by_type", "edges_by_type", "components", "largest_component"],
        summary: "Show the size and structure of the graph",
        description: "Counts by type, connected components, degrees, and the memory that the graph uses per object and \
                      relationship.",
        verb: "graph-stats",
        toolset: "graph",
        examples: &["lukasa graph-stats", "lukasa graph-stats --as-of release:1.0"],
        resource: Some(Resource {
            path: "overview",
            title: "Overview",
            about: "Size and structure of the graph",
            field: "",
        }),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let look = engine.view_graph(context, &request.view)?;
        let s = &look.snapshot;
        let flat = s.flat();
        let (mut nodes_by_type, mut edges_by_type) = (BTreeMap::new(), BTreeMap::new());
        for node in &flat.nodes {
            *nodes_by_type.entry(s.type_name(*node).to_string()).or_default() += 1;
        }
        for type_no in &flat.out.types {
            *edges_by_type.entry(s.names().type_name(*type_no).to_string()).or_default() += 1;
        }
        let edges = flat.out.targets.len();
        let (components, largest_component) = component_sizes(&components(flat));
        let held = engine.graphs().projections.uses();
        let mine = held.iter().filter(|u| u.scope.tenant == context.scope.tenant);
        let memory = s.memory();
        let summary = format!(
            "{}, {}, {}",
            count(s.node_count(), "object"),
            count(edges, "relationship"),
            count(components, "component")
        );
        Ok(Response {
            summary,
            nodes: s.node_count(),
            edges,
            edges_to_ended: s.edge_count() - edges,
            nodes_by_type,
            edges_by_type,
            components,
            largest_component,
            degrees: degrees((0..flat.len()).map(|v| flat.out.degree(v) + flat.into.degree(v)).collect()),
            memory: GraphMemoryOut {
                bytes: memory.bytes,
                bytes_per_node: memory.bytes_per_node.round(),
                bytes_per_edge: memory.bytes_per_edge.round(),
                // Graphs of other tenants are not shown.
                graphs_held: mine.clone().count(),
                bytes_held: mine.map(|u| u.bytes).sum(),
                limit: engine.graphs().projections.limit(),
            },
            view: look.view.echo(),
        })
    }
}
