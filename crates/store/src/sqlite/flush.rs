//! Syncs to disk while a large load is still being written, so that its commit does not wait for all of it at the end.

use rusqlite::{Connection, OpenFlags};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often written data is synced.
const EVERY: Duration = Duration::from_millis(100);

/// Syncs the write-ahead log repeatedly until dropped. Correctness does not depend on it: a commit syncs what is left.
pub struct Flusher {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    /// Starts syncing the write-ahead log of a database in the background.
    pub fn start(database: &Path) -> Flusher {
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, log) = (Arc::clone(&stop), log_of(database));
        let thread = std::thread::Builder::new().name("lukasa-flush".into()).spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                // The log may not exist yet. Errors of the disk are reported by the commit.
                if let Ok(log) = File::open(&log) {
                    let _ = log.sync_data();
                }
                std::thread::park_timeout(EVERY);
            }
        });
        Flusher { stop, thread: thread.ok() }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn log_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Checkpoints the write-ahead log in the background. What it does not complete, the next commit or the last connection
/// to close does.
pub fn checkpoint_later(database: PathBuf) {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let move_over = move || {
        if let Ok(connection) = Connection::open_with_flags(&database, flags) {
            let _ = connection.execute_batch("PRAGMA wal_checkpoint(PASSIVE)");
        }
    };
    let _ = std::thread::Builder::new().name("lukasa-checkpoint".into()).spawn(move_over);
}
