//! Time and new ids come from outside, so that tests are deterministic.

use lukasa_model::{Result, Time};
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

pub trait Clock: Send + Sync {
    fn now(&self) -> Time;
    /// An id for an object without key.
    fn new_id(&self) -> Uuid;

    /// Refuses a time that is about to be recorded and cannot be right.
    fn check(&self, recorded_at: Time) -> Result<()> {
        let _ = recorded_at;
        Ok(())
    }
}

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
