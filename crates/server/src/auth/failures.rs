//! Limits how many failed logins an address may make.

use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Time};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// How many failed logins an address may make within a window.
#[derive(Clone, Copy, Debug)]
pub struct FailureLimit {
    /// After this many failures, the address is refused until the window has passed.
    pub failures: u32,
    /// Length of the window, counted from the first failure.
    pub window_seconds: u32,
    /// Most addresses remembered.
    pub peers: usize,
}

impl Default for FailureLimit {
    fn default() -> FailureLimit {
        FailureLimit { failures: 20, window_seconds: 60, peers: 65_536 }
    }
}

impl FailureLimit {
    fn window(&self) -> i64 {
        i64::from(self.window_seconds.max(1)) * 1_000_000
    }
}

/// Failures per address within its window.
pub struct LoginFailures {
    limit: FailureLimit,
    peers: Mutex<HashMap<IpAddr, Window>>,
}

#[derive(Clone, Copy)]
struct Window {
    began: Time,
    failures: u32,
}

impl LoginFailures {
    /// Without any failures so far.
    pub fn new(limit: FailureLimit) -> LoginFailures {
        LoginFailures { limit, peers: Mutex::default() }
    }

    /// Refuses an address with too many failures, even with a valid credential: otherwise it would learn which guess
    /// was right.
    pub fn check(&self, peer: IpAddr, now: Time) -> Result<()> {
        let peers = self.peers.lock();
        let Some(window) = peers.get(&group(peer)).filter(|window| window.failures >= self.limit.failures.max(1))
        else {
            return Ok(());
        };
        let left = window.began.0.saturating_add(self.limit.window()) - now.0;
        if left <= 0 {
            return Ok(());
        }
        let seconds = left.unsigned_abs().div_ceil(1_000_000);
        Err(Error::new(
            ErrorKind::RateLimited,
            ErrorCode::TooManyFailures,
            "too many keys or tokens of this address were refused",
        )
        .hint(format!("try again in {seconds} s"))
        .details(json!({"retry_after": seconds})))
    }

    /// Counts a credential that was refused.
    pub fn note(&self, peer: IpAddr, now: Time) {
        let (peer, length) = (group(peer), self.limit.window());
        let mut peers = self.peers.lock();
        if !peers.contains_key(&peer) && peers.len() >= self.limit.peers.max(1) {
            self.make_room(&mut peers, now);
        }
        let window = peers.entry(peer).or_insert(Window { began: now, failures: 0 });
        // A clock that runs backwards starts a new window.
        if !(0..length).contains(&now.0.saturating_sub(window.began.0)) {
            *window = Window { began: now, failures: 0 };
        }
        window.failures = window.failures.saturating_add(1);
    }

    /// Forgets windows that have passed. If that is not enough, forgets the older half of the rest.
    fn make_room(&self, peers: &mut HashMap<IpAddr, Window>, now: Time) {
        peers.retain(|_, window| now.0.saturating_sub(window.began.0) < self.limit.window());
        if peers.len() >= self.limit.peers.max(1) {
            let mut began: Vec<Time> = peers.values().map(|window| window.began).collect();
            let middle = began.len() / 2;
            let border = *began.select_nth_unstable(middle).1;
            let mut left = peers.len() / 2;
            peers.retain(|_, window| {
                let stays = window.began >= border && left > 0;
                left -= usize::from(stays);
                stays
            });
        }
    }

    /// How many addresses are remembered.
    pub fn remembered(&self) -> usize {
        self.peers.lock().len()
    }
}

/// Groups IPv6 addresses by their first 64 bits: a client with one address usually has the whole network.
fn group(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        four => four,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    const START: i64 = 1_767_225_600_000_000;

    fn at(seconds: i64) -> Time {
        Time(START + seconds * 1_000_000)
    }

    fn peer(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_is_refused_until_its_window_has_passed() {
        let failures = LoginFailures::new(FailureLimit { failures: 3, window_seconds: 60, peers: 100 });
        let (bad, good) = (peer("203.0.113.9"), peer("203.0.113.10"));
        for second in 0..3 {
            assert!(failures.check(bad, at(second)).is_ok());
            failures.note(bad, at(second));
        }
        let refused = failures.check(bad, at(20)).unwrap_err();
        assert_eq!((refused.kind, refused.code), (ErrorKind::RateLimited, ErrorCode::TooManyFailures));
        assert_eq!(refused.details["retry_after"], 40);
        assert!(failures.check(good, at(20)).is_ok(), "other addresses are accepted");
        assert!(failures.check(peer("::ffff:203.0.113.9"), at(20)).is_err(), "the same address in another form");
        assert!(failures.check(bad, at(60)).is_ok());
        failures.note(bad, at(60));
        assert!(failures.check(bad, at(61)).is_ok(), "a new window, counted from one");
        assert!(failures.check(bad, at(-500)).is_ok(), "too few to be refused, whatever the clock says");
    }

    #[test]
    fn neighbours_in_ipv6_count_together_and_memory_is_bounded() {
        let failures = LoginFailures::new(FailureLimit { failures: 2, window_seconds: 60, peers: 10 });
        failures.note(peer("2001:db8::1"), at(0));
        failures.note(peer("2001:db8::ffff:2"), at(0));
        assert!(failures.check(peer("2001:db8::3"), at(1)).is_err());
        assert!(failures.check(peer("2001:db8:0:1::3"), at(1)).is_ok());
        for n in 0..1_000 {
            failures.note(peer(&format!("10.0.{}.{}", n / 200, n % 200)), at(n / 100));
            assert!(failures.remembered() <= 10, "{}", failures.remembered());
        }
    }
}
