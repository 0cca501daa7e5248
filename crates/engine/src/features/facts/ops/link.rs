//! `link`: writes a relationship between two objects.

use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::writes::{WriteOut, commit, read_set};
use crate::{Context, Engine};
use lukasa_model::batch::PutRelationship;
use lukasa_model::{Batch, Result, Time};
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

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
    /// A property as name=value; the value may be JSON.
    #[serde(default)]
    pub set: Vec<String>,
    /// Properties as a JSON object.
    #[serde(default)]
    pub properties: Map<String, Value>,
    /// Sources of this fact, as JSON.
    #[serde(default)]
    pub evidence: Value,
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
    /// Start of validity; now when left out.
    #[serde(default)]
    pub valid_from: Option<Time>,
    /// End of validity; it is absent afterwards.
    #[serde(default)]
    pub valid_to: Option<Time>,
    /// Correct or backfill this period only.
    #[serde(default)]
    pub only_this_period: bool,
    /// Refuse unless the relationship is at this version; 0: unless it is absent.
    #[serde(default)]
    pub expected_version: Option<u32>,
    /// The branch to write to.
    #[serde(default)]
    pub branch: Option<String>,
    /// Reason, for the log.
    #[serde(default)]
    pub reason: Option<String>,
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
        let mut properties = request.properties;
        read_set(&request.set, &mut properties)?;
        let branch = request.branch.unwrap_or_else(|| "main".into());
        let on = ViewSpec::on(&branch);
        let put = PutRelationship {
            type_name: request.type_name,
            src: engine.reference(context, &on, &request.src)?,
            dst: engine.reference(context, &on, &request.dst)?,
            discriminator: request.discriminator,
            properties,
            evidence: request.evidence,
            role_src: request.role_src,
            role_dst: request.role_dst,
            weight: request.weight,
            confidence: request.confidence,
            derivation: request.derivation,
            valid_from: request.valid_from,
            valid_to: request.valid_to,
            only_this_period: request.only_this_period,
            expected_version: request.expected_version,
            ..PutRelationship::default()
        };
        let batch = Batch { header: context.header(request.reason), ..Batch::on(&branch) }.write(put);
        commit(engine, context, batch, &what)
    }
}
