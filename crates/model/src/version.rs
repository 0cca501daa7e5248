//! Facts and their versions, as every store keeps them.

use crate::content::Content;
use crate::error::{Error, Result};
use crate::id::{BranchNo, FactNo, VersionId};
use crate::json::Hash;
use crate::json::rule::present_hash;
use crate::time::{Period, Time};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    Object,
    Relationship,
}

/// The immutable identity of an object or relationship.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// Its number within the project.
    pub no: FactNo,
    /// Derived from the project's namespace, the type and the key or ends, unless it is an object without a key.
    pub id: Uuid,
    /// As it was declared, or else written, when the fact was first recorded.
    pub type_name: Arc<str>,
    /// `None` for relationships, and for objects that are known only by their id.
    pub key: Option<Box<str>>,
    /// For relationships only.
    pub ends: Option<RelationshipEnds>,
}

/// The ends of a relationship, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationshipEnds {
    /// The number of the source object.
    pub src: FactNo,
    /// The number of the destination object.
    pub dst: FactNo,
    /// Distinguishes parallel relationships of one type between the same objects; usually empty.
    pub discriminator: Box<str>,
}

impl Fact {
    /// Returns whether this is an object or a relationship.
    pub fn kind(&self) -> FactKind {
        if self.ends.is_some() { FactKind::Relationship } else { FactKind::Object }
    }

    /// Returns `Type:key`, or the id if there is no key.
    pub fn name(&self) -> String {
        self.key.as_deref().map_or_else(|| self.id.to_string(), |key| format!("{}:{key}", self.type_name))
    }
}

/// A version: what is recorded about one fact for one period. Never changed once recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// The number of the fact.
    pub thing: FactNo,
    /// The branch it was recorded on; `PROJECT_WIDE` if its type is branchless.
    pub branch: BranchNo,
    pub version: VersionId,
    /// The recording time of its transaction.
    pub recorded_at: Time,
    /// The valid time that it is about.
    pub period: Period,
    /// Counts the versions of the fact along the branch's lineage.
    pub number: u32,
    /// The versions it overrides; merge parents are kept as provenance.
    pub parents: Vec<VersionId>,
    /// Hash of the canonical content; `content::ABSENT` for a tombstone.
    pub hash: Hash,
    /// Whether it records that the fact does not exist during the period.
    pub absent: bool,
    /// Canonical content; `None` when absent, or when it was not loaded.
    pub content: Option<Box<str>>,
    /// Stored change summary as JSON; `None` on first versions, or when it was not loaded.
    pub change: Option<Box<str>>,
}

impl Version {
    /// Returns a copy without the parts that may be large: content, change, parents.
    pub fn header(&self) -> Version {
        Version {
            parents: vec![],
            content: None,
            change: None,
            thing: self.thing,
            branch: self.branch,
            version: self.version,
            recorded_at: self.recorded_at,
            period: self.period,
            number: self.number,
            hash: self.hash,
            absent: self.absent,
        }
    }

    /// The hash of the content under the current rule of canonical text, if the content is loaded. Equal contents have
    /// equal hashes, whichever rule they were written under.
    pub fn present_hash(&self) -> Hash {
        present_hash(self.content.as_deref(), self.hash)
    }

    /// Returns the parsed content; empty for absence.
    pub fn parsed(&self) -> Result<Content> {
        self.content.as_deref().map_or_else(|| Ok(Content::default()), Content::parse)
    }
}

/// The role of a parent version in a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeRole {
    Source,
    Target,
    Base,
}

impl MergeRole {
    /// The number under which the role is stored.
    pub fn number(self) -> i16 {
        self as i16
    }

    /// Returns the role with this number. Fails if there is none.
    pub fn of(number: i16) -> Result<MergeRole> {
        [MergeRole::Source, MergeRole::Target, MergeRole::Base]
            .into_iter()
            .find(|role| role.number() == number)
            .ok_or_else(|| Error::internal(format!("no merge role has the number {number}")))
    }
}

/// Records that a merge created a version from another version of the same fact, or found both equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Provenance {
    /// The number of the fact.
    pub thing: FactNo,
    /// The version that the merge created, or found on the target.
    pub child: VersionId,
    /// The version of the source, the target or the base, as `role` says.
    pub parent: VersionId,
    pub role: MergeRole,
}
