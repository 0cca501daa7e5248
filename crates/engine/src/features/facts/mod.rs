//! Facts, their versions, branches, releases and types: written, read, compared, imported and exported.

pub mod ops;
pub mod rendering;

use crate::feature::{Feature, Hooks};

pub static FEATURE: Feature =
    Feature { folder: "facts", operations: ops::ALL, types: &[], state: |_| (), hooks: Hooks::NONE };
