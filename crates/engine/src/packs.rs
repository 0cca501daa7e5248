//! Types that Lukasa brings along for its own work, declared in a project when it first needs them.

use crate::{Context, Engine};
use lukasa_model::transaction::Header;
use lukasa_model::types::Pack;
use lukasa_model::{Batch, Error, Registry, Result, Scope, Write};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::LazyLock;

/// What projects had declared when they were last known to have the types of a pack, by the pack's name.
pub type Declared = FxHashMap<(Scope, &'static str), Arc<Registry>>;

type Read = LazyLock<std::result::Result<Pack, String>>;

/// What agents remember, decide, claim and plan.
static AGENT: Read = LazyLock::new(|| read("agent", include_str!("../../../packs/agent.json")));
/// Source code.
static CODE: Read = LazyLock::new(|| read("code", include_str!("../../../packs/code.json")));

fn read(name: &str, text: &str) -> std::result::Result<Pack, String> {
    serde_json::from_str(text).map_err(|e| format!("packs/{name}.json: {e}"))
}

/// The pack of that name as it came with this program.
pub fn agent() -> Result<&'static Pack> {
    AGENT.as_ref().map_err(|e| Error::internal(e.clone()))
}

/// The pack of that name as it came with this program.
pub fn code() -> Result<&'static Pack> {
    CODE.as_ref().map_err(|e| Error::internal(e.clone()))
}

fn is_called(given: &str, name: &str, aliases: &[String]) -> bool {
    given.eq_ignore_ascii_case(name) || aliases.iter().any(|alias| given.eq_ignore_ascii_case(alias))
}

impl Engine {
    /// Sees to it that the project knows the types of the `agent` pack. Declared once, in the project's own log.
    pub fn know_agents(&self, context: &Context<'_>) -> Result<()> {
        self.know(&context.scope, agent()?, &context.header(None))
    }

    /// Sees to it that the project knows the types of source code.
    pub fn know_code(&self, scope: &Scope, context: &Context<'_>) -> Result<()> {
        self.know(scope, code()?, &context.header(None))
    }

    /// Does so where something is about to be written whose type the pack says to hold for all branches: a type that was
    /// used before it was declared stays bound to branches.
    pub fn know_written(&self, scope: &Scope, batch: &Batch) -> Result<()> {
        let pack = agent()?;
        // Relationships have their ends, of which one is such an object.
        let of_all = |write: &Write| match write {
            Write::Object(put) => {
                pack.object_types.iter().any(|t| t.branchless && is_called(&put.type_name, &t.name, &t.aliases))
            }
            Write::Relationship(_) | Write::End(_) => false,
        };
        if !batch.writes.iter().any(of_all) {
            return Ok(());
        }
        // By the same people; its id, its commit and its time are those of the batch itself.
        let Header { author, agent, session, .. } = batch.header.clone();
        self.know(scope, pack, &Header { author, agent, session, ..Header::default() })
    }

    fn know(&self, scope: &Scope, pack: &'static Pack, header: &Header) -> Result<()> {
        let ledger = self.ledger(scope);
        // What was declared may be lost: the log can be replaced by another, which has to be known before something is
        // written whose type must be there first.
        let declared = match ledger.registry() {
            Ok(registry) => Some(registry),
            Err(error) if error.code == "unknown_project" => None,
            Err(error) => return Err(error),
        };
        let key = (scope.clone(), pack.name.as_str());
        let known = self.packed.lock().get(&key).cloned();
        if let (Some(known), Some(declared)) = (known, &declared)
            && Arc::ptr_eq(&known, declared)
        {
            return Ok(());
        }
        ledger.install(pack, header)?;
        let registry = ledger.registry()?;
        let mut packed = self.packed.lock();
        if packed.len() >= crate::LEDGERS {
            packed.clear();
        }
        packed.insert(key, registry);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lukasa_code::type_names;

    #[test]
    fn the_code_pack_declares_what_the_index_records() {
        let pack = code().unwrap();
        let objects: Vec<&str> = pack.object_types.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(objects, [&type_names::OBJECT_TYPES[..], &[type_names::COMMIT]].concat());
        let relationships: Vec<&str> = pack.relationship_types.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(relationships, type_names::RELATIONSHIP_TYPES);
        let extends = pack.relationship_types.iter().find(|t| t.name == type_names::EXTENDS).unwrap();
        for alias in &extends.aliases {
            assert_eq!(type_names::relationship_type(alias), Some(type_names::EXTENDS));
        }
    }

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
