//! `communities`: groups of closely connected objects, computed from the graph and not recorded as facts.

use crate::features::graph::communities::options;
use crate::features::graph::communities::{CommunityOut, ComputedCommunities};
use crate::features::graph::rendering;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::view::{ComputedNode, NodesOut, ViewGraph};
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_graph::community::Algorithm;
use lukasa_model::view::ViewEcho;
use lukasa_model::{ErrorCode, Result, Tx};
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub struct Communities;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Show the members of this community: its key or label.
    #[serde(default)]
    pub community: Option<String>,
    /// Show the community of this object.
    #[serde(default)]
    pub of: Option<String>,
    /// Algorithm that computes them.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// Higher values give more and smaller communities.
    #[serde(default = "resolution")]
    pub resolution: f64,
    /// The same seed gives the same communities.
    #[serde(default = "seed")]
    pub seed: u64,
    /// Recompute even if a cached result exists.
    #[serde(default)]
    pub fresh: bool,
    /// Maximum number of communities or members, up to 1,000.
    #[serde(default)]
    pub limit: Limit<20>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn resolution() -> f64 {
    1.0
}

fn seed() -> u64 {
    42
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Largest first; isolated objects belong to none.
    pub communities: Vec<CommunityOut>,
    pub total: usize,
    /// Members of the requested community, most central first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<NodesOut>,
    pub truncated: bool,
    pub modularity: f64,
    /// The transaction they were computed at.
    pub computed_at: Tx,
    /// Number of transactions since then.
    pub transactions_since: u64,
    pub view: ViewEcho,
}

impl Op for Communities {
    const META: Meta = Meta {
        name: "communities",
        long: true,
        shown: ResponseView::Cut(rendering::communities),
        answer: &[
            "communities.label",
            "communities.summary",
            "communities.size",
            "communities.central_node",
            "members.key",
        ],
        summary: "Show groups of objects that belong together",
        description: "Computes groups with more relationships inside than chance would give (Leiden, or Louvain). Names \
                      and summaries come from counting what the members share; if a language model is configured, it \
                      writes a sentence about each group in the background. Groups are cached with the transaction \
                      they were computed at, computed again after a full rebuild, and not recorded as facts. --fresh \
                      computes them now.",
        verb: "communities",
        toolset: "graph",
        names: &["of"],
        positional: &["community"],
        examples: &["lukasa communities", "lukasa communities auth", "lukasa communities --of src/auth.ts::login"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let options = options(request.algorithm, request.resolution, request.seed)?;
        let look = engine.view_graph(context, &request.view)?;
        let kept = if request.fresh {
            engine.find_communities(&look, &options, look.is_head)?
        } else {
            engine.communities(&look, &options)?
        };
        engine.summarise_in_background(&look, &kept);
        let chosen = match (&request.community, &request.of) {
            (Some(word), _) => Some(kept.find(word)?),
            (None, Some(name)) => Some(of(&look, &kept, name)?),
            (None, None) => None,
        };
        Ok(answer(&look, &kept, chosen, request.limit.get()))
    }
}

fn of(look: &ViewGraph, kept: &Arc<ComputedCommunities>, name: &str) -> Result<usize> {
    let node = look.node(name)?;
    kept.of(look.snapshot.thing(node)).ok_or_else(|| {
        lukasa_model::Error::not_found(ErrorCode::NotFound, format!("`{name}` is in no community"))
            .hint("objects without relationships have no company")
    })
}

fn answer(look: &ViewGraph, kept: &Arc<ComputedCommunities>, chosen: Option<usize>, limit: usize) -> Response {
    let total = kept.communities.len();
    let (communities, members, truncated, summary) = match chosen {
        Some(i) => {
            let community = kept.communities[i].clone();
            let nodes: Vec<Node> = kept.members(i).iter().filter_map(|t| look.snapshot.find(*t)).collect();
            let members = look.nodes_out(nodes.iter().take(limit).map(|n| ComputedNode::new(*n)).collect());
            let summary = format!("{}: {}", community.label, community.summary);
            (vec![community], Some(members), nodes.len() > limit, summary)
        }
        None => {
            let listed = kept.communities.iter().take(limit).cloned().collect();
            let found = count(total, "community").replace("communitys", "communities");
            (listed, None, total > limit, format!("{found}, modularity {:.3}", kept.modularity))
        }
    };
    Response {
        summary,
        communities,
        total,
        members,
        truncated,
        modularity: kept.modularity,
        computed_at: kept.at.tx,
        transactions_since: look.view.known.since(kept.at.tx),
        view: look.view.echo(),
    }
}
