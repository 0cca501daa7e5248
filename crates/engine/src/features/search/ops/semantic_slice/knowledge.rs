//! Decisions and learnings linked to a symbol.

use crate::sensitive::is_sensitive;
use crate::view::memories as links;
use crate::view::symbols::{Symbols, text};
use lukasa_graph::{Edge, Node};
use lukasa_model::{Content, Result, Time};
use lukasa_store::VersionFields;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

/// Properties with the text of a note, the most important first.
const TEXTS: [&str; 7] = ["content", "text", "decision", "summary", "description", "rationale", "body"];
/// Maximum number of decisions and of learnings.
const LISTED: usize = 3;

/// A decision or learning about a symbol.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct KnowledgeOut {
    /// `Type:key`, or its id.
    #[serde(rename = "ref")]
    pub reference: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// When it became valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<Time>,
}

#[derive(Clone, Copy, PartialEq)]
enum KnowledgeKind {
    Decision,
    Learning,
}

/// Returns decisions, newest first, and learnings, the most confident first, without sensitive ones.
pub fn known_about(symbols: &Symbols<'_>, node: Node) -> Result<(Vec<KnowledgeOut>, Vec<KnowledgeOut>)> {
    let look = symbols.look;
    let s = &look.snapshot;
    let linked: FxHashMap<Node, Edge> = links::memories(s, node).into_iter().collect();
    let mut numbers: Vec<_> = linked.keys().map(|from| s.thing(*from)).collect();
    numbers.sort_unstable();
    let (mut decisions, mut learnings) = (Vec::new(), Vec::new());
    for state in look.ledger.states(&look.view, &numbers, VersionFields::Content)? {
        let (Some(from), Some(statement)) = (s.find(state.thing.no), state.statement) else { continue };
        let content = statement.parsed()?;
        if is_sensitive(&content) {
            continue;
        }
        let stated = content.properties.get("confidence").and_then(serde_json::Value::as_f64);
        let known = KnowledgeOut {
            reference: s.name(from),
            title: content.title.clone(),
            content: TEXTS.iter().find_map(|name| text(&content, name)),
            confidence: stated.or_else(|| linked.get(&from).and_then(|edge| s.confidence(*edge))),
            valid_from: Some(statement.period.from).filter(|from| *from != Time::MIN),
        };
        match sort(s.type_name(from), &content) {
            Some(KnowledgeKind::Decision) => decisions.push(known),
            Some(KnowledgeKind::Learning) => learnings.push(known),
            None => {}
        }
    }
    decisions.sort_by(|a, b| b.valid_from.cmp(&a.valid_from).then_with(|| a.reference.cmp(&b.reference)));
    let sure = |known: &KnowledgeOut| known.confidence.unwrap_or(1.0);
    learnings.sort_by(|a, b| sure(b).total_cmp(&sure(a)).then_with(|| a.reference.cmp(&b.reference)));
    decisions.truncate(LISTED);
    learnings.truncate(LISTED);
    Ok((decisions, learnings))
}

/// Classifies an object by its type; an episode has its kind in its content.
fn sort(type_name: &str, content: &Content) -> Option<KnowledgeKind> {
    let named = |name: &str| match name.to_ascii_lowercase().as_str() {
        "decision" => Some(KnowledgeKind::Decision),
        "learning" => Some(KnowledgeKind::Learning),
        _ => None,
    };
    if !type_name.eq_ignore_ascii_case("episode") {
        return named(type_name);
    }
    let kinds = ["type", "kind", "episode_type"].into_iter().filter_map(|name| text(content, name));
    content.subtype.clone().into_iter().chain(kinds).find_map(|name| named(&name))
}
