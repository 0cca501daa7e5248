//! `reflect`: finds patterns in the newest episodes.

use crate::features::memory::reflect::{LIMIT, Reflection, ReflectionScope, reflect};
use crate::features::memory::rendering;
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operation `reflect`.
pub struct Reflect;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Only episodes of this task.
    #[serde(default)]
    pub task_id: Option<String>,
    /// Only episodes of this agent.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// Number of newest episodes to examine, 1 to 500.
    #[serde(default)]
    pub limit: Limit<LIMIT>,
    /// The branch to read and to write to.
    #[serde(default)]
    pub branch: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    #[serde(flatten)]
    pub reflected: Reflection,
}

impl Op for Reflect {
    const META: Meta = Meta {
        name: "reflect",
        long: true,
        shown: ResponseView::By(rendering::reflected),
        answer: &[
            "learnings.content",
            "learnings.confidence",
            "learnings.ref",
            "patterns.insight",
            "patterns.confidence",
            "insight",
            "reflection_id",
            "learnings_created",
        ],
        summary: "Find patterns in the newest episodes, and record them",
        description: "Looks by rule for files edited again and again, decisions soon followed by a failure, the same observation \
                      made several times, flaky tests, and files that change together. Keeps a reflection, and a learning for \
                      each pattern that is sure enough (confidence from 0.7), linked to the code, so that later context packs \
                      show it. Reflecting on the same again changes nothing.",
        verb: "reflect",
        toolset: "memory",
        examples: &["lukasa reflect", "lukasa reflect --task-id T-12 --limit 100"],
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let ask = ReflectionScope {
            task_id: request.task_id,
            agent_id: request.agent_id,
            limit: request.limit.get(),
            branch: request.branch.unwrap_or_default(),
        };
        let reflected = reflect(engine, context, &ask)?;
        let summary = match (&reflected.reflection_id, reflected.repeated) {
            (None, _) => format!("nothing to reflect on: {}", reflected.insight),
            (Some(_), true) => format!("{} reflected on before", count(reflected.episodes, "episode")),
            (Some(_), false) => format!(
                "{}: {}, {} new",
                count(reflected.episodes, "episode"),
                count(reflected.patterns.len(), "pattern"),
                count(reflected.learnings_created, "learning")
            ),
        };
        Ok(Response { summary, reflected })
    }
}
