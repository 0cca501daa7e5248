//! `diff_since`: what changed since a transaction, time, commit or agent's last write.

use super::META;
use super::diff::{self, shaped};
use super::log::TransactionOut;
use crate::registry::{Meta, Op};
use crate::{Context, Engine};
use lukasa_model::{Result, Thing, Tx};
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct DiffSince;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// A transaction (42), time, git commit or agent; prefixes (tx:, time:, commit:, agent:) remove doubt.
    pub since: String,
    /// The branch to look at; `main` when left out.
    #[serde(default)]
    pub branch: Option<String>,
    /// Only objects and relationships of these types, for example FILE, FUNCTION, CLASS; all when left out.
    #[serde(default)]
    pub types: Vec<String>,
    /// Most changes to list; all are counted.
    #[serde(default = "diff::limit")]
    pub limit: usize,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    #[serde(flatten)]
    pub diff: diff::Response,
    /// Transactions on the branch's line that lie between, oldest first, at most 100.
    pub transactions: Vec<TransactionOut>,
    /// The same, by number.
    pub tx_ids: Vec<Tx>,
    /// How many lie between.
    pub transactions_total: u64,
}

const LISTED: usize = 100;

impl Op for DiffSince {
    const META: Meta = Meta {
        name: "diff_since",
        summary: "Show what changed since a moment",
        description: "Compares a branch as it was at a transaction, a time, a git commit or an agent's last write \
                      with how it is now, and lists the transactions between.",
        verb: "diff-since",
        positional: &["since"],
        examples: &[
            "lukasa diff-since 42",
            "lukasa diff-since 42 --types FILE",
            "lukasa diff-since agent:claude",
            "lukasa diff-since 2026-01-31",
        ],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let ledger = engine.ledger(&context.scope);
        let from = ledger.view_since(request.branch.as_deref(), &request.since)?;
        let to = ledger.view(&ViewSpec { branch: request.branch, ..ViewSpec::default() })?;
        let registry = ledger.registry()?;
        let mut next = from.known + 1;
        let (mut transactions, mut transactions_total) = (Vec::new(), 0);
        while next <= to.known {
            let page = ledger.transactions(next, to.known, 1_000)?;
            let Some(last) = page.last() else { break };
            next = last.tx + 1;
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
        let is_one = |asked: &String, own: &str| {
            [false, true].iter().any(|kind| registry.spelling(asked, *kind).eq_ignore_ascii_case(own))
        };
        let wanted = |thing: &Thing| {
            request.types.is_empty() || request.types.iter().any(|asked| is_one(asked, &thing.type_name))
        };
        let diff = shaped(ledger.diff_of(&from, &to, request.limit, &wanted)?, &from, &to)?;
        let tx_ids = transactions.iter().map(|transaction| transaction.tx).collect();
        Ok(Response { diff, transactions, tx_ids, transactions_total })
    }
}
