//! The types of agent memory, claims and tasks.

use crate::{Context, Engine, packs};
use lukasa_model::Result;
use lukasa_model::types::TypePack;
use std::sync::LazyLock;

static AGENT: packs::BundledPack =
    LazyLock::new(|| packs::read("agent", include_str!("../../../../../packs/agent.json")));

/// The pack `agent` of this build.
pub fn agent() -> Result<&'static TypePack> {
    packs::bundled(&AGENT)
}

impl Engine {
    /// Declares the types of the `agent` pack in the project, once, in its own log.
    pub fn declare_agent_types(&self, context: &Context<'_>) -> Result<()> {
        self.declare_pack(&context.scope, agent()?, &context.header(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pack_says_what_holds_for_the_whole_project() {
        let pack = agent().unwrap();
        assert_eq!(pack.label(), "agent@2");
        let branchless: Vec<&str> =
            pack.object_types.iter().filter(|t| t.branchless).map(|t| t.name.as_str()).collect();
        assert_eq!(
            branchless,
            [
                "Agent",
                "Session",
                "Claim",
                "ClaimBoard",
                "Task",
                "Feature",
                "Track",
                "Policy",
                "ContextGraph",
                "ToolCall"
            ]
        );
        let lasting: Vec<&str> =
            pack.relationship_types.iter().filter(|t| t.lasting).map(|t| t.name.as_str()).collect();
        assert!(["INVOLVES", "APPLIES_TO", "DERIVED_FROM"].iter().all(|name| lasting.contains(name)), "{lasting:?}");
    }
}
