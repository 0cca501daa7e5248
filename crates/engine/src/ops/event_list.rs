//! `event_list`: what happened since one last listened.

use super::{META, count};
use crate::graph::check_range;
use crate::happenings::{Happening, Heard, Kind, since};
use crate::outline::Outline;
use crate::pack::NOTICE;
use crate::registry::{Meta, Op};
use crate::{Context, Engine};
use lukasa_model::{Error, Result, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub struct EventList;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// How far one has listened: `cursor` of the last answer, or a transaction. The latest happenings when left out.
    #[serde(default)]
    pub after: Option<String>,
    /// Only of these kinds: transaction, claim, conflict, task, episode; all when left out. That the log was replaced by
    /// another, after a restore or a fail-over of the database, is reported in any case.
    #[serde(default)]
    pub kinds: Vec<Kind>,
    /// Most transactions to tell of, 1 to 1,000.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = 1_000))]
    pub limit: usize,
}

fn limit() -> usize {
    20
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Said of titles and reasons, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// Oldest first.
    pub events: Vec<Happening>,
    /// To be given as `after` next time.
    pub cursor: String,
    /// The last transaction there is.
    pub head: Tx,
    /// There is more after the cursor.
    pub truncated: bool,
}

/// Whether this was asked and told nothing: who listens asks several times a second, and is recorded when there is news.
pub(crate) fn is_silence(operation: &str, answer: &Outline) -> bool {
    operation == EventList::META.name && answer.counts().get("events").is_none_or(|events| *events == 0)
}

impl Op for EventList {
    const META: Meta = Meta {
        name: "event_list",
        answer: &["events.kind", "events.at", "events.ref", "events.title", "events.agent", "events.target", "cursor"],
        summary: "What happened: claims, conflicts, tasks, episodes, transactions",
        description: "Oldest first. Ask again with `after` set to the `cursor` of the answer to be told what happened since. Over \
                      HTTP, `GET /v1/events` sends the same as it happens; over MCP, subscribe to lukasa://project/events.",
        verb: "events",
        toolset: "coordination",
        examples: &["lukasa events", "lukasa events --kinds claim --kinds conflict --after 41"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        check_range("limit", request.limit, 1, 1_000)?;
        let ledger = engine.ledger(&context.scope);
        let head = ledger.head()?.tx;
        let heard = match &request.after {
            Some(after) => after.parse::<Heard>().map_err(|_| {
                Error::invalid("invalid_argument", format!("after: `{after}` is neither a cursor nor a transaction"))
                    .hint("give the `cursor` of the last answer, or a number such as 41")
            })?,
            None => Heard { tx: head.saturating_sub(request.limit as Tx), digest: None, conflict: Some(0) },
        };
        let (events, heard) = since(engine, &ledger, heard, &request.kinds, request.limit)?;
        let mut by_kind: BTreeMap<Kind, usize> = BTreeMap::new();
        events.iter().for_each(|event| *by_kind.entry(event.kind).or_default() += 1);
        let told: Vec<String> = by_kind.iter().map(|(kind, n)| count(*n, kind.name())).collect();
        let summary = if told.is_empty() { "nothing happened".to_string() } else { told.join(", ") };
        let notice = events.iter().any(|event| event.title.is_some() || event.reason.is_some()).then_some(NOTICE);
        Ok(Response { summary, notice, events, cursor: heard.to_string(), head, truncated: heard.tx < head })
    }
}
