//! Ends claims whose connection is gone, once the grace time has passed.
//!
//! Whoever has a connection open vouches for its claims by moving a mark in the store. What nobody vouches for any more is
//! counted from when this process last saw the mark move, by its own clock: so a process that begins after another was
//! killed gives what that one left the whole grace time, and clocks of several servers need not agree.

use super::board::Ending;
use crate::Engine;
use crate::beat::Beat;
use crate::telemetry::log;
use lukasa_model::transaction::Header;
use lukasa_model::{Result, Scope};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::json;
use std::time::{Duration, Instant};

/// How often it is looked, at most and at least; a sixth of the grace time in between, so that some looks may fail.
const SOONEST: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(10);

/// When connections that hold claims were last known to be there: the value of their mark, and when it was seen first.
pub(super) type Seen = FxHashMap<(Scope, String), (Option<u64>, Duration)>;

/// Looks after the claims of these projects, and of whichever else the engine is asked about, until it is dropped.
pub fn keep(engine: &Engine, scopes: &[Scope]) -> Beat {
    scopes.iter().for_each(|scope| drop(engine.ledger(scope)));
    let engine = engine.unwatched();
    let every = (engine.coordination.rules.grace / 6).clamp(SOONEST, LATEST);
    let began = Instant::now();
    Beat::start("claims", every, move || {
        engine.sweep_claims(began.elapsed());
    })
}

impl Engine {
    /// Looks at the claims of every project once. `now` only ever grows, and need not be the time of day. What cannot be
    /// read now is looked at the next time.
    pub fn sweep_claims(&self, now: Duration) -> usize {
        let mut ended = 0;
        for scope in self.scopes() {
            match self.sweep(&scope, now) {
                Ok(number) => ended += number,
                Err(error) => log::event(
                    log::Level::Warn,
                    "claims.sweep",
                    &[("tenant", json!(scope.tenant)), ("project", json!(scope.project)), ("code", json!(error.code))],
                ),
            }
        }
        ended
    }

    fn sweep(&self, scope: &Scope, now: Duration) -> Result<usize> {
        let ledger = self.ledger(scope);
        let held = self.claims_held(&ledger)?;
        let (presence, grace) = (&self.coordination.presence, self.coordination.rules.grace);
        let derived = self.store().derived();
        let (mut vouched, mut foreign) = (FxHashSet::default(), FxHashSet::default());
        for claim in &held {
            let Some(connection) = claim.connection.as_deref() else { continue };
            let here = presence.is_open(connection) || presence.is_here(&claim.agent_id, claim.session_id.as_deref());
            if here {
                vouched.insert(connection)
            } else {
                foreign.insert(connection)
            };
        }
        let stamp = u64::try_from(self.clock().now().0).unwrap_or_default();
        for connection in &vouched {
            derived.set_mark(scope, &mark(connection), stamp)?;
        }
        let mut lost: FxHashSet<&str> = FxHashSet::default();
        let left: Vec<String> = {
            let mut seen = self.coordination.seen.lock();
            for connection in &vouched {
                seen.insert((scope.clone(), (*connection).to_owned()), (Some(stamp), now));
            }
            for connection in foreign.iter().filter(|connection| !vouched.contains(*connection)) {
                let value = derived.mark(scope, &mark(connection))?;
                let last = seen.entry((scope.clone(), (*connection).to_owned())).or_insert((value, now));
                if last.0 != value {
                    *last = (value, now);
                }
                if now.saturating_sub(last.1) >= grace {
                    lost.insert(connection);
                }
            }
            let over = |(of, connection): &(Scope, String)| {
                let connection = connection.as_str();
                of == scope && !vouched.contains(connection) && !foreign.contains(connection)
            };
            let left = seen.keys().filter(|key| over(key)).map(|(_, connection)| connection.clone()).collect();
            seen.retain(|key, _| !over(key));
            left
        };
        // Nobody holds anything by these any more.
        for connection in left {
            derived.remove_mark(scope, &mark(&connection))?;
        }
        if lost.is_empty() {
            return Ok(0);
        }
        let header = Header { reason: Some("connections of their holders are gone".into()), ..Header::default() };
        let ending = Ending { reason: "expired", ..Ending::default() };
        let gone = |claim: &lukasa_model::claims::Held| {
            claim.connection.as_deref().is_some_and(|connection| lost.contains(connection))
                && !presence.is_here(&claim.agent_id, claim.session_id.as_deref())
        };
        Ok(self.end_claims(&ledger, &header, &ending, &gone)?.len())
    }
}

pub(super) fn mark(connection: &str) -> String {
    format!("connection:{connection}")
}
