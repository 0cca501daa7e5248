//! Kinds of episodes, and the metadata that each requires.

use crate::view::memories::names::{DECISION, EPISODE, LEARNING};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The kind of an episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EpisodeKind {
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

impl EpisodeKind {
    pub const ALL: [EpisodeKind; 7] = [
        EpisodeKind::Observation,
        EpisodeKind::Decision,
        EpisodeKind::Edit,
        EpisodeKind::TestResult,
        EpisodeKind::Error,
        EpisodeKind::Reflection,
        EpisodeKind::Learning,
    ];

    pub fn name(self) -> &'static str {
        match self {
            EpisodeKind::Observation => "OBSERVATION",
            EpisodeKind::Decision => "DECISION",
            EpisodeKind::Edit => "EDIT",
            EpisodeKind::TestResult => "TEST_RESULT",
            EpisodeKind::Error => "ERROR",
            EpisodeKind::Reflection => "REFLECTION",
            EpisodeKind::Learning => "LEARNING",
        }
    }

    /// It is a conclusion that outlives its session: a decision or a learning.
    pub fn lasts(self) -> bool {
        matches!(self, EpisodeKind::Decision | EpisodeKind::Learning)
    }

    /// The type of its objects.
    pub fn type_name(self) -> &'static str {
        match self {
            EpisodeKind::Decision => DECISION,
            EpisodeKind::Learning => LEARNING,
            _ => EPISODE,
        }
    }

    /// The prefix of its keys.
    pub fn prefix(self) -> &'static str {
        match self {
            EpisodeKind::Decision => "decision:",
            EpisodeKind::Learning => "learning:",
            _ => "episode:",
        }
    }

    /// Returns the kind of an object by its type and subtype, whatever its source; `None` if it is no memory.
    pub fn of(type_name: &str, subtype: Option<&str>) -> Option<EpisodeKind> {
        let is = |name: &str| type_name.eq_ignore_ascii_case(name);
        if is(DECISION) {
            return Some(EpisodeKind::Decision);
        }
        if is(LEARNING) || is("ErrorSolution") {
            return Some(EpisodeKind::Learning);
        }
        let named = |kind: &EpisodeKind| subtype.is_some_and(|subtype| subtype.eq_ignore_ascii_case(kind.name()));
        (is(EPISODE)).then(|| EpisodeKind::ALL.into_iter().find(named).unwrap_or_default())
    }
}

/// The outcome of what an episode records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EpisodeOutcome {
    Success,
    Failure,
    Partial,
}

impl EpisodeOutcome {
    pub fn name(self) -> &'static str {
        match self {
            EpisodeOutcome::Success => "success",
            EpisodeOutcome::Failure => "failure",
            EpisodeOutcome::Partial => "partial",
        }
    }
}

/// The expected form of a metadata value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataForm {
    Text,
    Texts,
    Count,
    Number,
    /// A number from 0 to 1.
    Share,
}

impl MetadataForm {
    fn fits(self, value: &Value) -> bool {
        match self {
            MetadataForm::Text => value.is_string(),
            MetadataForm::Texts => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
            MetadataForm::Count => value.is_u64(),
            MetadataForm::Number => value.is_number(),
            MetadataForm::Share => value.as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)),
        }
    }

    fn words(self) -> &'static str {
        match self {
            MetadataForm::Text => "a text",
            MetadataForm::Texts => "a list of texts",
            MetadataForm::Count => "a whole number that is not negative",
            MetadataForm::Number => "a number",
            MetadataForm::Share => "a number from 0 to 1",
        }
    }
}

/// A field of metadata: its name, its form, and whether it is required.
pub type MetadataField = (&'static str, MetadataForm, bool);

/// The fields that metadata of a kind must and may have. Other fields are always allowed.
pub fn contract(kind: EpisodeKind) -> &'static [MetadataField] {
    use MetadataForm::{Count, Number, Share, Text, Texts};
    match kind {
        EpisodeKind::Decision => &[
            ("title", Text, true),
            ("rationale", Text, true),
            ("tradeoffs", Texts, true),
            ("affected_files", Texts, true),
        ],
        EpisodeKind::Edit => &[
            ("file", Text, true),
            ("diff_summary", Text, true),
            ("lines_before", Count, true),
            ("lines_after", Count, true),
            ("reason", Text, true),
        ],
        EpisodeKind::TestResult => &[
            ("passed", Count, true),
            ("failed", Count, true),
            ("test_files", Texts, true),
            ("coverage_delta", Number, false),
            ("passed_tests", Texts, false),
            ("failed_tests", Texts, false),
        ],
        EpisodeKind::Error => {
            &[("error_type", Text, true), ("stack_summary", Text, true), ("recovery_action", Text, false)]
        }
        EpisodeKind::Observation => &[("confidence", Share, false), ("query_used", Text, false)],
        EpisodeKind::Reflection => &[("source_episode_ids", Texts, false)],
        EpisodeKind::Learning => &[("confidence", Share, false)],
    }
}

/// Returns metadata with its names in snake_case, checked against the requirements of its kind. The error lists everything that
/// is missing or wrong.
pub fn checked(kind: EpisodeKind, metadata: Map<String, Value>) -> Result<Map<String, Value>> {
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
            (EpisodeKind::Decision, json!({}), vec!["title", "rationale", "tradeoffs", "affected_files"], 0),
            (
                EpisodeKind::Decision,
                json!({"title": "T", "rationale": "R", "tradeoffs": "none", "affectedFiles": []}),
                vec![],
                1,
            ),
            (
                EpisodeKind::Edit,
                json!({"file": "a", "diffSummary": "d", "linesBefore": 1, "linesAfter": -2, "reason": "r"}),
                vec![],
                1,
            ),
            (EpisodeKind::Edit, json!({"file": "a"}), vec!["diff_summary", "lines_before", "lines_after", "reason"], 0),
            (EpisodeKind::TestResult, json!({"passed": 1, "failed": 0.5}), vec!["test_files"], 1),
            (EpisodeKind::Error, json!({"errorType": "E"}), vec!["stack_summary"], 0),
            (EpisodeKind::Observation, json!({"confidence": 1.5}), vec![], 1),
        ] {
            let error = checked(kind, map(metadata.clone())).unwrap_err();
            assert_eq!(error.kind, ErrorKind::ValidationFailed);
            assert_eq!(error.details["missing"], json!(missing), "{metadata}");
            assert_eq!(error.details["wrong"].as_array().unwrap().len(), wrong, "{metadata}");
        }
        let fine =
            json!({"file": "a", "diffSummary": "d", "linesBefore": 1, "linesAfter": 2, "reason": "r", "more": true});
        let kept = checked(EpisodeKind::Edit, map(fine)).unwrap();
        assert_eq!((&kept["diff_summary"], &kept["more"]), (&json!("d"), &json!(true)));
        assert_eq!(
            checked(EpisodeKind::Observation, map(json!({"agentId": "x"}))).unwrap_err().code,
            ErrorCode::InvalidMetadata
        );
    }

    #[test]
    fn kinds_are_known_by_type_and_subtype() {
        for kind in EpisodeKind::ALL {
            assert_eq!(EpisodeKind::of(kind.type_name(), Some(kind.name())), Some(kind));
        }
        assert_eq!(EpisodeKind::of("decision", None), Some(EpisodeKind::Decision));
        assert_eq!(EpisodeKind::of("Episode", Some("talk")), Some(EpisodeKind::Observation));
        assert_eq!(EpisodeKind::of("Service", None), None);
    }
}
