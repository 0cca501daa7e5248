//! Administration of a store: backups, verification, the audit record, and finding operations.

pub mod ops;
pub mod rendering;

use crate::feature::{Feature, Hooks};

pub static FEATURE: Feature =
    Feature { folder: "admin", operations: ops::ALL, types: &[], state: |_| (), hooks: Hooks::NONE };
