//! What memories are about, as it is now: code that has ended, code that was renamed, code that has changed since.

use crate::view::Look;
use crate::view::Read;
use crate::view::memories::names::{APPLIES_TO, INVOLVES, NEXT_EPISODE};
use lukasa_graph::{Edge, Node, Snapshot};
use lukasa_model::types::RENAMED_FROM;
use lukasa_model::{Content, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Renames followed from one name; more are a circle.
const RENAMES: usize = 16;
/// The property of a link that says what the code was when it was made.
pub const CODE_HASH: &str = "code_hash";

/// Something that an episode involves.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EntityOut {
    /// `Type:key`, by its present name.
    #[serde(rename = "ref")]
    pub reference: String,
    /// It is no longer there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// The name it had when this was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
}

/// Code that is not what it was when something was learned about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedOut {
    #[serde(rename = "ref")]
    pub reference: String,
    /// changed or ended.
    pub how: &'static str,
}

/// Relationships from a memory to what it is about.
pub fn about(snapshot: &Snapshot, memory: Node) -> impl Iterator<Item = (Node, Edge)> + '_ {
    snapshot.outgoing(memory).iter().filter(|(_, edge, _)| is_about(snapshot, *edge)).map(|(to, edge, _)| (to, edge))
}

fn is_about(snapshot: &Snapshot, edge: Edge) -> bool {
    [INVOLVES, APPLIES_TO].iter().any(|name| snapshot.edge_type(edge).eq_ignore_ascii_case(name))
}

/// What something that has ended is called now; itself where it was not renamed.
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

/// A node, and what it was called before: what was remembered of it is linked to the name it had then.
pub fn of(snapshot: &Snapshot, node: Node) -> Vec<Node> {
    let renamed = |edge: Edge| snapshot.edge_type(edge).eq_ignore_ascii_case(RENAMED_FROM);
    let (mut names, mut at) = (vec![node], 0);
    while at < names.len() && names.len() < RENAMES {
        for (before, edge, _) in snapshot.outgoing(names[at]).iter() {
            // A name that was given again is that of something else.
            if renamed(edge) && snapshot.is_ended(before) && !names.contains(&before) {
                names.push(before);
            }
        }
        at += 1;
    }
    names
}

/// What is linked to a node, under whatever name it had, as being about it.
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

/// What something that has ended is called now, where it was renamed.
pub fn renamed_to(snapshot: &Snapshot, node: Node) -> Option<String> {
    Some(present(snapshot, node)).filter(|now| *now != node).map(|now| snapshot.name(now))
}

/// What a memory is about, by present names.
pub fn entities(snapshot: &Snapshot, memory: Node) -> Vec<EntityOut> {
    let mut all: Vec<(u64, EntityOut)> = about(snapshot, memory)
        .map(|(to, edge)| {
            let now = present(snapshot, to);
            let renamed_from = (now != to).then(|| snapshot.name(to));
            let out = EntityOut { reference: snapshot.name(now), ended: snapshot.is_ended(now), renamed_from };
            (snapshot.edge_thing(edge), out)
        })
        .collect();
    all.sort_by_key(|(thing, _)| *thing);
    all.into_iter().map(|(_, out)| out).collect()
}

/// The key of what came before it in its session.
pub fn previous(snapshot: &Snapshot, memory: Node) -> Option<String> {
    let is_next = |edge: Edge| snapshot.edge_type(edge).eq_ignore_ascii_case(NEXT_EPISODE);
    let (before, _, _) = snapshot.incoming(memory).iter().find(|(_, edge, _)| is_next(*edge))?;
    Some(snapshot.key(before).map_or_else(|| snapshot.name(before), str::to_owned))
}

/// Of each memory, the code it is about that has changed or ended since it was made. What was renamed and is the same
/// otherwise has not changed.
pub fn changed(look: &Look, memories: &[Node]) -> Result<FxHashMap<Node, Vec<ChangedOut>>> {
    let s = &look.snapshot;
    let mut links: Vec<(Node, Node, Edge)> = Vec::new();
    for memory in memories {
        links.extend(about(s, *memory).map(|(to, edge)| (*memory, to, edge)));
    }
    if links.is_empty() {
        return Ok(FxHashMap::default());
    }
    let nodes = links.iter().flat_map(|(memory, to, _)| [*memory, present(s, *to)]).collect::<Vec<_>>();
    let read = Read::of(look, &nodes)?;
    let edges = look.contents(&links.iter().map(|(_, _, edge)| s.edge_thing(*edge)).collect::<Vec<_>>())?;
    let mut all: FxHashMap<Node, Vec<ChangedOut>> = FxHashMap::default();
    for (memory, to, edge) in links {
        let now = present(s, to);
        let how = if s.is_ended(now) {
            "ended"
        } else {
            let then = edges.get(&s.edge_thing(edge)).and_then(|content| content.properties.get(CODE_HASH)?.as_str());
            let is = read.content(now).and_then(code_hash);
            let same = match (then, is) {
                (Some(then), Some(is)) => then == is,
                // Nobody noted what the code was: whether it was stated anew is all there is to go by.
                (None, Some(_)) => read.stated(now) <= read.stated(memory),
                (_, None) => true,
            };
            if same {
                continue;
            }
            "changed"
        };
        all.entry(memory).or_default().push(ChangedOut { reference: s.name(now), how });
    }
    all.values_mut().for_each(|list| list.sort_by(|a, b| a.reference.cmp(&b.reference)));
    Ok(all)
}

/// What the code index keeps of a symbol or a file to tell whether it changed; none of what is no code.
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
    /// The label of what is kept from everybody but its agent.
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

    /// The key under which an agent is known, by the name it gives itself.
    pub fn agent_key(id: &str) -> String {
        prefixed("agent:", id)
    }

    /// The key under which a session is known.
    pub fn session_key(id: &str) -> String {
        prefixed("session:", id)
    }

    /// What a name is kept under; one that has the prefix already stays as it is.
    pub fn prefixed(prefix: &str, id: &str) -> String {
        if id.starts_with(prefix) { id.to_owned() } else { format!("{prefix}{id}") }
    }
}
