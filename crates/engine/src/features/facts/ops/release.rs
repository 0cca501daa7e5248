//! `release …`: creates, lists, shows and compares releases.

use super::diff::{self, ComparisonOptions, compare};
use crate::features::facts::rendering;
use crate::registry::{META, NAMED, WRITE};
use crate::registry::{Meta, Op, OperationLink, Resource};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::telemetry::events::EndedOperation;
use crate::telemetry::metrics;
use crate::{Context, Engine};
use lukasa_model::types::Release;
use lukasa_model::{Registry, Result, Time, Tx};
use lukasa_store::ledger::{NewRelease, ViewSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, JsonSchema)]
pub struct ReleaseOut {
    pub name: String,
    pub branch: String,
    /// The last transaction that the release contains.
    pub tx: Tx,
    pub valid_at: Time,
    pub objects: u64,
    pub relationships: u64,
    /// Digest of the id and version of every member.
    pub digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

fn out(release: &Release, registry: &Registry) -> ReleaseOut {
    ReleaseOut {
        name: release.name.clone(),
        branch: registry.branch_name(release.branch).into(),
        tx: release.tx,
        valid_at: release.valid_at,
        objects: release.objects,
        relationships: release.relationships,
        digest: release.digest.to_string(),
        base: release.base.clone(),
        description: release.description.clone(),
        tags: registry.tags().filter(|t| t.release == release.name).map(|t| t.name.clone()).collect(),
    }
}

#[derive(Serialize, JsonSchema)]
pub struct ReleaseResponse {
    pub summary: String,
    pub release: ReleaseOut,
}

fn members(release: &ReleaseOut) -> String {
    format!("{}, {}", count(release.objects, "object"), count(release.relationships, "relationship"))
}

pub struct ReleaseCreate;

#[derive(Deserialize, JsonSchema)]
pub struct ReleaseCreateRequest {
    /// Name, unique without regard to case, for example 1.2.0.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The branch to freeze; `main` when left out.
    #[serde(default)]
    pub branch: Option<String>,
    /// An earlier release that this one follows.
    #[serde(default)]
    pub base: Option<String>,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Reason, for the log.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Op for ReleaseCreate {
    const META: Meta = Meta {
        name: "release_create",
        long: true,
        shown: ResponseView::Summary,
        answer: &[
            "release.name",
            "release.branch",
            "release.tx",
            "release.objects",
            "release.relationships",
            "release.description",
        ],
        rest: &["POST /product-versions", "POST /graph/releases"],
        summary: "Freeze the facts visible on a branch under a name",
        description: "A release keeps objects and relationships exactly as they are visible now: \
                      `--as-of release:NAME` shows them, whatever is written later.",
        verb: "release create",
        positional: &["name"],
        toolset: "releases",
        examples: &["lukasa release create 1.0 --description \"first\""],
        links: &[
            OperationLink { to: ReleaseShow::META.name, route: 1, with: &[("name", NAMED)] },
            OperationLink { to: ReleaseDiff::META.name, route: 1, with: &[("from", NAMED), ("to", NAMED)] },
        ],
        ended: Some(ended),
        ..WRITE
    };
    type Request = ReleaseCreateRequest;
    type Response = ReleaseResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: ReleaseCreateRequest) -> Result<ReleaseResponse> {
        let ledger = engine.ledger(&context.scope);
        let new = NewRelease {
            name: request.name,
            branch: request.branch.unwrap_or_default(),
            base: request.base,
            description: request.description,
        };
        let release = ledger.create_release(&new, &context.header(request.reason))?;
        let release = out(&release, &*ledger.registry()?);
        let summary = format!("release {} of {}: {}", release.name, release.branch, members(&release));
        Ok(ReleaseResponse { summary, release })
    }
}

pub struct ReleaseList;

#[derive(Deserialize, JsonSchema)]
pub struct ReleaseListRequest {
    /// Maximum number of releases, up to 1,000.
    #[serde(default)]
    pub limit: Limit<100>,
    /// Only releases whose name comes after this one.
    #[serde(default)]
    pub after: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct ReleaseListResponse {
    pub summary: String,
    pub releases: Vec<ReleaseOut>,
    pub truncated: bool,
}

impl Op for ReleaseList {
    const META: Meta = Meta {
        name: "release_list",
        shown: ResponseView::By(rendering::releases),
        answer: &["releases.name", "releases.branch", "releases.tx", "releases.description", "releases.tags"],
        rest: &["GET /product-versions"],
        summary: "List releases",
        description: "By name, in pages: continue with `after` the last name.",
        verb: "release list",
        toolset: "releases",
        examples: &["lukasa release list"],
        resource: Some(Resource { path: "releases", title: "Releases", about: "Every release", field: "" }),
        ..META
    };
    type Request = ReleaseListRequest;
    type Response = ReleaseListResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: ReleaseListRequest) -> Result<ReleaseListResponse> {
        let registry = engine.ledger(&context.scope).registry()?;
        let after = request.after.map(|a| a.to_lowercase());
        let mut fitting = registry.releases().filter(|r| after.as_ref().is_none_or(|a| r.name.to_lowercase() > *a));
        let releases: Vec<_> = fitting.by_ref().take(request.limit.get()).map(|r| out(r, &registry)).collect();
        Ok(ReleaseListResponse {
            summary: count(releases.len(), "release"),
            releases,
            truncated: fitting.next().is_some(),
        })
    }
}

pub struct ReleaseShow;

#[derive(Deserialize, JsonSchema)]
pub struct ReleaseShowRequest {
    /// The release.
    #[schemars(length(min = 1))]
    pub name: String,
}

impl Op for ReleaseShow {
    const META: Meta = Meta {
        name: "release_show",
        answer: &[
            "release.name",
            "release.branch",
            "release.tx",
            "release.objects",
            "release.relationships",
            "release.description",
            "release.tags",
        ],
        rest: &["GET /product-versions/{name}"],
        summary: "Show a release",
        description: "Counts, digest, tags and view of the release.",
        verb: "release show",
        positional: &["name"],
        toolset: "releases",
        examples: &["lukasa release show 1.0"],
        ..META
    };
    type Request = ReleaseShowRequest;
    type Response = ReleaseResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: ReleaseShowRequest) -> Result<ReleaseResponse> {
        let registry = engine.ledger(&context.scope).registry()?;
        let release = out(registry.release(&request.name)?, &registry);
        let summary = format!("release {}: {}", release.name, members(&release));
        Ok(ReleaseResponse { summary, release })
    }
}

pub struct ReleaseDiff;

#[derive(Deserialize, JsonSchema)]
pub struct ReleaseDiffRequest {
    /// The release to compare from.
    pub from: String,
    /// The release to compare to.
    pub to: String,
    /// Only objects and relationships of these types; all when left out.
    #[serde(default)]
    pub types: Vec<String>,
    /// Include code that only moved within its file, and commits.
    #[serde(default)]
    pub all: bool,
    /// Maximum number of changes listed; all are counted.
    #[serde(default = "diff::limit")]
    pub limit: usize,
}

impl Op for ReleaseDiff {
    const META: Meta = Meta {
        name: "release_diff",
        long: true,
        shown: ResponseView::By(rendering::difference),
        answer: &[
            "changes.change",
            "changes.key",
            "changes.type",
            "changes.between",
            "changes.title",
            "added",
            "removed",
            "modified",
        ],
        rest: &["GET /product-versions/{from}/diff/{to}", "GET /graph/releases/{from}/diff/{to}"],
        summary: "Compare two releases",
        description: "What was added, removed and modified from one to the other.",
        verb: "release diff",
        positional: &["from", "to"],
        toolset: "releases",
        examples: &["lukasa release diff 1.0 2.0"],
        ..META
    };
    type Request = ReleaseDiffRequest;
    type Response = diff::Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: ReleaseDiffRequest) -> Result<diff::Response> {
        let ledger = engine.ledger(&context.scope);
        let view = |name: &str| ledger.view(&ViewSpec::default().as_of(&format!("release:{name}")));
        let (from, to) = (view(&request.from)?, view(&request.to)?);
        let meaning = ComparisonOptions::new(engine, context, &to, &request.types, request.all)?;
        compare(&ledger, &from, &to, &meaning, request.limit)
    }
}

/// Records the size and the duration of a release.
fn ended(_: &Context<'_>, ended: &EndedOperation<'_>) {
    let Ok(answer) = ended.answer else { return };
    let size = ["release.objects", "release.relationships"].iter().filter_map(|path| answer.number(path)).sum();
    metrics().release_size.record(size);
    metrics().release_ms.record(ended.millis());
}
