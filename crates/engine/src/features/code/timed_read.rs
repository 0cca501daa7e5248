//! Reads with a time limit: a file on a file system that does not answer must not hold the thread of a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Time after which a read is given up. A regular file of a size that is indexed takes milliseconds.
pub const READ_LIMIT: Duration = Duration::from_secs(2);
/// Most reads of one root under way, given up or not. More would not have ended either.
const MOST_READS: usize = 128;

/// The reads of one root that have not ended.
#[derive(Clone, Debug)]
pub struct PendingReads {
    count: Arc<AtomicUsize>,
    most: usize,
}

/// Counts one read until it ends, however it ends.
struct PendingRead(PendingReads);

impl Drop for PendingRead {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Default for PendingReads {
    fn default() -> PendingReads {
        PendingReads::at_most(MOST_READS)
    }
}

impl PendingReads {
    /// With at most this many reads under way, given up or not.
    pub fn at_most(most: usize) -> PendingReads {
        PendingReads { count: Arc::default(), most }
    }

    /// The result of `read`, on a thread of its own; `None` if it does not end in time, or too many have not ended. The
    /// system cannot stop a read, so one that is given up keeps its thread until the file system answers.
    pub fn within<T: Send + 'static>(&self, limit: Duration, read: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let before = self.count.fetch_add(1, Ordering::AcqRel);
        let pending = PendingRead(self.clone());
        if before >= self.most {
            return None;
        }
        let (send, receive) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().name("read".into()).spawn(move || {
            let result = read();
            drop(pending);
            // Nobody receives the result of a read that was given up.
            let _ = send.send(result);
        });
        thread.ok()?;
        receive.recv_timeout(limit).ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    fn count(reads: &PendingReads) -> usize {
        reads.count.load(Ordering::Acquire)
    }

    #[test]
    fn a_read_that_does_not_end_is_given_up_and_counted_until_it_ends() {
        let reads = PendingReads::default();
        let (answer, answered) = mpsc::channel::<()>();
        let stuck = reads.within(Duration::from_millis(1), move || answered.recv().is_ok());
        assert_eq!((stuck, count(&reads)), (None, 1));
        assert_eq!(reads.within(READ_LIMIT, || 7), Some(7), "others are read meanwhile");
        answer.send(()).unwrap();
        while count(&reads) > 0 {
            thread::yield_now();
        }
    }

    #[test]
    fn no_more_threads_are_held_than_allowed() {
        let reads = PendingReads::default();
        let senders: Vec<mpsc::Sender<()>> = (0..MOST_READS)
            .map(|_| {
                let (answer, answered) = mpsc::channel();
                assert_eq!(reads.within(Duration::ZERO, move || answered.recv().is_ok()), None);
                answer
            })
            .collect();
        assert_eq!((reads.within(READ_LIMIT, || 7), count(&reads)), (None, MOST_READS));
        drop(senders);
        while count(&reads) > 0 {
            thread::yield_now();
        }
        assert_eq!(reads.within(READ_LIMIT, || 7), Some(7));
    }

    #[test]
    fn a_read_that_panics_is_not_counted_for_ever() {
        let reads = PendingReads::default();
        assert_eq!(reads.within(READ_LIMIT, || -> u8 { panic!("a read that fails") }), None);
        while count(&reads) > 0 {
            thread::yield_now();
        }
    }
}
