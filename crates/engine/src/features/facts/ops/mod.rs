//! The operations of the feature `facts`, one file per operation or group of related operations.

pub mod batch;
pub mod branch;
pub mod delete;
pub mod diff;
pub mod diff_since;
pub mod export;
pub mod get;
pub mod history;
pub mod import;
pub mod link;
pub mod list;
pub mod log;
pub mod merge;
pub mod patch;
pub mod put;
pub mod release;
pub mod rename;
pub mod restore;
pub mod tag;
pub mod types;

use crate::registry::Operation;

/// In the order in which `--help` and docs list them.
pub const ALL: &[fn() -> Operation] = &[
    Operation::of::<get::Get>,
    Operation::of::<list::List>,
    Operation::of::<put::Put>,
    Operation::of::<patch::Patch>,
    Operation::of::<link::LinkOp>,
    Operation::of::<delete::Delete>,
    Operation::of::<restore::Restore>,
    Operation::of::<rename::Rename>,
    Operation::of::<batch::BatchOp>,
    Operation::of::<history::History>,
    Operation::of::<log::Log>,
    Operation::of::<diff::Diff>,
    Operation::of::<diff_since::DiffSince>,
    Operation::of::<branch::Create>,
    Operation::of::<branch::List>,
    Operation::of::<branch::Move>,
    Operation::of::<branch::Close>,
    Operation::of::<branch::Open>,
    Operation::of::<merge::Merge>,
    Operation::of::<release::Create>,
    Operation::of::<release::List>,
    Operation::of::<release::Show>,
    Operation::of::<release::Diff>,
    Operation::of::<tag::Create>,
    Operation::of::<tag::List>,
    Operation::of::<tag::Show>,
    Operation::of::<tag::Describe>,
    Operation::of::<tag::Delete>,
    Operation::of::<types::Object>,
    Operation::of::<types::Relationship>,
    Operation::of::<types::List>,
    Operation::of::<types::Show>,
    Operation::of::<types::Strict>,
    Operation::of::<import::Import>,
    Operation::of::<export::Export>,
];
