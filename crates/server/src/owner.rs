//! One engine per store: the first process owns it, others attach to it, and one of them takes over when it ends.
//!
//! The process that holds the lock beside the store opens the engine and listens on a local socket. The lock ends with
//! the process. A [`EngineHandle`] hides whether this process is the owner or attached. Systems without Unix sockets have an
//! engine in every process.

#[cfg(unix)]
mod attached;
mod connections;
#[cfg(unix)]
mod location;
mod pending_engine;
mod probe;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod watched;
#[cfg(unix)]
mod wire;
mod work;
mod workers;

#[cfg(not(unix))]
pub use elsewhere::{Owner, Place};
#[cfg(unix)]
pub use location::{OwnerInfo, StoreLocation};

pub use connections::Connection;
pub use probe::Probe;
pub(crate) use workers::workers;

use crate::request_gate::{Caller, WorkProgress};
#[cfg(unix)]
use attached::{AttachError, OwnerConnection, OwnerReply};
use connections::Connections;
#[cfg(unix)]
use lukasa_engine::Effect;
use lukasa_engine::{Engine, Operation, OperationAnswer};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use pending_engine::{OpenEngine, PendingEngine};
use serde_json::Value;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::AbortHandle;
#[cfg(unix)]
use watched::WatchedTrees;
use work::Work;

/// How long a request waits until an owner is found. An owner that is still opening the store counts as found; the
/// request then waits up to its own timeout.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a read is sent. A read that crashes its owner must not crash every process in turn.
#[cfg(unix)]
const SENDINGS: u32 = 3;
/// Pauses between attempts to find an owner. A killed process takes a few milliseconds to disappear.
#[cfg(unix)]
const FIRST_PAUSE: Duration = Duration::from_millis(5);
#[cfg(unix)]
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Accepts requests, whichever process has the engine. Clones share one state; dropping the last one gives up the
/// ownership of the store.
#[derive(Clone)]
pub struct EngineHandle(Arc<Inner>);

struct Inner {
    state: watch::Receiver<State>,
    keeper: Option<AbortHandle>,
    connections: Connections,
    #[cfg(unix)]
    watched: WatchedTrees,
}

impl Inner {
    fn new(state: watch::Receiver<State>) -> Inner {
        Inner {
            state,
            keeper: None,
            connections: Connections::default(),
            #[cfg(unix)]
            watched: WatchedTrees::default(),
        }
    }
}

/// The role of this process for the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineRole {
    /// Has not found the owner yet.
    Seeking,
    /// Has the engine and serves the other processes.
    Owner,
    /// Sends its requests to the owner.
    Attached {
        /// The process id of the owner.
        owner: u32,
    },
}

#[derive(Clone)]
enum State {
    Seeking,
    Own(PendingEngine),
    #[cfg(unix)]
    Attached(OwnerConnection),
    /// The owner cannot be attached to. Retried until that changes.
    #[cfg(unix)]
    Refused(Error),
}

impl EngineHandle {
    /// Over an engine that only this process uses.
    pub fn own(engine: Engine) -> EngineHandle {
        let (_, state) = watch::channel(State::Own(PendingEngine::done(engine)));
        EngineHandle(Arc::new(Inner::new(state)))
    }

    /// Attaches to the owner of the store, or becomes the owner. Only the owner calls `open`, on a thread. Must be
    /// called within a runtime, which the handle must not outlive.
    #[cfg(unix)]
    pub fn start(place: StoreLocation, open: impl Fn() -> Result<Engine> + Send + Sync + 'static) -> EngineHandle {
        let (sender, state) = watch::channel(State::Seeking);
        let (watched, connections) = (WatchedTrees::default(), Connections::default());
        let keeping = keep(place, Arc::new(open), sender, watched.clone(), connections.clone());
        let keeper = tokio::spawn(keeping).abort_handle();
        EngineHandle(Arc::new(Inner { state, keeper: Some(keeper), connections, watched }))
    }

    /// Over an engine that only this process uses, opened on a thread: without Unix sockets processes cannot attach.
    #[cfg(not(unix))]
    pub fn start(_: StoreLocation, open: impl Fn() -> Result<Engine> + Send + Sync + 'static) -> EngineHandle {
        EngineHandle::alone(open)
    }

    /// Over an engine that only this process uses, opened on a thread. Must be called within a runtime.
    pub fn alone(open: impl Fn() -> Result<Engine> + Send + Sync + 'static) -> EngineHandle {
        let (_, state) = watch::channel(State::Own(PendingEngine::start(Arc::new(open) as Arc<OpenEngine>)));
        EngineHandle(Arc::new(Inner::new(state)))
    }

    /// Registers a client that stays connected between requests.
    pub fn connect(&self) -> Connection {
        Connection::to(self.clone())
    }

    fn announce(&self) {
        self.0.connections.announce(&self.0.state.borrow());
    }

    /// Runs an operation, here or in the owner process. Dropping the future stops the work.
    pub async fn call(
        &self,
        caller: &Caller,
        operation: &'static Operation,
        request: Value,
        progress: Option<UnboundedSender<WorkProgress>>,
    ) -> Result<OperationAnswer> {
        self.call_holding(caller, operation, request, progress, ()).await
    }

    /// As `call`; `held` is dropped when the work has ended, even if the caller has stopped waiting.
    pub async fn call_holding(
        &self,
        caller: &Caller,
        operation: &'static Operation,
        request: Value,
        progress: Option<UnboundedSender<WorkProgress>>,
        held: impl Any + Send,
    ) -> Result<OperationAnswer> {
        #[cfg(unix)]
        let mut sendings = 0;
        loop {
            match self.settled().await? {
                State::Own(opening) => {
                    let engine = opening.engine().await?;
                    if caller.connection.is_some() {
                        // The engine may have been opened after the connection.
                        engine.coordination().presence().own(self.0.connections.all());
                    }
                    let report = move |done, of| {
                        // The receiver may be gone; the work goes on.
                        let _ = progress.as_ref().map(|progress| progress.send(WorkProgress { done, of }));
                    };
                    let written = |answer: OperationAnswer| Ok(OperationAnswer::written(answer.text()?));
                    #[cfg(unix)]
                    let asked = operation.meta.lasts.then(|| from_here(operation, &request)).transpose()?;
                    let work = Work { caller: caller.clone(), operation, request, held: Box::new(held) };
                    let answer = work.run(engine, report, written).await?;
                    #[cfg(unix)]
                    if let Some(asked) = asked {
                        self.0.watched.note(caller, operation, &asked);
                    }
                    return Ok(answer);
                }
                #[cfg(unix)]
                State::Attached(line) => {
                    let request = from_here(operation, &request)?;
                    match line.call(caller, operation, &request, progress.clone()).await {
                        OwnerReply::Answer(text) => {
                            if operation.meta.lasts {
                                self.0.watched.note(caller, operation, &request);
                            }
                            return read(text).await;
                        }
                        OwnerReply::Failed(error) => return Err(error),
                        OwnerReply::Lost { sent: false } => {}
                        OwnerReply::Lost { sent: true } => {
                            sendings += 1;
                            if operation.meta.effect != Effect::Read || sendings == SENDINGS {
                                return Err(owner_changed(operation));
                            }
                        }
                    }
                }
                #[cfg(unix)]
                State::Refused(error) => return Err(error),
                State::Seeking => return Err(Error::internal("the search for the owner of the store has ended")),
            }
        }
    }

    /// Records in the audit log that an operation or a login was refused before it reached an engine.
    pub(crate) fn refused(&self, caller: &Caller, what: &'static str, error: &Error) {
        match &*self.0.state.borrow() {
            State::Own(opening) => refuse(opening.clone(), caller.clone(), what, error.clone()),
            #[cfg(unix)]
            State::Attached(line) => line.refused(caller, what, error),
            // No engine is available to record it; the refusal is in the log.
            _ => {}
        }
    }

    /// The current role of this process.
    pub fn role(&self) -> EngineRole {
        role(&self.0.state.borrow())
    }

    /// Waits for the next role that differs from `last`.
    pub async fn role_after(&self, last: EngineRole) -> EngineRole {
        let mut state = self.0.state.clone();
        let next = state.wait_for(|state| role(state) != last).await.map(|state| role(&state));
        match next {
            Ok(role) => role,
            // The sender is gone, so the role does not change any more.
            Err(_) => std::future::pending().await,
        }
    }

    /// The engine, if this process owns it and it is open.
    pub fn engine(&self) -> Option<Engine> {
        match &*self.0.state.borrow() {
            State::Own(opening) => opening.now(),
            _ => None,
        }
    }

    /// Waits for a state that can take requests. An error if no owner is found in time.
    async fn settled(&self) -> Result<State> {
        let mut state = self.0.state.clone();
        let settled = state.wait_for(|state| match state {
            State::Seeking => false,
            #[cfg(unix)]
            State::Attached(line) => !line.is_closed(),
            _ => true,
        });
        match tokio::time::timeout(PATIENCE, settled).await {
            Ok(Ok(state)) => Ok(state.clone()),
            Ok(Err(_)) => Ok(State::Seeking),
            Err(_) => Err(Error::new(
                ErrorKind::Unavailable,
                ErrorCode::OwnerUnreachable,
                "another process works on the store and does not answer",
            )
            .hint("try again; if it happens again, end that process")),
        }
    }
}

/// Records a refusal once the engine is open, in a separate task because recording may block.
fn refuse(opening: PendingEngine, caller: Caller, what: &'static str, error: Error) {
    tokio::spawn(async move {
        let Ok(engine) = opening.engine().await else { return };
        let recorded = tokio::task::spawn_blocking(move || {
            let mut progress = |_, _| {};
            engine.refused(&caller.context(&mut progress), what, &error);
        });
        // A panic has already been reported.
        let _ = recorded.await;
    });
}

/// Sends one request to the owner of a store. None if there is no owner, or it cannot be attached to: the caller then
/// opens the store itself. Also None for a read whose owner ends midway. A write is an error in that case, because it
/// may have been done.
#[cfg(unix)]
pub async fn ask(
    place: &StoreLocation,
    caller: &Caller,
    operation: &Operation,
    request: &Value,
    progress: Option<UnboundedSender<WorkProgress>>,
) -> Result<Option<OperationAnswer>> {
    // An owner that cannot be attached to, for example of another version, does not stop the caller from opening the
    // store.
    let Ok((line, moving)) = attached::attach(place).await else { return Ok(None) };
    let request = from_here(operation, request)?;
    let mut calling = std::pin::pin!(line.call(caller, operation, &request, progress));
    let reply = tokio::select! {
        reply = &mut calling => reply,
        // When the connection ends, the call gets a reply that says so.
        () = moving => calling.await,
    };
    match reply {
        OwnerReply::Answer(text) => read(text).await.map(Some),
        OwnerReply::Failed(error) => Err(error),
        OwnerReply::Lost { sent: true } if operation.meta.effect != Effect::Read => Err(owner_changed(operation)),
        OwnerReply::Lost { .. } => Ok(None),
    }
}

/// Processes do not share a store on this system.
#[cfg(not(unix))]
pub async fn ask(
    _: &StoreLocation,
    _: &Caller,
    _: &Operation,
    _: &Value,
    _: Option<UnboundedSender<WorkProgress>>,
) -> Result<Option<OperationAnswer>> {
    Ok(None)
}

fn role(state: &State) -> EngineRole {
    match state {
        State::Own(_) => EngineRole::Owner,
        #[cfg(unix)]
        State::Attached(line) => EngineRole::Attached { owner: line.owner() },
        _ => EngineRole::Seeking,
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(keeper) = &self.keeper {
            keeper.abort();
        }
    }
}

/// Becomes the owner or stays attached to it, for as long as the handle exists.
#[cfg(unix)]
async fn keep(
    place: StoreLocation,
    open: Arc<OpenEngine>,
    state: watch::Sender<State>,
    watched: WatchedTrees,
    connections: Connections,
) {
    let mut pause = FIRST_PAUSE;
    loop {
        match place.take() {
            Ok(Some(mut seat)) => {
                let opening = PendingEngine::start(Arc::clone(&open));
                // Listens before the engine is open, so that other processes find the owner at once and wait for it.
                let listener = seat.listen(&place);
                state.send_replace(State::Own(opening.clone()));
                watched.resume(&opening);
                announce_when_open(&opening, &connections);
                match listener {
                    Ok(listener) => serve::run(listener, &place, &opening).await,
                    // Requests of this process are still served; other processes read the fault in the owner's note.
                    Err(_) => std::future::pending().await,
                }
            }
            Ok(None) => match attached::attach(&place).await {
                Ok((line, moving)) => {
                    watched.ask(&line);
                    let attached = State::Attached(line);
                    state.send_replace(attached.clone());
                    // After the new state is visible: a connection that opens meanwhile is announced here or by
                    // `announce`.
                    if !connections.all().is_empty() {
                        connections.announce(&attached);
                    }
                    moving.await;
                    state.send_replace(State::Seeking);
                    pause = FIRST_PAUSE;
                    continue;
                }
                Err(AttachError::NotYet) => {}
                Err(AttachError::Refused(error)) => drop(state.send_replace(State::Refused(error))),
            },
            Err(error) => drop(state.send_replace(State::Refused(error))),
        }
        tokio::time::sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// Announces the connections of this process once the engine is open. Its clients may send no request for a while.
#[cfg(unix)]
fn announce_when_open(opening: &PendingEngine, connections: &Connections) {
    let (opening, connections) = (opening.clone(), connections.clone());
    tokio::spawn(async move {
        if let Ok(engine) = opening.engine().await {
            engine.coordination().presence().own(connections.all());
        }
    });
}

/// Makes relative paths absolute, because the owner may have another current directory.
#[cfg(unix)]
fn from_here(operation: &Operation, request: &Value) -> Result<Value> {
    let mut request = request.clone();
    for name in operation.meta.places.iter().chain(operation.meta.files) {
        let Some(place) = request.get_mut(*name) else { continue };
        // `-` is a stream.
        let Some(path) = place.as_str().filter(|path| *path != "-") else { continue };
        let path = std::path::absolute(path)
            .map_err(|e| Error::invalid(ErrorCode::InvalidPath, format!("{name}: `{path}` cannot be resolved: {e}")))?;
        *place = Value::String(path.display().to_string());
    }
    Ok(request)
}

/// Parses an answer on a blocking thread, because it may be large.
#[cfg(unix)]
async fn read(text: String) -> Result<OperationAnswer> {
    let reading = tokio::task::spawn_blocking(move || {
        let value = serde_json::from_str(&text)
            .map_err(|e| Error::internal(format!("the owner's answer cannot be read: {e}")))?;
        Ok(OperationAnswer::of(text, value))
    });
    reading.await.unwrap_or_else(|panic| Err(Error::internal(format!("reading an answer panicked: {panic}"))))
}

#[cfg(unix)]
fn owner_changed(operation: &Operation) -> Error {
    let name = operation.meta.name;
    Error::new(
        ErrorKind::Unavailable,
        ErrorCode::OwnerChanged,
        format!("the process that worked on `{name}` ended before it answered"),
    )
    .hint("the write may or may not have happened: check, then try again; a `batch` with a `client_id` can be repeated unchanged")
}

#[cfg(not(unix))]
mod elsewhere {
    use lukasa_model::Result;
    use std::path::Path;

    /// Stands for a store, which processes do not share on this system.
    #[derive(Clone, Debug)]
    pub struct StoreLocation;

    impl StoreLocation {
        pub fn of(_store: &Path, _runtime: Option<&Path>, _temp: &Path) -> Result<StoreLocation> {
            Ok(StoreLocation)
        }

        /// None: every process has its own engine.
        pub fn owner(&self) -> Option<OwnerInfo> {
            None
        }
    }

    /// The process that owns a store.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct OwnerInfo {
        pub pid: Option<u32>,
        pub fault: Option<String>,
    }
}
