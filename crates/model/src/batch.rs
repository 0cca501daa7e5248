//! The only way to write: a batch of writes with preconditions, committed all or nothing.

use crate::content::Content;
use crate::time::Time;
use crate::transaction::Header;
use crate::version::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;
use uuid::Uuid;

/// Writes that are committed together or not at all.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The name of the branch to write to.
    pub branch: String,
    pub header: Header,
    pub writes: Vec<Write>,
    pub preconditions: Vec<Precondition>,
    /// Branches, releases, tags and types are objects too, but only their dedicated operations may write them.
    pub system: bool,
}

impl Batch {
    /// Creates an empty batch for a branch.
    pub fn on(branch: &str) -> Batch {
        Batch { branch: branch.into(), ..Batch::default() }
    }

    /// Appends a write.
    #[must_use]
    pub fn write(mut self, write: impl Into<Write>) -> Batch {
        self.writes.push(write.into());
        self
    }
}

/// One line of an import, one element of a bulk write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Write {
    Object(PutObject),
    Relationship(PutRelationship),
    End(End),
}

impl Write {
    /// Returns the content of this write, without identity and period.
    pub fn content(&self) -> Content {
        match self {
            Write::Object(put) => put.content(),
            Write::Relationship(put) => put.content(),
            Write::End(_) => Content::default(),
        }
    }

    /// Moves the content out of this write instead of copying it.
    pub fn take_content(&mut self) -> Content {
        match self {
            Write::Object(put) => put.take_content(),
            Write::Relationship(put) => put.take_content(),
            Write::End(_) => Content::default(),
        }
    }
}

impl From<PutObject> for Write {
    fn from(put: PutObject) -> Write {
        Write::Object(put)
    }
}

impl From<PutRelationship> for Write {
    fn from(put: PutRelationship) -> Write {
        Write::Relationship(put)
    }
}

impl From<End> for Write {
    fn from(end: End) -> Write {
        Write::End(end)
    }
}

/// Records the whole content of an object for a period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PutObject {
    #[serde(rename = "type")]
    pub type_name: String,
    /// With a key, the id is derived from project, type and key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Only for objects without a key; generated when omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
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
    #[serde(skip_serializing_if = "Value::is_null")]
    pub evidence: Value,
    /// Start of the period; defaults to the batch's time.
    #[serde(skip_serializing_if = "Option::is_none", alias = "validFrom")]
    pub valid_from: Option<Time>,
    /// End of the period. The object is absent afterwards, unless `only_this_period`.
    #[serde(skip_serializing_if = "Option::is_none", alias = "validTo")]
    pub valid_to: Option<Time>,
    /// A correction or backfill: changes nothing outside the period.
    #[serde(skip_serializing_if = "std::ops::Not::not", alias = "onlyThisPeriod")]
    pub only_this_period: bool,
    /// The version number that must be visible now; 0 when the object must be absent.
    #[serde(skip_serializing_if = "Option::is_none", alias = "expectedVersion")]
    pub expected_version: Option<u32>,
}

impl PutObject {
    /// Creates a write of an object without content, valid from the time of the batch on.
    pub fn new(type_name: &str, key: &str) -> PutObject {
        PutObject { type_name: type_name.into(), key: Some(key.into()), ..PutObject::default() }
    }

    /// Creates a write of an object that exists, without content.
    pub fn of(object: &Fact) -> PutObject {
        let key = object.key.as_deref().map(str::to_owned);
        let id = key.is_none().then_some(object.id);
        PutObject { type_name: object.type_name.to_string(), key, id, ..PutObject::default() }
    }

    #[must_use]
    pub fn title(mut self, title: &str) -> PutObject {
        self.title = Some(title.into());
        self
    }

    /// Sets one property, replacing an earlier value.
    #[must_use]
    pub fn property(mut self, name: &str, value: impl Into<Value>) -> PutObject {
        self.properties.insert(name.into(), value.into());
        self
    }

    /// Returns a copy of the content, without identity and period.
    pub fn content(&self) -> Content {
        self.clone().take_content()
    }

    /// Moves the content out of this write instead of copying it.
    pub fn take_content(&mut self) -> Content {
        Content {
            title: self.title.take(),
            subtype: self.subtype.take(),
            status: self.status.take(),
            labels: std::mem::take(&mut self.labels),
            properties: std::mem::take(&mut self.properties),
            evidence: self.evidence.take(),
            ..Content::default()
        }
    }

    /// Replaces the whole content. Fields that only relationships have are ignored.
    #[must_use]
    pub fn with_content(mut self, content: Content) -> PutObject {
        self.title = content.title;
        self.subtype = content.subtype;
        self.status = content.status;
        self.labels = content.labels;
        self.properties = content.properties;
        self.evidence = content.evidence;
        self
    }
}

/// Records the whole content of a relationship for a period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PutRelationship {
    #[serde(rename = "type")]
    pub type_name: String,
    pub src: Reference,
    pub dst: Reference,
    /// Distinguishes parallel relationships of one type; empty unless there are several.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub discriminator: String,
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
    #[serde(skip_serializing_if = "Value::is_null")]
    pub evidence: Value,
    #[serde(skip_serializing_if = "Option::is_none", alias = "roleSrc")]
    pub role_src: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", alias = "roleDst")]
    pub role_dst: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derivation: Option<String>,
    /// Start of the period; defaults to the batch's time.
    #[serde(skip_serializing_if = "Option::is_none", alias = "validFrom")]
    pub valid_from: Option<Time>,
    /// End of the period. The relationship is absent afterwards, unless `only_this_period`.
    #[serde(skip_serializing_if = "Option::is_none", alias = "validTo")]
    pub valid_to: Option<Time>,
    /// A correction or backfill: changes nothing outside the period.
    #[serde(skip_serializing_if = "std::ops::Not::not", alias = "onlyThisPeriod")]
    pub only_this_period: bool,
    #[serde(skip_serializing_if = "Option::is_none", alias = "expectedVersion")]
    pub expected_version: Option<u32>,
}

impl PutRelationship {
    /// Creates a write of a relationship without content, valid from the time of the batch on.
    pub fn new(type_name: &str, src: impl Into<Reference>, dst: impl Into<Reference>) -> PutRelationship {
        PutRelationship { type_name: type_name.into(), src: src.into(), dst: dst.into(), ..PutRelationship::default() }
    }

    /// Creates a write of a relationship that exists, without content. Its ends may be named anew.
    pub fn of(relationship: &Fact, src: impl Into<Reference>, dst: impl Into<Reference>) -> PutRelationship {
        let discriminator = relationship.ends.as_ref().map(|ends| ends.discriminator.to_string()).unwrap_or_default();
        PutRelationship { discriminator, ..PutRelationship::new(&relationship.type_name, src, dst) }
    }

    /// Returns a copy of the content, without identity and period.
    pub fn content(&self) -> Content {
        self.clone().take_content()
    }

    /// Moves the content out of this write instead of copying it.
    pub fn take_content(&mut self) -> Content {
        Content {
            title: self.title.take(),
            subtype: self.subtype.take(),
            status: self.status.take(),
            labels: std::mem::take(&mut self.labels),
            properties: std::mem::take(&mut self.properties),
            evidence: self.evidence.take(),
            role_src: self.role_src.take(),
            role_dst: self.role_dst.take(),
            weight: self.weight,
            confidence: self.confidence,
            derivation: self.derivation.take(),
        }
    }

    /// Replaces the whole content.
    #[must_use]
    pub fn with_content(mut self, content: Content) -> PutRelationship {
        self.title = content.title;
        self.subtype = content.subtype;
        self.status = content.status;
        self.labels = content.labels;
        self.properties = content.properties;
        self.evidence = content.evidence;
        self.role_src = content.role_src;
        self.role_dst = content.role_dst;
        self.weight = content.weight;
        self.confidence = content.confidence;
        self.derivation = content.derivation;
        self
    }
}

/// Records that a fact is absent from a time on, now by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct End {
    #[serde(rename = "ref")]
    pub reference: Reference,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// The fact is absent only until this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none", alias = "expectedVersion")]
    pub expected_version: Option<u32>,
}

impl End {
    /// Ends a fact at the time of the batch.
    pub fn new(reference: impl Into<Reference>) -> End {
        End { reference: reference.into(), ..End::default() }
    }
}

/// How a caller names a fact: a UUID, `Type:key`, or a key alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Reference {
    Id(Uuid),
    Text(String),
    Exact {
        #[serde(rename = "type")]
        type_name: String,
        key: String,
    },
}

impl Default for Reference {
    fn default() -> Self {
        Reference::Text(String::new())
    }
}

impl Reference {
    /// Names an object by type and key, without ambiguity.
    pub fn exact(type_name: &str, key: &str) -> Reference {
        Reference::Exact { type_name: type_name.into(), key: key.into() }
    }

    /// Returns type and key if the reference has the form `Type:key`.
    pub fn typed(&self) -> Option<(&str, &str)> {
        match self {
            Reference::Exact { type_name, key } => Some((type_name, key)),
            Reference::Text(text) => {
                let (type_name, key) = text.split_once(':')?;
                let fine = !key.is_empty() && !key.starts_with(':') && crate::id::check_type_name(type_name).is_ok();
                fine.then_some((type_name, key))
            }
            Reference::Id(_) => None,
        }
    }
}

impl From<&str> for Reference {
    fn from(text: &str) -> Self {
        Uuid::try_parse(text).map_or_else(|_| Reference::Text(text.into()), Reference::Id)
    }
}

impl From<Uuid> for Reference {
    fn from(id: Uuid) -> Self {
        Reference::Id(id)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Id(id) => write!(f, "{id}"),
            Reference::Text(text) => f.write_str(text),
            Reference::Exact { type_name, key } => write!(f, "{type_name}:{key}"),
        }
    }
}

/// A condition that must hold at the head of the branch for the batch to commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Precondition {
    /// The visible version of the fact has this number; 0 means that no version is visible.
    Version {
        #[serde(rename = "ref")]
        reference: Reference,
        expected_version: u32,
    },
    /// No fact is visible under this name.
    Absent {
        #[serde(rename = "ref")]
        reference: Reference,
    },
    /// No other agent has claimed this file, function, task or feature, anything that contains it or anything within
    /// it.
    Unclaimed {
        #[serde(rename = "ref")]
        reference: Reference,
    },
}
