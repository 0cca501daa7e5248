//! Turns source text into facts: symbols, imports, calls, and links between callers and callees with their confidence.
//!
//! Pure: it opens no file and uses no store. Each language (`languages/`) turns text into `FileFacts`; the resolver links
//! the facts of all files by the rules of their languages.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod build;
pub mod builder;
mod convert;
pub mod facts;
pub mod file_role;
pub mod ids;
pub mod keys;
pub mod lang;
pub mod languages;
pub mod resolve;
pub mod scip;
pub mod statements;
pub mod summary;
mod tree;
pub mod type_names;

/// Hash of the sources of this crate. Cached facts of another build are discarded, because they may differ.
pub const BUILD: &str = env!("LUKASA_CODE_BUILD");

pub use facts::FileFacts;
pub use lang::parse;
pub use languages::LanguageId;
