//! Who is connected: to this process, and to those that are attached to it.

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Connections that are open, by the process they come from.
#[derive(Default)]
pub struct Presence(Mutex<Open>);

#[derive(Default)]
struct Open {
    last: u64,
    sources: FxHashMap<u64, BTreeSet<String>>,
    /// Who has spoken on a connection: agent and session.
    agents: FxHashMap<String, FxHashSet<(String, Option<String>)>>,
}

/// A process that connections come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source(u64);

/// This process itself.
pub const OWN: Source = Source(0);

impl Presence {
    /// Another process, from now on until it is gone.
    pub fn source(&self) -> Source {
        let mut open = self.0.lock();
        open.last += 1;
        Source(open.last)
    }

    /// All connections of a process that are open now.
    pub fn here(&self, source: Source, connections: BTreeSet<String>) {
        let mut open = self.0.lock();
        open.sources.insert(source.0, connections);
        open.forget();
    }

    pub fn own(&self, connections: BTreeSet<String>) {
        self.here(OWN, connections);
    }

    /// The process has ended, or cannot be reached any more.
    pub fn gone(&self, source: Source) {
        let mut open = self.0.lock();
        open.sources.remove(&source.0);
        open.forget();
    }

    /// An agent speaks on a connection.
    pub fn note(&self, connection: &str, agent: &str, session: Option<&str>) {
        let mut open = self.0.lock();
        if open.is_open(connection) {
            let spoke = open.agents.entry(connection.to_owned()).or_default();
            spoke.insert((agent.to_owned(), session.map(str::to_owned)));
        }
    }

    pub fn is_open(&self, connection: &str) -> bool {
        self.0.lock().is_open(connection)
    }

    /// Whether the agent speaks on any open connection, in the same session.
    pub fn is_here(&self, agent: &str, session: Option<&str>) -> bool {
        let open = self.0.lock();
        let same = |(a, s): &(String, Option<String>)| a == agent && s.as_deref() == session;
        open.agents.values().any(|spoke| spoke.iter().any(same))
    }
}

impl Open {
    fn is_open(&self, connection: &str) -> bool {
        self.sources.values().any(|open| open.contains(connection))
    }

    fn forget(&mut self) {
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
        let presence = Presence::default();
        let set = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<BTreeSet<_>>();
        presence.own(set(&["a"]));
        let other = presence.source();
        presence.here(other, set(&["b", "c"]));
        presence.note("b", "ada", None);
        presence.note("nowhere", "eve", None);
        assert!(presence.is_open("a") && presence.is_open("b") && !presence.is_open("d"));
        assert!(presence.is_here("ada", None) && !presence.is_here("ada", Some("s")) && !presence.is_here("eve", None));
        presence.here(other, set(&["c"]));
        assert!(!presence.is_open("b") && !presence.is_here("ada", None), "who closed is gone");
        presence.gone(other);
        assert!(!presence.is_open("c") && presence.is_open("a"));
    }
}
