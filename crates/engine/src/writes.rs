//! Writing a batch for a caller: guarded by claims, committed, and reported.

use crate::claims::{CodeChange, records_code};
use crate::{Context, Engine};
use lukasa_model::{Batch, Error, ErrorCode, Result, Tx};
use lukasa_store::Ledger;
use lukasa_store::ledger::Committed;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

/// Result of a write.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WriteOut {
    pub summary: String,
    /// The transaction; null when the batch changed nothing.
    pub tx: Option<Tx>,
    pub written: Vec<WrittenOut>,
    pub unchanged: usize,
    /// A batch with this client id was committed before; nothing was written again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct WrittenOut {
    pub id: Uuid,
    /// Number of the version now visible.
    pub version: u32,
    pub changed: bool,
}

impl WriteOut {
    pub fn of(done: Committed, what: &str) -> WriteOut {
        let summary = match done.tx {
            _ if done.repeated => format!("{what}: sent before, nothing written again"),
            Some(tx) => format!("{what} (transaction {tx})"),
            None => format!("{what}: nothing new, no transaction"),
        };
        let written = done
            .written
            .iter()
            .map(|w| WrittenOut { id: w.id, version: w.number, changed: w.version.is_some() })
            .collect();
        let (tx, unchanged, repeated) = (done.tx, done.unchanged, done.repeated);
        WriteOut { summary, tx, written, unchanged, repeated, warnings: done.warnings }
    }
}

/// Commits a caller's batch after checking it against the claims of other agents.
pub fn commit(engine: &Engine, context: &Context<'_>, mut batch: Batch, what: &str) -> Result<WriteOut> {
    engine.declare_needed_packs(&context.scope, &batch)?;
    let guarded = engine.claims().guard(engine, context, &mut batch)?;
    let ledger = engine.ledger(&context.scope);
    let done = ledger.commit(&batch)?;
    let (tx, repeated) = (done.tx, done.repeated);
    let mut out = WriteOut::of(done, what);
    out.warnings.extend(guarded.warnings);
    if let Some(tx) = tx.filter(|_| records_code(batch.header.kind) && !repeated) {
        let branch = if batch.branch.is_empty() { "main" } else { &batch.branch };
        let files = guarded.targets.iter().filter_map(|target| target.file()).collect();
        let change = CodeChange { agent: batch.header.agent.as_deref(), branch, worktree: None, tx, files };
        out.warnings.extend(end_invalidated_claims(engine, &ledger, &change));
    }
    Ok(out)
}

/// Ends the claims that a committed change invalidates and returns one warning for each. An error becomes a warning,
/// because the change itself is already committed.
pub fn end_invalidated_claims(engine: &Engine, ledger: &Ledger, change: &CodeChange<'_>) -> Vec<String> {
    let words = |claim: &lukasa_model::claims::HeldClaim| {
        format!("this ended the claim of {} on `{}`: {}", claim.agent_id, claim.target, claim.intent)
    };
    match engine.code_changed(ledger, change) {
        Ok(ended) => ended.iter().map(words).collect(),
        Err(e) => vec![format!("claims on what changed still stand: {e}")],
    }
}

/// Reads `name=value` pairs: JSON where the value is JSON, else text.
pub fn read_set(pairs: &[String], into: &mut Map<String, Value>) -> Result<()> {
    for pair in pairs {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(Error::invalid(ErrorCode::InvalidSet, format!("`{pair}` is not a property"))
                .hint("write it as name=value, for example --set port=8080"));
        };
        let value = match serde_json::from_str(value) {
            Ok(value) => value,
            Err(e) if e.to_string().contains("recursion limit") => {
                return Err(Error::too_large(
                    ErrorCode::JsonTooDeep,
                    format!("the value of `{name}` is nested too deeply"),
                ));
            }
            Err(_) => Value::String(value.into()),
        };
        into.insert(name.into(), value);
    }
    Ok(())
}
