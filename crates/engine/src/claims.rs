//! Claims of agents, as far as other features need them: what is held, and how claims guard writes and end with them.

use crate::{Context, Engine};
use lukasa_model::claims::{ClaimTarget, ClaimType, HeldClaim, TargetRelation};
use lukasa_model::{Batch, Precondition, Result, Scope, Time, TransactionKind, Tx};
use lukasa_store::Ledger;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// What the feature that keeps claims does for the others.
pub trait Claims: Sync {
    /// Every claim that is held now, in the order of boards.
    fn held(&self, engine: &Engine, ledger: &Ledger) -> Result<Vec<HeldClaim>>;

    /// Makes a claim, or returns the conflicting one.
    fn take(&self, engine: &Engine, context: &Context<'_>, wanted: &ClaimIntent) -> Result<ClaimOutcome>;

    /// Ends the claims that a change made obsolete, and returns them.
    fn changed(&self, engine: &Engine, ledger: &Ledger, change: &CodeChange<'_>) -> Result<Vec<HeldClaim>>;

    /// What happens to an edit of a target that another agent has claimed.
    fn edits(&self, engine: &Engine) -> EditPolicy;

    /// Checks the targets of a batch against claims, and adds the preconditions to the batch.
    fn guard(&self, engine: &Engine, context: &Context<'_>, batch: &mut Batch) -> Result<ClaimGuard>;

    /// Like `guard` for known targets, such as those of an edit that is recorded as an episode.
    fn guard_targets(
        &self,
        engine: &Engine,
        ledger: &Ledger,
        agent: &str,
        targets: Vec<ClaimTarget>,
    ) -> Result<ClaimGuard>;
}

impl Engine {
    /// Every claim that is held now, in the order of boards. A claim whose holder disconnected longer ago than the
    /// grace period is not held, even if no process has ended it yet.
    pub fn claims_held(&self, ledger: &Ledger) -> Result<Vec<HeldClaim>> {
        self.claims().held(self, ledger)
    }

    /// Makes a claim, or returns the conflicting one.
    pub fn claim(&self, context: &Context<'_>, wanted: &ClaimIntent) -> Result<ClaimOutcome> {
        self.claims().take(self, context, wanted)
    }

    /// Ends the claims that a change made obsolete, and returns them.
    pub fn code_changed(&self, ledger: &Ledger, change: &CodeChange<'_>) -> Result<Vec<HeldClaim>> {
        self.claims().changed(self, ledger, change)
    }
}

/// What happens to an edit that an agent records on a target that another agent has claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EditPolicy {
    /// It is recorded, with a warning: the file has already been changed.
    #[default]
    Warn,
    Refuse,
}

/// A committed change of code.
#[derive(Clone, Debug)]
pub struct CodeChange<'a> {
    /// The agent that made the change; none if it was found in files.
    pub agent: Option<&'a str>,
    pub branch: &'a str,
    /// The working tree it was found in.
    pub worktree: Option<&'a Path>,
    pub tx: Tx,
    pub files: BTreeSet<&'a str>,
}

/// The claims that concern the targets of a batch.
#[derive(Clone, Debug, Default)]
pub struct ClaimGuard {
    /// Checked at commit.
    pub preconditions: Vec<Precondition>,
    /// Added to the response.
    pub warnings: Vec<String>,
    /// Targets that the batch writes about.
    pub targets: Vec<ClaimTarget>,
}

/// A request for a claim.
#[derive(Clone, Debug)]
pub struct ClaimIntent {
    pub target: ClaimTarget,
    pub agent: String,
    pub session: Option<String>,
    pub intent: String,
    pub task: Option<String>,
    pub connection: Option<String>,
    pub worktree: Option<String>,
    pub branch: Option<String>,
}

/// The outcome of a request for a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimOutcome {
    Granted(HeldClaim),
    Yours(HeldClaim),
    Conflict(HeldClaim, TargetRelation),
}

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
    pub fn of(held: HeldClaim, scope: &Scope) -> ClaimOut {
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

/// Whether transactions of this kind record changes of code.
pub fn records_code(kind: TransactionKind) -> bool {
    use TransactionKind::{AgentEdit, FileChange, FullRebuild, IncrementalRebuild};
    matches!(kind, AgentEdit | FileChange | FullRebuild | IncrementalRebuild)
}
