//! Requests to watch working trees, repeated when another process becomes the owner of the engine.

use super::attached::OwnerConnection;
use super::pending_engine::PendingEngine;
use super::work::Work;
use crate::request_gate::Caller;
use lukasa_engine::Operation;
use parking_lot::Mutex;
use serde_json::Value;
use std::sync::Arc;

/// Clones share the list.
#[derive(Clone, Default)]
pub(super) struct WatchedTrees(Arc<Mutex<Vec<RepeatedRequest>>>);

/// A request that the next owner repeats.
#[derive(Clone)]
struct RepeatedRequest {
    caller: Caller,
    operation: &'static Operation,
    request: Value,
}

impl WatchedTrees {
    /// Remembers a request that succeeded. Its paths are absolute.
    pub fn note(&self, caller: &Caller, operation: &'static Operation, request: &Value) {
        if request.get("no_watch") == Some(&Value::Bool(true)) {
            return;
        }
        let mut all = self.0.lock();
        let same = |other: &RepeatedRequest| {
            other.caller.scope == caller.scope
                && other.operation.meta.name == operation.meta.name
                && other.request == *request
        };
        if !all.iter().any(same) {
            all.push(RepeatedRequest { caller: caller.clone(), operation, request: request.clone() });
        }
    }

    /// Repeats the requests at another process that owns the engine now. Failures are dropped; `graph_health` then
    /// shows that nothing is watched.
    pub fn ask(&self, line: &OwnerConnection) {
        let (all, line) = (self.0.lock().clone(), line.clone());
        if all.is_empty() {
            return;
        }
        tokio::spawn(async move {
            for RepeatedRequest { caller, operation, request } in all {
                line.call(&caller, operation, &request, None).await;
            }
        });
    }

    /// Repeats the requests in this process, which owns the engine now.
    pub fn resume(&self, opening: &PendingEngine) {
        let (all, opening) = (self.0.lock().clone(), opening.clone());
        if all.is_empty() {
            return;
        }
        tokio::spawn(async move {
            let Ok(engine) = opening.engine().await else { return };
            for RepeatedRequest { caller, operation, request } in all {
                let work = Work { caller, operation, request, held: Box::new(()) };
                let _ = work.run(engine.clone(), |_, _| (), |_| Ok(())).await;
            }
        });
    }
}
