//! `progress_query`: lists tasks and their progress.

use crate::features::coordination::rendering;
use crate::features::coordination::tasks::{self, Blocker, Task, TaskStatus};
use crate::registry::META;
use crate::registry::{Meta, Op, Resource};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::view::ViewGraph;
use crate::{Context, Engine};
use lukasa_model::claims::{HeldClaim, own_key};
use lukasa_model::view::ViewEcho;
use lukasa_model::{FactNo, Result, Time};
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The operation `progress_query`.
pub struct ProgressQuery;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Only tasks with this status; `open` for all that are not finished, `all` for every task.
    #[serde(default = "open")]
    pub status: String,
    /// Only tasks of this feature or track.
    #[serde(default)]
    pub feature_id: Option<String>,
    /// Only tasks of this agent.
    #[serde(default)]
    pub assignee: Option<String>,
    /// Only tasks whose key, title or description contains these words.
    #[serde(default)]
    pub query: Option<String>,
    /// Continue from `next` of the previous page.
    #[serde(default)]
    pub after: Option<FactNo>,
    /// Maximum number of tasks, up to 1,000.
    #[serde(default)]
    pub limit: Limit<50>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn open() -> String {
    "all".into()
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// In the order in which they were created.
    pub tasks: Vec<TaskOut>,
    /// Number of matching tasks, listed or not.
    pub total: usize,
    /// Number of matching tasks by status.
    pub by_status: BTreeMap<&'static str, usize>,
    /// Percentage of completed tasks, not counting cancelled ones.
    pub percent_complete: f64,
    pub truncated: bool,
    /// Where the next page begins, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<FactNo>,
    pub view: ViewEcho,
}

/// A task in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TaskOut {
    pub task_id: String,
    pub title: String,
    pub status: TaskStatus,
    pub priority: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// Features and tracks it is part of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub belongs_to: Vec<String>,
    /// Open tasks or other facts it waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<Blocker>,
    /// The agents that have claimed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<String>,
    /// The code it is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Time>,
    pub version: u32,
}

impl TaskOut {
    /// Builds the row of a task, with the claims that concern it among the held ones.
    pub fn of(task: &Task, held: &[HeldClaim]) -> TaskOut {
        let own = own_key("task", &task.key);
        TaskOut {
            task_id: task.key.clone(),
            title: task.title.clone(),
            status: task.status,
            priority: task.priority,
            assignee: task.assignee.clone(),
            belongs_to: task.belongs_to.clone(),
            blocked_by: task.open_blockers().cloned().collect(),
            claimed_by: held.iter().find(|held| held.target == own).map(|held| held.agent_id.clone()),
            targets: task.targets.clone(),
            updated_at: task.updated,
            version: task.version,
        }
    }
}

impl Op for ProgressQuery {
    const META: Meta = Meta {
        name: "progress_query",
        shown: ResponseView::By(rendering::tasks),
        answer: &[
            "tasks.task_id",
            "tasks.title",
            "tasks.status",
            "tasks.assignee",
            "tasks.claimed_by",
            "tasks.blocked_by.id",
            "percent_complete",
            "by_status",
        ],
        summary: "List tasks and how far they are",
        description: "Lists tasks with their status, who has claimed them and what they wait for, by feature, assignee, status \
                      or words, page by page; with how many there are of each status.",
        verb: "tasks",
        toolset: "coordination",
        positional: &["query"],
        aliases: &[("feature", "feature_id"), ("track_id", "feature_id"), ("agent_id", "assignee")],
        examples: &["lukasa tasks", "lukasa tasks --status open --feature-id login"],
        resource: Some(Resource {
            path: "tasks",
            title: "Tasks",
            about: "What is to be done, and how far it is",
            field: "",
        }),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let wanted = match request.status.as_str() {
            "all" | "open" => None,
            word => Some(TaskStatus::read(word)?),
        };
        let look = engine.view_graph(context, &request.view)?;
        let held = held(engine, &look)?;
        let words: Vec<String> =
            request.query.as_deref().unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
        let fits = |task: &Task| {
            let text = format!("{} {} {}", task.key, task.title, task.description.as_deref().unwrap_or_default());
            let text = text.to_lowercase();
            wanted.is_none_or(|status| task.status == status)
                && (request.status != "open" || task.is_open())
                && request.feature_id.as_deref().is_none_or(|id| is_part_of(task, id))
                && request.assignee.as_ref().is_none_or(|agent| task.assignee.as_ref() == Some(agent))
                && words.iter().all(|word| text.contains(word.as_str()))
        };
        let all: Vec<Task> = tasks::read(&look)?.into_iter().filter(fits).collect();
        let mut by_status = BTreeMap::new();
        all.iter().for_each(|task| *by_status.entry(task.status.name()).or_default() += 1);
        let rest: Vec<&Task> = all.iter().filter(|task| request.after.is_none_or(|after| task.age > after)).collect();
        let shown = &rest[..rest.len().min(request.limit.get())];
        let truncated = shown.len() < rest.len();
        let mut summary = count(all.len(), "task");
        let counts: Vec<String> = by_status.iter().map(|(status, n)| format!("{n} {status}")).collect();
        if !counts.is_empty() {
            summary += &format!(": {}", counts.join(", "));
        }
        Ok(Response {
            summary,
            total: all.len(),
            percent_complete: percent(&all),
            truncated,
            next: shown.last().filter(|_| truncated).map(|task| task.age),
            tasks: shown.iter().map(|task| TaskOut::of(task, &held)).collect(),
            by_status,
            view: look.view.echo(),
        })
    }
}

/// Claims exist only now, so a view of the past has none.
pub(super) fn held(engine: &Engine, look: &ViewGraph) -> Result<Vec<HeldClaim>> {
    if look.is_head { engine.claims_held(&look.ledger) } else { Ok(vec![]) }
}

pub(super) fn is_part_of(task: &Task, id: &str) -> bool {
    let names = [own_key("feature", id), own_key("track", id), id.to_owned()];
    task.belongs_to.iter().any(|of| names.contains(of))
}

pub(super) fn percent(tasks: &[Task]) -> f64 {
    let counted = tasks.iter().filter(|task| task.status != TaskStatus::Cancelled).count();
    let done = tasks.iter().filter(|task| task.status == TaskStatus::Completed).count();
    if counted == 0 { 0.0 } else { (done as f64 / counted as f64 * 1_000.0).round() / 10.0 }
}
