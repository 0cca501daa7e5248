//! A clock that refuses to record a time after the wall clock has jumped forward by more than a day.
//!
//! Recorded times never decrease, so one wrong time years ahead would remain the time of all later transactions. A
//! project without writes for a month is not a jump: wall time is compared with a steady clock that also runs during
//! sleep and cannot be set. Readings of both clocks are kept in a file beside the store, so that a new process can
//! compare with them until the machine reboots. A database server's time is compared with that of this machine.

use crate::{Clock, private};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Time};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uuid::Uuid;

/// A larger step forward, in microseconds, is a jump. Correcting an hour or two of drift is not.
pub const LONGEST_STEP: i64 = 24 * 3_600 * 1_000_000;
/// Readings before 2026 come from a clock that was not set yet: a step forward from there is a correction.
const UNSET: Time = Time(1_767_225_600_000_000);
/// How often the readings in the file are replaced, in microseconds.
const KEPT_FOR: i64 = 60 * 1_000_000;
/// The format version of the file.
const FORMAT: u32 = 1;

/// A reading of a clock that cannot be set: microseconds since an arbitrary moment, fixed until the machine reboots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteadyReading {
    /// Differs after every boot of the machine.
    pub boot: String,
    pub micros: i64,
}

/// Readings of both clocks at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Reading {
    format: u32,
    boot: String,
    steady_us: i64,
    wall_us: i64,
}

type SteadySource = Box<dyn Fn() -> Option<SteadyReading> + Send + Sync>;
type Report = Box<dyn Fn(&Error) + Send + Sync>;

/// A clock that rejects times after a jump of the wall clock.
pub struct GuardedClock {
    clock: Arc<dyn Clock>,
    steady: SteadySource,
    /// Where readings are kept for the next process.
    file: Option<PathBuf>,
    /// Whether jumps are reported but recorded anyway.
    allows: bool,
    report: Report,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    reading: Option<Reading>,
    /// Wall time of the readings in the file.
    kept: Option<i64>,
}

impl GuardedClock {
    /// Creates a clock. `report` is called for every jump, allowed or refused.
    pub fn new(clock: Arc<dyn Clock>, allows: bool, report: impl Fn(&Error) + Send + Sync + 'static) -> GuardedClock {
        let report = Box::new(report);
        GuardedClock { clock, steady: Box::new(steady), file: None, allows, report, last: Mutex::default() }
    }

    /// Keeps readings in a file beside this store.
    #[must_use]
    pub fn beside(mut self, store: &Path) -> GuardedClock {
        self.file = Some(store.with_extension("clock"));
        self
    }

    /// Replaces the system's steady clock, for tests.
    #[must_use]
    pub fn with_steady(mut self, steady: impl Fn() -> Option<SteadyReading> + Send + Sync + 'static) -> GuardedClock {
        self.steady = Box::new(steady);
        self
    }

    fn jumped(&self, by: i64, what: &str) -> Result<()> {
        let hours = by / 3_600_000_000;
        let error = Error::new(ErrorKind::Unavailable, ErrorCode::ClockJumped, format!("{what} by {hours} hours")).hint(
            "set the clock right; if it is right now, allow this once with LUKASA_CLOCK_JUMP=allow (clock.jump = \"allow\")",
        );
        (self.report)(&error);
        if self.allows { Ok(()) } else { Err(error) }
    }

    fn read(&self) -> Option<Reading> {
        let text = std::fs::read_to_string(self.file.as_ref()?).ok()?;
        serde_json::from_str(&text).ok().filter(|reading: &Reading| reading.format == FORMAT)
    }

    /// Writes the reading to the file. A failure is not fatal: the next write tries again, and until then a new process
    /// has nothing to compare its first write with.
    fn keep(&self, reading: &Reading) -> std::io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let part = file.with_extension(format!("clock-{}", std::process::id()));
        private::write(&part, serde_json::to_vec(reading)?)?;
        std::fs::rename(&part, file)
    }
}

impl Clock for GuardedClock {
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn new_id(&self) -> Uuid {
        self.clock.new_id()
    }

    fn check(&self, recorded_at: Time) -> Result<()> {
        let wall = self.clock.now().0;
        let ahead = recorded_at.0.saturating_sub(wall);
        if ahead > LONGEST_STEP {
            self.jumped(ahead, "the database server's clock is ahead of this machine's")?;
        }
        let Some(SteadyReading { boot, micros }) = (self.steady)() else { return Ok(()) };
        let mut last = self.last.lock();
        let before = last.reading.take().or_else(|| self.read());
        let comparable = before.as_ref().filter(|r| r.boot == boot && r.wall_us >= UNSET.0);
        let jump = comparable.map_or(0, |r| wall - (r.wall_us + (micros - r.steady_us)));
        if jump > LONGEST_STEP
            && let Err(e) = self.jumped(jump, "the clock went forward")
        {
            // The next write must be compared with the same reading.
            last.reading = before;
            return Err(e);
        }
        let reading = Reading { format: FORMAT, boot, steady_us: micros, wall_us: wall };
        if last.kept.is_none_or(|kept| (wall - kept).abs() > KEPT_FOR) && self.keep(&reading).is_ok() {
            last.kept = Some(wall);
        }
        last.reading = Some(reading);
        Ok(())
    }
}

/// On Linux, the time since boot, including sleep. Not available on other systems.
#[cfg(target_os = "linux")]
fn steady() -> Option<SteadyReading> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_string();
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = uptime.split(' ').next()?.parse().ok()?;
    #[allow(clippy::cast_possible_truncation, reason = "no machine runs for a hundred thousand years")]
    let micros = (seconds * 1e6) as i64;
    Some(SteadyReading { boot, micros })
}

#[cfg(not(target_os = "linux"))]
fn steady() -> Option<SteadyReading> {
    None
}
