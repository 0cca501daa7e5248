//! `call_chain`: finds the shortest chains of calls from one symbol to another.

use crate::features::code::rendering;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::view::symbols::{
    LinkDirection, LocatedSymbol, SymbolContents, SymbolRelation, Symbols, check_confidence, lines,
};
use crate::{Context, Engine};
use lukasa_graph::{Edge, Node};
use lukasa_model::Result;
use lukasa_model::view::ViewEcho;
use lukasa_store::ledger::ViewSpec;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct CallChain;

/// Maximum number of members of a class or file considered as start or end of a chain.
const MEMBERS: usize = 5_000;
/// Maximum number of chains of equal length compared by confidence.
const COMPARED: usize = 200;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The calling symbol: `Type:key`, a key, an id, a name, or the end of a key.
    pub from: String,
    /// The symbol at the end of the chain.
    pub to: String,
    /// Maximum number of calls in a chain, 1 to 32.
    #[serde(default = "max_depth")]
    #[schemars(range(min = 1, max = 32))]
    pub max_depth: u32,
    /// Ignore calls with lower confidence, 0 to 1; calls without a confidence count as 1.
    #[serde(default = "super::calls::min_confidence")]
    pub min_confidence: f64,
    /// Maximum number of chains, 1 to 100.
    #[serde(default)]
    pub limit: Limit<3, 100>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn max_depth() -> u32 {
    8
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub from: String,
    pub to: String,
    /// The shortest chains, highest confidence first; empty when there is none.
    pub chains: Vec<ChainOut>,
    /// There are more chains of this length.
    pub truncated: bool,
    /// If there is no chain: one in the opposite direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse: Option<ChainOut>,
    /// If there is no chain: one that uses calls below `min_confidence`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub less_sure: Option<ChainOut>,
    pub view: ViewEcho,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChainOut {
    /// Number of calls.
    pub calls: usize,
    /// Lowest confidence of its calls.
    pub confidence: f64,
    pub steps: Vec<ChainStepOut>,
}

/// A symbol of a chain, and its call of the next one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChainStepOut {
    #[serde(flatten)]
    pub symbol: LocatedSymbol,
    /// Lines in this symbol's file that call the next symbol.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub call_lines: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derivation: Option<String>,
}

impl Op for CallChain {
    const META: Meta = Meta {
        name: "call_chain",
        shown: ResponseView::Cut(rendering::chains),
        answer: &[
            "chains.steps.key",
            "chains.steps.path",
            "chains.steps.call_lines",
            "chains.confidence",
            "reverse",
            "less_sure",
            "from",
            "to",
        ],
        summary: "Find the calls by which one symbol reaches another",
        description: "The shortest chains of calls, highest confidence first, with the lines of each call and the lowest \
                      confidence of the chain. A class, module or file stands for everything in it. If there is no \
                      chain, the answer reports whether there is one in the other direction, or by calls of lower \
                      confidence.",
        verb: "call-chain",
        toolset: "code",
        names: &["from", "to"],
        positional: &["from", "to"],
        examples: &["lukasa call-chain main save", "lukasa call-chain src/web.py Database::commit --max-depth 12"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        check_confidence(request.min_confidence)?;
        let look = engine.view_graph(context, &request.view)?;
        let symbols = Symbols::new(&look);
        let (from, to) = (look.node(&request.from)?, look.node(&request.to)?);
        let (sources, targets) = (symbols.whole(from, MEMBERS).0, symbols.whole(to, MEMBERS).0);
        let depth = request.max_depth;
        let (mut found, mut truncated) = shortest(&symbols, &sources, &targets, depth, request.min_confidence);
        truncated |= found.len() > request.limit.get();
        found.truncate(request.limit.get());
        let one = |from: &[Node], to: &[Node], least: f64| -> Result<Option<ChainOut>> {
            let (found, _) = shortest(&symbols, from, to, depth, least);
            Ok(chains_out(&symbols, &found[..found.len().min(1)])?.pop())
        };
        let (mut reverse, mut less_sure) = (None, None);
        if found.is_empty() {
            reverse = one(&targets, &sources, request.min_confidence)?;
            if request.min_confidence > 0.0 {
                less_sure = one(&sources, &targets, 0.0)?;
            }
        }
        let (a, b) = (symbols.short(from), symbols.short(to));
        let chains = chains_out(&symbols, &found)?;
        let summary = match chains.first() {
            Some(first) => {
                let calls = count(first.calls, "call");
                let many = if truncated {
                    format!("; the surest {} of several are shown", chains.len())
                } else if chains.len() > 1 {
                    format!("; {} of this length", count(chains.len(), "chain"))
                } else {
                    String::new()
                };
                format!("{a} leads to {b} by {calls}, at confidence {} or more{many}", first.confidence)
            }
            None => {
                let mut text = format!("no chain of calls from {a} to {b} within {}", count(depth, "call"));
                text += match (&less_sure, &reverse) {
                    (Some(_), Some(_)) => "; there is one by calls that are less sure, and one in the other direction",
                    (Some(_), None) => "; there is one by calls that are less sure, and none in the other direction",
                    (None, Some(_)) => "; there is one in the other direction",
                    (None, None) => ", nor in the other direction",
                };
                text
            }
        };
        Ok(Response {
            summary,
            from: symbols.key(from).into_owned(),
            to: symbols.key(to).into_owned(),
            chains,
            truncated,
            reverse,
            less_sure,
            view: look.view.echo(),
        })
    }
}

/// Symbols and the calls between them.
struct Chain {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

/// Returns the shortest chains with at least one call, highest confidence first, and whether there are more.
fn shortest(symbols: &Symbols<'_>, from: &[Node], to: &[Node], depth: u32, least: f64) -> (Vec<Chain>, bool) {
    let goals: FxHashSet<Node> = to.iter().copied().collect();
    // For every symbol, the level at which it was first reached and all calls that lead there from the level before.
    let mut levels: FxHashMap<Node, u32> = from.iter().map(|node| (*node, 0)).collect();
    let mut before: FxHashMap<Node, Vec<(Node, Edge)>> = FxHashMap::default();
    let mut frontier: Vec<Node> = from.to_vec();
    for level in 1..=depth {
        let (mut next, mut arrived) = (Vec::new(), Vec::new());
        for node in &frontier {
            for (other, edge) in symbols.linked(*node, SymbolRelation::Calls, LinkDirection::Out) {
                if symbols.confidence(edge) < least {
                    continue;
                }
                if goals.contains(&other) {
                    arrived.push((*node, edge, other));
                } else if *levels.entry(other).or_insert(level) == level {
                    let ways = before.entry(other).or_default();
                    if ways.is_empty() {
                        next.push(other);
                    }
                    ways.push((*node, edge));
                }
            }
        }
        if !arrived.is_empty() {
            return sorted(symbols, &before, arrived);
        }
        frontier = next;
    }
    (vec![], false)
}

/// Builds chains backwards from their last call.
fn sorted(
    symbols: &Symbols<'_>,
    before: &FxHashMap<Node, Vec<(Node, Edge)>>,
    arrived: Vec<(Node, Edge, Node)>,
) -> (Vec<Chain>, bool) {
    let mut found: Vec<Chain> = Vec::new();
    let mut open: Vec<Chain> = arrived
        .into_iter()
        .rev()
        .map(|(node, edge, goal)| Chain { nodes: vec![goal, node], edges: vec![edge] })
        .collect();
    while let Some(chain) = open.pop() {
        if found.len() == COMPARED {
            break;
        }
        let first = chain.nodes[chain.nodes.len() - 1];
        match before.get(&first) {
            Some(ways) => open.extend(ways.iter().rev().map(|(node, edge)| Chain {
                nodes: chain.nodes.iter().copied().chain([*node]).collect(),
                edges: chain.edges.iter().copied().chain([*edge]).collect(),
            })),
            None => found.push(chain),
        }
    }
    let more = !open.is_empty();
    for chain in &mut found {
        chain.nodes.reverse();
        chain.edges.reverse();
    }
    found.sort_by(|a, b| {
        let sure = sureness(symbols, b).total_cmp(&sureness(symbols, a));
        let keys = |c: &Chain| c.nodes.iter().map(|n| symbols.key(*n).into_owned()).collect::<Vec<_>>();
        sure.then_with(|| keys(a).cmp(&keys(b)))
    });
    (found, more)
}

fn sureness(symbols: &Symbols<'_>, chain: &Chain) -> f64 {
    chain.edges.iter().map(|e| symbols.confidence(*e)).fold(1.0, f64::min)
}

fn chains_out(symbols: &Symbols<'_>, chains: &[Chain]) -> Result<Vec<ChainOut>> {
    let s = &symbols.look.snapshot;
    let nodes: Vec<Node> = chains.iter().flat_map(|c| c.nodes.iter().copied()).collect();
    let contents: SymbolContents = symbols.contents(&nodes)?;
    let edges: Vec<_> = chains.iter().flat_map(|c| &c.edges).map(|e| s.edge_thing(*e)).collect();
    let sites = symbols.look.contents(&edges)?;
    let step = |node: Node, edge: Option<Edge>| ChainStepOut {
        symbol: symbols.placed(node, &contents),
        call_lines: edge.and_then(|e| sites.get(&s.edge_thing(e))).map(|c| lines(c).0).unwrap_or_default(),
        confidence: edge.and_then(|e| s.confidence(e)),
        derivation: edge.and_then(|e| s.derivation(e)).map(|d| d.to_string()),
    };
    let out = |chain: &Chain| ChainOut {
        calls: chain.edges.len(),
        confidence: sureness(symbols, chain),
        steps: chain.nodes.iter().enumerate().map(|(i, node)| step(*node, chain.edges.get(i).copied())).collect(),
    };
    Ok(chains.iter().map(out).collect())
}
