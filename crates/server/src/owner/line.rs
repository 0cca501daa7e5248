//! The attached side: a connection to the owner that many requests share.

use super::place::{Place, own_user};
use super::wire::{self, Asker, Frame, Hello, Refusal, Request};
use crate::front::{Caller, Progress};
use lukasa_engine::Operation;
use lukasa_model::{Error, ErrorKind};
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

/// An owner answers a hello at once, even while it opens the store.
const INTRODUCTION: Duration = Duration::from_secs(2);

/// What came of a request.
pub(super) enum Reply {
    /// JSON.
    Answer(String),
    Failed(Error),
    /// The owner has ended. `sent`: the whole request may have reached it before.
    Lost {
        sent: bool,
    },
}

/// Why there is no line.
pub(super) enum NoLine {
    /// Nobody is there yet, or no longer: worth trying again at once.
    NotYet,
    /// Somebody is there who does not want us, or whom we do not want.
    Refused(Error),
}

/// Clones share the connection.
#[derive(Clone)]
pub(super) struct Line(Arc<Shared>);

struct Shared {
    owner: u32,
    out: UnboundedSender<Outgoing>,
    waiting: Arc<Mutex<Waiting>>,
    next: AtomicU64,
}

struct Outgoing {
    id: u64,
    bytes: Vec<u8>,
    /// Only worth sending while somebody waits for its answer.
    request: bool,
}

#[derive(Default)]
struct Waiting {
    closed: bool,
    by_id: HashMap<u64, Waiter>,
}

struct Waiter {
    reply: oneshot::Sender<Reply>,
    progress: Option<UnboundedSender<Progress>>,
    sent: bool,
}

/// Connects to the owner. The second part moves frames and ends with the connection.
pub(super) async fn attach(place: &Place) -> Result<(Line, impl Future<Output = ()> + Send + use<>), NoLine> {
    let note = place.note().ok_or(NoLine::NotYet)?;
    let Some(socket) = note.socket else {
        let fault = note.fault.unwrap_or_default();
        let message = format!("process {} works on the store and cannot be attached to: {fault}", note.pid);
        return Err(NoLine::Refused(unreachable(message)));
    };
    let introduced = tokio::time::timeout(INTRODUCTION, introduce(&socket, place)).await;
    let (owner, from, to) = introduced.unwrap_or(Err(NoLine::NotYet))?;
    let waiting = Arc::new(Mutex::new(Waiting::default()));
    let (out, outgoing) = mpsc::unbounded_channel();
    let line = Line(Arc::new(Shared { owner, out, waiting: Arc::clone(&waiting), next: AtomicU64::new(1) }));
    let moving = async move {
        tokio::select! {
            () = read(from, &waiting) => {}
            () = write(to, outgoing, &waiting) => {}
        }
        let mut waiting = waiting.lock();
        waiting.closed = true;
        for (_, waiter) in waiting.by_id.drain() {
            // Who no longer waits need not know.
            let _ = waiter.reply.send(Reply::Lost { sent: waiter.sent });
        }
    };
    Ok((line, moving))
}

async fn introduce(socket: &Path, place: &Place) -> Result<(u32, OwnedReadHalf, OwnedWriteHalf), NoLine> {
    let stream = UnixStream::connect(socket).await.map_err(|_| NoLine::NotYet)?;
    let user = own_user().map_err(NoLine::Refused)?;
    if stream.peer_cred().map_err(|_| NoLine::NotYet)?.uid() != user {
        return Err(NoLine::Refused(unreachable("another user works on the store".into())));
    }
    let (mut from, mut to) = stream.into_split();
    let ours = Hello::ours(place.store().to_owned());
    let hello = wire::written(&Frame::Hello(ours.clone())).map_err(NoLine::Refused)?;
    to.write_all(&hello).await.map_err(|_| NoLine::NotYet)?;
    match wire::next(&mut from).await {
        Ok(Some(Frame::Hello(theirs))) => {
            ours.check(&theirs).map_err(NoLine::Refused)?;
            Ok((theirs.pid, from, to))
        }
        Ok(Some(Frame::Refused(error))) => Err(NoLine::Refused(error.into())),
        Ok(Some(_)) => Err(NoLine::Refused(unreachable("the owner of the store speaks another language".into()))),
        Ok(None) | Err(_) => Err(NoLine::NotYet),
    }
}

fn unreachable(message: String) -> Error {
    Error::new(ErrorKind::Unavailable, "owner_unreachable", message)
        .hint("end the process that works on the store, or try again")
}

impl Line {
    /// The process at the other end.
    pub fn owner(&self) -> u32 {
        self.0.owner
    }

    pub fn is_closed(&self) -> bool {
        self.0.waiting.lock().closed
    }

    /// Tells the owner which connections are open here.
    pub fn here(&self, connections: BTreeSet<String>) {
        if let Ok(bytes) = wire::written(&Frame::Here { connections }) {
            // Without a connection to the owner there is nobody to tell; the next one is told anew.
            let _ = self.0.out.send(Outgoing { id: 0, bytes, request: false });
        }
    }

    /// Has the owner record what was refused here.
    pub fn refused(&self, caller: &Caller, what: &str, error: &Error) {
        let refusal = Refusal { caller: Asker::from(caller), what: what.into(), error: error.clone().into() };
        if let Ok(bytes) = wire::written(&Frame::Refusal(refusal)) {
            // Without a connection to the owner there is nobody who records it; the log has it.
            let _ = self.0.out.send(Outgoing { id: 0, bytes, request: false });
        }
    }

    /// Asks the owner. Who gives up waiting drops the future, and the owner is told.
    pub async fn call(
        &self,
        caller: &Caller,
        operation: &Operation,
        request: &Value,
        progress: Option<UnboundedSender<Progress>>,
    ) -> Reply {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (operation, request) = (operation.meta.name.to_owned(), request.clone());
        let frame = Frame::Request(Request { id, caller: Asker::from(caller), operation, request });
        let bytes = match wire::written(&frame) {
            Ok(bytes) => bytes,
            Err(error) if error.kind == ErrorKind::TooLarge => {
                let error = Error::too_large("request_too_large", error.message);
                return Reply::Failed(error.hint("send it in several parts"));
            }
            Err(error) => return Reply::Failed(error),
        };
        let (reply, replied) = oneshot::channel();
        {
            let mut waiting = self.0.waiting.lock();
            if waiting.closed {
                return Reply::Lost { sent: false };
            }
            waiting.by_id.insert(id, Waiter { reply, progress, sent: false });
        }
        let _leaving = Leaving { line: self, id };
        // Where nobody sends any more, whoever closed the line has answered or will.
        let _ = self.0.out.send(Outgoing { id, bytes, request: true });
        replied.await.unwrap_or(Reply::Lost { sent: true })
    }
}

/// Has the owner stop when nobody waits for its answer any more.
struct Leaving<'a> {
    line: &'a Line,
    id: u64,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let gone = self.line.0.waiting.lock().by_id.remove(&self.id);
        if gone.is_some_and(|waiter| waiter.sent)
            && let Ok(bytes) = wire::written(&Frame::Cancel { id: self.id })
        {
            // Without a connection there is nothing to stop.
            let _ = self.line.0.out.send(Outgoing { id: self.id, bytes, request: false });
        }
    }
}

/// Hands out what comes, until nothing more does.
async fn read(mut from: OwnedReadHalf, waiting: &Mutex<Waiting>) {
    while let Ok(Some(frame)) = wire::next(&mut from).await {
        let (id, reply) = match frame {
            Frame::Answer { id, answer } => (id, Reply::Answer(Box::<str>::from(answer).into())),
            Frame::Failed { id, error } => (id, Reply::Failed(error.into())),
            Frame::Progress { id, done, of } => {
                let waiting = waiting.lock();
                if let Some(progress) = waiting.by_id.get(&id).and_then(|waiter| waiter.progress.as_ref()) {
                    let _ = progress.send(Progress { done, of });
                }
                continue;
            }
            // Nothing else is said in this direction.
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
            // Part of a frame is not acted upon: this request was surely not begun.
            mark(waiting, id, false);
            return;
        }
    }
}

/// Notes beforehand that a request is on its way, under the lock that also decides what is lost. False: nobody waits.
fn mark(waiting: &Mutex<Waiting>, id: u64, sent: bool) -> bool {
    waiting.lock().by_id.get_mut(&id).map(|waiter| waiter.sent = sent).is_some()
}
