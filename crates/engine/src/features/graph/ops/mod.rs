//! The operations of the feature `graph`, one file per operation or group of related operations.

pub mod communities;
pub mod cypher;
pub mod expand;
pub mod graph_stats;
pub mod graph_traverse;
pub mod impact;
pub mod neighbors;
pub mod paths;
pub mod rank;
pub mod subgraph;
pub mod traverse;

use crate::registry::Operation;

/// In the order in which `--help` and docs list them.
pub const ALL: &[fn() -> Operation] = &[
    Operation::of::<neighbors::Neighbors>,
    Operation::of::<impact::Impact>,
    Operation::of::<traverse::Traverse>,
    Operation::of::<expand::ExpandOp>,
    Operation::of::<graph_traverse::GraphTraverse>,
    Operation::of::<paths::ShortestPath>,
    Operation::of::<paths::Paths>,
    Operation::of::<subgraph::Subgraph>,
    Operation::of::<rank::Rank>,
    Operation::of::<communities::Communities>,
    Operation::of::<graph_stats::GraphStats>,
    Operation::of::<cypher::Cypher>,
];
