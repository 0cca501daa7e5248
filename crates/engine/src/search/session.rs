//! What a session was given lately, so that it is not given again in full.

use lukasa_model::{Scope, ThingNo, Time};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// How long something counts as given.
const LATELY_MICROS: i64 = 10 * 60 * 1_000_000;
/// Sessions remembered, and things of each.
const SESSIONS: usize = 1_024;
const THINGS: usize = 512;

/// Things given by session.
#[derive(Default)]
pub struct Given {
    sessions: Mutex<FxHashMap<(Scope, String), Things>>,
}

type Things = VecDeque<(ThingNo, Time)>;

impl Given {
    /// Which of these the session was given lately.
    pub fn lately(&self, scope: &Scope, session: &str, now: Time, things: &[ThingNo]) -> Vec<ThingNo> {
        let sessions = self.sessions.lock();
        let Some(given) = sessions.get(&(scope.clone(), session.to_owned())) else { return vec![] };
        let fresh = |thing: &ThingNo| given.iter().any(|(no, at)| no == thing && now.0 - at.0 < LATELY_MICROS);
        things.iter().copied().filter(fresh).collect()
    }

    pub fn give(&self, scope: &Scope, session: &str, now: Time, things: &[ThingNo]) {
        let mut sessions = self.sessions.lock();
        if sessions.len() >= SESSIONS {
            sessions.retain(|_, given| given.back().is_some_and(|(_, at)| now.0 - at.0 < LATELY_MICROS));
        }
        if sessions.len() >= SESSIONS {
            sessions.clear();
        }
        let given = sessions.entry((scope.clone(), session.to_owned())).or_default();
        given.retain(|(no, at)| now.0 - at.0 < LATELY_MICROS && !things.contains(no));
        given.extend(things.iter().map(|no| (*no, now)));
        while given.len() > THINGS {
            given.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_is_known_for_a_while() {
        let (given, scope) = (Given::default(), Scope::new("t", "p").expect("a name"));
        let at = |seconds: i64| Time(seconds * 1_000_000);
        given.give(&scope, "s", at(0), &[1, 2]);
        assert_eq!(given.lately(&scope, "s", at(60), &[2, 3]), [2]);
        assert!(given.lately(&scope, "t", at(60), &[2]).is_empty());
        assert!(given.lately(&Scope::new("t", "q").expect("a name"), "s", at(60), &[2]).is_empty());
        assert!(given.lately(&scope, "s", at(601), &[2]).is_empty());
    }
}
