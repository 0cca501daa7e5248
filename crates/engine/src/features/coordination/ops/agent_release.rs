//! `agent_release`: ends an agent's claim, or the claim of an agent that is gone.

use crate::caller::acting_agent;
use crate::features::code::working_tree::AgentWorktree;
use crate::features::coordination::{ClaimEnding, claim_target};
use crate::features::memory::{EpisodeKind, NewEpisode, add};
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::request_parts::AgentRef;
use crate::view::symbols::text;
use crate::{Context, Engine};
use lukasa_model::claims::HeldClaim;
use lukasa_model::id::check_text;
use lukasa_model::limits::TITLE_BYTES;
use lukasa_model::transaction::Header;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use lukasa_store::Ledger;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operation `agent_release`.
pub struct AgentRelease;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Id of the claim, or its target.
    pub claim_id: String,
    /// What was accomplished; recorded as an episode.
    #[serde(default)]
    pub outcome: Option<String>,
    /// The agent that releases; the caller's agent when left out.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// Release another agent's claim; requires `reason`.
    #[serde(default)]
    pub force: bool,
    /// Why another agent's claim is released; recorded with the claim.
    #[serde(default)]
    pub reason: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub claim_id: String,
    /// released, or ended if the claim had ended before.
    pub status: String,
    pub target_id: String,
    /// The agent that held the claim.
    pub agent_id: String,
    /// Why it ended: released, code_changed, task_completed or expired.
    pub invalidation_reason: String,
    /// The episode that records the outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub episode_id: Option<String>,
}

impl Op for AgentRelease {
    const META: Meta = Meta {
        name: "agent_release",
        answer: &["status", "claim_id", "target_id", "invalidation_reason", "episode_id"],
        summary: "Release a claim",
        description: "Gives up a claim, with what was accomplished. Another agent's claim can be released with `force` and a \
                      reason, which is kept; that is how a claim without a connection is ended when its holder is gone. \
                      For a claim that has already ended, returns why it ended.",
        verb: "release-claim",
        toolset: "coordination",
        positional: &["claim_id"],
        names: &["claim_id"],
        aliases: &[("target_id", "claim_id"), ("target", "claim_id")],
        examples: &[
            "lukasa release-claim claim:0198c9c6-0000-7000-8000-000000000000 --outcome \"timeout added\"",
            "lukasa release-claim src/auth.ts --force --reason \"ada's machine is gone\" --agent bob",
        ],
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let agent = acting_agent(request.agent_id.as_deref(), context)?;
        for (what, text) in [("outcome", &request.outcome), ("reason", &request.reason)] {
            if let Some(text) = text.as_deref().filter(|text| !text.is_empty()) {
                check_text(what, text, TITLE_BYTES)?;
            }
        }
        let ledger = engine.ledger(&context.scope);
        let Some(held) = held(engine, context, &ledger, &request.claim_id)? else {
            return ended_before(engine, &ledger, &request.claim_id);
        };
        let reason = request.reason.clone().filter(|reason| !reason.trim().is_empty());
        let own = held.agent_id == agent;
        let forced = match (own, request.force, reason) {
            (true, _, _) => None,
            (false, true, Some(reason)) => Some(reason),
            (false, true, None) => {
                return Err(Error::invalid(ErrorCode::NoReason, "a claim of another agent is released with a reason")
                    .hint("say why with `reason`; it is kept with the claim"));
            }
            (false, false, _) => return Err(not_yours(&held, &agent)),
        };
        let header = Header {
            agent: Some(agent.clone()),
            ..context.header(Some(forced.clone().unwrap_or_else(|| format!("release {}", held.target))))
        };
        let outcome = request.outcome.clone().filter(|outcome| !outcome.trim().is_empty());
        let ending = ClaimEnding { reason: "released", by: Some(agent.clone()), outcome, forced };
        let ended = engine.end_claims(&ledger, &header, &ending, &|claim| claim.claim_id == held.claim_id)?;
        if ended.is_empty() {
            return ended_before(engine, &ledger, &held.claim_id);
        }
        let episode_id = match &request.outcome {
            Some(outcome) if !outcome.trim().is_empty() => Some(kept(engine, context, &held, &agent, outcome)?),
            _ => None,
        };
        let whose = if own { String::new() } else { format!(" of {}", held.agent_id) };
        Ok(Response {
            summary: format!("released the claim{whose} on `{}`", held.target),
            claim_id: held.claim_id,
            status: "released".into(),
            target_id: held.target,
            agent_id: held.agent_id,
            invalidation_reason: "released".into(),
            episode_id,
        })
    }
}

/// Records the outcome as an episode and returns its id.
fn kept(engine: &Engine, context: &mut Context<'_>, held: &HeldClaim, agent: &str, outcome: &str) -> Result<String> {
    let mut new = NewEpisode::new(EpisodeKind::Observation, outcome);
    new.title = Some(format!("Released {}", held.target));
    new.agent = AgentRef { agent_id: Some(agent.to_owned()), session_id: held.session_id.clone() };
    new.task_id = held.task_id.clone();
    new.mentions = vec![held.target.clone()];
    new.metadata.insert("claim_id".into(), serde_json::json!(held.claim_id));
    new.metadata.insert("intent".into(), serde_json::json!(held.intent));
    // A branch that was never indexed is unknown, and a closed one takes no writes: use the default branch then.
    let registry = engine.ledger(&context.scope).registry()?;
    let branch = held.branch.as_deref().filter(|name| registry.branch(name).is_ok_and(|branch| !branch.closed));
    Ok(add(engine, context, branch.unwrap_or_default(), new)?.episode_id)
}

/// Returns the held claim with this id or target; `None` for the id of a claim that is not held.
fn held(engine: &Engine, context: &mut Context<'_>, ledger: &Ledger, name: &str) -> Result<Option<HeldClaim>> {
    let id = own_id(name);
    let all = engine.claims_held(ledger)?;
    if let Some(held) = all.iter().find(|held| held.claim_id == id) {
        return Ok(Some(held.clone()));
    }
    if is_id(&id) {
        return Ok(None);
    }
    if let Some(held) = all.iter().find(|held| held.target == name.trim()) {
        return Ok(Some(held.clone()));
    }
    // The target may have been deleted, or never created.
    let target = claim_target(engine, context, name, None, true, &AgentWorktree::default())?;
    let found = all.into_iter().find(|held| held.target == target.name);
    found.map(Some).ok_or_else(|| {
        Error::not_found(ErrorCode::NoClaim, format!("no agent has claimed `{}`", target.name))
            .hint("`coordination_overview` lists who works on what")
    })
}

fn own_id(name: &str) -> String {
    name.trim().strip_prefix("Claim:").unwrap_or(name.trim()).to_owned()
}

fn is_id(name: &str) -> bool {
    name.strip_prefix("claim:").is_some_and(|id| uuid::Uuid::try_parse(id).is_ok())
}

fn not_yours(held: &HeldClaim, agent: &str) -> Error {
    Error::new(
        ErrorKind::Forbidden,
        ErrorCode::NotHolder,
        format!("`{}` is claimed by {}, not by {agent}: {}", held.target, held.agent_id, held.intent),
    )
    .hint("only its holder releases a claim; with `force` and a `reason` another agent can")
}

/// Reports how a claim ended that is no longer held.
fn ended_before(engine: &Engine, ledger: &Ledger, name: &str) -> Result<Response> {
    let id = own_id(name);
    let Some(record) = engine.claim_record(ledger, &id)? else {
        return Err(Error::not_found(ErrorCode::NoClaim, format!("there is no claim `{name}`"))
            .hint("`coordination_overview` lists who works on what"));
    };
    let property = |name: &str| text(&record, name).unwrap_or_default();
    let (reason, target) = (property("invalidation_reason"), property("target"));
    let by = text(&record, "ended_by").map(|by| format!(" by {by}")).unwrap_or_default();
    Ok(Response {
        summary: format!("the claim on `{target}` had ended before: {reason}{by}"),
        claim_id: id,
        status: "ended".into(),
        target_id: target,
        agent_id: property("agent_id"),
        invalidation_reason: reason,
        episode_id: None,
    })
}
