//! The engine: every operation of the product, defined once, over a ledger.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod audit;
pub mod blocked_tasks;
pub mod caller;
pub mod claims;
mod convert;
pub mod cursor;
pub mod data_files;
pub mod feature;
pub mod features;
pub mod group_summaries;
pub mod hex;
pub mod model_endpoint;
pub mod names;
pub mod packs;
pub mod periodic;
pub mod ranges;
pub mod redact;
pub mod redacted_summary;
pub mod registry;
pub mod rendering;
pub mod request_parts;
pub mod response_budget;
pub mod responses;
pub mod sensitive;
pub mod telemetry;
pub mod view;
pub mod writes;

pub use audit::Audit;
pub use caller::{Agents, Cancellation, Grants};
pub use registry::{Effect, Meta, Operation, OperationAnswer, operations};

use feature::FeatureStates;
use lukasa_model::transaction::Header;
use lukasa_model::{Error, ErrorCode, Result, Scope, json};
use lukasa_store::{Clock, Ledger, Store};
use parking_lot::Mutex;
use redacted_summary::RedactedSummary;
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::any::Any;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use telemetry::events::{self, EndedOperation};
use telemetry::log;
use view::Graphs;

/// Answers requests over one store. Cheap to clone; clones share what is held in memory.
#[derive(Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// The folder in which operations may create temporary stores.
    pub temp_dir: PathBuf,
    cache: Option<PathBuf>,
    ledgers: Arc<Mutex<FxHashMap<Scope, Ledger>>>,
    graphs: Arc<Graphs>,
    /// Per type pack, what each project had declared when its types were last known to be present.
    packed: Arc<Mutex<packs::DeclaredPacks>>,
    audit: Option<Audit>,
    /// Requests being answered.
    answering: Arc<AtomicUsize>,
    states: FeatureStates,
}

/// Counts a request as being answered until it is dropped.
struct Answering(Arc<AtomicUsize>);

impl Answering {
    fn one(count: &Arc<AtomicUsize>) -> Answering {
        count.fetch_add(1, Ordering::Relaxed);
        Answering(Arc::clone(count))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Default memory limit for graphs, in bytes: room for a graph of a million nodes and five million edges, and more.
pub const GRAPH_MEMORY: usize = 2 << 30;
/// Maximum number of cached ledgers; each is small.
const LEDGERS: usize = 4_096;

/// The caller of a request, the project it is about, and the streams of operations that carry bulk data.
pub struct Context<'a> {
    pub scope: Scope,
    pub author: Option<String>,
    pub agent: Option<String>,
    pub session: Option<String>,
    /// The connection of the caller, if it stays connected between requests.
    pub connection: Option<String>,
    pub grants: Grants,
    /// The project's working tree that the caller works in. Requests that name no view use its branch.
    pub tree: Option<PathBuf>,
    /// The agents that `agent`, and `agent_id` in a request, may name.
    pub agents: Agents,
    /// Identifies the request in the response, the logs and the audit record.
    pub request_id: Option<String>,
    /// The caller's network address.
    pub address: Option<String>,
    /// Set when the caller no longer waits. Long work checks it from time to time.
    pub stop: Cancellation,
    /// The folder in `tree` that relative paths start from.
    pub folder: Option<PathBuf>,
    /// The objects that names in the request were resolved to.
    pub taken: names::ResolvedNames,
    pub input: Option<&'a mut dyn BufRead>,
    pub output: Option<&'a mut dyn Write>,
    /// Called with the progress of long work: steps done, and the total if it is known.
    pub progress: &'a mut dyn FnMut(u64, Option<u64>),
}

impl<'a> Context<'a> {
    /// A context without author, agent or streams, and with all grants.
    pub fn of(scope: Scope, progress: &'a mut dyn FnMut(u64, Option<u64>)) -> Context<'a> {
        let (grants, stop) = (Grants::All, Cancellation::default());
        Context {
            scope,
            author: None,
            agent: None,
            session: None,
            connection: None,
            grants,
            tree: None,
            agents: Agents::Any,
            request_id: None,
            address: None,
            stop,
            folder: None,
            taken: names::ResolvedNames::default(),
            input: None,
            output: None,
            progress,
        }
    }
}

impl Context<'_> {
    /// Returns an error if a name in the context contains text that some store cannot keep.
    fn check(&self) -> Result<()> {
        let Scope { tenant, project } = &self.scope;
        for (what, name) in [
            ("tenant", Some(tenant)),
            ("project", Some(project)),
            ("author", self.author.as_ref()),
            ("agent", self.agent.as_ref()),
            ("session", self.session.as_ref()),
            ("connection", self.connection.as_ref()),
        ] {
            name.map_or(Ok(()), |name| json::check_text(name)).map_err(|e| e.at(what))?;
        }
        Ok(())
    }

    /// A transaction header with the author, agent and session of the caller.
    pub fn header(&self, reason: Option<String>) -> Header {
        let (author, agent, session) = (self.author.clone(), self.agent.clone(), self.session.clone());
        Header { author, agent, session, reason, ..Header::default() }
    }
}

impl Engine {
    /// An engine over a store. Operations create temporary stores in `temp_dir`.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, temp_dir: PathBuf) -> Engine {
        lukasa_store::ledger::observe(events::committed);
        lukasa_store::ledger::observe_replaced(events::log_replaced);
        let graphs = Arc::new(Graphs::new(GRAPH_MEMORY));
        Engine {
            store,
            clock,
            temp_dir,
            ledgers: Arc::default(),
            graphs,
            packed: Arc::default(),
            cache: None,
            audit: None,
            answering: Arc::default(),
            states: FeatureStates::of_all(),
        }
    }

    /// Records every operation.
    #[must_use]
    pub fn with_audit(mut self, audit: Audit) -> Engine {
        self.audit = Some(audit);
        self
    }

    /// The audit record, if operations are recorded.
    pub fn audit(&self) -> Option<&Audit> {
        self.audit.as_ref()
    }

    /// Limits the memory for graphs to about this many bytes.
    #[must_use]
    pub fn with_graph_memory(mut self, bytes: usize) -> Engine {
        self.graphs = Arc::new(Graphs::new(bytes));
        self
    }

    pub(crate) fn with_cache_folder(mut self, folder: PathBuf) -> Engine {
        self.cache = Some(folder);
        self
    }

    /// The folder for data that can be recomputed, if there is one.
    pub(crate) fn cache_folder(&self) -> Option<&std::path::Path> {
        self.cache.as_deref()
    }

    /// Replaces the state of a feature that has this type.
    #[must_use]
    pub fn with_state<T: Any + Send + Sync>(mut self, state: T) -> Engine {
        self.states.put(state);
        self
    }

    /// The state of a feature that has this type. Clones of an engine share it.
    pub fn state<T: Any + Send + Sync>(&self) -> &T {
        self.states.get()
    }

    /// Runs an operation by name and returns the response as a JSON value.
    pub fn call(&self, context: &mut Context<'_>, name: &str, request: Value) -> Result<Value> {
        self.answer(context, name, request)?.value()
    }

    /// Runs an operation by name. Every surface calls this function.
    pub fn answer(&self, context: &mut Context<'_>, name: &str, request: Value) -> Result<OperationAnswer> {
        let operation = registry::find(name).ok_or_else(|| {
            Error::not_found(ErrorCode::UnknownOperation, format!("no operation `{name}`"))
                .hint("`lukasa --help` lists them")
        })?;
        let _one = Answering::one(&self.answering);
        let recording = match &self.audit {
            Some(audit) => audit.begin(context, operation, &request)?,
            None => None,
        };
        let _request_fields = self.request_of(context, operation);
        // Only for operations that have events: a request may be large.
        let asked =
            if operation.meta.ended.is_some() { RedactedSummary::of(&request) } else { RedactedSummary::default() };
        let began = Instant::now();
        let answer = self.permitted(context, operation, request);
        let took = began.elapsed();
        let outline = answer.as_ref().map(OperationAnswer::outline);
        let outcome = outline.as_ref().map_err(|e| *e);
        if let Some(ended) = operation.meta.ended {
            ended(context, &EndedOperation { request: &asked, answer: outcome, took });
        }
        if let Some(recording) = recording {
            match outcome.is_ok_and(|answer| operation.meta.unrecorded.is_some_and(|is| is(answer))) {
                true => recording.forget(),
                false => recording.end(outcome),
            }
        }
        answer
    }

    /// Whether at least one request is being answered.
    pub fn is_answering(&self) -> bool {
        self.answering.load(Ordering::Relaxed) > 0
    }

    /// Projects that requests have used since the ledger cache was last emptied.
    pub(crate) fn scopes(&self) -> Vec<Scope> {
        self.ledgers.lock().keys().cloned().collect()
    }

    /// Records what a surface refused before it reached the engine: an operation or an authentication.
    pub fn refused(&self, context: &Context<'_>, what: &'static str, error: &Error) {
        if let Some(audit) = &self.audit {
            // The request is refused in any case, and the audit reports its own failures.
            let _ = audit.refused(context, what, error);
        }
    }

    fn permitted(&self, context: &mut Context<'_>, operation: &Operation, request: Value) -> Result<OperationAnswer> {
        context.grants.check(operation.meta.name, operation.meta.scope)?;
        context.check()?;
        context.agent.iter().try_for_each(|agent| context.agents.check(agent))?;
        context.agents.check_request(operation, &request)?;
        self.arrived(context);
        // Before the operation runs: if this fails afterwards, an operation that was carried out would report an error.
        let kept = sensitive::kept_from(context, &self.ledger(&context.scope))?;
        let followed = self.follow(context, operation, request)?;
        let answer = operation.run(self, context, followed.request).map_err(|e| self.explain(context, e));
        let answer = match followed.behind {
            Some(behind) => answer.and_then(|answer| answer.with("behind", &behind)),
            None => answer,
        };
        match kept {
            None => answer,
            Some(registry) => match answer {
                Ok(answer) => sensitive::strip(answer, &registry),
                Err(error) => Err(sensitive::strip_error(error, &registry)),
            },
        }
    }

    /// The request fields that log events of this thread are written with.
    fn request_of(&self, context: &Context<'_>, operation: &Operation) -> log::RequestFields {
        let Scope { tenant, project } = &context.scope;
        let user = context.author.as_deref().and_then(|user| log::hashed_user(tenant, user));
        log::RequestFields::new(&[
            ("request_id", context.request_id.as_deref()),
            ("operation", Some(operation.meta.name)),
            ("tenant", Some(tenant)),
            ("project", Some(project)),
            ("user", user.as_deref()),
        ])
    }

    /// Adds a hint with the projects of the tenant to an `unknown_project` error.
    fn explain(&self, context: &Context<'_>, error: Error) -> Error {
        match self.store.projects(&context.scope.tenant) {
            Ok(projects) if error.code == ErrorCode::UnknownProject && !projects.is_empty() => {
                error.hint(format!("projects here: {}; name one with --project", projects.join(", ")))
            }
            _ => error,
        }
    }

    /// The ledger of a project. All requests share it, and with it its caches.
    pub fn ledger(&self, scope: &Scope) -> Ledger {
        let mut ledgers = self.ledgers.lock();
        if let Some(ledger) = ledgers.get(scope) {
            return ledger.clone();
        }
        if ledgers.len() == LEDGERS {
            ledgers.clear();
        }
        let ledger = Ledger::new(Arc::clone(&self.store), Arc::clone(&self.clock), scope.clone());
        ledgers.insert(scope.clone(), ledger.clone());
        ledger
    }

    /// The graphs in memory, of all projects.
    pub fn graphs(&self) -> &Arc<Graphs> {
        &self.graphs
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }
}
