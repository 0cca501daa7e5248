//! The surfaces that listen, MCP for agents and HTTP for programs, which translate every request into an operation.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod auth;
pub mod follow;
pub mod http;
pub mod mcp;
#[cfg(feature = "otel")]
pub mod otel;
pub mod owner;
pub mod project_folders;
pub mod reference;
pub mod request_gate;
pub mod shares;
pub mod trace;

pub use owner::{Connection, EngineHandle, EngineRole, StoreLocation};
pub use project_folders::ProjectFolders;
pub use request_gate::{Caller, RequestGate, RequestLimits};
