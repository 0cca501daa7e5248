//! The operations of the feature `coordination`, one file per operation or group of related operations.

pub mod agent_claim;
pub mod agent_release;
pub mod agent_status;
pub mod blocking_issues;
pub mod coordination_overview;
pub mod event_list;
pub mod feature_status;
pub mod progress_query;
pub mod task_ready;
pub mod task_update;

use crate::registry::Operation;

/// In the order in which `--help` and docs list them.
pub const ALL: &[fn() -> Operation] = &[
    Operation::of::<agent_claim::AgentClaim>,
    Operation::of::<agent_release::AgentRelease>,
    Operation::of::<agent_status::AgentStatus>,
    Operation::of::<coordination_overview::CoordinationOverview>,
    Operation::of::<progress_query::ProgressQuery>,
    Operation::of::<task_update::TaskUpdate>,
    Operation::of::<task_ready::TaskReady>,
    Operation::of::<blocking_issues::BlockingIssues>,
    Operation::of::<feature_status::FeatureStatus>,
    Operation::of::<event_list::EventList>,
];
