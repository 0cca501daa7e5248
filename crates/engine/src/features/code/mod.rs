//! Working trees and their indexes: from files on disk to facts on a branch.

pub(crate) mod cache;
pub mod confined_files;
pub mod encoding;
pub mod files;
pub mod git;
pub mod history;
pub mod ignore_rules;
pub mod index;
pub mod ops;
pub mod overview;
pub mod rendering;
mod served;
pub mod sources;
mod stamps;
pub mod state;
pub mod summaries;
mod timed_read;
pub mod trees;
pub mod types;
pub mod unsearched;
pub mod watch;
pub mod working_tree;

pub use index::{PassReport, Workspace};
pub use summaries::Summaries;
pub use watch::Watch;

use crate::feature::{Feature, Hooks};

pub static FEATURE: Feature = Feature {
    folder: "code",
    operations: ops::ALL,
    types: &[types::code],
    state: state::add,
    hooks: Hooks {
        follow: Some(|engine, context, operation, request| engine.follow_tree(context, operation, request)),
        group_summaries: Some(|engine| Some(engine.summaries()? as _)),
        ..Hooks::NONE
    },
};
