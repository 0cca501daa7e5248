//! `link`: writes a relationship between two objects.

use super::put::StatementFields;
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::WriteTarget;
use crate::writes::{WriteOut, commit, read_set};
use crate::{Context, Engine};
use lukasa_model::Result;
use lukasa_model::batch::PutRelationship;
use schemars::JsonSchema;
use serde::Deserialize;

pub struct LinkOp;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The source: `Type:key`, a key alone, or an id.
    pub src: String,
    /// Type of the relationship.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The destination.
    pub dst: String,
    /// Distinguishes parallel relationships of one type.
    #[serde(default)]
    pub discriminator: String,
    /// Strength, for ranking.
    #[serde(default)]
    pub weight: Option<f64>,
    /// Confidence, 0 to 1.
    #[serde(default)]
    pub confidence: Option<f64>,
    /// How the relationship is known, for example `import`.
    #[serde(default)]
    pub derivation: Option<String>,
    /// Role of the source.
    #[serde(default)]
    pub role_src: Option<String>,
    /// Role of the destination.
    #[serde(default)]
    pub role_dst: Option<String>,
    #[serde(flatten)]
    pub statement: StatementFields,
    #[serde(flatten)]
    pub target: WriteTarget,
}

impl Op for LinkOp {
    const META: Meta = Meta {
        name: "link",
        shown: ResponseView::Summary,
        answer: &["tx", "written", "unchanged"],
        rest: &["POST /graph/relationships"],
        summary: "Write a relationship between two objects",
        description: "Records the whole content of a relationship from now on, or for a period. Both ends must exist \
                      at some time in it. Type rules and multiplicity are checked.",
        verb: "link",
        names: &["src", "dst"],
        positional: &["src", "type", "dst"],
        examples: &["lukasa link checkout CALLS auth --confidence 0.9 --derivation import"],
        ..WRITE
    };
    type Request = Request;
    type Response = WriteOut;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<WriteOut> {
        let what = format!("link {} {} {}", request.src, request.type_name, request.dst);
        let mut statement = request.statement;
        read_set(&statement.set, &mut statement.properties)?;
        let on = request.target.view();
        let put = PutRelationship {
            type_name: request.type_name,
            src: engine.reference(context, &on, &request.src)?,
            dst: engine.reference(context, &on, &request.dst)?,
            discriminator: request.discriminator,
            properties: statement.properties,
            evidence: statement.evidence,
            role_src: request.role_src,
            role_dst: request.role_dst,
            weight: request.weight,
            confidence: request.confidence,
            derivation: request.derivation,
            valid_from: statement.valid_from,
            valid_to: statement.valid_to,
            only_this_period: statement.only_this_period,
            expected_version: statement.expected_version,
            ..PutRelationship::default()
        };
        commit(engine, context, request.target.batch(context).write(put), &what)
    }
}
