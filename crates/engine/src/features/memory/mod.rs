//! Agent memory: episodes, decisions, learnings and facts, how they are recalled, and the patterns found in them.

pub mod context_graph;
pub mod episode_kinds;
pub mod episodes;
pub mod facts;
pub mod lineage;
pub mod ops;
pub mod patterns;
pub mod question_time;
pub mod recall;
pub mod reflect;
pub mod rendering;
pub mod session_chain;
pub mod testing;
pub mod types;
pub mod vault;

pub use episode_kinds::{EpisodeKind, EpisodeOutcome};
pub use episodes::{AddedEpisode, NewEpisode, add, add_all};
pub use vault::Vault;

use crate::Engine;
use crate::feature::{Feature, Hooks};

pub static FEATURE: Feature = Feature {
    folder: "memory",
    operations: ops::ALL,
    types: &[types::agent],
    state: |states| states.put(AgentMemory::default()),
    hooks: Hooks::NONE,
};

/// The state of agent memory.
#[derive(Default)]
pub struct AgentMemory {
    pub vault: Vault,
    pub(crate) chains: session_chain::SessionChains,
    pub(crate) people: session_chain::RecordedParticipants,
}

impl Engine {
    /// Encrypts sensitive episodes with the keys of their agents.
    #[must_use]
    pub fn with_vault(self, vault: Vault) -> Engine {
        self.with_state(AgentMemory { vault, ..AgentMemory::default() })
    }

    /// What agent memory needs besides the store.
    pub fn memory(&self) -> &AgentMemory {
        self.state()
    }
}
