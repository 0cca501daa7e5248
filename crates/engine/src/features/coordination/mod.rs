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
pub mod happenings;
mod keeper;
pub mod ops;
mod presence;
pub mod rendering;
mod target;
pub mod tasks;

pub use answer::{ConflictOut, ConflictPair};
pub use board::Ending;
pub use happening::Denied;
pub use keeper::keep;
pub use presence::{Presence, Source};
pub use target::meant;

use crate::claims::{Change, Claimed, Claims, Edits, Guarded, Wish};
use crate::feature::{Feature, Hooks};
use crate::{Context, Engine};
use board::Boards;
use happening::{Happening, Refusals};
use lukasa_model::claims::{Held, Target};
use lukasa_model::{Batch, Result, Scope};
use lukasa_store::Ledger;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;

pub static FEATURE: Feature = Feature {
    folder: "coordination",
    operations: ops::ALL,
    types: &[],
    state: |states| states.put(Coordination::default()),
    hooks: Hooks { arrived: Some(arrived), claims: Some(&Boarded), ..Hooks::NONE },
};

/// Notes the connection of a caller.
fn arrived(engine: &Engine, context: &Context<'_>) {
    if let (Some(connection), Some(agent)) = (&context.connection, &context.agent) {
        engine.coordination().presence().note(connection, agent, context.session.as_deref());
    }
}

/// Claims as this feature keeps them: on boards.
struct Boarded;

impl Claims for Boarded {
    fn held(&self, engine: &Engine, ledger: &Ledger) -> Result<Vec<Held>> {
        engine.held_on_boards(ledger)
    }

    fn take(&self, engine: &Engine, context: &Context<'_>, wish: &Wish) -> Result<Claimed> {
        engine.take_claim(context, wish)
    }

    fn changed(&self, engine: &Engine, ledger: &Ledger, change: &Change<'_>) -> Result<Vec<Held>> {
        engine.end_overtaken(ledger, change)
    }

    fn edits(&self, engine: &Engine) -> Edits {
        engine.coordination().rules().edits
    }

    fn guard(&self, engine: &Engine, context: &Context<'_>, batch: &mut Batch) -> Result<Guarded> {
        guard::guard(engine, context, batch)
    }

    fn guard_targets(&self, engine: &Engine, ledger: &Ledger, agent: &str, targets: Vec<Target>) -> Result<Guarded> {
        guard::guard_targets(engine, ledger, agent, targets)
    }
}

/// How long the claims of a closed connection stay, so that its agent can reconnect.
pub const GRACE: Duration = Duration::from_secs(60);

/// The configurable policies of claims.
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

    fn emit(&self, scope: &Scope, happening: Happening) {
        happening.log(scope);
        if let Happening::Refused(denied) = happening {
            self.refusals.lock().entry(scope.clone()).or_default().add(denied);
        }
    }
}

impl Engine {
    /// Uses these rules for claims instead of the defaults.
    #[must_use]
    pub fn with_claim_rules(self, rules: ClaimRules) -> Engine {
        self.with_state(Coordination::new(rules))
    }

    /// The claims, tasks and presence of agents.
    pub fn coordination(&self) -> &Coordination {
        self.state()
    }
}
