//! What happens in a project, as those who listen are told: transactions, claims, conflicts, tasks, episodes.
//!
//! All but conflicts is read from the log, so whoever listens late, or at another server, is told the same. A conflict writes
//! nothing: it is remembered for a while by the process that refused.

use crate::Engine;
use crate::context_graph::is_sensitive;
use crate::coordination::Denied;
use lukasa_model::{Content, Result, Statement, Thing, ThingNo, Time, Transaction, Tx};
use lukasa_store::Ledger;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Transactions that state more are told as a whole only: they are loads and rebuilds.
const MOST_STATED: u32 = 10_000;

/// Kinds of what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Something was committed.
    Transaction,
    /// A claim was taken, or has ended.
    Claim,
    /// A claim was refused because somebody holds the target.
    Conflict,
    /// A task or a feature is new or has changed.
    Task,
    /// An episode, a decision or a learning was recorded.
    Episode,
}

impl Kind {
    pub const ALL: [Kind; 5] = [Kind::Transaction, Kind::Claim, Kind::Conflict, Kind::Task, Kind::Episode];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Transaction => "transaction",
            Kind::Claim => "claim",
            Kind::Conflict => "conflict",
            Kind::Task => "task",
            Kind::Episode => "episode",
        }
    }

    /// What a statement about a thing of this type tells, beside that it was committed.
    fn of_type(type_name: &str) -> Option<Kind> {
        match type_name {
            "Claim" => Some(Kind::Claim),
            "Task" | "Feature" => Some(Kind::Task),
            "Episode" | "Decision" | "Learning" => Some(Kind::Episode),
            _ => None,
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Happening {
    pub kind: Kind,
    /// The transaction it belongs to; none for a conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx: Option<Tx>,
    pub at: Time,
    /// `Type:key` of what it is about.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The kind of transaction, or the refinement of an episode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How it stands now: for a claim whether it is held, for a task how far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// What is claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Who holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// What for; for a claim that ended, why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many objects and relationships a transaction stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated: Option<u32>,
}

impl Happening {
    pub fn new(kind: Kind, at: Time) -> Happening {
        Happening {
            kind,
            tx: None,
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

/// How far somebody has listened: `42` or `42~1700000000000001`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    pub tx: Tx,
    /// The last conflict; from now on when left out.
    pub conflict: Option<u64>,
}

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.conflict {
            Some(conflict) => write!(f, "{}~{conflict}", self.tx),
            None => write!(f, "{}", self.tx),
        }
    }
}

impl FromStr for Heard {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> std::result::Result<Heard, Self::Err> {
        let (tx, conflict) = match text.split_once('~') {
            Some((tx, conflict)) => (tx, Some(conflict.parse()?)),
            None => (text, None),
        };
        Ok(Heard { tx: tx.parse()?, conflict })
    }
}

/// What happened since, oldest first; of each transaction what it is about before the transaction itself.
pub fn since(
    engine: &Engine,
    ledger: &Ledger,
    heard: Heard,
    kinds: &[Kind],
    transactions: usize,
) -> Result<(Vec<Happening>, Heard)> {
    let wanted = |kind: Kind| kinds.is_empty() || kinds.contains(&kind);
    let head = ledger.head()?.tx;
    let log = match heard.tx < head {
        true => ledger.transactions(heard.tx + 1, head, transactions)?,
        false => vec![],
    };
    let to = log.last().map_or(heard.tx, |last| last.tx);
    let registry = ledger.registry()?;
    let mut all = Vec::new();
    for transaction in log {
        let branch = registry.branch_name(transaction.branch).to_string();
        if [Kind::Claim, Kind::Task, Kind::Episode].into_iter().any(wanted) && transaction.objects <= MOST_STATED {
            all.extend(stated(ledger, &transaction, &branch)?.into_iter().filter(|happening| wanted(happening.kind)));
        }
        if wanted(Kind::Transaction) {
            all.push(committed(transaction, branch));
        }
    }
    // Who does not say how far they have heard listens from now on.
    let (last, refused) = engine.coordination().refused(ledger.scope(), heard.conflict);
    if wanted(Kind::Conflict) {
        all.extend(refused.into_iter().map(conflict));
    }
    Ok((all, Heard { tx: to, conflict: Some(last) }))
}

fn conflict(denied: Denied) -> Happening {
    Happening {
        target: Some(denied.target),
        agent: Some(denied.agent_id),
        holder: Some(denied.held.agent_id),
        reference: Some(format!("Claim:{}", denied.held.claim_id)),
        reason: Some(denied.held.intent),
        ..Happening::new(Kind::Conflict, denied.at)
    }
}

fn committed(transaction: Transaction, branch: String) -> Happening {
    let header = transaction.header;
    let kind = serde_json::to_value(header.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
    Happening {
        tx: Some(transaction.tx),
        agent: header.agent,
        session: header.session,
        branch: Some(branch),
        subtype: kind,
        reason: header.reason,
        stated: Some(transaction.objects + transaction.relationships),
        ..Happening::new(Kind::Transaction, transaction.recorded_at)
    }
}

/// What a transaction says about claims, tasks and episodes.
fn stated(ledger: &Ledger, transaction: &Transaction, branch: &str) -> Result<Vec<Happening>> {
    let changes = ledger.changes(transaction.tx - 1, transaction.tx)?;
    let mut things: FxHashMap<ThingNo, Thing> = changes.things.into_iter().map(|thing| (thing.no, thing)).collect();
    let missing: FxHashSet<ThingNo> =
        changes.statements.iter().map(|s| s.thing).filter(|no| !things.contains_key(no)).collect();
    if !missing.is_empty() {
        let missing: Vec<ThingNo> = missing.into_iter().collect();
        things.extend(ledger.things(&missing)?.into_iter().map(|thing| (thing.no, thing)));
    }
    let mut all = Vec::new();
    for statement in &changes.statements {
        let Some(thing) = things.get(&statement.thing).filter(|thing| thing.ends.is_none()) else { continue };
        let Some(kind) = Kind::of_type(&thing.type_name) else { continue };
        all.push(told(kind, thing, statement, transaction, branch)?);
    }
    Ok(all)
}

fn told(
    kind: Kind,
    thing: &Thing,
    statement: &Statement,
    transaction: &Transaction,
    branch: &str,
) -> Result<Happening> {
    let content = if statement.absent { Content::default() } else { statement.parsed()? };
    let said = |name: &str| content.properties.get(name).and_then(|value| value.as_str()).map(str::to_owned);
    let hidden = is_sensitive(&content);
    let is_claim = kind == Kind::Claim;
    let why = said("invalidation_reason").or_else(|| said("intent"));
    Ok(Happening {
        tx: Some(transaction.tx),
        reference: Some(thing.name()),
        agent: transaction.header.agent.clone().or_else(|| said("agent_id")),
        session: transaction.header.session.clone().or_else(|| said("session_id")),
        branch: (!is_claim && kind != Kind::Task).then(|| branch.to_owned()),
        subtype: content.subtype.clone(),
        title: content.title.clone().filter(|_| !hidden),
        status: if statement.absent { Some("ended".into()) } else { content.status.clone() },
        target: said("target").filter(|_| is_claim),
        holder: said("agent_id").filter(|_| is_claim),
        reason: why.filter(|_| is_claim),
        ..Happening::new(kind, statement.recorded_at)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    #[test]
    fn how_far_somebody_listened_is_a_word() {
        for (text, heard) in [("42", Heard { tx: 42, conflict: None }), ("42~7", Heard { tx: 42, conflict: Some(7) })] {
            assert_eq!((text.parse::<Heard>().unwrap(), heard.to_string()), (heard, text.to_owned()));
        }
        assert!("x".parse::<Heard>().is_err() && "4~".parse::<Heard>().is_err() && "".parse::<Heard>().is_err());
    }
}
