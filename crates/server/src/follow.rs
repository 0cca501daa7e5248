//! Tells who listens what happens, as it happens.

use crate::front::{Caller, Front};
use lukasa_model::Result;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How often it is asked for news.
const EVERY: Duration = Duration::from_millis(250);
/// Transactions asked for at a time.
const PART: usize = 200;

/// Somebody who listens, and how far they have heard.
pub struct Follower {
    front: Front,
    caller: Caller,
    kinds: Vec<String>,
    after: String,
    /// There was more than was told.
    more: bool,
}

impl Follower {
    /// From now on, or from where one left off. Asking the first time is an operation like any other, and refused like one.
    pub async fn start(front: &Front, caller: Caller, kinds: Vec<String>, after: Option<String>) -> Result<Follower> {
        let request = json!({"limit": 1, "kinds": kinds});
        let now = front.call(&caller, "event_list", request, None).await?.value()?;
        let now = now["cursor"].as_str().unwrap_or_default().to_owned();
        let after = after.unwrap_or(now);
        Ok(Follower { front: front.clone(), caller, kinds, after, more: true })
    }

    /// What happened next; waits until something has.
    pub async fn next(&mut self) -> Result<Vec<Map<String, Value>>> {
        loop {
            if !self.more {
                tokio::time::sleep(EVERY).await;
            }
            let request = json!({"after": self.after, "limit": PART, "kinds": self.kinds});
            let mut told = self.front.listen(&self.caller, request).await?.value()?;
            self.more = told["truncated"] == true;
            if let Some(cursor) = told["cursor"].as_str() {
                self.after = cursor.to_owned();
            }
            let events = match told["events"].take() {
                Value::Array(events) => events,
                _ => vec![],
            };
            if !events.is_empty() {
                return Ok(events.into_iter().filter_map(|event| event.as_object().cloned()).collect());
            }
        }
    }
}
