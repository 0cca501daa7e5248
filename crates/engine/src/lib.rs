//! The engine: every operation of the product, defined once, over a ledger.

pub mod audit;
pub mod beat;
pub mod caller;
pub mod code;
pub mod context_graph;
pub mod coordination;
pub mod cursor;
pub mod embedding;
pub mod graph;
pub mod happenings;
pub mod lineage;
pub mod memory;
pub mod model_endpoint;
pub mod names;
pub mod ops;
pub mod outline;
pub mod pack;
pub mod packs;
pub mod redact;
pub mod registry;
pub mod search;
pub mod sensitive;
pub mod shape;
pub mod telemetry;
pub mod testing;
pub mod tool;

pub use audit::Audit;
pub use caller::{Agents, Grants, Stop};
pub use registry::{Answer, Effect, Meta, Operation, operations};

use graph::Graphs;
use lukasa_model::transaction::Header;
use lukasa_model::{Error, Result, Scope, json};
use lukasa_store::{Clock, Ledger, Store};
use outline::Outline;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::collections::hash_map::Entry;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use telemetry::events::{self, Ended};
use telemetry::log;

/// Answers requests over one store. Cheap to clone; clones share what is held in memory.
#[derive(Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// The folder in which operations may create temporary stores.
    pub temp_dir: PathBuf,
    cache: Option<PathBuf>,
    kept: Option<Arc<search::KeptIndexes>>,
    ledgers: Arc<Mutex<FxHashMap<Scope, Ledger>>>,
    graphs: Arc<Graphs>,
    /// Per type pack, what each project had declared when its types were last known to be present.
    packed: Arc<Mutex<packs::Declared>>,
    workspaces: ByRoot<Arc<code::Workspace>>,
    watches: ByRoot<code::Watch>,
    summaries: Option<Arc<code::Summaries>>,
    searching: Arc<search::Searching>,
    embedding: Arc<search::Embedding>,
    audit: Option<Audit>,
    coordination: Arc<coordination::Coordination>,
    memory: Arc<memory::Memory>,
    /// Requests being answered.
    answering: Arc<AtomicUsize>,
    tree_names: Arc<code::trees::TreeNames>,
    kept_out: Arc<code::files::KeptOut>,
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

/// A value per working tree of a project.
type ByRoot<T> = Arc<Mutex<FxHashMap<(Scope, PathBuf), T>>>;

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
    pub stop: Stop,
    /// The folder in `tree` that relative paths start from.
    pub folder: Option<PathBuf>,
    /// The objects that names in the request were resolved to.
    pub taken: names::TakenNames,
    pub input: Option<&'a mut dyn BufRead>,
    pub output: Option<&'a mut dyn Write>,
    /// Called with the progress of long work: steps done, and the total if it is known.
    pub progress: &'a mut dyn FnMut(u64, Option<u64>),
}

impl<'a> Context<'a> {
    /// A context without author, agent or streams, and with all grants.
    pub fn of(scope: Scope, progress: &'a mut dyn FnMut(u64, Option<u64>)) -> Context<'a> {
        let (grants, stop) = (Grants::All, Stop::default());
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
            taken: names::TakenNames::default(),
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
            kept: None,
            workspaces: Arc::default(),
            watches: Arc::default(),
            summaries: None,
            searching: Arc::default(),
            embedding: Arc::new(search::Embedding::built_in(Default::default(), None)),
            audit: None,
            coordination: Arc::default(),
            memory: Arc::default(),
            answering: Arc::default(),
            tree_names: Arc::default(),
            kept_out: Arc::default(),
        }
    }

    /// Summarises symbols with a language model, or uses summaries that were made before.
    #[must_use]
    pub fn with_summaries(mut self, summaries: code::Summaries) -> Engine {
        self.summaries = Some(Arc::new(summaries));
        self
    }

    /// Encrypts sensitive episodes with the keys of their agents.
    #[must_use]
    pub fn with_vault(mut self, vault: memory::Vault) -> Engine {
        self.memory = Arc::new(memory::Memory { vault, ..memory::Memory::default() });
        self
    }

    /// What agent memory needs besides the store.
    pub fn memory(&self) -> &memory::Memory {
        &self.memory
    }

    /// Records every operation.
    #[must_use]
    pub fn with_audit(mut self, audit: Audit) -> Engine {
        self.audit = Some(audit);
        self
    }

    pub fn audit(&self) -> Option<&Audit> {
        self.audit.as_ref()
    }

    /// Uses these rules for claims instead of the defaults.
    #[must_use]
    pub fn with_claim_rules(mut self, rules: coordination::ClaimRules) -> Engine {
        self.coordination = Arc::new(coordination::Coordination::new(rules));
        self
    }

    /// The claims, tasks and presence of agents.
    pub fn coordination(&self) -> &coordination::Coordination {
        &self.coordination
    }

    /// Sets the names that distinguish working trees of this machine from those of other machines.
    #[must_use]
    pub fn with_tree_names(mut self, names: code::trees::TreeNames) -> Engine {
        self.tree_names = Arc::new(names);
        self
    }

    pub(crate) fn tree_names(&self) -> &code::trees::TreeNames {
        &self.tree_names
    }

    /// Never indexes these files and folders, wherever they are.
    #[must_use]
    pub fn with_kept_out(mut self, kept_out: code::files::KeptOut) -> Engine {
        self.kept_out = Arc::new(kept_out);
        self
    }

    pub(crate) fn kept_out(&self) -> &Arc<code::files::KeptOut> {
        &self.kept_out
    }

    /// Limits the memory for graphs to about this many bytes.
    #[must_use]
    pub fn with_graph_memory(mut self, bytes: usize) -> Engine {
        self.graphs = Arc::new(Graphs::new(bytes));
        self
    }

    /// Keeps data that can be recomputed in this folder, to save time. Call it after `with_graph_memory`.
    #[must_use]
    pub fn with_cache(mut self, folder: PathBuf) -> Engine {
        let kept = Arc::new(search::KeptIndexes::in_folder(&folder));
        self.graphs.projections.read_from(Arc::clone(&kept) as Arc<dyn lukasa_graph::cache::Shelf>);
        (self.cache, self.kept) = (Some(folder), Some(kept));
        self
    }

    /// Where indexes are kept between processes, if a cache folder is set.
    pub(crate) fn kept_indexes(&self) -> Option<&Arc<search::KeptIndexes>> {
        self.kept.as_ref()
    }

    /// Runs an operation by name and returns the response as a JSON value.
    pub fn call(&self, context: &mut Context<'_>, name: &str, request: Value) -> Result<Value> {
        self.answer(context, name, request)?.value()
    }

    /// Runs an operation by name. Every surface calls this function.
    pub fn answer(&self, context: &mut Context<'_>, name: &str, request: Value) -> Result<Answer> {
        let operation = registry::find(name).ok_or_else(|| {
            Error::not_found("unknown_operation", format!("no operation `{name}`")).hint("`lukasa --help` lists them")
        })?;
        let _one = Answering::one(&self.answering);
        let recording = match &self.audit {
            Some(audit) => audit.begin(context, operation, &request)?,
            None => None,
        };
        let _told = self.request_of(context, operation);
        // Only for operations that have events: a request may be large.
        let asked = if operation.meta.ended.is_some() { Outline::of(&request) } else { Outline::default() };
        let began = Instant::now();
        let answer = self.permitted(context, operation, request);
        let took = began.elapsed();
        let outline = answer.as_ref().map(Answer::outline);
        let told = outline.as_ref().map_err(|e| *e);
        if let Some(ended) = operation.meta.ended {
            ended(context, &Ended { request: &asked, answer: told, took });
        }
        if let Some(recording) = recording {
            match told.is_ok_and(|told| ops::event_list::is_silence(operation.meta.name, told)) {
                true => recording.forget(),
                false => recording.end(told),
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

    fn permitted(&self, context: &mut Context<'_>, operation: &Operation, request: Value) -> Result<Answer> {
        context.grants.check(operation.meta.name, operation.meta.scope)?;
        context.check()?;
        context.agent.iter().try_for_each(|agent| context.agents.check(agent))?;
        context.agents.check_request(operation, &request)?;
        if let (Some(connection), Some(agent)) = (&context.connection, &context.agent) {
            self.coordination.presence().note(connection, agent, context.session.as_deref());
        }
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
    fn request_of(&self, context: &Context<'_>, operation: &Operation) -> log::OfRequest {
        let Scope { tenant, project } = &context.scope;
        let user = context.author.as_deref().and_then(|user| log::hidden(tenant, user));
        log::OfRequest::new(&[
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
            Ok(projects) if error.code == "unknown_project" && !projects.is_empty() => {
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

    /// The working tree that contains a folder. All requests share it, so that each indexing pass builds on the last
    /// one.
    pub fn workspace(&self, scope: &Scope, path: &std::path::Path) -> Result<Arc<code::Workspace>> {
        let root = code::place::Place::of(path, None)?.root;
        self.searching.sources.add(scope, &root)?;
        let mut workspaces = self.workspaces.lock();
        let made = workspaces.entry((scope.clone(), root.clone())).or_insert_with(|| {
            Arc::new(code::Workspace::new(&root, scope.clone(), self.cache.as_deref(), Arc::clone(&self.kept_out)))
        });
        Ok(Arc::clone(made))
    }

    /// Watches the working tree that contains a folder from now on. A second call changes nothing.
    pub fn watch(&self, scope: &Scope, path: &std::path::Path) -> Result<PathBuf> {
        let root = self.workspace(scope, path)?.root().to_owned();
        let mut watches = self.watches.lock();
        if let Entry::Vacant(place) = watches.entry((scope.clone(), root.clone())) {
            place.insert(code::Watch::start(&self.unwatched(), scope, &root, code::watch::DEBOUNCE, None)?);
        }
        Ok(root)
    }

    /// A clone without watchers, for a watcher to own: with them, engine and watcher would keep each other alive.
    pub(crate) fn unwatched(&self) -> Engine {
        Engine { watches: Arc::default(), ..self.clone() }
    }

    /// The health of each watcher of a project, by root.
    pub fn watch_health(&self, scope: &Scope) -> Vec<(PathBuf, code::watch::Health)> {
        let watches = self.watches.lock();
        let own = watches.iter().filter(|((of, _), _)| of == scope);
        let mut health: Vec<_> = own.map(|((_, root), watch)| (root.clone(), watch.health())).collect();
        health.sort_by(|a, b| a.0.cmp(&b.0));
        health
    }

    /// Whether a watcher follows a working tree and has no work left.
    pub(crate) fn is_watched_and_current(&self, scope: &Scope, root: &std::path::Path) -> bool {
        self.watches.lock().get(&(scope.clone(), root.to_owned())).is_some_and(code::Watch::is_current)
    }

    pub fn summaries(&self) -> Option<Arc<code::Summaries>> {
        self.summaries.clone()
    }

    /// Searches with other sources or another reranker.
    #[must_use]
    pub fn with_searching(mut self, searching: search::Searching) -> Engine {
        self.searching = Arc::new(searching);
        self
    }

    /// Computes vectors with another model than the built-in one.
    #[must_use]
    pub fn with_embedding(mut self, embedding: search::Embedding) -> Engine {
        self.embedding = Arc::new(embedding);
        self
    }

    pub fn embedding(&self) -> Arc<search::Embedding> {
        Arc::clone(&self.embedding)
    }

    /// What search needs besides graphs.
    pub fn searching(&self) -> &search::Searching {
        &self.searching
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
