//! Agent memory: episodes, decisions, learnings and facts, how they are recalled, and the patterns found in them.

pub mod chain;
pub mod context_graph;
pub mod episodes;
pub mod facts;
pub mod kinds;
pub mod lineage;
pub mod moments;
pub mod ops;
pub mod patterns;
pub mod recall;
pub mod reflect;
pub mod rendering;
pub mod testing;
pub mod types;
pub mod vault;

pub use episodes::{Added, NewEpisode, add, add_all};
pub use kinds::{Kind, Outcome};
pub use vault::Vault;

use crate::Engine;
use crate::feature::{Feature, Hooks};

pub static FEATURE: Feature = Feature {
    folder: "memory",
    operations: ops::ALL,
    types: &[types::agent],
    state: |states| states.put(Memory::default()),
    hooks: Hooks::NONE,
};

/// The state of agent memory.
#[derive(Default)]
pub struct Memory {
    pub vault: Vault,
    pub(crate) chains: chain::Chains,
    pub(crate) people: chain::People,
}

impl Engine {
    /// Encrypts sensitive episodes with the keys of their agents.
    #[must_use]
    pub fn with_vault(self, vault: Vault) -> Engine {
        self.with_state(Memory { vault, ..Memory::default() })
    }

    /// What agent memory needs besides the store.
    pub fn memory(&self) -> &Memory {
        self.state()
    }
}
