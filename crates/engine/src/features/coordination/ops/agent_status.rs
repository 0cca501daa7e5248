//! `agent_status`: an agent's claims and recent episodes.

use crate::caller::acting_agent;
use crate::claims::ClaimOut;
use crate::features::coordination::rendering;
use crate::features::memory::recall::{RecallQuery, RecallWeights, RecalledMemoryOut, recall};
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::response_budget::NOTICE;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::claims::ClaimType;
use lukasa_model::{Result, Time};
use lukasa_store::TransactionFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operation `agent_status`.
pub struct AgentStatus;

/// Maximum number of episodes returned.
const RECENT: usize = 10;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The agent; the caller's when left out.
    #[serde(default)]
    pub agent_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub agent_id: String,
    /// Warning about the text of intents and episodes, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// Claims it holds, oldest first.
    pub active_claims: Vec<ClaimOut>,
    /// Its ten latest episodes, newest first, without sensitive ones.
    pub recent_episodes: Vec<RecalledMemoryOut>,
    /// The task of its latest claim on a task, or on anything else for a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_task: Option<String>,
    /// Time of its latest write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<Time>,
}

impl Op for AgentStatus {
    const META: Meta = Meta {
        name: "agent_status",
        shown: ResponseView::By(rendering::agent),
        answer: &[
            "active_claims.target_id",
            "active_claims.intent",
            "active_claims.claim_type",
            "current_task",
            "recent_episodes.content",
            "agent_id",
            "last_seen",
        ],
        summary: "What an agent has claimed and did lately",
        description: "Lists what an agent holds now, the task it works on, when it last wrote something, and its last ten \
                      episodes.",
        verb: "agent",
        toolset: "coordination",
        positional: &["agent_id"],
        examples: &["lukasa agent ada"],
        of_any_agent: true,
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let agent = acting_agent(request.agent_id.as_deref(), context)?;
        let ledger = engine.ledger(&context.scope);
        let mut held = engine.claims_held(&ledger)?;
        held.retain(|claim| claim.agent_id == agent);
        held.sort_by_key(|claim| claim.since);
        let task = |claim: &lukasa_model::claims::HeldClaim| match claim.claim_type {
            ClaimType::Task => Some(claim.target.clone()),
            _ => claim.task_id.clone(),
        };
        let current_task = held.iter().rev().find_map(task);
        let last_seen = last_seen(engine, context, &agent)?;
        let recent_episodes = recent(engine, context, &agent)?;
        let mut summary = format!("{agent} holds {}", count(held.len(), "claim"));
        if let Some(task) = &current_task {
            summary += &format!(" and works on {task}");
        }
        Ok(Response {
            summary,
            agent_id: agent,
            notice: (!held.is_empty() || !recent_episodes.is_empty()).then_some(NOTICE),
            active_claims: held.into_iter().map(|claim| ClaimOut::of(claim, &context.scope)).collect(),
            recent_episodes,
            current_task,
            last_seen,
        })
    }
}

/// Returns the latest episodes of an agent on all branches.
fn recent(engine: &Engine, context: &mut Context<'_>, agent: &str) -> Result<Vec<RecalledMemoryOut>> {
    let weights = RecallWeights { similarity: 0.0, recency: 1.0, entities: 0.0, ..RecallWeights::default() };
    let ask = RecallQuery {
        agent_id: Some(agent.to_owned()),
        weights,
        limit: RECENT,
        moments: false,
        all_branches: true,
        ..RecallQuery::default()
    };
    Ok(recall(engine, context, &ask)?.items)
}

/// Returns the time of an agent's latest write.
pub(super) fn last_seen(engine: &Engine, context: &Context<'_>, agent: &str) -> Result<Option<Time>> {
    let mut reader = engine.store().read(&context.scope)?;
    let last = reader.find_transactions(&TransactionFilter::Agent(agent.to_owned()), 1)?;
    Ok(last.first().map(|transaction| transaction.recorded_at))
}
