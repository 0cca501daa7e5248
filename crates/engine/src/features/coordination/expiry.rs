//! Ends claims whose connection is closed, once the grace period has passed.
//!
//! A process with an open connection refreshes a mark in the store, set to the store's time. The grace period of a
//! claim that no process refreshes counts from its last mark: after a time without any process, the next one frees it
//! at once. From its first check on, a process measures with its own clock since it saw the mark change, so that
//! changing the system time ends no claims.

use super::board::ClaimEnding;
use crate::Engine;
use crate::periodic::PeriodicWork;
use crate::telemetry::log;
use lukasa_model::claims::HeldClaim;
use lukasa_model::transaction::Header;
use lukasa_model::{Result, Scope, Time};
use lukasa_store::Ledger;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::json;
use std::time::{Duration, Instant};

/// Bounds of the interval between checks. It is a sixth of the grace period, so that a few checks may fail.
const SOONEST: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(10);

/// The last observation of connections that hold claims.
pub(super) type ObservedMarks = FxHashMap<(Scope, String), ObservedMark>;

/// What a process has observed of a connection.
pub(super) struct ObservedMark {
    /// The value of its mark.
    mark: Option<u64>,
    /// When this value was first seen.
    at: Duration,
    /// How long the mark had not been refreshed by then.
    unseen: Duration,
}

impl ObservedMark {
    fn unseen(&self, now: Duration) -> Duration {
        self.unseen + now.saturating_sub(self.at)
    }
}

/// Checks the claims of these projects, and of all others that the engine uses, until the handle is dropped.
pub fn expire_claims(engine: &Engine, scopes: &[Scope]) -> PeriodicWork {
    scopes.iter().for_each(|scope| drop(engine.ledger(scope)));
    let engine = engine.unwatched();
    let every = (engine.coordination().rules.grace / 6).clamp(SOONEST, LATEST);
    let began = Instant::now();
    PeriodicWork::start("claims", every, move || {
        engine.sweep_claims(began.elapsed());
    })
}

impl Engine {
    /// Checks the claims of every project once, and returns how many it ended. `now` must be monotonic and need not be
    /// the time of day. Projects that cannot be read are retried at the next check.
    pub fn sweep_claims(&self, now: Duration) -> usize {
        let mut ended = 0;
        for scope in self.scopes() {
            match self.sweep(&scope, now) {
                Ok(number) => ended += number,
                Err(error) => log::event(
                    log::LogLevel::Warn,
                    "claims.sweep",
                    &[("tenant", json!(scope.tenant)), ("project", json!(scope.project)), ("code", json!(error.code))],
                ),
            }
        }
        ended
    }

    fn sweep(&self, scope: &Scope, now: Duration) -> Result<usize> {
        let ledger = self.ledger(scope);
        let held = self.claims_on_boards(&ledger)?;
        let (presence, grace) = (&self.coordination().presence, self.coordination().rules.grace);
        let derived = self.store().derived();
        let (mut vouched, mut foreign) = (FxHashSet::default(), FxHashMap::default());
        for claim in &held {
            let Some(connection) = claim.connection.as_deref() else { continue };
            let here = presence.is_open(connection) || presence.is_here(&claim.agent_id, claim.session_id.as_deref());
            if here {
                vouched.insert(connection);
            } else {
                let since = foreign.entry(connection).or_insert(claim.since);
                *since = claim.since.max(*since);
            }
        }
        let time = if held.is_empty() { Time(0) } else { derived.now(scope)? };
        let stamp = u64::try_from(time.0).unwrap_or_default();
        for connection in &vouched {
            derived.set_mark(scope, &mark(connection), stamp)?;
        }
        let mut lost: FxHashSet<&str> = FxHashSet::default();
        let left: Vec<String> = {
            let mut seen = self.coordination().seen.lock();
            for connection in &vouched {
                let look = ObservedMark { mark: Some(stamp), at: now, unseen: Duration::ZERO };
                seen.insert((scope.clone(), (*connection).to_owned()), look);
            }
            for (connection, since) in foreign.iter().filter(|(connection, _)| !vouched.contains(*connection)) {
                let mark = derived.mark(scope, &mark(connection))?;
                let first = || ObservedMark { mark, at: now, unseen: unseen_for(mark, *since, time) };
                let look = seen.entry((scope.clone(), (*connection).to_owned())).or_insert_with(first);
                if look.mark != mark {
                    *look = ObservedMark { mark, at: now, unseen: Duration::ZERO };
                }
                if look.unseen(now) >= grace {
                    lost.insert(connection);
                }
            }
            let over = |(of, connection): &(Scope, String)| {
                let connection = connection.as_str();
                of == scope && !vouched.contains(connection) && !foreign.contains_key(connection)
            };
            let left = seen.keys().filter(|key| over(key)).map(|(_, connection)| connection.clone()).collect();
            seen.retain(|key, _| !over(key));
            left
        };
        // No claims are held by these connections any more.
        for connection in left {
            derived.remove_mark(scope, &mark(&connection))?;
        }
        if lost.is_empty() {
            return Ok(0);
        }
        self.expire(&ledger, &|claim| {
            claim.connection.as_deref().is_some_and(|connection| lost.contains(connection))
                && !presence.is_here(&claim.agent_id, claim.session_id.as_deref())
        })
    }

    /// Ends claims whose holders disconnected longer ago than the grace period, without waiting for the next check.
    /// Returns how many.
    pub(super) fn end_left(&self, ledger: &Ledger) -> Result<usize> {
        let mut left: FxHashSet<String> = FxHashSet::default();
        for claim in self.claims_on_boards(ledger)? {
            if self.has_left(ledger.scope(), &claim)? {
                left.insert(claim.claim_id);
            }
        }
        if left.is_empty() {
            return Ok(0);
        }
        self.expire(ledger, &|claim| left.contains(&claim.claim_id))
    }

    /// Whether the holder of a claim disconnected longer ago than the grace period, by the store's time.
    pub(super) fn has_left(&self, scope: &Scope, claim: &HeldClaim) -> Result<bool> {
        let Some(connection) = claim.connection.as_deref() else { return Ok(false) };
        let (presence, grace) = (&self.coordination().presence, self.coordination().rules.grace);
        if presence.is_open(connection) || presence.is_here(&claim.agent_id, claim.session_id.as_deref()) {
            return Ok(false);
        }
        let derived = self.store().derived();
        let mark = derived.mark(scope, &mark(connection))?;
        Ok(unseen_for(mark, claim.since, derived.now(scope)?) >= grace)
    }

    fn expire(&self, ledger: &Ledger, gone: &dyn Fn(&HeldClaim) -> bool) -> Result<usize> {
        let header = Header { reason: Some("connections of their holders are gone".into()), ..Header::default() };
        let ending = ClaimEnding { reason: "expired", ..ClaimEnding::default() };
        Ok(self.end_claims(ledger, &header, &ending, gone)?.len())
    }
}

/// How long ago a connection was last refreshed or used to claim. A time in the future counts as now, because clocks
/// are set back. A claim time in the future, which comes from its process's clock, is used only if there is no mark.
fn unseen_for(mark: Option<u64>, claimed: Time, now: Time) -> Duration {
    let mark = mark.map(|mark| i64::try_from(mark).unwrap_or(i64::MAX));
    let last = match mark {
        Some(mark) if claimed > now => mark,
        mark => claimed.0.max(mark.unwrap_or(i64::MIN)),
    };
    Duration::from_micros(u64::try_from(now.0.saturating_sub(last)).unwrap_or_default())
}

pub(super) fn mark(connection: &str) -> String {
    format!("connection:{connection}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_unseen_since_its_last_mark_or_its_claim() {
        let second = |n: i64| Time(n * 1_000_000);
        let mark = |n: u64| Some(n * 1_000_000);
        let of = |mark, claimed, now| unseen_for(mark, second(claimed), second(now)).as_secs();
        assert_eq!(of(mark(90), 10, 200), 110);
        assert_eq!(of(None, 10, 200), 190, "no process lived long enough to vouch for it");
        assert_eq!(of(mark(90), 150, 200), 50, "it claimed something since");
        assert_eq!(of(mark(90), 500, 200), 110, "by a clock that is ahead");
        assert_eq!(of(mark(500), 10, 200), 0, "what has not come yet is now");
        assert_eq!(of(None, 500, 200), 0);
        assert_eq!(of(Some(u64::MAX), 10, 200), 0);
    }
}
