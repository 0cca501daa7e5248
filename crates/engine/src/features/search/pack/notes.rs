//! Recorded knowledge about a task's code: decisions, learnings, episodes, claims, the plan.

use super::code::PackCode;
use crate::blocked_tasks::BlockedTask;
use crate::features::search::TextIndexes;
use crate::response_budget::shortened;
use crate::sensitive::is_sensitive;
use crate::view::NodeContents;
use crate::view::ViewGraph;
use crate::view::memories::{self as links, changed};
use crate::view::symbols::text;
use lukasa_graph::Node;
use lukasa_model::claims::{ClaimTarget, HeldClaim, conflicting_claims, own_key};
use lukasa_model::{Content, Result};
use lukasa_search::pipeline::fuse::best;
use lukasa_search::recipes::{ANY_FIELD, NOTES};
use lukasa_search::text::Term;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum length of a note, in characters.
const LONGEST: usize = 320;

/// A note in an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct PackNote {
    /// `Type:key`, or the id of an object without a key; left out if there is little room.
    #[serde(rename = "ref", skip_serializing_if = "String::is_empty")]
    pub reference: String,
    /// The beginning of its text.
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Confidence of a learning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// When it became true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The code that it is about has changed or been deleted since.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub perhaps_stale: bool,
    /// The code that it is linked to.
    #[serde(skip)]
    pub about: Vec<Node>,
    /// Target and intent of a claim; key of a blocked task and what blocks it.
    #[serde(skip)]
    pub claim: Option<(String, String)>,
}

/// Notes by kind, best first.
#[derive(Clone, Debug, Default)]
pub struct PackNotes {
    pub decisions: Vec<PackNote>,
    pub learnings: Vec<PackNote>,
    pub episodes: Vec<PackNote>,
    /// Claims of other agents on this code.
    pub blockers: Vec<PackNote>,
    /// Tasks about this code that cannot proceed.
    pub blocked: Vec<PackNote>,
    /// Number of claims of other agents on this code.
    pub claims: usize,
    pub plan: Option<PackNote>,
    /// The task of the plan.
    pub plan_node: Option<Node>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum NoteKind {
    Decision,
    Learning,
    Episode,
    Blocker,
}

impl PackNotes {
    pub fn are_empty(&self) -> bool {
        let lists = [&self.decisions, &self.learnings, &self.episodes, &self.blockers, &self.blocked];
        lists.iter().all(|list| list.is_empty()) && self.plan.is_none()
    }
}

/// Returns the notes about these nodes, and those that match the text of the task. Claims of `agent` itself are left out.
pub fn notes(
    look: &ViewGraph,
    texts: &TextIndexes,
    terms: &[Term],
    core: &PackCode,
    task_id: Option<&str>,
    agent: Option<&str>,
    breadth: usize,
) -> Result<PackNotes> {
    let s = &look.snapshot;
    let mut scores: FxHashMap<Node, f64> = FxHashMap::default();
    let is_note = |node: Node| kind(s.type_name(node)).is_some();
    let by_words = texts.objects.scores(terms, &ANY_FIELD);
    let top = by_words.iter().filter(|(node, _)| is_note(*node)).map(|(_, score)| *score).fold(0.0, f32::max);
    if top > 0.0 {
        let near = by_words.iter().filter(|(node, _)| is_note(*node));
        scores.extend(near.map(|(node, score)| (*node, f64::from(score / top))));
    }
    let mut linked: FxHashMap<Node, Vec<Node>> = FxHashMap::default();
    for (node, name) in
        core.nodes.iter().flat_map(|node| links::of(s, *node).into_iter().map(move |name| (*node, name)))
    {
        let around = s.incoming(name).iter().chain(s.outgoing(name).iter());
        for (other, _, _) in around.filter(|(other, _, _)| is_note(*other) && !s.is_ended(*other)) {
            *scores.entry(other).or_default() += if core.near.contains(&node) { NOTES.near } else { NOTES.linked };
            linked.entry(other).or_default().push(node);
        }
    }
    let found = best(scores.into_iter().collect(), NOTES.each * breadth * NOTES.read, |node| s.thing(node).0);
    let read = NodeContents::of(look, &found.iter().map(|(node, _)| *node).collect::<Vec<_>>())?;
    let lasting = |node: &Node| matches!(kind(s.type_name(*node)), Some(NoteKind::Decision | NoteKind::Learning));
    let changed = changed(look, &found.iter().map(|(node, _)| *node).filter(lasting).collect::<Vec<_>>())?;
    let mut notes = PackNotes::default();
    for (node, _) in found {
        let Some(content) = read.content(node) else { continue };
        if is_sensitive(content) {
            continue;
        }
        let Some(about) = about(s.type_name(node), content) else { continue };
        let perhaps_stale = changed.contains_key(&node);
        let about_nodes = linked.remove(&node).unwrap_or_default();
        let note = PackNote { perhaps_stale, about: about_nodes, ..note(look, node, content, &read) };
        let own = agent.is_some() && note.agent.as_deref() == agent;
        let list = match about {
            NoteKind::Decision => &mut notes.decisions,
            NoteKind::Learning => &mut notes.learnings,
            NoteKind::Episode => &mut notes.episodes,
            NoteKind::Blocker if own => continue,
            NoteKind::Blocker => &mut notes.blockers,
        };
        if list.len() < NOTES.each * breadth {
            list.push(note);
        }
    }
    notes.claims = notes.blockers.len();
    if let Some(task) = task_id {
        let spelled = [own_key("task", task), task.to_owned(), format!("TASK:{task}")];
        let found = spelled.iter().find_map(|name| look.node(&format!("Task:{name}")).ok());
        let node = match found {
            Some(node) => node,
            None => look.node(task).or_else(|_| look.node(&format!("TASK:{task}")))?,
        };
        let read = NodeContents::of(look, &[node])?;
        notes.plan = read.content(node).map(|content| note(look, node, content, &read));
        notes.plan_node = Some(node);
    }
    Ok(notes)
}

impl PackNotes {
    /// Replaces the blockers by the claims of others on these nodes, their containers or their contents. Claims that only share
    /// words with the task are no blockers.
    pub fn block(&mut self, look: &ViewGraph, nodes: &[Node], held: &[HeldClaim], agent: Option<&str>) {
        let s = &look.snapshot;
        let mut exact: Vec<(&HeldClaim, Vec<Node>)> = Vec::new();
        for node in nodes {
            let Some(target) = s.key(*node).and_then(|key| ClaimTarget::of_object(s.type_name(*node), key)) else {
                continue;
            };
            for claim in conflicting_claims(held, &target, agent) {
                match exact.iter_mut().find(|(own, _)| own.claim_id == claim.claim_id) {
                    Some((_, about)) => about.push(*node),
                    None => exact.push((claim, vec![*node])),
                }
            }
        }
        let is_held = |note: &PackNote| held.iter().any(|claim| note.reference == format!("Claim:{}", claim.claim_id));
        self.blockers.retain(|note| !is_held(note));
        let blockers = exact.into_iter().map(|(claim, about)| {
            let content = format!("{}: {}", claim.target, claim.intent);
            PackNote {
                reference: format!("Claim:{}", claim.claim_id),
                content: shortened(&content, LONGEST).unwrap_or(content),
                status: Some("active".into()),
                agent: Some(claim.agent_id.clone()),
                since: Some(claim.since.to_string()),
                about,
                claim: Some((claim.target.clone(), claim.intent.clone())),
                ..PackNote::default()
            }
        });
        let noted = std::mem::take(&mut self.blockers);
        self.blockers = blockers.chain(noted).collect();
        self.claims = self.blockers.len();
        self.blockers.truncate(NOTES.each);
    }

    /// The nodes whose blocked tasks concern a pack: where to begin, the rest of the code, and the task of the plan.
    pub fn concerned(&self, core: &PackCode) -> Vec<Node> {
        let all = core.near.iter().chain(&core.nodes).chain(&self.plan_node);
        let mut seen = FxHashSet::default();
        all.copied().filter(|node| seen.insert(*node)).collect()
    }

    /// Adds the tasks that cannot proceed, unless only because of claims that are listed.
    pub fn add_blocked(&mut self, look: &ViewGraph, core: &PackCode, tasks: Vec<BlockedTask>) {
        let is_listed = |claim: &String| self.blockers.iter().any(|note| note.reference == format!("Claim:{claim}"));
        let adds = |task: &BlockedTask| !(task.only_claims && task.claims.iter().all(is_listed));
        let tasks: Vec<BlockedTask> = tasks.into_iter().filter(adds).take(NOTES.each).collect();
        self.blocked = tasks
            .into_iter()
            .map(|task| {
                let name = look.snapshot.key(task.node).map_or_else(|| look.snapshot.name(task.node), str::to_owned);
                let content = format!("{}: {}", task.title.trim_end_matches(['.', ':']), task.reason);
                PackNote {
                    reference: look.snapshot.name(task.node),
                    content: shortened(&content, LONGEST).unwrap_or(content),
                    status: Some(task.status.into()),
                    agent: task.assignee,
                    // The requested task concerns all of the code.
                    about: if self.plan_node == Some(task.node) { core.near.clone() } else { task.about },
                    claim: Some((name, task.reason)),
                    ..PackNote::default()
                }
            })
            .collect();
    }
}

fn kind(type_name: &str) -> Option<NoteKind> {
    let is = |name: &str| type_name.eq_ignore_ascii_case(name);
    match () {
        () if is("DECISION") => Some(NoteKind::Decision),
        () if is("LEARNING") || is("ERRORSOLUTION") => Some(NoteKind::Learning),
        () if is("EPISODE") || is("REFLECTION") => Some(NoteKind::Episode),
        () if is("CLAIM") => Some(NoteKind::Blocker),
        () => None,
    }
}

/// Classifies an episode by its subtype; a claim that has ended is no blocker.
fn about(type_name: &str, content: &Content) -> Option<NoteKind> {
    let about = kind(type_name)?;
    let subtype = content.subtype.clone().or_else(|| text(content, "type")).unwrap_or_default();
    match about {
        NoteKind::Episode if subtype.eq_ignore_ascii_case("DECISION") => Some(NoteKind::Decision),
        NoteKind::Episode if subtype.eq_ignore_ascii_case("LEARNING") => Some(NoteKind::Learning),
        NoteKind::Blocker => {
            let open = content.status.as_deref().is_none_or(|s| ["active", "open"].contains(&s));
            open.then_some(NoteKind::Blocker)
        }
        other => Some(other),
    }
}

fn note(look: &ViewGraph, node: Node, content: &Content, read: &NodeContents) -> PackNote {
    // A text that repeats the title is skipped; of a decision, the rationale is used then.
    let differs = |body: &String| content.title.as_ref().is_none_or(|title| body != title);
    let body = ["content", "text", "summary", "description", "rationale", "intent"]
        .iter()
        .find_map(|name| text(content, name).filter(differs));
    let whole = match (&content.title, body) {
        (Some(title), Some(body)) if !body.starts_with(title.as_str()) => {
            format!("{}: {body}", title.trim_end_matches(['.', ':']))
        }
        (Some(title), None) => title.clone(),
        (_, Some(body)) => body,
        (None, None) => String::new(),
    };
    PackNote {
        reference: look.snapshot.name(node),
        content: shortened(&whole, LONGEST).unwrap_or(whole),
        status: content.status.clone(),
        agent: text(content, "agent_id").or_else(|| text(content, "agent")),
        confidence: content.properties.get("confidence").and_then(serde_json::Value::as_f64),
        since: read.stated(node).map(|time| time.to_string()),
        perhaps_stale: false,
        about: vec![],
        claim: None,
    }
}
