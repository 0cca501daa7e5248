//! Tests of graphs, walks and queries against naive implementations.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod cypher;
mod cypher_fuzz;
mod follow;
mod readers;
mod walks;
