//! `task_ready`: lists tasks that can be started now, best first.

use super::progress_query::{TaskOut, held, is_part_of};
use crate::features::coordination::rendering;
use crate::features::coordination::tasks::{self, circle_words, circles, ready};
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::Result;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operation `task_ready`.
pub struct TaskReady;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The agent whose own claims do not count as blockers; the caller's when left out.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// Only tasks of this feature or track.
    #[serde(default)]
    pub feature_id: Option<String>,
    /// Maximum number of tasks, up to 1,000.
    #[serde(default)]
    pub limit: Limit<10>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Best first.
    pub tasks: Vec<ReadyOut>,
    /// Number of all ready tasks.
    pub total: usize,
    pub truncated: bool,
    /// Cycles of tasks that wait for each other, so that none can start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cycles: Vec<Vec<String>>,
}

/// A task that can be started.
#[derive(Serialize, JsonSchema)]
pub struct ReadyOut {
    #[serde(flatten)]
    pub task: TaskOut,
    /// Number of open tasks that wait for it, directly or indirectly.
    pub unblocks: usize,
    /// Claimed by the agent itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub yours: bool,
}

impl Op for TaskReady {
    const META: Meta = Meta {
        name: "task_ready",
        shown: ResponseView::By(rendering::ready),
        answer: &["tasks.task_id", "tasks.title", "tasks.priority", "tasks.unblocks", "tasks.yours", "cycles"],
        summary: "What can be worked on now, the best first",
        description: "Lists tasks that are open, wait for nothing, and are not claimed by another agent, neither they nor the \
                      code they are about. What the agent is working on comes first, then what most other tasks wait for, \
                      then by priority and age. Tasks that wait for each other are listed as cycles.",
        verb: "task ready",
        toolset: "coordination",
        positional: &[],
        aliases: &[("feature", "feature_id"), ("track_id", "feature_id")],
        examples: &["lukasa task ready", "lukasa task ready --feature-id login --agent-id ada"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let look = engine.view_graph(context, &ViewSpec::default())?;
        let (all, held) = (tasks::read(&look)?, held(engine, &look)?);
        let agent = request.agent_id.or_else(|| context.agent.clone());
        let mut found = ready(&all, &held, agent.as_deref());
        if let Some(id) = &request.feature_id {
            found.retain(|ready| is_part_of(ready.task, id));
        }
        let total = found.len();
        found.truncate(request.limit.get());
        let cycles = circles(&all);
        let mut summary = match found.first() {
            Some(first) => {
                format!("{} ready; begin with {}: {}", count(total, "task"), first.task.key, first.task.title)
            }
            None => "no task is ready".into(),
        };
        if let Some(circle) = cycles.first() {
            summary += &format!("; {}", circle_words(circle));
        }
        let out = |ready: &tasks::ReadyTask<'_>| ReadyOut {
            task: TaskOut::of(ready.task, &held),
            unblocks: ready.unblocks,
            yours: ready.yours,
        };
        let tasks: Vec<ReadyOut> = found.iter().map(out).collect();
        Ok(Response { summary, truncated: total > tasks.len(), tasks, total, cycles })
    }
}
