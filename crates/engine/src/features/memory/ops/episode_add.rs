//! `episode_add`: records an episode and links it to the code and other facts it involves.

use crate::features::memory::episodes::{AT_ONCE, AddedEpisode, NewEpisode, add_all};
use crate::features::memory::facts::NewFact;
use crate::features::memory::rendering;
use crate::features::memory::{EpisodeKind, EpisodeOutcome};
use crate::registry::WRITE;
use crate::registry::{Meta, Op, snake_case};
use crate::rendering::ResponseView;
use crate::request_parts::AgentRef;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::{Error, ErrorCode, Result, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The operation `episode_add`.
pub struct EpisodeAdd;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// What happened; up to 256 KiB.
    #[serde(default)]
    pub content: Option<String>,
    /// Type of the episode; OBSERVATION when left out.
    #[serde(rename = "type", default)]
    pub kind: EpisodeKind,
    /// Keys of the facts it involves, for example `src/auth.ts::login`; up to 200.
    #[serde(default)]
    pub entities: Vec<String>,
    /// Accept names that do not exist yet; they are recorded without links.
    #[serde(default)]
    pub new: bool,
    /// success, failure or partial.
    #[serde(default)]
    pub outcome: Option<EpisodeOutcome>,
    /// Fields of the type. DECISION: title, rationale, tradeoffs, affected_files; EDIT: file, diff_summary,
    /// lines_before, lines_after, reason; TEST_RESULT: passed, failed, test_files; ERROR: error_type, stack_summary.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// Visible to its agent only; encrypted if the agent has a key.
    #[serde(default)]
    pub sensitive: bool,
    /// The task it belongs to.
    #[serde(default)]
    pub task_id: Option<String>,
    #[serde(flatten)]
    pub agent: AgentRef,
    /// When it happened; now when left out.
    #[serde(default)]
    pub time: Option<Time>,
    /// Your own id; an episode sent again with the same id is recorded once.
    #[serde(default)]
    pub id: Option<String>,
    /// Title for display.
    #[serde(default)]
    pub title: Option<String>,
    /// Facts the episode establishes: subject, attribute, value and start of validity.
    #[serde(default)]
    pub facts: Vec<NewFact>,
    /// Instead of a single episode: up to 1,000 with these fields, recorded all or none.
    #[serde(default)]
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub episodes: Vec<Value>,
    /// The branch to write to.
    #[serde(default)]
    pub branch: Option<String>,
}

/// One entry of `episodes`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EpisodeEntry {
    content: String,
    #[serde(rename = "type", alias = "kind", default)]
    kind: EpisodeKind,
    #[serde(default)]
    entities: Vec<String>,
    #[serde(default)]
    new: bool,
    #[serde(default)]
    outcome: Option<EpisodeOutcome>,
    #[serde(default)]
    metadata: Map<String, Value>,
    #[serde(default)]
    sensitive: bool,
    #[serde(default)]
    task_id: Option<String>,
    #[serde(default)]
    agent_id: Option<String>,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default, alias = "timestamp")]
    time: Option<Time>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    facts: Vec<NewFact>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// The recorded episode; the last one if several were given.
    #[serde(flatten)]
    pub added: AddedEpisode,
    /// All recorded episodes, if several were given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub episodes: Vec<AddedEpisode>,
}

impl Op for EpisodeAdd {
    const META: Meta = Meta {
        name: "episode_add",
        shown: ResponseView::By(rendering::added),
        essential: true,
        default_tool: &["content", "type", "entities", "metadata", "outcome", "task_id"],
        answer: &["episode_id", "ref", "episodes.ref", "episodes.episode_id", "entities.ref", "facts"],
        summary: "Remember what happened, linked to what it involves",
        description: "Keeps an observation, an edit, a test result, an error, a decision or a learning with who, when, in which \
                      session and about what, so that the next agent finds it. Each type asks for certain metadata. The links \
                      to code last: they show code that ended as ended and renamed code by its new name. An id of your own makes \
                      sending it again harmless. `facts` are judged against what is known: an older one ends only where that \
                      is sure, else both stay and are shown.",
        verb: "remember",
        toolset: "memory",
        names: &["entities"],
        positional: &["content"],
        aliases: &[("kind", "type"), ("timestamp", "time"), ("episode_id", "id")],
        examples: &[
            "lukasa remember \"refresh() swallows the first error\" --entities src/auth.ts::refresh",
            "lukasa remember \"ran the login tests\" --type TEST_RESULT --metadata '{\"passed\": 9, \"failed\": 1, \"test_files\": [\"t/login.ts\"]}'",
        ],
        several: Some("episodes"),
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let branch = request.branch.clone().unwrap_or_default();
        let is_list = !request.episodes.is_empty();
        let new = read(request)?;
        let mut added = add_all(engine, context, &branch, new)?;
        let summary = summary(&added);
        let last = added.last().cloned().ok_or_else(|| Error::internal("nothing was recorded"))?;
        if !is_list {
            added.clear();
        }
        Ok(Response { summary, added: last, episodes: added })
    }
}

fn read(request: Request) -> Result<Vec<NewEpisode>> {
    let Some(content) = request.content else {
        if request.episodes.is_empty() {
            return Err(Error::invalid(ErrorCode::EmptyContent, "nothing says what happened")
                .hint("give `content`, or `episodes` for several at once"));
        }
        if request.episodes.len() > AT_ONCE {
            let message = format!("{} episodes, {AT_ONCE} are allowed at once", request.episodes.len());
            return Err(Error::too_large(ErrorCode::TooManyEpisodes, message).hint("send them in several calls"));
        }
        return request.episodes.into_iter().enumerate().map(|(at, one)| one_of(at, one)).collect();
    };
    if !request.episodes.is_empty() {
        return Err(Error::invalid(ErrorCode::InvalidRequest, "`content` and `episodes` are given")
            .hint("give one episode by its fields, or several in `episodes`"));
    }
    Ok(vec![NewEpisode {
        kind: request.kind,
        content,
        id: request.id,
        title: request.title,
        entities: request.entities,
        new: request.new,
        outcome: request.outcome,
        metadata: request.metadata,
        sensitive: request.sensitive,
        agent: request.agent,
        task_id: request.task_id,
        time: request.time,
        facts: request.facts,
        ..NewEpisode::default()
    }])
}

fn one_of(at: usize, value: Value) -> Result<NewEpisode> {
    let named = match value {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, value)| (snake_case(&name), value)).collect())
        }
        other => other,
    };
    let one: EpisodeEntry = serde_json::from_value(named)
        .map_err(|e| Error::invalid(ErrorCode::InvalidRequest, format!("episodes[{at}] does not fit: {e}")))?;
    Ok(NewEpisode {
        kind: one.kind,
        content: one.content,
        id: one.id,
        title: one.title,
        entities: one.entities,
        new: one.new,
        outcome: one.outcome,
        metadata: one.metadata,
        sensitive: one.sensitive,
        agent: AgentRef { agent_id: one.agent_id, session_id: one.session_id },
        task_id: one.task_id,
        time: one.time,
        facts: one.facts,
        ..NewEpisode::default()
    })
}

fn summary(added: &[AddedEpisode]) -> String {
    let repeated = added.iter().filter(|one| one.repeated).count();
    match added {
        [one] if one.repeated => format!("{} was remembered before, nothing written", one.episode_id),
        [one] => {
            let mut text = format!("remembered {} {}", one.kind.name(), one.episode_id);
            if !one.entities.is_empty() {
                text += &format!(", linked to {}", count(one.entities.len(), "thing"));
            }
            if one.encrypted {
                text += ", encrypted";
            }
            if let Some(tx) = one.tx {
                text += &format!(" (transaction {tx})");
            }
            text
        }
        all if repeated > 0 => format!("remembered {}, {repeated} of them before", count(all.len(), "episode")),
        all => format!("remembered {}", count(all.len(), "episode")),
    }
}
