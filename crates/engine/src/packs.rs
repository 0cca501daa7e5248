//! Types that Lukasa brings along for its own work, declared in a project when it first needs them.

use crate::{Context, Engine};
use lukasa_model::types::Pack;
use lukasa_model::{Error, Result};
use std::sync::LazyLock;

/// What agents remember, decide, claim and plan.
static AGENT: LazyLock<std::result::Result<Pack, String>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../packs/agent.json")).map_err(|e| format!("packs/agent.json: {e}"))
});

/// The pack of that name as it came with this program.
pub fn agent() -> Result<&'static Pack> {
    AGENT.as_ref().map_err(|e| Error::internal(e.clone()))
}

impl Engine {
    /// Sees to it that the project knows the types of the `agent` pack. Declared once, in the project's own log.
    pub fn know_agents(&self, context: &Context<'_>) -> Result<()> {
        if self.packed.lock().contains(&context.scope) {
            return Ok(());
        }
        self.ledger(&context.scope).install(agent()?, &context.header(None))?;
        let mut packed = self.packed.lock();
        if packed.len() >= crate::LEDGERS {
            packed.clear();
        }
        packed.insert(context.scope.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pack_says_what_holds_for_the_whole_project() {
        let pack = agent().unwrap();
        assert_eq!(pack.label(), "agent@1");
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
