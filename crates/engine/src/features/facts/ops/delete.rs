//! `delete`: ends the validity of an object or relationship; its history remains.

use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::WriteTarget;
use crate::writes::{WriteOut, commit};
use crate::{Context, Engine};
use lukasa_model::batch::End;
use lukasa_model::{Result, Time};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct Delete;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// `Type:key`, a key alone, or an id.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Start of the absence; now when left out.
    #[serde(default)]
    pub from: Option<Time>,
    /// End of the absence; unlimited when left out.
    #[serde(default)]
    pub to: Option<Time>,
    /// Refuse unless the current version has this number.
    #[serde(default)]
    pub expected_version: Option<u32>,
    #[serde(flatten)]
    pub target: WriteTarget,
}

impl Op for Delete {
    const META: Meta = Meta {
        name: "delete",
        shown: ResponseView::Summary,
        answer: &["tx", "written", "unchanged"],
        destructive: true,
        rest: &["DELETE /graph/objects/{ref}"],
        summary: "End an object or relationship; its past stays",
        description: "Records that a fact is absent from now on, or from another time. Nothing is removed: views of \
                      earlier times still show it, and `restore` brings it back.",
        verb: "delete",
        names: &["ref"],
        positional: &["ref"],
        examples: &["lukasa delete Service:legacy", "lukasa delete Service:legacy --from 2026-01-31"],
        ..WRITE
    };
    type Request = Request;
    type Response = WriteOut;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<WriteOut> {
        let end = End {
            reference: engine.reference(context, &request.target.view(), &request.reference)?,
            from: request.from,
            to: request.to,
            expected_version: request.expected_version,
        };
        let batch = request.target.batch(context).write(end);
        commit(engine, context, batch, &format!("delete {}", request.reference))
    }
}
