//! openCypher, read-only: a query is taken apart here; what runs it comes next.

pub mod ast;
pub mod fault;
pub mod functions;
pub mod operators;
mod parse;
pub mod temporal;
mod token;
pub mod value;

pub use fault::{Class, Fault};
pub use parse::parse;
