//! `restore`: writes the content of an earlier version again, also of a fact that has ended.

use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::WriteTarget;
use crate::writes::{WriteOut, commit};
use crate::{Context, Engine};
use lukasa_model::batch::{PutObject, PutRelationship};
use lukasa_model::{Error, ErrorCode, Result, Time, VersionId, Write};
use lukasa_store::ledger::HistoryEntry;
use schemars::JsonSchema;
use serde::Deserialize;

pub struct Restore;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// `Type:key`, a key alone, or an id.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The version to restore, for example 42.7; the last one with content when left out.
    #[serde(default)]
    pub version_id: Option<VersionId>,
    #[serde(flatten)]
    pub target: WriteTarget,
}

/// The version that the end of the fact overrides.
fn ended(history: &[HistoryEntry]) -> Option<&HistoryEntry> {
    let end = history.iter().rfind(|v| v.statement.absent && v.statement.period.to == Time::MAX)?;
    history.iter().rfind(|v| !v.statement.absent && end.statement.parents.contains(&v.statement.version))
}

impl Op for Restore {
    const META: Meta = Meta {
        name: "restore",
        shown: ResponseView::Summary,
        answer: &["tx", "written", "unchanged"],
        summary: "Bring back a deleted fact, or an earlier version",
        description: "Writes the content of an earlier version again, from now on. The history keeps both.",
        verb: "restore",
        names: &["ref"],
        positional: &["ref"],
        examples: &["lukasa restore Service:legacy", "lukasa restore Service:auth --version-id 3.0"],
        ..WRITE
    };
    type Request = Request;
    type Response = WriteOut;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<WriteOut> {
        let ledger = engine.ledger(&context.scope);
        let head = request.target.view();
        let view = ledger.view(&head)?;
        let reference = engine.reference(context, &head, &request.reference)?;
        let (thing, history) = ledger.history(&view, &reference, false)?;
        let with_content = |v: &&HistoryEntry| !v.statement.absent;
        let chosen = match request.version_id {
            Some(version) => history.iter().filter(with_content).find(|v| v.statement.version == version),
            // The version that was visible when the fact ended, which need not be the last one recorded.
            None => ended(&history).or_else(|| history.iter().rfind(with_content)),
        };
        let name = thing.name();
        let chosen = chosen.ok_or_else(|| {
            Error::not_found(
                ErrorCode::UnknownVersion,
                format!("`{name}` has no such version with content on `{}`", request.target.branch()),
            )
            .hint(format!("`lukasa history {name}` lists them"))
        })?;
        let content = chosen.statement.parsed()?;
        let write: Write = match &thing.ends {
            None => PutObject::of(&thing).with_content(content).into(),
            Some(ends) => {
                let mut reader = ledger.store().read(ledger.scope())?;
                let both = reader.facts_numbered(&[ends.src, ends.dst])?;
                let id = |no| both.iter().find(|t| t.no == no).map(|t| t.id).unwrap_or_default();
                PutRelationship::of(&thing, id(ends.src), id(ends.dst)).with_content(content).into()
            }
        };
        let batch = request.target.batch(context).write(write);
        commit(engine, context, batch, &format!("restore {name} as of version {}", chosen.statement.version))
    }
}
