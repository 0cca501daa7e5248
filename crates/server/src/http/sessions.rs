//! Whose an MCP session is: one that somebody began is nobody else's, whoever learns its id.

use super::{id_of, refusal};
use crate::front::Caller;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::Next;
use axum::response::Response;
use lukasa_model::Error;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Sessions remembered; the oldest are forgotten, and those who had them begin anew.
const MOST: usize = 16_384;

#[derive(Default)]
pub struct Sessions(Mutex<Known>);

#[derive(Default)]
struct Known {
    owners: HashMap<String, Owner>,
    /// In the order they began.
    began: VecDeque<String>,
}

/// Tenant, project and user.
type Owner = (String, String, Option<String>);

impl Sessions {
    fn is_of(&self, session: &str, owner: &Owner) -> bool {
        self.0.lock().owners.get(session) == Some(owner)
    }

    fn begin(&self, session: String, owner: Owner) {
        let mut known = self.0.lock();
        if known.began.len() == MOST
            && let Some(oldest) = known.began.pop_front()
        {
            known.owners.remove(&oldest);
        }
        known.began.push_back(session.clone());
        known.owners.insert(session, owner);
    }
}

/// Lets through what names no session, or one of the caller's own. Another's is as unknown as one that never was.
pub async fn own(State(sessions): State<Arc<Sessions>>, request: Request, next: Next) -> Response {
    let owner = request.extensions().get::<Caller>().map(|caller| {
        let scope = &caller.scope;
        (scope.tenant.to_string(), scope.project.to_string(), caller.user.clone())
    });
    let Some(owner) = owner else {
        return refusal(&Error::internal("nobody knows who asks"), &id_of(&request));
    };
    let named = named(request.headers());
    if let Some(session) = &named
        && !sessions.is_of(session, &owner)
    {
        let error = Error::not_found("unknown_session", "there is no such session").hint("begin with `initialize`");
        return refusal(&error, &id_of(&request));
    }
    let response = next.run(request).await;
    if named.is_none()
        && let Some(session) = self::named(response.headers())
    {
        sessions.begin(session, owner);
    }
    response
}

fn named(headers: &HeaderMap) -> Option<String> {
    headers.get(SESSION).map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned())
}
