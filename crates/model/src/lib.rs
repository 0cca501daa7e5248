//! The data model: facts, time, branches, merges and types as pure values and pure functions.
//!
//! This crate does no I/O, reads no clock and generates no random numbers; every other crate builds on it.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod batch;
pub mod branch;
pub mod change;
pub mod claims;
pub mod content;
pub mod error;
pub mod id;
pub mod json;
pub mod limits;
pub mod merge;
pub mod plan;
pub mod position;
pub mod sensitive;
pub mod shown;
pub mod three_way;
pub mod time;
pub mod timeline;
pub mod transaction;
pub mod types;
pub mod version;
pub mod view;

pub use batch::{Batch, End, Precondition, PutObject, PutRelationship, Reference, Write};
pub use branch::{Branch, BranchMode, Lineage};
pub use change::ChangeSummary;
pub use content::Content;
pub use error::{Error, ErrorCode, ErrorKind, Result};
pub use id::{BranchNo, FactNo, Scope, Tx, VersionId};
pub use position::Position;
pub use time::{Period, Time};
pub use transaction::{Transaction, TransactionKind};
pub use types::{ObjectType, Registry, RelationshipType};
pub use version::{Fact, FactKind, RelationshipEnds, Version};
pub use view::{Moment, View};
