//! Access keys: their user, scopes and expiry. Only the hash of the secret is stored.
//!
//! Like [`crate::Derived`], keys are not facts: they are in no log, no dump and no hash. Unlike derived data, they
//! cannot be recomputed.

use lukasa_model::json::Hash;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Time};
use std::collections::BTreeSet;

/// Access keys of many tenants.
///
/// Contract, checked by `tests/contract/keys.rs` on every store:
/// - Each call is atomic and, except `note_use`, durable.
/// - A key never changes, except that it is revoked at most once and that its last use is updated.
/// - A key can be read by its id without knowing its tenant, because authentication comes first. All other methods see only
///   the keys of one tenant.
pub trait AccessKeys: Send + Sync {
    /// Stores a new key; `key_exists` if its id is taken.
    fn add(&self, key: &AccessKey) -> Result<()>;

    /// Returns the key with exactly this id, of any tenant.
    fn find(&self, id: &str) -> Result<Option<AccessKey>>;

    /// Returns the keys of a tenant, oldest first, then by id.
    fn of_tenant(&self, tenant: &str) -> Result<Vec<AccessKey>>;

    /// Revokes a key of the tenant permanently. Revoking again changes nothing. Returns the key, or `None` if the
    /// tenant has no such key.
    fn revoke(&self, tenant: &str, id: &str, at: Time) -> Result<Option<AccessKey>>;

    /// Records when a key of the tenant was used, unless a later use is recorded. Returns false if it was not recorded,
    /// because a busy store skips this instead of waiting; the next use records it.
    fn note_use(&self, tenant: &str, id: &str, at: Time) -> Result<bool>;
}

/// A key with which a program authenticates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessKey {
    /// Not secret: it identifies the key in lists and logs.
    pub id: String,
    /// SHA-256 of the secret. No slow hash is needed: the secret is 256 random bits and cannot be guessed. Slow hashes
    /// are for secrets that people choose.
    pub secret: Hash,
    pub tenant: String,
    /// `None`: every project of the tenant.
    pub project: Option<String>,
    /// The user that the key acts for.
    pub user: String,
    /// Permissions such as `graph:read`.
    pub scopes: BTreeSet<String>,
    /// Agents that the key may act as; empty: those of its user.
    pub agents: BTreeSet<String>,
    pub created_at: Time,
    /// `None`: the key does not expire.
    pub expires_at: Option<Time>,
    /// `None`: the key is not revoked.
    pub revoked_at: Option<Time>,
    /// `None`: never. May be behind by some uses, see [`AccessKeys::note_use`].
    pub last_used: Option<Time>,
}

impl AccessKey {
    /// The stored form of the scopes, which contain no spaces.
    pub(crate) fn scope_text(&self) -> String {
        self.scopes.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn scopes_of(text: &str) -> BTreeSet<String> {
        text.split_whitespace().map(ToString::to_string).collect()
    }

    /// The stored form of the agents: a JSON list, or `None` if empty.
    pub(crate) fn agent_text(&self) -> Option<String> {
        // Serialising a list of strings cannot fail.
        (!self.agents.is_empty()).then(|| serde_json::to_string(&self.agents).unwrap_or_default())
    }

    /// Parses stored agents. Unreadable text is an error, because an empty list would extend what the key may do.
    pub(crate) fn agents_of(text: Option<&str>) -> Result<BTreeSet<String>> {
        let Some(text) = text else { return Ok(BTreeSet::new()) };
        serde_json::from_str(text).map_err(|e| {
            Error::new(
                ErrorKind::Internal,
                ErrorCode::CorruptStore,
                format!("the agents of an access key cannot be read: {e}"),
            )
        })
    }
}

pub(crate) fn key_exists(id: &str) -> Error {
    Error::conflict(ErrorCode::KeyExists, format!("there is a key `{id}` already")).hint("make another one")
}
