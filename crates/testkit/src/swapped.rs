//! A store that is replaced by another while it is in use, as by a failover or a restore.

use lukasa_model::{Result, Scope};
use lukasa_store::{AccessKeys, AuditTrail, Derived, Reader, Store, Writer};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Forwards every call to the first store, and after `swap` to the second.
pub struct SwappedStore {
    first: Arc<dyn Store>,
    second: Arc<dyn Store>,
    swapped: AtomicBool,
}

impl SwappedStore {
    pub fn new(first: Arc<dyn Store>, second: Arc<dyn Store>) -> SwappedStore {
        SwappedStore { first, second, swapped: AtomicBool::new(false) }
    }

    /// Switches to the second store, permanently.
    pub fn swap(&self) {
        self.swapped.store(true, Ordering::SeqCst);
    }

    fn inner(&self) -> &dyn Store {
        if self.swapped.load(Ordering::SeqCst) { &*self.second } else { &*self.first }
    }
}

impl Store for SwappedStore {
    fn read<'a>(&'a self, scope: &Scope) -> Result<Box<dyn Reader + 'a>> {
        self.inner().read(scope)
    }

    fn write<'a>(&'a self, scope: &Scope) -> Result<Box<dyn Writer + 'a>> {
        self.inner().write(scope)
    }

    fn derived(&self) -> &dyn Derived {
        self.inner().derived()
    }

    fn access_keys(&self) -> &dyn AccessKeys {
        self.inner().access_keys()
    }

    fn audit(&self) -> &dyn AuditTrail {
        self.inner().audit()
    }

    fn projects(&self, tenant: &str) -> Result<Vec<String>> {
        self.inner().projects(tenant)
    }

    fn copy_to(&self, path: &Path) -> Result<()> {
        self.inner().copy_to(path)
    }

    fn has_own_format(&self) -> bool {
        self.inner().has_own_format()
    }

    fn describe(&self) -> String {
        format!("swapped {}", self.inner().describe())
    }
}
