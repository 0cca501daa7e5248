//! The one error type: a kind that surfaces map to a status, a finer code, a message and a hint.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Few kinds, each with one HTTP status. Surfaces match on this and on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
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

impl Kind {
    pub fn http_status(self) -> u16 {
        match self {
            Kind::InvalidInput => 400,
            Kind::Unauthenticated => 401,
            Kind::Forbidden => 403,
            Kind::NotFound => 404,
            Kind::Conflict => 409,
            Kind::TooLarge => 413,
            Kind::ValidationFailed => 422,
            Kind::RateLimited => 429,
            Kind::Internal => 500,
            Kind::Unsupported => 501,
            Kind::Unavailable => 503,
            Kind::Timeout => 504,
        }
    }
}

/// Message: lowercase, no final period, user input in backticks. Hint: what to do next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Error {
    pub kind: Kind,
    pub code: &'static str,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Machine-readable particulars: field errors, conflicts, candidate readings.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub details: Box<Value>,
}

impl Error {
    pub fn new(kind: Kind, code: &'static str, message: impl Into<String>) -> Self {
        Error { kind, code, message: message.into(), hint: None, details: Box::new(Value::Null) }
    }

    pub fn invalid(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::InvalidInput, code, message)
    }

    pub fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, code, message)
    }

    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::Conflict, code, message)
    }

    pub fn too_large(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::TooLarge, code, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, "internal_error", message)
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.details = Box::new(details);
        self
    }

    /// Puts where it happened in front of the message, for example `line 12`.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
