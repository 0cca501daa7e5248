//! Tasks that cannot proceed, as far as other features need them.

use crate::view::ViewGraph;
use lukasa_graph::Node;
use lukasa_model::Result;
use lukasa_model::claims::HeldClaim;

/// An open task that cannot proceed, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockedTask {
    pub node: Node,
    pub title: String,
    /// The name of its status.
    pub status: &'static str,
    pub assignee: Option<String>,
    pub reason: String,
    /// The claims that block it.
    pub claims: Vec<String>,
    /// Whether claims are the only reason.
    pub only_claims: bool,
    /// The nodes in question that it is about.
    pub about: Vec<Node>,
}

/// Finds the open tasks that cannot proceed and are about some nodes, their containers or their contents, or are among
/// them. Tasks about the first nodes come first. The held claims, and the agent whose own claims do not block, are
/// passed as well.
pub type FindBlockedTasks = fn(&ViewGraph, &[Node], &[HeldClaim], Option<&str>) -> Result<Vec<BlockedTask>>;
