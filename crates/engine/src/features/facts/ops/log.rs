//! `log`: lists the project's transactions, newest first.

use crate::features::facts::rendering;
use crate::registry::META;
use crate::registry::{Meta, Op, Resource};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::{Result, Time, Transaction, TransactionKind, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct Log;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Only transactions after this one, oldest first: to follow the log.
    #[serde(default)]
    pub after: Option<Tx>,
    /// Only transactions before this one, newest first.
    #[serde(default)]
    pub before: Option<Tx>,
    /// Maximum number of transactions, up to 1,000.
    #[serde(default)]
    pub limit: Limit<20>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub transactions: Vec<TransactionOut>,
    /// Number of the last transaction of the log.
    pub head: Tx,
    /// There are more in the requested direction.
    pub truncated: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct TransactionOut {
    pub tx: Tx,
    pub recorded_at: Time,
    pub kind: TransactionKind,
    pub branch: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_commit: Option<String>,
    pub objects: u32,
    pub relationships: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    pub hash: String,
}

impl TransactionOut {
    pub fn of(t: Transaction, branch: &str) -> TransactionOut {
        TransactionOut {
            tx: t.tx,
            recorded_at: t.recorded_at,
            kind: t.header.kind,
            branch: branch.into(),
            author: t.header.author,
            agent: t.header.agent,
            session: t.header.session,
            reason: t.header.reason,
            git_commit: t.header.git_commit,
            objects: t.objects,
            relationships: t.relationships,
            files: t.header.files,
            duration_ms: t.header.duration_ms,
            hash: t.hash.to_string(),
        }
    }
}

impl Op for Log {
    const META: Meta = Meta {
        name: "log",
        shown: ResponseView::Cut(rendering::log),
        answer: &[
            "transactions.tx",
            "transactions.recorded_at",
            "transactions.kind",
            "transactions.reason",
            "transactions.agent",
            "transactions.author",
            "transactions.objects",
        ],
        summary: "Show the project's transactions",
        description: "Newest first, or with `after` oldest first, so that a follower can continue where it stopped.",
        verb: "log",
        positional: &[],
        examples: &["lukasa log", "lukasa log --after 41 --json"],
        resource: Some(Resource { path: "log", title: "Log", about: "The latest transactions", field: "" }),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let ledger = engine.ledger(&context.scope);
        let (head, registry) = (ledger.head()?.tx, ledger.registry()?);
        let (from, to) = match (request.after, request.before) {
            (Some(after), before) => (after.next(), before.map_or(head, Tx::previous).min(head)),
            (None, before) => {
                let to = before.map_or(head, Tx::previous).min(head);
                (to.back(request.limit.get() - 1).max(Tx::FIRST), to)
            }
        };
        let mut found = ledger.transactions(from, to, request.limit.get())?;
        let truncated = match request.after {
            Some(_) => found.last().is_some_and(|t| t.tx < to),
            None => from > Tx::FIRST,
        };
        if request.after.is_none() {
            found.reverse();
        }
        let transactions: Vec<_> = found
            .into_iter()
            .map(|t| {
                let branch = registry.branch_name(t.branch).to_string();
                TransactionOut::of(t, &branch)
            })
            .collect();
        let summary = format!("{} of {head}", count(transactions.len(), "transaction"));
        Ok(Response { summary, transactions, head, truncated })
    }
}
