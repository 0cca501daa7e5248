//! The list of features, lowest first: each may use the features before it, but none after it.

pub mod admin;
pub mod code;
pub mod coordination;
pub mod facts;
pub mod graph;
pub mod memory;
pub mod search;

use crate::feature::Feature;

/// The registry is made from it, in this order.
pub static ALL: [&Feature; 7] = [
    &facts::FEATURE,
    &graph::FEATURE,
    &code::FEATURE,
    &search::FEATURE,
    &memory::FEATURE,
    &coordination::FEATURE,
    &admin::FEATURE,
];
