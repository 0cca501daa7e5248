//! The threads that work on requests, and a watchdog that reports those that do not stop when they should.

use crate::request_gate::Caller;
use lukasa_engine::Cancellation;
use lukasa_engine::telemetry::{log, metrics};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Scope};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{LazyLock, Once};
use std::time::{Duration, Instant};

/// How long work may continue after it was stopped by the time limit or because the caller has gone.
const GRACE: Duration = Duration::from_secs(5);
/// Time between two checks of the watchdog.
const EVERY: Duration = Duration::from_secs(1);

/// The workers of this process.
pub(crate) fn workers() -> &'static Workers {
    static ALL: LazyLock<Workers> = LazyLock::new(Workers::default);
    static WATCHDOG: Once = Once::new();
    WATCHDOG.call_once(|| {
        let watching = std::thread::Builder::new().name("watchdog".into()).spawn(|| {
            loop {
                std::thread::sleep(EVERY);
                ALL.report_stuck(Instant::now());
            }
        });
        if let Err(e) = watching {
            log::event(log::LogLevel::Error, "watchdog.failed", &[("message", json!(e.to_string()))]);
        }
    });
    &ALL
}

#[derive(Default)]
pub(crate) struct Workers(Mutex<State>);

#[derive(Default)]
struct State {
    last: u64,
    all: BTreeMap<u64, Worker>,
}

struct Worker {
    operation: &'static str,
    scope: Scope,
    request_id: Option<String>,
    began: Instant,
    stop: Cancellation,
    /// When the watchdog first saw that the work was stopped.
    stop_seen: Option<Instant>,
    stuck: bool,
}

/// Registers a working thread until it is dropped.
pub(crate) struct RegisteredWorker<'a> {
    workers: &'a Workers,
    id: u64,
}

impl Workers {
    pub fn begin(&self, caller: &Caller, operation: &'static str, stop: Cancellation) -> RegisteredWorker<'_> {
        let mut state = self.0.lock();
        state.last += 1;
        let worker = Worker {
            operation,
            scope: caller.scope.clone(),
            request_id: caller.request_id.clone(),
            began: Instant::now(),
            stop,
            stop_seen: None,
            stuck: false,
        };
        let id = state.last;
        state.all.insert(id, worker);
        RegisteredWorker { workers: self, id }
    }

    /// Reports workers that became stuck since the last call. Returns the number of stuck workers.
    fn report_stuck(&self, now: Instant) -> usize {
        let mut state = self.0.lock();
        for worker in state.all.values_mut().filter(|worker| worker.stop.is_stopped()) {
            let stop_seen = *worker.stop_seen.get_or_insert(now);
            if !worker.stuck && now.saturating_duration_since(stop_seen) >= GRACE {
                worker.stuck = true;
                metrics().workers_stuck_total.inc_of(&[worker.operation]);
                log::event(log::LogLevel::Error, "worker.stuck", &worker.log_fields());
            }
        }
        let stuck = state.all.values().filter(|worker| worker.stuck).count();
        metrics().workers_stuck.set(stuck as f64);
        stuck
    }

    /// An error if so many workers are stuck that none may be left for requests.
    pub fn check(&self, all: usize) -> Result<()> {
        let stuck = self.0.lock().all.values().filter(|worker| worker.stuck).count();
        if stuck < all {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Unavailable,
            ErrorCode::WorkersStuck,
            format!("{stuck} workers do not stop, of {all} that read"),
        )
        .hint("the log names what they work on (`worker.stuck`); start the server again"))
    }
}

impl Worker {
    fn log_fields(&self) -> [(&'static str, Value); 5] {
        let Scope { tenant, project } = &self.scope;
        [
            ("request_id", json!(self.request_id)),
            ("operation", json!(self.operation)),
            ("tenant", json!(tenant)),
            ("project", json!(project)),
            ("seconds", json!(self.began.elapsed().as_secs())),
        ]
    }
}

impl Drop for RegisteredWorker<'_> {
    fn drop(&mut self) {
        let ended = self.workers.0.lock().all.remove(&self.id);
        if let Some(worker) = ended.filter(|worker| worker.stuck) {
            log::event(log::LogLevel::Info, "worker.freed", &worker.log_fields());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    #[test]
    fn a_worker_that_continues_after_its_stop_is_stuck() {
        let (workers, now) = (Workers::default(), Instant::now());
        let caller = Caller::owner(Scope::new("local", "shop").unwrap());
        let (long, stop) = (Cancellation::default(), Cancellation::default());
        let _working = workers.begin(&caller, "search", long);
        let stuck = workers.begin(&caller, "cypher", stop.clone());
        let counted = |operation: &str| {
            let text = metrics().text(None);
            let line = format!("workers_stuck_total{{operation=\"{operation}\"}}");
            text.lines().any(|found| found.starts_with(&line))
        };
        assert_eq!(workers.report_stuck(now + 100 * GRACE), 0, "long work with a waiting caller is not stuck");
        stop.stop();
        assert_eq!(workers.report_stuck(now), 0, "within the grace time");
        assert!(workers.check(1).is_ok() && !counted("cypher"));
        assert_eq!(workers.report_stuck(now + GRACE), 1);
        assert!(counted("cypher") && !counted("search"));
        assert_eq!((workers.check(1).unwrap_err().code, workers.check(2).is_ok()), (ErrorCode::WorkersStuck, true));
        drop(stuck);
        assert_eq!(workers.report_stuck(now + 2 * GRACE), 0);
        assert!(workers.check(1).is_ok());
    }
}
