//! `traverse`: lists the objects within some hops of others, in pages.

use crate::cursor::Cursor;
use crate::features::graph::rendering;
use crate::ranges::check_range;
use crate::redacted_summary::RedactedSummary;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::telemetry::events::EndedOperation;
use crate::telemetry::log;
use crate::view::{ComputedNode, EdgesOut, NodesOut, TypeFilter, ViewGraph};
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_graph::walk::{Cap, Direction, PooledWalkResult, Walk, walk};
use lukasa_model::Result;
use lukasa_model::json::{self, Hash};
use lukasa_model::view::ViewEcho;
use lukasa_store::ledger::ViewSpec;
use rustc_hash::FxHashSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Instant;
use uuid::Uuid;

pub struct Traverse;

#[derive(Clone, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// Objects to start from: 1 to 50 names (`Type:key`, a key alone, or an id).
    #[schemars(length(min = 1, max = 50))]
    pub roots: Vec<String>,
    /// Direction in which relationships are followed.
    #[serde(default)]
    pub direction: Direction,
    /// Maximum number of hops from the roots, 0 to 8.
    #[serde(default = "max_depth")]
    #[schemars(range(min = 0, max = 8))]
    pub max_depth: u32,
    /// Maximum number of objects, 1 to 5,000.
    #[serde(default = "max_nodes")]
    #[schemars(range(min = 1, max = 5_000))]
    pub max_nodes: usize,
    /// Maximum number of relationships, 1 to 10,000.
    #[serde(default = "max_edges")]
    #[schemars(range(min = 1, max = 10_000))]
    pub max_edges: usize,
    #[serde(flatten)]
    pub types: TypeFilter,
    /// Only objects with at least one of these labels, at most 64; all when left out.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub labels: Vec<String>,
    /// Number of objects per page, 1 to 1,000.
    #[serde(default)]
    pub limit: Limit<200>,
    /// Another page: `next_cursor` or `previous_cursor` of an answer to the same request.
    #[serde(default)]
    pub cursor: Option<String>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn max_depth() -> u32 {
    2
}

fn max_nodes() -> usize {
    200
}

fn max_edges() -> usize {
    400
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub roots: Vec<Uuid>,
    /// Nearest first; at equal distance in the order in which they were reached.
    pub nodes: NodesOut,
    /// Each relationship once, on the page where its second end appears. Relationships between two objects at the last
    /// hop are left out; `neighbors` and `subgraph` list them.
    pub edges: EdgesOut,
    /// Ends of these relationships that were listed on an earlier page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier_nodes: Option<NodesOut>,
    /// The search stopped at a limit.
    pub truncated: bool,
    /// The limit that was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflow_type: Option<Cap>,
    pub max_depth_reached: u32,
    /// Number of objects on all pages.
    pub total_nodes: usize,
    pub has_next_page: bool,
    pub has_previous_page: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_cursor: Option<String>,
    pub meta: PageMeta,
    pub view: ViewEcho,
}

/// How the page was computed.
#[derive(Serialize, JsonSchema)]
pub struct PageMeta {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub roots_count: usize,
    pub direction: Direction,
    pub page_direction: &'static str,
    pub requested_limit: usize,
    pub effective_limit: usize,
    pub page_item_count: usize,
    pub max_depth_requested: u32,
    /// Indexes of the page's first and last object among all.
    pub approx_position_start: usize,
    pub approx_position_end: usize,
    pub edge_scan_count: usize,
    pub elapsed_ms: f64,
    /// Milliseconds since the Unix epoch.
    pub ts: i64,
}

impl Op for Traverse {
    const META: Meta = Meta {
        name: "traverse",
        shown: ResponseView::Cut(rendering::traversed),
        answer: &["nodes.key", "nodes.type", "nodes.title", "nodes.depth", "total_nodes"],
        rest: &["POST /graph/traverse"],
        summary: "Walk from objects along relationships",
        description: "Breadth-first from 1 to 50 objects, with filters and limits. The roots are always listed; paths \
                      do not lead through objects that a filter excludes. Relationships between two objects at the last \
                      hop are left out. Long answers have pages, which stay the same while others write: continue with \
                      the cursors.",
        verb: "traverse",
        toolset: "graph",
        names: &["roots"],
        positional: &["roots"],
        aliases: &[("root_ids", "roots")],
        examples: &[
            "lukasa traverse Service:auth --direction in --max-depth 3",
            "lukasa traverse auth billing --relationship-types CALLS --as-of release:1.0",
        ],
        ended: Some(ended),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let start = Instant::now();
        check(&request)?;
        let ledger = engine.ledger(&context.scope);
        let (look, cursor) = match &request.cursor {
            None => (engine.view_graph(context, &request.view)?, None),
            Some(text) => {
                let cursor = Cursor::open(text, &engine.graphs().cursor_key(&ledger)?)?;
                (engine.view_graph_at(context, &request.view, &cursor)?, Some(cursor))
            }
        };
        let roots = engine.nodes(&look, &request.roots)?;
        let digest = digest(&request, &look, &roots);
        cursor.map_or(Ok(()), |c| c.check(&digest))?;
        let filter = request.types.filter(&look, &request.labels)?;
        let plan = Walk {
            direction: request.direction,
            depth: request.max_depth,
            max_nodes: request.max_nodes,
            max_edges: request.max_edges,
            filter: &filter,
        };
        let found = walk(&look.snapshot, &roots, &plan);
        let total = found.nodes.len();
        let (from, to) = match cursor {
            None => (0, request.limit.get().min(total)),
            Some(c) if c.backwards => {
                let end = (c.place as usize).min(total);
                (end.saturating_sub(request.limit.get()), end)
            }
            Some(c) => {
                ((c.place as usize).min(total), (c.place as usize).saturating_add(request.limit.get()).min(total))
            }
        };
        let (has_next_page, has_previous_page) = (to < total, from > 0);
        let (mut next_cursor, mut previous_cursor) = (None, None);
        if has_next_page || has_previous_page {
            let key = engine.graphs().cursor_key(&ledger)?;
            let seal = |place, back| Cursor::new(&look.view, &digest, place, back).seal(&key);
            next_cursor = has_next_page.then(|| seal(to, false));
            previous_cursor = has_previous_page.then(|| seal(from, true));
            engine.graphs().projections.pin(&context.scope, &look.view, &look.snapshot);
        }
        let node = |i: usize| ComputedNode { depth: Some(found.depth(i)), ..ComputedNode::new(found.nodes[i]) };
        let edges: Vec<_> = if to - from == total {
            found.edges(&look.snapshot)
        } else {
            let trails = found.trails(&look.snapshot);
            let all = trails.edges.iter().zip(&trails.edge_places);
            all.filter(|(_, place)| (from..to).contains(&(**place as usize))).map(|(edge, _)| *edge).collect()
        };
        let mut earlier: Vec<Node> = if to - from == total {
            vec![]
        } else {
            let here: FxHashSet<Node> = found.nodes[from..to].iter().copied().collect();
            let ends = edges.iter().flat_map(|e| <[Node; 2]>::from(look.snapshot.ends(*e)));
            ends.filter(|n| !here.contains(n)).collect()
        };
        earlier.sort_by_key(|n| look.snapshot.thing(*n));
        earlier.dedup();
        let earlier = (!earlier.is_empty()).then(|| earlier.into_iter().map(ComputedNode::new).collect());
        Ok(Response {
            earlier_nodes: earlier.map(|rows| look.nodes_out(rows)),
            summary: summary(&look, &request, roots.len(), &found, from..to),
            roots: roots.iter().map(|r| look.snapshot.id(*r)).collect(),
            nodes: look.nodes_out((from..to).map(node).collect()),
            edges: look.edges_out(edges),
            truncated: found.cut.is_some(),
            overflow_type: found.cut,
            max_depth_reached: found.depth_reached(),
            total_nodes: total,
            has_next_page,
            has_previous_page,
            next_cursor,
            previous_cursor,
            meta: PageMeta {
                kind: "graph.traverse.page",
                roots_count: roots.len(),
                direction: request.direction,
                page_direction: if cursor.is_some_and(|c| c.backwards) { "backward" } else { "forward" },
                requested_limit: request.limit.get(),
                effective_limit: request.limit.get(),
                page_item_count: to - from,
                max_depth_requested: request.max_depth,
                approx_position_start: from,
                approx_position_end: to.saturating_sub(1).max(from),
                edge_scan_count: found.scanned,
                elapsed_ms: start.elapsed().as_secs_f64() * 1e3,
                ts: engine.clock().now().0 / 1_000,
            },
            view: look.view.echo(),
        })
    }
}

fn check(request: &Request) -> Result<()> {
    check_range("roots", request.roots.len(), 1, 50)?;
    check_range("labels", request.labels.len(), 0, 64)?;
    request.types.check()
}

/// A hash of what a cursor belongs to: the request without its paging fields, and the objects that its roots name.
fn digest(request: &Request, look: &ViewGraph, roots: &[Node]) -> Hash {
    let unpaged = Request { cursor: None, limit: Limit::default(), ..request.clone() };
    let things: Vec<_> = roots.iter().map(|r| look.snapshot.thing(*r)).collect();
    let value = serde_json::to_value((unpaged, things)).expect("a request is plain data");
    Hash::of(json::canonical(&value).as_bytes())
}

fn summary(
    look: &ViewGraph,
    request: &Request,
    roots: usize,
    found: &PooledWalkResult,
    page: std::ops::Range<usize>,
) -> String {
    let others = (0..found.nodes.len()).filter(|i| found.depth(*i) > 0).count();
    let from = match found.nodes.as_slice() {
        [] => String::new(),
        [root, ..] if roots == 1 => format!(" of {}", look.snapshot.name(*root)),
        _ => format!(" of {}", count(roots, "root")),
    };
    let mut text = format!(
        "{} within {}{from}, {}",
        count(others, "object"),
        count(request.max_depth, "hop"),
        count(found.edge_count(), "relationship")
    );
    match found.cut {
        Some(Cap::Edge) => text += &format!("; cut by max_edges {}", request.max_edges),
        Some(_) => text += &format!("; cut by max_nodes {}", request.max_nodes),
        None => {}
    }
    if page.len() < found.nodes.len() {
        text += &format!("; {} to {} of {}", page.start + 1, page.end, found.nodes.len());
    }
    text
}

/// Records latency and the event of a page.
fn ended(context: &Context<'_>, ended: &EndedOperation<'_>) {
    let Ok(answer) = ended.answer else { return };
    ended.walked(context, answer.number("max_depth_reached"));
    let meta = |name: &str| json!(answer.count(&format!("meta.{name}")));
    log::event(
        log::LogLevel::Info,
        "graph.traverse.page",
        &[
            ("roots_count", meta("roots_count")),
            ("direction", json!(answer.text("meta.direction"))),
            ("page_direction", json!(answer.text("meta.page_direction"))),
            ("requested_limit", meta("requested_limit")),
            ("effective_limit", meta("effective_limit")),
            ("total_nodes", json!(answer.count("total_nodes"))),
            ("page_item_count", meta("page_item_count")),
            ("has_next_page", json!(answer.flag("has_next_page"))),
            ("has_previous_page", json!(answer.flag("has_previous_page"))),
            ("max_depth_requested", meta("max_depth_requested")),
            ("max_depth_reached", json!(answer.count("max_depth_reached"))),
            ("truncated", json!(answer.truncated())),
            ("approx_position_start", meta("approx_position_start")),
            ("approx_position_end", meta("approx_position_end")),
            ("next_cursor_set", json!(answer.at("next_cursor") != &RedactedSummary::Absent)),
            ("prev_cursor_set", json!(answer.at("previous_cursor") != &RedactedSummary::Absent)),
            ("elapsed_ms", ended.elapsed_ms()),
        ],
    );
}
