//! Faults of a query: openCypher's error classes, details and positions.

use lukasa_model::{Error, ErrorCode, ErrorKind};
use serde_json::json;

/// The error classes of openCypher that a read-only query can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultClass {
    Syntax,
    Semantic,
    Parameter,
    Type,
    Argument,
    Arithmetic,
    Procedure,
    /// A clause that writes, which is refused.
    ReadOnly,
}

impl FaultClass {
    /// The name in openCypher's test suite (TCK).
    pub fn name(self) -> &'static str {
        match self {
            FaultClass::Syntax => "SyntaxError",
            FaultClass::Semantic => "SemanticError",
            FaultClass::Parameter => "ParameterMissing",
            FaultClass::Type => "TypeError",
            FaultClass::Argument => "ArgumentError",
            FaultClass::Arithmetic => "ArithmeticError",
            FaultClass::Procedure => "ProcedureError",
            FaultClass::ReadOnly => "ReadOnly",
        }
    }

    fn code(self) -> ErrorCode {
        match self {
            FaultClass::Syntax => ErrorCode::CypherSyntaxError,
            FaultClass::Semantic => ErrorCode::CypherSemanticError,
            FaultClass::Parameter => ErrorCode::CypherParameterMissing,
            FaultClass::Type => ErrorCode::CypherTypeError,
            FaultClass::Argument => ErrorCode::CypherArgumentError,
            FaultClass::Arithmetic => ErrorCode::CypherArithmeticError,
            FaultClass::Procedure => ErrorCode::CypherProcedureError,
            FaultClass::ReadOnly => ErrorCode::ReadOnly,
        }
    }
}

/// A fault of a query, with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub class: FaultClass,
    /// The detail in openCypher, for example `UndefinedVariable`.
    pub detail: &'static str,
    pub message: String,
    /// The position in the query, in bytes.
    pub at: usize,
}

impl Fault {
    /// A fault of the class `Syntax`.
    pub fn syntax(detail: &'static str, message: impl Into<String>, at: usize) -> Fault {
        Fault { class: FaultClass::Syntax, detail, message: message.into(), at }
    }

    /// Line and column, both from 1, the column in characters.
    pub fn place(&self, query: &str) -> (usize, usize) {
        let before = &query[..query.floor_char_boundary(self.at.min(query.len()))];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (line, column)
    }

    /// The error as clients receive it.
    pub fn into_error(self, query: &str) -> Error {
        let (line, column) = self.place(query);
        let kind = if self.class == FaultClass::ReadOnly { ErrorKind::Forbidden } else { ErrorKind::InvalidInput };
        Error::new(kind, self.class.code(), format!("{} (line {line}, column {column})", self.message))
            .details(json!({"class": self.class.name(), "detail": self.detail, "line": line, "column": column}))
    }
}

/// The result of parsing and compiling.
pub type Result<T> = std::result::Result<T, Fault>;
