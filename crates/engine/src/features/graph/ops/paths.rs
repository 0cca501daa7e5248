//! `shortest_path` and `paths`: find paths between two objects.

use crate::features::graph::rendering;
use crate::ranges::check_range;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::view::{PathOut, TypeFilter};
use crate::{Context, Engine};
use lukasa_graph::paths::{all_simple, most_likely, shortest};
use lukasa_graph::walk::{Cap, Direction, Filter};
use lukasa_model::Result;
use lukasa_model::view::ViewEcho;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ShortestPath;
pub struct Paths;

/// The criterion for the best path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathCriterion {
    /// Fewest hops.
    #[default]
    Hops,
    /// Largest product of confidences.
    Confidence,
}

#[derive(Deserialize, JsonSchema)]
pub struct ShortestRequest {
    /// The object where the path begins.
    pub from: String,
    /// The object where it ends.
    pub to: String,
    /// Which way to follow relationships.
    #[serde(default)]
    pub direction: Direction,
    /// Maximum number of hops, 1 to 32, 16 when left out; by confidence 1 to 8, 6 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 32))]
    pub max_depth: Option<u32>,
    /// The criterion for the best path.
    #[serde(default)]
    pub by: PathCriterion,
    /// Ignore relationships with lower confidence, 0 to 1; relationships without a confidence count as 1.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_confidence: Option<f64>,
    #[serde(flatten)]
    pub types: TypeFilter,
    #[serde(flatten)]
    pub view: ViewSpec,
}

#[derive(Serialize, JsonSchema)]
pub struct ShortestResponse {
    pub summary: String,
    /// Null if there is no path.
    pub path: Option<PathOut>,
    /// The search stopped at a limit: there may be a path, or a better one.
    pub truncated: bool,
    pub view: ViewEcho,
}

impl Op for ShortestPath {
    const META: Meta = Meta {
        name: "shortest_path",
        shown: ResponseView::Cut(rendering::shortest_path),
        answer: &["path.nodes", "path.edges.type", "path.hops", "path.confidence"],
        summary: "Find the shortest path between two objects",
        description: "A path with the fewest hops, or with `by confidence` the one with the highest confidence. With \
                      `--relationship-types CALLS --direction out` it is the call chain from one symbol to another. \
                      Object types apply to the objects in between.",
        verb: "shortest-path",
        toolset: "graph",
        names: &["from", "to"],
        positional: &["from", "to"],
        examples: &[
            "lukasa shortest-path Service:web Service:db",
            "lukasa shortest-path src/a.ts::main src/b.ts::save --relationship-types CALLS --direction out",
        ],
        ..META
    };
    type Request = ShortestRequest;
    type Response = ShortestResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: ShortestRequest) -> Result<ShortestResponse> {
        let (most, usual) = if request.by == PathCriterion::Hops { (32, 16) } else { (8, 6) };
        let depth = request.max_depth.unwrap_or(usual);
        check_range("max_depth", depth, 1, most)?;
        check_range("min_confidence", request.min_confidence.unwrap_or(0.0), 0.0, 1.0)?;
        request.types.check()?;
        let look = engine.view_graph(context, &request.view)?;
        let (from, to) = (look.node(&request.from)?, look.node(&request.to)?);
        let filter = Filter { min_confidence: request.min_confidence, ..request.types.filter(&look, &[])? };
        let s = &look.snapshot;
        let (found, cut) = match request.by {
            PathCriterion::Hops => (shortest(s, from, to, request.direction, &filter, depth), None),
            PathCriterion::Confidence if from == to => (shortest(s, from, to, request.direction, &filter, depth), None),
            PathCriterion::Confidence => {
                let (reached, _, cut) = most_likely(s, &[from], Some(to), request.direction, &filter, depth);
                (reached.into_iter().find(|sure| sure.node == to).map(|sure| sure.path), cut)
            }
        };
        let (a, b) = (s.name(from), s.name(to));
        let summary = match &found {
            Some(path) => format!("{} from {a} to {b}", count(path.edges.len(), "hop")),
            None if cut.is_some() => {
                format!("no path from {a} to {b} among the nearest objects; there may be a longer one")
            }
            None => format!("no path from {a} to {b} within {}", count(depth, "hop")),
        };
        Ok(ShortestResponse {
            summary,
            path: found.map(|path| look.path_out(&path.nodes, &path.edges)),
            truncated: cut.is_some(),
            view: look.view.echo(),
        })
    }
}

#[derive(Deserialize, JsonSchema)]
pub struct PathsRequest {
    /// The object where the paths begin.
    pub from: String,
    /// The object where they end.
    pub to: String,
    /// Which way to follow relationships.
    #[serde(default)]
    pub direction: Direction,
    /// Maximum number of hops, 1 to 10.
    #[serde(default = "depth")]
    #[schemars(range(min = 1, max = 10))]
    pub max_depth: u32,
    /// Maximum number of paths, 1 to 1,000.
    #[serde(default)]
    pub limit: Limit<20>,
    /// Ignore relationships with lower confidence, 0 to 1; relationships without a confidence count as 1.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_confidence: Option<f64>,
    #[serde(flatten)]
    pub types: TypeFilter,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn depth() -> u32 {
    4
}

#[derive(Serialize, JsonSchema)]
pub struct PathsResponse {
    pub summary: String,
    /// Shortest first.
    pub paths: Vec<PathOut>,
    pub truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflow_type: Option<Cap>,
    pub view: ViewEcho,
}

impl Op for Paths {
    const META: Meta = Meta {
        name: "paths",
        long: true,
        shown: ResponseView::Cut(rendering::all_paths),
        answer: &["paths.nodes", "paths.edges.type", "paths.hops"],
        summary: "Find all paths between two objects",
        description: "All paths without a cycle, shortest first, up to a length and a number. Parallel relationships \
                      between two objects count as one path.",
        verb: "paths",
        toolset: "graph",
        names: &["from", "to"],
        positional: &["from", "to"],
        examples: &["lukasa paths Service:web Service:db --max-depth 3"],
        ..META
    };
    type Request = PathsRequest;
    type Response = PathsResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: PathsRequest) -> Result<PathsResponse> {
        check_range("min_confidence", request.min_confidence.unwrap_or(0.0), 0.0, 1.0)?;
        request.types.check()?;
        let look = engine.view_graph(context, &request.view)?;
        let (from, to) = (look.node(&request.from)?, look.node(&request.to)?);
        let filter = Filter { min_confidence: request.min_confidence, ..request.types.filter(&look, &[])? };
        let s = &look.snapshot;
        let (found, cut) = all_simple(s, from, to, request.direction, &filter, request.max_depth, request.limit.get());
        let mut summary = format!(
            "{} from {} to {} within {}",
            count(found.len(), "way"),
            s.name(from),
            s.name(to),
            count(request.max_depth, "hop")
        );
        match cut {
            Some(Cap::Steps) => summary += "; the search stopped at a limit, so some may be missing",
            Some(_) => summary += "; there are more",
            None => {}
        }
        Ok(PathsResponse {
            summary,
            paths: found.iter().map(|p| look.path_out(&p.nodes, &p.edges)).collect(),
            truncated: cut.is_some(),
            overflow_type: cut,
            view: look.view.echo(),
        })
    }
}
