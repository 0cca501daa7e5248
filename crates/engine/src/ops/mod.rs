//! The operations, one file per operation or group of related operations.

pub mod agent_claim;
pub mod agent_release;
pub mod agent_status;
pub mod audit;
pub mod backup;
pub mod batch;
pub mod blocking_issues;
pub mod branch;
pub mod build_context_graph;
pub mod call_chain;
pub mod call_graph_stats;
mod calls;
pub mod code_explain;
pub mod communities;
pub mod context_graph_usage;
pub mod context_pack;
pub mod coordination_overview;
pub mod cypher;
pub mod decision_add;
pub mod delete;
pub mod demo;
pub mod diff;
pub mod diff_since;
pub mod embed;
pub mod episode_add;
pub mod episode_recall;
pub mod event_list;
pub mod expand;
pub mod export;
pub mod feature_status;
pub mod find_pattern;
pub mod find_tools;
pub mod get;
pub mod get_callees;
pub mod get_callers;
pub mod get_entity_neighbors;
pub mod graph_health;
pub mod graph_query;
pub mod graph_rebuild;
pub mod graph_set_workspace;
pub mod graph_stats;
pub mod graph_traverse;
pub mod history;
pub mod impact;
pub mod import;
pub mod import_scip;
pub mod index_directory;
pub mod index_file;
pub mod link;
pub mod link_mentions;
pub mod list;
pub mod log;
pub mod memory_linked_search;
pub mod merge;
pub mod neighbors;
pub mod patch;
pub mod paths;
pub mod progress_query;
pub mod projects;
pub mod put;
pub mod query_knowledge_graph;
pub mod rank;
pub mod reflect;
pub mod release;
pub mod rename;
pub mod restore;
pub mod search;
pub mod search_readiness;
pub mod semantic_slice;
pub mod subgraph;
pub mod symbol_lookup;
pub mod tag;
pub mod task_ready;
pub mod task_update;
pub mod test_run;
pub mod trace_decision_lineage;
pub mod traverse;
pub mod types;
pub mod verify;

use crate::coordination::{Change, guard, tells_of_code};
use crate::registry::{Effect, Meta, StoreNeed, Stream};
use crate::{Context, Engine, shape};
use lukasa_model::{Batch, Error, Result, Tx};
use lukasa_store::Ledger;
use lukasa_store::ledger::Committed;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

/// Where a request has the name of what it creates, as a runtime expression of OpenAPI.
const NAMED: &str = "$request.body#/name";

/// Default metadata; each operation overrides the fields that differ.
const META: Meta = Meta {
    name: "",
    summary: "",
    description: "",
    effect: Effect::Read,
    scope: "graph:read",
    toolset: "facts",
    verb: "",
    positional: &[],
    aliases: &[],
    destructive: false,
    names: &[],
    places: &[],
    files: &[],
    branch_field: "branch",
    instead_of_view: &[],
    fits_itself: false,
    indexes_first: false,
    local: &[],
    of_any_agent: false,
    several: None,
    rest: &[],
    examples: &[],
    answer: &[],
    essential: false,
    default_tool: &[],
    stream: Stream::None,
    needs: StoreNeed::Usual,
    unmet: None,
    here: None,
    shell: None,
    lasts: false,
    for_people: None,
    translate: None,
    ended: None,
    headers: &[],
    links: &[],
    resource: None,
    prompt: None,
};

/// Default metadata of operations that write.
const WRITE: Meta = Meta { effect: Effect::Write, scope: "graph:write", ..META };

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
    fn of(done: Committed, what: &str) -> WriteOut {
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
fn commit(engine: &Engine, context: &Context<'_>, mut batch: Batch, what: &str) -> Result<WriteOut> {
    engine.know_written(&context.scope, &batch)?;
    let guarded = guard(engine, context, &mut batch)?;
    let ledger = engine.ledger(&context.scope);
    let done = ledger.commit(&batch)?;
    let (tx, repeated) = (done.tx, done.repeated);
    let mut out = WriteOut::of(done, what);
    out.warnings.extend(guarded.warnings);
    if let Some(tx) = tx.filter(|_| tells_of_code(batch.header.kind) && !repeated) {
        let branch = if batch.branch.is_empty() { "main" } else { &batch.branch };
        let files = guarded.targets.iter().filter_map(|target| target.file()).collect();
        let change = Change { agent: batch.header.agent.as_deref(), branch, worktree: None, tx, files };
        out.warnings.extend(overtaken(engine, &ledger, &change));
    }
    Ok(out)
}

/// Ends the claims that a committed change invalidates and returns one warning for each. An error becomes a warning,
/// because the change itself is already committed.
fn overtaken(engine: &Engine, ledger: &Ledger, change: &Change<'_>) -> Vec<String> {
    let words = |claim: &lukasa_model::claims::Held| {
        format!("this ended the claim of {} on `{}`: {}", claim.agent_id, claim.target, claim.intent)
    };
    match engine.code_changed(ledger, change) {
        Ok(ended) => ended.iter().map(words).collect(),
        Err(e) => vec![format!("claims on what changed still stand: {e}")],
    }
}

/// Reads `name=value` pairs: JSON where the value is JSON, else text.
fn read_set(pairs: &[String], into: &mut Map<String, Value>) -> Result<()> {
    for pair in pairs {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(Error::invalid("invalid_set", format!("`{pair}` is not a property"))
                .hint("write it as name=value, for example --set port=8080"));
        };
        let value = match serde_json::from_str(value) {
            Ok(value) => value,
            Err(e) if e.to_string().contains("recursion limit") => {
                return Err(Error::too_large("json_too_deep", format!("the value of `{name}` is nested too deeply")));
            }
            Err(_) => Value::String(value.into()),
        };
        into.insert(name.into(), value);
    }
    Ok(())
}

/// Refuses a page size outside 1 to 1,000.
fn check_limit(limit: usize) -> Result<()> {
    match limit {
        1..=1_000 => Ok(()),
        _ => Err(Error::invalid("invalid_limit", format!("limit {limit} is not within 1 to 1000"))),
    }
}

fn count(n: usize, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {one}s"),
    }
}
