//! Errors of data files that a request names.

use lukasa_model::{Error, ErrorCode, ErrorKind};
use std::path::Path;

/// The error for a file that cannot be opened or created.
pub fn file_fault(path: &Path, error: &std::io::Error) -> Error {
    let (kind, code) = match error.kind() {
        std::io::ErrorKind::AlreadyExists => (ErrorKind::Conflict, ErrorCode::FileExists),
        std::io::ErrorKind::NotFound => (ErrorKind::NotFound, ErrorCode::FileNotFound),
        _ => return unreadable(path, error),
    };
    Error::new(kind, code, format!("`{}`: {error}", path.display()))
}

/// The error for a file that cannot be read; its kind is whether the caller or the system caused it.
pub fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    use std::io::ErrorKind as Io;
    let kind = match error.kind() {
        Io::IsADirectory | Io::NotADirectory | Io::InvalidInput | Io::InvalidFilename => ErrorKind::InvalidInput,
        Io::NotFound => ErrorKind::NotFound,
        Io::PermissionDenied => ErrorKind::Forbidden,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, ErrorCode::FileFailure, format!("`{}`: {error}", path.display()))
}
