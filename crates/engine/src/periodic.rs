//! Periodic work on a thread, until the handle is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The handle of periodic work. Dropping it stops the work and waits for a run in progress.
pub struct PeriodicWork {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PeriodicWork {
    /// Runs `work` at once, and then with a pause of `every` after each run. Does nothing if no thread can be started.
    pub fn start(name: &str, every: Duration, mut work: impl FnMut() + Send + 'static) -> PeriodicWork {
        PeriodicWork::paced(name, move || {
            work();
            every
        })
    }

    /// Runs `work` at once, and again after the pause that it returns.
    pub fn paced(name: &str, mut work: impl FnMut() -> Duration + Send + 'static) -> PeriodicWork {
        let ended = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&ended);
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let pause = work();
                std::thread::park_timeout(pause);
            }
        });
        PeriodicWork { ended, thread: thread.ok() }
    }
}

impl Drop for PeriodicWork {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // If the thread panicked there is nothing left to stop.
            let _ = thread.join();
        }
    }
}
