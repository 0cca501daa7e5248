//! Authentication for every surface that listens: tokens, access keys, rate limits, and checks of `Host` and `Origin`.

pub mod api_key;
pub mod failures;
pub mod guard;
pub mod jwks;
pub mod jwt;
pub mod rate;
#[cfg(test)]
mod tests;

use crate::Caller;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName};
use jwks::KeySource;
use lukasa_engine::{Agents, Grants};
use lukasa_model::id::check_text;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Scope, Time, limits};
use lukasa_store::{Clock, Store};
use std::net::SocketAddr;
use std::sync::Arc;

/// Another way to send a key or token than `Authorization: Bearer …`.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// Names the project of the request when the key or token is not bound to one.
const PROJECT: HeaderName = HeaderName::from_static("x-project-id");
/// Headers that proxies add to name the client they forward for.
const FORWARDED: [HeaderName; 3] = [
    HeaderName::from_static("forwarded"),
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-real-ip"),
];

/// Authenticates a request: turns its headers and peer address into a [`Caller`], or refuses it.
pub struct Authenticator(AccessMode);

enum AccessMode {
    Open(Scope),
    Guarded(AuthConfig),
}

/// The credentials that a server with authentication accepts.
pub struct AuthConfig {
    /// None: tokens are not accepted.
    pub tokens: Option<Tokens>,
    /// The store that holds access keys. None: access keys are not accepted.
    pub keys: Option<Arc<dyn Store>>,
    /// The project of requests that name none.
    pub project: Option<String>,
    /// Decides whether tokens and keys have expired.
    pub clock: Arc<dyn Clock>,
}

/// The keys and rules that tokens are verified with.
pub struct Tokens {
    /// The keys that verify signatures.
    pub keys: KeySource,
    /// The issuers and audiences that are accepted.
    pub rules: jwt::TokenRules,
}

impl Tokens {
    fn verify(&self, token: &str, now: Time) -> Result<jwt::TokenClaims> {
        let verified = jwt::verify(token, &*self.keys.current()?, &self.rules, now);
        match verified {
            // The issuer may have begun to sign with another key.
            Err(unknown) if unknown.code == ErrorCode::UnknownKey => match self.keys.renewed()? {
                Some(keys) => jwt::verify(token, &keys, &self.rules, now),
                None => Err(unknown),
            },
            verified => verified,
        }
    }
}

/// Which kinds of credentials are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptedCredentials {
    /// JSON Web Tokens are accepted.
    pub tokens: bool,
    /// Access keys are accepted.
    pub keys: bool,
}

/// The holder of a valid credential, before the project of the request is known.
struct CredentialHolder {
    tenant: String,
    project: Option<String>,
    user: String,
    grants: Grants,
    agents: Agents,
}

/// A refused request.
#[derive(Debug)]
pub struct AuthFailure {
    /// Why the request was refused.
    pub error: Error,
    /// The caller, if the credential itself was valid.
    pub known: Option<Box<Caller>>,
}

impl From<Error> for AuthFailure {
    fn from(error: Error) -> AuthFailure {
        AuthFailure { error, known: None }
    }
}

impl Authenticator {
    /// No authentication: every client on this machine may do everything in one project. Check [`guard`] as well.
    pub fn open(scope: Scope) -> Authenticator {
        Authenticator(AccessMode::Open(scope))
    }

    /// Authentication by tokens, access keys or both. An error if neither is accepted.
    pub fn with_credentials(guarded: AuthConfig) -> Result<Authenticator> {
        if guarded.tokens.is_none() && guarded.keys.is_none() {
            return Err(Error::invalid(ErrorCode::InvalidSettings, "authentication accepts neither tokens nor keys")
                .hint("name a file of keys for tokens, or allow access keys"));
        }
        Ok(Authenticator(AccessMode::Guarded(guarded)))
    }

    /// The kinds of credentials that are accepted; none without authentication.
    pub fn accepted_credentials(&self) -> AcceptedCredentials {
        match &self.0 {
            AccessMode::Open(_) => AcceptedCredentials::default(),
            AccessMode::Guarded(guarded) => {
                AcceptedCredentials { tokens: guarded.tokens.is_some(), keys: guarded.keys.is_some() }
            }
        }
    }

    /// Whether there is no authentication.
    pub fn is_open(&self) -> bool {
        matches!(self.0, AccessMode::Open(_))
    }

    /// Authenticates a request. A key is looked up in the store, so do not call this on a thread of an asynchronous
    /// runtime.
    pub fn authenticate(&self, headers: &HeaderMap, peer: SocketAddr) -> Result<Caller, AuthFailure> {
        let address = Some(peer.ip().to_canonical().to_string());
        let caller = match &self.0 {
            AccessMode::Open(scope) => open_to(scope, headers, peer)?,
            AccessMode::Guarded(guarded) => guarded.let_in(headers)?,
        };
        Ok(Caller { address, ..caller })
    }

    /// Reports whether authentication can work: the keys of tokens and the store of access keys must be readable.
    pub fn check(&self) -> Result<()> {
        let AccessMode::Guarded(guarded) = &self.0 else { return Ok(()) };
        if let Some(tokens) = &guarded.tokens {
            tokens.keys.current()?;
        }
        if let Some(keys) = &guarded.keys {
            // No key can have this id, because it is too short: the lookup only shows that the store can be read.
            keys.access_keys().find("-").map_err(|e| e.at("access keys"))?;
        }
        Ok(())
    }
}

fn open_to(scope: &Scope, headers: &HeaderMap, peer: SocketAddr) -> Result<Caller> {
    // A proxy on this machine forwards for clients that may be anywhere.
    let forwarded = FORWARDED.iter().any(|name| headers.contains_key(name));
    if forwarded || !peer.ip().to_canonical().is_loopback() {
        return Err(Error::new(
            ErrorKind::Forbidden,
            ErrorCode::LoopbackOnly,
            "without authentication only clients on this machine are accepted",
        )
        .hint("configure tokens or access keys (docs/access.md)"));
    }
    if let Some(named) = one(headers, &PROJECT)?.filter(|named| *named != scope.project) {
        return Err(other_project(named, &scope.project));
    }
    Ok(Caller { local: false, ..Caller::owner(scope.clone()) })
}

impl AuthConfig {
    fn let_in(&self, headers: &HeaderMap) -> Result<Caller, AuthFailure> {
        let sent = credential(headers)?.ok_or_else(|| {
            refused(ErrorCode::MissingToken, "neither a token nor a key was sent")
                .hint("send `Authorization: Bearer …` or `x-api-key: …`")
        })?;
        let (known, still) = self.recognise(sent)?;
        let scope = still.and_then(|()| self.scope(&known, one(headers, &PROJECT)?));
        // A refusal is recorded under the credential's own project, or the default one, not under the one it names.
        let own = known.project.as_deref().or(self.project.as_deref()).unwrap_or("any");
        let of = |scope: Scope| Caller {
            user: Some(known.user.clone()),
            grants: known.grants.clone(),
            agent: known.agents.known_as(None),
            agents: known.agents.clone(),
            local: false,
            ..Caller::owner(scope)
        };
        match scope {
            Ok(scope) => Ok(of(scope)),
            Err(error) => {
                Err(AuthFailure { error, known: Scope::new(&*known.tenant, own).ok().map(|scope| Box::new(of(scope))) })
            }
        }
    }

    /// The holder of a valid credential, and whether the credential is still in force.
    fn recognise(&self, sent: &str) -> Result<(CredentialHolder, Result<()>)> {
        let now = self.clock.now();
        if sent.starts_with(api_key::PREFIX) {
            let keys = self
                .keys
                .as_ref()
                .ok_or_else(|| refused(ErrorCode::InvalidKey, "access keys are not accepted here"))?;
            let key = api_key::find(keys.access_keys(), sent)?;
            let still = api_key::check(keys.access_keys(), &key, now);
            let grants = Grants::of(key.scopes);
            let agents = if key.agents.is_empty() { Agents::of_user(&key.user) } else { Agents::bound(key.agents) };
            return Ok((
                CredentialHolder { tenant: key.tenant, project: key.project, user: key.user, grants, agents },
                still,
            ));
        }
        let tokens =
            self.tokens.as_ref().ok_or_else(|| refused(ErrorCode::InvalidToken, "tokens are not accepted here"))?;
        let jwt::TokenClaims { user, tenant, project, scopes, agents } = tokens.verify(sent, now)?;
        // A name that no project can have makes the token invalid, rather than the request.
        Scope::new(&*tenant, project.as_deref().unwrap_or("any"))
            .and_then(|_| check_text("user", &user, limits::REF_NAME_BYTES))
            .and_then(|()| {
                agents.iter().flatten().try_for_each(|agent| check_text("agent", agent, limits::REF_NAME_BYTES))
            })
            .map_err(|e| refused(ErrorCode::InvalidToken, e.message))?;
        let agents = agents.map_or_else(|| Agents::of_user(&user), Agents::bound);
        Ok((CredentialHolder { tenant, project, user, grants: Grants::of(scopes), agents }, Ok(())))
    }

    /// The project of the request. A key or token that is bound to a project decides; a header may repeat that project,
    /// and chooses one when the credential is bound to none.
    fn scope(&self, known: &CredentialHolder, named: Option<&str>) -> Result<Scope> {
        let project = match (known.project.as_deref(), named) {
            (Some(own), Some(named)) if own != named => return Err(other_project(named, own)),
            (Some(own), _) => own,
            (None, Some(named)) => named,
            (None, None) => self.project.as_deref().ok_or_else(|| {
                Error::invalid(ErrorCode::MissingProject, "the request names no project")
                    .hint("send the header `x-project-id`")
            })?,
        };
        Scope::new(&*known.tenant, project)
    }
}

/// The credential in the headers, if any.
fn credential(headers: &HeaderMap) -> Result<Option<&str>> {
    let bearer = match one(headers, &AUTHORIZATION)? {
        None => None,
        Some(value) => match value.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Some(token.trim()),
            _ => {
                return Err(refused(ErrorCode::InvalidToken, "the header `authorization` does not carry a token")
                    .hint("send `Authorization: Bearer …`"));
            }
        },
    };
    match (bearer, one(headers, &API_KEY)?.map(str::trim)) {
        (Some(_), Some(_)) => {
            Err(refused(ErrorCode::TwoCredentials, "a token and a key were sent").hint("send one of them"))
        }
        (bearer, key) => Ok(bearer.or(key)),
    }
}

/// The value of a header that may occur once. A proxy and this server could each read a different one of two values.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().ok().filter(|_| values.next().is_none());
    text.map(Some).ok_or_else(|| {
        Error::invalid(ErrorCode::InvalidHeader, format!("the header `{name}` is there twice, or is not plain text"))
    })
}

fn other_project(named: &str, own: &str) -> Error {
    Error::new(
        ErrorKind::Forbidden,
        ErrorCode::ForbiddenProject,
        format!("`{named}` is not the project that is open here"),
    )
    .hint(format!("leave `x-project-id` out, or set it to `{own}`"))
}

fn refused(code: ErrorCode, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unauthenticated, code, message)
}

/// The header `www-authenticate` that goes with an error (RFC 6750, 3). None where other credentials would not help.
pub fn challenge(error: &Error) -> Option<&'static str> {
    match (error.kind, error.code) {
        (ErrorKind::Unauthenticated, ErrorCode::MissingToken) => Some(r#"Bearer realm="lukasa""#),
        (ErrorKind::Unauthenticated, _) => Some(r#"Bearer realm="lukasa", error="invalid_token""#),
        (ErrorKind::Forbidden, ErrorCode::MissingScope) => Some(r#"Bearer realm="lukasa", error="insufficient_scope""#),
        _ => None,
    }
}
