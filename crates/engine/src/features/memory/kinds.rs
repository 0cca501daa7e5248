//! Kinds of episodes, and the metadata that each requires.

use crate::view::memories::names::{DECISION, EPISODE, LEARNING};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The kind of an episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Kind {
    /// Something was read, asked or seen.
    #[default]
    #[serde(alias = "observation")]
    Observation,
    /// A binding choice was made.
    #[serde(alias = "decision")]
    Decision,
    /// Code was changed.
    #[serde(alias = "edit")]
    Edit,
    /// Tests were run.
    #[serde(alias = "test_result")]
    TestResult,
    /// Something went wrong.
    #[serde(alias = "error")]
    Error,
    /// A conclusion from several episodes.
    #[serde(alias = "reflection")]
    Reflection,
    /// A lesson for later.
    #[serde(alias = "learning")]
    Learning,
}

impl Kind {
    pub const ALL: [Kind; 7] = [
        Kind::Observation,
        Kind::Decision,
        Kind::Edit,
        Kind::TestResult,
        Kind::Error,
        Kind::Reflection,
        Kind::Learning,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Observation => "OBSERVATION",
            Kind::Decision => "DECISION",
            Kind::Edit => "EDIT",
            Kind::TestResult => "TEST_RESULT",
            Kind::Error => "ERROR",
            Kind::Reflection => "REFLECTION",
            Kind::Learning => "LEARNING",
        }
    }

    /// It is a conclusion that outlives its session: a decision or a learning.
    pub fn lasts(self) -> bool {
        matches!(self, Kind::Decision | Kind::Learning)
    }

    /// The type of its objects.
    pub fn type_name(self) -> &'static str {
        match self {
            Kind::Decision => DECISION,
            Kind::Learning => LEARNING,
            _ => EPISODE,
        }
    }

    /// The prefix of its keys.
    pub fn prefix(self) -> &'static str {
        match self {
            Kind::Decision => "decision:",
            Kind::Learning => "learning:",
            _ => "episode:",
        }
    }

    /// Returns the kind of an object by its type and subtype, whatever its source; `None` if it is no memory.
    pub fn of(type_name: &str, subtype: Option<&str>) -> Option<Kind> {
        let is = |name: &str| type_name.eq_ignore_ascii_case(name);
        if is(DECISION) {
            return Some(Kind::Decision);
        }
        if is(LEARNING) || is("ErrorSolution") {
            return Some(Kind::Learning);
        }
        let named = |kind: &Kind| subtype.is_some_and(|subtype| subtype.eq_ignore_ascii_case(kind.name()));
        (is(EPISODE)).then(|| Kind::ALL.into_iter().find(named).unwrap_or_default())
    }
}

/// The outcome of what an episode records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Success,
    Failure,
    Partial,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Failure => "failure",
            Outcome::Partial => "partial",
        }
    }
}

/// The expected form of a metadata value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Text,
    Texts,
    Count,
    Number,
    /// A number from 0 to 1.
    Share,
}

impl Shape {
    fn fits(self, value: &Value) -> bool {
        match self {
            Shape::Text => value.is_string(),
            Shape::Texts => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
            Shape::Count => value.is_u64(),
            Shape::Number => value.is_number(),
            Shape::Share => value.as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Shape::Text => "a text",
            Shape::Texts => "a list of texts",
            Shape::Count => "a whole number that is not negative",
            Shape::Number => "a number",
            Shape::Share => "a number from 0 to 1",
        }
    }
}

/// A field of metadata: its name, its form, and whether it is required.
pub type Field = (&'static str, Shape, bool);

/// The fields that metadata of a kind must and may have. Other fields are always allowed.
pub fn contract(kind: Kind) -> &'static [Field] {
    use Shape::{Count, Number, Share, Text, Texts};
    match kind {
        Kind::Decision => &[
            ("title", Text, true),
            ("rationale", Text, true),
            ("tradeoffs", Texts, true),
            ("affected_files", Texts, true),
        ],
        Kind::Edit => &[
            ("file", Text, true),
            ("diff_summary", Text, true),
            ("lines_before", Count, true),
            ("lines_after", Count, true),
            ("reason", Text, true),
        ],
        Kind::TestResult => &[
            ("passed", Count, true),
            ("failed", Count, true),
            ("test_files", Texts, true),
            ("coverage_delta", Number, false),
            ("passed_tests", Texts, false),
            ("failed_tests", Texts, false),
        ],
        Kind::Error => &[("error_type", Text, true), ("stack_summary", Text, true), ("recovery_action", Text, false)],
        Kind::Observation => &[("confidence", Share, false), ("query_used", Text, false)],
        Kind::Reflection => &[("source_episode_ids", Texts, false)],
        Kind::Learning => &[("confidence", Share, false)],
    }
}

/// Returns metadata with its names in snake_case, checked against the requirements of its kind. The error lists everything that
/// is missing or wrong.
pub fn checked(kind: Kind, metadata: Map<String, Value>) -> Result<Map<String, Value>> {
    let metadata: Map<String, Value> =
        metadata.into_iter().map(|(name, value)| (crate::registry::snake_case(&name), value)).collect();
    if let Some(taken) = metadata.keys().find(|name| RESERVED.contains(&name.as_str())) {
        return Err(Error::invalid(ErrorCode::InvalidMetadata, format!("`{taken}` is a field of the episode itself"))
            .hint("give it beside `metadata`, or call it something else"));
    }
    let missing: Vec<&str> = contract(kind)
        .iter()
        .filter(|(name, _, required)| *required && metadata.get(*name).is_none_or(Value::is_null))
        .map(|(name, _, _)| *name)
        .collect();
    let wrong: Vec<String> = contract(kind)
        .iter()
        .filter(|(name, shape, _)| metadata.get(*name).is_some_and(|value| !value.is_null() && !shape.fits(value)))
        .map(|(name, shape, _)| format!("`{name}` is not {}", shape.words()))
        .collect();
    if missing.is_empty() && wrong.is_empty() {
        return Ok(metadata);
    }
    let mut faults: Vec<String> = missing.iter().map(|name| format!("`{name}` is missing")).collect();
    faults.extend(wrong.iter().cloned());
    let code = if missing.is_empty() { ErrorCode::InvalidMetadata } else { ErrorCode::MissingMetadata };
    let all: Vec<String> = contract(kind)
        .iter()
        .map(|(name, shape, required)| {
            format!("{name}: {}{}", shape.words(), if *required { "" } else { " (may be left out)" })
        })
        .collect();
    Err(Error::new(ErrorKind::ValidationFailed, code, format!("metadata of a {}: {}", kind.name(), faults.join(", ")))
        .hint(format!("`metadata` of this kind has {}", all.join("; ")))
        .details(json!({"kind": kind.name(), "missing": missing, "wrong": wrong})))
}

/// Properties of episodes that metadata may not replace.
pub const RESERVED: [&str; 12] = [
    "content",
    "agent_id",
    "session_id",
    "task_id",
    "outcome",
    "sensitive",
    "sealed",
    "entities",
    "facts",
    "kind",
    "type",
    "unresolved_entities",
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn every_kind_says_what_is_missing_and_what_is_wrong() {
        for (kind, metadata, missing, wrong) in [
            (Kind::Decision, json!({}), vec!["title", "rationale", "tradeoffs", "affected_files"], 0),
            (
                Kind::Decision,
                json!({"title": "T", "rationale": "R", "tradeoffs": "none", "affectedFiles": []}),
                vec![],
                1,
            ),
            (
                Kind::Edit,
                json!({"file": "a", "diffSummary": "d", "linesBefore": 1, "linesAfter": -2, "reason": "r"}),
                vec![],
                1,
            ),
            (Kind::Edit, json!({"file": "a"}), vec!["diff_summary", "lines_before", "lines_after", "reason"], 0),
            (Kind::TestResult, json!({"passed": 1, "failed": 0.5}), vec!["test_files"], 1),
            (Kind::Error, json!({"errorType": "E"}), vec!["stack_summary"], 0),
            (Kind::Observation, json!({"confidence": 1.5}), vec![], 1),
        ] {
            let error = checked(kind, map(metadata.clone())).unwrap_err();
            assert_eq!(error.kind, ErrorKind::ValidationFailed);
            assert_eq!(error.details["missing"], json!(missing), "{metadata}");
            assert_eq!(error.details["wrong"].as_array().unwrap().len(), wrong, "{metadata}");
        }
        let fine =
            json!({"file": "a", "diffSummary": "d", "linesBefore": 1, "linesAfter": 2, "reason": "r", "more": true});
        let kept = checked(Kind::Edit, map(fine)).unwrap();
        assert_eq!((&kept["diff_summary"], &kept["more"]), (&json!("d"), &json!(true)));
        assert_eq!(
            checked(Kind::Observation, map(json!({"agentId": "x"}))).unwrap_err().code,
            ErrorCode::InvalidMetadata
        );
    }

    #[test]
    fn kinds_are_known_by_type_and_subtype() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of(kind.type_name(), Some(kind.name())), Some(kind));
        }
        assert_eq!(Kind::of("decision", None), Some(Kind::Decision));
        assert_eq!(Kind::of("Episode", Some("talk")), Some(Kind::Observation));
        assert_eq!(Kind::of("Service", None), None);
    }
}
