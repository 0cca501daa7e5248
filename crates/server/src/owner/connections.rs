//! The open client connections of this process, which the owner of the engine must know.

use super::{EngineHandle, State};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// Clones share the set.
#[derive(Clone, Default)]
pub(super) struct Connections(Arc<Mutex<BTreeSet<String>>>);

impl Connections {
    pub fn all(&self) -> BTreeSet<String> {
        self.0.lock().clone()
    }

    /// Announces the connections to the owner of the engine, if it is known and open. An engine that opens later reads
    /// them itself.
    pub fn announce(&self, state: &State) {
        match state {
            State::Own(opening) => {
                if let Some(engine) = opening.now() {
                    engine.coordination().presence().own(self.all());
                }
            }
            #[cfg(unix)]
            State::Attached(line) => line.here(self.all()),
            _ => {}
        }
    }
}

/// A client that stays connected. Its claims end some time after this is dropped.
pub struct Connection {
    id: String,
    desk: EngineHandle,
}

impl Connection {
    pub(super) fn to(desk: EngineHandle) -> Connection {
        let id = Uuid::now_v7().simple().to_string();
        desk.0.connections.0.lock().insert(id.clone());
        desk.announce();
        Connection { id, desk }
    }

    /// Names the connection in requests and claims.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.desk.0.connections.0.lock().remove(&self.id);
        self.desk.announce();
    }
}
