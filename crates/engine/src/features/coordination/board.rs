//! Boards of claims: cached from the log, and written again whenever a claim is made or ended.

use super::RefusedClaim;
use super::claim_events::ClaimEvent;
use super::expiry::mark;
use crate::claims::{ClaimIntent, ClaimOutcome};
use crate::{Context, Engine};
use lukasa_model::batch::{PutObject, PutRelationship};
use lukasa_model::claims::{BOARD, ClaimDecision, HELD, HeldClaim, TargetRelation, decide, held_in};
use lukasa_model::transaction::Header;
use lukasa_model::{Batch, Content, Error, ErrorCode, ErrorKind, Position, Reference, Result, Scope, Time, View};
use lukasa_store::ledger::{FactState, ViewSpec};
use lukasa_store::{Ledger, VersionFields};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The type of the objects that record claims.
pub const CLAIM: &str = "Claim";
/// The type of the relationships from a claim or task to its code.
pub const TARGETS: &str = "TARGETS";
/// Maximum number of retries because another process wrote a board first. Each time that process made progress.
const TRIES: usize = 256;

/// Claims by board, as of a log position. Empty boards are left out.
#[derive(Default)]
pub(super) struct ClaimBoards {
    /// None if nothing was read yet.
    at: Option<Position>,
    held: BTreeMap<String, Vec<HeldClaim>>,
}

/// Why and by whom a claim is ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimEnding {
    /// released, code_changed, task_completed or expired.
    pub reason: &'static str,
    /// The agent that ended it, if any.
    pub by: Option<String>,
    /// What was accomplished.
    pub outcome: Option<String>,
    /// Why an agent that is not the holder released it.
    pub forced: Option<String>,
}

impl Engine {
    /// Every claim that is held now, in the order of boards. A claim whose holder disconnected longer ago than the
    /// grace period is not held, even if no process has ended it yet.
    pub(super) fn held_on_boards(&self, ledger: &Ledger) -> Result<Vec<HeldClaim>> {
        let mut held = Vec::new();
        for claim in self.claims_on_boards(ledger)? {
            if !self.has_left(ledger.scope(), &claim)? {
                held.push(claim);
            }
        }
        Ok(held)
    }

    /// Every claim that has not been ended, in the order of boards.
    pub(super) fn claims_on_boards(&self, ledger: &Ledger) -> Result<Vec<HeldClaim>> {
        self.catch_up(ledger)?;
        let boards = self.coordination().boards(ledger.scope());
        let all = boards.lock().held.values().flatten().cloned().collect();
        Ok(all)
    }

    /// The claims on one board that have not been ended.
    pub(super) fn held_on(&self, ledger: &Ledger, board: &str) -> Result<Vec<HeldClaim>> {
        self.catch_up(ledger)?;
        let boards = self.coordination().boards(ledger.scope());
        let held = boards.lock().held.get(board).cloned().unwrap_or_default();
        Ok(held)
    }

    /// Makes a claim, or returns the conflicting one. Retries if another process wrote the board first.
    pub(super) fn take_claim(&self, context: &Context<'_>, wanted: &ClaimIntent) -> Result<ClaimOutcome> {
        self.declare_agent_types(context)?;
        let ledger = self.ledger(&context.scope);
        if let Some(connection) = &wanted.connection {
            self.coordination().presence.note(connection, &wanted.agent, wanted.session.as_deref());
        }
        let key = wanted.target.board();
        for _ in 0..TRIES {
            let view = ledger.view(&ViewSpec::default())?;
            let (held, version) = board(&ledger, &view, &key)?;
            let (mine, others): (HeldClaim, Vec<HeldClaim>) = match decide(&held, &wanted.target, &|held| {
                self.is_own(&context.scope, held, wanted)
            }) {
                ClaimDecision::Conflict(held, _) if self.has_left(&context.scope, held)? => {
                    // Another process may be ending it at the same time, so the board is read again.
                    self.end_left(&ledger)?;
                    continue;
                }
                ClaimDecision::Conflict(held, relation) => {
                    let held = held.clone();
                    self.coordination().emit(&context.scope, denied(wanted, &held, relation, self.clock().now()));
                    return Ok(ClaimOutcome::Conflict(held, relation));
                }
                ClaimDecision::Yours(own) if is_up_to_date(own, wanted) => return Ok(ClaimOutcome::Yours(own.clone())),
                ClaimDecision::Yours(own) => {
                    let rest = held.iter().filter(|held| held.claim_id != own.claim_id).cloned().collect();
                    (adopted(own, wanted), rest)
                }
                ClaimDecision::Grant => (self.new_claim(&ledger, wanted)?, held.clone()),
            };
            let yours = others.len() < held.len();
            let mut all = others;
            all.push(mine.clone());
            all.sort_by(|a, b| a.target.cmp(&b.target));
            let header =
                Header { agent: Some(wanted.agent.clone()), session: wanted.session.clone(), ..context.header(None) };
            let header = Header { reason: Some(short(&format!("claim {}", wanted.target))), ..header };
            let mut batch = Batch { header, ..Batch::on("") };
            batch = batch.write(board_put(&key, &all, Some(version))).write(claim_put(&mine, None));
            if let Some(id) = self.object_of(&ledger, &wanted.target, wanted.branch.as_deref())? {
                batch = batch.write(PutRelationship::new(TARGETS, Reference::exact(CLAIM, &mine.claim_id), id));
            }
            match ledger.commit(&batch) {
                Err(e) if e.code == ErrorCode::VersionConflict => continue,
                Err(e) => return Err(e),
                Ok(_) => {
                    self.catch_up(&ledger)?;
                    return Ok(if yours { ClaimOutcome::Yours(mine) } else { ClaimOutcome::Granted(mine) });
                }
            }
        }
        Err(contended(&key))
    }

    /// Whether a claim belongs to the requesting agent. Several programs may use the same agent name: one with another
    /// open connection that does not state the same session is another agent.
    fn is_own(&self, scope: &Scope, held: &HeldClaim, wanted: &ClaimIntent) -> bool {
        if held.agent_id != wanted.agent {
            return false;
        }
        let (Some(theirs), Some(ours)) = (&held.connection, &wanted.connection) else { return true };
        let same_session = held.session_id.is_some() && held.session_id == wanted.session;
        theirs == ours || same_session || !self.is_alive(scope, theirs)
    }

    /// Whether a connection is open, here or at another server.
    fn is_alive(&self, scope: &Scope, connection: &str) -> bool {
        let presence = &self.coordination().presence;
        if presence.is_open(connection) || presence.has_closed(connection) {
            return presence.is_open(connection);
        }
        // If the mark cannot be read, the connection counts as open, so that no claim is taken away.
        let vouched = self.store().derived().mark(scope, &mark(connection)).unwrap_or(Some(u64::MAX));
        let now = self.store().derived().now(scope).unwrap_or_else(|_| self.clock().now());
        let now = u64::try_from(now.0).unwrap_or_default();
        let grace = self.coordination().rules.grace.as_micros();
        vouched.is_some_and(|moved| u128::from(now.saturating_sub(moved)) < grace)
    }

    /// Ends the claims that `which` selects. Returns those that it ended.
    pub fn end_claims(
        &self,
        ledger: &Ledger,
        header: &Header,
        ending: &ClaimEnding,
        which: &dyn Fn(&HeldClaim) -> bool,
    ) -> Result<Vec<HeldClaim>> {
        for _ in 0..TRIES {
            let concerned: Vec<String> = {
                self.catch_up(ledger)?;
                let boards = self.coordination().boards(ledger.scope());
                let boards = boards.lock();
                boards.held.iter().filter(|(_, held)| held.iter().any(which)).map(|(key, _)| key.clone()).collect()
            };
            if concerned.is_empty() {
                return Ok(vec![]);
            }
            let view = ledger.view(&ViewSpec::default())?;
            let (mut batch, mut ended) = (Batch { header: header.clone(), ..Batch::on("") }, Vec::new());
            for key in &concerned {
                let (held, version) = board(ledger, &view, key)?;
                let (gone, rest): (Vec<HeldClaim>, Vec<HeldClaim>) = held.into_iter().partition(|held| which(held));
                if gone.is_empty() {
                    continue;
                }
                batch = batch.write(board_put(key, &rest, Some(version)));
                for held in gone {
                    batch = batch.write(claim_put(&held, Some((ending, self.clock().now()))));
                    ended.push(held);
                }
            }
            if ended.is_empty() {
                continue;
            }
            match ledger.commit(&batch) {
                Err(e) if e.code == ErrorCode::VersionConflict => continue,
                Err(e) => return Err(e),
                Ok(_) => {
                    self.catch_up(ledger)?;
                    return Ok(ended);
                }
            }
        }
        Err(contended("claims to end"))
    }

    /// The record of a claim, held or ended.
    pub fn claim_record(&self, ledger: &Ledger, claim_id: &str) -> Result<Option<Content>> {
        let view = ledger.view(&ViewSpec::default())?;
        let found = ledger.states_keyed(&view, CLAIM, &[claim_id.to_owned()], VersionFields::Content)?.pop();
        found.and_then(|state| state.statement).map(|statement| statement.parsed()).transpose()
    }

    /// Reads what was written since the last call, and emits the resulting events.
    pub(super) fn catch_up(&self, ledger: &Ledger) -> Result<()> {
        let head = match ledger.head() {
            Ok(head) => head.position(),
            Err(e) if e.kind == ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(e),
        };
        let boards = self.coordination().boards(ledger.scope());
        let mut boards = boards.lock();
        if boards.at == Some(head) {
            return Ok(());
        }
        let view = ledger.view(&ViewSpec::default())?;
        let (at, to) = (boards.at, view.position());
        let touched = at.map_or(Ok(None), |at| ledger.changed_project_wide(at, to))?;
        let known = touched.is_some();
        if !known {
            // Nothing was read yet, or the log was replaced.
            boards.held.clear();
        }
        let states = match touched {
            None => ledger.states_with_prefix(&view, Some(BOARD), "", VersionFields::Content)?,
            Some(touched) => {
                let states = ledger.states_unredacted(&view, &touched, VersionFields::Content)?;
                states.into_iter().filter(|state| state.thing.type_name.eq_ignore_ascii_case(BOARD)).collect()
            }
        };
        let (mut taken, mut gone) = (Vec::new(), Vec::new());
        for state in states {
            let (key, held) = (state.thing.key.as_deref().unwrap_or_default().to_owned(), read_board(&state)?);
            let before = if held.is_empty() { boards.held.remove(&key) } else { boards.held.insert(key, held.clone()) };
            if known {
                let before = before.unwrap_or_default();
                let is_in =
                    |claim: &HeldClaim, list: &[HeldClaim]| list.iter().any(|other| other.claim_id == claim.claim_id);
                taken.extend(held.iter().filter(|claim| !is_in(claim, &before)).cloned());
                gone.extend(before.iter().filter(|claim| !is_in(claim, &held)).cloned());
            }
        }
        boards.at = Some(to);
        let mut events: Vec<ClaimEvent> = Vec::new();
        if !gone.is_empty() {
            let ids: Vec<String> = gone.iter().map(|claim| claim.claim_id.clone()).collect();
            let records = ledger.states_keyed(&view, CLAIM, &ids, VersionFields::Content)?;
            for claim in gone {
                let record = records.iter().find(|state| state.thing.key.as_deref() == Some(&*claim.claim_id));
                let content = record.and_then(|state| state.statement.as_ref()?.parsed().ok());
                let text = |name: &str| Some(content.as_ref()?.properties.get(name)?.as_str()?.to_owned());
                let (reason, ended_by) = (text("invalidation_reason"), text("ended_by"));
                events.push(ClaimEvent::Ended { claim, reason, ended_by });
            }
        }
        events.extend(taken.into_iter().map(|claim| ClaimEvent::Taken { claim }));
        // While the lock is held, so that events are emitted in order.
        events.into_iter().for_each(|event| self.coordination().emit(ledger.scope(), event));
        Ok(())
    }

    fn new_claim(&self, ledger: &Ledger, wanted: &ClaimIntent) -> Result<HeldClaim> {
        Ok(HeldClaim {
            claim_id: format!("claim:{}", self.clock().new_id()),
            claim_type: wanted.target.kind,
            target: wanted.target.name.clone(),
            agent_id: wanted.agent.clone(),
            session_id: wanted.session.clone(),
            intent: wanted.intent.clone(),
            since: self.clock().now(),
            task_id: wanted.task.clone(),
            target_version_sha: self.version_of(ledger, &wanted.target, wanted.branch.as_deref())?,
            connection: wanted.connection.clone(),
            worktree: wanted.worktree.clone(),
            branch: wanted.branch.clone(),
        })
    }
}

/// The claims on a board and its version. Empty with version 0 if the board does not exist.
fn board(ledger: &Ledger, view: &View, key: &str) -> Result<(Vec<HeldClaim>, u32)> {
    let found = ledger.states_keyed(view, BOARD, &[key.to_owned()], VersionFields::Content)?.pop();
    match found {
        Some(state) => Ok((read_board(&state)?, state.statement.map_or(0, |statement| statement.number))),
        None => Ok((vec![], 0)),
    }
}

fn read_board(state: &FactState) -> Result<Vec<HeldClaim>> {
    match &state.statement {
        Some(statement) => held_in(&statement.parsed()?),
        None => Ok(vec![]),
    }
}

fn board_put(key: &str, held: &[HeldClaim], expected_version: Option<u32>) -> PutObject {
    PutObject { expected_version, ..PutObject::new(BOARD, key).property(HELD, json!(held)) }
}

/// A claim as a separate object, which remains after it has left the board.
fn claim_put(held: &HeldClaim, ended: Option<(&ClaimEnding, Time)>) -> PutObject {
    let mut properties = match serde_json::to_value(held) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    };
    properties.remove("claim_id");
    let mut put = PutObject::new(CLAIM, &held.claim_id).title(&short(&format!("{} by {}", held.target, held.agent_id)));
    put.subtype = Some(held.claim_type.name().into());
    put.status = Some(if ended.is_some() { "ended" } else { "active" }.into());
    if let Some((ending, at)) = ended {
        properties.insert("invalidation_reason".into(), json!(ending.reason));
        properties.insert("ended_at".into(), json!(at));
        for (name, value) in
            [("ended_by", &ending.by), ("outcome", &ending.outcome), ("release_reason", &ending.forced)]
        {
            if let Some(value) = value {
                properties.insert(name.into(), json!(value));
            }
        }
        if ending.forced.is_some() {
            properties.insert("forced".into(), json!(true));
        }
    }
    put.properties = properties;
    put
}

/// Whether a claim already has everything that is requested.
fn is_up_to_date(own: &HeldClaim, wanted: &ClaimIntent) -> bool {
    adopted(own, wanted) == *own
}

/// An agent's claim that it requests again: with its current connection and intent. A claim without a connection stays
/// without one, because it is meant to outlast connections.
fn adopted(own: &HeldClaim, wanted: &ClaimIntent) -> HeldClaim {
    let connection = own.connection.as_ref().and(wanted.connection.clone());
    HeldClaim {
        intent: wanted.intent.clone(),
        session_id: wanted.session.clone().or_else(|| own.session_id.clone()),
        task_id: wanted.task.clone().or_else(|| own.task_id.clone()),
        connection,
        worktree: wanted.worktree.clone().or_else(|| own.worktree.clone()),
        branch: wanted.branch.clone().or_else(|| own.branch.clone()),
        ..own.clone()
    }
}

fn denied(wanted: &ClaimIntent, held: &HeldClaim, relation: TargetRelation, at: Time) -> ClaimEvent {
    ClaimEvent::Refused(RefusedClaim {
        target: wanted.target.name.clone(),
        agent_id: wanted.agent.clone(),
        intent: wanted.intent.clone(),
        at,
        relation,
        held: held.clone(),
    })
}

fn contended(what: &str) -> Error {
    Error::new(ErrorKind::Unavailable, ErrorCode::TooBusy, format!("`{what}`: others were faster every time"))
        .hint("try again in a second")
}

/// Shortens titles and reasons.
fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(500).collect()
}
