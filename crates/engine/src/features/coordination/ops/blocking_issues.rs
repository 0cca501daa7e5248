//! `blocking_issues`: lists tasks that cannot proceed, with the reasons.

use super::progress_query::{held, is_part_of};
use crate::claims::ClaimOut;
use crate::features::coordination::ConflictPair;
use crate::features::coordination::rendering;
use crate::features::coordination::tasks::{
    self, Blocker, Obstruction, TaskStatus, behind, circle_words, circles, waiting_for,
};
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::Result;
use lukasa_model::claims::own_key;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// The operation `blocking_issues`.
pub struct BlockingIssues;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Only this task.
    #[serde(default)]
    pub task_id: Option<String>,
    /// Only tasks of this feature or track.
    #[serde(default)]
    pub feature_id: Option<String>,
    /// The agent whose own claims do not count as blockers; the agent of each task when left out.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// Maximum number of issues, up to 1,000.
    #[serde(default)]
    pub limit: Limit<50>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Tasks with the most dependent tasks first.
    pub issues: Vec<BlockingIssue>,
    pub total: usize,
    pub truncated: bool,
    /// Refused claims whose conflicting claim is still held.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claim_conflicts: Vec<ConflictPair>,
    /// Cycles of tasks that depend on each other, so that none can start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cycles: Vec<Vec<String>>,
}

/// A task that cannot proceed, and why.
#[derive(Serialize, JsonSchema)]
pub struct BlockingIssue {
    pub task_id: String,
    pub title: String,
    pub status: TaskStatus,
    /// Open tasks or other facts it depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<Blocker>,
    /// Claims of other agents on the task or on its code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claimed_by_others: Vec<ClaimOut>,
    /// Number of open tasks that depend on it, directly or indirectly.
    pub holds_up: usize,
    pub reason: String,
}

impl Op for BlockingIssues {
    const META: Meta = Meta {
        name: "blocking_issues",
        shown: ResponseView::By(rendering::blocking),
        answer: &[
            "issues.task_id",
            "issues.title",
            "issues.reason",
            "issues.blocked_by.id",
            "issues.holds_up",
            "claim_conflicts.target_id",
            "claim_conflicts.wanted_by",
            "claim_conflicts.held.agent_id",
            "cycles",
        ],
        summary: "What keeps tasks from going on",
        description: "Lists open tasks that wait for others, that are marked as blocked, or whose code another agent has \
                      claimed; claims that were refused; and tasks that wait for each other in a circle.",
        verb: "task blockers",
        toolset: "coordination",
        positional: &["task_id"],
        aliases: &[("feature", "feature_id"), ("track_id", "feature_id")],
        examples: &["lukasa task blockers", "lukasa task blockers 12"],
        of_any_agent: true,
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let look = engine.view_graph(context, &ViewSpec::default())?;
        let (all, held) = (tasks::read(&look)?, held(engine, &look)?);
        let waiting = waiting_for(&all);
        let own = request.task_id.as_deref().map(|id| own_key("task", id));
        let mut issues: Vec<BlockingIssue> = Vec::new();
        for task in &all {
            let asked = own.as_ref().is_none_or(|key| own_key("task", &task.key) == *key)
                && request.feature_id.as_deref().is_none_or(|id| is_part_of(task, id));
            let obstruction = Obstruction::of(task, &held, request.agent_id.as_deref());
            let Some(obstruction) = obstruction.filter(|_| asked) else { continue };
            let claimed = obstruction.claims.iter().map(|held| ClaimOut::of((*held).clone(), &context.scope));
            issues.push(BlockingIssue {
                task_id: task.key.clone(),
                title: task.title.clone(),
                status: task.status,
                reason: obstruction.reason(),
                claimed_by_others: claimed.collect(),
                blocked_by: obstruction.blocked_by.into_iter().cloned().collect(),
                holds_up: behind(&task.key, &waiting),
            });
        }
        issues.sort_by_key(|issue| Reverse(issue.holds_up));
        let total = issues.len();
        issues.truncate(request.limit.get());
        let cycles = circles(&all);
        let conflicts = engine.coordination().open_conflicts(&context.scope, &held);
        let mut summary = format!("{} cannot go on", count(total, "task"));
        if !conflicts.is_empty() {
            summary += &format!(", {}", count(conflicts.len(), "claim conflict"));
        }
        if let Some(circle) = cycles.first() {
            summary += &format!("; {}", circle_words(circle));
        }
        Ok(Response {
            summary,
            truncated: total > issues.len(),
            issues,
            total,
            claim_conflicts: conflicts.into_iter().map(ConflictPair::from).collect(),
            cycles,
        })
    }
}
