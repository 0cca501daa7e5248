//! An engine that is being opened on a thread while requests wait for it.

use lukasa_engine::Engine;
use lukasa_model::{Error, Result};
use std::sync::Arc;
use tokio::sync::watch;

/// Opens the engine. Called again by the next request after a failure.
pub(super) type OpenEngine = dyn Fn() -> Result<Engine> + Send + Sync;

/// Clones share the engine.
#[derive(Clone)]
pub(super) struct PendingEngine {
    state: Arc<watch::Sender<State>>,
    open: Option<Arc<OpenEngine>>,
}

enum State {
    Opening,
    Open(Engine),
    Failed(Error),
}

impl PendingEngine {
    /// An engine that is already open.
    pub fn done(engine: Engine) -> PendingEngine {
        PendingEngine { state: Arc::new(watch::Sender::new(State::Open(engine))), open: None }
    }

    pub fn start(open: Arc<OpenEngine>) -> PendingEngine {
        let opening = PendingEngine { state: Arc::new(watch::Sender::new(State::Opening)), open: Some(open) };
        opening.begin();
        opening
    }

    /// Waits for the engine. If opening fails, the waiting callers get the error; a later call tries again.
    pub async fn engine(&self) -> Result<Engine> {
        let mut state = self.state.subscribe();
        let again = self.state.send_if_modified(|state| {
            let failed = matches!(state, State::Failed(_));
            if failed {
                *state = State::Opening;
            }
            failed
        });
        if again {
            self.begin();
        }
        let settled = state.wait_for(|state| !matches!(state, State::Opening)).await;
        match settled.as_deref() {
            Ok(State::Open(engine)) => Ok(engine.clone()),
            Ok(State::Failed(error)) => Err(error.clone()),
            Ok(State::Opening) | Err(_) => Err(Error::internal("opening the engine was abandoned")),
        }
    }

    /// The engine, if it is open now.
    pub fn now(&self) -> Option<Engine> {
        match &*self.state.borrow() {
            State::Open(engine) => Some(engine.clone()),
            State::Opening | State::Failed(_) => None,
        }
    }

    fn begin(&self) {
        let Some(open) = self.open.clone() else { return };
        let state = Arc::clone(&self.state);
        let opened = tokio::task::spawn_blocking(move || open());
        tokio::spawn(async move {
            state.send_replace(match opened.await {
                Ok(Ok(engine)) => State::Open(engine),
                Ok(Err(error)) => State::Failed(error),
                Err(panic) => State::Failed(Error::internal(format!("opening the engine panicked: {panic}"))),
            });
        });
    }
}
