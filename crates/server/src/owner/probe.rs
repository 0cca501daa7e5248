//! Runs a health check on its own thread, with a timeout of a few seconds.

use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use parking_lot::Mutex;
use std::time::Duration;
use tokio::sync::watch;

type Answer = Option<Result<()>>;

/// Runs at most one check at a time, so that a hanging check occupies only one thread.
#[derive(Default)]
pub struct Probe(Mutex<Option<watch::Receiver<Answer>>>);

impl Probe {
    /// Timeout for the result of a check.
    pub const TIMEOUT: Duration = Duration::from_secs(3);

    /// The result of `question`, or of the check that is already running.
    pub async fn ask(&self, question: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
        let mut answer = self.under_way(question)?;
        match tokio::time::timeout(Probe::TIMEOUT, answer.wait_for(Option::is_some)).await {
            Ok(Ok(answer)) => answer.clone().unwrap_or_else(|| Err(Probe::unanswered())),
            Ok(Err(_)) => Err(Error::internal("the health check panicked")),
            Err(_) => Err(Probe::unanswered()),
        }
    }

    /// The error after a timeout.
    pub fn unanswered() -> Error {
        let message = format!("the store did not answer within {} s", Probe::TIMEOUT.as_secs());
        Error::new(ErrorKind::Unavailable, ErrorCode::NotReady, message).hint("try again; the log may say more")
    }

    fn under_way(&self, question: impl FnOnce() -> Result<()> + Send + 'static) -> Result<watch::Receiver<Answer>> {
        let mut under_way = self.0.lock();
        // A check whose thread panicked is not waited for.
        if let Some(answer) =
            under_way.as_ref().filter(|answer| answer.borrow().is_none() && answer.has_changed().is_ok())
        {
            return Ok(answer.clone());
        }
        let (send, answer) = watch::channel(None);
        let asking = move || drop(send.send(Some(question())));
        std::thread::Builder::new().name("ready".into()).spawn(asking).map_err(|e| {
            Error::new(ErrorKind::Unavailable, ErrorCode::NotReady, format!("no thread could be started: {e}"))
        })?;
        Ok(under_way.insert(answer).clone())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn a_hanging_check_times_out_and_runs_once() {
        let probe = Probe::default();
        assert_eq!(probe.ask(|| Ok(())).await, Ok(()));
        assert_eq!(probe.ask(|| Err(Error::internal("broken"))).await.unwrap_err().message, "broken");
        let (go, gate) = mpsc::channel::<()>();
        let hangs = move || {
            // Blocks until the test sends.
            let _ = gate.recv();
            Ok(())
        };
        assert_eq!(probe.ask(hangs).await.unwrap_err().code, ErrorCode::NotReady);
        let never = || panic!("no second check runs while the first hangs");
        assert_eq!(probe.ask(never).await.unwrap_err().code, ErrorCode::NotReady);
        go.send(()).unwrap();
        // The first check completes, and then the next one runs.
        let mut last = probe.ask(|| Err(Error::internal("asked again"))).await;
        while last.is_ok() {
            last = probe.ask(|| Err(Error::internal("asked again"))).await;
        }
        assert_eq!(last.unwrap_err().message, "asked again");
        assert!(probe.ask(|| panic!("on purpose")).await.is_err());
        assert_eq!(probe.ask(|| Ok(())).await, Ok(()), "a thread that panicked is forgotten");
    }
}
