//! A clock that changes only on request, and ids that count up.

use lukasa_model::Time;
use lukasa_store::Clock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use uuid::Uuid;

/// A clock for tests. It stands still until it is set or advanced; new ids are consecutive numbers.
pub struct ManualClock {
    now: AtomicI64,
    ids: AtomicU64,
}

impl ManualClock {
    /// The initial time: 2026-01-01T00:00:00Z.
    pub const START: Time = Time(1_767_225_600_000_000);

    pub fn set(&self, time: Time) {
        self.now.store(time.0, Ordering::SeqCst);
    }

    /// Advances the clock by whole seconds and returns the new time.
    pub fn advance(&self, seconds: i64) -> Time {
        Time(self.now.fetch_add(seconds * 1_000_000, Ordering::SeqCst) + seconds * 1_000_000)
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        ManualClock { now: AtomicI64::new(Self::START.0), ids: AtomicU64::new(1) }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time(self.now.load(Ordering::SeqCst))
    }

    fn new_id(&self) -> Uuid {
        Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + u128::from(self.ids.fetch_add(1, Ordering::SeqCst)))
    }
}
