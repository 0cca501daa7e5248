//! Context packs: everything a task needs, chosen to fit a budget of tokens.

mod core;
mod fit;
mod notes;

pub use core::{Core, Dependency, Slice, gather};
pub use fit::{Budget, Pack, Profile, fit};
pub use notes::{NOTICE, Note, Notes, notes};
