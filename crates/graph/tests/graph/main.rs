//! Graphs, walks and queries against the plainest reading of each, in one program.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod cypher;
mod cypher_fuzz;
mod follow;
mod readers;
mod walks;
