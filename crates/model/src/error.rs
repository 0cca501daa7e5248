//! The one error type: a kind that surfaces map to a status, a finer code, a message and a hint.

mod code;

pub use code::ErrorCode;

use crate::shown::without_credentials;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// A result with the error type of all crates.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kinds of errors, each with one HTTP status. Surfaces match on the kind only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    InvalidInput,
    Unauthenticated,
    Forbidden,
    NotFound,
    Conflict,
    TooLarge,
    ValidationFailed,
    RateLimited,
    Internal,
    Unsupported,
    Unavailable,
    Timeout,
}

impl ErrorKind {
    /// Returns the HTTP status for errors of this kind.
    pub fn http_status(self) -> u16 {
        match self {
            ErrorKind::InvalidInput => 400,
            ErrorKind::Unauthenticated => 401,
            ErrorKind::Forbidden => 403,
            ErrorKind::NotFound => 404,
            ErrorKind::Conflict => 409,
            ErrorKind::TooLarge => 413,
            ErrorKind::ValidationFailed => 422,
            ErrorKind::RateLimited => 429,
            ErrorKind::Internal => 500,
            ErrorKind::Unsupported => 501,
            ErrorKind::Unavailable => 503,
            ErrorKind::Timeout => 504,
        }
    }
}

/// Message: lowercase, no final period, user input in backticks. Hint: what to do next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Error {
    /// Decides how surfaces report the error, for example by its HTTP status.
    pub kind: ErrorKind,
    /// A stable name in snake case that programs can match on, for example `unknown_branch`.
    pub code: ErrorCode,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Machine-readable details: field errors, conflicts, candidates.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub details: Box<Value>,
}

impl Error {
    /// Creates an error. Credentials in URLs within the message are redacted.
    pub fn new(kind: ErrorKind, code: ErrorCode, message: impl Into<String>) -> Self {
        Error { kind, code, message: shown(message.into()), hint: None, details: Box::new(Value::Null) }
    }

    /// Creates an error of kind `InvalidInput`.
    pub fn invalid(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, code, message)
    }

    /// Creates an error of kind `NotFound`.
    pub fn not_found(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, code, message)
    }

    /// Creates an error of kind `Conflict`.
    pub fn conflict(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, code, message)
    }

    /// Creates an error of kind `TooLarge`.
    pub fn too_large(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TooLarge, code, message)
    }

    /// Creates an error of kind `Internal` with the code `internal_error`: a defect or damaged data,
    /// not a mistake of the caller.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, ErrorCode::InternalError, message)
    }

    /// Sets the hint: what the caller can do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(shown(hint.into()));
        self
    }

    /// Sets the machine-readable details, replacing earlier ones.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.details = Box::new(shown_value(details));
        self
    }

    /// Prefixes the message with where the error occurred, for example `line 12`.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.message = shown(format!("{place}: {}", self.message));
        self
    }
}

/// Removes passwords from URLs, because errors are printed, logged and sent to clients.
fn shown(text: String) -> String {
    match without_credentials(&text) {
        Cow::Owned(text) => text,
        Cow::Borrowed(_) => text,
    }
}

fn shown_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(shown(text)),
        Value::Array(items) => items.into_iter().map(shown_value).collect(),
        Value::Object(map) => Value::Object(map.into_iter().map(|(name, value)| (name, shown_value(value))).collect()),
        other => other,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use serde_json::json;

    #[test]
    fn errors_contain_no_passwords_of_urls() {
        let url = "postgres://ann:HIDDEN@db/shop";
        let error = Error::invalid(ErrorCode::InvalidArgument, format!("--store: `{url}` is not true or false"))
            .hint(format!("use {url}"))
            .at(url)
            .details(json!({"given": [url]}));
        let text = serde_json::to_string(&error).expect("plain data");
        assert!(!text.contains("HIDDEN") && text.matches("[redacted]@db/shop").count() == 4, "{text}");
    }
}
