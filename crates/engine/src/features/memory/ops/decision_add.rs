//! `decision_add`: records a decision with its rationale, trade-offs and affected files.

use crate::features::memory::episodes::{AddedEpisode, NewEpisode, add};
use crate::features::memory::rendering;
use crate::features::memory::{EpisodeKind, EpisodeOutcome};
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::AgentRef;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::{Result, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

/// The operation `decision_add`.
pub struct DecisionAdd;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The decision, in one line.
    pub title: String,
    /// Why.
    pub rationale: String,
    /// The decision in full; the title when left out.
    #[serde(default)]
    pub content: Option<String>,
    /// Alternatives that were considered, and costs.
    #[serde(default)]
    pub tradeoffs: Vec<String>,
    /// Files it affects; linked if they are in the graph, otherwise they must exist in the working tree.
    #[serde(default)]
    pub affected_files: Vec<String>,
    /// Keys of the facts it is about.
    #[serde(default)]
    pub entities: Vec<String>,
    /// Accept files and names that do not exist yet; they are recorded without links.
    #[serde(default)]
    pub new: bool,
    /// Decisions it replaces.
    #[serde(default)]
    pub supersedes: Vec<String>,
    /// proposed, accepted, …
    #[serde(default = "accepted")]
    pub status: String,
    /// success, failure or partial.
    #[serde(default)]
    pub outcome: Option<EpisodeOutcome>,
    /// The task it belongs to.
    #[serde(default)]
    pub task_id: Option<String>,
    #[serde(flatten)]
    pub agent: AgentRef,
    /// Time of the decision; now when left out.
    #[serde(default)]
    pub time: Option<Time>,
    /// Your own id, for example 42: recorded as `decision:42`.
    #[serde(default)]
    pub id: Option<String>,
    /// The branch to write to.
    #[serde(default)]
    pub branch: Option<String>,
}

fn accepted() -> String {
    "accepted".into()
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    #[serde(flatten)]
    pub added: AddedEpisode,
}

impl Op for DecisionAdd {
    const META: Meta = Meta {
        name: "decision_add",
        shown: ResponseView::By(rendering::added),
        essential: true,
        default_tool: &["title", "rationale", "tradeoffs", "affected_files", "supersedes", "task_id"],
        answer: &["episode_id", "ref", "entities.ref", "facts"],
        summary: "Record a decision with why, what was weighed against it and what it affects",
        description: "The same as `episode_add` of a DECISION. `decision_query` finds it again, `context_pack` shows it with the \
                      code it is about, and `trace_decision_lineage` shows what led to it and what came of it.",
        verb: "decide",
        toolset: "memory",
        names: &["affected_files", "entities", "supersedes"],
        positional: &["title"],
        examples: &[
            "lukasa decide \"Tokens last an hour\" --rationale \"stolen ones must die soon\" --affected-files src/auth.ts",
        ],
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let mut metadata = Map::new();
        metadata.insert("title".into(), json!(request.title));
        metadata.insert("rationale".into(), json!(request.rationale));
        metadata.insert("tradeoffs".into(), json!(request.tradeoffs));
        metadata.insert("affected_files".into(), json!(request.affected_files));
        let new = NewEpisode {
            id: request.id,
            status: Some(request.status),
            entities: request.entities,
            new: request.new,
            outcome: request.outcome,
            metadata,
            agent: request.agent,
            task_id: request.task_id,
            time: request.time,
            supersedes: request.supersedes,
            ..NewEpisode::new(EpisodeKind::Decision, request.content.unwrap_or(request.title))
        };
        let added = add(engine, context, request.branch.as_deref().unwrap_or(""), new)?;
        let summary = match added.repeated {
            true => format!("{} was recorded before, nothing written", added.episode_id),
            false => format!("recorded {}, linked to {}", added.episode_id, count(added.entities.len(), "thing")),
        };
        Ok(Response { summary, added })
    }
}
