//! Context packs: what a task needs, chosen to fit a token budget.

mod confidence;
mod core;
mod fit;
mod notes;

pub use confidence::doubt;
pub use core::{Core, Dependency, Slice, gather, walked};
pub use fit::{Budget, ClaimNote, Pack, SliceOut, fit};
pub use notes::{Note, Notes, notes};
