//! Types of expressions as far as they are known before running, to refuse expressions that cannot be valid.

/// The type of a value, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprType {
    Any,
    Null,
    Bool,
    Integer,
    Float,
    Text,
    List(Box<ExprType>),
    Map,
    Node,
    Edge,
    Path,
    /// A date, a time or a duration.
    Moment,
}

impl ExprType {
    pub fn list(of: ExprType) -> ExprType {
        ExprType::List(Box::new(of))
    }

    /// The type that includes both.
    pub fn join(self, other: ExprType) -> ExprType {
        match (self, other) {
            (a, b) if a == b => a,
            (ExprType::Null, other) | (other, ExprType::Null) => other,
            _ => ExprType::Any,
        }
    }

    pub fn may_be_truth(&self) -> bool {
        matches!(self, ExprType::Any | ExprType::Null | ExprType::Bool)
    }

    pub fn may_be_list(&self) -> bool {
        matches!(self, ExprType::Any | ExprType::Null | ExprType::List(_))
    }

    /// Whether arithmetic operators other than `+` accept it.
    pub fn may_be_amount(&self) -> bool {
        matches!(self, ExprType::Any | ExprType::Null | ExprType::Integer | ExprType::Float | ExprType::Moment)
    }

    pub fn is_number(&self) -> bool {
        matches!(self, ExprType::Integer | ExprType::Float)
    }

    pub fn may_be(&self, wanted: &ExprType) -> bool {
        matches!(self, ExprType::Any | ExprType::Null) || self == wanted
    }

    /// The name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            ExprType::Any => "value",
            ExprType::Null => "Null",
            ExprType::Bool => "Boolean",
            ExprType::Integer => "Integer",
            ExprType::Float => "Float",
            ExprType::Text => "String",
            ExprType::List(_) => "List",
            ExprType::Map => "Map",
            ExprType::Node => "Node",
            ExprType::Edge => "Relationship",
            ExprType::Path => "Path",
            ExprType::Moment => "date or time",
        }
    }
}
