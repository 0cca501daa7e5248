//! Something done again and again on a thread of its own, until it is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub struct Beat {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Beat {
    /// Works at once, and again whenever this time has passed since. Without a thread to be had nothing is done.
    pub fn start(name: &str, every: Duration, mut work: impl FnMut() + Send + 'static) -> Beat {
        Beat::paced(name, move || {
            work();
            every
        })
    }

    /// Works at once, and again after the time that the work asks for.
    pub fn paced(name: &str, mut work: impl FnMut() -> Duration + Send + 'static) -> Beat {
        let ended = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&ended);
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let pause = work();
                std::thread::park_timeout(pause);
            }
        });
        Beat { ended, thread: thread.ok() }
    }
}

impl Drop for Beat {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A thread that broke off has nothing left to end.
            let _ = thread.join();
        }
    }
}
