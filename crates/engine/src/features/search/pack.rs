//! Context packs: everything a task needs, chosen to fit a budget of tokens.

mod confidence;
mod core;
mod fit;
mod notes;

pub use confidence::doubt;
pub use core::{Core, Dependency, Slice, gather, walked};
pub use fit::{Budget, ClaimNote, Pack, SliceOut, fit};
pub use notes::{Note, Notes, notes};
