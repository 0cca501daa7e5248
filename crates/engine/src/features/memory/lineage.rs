//! Causes and consequences of a fact, along the relationships that record them.

use lukasa_graph::{Edge, Node, Snapshot};
use rustc_hash::FxHashSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Which end of a relationship is the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    /// The source causes the destination.
    Source,
    /// The destination causes the source.
    Destination,
}

/// Relationships between cause and consequence.
const LEADS: [(&str, First); 17] = [
    ("PRODUCES", First::Source),
    ("DEFINES", First::Source),
    ("INFLUENCED", First::Source),
    ("NEXT_EPISODE", First::Source),
    ("INVOLVES", First::Source),
    ("APPLIES_TO", First::Source),
    ("DERIVED_FROM", First::Destination),
    ("SUPERSEDES", First::Destination),
    ("REFERENCES", First::Destination),
    ("CITES", First::Destination),
    ("SOLVES", First::Destination),
    ("BLOCKED_BY", First::Destination),
    ("GOVERNED_BY", First::Destination),
    ("CREATED_BY", First::Destination),
    ("RECORDED_IN", First::Destination),
    ("INVOKES", First::Source),
    ("RENAMED_FROM", First::Destination),
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
pub enum Way {
    /// Causes.
    Upstream,
    /// Consequences.
    Downstream,
    #[default]
    Both,
}

/// A fact that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
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
) -> (Vec<Step>, bool) {
    let (mut steps, mut queue) = (Vec::new(), VecDeque::from([(start, 0)]));
    let mut seen = FxHashSet::from_iter([start]);
    while let Some((node, at)) = queue.pop_front() {
        if at == depth {
            continue;
        }
        let mut next: Vec<(Node, Edge)> = Vec::new();
        for (first, links) in [(First::Source, snapshot.outgoing(node)), (First::Destination, snapshot.incoming(node))]
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
            steps.push(Step { node: other, depth: at + 1, from: node, edge });
            let is_end = ENDS.iter().any(|name| snapshot.type_name(other).eq_ignore_ascii_case(name));
            if !is_end && !is_code(other) {
                queue.push_back((other, at + 1));
            }
        }
    }
    (steps, false)
}

fn leads(snapshot: &Snapshot, edge: Edge) -> Option<First> {
    let (name, first) = LEADS.iter().find(|(name, _)| name.eq_ignore_ascii_case(snapshot.edge_type(edge)))?;
    // Work done for a task is a consequence of it, although it is also about the task.
    let about_work = || WORK.iter().any(|work| snapshot.type_name(snapshot.ends(edge).1).eq_ignore_ascii_case(work));
    Some(if ABOUT.contains(name) && about_work() { First::Destination } else { *first })
}
