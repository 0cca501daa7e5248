//! Access keys for programs: creating, writing, parsing and looking them up.

use super::refused;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lukasa_model::id::check_text;
use lukasa_model::json::Hash;
use lukasa_model::{Error, ErrorCode, Result, Scope, Time, limits};
use lukasa_store::{AccessKey, AccessKeys};
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::BTreeSet;
use std::fmt;
use subtle::ConstantTimeEq;

/// Every key begins with this, so that people and leak scanners recognise one.
pub const PREFIX: &str = "lk_";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;
/// Resolution of the recorded last use: a key causes at most one write an hour.
const USE_MICROSECONDS: i64 = 3_600_000_000;

/// The properties of a key to create.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// The tenant that the key gives access to.
    pub tenant: String,
    /// None: every project of the tenant.
    pub project: Option<String>,
    /// The user that requests with the key are recorded under.
    pub user: String,
    /// The permissions of the key; at least one.
    pub scopes: BTreeSet<String>,
    /// Agents the key may act as. Empty: those of its user.
    pub agents: BTreeSet<String>,
    /// None: the key does not expire.
    pub expires_at: Option<Time>,
}

/// A key with its secret: `lk_<id>_<secret>`. It is shown once, when the key is created, and never stored.
pub struct AccessKeyToken {
    id: String,
    secret: [u8; SECRET_BYTES],
}

/// Omits the secret.
impl fmt::Debug for AccessKeyToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}_…", self.id)
    }
}

impl AccessKeyToken {
    fn draw() -> Result<AccessKeyToken> {
        let (random, mut id, mut secret) = (SystemRandom::new(), [0; ID_BYTES], [0; SECRET_BYTES]);
        for place in [&mut id[..], &mut secret[..]] {
            random.fill(place).map_err(|_| Error::internal("the system gave no random bytes"))?;
        }
        Ok(AccessKeyToken { id: id.iter().map(|byte| format!("{byte:02x}")).collect(), secret })
    }

    /// Parses a key. None if the text does not have the form of one.
    pub fn parse(text: &str) -> Option<AccessKeyToken> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_id = id.len() == 2 * ID_BYTES && id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let secret = URL_SAFE_NO_PAD.decode(secret).ok()?.try_into().ok()?;
        is_id.then(|| AccessKeyToken { id: id.into(), secret })
    }

    /// The public part of the key, which names it in lists and logs.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The key as clients send it, with its secret. Show it only to the user that requested it.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}_{}", self.id, URL_SAFE_NO_PAD.encode(self.secret))
    }

    fn hash(&self) -> Hash {
        Hash::of(&self.secret)
    }
}

/// Creates a key and stores it without its secret.
pub fn create(keys: &dyn AccessKeys, new: NewKey, now: Time) -> Result<(AccessKeyToken, AccessKey)> {
    Scope::new(&*new.tenant, new.project.as_deref().unwrap_or("any"))?;
    check_text("user", &new.user, limits::REF_NAME_BYTES)?;
    if new.scopes.is_empty() {
        return Err(Error::invalid(ErrorCode::InvalidScope, "a key without scopes may do nothing")
            .hint("name some, for example graph:read and graph:search:read"));
    }
    for scope in &new.scopes {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ":_-*".contains(c);
        if scope.len() > limits::NAME_BYTES || scope.is_empty() || !scope.chars().all(plain) {
            return Err(Error::invalid(ErrorCode::InvalidScope, format!("`{scope}` is no scope"))
                .hint("scopes look like graph:read or graph:search:*"));
        }
    }
    new.agents.iter().try_for_each(|agent| check_text("agent", agent, limits::REF_NAME_BYTES))?;
    if new.expires_at.is_some_and(|end| end <= now) {
        return Err(Error::invalid(ErrorCode::InvalidTime, "the key would have expired before it was made"));
    }
    let token = AccessKeyToken::draw()?;
    let key = AccessKey {
        id: token.id.clone(),
        secret: token.hash(),
        tenant: new.tenant,
        project: new.project,
        user: new.user,
        scopes: new.scopes,
        agents: new.agents,
        created_at: now,
        expires_at: new.expires_at,
        revoked_at: None,
        last_used: None,
    };
    keys.add(&key)?;
    Ok((token, key))
}

/// Looks up the key that was sent, whether or not it is still in force. The error does not reveal whether the id exists
/// to a client without the secret.
pub fn find(keys: &dyn AccessKeys, text: &str) -> Result<AccessKey> {
    let unknown = || refused(ErrorCode::InvalidKey, "the key is unknown").hint("`lukasa key create` makes one");
    let token = AccessKeyToken::parse(text).ok_or_else(unknown)?;
    let found = keys.find(&token.id)?;
    // Always compares, so that an unknown id takes as long as a wrong secret.
    let kept = found.as_ref().map_or([0; 32], |key| key.secret.0);
    let same = bool::from(kept.ct_eq(&token.hash().0));
    found.filter(|_| same).ok_or_else(unknown)
}

/// Refuses a revoked or expired key, and records the use of any other.
pub fn check(keys: &dyn AccessKeys, key: &AccessKey, now: Time) -> Result<()> {
    if key.revoked_at.is_some() {
        return Err(refused(ErrorCode::RevokedKey, format!("the key `{}` was revoked", key.id)));
    }
    if key.expires_at.is_some_and(|end| end <= now) {
        return Err(refused(ErrorCode::ExpiredKey, format!("the key `{}` has expired", key.id))
            .hint("`lukasa key create` makes another one"));
    }
    let hour = Time(now.0 - now.0.rem_euclid(USE_MICROSECONDS));
    if key.last_used.is_none_or(|used| used < hour) {
        // A busy store may skip this; the next use records it.
        keys.note_use(&key.tenant, &key.id, hour)?;
    }
    Ok(())
}
