//! The owner's side: serves requests of attached processes.

use super::location::{StoreLocation, own_user};
use super::pending_engine::PendingEngine;
use super::wire::{self, ErrorFrame, Hello, Refusal, Request, WireFrame};
use super::work::Work;
use crate::request_gate::LOGIN;
use lukasa_engine::features::coordination::ConnectionSource;
use lukasa_engine::{Engine, OperationAnswer, registry};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};

/// Requests of all attached processes that run at the same time; each takes a thread.
const AT_ONCE: usize = 64;
/// Of these, long operations, so that the others find a thread.
const LONG_AT_ONCE: usize = 48;
/// Requests of one connection that run or wait. The limits of the surfaces are far lower.
const PER_CONNECTION: usize = 1_024;
/// Frames in the send queue. A process that does not read delays only its own answers.
const OUTGOING: usize = 64;
/// Shortest time between two progress frames.
const BETWEEN_PROGRESS: Duration = Duration::from_millis(50);
/// Timeout for the hello of a new connection.
const INTRODUCTION: Duration = Duration::from_secs(5);
/// Pause after `accept` fails, for example because too many files are open.
const RELIEF: Duration = Duration::from_millis(100);

/// Serves until the future is dropped; connections end with it.
pub(super) async fn run(listener: UnixListener, place: &StoreLocation, opening: &PendingEngine) {
    let turns = OwnerTurns::new(AT_ONCE, LONG_AT_ONCE);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let hello = Hello::ours(place.store().to_owned());
                    let host = Host { opening: opening.clone(), turns: turns.clone(), hello };
                    connections.spawn(host.attend(stream));
                }
                Err(_) => tokio::time::sleep(RELIEF).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Turns of the requests of attached processes. Clones share them.
#[derive(Clone)]
struct OwnerTurns {
    all: Arc<Semaphore>,
    long: Arc<Semaphore>,
}

/// A turn, returned when it is dropped.
struct OwnerTurn {
    _all: OwnedSemaphorePermit,
    _long: Option<OwnedSemaphorePermit>,
}

impl OwnerTurns {
    fn new(all: usize, long: usize) -> OwnerTurns {
        OwnerTurns { all: Arc::new(Semaphore::new(all)), long: Arc::new(Semaphore::new(long)) }
    }

    /// Waits for a turn of a long or another operation.
    async fn take(self, long: bool) -> Result<OwnerTurn> {
        let ended = |_| Error::internal("the owner has ended");
        // First, so that a waiting long operation takes no turn from the others.
        let _long = match long {
            true => Some(self.long.acquire_owned().await.map_err(ended)?),
            false => None,
        };
        Ok(OwnerTurn { _all: self.all.acquire_owned().await.map_err(ended)?, _long })
    }
}

struct Host {
    opening: PendingEngine,
    turns: OwnerTurns,
    hello: Hello,
}

impl Host {
    /// Serves one connection from its hello to its end. Errors are dropped, because there is no peer left to report
    /// them to.
    async fn attend(self, stream: UnixStream) {
        let known = own_user().is_ok_and(|user| stream.peer_cred().is_ok_and(|peer| peer.uid() == user));
        if !known {
            return;
        }
        let (mut from, mut to) = stream.into_split();
        let hello = tokio::time::timeout(INTRODUCTION, wire::next(&mut from)).await;
        let Ok(Ok(Some(WireFrame::Hello(other)))) = hello else { return };
        let (reply, refused) = match self.hello.check(&other) {
            Ok(()) => (WireFrame::Hello(self.hello.clone()), false),
            // The error is worded from the perspective of the attached process.
            Err(_) => (WireFrame::Refused(other.check(&self.hello).err().unwrap_or_else(stranger).into()), true),
        };
        let Ok(reply) = wire::written(&reply) else { return };
        if to.write_all(&reply).await.is_err() || refused {
            return;
        }
        let (out, mut outgoing) = mpsc::channel::<Vec<u8>>(OUTGOING);
        let writing = async move {
            while let Some(bytes) = outgoing.recv().await {
                if to.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = self.listen(&mut from, out) => {}
            () = writing => {}
        }
    }

    async fn listen(&self, from: &mut OwnedReadHalf, out: mpsc::Sender<Vec<u8>>) {
        let running = Running::default();
        let mut attached = None;
        while let Ok(Some(frame)) = wire::next(from).await {
            match frame {
                WireFrame::Here { connections } => {
                    // Requests wait for the engine too, so this delays nothing.
                    let Ok(engine) = self.opening.engine().await else { continue };
                    let attached = attached.get_or_insert_with(|| Attached::to(engine));
                    attached.engine.coordination().presence().here(attached.source, connections);
                }
                WireFrame::Request(request) => self.take(request, &out, &running),
                WireFrame::Refusal(Refusal { caller, what, error }) => {
                    let what = registry::find(&what).map_or(LOGIN, |operation| operation.meta.name);
                    super::refuse(self.opening.clone(), caller.into(), what, error.into());
                }
                WireFrame::Cancel { id } => running.stop(id),
                // Attached processes send no other frames.
                _ => return,
            }
        }
    }

    fn take(&self, request: Request, out: &mpsc::Sender<Vec<u8>>, running: &Running) {
        let id = request.id;
        let (opening, turns, out) = (self.opening.clone(), self.turns.clone(), out.clone());
        let under_way = Arc::clone(&running.0);
        let mut all = running.0.lock();
        let busy = all.len() >= PER_CONNECTION;
        let task = tokio::spawn(async move {
            let answer = match busy {
                true => Err(Error::new(ErrorKind::RateLimited, ErrorCode::TooBusy, "too many requests are waiting")
                    .hint("try again in a second")),
                false => answer(request, &opening, turns, out.clone()).await,
            };
            let bytes =
                answer.or_else(|error| wire::written(&WireFrame::Failed { id, error: ErrorFrame::from(error) }));
            if let Ok(bytes) = bytes {
                // If the connection is gone, so is the caller.
                let _ = out.send(bytes).await;
            }
            under_way.lock().remove(&id);
        });
        all.insert(id, task.abort_handle());
    }
}

/// Runs a request and returns the frame with its answer.
async fn answer(
    request: Request,
    opening: &PendingEngine,
    turns: OwnerTurns,
    out: mpsc::Sender<Vec<u8>>,
) -> Result<Vec<u8>> {
    let Request { id, caller, operation: name, request } = request;
    let operation = registry::find(&name)
        .ok_or_else(|| Error::not_found(ErrorCode::UnknownOperation, format!("no operation `{name}`")))?;
    let engine = opening.engine().await?;
    let turn = turns.take(operation.meta.long).await?;
    let mut last: Option<Instant> = None;
    let progress = move |done, of| {
        if last.is_some_and(|last| last.elapsed() < BETWEEN_PROGRESS) {
            return;
        }
        last = Some(Instant::now());
        if let Ok(bytes) = wire::written(&WireFrame::Progress { id, done, of }) {
            // Progress is dropped if the send queue is full.
            let _ = out.try_send(bytes);
        }
    };
    let raw = |answer: OperationAnswer| {
        RawValue::from_string(answer.text()?).map_err(|e| Error::internal(format!("an answer is not JSON: {e}")))
    };
    let work = Work { caller: caller.into(), operation, request, held: Box::new(turn) };
    let answer = work.run(engine, progress, raw).await?;
    wire::written(&WireFrame::Answer { id, answer })
}

fn stranger() -> Error {
    Error::new(ErrorKind::Unavailable, ErrorCode::OwnerUnreachable, "the owner of the store uses an unknown protocol")
}

/// An attached process. Dropping this removes its connections.
struct Attached {
    engine: Engine,
    source: ConnectionSource,
}

impl Attached {
    fn to(engine: Engine) -> Attached {
        Attached { source: engine.coordination().presence().source(), engine }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.engine.coordination().presence().gone(self.source);
    }
}

/// The requests of one connection that are in progress, by id. They are cancelled when the connection ends.
#[derive(Default)]
struct Running(Arc<Mutex<HashMap<u64, AbortHandle>>>);

impl Running {
    fn stop(&self, id: u64) {
        if let Some(task) = self.0.lock().remove(&id) {
            task.abort();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for (_, task) in self.0.lock().drain() {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn long_operations_leave_turns_to_others() {
        let turns = OwnerTurns::new(4, 2);
        let take = |long: bool| turns.clone().take(long).now_or_never().and_then(Result::ok);
        let long: Vec<OwnerTurn> = (0..4).filter_map(|_| take(true)).collect();
        assert_eq!(long.len(), 2);
        let others: Vec<OwnerTurn> = (0..4).filter_map(|_| take(false)).collect();
        assert_eq!(others.len(), 2, "all others, although long ones wait");
        drop(long);
        assert!(take(true).is_some());
        drop(others);
    }
}
