//! The operations of the feature `search`, one file per operation or group of related operations.

pub mod context_pack;
pub mod embed;
pub mod find_pattern;
pub mod graph_query;
pub mod link_mentions;
pub mod remove_model;
pub mod search;
pub mod search_readiness;
pub mod semantic_slice;

use crate::registry::Operation;

/// In the order in which `--help` and docs list them.
pub const ALL: &[fn() -> Operation] = &[
    Operation::of::<search::Search>,
    Operation::of::<context_pack::ContextPack>,
    Operation::of::<search_readiness::SearchReadiness>,
    Operation::of::<embed::Embed>,
    Operation::of::<remove_model::RemoveModel>,
    Operation::of::<semantic_slice::SemanticSlice>,
    Operation::of::<find_pattern::FindPattern>,
    Operation::of::<graph_query::GraphQuery>,
    Operation::of::<link_mentions::LinkMentions>,
];
