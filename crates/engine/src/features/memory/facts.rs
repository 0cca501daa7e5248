//! Facts of agent memory: the value of a subject's attribute from some time on, and the effect of a fact on conflicting ones.
//!
//! A fact ends an earlier one only if the rule is certain: the same subject and attribute, an attribute with one value at a
//! time, a later beginning, and at least the same confidence. Otherwise both stay, connected by CONTRADICTS, and answers show
//! both.

use crate::view::memories::names::{CONTRADICTS, DERIVED_FROM, FACT, SUPERSEDES};
use lukasa_model::batch::{End, PutObject, PutRelationship};
use lukasa_model::id::check_text;
use lukasa_model::json::Hash;
use lukasa_model::limits::NAME_BYTES;
use lukasa_model::{Content, Reference, Result, Time, View, Write};
use lukasa_store::{Ledger, VersionFields};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum length of a value, in bytes.
const VALUE_BYTES: usize = 4_096;
/// Default confidence of a fact.
const CONFIDENCE: f64 = 0.8;
/// A fact with a lower confidence never ends another.
const SURE: f64 = 0.7;
/// Attributes that have one value at a time unless the fact declares otherwise.
const SINGLE: [&str; 28] = [
    "address",
    "age",
    "author",
    "branch",
    "city",
    "count",
    "database",
    "deadline",
    "default",
    "due date",
    "email",
    "employer",
    "home",
    "host",
    "job",
    "language version",
    "license",
    "location",
    "name",
    "owner",
    "password policy",
    "phone",
    "port",
    "priority",
    "status",
    "timeout",
    "url",
    "version",
];

/// A fact to record.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFact {
    /// The person or thing that it is about.
    pub subject: String,
    /// The attribute, for example port, owner or lives in.
    pub attribute: String,
    pub value: Value,
    /// When it became true; the time of the episode when left out.
    #[serde(default)]
    pub since: Option<Time>,
    /// Confidence, 0 to 1.
    #[serde(default)]
    pub confidence: Option<f64>,
    /// Whether the attribute has one value at a time; known for common attributes.
    #[serde(default, alias = "singleValued")]
    pub single_valued: Option<bool>,
}

/// A recorded fact.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedFact {
    pub value: String,
    pub since: Time,
    pub confidence: f64,
}

/// How a new fact relates to an existing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactVerdict {
    /// Both have the same value.
    Same,
    /// The new fact ends the other at its own beginning.
    Ends,
    /// The new fact began before the other, and ends where the other begins.
    EndsBefore,
    /// Both stay, and answers show both.
    Contradicts,
    /// Both are true: the attribute has several values.
    Beside,
}

/// Returns how a new fact relates to an existing one about the same subject and attribute.
pub fn judge(old: &RecordedFact, new: &RecordedFact, single_valued: Option<bool>) -> FactVerdict {
    if normal(&old.value) == normal(&new.value) {
        return FactVerdict::Same;
    }
    match single_valued {
        Some(false) => FactVerdict::Beside,
        Some(true) if new.confidence >= SURE && new.since > old.since && new.confidence >= old.confidence => {
            FactVerdict::Ends
        }
        Some(true) if new.confidence >= SURE && old.confidence >= SURE && new.since < old.since => {
            FactVerdict::EndsBefore
        }
        _ => FactVerdict::Contradicts,
    }
}

/// Whether an attribute has one value at a time: as declared, otherwise by its name.
pub fn is_single(attribute: &str, declared: Option<bool>) -> Option<bool> {
    declared.or_else(|| SINGLE.contains(&normal(attribute).as_str()).then_some(true))
}

/// Normalizes words for comparison: lower case, without separators and articles.
pub fn normal(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric() && !".-+:/@".contains(c)).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.filter(|word| !["the", "a", "an"].contains(word)).collect();
    words.join(" ")
}

/// A recorded fact, with its relation to others.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FactOut {
    #[serde(rename = "ref")]
    pub reference: String,
    pub subject: String,
    pub attribute: String,
    pub value: Value,
    pub since: Time,
    /// Facts with the same subject and attribute, and how this one relates to them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<RelatedFactOut>,
}

/// A fact about the same attribute, and how the new one relates to it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RelatedFactOut {
    #[serde(rename = "ref")]
    pub reference: String,
    pub value: Value,
    pub verdict: FactVerdict,
}

/// Refuses a fact with an empty or too long text, or with an invalid confidence.
pub fn check(fact: &NewFact) -> Result<()> {
    check_text("subject", &fact.subject, NAME_BYTES)?;
    check_text("attribute", &fact.attribute, NAME_BYTES)?;
    check_text("value", &shown(&fact.value), VALUE_BYTES)?;
    if let Some(confidence) = fact.confidence {
        crate::ranges::check_range("confidence", confidence, 0.0, 1.0)?;
    }
    Ok(())
}

/// Returns the writes that record a fact established by an episode at a time.
pub fn writes(
    ledger: &Ledger,
    view: &View,
    fact: &NewFact,
    episode: &Reference,
    at: Time,
) -> Result<(Vec<Write>, FactOut)> {
    let (subject, attribute) = (normal(&fact.subject), normal(&fact.attribute));
    let prefix = format!("fact:{subject}|{attribute}|");
    let new = RecordedFact {
        value: shown(&fact.value),
        since: fact.since.unwrap_or(at),
        confidence: fact.confidence.unwrap_or(CONFIDENCE),
    };
    let key = format!("{prefix}{}", Hash::of(normal(&new.value).as_bytes()).digits(24));
    let own = Reference::exact(FACT, &key);
    let single = is_single(&fact.attribute, fact.single_valued);
    let mut put = PutObject::new(FACT, &key)
        .title(&format!("{} {} {}", fact.subject, fact.attribute, new.value))
        .property("subject", fact.subject.clone())
        .property("attribute", fact.attribute.clone())
        .property("value", fact.value.clone())
        .property("confidence", new.confidence);
    put.valid_from = Some(new.since);
    let mut writes: Vec<Write> = Vec::new();
    let mut out = FactOut {
        reference: own.to_string(),
        subject: fact.subject.clone(),
        attribute: fact.attribute.clone(),
        value: fact.value.clone(),
        since: new.since,
        others: vec![],
    };
    let mut is_there = false;
    for state in ledger.states_with_prefix(view, Some(FACT), &prefix, VersionFields::Content)? {
        let Some(statement) = &state.statement else { continue };
        let content = statement.parsed()?;
        let Some(value) = content.properties.get("value") else { continue };
        let since = if statement.period.from == Time::MIN { statement.recorded_at } else { statement.period.from };
        let old = RecordedFact { value: shown(value), since, confidence: confidence(&content) };
        let verdict = judge(&old, &new, single);
        let other = Reference::Id(state.thing.id);
        let link = |type_name: &str| PutRelationship::new(type_name, own.clone(), other.clone());
        match verdict {
            // The same fact is already recorded from an earlier time, so only its source is added.
            FactVerdict::Same => is_there = old.since <= new.since && old.confidence >= new.confidence,
            FactVerdict::Ends => {
                let expected_version = Some(statement.number);
                writes.push(End { from: Some(new.since), expected_version, ..End::new(other.clone()) }.into());
                writes.push(PutRelationship { valid_from: Some(new.since), ..link(SUPERSEDES) }.into());
            }
            FactVerdict::EndsBefore => put.valid_to = Some(put.valid_to.map_or(old.since, |to| to.min(old.since))),
            FactVerdict::Contradicts => writes.push(link(CONTRADICTS).into()),
            FactVerdict::Beside => {}
        }
        out.others.push(RelatedFactOut { reference: state.thing.name(), value: value.clone(), verdict });
    }
    if !is_there {
        writes.insert(0, put.into());
    }
    writes.push(PutRelationship::new(DERIVED_FROM, own, episode.clone()).into());
    Ok((writes, out))
}

fn confidence(content: &Content) -> f64 {
    content.properties.get("confidence").and_then(Value::as_f64).unwrap_or(CONFIDENCE)
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(value: &str, since: i64, confidence: f64) -> RecordedFact {
        RecordedFact { value: value.into(), since: Time(since), confidence }
    }

    #[test]
    fn a_fact_ends_another_only_when_the_rule_is_sure() {
        let old = known("8080", 10, 0.8);
        for (new, single, verdict) in [
            (known("8080", 20, 0.9), Some(true), FactVerdict::Same),
            (known("9090", 20, 0.8), Some(true), FactVerdict::Ends),
            (known("9090", 20, 0.9), Some(true), FactVerdict::Ends),
            (known("9090", 20, 0.75), Some(true), FactVerdict::Contradicts),
            (known("9090", 20, 0.5), Some(true), FactVerdict::Contradicts),
            (known("9090", 10, 0.9), Some(true), FactVerdict::Contradicts),
            (known("9090", 5, 0.9), Some(true), FactVerdict::EndsBefore),
            (known("9090", 20, 1.0), None, FactVerdict::Contradicts),
            (known("9090", 20, 1.0), Some(false), FactVerdict::Beside),
        ] {
            assert_eq!(judge(&old, &new, single), verdict, "{new:?} {single:?}");
        }
        assert_eq!(
            judge(&known("x", 1, 0.3), &known("y", 2, 0.6), Some(true)),
            FactVerdict::Contradicts,
            "unsure of both"
        );
    }

    #[test]
    fn words_are_compared_without_what_only_separates_them() {
        for (a, b, same) in [
            ("The Auth-Service", "auth-service", true),
            ("Lives  in", "lives_in", true),
            ("v1.2", "V1.2", true),
            ("v1.2", "v12", false),
            ("C++", "c", false),
        ] {
            assert_eq!(normal(a) == normal(b), same, "{a} {b}");
        }
        assert_eq!(is_single("Port", None), Some(true));
        assert_eq!(is_single("Port", Some(false)), Some(false));
        assert_eq!(is_single("likes", None), None);
    }
}
