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
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};

/// Requests of all attached processes that run at the same time; each takes a thread.
const AT_ONCE: usize = 64;
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
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let hello = Hello::ours(place.store().to_owned());
                    let host = Host { opening: opening.clone(), turns: Arc::clone(&turns), hello };
                    connections.spawn(host.attend(stream));
                }
                Err(_) => tokio::time::sleep(RELIEF).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

struct Host {
    opening: PendingEngine,
    turns: Arc<Semaphore>,
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
        let (opening, turns, out) = (self.opening.clone(), Arc::clone(&self.turns), out.clone());
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
    turns: Arc<Semaphore>,
    out: mpsc::Sender<Vec<u8>>,
) -> Result<Vec<u8>> {
    let Request { id, caller, operation: name, request } = request;
    let operation = registry::find(&name)
        .ok_or_else(|| Error::not_found(ErrorCode::UnknownOperation, format!("no operation `{name}`")))?;
    let engine = opening.engine().await?;
    let turn = turns.acquire_owned().await.map_err(|_| Error::internal("the owner has ended"))?;
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
