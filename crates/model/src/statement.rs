//! Things and the statements about them, as every store keeps them.

use crate::content::Content;
use crate::error::{Error, Result};
use crate::id::{BranchNo, ThingNo, VersionId};
use crate::json::Hash;
use crate::json::rule::present_hash;
use crate::time::{Period, Time};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Object,
    Relationship,
}

/// The part of an object or relationship that never changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Thing {
    pub no: ThingNo,
    pub id: Uuid,
    pub type_name: Arc<str>,
    pub key: Option<Box<str>>,
    /// Present on relationships only.
    pub ends: Option<Ends>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    pub src: ThingNo,
    pub dst: ThingNo,
    pub discriminator: Box<str>,
}

impl Thing {
    pub fn kind(&self) -> Kind {
        if self.ends.is_some() { Kind::Relationship } else { Kind::Object }
    }

    /// `Type:key`, or the id of what has no key.
    pub fn name(&self) -> String {
        self.key.as_deref().map_or_else(|| self.id.to_string(), |key| format!("{}:{key}", self.type_name))
    }
}

/// A version: what is stated about one thing for one period. Never changed once recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub thing: ThingNo,
    pub branch: BranchNo,
    pub version: VersionId,
    pub recorded_at: Time,
    pub period: Period,
    /// Counts statements about the thing along the branch's lineage.
    pub number: u32,
    /// What it overrides; merge parents are kept as provenance.
    pub parents: Vec<VersionId>,
    /// Of the canonical content; `content::ABSENT` for a tombstone.
    pub hash: Hash,
    pub absent: bool,
    /// Canonical content; `None` when absent, or when it was not asked for.
    pub content: Option<Box<str>>,
    /// Stored change summary as JSON; `None` on first versions, or when it was not asked for.
    pub change: Option<Box<str>>,
}

impl Statement {
    /// The same without what may be large: contents, changes, parents.
    pub fn header(&self) -> Statement {
        Statement {
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

    /// The hash of its content under the present rule of canonical text, where the content is at hand. Equal contents have
    /// equal ones, whichever rule they were written under.
    pub fn present_hash(&self) -> Hash {
        present_hash(self.content.as_deref(), self.hash)
    }

    /// The content as a value; absence reads as empty.
    pub fn parsed(&self) -> Result<Content> {
        self.content.as_deref().map_or_else(|| Ok(Content::default()), Content::parse)
    }
}

/// Where a version came from in a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Source,
    Target,
    Base,
}

impl Role {
    /// As it is stored.
    pub fn number(self) -> i16 {
        self as i16
    }

    pub fn of(number: i16) -> Result<Role> {
        [Role::Source, Role::Target, Role::Base]
            .into_iter()
            .find(|role| role.number() == number)
            .ok_or_else(|| Error::internal(format!("no merge role has the number {number}")))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Provenance {
    pub thing: ThingNo,
    pub child: VersionId,
    pub parent: VersionId,
    pub role: Role,
}
