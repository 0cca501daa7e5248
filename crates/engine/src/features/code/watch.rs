//! Keeps a branch up to date while files change: waits until changes pause, then runs a pass.

use super::files;
use super::git::Repository;
use super::index::{PassOptions, PassReport};
use crate::{Context, Engine};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Scope};
use notify::event::{EventKind, ModifyKind};
use notify::{Config, RecommendedWatcher, RecursiveMode, Watcher as _};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A pass begins after this long without changes.
pub const DEBOUNCE: Duration = Duration::from_millis(500);
/// If changes never pause, a pass runs at least this often.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Maximum number of changed paths that are kept; further ones are dropped.
const PENDING: usize = 10_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WatchState {
    #[default]
    NotStarted,
    Idle,
    /// Something changed just now.
    Detecting,
    /// Waiting until changes pause.
    Debouncing,
    Rebuilding,
    /// It has ended; see `error`.
    Stopped,
}

/// The state of a watcher.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct WatcherHealth {
    pub state: WatchState,
    /// Paths that changed and are not indexed yet.
    pub pending: usize,
    pub passes: u64,
    pub folders: usize,
    /// Why the last pass failed, if it did. The next change tries again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A running watcher; it ends when dropped.
pub struct Watch {
    health: Arc<Mutex<WatcherHealth>>,
    wake: Sender<Message>,
    /// Interrupts the optional part of a pass, because there are new changes.
    interrupted: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

enum Message {
    Changed(Vec<PathBuf>),
    /// The system lost events: check everything.
    Lost,
    Stop,
}

/// Called after every pass.
pub type Listener = Box<dyn Fn(&Result<PassReport>) + Send>;

impl Watch {
    /// Starts to watch a working tree. `listener` is called after every pass.
    pub fn start(
        engine: &Engine,
        scope: &Scope,
        root: &Path,
        debounce: Duration,
        listener: Option<Listener>,
    ) -> Result<Watch> {
        let workspace = engine.workspace(scope, root)?;
        let root = workspace.root().to_owned();
        let (wake, messages) = channel();
        let heard = wake.clone();
        let interrupted = Arc::new(AtomicBool::new(false));
        let (stop, of) = (Arc::clone(&interrupted), root.clone());
        let watcher = RecommendedWatcher::new(
            move |event: notify::Result<notify::Event>| {
                let message = match event {
                    Ok(event) if event.need_rescan() => Message::Lost,
                    Ok(event) if matters(&event.kind) => Message::Changed(event.paths),
                    Ok(_) => return,
                    Err(_) => Message::Lost,
                };
                let ours = match &message {
                    Message::Changed(paths) => paths.iter().any(|path| is_ours(&of, path)),
                    _ => true,
                };
                // A missing receiver means that the watcher is being dropped.
                let _ = heard.send(message);
                // After sending, so that the thread that resets the flag finds the message.
                stop.fetch_or(ours, Ordering::SeqCst);
            },
            Config::default(),
        )
        .map_err(|e| cannot_watch(&root, &e))?;
        let health = Arc::new(Mutex::new(WatcherHealth { state: WatchState::Idle, ..WatcherHealth::default() }));
        let mut run = Run {
            engine: engine.clone(),
            scope: scope.clone(),
            root,
            watcher,
            folders: FxHashSet::default(),
            health: Arc::clone(&health),
            interrupted: Arc::clone(&interrupted),
            listener,
        };
        run.watch_folders()?;
        let thread = std::thread::Builder::new()
            .name("lukasa-watch".into())
            .spawn(move || run.run(&messages, debounce))
            .map_err(|e| Error::new(ErrorKind::Unavailable, ErrorCode::CannotWatch, format!("no thread: {e}")))?;
        Ok(Watch { health, wake, interrupted, thread: Some(thread) })
    }

    /// The current state of the watcher.
    pub fn health(&self) -> WatcherHealth {
        self.health.lock().clone()
    }

    /// Whether all reported changes are indexed.
    pub fn is_current(&self) -> bool {
        let health = self.health.lock();
        health.state == WatchState::Idle
            && health.passes > 0
            && health.error.is_none()
            && !self.interrupted.load(Ordering::SeqCst)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.wake.send(Message::Stop);
        self.interrupted.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Whether a path concerns the watcher: files of the tree and git's HEAD, but nothing else of git and no files of
/// Lukasa.
fn is_ours(root: &Path, path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(root) else { return path.ends_with("HEAD") };
    let mut parts = inside.components().map(|c| c.as_os_str());
    match parts.next().and_then(|p| p.to_str()) {
        Some(".git") => inside == Path::new(".git/HEAD"),
        Some(".lukasa") => false,
        _ => true,
    }
}

/// Whether an event may change a file's content: reading it and changing its metadata do not.
fn matters(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_)) | EventKind::Other)
}

struct Run {
    engine: Engine,
    scope: Scope,
    root: PathBuf,
    watcher: RecommendedWatcher,
    folders: FxHashSet<PathBuf>,
    health: Arc<Mutex<WatcherHealth>>,
    interrupted: Arc<AtomicBool>,
    listener: Option<Listener>,
}

impl Run {
    fn run(&mut self, messages: &Receiver<Message>, debounce: Duration) {
        // Indexes what changed before the watcher was started.
        self.pass();
        loop {
            self.set(WatchState::Idle);
            let Ok(message) = messages.recv() else { break };
            let mut pending: FxHashSet<PathBuf> = FxHashSet::default();
            match self.note(message, &mut pending) {
                Some(true) => {}
                Some(false) => continue,
                None => break,
            }
            self.set(WatchState::Detecting);
            let began = Instant::now();
            loop {
                match messages.recv_timeout(debounce) {
                    Ok(message) => {
                        if self.note(message, &mut pending).is_none() {
                            return self.set(WatchState::Stopped);
                        }
                        self.set(WatchState::Debouncing);
                        if began.elapsed() > LONGEST_WAIT {
                            break;
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return self.set(WatchState::Stopped),
                }
            }
            self.set(WatchState::Rebuilding);
            // In this order no change is lost: earlier messages are in this pass, and later ones interrupt it.
            self.interrupted.store(false, Ordering::SeqCst);
            while let Ok(message) = messages.try_recv() {
                if self.note(message, &mut pending).is_none() {
                    return self.set(WatchState::Stopped);
                }
            }
            self.pass();
            self.health.lock().pending = 0;
        }
        self.set(WatchState::Stopped);
    }

    /// Processes a message. Returns whether there is work, or none if the watcher must stop.
    fn note(&self, message: Message, pending: &mut FxHashSet<PathBuf>) -> Option<bool> {
        match message {
            Message::Stop => None,
            Message::Lost => Some(true),
            Message::Changed(paths) => {
                let mut any = false;
                for path in paths {
                    if is_ours(&self.root, &path) {
                        any = true;
                        if pending.len() < PENDING {
                            pending.insert(path);
                        }
                    }
                }
                self.health.lock().pending = pending.len();
                Some(any)
            }
        }
    }

    fn pass(&mut self) {
        let mut progress = |_: u64, _: Option<u64>| {};
        let mut context = Context::of(self.scope.clone(), &mut progress);
        let interrupted = Some(Arc::clone(&self.interrupted));
        let pass = PassOptions { reason: Some("files changed".into()), interrupted, ..PassOptions::default() };
        let done = self
            .engine
            .workspace(&self.scope, &self.root)
            .and_then(|workspace| workspace.index(&self.engine, &mut context, &pass));
        // Files may have been added to new folders before these were watched.
        let more = self.watch_folders();
        let done = match more {
            Ok(true) => self
                .engine
                .workspace(&self.scope, &self.root)
                .and_then(|workspace| workspace.index(&self.engine, &mut context, &pass))
                .map(|again| if again.tx.is_some() { again } else { done.clone().unwrap_or(again) }),
            Ok(false) => done,
            Err(e) => done.and(Err(e)),
        };
        {
            let mut health = self.health.lock();
            health.passes += 1;
            health.folders = self.folders.len();
            health.error = done.as_ref().err().map(ToString::to_string);
        }
        if let Some(listener) = &self.listener {
            listener(&done);
        }
    }

    /// Watches every folder with files to index, and the folder of git's HEAD. Returns whether there are new folders.
    fn watch_folders(&mut self) -> Result<bool> {
        let listed = files::list(&self.root, self.engine.kept_out())?.files;
        let mut wanted: FxHashSet<PathBuf> = FxHashSet::default();
        wanted.insert(self.root.clone());
        for file in &listed {
            let mut folder = Path::new(&file.path).parent();
            while let Some(at) = folder {
                if at.as_os_str().is_empty() || !wanted.insert(self.root.join(at)) {
                    break;
                }
                folder = at.parent();
            }
        }
        if self.root.join(".git").is_dir() {
            wanted.insert(self.root.join(".git"));
        } else if let Ok(Some(linked)) = Repository::discover(&self.root) {
            wanted.insert(linked.git_dir().to_owned());
        }
        if wanted == self.folders {
            return Ok(false);
        }
        let (mut new, mut failed) = (false, None);
        let first = self.folders.is_empty();
        // All in one, because on macOS every change of the watched folders restarts the events of all.
        let mut watched = self.watcher.paths_mut();
        for folder in wanted.difference(&self.folders) {
            match watched.add(folder, RecursiveMode::NonRecursive) {
                Ok(()) => new = true,
                // The folder was removed meanwhile: the next pass finds that.
                Err(e) if matches!(e.kind, notify::ErrorKind::PathNotFound) || !folder.exists() => continue,
                Err(e) => {
                    failed = Some(cannot_watch(folder, &e));
                    break;
                }
            }
        }
        for folder in self.folders.difference(&wanted).filter(|_| failed.is_none()) {
            // A removed folder is no longer watched anyway.
            let _ = watched.remove(folder);
        }
        // Without this, no folder is watched any more, whatever failed.
        watched.commit().map_err(|e| cannot_watch(&self.root, &e))?;
        if let Some(error) = failed {
            return Err(error);
        }
        self.folders = wanted;
        Ok(new && !first)
    }

    fn set(&self, state: WatchState) {
        self.health.lock().state = state;
    }
}

fn cannot_watch(path: &Path, error: &notify::Error) -> Error {
    let full = matches!(error.kind, notify::ErrorKind::MaxFilesWatch);
    let message = format!("`{}` cannot be watched: {error}", path.display());
    let hint = if full {
        "raise fs.inotify.max_user_watches, or keep folders out with .lukasaignore"
    } else {
        "index with `lukasa index` instead"
    };
    Error::new(ErrorKind::Unavailable, ErrorCode::CannotWatch, message).hint(hint)
}
