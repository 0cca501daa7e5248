//! Lets the disk work while a large load is still being made: otherwise its commit waits for all of it at the end.

use rusqlite::{Connection, OpenFlags};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often what was written is sent to the disk.
const EVERY: Duration = Duration::from_millis(100);

/// Sends the write-ahead log to the disk again and again until it is dropped. Nothing depends on it: a commit sends
/// whatever is left by itself.
pub struct Flusher {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    pub fn start(database: &Path) -> Flusher {
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, log) = (Arc::clone(&stop), log_of(database));
        let thread = std::thread::Builder::new().name("lukasa-flush".into()).spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                // A log that is not there yet, or a disk that refuses, is the commit's to tell.
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

/// Moves what the log holds into the database, beside everything else that goes on. What it leaves undone, the next
/// commit or the last one to close the store does.
pub fn checkpoint_later(database: PathBuf) {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let move_over = move || {
        if let Ok(connection) = Connection::open_with_flags(&database, flags) {
            let _ = connection.execute_batch("PRAGMA wal_checkpoint(PASSIVE)");
        }
    };
    let _ = std::thread::Builder::new().name("lukasa-checkpoint".into()).spawn(move_over);
}
