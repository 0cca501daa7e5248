//! `agent_claim`: says what an agent is about to work on, or learns who does already.

use super::WRITE;
use crate::coordination::{Claimed, ConflictOut, Wish, Worktree, asking, meant};
use crate::pack::NOTICE;
use crate::registry::{Meta, Op};
use crate::{Context, Engine};
use lukasa_model::Result;
use lukasa_model::claims::{ClaimType, own_key};
use lukasa_model::id::check_text;
use lukasa_model::limits::{NAME_BYTES, TITLE_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct AgentClaim;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// A file by its path, a function or another symbol as path::name or by a name that only it has, task:… or feature:….
    pub target_id: String,
    /// What is to be done there, for others to read.
    pub intent: String,
    /// Claim a file or a symbol that does not exist yet.
    #[serde(default)]
    pub new: bool,
    /// What the target is, where its name leaves that open.
    #[serde(default)]
    pub claim_type: Option<ClaimType>,
    /// The task this is for; the claim ends when it is completed.
    #[serde(default)]
    pub task_id: Option<String>,
    /// Who claims; the agent that asks when left out.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// The session it claims in; that of the caller when left out.
    #[serde(default)]
    pub session_id: Option<String>,
    /// The working tree the agent works in: what is saved there is its own doing and does not end the claim.
    #[serde(default)]
    pub path: Option<String>,
    /// The branch it works on; the one checked out in the working tree when left out.
    #[serde(default)]
    pub branch: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// The claim; none when somebody else has the target.
    pub claim_id: Option<String>,
    /// ok: it is yours. CONFLICT: somebody else has it.
    pub status: Status,
    /// Said of what others intend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// Who has it, what for and since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflict: Option<ConflictOut>,
    /// The version of the target when it was claimed; none when it does not exist yet.
    pub target_version_sha: Option<String>,
    /// The target under its one name.
    pub target_id: String,
    pub claim_type: ClaimType,
    /// It was this agent's before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub already_yours: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Status {
    #[serde(rename = "ok")]
    Ok,
    #[serde(rename = "CONFLICT")]
    Conflict,
}

impl Op for AgentClaim {
    const META: Meta = Meta {
        name: "agent_claim",
        answer: &["status", "claim_id", "target_id", "conflict", "already_yours"],
        places: &["path"],
        summary: "Claim a file, function, task or feature before working on it",
        description: "Says what an agent is about to work on. If another agent has claimed it, or the file around it, or \
                      something within it, the answer is CONFLICT with who, what for and since when, and nothing is claimed. \
                      What does not exist is refused, unless `new` says that it is yet to be made. A claim holds for the \
                      whole project whatever the branch. It ends by `agent_release`, when somebody else changes the code, \
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
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        check_text("intent", &request.intent, TITLE_BYTES)?;
        let agent = asking(request.agent_id.as_deref(), context)?;
        check_text("agent_id", &agent, NAME_BYTES)?;
        let place = Worktree::of(request.path.as_deref(), request.branch.as_deref())?;
        let target = meant(engine, context, &request.target_id, request.claim_type, request.new, &place)?;
        let wish = Wish {
            target: target.clone(),
            agent,
            session: request.session_id.or_else(|| context.session.clone()),
            intent: request.intent,
            task: request.task_id.as_deref().map(|id| own_key("task", id)),
            connection: context.connection.clone(),
            worktree: place.root.map(|root| root.display().to_string()),
            branch: place.branch,
        };
        let (claim_type, target_id) = (target.kind, target.name);
        Ok(match engine.claim(context, &wish)? {
            Claimed::Conflict(held, relation) => {
                let conflict = ConflictOut::of(&held, relation);
                Response {
                    summary: format!("CONFLICT: `{target_id}` is taken by {}", conflict.words()),
                    claim_id: None,
                    status: Status::Conflict,
                    notice: Some(NOTICE),
                    conflict: Some(conflict),
                    target_version_sha: held.target_version_sha,
                    target_id,
                    claim_type,
                    already_yours: false,
                }
            }
            Claimed::Granted(held) => granted(held, target_id, claim_type, false),
            Claimed::Yours(held) => granted(held, target_id, claim_type, true),
        })
    }
}

fn granted(
    held: lukasa_model::claims::Held,
    target_id: String,
    claim_type: ClaimType,
    already_yours: bool,
) -> Response {
    let was = if already_yours { "was yours already" } else { "is yours" };
    Response {
        summary: format!("`{target_id}` {was} ({})", held.claim_id),
        claim_id: Some(held.claim_id),
        status: Status::Ok,
        notice: None,
        conflict: None,
        target_version_sha: held.target_version_sha,
        target_id,
        claim_type,
        already_yours,
    }
}
