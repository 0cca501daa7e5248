//! The attached side: a connection to the owner that many requests share.

use super::location::{StoreLocation, own_user};
use super::wire::{self, CallerFrame, Hello, Refusal, Request, WireFrame};
use crate::request_gate::{Caller, WorkProgress};
use lukasa_engine::Operation;
use lukasa_model::{Error, ErrorCode, ErrorKind};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::{mpsc, oneshot};

/// Timeout for the owner's hello. An owner answers at once, even while it opens the store.
const INTRODUCTION: Duration = Duration::from_secs(2);

/// The outcome of a request.
pub(super) enum OwnerReply {
    /// The answer as JSON.
    Answer(String),
    Failed(Error),
    /// The connection to the owner ended. `sent`: the whole request may have reached it before.
    Lost {
        sent: bool,
    },
}

/// Why there is no connection to the owner.
pub(super) enum AttachError {
    /// There is no owner yet, or it has ended: retry at once.
    NotYet,
    /// One side refuses the other, for example because of another version or user.
    Refused(Error),
}

/// A connection to the owner. Clones share it.
#[derive(Clone)]
pub(super) struct OwnerConnection(Arc<Shared>);

struct Shared {
    owner: u32,
    out: UnboundedSender<Outgoing>,
    waiting: Arc<Mutex<Waiting>>,
    next: AtomicU64,
}

struct Outgoing {
    id: u64,
    bytes: Vec<u8>,
    /// A request is only sent while its caller waits for the answer.
    request: bool,
}

#[derive(Default)]
struct Waiting {
    closed: bool,
    by_id: HashMap<u64, Waiter>,
}

struct Waiter {
    reply: oneshot::Sender<OwnerReply>,
    progress: Option<UnboundedSender<WorkProgress>>,
    sent: bool,
}

/// Connects to the owner. The returned future transfers frames and ends with the connection.
pub(super) async fn attach(
    place: &StoreLocation,
) -> Result<(OwnerConnection, impl Future<Output = ()> + Send + use<>), AttachError> {
    let note = place.note().ok_or(AttachError::NotYet)?;
    let Some(socket) = note.socket else {
        let fault = note.fault.unwrap_or_default();
        let message = format!("process {} works on the store and cannot be attached to: {fault}", note.pid);
        return Err(AttachError::Refused(unreachable(message)));
    };
    let introduced = tokio::time::timeout(INTRODUCTION, introduce(&socket, place)).await;
    let (owner, from, to) = introduced.unwrap_or(Err(AttachError::NotYet))?;
    let waiting = Arc::new(Mutex::new(Waiting::default()));
    let (out, outgoing) = mpsc::unbounded_channel();
    let line = OwnerConnection(Arc::new(Shared { owner, out, waiting: Arc::clone(&waiting), next: AtomicU64::new(1) }));
    let moving = async move {
        tokio::select! {
            () = read(from, &waiting) => {}
            () = write(to, outgoing, &waiting) => {}
        }
        let mut waiting = waiting.lock();
        waiting.closed = true;
        for (_, waiter) in waiting.by_id.drain() {
            // The caller may have stopped waiting.
            let _ = waiter.reply.send(OwnerReply::Lost { sent: waiter.sent });
        }
    };
    Ok((line, moving))
}

async fn introduce(socket: &Path, place: &StoreLocation) -> Result<(u32, OwnedReadHalf, OwnedWriteHalf), AttachError> {
    let stream = UnixStream::connect(socket).await.map_err(|_| AttachError::NotYet)?;
    let user = own_user().map_err(AttachError::Refused)?;
    if stream.peer_cred().map_err(|_| AttachError::NotYet)?.uid() != user {
        return Err(AttachError::Refused(unreachable("another user works on the store".into())));
    }
    let (mut from, mut to) = stream.into_split();
    let ours = Hello::ours(place.store().to_owned());
    let hello = wire::written(&WireFrame::Hello(ours.clone())).map_err(AttachError::Refused)?;
    to.write_all(&hello).await.map_err(|_| AttachError::NotYet)?;
    match wire::next(&mut from).await {
        Ok(Some(WireFrame::Hello(theirs))) => {
            ours.check(&theirs).map_err(AttachError::Refused)?;
            Ok((theirs.pid, from, to))
        }
        Ok(Some(WireFrame::Refused(error))) => Err(AttachError::Refused(error.into())),
        Ok(Some(_)) => Err(AttachError::Refused(unreachable("the owner of the store uses an unknown protocol".into()))),
        Ok(None) | Err(_) => Err(AttachError::NotYet),
    }
}

fn unreachable(message: String) -> Error {
    Error::new(ErrorKind::Unavailable, ErrorCode::OwnerUnreachable, message)
        .hint("end the process that works on the store, or try again")
}

impl OwnerConnection {
    /// The process id of the owner.
    pub fn owner(&self) -> u32 {
        self.0.owner
    }

    pub fn is_closed(&self) -> bool {
        self.0.waiting.lock().closed
    }

    /// Announces the open connections of this process to the owner.
    pub fn here(&self, connections: BTreeSet<String>) {
        if let Ok(bytes) = wire::written(&WireFrame::Here { connections }) {
            // If the connection is lost, the next owner receives the announcement instead.
            let _ = self.0.out.send(Outgoing { id: 0, bytes, request: false });
        }
    }

    /// Asks the owner to record a refusal of this process.
    pub fn refused(&self, caller: &Caller, what: &str, error: &Error) {
        let refusal = Refusal { caller: CallerFrame::from(caller), what: what.into(), error: error.clone().into() };
        if let Ok(bytes) = wire::written(&WireFrame::Refusal(refusal)) {
            // If the connection is lost, the refusal is only in the log.
            let _ = self.0.out.send(Outgoing { id: 0, bytes, request: false });
        }
    }

    /// Sends a request to the owner and waits for the reply. Dropping the future cancels the request.
    pub async fn call(
        &self,
        caller: &Caller,
        operation: &Operation,
        request: &Value,
        progress: Option<UnboundedSender<WorkProgress>>,
    ) -> OwnerReply {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (operation, request) = (operation.meta.name.to_owned(), request.clone());
        let frame = WireFrame::Request(Request { id, caller: CallerFrame::from(caller), operation, request });
        let bytes = match wire::written(&frame) {
            Ok(bytes) => bytes,
            Err(error) if error.kind == ErrorKind::TooLarge => {
                let error = Error::too_large(ErrorCode::RequestTooLarge, error.message);
                return OwnerReply::Failed(error.hint("send it in several parts"));
            }
            Err(error) => return OwnerReply::Failed(error),
        };
        let (reply, replied) = oneshot::channel();
        {
            let mut waiting = self.0.waiting.lock();
            if waiting.closed {
                return OwnerReply::Lost { sent: false };
            }
            waiting.by_id.insert(id, Waiter { reply, progress, sent: false });
        }
        let _leaving = Leaving { line: self, id };
        // If the writer has ended, the closed connection replies to every waiter.
        let _ = self.0.out.send(Outgoing { id, bytes, request: true });
        replied.await.unwrap_or(OwnerReply::Lost { sent: true })
    }
}

/// Cancels the request at the owner when the caller stops waiting.
struct Leaving<'a> {
    line: &'a OwnerConnection,
    id: u64,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let gone = self.line.0.waiting.lock().by_id.remove(&self.id);
        if gone.is_some_and(|waiter| waiter.sent)
            && let Ok(bytes) = wire::written(&WireFrame::Cancel { id: self.id })
        {
            // If the connection is lost, there is nothing to cancel.
            let _ = self.line.0.out.send(Outgoing { id: self.id, bytes, request: false });
        }
    }
}

/// Passes replies to their waiters until the connection ends.
async fn read(mut from: OwnedReadHalf, waiting: &Mutex<Waiting>) {
    while let Ok(Some(frame)) = wire::next(&mut from).await {
        let (id, reply) = match frame {
            WireFrame::Answer { id, answer } => (id, OwnerReply::Answer(Box::<str>::from(answer).into())),
            WireFrame::Failed { id, error } => (id, OwnerReply::Failed(error.into())),
            WireFrame::Progress { id, done, of } => {
                let waiting = waiting.lock();
                if let Some(progress) = waiting.by_id.get(&id).and_then(|waiter| waiter.progress.as_ref()) {
                    let _ = progress.send(WorkProgress { done, of });
                }
                continue;
            }
            // The owner sends no other frames.
            _ => return,
        };
        if let Some(waiter) = waiting.lock().by_id.remove(&id) {
            let _ = waiter.reply.send(reply);
        }
    }
}

async fn write(mut to: OwnedWriteHalf, mut outgoing: UnboundedReceiver<Outgoing>, waiting: &Mutex<Waiting>) {
    while let Some(Outgoing { id, bytes, request }) = outgoing.recv().await {
        if request && !mark(waiting, id, true) {
            continue;
        }
        if to.write_all(&bytes).await.is_err() {
            // The owner ignores a partial frame, so this request has not started.
            mark(waiting, id, false);
            return;
        }
    }
}

/// Sets whether a request may have been sent, before it is, under the lock that also decides what is lost. Returns
/// false if no caller waits for it.
fn mark(waiting: &Mutex<Waiting>, id: u64, sent: bool) -> bool {
    waiting.lock().by_id.get_mut(&id).map(|waiter| waiter.sent = sent).is_some()
}
