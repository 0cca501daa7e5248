//! Events as server-sent events: transactions, claims, conflicts, tasks, episodes.

use super::{RequestId, Site, refusal};
use crate::follow::{EventWithCursor, Follower};
use crate::request_gate::Caller;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::convert::Infallible;
use tokio::sync::mpsc;

#[derive(Deserialize)]
pub struct EventsQuery {
    /// Event kinds, separated by commas; all if empty.
    #[serde(default)]
    kinds: String,
}

/// Streams the events after `Last-Event-ID`, or from now on.
pub async fn events(
    State(site): State<Site>,
    Extension(caller): Extension<Caller>,
    Extension(id): Extension<RequestId>,
    Query(wanted): Query<EventsQuery>,
    headers: HeaderMap,
) -> Response {
    let heard = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let kinds = wanted.kinds.split(',').filter(|kind| !kind.is_empty()).map(str::to_owned).collect();
    let mut follower = match Follower::start(&site.front, caller, kinds, heard).await {
        Ok(follower) => follower,
        Err(error) => return refusal(&error, &id),
    };
    let (send, receive) = mpsc::channel::<Result<Event, Infallible>>(64);
    tokio::spawn(async move {
        loop {
            // Stops when the client has disconnected.
            let events_or_error = tokio::select! {
                events_or_error = follower.next() => events_or_error,
                () = send.closed() => return,
            };
            let (events, ended) = match events_or_error {
                Ok(events_or_error) => (events_or_error.into_iter().map(event).collect(), false),
                Err(error) => {
                    let data = json!({"code": error.code, "message": error.message}).to_string();
                    (vec![Event::default().event("error").data(data)], true)
                }
            };
            for event in events {
                if send.send(Ok(event)).await.is_err() {
                    return;
                }
            }
            if ended {
                return;
            }
        }
    });
    Sse::new(Stream(receive)).keep_alive(KeepAlive::default()).into_response()
}

/// Formats an event; its id is the cursor to resume from. Inside a transaction events have no id, so a client that
/// reconnects receives the whole transaction again.
fn event((happening, id): EventWithCursor) -> Event {
    let kind = happening.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let event = Event::default().event(kind).data(Value::Object(happening).to_string());
    match id {
        Some(id) => event.id(id),
        None => event,
    }
}

/// Adapts the receiver to a stream.
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
