//! Claims and conflicts in responses.

use super::Denied;
use lukasa_model::claims::{ClaimType, Held, Relation};
use lukasa_model::{Scope, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A claim, held or ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimOut {
    pub claim_id: String,
    pub agent_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    pub claim_type: ClaimType,
    pub target_id: String,
    /// What the agent intends to do.
    pub intent: String,
    /// Since when it is held.
    pub valid_from: Time,
    /// When it ended; none while it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<Time>,
    /// Why it ended: released, code_changed, task_completed or expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalidation_reason: Option<String>,
    /// The version of the target when it was claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_version_sha: Option<String>,
    /// The project of the claim.
    pub project_id: String,
    /// Whether it ends when its connection has been closed for the grace period; otherwise only by release.
    #[serde(default)]
    pub ends_with_connection: bool,
}

impl ClaimOut {
    pub fn of(held: Held, scope: &Scope) -> ClaimOut {
        ClaimOut {
            claim_id: held.claim_id,
            agent_id: held.agent_id,
            session_id: held.session_id,
            task_id: held.task_id,
            claim_type: held.claim_type,
            target_id: held.target,
            intent: held.intent,
            valid_from: held.since,
            valid_to: None,
            invalidation_reason: None,
            target_version_sha: held.target_version_sha,
            project_id: scope.project.to_string(),
            ends_with_connection: held.connection.is_some(),
        }
    }

    /// The same claim after it ended.
    pub fn ended(self, reason: &str, at: Time) -> ClaimOut {
        ClaimOut { valid_to: Some(at), invalidation_reason: Some(reason.to_owned()), ..self }
    }
}

/// The claim that is in conflict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConflictOut {
    pub agent_id: String,
    /// What its holder intends to do.
    pub intent: String,
    pub since: Time,
    pub claim_id: String,
    /// The claimed target.
    pub target_id: String,
    pub claim_type: ClaimType,
    /// same; within: the held target contains the requested one; contains: the requested target contains the held one.
    pub relation: Relation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
}

impl ConflictOut {
    pub fn of(held: &Held, relation: Relation) -> ConflictOut {
        ConflictOut {
            agent_id: held.agent_id.clone(),
            intent: held.intent.clone(),
            since: held.since,
            claim_id: held.claim_id.clone(),
            target_id: held.target.clone(),
            claim_type: held.claim_type,
            relation,
            task_id: held.task_id.clone(),
        }
    }

    /// A phrase for a summary: holder, target, intent.
    pub fn words(&self) -> String {
        let on = match self.relation {
            Relation::Same => String::new(),
            Relation::Within => format!(", who holds `{}` around it,", self.target_id),
            Relation::Contains => format!(", who holds `{}` within it,", self.target_id),
        };
        format!("{}{on} since {}: {}", self.agent_id, self.since, self.intent)
    }
}

/// Two agents with conflicting claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConflictPair {
    /// The refused target, agent, intent and time.
    pub target_id: String,
    pub wanted_by: String,
    pub wanted_for: String,
    pub at: Time,
    /// The claim that is held.
    pub held: ConflictOut,
}

impl From<Denied> for ConflictPair {
    fn from(denied: Denied) -> ConflictPair {
        ConflictPair {
            held: ConflictOut::of(&denied.held, denied.relation),
            target_id: denied.target,
            wanted_by: denied.agent_id,
            wanted_for: denied.intent,
            at: denied.at,
        }
    }
}
