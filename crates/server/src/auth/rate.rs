//! Rate limits: two token buckets per tenant and user, one that warns and one that refuses.

use crate::Caller;
use axum::http::{HeaderName, HeaderValue};
use lukasa_engine::telemetry::metrics;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Time};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::HashMap;

/// One request in bucket units: at `n` requests a second, a bucket gains `n` units a microsecond.
const REQUEST: u64 = 1_000_000;
/// Time between two sweeps that forget idle users.
const SWEEP_MICROSECONDS: i64 = 60_000_000;

/// Sustained requests per second, and the burst allowed after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests that are allowed per second in the long run.
    pub per_second: u32,
    /// Requests that are allowed at once after a pause.
    pub burst: u32,
}

impl RateLimit {
    fn full(self) -> u64 {
        // At least one request: a bucket of size zero would refuse the user forever.
        u64::from(self.burst.max(1)) * REQUEST
    }

    fn after(self, level: u64, elapsed: u64) -> u64 {
        let gained = u64::from(self.per_second.max(1)).saturating_mul(elapsed);
        level.saturating_add(gained).min(self.full())
    }
}

/// The limits for each user, and how many users are remembered.
#[derive(Clone, Copy, Debug)]
pub struct RateLimits {
    /// Requests above this limit are answered with a warning.
    pub soft: RateLimit,
    /// Requests above this limit are refused.
    pub hard: RateLimit,
    /// Most users remembered, at some hundred bytes each.
    pub users: usize,
}

impl Default for RateLimits {
    fn default() -> RateLimits {
        RateLimits {
            soft: RateLimit { per_second: 10, burst: 20 },
            hard: RateLimit { per_second: 20, burst: 40 },
            users: 65_536,
        }
    }
}

/// The rate limits, and the state of each user. Used by all requests.
pub struct RateLimiter {
    limits: RateLimits,
    users: Mutex<Users>,
}

struct Users {
    levels: HashMap<(String, String), Levels>,
    swept: Time,
}

#[derive(Clone, Copy)]
struct Levels {
    soft: u64,
    hard: u64,
    seen: Time,
}

/// The state of a user's buckets after an accepted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStatus {
    /// Requests that would be accepted right now.
    pub remaining: u64,
    /// The soft limit is exceeded.
    pub warning: bool,
}

impl RateStatus {
    /// The headers to add to the response.
    pub fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = vec![(HeaderName::from_static("x-ratelimit-remaining"), HeaderValue::from(self.remaining))];
        if self.warning {
            let warning = HeaderValue::from_static("more requests than the soft limit allows");
            headers.push((HeaderName::from_static("x-ratelimit-warning"), warning));
        }
        headers
    }
}

impl RateLimiter {
    /// Without any requests so far.
    pub fn new(limits: RateLimits) -> RateLimiter {
        let users = Mutex::new(Users { levels: HashMap::new(), swept: Time::MIN });
        RateLimiter { limits, users }
    }

    /// Counts a request, or refuses it as `rate_limited`. A refused request does not count.
    pub fn take(&self, caller: &Caller, now: Time) -> Result<RateStatus> {
        let RateLimits { soft, hard, .. } = self.limits;
        let key = (caller.scope.tenant.clone(), caller.user.clone().unwrap_or_default());
        let mut users = self.users.lock();
        users.forget(&self.limits, &key, now);
        let levels = users.levels.entry(key).or_insert(Levels { soft: soft.full(), hard: hard.full(), seen: now });
        *levels = levels.at(&self.limits, now);
        if levels.hard < REQUEST {
            let wait = (REQUEST - levels.hard).div_ceil(u64::from(hard.per_second.max(1)));
            metrics().rate_hits.inc_of(&[&caller.scope.tenant, "hard"]);
            return Err(limited(wait.div_ceil(1_000_000)));
        }
        levels.hard -= REQUEST;
        let warning = levels.soft < REQUEST;
        match warning {
            true => metrics().rate_hits.inc_of(&[&caller.scope.tenant, "soft"]),
            false => levels.soft -= REQUEST,
        }
        Ok(RateStatus { remaining: levels.hard / REQUEST, warning })
    }

    /// How many users are remembered.
    pub fn remembered(&self) -> usize {
        self.users.lock().levels.len()
    }
}

impl Levels {
    /// A clock that runs backwards adds nothing and takes nothing.
    fn at(self, limits: &RateLimits, now: Time) -> Levels {
        let elapsed = now.0.saturating_sub(self.seen.0).max(0).unsigned_abs();
        Levels {
            soft: limits.soft.after(self.soft, elapsed),
            hard: limits.hard.after(self.hard, elapsed),
            seen: self.seen.max(now),
        }
    }
}

impl Users {
    /// Forgets users whose buckets are full again, because they are equal to new users. If too many are left, also
    /// forgets those not seen for longest.
    fn forget(&mut self, limits: &RateLimits, coming: &(String, String), now: Time) {
        let most = limits.users.max(1);
        let crowded = self.levels.len() >= most && !self.levels.contains_key(coming);
        if !crowded && now.0.saturating_sub(self.swept.0) < SWEEP_MICROSECONDS {
            return;
        }
        self.swept = now;
        self.levels.retain(|_, levels| {
            let now = levels.at(limits, now);
            now.soft < limits.soft.full() || now.hard < limits.hard.full()
        });
        if crowded && self.levels.len() >= most {
            // Drops half of them, so that this does not run for every new user.
            let mut seen: Vec<Time> = self.levels.values().map(|levels| levels.seen).collect();
            let middle = seen.len() / 2;
            let border = *seen.select_nth_unstable(middle).1;
            let mut left = most / 2;
            self.levels.retain(|_, levels| {
                let stays = levels.seen >= border && left > 0;
                left -= usize::from(stays);
                stays
            });
        }
    }
}

fn limited(seconds: u64) -> Error {
    Error::new(ErrorKind::RateLimited, ErrorCode::RateLimited, "too many requests")
        .hint(format!("try again in {seconds} s"))
        .details(json!({"retry_after": seconds}))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;
    use lukasa_model::Scope;
    use proptest::prelude::*;

    fn caller(tenant: &str, user: &str) -> Caller {
        Caller { user: Some(user.into()), ..Caller::owner(Scope::new(tenant, "shop").unwrap()) }
    }

    const START: i64 = 1_767_225_600_000_000;

    /// The level of a bucket by its definition: since no counted request may there have been more requests than the
    /// burst plus what the elapsed time allows.
    fn level(limit: RateLimit, counted: &[i64], now: i64) -> i64 {
        let full = i64::from(limit.burst) * REQUEST as i64;
        let since = |(n, then): (usize, &i64)| {
            full + (now - then) * i64::from(limit.per_second) - (counted.len() - n) as i64 * REQUEST as i64
        };
        counted.iter().enumerate().map(since).min().unwrap_or(full).min(full)
    }

    #[derive(Default)]
    struct Naive {
        hard: Vec<i64>,
        soft: Vec<i64>,
    }

    impl Naive {
        /// Returns the remaining requests and the warning, or the seconds to wait.
        fn take(&mut self, limits: &RateLimits, now: i64) -> Result<RateStatus, u64> {
            let one = REQUEST as i64;
            if level(limits.hard, &self.hard, now) < one {
                let free = |seconds: &u64| level(limits.hard, &self.hard, now + *seconds as i64 * 1_000_000) >= one;
                return Err((1..).find(free).unwrap());
            }
            self.hard.push(now);
            let warning = level(limits.soft, &self.soft, now) < one;
            if !warning {
                self.soft.push(now);
            }
            Ok(RateStatus { remaining: (level(limits.hard, &self.hard, now) / one) as u64, warning })
        }
    }

    fn limit() -> impl Strategy<Value = RateLimit> {
        (1..8u32, 1..12u32).prop_map(|(per_second, burst)| RateLimit { per_second, burst })
    }

    fn pause() -> impl Strategy<Value = i64> {
        prop_oneof![4 => Just(0), 4 => 0..900_000i64, 2 => 0..5_000_000i64, 1 => 0..200_000_000i64]
    }

    proptest! {
        #[test]
        fn buckets_match_their_definition(
            soft in limit(), hard in limit(), steps in prop::collection::vec((pause(), 0..3usize), 1..120),
        ) {
            let limits = RateLimits { soft, hard, users: 100 };
            let (rates, mut naive, mut now) = (RateLimiter::new(limits), [(); 3].map(|()| Naive::default()), START);
            for (pause, who) in steps {
                now += pause;
                let due = naive[who].take(&limits, now);
                // Two users of one tenant, and a user of the same name in another tenant.
                let who = [caller("a", "ada"), caller("a", "bob"), caller("b", "ada")][who].clone();
                let got = rates.take(&who, Time(now)).map_err(|e| e.details["retry_after"].as_u64().unwrap());
                prop_assert_eq!(got, due);
            }
        }
    }

    #[test]
    fn requests_are_warned_then_refused_then_accepted_again() {
        let limits = RateLimits {
            soft: RateLimit { per_second: 1, burst: 2 },
            hard: RateLimit { per_second: 2, burst: 3 },
            ..RateLimits::default()
        };
        let (rates, ada) = (RateLimiter::new(limits), caller("a", "ada"));
        let take = |micros: i64| rates.take(&ada, Time(START + micros));
        assert_eq!(take(0).unwrap(), RateStatus { remaining: 2, warning: false });
        assert_eq!(take(0).unwrap().headers().len(), 1);
        let warned = take(0).unwrap();
        assert_eq!(warned, RateStatus { remaining: 0, warning: true });
        let headers = warned.headers();
        assert_eq!((headers[0].0.as_str(), headers[0].1.to_str().unwrap()), ("x-ratelimit-remaining", "0"));
        assert_eq!(headers[1].0.as_str(), "x-ratelimit-warning");
        let refused = take(0).unwrap_err();
        assert_eq!((refused.kind, refused.code), (ErrorKind::RateLimited, ErrorCode::RateLimited));
        assert_eq!(refused.details["retry_after"], 1);
        assert!(take(499_999).is_err());
        assert!(take(500_000).is_ok(), "a refused request does not count");
        assert!(take(-5_000_000).is_err(), "a clock that runs backwards gives nothing");
        assert!(rates.take(&caller("a", "bob"), Time(START)).is_ok(), "others are not held up");
    }

    #[test]
    fn idle_users_are_forgotten_and_memory_is_bounded() {
        let limits = RateLimits { users: 10, ..RateLimits::default() };
        let rates = RateLimiter::new(limits);
        for n in 0..1_000 {
            rates.take(&caller("a", &format!("user {n}")), Time(START + n)).unwrap();
            assert!(rates.remembered() <= 10, "{}", rates.remembered());
        }
        // All at the same moment: no user is older than another.
        for n in 0..1_000 {
            rates.take(&caller("b", &format!("user {n}")), Time(START + 1_000)).unwrap();
            assert!(rates.remembered() <= 10, "{}", rates.remembered());
        }
        rates.take(&caller("a", "later"), Time(START + 100_000_000)).unwrap();
        assert_eq!(rates.remembered(), 1);
        // While there is room, a user at the limit is not forgotten.
        let rates = RateLimiter::new(RateLimits { hard: RateLimit { per_second: 1, burst: 1 }, ..limits });
        rates.take(&caller("a", "ada"), Time(START)).unwrap();
        for n in 0..9 {
            rates.take(&caller("a", &format!("user {n}")), Time(START)).unwrap();
        }
        assert!(rates.take(&caller("a", "ada"), Time(START)).is_err());
    }
}
