//! The stages of retrieval, in their order: the one place where the order of results is decided.
//!
//! | stage | module | functions |
//! |---|---|---|
//! | intent | [`intent`] | `detect`, `template` |
//! | seeds: text, vector, keys, anchors | [`seeds`] | `by_words`, `by_meaning`, `by_title`, `by_name`, `by_symbols`, `by_anchors` |
//! | normalise and fuse | [`fuse`] | `normalise`, `fuse`, `peak`, `scale_best` |
//! | spread: personalized PageRank | [`spread`] | `along`, `around` |
//! | expand | [`expand`], [`passages`] | `expand`; `turns`, `bridges` |
//! | rerank | [`rerank`] | `blend`, `fade`, `towards`, `multiply` |
//! | marginal gain | [`gain`] | `CoveredWords` |
//! | pack | [`pack`] | `choose`, `weave` |
//!
//! [`code()`], [`objects()`], [`recall()`] and [`mixed()`] run the stages from seeds to expansion for one kind of
//! question. The operations continue from their lists with the later stages. All numbers are in [`crate::recipes`].

pub mod expand;
pub mod fuse;
pub mod gain;
pub mod intent;
pub mod pack;
pub mod passages;
pub mod rerank;
pub mod seeds;
pub mod spread;

mod code;
mod memory;
mod mixed;
mod objects;
mod recall;

pub use code::{CodeGraph, CodeIndexes, LocatedCode, code};
pub use memory::{MemoryParts, remembered};
pub use mixed::mixed;
pub use objects::{ObjectsQuestion, objects};
pub use recall::{RankedPassages, RecallIndexes, recall};

/// Rounds a computed number of items down.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a small number, never negative")]
fn whole_count(count: f64) -> usize {
    count as usize
}
