//! One operation on an engine of this process, on its own thread.

use super::workers::workers;
use crate::request_gate::Caller;
use lukasa_engine::{Cancellation, Context, Engine, Operation, OperationAnswer};
use lukasa_model::{Error, Result};
use serde_json::Value;
use std::any::Any;

/// An operation to run, and its caller.
pub(super) struct Work {
    pub caller: Caller,
    pub operation: &'static Operation,
    pub request: Value,
    /// Resources of the work, released when the thread has finished rather than when the caller stops waiting.
    pub held: Box<dyn Any + Send>,
}

impl Work {
    /// Runs the operation. `written` converts the answer while still on the thread, because that may take long.
    /// Dropping the future stops the work.
    pub async fn run<T: Send + 'static>(
        self,
        engine: Engine,
        mut progress: impl FnMut(u64, Option<u64>) + Send + 'static,
        written: fn(OperationAnswer) -> Result<T>,
    ) -> Result<T> {
        let stopping = Stopping(Cancellation::default());
        let stop = stopping.0.clone();
        let work = tokio::task::spawn_blocking(move || {
            let Work { caller, operation, request, held } = self;
            let working = workers().begin(&caller, operation.meta.name, stop.clone());
            let mut context = Context { stop, ..caller.context(&mut progress) };
            let answer = engine.answer(&mut context, operation.meta.name, request).and_then(written);
            drop((working, held));
            answer
        });
        work.await.unwrap_or_else(|panic| Err(Error::internal(format!("the operation panicked: {panic}"))))
    }
}

/// Stops the work when the future is dropped.
struct Stopping(Cancellation);

impl Drop for Stopping {
    fn drop(&mut self) {
        self.0.stop();
    }
}
