//! `agent_claim`: claims a target for an agent, or reports the agent that already holds it.

use crate::caller::acting_agent;
use crate::claims::{ClaimIntent, ClaimOutcome};
use crate::features::code::working_tree::AgentWorktree;
use crate::features::coordination::{ConflictOut, claim_target};
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::request_parts::AgentRef;
use crate::response_budget::NOTICE;
use crate::{Context, Engine};
use lukasa_model::Result;
use lukasa_model::claims::{ClaimType, own_key};
use lukasa_model::id::check_text;
use lukasa_model::limits::{NAME_BYTES, TITLE_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operation `agent_claim`.
pub struct AgentClaim;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// A file by path, a symbol as path::name or by a unique name, task:… or feature:….
    pub target_id: String,
    /// What the agent is going to do, for other agents to read.
    pub intent: String,
    /// Claim a file or a symbol that does not exist yet.
    #[serde(default)]
    pub new: bool,
    /// Type of the target, if its name is ambiguous.
    #[serde(default)]
    pub claim_type: Option<ClaimType>,
    /// The task the claim belongs to; completing the task ends the claim.
    #[serde(default)]
    pub task_id: Option<String>,
    #[serde(flatten)]
    pub agent: AgentRef,
    /// The agent's working tree; changes saved there do not end the claim.
    #[serde(default)]
    pub path: Option<String>,
    /// The branch the agent works on; the one checked out in the working tree when left out.
    #[serde(default)]
    pub branch: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// The claim; null when another agent holds the target.
    pub claim_id: Option<String>,
    /// ok: the claim is yours. CONFLICT: another agent holds the target.
    pub status: ClaimStatus,
    /// Warning about the text of other agents' intents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// The claim in the way: its holder, intent and start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflict: Option<ConflictOut>,
    /// Version of the target when it was claimed; null when it does not exist yet.
    pub target_version_sha: Option<String>,
    /// The target by its canonical name.
    pub target_id: String,
    pub claim_type: ClaimType,
    /// This agent already held the claim.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub already_yours: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum ClaimStatus {
    #[serde(rename = "ok")]
    Ok,
    #[serde(rename = "CONFLICT")]
    Conflict,
}

impl Op for AgentClaim {
    const META: Meta = Meta {
        name: "agent_claim",
        unmet: Some(("status", "CONFLICT")),
        essential: true,
        default_tool: &["target_id", "intent", "task_id"],
        answer: &["status", "claim_id", "target_id", "conflict", "already_yours"],
        places: &["path"],
        summary: "Claim a file, function, task or feature before working on it",
        description: "Says what an agent is about to work on. If another agent has claimed it, or the file around it, or \
                      something within it, the answer is CONFLICT with who, what for and since when, and nothing is claimed. \
                      What does not exist is refused, unless `new` says that it is yet to be made. A claim holds for the \
                      whole project whatever the branch. It ends by `agent_release`, when another agent changes the code, \
                      when its task is completed, and when the connection it was made by has been closed for a minute; \
                      claims by single requests (REST, command line) end by release only. Claiming again what one has \
                      changes its intent.",
        verb: "claim",
        toolset: "coordination",
        positional: &["target_id"],
        names: &["target_id"],
        aliases: &[("target", "target_id"), ("type", "claim_type"), ("worktree", "path")],
        examples: &[
            "lukasa claim src/auth.ts --intent \"add a timeout\" --agent ada",
            "lukasa claim src/auth.ts::login --intent \"fix the retry\" --task-id 12",
            "lukasa claim task:12 --intent \"do it\"",
        ],
        here: Some("path"),
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        check_text("intent", &request.intent, TITLE_BYTES)?;
        let agent = acting_agent(request.agent.agent_id.as_deref(), context)?;
        check_text("agent_id", &agent, NAME_BYTES)?;
        let place = AgentWorktree::of(request.path.as_deref(), request.branch.as_deref())?;
        let target = claim_target(engine, context, &request.target_id, request.claim_type, request.new, &place)?;
        let wanted = ClaimIntent {
            target: target.clone(),
            agent,
            session: request.agent.session_id.or_else(|| context.session.clone()),
            intent: request.intent,
            task: request.task_id.as_deref().map(|id| own_key("task", id)),
            connection: context.connection.clone(),
            worktree: place.root.map(|root| root.display().to_string()),
            branch: place.branch,
        };
        let (claim_type, target_id) = (target.kind, target.name);
        Ok(match engine.claim(context, &wanted)? {
            ClaimOutcome::Conflict(held, relation) => {
                let conflict = ConflictOut::of(&held, relation);
                Response {
                    summary: format!("CONFLICT: `{target_id}` is taken by {}", conflict.words()),
                    claim_id: None,
                    status: ClaimStatus::Conflict,
                    notice: Some(NOTICE),
                    conflict: Some(conflict),
                    target_version_sha: held.target_version_sha,
                    target_id,
                    claim_type,
                    already_yours: false,
                }
            }
            ClaimOutcome::Granted(held) => granted(held, target_id, claim_type, false),
            ClaimOutcome::Yours(held) => granted(held, target_id, claim_type, true),
        })
    }
}

fn granted(
    held: lukasa_model::claims::HeldClaim,
    target_id: String,
    claim_type: ClaimType,
    already_yours: bool,
) -> Response {
    let was = if already_yours { "was yours already" } else { "is yours" };
    Response {
        summary: format!("`{target_id}` {was} ({})", held.claim_id),
        claim_id: Some(held.claim_id),
        status: ClaimStatus::Ok,
        notice: None,
        conflict: None,
        target_version_sha: held.target_version_sha,
        target_id,
        claim_type,
        already_yours,
    }
}
