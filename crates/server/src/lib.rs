//! Surfaces that listen: agents by MCP, programs by HTTP. Translation only: every request becomes an operation.

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

pub use front::{Caller, Front, Limits};
pub use given::Given;
pub use owner::{Connection, Desk, Place, Role};
