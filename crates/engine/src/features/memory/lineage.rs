//! Causes and consequences of a fact, along the relationships that record them.

use lukasa_graph::{Edge, Node, Snapshot};
use rustc_hash::FxHashSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Which end of a relationship is the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CausalEnd {
    /// The source causes the destination.
    Source,
    /// The destination causes the source.
    Destination,
}

/// Relationships between cause and consequence.
const LEADS: [(&str, CausalEnd); 17] = [
    ("PRODUCES", CausalEnd::Source),
    ("DEFINES", CausalEnd::Source),
    ("INFLUENCED", CausalEnd::Source),
    ("NEXT_EPISODE", CausalEnd::Source),
    ("INVOLVES", CausalEnd::Source),
    ("APPLIES_TO", CausalEnd::Source),
    ("DERIVED_FROM", CausalEnd::Destination),
    ("SUPERSEDES", CausalEnd::Destination),
    ("REFERENCES", CausalEnd::Destination),
    ("CITES", CausalEnd::Destination),
    ("SOLVES", CausalEnd::Destination),
    ("BLOCKED_BY", CausalEnd::Destination),
    ("GOVERNED_BY", CausalEnd::Destination),
    ("CREATED_BY", CausalEnd::Destination),
    ("RECORDED_IN", CausalEnd::Destination),
    ("INVOKES", CausalEnd::Source),
    ("RENAMED_FROM", CausalEnd::Destination),
];

/// Relationships from a memory to what it is about.
const ABOUT: [&str; 2] = ["INVOLVES", "APPLIES_TO"];
/// Types of planned work.
const WORK: [&str; 2] = ["Task", "Feature"];

/// Types that are listed but not followed further, because they are related to almost everything.
const ENDS: [&str; 4] = ["Session", "Agent", "Policy", "Track"];

/// The direction of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineageDirection {
    /// Causes.
    Upstream,
    /// Consequences.
    Downstream,
    #[default]
    Both,
}

/// A fact that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineageStep {
    pub node: Node,
    pub depth: u32,
    /// The node from which it was reached.
    pub from: Node,
    pub edge: Edge,
}

/// Returns the causes or the consequences of a node, nearest first, and whether there are more than `most`. Source code, as
/// decided by `is_code`, is listed but not followed further.
pub fn trace(
    snapshot: &Snapshot,
    start: Node,
    upstream: bool,
    depth: u32,
    most: usize,
    is_code: impl Fn(Node) -> bool,
) -> (Vec<LineageStep>, bool) {
    let (mut steps, mut queue) = (Vec::new(), VecDeque::from([(start, 0)]));
    let mut seen = FxHashSet::from_iter([start]);
    while let Some((node, at)) = queue.pop_front() {
        if at == depth {
            continue;
        }
        let mut next: Vec<(Node, Edge)> = Vec::new();
        for (first, links) in
            [(CausalEnd::Source, snapshot.outgoing(node)), (CausalEnd::Destination, snapshot.incoming(node))]
        {
            // Following an edge from cause to consequence depends on which end is the cause.
            for (other, edge, _) in links.iter() {
                let Some(leads) = leads(snapshot, edge) else { continue };
                if (leads == first) != upstream {
                    next.push((other, edge));
                }
            }
        }
        next.sort_by_key(|(other, edge)| (snapshot.edge_thing(*edge), *other));
        for (other, edge) in next {
            if !seen.insert(other) {
                continue;
            }
            if steps.len() == most {
                return (steps, true);
            }
            steps.push(LineageStep { node: other, depth: at + 1, from: node, edge });
            let is_end = ENDS.iter().any(|name| snapshot.type_name(other).eq_ignore_ascii_case(name));
            if !is_end && !is_code(other) {
                queue.push_back((other, at + 1));
            }
        }
    }
    (steps, false)
}

fn leads(snapshot: &Snapshot, edge: Edge) -> Option<CausalEnd> {
    let (name, first) = LEADS.iter().find(|(name, _)| name.eq_ignore_ascii_case(snapshot.edge_type(edge)))?;
    // Work done for a task is a consequence of it, although it is also about the task.
    let about_work = || WORK.iter().any(|work| snapshot.type_name(snapshot.ends(edge).1).eq_ignore_ascii_case(work));
    Some(if ABOUT.contains(name) && about_work() { CausalEnd::Destination } else { *first })
}
