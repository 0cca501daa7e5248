//! The operations of the feature `code`, one file per operation or group of related operations.

pub mod call_chain;
pub mod call_graph_stats;
mod calls;
pub mod code_explain;
pub mod get_callees;
pub mod get_callers;
pub mod graph_health;
pub mod graph_rebuild;
pub mod graph_set_workspace;
pub mod import_scip;
pub mod index_directory;
pub mod index_file;
pub mod symbol_lookup;

use crate::registry::Operation;

/// In the order in which `--help` and docs list them.
pub const ALL: &[fn() -> Operation] = &[
    Operation::of::<index_directory::IndexDirectory>,
    Operation::of::<index_file::IndexFile>,
    Operation::of::<graph_health::GraphHealth>,
    Operation::of::<graph_rebuild::GraphRebuild>,
    Operation::of::<graph_set_workspace::GraphSetWorkspace>,
    Operation::of::<import_scip::ImportScip>,
    Operation::of::<symbol_lookup::SymbolLookup>,
    Operation::of::<code_explain::CodeExplain>,
    Operation::of::<get_callers::GetCallers>,
    Operation::of::<get_callees::GetCallees>,
    Operation::of::<call_chain::CallChain>,
    Operation::of::<call_graph_stats::CallGraphStats>,
];
