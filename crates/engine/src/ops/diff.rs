//! `diff`: what differs between two views.

use super::{META, count};
use crate::context_graph::is_sensitive;
use crate::registry::{Meta, Op};
use crate::shape::ChangeOut;
use crate::{Context, Engine};
use lukasa_model::view::ViewEcho;
use lukasa_model::{Error, Result, Statement, View};
use lukasa_store::Ledger;
use lukasa_store::ledger::{Change, Difference, ViewSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct Diff;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The moment to compare from: tx:…, time:…, commit:…, release:…, tag:… or agent:….
    #[serde(default)]
    pub from: Option<String>,
    /// The moment to compare to; now when left out.
    #[serde(default)]
    pub to: Option<String>,
    /// The branch to compare from; `main` when left out.
    #[serde(default)]
    pub from_branch: Option<String>,
    /// The branch to compare to; the same when left out.
    #[serde(default)]
    pub to_branch: Option<String>,
    /// Most changes to list; all are counted.
    #[serde(default = "limit")]
    pub limit: usize,
}

pub fn limit() -> usize {
    100
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub added: usize,
    pub removed: usize,
    pub modified: usize,
    pub changes: Vec<ChangeOut>,
    pub truncated: bool,
    pub from: ViewEcho,
    pub to: ViewEcho,
}

impl Op for Diff {
    const META: Meta = Meta {
        name: "diff",
        answer: &[
            "changes.change",
            "changes.key",
            "changes.type",
            "changes.between",
            "changes.title",
            "added",
            "removed",
            "modified",
        ],
        summary: "Compare two moments or two branches",
        description: "Lists what was added, removed and modified on the way from one view to the other, with the \
                      paths that changed.",
        verb: "diff",
        positional: &["from", "to"],
        examples: &["lukasa diff tx:10 tx:20", "lukasa diff --from-branch main --to-branch feature/x"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let one_branch = request.to_branch.is_none() || request.to_branch == request.from_branch;
        if request.from.is_none() && request.to.is_none() && one_branch {
            return Err(Error::invalid("nothing_to_compare", "both sides are the same")
                .hint("name two moments, or two branches with --from-branch and --to-branch"));
        }
        let ledger = engine.ledger(&context.scope);
        let to_branch = request.to_branch.or_else(|| request.from_branch.clone());
        let spec = |branch, as_of| ViewSpec { branch, as_of, known_at: None };
        let from = ledger.view(&spec(request.from_branch, request.from))?;
        let to = ledger.view(&spec(to_branch, request.to))?;
        compare(&ledger, &from, &to, request.limit)
    }
}

/// Compares two views and shapes the answer.
pub fn compare(ledger: &Ledger, from: &View, to: &View, limit: usize) -> Result<Response> {
    shaped(ledger.diff(from, to, limit)?, from, to)
}

/// How many changes of which kind.
pub fn in_words(added: usize, removed: usize, modified: usize) -> String {
    match added + removed + modified {
        0 => "no difference".to_string(),
        total => format!("{}: {added} added, {removed} removed, {modified} modified", count(total, "change")),
    }
}

fn shaped(difference: Difference, from: &View, to: &View) -> Result<Response> {
    let (added, removed, modified) = (difference.added, difference.removed, difference.modified);
    let changes: Vec<_> = difference.changes.into_iter().map(change_out).collect::<Result<_>>()?;
    let summary = in_words(added, removed, modified);
    let truncated = added + removed + modified > changes.len();
    Ok(Response { summary, added, removed, modified, changes, truncated, from: from.echo(), to: to.echo() })
}

/// A change as it is told; of what is sensitive, only that it changed.
pub fn change_out(change: Change) -> Result<ChangeOut> {
    let read = |statement: &Option<Statement>| statement.as_ref().map(Statement::parsed).transpose();
    let (before, after) = (read(&change.before)?, read(&change.after)?);
    let hidden = before.iter().chain(&after).any(is_sensitive);
    Ok(ChangeOut {
        change: change.class,
        kind: change.thing.kind(),
        id: change.thing.id,
        type_name: change.thing.type_name.to_string(),
        key: change.thing.key.as_deref().map(Into::into),
        between: change.between,
        title: after.or(before).and_then(|content| content.title).filter(|_| !hidden),
        from_version: change.before.map(|s| s.version),
        to_version: change.after.map(|s| s.version),
        change_summary: change.summary.filter(|_| !hidden),
    })
}
