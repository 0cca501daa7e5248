//! The queue of audit entries, and the thread that appends them in groups.
//!
//! Nothing is dropped: an operation reserves a place before it begins, and waits while all places are taken. Entries
//! that cannot be appended stay in the queue and are retried; until then operations that write are refused.

use super::AuditKey;
use crate::telemetry::{log, metrics};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use lukasa_store::Store;
use lukasa_store::audit::{AuditNote, Seals};
use parking_lot::{Condvar, Mutex, MutexGuard};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum number of operations in progress or waiting to be recorded: about 8 MB.
const PLACES: usize = 16_384;
/// Maximum number of entries appended together.
const GROUP: usize = 1_024;
/// How long entries are gathered if no operation waits for them.
const GATHERED: Duration = Duration::from_millis(20);
/// How long an operation waits for a place before it is refused.
const FOR_A_PLACE: Duration = Duration::from_secs(10);
/// How long an operation that writes waits for its entry.
const FOR_THE_RECORD: Duration = Duration::from_secs(5);
/// The pause after a failed attempt. It doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Attempts at the end of the process.
const LAST_TRIES: u32 = 3;

/// The state of the recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditState {
    /// Entries of operations that ended and are not recorded yet.
    pub waiting: usize,
    pub recorded: u64,
    /// Why entries cannot be recorded at present.
    pub fault: Option<Error>,
}

pub(super) struct AuditQueue {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    store: Arc<dyn Store>,
    /// The name of the chains that entries are appended to.
    server: Mutex<String>,
    key: Arc<AuditKey>,
    state: Mutex<State>,
    /// Notified when the thread has work.
    work: Condvar,
    /// Notified when a place is free, when entries are recorded, and when recording fails.
    news: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(AuditNote, bool)>,
    /// Places reserved by operations in progress.
    taken: usize,
    /// Total number of entries put into the queue, and recorded.
    put: u64,
    recorded: u64,
    /// An operation waits for the entries up to this one.
    awaited: u64,
    fault: Option<Error>,
    ended: bool,
}

impl AuditQueue {
    pub fn new(store: Arc<dyn Store>, server: &str, key: Arc<AuditKey>) -> AuditQueue {
        let state = Mutex::default();
        let shared =
            Shared { store, server: Mutex::new(server.into()), key, state, work: Condvar::new(), news: Condvar::new() };
        AuditQueue { shared: Arc::new(shared), thread: Mutex::default() }
    }

    /// Reserves a place for an operation that begins. `durable`: it writes, and its entry must survive a crash of the
    /// machine.
    pub fn place(&self, durable: bool) -> Result<AuditSlot> {
        self.start()?;
        let mut state = self.shared.state.lock();
        if let (true, Some(fault)) = (durable, &state.fault) {
            return Err(unavailable(fault));
        }
        let until = Instant::now() + FOR_A_PLACE;
        while state.taken + state.waiting.len() >= PLACES {
            metrics().audit_waits.inc();
            if self.shared.news.wait_until(&mut state, until).timed_out() {
                let fault = state.fault.clone();
                return Err(unavailable(&fault.unwrap_or_else(|| Error::internal("recording is too slow"))));
            }
        }
        state.taken += 1;
        Ok(AuditSlot { shared: Arc::clone(&self.shared), durable, filled: false })
    }

    pub fn state(&self) -> AuditState {
        let state = self.shared.state.lock();
        AuditState { waiting: state.waiting.len(), recorded: state.recorded, fault: state.fault.clone() }
    }

    /// Waits until every entry in the queue is recorded. Returns an error if that fails.
    pub fn flush(&self) -> Result<()> {
        let mut state = self.shared.state.lock();
        let all = state.put;
        self.shared.wait_for(&mut state, all)
    }

    /// Starts the thread on first use.
    fn start(&self) -> Result<()> {
        let mut thread = self.thread.lock();
        if thread.is_some() {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let started = std::thread::Builder::new().name("audit".into()).spawn(move || shared.run());
        *thread = Some(started.map_err(|e| {
            Error::new(
                ErrorKind::Unavailable,
                ErrorCode::AuditUnavailable,
                format!("the thread that records could not be started: {e}"),
            )
        })?);
        Ok(())
    }
}

impl Drop for AuditQueue {
    fn drop(&mut self) {
        self.shared.state.lock().ended = true;
        self.shared.work.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}

fn unavailable(fault: &Error) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        ErrorCode::AuditUnavailable,
        format!("the operation could not be recorded, so it was not begun: {}", fault.message),
    )
    .hint("try again in a moment; `lukasa doctor` shows the state of the audit record")
}

/// A place reserved for one operation; released when it is dropped unused.
pub(super) struct AuditSlot {
    shared: Arc<Shared>,
    durable: bool,
    filled: bool,
}

impl AuditSlot {
    /// Puts the entry into the queue. If it is durable, waits until it is recorded or recording has failed.
    pub fn fill(mut self, note: AuditNote) {
        self.filled = true;
        let mut state = self.shared.state.lock();
        state.taken -= 1;
        state.put += 1;
        let own = state.put;
        state.waiting.push_back((note, self.durable));
        if !self.durable {
            // The thread gathers entries: it must know about the first one, and when a group is complete.
            if state.waiting.len() == 1 || state.waiting.len() >= GROUP {
                self.shared.work.notify_all();
            }
            return;
        }
        // The operation is done and its entry stays in the queue. The failure is reported by the thread.
        let _ = self.shared.wait_for(&mut state, own);
    }
}

impl Drop for AuditSlot {
    fn drop(&mut self) {
        if !self.filled {
            self.shared.state.lock().taken -= 1;
            self.shared.news.notify_all();
        }
    }
}

impl Shared {
    fn wait_for(&self, state: &mut MutexGuard<'_, State>, entry: u64) -> Result<()> {
        state.awaited = state.awaited.max(entry);
        self.work.notify_all();
        let until = Instant::now() + FOR_THE_RECORD;
        while state.recorded < entry {
            if let Some(fault) = &state.fault {
                return Err(fault.clone());
            }
            if self.news.wait_until(state, until).timed_out() {
                return Err(Error::new(
                    ErrorKind::Unavailable,
                    ErrorCode::AuditUnavailable,
                    "recording takes too long",
                ));
            }
        }
        Ok(())
    }

    fn run(&self) {
        let (mut pause, mut last_tries) = (FIRST_PAUSE, 0);
        while let Some(group) = self.next() {
            let durable = group.iter().any(|(_, durable)| *durable);
            let notes: Vec<AuditNote> = group.iter().map(|(note, _)| note.clone()).collect();
            let began = Instant::now();
            let appended = self.append(&notes, durable);
            let mut state = self.state.lock();
            match appended {
                Ok(()) => {
                    state.recorded += notes.len() as u64;
                    metrics().audit_entries.add(notes.len() as u64);
                    metrics().audit_append_seconds.record(began.elapsed().as_secs_f64());
                    if state.fault.take().is_some() {
                        log::event(log::LogLevel::Info, "audit.recovered", &[("entries", json!(notes.len()))]);
                    }
                    pause = FIRST_PAUSE;
                    self.news.notify_all();
                }
                Err(fault) => {
                    metrics().audit_failures.inc();
                    let fields = [("code", json!(fault.code)), ("message", json!(fault.message))];
                    log::event(log::LogLevel::Error, "audit.failed", &fields);
                    // Back into the queue, in the same order.
                    for noted in group.into_iter().rev() {
                        state.waiting.push_front(noted);
                    }
                    state.fault = Some(fault);
                    self.news.notify_all();
                    if state.ended {
                        last_tries += 1;
                        if last_tries == LAST_TRIES {
                            let lost = state.waiting.len();
                            metrics().audit_lost.add(lost as u64);
                            log::event(log::LogLevel::Error, "audit.lost", &[("entries", json!(lost))]);
                            return;
                        }
                    }
                    // Ending the process cuts the pause short; new entries do not.
                    let until = Instant::now() + pause;
                    while !state.ended && !self.work.wait_until(&mut state, until).timed_out() {}
                    pause = LONGEST_PAUSE.min(pause * 2);
                }
            }
        }
    }

    /// Appends entries to the chains of this server. If a chain ends with the seal of an unknown key, new chains are
    /// used from now on. The old chain stays as it is, so that `audit verify` still finds what is wrong with it.
    fn append(&self, notes: &[AuditNote], durable: bool) -> Result<()> {
        let server = self.server.lock().clone();
        let trail = self.store.audit();
        match trail.append(&server, notes, &*self.key, durable) {
            Err(fault) if fault.code == ErrorCode::ForeignSeal => {
                let own = format!("+{}", self.key.key_id());
                if server.ends_with(&own) {
                    return Err(fault);
                }
                let next = server + &own;
                trail.append(&next, notes, &*self.key, durable)?;
                log::event(
                    log::LogLevel::Warn,
                    "audit.foreign_seal",
                    &[("message", json!(fault.message)), ("appends_to", json!(next))],
                );
                *self.server.lock() = next;
                Ok(())
            }
            appended => appended,
        }
    }

    /// The next group of entries to record. None at the end of the process.
    fn next(&self) -> Option<Vec<(AuditNote, bool)>> {
        let mut state = self.state.lock();
        while state.waiting.is_empty() {
            if state.ended {
                return None;
            }
            self.work.wait(&mut state);
        }
        let until = Instant::now() + GATHERED;
        while !state.ended && state.awaited <= state.recorded && state.waiting.len() < GROUP {
            if self.work.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        let group = GROUP.min(state.waiting.len());
        Some(state.waiting.drain(..group).collect())
    }
}
