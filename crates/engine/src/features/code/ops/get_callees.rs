//! `get_callees`: symbols that a symbol calls, directly or indirectly.

use super::calls::{FollowedCalls, Request, follow, is_zero, listed, missing};
use crate::features::code::rendering;
use crate::names::ResolvedNode;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::view::symbols::{
    CallOut, CallWalk, LinkDirection, LocatedSymbol, ReachedSymbol, SymbolKind, Symbols, ThroughOut, number, through,
};
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_model::Result;
use lukasa_model::view::ViewEcho;
use schemars::JsonSchema;
use serde::Serialize;

pub struct GetCallees;

/// Maximum number of members of a class or file whose calls are followed.
const MEMBERS: usize = 5_000;

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub symbol: LocatedSymbol,
    /// Production code before tests, then by depth, highest confidence and key.
    pub callees: Vec<CallOut>,
    /// Number of callees before the limit.
    pub total: usize,
    /// Callees outside the project, in the same order.
    pub external: Vec<CallOut>,
    pub total_external: usize,
    pub truncated: bool,
    /// The symbol calls itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recursive: bool,
    /// Methods that override or implement direct callees and may run in their place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<ThroughOut>,
    /// Number of direct calls below `min_confidence`.
    #[serde(skip_serializing_if = "is_zero")]
    pub less_sure: usize,
    /// Number of its calls that could not be resolved; their callees are missing here.
    pub unresolved_calls: u64,
    pub view: ViewEcho,
}

impl Op for GetCallees {
    const META: Meta = Meta {
        name: "get_callees",
        shown: ResponseView::Cut(rendering::callees),
        default_tool: &["ref", "depth", "limit"],
        answer: &[
            "callees.key",
            "callees.line",
            "callees.call_lines",
            "external.key",
            "unresolved_calls",
            "symbol.key",
        ],
        summary: "List what a symbol calls",
        description: "Functions and methods that it calls, with the lines of the calls, and the confidence and \
                      derivation of each. Callees outside of the project are listed separately, and so are methods that \
                      override a callee and may run in its place. For a function: also the calls of functions written \
                      in it. For a class, module or file: the calls of its members to symbols outside of it.",
        verb: "callees",
        toolset: "code",
        names: &["ref"],
        positional: &["ref"],
        aliases: &[("symbol", "ref"), ("node_id", "ref")],
        examples: &["lukasa callees main --depth 2", "lukasa callees src/auth.py::Session::close"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        request.check()?;
        let look = engine.view_graph(context, &request.view)?;
        let symbols = Symbols::new(&look);
        let ResolvedNode { node: symbol, overloads, .. } = look.resolve(&request.reference)?;
        let (mut roots, whole) = symbols.whole(symbol, MEMBERS);
        roots.extend(overloads);
        let how = request.reach(LinkDirection::Out);
        // A function nested in a function is a callee of it; members of a class or file are part of the symbol itself.
        let runs = symbols.kind(symbol).is_some_and(SymbolKind::runs);
        let hidden = if runs { &roots[..1] } else { &roots[..] };
        let FollowedCalls { found, complete, recursive, less_sure } = follow(&symbols, &roots, &[symbol], hidden, &how);
        let is_outside = |r: &ReachedSymbol| symbols.kind(r.node).is_some_and(SymbolKind::outside);
        let (outside, inside): (Vec<ReachedSymbol>, Vec<ReachedSymbol>) = found.iter().copied().partition(is_outside);
        let through = overriding(&symbols, symbol, &inside, &how, request.limit.get())?;
        let contents = symbols.contents(&roots)?;
        let unresolved_calls = contents.values().filter_map(|c| number(c, "unresolved_calls")).sum();
        let cut = inside.len().max(outside.len()) > request.limit.get();
        let mut summary = in_words(&symbols, symbol, &inside, &outside, request.depth);
        if !complete || !whole {
            summary += "; there is more than was followed";
        }
        if recursive {
            summary += "; it calls itself";
        }
        if cut {
            summary += &format!("; at most {} of each are shown", request.limit.get());
        }
        let in_place = |n: usize| format!("{} may run in their place", count(n, "overriding method"));
        summary += &missing(&through, less_sure, in_place);
        if unresolved_calls > 0 {
            summary += &format!("; {} could not be resolved", count(unresolved_calls, "call"));
        }
        let first = |list: &[ReachedSymbol]| symbols.calls_out(&list[..list.len().min(request.limit.get())], &roots);
        Ok(Response {
            summary,
            symbol: symbols.placed(symbol, &contents),
            callees: first(&inside)?,
            total: inside.len(),
            external: first(&outside)?,
            total_external: outside.len(),
            truncated: cut || !complete || !whole,
            recursive,
            through,
            less_sure,
            unresolved_calls,
            view: look.view.echo(),
        })
    }
}

/// Returns the overriding methods of direct callees that were not reached otherwise.
fn overriding(
    symbols: &Symbols<'_>,
    symbol: Node,
    found: &[ReachedSymbol],
    how: &CallWalk,
    limit: usize,
) -> Result<Vec<ThroughOut>> {
    let mut seen = listed(symbol, found);
    let mut all = Vec::new();
    for call in found.iter().filter(|r| r.depth == 1).take(limit) {
        let below = symbols.same_method(call.node, LinkDirection::In).into_iter();
        let mut calls: Vec<ReachedSymbol> = below
            .filter(|node| seen.insert(*node) && (how.include_tests || !symbols.is_test(*node)))
            .map(|node| ReachedSymbol { node, via: call.node, ..*call })
            .collect();
        calls.sort_by_cached_key(|c| symbols.key(c.node).into_owned());
        if !calls.is_empty() {
            all.push(through(symbols, call.node, &calls, limit)?);
        }
    }
    Ok(all)
}

/// Returns the answer as one sentence.
fn in_words(
    symbols: &Symbols<'_>,
    symbol: Node,
    inside: &[ReachedSymbol],
    outside: &[ReachedSymbol],
    depth: u32,
) -> String {
    let (name, who) = (symbols.short(symbol), symbols.who(inside.iter().map(|r| r.node)));
    let others = count(outside.len(), "name");
    match (inside.len(), outside.len(), depth) {
        (0, 0, _) => format!("{name} calls nothing here"),
        (0, _, _) => format!("{name} calls nothing in the project, and {others} outside of it"),
        (_, 0, 1) => format!("{name} calls {who}"),
        (_, _, 1) => format!("{name} calls {who}, and {others} outside of the project"),
        (_, 0, _) => format!("{name} leads to {who} within {}", count(depth, "call")),
        (_, _, _) => {
            format!("{name} leads to {who} within {}, and to {others} outside of the project", count(depth, "call"))
        }
    }
}
