//! The content of a fact, and its canonical text.

use crate::ErrorCode;
use crate::error::{Error, Result};
use crate::id::check_text;
use crate::json::{self, Hash, write_f64, write_map, write_string};
use crate::limits;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Everything recorded about an object or a relationship besides its identity (type, key, ends). The last five fields
/// are for relationships only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Content {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub properties: Map<String, Value>,
    /// Where this is known from, in any form.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub evidence: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_src: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_dst: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// How likely it is right, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// How it is known: compiler, import, type, unique_name, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derivation: Option<String>,
}

/// The text fields of objects and of relationships.
pub const TEXTS: [&str; 3] = ["title", "subtype", "status"];
/// The text fields of relationships only.
pub const RELATIONSHIP_TEXTS: [&str; 3] = ["derivation", "role_src", "role_dst"];

/// The hash of absence.
pub const ABSENT: Hash = Hash([0; 32]);

impl Content {
    /// The fields named in [`TEXTS`], then those named in [`RELATIONSHIP_TEXTS`].
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, &Option<String>)> {
        let fields = [&self.title, &self.subtype, &self.status, &self.derivation, &self.role_src, &self.role_dst];
        TEXTS.into_iter().chain(RELATIONSHIP_TEXTS).zip(fields)
    }

    /// As [`Content::texts`], to set them.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut Option<String>)> {
        let Content { title, subtype, status, derivation, role_src, role_dst, .. } = self;
        TEXTS.into_iter().chain(RELATIONSHIP_TEXTS).zip([title, subtype, status, derivation, role_src, role_dst])
    }

    /// Canonical JSON: fields in alphabetical order, empty ones left out.
    pub fn canonical(&self) -> String {
        let mut text = String::with_capacity(128);
        self.write_canonical(&mut text);
        text
    }

    /// Writes the canonical JSON into `text`, which must be empty.
    pub fn write_canonical(&self, text: &mut String) {
        let mut fields = Fields(text);
        if let Some(confidence) = self.confidence {
            write_f64(confidence, fields.next("confidence"));
        }
        fields.text("derivation", &self.derivation);
        if !self.evidence.is_null() {
            json::write_canonical(&self.evidence, fields.next("evidence"));
        }
        if !self.labels.is_empty() {
            let out = fields.next("labels");
            for (i, label) in self.labels.iter().enumerate() {
                out.push(if i == 0 { '[' } else { ',' });
                write_string(label, out);
            }
            out.push(']');
        }
        if !self.properties.is_empty() {
            write_map(&self.properties, fields.next("properties"));
        }
        fields.text("role_dst", &self.role_dst);
        fields.text("role_src", &self.role_src);
        fields.text("status", &self.status);
        fields.text("subtype", &self.subtype);
        fields.text("title", &self.title);
        if let Some(weight) = self.weight {
            write_f64(weight, fields.next("weight"));
        }
        fields.finish();
    }

    /// Parses stored canonical text.
    pub fn parse(text: &str) -> Result<Content> {
        serde_json::from_str(text)
            .map_err(|e| Error::internal(format!("stored content is not readable: {e}")).hint("run `lukasa verify`"))
    }

    /// Rejects content that is over a limit or that a store cannot keep.
    pub fn check(&self, canonical_bytes: usize) -> Result<()> {
        for (name, text) in self.texts() {
            let most = if name == "title" { limits::TITLE_BYTES } else { limits::NAME_BYTES };
            text.as_ref().map_or(Ok(()), |text| check_text(name, text, most))?;
        }
        if self.labels.len() > limits::LABELS {
            return Err(Error::too_large(
                ErrorCode::TooManyLabels,
                format!("{} labels, {} are allowed", self.labels.len(), limits::LABELS),
            ));
        }
        self.labels.iter().try_for_each(|label| check_text("label", label, limits::LABEL_BYTES))?;
        if canonical_bytes > limits::PROPERTIES_BYTES {
            return Err(Error::too_large(
                ErrorCode::PropertiesTooLarge,
                format!("the content has {canonical_bytes} bytes, {} are allowed", limits::PROPERTIES_BYTES),
            )
            .hint("keep large text in a document of its own and refer to it"));
        }
        self.properties.iter().try_for_each(|(key, value)| {
            if key.contains('\0') {
                return Err(Error::invalid(ErrorCode::NulByte, "a property name contains a NUL character"));
            }
            json::check(value).map_err(|e| e.at(format_args!("property `{key}`")))
        })?;
        json::check(&self.evidence).map_err(|e| e.at("evidence"))?;
        for (what, number) in [("weight", self.weight), ("confidence", self.confidence)] {
            if number.is_some_and(|n| !n.is_finite()) {
                return Err(Error::invalid(ErrorCode::InvalidNumber, format!("the {what} is not a finite number")));
            }
        }
        if self.confidence.is_some_and(|c| !(0.0..=1.0).contains(&c)) {
            return Err(Error::invalid(ErrorCode::InvalidConfidence, "the confidence is outside 0 to 1"));
        }
        Ok(())
    }
}

/// Writes a JSON object field by field.
struct Fields<'t>(&'t mut String);

impl Fields<'_> {
    /// Writes the name of the next field; the caller appends its value.
    fn next(&mut self, name: &str) -> &mut String {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        write_string(name, self.0);
        self.0.push(':');
        self.0
    }

    fn text(&mut self, name: &str, value: &Option<String>) {
        if let Some(value) = value {
            write_string(value, self.next(name));
        }
    }

    fn finish(self) {
        self.0.push_str(if self.0.is_empty() { "{}" } else { "}" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn canonical_equals_the_generic_writer_and_reads_back() {
        let full = Content {
            title: Some("T \"q\"".into()),
            subtype: Some("s".into()),
            status: Some("open".into()),
            labels: ["b".to_string(), "a".to_string()].into(),
            properties: json!({"z": 1.0, "a": {"y": [1, null]}}).as_object().cloned().unwrap(),
            evidence: json!([{"doc": 1}]),
            role_src: Some("x".into()),
            role_dst: Some("y".into()),
            weight: Some(2.0),
            confidence: Some(0.25),
            derivation: Some("import".into()),
        };
        for content in [full, Content::default(), Content { weight: Some(1.5), ..Content::default() }] {
            let text = content.canonical();
            assert_eq!(text, json::canonical(&serde_json::to_value(&content).unwrap()));
            assert_eq!(Content::parse(&text).unwrap().canonical(), text);
        }
    }

    #[test]
    fn text_fields_have_the_names_they_are_written_under() {
        let mut content = Content::default();
        content.texts_mut().for_each(|(name, text)| *text = Some(name.into()));
        let written = serde_json::to_value(&content).unwrap();
        assert_eq!(written.as_object().unwrap().len(), TEXTS.len() + RELATIONSHIP_TEXTS.len());
        assert!(written.as_object().unwrap().iter().all(|(name, text)| name == text), "{written}");
        assert!(content.texts().all(|(name, text)| text.as_deref() == Some(name)));
    }

    #[test]
    fn contents_over_a_limit_are_rejected() {
        let check = |content: Content| content.check(content.canonical().len()).unwrap_err().code;
        let with = |value: Value| Content {
            properties: [("p".to_string(), value)].into_iter().collect(),
            ..Default::default()
        };
        assert_eq!(check(with(json!("x".repeat(limits::PROPERTIES_BYTES)))), ErrorCode::PropertiesTooLarge);
        assert_eq!(check(with(json!("a\0"))), ErrorCode::NulByte);
        assert_eq!(check(Content { title: Some("\0".into()), ..Default::default() }), ErrorCode::NulByte);
        assert_eq!(check(Content { confidence: Some(1.5), ..Default::default() }), ErrorCode::InvalidConfidence);
        assert_eq!(check(Content { weight: Some(f64::NAN), ..Default::default() }), ErrorCode::InvalidNumber);
    }
}
