//! Subscriptions to resources, in both generations of the protocol.

use super::resources::ROOT;
use crate::follow::Follower;
use crate::request_gate::{Caller, RequestGate};
use parking_lot::Mutex;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::SubscriptionSink;
use rmcp::{ErrorData, Peer, RoleServer};
use serde_json::json;
use std::collections::HashMap;
use tokio::task::{AbortHandle, JoinSet};

/// Most resources that one client may subscribe to.
const MOST: usize = 16;

/// Resources that can be subscribed to, and the event kinds that change them; empty: all kinds.
const ALL: [(&str, &[&str]); 4] =
    [("events", &[]), ("log", &["transaction"]), ("claims", &["claim", "conflict"]), ("tasks", &["task"])];

/// The event kinds that change a resource. None if it cannot be subscribed to.
fn kinds(uri: &str) -> Option<Vec<String>> {
    let path = uri.strip_prefix(ROOT)?;
    let (_, kinds) = ALL.iter().find(|(own, _)| *own == path)?;
    Some(kinds.iter().map(ToString::to_string).collect())
}

pub fn can_subscribe(uri: &str) -> bool {
    kinds(uri).is_some()
}

async fn follower(front: &RequestGate, caller: Caller, uri: &str) -> Result<Follower, ErrorData> {
    let names: Vec<String> = ALL.iter().map(|(path, _)| format!("{ROOT}{path}")).collect();
    let kinds = kinds(uri).ok_or_else(|| {
        let message = format!("`{uri}` cannot be subscribed to; these can: {}", names.join(", "));
        ErrorData::resource_not_found(message, Some(json!({"uri": uri})))
    })?;
    Follower::start(front, caller, kinds, None).await.map_err(|error| {
        ErrorData::internal_error(error.message, Some(json!({"errorCode": error.code, "hint": error.hint})))
    })
}

/// Subscriptions of one client. They end when it disconnects.
#[derive(Default)]
pub struct Subscriptions(Mutex<HashMap<String, AbortHandle>>);

impl Subscriptions {
    /// Notifies the client whenever the resource changes, until it unsubscribes.
    pub async fn begin(
        &self,
        front: &RequestGate,
        caller: Caller,
        uri: String,
        peer: Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut follower = follower(front, caller, &uri).await?;
        let mut all = self.0.lock();
        all.retain(|_, task| !task.is_finished());
        if all.len() >= MOST && !all.contains_key(&uri) {
            return Err(ErrorData::invalid_params(format!("{MOST} subscriptions at most"), None));
        }
        let name = uri.clone();
        let task = tokio::spawn(async move {
            // If notifying fails, the client has gone. If polling fails, the client sees the error when it reads the
            // resource.
            while follower.next().await.is_ok() {
                let changed = ResourceUpdatedNotificationParam::new(name.clone());
                if peer.notify_resource_updated(changed).await.is_err() {
                    return;
                }
            }
        });
        if let Some(before) = all.insert(uri, task.abort_handle()) {
            before.abort();
        }
        Ok(())
    }

    pub fn end(&self, uri: &str) {
        if let Some(task) = self.0.lock().remove(uri) {
            task.abort();
        }
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        self.0.lock().values().for_each(AbortHandle::abort);
    }
}

/// Notifies the client of changes to all these resources until it stops listening.
pub async fn listen(
    front: &RequestGate,
    caller: &Caller,
    uris: &[String],
    sink: &SubscriptionSink,
) -> Result<(), ErrorData> {
    if uris.is_empty() {
        return std::future::pending().await;
    }
    let mut tasks = JoinSet::new();
    for uri in uris.iter().take(MOST) {
        let mut follower = follower(front, caller.clone(), uri).await?;
        let (uri, sink) = (uri.clone(), sink.clone());
        tasks.spawn(async move {
            while follower.next().await.is_ok() {
                if sink.notify_resource_updated(uri.clone()).await.is_err() {
                    return;
                }
            }
        });
    }
    tasks.join_all().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lukasa_engine::features::coordination::events::EventKind;

    #[test]
    fn subscribable_resources_and_their_event_kinds_exist() {
        for (path, kinds) in ALL {
            let uri = format!("{ROOT}{path}");
            assert!(can_subscribe(&uri) && super::super::resources::request(&uri).is_some(), "{uri}");
            assert!(kinds.iter().all(|kind| EventKind::ALL.iter().any(|known| known.name() == *kind)), "{kinds:?}");
        }
        assert!(!can_subscribe("lukasa://project/overview") && !can_subscribe("lukasa://other/log"));
    }
}
