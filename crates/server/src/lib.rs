//! The surfaces that listen, MCP for agents and HTTP for programs, which translate every request into an operation.

pub mod auth;
pub mod follow;
pub mod front;
pub mod given;
pub mod http;
pub mod mcp;
#[cfg(feature = "otel")]
pub mod otel;
pub mod owner;
pub mod reference;
pub mod shares;
pub mod trace;

pub use front::{Caller, Front, Limits};
pub use given::Given;
pub use owner::{Connection, Desk, Place, Role};
