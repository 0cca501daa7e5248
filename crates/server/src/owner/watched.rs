//! Working trees that this process asked to be watched: whoever owns the engine next is asked again.

use super::line::Line;
use super::opening::Opening;
use super::work::Work;
use crate::front::Caller;
use lukasa_engine::{Operation, registry};
use parking_lot::Mutex;
use serde_json::Value;
use std::sync::Arc;

/// The operation whose effect lasts as long as the owner.
const WATCHING: &str = "graph_set_workspace";

/// Whether what is asked for is to be asked for again.
pub(super) fn lasts(operation: &Operation) -> bool {
    operation.meta.name == WATCHING
}

/// Clones share the list.
#[derive(Clone, Default)]
pub(super) struct Watched(Arc<Mutex<Vec<(Caller, Value)>>>);

impl Watched {
    /// A request that was answered. Its places are absolute.
    pub fn note(&self, caller: &Caller, request: &Value) {
        if request.get("no_watch") == Some(&Value::Bool(true)) {
            return;
        }
        let mut all = self.0.lock();
        let same = |(other, asked): &(Caller, Value)| other.scope == caller.scope && asked == request;
        if !all.iter().any(same) {
            all.push((caller.clone(), request.clone()));
        }
    }

    /// Asks another process that owns the engine now. If it cannot, nobody is there to be told; whoever looks at the
    /// health of the graph sees that nothing is watched.
    pub fn ask(&self, line: &Line) {
        let (all, line) = (self.0.lock().clone(), line.clone());
        let Some(operation) = registry::find(WATCHING).filter(|_| !all.is_empty()) else { return };
        tokio::spawn(async move {
            for (caller, request) in all {
                line.call(&caller, operation, &request, None).await;
            }
        });
    }

    /// Does it in this process, which owns the engine now.
    pub fn resume(&self, opening: &Opening) {
        let (all, opening) = (self.0.lock().clone(), opening.clone());
        let Some(operation) = registry::find(WATCHING).filter(|_| !all.is_empty()) else { return };
        tokio::spawn(async move {
            let Ok(engine) = opening.engine().await else { return };
            for (caller, request) in all {
                let work = Work { caller, operation, request, held: Box::new(()) };
                let _ = work.run(engine.clone(), |_, _| (), |_| Ok(())).await;
            }
        });
    }
}
