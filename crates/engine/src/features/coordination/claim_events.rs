//! Events of claims: taken, refused, ended; and a list of recent refusals, which are not in the log.

use crate::telemetry::log;
use lukasa_model::claims::{HeldClaim, TargetRelation};
use lukasa_model::{Scope, Time};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// An event of a claim, caused by any process. Refusals are known only in the process that refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimEvent {
    Taken {
        claim: HeldClaim,
    },
    Refused(RefusedClaim),
    Ended {
        claim: HeldClaim,
        /// released, code_changed, task_completed or expired; none if the record cannot be read.
        reason: Option<String>,
        ended_by: Option<String>,
    },
}

/// A refused attempt to claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedClaim {
    /// The requested target, the agent and its intent.
    pub target: String,
    pub agent_id: String,
    pub intent: String,
    pub at: Time,
    /// same, within (the held target contains it) or contains (it contains the held target).
    pub relation: TargetRelation,
    /// The conflicting claim.
    pub held: HeldClaim,
}

impl ClaimEvent {
    pub(super) fn log(&self, scope: &Scope) {
        match self {
            ClaimEvent::Taken { claim } => log::event(log::LogLevel::Info, "claim.taken", &fields(scope, claim)),
            ClaimEvent::Refused(denied) => {
                let wanted = [("wanted_by", json!(denied.agent_id)), ("relation", json!(denied.relation))];
                let fields = [&fields(scope, &denied.held)[..], &wanted].concat();
                log::event(log::LogLevel::Info, "claim.conflict", &fields);
            }
            ClaimEvent::Ended { claim, reason, ended_by } => {
                let why = [("reason", json!(reason)), ("ended_by", json!(ended_by))];
                log::event(log::LogLevel::Info, "claim.ended", &[&fields(scope, claim)[..], &why].concat());
            }
        }
    }
}

/// Identifies a claim in events, without its target and intent.
fn fields(scope: &Scope, claim: &HeldClaim) -> [(&'static str, Value); 5] {
    [
        ("tenant", json!(scope.tenant)),
        ("project", json!(scope.project)),
        ("claim_id", json!(claim.claim_id)),
        ("claim_type", json!(claim.claim_type)),
        ("agent", json!(claim.agent_id)),
    ]
}

/// Maximum number of refusals kept per project.
const KEPT: usize = 4_096;

/// Recent refusals. They write nothing, so the log does not contain them. Their numbers only increase, also across
/// processes.
#[derive(Default)]
pub(super) struct Refusals {
    last: u64,
    kept: VecDeque<(u64, RefusedClaim)>,
}

impl Refusals {
    pub fn add(&mut self, denied: RefusedClaim) {
        // Microseconds since 1970 exceed any number of an earlier process.
        self.last = (self.last + 1).max(u64::try_from(denied.at.0).unwrap_or(0));
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((self.last, denied));
    }

    /// Refusals after a number, oldest first, and the number to continue from.
    pub fn after(&self, after: u64) -> (u64, Vec<RefusedClaim>) {
        let found = self.kept.iter().filter(|(number, _)| *number > after).map(|(_, denied)| denied.clone());
        (self.last, found.collect())
    }

    /// Refusals whose conflicting claim is still held, newest first; the latest of each agent and target.
    pub fn open_conflicts(&self, held: &[HeldClaim]) -> Vec<RefusedClaim> {
        let mut open: Vec<RefusedClaim> = Vec::new();
        for (_, denied) in self.kept.iter().rev() {
            let still = held.iter().any(|held| held.claim_id == denied.held.claim_id);
            // The refused agent may have got the claim since.
            let got = held.iter().any(|held| held.agent_id == denied.agent_id && held.target == denied.target);
            let listed = open.iter().any(|other| other.agent_id == denied.agent_id && other.target == denied.target);
            if still && !got && !listed {
                open.push(denied.clone());
            }
        }
        open
    }
}
