//! The operations of the feature `memory`, one file per operation or group of related operations.

pub mod build_context_graph;
pub mod context_graph_usage;
pub mod decision_add;
pub mod episode_add;
pub mod episode_recall;
pub mod get_entity_neighbors;
pub mod memory_linked_search;
pub mod query_knowledge_graph;
pub mod reflect;
pub mod test_run;
pub mod trace_decision_lineage;

use crate::registry::Operation;

/// In the order in which `--help` and docs list them.
pub const ALL: &[fn() -> Operation] = &[
    Operation::of::<episode_add::EpisodeAdd>,
    Operation::of::<episode_recall::EpisodeRecall>,
    Operation::of::<decision_add::DecisionAdd>,
    Operation::of::<episode_recall::DecisionQuery>,
    Operation::of::<reflect::Reflect>,
    Operation::of::<test_run::TestRun>,
    Operation::of::<trace_decision_lineage::TraceDecisionLineage>,
    Operation::of::<build_context_graph::BuildContextGraph>,
    Operation::of::<context_graph_usage::ContextGraphUsage>,
    Operation::of::<query_knowledge_graph::QueryKnowledgeGraph>,
    Operation::of::<get_entity_neighbors::GetEntityNeighbors>,
    Operation::of::<memory_linked_search::MemoryLinkedSearch>,
];
