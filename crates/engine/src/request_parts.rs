//! Fields that several operations have in their requests, flattened into each; reads flatten `ViewSpec`.
//!
//! `limit` and `cursor` are not among them: the default and the maximum, which the schema states, differ from one
//! operation to the next, and so do the cursors that are accepted.

use crate::Context;
use lukasa_model::Batch;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::Deserialize;

/// Where a write goes, and why.
#[derive(Deserialize, JsonSchema)]
pub struct WriteTarget {
    /// The branch to write to.
    #[serde(default)]
    pub branch: Option<String>,
    /// Reason, for the log.
    #[serde(default)]
    pub reason: Option<String>,
}

impl WriteTarget {
    /// The name of the branch; `main` when left out.
    pub fn branch(&self) -> &str {
        self.branch.as_deref().unwrap_or("main")
    }

    /// The head of the branch, now: where names in the request are resolved.
    pub fn view(&self) -> ViewSpec {
        ViewSpec::on(self.branch())
    }

    /// An empty batch for the branch, written by the caller.
    pub fn batch(&self, context: &Context<'_>) -> Batch {
        Batch { header: context.header(self.reason.clone()), ..Batch::on(self.branch()) }
    }
}

/// The agent that acts, and its session.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct AgentRef {
    /// The agent that acts; the caller's when left out.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// The session in which it acts; the caller's when left out.
    #[serde(default)]
    pub session_id: Option<String>,
}
