//! Type packs that come with Lukasa, declared in a project when it first needs them.

use crate::{Engine, features};
use lukasa_model::transaction::Header;
use lukasa_model::types::TypePack;
use lukasa_model::{Batch, Error, ErrorCode, Registry, Result, Scope, Write};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::LazyLock;

/// By project and name of a pack: the declared types when the project was last known to have those of the pack.
pub type DeclaredPacks = FxHashMap<(Scope, &'static str), Arc<Registry>>;

/// A pack that is compiled into this program, parsed on first use.
pub(crate) type BundledPack = LazyLock<std::result::Result<TypePack, String>>;

pub(crate) fn read(name: &str, text: &str) -> std::result::Result<TypePack, String> {
    serde_json::from_str(text).map_err(|e| format!("packs/{name}.json: {e}"))
}

/// Returns the parsed pack.
pub(crate) fn bundled(pack: &'static BundledPack) -> Result<&'static TypePack> {
    pack.as_ref().map_err(|e| Error::internal(e.clone()))
}

fn is_called(given: &str, name: &str, aliases: &[String]) -> bool {
    given.eq_ignore_ascii_case(name) || aliases.iter().any(|alias| given.eq_ignore_ascii_case(alias))
}

impl Engine {
    /// Declares the types of a feature before the first write of an object whose type belongs to the project instead of
    /// a branch: a type that was used before it was declared stays bound to branches.
    pub fn declare_needed_packs(&self, scope: &Scope, batch: &Batch) -> Result<()> {
        for pack in features::ALL.iter().flat_map(|feature| feature.types) {
            self.declare_if_needed(scope, batch, pack()?)?;
        }
        Ok(())
    }

    fn declare_if_needed(&self, scope: &Scope, batch: &Batch, pack: &'static TypePack) -> Result<()> {
        // A relationship needs no check: one of its ends is such an object, which was written before.
        let of_all = |write: &Write| match write {
            Write::Object(put) => {
                pack.object_types.iter().any(|t| t.branchless && is_called(&put.type_name, &t.name, &t.aliases))
            }
            Write::Relationship(_) | Write::End(_) => false,
        };
        if !batch.writes.iter().any(of_all) {
            return Ok(());
        }
        // Author, agent and session are the same; id, commit and time belong to the batch alone.
        let Header { author, agent, session, .. } = batch.header.clone();
        self.declare_pack(scope, pack, &Header { author, agent, session, ..Header::default() })
    }

    /// Declares the types of a pack in the project's log, unless the project has them already.
    pub fn declare_pack(&self, scope: &Scope, pack: &'static TypePack, header: &Header) -> Result<()> {
        let ledger = self.ledger(scope);
        // The log may have been replaced by another one without these types. That must be noticed before objects that
        // need the types are written.
        let declared = match ledger.registry() {
            Ok(registry) => Some(registry),
            Err(error) if error.code == ErrorCode::UnknownProject => None,
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
