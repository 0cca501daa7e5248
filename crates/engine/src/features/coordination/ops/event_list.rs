//! `event_list`: lists events after a cursor.

use crate::features::coordination::events::{Event, EventCursor, EventKind, since};
use crate::features::coordination::rendering;
use crate::redacted_summary::RedactedSummary;
use crate::registry::META;
use crate::registry::{Meta, Op, Resource};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::response_budget::NOTICE;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::{Error, ErrorCode, Result, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The operation `event_list`.
pub struct EventList;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// `cursor` of the last answer, or a transaction; the latest events when left out.
    #[serde(default)]
    pub after: Option<String>,
    /// Only events of these kinds: transaction, claim, conflict, task, episode; all when left out. The replacement of
    /// the log by another one, after a restore or a database fail-over, is always reported.
    #[serde(default)]
    pub kinds: Vec<EventKind>,
    /// Maximum number of transactions to report, 1 to 1,000.
    #[serde(default)]
    pub limit: Limit<20>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Warning about titles and reasons, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// Oldest first.
    pub events: Vec<Event>,
    /// Pass it as `after` in the next request.
    pub cursor: String,
    /// The latest transaction.
    pub head: Tx,
    /// There are more events after the cursor.
    pub truncated: bool,
}

/// Returns whether an answer contains no events. Clients poll several times a second, so the audit log records only
/// polls that return events.
fn is_silence(answer: &RedactedSummary) -> bool {
    answer.counts().get("events").is_none_or(|events| *events == 0)
}

impl Op for EventList {
    const META: Meta = Meta {
        name: "event_list",
        unrecorded: Some(is_silence),
        shown: ResponseView::Cut(rendering::events),
        answer: &["events.kind", "events.at", "events.ref", "events.title", "events.agent", "events.target", "cursor"],
        summary: "What happened: claims, conflicts, tasks, episodes, transactions",
        description: "Oldest first. Call again with `after` set to the `cursor` of the answer for what happened since. Over \
                      HTTP, `GET /v1/events` sends the same as it happens; over MCP, subscribe to lukasa://project/events.",
        verb: "events",
        toolset: "coordination",
        examples: &["lukasa events", "lukasa events --kinds claim --kinds conflict --after 41"],
        resource: Some(Resource {
            path: "events",
            title: "Events",
            about: "What happened lately: claims, conflicts, tasks, episodes, transactions",
            field: "",
        }),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let ledger = engine.ledger(&context.scope);
        let head = ledger.head()?.tx;
        let heard = match &request.after {
            Some(after) => after.parse::<EventCursor>().map_err(|_| {
                Error::invalid(
                    ErrorCode::InvalidArgument,
                    format!("after: `{after}` is neither a cursor nor a transaction"),
                )
                .hint("give the `cursor` of the last answer, or a number such as 41")
            })?,
            None => EventCursor { tx: head.back(request.limit.get()), digest: None, conflict: Some(0) },
        };
        let (events, heard) = since(engine, &ledger, heard, &request.kinds, request.limit.get())?;
        let mut by_kind: BTreeMap<EventKind, usize> = BTreeMap::new();
        events.iter().for_each(|event| *by_kind.entry(event.kind).or_default() += 1);
        let counts: Vec<String> = by_kind.iter().map(|(kind, n)| count(*n, kind.name())).collect();
        let summary = if counts.is_empty() { "nothing happened".to_string() } else { counts.join(", ") };
        let notice = events.iter().any(|event| event.title.is_some() || event.reason.is_some()).then_some(NOTICE);
        Ok(Response { summary, notice, events, cursor: heard.to_string(), head, truncated: heard.tx < head })
    }
}
