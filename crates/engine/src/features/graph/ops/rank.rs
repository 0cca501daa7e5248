//! `rank`: lists the most central objects, of all or around seeds.

use crate::features::graph::rendering;
use crate::ranges::check_range;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::view::{ComputedNode, NodesOut, ViewGraph};
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_graph::rank::{DAMPING, EdgeWeights, RankMethod, around};
use lukasa_model::view::ViewEcho;
use lukasa_model::{Error, ErrorCode, Result};
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub struct Rank;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Rank by closeness to these objects, at most 50, `name` or `name=weight`; by PageRank of all when left out.
    #[serde(default)]
    #[schemars(length(max = 50))]
    pub seeds: Vec<String>,
    /// Weights of relationship types that replace the defaults, around seeds: `{"CALLS": 1.0}`.
    #[serde(default)]
    pub edge_weights: BTreeMap<String, f64>,
    /// Damping factor: the probability that a walk continues instead of restarting, 0 to 0.99.
    #[serde(default = "damping")]
    #[schemars(range(min = 0.0, max = 0.99))]
    pub damping: f64,
    /// Only objects of this type.
    #[serde(default, rename = "type")]
    pub type_name: Option<String>,
    /// Maximum number of objects, up to 1,000.
    #[serde(default)]
    pub limit: Limit<20>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn damping() -> f64 {
    DAMPING
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub nodes: NodesOut,
    /// `pagerank`, or the method for ranks around seeds: `power_iteration`, `forward_push`.
    pub method: &'static str,
    /// Number of objects with a rank, listed or not.
    pub total: usize,
    pub truncated: bool,
    pub view: ViewEcho,
}

impl Op for Rank {
    const META: Meta = Meta {
        name: "rank",
        long: true,
        shown: ResponseView::Cut(rendering::ranks),
        answer: &["nodes.key", "nodes.type", "nodes.pagerank", "nodes.score"],
        summary: "List the most central objects",
        description: "PageRank of all objects, or personalized PageRank around seeds: a random walk that follows \
                      relationships by the weight of their type, against their direction at half of it, and restarts \
                      at the seeds.",
        verb: "rank",
        toolset: "graph",
        names: &["seeds"],
        positional: &["seeds"],
        examples: &["lukasa rank --limit 10", "lukasa rank Service:auth Service:web=0.5 --type Function"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        check_range("seeds", request.seeds.len(), 0, 50)?;
        if let Some((name, weight)) = request.edge_weights.iter().find(|(_, w)| !(0.0..=1_000.0).contains(*w)) {
            return Err(Error::invalid(
                ErrorCode::OutOfRange,
                format!("the weight of `{name}` is {weight}, allowed is 0 to 1000"),
            ));
        }
        if request.seeds.is_empty() && !request.edge_weights.is_empty() {
            return Err(Error::invalid(ErrorCode::WeightsNeedSeeds, "weights of types count around seeds only")
                .hint("name at least one seed, or leave out `edge_weights`"));
        }
        let look = engine.view_graph(context, &request.view)?;
        let s = &look.snapshot;
        let (mut ranked, method): (Vec<(Node, f64)>, _) = if request.seeds.is_empty() {
            let flat = s.flat();
            let mut all: Vec<_> = flat.nodes.iter().copied().zip(s.ranks().iter().copied()).collect();
            // Nodes are in the order they were recorded, and the sort is stable.
            all.sort_by(|a, b| b.1.total_cmp(&a.1));
            (all, "pagerank")
        } else {
            let mut seeds = Vec::new();
            for seed in &request.seeds {
                seeds.extend(seeds_of(engine, &look, seed)?);
            }
            let given: Vec<_> = request.edge_weights.into_iter().collect();
            let weights = EdgeWeights::new(s, &look.registry, &given);
            let (all, method) = around(s, &weights, &seeds, request.damping);
            (all, if method == RankMethod::PowerIteration { "power_iteration" } else { "forward_push" })
        };
        if let Some(type_name) = request.type_name {
            let filter = look.filter(&[], &[type_name], &[])?;
            ranked.retain(|(node, _)| filter.node(s, *node));
        }
        let total = ranked.len();
        ranked.truncate(request.limit.get());
        let summary = match ranked.first() {
            Some((node, _)) if request.seeds.is_empty() => {
                format!("{} ranked; the most central is {}", count(total, "object"), s.name(*node))
            }
            Some(_) => format!("{} near {}", count(total, "object"), request.seeds.join(", ")),
            None => "nothing to rank".into(),
        };
        let row = |(node, score): &(Node, f64)| ComputedNode {
            score: Some(*score),
            degree: Some(s.degree(*node)),
            ..ComputedNode::new(*node)
        };
        Ok(Response {
            summary,
            nodes: look.titled_out(ranked.iter().map(row).collect())?,
            method,
            total,
            truncated: total > request.limit.get(),
            view: look.view.echo(),
        })
    }
}

/// Parses a seed: `name=weight`, or a name, whose weight is 1. A name may contain `=`. The weight of a community is
/// divided among its members.
fn seeds_of(engine: &Engine, look: &ViewGraph, seed: &str) -> Result<Vec<(Node, f64)>> {
    let weighted = seed.rsplit_once('=').and_then(|(name, weight)| Some((name, weight.parse::<f64>().ok()?)));
    let (name, weight) = match weighted {
        Some(weighted) if look.node(seed).is_err() => weighted,
        _ => (seed, 1.0),
    };
    if !(weight > 0.0 && weight <= 1e6) {
        return Err(Error::invalid(
            ErrorCode::OutOfRange,
            format!("the weight of seed `{name}` is {weight}, allowed is above 0 to 1000000"),
        ));
    }
    let nodes = engine.nodes(look, &[name.to_string()])?;
    let each = weight / nodes.len().max(1) as f64;
    Ok(nodes.into_iter().map(|node| (node, each)).collect())
}
