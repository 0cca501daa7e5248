//! `build_context_graph`: selects the nodes and policies that matter for a task and records them for replay.

use crate::features::graph::ops::neighbors::among;
use crate::features::memory::context_graph::{
    ContextEdgeOut, ContextGraphMode, ContextNodeOut, POLICY, SelectedNodes, around, governed_by, is_protected,
    policies_of, prompt,
};
use crate::features::search::{Recipe, SearchQuestion, find};
use crate::ranges::check_range;
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::responses::count;
use crate::sensitive::is_sensitive;
use crate::view::NodeContents;
use crate::view::ViewGraph;
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_graph::walk::Filter;
use lukasa_model::batch::PutObject;
use lukasa_model::view::ViewEcho;
use lukasa_model::{Batch, Error, ErrorCode, Result};
use lukasa_search::pipeline::fuse::Fusion;
use lukasa_search::recipes::CONTEXT_GRAPH as RECIPE;
use lukasa_store::VersionFields;
use lukasa_store::ledger::ViewSpec;
use rustc_hash::FxHashSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The operation `build_context_graph`.
pub struct BuildContextGraph;

pub(super) const CONTEXT_GRAPH: &str = "ContextGraph";
/// Longest query, in characters.
const LONGEST: usize = 800;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Names of up to 50 nodes to start from.
    #[serde(default)]
    #[schemars(length(max = 50))]
    pub anchors: Vec<String>,
    /// anchor: nodes around the anchors; semantic: also similar nodes; policy_first: only those that the policies
    /// govern.
    #[serde(default)]
    pub mode: ContextGraphMode,
    /// Description of the task for semantic mode; the titles of the anchors when left out.
    #[serde(default)]
    pub query: Option<String>,
    /// Maximum number of nodes, 1 to 1,000.
    #[serde(default = "max_nodes")]
    #[schemars(range(min = 1, max = 1_000))]
    pub max_nodes: usize,
    /// Maximum number of hops from the anchors, 0 to 6.
    #[serde(default = "max_depth")]
    #[schemars(range(min = 0, max = 6))]
    pub max_depth: u32,
    /// Policies to apply in addition to those that govern the selected nodes.
    #[serde(default)]
    #[schemars(length(max = 50))]
    pub policies: Vec<String>,
    /// Token budget of the prompt text, 100 to 8,000.
    #[serde(default = "token_budget")]
    #[schemars(range(min = 100, max = 8_000))]
    pub token_budget: usize,
    /// Include properties of nodes.
    #[serde(default)]
    pub include_properties: bool,
    /// The task the graph is for.
    #[serde(default)]
    pub task_id: Option<String>,
    /// The session the graph is for; the caller's when left out.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Record the graph for replay and for `context_graph_usage`; on by default.
    #[serde(default = "yes")]
    pub keep: bool,
    /// Id of a recorded graph to return exactly as it was.
    #[serde(default)]
    pub replay: Option<String>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn max_nodes() -> usize {
    128
}

fn max_depth() -> u32 {
    2
}

fn token_budget() -> usize {
    1_200
}

fn yes() -> bool {
    true
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Id of the recorded graph; null when it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_graph_id: Option<String>,
    pub mode: ContextGraphMode,
    /// Nearest first.
    pub nodes: Vec<ContextNodeOut>,
    pub edges: Vec<ContextEdgeOut>,
    pub governance: Governance,
    pub actual_node_count: usize,
    pub actual_edge_count: usize,
    /// The graph as prompt text, within the budget.
    pub prompt: String,
    pub prompt_tokens: usize,
    /// More nodes were within reach, or the text had no room for all of them.
    pub truncated: bool,
    /// This is a recorded graph, returned as it was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    pub view: Value,
}

/// Policies that apply, and their effect.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Governance {
    /// Policies that were requested or that govern a selected node.
    pub policies_applied: Vec<String>,
    /// Number of nodes whose labels require protection.
    pub protected_node_count: usize,
    /// Number of nodes left out because they are sensitive.
    pub withheld: usize,
}

impl Op for BuildContextGraph {
    const META: Meta = Meta {
        name: "build_context_graph",
        answer: &["prompt", "context_graph_id", "nodes.node_id", "nodes.name", "governance"],
        summary: "What matters for a task and which rules apply, as a small graph and as text",
        description: "Selects the nodes around some anchors; `semantic` mode adds similar ones, `policy_first` mode keeps only \
                      those that policies govern. Adds the policies that apply, and returns nodes and relationships, \
                      and text for a prompt. The graph is recorded with its budget and policies, can be replayed, \
                      and `context_graph_usage` links it to the calls it had a part in. Sensitive things are left out.",
        verb: "context-graph",
        toolset: "memory",
        names: &["anchors", "policies", "replay"],
        positional: &["anchors"],
        aliases: &[("store", "keep")],
        examples: &[
            "lukasa context-graph task:12 src/auth.ts",
            "lukasa context-graph decision:42 --mode semantic --max-nodes 40",
        ],
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        check_range("anchors", request.anchors.len(), 0, 50)?;
        check_range("policies", request.policies.len(), 0, 50)?;
        if let Some(id) = &request.replay {
            return replay(engine, context, id, &request.view);
        }
        let about_nothing = request.anchors.is_empty() && request.policies.is_empty() && request.query.is_none();
        if about_nothing {
            return Err(Error::invalid(ErrorCode::NoAnchors, "nothing says what the graph is about").hint(
                "name `anchors`, or give a `query` in the mode semantic, or `policies` in the mode policy_first",
            ));
        }
        let look = engine.view_graph(context, &request.view)?;
        let mut response = build(engine, context, &look, &request)?;
        if request.keep {
            response.context_graph_id = Some(keep(engine, context, &request, &response)?);
        }
        Ok(response)
    }
}

fn build(engine: &Engine, context: &mut Context<'_>, look: &ViewGraph, request: &Request) -> Result<Response> {
    let s = &look.snapshot;
    let anchors = engine.nodes(look, &request.anchors)?;
    let named = engine.nodes(look, &request.policies)?;
    if let Some(other) = named.iter().find(|node| !s.type_name(**node).eq_ignore_ascii_case(POLICY)) {
        return Err(Error::invalid(ErrorCode::NotAPolicy, format!("`{}` is not a policy", s.name(*other)))
            .hint("policies are objects of the type Policy"));
    }
    let mut chosen = around(s, &anchors, request.max_depth, request.max_nodes);
    match request.mode {
        ContextGraphMode::Anchor => {}
        ContextGraphMode::Semantic => add_alike(engine, context, look, request, &anchors, &mut chosen)?,
        ContextGraphMode::PolicyFirst => {
            let policies = if named.is_empty() { of_type(look, POLICY) } else { named.clone() };
            let governed = governed_by(s, &policies);
            chosen = intersected(look, request, &anchors, &governed);
        }
    }
    let nodes: Vec<Node> = chosen.nodes.iter().map(|(node, _)| *node).collect();
    let mut policies = named;
    for policy in policies_of(s, &nodes) {
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    }
    let read = NodeContents::of(look, &nodes.iter().chain(&policies).copied().collect::<Vec<_>>())?;
    let reached = chosen.nodes.len();
    chosen.nodes.retain(|(node, _)| !read.content(*node).is_some_and(is_sensitive));
    let withheld = reached - chosen.nodes.len();
    let governing: FxHashSet<Node> = policies.iter().copied().collect();
    let farthest = chosen.nodes.last().map_or(0, |(_, depth)| *depth);
    let there: FxHashSet<Node> = chosen.nodes.iter().map(|(node, _)| *node).collect();
    let rules = policies.iter().filter(|policy| !there.contains(policy)).map(|policy| (*policy, farthest + 1));
    let all: Vec<(Node, u32)> = chosen.nodes.iter().copied().chain(rules).collect();
    let edges = among(look, &all.iter().map(|(node, _)| *node).collect::<Vec<_>>(), &Filter::default());
    let (text, included) = prompt(look, &read, &policies, &chosen.nodes, &edges, request.token_budget);
    let to_include = chosen.nodes.iter().filter(|(node, _)| !governing.contains(node)).count();
    let node = |(node, depth): &(Node, u32)| ContextNodeOut::of(s, &read, *node, *depth, request.include_properties);
    let protected = all.iter().filter(|(node, _)| is_protected(s, *node)).count();
    let mut summary = format!(
        "{} and {} in the mode {}",
        count(all.len(), "node"),
        count(edges.len(), "relationship"),
        request.mode.name()
    );
    if !policies.is_empty() {
        summary += &format!(
            ", under {}",
            if policies.len() == 1 { "1 policy".into() } else { format!("{} policies", policies.len()) }
        );
    }
    if withheld > 0 {
        summary += &format!("; {withheld} sensitive left out");
    }
    if chosen.truncated {
        summary += "; there is more within reach";
    }
    Ok(Response {
        summary,
        context_graph_id: None,
        mode: request.mode,
        actual_node_count: all.len(),
        actual_edge_count: edges.len(),
        nodes: all.iter().map(node).collect(),
        edges: edges.iter().map(|edge| ContextEdgeOut::of(s, *edge)).collect(),
        governance: Governance {
            policies_applied: policies.iter().map(|policy| s.name(*policy)).collect(),
            protected_node_count: protected,
            withheld,
        },
        prompt_tokens: lukasa_search::count::count(&text),
        prompt: text,
        truncated: chosen.truncated || included < to_include,
        replayed: false,
        view: echo(&look.view.echo())?,
    })
}

fn echo(view: &ViewEcho) -> Result<Value> {
    serde_json::to_value(view).map_err(|e| Error::internal(e.to_string()))
}

/// Adds nodes similar to the anchors or to the query; they replace the nodes farthest from the anchors.
fn add_alike(
    engine: &Engine,
    context: &mut Context<'_>,
    look: &ViewGraph,
    request: &Request,
    anchors: &[Node],
    chosen: &mut SelectedNodes,
) -> Result<()> {
    let words = match &request.query {
        Some(query) => query.clone(),
        None => {
            let read = NodeContents::of(look, anchors)?;
            let title = |node: &Node| read.content(*node).and_then(|content| content.title.clone());
            anchors
                .iter()
                .map(|node| title(node).unwrap_or_else(|| look.snapshot.name(*node)))
                .collect::<Vec<_>>()
                .join(" ")
        }
    };
    let words: String = words.chars().take(LONGEST).collect();
    let texts = engine.texts(context, look)?;
    let meaning = engine.nearest(context, look, &words, None)?;
    let found = find(
        look,
        &texts,
        &SearchQuestion {
            text: &words,
            recipe: Recipe::Mixed,
            lexical: true,
            vector: true,
            intent: None,
            fusion: Fusion::WeightedSum,
            pool: RECIPE.pool,
            nearest: meaning.nearest,
            allowed: &|_| true,
        },
    );
    let there: FxHashSet<Node> = chosen.nodes.iter().map(|(node, _)| *node).collect();
    let fresh = found.candidates.iter().map(|candidate| candidate.node).filter(|node| !there.contains(node));
    let fresh: Vec<(Node, u32)> =
        fresh.take(RECIPE.alike.min(request.max_nodes)).map(|node| (node, request.max_depth + 1)).collect();
    let kept = request.max_nodes.saturating_sub(fresh.len()).max(anchors.len().min(request.max_nodes));
    chosen.truncated |= chosen.nodes.len() > kept;
    chosen.nodes.truncate(kept);
    chosen.nodes.extend(fresh.into_iter().take(request.max_nodes - chosen.nodes.len()));
    Ok(())
}

/// Keeps the anchors and the governed nodes around them; without anchors, all governed nodes.
fn intersected(look: &ViewGraph, request: &Request, anchors: &[Node], governed: &[Node]) -> SelectedNodes {
    if anchors.is_empty() {
        let nodes: Vec<(Node, u32)> = governed.iter().take(request.max_nodes).map(|node| (*node, 1)).collect();
        return SelectedNodes { truncated: governed.len() > nodes.len(), nodes };
    }
    let governed: FxHashSet<Node> = governed.iter().copied().collect();
    let mut chosen = around(&look.snapshot, anchors, request.max_depth, usize::MAX / 16);
    chosen.nodes.retain(|(node, depth)| *depth == 0 || governed.contains(node));
    chosen.truncated |= chosen.nodes.len() > request.max_nodes;
    chosen.nodes.truncate(request.max_nodes);
    chosen
}

fn of_type(look: &ViewGraph, type_name: &str) -> Vec<Node> {
    let s = &look.snapshot;
    let own = |node: &Node| s.type_name(*node).eq_ignore_ascii_case(type_name) && !s.is_ended(*node);
    s.nodes().into_iter().filter(own).collect()
}

/// Records the graph with its parameters and returns its key.
fn keep(engine: &Engine, context: &Context<'_>, request: &Request, response: &Response) -> Result<String> {
    engine.declare_agent_types(context)?;
    let key = format!("context:{}", engine.clock().new_id());
    let graph = serde_json::to_value(response).map_err(|e| Error::internal(e.to_string()))?;
    let session = request.session_id.clone().or_else(|| context.session.clone());
    let put = PutObject::new(CONTEXT_GRAPH, &key)
        .title(&response.summary)
        .property("projection_mode", request.mode.name())
        .property("anchor_nodes", json!(request.anchors))
        .property("max_nodes", request.max_nodes)
        .property("max_depth", request.max_depth)
        .property("token_budget", request.token_budget)
        .property("actual_node_count", response.actual_node_count)
        .property("actual_edge_count", response.actual_edge_count)
        .property("policies_asked", json!(request.policies))
        .property("policies_applied", json!(response.governance.policies_applied))
        .property("protected_node_count", response.governance.protected_node_count)
        .property("graph", graph);
    let given = [
        ("query", request.query.clone()),
        ("task_id", request.task_id.clone()),
        ("session_id", session),
        ("agent_id", context.agent.clone()),
    ];
    let put = given.into_iter().fold(put, |put, (name, value)| match value {
        Some(value) => put.property(name, value),
        None => put,
    });
    let batch = Batch { header: context.header(Some("context graph".into())), ..Batch::on("") }.write(put);
    engine.ledger(&context.scope).commit(&batch)?;
    Ok(key)
}

/// Returns a recorded graph as it was.
fn replay(engine: &Engine, context: &mut Context<'_>, id: &str, spec: &ViewSpec) -> Result<Response> {
    let ledger = engine.ledger(&context.scope);
    let view = ledger.view(spec)?;
    let found = ledger.find(&view, &engine.reference(context, spec, id)?)?;
    let kept = ledger.states(&view, &[found.thing.no], VersionFields::Content)?.pop().and_then(|state| state.statement);
    let content = kept.map(|statement| statement.parsed()).transpose()?;
    let graph = content.and_then(|content| content.properties.get("graph").cloned());
    let Some(graph) = graph.filter(|_| found.thing.type_name.eq_ignore_ascii_case(CONTEXT_GRAPH)) else {
        return Err(Error::invalid(
            ErrorCode::NotAContextGraph,
            format!("`{id}` is not a context graph that was kept"),
        ));
    };
    let mut response: Response =
        serde_json::from_value(graph).map_err(|e| Error::internal(format!("`{id}` cannot be read: {e}")))?;
    response.context_graph_id = Some(id.to_owned());
    response.replayed = true;
    Ok(response)
}
