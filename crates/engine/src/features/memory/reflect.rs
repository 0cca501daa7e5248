//! Reflection: patterns found in episodes by rule, recorded as a reflection and as learnings linked to code.

use super::patterns::{self, EpisodePattern, LEARNED, PastEpisode, RecordedLearning};
use super::recall::newest;
use super::{EpisodeKind, NewEpisode, add_all};
use crate::features::memory::ops::reflect::Reflect;
use crate::periodic::PeriodicWork;
use crate::ranges::check_range;
use crate::registry::Op;
use crate::request_parts::AgentRef;
use crate::telemetry::log;
use crate::view::NodeContents;
use crate::view::ViewGraph;
use crate::view::memories as links;
use crate::view::memories::names::{DERIVED_FROM, LEARNING};
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_model::claims::own_key;
use lukasa_model::json::Hash;
use lukasa_model::{Error, ErrorCode, Reference, Result, Scope};
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Default number of episodes.
pub const LIMIT: usize = 20;
/// Minimum number of episodes.
const LEAST: usize = 3;

/// Which episodes to examine.
#[derive(Clone, Debug, Default)]
pub struct ReflectionScope {
    pub task_id: Option<String>,
    pub agent_id: Option<String>,
    /// Number of newest episodes; 0 means twenty.
    pub limit: usize,
    /// Empty means main.
    pub branch: String,
}

/// The outcome of a reflection.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Reflection {
    /// The recorded reflection; `None` if there were too few episodes.
    pub reflection_id: Option<String>,
    /// Its text.
    pub insight: String,
    /// Learnings that are new.
    pub learnings_created: usize,
    pub learnings: Vec<LearningOut>,
    /// The most confident first.
    pub patterns: Vec<EpisodePattern>,
    /// Number of examined episodes.
    pub episodes: usize,
    /// The same episodes had been reflected on before.
    pub repeated: bool,
}

/// A learning that records a pattern.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LearningOut {
    #[serde(rename = "ref")]
    pub reference: String,
    pub content: String,
    pub confidence: f64,
    /// created; renewed: found in further episodes; known: unchanged.
    pub state: &'static str,
}

/// Reflects on the newest episodes of a project at intervals, until it is dropped.
pub fn reflect_in_background(engine: &Engine, scope: &Scope, every: Duration) -> PeriodicWork {
    let (engine, scope, mut first) = (engine.unwatched(), scope.clone(), true);
    PeriodicWork::start("reflect", every, move || {
        // Wait first, so that a starting server can answer requests.
        if std::mem::take(&mut first) {
            return;
        }
        let mut quiet = |_, _| {};
        let mut context = Context::of(scope.clone(), &mut quiet);
        match engine.call(&mut context, Reflect::META.name, json!({})) {
            Err(error) if error.code != ErrorCode::UnknownProject => {
                let fields = [("project", json!(scope.project)), ("code", json!(error.code))];
                log::event(log::LogLevel::Warn, "memory.reflect", &fields);
            }
            _ => {}
        }
    })
}

/// Examines the newest episodes of a task, of an agent or of all, and records the patterns in them. A learning is written if it
/// is new, or found in an episode that it was not derived from before. Reflecting on the same episodes again, or on some of
/// them, writes nothing.
pub fn reflect(engine: &Engine, context: &mut Context<'_>, ask: &ReflectionScope) -> Result<Reflection> {
    let limit = if ask.limit == 0 { LIMIT } else { ask.limit };
    check_range("limit", limit, 1, 500)?;
    engine.declare_agent_types(context)?;
    let branch = if ask.branch.is_empty() { "main" } else { &ask.branch };
    let look = engine.view_graph(context, &ViewSpec::on(branch))?;
    let is_source = |past: &PastEpisode| {
        let of = |asked: &Option<String>, own: &Option<String>| asked.is_none() || asked == own;
        let task = |name: &Option<String>| name.as_deref().map(|name| own_key("task", name));
        !matches!(past.kind, EpisodeKind::Reflection | EpisodeKind::Learning)
            && of(&task(&ask.task_id), &task(&past.task))
            && of(&ask.agent_id, &past.agent)
    };
    let mut sources: Vec<PastEpisode> = newest(&look, limit, is_source)?.into_iter().map(|(_, past)| past).collect();
    sources.reverse();
    sources.sort_by_key(|past| past.time);
    let patterns = patterns::find(&sources);
    if sources.len() < LEAST && patterns.is_empty() {
        return Ok(Reflection {
            reflection_id: None,
            insight: format!("{} of {LEAST} episodes that it takes to reflect", sources.len()),
            learnings_created: 0,
            learnings: vec![],
            patterns,
            episodes: sources.len(),
            repeated: false,
        });
    }
    let insight = insight(&sources, &patterns);
    let (reflection, key) = reflection(ask, &sources, &patterns, &insight)?;
    let repeated = match look.ledger.find(&look.view, &Reference::exact(EpisodeKind::Reflection.type_name(), &key)) {
        Ok(_) => true,
        Err(error) if error.code == ErrorCode::NotFound => false,
        Err(error) => return Err(error),
    };
    let mut new: Vec<NewEpisode> = if repeated { vec![] } else { vec![reflection] };
    let mut learnings = Vec::new();
    let mut known = if patterns.iter().any(is_learned) { learned(&look)? } else { vec![] };
    for pattern in patterns.iter().filter(|pattern| is_learned(pattern)) {
        let before = take_best(&mut known, pattern);
        let (state, id) = match &before {
            None => ("created", pattern.id()),
            Some(learned) if pattern.episodes.iter().all(|own| learned.episodes.contains(own)) => {
                ("known", learned.id.clone())
            }
            Some(learned) => ("renewed", learned.id.clone()),
        };
        let (content, confidence) = match before {
            Some(learned) if state == "known" => (learned.content, learned.confidence.unwrap_or(pattern.confidence)),
            before => {
                let pattern = pattern.clone().with(&before.unwrap_or_default().episodes);
                new.push(learning(ask, &id, &pattern));
                (pattern.insight, pattern.confidence)
            }
        };
        let reference = format!("{}:{}{id}", EpisodeKind::Learning.type_name(), EpisodeKind::Learning.prefix());
        learnings.push(LearningOut { reference, content, confidence, state });
    }
    if !new.is_empty() {
        add_all(engine, context, branch, new)?;
    }
    Ok(Reflection {
        reflection_id: Some(key),
        insight,
        learnings_created: learnings.iter().filter(|learning| learning.state == "created").count(),
        learnings,
        patterns,
        episodes: sources.len(),
        repeated,
    })
}

fn reflection(
    ask: &ReflectionScope,
    sources: &[PastEpisode],
    patterns: &[EpisodePattern],
    insight: &str,
) -> Result<(NewEpisode, String)> {
    let refs: Vec<String> = sources.iter().map(|past| past.reference.clone()).collect();
    let task = ask.task_id.as_deref().map(|name| own_key("task", name));
    let what = json!([task, ask.agent_id, refs]).to_string();
    let id = format!("reflection-{}", Hash::of(what.as_bytes()).digits(24));
    let mut metadata = Map::new();
    metadata.insert("source_episode_ids".into(), json!(refs));
    let found = serde_json::to_value(patterns).map_err(|e| Error::internal(e.to_string()))?;
    metadata.insert("patterns".into(), found);
    let key = format!("{}{id}", EpisodeKind::Reflection.prefix());
    let new = NewEpisode {
        id: Some(id),
        metadata,
        task_id: ask.task_id.clone(),
        agent: AgentRef { agent_id: ask.agent_id.clone(), session_id: None },
        mentions: patterns.iter().flat_map(|pattern| pattern.entities.clone()).collect(),
        derived_from: refs,
        replace: true,
        ..NewEpisode::new(EpisodeKind::Reflection, insight)
    };
    Ok((new, key))
}

fn is_learned(pattern: &EpisodePattern) -> bool {
    pattern.confidence >= LEARNED
}

/// Returns the learnings of a view that record patterns, whatever their ids.
fn learned(look: &ViewGraph) -> Result<Vec<RecordedLearning>> {
    let s = &look.snapshot;
    let is_learning = |node: &Node| s.type_name(*node).eq_ignore_ascii_case(LEARNING) && !s.is_ended(*node);
    let nodes: Vec<Node> = s.nodes().into_iter().filter(is_learning).collect();
    let read = NodeContents::of(look, &nodes)?;
    let mut all: Vec<RecordedLearning> = Vec::new();
    for node in nodes {
        let (Some(key), Some(content)) = (s.key(node), read.content(node)) else { continue };
        let own = |name: &str| content.properties.get(name);
        let Some(shape) = own("pattern").and_then(Value::as_str) else { continue };
        let sources =
            s.outgoing(node).iter().filter(|(_, edge, _)| s.edge_type(*edge).eq_ignore_ascii_case(DERIVED_FROM));
        all.push(RecordedLearning {
            id: key.strip_prefix(EpisodeKind::Learning.prefix()).unwrap_or(key).to_owned(),
            shape: shape.to_owned(),
            content: own("content").and_then(Value::as_str).unwrap_or_default().to_owned(),
            confidence: own("confidence").and_then(Value::as_f64),
            entities: links::entities(s, node).into_iter().map(|entity| entity.reference).collect(),
            episodes: sources.map(|(to, _, _)| s.name(to)).collect(),
        });
    }
    all.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(all)
}

/// Removes and returns the learning that is most similar to a pattern, so that no other pattern matches it.
fn take_best(known: &mut Vec<RecordedLearning>, pattern: &EpisodePattern) -> Option<RecordedLearning> {
    let id = pattern.id();
    let likeness =
        known.iter().enumerate().filter_map(|(at, learned)| Some((pattern.likeness(learned)?, learned.id == id, at)));
    // Of equal similarity, its own id first, then by id.
    let best = likeness.max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(b.2.cmp(&a.2)));
    best.map(|(_, _, at)| known.remove(at))
}

fn learning(ask: &ReflectionScope, id: &str, pattern: &EpisodePattern) -> NewEpisode {
    let mut metadata = Map::new();
    metadata.insert("confidence".into(), json!(pattern.confidence));
    metadata.insert("pattern".into(), json!(pattern.shape.name()));
    NewEpisode {
        id: Some(id.to_owned()),
        metadata,
        agent: AgentRef { agent_id: ask.agent_id.clone(), session_id: None },
        came_of: ask.task_id.clone(),
        mentions: pattern.entities.clone(),
        derived_from: pattern.episodes.clone(),
        replace: true,
        apart: true,
        ..NewEpisode::new(EpisodeKind::Learning, pattern.insight.clone())
    }
}

/// Describes the examined episodes and the patterns in words.
fn insight(sources: &[PastEpisode], patterns: &[EpisodePattern]) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    sources.iter().for_each(|past| *kinds.entry(past.kind.name()).or_default() += 1);
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let mut text = format!("{} episodes ({})", sources.len(), kinds.join(", "));
    match patterns.is_empty() {
        true => text.push_str(": nothing that repeats itself"),
        false => {
            let insights: Vec<&str> = patterns.iter().map(|pattern| pattern.insight.as_str()).collect();
            text.push_str(&format!(": {}", insights.join("; ")));
        }
    }
    text
}
