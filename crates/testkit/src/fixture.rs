//! Empty stores of each kind, each with its own clock.

use crate::{ManualClock, TestDatabase};
use lukasa_model::Scope;
use lukasa_store::sqlite::Durability;
use lukasa_store::{Clock, Ledger, MemoryStore, SqliteStore, Store};
use std::any::Any;
use std::sync::Arc;

/// An empty store with a manual clock and a ledger of one project.
pub struct Fixture {
    /// The kind of the store: `memory`, `sqlite` or `postgres`.
    pub name: &'static str,
    pub store: Arc<dyn Store>,
    pub clock: Arc<ManualClock>,
    pub ledger: Ledger,
    /// Resources that must outlive the store: a folder, a database.
    _keep: Box<dyn Any + Send + Sync>,
}

impl Fixture {
    pub fn memory() -> Fixture {
        let clock = Arc::new(ManualClock::default());
        let store = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
        Fixture::new("memory", store, clock, Box::new(()))
    }

    pub fn sqlite() -> Fixture {
        let clock = Arc::new(ManualClock::default());
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("lukasa.db");
        let store = SqliteStore::open(&path, Arc::clone(&clock) as Arc<dyn Clock>, Durability::Rebuildable);
        Fixture::new("sqlite", Arc::new(store.expect("a new store opens")), clock, Box::new(folder))
    }

    /// Returns `None` if no PostgreSQL server is available; see [`TestDatabase::new`].
    pub fn postgres() -> Option<Fixture> {
        let clock = Arc::new(ManualClock::default());
        let database = TestDatabase::new()?;
        let store = database.open(Some(Arc::clone(&clock) as Arc<dyn Clock>)).expect("a new database opens");
        Some(Fixture::new("postgres", Arc::new(store), clock, Box::new(database)))
    }

    fn new(
        name: &'static str,
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        keep: Box<dyn Any + Send + Sync>,
    ) -> Fixture {
        let scope = Scope::new("test", "shop").expect("a plain name");
        let ledger = Ledger::new(Arc::clone(&store), Arc::clone(&clock) as Arc<dyn Clock>, scope);
        Fixture { name, store, clock, ledger, _keep: keep }
    }

    /// Returns the ledger of another project in the same store.
    pub fn project(&self, tenant: &str, project: &str) -> Ledger {
        let scope = Scope::new(tenant, project).expect("a plain name");
        Ledger::new(Arc::clone(&self.store), Arc::clone(&self.clock) as Arc<dyn Clock>, scope)
    }
}

/// Returns a fixture of each available kind.
pub fn fixtures() -> Vec<Fixture> {
    [Some(Fixture::memory()), Some(Fixture::sqlite()), Fixture::postgres()].into_iter().flatten().collect()
}
