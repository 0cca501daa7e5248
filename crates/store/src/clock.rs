//! The source of time and new ids, injected so that tests are deterministic.

use lukasa_model::{Result, Time};
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// The source of the recording time and of random ids.
pub trait Clock: Send + Sync {
    /// Returns the wall-clock time. It may go backwards; the ledger never records a time before the last one.
    fn now(&self) -> Time;
    /// Generates an id for an object without a key.
    fn new_id(&self) -> Uuid;

    /// Rejects an implausible time before it is recorded.
    fn check(&self, recorded_at: Time) -> Result<()> {
        let _ = recorded_at;
        Ok(())
    }
}

/// The clock of this machine, with UUIDs of version 7.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX - 1))
    }

    fn new_id(&self) -> Uuid {
        Uuid::now_v7()
    }
}
