//! A store that fails or blocks on request.

use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Scope};
use lukasa_store::audit::{AuditEntry, AuditFilter, AuditHead, AuditNote, Seals};
use lukasa_store::{AccessKeys, AuditTrail, Derived, Reader, Store, Writer};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// Forwards every call to another store. While `broken` is set, it fails to open writers; while `deaf` is set, it fails to
/// append to the audit trail. Reads wait while `gate` is shut.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    pub broken: AtomicBool,
    pub deaf: AtomicBool,
    /// Blocks readers and the list of projects while it is shut.
    pub gate: Gate,
}

/// Blocks threads while it is shut.
#[derive(Default)]
pub struct Gate {
    state: Mutex<Shut>,
    opened: Condvar,
}

#[derive(Default)]
struct Shut {
    /// `None`: open. `Some(Some)`: shut for one project. `Some(None)`: shut for all projects and the list of projects.
    project: Option<Option<String>>,
    waiting: usize,
}

impl Gate {
    /// Shuts the gate for readers of one project, or with `None` for all callers.
    pub fn shut(&self, project: Option<&str>) {
        self.lock().project = Some(project.map(str::to_owned));
    }

    /// Opens the gate and releases all blocked threads.
    pub fn open(&self) {
        self.lock().project = None;
        self.opened.notify_all();
    }

    /// The number of blocked threads.
    pub fn waiting(&self) -> usize {
        self.lock().waiting
    }

    fn pass(&self, project: Option<&str>) {
        let mut state = self.lock();
        state.waiting += 1;
        while state.project.as_ref().is_some_and(|only| only.is_none() || only.as_deref() == project) {
            state = self.opened.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        state.waiting -= 1;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shut> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl FaultyStore {
    pub fn new(inner: Arc<dyn Store>) -> FaultyStore {
        FaultyStore { inner, broken: AtomicBool::new(false), deaf: AtomicBool::new(false), gate: Gate::default() }
    }
}

impl Store for FaultyStore {
    fn read<'a>(&'a self, scope: &Scope) -> Result<Box<dyn Reader + 'a>> {
        self.gate.pass(Some(&scope.project));
        self.inner.read(scope)
    }

    fn write<'a>(&'a self, scope: &Scope) -> Result<Box<dyn Writer + 'a>> {
        if self.broken.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Unavailable, ErrorCode::StoreBusy, "the test makes the store fail"));
        }
        self.inner.write(scope)
    }

    fn derived(&self) -> &dyn Derived {
        self.inner.derived()
    }

    fn access_keys(&self) -> &dyn AccessKeys {
        self.inner.access_keys()
    }

    fn audit(&self) -> &dyn AuditTrail {
        self
    }

    fn projects(&self, tenant: &str) -> Result<Vec<String>> {
        self.gate.pass(None);
        self.inner.projects(tenant)
    }

    fn copy_to(&self, path: &Path) -> Result<()> {
        self.inner.copy_to(path)
    }

    fn has_own_format(&self) -> bool {
        self.inner.has_own_format()
    }

    fn describe(&self) -> String {
        format!("faulty {}", self.inner.describe())
    }
}

impl AuditTrail for FaultyStore {
    fn append(&self, server: &str, notes: &[AuditNote], seals: &dyn Seals, durable: bool) -> Result<()> {
        if self.deaf.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Unavailable, ErrorCode::DiskFull, "the test makes the record fail"));
        }
        self.inner.audit().append(server, notes, seals, durable)
    }

    fn heads(&self, tenant: &str) -> Result<Vec<AuditHead>> {
        self.inner.audit().heads(tenant)
    }

    fn servers(&self, tenant: &str) -> Result<Vec<String>> {
        self.inner.audit().servers(tenant)
    }

    fn chain(&self, tenant: &str, server: &str, after: u64, limit: usize) -> Result<Vec<AuditEntry>> {
        self.inner.audit().chain(tenant, server, after, limit)
    }

    fn find(&self, tenant: &str, find: &AuditFilter, limit: usize) -> Result<Vec<AuditEntry>> {
        self.inner.audit().find(tenant, find, limit)
    }
}
