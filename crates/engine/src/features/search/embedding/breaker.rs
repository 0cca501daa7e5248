//! A circuit breaker: stops calling a model that mostly fails, and probes it at intervals with a few jobs.

use lukasa_model::Time;
use std::collections::VecDeque;

const MINUTE: i64 = 60_000_000;
/// Older failures do not count.
const WINDOW: i64 = 5 * MINUTE;
/// With fewer attempts, the share of failures is not meaningful.
const ENOUGH: u64 = 30;
/// The breaker opens above this share of failures.
const TOO_MANY: f64 = 0.4;
/// Time between probes while the breaker is open.
const PROBE_EVERY: i64 = 2 * MINUTE;
/// Number of jobs in one probe.
const PROBE: usize = 3;

/// Closed: jobs are processed. Open: only probes are allowed, until one succeeds.
#[derive(Debug, Default)]
pub struct Breaker {
    /// Time, number of successes, number of failures.
    attempts: VecDeque<(Time, u64, u64)>,
    open: Option<OpenBreaker>,
}

#[derive(Clone, Copy, Debug)]
struct OpenBreaker {
    since: Time,
    next_probe: Time,
}

/// How many jobs may be tried now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedJobs {
    All,
    /// At most this many jobs.
    Probe(usize),
    /// None before this time.
    NotBefore(Time),
}

/// Whether the model is being called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    Closed,
    Open { since: Time, next_probe: Time },
}

impl Breaker {
    /// Returns how many jobs may be tried now.
    pub fn allowed(&self, now: Time) -> AllowedJobs {
        match self.open {
            None => AllowedJobs::All,
            Some(open) if now >= open.next_probe => AllowedJobs::Probe(PROBE),
            Some(open) => AllowedJobs::NotBefore(open.next_probe),
        }
    }

    /// Records the outcome of jobs.
    pub fn record(&mut self, now: Time, succeeded: u64, failed: u64) {
        if succeeded + failed == 0 {
            return;
        }
        if let Some(open) = &mut self.open {
            if failed == 0 {
                *self = Breaker::default();
            } else {
                open.next_probe = Time(now.0 + PROBE_EVERY);
            }
            return;
        }
        self.attempts.push_back((now, succeeded, failed));
        while self.attempts.front().is_some_and(|(then, ..)| then.0 <= now.0 - WINDOW) {
            self.attempts.pop_front();
        }
        let (good, bad) = self.attempts.iter().fold((0, 0), |(good, bad), (_, g, b)| (good + g, bad + b));
        if good + bad >= ENOUGH && bad as f64 > TOO_MANY * (good + bad) as f64 {
            self.open = Some(OpenBreaker { since: now, next_probe: Time(now.0 + PROBE_EVERY) });
        }
    }

    pub fn state(&self) -> BreakerState {
        match self.open {
            None => BreakerState::Closed,
            Some(OpenBreaker { since, next_probe }) => BreakerState::Open { since, next_probe },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time(seconds * 1_000_000)
    }

    #[test]
    fn opens_above_two_fifths_of_at_least_thirty() {
        for (succeeded, failed, open) in
            [(0, 29, false), (0, 30, true), (18, 12, false), (17, 13, true), (600, 400, false), (599, 401, true)]
        {
            let mut breaker = Breaker::default();
            breaker.record(at(1), succeeded, failed);
            assert_eq!(breaker.state() != BreakerState::Closed, open, "{succeeded} and {failed}");
        }
    }

    #[test]
    fn only_the_last_five_minutes_count() {
        let mut breaker = Breaker::default();
        breaker.record(at(0), 0, 20);
        breaker.record(at(300), 0, 20);
        assert_eq!(breaker.allowed(at(300)), AllowedJobs::All, "old failures do not count");
        breaker.record(at(599), 0, 10);
        assert_eq!(breaker.allowed(at(599)), AllowedJobs::NotBefore(at(719)));
        let mut breaker = Breaker::default();
        breaker.record(at(0), 100, 0);
        breaker.record(at(299), 0, 60);
        assert_eq!(breaker.state(), BreakerState::Closed, "successes of the window count as well");
    }

    #[test]
    fn probes_come_every_two_minutes_until_one_succeeds() {
        let mut breaker = Breaker::default();
        breaker.record(at(0), 0, 30);
        assert_eq!(breaker.state(), BreakerState::Open { since: at(0), next_probe: at(120) });
        assert_eq!(breaker.allowed(at(119)), AllowedJobs::NotBefore(at(120)));
        assert_eq!(breaker.allowed(at(120)), AllowedJobs::Probe(3));
        breaker.record(at(121), 0, 3);
        assert_eq!(breaker.allowed(at(240)), AllowedJobs::NotBefore(at(241)));
        breaker.record(at(241), 0, 0);
        assert_eq!(breaker.allowed(at(241)), AllowedJobs::Probe(3), "a probe without jobs changes nothing");
        breaker.record(at(242), 2, 1);
        assert_ne!(breaker.state(), BreakerState::Closed, "not while something fails");
        breaker.record(at(365), 3, 0);
        assert_eq!((breaker.state(), breaker.allowed(at(365))), (BreakerState::Closed, AllowedJobs::All));
        breaker.record(at(366), 0, 29);
        assert_eq!(breaker.state(), BreakerState::Closed, "earlier failures are dropped");
    }
}
