//! Projections in use: loaded on first use, advanced on later use, dropped when memory runs short.

use crate::projection::Projection;
use crate::snapshot::Snapshot;
use lukasa_model::types::Registry;
use lukasa_model::{BranchNo, Position, Result, Scope, Time, Tx, View};
use lukasa_store::Ledger;
use lukasa_store::ledger::ViewSpec;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The most snapshots kept for requests that continue with a cursor.
const PINS: usize = 64;

/// Called with the progress of long work: how much is done, and of how much if that is known.
pub type ProgressFn<'a> = &'a mut dyn FnMut(u64, Option<u64>);

/// Where graphs are kept between processes. The bytes may be outdated or of another log; they are checked before use.
pub trait GraphArchive: Send + Sync {
    /// The bytes of the graph of a branch, if there are any.
    fn graph(&self, scope: &Scope, branch: BranchNo) -> Option<Vec<u8>>;
}

/// The graphs of any number of projects and views.
pub struct Projections {
    limit: usize,
    shelf: OnceLock<Arc<dyn GraphArchive>>,
    entries: Mutex<FxHashMap<Key, Arc<Entry>>>,
    uses: AtomicU64,
    /// The registry with which graphs of a project were read: its sensitive properties are left out of them.
    sensitive: Mutex<FxHashMap<Scope, Arc<Registry>>>,
    hits: AtomicU64,
    misses: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    scope: Scope,
    branch: BranchNo,
    /// Transaction and valid time of a view of the past; `None` for the head of the branch, now.
    past: Option<(Position, Time)>,
}

#[derive(Default)]
struct Entry {
    held: Mutex<Held>,
    used: AtomicU64,
    bytes: AtomicUsize,
    /// Bytes of the derived data, when last measured.
    beside: AtomicUsize,
    /// Nodes and edges when `bytes` was last measured.
    counted: AtomicUsize,
    pinned: Option<Pin>,
}

/// What is needed to measure how much memory a pinned snapshot shares with the head that it was taken from.
struct Pin {
    build: u64,
    copied: u64,
    whole: usize,
}

impl Entry {
    fn total(&self) -> usize {
        self.bytes.load(Ordering::Relaxed) + self.beside.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
enum Held {
    #[default]
    Nothing,
    /// A graph that can be advanced.
    Projection(Box<Projection>),
    /// A graph that can only be read.
    Snapshot(Arc<Snapshot>),
}

/// One graph in memory, for reports of memory use.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphUse {
    pub scope: Scope,
    pub branch: BranchNo,
    /// Transaction and valid time of a view of the past.
    pub past: Option<(Tx, Time)>,
    pub bytes: usize,
}

impl Projections {
    /// A cache that keeps to about `limit` bytes. A graph in use is kept even if it is larger.
    pub fn new(limit: usize) -> Projections {
        let zero = AtomicU64::default;
        let (uses, hits, misses, dropped) = (zero(), zero(), zero(), zero());
        let (shelf, entries, sensitive) = (OnceLock::new(), Mutex::default(), Mutex::default());
        Projections { limit, shelf, entries, uses, hits, misses, dropped, sensitive }
    }

    /// Sets where the graphs of branch heads are looked up before the store is read. Only the first call has an effect.
    pub fn set_archive(&self, shelf: Arc<dyn GraphArchive>) {
        let _ = self.shelf.set(shelf);
    }

    /// Encodes the graph of a branch under a number that identifies the bytes, if `snapshot` is still its current one.
    /// `None` if it cannot be encoded.
    pub fn bytes(&self, ledger: &Ledger, snapshot: &Arc<Snapshot>, origin: u64) -> Result<Option<Vec<u8>>> {
        let key = Key { scope: ledger.scope().clone(), branch: snapshot.view.branch, past: None };
        let Some(entry) = self.entries.lock().get(&key).cloned() else { return Ok(None) };
        let held = entry.held.lock();
        match &*held {
            Held::Projection(held) if Arc::ptr_eq(held.snapshot(), snapshot) => held.to_bytes(origin, ledger),
            _ => Ok(None),
        }
    }

    /// The memory limit, in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The view of a request, and its graph.
    pub fn view_graph(
        &self,
        ledger: &Ledger,
        spec: &ViewSpec,
        progress: ProgressFn<'_>,
    ) -> Result<(View, Arc<Snapshot>)> {
        let view = ledger.view(spec)?;
        self.forget_what_is_sensitive(ledger)?;
        if spec.as_of.is_none() && spec.known_at.is_none() {
            self.head(ledger, spec, view, progress)
        } else {
            let snapshot = self.at(ledger, &view, progress)?;
            Ok((view, snapshot))
        }
    }

    /// The graph at a fixed view.
    pub fn at(&self, ledger: &Ledger, view: &View, progress: ProgressFn<'_>) -> Result<Arc<Snapshot>> {
        self.forget_what_is_sensitive(ledger)?;
        let key = Key { scope: ledger.scope().clone(), branch: view.branch, past: Some((view.position(), view.valid)) };
        let entry = self.entry_or_older(&key);
        let mut held = entry.held.lock();
        self.note(!matches!(*held, Held::Nothing));
        let snapshot = match std::mem::take(&mut *held) {
            Held::Snapshot(snapshot) => {
                *held = Held::Snapshot(Arc::clone(&snapshot));
                snapshot
            }
            Held::Projection(projection) => renew(&mut held, Some(projection), ledger, view, progress)?,
            Held::Nothing => renew(&mut held, None, ledger, view, progress)?,
        };
        drop(held);
        self.settle(&key, &entry, &snapshot);
        Ok(snapshot)
    }

    fn head(
        &self,
        ledger: &Ledger,
        spec: &ViewSpec,
        mut view: View,
        progress: ProgressFn<'_>,
    ) -> Result<(View, Arc<Snapshot>)> {
        let key = Key { scope: ledger.scope().clone(), branch: view.branch, past: None };
        let entry = self.entry(&key);
        let mut held = entry.held.lock();
        self.note(!matches!(*held, Held::Nothing));
        let projection = match std::mem::take(&mut *held) {
            Held::Projection(projection) => {
                let at = &projection.snapshot().view;
                if view.known < at.known {
                    // Another request has read a later commit; this one reads it too.
                    view = ledger.view(spec)?;
                }
                view.valid = view.valid.max(at.valid);
                Some(projection)
            }
            _ => None,
        };
        let projection = match projection {
            Some(projection) => Some(projection),
            None => self.kept(ledger, &view)?,
        };
        let snapshot = renew(&mut held, projection, ledger, &view, progress)?;
        drop(held);
        self.settle(&key, &entry, &snapshot);
        Ok((view, snapshot))
    }

    /// The graph of a branch as an earlier process saved it, advanced to the view.
    fn kept(&self, ledger: &Ledger, view: &View) -> Result<Option<Box<Projection>>> {
        let bytes = self.shelf.get().and_then(|shelf| shelf.graph(ledger.scope(), view.branch));
        let Some(bytes) = bytes else { return Ok(None) };
        Ok(Projection::of_bytes(&bytes, ledger, view)?.map(Box::new))
    }

    /// Keeps a snapshot for later requests with a cursor. It shares unchanged chunks with the head.
    pub fn pin(&self, scope: &Scope, view: &View, snapshot: &Arc<Snapshot>) {
        let key = Key { scope: scope.clone(), branch: view.branch, past: Some((view.position(), view.valid)) };
        if self.entries.lock().contains_key(&key) {
            return;
        }
        let entry = Entry {
            // Without derived data, which requests with a cursor do not need.
            held: Mutex::new(Held::Snapshot(Arc::new(snapshot.bare()))),
            used: AtomicU64::new(self.uses.fetch_add(1, Ordering::Relaxed)),
            pinned: Some(Pin {
                build: snapshot.build,
                copied: snapshot.copied(),
                whole: self.bytes_of(scope, view.branch),
            }),
            ..Entry::default()
        };
        let mut entries = self.entries.lock();
        entries.insert(key, Arc::new(entry));
        let pins = || entries.iter().filter(|(_, e)| e.pinned.is_some());
        if pins().count() > PINS {
            let oldest = pins().min_by_key(|(_, e)| e.used.load(Ordering::Relaxed)).map(|(key, _)| key.clone());
            oldest.map(|key| entries.remove(&key));
        }
    }

    /// How many requests found their graph in memory, how many had to build it, and how many graphs were dropped.
    pub fn cache_stats(&self) -> (u64, u64, u64) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (of(&self.hits), of(&self.misses), of(&self.dropped))
    }

    /// The graphs of branch heads. Those that are being advanced at the moment are left out.
    pub fn heads(&self) -> Vec<(Scope, BranchNo, Arc<Snapshot>)> {
        let heads: Vec<_> = {
            let entries = self.entries.lock();
            entries.iter().filter(|(key, _)| key.past.is_none()).map(|(key, e)| (key.clone(), Arc::clone(e))).collect()
        };
        let snapshot = |(key, entry): (Key, Arc<Entry>)| match &*entry.held.try_lock()? {
            Held::Projection(projection) => Some((key.scope, key.branch, Arc::clone(projection.snapshot()))),
            _ => None,
        };
        heads.into_iter().filter_map(snapshot).collect()
    }

    fn note(&self, there: bool) {
        (if there { &self.hits } else { &self.misses }).fetch_add(1, Ordering::Relaxed);
    }

    /// The graphs in memory, the largest first.
    pub fn uses(&self) -> Vec<GraphUse> {
        let entries = self.entries.lock();
        let mut all: Vec<_> = entries
            .iter()
            .map(|(key, entry)| GraphUse {
                scope: key.scope.clone(),
                branch: key.branch,
                past: key.past.map(|(known, valid)| (known.tx, valid)),
                bytes: entry.total(),
            })
            .collect();
        all.sort_by(|a, b| {
            b.bytes.cmp(&a.bytes).then_with(|| (&a.scope, a.branch, a.past).cmp(&(&b.scope, b.branch, b.past)))
        });
        all
    }

    /// Graphs keep the properties they have read. When the set of sensitive properties changes, all graphs of the
    /// project are dropped, so that they are built again without these properties.
    fn forget_what_is_sensitive(&self, ledger: &Ledger) -> Result<()> {
        let registry = ledger.latest_registry()?;
        let mut known = self.sensitive.lock();
        let before = known.get(ledger.scope());
        if before.is_some_and(|before| Arc::ptr_eq(before, &registry)) {
            return Ok(());
        }
        let same = before
            .map_or(registry.all_sensitive().is_empty(), |before| before.all_sensitive() == registry.all_sensitive());
        known.insert(ledger.scope().clone(), registry);
        if !same {
            self.entries.lock().retain(|key, _| key.scope != *ledger.scope());
        }
        Ok(())
    }

    fn bytes_of(&self, scope: &Scope, branch: BranchNo) -> usize {
        let head = Key { scope: scope.clone(), branch, past: None };
        self.entries.lock().get(&head).map_or(0, |e| e.bytes.load(Ordering::Relaxed))
    }

    fn entry(&self, key: &Key) -> Arc<Entry> {
        let mut entries = self.entries.lock();
        let entry = Arc::clone(entries.entry(key.clone()).or_default());
        entry.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        entry
    }

    /// The entry of a past view. If there is none, an entry of the same valid time and an earlier transaction becomes
    /// it, to be advanced.
    fn entry_or_older(&self, key: &Key) -> Arc<Entry> {
        if let Some((known, valid)) = key.past {
            let mut entries = self.entries.lock();
            let older = |(other, entry): &(&Key, &Arc<Entry>)| {
                (&other.scope, other.branch) == (&key.scope, key.branch)
                    && other.past.is_some_and(|(k, v)| k.tx < known.tx && v == valid)
                    && entry.pinned.is_none()
            };
            if !entries.contains_key(key)
                && let Some(other) = entries.iter().filter(older).map(|(k, _)| k.clone()).max_by_key(|k| k.past)
                && let Some(entry) = entries.remove(&other)
            {
                entries.insert(key.clone(), entry);
            }
        }
        self.entry(key)
    }

    /// Measures an entry, and drops the least recently used entries until all fit into the limit.
    fn settle(&self, key: &Key, entry: &Arc<Entry>, snapshot: &Arc<Snapshot>) {
        let things = snapshot.node_count() + snapshot.edge_count();
        let counted = entry.counted.load(Ordering::Relaxed);
        // Measuring visits every chunk, so it waits until enough has changed.
        let stale = entry.bytes.load(Ordering::Relaxed) == 0 || things.abs_diff(counted) > counted / 20;
        if stale && entry.pinned.is_none() {
            entry.bytes.store(snapshot.memory().bytes.max(1), Ordering::Relaxed);
            entry.counted.store(things, Ordering::Relaxed);
        }
        entry.beside.store(snapshot.derived_bytes(), Ordering::Relaxed);
        let mut entries = self.entries.lock();
        if key.past.is_none() {
            for (other, entry) in entries.iter().filter(|(other, _)| same_branch(other, key)) {
                let Some(pin) = entry.pinned.as_ref().filter(|_| other.past.is_some()) else { continue };
                // Its own memory is what was copied since it was pinned, or all of it if the head was built again.
                let shared = pin.build == snapshot.build;
                let copied = snapshot.copied().saturating_sub(pin.copied);
                let own = if shared { usize::try_from(copied).unwrap_or(usize::MAX) } else { pin.whole };
                entry.bytes.store(own, Ordering::Relaxed);
            }
        }
        loop {
            let total: usize = entries.values().map(|e| e.total()).sum();
            if total <= self.limit {
                return;
            }
            let oldest = entries
                .iter()
                .filter(|(other, _)| *other != key)
                .min_by_key(|(_, e)| e.used.load(Ordering::Relaxed))
                .map(|(other, _)| other.clone());
            match oldest {
                Some(other) => {
                    entries.remove(&other);
                    self.dropped.fetch_add(1, Ordering::Relaxed);
                    if other.past.is_none() {
                        // Pinned snapshots would now own what they shared with it.
                        entries.retain(|pin, entry| !(same_branch(pin, &other) && entry.pinned.is_some()));
                    }
                }
                None => return,
            }
        }
    }
}

fn same_branch(a: &Key, b: &Key) -> bool {
    (&a.scope, a.branch) == (&b.scope, b.branch)
}

/// Advances a projection to a view, or builds one. If that fails, nothing is held any more.
fn renew(
    held: &mut Held,
    projection: Option<Box<Projection>>,
    ledger: &Ledger,
    view: &View,
    progress: ProgressFn<'_>,
) -> Result<Arc<Snapshot>> {
    let moved = match projection {
        Some(mut projection) => projection.advance(ledger, view)?.then_some(projection),
        None => None,
    };
    let projection = match moved {
        Some(projection) => projection,
        None => Box::new(Projection::build(ledger, view, progress)?),
    };
    let snapshot = Arc::clone(projection.snapshot());
    *held = Held::Projection(projection);
    Ok(snapshot)
}
