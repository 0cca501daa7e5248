//! Types that Lukasa brings along for its own work, declared in a project when it first needs them.

use crate::{Engine, features};
use lukasa_model::transaction::Header;
use lukasa_model::types::Pack;
use lukasa_model::{Batch, Error, Registry, Result, Scope, Write};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::LazyLock;

/// What projects had declared when they were last known to have the types of a pack, by the pack's name.
pub type Declared = FxHashMap<(Scope, &'static str), Arc<Registry>>;

/// A pack that comes with this program, read on first use.
pub(crate) type Read = LazyLock<std::result::Result<Pack, String>>;

pub(crate) fn read(name: &str, text: &str) -> std::result::Result<Pack, String> {
    serde_json::from_str(text).map_err(|e| format!("packs/{name}.json: {e}"))
}

/// A pack as it came with this program.
pub(crate) fn known(pack: &'static Read) -> Result<&'static Pack> {
    pack.as_ref().map_err(|e| Error::internal(e.clone()))
}

fn is_called(given: &str, name: &str, aliases: &[String]) -> bool {
    given.eq_ignore_ascii_case(name) || aliases.iter().any(|alias| given.eq_ignore_ascii_case(alias))
}

impl Engine {
    /// Declares the types of a feature where something is about to be written whose type holds for all branches: a type that was
    /// used before it was declared stays bound to branches.
    pub fn know_written(&self, scope: &Scope, batch: &Batch) -> Result<()> {
        for pack in features::ALL.iter().flat_map(|feature| feature.types) {
            self.know_if_written(scope, batch, pack()?)?;
        }
        Ok(())
    }

    fn know_if_written(&self, scope: &Scope, batch: &Batch, pack: &'static Pack) -> Result<()> {
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

    /// Sees to it that the project has the types of a pack. They are declared once, in the project's own log.
    pub fn know(&self, scope: &Scope, pack: &'static Pack, header: &Header) -> Result<()> {
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
