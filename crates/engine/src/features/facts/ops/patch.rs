//! `patch`: changes some fields of an object or relationship and keeps the rest.

use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::{ContentTexts, WriteTarget};
use crate::writes::{WriteOut, commit, read_set};
use crate::{Context, Engine};
use lukasa_model::batch::{PutObject, PutRelationship};
use lukasa_model::{Error, ErrorCode, Result, Time, Write};
use lukasa_store::ledger::VisibleFact;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

pub struct Patch;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// `Type:key`, a key alone, or an id.
    #[serde(rename = "ref")]
    pub reference: String,
    #[serde(flatten)]
    pub texts: ContentTexts,
    /// Labels to add.
    #[serde(default)]
    pub label: BTreeSet<String>,
    /// Labels to remove.
    #[serde(default)]
    pub unlabel: BTreeSet<String>,
    /// A property to set, as name=value; the value may be JSON.
    #[serde(default)]
    pub set: Vec<String>,
    /// Properties to set, as a JSON object; null removes a property.
    #[serde(default)]
    pub properties: Map<String, Value>,
    /// Properties to remove.
    #[serde(default)]
    pub unset: Vec<String>,
    /// Confidence of a relationship, 0 to 1.
    #[serde(default)]
    pub confidence: Option<f64>,
    /// How a relationship is known, for example `import`.
    #[serde(default)]
    pub derivation: Option<String>,
    /// Refuse unless the current version has this number.
    #[serde(default)]
    pub expected_version: Option<u32>,
    #[serde(flatten)]
    pub target: WriteTarget,
}

/// Maximum attempts. Another client may write between reading and writing; then the change is applied to its version.
const TRIES: usize = 16;

impl Op for Patch {
    const META: Meta = Meta {
        name: "patch",
        shown: ResponseView::Summary,
        answer: &["tx", "written", "unchanged"],
        rest: &["PATCH /graph/objects/{ref}"],
        summary: "Change some fields and keep the rest",
        description: "Reads the visible version, changes the given fields and writes the result. Never overwrites what \
                      another client wrote meanwhile.",
        verb: "patch",
        names: &["ref"],
        positional: &["ref"],
        examples: &["lukasa patch Service:auth --set port=9090 --unset legacy --status active"],
        ..WRITE
    };
    type Request = Request;
    type Response = WriteOut;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<WriteOut> {
        let ledger = engine.ledger(&context.scope);
        let head = request.target.view();
        let reference = engine.reference(context, &head, &request.reference)?;
        let mut tries = TRIES;
        loop {
            let view = ledger.view(&head)?;
            let found = ledger.find(&view, &reference)?;
            let until = ledger.holds_until(&view, &found.thing)?;
            let batch = request.target.batch(context).write(patched(&found, until, &request)?);
            match commit(engine, context, batch, &format!("patch {}", found.thing.name())) {
                Err(e) if e.code == ErrorCode::VersionConflict && request.expected_version.is_none() && tries > 0 => {
                    tries -= 1
                }
                done => return done,
            }
        }
    }
}

/// Changes only the visible version: versions that begin later stay as they are.
fn patched(found: &VisibleFact, until: Time, request: &Request) -> Result<Write> {
    let valid_to = (until != Time::MAX).then_some(until);
    let only_this_period = valid_to.is_some();
    let mut content = found.statement.parsed()?;
    request.texts.set(&mut content);
    if request.derivation.is_some() {
        content.derivation.clone_from(&request.derivation);
    }
    content.labels.extend(request.label.iter().cloned());
    content.labels.retain(|label| !request.unlabel.contains(label));
    let mut set = request.properties.clone();
    read_set(&request.set, &mut set)?;
    for (name, value) in set {
        match value {
            Value::Null => drop(content.properties.remove(&name)),
            value => drop(content.properties.insert(name, value)),
        }
    }
    content.properties.retain(|name, _| !request.unset.contains(name));
    let expected_version = Some(request.expected_version.unwrap_or(found.statement.number));
    match &found.ends {
        None if request.confidence.is_some() || request.derivation.is_some() => {
            Err(Error::invalid(ErrorCode::NotARelationship, "only relationships have a confidence and a derivation"))
        }
        None => {
            let put = PutObject::of(&found.thing);
            Ok(PutObject { expected_version, valid_to, only_this_period, ..put }.with_content(content).into())
        }
        Some(ends) => {
            content.confidence = request.confidence.or(content.confidence);
            let put = PutRelationship::of(&found.thing, ends[0].0.id, ends[1].0.id);
            Ok(PutRelationship { expected_version, valid_to, only_this_period, ..put }.with_content(content).into())
        }
    }
}
