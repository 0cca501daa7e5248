//! `list`: objects in a view, by type, label or status.

use super::{META, count, shape};
use crate::registry::{Meta, Op};
use crate::{Context, Engine};
use lukasa_model::statement::Kind;
use lukasa_model::view::ViewEcho;
use lukasa_model::{Error, Result};
use lukasa_store::Fields;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shape::ThingOut;

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
    /// Most objects to list, up to 1,000.
    #[serde(default = "limit")]
    pub limit: usize,
}

fn limit() -> usize {
    50
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub objects: Vec<ThingOut>,
    /// How many fit; more than `objects` when that was cut.
    pub total: usize,
    pub truncated: bool,
    pub view: ViewEcho,
}

impl Op for List {
    const META: Meta = Meta {
        name: "list",
        summary: "List objects",
        description: "Lists objects visible in a view in the order they were first stated. What Lukasa keeps for \
                      itself (branches, releases, types) is listed only when asked for by type.",
        verb: "list",
        positional: &["type"],
        examples: &["lukasa list", "lukasa list Service --label core --as-of release:1.0"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        if request.limit > 1_000 {
            return Err(Error::too_large("limit_too_large", format!("limit {} is over 1000", request.limit)));
        }
        let ledger = engine.ledger(&context.scope);
        let view = ledger.view(&request.view)?;
        let registry = ledger.registry()?;
        let wanted = request.type_name.as_deref().map(|t| registry.spelling(t, false));
        let (mut objects, mut total) = (Vec::new(), 0);
        for row in ledger.heads(&view, Fields::Content)?.only(Kind::Object) {
            let row = row?;
            let by_type = match wanted {
                Some(wanted) => row.thing.type_name.eq_ignore_ascii_case(wanted),
                None => !row.is_system(),
            };
            if !by_type {
                continue;
            }
            let thing = ThingOut::object(&row)?;
            let fits = request.label.as_ref().is_none_or(|l| thing.labels.contains(l))
                && request.status.as_ref().is_none_or(|s| thing.status.as_ref() == Some(s));
            if fits {
                total += 1;
                if objects.len() < request.limit {
                    objects.push(thing);
                }
            }
        }
        let truncated = total > objects.len();
        let mut summary = count(total, "object");
        if truncated {
            summary += &format!(", the first {} of them", objects.len());
        }
        Ok(Response { summary, objects, total, truncated, view: view.echo() })
    }
}
