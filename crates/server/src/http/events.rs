//! Transactions as they happen, as server-sent events.

use super::{RequestId, Site, refusal};
use crate::front::Caller;
use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;

/// How often the log is looked at.
const EVERY: Duration = Duration::from_millis(250);
/// Transactions read at a time.
const PART: u64 = 200;

/// Streams transactions after `Last-Event-ID`, or from now on.
pub async fn transactions(
    State(site): State<Site>,
    Extension(caller): Extension<Caller>,
    Extension(id): Extension<RequestId>,
    headers: HeaderMap,
) -> Response {
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse::<u64>().ok());
    let mut after = match seen {
        Some(tx) => tx,
        None => match log(&site, &caller, json!({"limit": 1})).await {
            Ok(log) => log["head"].as_u64().unwrap_or(0),
            Err(error) => return refusal(&error, &id),
        },
    };
    let (send, receive) = mpsc::channel::<Result<Event, Infallible>>(64);
    tokio::spawn(async move {
        loop {
            let told = log(&site, &caller, json!({"after": after, "limit": PART})).await;
            let events: Vec<Event> = match &told {
                Ok(log) => log["transactions"].as_array().into_iter().flatten().map(event).collect(),
                Err(error) => vec![
                    Event::default()
                        .event("error")
                        .data(json!({"code": error.code, "message": error.message}).to_string()),
                ],
            };
            if let Ok(log) = &told {
                let last = log["transactions"].as_array().and_then(|all| all.last());
                after = last.and_then(|tx| tx["tx"].as_u64()).unwrap_or(after);
            }
            let is_busy = events.len() as u64 == PART;
            for event in events {
                if send.send(Ok(event)).await.is_err() {
                    return;
                }
            }
            if send.is_closed() || told.is_err() {
                return;
            }
            if !is_busy {
                tokio::time::sleep(EVERY).await;
            }
        }
    });
    Sse::new(Stream(receive)).keep_alive(KeepAlive::default()).into_response()
}

fn event(transaction: &Value) -> Event {
    Event::default().event("transaction").id(transaction["tx"].to_string()).data(transaction.to_string())
}

async fn log(site: &Site, caller: &Caller, request: Value) -> lukasa_model::Result<Value> {
    site.front.call(caller, "log", request, None).await?.value()
}

/// What is received, as a stream.
struct Stream(mpsc::Receiver<Result<Event, Infallible>>);

impl futures_util::Stream for Stream {
    type Item = Result<Event, Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}
