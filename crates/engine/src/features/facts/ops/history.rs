//! `history`: lists every version of a fact, with what it changed.

use crate::features::facts::rendering;
use crate::registry::META;
use crate::registry::{Meta, Op, Resource};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::change::ChangeSummary;
use lukasa_model::version::MergeRole;
use lukasa_model::view::ViewEcho;
use lukasa_model::{Error, Result, Time, VersionId};
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct History;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// `Type:key`, a key alone, or an id; also of a fact that has ended.
    #[serde(rename = "ref")]
    pub reference: String,
    #[serde(flatten)]
    pub view: ViewSpec,
    /// Include versions on branches that are not ancestors of this one.
    #[serde(default)]
    pub all_branches: bool,
    /// Include the values that changed, not only their paths.
    #[serde(default)]
    pub changes: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub id: uuid::Uuid,
    #[serde(rename = "type")]
    pub type_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Oldest first.
    pub versions: Vec<VersionOut>,
    pub view: ViewEcho,
}

#[derive(Serialize, JsonSchema)]
pub struct VersionOut {
    pub version: u32,
    pub version_id: VersionId,
    pub branch: String,
    pub recorded_at: Time,
    /// When later versions had replaced it everywhere on its branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<Time>,
    /// The version records that the fact is absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub absent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Paths that differ from the version that it overrides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_summary: Option<ChangeSummary>,
    pub parents: Vec<VersionId>,
    /// The version that a merge took it from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merged_from: Vec<MergedFrom>,
}

#[derive(Serialize, JsonSchema)]
pub struct MergedFrom {
    pub role: MergeRole,
    pub version_id: VersionId,
}

impl Op for History {
    const META: Meta = Meta {
        name: "history",
        shown: ResponseView::By(rendering::versions),
        answer: &[
            "versions.version",
            "versions.recorded_at",
            "versions.title",
            "versions.changed",
            "versions.absent",
            "versions.branch",
            "key",
            "type",
        ],
        rest: &["GET /graph/objects/{ref}/versions"],
        summary: "Show every version of a fact and what it changed",
        description: "Lists the versions along the line of a branch, oldest first, with valid time, recording, what \
                      changed, and where a merge took it from.",
        verb: "history",
        names: &["ref"],
        positional: &["ref"],
        examples: &["lukasa history Service:auth", "lukasa history Service:auth --changes --json"],
        resource: Some(Resource {
            path: "history/{ref}",
            title: "History",
            about: "Every version of a fact",
            field: "ref",
        }),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let ledger = engine.ledger(&context.scope);
        let view = ledger.view(&request.view)?;
        let reference = engine.reference(context, &request.view, &request.reference)?;
        let (thing, entries) = ledger.history(&view, &reference, request.all_branches)?;
        let versions = entries
            .into_iter()
            .map(|entry| {
                let s = &entry.statement;
                let change: Option<ChangeSummary> = s
                    .change
                    .as_deref()
                    .map(serde_json::from_str)
                    .transpose()
                    .map_err(|e| Error::internal(format!("a change summary is not readable: {e}")))?;
                let bounded = |t: Time| (t != Time::MIN && t != Time::MAX).then_some(t);
                Ok(VersionOut {
                    version: s.number,
                    version_id: s.version,
                    branch: entry.branch,
                    recorded_at: s.recorded_at,
                    superseded_at: entry.superseded_at,
                    valid_from: bounded(s.period.from),
                    valid_to: bounded(s.period.to),
                    absent: s.absent,
                    title: s.parsed()?.title,
                    changed: change.as_ref().map(|c| c.paths.clone()).unwrap_or_default(),
                    change_summary: change.filter(|_| request.changes),
                    parents: s.parents.clone(),
                    merged_from: entry
                        .provenance
                        .iter()
                        .map(|p| MergedFrom { role: p.role, version_id: p.parent })
                        .collect(),
                })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Response {
            summary: format!("{}: {}", thing.name(), count(versions.len(), "version")),
            id: thing.id,
            type_name: thing.type_name.to_string(),
            key: thing.key.map(Into::into),
            versions,
            view: view.echo(),
        })
    }
}
