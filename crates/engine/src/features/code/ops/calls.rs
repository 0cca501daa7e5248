//! Request type and traversal shared by `get_callers` and `get_callees`.

use crate::request_parts::Limit;
use crate::responses::count;
use crate::view::symbols::{
    CallWalk, LinkDirection, ReachedSymbol, SymbolRelation, Symbols, ThroughOut, check_confidence,
};
use lukasa_graph::Node;
use lukasa_model::Result;
use lukasa_store::ledger::ViewSpec;
use rustc_hash::FxHashSet;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The symbol: `Type:key`, a key, an id, a name, or the end of a key such as `Class::method`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Maximum number of calls to follow, 1 to 6.
    #[serde(default = "depth")]
    #[schemars(range(min = 1, max = 6))]
    pub depth: u32,
    /// Ignore calls with lower confidence, 0 to 1; calls without a confidence count as 1.
    #[serde(default = "min_confidence")]
    pub min_confidence: f64,
    /// Maximum number of entries per list, 1 to 1,000.
    #[serde(default)]
    pub limit: Limit<50>,
    /// Include tests and symbols reached only through tests.
    #[serde(default = "include_tests")]
    pub include_tests: bool,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn depth() -> u32 {
    1
}

pub(super) fn min_confidence() -> f64 {
    0.4
}

fn include_tests() -> bool {
    true
}

impl Request {
    pub(super) fn check(&self) -> Result<()> {
        check_confidence(self.min_confidence)
    }

    pub(super) fn reach(&self, way: LinkDirection) -> CallWalk {
        CallWalk { way, depth: self.depth, min_confidence: self.min_confidence, include_tests: self.include_tests }
    }
}

/// Calls followed in one direction from a symbol.
pub(super) struct FollowedCalls {
    /// Production code before tests, then by depth, highest confidence and key.
    pub found: Vec<ReachedSymbol>,
    /// Whether `found` contains everything within reach.
    pub complete: bool,
    /// The symbol calls itself.
    pub recursive: bool,
    /// Number of direct calls ignored because of low confidence.
    pub less_sure: usize,
}

/// Follows calls from `roots`. `own` are the nodes of the symbol itself; nodes in `hidden` are not listed.
pub(super) fn follow(
    symbols: &Symbols<'_>,
    roots: &[Node],
    own: &[Node],
    hidden: &[Node],
    how: &CallWalk,
) -> FollowedCalls {
    let (mut found, complete) = symbols.reach_beside(roots, hidden, how);
    // Tests come last, so that a limit cuts them off first.
    found.sort_by_cached_key(|reached| symbols.is_test(reached.node));
    let calls = |node: &Node| symbols.linked(*node, SymbolRelation::Calls, how.way);
    let is_sure = |edge| symbols.confidence(edge) >= how.min_confidence;
    let recursive = own.iter().any(|node| calls(node).any(|(other, edge)| own.contains(&other) && is_sure(edge)));
    let unsure = |node: &Node| {
        calls(node).filter(|(other, edge)| !is_sure(*edge) && (how.include_tests || !symbols.is_test(*other))).count()
    };
    FollowedCalls { found, complete, recursive, less_sure: roots.iter().map(unsure).sum() }
}

/// Returns the nodes already listed, including the symbol itself.
pub(super) fn listed(symbol: Node, found: &[ReachedSymbol]) -> FxHashSet<Node> {
    found.iter().map(|r| r.node).chain([symbol]).collect()
}

/// Describes what the list leaves out; `more` phrases the number of symbols added by overriding.
pub(super) fn missing(through: &[ThroughOut], less_sure: usize, more: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    let further: usize = through.iter().map(|t| t.total).sum();
    if further > 0 {
        text += &format!("; {}", more(further));
    }
    if less_sure > 0 {
        text += &format!("; {} less sure left out", count(less_sure, "call"));
    }
    text
}

pub(super) fn is_zero(n: &usize) -> bool {
    *n == 0
}
