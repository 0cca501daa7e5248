//! `list`: lists objects in a view, by type, label or status.

use crate::features::facts::rendering;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::version::FactKind;
use lukasa_model::view::ViewEcho;
use lukasa_model::{FactNo, Result};
use lukasa_store::VersionFields;
use lukasa_store::ledger::ViewSpec;
use responses::FactVersionOut;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct List;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Only objects of this type.
    #[serde(default, rename = "type")]
    pub type_name: Option<String>,
    /// Only objects with this label.
    #[serde(default)]
    pub label: Option<String>,
    /// Only objects with this status.
    #[serde(default)]
    pub status: Option<String>,
    #[serde(flatten)]
    pub view: ViewSpec,
    /// Continue after this position: `next` of the page before.
    #[serde(default)]
    pub after: Option<FactNo>,
    /// Maximum number of objects, up to 1,000.
    #[serde(default)]
    pub limit: Limit<50>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub objects: Vec<FactVersionOut>,
    /// Number of objects that match, listed or not.
    pub total: usize,
    pub truncated: bool,
    /// Position of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<FactNo>,
    pub view: ViewEcho,
}

impl Op for List {
    const META: Meta = Meta {
        name: "list",
        shown: ResponseView::By(rendering::listed),
        answer: &["objects.key", "objects.title", "objects.type", "objects.properties"],
        rest: &["GET /graph/objects"],
        summary: "List objects",
        description: "Lists objects visible in a view in the order they were first recorded. Internal objects \
                      (branches, releases, types) are listed only if `type` names their type.",
        verb: "list",
        positional: &["type"],
        examples: &["lukasa list", "lukasa list Service --label core --as-of release:1.0"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let ledger = engine.ledger(&context.scope);
        let view = ledger.view(&request.view)?;
        let registry = ledger.registry()?;
        let (mut objects, mut total, mut before, mut last) = (Vec::new(), 0, 0, None);
        for row in ledger.stream_view(&view, VersionFields::Content)?.only(FactKind::Object) {
            let row = row?;
            let by_type = match &request.type_name {
                Some(wanted) => registry.is_same_type(wanted, &row.thing.type_name, false),
                None => !row.is_system(),
            };
            if !by_type {
                continue;
            }
            let thing = FactVersionOut::object(&row)?;
            let fits = request.label.as_ref().is_none_or(|l| thing.content.labels.contains(l))
                && request.status.as_ref().is_none_or(|s| thing.content.status.as_ref() == Some(s));
            if fits {
                total += 1;
                if request.after.is_some_and(|after| row.thing.no <= after) {
                    before += 1;
                } else if objects.len() < request.limit.get() {
                    objects.push(thing);
                    last = Some(row.thing.no);
                }
            }
        }
        let truncated = total > before + objects.len();
        let mut summary = count(total, "object");
        if total > objects.len() {
            summary += &format!(", {} to {} of them", before + 1, before + objects.len());
        }
        let next = last.filter(|_| truncated);
        Ok(Response { summary, objects, total, truncated, next, view: view.echo() })
    }
}
