//! Context packs: everything a task needs, chosen to fit a budget of tokens.

mod confidence;
mod core;
mod fit;
mod notes;

pub use confidence::doubt;
pub use core::{Core, Dependency, Slice, gather, walked};
pub use fit::{Budget, ClaimNote, Pack, Profile, SliceOut, fit};
pub use notes::{NOTICE, Note, Notes, notes};
