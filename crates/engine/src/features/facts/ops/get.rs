//! `get`: returns one object or relationship of a view with its relationships.

use crate::features::facts::rendering;
use crate::registry::META;
use crate::registry::{Meta, Op, Resource};
use crate::rendering::ResponseView;
use crate::responses;
use crate::telemetry::metrics;
use crate::{Context, Engine};
use lukasa_model::Result;
use lukasa_model::plan::Side;
use lukasa_model::view::ViewEcho;
use lukasa_store::ledger::ViewSpec;
use responses::{EndOut, FactVersionOut};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct Get;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// `Type:key`, a key alone, or an id.
    #[serde(rename = "ref")]
    pub reference: String,
    #[serde(flatten)]
    pub view: ViewSpec,
    /// Maximum number of relationships listed.
    #[serde(default = "links")]
    pub links: usize,
}

fn links() -> usize {
    50
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub thing: FactVersionOut,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkOut>,
    /// Number of all relationships, listed or not.
    pub links_total: usize,
    /// The former name that the request used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    pub view: ViewEcho,
}

#[derive(Serialize, JsonSchema)]
pub struct LinkOut {
    pub id: uuid::Uuid,
    #[serde(rename = "type")]
    pub type_name: String,
    /// `out`: the object is the source.
    pub direction: String,
    pub other: EndOut,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derivation: Option<String>,
}

impl Op for Get {
    const META: Meta = Meta {
        name: "get",
        shown: ResponseView::By(rendering::get),
        answer: &[
            "thing.title",
            "thing.properties",
            "thing.key",
            "thing.type",
            "thing.src.key",
            "thing.dst.key",
            "thing.status",
            "links.type",
            "links.other.key",
            "links.direction",
            "links_total",
        ],
        rest: &["GET /graph/objects/{ref}", "GET /graph/branches/{branch}/objects/{ref}"],
        summary: "Show one object or relationship",
        description: "Shows the fact with a name in a view, and its relationships. Follows renames. \
                      `as_of` and `known_at` show the past; `branch` shows another branch.",
        verb: "get",
        names: &["ref"],
        positional: &["ref"],
        examples: &[
            "lukasa get Service:auth",
            "lukasa get auth --as-of 2026-01-31",
            "lukasa get auth --as-of tx:42 --branch dev",
        ],
        resource: Some(Resource {
            path: "object/{ref}",
            title: "Object",
            about: "An object by `Type:key`",
            field: "ref",
        }),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let ledger = engine.ledger(&context.scope);
        let view = ledger.view(&request.view)?;
        let found = ledger.find(&view, &engine.reference(context, &request.view, &request.reference)?)?;
        if let Some(above) = view.lineage.entries().iter().position(|(branch, _)| *branch == found.statement.branch) {
            metrics().branch_fallback_depth.record(above as f64);
        }
        let (links, links_total) = match found.ends {
            Some(_) => (vec![], 0),
            None => ledger.links(&view, &found.thing, request.links)?,
        };
        let links: Vec<_> = links
            .iter()
            .map(|link| {
                let content = link.statement.parsed()?;
                Ok(LinkOut {
                    id: link.thing.id,
                    type_name: link.thing.type_name.to_string(),
                    direction: if link.side == Side::Src { "out" } else { "in" }.into(),
                    other: EndOut::of(&link.other, link.other_ended, link.other_renamed_to.as_ref()),
                    confidence: content.confidence,
                    derivation: content.derivation,
                })
            })
            .collect::<Result<_>>()?;
        let thing = FactVersionOut::found(&found)?;
        let name = match &found.ends {
            Some(ends) => format!("{} —{}→ {}", ends[0].0.name(), found.thing.type_name, ends[1].0.name()),
            None => found.thing.name(),
        };
        let summary = match &thing.content.title {
            Some(title) => format!("{name}, {title}: version {}", thing.version),
            None => format!("{name}: version {}", thing.version),
        };
        Ok(Response { summary, thing, links, links_total, renamed_from: found.renamed_from, view: view.echo() })
    }
}
