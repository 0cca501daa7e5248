//! `coordination_overview`: claims, stale claims and conflicts of all agents.

use super::agent_status::last_seen;
use crate::claims::ClaimOut;
use crate::features::coordination::ConflictPair;
use crate::features::coordination::rendering;
use crate::registry::META;
use crate::registry::{Meta, Op, Resource};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::response_budget::NOTICE;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::claims::HeldClaim;
use lukasa_model::{Result, Time};
use lukasa_store::VersionFields;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The operation `coordination_overview`.
pub struct CoordinationOverview;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Maximum number of claims, up to 1,000.
    #[serde(default)]
    pub limit: Limit<200>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Warning about the text of intents, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// Held claims, sorted by target.
    pub active_claims: Vec<ClaimOut>,
    /// Active claims whose target changed since it was claimed.
    pub stale_claims: Vec<ClaimOut>,
    /// Refused claims whose conflicting claim is still held, newest first; only those this server refused.
    pub conflicts: Vec<ConflictPair>,
    pub agent_summary: Vec<AgentSummary>,
    /// Number of all claims, held or ended.
    pub total_claims: usize,
    /// There are more active claims than listed.
    pub truncated: bool,
}

/// An agent with the number of its claims.
#[derive(Serialize, JsonSchema)]
pub struct AgentSummary {
    pub agent_id: String,
    pub claim_count: usize,
    /// Time of its latest write.
    pub last_seen: Option<Time>,
}

impl Op for CoordinationOverview {
    const META: Meta = Meta {
        name: "coordination_overview",
        shown: ResponseView::By(rendering::overview),
        essential: true,
        answer: &[
            "active_claims.agent_id",
            "active_claims.target_id",
            "active_claims.intent",
            "conflicts.target_id",
            "conflicts.wanted_by",
            "conflicts.wanted_for",
            "conflicts.held.agent_id",
            "stale_claims.agent_id",
            "stale_claims.target_id",
            "agent_summary.agent_id",
            "agent_summary.claim_count",
            "total_claims",
        ],
        summary: "Who works on what",
        description: "Lists every claim that is held, those whose target has changed since, attempts of others that were \
                      refused and still are in the way of each other, and each agent with how much it holds and when it was \
                      last seen.",
        verb: "who",
        toolset: "coordination",
        positional: &[],
        examples: &["lukasa who", "lukasa who --json"],
        resource: Some(Resource { path: "claims", title: "Claims", about: "Who works on what", field: "" }),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let ledger = engine.ledger(&context.scope);
        let held = engine.claims_held(&ledger)?;
        let conflicts = engine.coordination().open_conflicts(&context.scope, &held);
        let mut agents: BTreeMap<&str, usize> = BTreeMap::new();
        held.iter().for_each(|claim| *agents.entry(&claim.agent_id).or_default() += 1);
        let summary = |(agent, claims): (&&str, &usize)| {
            let last_seen = last_seen(engine, context, agent)?;
            Ok(AgentSummary { agent_id: (*agent).to_owned(), claim_count: *claims, last_seen })
        };
        let agent_summary = agents.iter().map(summary).collect::<Result<Vec<_>>>()?;
        let shown: Vec<HeldClaim> = held.iter().take(request.limit.get()).cloned().collect();
        let mut stale = Vec::new();
        for claim in &shown {
            if engine.is_stale(&ledger, claim)? {
                stale.push(ClaimOut::of(claim.clone(), &context.scope));
            }
        }
        let view = ledger.view(&ViewSpec::default())?;
        let total_claims = ledger.states_with_prefix(&view, Some("Claim"), "claim:", VersionFields::Header)?.len();
        let mut text = format!("{} held by {}", count(held.len(), "claim"), count(agents.len(), "agent"));
        if !stale.is_empty() {
            text += &format!(", {} on what has changed since", stale.len());
        }
        if !conflicts.is_empty() {
            text += &format!(", {}", count(conflicts.len(), "open conflict"));
        }
        let truncated = held.len() > shown.len();
        Ok(Response {
            summary: text,
            notice: (!shown.is_empty() || !conflicts.is_empty()).then_some(NOTICE),
            active_claims: shown.into_iter().map(|claim| ClaimOut::of(claim, &context.scope)).collect(),
            stale_claims: stale,
            conflicts: conflicts.into_iter().map(ConflictPair::from).collect(),
            agent_summary,
            total_claims,
            truncated,
        })
    }
}
