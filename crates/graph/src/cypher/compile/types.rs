//! Types of expressions as far as they are known before running, to refuse expressions that cannot be valid.

/// The type of a value, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Ty {
    Any,
    Null,
    Bool,
    Integer,
    Float,
    Text,
    List(Box<Ty>),
    Map,
    Node,
    Edge,
    Path,
    /// A date, a time or a duration.
    Moment,
}

impl Ty {
    pub fn list(of: Ty) -> Ty {
        Ty::List(Box::new(of))
    }

    /// The type that includes both.
    pub fn join(self, other: Ty) -> Ty {
        match (self, other) {
            (a, b) if a == b => a,
            (Ty::Null, other) | (other, Ty::Null) => other,
            _ => Ty::Any,
        }
    }

    pub fn may_be_truth(&self) -> bool {
        matches!(self, Ty::Any | Ty::Null | Ty::Bool)
    }

    pub fn may_be_list(&self) -> bool {
        matches!(self, Ty::Any | Ty::Null | Ty::List(_))
    }

    /// Whether arithmetic operators other than `+` accept it.
    pub fn may_be_amount(&self) -> bool {
        matches!(self, Ty::Any | Ty::Null | Ty::Integer | Ty::Float | Ty::Moment)
    }

    pub fn is_number(&self) -> bool {
        matches!(self, Ty::Integer | Ty::Float)
    }

    pub fn may_be(&self, wanted: &Ty) -> bool {
        matches!(self, Ty::Any | Ty::Null) || self == wanted
    }

    /// The name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Ty::Any => "value",
            Ty::Null => "Null",
            Ty::Bool => "Boolean",
            Ty::Integer => "Integer",
            Ty::Float => "Float",
            Ty::Text => "String",
            Ty::List(_) => "List",
            Ty::Map => "Map",
            Ty::Node => "Node",
            Ty::Edge => "Relationship",
            Ty::Path => "Path",
            Ty::Moment => "date or time",
        }
    }
}
