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
    Operation::of::<diff::DiffOp>,
    Operation::of::<diff_since::DiffSince>,
    Operation::of::<branch::BranchCreate>,
    Operation::of::<branch::BranchList>,
    Operation::of::<branch::BranchMove>,
    Operation::of::<branch::BranchClose>,
    Operation::of::<branch::BranchOpen>,
    Operation::of::<merge::Merge>,
    Operation::of::<release::ReleaseCreate>,
    Operation::of::<release::ReleaseList>,
    Operation::of::<release::ReleaseShow>,
    Operation::of::<release::ReleaseDiff>,
    Operation::of::<tag::TagCreate>,
    Operation::of::<tag::TagList>,
    Operation::of::<tag::TagShow>,
    Operation::of::<tag::TagDescribe>,
    Operation::of::<tag::TagDelete>,
    Operation::of::<types::TypeObject>,
    Operation::of::<types::TypeRelationship>,
    Operation::of::<types::TypeList>,
    Operation::of::<types::TypeShow>,
    Operation::of::<types::TypeStrict>,
    Operation::of::<import::ImportOp>,
    Operation::of::<export::ExportOp>,
];
