//! Records what a session received recently, so that it is not returned in full again.

use lukasa_model::{FactNo, Scope, Time};
use lukasa_store::Ledger;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// How long a fact counts as recently returned.
const LATELY_MICROS: i64 = 10 * 60 * 1_000_000;
/// Maximum number of sessions, and of facts per session.
const SESSIONS: usize = 1_024;
const THINGS: usize = 512;

/// Returned facts, by project, epoch of its log, and session: another log may number other facts the same.
#[derive(Default)]
pub struct ReturnedFacts {
    sessions: Mutex<FxHashMap<(Scope, u64, String), Things>>,
}

type Things = VecDeque<(FactNo, Time)>;

impl ReturnedFacts {
    /// Which of these facts the session received recently.
    pub fn lately(&self, ledger: &Ledger, session: &str, now: Time, things: &[FactNo]) -> Vec<FactNo> {
        let sessions = self.sessions.lock();
        let Some(given) = sessions.get(&place(ledger, session)) else { return vec![] };
        let fresh = |thing: &FactNo| given.iter().any(|(no, at)| no == thing && now.0 - at.0 < LATELY_MICROS);
        things.iter().copied().filter(fresh).collect()
    }

    /// Records that the session received these facts now.
    pub fn give(&self, ledger: &Ledger, session: &str, now: Time, things: &[FactNo]) {
        let mut sessions = self.sessions.lock();
        if sessions.len() >= SESSIONS {
            sessions.retain(|_, given| given.back().is_some_and(|(_, at)| now.0 - at.0 < LATELY_MICROS));
        }
        if sessions.len() >= SESSIONS {
            sessions.clear();
        }
        let given = sessions.entry(place(ledger, session)).or_default();
        given.retain(|(no, at)| now.0 - at.0 < LATELY_MICROS && !things.contains(no));
        given.extend(things.iter().map(|no| (*no, now)));
        while given.len() > THINGS {
            given.pop_front();
        }
    }
}

fn place(ledger: &Ledger, session: &str) -> (Scope, u64, String) {
    (ledger.scope().clone(), ledger.epoch(), session.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lukasa_store::{MemoryStore, SystemClock};
    use std::sync::Arc;

    #[test]
    fn what_was_given_is_known_for_a_while() {
        let of = |project: &str| {
            let clock = Arc::new(SystemClock);
            let store = Arc::new(MemoryStore::new(Arc::clone(&clock) as _));
            Ledger::new(store, clock, Scope::new("t", project).expect("a name"))
        };
        let (given, ledger) = (ReturnedFacts::default(), of("p"));
        let at = |seconds: i64| Time(seconds * 1_000_000);
        let (one, two) = (FactNo(1), FactNo(2));
        given.give(&ledger, "s", at(0), &[one, two]);
        assert_eq!(given.lately(&ledger, "s", at(60), &[two, FactNo(3)]), [two]);
        assert!(given.lately(&ledger, "t", at(60), &[two]).is_empty());
        assert!(given.lately(&of("q"), "s", at(60), &[two]).is_empty());
        assert!(given.lately(&ledger, "s", at(601), &[two]).is_empty());
    }
}
