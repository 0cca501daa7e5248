//! `merge`: applies one branch's changes to another, or lists their conflicts.

use crate::claims::{CodeChange, EditPolicy};
use crate::features::facts::rendering;
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::telemetry::events::EndedOperation;
use crate::telemetry::metrics;
use crate::writes::end_invalidated_claims;
use crate::{Context, Engine};
use lukasa_model::claims::{ClaimTarget, claim_conflict, conflicting_claim};
use lukasa_model::{Error, Result};
use lukasa_store::Ledger;
use lukasa_store::ledger::{MergeReport, MergeRequest, ViewSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

pub struct Merge;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The branch with the changes.
    pub source: String,
    /// The branch to merge into; `main` when left out.
    #[serde(default)]
    pub into: Option<String>,
    /// Only these facts, for a backport.
    #[serde(default)]
    pub key: Vec<String>,
    /// Check everything, write nothing, and list conflicts instead of failing.
    #[serde(default)]
    pub dry_run: bool,
    /// Reason, for the log.
    #[serde(default)]
    pub reason: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub dry_run: bool,
    #[serde(flatten)]
    pub report: MergeReport,
    /// Claims of other agents on facts that it changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Op for Merge {
    const META: Meta = Meta {
        name: "merge",
        long: true,
        shown: ResponseView::By(rendering::merge),
        answer: &["counts", "conflicts", "tx", "dry_run", "items.key", "items.class", "items.type"],
        rest: &["POST /graph/branches/{into}/merge"],
        summary: "Merge one branch into another",
        description: "Three-way by path, from the common ancestors of each fact. If there is any conflict, nothing is \
                      written and all conflicts are listed; merge strategies of the type may decide a path.",
        verb: "merge",
        names: &["key"],
        positional: &["source"],
        toolset: "branches",
        examples: &["lukasa merge feature/payments --dry-run", "lukasa merge main --into release/1 --key Service:auth"],
        ended: Some(ended),
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let target = request.into.unwrap_or_else(|| "main".into());
        let mut keys = Vec::with_capacity(request.key.len());
        for key in &request.key {
            keys.push(engine.reference(context, &ViewSpec::on(&request.source), key)?);
        }
        let asked = MergeRequest {
            source: request.source.clone(),
            target: target.clone(),
            keys,
            dry_run: request.dry_run,
            header: context.header(request.reason),
        };
        let ledger = engine.ledger(&context.scope);
        let mut warnings = heeded(engine, &ledger, &asked)?;
        let report = ledger.merge(&asked)?;
        if !report.conflicts.is_empty() && !request.dry_run {
            return Err(report.refusal(&request.source, &target));
        }
        let c = report.counts;
        let counts = format!("{} added, {} fast-forward, {} merged", c.added, c.fast_forward, c.merged);
        let summary = match (report.tx, report.conflicts.len()) {
            (_, n) if n > 0 => format!("{} into {target}: {} in conflict, {counts}", request.source, c.conflict),
            (Some(tx), _) => format!("merged {} into {target}: {counts} (transaction {tx})", request.source),
            (None, _) if request.dry_run && !report.items.is_empty() => {
                format!("{} would merge into {target}: {counts}", request.source)
            }
            _ => format!("{} has nothing new for {target}", request.source),
        };
        if let (Some(tx), Some(agent)) = (report.tx, asked.header.agent.as_deref()) {
            let changed = targets(&report);
            let files = changed.iter().filter_map(ClaimTarget::file).collect();
            let change = CodeChange { agent: Some(agent), branch: &target, worktree: None, tx, files };
            warnings.extend(end_invalidated_claims(engine, &ledger, &change));
        }
        Ok(Response { summary, dry_run: request.dry_run, report, warnings })
    }
}

/// The facts that a merge changes and that can be claimed.
fn targets(report: &MergeReport) -> Vec<ClaimTarget> {
    let own = report.items.iter().filter_map(|item| ClaimTarget::of_object(&item.type_name, item.key.as_deref()?));
    own.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Checks the claims of other agents on facts that a merge would change. Depending on the policy, returns warnings or an
/// error. A caller without an agent is a person, who may change everything.
fn heeded(engine: &Engine, ledger: &Ledger, asked: &MergeRequest) -> Result<Vec<String>> {
    let Some(agent) = asked.header.agent.as_deref() else { return Ok(vec![]) };
    let held = engine.claims_held(ledger)?;
    if held.iter().all(|claim| claim.agent_id == agent) {
        return Ok(vec![]);
    }
    let would = ledger.merge(&MergeRequest { dry_run: true, ..asked.clone() })?;
    let targets = targets(&would);
    let in_the_way = targets
        .iter()
        .filter_map(|target| conflicting_claim(&held, target, Some(agent)).map(|(claim, how)| (target, claim, how)));
    // Each claim is reported once, even if it covers several changed facts.
    let mut seen = BTreeSet::new();
    let in_the_way = in_the_way.filter(|(_, claim, _)| seen.insert(claim.claim_id.as_str()));
    let mut errors = in_the_way.map(|(target, claim, how)| claim_conflict(target, claim, how));
    match engine.claims().edits(engine) {
        EditPolicy::Warn => Ok(errors.map(|error| error.message).collect()),
        EditPolicy::Refuse if asked.dry_run => Ok(errors.map(|error| error.message).collect()),
        EditPolicy::Refuse => errors.next().map_or(Ok(vec![]), Err),
    }
}

/// Counts conflicts: those of a dry run together, those of a refused merge by field.
fn ended(context: &Context<'_>, ended: &EndedOperation<'_>) {
    let tenant = &context.scope.tenant;
    match ended.answer {
        Ok(answer) => {
            let conflicts = answer.count("counts.conflict").unwrap_or(0);
            metrics().merge_conflicts.add_of(&["dry_run", tenant], conflicts);
        }
        Err(error) => count_conflicts(tenant, error),
    }
}

/// Counts each conflict by the first part of its paths, which is the field.
fn count_conflicts(tenant: &str, error: &Error) {
    let all = error.details.get("conflicts").and_then(Value::as_array);
    for conflict in all.into_iter().flatten() {
        let paths = conflict.get("paths").and_then(Value::as_array);
        let named = paths.into_iter().flatten().filter_map(|path| path.as_str().or_else(|| path.get("path")?.as_str()));
        let fields: Vec<&str> = named.filter_map(|path| path.split('/').find(|part| !part.is_empty())).collect();
        for field in if fields.is_empty() { vec!["other"] } else { fields } {
            metrics().merge_conflicts.inc_of(&[field, tenant]);
        }
    }
}
