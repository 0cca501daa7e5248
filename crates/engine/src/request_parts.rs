//! Fields that several operations have in their requests, flattened into each; reads flatten `ViewSpec`.
//!
//! `cursor` is not among them, because operations differ in the cursors that they accept.

use crate::Context;
use lukasa_model::{Batch, Content};
use lukasa_store::ledger::ViewSpec;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Maximum number of results: `DEFAULT` when left out, and from 1 to `MOST`, as the schema states. Requests with
/// another number are refused (`Operation::read`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Limit<const DEFAULT: usize, const MOST: usize = 1_000>(usize);

impl<const DEFAULT: usize, const MOST: usize> Limit<DEFAULT, MOST> {
    /// The nearest limit that is allowed.
    pub fn of(limit: usize) -> Self {
        Limit(limit.clamp(1, MOST))
    }

    pub fn get(self) -> usize {
        self.0
    }
}

impl<const DEFAULT: usize, const MOST: usize> Default for Limit<DEFAULT, MOST> {
    fn default() -> Self {
        Limit(DEFAULT)
    }
}

impl<const DEFAULT: usize, const MOST: usize> JsonSchema for Limit<DEFAULT, MOST> {
    fn schema_name() -> Cow<'static, str> {
        format!("Limit{DEFAULT}Of{MOST}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "format": "uint", "minimum": 1, "maximum": MOST})
    }
}

/// Where a write goes, and why.
#[derive(Deserialize, JsonSchema)]
pub struct WriteTarget {
    /// The branch to write to.
    #[serde(default)]
    pub branch: Option<String>,
    /// Reason, for the log.
    #[serde(default)]
    pub reason: Option<String>,
}

impl WriteTarget {
    /// The name of the branch; `main` when left out.
    pub fn branch(&self) -> &str {
        self.branch.as_deref().unwrap_or("main")
    }

    /// The head of the branch, now: where names in the request are resolved.
    pub fn view(&self) -> ViewSpec {
        ViewSpec::on(self.branch())
    }

    /// An empty batch for the branch, written by the caller.
    pub fn batch(&self, context: &Context<'_>) -> Batch {
        Batch { header: context.header(self.reason.clone()), ..Batch::on(self.branch()) }
    }
}

/// The texts of a content, as `put` and `patch` take them.
#[derive(Deserialize, JsonSchema)]
pub struct ContentTexts {
    /// Title, for people.
    #[serde(default)]
    pub title: Option<String>,
    /// Subtype, which refines the type.
    #[serde(default)]
    pub subtype: Option<String>,
    /// Status, for example draft, active or done.
    #[serde(default)]
    pub status: Option<String>,
}

impl ContentTexts {
    /// Sets the texts that are given and keeps the others.
    pub fn set(&self, content: &mut Content) {
        let ContentTexts { title, subtype, status } = self;
        let fields = [&mut content.title, &mut content.subtype, &mut content.status];
        for (field, new) in fields.into_iter().zip([title, subtype, status]) {
            if new.is_some() {
                field.clone_from(new);
            }
        }
    }
}

/// The agent that acts, and its session.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct AgentRef {
    /// The agent that acts; the caller's when left out.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// The session in which it acts; the caller's when left out.
    #[serde(default)]
    pub session_id: Option<String>,
}
