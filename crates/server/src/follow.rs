//! Delivers events to subscribers as they happen.

use crate::request_gate::{Caller, RequestGate};
use crate::shares::UsagePermit;
use lukasa_engine::features::coordination::events::EventCursor;
use lukasa_engine::features::coordination::ops::event_list::EventList;
use lukasa_engine::registry::Op;
use lukasa_model::json::Hash;
use lukasa_model::{Error, ErrorKind, Position, Result, Tx};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Time between two polls for new events.
const EVERY: Duration = Duration::from_millis(250);
/// Longest time between two polls while they fail.
const LONGEST: Duration = Duration::from_secs(5);
/// Transactions per poll.
const PART: usize = 200;

/// An event, and the cursor to resume from after it; None in the middle of a transaction.
pub type EventWithCursor = (Map<String, Value>, Option<String>);

/// Adds the resume cursor to each event. The event of a transaction follows all other events of that transaction, so it
/// is safe to resume after it. Conflicts follow all transactions, so until then the cursor keeps the conflict of
/// `before`. The last event of a poll gets the cursor `after`.
fn with_cursors(events: Vec<Map<String, Value>>, before: Option<EventCursor>, after: &str) -> Vec<EventWithCursor> {
    let last = events.len().saturating_sub(1);
    let mark = |(at, event): (usize, Map<String, Value>)| {
        let tx = event.get("tx").and_then(Value::as_u64).filter(|_| event.get("kind") == Some(&json!("transaction")));
        let id = match tx {
            _ if at == last => Some(after.to_owned()),
            Some(tx) => before.map(|before| EventCursor { tx: Tx(tx), digest: digest(&event), ..before }.to_string()),
            None => None,
        };
        (event, id)
    };
    events.into_iter().enumerate().map(mark).collect()
}

/// The digest of the transaction hash in an event.
fn digest(event: &Map<String, Value>) -> Option<u64> {
    let hash = Hash::parse(event.get("hash")?.as_str()?)?;
    Some(Position { tx: Tx::START, hash }.digest())
}

/// A subscriber and its position in the events.
pub struct Follower {
    front: RequestGate,
    caller: Caller,
    kinds: Vec<String>,
    after: String,
    /// The last poll was truncated: poll again at once.
    more: bool,
    /// Time until the next poll.
    pause: Duration,
    _counted: UsagePermit,
}

/// Whether a poll may succeed later: the store fails over or is unreachable, or the server is busy.
fn is_temporary(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::RateLimited)
}

impl Follower {
    /// Starts at `after`, or now. The first poll is an ordinary operation with its permission checks.
    pub async fn start(
        front: &RequestGate,
        caller: Caller,
        kinds: Vec<String>,
        after: Option<String>,
    ) -> Result<Follower> {
        let _counted = front.listener(&caller)?;
        let request = json!({"limit": 1, "kinds": kinds});
        let now = front.call(&caller, EventList::META.name, request, None).await?.value()?;
        let now = now["cursor"].as_str().unwrap_or_default().to_owned();
        let after = after.unwrap_or(now);
        Ok(Follower { front: front.clone(), caller, kinds, after, more: true, pause: EVERY, _counted })
    }

    /// Waits for events and returns them, each with the cursor to resume from after it, where there is one. While the
    /// store is unavailable it goes on waiting: the log has what happens meanwhile.
    pub async fn next(&mut self) -> Result<Vec<EventWithCursor>> {
        loop {
            if !self.more {
                tokio::time::sleep(self.pause).await;
            }
            let request = json!({"after": self.after, "limit": PART, "kinds": self.kinds});
            let polled = self.front.listen(&self.caller, request).await.and_then(|answer| answer.value());
            let mut poll = match polled {
                Err(error) if is_temporary(&error) => {
                    self.more = false;
                    self.pause = LONGEST.min(self.pause * 2);
                    continue;
                }
                polled => polled?,
            };
            self.pause = EVERY;
            self.more = poll["truncated"] == true;
            let before = self.after.parse::<EventCursor>().ok();
            if let Some(cursor) = poll["cursor"].as_str() {
                self.after = cursor.to_owned();
            }
            let events = match poll["events"].take() {
                Value::Array(events) => events,
                _ => vec![],
            };
            if !events.is_empty() {
                let events = events.into_iter().filter_map(|event| event.as_object().cloned()).collect();
                return Ok(with_cursors(events, before, &self.after));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscriber_resumes_after_the_last_event() {
        let events = |list: Value| -> Vec<Map<String, Value>> {
            list.as_array().into_iter().flatten().filter_map(|event| event.as_object().cloned()).collect()
        };
        let ids = |list: Value, before: Option<EventCursor>| -> Vec<Option<String>> {
            with_cursors(events(list), before, "42~9").into_iter().map(|(_, id)| id).collect()
        };
        let before = Some(EventCursor { tx: Tx(40), digest: Some(1), conflict: Some(7) });
        let all = json!([
            {"kind": "claim", "tx": 41}, {"kind": "transaction", "tx": 41},
            {"kind": "transaction", "tx": 42, "hash": format!("sha256:{}", "0f".repeat(32))}, {"kind": "conflict"}
        ]);
        let some = |id: &str| Some(id.to_owned());
        assert_eq!(ids(all.clone(), before), [None, some("41~7"), some("42.0f0f0f0f0f0f0f0f~7"), some("42~9")]);
        assert_eq!(ids(json!([{"kind": "claim", "tx": 41}]), before), [some("42~9")], "for any kinds");
        assert_eq!(ids(all, None), [None, None, None, some("42~9")]);
        assert_eq!(ids(json!([]), before), []);
    }
}
