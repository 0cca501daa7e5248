//! Coordination of agents: claims, what ends them, and the tasks they are for.
//!
//! Claims are kept in board objects, one for each file, task or feature. To claim or end, a process writes the board
//! again with the version it has read as a precondition. So the store's commit decides races, and no lock can be left
//! behind.

mod answer;
mod board;
mod claim_events;
mod code_changes;
pub mod events;
mod expiry;
mod guard;
pub mod ops;
mod presence;
pub mod rendering;
mod target;
pub mod tasks;

pub use answer::{ConflictOut, ConflictPair};
pub use board::ClaimEnding;
pub use claim_events::RefusedClaim;
pub use expiry::expire_claims;
pub use presence::{ConnectionPresence, ConnectionSource};
pub use target::claim_target;

use crate::claims::{ClaimGuard, ClaimIntent, ClaimOutcome, Claims, CodeChange, EditPolicy};
use crate::feature::{Feature, Hooks};
use crate::{Context, Engine};
use board::ClaimBoards;
use claim_events::{ClaimEvent, Refusals};
use lukasa_model::claims::{ClaimTarget, HeldClaim};
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
    hooks: Hooks {
        arrived: Some(arrived),
        claims: Some(&BoardClaims),
        blocked_tasks: Some(tasks::blocked_about),
        ..Hooks::NONE
    },
};

/// Notes the connection of a caller.
fn arrived(engine: &Engine, context: &Context<'_>) {
    if let (Some(connection), Some(agent)) = (&context.connection, &context.agent) {
        engine.coordination().presence().note(connection, agent, context.session.as_deref());
    }
}

/// Claims as this feature keeps them: on boards.
struct BoardClaims;

impl Claims for BoardClaims {
    fn held(&self, engine: &Engine, ledger: &Ledger) -> Result<Vec<HeldClaim>> {
        engine.held_on_boards(ledger)
    }

    fn take(&self, engine: &Engine, context: &Context<'_>, wanted: &ClaimIntent) -> Result<ClaimOutcome> {
        engine.take_claim(context, wanted)
    }

    fn changed(&self, engine: &Engine, ledger: &Ledger, change: &CodeChange<'_>) -> Result<Vec<HeldClaim>> {
        engine.end_overtaken(ledger, change)
    }

    fn edits(&self, engine: &Engine) -> EditPolicy {
        engine.coordination().rules().edits
    }

    fn guard(&self, engine: &Engine, context: &Context<'_>, batch: &mut Batch) -> Result<ClaimGuard> {
        guard::guard(engine, context, batch)
    }

    fn guard_targets(
        &self,
        engine: &Engine,
        ledger: &Ledger,
        agent: &str,
        targets: Vec<ClaimTarget>,
    ) -> Result<ClaimGuard> {
        guard::guard_targets(engine, ledger, agent, targets)
    }
}

/// How long the claims of a closed connection stay, so that its agent can reconnect.
pub const GRACE: Duration = Duration::from_secs(60);

/// The configurable policies of claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimRules {
    pub grace: Duration,
    pub edits: EditPolicy,
}

impl Default for ClaimRules {
    fn default() -> ClaimRules {
        ClaimRules { grace: GRACE, edits: EditPolicy::default() }
    }
}

/// What this process knows about claims, for all projects. All of it can be read from the log again, except which
/// connections are open.
#[derive(Default)]
pub struct Coordination {
    rules: ClaimRules,
    presence: ConnectionPresence,
    boards: Mutex<FxHashMap<Scope, Arc<Mutex<ClaimBoards>>>>,
    refusals: Mutex<FxHashMap<Scope, Refusals>>,
    seen: Mutex<expiry::ObservedMarks>,
}

impl Coordination {
    pub fn new(rules: ClaimRules) -> Coordination {
        Coordination { rules, ..Coordination::default() }
    }

    pub fn rules(&self) -> ClaimRules {
        self.rules
    }

    /// The connections to this process and to processes attached to it.
    pub fn presence(&self) -> &ConnectionPresence {
        &self.presence
    }

    /// Refused attempts after a sequence number, oldest first, and the number to continue from. Empty without a number.
    pub fn refused(&self, scope: &Scope, after: Option<u64>) -> (u64, Vec<RefusedClaim>) {
        let all = self.refusals.lock();
        all.get(scope).map_or((after.unwrap_or(0), vec![]), |refusals| refusals.after(after.unwrap_or(u64::MAX)))
    }

    /// Refused attempts whose conflicting claim is still held, newest first.
    pub fn open_conflicts(&self, scope: &Scope, held: &[HeldClaim]) -> Vec<RefusedClaim> {
        let all = self.refusals.lock();
        all.get(scope).map_or(vec![], |refusals| refusals.open_conflicts(held))
    }

    fn boards(&self, scope: &Scope) -> Arc<Mutex<ClaimBoards>> {
        Arc::clone(self.boards.lock().entry(scope.clone()).or_default())
    }

    fn emit(&self, scope: &Scope, happening: ClaimEvent) {
        happening.log(scope);
        if let ClaimEvent::Refused(denied) = happening {
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
