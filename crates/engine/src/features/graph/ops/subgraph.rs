//! `subgraph`: returns some objects and every relationship among them, also as a drawing.

use super::neighbors::among;
use crate::features::graph::rendering;
use crate::ranges::check_range;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::view::{ComputedNode, EdgesOut, NodesOut, TypeFilter, ViewGraph};
use crate::{Context, Engine};
use lukasa_graph::walk::{Direction, Walk, walk};
use lukasa_graph::{Edge, Node};
use lukasa_model::Result;
use lukasa_model::view::ViewEcho;
use lukasa_store::ledger::ViewSpec;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

pub struct Subgraph;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Drawing {
    /// No drawing.
    #[default]
    None,
    /// For Graphviz.
    Dot,
    /// For Markdown pages.
    Mermaid,
}

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Objects to include: 1 to 500 names.
    #[schemars(length(min = 1, max = 500))]
    pub roots: Vec<String>,
    /// Include objects within this many hops of them, 0 to 4.
    #[serde(default)]
    #[schemars(range(min = 0, max = 4))]
    pub radius: u32,
    #[serde(flatten)]
    pub types: TypeFilter,
    /// Maximum number of objects, 1 to 5,000.
    #[serde(default = "max_nodes")]
    #[schemars(range(min = 1, max = 5_000))]
    pub max_nodes: usize,
    /// Maximum number of relationships, 1 to 20,000.
    #[serde(default = "max_edges")]
    #[schemars(range(min = 1, max = 20_000))]
    pub max_edges: usize,
    /// Format of a drawing to include.
    #[serde(default)]
    pub draw: Drawing,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn max_nodes() -> usize {
    500
}

fn max_edges() -> usize {
    2_000
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub nodes: NodesOut,
    /// Every relationship whose ends are both among these objects.
    pub edges: EdgesOut,
    pub truncated: bool,
    /// Number of relationships, listed or not.
    pub total_edges: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drawing: Option<String>,
    pub view: ViewEcho,
}

impl Op for Subgraph {
    const META: Meta = Meta {
        name: "subgraph",
        shown: ResponseView::Cut(rendering::subgraph),
        answer: &["nodes.key", "nodes.type", "nodes.title", "drawing", "total_edges"],
        summary: "Show some objects with every relationship among them",
        description: "The part of the graph between the named objects, and with `radius` the objects around them. \
                      `draw` adds it as text for Graphviz or Mermaid.",
        verb: "subgraph",
        toolset: "graph",
        names: &["roots"],
        positional: &["roots"],
        examples: &["lukasa subgraph web auth db", "lukasa subgraph auth --radius 1 --draw mermaid"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        check_range("roots", request.roots.len(), 1, 500)?;
        request.types.check()?;
        let look = engine.view_graph(context, &request.view)?;
        let roots = engine.nodes(&look, &request.roots)?;
        let filter = request.types.filter(&look, &[])?;
        let plan = Walk {
            direction: Direction::Both,
            depth: request.radius,
            max_nodes: request.max_nodes,
            max_edges: usize::MAX,
            filter: &filter,
        };
        let found = walk(&look.snapshot, &roots, &plan);
        let mut edges = among(&look, &found.nodes, &filter);
        let total_edges = edges.len();
        edges.truncate(request.max_edges);
        let truncated = found.cut.is_some() || total_edges > edges.len();
        let mut summary =
            format!("{} and {} among them", count(found.nodes.len(), "object"), count(total_edges, "relationship"));
        if truncated {
            summary += "; cut by max_nodes or max_edges";
        }
        let drawing = match request.draw {
            Drawing::None => None,
            Drawing::Dot => Some(dot(&look, &found.nodes, &captions(&look, &found.nodes)?, &edges)),
            Drawing::Mermaid => Some(mermaid(&look, &found.nodes, &captions(&look, &found.nodes)?, &edges)),
        };
        Ok(Response {
            summary,
            nodes: look.nodes_out(found.nodes.iter().map(|n| ComputedNode::new(*n)).collect()),
            edges: look.edges_out(edges),
            truncated,
            total_edges,
            drawing,
            view: look.view.echo(),
        })
    }
}

/// The captions of nodes in a drawing: the name, or the type and title of an object without a key.
fn captions(look: &ViewGraph, nodes: &[Node]) -> Result<Vec<String>> {
    let s = &look.snapshot;
    let nameless: Vec<_> = nodes.iter().filter(|n| s.key(**n).is_none()).map(|n| s.thing(*n)).collect();
    let contents = look.contents(&nameless)?;
    let caption = |node: &Node| {
        let title = contents.get(&s.thing(*node)).and_then(|c| c.title.clone());
        let name = match (s.key(*node), title) {
            (None, Some(title)) => format!("{} {title}", s.type_name(*node)),
            (None, None) => format!("{} {}", s.type_name(*node), s.id(*node)),
            _ => s.name(*node),
        };
        if s.is_ended(*node) { format!("{name} (ended)") } else { name }
    };
    Ok(nodes.iter().map(caption).collect())
}

fn numbered(nodes: &[Node]) -> FxHashMap<Node, usize> {
    nodes.iter().enumerate().map(|(i, node)| (*node, i)).collect()
}

fn dot(look: &ViewGraph, nodes: &[Node], captions: &[String], edges: &[Edge]) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let (s, numbers) = (&look.snapshot, numbered(nodes));
    let mut text = String::from("digraph lukasa {\n");
    for (i, caption) in captions.iter().enumerate() {
        let _ = writeln!(text, "  n{i} [label={}];", quoted(caption));
    }
    for edge in edges {
        let (src, dst) = s.ends(*edge);
        let _ = writeln!(text, "  n{} -> n{} [label={}];", numbers[&src], numbers[&dst], quoted(s.edge_type(*edge)));
    }
    text + "}\n"
}

fn mermaid(look: &ViewGraph, nodes: &[Node], captions: &[String], edges: &[Edge]) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "#quot;"));
    let (s, numbers) = (&look.snapshot, numbered(nodes));
    let mut text = String::from("graph LR\n");
    for (i, caption) in captions.iter().enumerate() {
        let _ = writeln!(text, "  n{i}[{}]", quoted(caption));
    }
    for edge in edges {
        let (src, dst) = s.ends(*edge);
        let _ = writeln!(text, "  n{} -->|{}| n{}", numbers[&src], quoted(s.edge_type(*edge)), numbers[&dst]);
    }
    text
}
