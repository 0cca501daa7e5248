//! Events of a project for subscribers: transactions, claims, conflicts, tasks, episodes.
//!
//! All events except conflicts are read from the log, so a subscriber that connects later, or to another server, receives the
//! same. A conflict writes nothing; the process that refused the claim remembers it for a while.

use crate::Engine;
use crate::features::coordination::RefusedClaim;
use crate::sensitive::is_sensitive;
use lukasa_model::{Content, Fact, FactNo, Position, Result, Time, Transaction, Tx, Version};
use lukasa_store::{Head, Ledger};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Larger transactions, such as loads and rebuilds, are reported as one event only.
const MOST_STATED: u32 = 10_000;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// Something was committed.
    Transaction,
    /// A claim was made, or has ended.
    Claim,
    /// A claim was refused because another agent holds the target.
    Conflict,
    /// A task or a feature is new or has changed.
    Task,
    /// An episode, a decision or a learning was recorded.
    Episode,
    /// The database was restored or failed over, and the log differs after `tx`: later transactions that were reported are
    /// void. Always reported, whichever kinds are requested.
    Replaced,
}

impl EventKind {
    pub const ALL: [EventKind; 6] = [
        EventKind::Transaction,
        EventKind::Claim,
        EventKind::Conflict,
        EventKind::Task,
        EventKind::Episode,
        EventKind::Replaced,
    ];

    pub fn name(self) -> &'static str {
        match self {
            EventKind::Transaction => "transaction",
            EventKind::Claim => "claim",
            EventKind::Conflict => "conflict",
            EventKind::Task => "task",
            EventKind::Episode => "episode",
            EventKind::Replaced => "replaced",
        }
    }

    /// The kind of event for a version of a fact of this type, besides that of its transaction.
    fn of_type(type_name: &str) -> Option<EventKind> {
        match type_name {
            "Claim" => Some(EventKind::Claim),
            "Task" | "Feature" => Some(EventKind::Task),
            "Episode" | "Decision" | "Learning" => Some(EventKind::Episode),
            _ => None,
        }
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Event {
    pub kind: EventKind,
    /// The transaction it belongs to; absent for a conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx: Option<Tx>,
    /// For a transaction: the hash of the log up to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    pub at: Time,
    /// `Type:key` of the fact it is about.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The agent that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The kind of transaction, or the subtype of an episode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The current state: for a claim whether it is held, for a task its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The claimed target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The holder of the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// The intent of a claim; the reason if it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of versions that a transaction contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated: Option<u32>,
}

impl Event {
    /// Creates an event with no fields but its kind and time.
    pub fn new(kind: EventKind, at: Time) -> Event {
        Event {
            kind,
            tx: None,
            hash: None,
            at,
            reference: None,
            agent: None,
            session: None,
            branch: None,
            subtype: None,
            title: None,
            status: None,
            target: None,
            holder: None,
            reason: None,
            stated: None,
        }
    }
}

/// The position of a subscriber: `42`, `42.1f0a96b2c4d5e6f7` or `42.1f0a96b2c4d5e6f7~1700000000000001`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCursor {
    pub tx: Tx,
    /// A prefix of that transaction's hash; any log is accepted when left out.
    pub digest: Option<u64>,
    /// The last conflict; only new ones when left out.
    pub conflict: Option<u64>,
}

impl fmt::Display for EventCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.tx)?;
        if let Some(digest) = self.digest {
            write!(f, ".{digest:016x}")?;
        }
        if let Some(conflict) = self.conflict {
            write!(f, "~{conflict}")?;
        }
        Ok(())
    }
}

impl FromStr for EventCursor {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> std::result::Result<EventCursor, Self::Err> {
        let (position, conflict) = match text.split_once('~') {
            Some((position, conflict)) => (position, Some(conflict.parse()?)),
            None => (text, None),
        };
        let (tx, digest) = match position.split_once('.') {
            Some((tx, digest)) => (tx, Some(u64::from_str_radix(digest, 16)?)),
            None => (position, None),
        };
        Ok(EventCursor { tx: tx.parse()?, digest, conflict })
    }
}

/// Returns where to continue in the current log: after the position, or, if the log does not contain it, after the last
/// position that both logs are known to have in common, with a replacement event to report.
fn resume(ledger: &Ledger, heard: EventCursor, head: &Head) -> Result<(Tx, Option<Event>)> {
    let common = match heard.digest {
        Some(digest) => ledger.common_with(heard.tx, digest)?,
        None => Some(heard.tx.min(head.tx)),
    };
    if common == Some(heard.tx) {
        return Ok((heard.tx, None));
    }
    let reason = match common {
        Some(_) => "the log was replaced by another after this transaction; what was reported after it is void",
        None => "the log was replaced by another, from an unknown transaction on; read the project again",
    };
    let from = common.unwrap_or(head.tx);
    let replaced =
        Event { tx: Some(from), reason: Some(reason.into()), ..Event::new(EventKind::Replaced, head.recorded_at) };
    Ok((from, Some(replaced)))
}

/// Returns the events since a position, oldest first; of each transaction, the facts it changed before the transaction itself.
pub fn since(
    engine: &Engine,
    ledger: &Ledger,
    heard: EventCursor,
    kinds: &[EventKind],
    transactions: usize,
) -> Result<(Vec<Event>, EventCursor)> {
    let wanted = |kind: EventKind| kinds.is_empty() || kinds.contains(&kind);
    let head = ledger.head()?;
    let (from, replaced) = resume(ledger, heard, &head)?;
    let log = match from < head.tx {
        true => ledger.transactions(from.next(), head.tx, transactions)?,
        false => vec![],
    };
    let to = match log.last() {
        Some(last) => last.position(),
        None if from == head.tx => head.position(),
        // The hash in the cursor stays as the client sent it.
        None => ledger.transactions(from, from, 1)?.first().map_or(Position::START, Transaction::position),
    };
    let registry = ledger.registry()?;
    let mut all: Vec<Event> = replaced.into_iter().collect();
    for transaction in log {
        let branch = registry.branch_name(transaction.branch).to_string();
        if [EventKind::Claim, EventKind::Task, EventKind::Episode].into_iter().any(wanted)
            && transaction.objects <= MOST_STATED
        {
            all.extend(stated(ledger, &transaction, &branch)?.into_iter().filter(|happening| wanted(happening.kind)));
        }
        if wanted(EventKind::Transaction) {
            all.push(committed(transaction, branch));
        }
    }
    // Without a position, a subscriber starts at the head.
    let (last, refused) = engine.coordination().refused(ledger.scope(), heard.conflict);
    if wanted(EventKind::Conflict) {
        all.extend(refused.into_iter().map(conflict));
    }
    Ok((all, EventCursor { tx: to.tx, digest: Some(to.digest()), conflict: Some(last) }))
}

fn conflict(denied: RefusedClaim) -> Event {
    Event {
        target: Some(denied.target),
        agent: Some(denied.agent_id),
        holder: Some(denied.held.agent_id),
        reference: Some(format!("Claim:{}", denied.held.claim_id)),
        reason: Some(denied.held.intent),
        ..Event::new(EventKind::Conflict, denied.at)
    }
}

fn committed(transaction: Transaction, branch: String) -> Event {
    let header = transaction.header;
    let kind = serde_json::to_value(header.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
    Event {
        tx: Some(transaction.tx),
        hash: Some(transaction.hash.to_string()),
        agent: header.agent,
        session: header.session,
        branch: Some(branch),
        subtype: kind,
        reason: header.reason,
        stated: Some(transaction.objects + transaction.relationships),
        ..Event::new(EventKind::Transaction, transaction.recorded_at)
    }
}

/// Returns the events of a transaction about claims, tasks and episodes.
fn stated(ledger: &Ledger, transaction: &Transaction, branch: &str) -> Result<Vec<Event>> {
    let changes = ledger.changes_of(transaction)?;
    let mut things: FxHashMap<FactNo, Fact> = changes.things.into_iter().map(|thing| (thing.no, thing)).collect();
    let missing: FxHashSet<FactNo> =
        changes.statements.iter().map(|s| s.thing).filter(|no| !things.contains_key(no)).collect();
    if !missing.is_empty() {
        let missing: Vec<FactNo> = missing.into_iter().collect();
        things.extend(ledger.facts(&missing)?.into_iter().map(|thing| (thing.no, thing)));
    }
    let mut all = Vec::new();
    for statement in &changes.statements {
        let Some(thing) = things.get(&statement.thing).filter(|thing| thing.ends.is_none()) else { continue };
        let Some(kind) = EventKind::of_type(&thing.type_name) else { continue };
        all.push(event(kind, thing, statement, transaction, branch)?);
    }
    Ok(all)
}

fn event(kind: EventKind, thing: &Fact, statement: &Version, transaction: &Transaction, branch: &str) -> Result<Event> {
    let content = if statement.absent { Content::default() } else { statement.parsed()? };
    let property = |name: &str| content.properties.get(name).and_then(|value| value.as_str()).map(str::to_owned);
    let hidden = is_sensitive(&content);
    let is_claim = kind == EventKind::Claim;
    let why = property("invalidation_reason").or_else(|| property("intent"));
    Ok(Event {
        tx: Some(transaction.tx),
        reference: Some(thing.name()),
        agent: transaction.header.agent.clone().or_else(|| property("agent_id")),
        session: transaction.header.session.clone().or_else(|| property("session_id")),
        branch: (!is_claim && kind != EventKind::Task).then(|| branch.to_owned()),
        subtype: content.subtype.clone(),
        title: content.title.clone().filter(|_| !hidden),
        status: if statement.absent { Some("ended".into()) } else { content.status.clone() },
        target: property("target").filter(|_| is_claim),
        holder: property("agent_id").filter(|_| is_claim),
        reason: why.filter(|_| is_claim),
        ..Event::new(kind, statement.recorded_at)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    #[test]
    fn how_far_a_client_listened_is_a_word() {
        let heard = |digest, conflict| EventCursor { tx: Tx(42), digest, conflict };
        for (text, heard) in [
            ("42", heard(None, None)),
            ("42~7", heard(None, Some(7))),
            ("42.00000000000000ff", heard(Some(255), None)),
            ("42.00000000000000ff~7", heard(Some(255), Some(7))),
        ] {
            assert_eq!((text.parse::<EventCursor>().unwrap(), heard.to_string()), (heard, text.to_owned()));
        }
        for bad in ["x", "4~", "", "4.", "4.x", ".ff"] {
            assert!(bad.parse::<EventCursor>().is_err(), "{bad}");
        }
    }
}
