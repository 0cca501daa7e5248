//! HTTP: every operation as a route, MCP beside them, and health and metrics for operators.

mod body;
mod bulk;
mod card;
mod events;
mod legacy_requests;
mod listen;
mod openapi;
mod page;
mod routes;
mod sessions;
mod tls;

/// Paths of operations, for the reference pages.
pub mod paths {
    pub use super::routes::{Route, named, own_path};
}

pub use listen::ClientLimits;
pub use openapi::document;
pub(crate) use sessions::SESSION;
pub use tls::Encryption;

use crate::auth::failures::LoginFailures;
use crate::auth::guard::{self, GuardRules};
use crate::auth::rate::{RateLimiter, RateStatus};
use crate::auth::{AuthFailure, Authenticator, challenge};
use crate::mcp::{McpServer, Toolsets};
use crate::request_gate::{Caller, RequestGate};
use crate::trace::TraceParent;
use axum::body::Body;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use lukasa_engine::Grants;
use lukasa_engine::telemetry::{self, log, metrics};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Scope};
use lukasa_store::Clock;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use uuid::Uuid;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

/// What an HTTP server serves, and its rules for clients.
#[derive(Clone)]
pub struct Site {
    /// The engine that serves the requests.
    pub front: RequestGate,
    /// Authenticates the requests.
    pub door: Arc<Authenticator>,
    /// Rate limits per user. None: unlimited.
    pub rates: Option<Arc<RateLimiter>>,
    /// Accepted values of `Host` and `Origin`.
    pub guard: GuardRules,
    /// The tools that are listed to MCP clients.
    pub toolsets: Toolsets,
    /// The time for credentials and rate limits.
    pub clock: Arc<dyn Clock>,
    /// Limits on failed authentications. None: unlimited.
    pub failures: Option<Arc<LoginFailures>>,
    /// Timeouts of clients and limits of connections.
    pub patience: ClientLimits,
    /// The project whose audit record contains failed authentications of unknown callers.
    pub record: Scope,
    /// Readiness checks beside those of the store and the keys.
    pub checks: Vec<ReadinessCheck>,
}

/// Checks one dependency of the server.
pub type ReadinessCheck = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// Credential lookups at the same time. Each occupies a thread for as long as the store takes.
const LOOKUPS: usize = 32;
/// Longest wait for a credential lookup.
const LOOKUP: Duration = Duration::from_secs(10);

/// Identifies a request in its response and in the logs.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

/// Serves until `ended` resolves; requests in progress then have some time to finish.
pub async fn serve(
    site: Site,
    listener: TcpListener,
    ended: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    serve_encrypted(site, None, listener, ended).await
}

/// As [`serve`], over TLS if there is a certificate.
pub async fn serve_encrypted(
    site: Site,
    encryption: Option<Encryption>,
    listener: TcpListener,
    ended: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let patience = site.patience;
    listen::serve(router(site), patience, encryption, listener, ended).await
}

/// All routes of a server, with authentication and limits around them.
pub fn router(site: Site) -> Router {
    let mcp = {
        let (front, toolsets) = (site.front.clone(), site.toolsets.clone());
        // `Host` and `Origin` are checked for all paths by our own middleware.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(site.front.limits().bytes);
        let known = Arc::new(sessions::Sessions::new(sessions::manager()));
        let manager = Arc::clone(known.manager());
        let service = StreamableHttpService::new(
            move || Ok(McpServer::of_anyone(front.clone(), toolsets.clone())),
            manager,
            config,
        );
        let time = site.patience.body;
        Router::new()
            .route_service("/mcp", service)
            .layer(axum::middleware::map_request(move |request: Request| async move {
                request.map(|body| body::within(body, time))
            }))
            .layer(from_fn_with_state(known, sessions::own))
    };
    let inside = routes::all()
        .route("/v1/events", get(events::events))
        .route(bulk::EXPORT, get(bulk::export))
        .route(bulk::IMPORT, post(bulk::import))
        .route("/metrics", get(metrics_text))
        .with_state(site.clone())
        .merge(mcp)
        .layer(from_fn_with_state(site.clone(), require_caller));
    // These routes reveal no facts, so they need no authentication.
    Router::new()
        .route("/", get(page::page))
        .route("/openapi.json", get(openapi::openapi))
        .route("/healthz", get(|| async { axum::Json(json!({"status": "ok"})) }))
        .route("/readyz", get(ready))
        .route("/.well-known/agent-card.json", get(card::card))
        .route("/.well-known/agent.json", get(card::card))
        .with_state(site.clone())
        .merge(inside)
        .fallback(path_not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(site.front.limits().bytes))
        .layer(from_fn_with_state(site, identify))
}

/// Gives every request an id, and refuses a wrong `Host` or `Origin`.
async fn identify(
    State(site): State<Site>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let given = request.headers().get(REQUEST_ID).and_then(|value| value.to_str().ok()).filter(|id| is_id(id));
    let id = RequestId(given.map_or_else(|| Uuid::now_v7().simple().to_string(), str::to_owned));
    request.extensions_mut().insert(id.clone());
    let authority = request.uri().authority().map(|authority| authority.to_string());
    let mut response = match guard::check(&site.guard, request.headers(), authority.as_deref()) {
        Ok(()) => next.run(request).await,
        Err(error) => {
            failed_login(&site, Caller { local: false, ..Caller::owner(site.record.clone()) }, &error, &id, peer)
        }
    };
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Authenticates the caller, or refuses the request.
async fn require_caller(
    State(site): State<Site>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let headers = request.headers().clone();
    let admitted = async {
        if let Some(failures) = &site.failures {
            failures.check(peer.ip(), site.clock.now())?;
        }
        let caller = authenticate(&site, &headers, peer).await?;
        let now = site.clock.now();
        let taken = site.rates.as_ref().map(|rates| rates.take(&caller, now)).transpose()?;
        Ok::<_, AuthFailure>((caller, taken))
    };
    match admitted.await {
        Ok((caller, taken)) => {
            let request_id = Some(id_of(&request).0);
            let trace = headers.get(TRACE_PARENT).and_then(|value| TraceParent::parse(value.to_str().ok()?));
            request.extensions_mut().insert(Caller { request_id, trace, ..caller });
            let mut response = next.run(request).await;
            response.headers_mut().extend(taken.iter().flat_map(RateStatus::headers));
            response
        }
        Err(AuthFailure { error, known }) => {
            // A request without credential is not a guess.
            let guessed = error.kind == ErrorKind::Unauthenticated && error.code != ErrorCode::MissingToken;
            if let Some(failures) = site.failures.as_ref().filter(|_| guessed) {
                failures.note(peer.ip(), site.clock.now());
            }
            let id = id_of(&request);
            let caller = known.map_or_else(
                || Caller { grants: Grants::of::<&str>([]), local: false, ..Caller::owner(site.record.clone()) },
                |known| *known,
            );
            failed_login(&site, caller, &error, &id, peer)
        }
    }
}

/// Authenticates a request, with limits on concurrent lookups and their time.
async fn authenticate(site: &Site, headers: &HeaderMap, peer: SocketAddr) -> Result<Caller, AuthFailure> {
    static PLACES: Semaphore = Semaphore::const_new(LOOKUPS);
    let door = Arc::clone(&site.door);
    if door.is_open() {
        return door.authenticate(headers, peer);
    }
    let headers = headers.clone();
    let looked_up = async {
        let place = PLACES.acquire().await.map_err(|_| Error::internal("credentials are no longer looked up"))?;
        // A key is looked up in the store. If the store hangs, the blocked thread keeps its permit.
        let looking = tokio::task::spawn_blocking(move || {
            let caller = door.authenticate(&headers, peer);
            drop(place);
            caller
        });
        looking.await.map_err(|e| Error::internal(format!("authentication failed to run: {e}")))?
    };
    tokio::time::timeout(LOOKUP, looked_up).await.unwrap_or_else(|_| {
        let message = format!("the key could not be looked up within {} s", LOOKUP.as_secs());
        Err(Error::new(ErrorKind::Unavailable, ErrorCode::KeysUnreadable, message).hint("try again").into())
    })
}

/// Answers a failed authentication, and logs, counts and records it.
fn failed_login(site: &Site, caller: Caller, error: &Error, id: &RequestId, peer: SocketAddr) -> Response {
    let address = peer.ip().to_canonical().to_string();
    let fields = [
        ("request_id", json!(id.0)),
        ("status", json!(error.kind.http_status())),
        ("code", json!(error.code)),
        ("address", json!(address)),
    ];
    log::event(log::LogLevel::Warn, "door.refused", &fields);
    let caller = Caller { request_id: Some(id.0.clone()), address: Some(address), ..caller };
    site.front.record_failed_login(&caller, error);
    refusal(error, id)
}

fn id_of(request: &Request) -> RequestId {
    request.extensions().get::<RequestId>().cloned().unwrap_or_else(|| RequestId(String::new()))
}

/// An error as a response: the only place that maps error kinds to statuses.
pub(crate) fn refusal(error: &Error, id: &RequestId) -> Response {
    let status = match error.code {
        // A timeout of the client, not of the server.
        ErrorCode::RequestTooSlow => StatusCode::REQUEST_TIMEOUT,
        _ => StatusCode::from_u16(error.kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
    };
    let mut body = json!({"code": error.code, "message": error.message, "request_id": id.0});
    if let Some(hint) = &error.hint {
        body["hint"] = json!(hint);
    }
    if !error.details.is_null() {
        body["details"] = (*error.details).clone();
    }
    let mut response = (status, axum::Json(json!({"error": body}))).into_response();
    if let Some(challenge) = challenge(error) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
    if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        let after = error.details.get("retry_after").and_then(serde_json::Value::as_u64).unwrap_or(1);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(after));
    }
    response
}

async fn path_not_found(request: Request) -> Response {
    let error = Error::not_found(ErrorCode::UnknownPath, format!("there is nothing at `{}`", request.uri().path()))
        .hint("/openapi.json lists every path");
    refusal(&error, &id_of(&request))
}

async fn method_not_allowed(request: Request) -> Response {
    let error = Error::invalid(
        ErrorCode::MethodNotAllowed,
        format!("`{}` does not accept {}", request.uri().path(), request.method()),
    )
    .hint("/openapi.json lists every path with its methods");
    let mut response = refusal(&error, &id_of(&request));
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

/// Ready when the store and the keys can be read and all further checks pass.
async fn ready(State(site): State<Site>, request: Request) -> Response {
    let (door, checks) = (Arc::clone(&site.door), site.checks.clone());
    let all = move || door.check().and_then(|()| checks.iter().try_for_each(|check| check()));
    match site.front.ready(all).await {
        Ok(()) => axum::Json(json!({"status": "ready"})).into_response(),
        Err(error) => refusal(&error, &id_of(&request)),
    }
}

/// Metrics of all callers, which need their own permission.
async fn metrics_text(State(site): State<Site>, Extension(caller): Extension<Caller>, request: Request) -> Response {
    if let Err(error) = caller.grants.check("metrics", "graph:admin:metrics") {
        return refusal(&error, &id_of(&request));
    }
    let engine = site.front.engine_handle().engine();
    // Without authentication the caller owns the store and sees all tenants.
    let own = (!site.door.is_open()).then_some(caller.scope.tenant);
    let text = tokio::task::spawn_blocking(move || {
        telemetry::gauges::refresh(engine.as_ref());
        metrics().text(own.as_deref())
    });
    let headers = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    match text.await {
        Ok(text) => (headers, Body::from(text)).into_response(),
        Err(e) => refusal(&Error::internal(format!("metrics could not be written: {e}")), &id_of(&request)),
    }
}

/// Ids of clients go into headers, logs and records, so only plain characters are accepted.
fn is_id(id: &str) -> bool {
    (8..=64).contains(&id.len()) && id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}
