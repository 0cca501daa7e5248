//! Coordination of agents: claims, what ends them, and the tasks they are for.
//!
//! Claims are kept in board objects, one for each file, task or feature. To claim or end, a process writes the board
//! again with the version it has read as a precondition. So the store's commit decides races, and no lock can be left
//! behind.

mod answer;
mod board;
mod changed;
mod guard;
mod happening;
mod keeper;
mod presence;
mod target;
pub mod tasks;

pub use answer::{ClaimOut, ConflictOut, ConflictPair};
pub use board::{Claimed, Ending, Wish};
pub use changed::Change;
pub(crate) use changed::tells_of_code;
pub use guard::{Guarded, guard, guard_targets};
pub use happening::Denied;
pub use keeper::keep;
pub use presence::{Presence, Source};
pub use target::{Worktree, meant};

use board::Boards;
use happening::{Happening, Refusals};
use lukasa_model::claims::Held;
use lukasa_model::{Error, Result, Scope};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;

/// How long the claims of a closed connection stay, so that its agent can reconnect.
pub const GRACE: Duration = Duration::from_secs(60);

/// What happens to an edit that an agent records on a target that another agent has claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edits {
    /// It is recorded, with a warning: the file has already been changed.
    #[default]
    Warn,
    Refuse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimRules {
    pub grace: Duration,
    pub edits: Edits,
}

impl Default for ClaimRules {
    fn default() -> ClaimRules {
        ClaimRules { grace: GRACE, edits: Edits::default() }
    }
}

/// What this process knows about claims, for all projects. All of it can be read from the log again, except which
/// connections are open.
#[derive(Default)]
pub struct Coordination {
    rules: ClaimRules,
    presence: Presence,
    boards: Mutex<FxHashMap<Scope, Arc<Mutex<Boards>>>>,
    refusals: Mutex<FxHashMap<Scope, Refusals>>,
    seen: Mutex<keeper::Seen>,
}

impl Coordination {
    pub fn new(rules: ClaimRules) -> Coordination {
        Coordination { rules, ..Coordination::default() }
    }

    pub fn rules(&self) -> ClaimRules {
        self.rules
    }

    /// The connections to this process and to processes attached to it.
    pub fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Refused attempts after a sequence number, oldest first, and the number to continue from. Empty without a number.
    pub fn refused(&self, scope: &Scope, after: Option<u64>) -> (u64, Vec<Denied>) {
        let all = self.refusals.lock();
        all.get(scope).map_or((after.unwrap_or(0), vec![]), |refusals| refusals.after(after.unwrap_or(u64::MAX)))
    }

    /// Refused attempts whose conflicting claim is still held, newest first.
    pub fn open_conflicts(&self, scope: &Scope, held: &[Held]) -> Vec<Denied> {
        let all = self.refusals.lock();
        all.get(scope).map_or(vec![], |refusals| refusals.open_conflicts(held))
    }

    fn boards(&self, scope: &Scope) -> Arc<Mutex<Boards>> {
        Arc::clone(self.boards.lock().entry(scope.clone()).or_default())
    }

    fn tell(&self, scope: &Scope, happening: Happening) {
        happening.log(scope);
        if let Happening::Refused(denied) = happening {
            self.refusals.lock().entry(scope.clone()).or_default().add(denied);
        }
    }
}

/// The acting agent: the one in the request, or the caller's. Returns `no_agent` if there is neither.
pub fn asking(given: Option<&str>, context: &crate::Context<'_>) -> Result<String> {
    let agent = given.map(str::to_owned).or_else(|| context.agent.clone()).filter(|agent| !agent.trim().is_empty());
    agent.ok_or_else(|| {
        Error::invalid("no_agent", "nobody knows which agent asks")
            .hint("give `agent_id`; on the command line --agent, or LUKASA_AGENT")
    })
}
