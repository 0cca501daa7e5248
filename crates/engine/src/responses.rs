//! Response types for facts, and for the differences between two views.

use lukasa_model::change::ChangeSummary;
use lukasa_model::version::{Fact, FactKind, Version};
use lukasa_model::{Content, Result, Time, VersionId};
use lukasa_store::ledger::{ViewRow, VisibleFact};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

/// An object or relationship as it is in a view.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FactVersionOut {
    pub kind: FactKind,
    pub id: Uuid,
    #[serde(rename = "type")]
    pub type_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src: Option<EndOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst: Option<EndOut>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub discriminator: String,
    #[serde(flatten)]
    pub content: Content,
    /// Number of the version, for `expected_version`.
    pub version: u32,
    pub version_id: VersionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<Time>,
    pub recorded_at: Time,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EndOut {
    pub id: Uuid,
    #[serde(rename = "type")]
    pub type_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The object has ended. Only lasting relationships show such ends.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// Its current name, if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_to: Option<String>,
}

/// The change of one fact between two views.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FactChangeOut {
    pub change: lukasa_store::ledger::ChangeClass,
    pub kind: FactKind,
    pub id: Uuid,
    #[serde(rename = "type")]
    pub type_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// For a relationship: the names of its ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<[String; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_version: Option<VersionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_version: Option<VersionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_summary: Option<ChangeSummary>,
}

/// The bound of a period. None if the period is open.
pub fn open(time: Time) -> Option<Time> {
    (time != Time::MIN && time != Time::MAX).then_some(time)
}

impl EndOut {
    pub fn of(thing: &Fact, ended: bool, renamed_to: Option<&Fact>) -> EndOut {
        EndOut {
            id: thing.id,
            type_name: thing.type_name.to_string(),
            key: thing.key.as_deref().map(Into::into),
            ended,
            renamed_to: renamed_to.map(Fact::name),
        }
    }
}

impl FactVersionOut {
    /// Converts a version for a response. `src` and `dst` are the ends of a relationship.
    pub fn new(thing: &Fact, statement: &Version, src: Option<EndOut>, dst: Option<EndOut>) -> Result<FactVersionOut> {
        Ok(FactVersionOut {
            kind: thing.kind(),
            id: thing.id,
            type_name: thing.type_name.to_string(),
            key: thing.key.as_deref().map(Into::into),
            src,
            dst,
            discriminator: thing.ends.as_ref().map(|e| e.discriminator.to_string()).unwrap_or_default(),
            content: statement.parsed()?,
            version: statement.number,
            version_id: statement.version,
            valid_from: open(statement.period.from),
            valid_to: open(statement.period.to),
            recorded_at: statement.recorded_at,
        })
    }

    pub fn found(found: &VisibleFact) -> Result<FactVersionOut> {
        let end = |i: usize| found.ends.as_ref().map(|ends| EndOut::of(&ends[i].0, ends[i].1, None));
        FactVersionOut::new(&found.thing, &found.statement, end(0), end(1))
    }

    /// Converts an object from a stream. Not for relationships, whose ends must be read first.
    pub fn object(row: &ViewRow) -> Result<FactVersionOut> {
        FactVersionOut::new(&row.thing, &row.statement, None, None)
    }
}

/// A number with its noun: `1 file`, `2 files`.
pub fn count(n: impl TryInto<u64>, one: &str) -> String {
    match n.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {one}"),
        n => format!("{n} {one}s"),
    }
}
