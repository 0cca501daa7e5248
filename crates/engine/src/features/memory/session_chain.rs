//! The last episode of each session, which the next one follows, and the agents and sessions that are already recorded.

use crate::view::memories::names::{RECORDED_IN, SESSION, session_key};
use lukasa_model::plan::Side;
use lukasa_model::{ErrorCode, Reference, Result, Scope, View};
use lukasa_store::Ledger;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use uuid::Uuid;

/// Maximum number of cached sessions; others are looked up again.
const SESSIONS: usize = 4_096;
/// Maximum number of episodes of a session that are searched for its last one.
const EPISODES: usize = 1_000_000;

/// The last episode of a session on a branch, if it was looked up. Locked while the next one is written.
pub type LastEpisode = Arc<Mutex<Option<Option<Uuid>>>>;

/// By project, epoch of its log, branch and session.
#[derive(Default)]
pub struct SessionChains(Mutex<FxHashMap<(Scope, u64, String, String), LastEpisode>>);

impl SessionChains {
    /// Returns the entry of a session on a branch.
    pub fn of(&self, ledger: &Ledger, branch: &str, session: &str) -> LastEpisode {
        let mut all = self.0.lock();
        if all.len() >= SESSIONS {
            // Entries in use are kept, because another request is writing their next episode.
            all.clear();
        }
        Arc::clone(
            all.entry((ledger.scope().clone(), ledger.epoch(), branch.to_owned(), session.to_owned())).or_default(),
        )
    }
}

/// Agents and sessions that this process has recorded, by project, epoch of its log, and key. They need not be written with
/// every episode.
#[derive(Default)]
pub struct RecordedParticipants(Mutex<FxHashSet<(Scope, u64, String)>>);

impl RecordedParticipants {
    /// Whether an agent or session is already recorded in this log.
    pub fn are_known(&self, ledger: &Ledger, key: &str) -> bool {
        self.0.lock().contains(&(ledger.scope().clone(), ledger.epoch(), key.to_owned()))
    }

    /// Remembers that these agents and sessions are recorded.
    pub fn know(&self, ledger: &Ledger, keys: impl IntoIterator<Item = String>) {
        let mut all = self.0.lock();
        if all.len() >= SESSIONS {
            all.clear();
        }
        let (scope, epoch) = (ledger.scope(), ledger.epoch());
        all.extend(keys.into_iter().map(|key| (scope.clone(), epoch, key)));
    }
}

/// Looks up the last episode of a session in a view, by order of recording.
pub fn last(ledger: &Ledger, view: &View, session: &str) -> Result<Option<Uuid>> {
    let session = match ledger.find(view, &Reference::exact(SESSION, &session_key(session))) {
        Ok(found) => found.thing,
        Err(error) if error.code == ErrorCode::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let (links, _) = ledger.links(view, &session, EPISODES)?;
    let recorded = links
        .iter()
        .filter(|link| link.side == Side::Dst && !link.other_ended)
        .filter(|link| link.thing.type_name.eq_ignore_ascii_case(RECORDED_IN));
    Ok(recorded.max_by_key(|link| link.other.no).map(|link| link.other.id))
}
