//! Open connections: to this process, and to processes attached to it.

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeSet, VecDeque};

/// Open connections, by the process they come from.
#[derive(Default)]
pub struct ConnectionPresence(Mutex<OpenConnections>);

#[derive(Default)]
struct OpenConnections {
    last: u64,
    sources: FxHashMap<u64, BTreeSet<String>>,
    /// Agents and sessions that have used each connection.
    agents: FxHashMap<String, FxHashSet<(String, Option<String>)>>,
    /// Connections that have closed, the latest last.
    closed: VecDeque<String>,
}

/// Maximum number of closed connections that are remembered; agents reconnect soon or not at all.
const CLOSED: usize = 1_024;

/// A process that connections come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionSource(u64);

/// This process itself.
pub const OWN: ConnectionSource = ConnectionSource(0);

impl ConnectionPresence {
    /// Registers another process.
    pub fn source(&self) -> ConnectionSource {
        let mut open = self.0.lock();
        open.last += 1;
        ConnectionSource(open.last)
    }

    /// Sets the open connections of a process.
    pub fn here(&self, source: ConnectionSource, connections: BTreeSet<String>) {
        let mut open = self.0.lock();
        let before = open.sources.insert(source.0, connections).unwrap_or_default();
        open.forget(before);
    }

    /// Sets the open connections of this process itself.
    pub fn own(&self, connections: BTreeSet<String>) {
        self.here(OWN, connections);
    }

    /// Removes a process that has ended or cannot be reached.
    pub fn gone(&self, source: ConnectionSource) {
        let mut open = self.0.lock();
        let before = open.sources.remove(&source.0).unwrap_or_default();
        open.forget(before);
    }

    /// Records that an agent uses a connection.
    pub fn note(&self, connection: &str, agent: &str, session: Option<&str>) {
        let mut open = self.0.lock();
        if open.is_open(connection) {
            let spoke = open.agents.entry(connection.to_owned()).or_default();
            spoke.insert((agent.to_owned(), session.map(str::to_owned)));
        }
    }

    /// Whether the connection is open, here or at an attached process.
    pub fn is_open(&self, connection: &str) -> bool {
        self.0.lock().is_open(connection)
    }

    /// Whether the connection was open here and has closed.
    pub fn has_closed(&self, connection: &str) -> bool {
        let open = self.0.lock();
        open.closed.iter().any(|closed| closed == connection) && !open.is_open(connection)
    }

    /// Whether the agent uses any open connection in the same session. False without a session: many programs use the
    /// same agent name.
    pub fn is_here(&self, agent: &str, session: Option<&str>) -> bool {
        let open = self.0.lock();
        let same = |(a, s): &(String, Option<String>)| a == agent && session.is_some() && s.as_deref() == session;
        open.agents.values().any(|spoke| spoke.iter().any(same))
    }
}

impl OpenConnections {
    fn is_open(&self, connection: &str) -> bool {
        self.sources.values().any(|open| open.contains(connection))
    }

    fn forget(&mut self, before: BTreeSet<String>) {
        for connection in before {
            if !self.is_open(&connection) {
                if self.closed.len() == CLOSED {
                    self.closed.pop_front();
                }
                self.closed.push_back(connection);
            }
        }
        let mut agents = std::mem::take(&mut self.agents);
        agents.retain(|connection, _| self.is_open(connection));
        self.agents = agents;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_open_as_long_as_its_process_says_so() {
        let presence = ConnectionPresence::default();
        let set = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<BTreeSet<_>>();
        presence.own(set(&["a"]));
        let other = presence.source();
        presence.here(other, set(&["b", "c"]));
        presence.note("b", "ada", Some("s"));
        presence.note("b", "ian", None);
        presence.note("nowhere", "eve", Some("s"));
        assert!(presence.is_open("a") && presence.is_open("b") && !presence.is_open("d"));
        assert!(presence.is_here("ada", Some("s")) && !presence.is_here("ada", Some("t")));
        assert!(!presence.is_here("ian", None) && !presence.is_here("eve", Some("s")));
        presence.here(other, set(&["c"]));
        assert!(!presence.is_open("b") && !presence.is_here("ada", Some("s")), "who closed is gone");
        assert!(presence.has_closed("b") && !presence.has_closed("c") && !presence.has_closed("d"));
        presence.gone(other);
        assert!(!presence.is_open("c") && presence.is_open("a"));
    }
}
