//! One operation on an engine of this process, on a thread of its own.

use super::workers::workers;
use crate::front::Caller;
use lukasa_engine::{Answer, Context, Engine, Operation, Stop};
use lukasa_model::{Error, Result};
use serde_json::Value;
use std::any::Any;

/// What is to be done, and for whom.
pub(super) struct Work {
    pub caller: Caller,
    pub operation: &'static Operation,
    pub request: Value,
    /// What the work takes up, given back when the thread is done with it and not when nobody waits any more.
    pub held: Box<dyn Any + Send>,
}

impl Work {
    /// `written` puts the answer into the form that is needed, still on the thread, where it does not hold up others. Who
    /// gives up waiting drops the future, and work stops.
    pub async fn run<T: Send + 'static>(
        self,
        engine: Engine,
        mut tell: impl FnMut(u64, Option<u64>) + Send + 'static,
        written: fn(Answer) -> Result<T>,
    ) -> Result<T> {
        let stopping = Stopping(Stop::default());
        let stop = stopping.0.clone();
        let work = tokio::task::spawn_blocking(move || {
            let Work { caller, operation, request, held } = self;
            let working = workers().begin(&caller, operation.meta.name, stop.clone());
            let mut context = Context { stop, ..caller.context(&mut tell) };
            let answer = engine.answer(&mut context, operation.meta.name, request).and_then(written);
            drop((working, held));
            answer
        });
        work.await.unwrap_or_else(|panic| Err(Error::internal(format!("the operation broke off: {panic}"))))
    }
}

/// Stops work when nobody waits for it any more.
struct Stopping(Stop);

impl Drop for Stopping {
    fn drop(&mut self) {
        self.0.stop();
    }
}
