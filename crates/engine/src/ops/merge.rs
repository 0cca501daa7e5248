//! `merge`: brings one branch's changes into another, or says where they disagree.

use super::WRITE;
use crate::registry::{Meta, Op};
use crate::{Context, Engine};
use lukasa_model::{Reference, Result};
use lukasa_store::ledger::{MergeReport, MergeRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct Merge;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The branch to take from.
    pub source: String,
    /// The branch to merge into; `main` when left out.
    #[serde(default)]
    pub into: Option<String>,
    /// Only these things, for a backport.
    #[serde(default)]
    pub key: Vec<String>,
    /// Make every check, write nothing, and list conflicts instead of failing.
    #[serde(default)]
    pub dry_run: bool,
    /// Why, for the log.
    #[serde(default)]
    pub reason: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub dry_run: bool,
    #[serde(flatten)]
    pub report: MergeReport,
}

impl Op for Merge {
    const META: Meta = Meta {
        name: "merge",
        rest: &["POST /graph/branches/{into}/merge"],
        summary: "Merge one branch into another",
        description: "Three-way by path, from the common ancestors of each thing. With any conflict nothing is \
                      written and all are listed; merge strategies of the type may decide a path.",
        verb: "merge",
        positional: &["source"],
        toolset: "branches",
        examples: &["lukasa merge feature/payments --dry-run", "lukasa merge main --into release/1 --key Service:auth"],
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let target = request.into.unwrap_or_else(|| "main".into());
        let asked = MergeRequest {
            source: request.source.clone(),
            target: target.clone(),
            keys: request.key.iter().map(|k| Reference::from(k.as_str())).collect(),
            dry_run: request.dry_run,
            header: context.header(request.reason),
        };
        let report = engine.ledger(&context.scope).merge(&asked)?;
        if !report.conflicts.is_empty() && !request.dry_run {
            return Err(report.refusal(&request.source, &target));
        }
        let c = report.counts;
        let told = format!("{} added, {} fast-forward, {} merged", c.added, c.fast_forward, c.merged);
        let summary = match (report.tx, report.conflicts.len()) {
            (_, n) if n > 0 => format!("{} into {target}: {} in conflict, {told}", request.source, c.conflict),
            (Some(tx), _) => format!("merged {} into {target}: {told} (transaction {tx})", request.source),
            (None, _) if request.dry_run && !report.items.is_empty() => {
                format!("{} would merge into {target}: {told}", request.source)
            }
            _ => format!("{} has nothing new for {target}", request.source),
        };
        Ok(Response { summary, dry_run: request.dry_run, report })
    }
}
