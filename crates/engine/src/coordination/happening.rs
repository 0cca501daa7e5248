//! What happens to claims, for whoever wants to be told: taken, refused, ended.

use crate::telemetry::log;
use lukasa_model::claims::{Held, Relation};
use lukasa_model::{Scope, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Something that happened to a claim, whichever process did it. Conflicts are known where they were told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Happening {
    ClaimTaken {
        claim: Held,
    },
    ClaimConflict(Denied),
    ClaimEnded {
        claim: Held,
        /// released, code_changed, task_completed or expired; none where its record cannot be read.
        reason: Option<String>,
        ended_by: Option<String>,
    },
}

/// An attempt that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denied {
    /// What was wanted, by whom and what for.
    pub target: String,
    pub agent_id: String,
    pub intent: String,
    pub at: Time,
    /// same, within (what is held contains it) or contains (it contains what is held).
    pub relation: Relation,
    /// Who has it.
    pub held: Held,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Numbered {
    pub number: u64,
    #[serde(flatten)]
    pub happening: Happening,
}

impl Happening {
    pub(super) fn log(&self, scope: &Scope) {
        match self {
            Happening::ClaimTaken { claim } => log::event(log::Level::Info, "claim.taken", &fields(scope, claim)),
            Happening::ClaimConflict(denied) => {
                let wanted = [("wanted_by", json!(denied.agent_id)), ("relation", json!(denied.relation))];
                let told = [&fields(scope, &denied.held)[..], &wanted].concat();
                log::event(log::Level::Info, "claim.conflict", &told);
            }
            Happening::ClaimEnded { claim, reason, ended_by } => {
                let why = [("reason", json!(reason)), ("ended_by", json!(ended_by))];
                log::event(log::Level::Info, "claim.ended", &[&fields(scope, claim)[..], &why].concat());
            }
        }
    }
}

/// Whose claim it is, without what it is on or for.
fn fields(scope: &Scope, claim: &Held) -> [(&'static str, Value); 5] {
    [
        ("tenant", json!(scope.tenant)),
        ("project", json!(scope.project)),
        ("claim_id", json!(claim.claim_id)),
        ("claim_type", json!(claim.claim_type)),
        ("agent", json!(claim.agent_id)),
    ]
}

/// Happenings remembered for who follows them; a follower that is farther behind reads the log.
const KEPT: usize = 4_096;

#[derive(Default)]
pub(super) struct Happenings {
    last: u64,
    kept: VecDeque<Numbered>,
}

impl Happenings {
    pub fn add(&mut self, happening: Happening) {
        self.last += 1;
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(Numbered { number: self.last, happening });
    }

    pub fn after(&self, after: u64) -> (u64, Vec<Numbered>) {
        (self.last, self.kept.iter().filter(|kept| kept.number > after).cloned().collect())
    }

    /// Newest first; of several attempts of one agent on one target, the last.
    pub fn open_conflicts(&self, held: &[Held]) -> Vec<Denied> {
        let mut open: Vec<Denied> = Vec::new();
        for kept in self.kept.iter().rev() {
            let Happening::ClaimConflict(denied) = &kept.happening else { continue };
            let still = held.iter().any(|held| held.claim_id == denied.held.claim_id);
            // Whoever was refused may have got it since.
            let got = held.iter().any(|held| held.agent_id == denied.agent_id && held.target == denied.target);
            let told = open.iter().any(|other| other.agent_id == denied.agent_id && other.target == denied.target);
            if still && !got && !told {
                open.push(denied.clone());
            }
        }
        open
    }
}
