//! The operations of the feature `admin`, one file per operation or group of related operations.

pub mod audit;
pub mod backup;
pub mod demo;
pub mod find_tools;
pub mod projects;
pub mod verify;

use crate::registry::Operation;

/// In the order in which `--help` and docs list them.
pub const ALL: &[fn() -> Operation] = &[
    Operation::of::<demo::Demo>,
    Operation::of::<backup::Backup>,
    Operation::of::<backup::RestoreBackup>,
    Operation::of::<verify::Verify>,
    Operation::of::<audit::AuditList>,
    Operation::of::<audit::AuditVerify>,
    Operation::of::<audit::AuditExport>,
    Operation::of::<projects::Projects>,
    Operation::of::<find_tools::FindTools>,
];
