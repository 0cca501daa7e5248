//! What agents remember: episodes, decisions, learnings and facts, how they are recalled, and what is learned from them.

pub mod chain;
pub mod episodes;
pub mod facts;
pub mod kinds;
pub mod links;
pub mod moments;
pub mod patterns;
pub mod recall;
pub mod reflect;
pub mod vault;

pub use episodes::{Added, NewEpisode, add, add_all};
pub use kinds::{Kind, Outcome};
pub use vault::Vault;

/// What remembering needs beside the store.
#[derive(Default)]
pub struct Memory {
    pub vault: Vault,
    pub(crate) chains: chain::Chains,
    pub(crate) people: chain::People,
}

/// Types, relationships and properties of memories, as the `agent` pack has them.
pub mod names {
    pub const AGENT: &str = "Agent";
    pub const SESSION: &str = "Session";
    pub const EPISODE: &str = "Episode";
    pub const DECISION: &str = "Decision";
    pub const LEARNING: &str = "Learning";
    /// The label of what is kept from everybody but its agent.
    pub const SENSITIVE: &str = "sensitive";
    pub const FACT: &str = "Fact";
    pub const SUPERSEDES: &str = "SUPERSEDES";
    pub const CONTRADICTS: &str = "CONTRADICTS";
    pub const NEXT_EPISODE: &str = "NEXT_EPISODE";
    pub const INVOLVES: &str = "INVOLVES";
    pub const APPLIES_TO: &str = "APPLIES_TO";
    pub const DERIVED_FROM: &str = "DERIVED_FROM";
    pub const CREATED_BY: &str = "CREATED_BY";
    pub const RECORDED_IN: &str = "RECORDED_IN";
    pub const PRODUCES: &str = "PRODUCES";

    /// The key under which an agent is known, by the name it gives itself.
    pub fn agent_key(id: &str) -> String {
        prefixed("agent:", id)
    }

    /// The key under which a session is known.
    pub fn session_key(id: &str) -> String {
        prefixed("session:", id)
    }

    /// What a name is kept under; one that has the prefix already stays as it is.
    pub fn prefixed(prefix: &str, id: &str) -> String {
        if id.starts_with(prefix) { id.to_owned() } else { format!("{prefix}{id}") }
    }
}
