//! The graph in memory: a projection of one view that follows the log, and algorithms over it.
//!
//! Readers hold an [`Arc`](std::sync::Arc) of a [`Snapshot`], which never changes. A [`Projection`] derives the next
//! snapshot from later transactions. [`Projections`] keeps those in use within a memory limit.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod cache;
mod chunked;
pub mod community;
pub mod contents;
mod convert;
pub mod cypher;
pub mod expand;
pub mod flat;
pub mod lookup;
pub mod measures;
pub mod names;
pub mod paths;
pub mod predicate;
pub mod projection;
pub mod rank;
pub mod score;
pub mod snapshot;
pub mod walk;

pub use cache::Projections;
pub use flat::{Csr, FlatGraph};
pub use projection::Projection;
pub use snapshot::{Edge, EdgeList, GraphMemory, Node, Snapshot, TypeNo};
