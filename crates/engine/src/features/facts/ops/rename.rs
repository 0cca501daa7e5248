//! `rename`: gives an object another key and keeps its old name as a reference to it.

use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::WriteTarget;
use crate::writes::{WriteOut, commit};
use crate::{Context, Engine};
use lukasa_model::batch::{End, PutObject, PutRelationship};
use lukasa_model::types::RENAMED_FROM;
use lukasa_model::{Error, ErrorCode, Reference, Result, Time};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct Rename;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// `Type:key`, a key alone, or an id.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The new key.
    pub to: String,
    /// Leave its relationships on the old object, where they are hidden. Lasting ones always stay there and show the
    /// new name.
    #[serde(default)]
    pub leave_links: bool,
    #[serde(flatten)]
    pub target: WriteTarget,
}

/// Maximum number of relationships that are moved; more are better moved by an import.
const LINKS: usize = 100_000;

impl Op for Rename {
    const META: Meta = Meta {
        name: "rename",
        shown: ResponseView::Summary,
        answer: &["tx", "written", "unchanged"],
        summary: "Give an object another key; the old name still finds it",
        description: "A key never changes, so a rename ends the object, writes a new one under the new key with a \
                      RENAMED_FROM relationship, and moves its relationships, all in one transaction. The old name \
                      is resolved to the new object.",
        verb: "rename",
        names: &["ref"],
        positional: &["ref", "to"],
        examples: &["lukasa rename Service:auth identity"],
        ..WRITE
    };
    type Request = Request;
    type Response = WriteOut;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<WriteOut> {
        let ledger = engine.ledger(&context.scope);
        let head = request.target.view();
        let view = ledger.view(&head)?;
        let old = ledger.find(&view, &engine.reference(context, &head, &request.reference)?)?;
        if old.ends.is_some() || old.thing.key.is_none() {
            return Err(Error::invalid(ErrorCode::NoKey, format!("`{}` has no key to rename", request.reference)));
        }
        let type_name = &*old.thing.type_name;
        let name = format!("{type_name}:{}", request.to);
        if ledger.find(&view, &Reference::exact(type_name, &request.to)).is_ok_and(|found| found.renamed_from.is_none())
        {
            return Err(
                Error::conflict(ErrorCode::KeyTaken, format!("`{name}` exists already")).hint("choose another key")
            );
        }
        let until = ledger.holds_until(&view, &old.thing)?;
        let valid_to = (until != Time::MAX).then_some(until);
        let new = Reference::exact(type_name, &request.to);
        let put = PutObject { expected_version: Some(0), valid_to, ..PutObject::new(type_name, &request.to) };
        let end = End { expected_version: Some(old.statement.number), ..End::new(old.thing.id) };
        let mut batch = request
            .target
            .batch(context)
            .write(put.with_content(old.statement.parsed()?))
            .write(end)
            .write(PutRelationship::new(RENAMED_FROM, new.clone(), old.thing.id));
        if !request.leave_links {
            let registry = ledger.registry()?;
            let (links, total) = ledger.links(&view, &old.thing, LINKS)?;
            if total > links.len() {
                return Err(Error::too_large(
                    ErrorCode::TooManyLinks,
                    format!("{total} relationships, {LINKS} can be moved at once"),
                ));
            }
            for link in links.iter().filter(|l| !registry.is_lasting(&l.thing.type_name)) {
                let other = if link.other.id == old.thing.id { new.clone() } else { Reference::Id(link.other.id) };
                let (src, dst) = match link.side {
                    lukasa_model::plan::Side::Src => (new.clone(), other),
                    lukasa_model::plan::Side::Dst => (other, new.clone()),
                };
                batch = batch
                    .write(End { expected_version: Some(link.statement.number), ..End::new(link.thing.id) })
                    .write(PutRelationship::of(&link.thing, src, dst).with_content(link.statement.parsed()?));
            }
        }
        commit(engine, context, batch, &format!("rename {} to {}", old.thing.name(), request.to))
    }
}
