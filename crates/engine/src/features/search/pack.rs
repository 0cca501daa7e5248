//! Context packs: what a task needs, chosen to fit a token budget.

mod code;
mod confidence;
mod fit;
mod notes;

pub use code::{CodeSlice, Dependency, PackCode, gather, walked};
pub use confidence::{PackConfidence, WOULD_HELP, confidence, doubt};
pub use fit::{Budget, ClaimNote, ContextPackOut, SliceOut, fit};
pub use notes::{PackNote, PackNotes, notes};
