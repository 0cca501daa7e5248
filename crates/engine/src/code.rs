//! Working trees and their indexes: from files on disk to facts on a branch.

pub mod beneath;
pub(crate) mod cache;
pub mod encoding;
pub mod files;
pub mod git;
pub mod history;
pub mod index;
pub mod left_out;
pub mod look;
pub mod place;
pub mod rules;
mod stamps;
pub mod summaries;
pub mod symbols;
pub mod trees;
pub mod watch;

pub use index::{Report, Workspace};
pub use summaries::Summaries;
pub use watch::Watch;
