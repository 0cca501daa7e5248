//! The path of every request from a surface to the engine: caller, concurrency limits, timeout, and allowed paths.

use crate::owner::{EngineHandle, Probe};
use crate::project_folders::ProjectFolders;
use crate::shares::{ShareKey, Turn, Turns, UsageLimit, UsagePermit};
use crate::trace::TraceParent;
use lukasa_engine::features::admin::ops::projects::Projects;
use lukasa_engine::features::coordination::ops::event_list::EventList;
use lukasa_engine::registry::Op;
use lukasa_engine::telemetry::{log, metrics};
use lukasa_engine::{Agents, Context, Effect, Engine, Grants, Operation, OperationAnswer, registry};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Scope};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use uuid::Uuid;

/// The sender of a request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The tenant and project of the request.
    pub scope: Scope,
    /// The user that writes are recorded under.
    pub user: Option<String>,
    /// The agent that writes are recorded under.
    pub agent: Option<String>,
    /// The working session of the agent.
    pub session: Option<String>,
    /// The connection that the request came over, if it stays open between requests.
    pub connection: Option<String>,
    /// The permissions.
    pub grants: Grants,
    /// The agents that `agent`, and `agent_id` of a request, may name.
    pub agents: Agents,
    /// Identifies the request in the response, the logs and the audit record.
    pub request_id: Option<String>,
    /// The trace that the caller's request is part of.
    pub trace: Option<TraceParent>,
    /// The working tree of the caller. For a remote caller, the one that the operator gave to its project.
    pub tree: Option<PathBuf>,
    /// The folder in the working tree that relative paths start from.
    pub folder: Option<PathBuf>,
    /// The network address of the caller.
    pub address: Option<String>,
    /// Runs on this machine as the user that started this process, and may name any path on it.
    pub local: bool,
}

impl Caller {
    /// The engine's view of the caller.
    pub fn context(self, progress: &mut dyn FnMut(u64, Option<u64>)) -> Context<'_> {
        Context {
            author: self.user,
            agent: self.agent,
            session: self.session,
            connection: self.connection,
            grants: self.grants,
            agents: self.agents,
            request_id: self.request_id,
            tree: self.tree,
            folder: self.folder,
            address: self.address,
            ..Context::of(self.scope, progress)
        }
    }

    /// The user that started this process.
    pub fn owner(scope: Scope) -> Caller {
        Caller {
            scope,
            user: None,
            agent: None,
            session: None,
            connection: None,
            grants: Grants::All,
            agents: Agents::Any,
            request_id: None,
            trace: None,
            tree: None,
            folder: None,
            address: None,
            local: true,
        }
    }
}

/// Limits on concurrent work.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// Requests that run at the same time: for reads and for writes each, and of both for short and long ones each.
    pub at_once: usize,
    /// Requests of each of these kinds that may wait to run; more are refused.
    pub waiting: usize,
    /// Longest time for one request.
    pub time: Duration,
    /// Largest request, in bytes.
    pub bytes: usize,
}

impl Default for RequestLimits {
    fn default() -> RequestLimits {
        // Work is mostly processor time with some waiting for the disk: more threads than this would slow each other
        // down.
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        RequestLimits { at_once: (cores * 2).max(4), waiting: 256, time: Duration::from_secs(120), bytes: 4 << 20 }
    }
}

/// Event streams and subscriptions at the same time. Each polls for events several times a second.
const LISTENERS: usize = 1_024;
const LISTENERS_EACH: usize = 64;
/// Bodies of exports and imports in transfer. Each occupies a thread for as long as the client takes.
const BODIES: usize = 64;
const BODIES_EACH: usize = 8;

/// Turns of short and of long operations. They are apart, so that a request whose answer is quickly made never waits
/// for queries, exports or the index, not even for those of its own user.
#[derive(Clone)]
struct TurnsByLength {
    short: Turns,
    long: Turns,
}

impl TurnsByLength {
    fn new(limits: &RequestLimits) -> TurnsByLength {
        let [short, long] = [(); 2].map(|()| Turns::new(limits.at_once, limits.waiting));
        TurnsByLength { short, long }
    }

    fn of(&self, operation: &Operation) -> &Turns {
        if operation.meta.long { &self.long } else { &self.short }
    }
}

/// Progress of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkProgress {
    /// Units of work done so far.
    pub done: u64,
    /// Units of work in total, if known.
    pub of: Option<u64>,
}

/// The engine as surfaces use it. Cheap to clone.
#[derive(Clone)]
pub struct RequestGate {
    desk: EngineHandle,
    limits: RequestLimits,
    reading: TurnsByLength,
    /// Writes first take a turn in `reading`, then wait here for the disk and for other writers, so that they do not
    /// take processor time from reads.
    writing: TurnsByLength,
    listeners: UsageLimit,
    bodies: UsageLimit,
    probe: Arc<Probe>,
    given: Arc<ProjectFolders>,
}

impl RequestGate {
    /// Over an engine that only this process uses.
    pub fn new(engine: Engine, limits: RequestLimits, given: ProjectFolders) -> RequestGate {
        RequestGate::over(EngineHandle::own(engine), limits, given)
    }

    /// Over an engine that several processes share.
    pub fn over(desk: EngineHandle, limits: RequestLimits, given: ProjectFolders) -> RequestGate {
        let [reading, writing] = [(); 2].map(|()| TurnsByLength::new(&limits));
        let (listeners, bodies) = (UsageLimit::new(LISTENERS, LISTENERS_EACH), UsageLimit::new(BODIES, BODIES_EACH));
        RequestGate { desk, limits, reading, writing, listeners, bodies, probe: Arc::default(), given: Arc::new(given) }
    }

    /// The engine, in this process or in the owner.
    pub fn engine_handle(&self) -> &EngineHandle {
        &self.desk
    }

    /// Whether requests can be served: queries the store, in whichever process has it open, and runs the further checks
    /// in `more`. Returns within a few seconds even if the store hangs, and uses none of the threads that serve
    /// requests.
    pub async fn ready(&self, more: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
        let (own, all) = (self.desk.engine(), self.limits.at_once);
        let engine = own.clone();
        self.probe
            .ask(move || {
                more()?;
                crate::owner::workers().check(all)?;
                let Some(engine) = engine else { return Ok(()) };
                // A direct query of the store is not an operation, so it is not recorded.
                engine.store().projects(&Scope::new("local", "any")?.tenant)?;
                match engine.audit().and_then(|audit| audit.state().fault) {
                    Some(fault) => Err(fault.at("the record of operations")),
                    None => Ok(()),
                }
            })
            .await?;
        if own.is_some() {
            return Ok(());
        }
        let operation = registry::find(Projects::META.name).ok_or_else(|| unknown(Projects::META.name))?;
        let caller = Caller::owner(Scope::new("local", "any")?);
        let asked = tokio::time::timeout(Probe::TIMEOUT, self.desk.call(&caller, operation, json!({}), None)).await;
        asked.unwrap_or_else(|_| Err(Probe::unanswered())).map(drop)
    }

    /// Counts an event stream or subscription until the result is dropped.
    pub(crate) fn listener(&self, caller: &Caller) -> Result<UsagePermit> {
        self.listeners.take(ShareKey::from(caller)).ok_or_else(|| {
            Error::new(
                ErrorKind::RateLimited,
                ErrorCode::TooManyListeners,
                "too many event streams and subscriptions are open",
            )
            .hint(format!("end some of them; one user may have {}", self.listeners.each()))
        })
    }

    /// Counts the body of an export or import until the result is dropped.
    pub(crate) fn body(&self, caller: &Caller) -> Result<UsagePermit> {
        self.bodies.take(ShareKey::from(caller)).ok_or_else(busy)
    }

    /// The limits that requests run under.
    pub fn limits(&self) -> &RequestLimits {
        &self.limits
    }

    /// Runs an operation on a separate thread. Dropping the future stops the work.
    pub async fn call(
        &self,
        caller: &Caller,
        name: &str,
        request: Value,
        progress: Option<UnboundedSender<WorkProgress>>,
    ) -> Result<OperationAnswer> {
        let operation = registry::find(name).ok_or_else(|| unknown(name))?;
        let caller = Caller { request_id: Some(caller.request_id.clone().unwrap_or_else(new_id)), ..caller.clone() };
        let began = Instant::now();
        let answer = self.run(&caller, operation, request, progress).await;
        ended(&caller, operation, answer.as_ref().err(), began.elapsed());
        answer
    }

    /// Polls for events on behalf of a subscriber. Not logged and not counted, because it runs several times a second.
    pub async fn listen(&self, caller: &Caller, request: Value) -> Result<OperationAnswer> {
        let operation = registry::find(EventList::META.name).ok_or_else(|| unknown(EventList::META.name))?;
        self.run(caller, operation, request, None).await
    }

    async fn run(
        &self,
        caller: &Caller,
        operation: &'static Operation,
        request: Value,
        progress: Option<UnboundedSender<WorkProgress>>,
    ) -> Result<OperationAnswer> {
        let name = operation.meta.name;
        let caller = &self.with_working_tree(caller);
        let request = self.confine_paths(operation, caller, request).map_err(|e| self.refused(caller, operation, e))?;
        let place = match tokio::time::timeout(self.limits.time, self.turn(caller, operation)).await {
            Ok(Some(place)) => place,
            Ok(None) | Err(_) => return Err(self.refused(caller, operation, busy())),
        };
        // The turn is held by the work, not by this future: work that does not stop on time keeps its turn, so the
        // number of threads stays bounded.
        let work = self.desk.call_holding(caller, operation, request, progress, place);
        match tokio::time::timeout(self.limits.time, work).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::new(
                ErrorKind::Timeout,
                ErrorCode::Timeout,
                format!("`{name}` took longer than {} s", self.limits.time.as_secs()),
            )
            .hint("request less, or try again")),
        }
    }

    /// Waits for the caller's turn. None if too many requests wait.
    async fn turn(&self, caller: &Caller, operation: &Operation) -> Option<Turn> {
        let place = self.reading.of(operation).take(ShareKey::from(caller)).await.ok()?;
        if operation.meta.effect == Effect::Read {
            return Some(place);
        }
        drop(place);
        self.writing.of(operation).take(ShareKey::from(caller)).await.ok()
    }

    /// Records a request that does not reach the engine.
    fn refused(&self, caller: &Caller, operation: &'static Operation, error: Error) -> Error {
        self.desk.refused(caller, operation.meta.name, &error);
        error
    }

    /// Sets the working tree. A remote caller always works in the tree that was given to its project.
    fn with_working_tree(&self, caller: &Caller) -> Caller {
        let given = || self.given.tree_of(&caller.scope).map(Path::to_path_buf);
        let tree = if caller.local { caller.tree.clone().or_else(given) } else { given() };
        let folder = caller.folder.clone().filter(|_| caller.local);
        Caller { tree, folder, ..caller.clone() }
    }

    /// Records and counts a request that a surface refused because the caller lacks permission.
    pub(crate) fn record_denied(&self, caller: &Caller, operation: &'static Operation, error: Error) -> Error {
        if !is_refusal(&error) {
            return error;
        }
        metrics().access_refused.inc_of(&[error.code.name()]);
        self.refused(caller, operation, error)
    }

    /// Records and counts a failed authentication. `caller` contains what is known about the client.
    pub(crate) fn record_failed_login(&self, caller: &Caller, error: &Error) {
        metrics().access_refused.inc_of(&[error.code.name()]);
        // A request without credential is no attempt, and refused addresses have already been recorded often enough.
        let tried =
            !matches!(error.code, ErrorCode::MissingToken | ErrorCode::TooManyFailures | ErrorCode::RateLimited);
        if tried && is_refusal(error) {
            self.desk.refused(caller, LOGIN, error);
        }
    }

    /// Fills in the default working tree, and confines remote callers to the paths that were given to their project.
    fn confine_paths(&self, operation: &Operation, caller: &Caller, request: Value) -> Result<Value> {
        // Canonical field names first, otherwise a path could pass unchecked under an alias.
        let mut request = operation.read(request)?;
        let Some(fields) = request.as_object_mut() else { return Ok(request) };
        for name in operation.meta.places.iter().filter(|name| !fields.contains_key(**name)).collect::<Vec<_>>() {
            // The default `.` would mean the current directory of this process.
            let means_here = operation.fields().get(*name).is_some_and(|field| field["default"] == ".");
            match &caller.tree {
                // Without a path these operations use the working tree anyway, and index it first where they may.
                Some(_) if operation.meta.indexes_first => {}
                Some(tree) if !operation.requires(name) => {
                    fields.insert((*name).into(), Value::String(tree.display().to_string()));
                }
                None if means_here && !caller.local => return Err(no_tree(name)),
                _ => {}
            }
        }
        if caller.local {
            return Ok(request);
        }
        if let Some(name) = operation.meta.local.iter().find(|name| fields.contains_key(**name)) {
            return Err(Error::new(
                ErrorKind::Forbidden,
                ErrorCode::NotPermitted,
                format!("{name}: only callers on this machine may set this field"),
            )
            .hint("leave it out"));
        }
        let trees = operation.meta.places.iter().map(|name| (*name, true));
        for (name, tree) in trees.chain(operation.meta.files.iter().map(|name| (*name, false))) {
            let Some(named) = fields.get(name).and_then(Value::as_str) else { continue };
            let (scope, path) = (&caller.scope, Path::new(named));
            // `-` is a stream, which remote callers do not have.
            let is_path = named != "-" && !named.contains('\0');
            let real = if tree { self.given.in_tree(scope, path) } else { self.given.in_folder(scope, path) };
            let Some(real) = real.filter(|_| is_path) else { return Err(forbidden_path(name, named, tree)) };
            fields.insert(name.into(), Value::String(real.display().to_string()));
        }
        Ok(request)
    }
}

fn no_tree(field: &str) -> Error {
    Error::new(
        ErrorKind::Forbidden,
        ErrorCode::ForbiddenPath,
        format!("{field}: no working tree was given to this project"),
    )
    .hint("the operator of the server gives projects their working trees, see docs/access.md")
}

fn forbidden_path(field: &str, named: &str, tree: bool) -> Error {
    let what = if tree { "working trees" } else { "folders for data" };
    Error::new(
        ErrorKind::Forbidden,
        ErrorCode::ForbiddenPath,
        format!("{field}: `{named}` is not within the {what} that were given to this project"),
    )
    .hint("the operator of the server lists them, see docs/access.md; `-` and routes with a body need no path")
}

/// A new request id.
pub(crate) fn new_id() -> String {
    Uuid::now_v7().simple().to_string()
}

/// The name of an authentication attempt in the audit record.
pub(crate) const LOGIN: &str = "login";

/// Whether an error refuses the caller's credential or permission.
fn is_refusal(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Forbidden | ErrorKind::Unauthenticated)
}

/// Records metrics and a log line for every request, whichever process serves it.
fn ended(caller: &Caller, operation: &Operation, error: Option<&Error>, took: Duration) {
    let (name, status) = (operation.meta.name, error.map_or("ok", |error| error.code.name()));
    if let Some(error) = error.filter(|error| is_refusal(error)) {
        metrics().access_refused.inc_of(&[error.code.name()]);
    }
    metrics().queries.inc_of(&[name, status]);
    metrics().latency.record_of(&[name], took.as_secs_f64());
    #[cfg(feature = "otel")]
    crate::otel::span(&crate::otel::RequestSpan {
        request_id: caller.request_id.as_deref().unwrap_or_default(),
        parent: caller.trace.as_ref(),
        operation: name,
        tenant: &caller.scope.tenant,
        project: &caller.scope.project,
        status,
        took,
    });
    let level = if status == "ok" { log::LogLevel::Info } else { log::LogLevel::Warn };
    if !log::is_on(level) {
        return;
    }
    let Scope { tenant, project } = &caller.scope;
    log::event(
        level,
        "request",
        &[
            ("request_id", json!(caller.request_id)),
            ("trace_id", json!(caller.trace.as_ref().map(|parent| &parent.trace))),
            ("operation", json!(name)),
            ("tenant", json!(tenant)),
            ("project", json!(project)),
            ("user", json!(caller.user.as_deref().map(|user| log::hashed_user(tenant, user)))),
            ("agent", json!(caller.agent)),
            ("status", json!(status)),
            ("latency_ms", json!((took.as_secs_f64() * 1e6).round() / 1e3)),
        ],
    );
}

pub(crate) fn unknown(name: &str) -> Error {
    Error::not_found(ErrorCode::UnknownOperation, format!("no operation `{name}`")).hint("`find_tools` lists them")
}

fn busy() -> Error {
    Error::new(ErrorKind::RateLimited, ErrorCode::TooBusy, "too many requests are waiting")
        .hint("try again in a second")
}
