//! `put`: writes the content of an object.

use super::delete::Delete;
use super::get::Get;
use super::history::History;
use super::patch::Patch;
use crate::registry::WRITE;
use crate::registry::{Meta, Op, OperationLink};
use crate::rendering::ResponseView;
use crate::request_parts::{ContentTexts, WriteTarget};
use crate::writes::{WriteOut, commit, read_set};
use crate::{Context, Engine};
use lukasa_model::batch::PutObject;
use lukasa_model::{Content, Result, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Runtime expression of OpenAPI for the id of the object in a response.
pub const WRITTEN: &str = "$response.body#/written/0/id";

pub struct Put;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Type of the object.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Key; an object without a key is identified by a generated id.
    #[serde(default)]
    pub key: Option<String>,
    #[serde(flatten)]
    pub texts: ContentTexts,
    /// Labels.
    #[serde(default)]
    pub label: BTreeSet<String>,
    #[serde(flatten)]
    pub statement: StatementFields,
    #[serde(flatten)]
    pub target: WriteTarget,
}

/// What `put` and `link` record in the same way, for objects and for relationships.
#[derive(Deserialize, JsonSchema)]
pub struct StatementFields {
    /// A property as name=value; the value may be JSON.
    #[serde(default)]
    pub set: Vec<String>,
    /// Properties as a JSON object.
    #[serde(default)]
    pub properties: Map<String, Value>,
    /// Sources of this fact, as JSON.
    #[serde(default)]
    pub evidence: Value,
    /// Start of validity; now when left out.
    #[serde(default)]
    pub valid_from: Option<Time>,
    /// End of validity; it is absent afterwards.
    #[serde(default)]
    pub valid_to: Option<Time>,
    /// Correct or backfill this period only.
    #[serde(default)]
    pub only_this_period: bool,
    /// Refuse unless the fact is at this version; 0: unless it is absent.
    #[serde(default)]
    pub expected_version: Option<u32>,
}

impl Op for Put {
    const META: Meta = Meta {
        name: "put",
        shown: ResponseView::Summary,
        default_tool: &["type", "key", "title", "properties", "branch"],
        answer: &["tx", "written", "unchanged"],
        rest: &["POST /graph/objects"],
        summary: "Write an object, or a new version of it",
        description: "Records the whole content of an object from now on, or for a period. Content that is equal to the \
                      current version writes nothing. To change some properties and keep the rest, use `patch`.",
        verb: "put",
        positional: &["type", "key"],
        examples: &[
            "lukasa put Service auth --title \"Auth service\" --set port=8080 --label core",
            "lukasa put Decision decision:42 --set outcome=accepted --valid-from 2026-01-31",
        ],
        links: &[
            OperationLink { to: Get::META.name, route: 1, with: &[("ref", WRITTEN)] },
            OperationLink { to: History::META.name, route: 1, with: &[("ref", WRITTEN)] },
            OperationLink { to: Patch::META.name, route: 1, with: &[("ref", WRITTEN)] },
            OperationLink { to: Delete::META.name, route: 1, with: &[("ref", WRITTEN)] },
        ],
        ..WRITE
    };
    type Request = Request;
    type Response = WriteOut;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<WriteOut> {
        let mut statement = request.statement;
        read_set(&statement.set, &mut statement.properties)?;
        let name =
            request.key.as_ref().map_or_else(|| request.type_name.clone(), |k| format!("{}:{k}", request.type_name));
        let put_without_key = request.key.is_none();
        let mut content = Content {
            labels: request.label,
            properties: statement.properties,
            evidence: statement.evidence,
            ..Content::default()
        };
        request.texts.set(&mut content);
        let put = PutObject {
            type_name: request.type_name,
            key: request.key,
            valid_from: statement.valid_from,
            valid_to: statement.valid_to,
            only_this_period: statement.only_this_period,
            expected_version: statement.expected_version,
            ..PutObject::default()
        };
        let batch = request.target.batch(context).write(put.with_content(content));
        let mut done = commit(engine, context, batch, &format!("put {name}"))?;
        if let (true, Some(written)) = (put_without_key, done.written.first()) {
            // Without a key, the id is its only name.
            done.summary += &format!(", id {}", written.id);
        }
        Ok(done)
    }
}
