//! Looking after a store: backups, verification, the audit log, and finding one's way.

pub mod ops;
pub mod rendering;

use crate::feature::{Feature, Hooks};

pub static FEATURE: Feature =
    Feature { folder: "admin", operations: ops::ALL, types: &[], state: |_| (), hooks: Hooks::NONE };
