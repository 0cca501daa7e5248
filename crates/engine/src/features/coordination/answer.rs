//! Claims and conflicts in responses.

use super::RefusedClaim;
use lukasa_model::Time;
use lukasa_model::claims::{ClaimType, HeldClaim, TargetRelation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    pub relation: TargetRelation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
}

impl ConflictOut {
    /// Builds the conflict with a held claim, given how its target relates to the requested one.
    pub fn of(held: &HeldClaim, relation: TargetRelation) -> ConflictOut {
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
            TargetRelation::Same => String::new(),
            TargetRelation::Within => format!(", who holds `{}` around it,", self.target_id),
            TargetRelation::Contains => format!(", who holds `{}` within it,", self.target_id),
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

impl From<RefusedClaim> for ConflictPair {
    fn from(denied: RefusedClaim) -> ConflictPair {
        ConflictPair {
            held: ConflictOut::of(&denied.held, denied.relation),
            target_id: denied.target,
            wanted_by: denied.agent_id,
            wanted_for: denied.intent,
            at: denied.at,
        }
    }
}
