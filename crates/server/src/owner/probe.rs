//! Asks whether all is well on a thread of its own, and does not wait for it longer than a few seconds.

use lukasa_model::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::time::Duration;
use tokio::sync::watch;

type Answer = Option<Result<()>>;

/// At most one question at a time: what hangs does not take a thread for everybody who asks.
#[derive(Default)]
pub struct Probe(Mutex<Option<watch::Receiver<Answer>>>);

impl Probe {
    /// How long an answer is waited for.
    pub const PATIENCE: Duration = Duration::from_secs(3);

    /// What `question` answers, or what the question under way does.
    pub async fn ask(&self, question: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
        let mut answer = self.under_way(question)?;
        match tokio::time::timeout(Probe::PATIENCE, answer.wait_for(Option::is_some)).await {
            Ok(Ok(answer)) => answer.clone().unwrap_or_else(|| Err(Probe::unanswered())),
            Ok(Err(_)) => Err(Error::internal("asking whether all is well broke off")),
            Err(_) => Err(Probe::unanswered()),
        }
    }

    /// What is said when no answer came in time.
    pub fn unanswered() -> Error {
        let message = format!("the store did not answer within {} s", Probe::PATIENCE.as_secs());
        Error::new(ErrorKind::Unavailable, "not_ready", message).hint("try again; the log may say more")
    }

    fn under_way(&self, question: impl FnOnce() -> Result<()> + Send + 'static) -> Result<watch::Receiver<Answer>> {
        let mut under_way = self.0.lock();
        // One whose thread broke off is not waited for.
        if let Some(answer) =
            under_way.as_ref().filter(|answer| answer.borrow().is_none() && answer.has_changed().is_ok())
        {
            return Ok(answer.clone());
        }
        let (send, answer) = watch::channel(None);
        let asking = move || drop(send.send(Some(question())));
        std::thread::Builder::new()
            .name("ready".into())
            .spawn(asking)
            .map_err(|e| Error::new(ErrorKind::Unavailable, "not_ready", format!("no thread could be started: {e}")))?;
        Ok(under_way.insert(answer).clone())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn what_hangs_is_answered_for_and_asked_once() {
        let probe = Probe::default();
        assert_eq!(probe.ask(|| Ok(())).await, Ok(()));
        assert_eq!(probe.ask(|| Err(Error::internal("broken"))).await.unwrap_err().message, "broken");
        let (go, gate) = mpsc::channel::<()>();
        let hangs = move || {
            // Until the test lets go.
            let _ = gate.recv();
            Ok(())
        };
        assert_eq!(probe.ask(hangs).await.unwrap_err().code, "not_ready");
        let never = || panic!("nobody asks a second time while the first hangs");
        assert_eq!(probe.ask(never).await.unwrap_err().code, "not_ready");
        go.send(()).unwrap();
        // The one that hung answers, and then the next is asked.
        let mut last = probe.ask(|| Err(Error::internal("asked again"))).await;
        while last.is_ok() {
            last = probe.ask(|| Err(Error::internal("asked again"))).await;
        }
        assert_eq!(last.unwrap_err().message, "asked again");
        assert!(probe.ask(|| panic!("on purpose")).await.is_err());
        assert_eq!(probe.ask(|| Ok(())).await, Ok(()), "a thread that broke off is forgotten");
    }
}
