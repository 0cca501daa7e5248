//! What code indexing keeps between requests: working trees, their watchers, and settings.

use super::files::ExcludedPaths;
use super::sources::Sources;
use super::trees::TreeNames;
use super::working_tree::WorkingTree;
use super::{Summaries, Watch, Workspace, watch};
use crate::Engine;
use crate::feature::FeatureStates;
use lukasa_model::{Result, Scope};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A value per working tree of a project.
type ByRoot<T> = Mutex<FxHashMap<(Scope, PathBuf), T>>;

#[derive(Default)]
struct Workspaces(ByRoot<Arc<Workspace>>);

#[derive(Default)]
struct Watches(ByRoot<Watch>);

/// The summaries of a language model, if they are configured.
#[derive(Default)]
struct Summarised(Option<Arc<Summaries>>);

pub(super) fn add(states: &mut FeatureStates) {
    states.put(Workspaces::default());
    states.put(Watches::default());
    states.put(Summarised::default());
    states.put(Sources::default());
    states.put(TreeNames::default());
    states.put(Arc::<ExcludedPaths>::default());
}

impl Engine {
    /// Summarises symbols with a language model, or uses summaries that were made before.
    #[must_use]
    pub fn with_summaries(self, summaries: Summaries) -> Engine {
        self.with_state(Summarised(Some(Arc::new(summaries))))
    }

    /// The summaries of symbols, if they are configured.
    pub fn summaries(&self) -> Option<Arc<Summaries>> {
        self.state::<Summarised>().0.clone()
    }

    /// Sets the names that distinguish working trees of this machine from those of other machines.
    #[must_use]
    pub fn with_tree_names(self, names: TreeNames) -> Engine {
        self.with_state(names)
    }

    pub(crate) fn tree_names(&self) -> &TreeNames {
        self.state()
    }

    /// Never indexes these files and folders, wherever they are.
    #[must_use]
    pub fn with_kept_out(self, kept_out: ExcludedPaths) -> Engine {
        self.with_state(Arc::new(kept_out))
    }

    pub(crate) fn kept_out(&self) -> &Arc<ExcludedPaths> {
        self.state()
    }

    /// The working trees that texts of files may be read from.
    pub fn sources(&self) -> &Sources {
        self.state()
    }

    /// The working tree that contains a folder. All requests share it, so that each indexing pass builds on the last
    /// one.
    pub fn workspace(&self, scope: &Scope, path: &Path) -> Result<Arc<Workspace>> {
        let root = WorkingTree::of(path, None)?.root;
        self.sources().add(scope, &root)?;
        let mut workspaces = self.state::<Workspaces>().0.lock();
        let made = workspaces.entry((scope.clone(), root.clone())).or_insert_with(|| {
            Arc::new(Workspace::new(&root, scope.clone(), self.cache_folder(), Arc::clone(self.kept_out())))
        });
        Ok(Arc::clone(made))
    }

    /// Watches the working tree that contains a folder from now on. A second call changes nothing.
    pub fn watch(&self, scope: &Scope, path: &Path) -> Result<PathBuf> {
        let root = self.workspace(scope, path)?.root().to_owned();
        let mut watches = self.state::<Watches>().0.lock();
        if let Entry::Vacant(place) = watches.entry((scope.clone(), root.clone())) {
            place.insert(Watch::start(&self.unwatched(), scope, &root, watch::DEBOUNCE, None)?);
        }
        Ok(root)
    }

    /// A clone without watchers, for a watcher to own: with them, engine and watcher would keep each other alive.
    pub(crate) fn unwatched(&self) -> Engine {
        self.clone().with_state(Watches::default())
    }

    /// The health of each watcher of a project, by root.
    pub fn watch_health(&self, scope: &Scope) -> Vec<(PathBuf, watch::WatcherHealth)> {
        let watches = self.state::<Watches>().0.lock();
        let own = watches.iter().filter(|((of, _), _)| of == scope);
        let mut health: Vec<_> = own.map(|((_, root), watch)| (root.clone(), watch.health())).collect();
        health.sort_by(|a, b| a.0.cmp(&b.0));
        health
    }

    /// Whether a watcher follows a working tree and has no work left.
    pub(crate) fn is_watched_and_current(&self, scope: &Scope, root: &Path) -> bool {
        self.state::<Watches>().0.lock().get(&(scope.clone(), root.to_owned())).is_some_and(Watch::is_current)
    }
}
