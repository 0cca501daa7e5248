//! `get_callers`: symbols that call a symbol, directly or indirectly.

use super::calls::{FollowedCalls, Request, follow, is_zero, listed, missing};
use crate::features::code::rendering;
use crate::names::ResolvedNode;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::view::symbols::{
    CallOut, CallWalk, LinkDirection, LocatedSymbol, NamesakesOut, ReachedSymbol, Symbols, ThroughOut, UnresolvedOut,
    keys, through,
};
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_model::Result;
use lukasa_model::view::ViewEcho;
use schemars::JsonSchema;
use serde::Serialize;

pub struct GetCallers;

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub symbol: LocatedSymbol,
    /// Production code before tests, then by depth, highest confidence and key.
    pub callers: Vec<CallOut>,
    /// Number of callers before the limit.
    pub total: usize,
    pub truncated: bool,
    /// The symbol calls itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recursive: bool,
    /// Callers of methods that this one overrides or implements, unless already listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<ThroughOut>,
    /// Number of direct calls below `min_confidence`.
    #[serde(skip_serializing_if = "is_zero")]
    pub less_sure: usize,
    /// Unresolved calls in its file and in files that import it; some may call this symbol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unresolved: Option<UnresolvedOut>,
    /// Unresolved calls of its name in any file of its language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unresolved_namesakes: Option<NamesakesOut>,
    pub view: ViewEcho,
}

impl Op for GetCallers {
    const META: Meta = Meta {
        name: "get_callers",
        shown: ResponseView::Cut(rendering::callers),
        essential: true,
        default_tool: &["ref", "depth", "include_tests", "limit"],
        answer: &[
            "callers.key",
            "callers.line",
            "callers.call_lines",
            "callers.test",
            "callers.via",
            "through",
            "unresolved",
            "symbol.key",
        ],
        summary: "List the callers of a symbol",
        description: "Functions, methods and files that call it, with the lines of the calls, and the confidence and \
                      derivation of each. For a class: those that create an instance. Calls of a method that this one \
                      overrides or implements may reach it and are listed separately. A name stands for the one symbol \
                      that it fits best; symbols with a body or members come before fields and variables, and those \
                      before names of packages.",
        verb: "callers",
        toolset: "code",
        names: &["ref"],
        positional: &["ref"],
        aliases: &[("symbol", "ref"), ("node_id", "ref")],
        examples: &["lukasa callers login", "lukasa callers Session::close --depth 3 --include-tests false"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        request.check()?;
        let look = engine.view_graph(context, &request.view)?;
        let symbols = Symbols::new(&look);
        let ResolvedNode { node: symbol, overloads, .. } = look.resolve(&request.reference)?;
        let mut roots = symbols.with_constructors(symbol)?;
        roots.extend(overloads);
        let how = request.reach(LinkDirection::In);
        let FollowedCalls { found, complete, recursive, less_sure } = follow(&symbols, &roots, &roots, &roots, &how);
        let through = overridden(&symbols, symbol, &found, &how, request.limit.get())?;
        let shown = &found[..found.len().min(request.limit.get())];
        let unresolved = symbols.unresolved_around(symbol)?;
        let unresolved_namesakes = symbols.unresolved_namesakes(symbol)?;
        let mut summary = in_words(&symbols, symbol, &found, request.depth);
        if recursive {
            summary += "; it calls itself";
        }
        if !complete {
            summary = format!("more than {summary}");
        }
        if found.len() > shown.len() {
            summary += &format!("; {} are shown", shown.len());
        }
        summary += &missing(&through, less_sure, |n| format!("{n} more may reach it through what it overrides"));
        if let Some(namesakes) = &unresolved_namesakes {
            summary += &format!("; {}", namesakes.words(keys::name(&symbols.key(symbol))));
        } else if let Some(unresolved) = unresolved {
            let (calls, files) = (count(unresolved.calls, "call"), count(unresolved.files, "file"));
            summary += &format!("; {calls} in {files} around it could not be resolved, so callers may be missing");
        } else if found.is_empty() {
            summary += &format!("; {}", symbols.why_callers_may_be_missing(symbol)?);
        }
        Ok(Response {
            summary,
            symbol: symbols.placed(symbol, &symbols.contents(&[symbol])?),
            callers: symbols.calls_out(shown, &roots)?,
            total: found.len(),
            truncated: !complete || found.len() > shown.len(),
            recursive,
            through,
            less_sure,
            unresolved,
            unresolved_namesakes,
            view: look.view.echo(),
        })
    }
}

/// Returns callers of overridden or implemented methods that were not reached otherwise.
fn overridden(
    symbols: &Symbols<'_>,
    symbol: Node,
    found: &[ReachedSymbol],
    how: &CallWalk,
    limit: usize,
) -> Result<Vec<ThroughOut>> {
    let mut seen = listed(symbol, found);
    let mut all = Vec::new();
    for declared in symbols.same_method(symbol, LinkDirection::Out) {
        let (mut calls, _) = symbols.reach(&[declared], &CallWalk { depth: 1, ..*how });
        calls.retain(|call| !seen.contains(&call.node));
        calls.sort_by_cached_key(|call| symbols.is_test(call.node));
        if !calls.is_empty() {
            seen.extend(calls.iter().map(|call| call.node));
            all.push(through(symbols, declared, &calls, limit)?);
        }
    }
    Ok(all)
}

/// Returns the answer as one sentence.
fn in_words(symbols: &Symbols<'_>, symbol: Node, found: &[ReachedSymbol], depth: u32) -> String {
    let name = symbols.short(symbol);
    let tests = found.iter().filter(|r| symbols.is_test(r.node)).count();
    let tests = match (tests, found.len()) {
        (0, _) => String::new(),
        (1, 1) => ", a test".into(),
        (1, _) => ", 1 of them a test".into(),
        (n, all) if n == all => ", all of them tests".into(),
        (n, _) => format!(", {n} of them tests"),
    };
    let who = symbols.who(found.iter().map(|r| r.node));
    match (found.len(), depth) {
        (0, _) => format!("no call of {name} was found"),
        (1, 1) => format!("{who} calls {name}{tests}"),
        (_, 1) => format!("{who} call {name}{tests}"),
        (1, _) => format!("{who} leads to {name} within {}{tests}", count(depth, "call")),
        (_, _) => format!("{who} lead to {name} within {}{tests}", count(depth, "call")),
    }
}
