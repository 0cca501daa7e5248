//! MCP sessions: the owner of each, how many there may be, and how long one may be idle.
//!
//! A session belongs to the caller that started it, even if another caller learns its id.

use super::{id_of, refusal};
use crate::request_gate::Caller;
use crate::shares::ShareKey;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use lukasa_model::{Error, ErrorCode, ErrorKind};
use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Sessions at the same time; an idle one takes about 70 KiB.
const MOST: usize = 1_024;
/// Sessions per user. Starting another ends the user's least recently used one.
const EACH: usize = 64;
/// A session without requests for this long ends.
const IDLE: Duration = Duration::from_secs(300);

/// Creates the session manager with our idle timeout.
pub fn manager() -> Arc<LocalSessionManager> {
    let mut manager = LocalSessionManager::default();
    manager.session_config.keep_alive = Some(IDLE);
    Arc::new(manager)
}

pub struct Sessions {
    known: Mutex<Known>,
    manager: Arc<LocalSessionManager>,
    most: usize,
    each: usize,
}

#[derive(Default)]
struct Known {
    sessions: HashMap<String, Session>,
    /// Counts requests, to order sessions by their last use.
    uses: u64,
}

struct Session {
    owner: Owner,
    used: u64,
}

/// Tenant and user, and the project.
type Owner = (ShareKey, String);

impl Sessions {
    pub fn new(manager: Arc<LocalSessionManager>) -> Sessions {
        Sessions { known: Mutex::default(), manager, most: MOST, each: EACH }
    }

    pub fn manager(&self) -> &Arc<LocalSessionManager> {
        &self.manager
    }

    /// Whether a session belongs to the owner. If so, marks it as used now.
    fn is_of(&self, session: &str, owner: &Owner) -> bool {
        let mut known = self.known.lock();
        known.uses += 1;
        let now = known.uses;
        known.sessions.get_mut(session).filter(|known| known.owner == *owner).map(|known| known.used = now).is_some()
    }

    /// Registers a new session. Returns the session to end: the user's least recently used one, which may be the new
    /// one itself if other users have all the room.
    async fn begin(&self, session: &str, owner: Owner) -> Option<String> {
        let crowded = {
            let mut known = self.known.lock();
            known.uses += 1;
            let used = known.uses;
            known.sessions.insert(session.to_owned(), Session { owner: owner.clone(), used });
            self.is_crowded(&known, &owner.0)
        };
        if !crowded {
            return None;
        }
        // Some sessions may have ended on their own.
        let open: HashSet<String> = self.manager.sessions.read().await.keys().map(ToString::to_string).collect();
        let mut known = self.known.lock();
        known.sessions.retain(|id, _| open.contains(id));
        if !self.is_crowded(&known, &owner.0) {
            return None;
        }
        let own = known.sessions.iter().filter(|(_, session)| session.owner.0 == owner.0);
        let ends = own.min_by_key(|(_, session)| session.used).map(|(id, _)| id.clone())?;
        known.sessions.remove(&ends);
        Some(ends)
    }

    fn is_crowded(&self, known: &Known, holder: &ShareKey) -> bool {
        let own = known.sessions.values().filter(|session| session.owner.0 == *holder).count();
        known.sessions.len() > self.most || holder.user.is_some() && own > self.each
    }

    async fn end(&self, session: &str) {
        // The session may already have ended.
        let _ = self.manager.close_session(&session.into()).await;
    }
}

/// Passes on requests that name no session or one of the caller's. The session of another caller is reported as
/// unknown.
pub async fn own(State(sessions): State<Arc<Sessions>>, request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Caller>();
    let Some(owner) = caller.map(|caller| (ShareKey::from(caller), caller.scope.project.to_string())) else {
        return refusal(&Error::internal("the caller is unknown"), &id_of(&request));
    };
    let (named, id) = (named(request.headers()), id_of(&request));
    if let Some(session) = &named
        && !sessions.is_of(session, &owner)
    {
        let error =
            Error::not_found(ErrorCode::UnknownSession, "there is no such session").hint("begin with `initialize`");
        return refusal(&error, &id);
    }
    let deletes = named.is_some() && request.method() == Method::DELETE;
    let mut response = next.run(request).await;
    if deletes && response.status() == StatusCode::ACCEPTED {
        // The session has ended by now. Clients treat any status but 200 and 204 as a failure.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    let Some(begun) = self::named(response.headers()).filter(|_| named.is_none()) else { return response };
    let Some(ends) = sessions.begin(&begun, owner).await else { return response };
    sessions.end(&ends).await;
    if ends != begun {
        return response;
    }
    let error = Error::new(ErrorKind::RateLimited, ErrorCode::TooManySessions, "too many sessions are open")
        .hint("end sessions that are not needed (DELETE /mcp), or try again later");
    refusal(&error, &id)
}

fn named(headers: &HeaderMap) -> Option<String> {
    headers.get(SESSION).map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(tenant: &str, user: &str) -> Owner {
        let user = (!user.is_empty()).then(|| user.to_owned());
        (ShareKey { tenant: tenant.into(), user }, "shop".into())
    }

    /// Opens a session in the manager.
    async fn opened(sessions: &Sessions) -> String {
        let (id, _) = sessions.manager.create_session().await.expect("a session");
        id.to_string()
    }

    #[tokio::test]
    async fn a_new_session_ends_only_the_same_users_least_recently_used_one() {
        let sessions = Sessions { most: 4, each: 2, ..Sessions::new(manager()) };
        let (ada, bob) = (owner("a", "ada"), owner("a", "bob"));
        let (first, second, third) = (opened(&sessions).await, opened(&sessions).await, opened(&sessions).await);
        assert_eq!(sessions.begin(&first, ada.clone()).await, None);
        assert_eq!(sessions.begin(&second, ada.clone()).await, None);
        assert!(sessions.is_of(&first, &ada) && !sessions.is_of(&first, &bob), "used once more, and by its owner only");
        assert_eq!(sessions.begin(&third, ada.clone()).await, Some(second.clone()));
        sessions.end(&second).await;
        assert!(!sessions.is_of(&second, &ada) && sessions.is_of(&third, &ada));
        let others = [opened(&sessions).await, opened(&sessions).await];
        for session in &others {
            assert_eq!(sessions.begin(session, bob.clone()).await, None);
        }
        // Other users have all the sessions, so there is no room for a new user.
        let (late, cid) = (opened(&sessions).await, owner("b", "cid"));
        assert_eq!(sessions.begin(&late, cid.clone()).await, Some(late.clone()));
        sessions.end(&late).await;
        // Sessions that ended on their own do not count.
        sessions.end(&others[0]).await;
        let again = opened(&sessions).await;
        assert_eq!(sessions.begin(&again, cid.clone()).await, None);
        assert!(sessions.is_of(&again, &cid) && !sessions.is_of(&others[0], &bob));
    }

    #[tokio::test]
    async fn without_users_all_sessions_share_one_limit() {
        let sessions = Sessions { most: 3, each: 1, ..Sessions::new(manager()) };
        let mut begun = Vec::new();
        for _ in 0..3 {
            let session = opened(&sessions).await;
            assert_eq!(sessions.begin(&session, owner("local", "")).await, None);
            begun.push(session);
        }
        let more = opened(&sessions).await;
        assert_eq!(sessions.begin(&more, owner("local", "")).await, Some(begun[0].clone()));
    }
}
