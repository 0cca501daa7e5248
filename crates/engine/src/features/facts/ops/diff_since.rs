//! `diff_since`: lists changes since a transaction, time, commit or an agent's last write.

use super::diff::{self, ComparisonOptions, change_out, in_words};
use super::log::TransactionOut;
use crate::features::facts::rendering;
use crate::registry::META;
use crate::registry::{Meta, Op, Prompt};
use crate::rendering::ResponseView;
use crate::responses::{FactChangeOut, open};
use crate::view::symbols::{self, keys};
use crate::{Context, Engine};
use lukasa_model::change::ChangeSummary;
use lukasa_model::version::FactKind;
use lukasa_model::view::ViewEcho;
use lukasa_model::{Result, Time, Tx};
use lukasa_store::ledger::{ChangeClass, FactChange};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct DiffSince;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// A transaction (42), time, git commit or agent; a prefix (tx:, time:, commit:, agent:) makes it unambiguous.
    pub since: String,
    /// The branch; when left out, the one checked out in the caller's working tree, else `main`.
    #[serde(default)]
    pub branch: Option<String>,
    /// Only facts of these types, for example File, Function, Class; all when left out.
    #[serde(default)]
    pub types: Vec<String>,
    /// Include code that only moved within its file, and commits.
    #[serde(default)]
    pub all: bool,
    /// Maximum number of changes listed; all are counted.
    #[serde(default = "diff::limit")]
    pub limit: usize,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub added: Vec<DeltaOut>,
    pub removed: Vec<DeltaOut>,
    pub modified: Vec<DeltaOut>,
    /// Number of changes of each kind, listed or not.
    pub counts: ChangeCounts,
    /// Not all changes are listed.
    pub truncated: bool,
    pub from: ViewEcho,
    pub to: ViewEcho,
    /// Transactions in between on the branch and its ancestors, oldest first, at most 100.
    pub transactions: Vec<TransactionOut>,
    /// Numbers of these transactions.
    pub tx_ids: Vec<Tx>,
    /// Number of all transactions in between.
    pub transactions_total: u64,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ChangeCounts {
    pub added: usize,
    pub removed: usize,
    pub modified: usize,
}

/// A fact that was added, removed or modified.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeltaOut {
    /// `Type:key`, or its id.
    #[serde(rename = "ref")]
    pub reference: String,
    pub kind: FactKind,
    #[serde(rename = "type")]
    pub type_name: String,
    /// For code: its key, `path::Class::method`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scip_id: Option<String>,
    /// For code: its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// For a symbol: its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol_name: Option<String>,
    /// For a relationship: the names of its ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<[String; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Start of validity of the current version; for a removed fact, of its last version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<Time>,
    /// End of validity, past or future.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_summary: Option<ChangeSummary>,
}

impl DeltaOut {
    fn of(change: FactChange) -> Result<DeltaOut> {
        let shown = change.after.as_ref().or(change.before.as_ref());
        let period = shown.map(|statement| statement.period);
        let own = symbols::SymbolKind::of_type(&change.thing.type_name);
        let key = change.thing.key.as_deref().filter(|_| own.is_some()).map(str::to_owned);
        let is_symbol = |key: &&String| key.contains("::");
        let in_project = own.is_some_and(|kind| !kind.outside());
        Ok(DeltaOut {
            reference: change.thing.name(),
            path: key.as_deref().filter(|_| in_project).map(|key| keys::path(key).to_owned()),
            symbol_name: key.as_ref().filter(is_symbol).map(|key| keys::name(key).to_owned()),
            scip_id: key,
            valid_from: period.and_then(|period| open(period.from)),
            valid_to: change.ended_at.or_else(|| open(period?.to)),
            ..DeltaOut::plain(change_out(change)?)
        })
    }

    fn plain(change: FactChangeOut) -> DeltaOut {
        DeltaOut {
            reference: String::new(),
            kind: change.kind,
            type_name: change.type_name,
            scip_id: None,
            path: None,
            symbol_name: None,
            between: change.between,
            title: change.title,
            valid_from: None,
            valid_to: None,
            change_summary: change.change_summary,
        }
    }
}

const LISTED: usize = 100;

impl Op for DiffSince {
    const META: Meta = Meta {
        name: "diff_since",
        long: true,
        shown: ResponseView::By(rendering::difference_since),
        default_tool: &["since", "branch", "types", "limit"],
        answer: &[
            "counts",
            "modified.ref",
            "added.ref",
            "removed.ref",
            "modified.title",
            "added.title",
            "modified.between",
            "added.between",
            "removed.between",
            "transactions_total",
        ],
        summary: "Show what changed since a moment",
        description: "Compares a branch as it was at a transaction, a time, a git commit or an agent's last write \
                      with how it is now: what was added, removed and modified, with since when, and the \
                      transactions between. Code that has only moved within its file is not listed, nor are \
                      commits, unless `all` asks for them.",
        verb: "diff-since",
        positional: &["since"],
        examples: &[
            "lukasa diff-since 42",
            "lukasa diff-since 42 --types File,Function",
            "lukasa diff-since agent:claude",
            "lukasa diff-since 2026-01-31",
        ],
        prompt: Some(Prompt {
            name: "what_changed",
            title: "What changed since",
            about: "What was added, changed and removed since a moment",
            argument: ("since", "A time such as 2026-01-31, a commit or a transaction"),
            field: "since",
            with: &[],
            asks: "Describe what changed, most important first, from the list below.",
        }),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let ledger = engine.ledger(&context.scope);
        let from = diff::view_at(&ledger, request.branch.clone(), Some(&request.since))?;
        let to = diff::view_at(&ledger, request.branch, None)?;
        let meaning = ComparisonOptions::new(engine, context, &to, &request.types, request.all)?;
        let registry = ledger.registry()?;
        let mut next = from.known.next();
        let (mut transactions, mut transactions_total) = (Vec::new(), 0);
        while next <= to.known {
            let page = ledger.transactions(next, to.known, 1_000)?;
            let Some(last) = page.last() else { break };
            next = last.tx.next();
            for t in page {
                if to.lineage.cap(t.branch).is_some_and(|cap| t.tx <= cap) {
                    transactions_total += 1;
                    if transactions.len() < LISTED {
                        let branch = registry.branch_name(t.branch).to_string();
                        transactions.push(TransactionOut::of(t, &branch));
                    }
                }
            }
        }
        let found = meaning.compare(&ledger, &from, &to, request.limit)?;
        let counts = ChangeCounts { added: found.added, removed: found.removed, modified: found.modified };
        let listed = found.changes.len();
        let (mut added, mut removed, mut modified) = (Vec::new(), Vec::new(), Vec::new());
        for change in found.changes {
            let list = match change.class {
                ChangeClass::Added => &mut added,
                ChangeClass::Removed => &mut removed,
                ChangeClass::Modified => &mut modified,
            };
            list.push(DeltaOut::of(change)?);
        }
        Ok(Response {
            summary: in_words(counts.added, counts.removed, counts.modified),
            truncated: counts.added + counts.removed + counts.modified > listed,
            added,
            removed,
            modified,
            counts,
            from: from.echo(),
            to: to.echo(),
            tx_ids: transactions.iter().map(|transaction| transaction.tx).collect(),
            transactions,
            transactions_total,
        })
    }
}
