//! JSON Web Tokens: the signature is verified with known keys before any claim is read.

use super::jwks::KeySet;
use super::refused;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lukasa_model::{ErrorCode, Result, Time};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::collections::BTreeSet;

/// Largest token in bytes: it is sent with every request.
pub const TOKEN_BYTES: usize = 8 << 10;
/// Allowed difference between the issuer's clock and ours.
pub const LEEWAY_SECONDS: f64 = 30.0;

/// Issuers and audiences that tokens must name. Empty: any.
#[derive(Clone, Debug, Default)]
pub struct TokenRules {
    /// Accepted values of `iss`.
    pub issuers: Vec<String>,
    /// Accepted values of `aud`.
    pub audiences: Vec<String>,
}

/// The claims of a verified token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenClaims {
    /// The claim `sub`.
    pub user: String,
    /// The claim `tenant`.
    pub tenant: String,
    /// The claim `project`; None: a header chooses the project.
    pub project: Option<String>,
    /// The permissions: `scope`, separated by spaces, or the list `scopes`.
    pub scopes: BTreeSet<String>,
    /// Agents the token may act as; None if the token has no claim about agents.
    pub agents: Option<BTreeSet<String>>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Lists extensions that a reader must understand. None are supported, so any value is refused.
    crit: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Body {
    sub: Option<String>,
    tenant: Option<String>,
    project: Option<String>,
    scope: Option<String>,
    scopes: Option<Vec<String>>,
    agent_id: Option<String>,
    agents: Option<Vec<String>>,
    exp: Option<f64>,
    nbf: Option<f64>,
    iss: Option<String>,
    aud: Option<OneOrMany>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn any_of(&self, wanted: &[String]) -> bool {
        match self {
            OneOrMany::One(one) => wanted.contains(one),
            OneOrMany::Many(many) => many.iter().any(|one| wanted.contains(one)),
        }
    }
}

/// Verifies the signature of a token, then its times, issuer, audience, user and tenant.
pub fn verify(token: &str, keys: &KeySet, rules: &TokenRules, now: Time) -> Result<TokenClaims> {
    let body = open(token, keys)?;
    let seconds = now.0 as f64 / 1e6;
    let end = body.exp.ok_or_else(|| refused(ErrorCode::MissingExpiry, "the token has no expiry"))?;
    if seconds >= end + LEEWAY_SECONDS {
        return Err(refused(ErrorCode::ExpiredToken, "the token has expired").hint("get a new one"));
    }
    if body.nbf.is_some_and(|start| seconds + LEEWAY_SECONDS < start) {
        return Err(refused(ErrorCode::TokenNotYetValid, "the token is not valid yet")
            .hint("wait, or check the clocks of the issuer and of this machine"));
    }
    if !rules.issuers.is_empty() && !body.iss.as_ref().is_some_and(|issuer| rules.issuers.contains(issuer)) {
        return Err(refused(ErrorCode::WrongIssuer, "the token is from an issuer that is not trusted here"));
    }
    if !rules.audiences.is_empty() && !body.aud.as_ref().is_some_and(|to| to.any_of(&rules.audiences)) {
        return Err(refused(ErrorCode::WrongAudience, "the token is meant for another audience")
            .hint("ask the issuer for a token with this server as audience (`aud`)"));
    }
    let named = |claim: Option<String>| claim.filter(|text| !text.is_empty());
    let user = named(body.sub).ok_or_else(|| refused(ErrorCode::MissingUser, "the token names no user (`sub`)"))?;
    let tenant =
        named(body.tenant).ok_or_else(|| refused(ErrorCode::MissingTenant, "the token names no tenant (`tenant`)"))?;
    let listed = body.scopes.unwrap_or_default();
    let spaced = body.scope.unwrap_or_default();
    let scopes = spaced.split(' ').map(ToString::to_string).chain(listed).filter(|scope| !scope.is_empty()).collect();
    let agents = match (named(body.agent_id), body.agents) {
        (None, None) => None,
        (one, several) => Some(one.into_iter().chain(several.unwrap_or_default()).collect()),
    };
    Ok(TokenClaims { user, tenant, project: named(body.project), scopes, agents })
}

/// The body of a token that one of the keys signed.
fn open(token: &str, keys: &KeySet) -> Result<Body> {
    if token.len() > TOKEN_BYTES {
        return Err(malformed("it is too long"));
    }
    let parts: Vec<&str> = token.split('.').collect();
    let [header, body, signature] = parts[..] else { return Err(malformed("it does not have three parts")) };
    let signed = &token[..header.len() + 1 + body.len()];
    let header: Header = part(header)?;
    if header.alg.eq_ignore_ascii_case("none") {
        return Err(refused(ErrorCode::UnsignedToken, "the token is not signed"));
    }
    if header.crit.is_some() {
        return Err(malformed("it demands extensions (`crit`)"));
    }
    let key = keys.key_for(header.kid.as_deref(), &header.alg).ok_or_else(|| {
        refused(ErrorCode::UnknownKey, "the token is signed with a key that is not known here")
            .hint("tokens name their key as `kid`; add it to the file of keys, or let the issuer publish it")
    })?;
    if key.algorithm().name() != header.alg {
        return Err(refused(ErrorCode::WrongAlgorithm, "the token is signed in another way than its key allows"));
    }
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| malformed("its signature is not base64url"))?;
    if !key.signed(signed.as_bytes(), &signature) {
        return Err(refused(ErrorCode::BadSignature, "the signature of the token is wrong"));
    }
    part(body)
}

fn part<T: DeserializeOwned>(text: &str) -> Result<T> {
    let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| malformed("it is not base64url"))?;
    // The message of serde is not passed on, because it may quote the token.
    serde_json::from_slice(&json).map_err(|_| malformed("it is not the JSON of a token"))
}

fn malformed(why: &str) -> lukasa_model::Error {
    refused(ErrorCode::InvalidToken, format!("the token cannot be read: {why}"))
}
