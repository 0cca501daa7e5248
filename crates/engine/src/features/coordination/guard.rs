//! Claims as preconditions: writes about a target that another agent has claimed are refused or get a warning.

use crate::claims::{ClaimGuard, EditPolicy};
use crate::{Context, Engine};
use lukasa_model::claims::{ClaimTarget, claim_conflict, conflicting_claim};
use lukasa_model::{Batch, Precondition, Reference, Result, Write};
use lukasa_store::Ledger;
use lukasa_store::ledger::ViewSpec;
use std::collections::BTreeSet;

/// Maximum number of targets for which all boards are preconditions. For larger batches only boards with conflicting
/// claims are.
const NAMED: usize = 1_000;

/// Checks the targets of a batch against claims, and adds the preconditions to the batch.
pub fn guard(engine: &Engine, context: &Context<'_>, batch: &mut Batch) -> Result<ClaimGuard> {
    let Some(agent) = batch.header.agent.clone() else { return Ok(ClaimGuard::default()) };
    let ledger = engine.ledger(&context.scope);
    let targets = targets(&ledger, batch)?;
    let guarded = guard_targets(engine, &ledger, &agent, targets)?;
    batch.preconditions.extend(guarded.preconditions.iter().cloned());
    Ok(guarded)
}

/// Like `guard` for known targets, such as those of an edit that is recorded as an episode.
pub fn guard_targets(engine: &Engine, ledger: &Ledger, agent: &str, targets: Vec<ClaimTarget>) -> Result<ClaimGuard> {
    let mut guarded = ClaimGuard::default();
    let held = if targets.is_empty() { vec![] } else { engine.claims_held(ledger)? };
    match engine.coordination().rules().edits {
        EditPolicy::Warn => {
            let warnings = targets.iter().filter_map(|target| {
                let (held, relation) = conflicting_claim(&held, target, Some(agent))?;
                Some(claim_conflict(target, held, relation).message)
            });
            guarded.warnings = warnings.collect();
        }
        EditPolicy::Refuse => {
            // The commit checks the boards, which still have claims of disconnected holders.
            if !targets.is_empty() {
                engine.end_left(ledger)?;
            }
            let few = targets.len() <= NAMED;
            let asked = targets.iter().filter(|target| few || conflicting_claim(&held, target, Some(agent)).is_some());
            guarded.preconditions =
                asked.map(|target| Precondition::Unclaimed { reference: Reference::Text(typed(target)) }).collect();
        }
    }
    guarded.targets = targets;
    Ok(guarded)
}

/// The name of a target in an unambiguous form.
fn typed(target: &ClaimTarget) -> String {
    match target.file() {
        Some(_) => format!("{}:{}", target.kind.name(), target.name),
        None => target.name.clone(),
    }
}

/// The claimable targets of a batch.
fn targets(ledger: &Ledger, batch: &Batch) -> Result<Vec<ClaimTarget>> {
    let mut all = BTreeSet::new();
    let mut view = None;
    for write in &batch.writes {
        match write {
            Write::Object(put) => {
                all.extend(put.key.as_deref().and_then(|key| ClaimTarget::of_object(&put.type_name, key)));
            }
            Write::End(end) => {
                if let Some((type_name, key)) = end.reference.typed() {
                    all.extend(ClaimTarget::of_object(type_name, key));
                    continue;
                }
                let view = match &view {
                    Some(view) => view,
                    None => {
                        let branch = Some(batch.branch.clone()).filter(|branch| !branch.is_empty());
                        view.insert(ledger.view(&ViewSpec { branch, ..ViewSpec::default() })?)
                    }
                };
                // A missing object is reported by the commit.
                if let Ok(found) = ledger.find(view, &end.reference)
                    && let Some(key) = found.thing.key.as_deref()
                {
                    all.extend(ClaimTarget::of_object(&found.thing.type_name, key));
                }
            }
            // A relationship changes neither of its ends.
            Write::Relationship(_) => {}
        }
    }
    Ok(all.into_iter().collect())
}
