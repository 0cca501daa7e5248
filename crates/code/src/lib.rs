//! Source text to facts: symbols, imports, calls, and who calls whom, with how sure that is.
//!
//! Pure: no file is opened, no store is known. A front end per language (`lang/`) turns text into `Facts`; the
//! resolver links the facts of all files.

pub mod build;
pub mod builder;
pub mod facts;
pub mod keys;
pub mod lang;
pub mod language;
pub mod resolve;
pub mod scip;
pub mod statements;
pub mod summary;
mod tree;
pub mod type_names;

/// Stands for what this build makes of a text: facts of another build may be others.
pub const BUILD: &str = env!("LUKASA_CODE_BUILD");

pub use facts::Facts;
pub use lang::parse;
pub use language::Language;
