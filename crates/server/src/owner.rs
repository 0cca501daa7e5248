//! One engine per store: the first process owns it, others attach, and another takes over when it ends.
//!
//! Whoever holds the lock beside the store opens the engine and listens on a local socket; the lock goes with the process.
//! A [`Desk`] hides which of the two this process is. Systems without Unix sockets have an engine in every process.

mod connections;
#[cfg(unix)]
mod line;
mod opening;
#[cfg(unix)]
mod place;
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
pub use place::{Owner, Place};

pub use connections::Connection;
pub use probe::Probe;
pub(crate) use workers::workers;

use crate::front::{Caller, Progress};
use connections::Connections;
#[cfg(unix)]
use line::{Line, NoLine, Reply};
#[cfg(unix)]
use lukasa_engine::Effect;
use lukasa_engine::{Answer, Engine, Operation};
use lukasa_model::{Error, ErrorKind, Result};
use opening::{Open, Opening};
use serde_json::Value;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::AbortHandle;
#[cfg(unix)]
use watched::Watched;
use work::Work;

/// How long requests wait for an owner to be found. One that is opening the store is found, and waited for as long as
/// the caller likes.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a read is sent: one that brings down whoever works on it must not bring down every process in turn.
#[cfg(unix)]
const SENDINGS: u32 = 3;
/// Between attempts to find an owner; a killed process takes a few milliseconds to be gone.
#[cfg(unix)]
const FIRST_PAUSE: Duration = Duration::from_millis(5);
#[cfg(unix)]
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Where surfaces hand in requests, whichever process has the engine. Clones are the same desk; with the last one the
/// seat of the owner goes to somebody else.
#[derive(Clone)]
pub struct Desk(Arc<Inner>);

struct Inner {
    state: watch::Receiver<State>,
    keeper: Option<AbortHandle>,
    connections: Connections,
    #[cfg(unix)]
    watched: Watched,
}

impl Inner {
    fn new(state: watch::Receiver<State>) -> Inner {
        Inner {
            state,
            keeper: None,
            connections: Connections::default(),
            #[cfg(unix)]
            watched: Watched::default(),
        }
    }
}

/// What this process is to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Looking for the owner.
    Seeking,
    Owner,
    Attached {
        owner: u32,
    },
}

#[derive(Clone)]
enum State {
    Seeking,
    Own(Opening),
    #[cfg(unix)]
    Attached(Line),
    /// For as long as nothing changes; it is looked at again and again.
    #[cfg(unix)]
    Refused(Error),
}

impl Desk {
    /// An engine of this process alone.
    pub fn own(engine: Engine) -> Desk {
        let (_, state) = watch::channel(State::Own(Opening::done(engine)));
        Desk(Arc::new(Inner::new(state)))
    }

    /// Joins whoever works on the store, or begins: `open` is called on a thread, by the owner only. To be called within
    /// a runtime, which the desk must not outlive.
    #[cfg(unix)]
    pub fn start(place: Place, open: impl Fn() -> Result<Engine> + Send + Sync + 'static) -> Desk {
        let (sender, state) = watch::channel(State::Seeking);
        let (watched, connections) = (Watched::default(), Connections::default());
        let keeping = keep(place, Arc::new(open), sender, watched.clone(), connections.clone());
        let keeper = tokio::spawn(keeping).abort_handle();
        Desk(Arc::new(Inner { state, keeper: Some(keeper), connections, watched }))
    }

    /// An engine of this process alone, opened on a thread: there is nothing to attach by.
    #[cfg(not(unix))]
    pub fn start(_: Place, open: impl Fn() -> Result<Engine> + Send + Sync + 'static) -> Desk {
        Desk::alone(open)
    }

    /// An engine of this process alone, opened on a thread. To be called within a runtime.
    pub fn alone(open: impl Fn() -> Result<Engine> + Send + Sync + 'static) -> Desk {
        let (_, state) = watch::channel(State::Own(Opening::start(Arc::new(open) as Arc<Open>)));
        Desk(Arc::new(Inner::new(state)))
    }

    /// A client begins that stays connected between requests.
    pub fn connect(&self) -> Connection {
        Connection::to(self.clone())
    }

    fn announce(&self) {
        self.0.connections.tell(&self.0.state.borrow());
    }

    /// Runs an operation, here or at the owner's. Who gives up waiting drops the future, and work stops.
    pub async fn call(
        &self,
        caller: &Caller,
        operation: &'static Operation,
        request: Value,
        progress: Option<UnboundedSender<Progress>>,
    ) -> Result<Answer> {
        self.call_holding(caller, operation, request, progress, ()).await
    }

    /// The same; `held` is dropped when the work has ended, whether or not somebody still waits for it.
    pub async fn call_holding(
        &self,
        caller: &Caller,
        operation: &'static Operation,
        request: Value,
        progress: Option<UnboundedSender<Progress>>,
        held: impl Any + Send,
    ) -> Result<Answer> {
        #[cfg(unix)]
        let mut sendings = 0;
        loop {
            match self.settled().await? {
                State::Own(opening) => {
                    let engine = opening.engine().await?;
                    if caller.connection.is_some() {
                        // It may have been opened since the connection was.
                        engine.coordination().presence().own(self.0.connections.all());
                    }
                    let tell = move |done, of| {
                        // Nobody listening is no fault of the work.
                        let _ = progress.as_ref().map(|progress| progress.send(Progress { done, of }));
                    };
                    let written = |answer: Answer| Ok(Answer::written(answer.text()?));
                    #[cfg(unix)]
                    let asked = watched::lasts(operation).then(|| from_here(operation, &request)).transpose()?;
                    let work = Work { caller: caller.clone(), operation, request, held: Box::new(held) };
                    let answer = work.run(engine, tell, written).await?;
                    #[cfg(unix)]
                    if let Some(asked) = asked {
                        self.0.watched.note(caller, &asked);
                    }
                    return Ok(answer);
                }
                #[cfg(unix)]
                State::Attached(line) => {
                    let request = from_here(operation, &request)?;
                    match line.call(caller, operation, &request, progress.clone()).await {
                        Reply::Answer(text) => {
                            if watched::lasts(operation) {
                                self.0.watched.note(caller, &request);
                            }
                            return read(text).await;
                        }
                        Reply::Failed(error) => return Err(error),
                        Reply::Lost { sent: false } => {}
                        Reply::Lost { sent: true } => {
                            sendings += 1;
                            if operation.meta.effect != Effect::Read || sendings == SENDINGS {
                                return Err(owner_changed(operation));
                            }
                        }
                    }
                }
                #[cfg(unix)]
                State::Refused(error) => return Err(error),
                State::Seeking => return Err(Error::internal("nobody looks for the owner of the store any more")),
            }
        }
    }

    /// Has it recorded that something was refused before it came to an engine: an operation, or to let somebody in.
    pub(crate) fn refused(&self, caller: &Caller, what: &'static str, error: &Error) {
        match &*self.0.state.borrow() {
            State::Own(opening) => refuse(opening.clone(), caller.clone(), what, error.clone()),
            #[cfg(unix)]
            State::Attached(line) => line.refused(caller, what, error),
            // Nobody is there who could record it; the log has it.
            _ => {}
        }
    }

    pub fn role(&self) -> Role {
        role(&self.0.state.borrow())
    }

    /// The next role that is not this one.
    pub async fn role_after(&self, last: Role) -> Role {
        let mut state = self.0.state.clone();
        let next = state.wait_for(|state| role(state) != last).await.map(|state| role(&state));
        match next {
            Ok(role) => role,
            // With nobody to change it, it stays.
            Err(_) => std::future::pending().await,
        }
    }

    /// The engine, where this process has it and it is open.
    pub fn engine(&self) -> Option<Engine> {
        match &*self.0.state.borrow() {
            State::Own(opening) => opening.now(),
            _ => None,
        }
    }

    /// Something that requests can be handed to, or the reason why there is nothing.
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
                "owner_unreachable",
                "another process works on the store and does not answer",
            )
            .hint("try again; if it stays so, end that process")),
        }
    }
}

/// Records what was refused, once the engine is open. Recording may have to wait, which is not for this thread.
fn refuse(opening: Opening, caller: Caller, what: &'static str, error: Error) {
    tokio::spawn(async move {
        let Ok(engine) = opening.engine().await else { return };
        let recorded = tokio::task::spawn_blocking(move || {
            let mut progress = |_, _| {};
            engine.refused(&caller.context(&mut progress), what, &error);
        });
        // One that broke off has told so by its panic.
        let _ = recorded.await;
    });
}

/// Has the owner of a store answer one request; none where nobody owns it, or whoever does cannot be attached to: then the
/// store is the caller's to open. A read whose owner ends midway is also the caller's; what writes may have been done.
#[cfg(unix)]
pub async fn ask(
    place: &Place,
    caller: &Caller,
    operation: &Operation,
    request: &Value,
    progress: Option<UnboundedSender<Progress>>,
) -> Result<Option<Answer>> {
    // One that cannot be attached to, of another version for example, was no hindrance before either.
    let Ok((line, moving)) = line::attach(place).await else { return Ok(None) };
    let request = from_here(operation, request)?;
    let mut calling = std::pin::pin!(line.call(caller, operation, &request, progress));
    let reply = tokio::select! {
        reply = &mut calling => reply,
        // When the connection ends, whatever waits for an answer gets to know.
        () = moving => calling.await,
    };
    match reply {
        Reply::Answer(text) => read(text).await.map(Some),
        Reply::Failed(error) => Err(error),
        Reply::Lost { sent: true } if operation.meta.effect != Effect::Read => Err(owner_changed(operation)),
        Reply::Lost { .. } => Ok(None),
    }
}

/// Processes do not share a store here.
#[cfg(not(unix))]
pub async fn ask(
    _: &Place,
    _: &Caller,
    _: &Operation,
    _: &Value,
    _: Option<UnboundedSender<Progress>>,
) -> Result<Option<Answer>> {
    Ok(None)
}

fn role(state: &State) -> Role {
    match state {
        State::Own(_) => Role::Owner,
        #[cfg(unix)]
        State::Attached(line) => Role::Attached { owner: line.owner() },
        _ => Role::Seeking,
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(keeper) = &self.keeper {
            keeper.abort();
        }
    }
}

/// Takes the seat, or stays attached to who has it, for as long as the desk is there.
#[cfg(unix)]
async fn keep(place: Place, open: Arc<Open>, state: watch::Sender<State>, watched: Watched, connections: Connections) {
    let mut pause = FIRST_PAUSE;
    loop {
        match place.take() {
            Ok(Some(mut seat)) => {
                let opening = Opening::start(Arc::clone(&open));
                // Before anything can be asked, so that others find us at once and wait here.
                let listener = seat.listen(&place);
                state.send_replace(State::Own(opening.clone()));
                watched.resume(&opening);
                announce_when_open(&opening, &connections);
                match listener {
                    Ok(listener) => serve::run(listener, &place, &opening).await,
                    // Our own requests are answered; others read in the owner's note why theirs are not.
                    Err(_) => std::future::pending().await,
                }
            }
            Ok(None) => match line::attach(&place).await {
                Ok((line, moving)) => {
                    watched.ask(&line);
                    let attached = State::Attached(line);
                    state.send_replace(attached.clone());
                    // After it can be seen, so that whoever connects meanwhile is told of one way or the other.
                    if !connections.all().is_empty() {
                        connections.tell(&attached);
                    }
                    moving.await;
                    state.send_replace(State::Seeking);
                    pause = FIRST_PAUSE;
                    continue;
                }
                Err(NoLine::NotYet) => {}
                Err(NoLine::Refused(error)) => drop(state.send_replace(State::Refused(error))),
            },
            Err(error) => drop(state.send_replace(State::Refused(error))),
        }
        tokio::time::sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// Who was attached to another process before may have clients that ask nothing for a while.
#[cfg(unix)]
fn announce_when_open(opening: &Opening, connections: &Connections) {
    let (opening, connections) = (opening.clone(), connections.clone());
    tokio::spawn(async move {
        if let Ok(engine) = opening.engine().await {
            engine.coordination().presence().own(connections.all());
        }
    });
}

/// Places that are named relative to where we are mean the same at the owner's.
#[cfg(unix)]
fn from_here(operation: &Operation, request: &Value) -> Result<Value> {
    let mut request = request.clone();
    for name in operation.meta.places.iter().chain(operation.meta.files) {
        let Some(place) = request.get_mut(*name) else { continue };
        // A dash is a stream.
        let Some(path) = place.as_str().filter(|path| *path != "-") else { continue };
        let path = std::path::absolute(path)
            .map_err(|e| Error::invalid("invalid_path", format!("{name}: `{path}` leads nowhere: {e}")))?;
        *place = Value::String(path.display().to_string());
    }
    Ok(request)
}

/// An answer from its JSON, read where it does not hold up others.
#[cfg(unix)]
async fn read(text: String) -> Result<Answer> {
    let reading = tokio::task::spawn_blocking(move || {
        let value = serde_json::from_str(&text)
            .map_err(|e| Error::internal(format!("the owner's answer cannot be read: {e}")))?;
        Ok(Answer::of(text, value))
    });
    reading.await.unwrap_or_else(|panic| Err(Error::internal(format!("reading an answer broke off: {panic}"))))
}

#[cfg(unix)]
fn owner_changed(operation: &Operation) -> Error {
    let name = operation.meta.name;
    Error::new(
        ErrorKind::Unavailable,
        "owner_changed",
        format!("the process that worked on `{name}` ended before it answered"),
    )
    .hint("it may have been done or not: look, then try again; a `batch` with a `client_id` can be sent again as it is")
}

#[cfg(not(unix))]
mod elsewhere {
    use lukasa_model::Result;
    use std::path::Path;

    /// Stands for a store; processes do not share it here.
    #[derive(Clone, Debug)]
    pub struct Place;

    impl Place {
        pub fn of(_store: &Path, _runtime: Option<&Path>, _temp: &Path) -> Result<Place> {
            Ok(Place)
        }

        /// Every process has an engine of its own.
        pub fn owner(&self) -> Option<Owner> {
            None
        }
    }

    /// The process that owns a store.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Owner {
        pub pid: Option<u32>,
        pub fault: Option<String>,
    }
}
