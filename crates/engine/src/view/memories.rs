//! The facts that memories are about, as they are now: code that has ended, was renamed, or has changed since.

use crate::view::NodeContents;
use crate::view::ViewGraph;
use crate::view::memories::names::{APPLIES_TO, INVOLVES, NEXT_EPISODE};
use lukasa_graph::{Edge, Node, Snapshot};
use lukasa_model::types::RENAMED_FROM;
use lukasa_model::{Content, FactNo, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Maximum number of renames followed from one name: more are a cycle.
const RENAMES: usize = 16;
/// The property of a relationship from a memory: the hash of the code when the memory was recorded.
pub const CODE_HASH: &str = "code_hash";

/// A fact that an episode involves.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MemoryEntityOut {
    /// `Type:key`, by its current name.
    #[serde(rename = "ref")]
    pub reference: String,
    /// It has ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// The name it had when the memory was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
}

/// Code that has changed since the memory about it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedCodeOut {
    #[serde(rename = "ref")]
    pub reference: String,
    /// changed or ended.
    pub how: &'static str,
}

/// The nodes that a memory is about, and the edges to them.
pub fn about(snapshot: &Snapshot, memory: Node) -> impl Iterator<Item = (Node, Edge)> + '_ {
    snapshot.outgoing(memory).iter().filter(|(_, edge, _)| is_about(snapshot, *edge)).map(|(to, edge, _)| (to, edge))
}

fn is_about(snapshot: &Snapshot, edge: Edge) -> bool {
    [INVOLVES, APPLIES_TO].iter().any(|name| snapshot.edge_type(edge).eq_ignore_ascii_case(name))
}

/// The object that an ended object was renamed to; itself if it was not renamed.
pub fn present(snapshot: &Snapshot, node: Node) -> Node {
    let mut at = node;
    for _ in 0..RENAMES {
        if !snapshot.is_ended(at) {
            return at;
        }
        let renamed = |edge: Edge| snapshot.edge_type(edge).eq_ignore_ascii_case(RENAMED_FROM);
        let Some((to, _, _)) = snapshot.incoming(at).iter().find(|(_, edge, _)| renamed(*edge)) else { break };
        at = to;
    }
    if snapshot.is_ended(at) { node } else { at }
}

/// A node and the nodes of its former names: memories are linked to the name it had when they were recorded.
pub fn of(snapshot: &Snapshot, node: Node) -> Vec<Node> {
    let renamed = |edge: Edge| snapshot.edge_type(edge).eq_ignore_ascii_case(RENAMED_FROM);
    let (mut names, mut at) = (vec![node], 0);
    while at < names.len() && names.len() < RENAMES {
        for (before, edge, _) in snapshot.outgoing(names[at]).iter() {
            // A name that is in use again belongs to another object.
            if renamed(edge) && snapshot.is_ended(before) && !names.contains(&before) {
                names.push(before);
            }
        }
        at += 1;
    }
    names
}

/// The memories about a node, under any name that it had.
pub fn memories(snapshot: &Snapshot, node: Node) -> Vec<(Node, Edge)> {
    let mut all: Vec<(Node, Edge)> = Vec::new();
    for name in of(snapshot, node) {
        let from = snapshot.incoming(name);
        all.extend(from.iter().filter(|(_, edge, _)| is_about(snapshot, *edge)).map(|(from, edge, _)| (from, edge)));
    }
    let mut seen = FxHashSet::default();
    all.retain(|(memory, _)| seen.insert(*memory));
    all
}

/// The current name of an object that has ended, if it was renamed.
pub fn renamed_to(snapshot: &Snapshot, node: Node) -> Option<String> {
    Some(present(snapshot, node)).filter(|now| *now != node).map(|now| snapshot.name(now))
}

/// The facts that a memory is about, by current names.
pub fn entities(snapshot: &Snapshot, memory: Node) -> Vec<MemoryEntityOut> {
    let mut all: Vec<(FactNo, MemoryEntityOut)> = about(snapshot, memory)
        .map(|(to, edge)| {
            let now = present(snapshot, to);
            let renamed_from = (now != to).then(|| snapshot.name(to));
            let out = MemoryEntityOut { reference: snapshot.name(now), ended: snapshot.is_ended(now), renamed_from };
            (snapshot.edge_thing(edge), out)
        })
        .collect();
    all.sort_by_key(|(thing, _)| *thing);
    all.into_iter().map(|(_, out)| out).collect()
}

/// The key of the memory before it in its session.
pub fn previous(snapshot: &Snapshot, memory: Node) -> Option<String> {
    let is_next = |edge: Edge| snapshot.edge_type(edge).eq_ignore_ascii_case(NEXT_EPISODE);
    let (before, _, _) = snapshot.incoming(memory).iter().find(|(_, edge, _)| is_next(*edge))?;
    Some(snapshot.key(before).map_or_else(|| snapshot.name(before), str::to_owned))
}

/// For each memory, the code it is about that has changed or ended since the memory was recorded. A rename alone is not
/// a change.
pub fn changed(look: &ViewGraph, memories: &[Node]) -> Result<FxHashMap<Node, Vec<ChangedCodeOut>>> {
    let s = &look.snapshot;
    let mut links: Vec<(Node, Node, Edge)> = Vec::new();
    for memory in memories {
        links.extend(about(s, *memory).map(|(to, edge)| (*memory, to, edge)));
    }
    if links.is_empty() {
        return Ok(FxHashMap::default());
    }
    let nodes = links.iter().flat_map(|(memory, to, _)| [*memory, present(s, *to)]).collect::<Vec<_>>();
    let read = NodeContents::of(look, &nodes)?;
    let edges = look.contents(&links.iter().map(|(_, _, edge)| s.edge_thing(*edge)).collect::<Vec<_>>())?;
    let mut all: FxHashMap<Node, Vec<ChangedCodeOut>> = FxHashMap::default();
    for (memory, to, edge) in links {
        let now = present(s, to);
        let how = if s.is_ended(now) {
            "ended"
        } else {
            let then = edges.get(&s.edge_thing(edge)).and_then(|content| content.properties.get(CODE_HASH)?.as_str());
            let is = read.content(now).and_then(code_hash);
            let same = match (then, is) {
                (Some(then), Some(is)) => then == is,
                // Without the hash of the code at that time, a later version of the code counts as a change.
                (None, Some(_)) => read.stated(now) <= read.stated(memory),
                (_, None) => true,
            };
            if same {
                continue;
            }
            "changed"
        };
        all.entry(memory).or_default().push(ChangedCodeOut { reference: s.name(now), how });
    }
    all.values_mut().for_each(|list| list.sort_by(|a, b| a.reference.cmp(&b.reference)));
    Ok(all)
}

/// The hash by which the code index recognizes changes of a symbol or a file. None for anything but code.
pub fn code_hash(content: &Content) -> Option<&str> {
    ["hash", "content_hash"].iter().find_map(|name| content.properties.get(*name).and_then(Value::as_str))
}

/// Types, relationships and properties of memories, as the `agent` pack has them.
pub mod names {
    pub const AGENT: &str = "Agent";
    pub const SESSION: &str = "Session";
    pub const EPISODE: &str = "Episode";
    pub const DECISION: &str = "Decision";
    pub const LEARNING: &str = "Learning";
    /// The label of memories that only their agent may read.
    pub const SENSITIVE: &str = "sensitive";
    pub const FACT: &str = "Fact";
    pub const SUPERSEDES: &str = "SUPERSEDES";
    pub const CONTRADICTS: &str = "CONTRADICTS";
    pub const NEXT_EPISODE: &str = "NEXT_EPISODE";
    pub const INVOLVES: &str = "INVOLVES";
    pub const APPLIES_TO: &str = "APPLIES_TO";
    pub const DERIVED_FROM: &str = "DERIVED_FROM";
    pub const CREATED_BY: &str = "CREATED_BY";
    pub const RECORDED_IN: &str = "RECORDED_IN";
    pub const PRODUCES: &str = "PRODUCES";

    /// The key of an agent's object, from the name of the agent.
    pub fn agent_key(id: &str) -> String {
        prefixed("agent:", id)
    }

    /// The key of a session's object.
    pub fn session_key(id: &str) -> String {
        prefixed("session:", id)
    }

    /// A key with a prefix. A name that already has the prefix is unchanged.
    pub fn prefixed(prefix: &str, id: &str) -> String {
        if id.starts_with(prefix) { id.to_owned() } else { format!("{prefix}{id}") }
    }
}
