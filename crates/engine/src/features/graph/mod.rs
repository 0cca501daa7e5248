//! The graph of a view: walks, paths, ranks, communities and queries.

pub mod communities;
pub mod ops;
pub mod rendering;

use crate::feature::{Feature, Hooks};

pub static FEATURE: Feature = Feature {
    folder: "graph",
    operations: ops::ALL,
    types: &[],
    state: |states| states.put(communities::CommunityCache::default()),
    hooks: Hooks { rebuilt: Some(|engine, scope, branch| engine.recompute_communities(scope, branch)), ..Hooks::NONE },
};
