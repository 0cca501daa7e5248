//! Keys that let programs in: who they speak for, what they may do, until when. Of the secret only its hash is kept.
//!
//! Like [`crate::Derived`] they are no facts: in no log, no dump and no hash. Unlike it they cannot be made again.

use lukasa_model::json::Hash;
use lukasa_model::{Error, ErrorKind, Result, Time};
use std::collections::BTreeSet;

/// Keys of many tenants.
///
/// Contract, checked by `tests/contract/keys.rs` on every store:
/// - Each call is atomic and, but for `note_use`, durable by itself.
/// - A key never changes, but for when it was revoked, which happens once, and when it was last used.
/// - Whoever names its id finds a key, whatever its tenant: who comes in has no tenant yet. All else is the tenant's own.
pub trait AccessKeys: Send + Sync {
    /// Keeps a new key; `key_exists` if its id is taken.
    fn add(&self, key: &AccessKey) -> Result<()>;

    fn find(&self, id: &str) -> Result<Option<AccessKey>>;

    /// The keys of a tenant, oldest first, then by id.
    fn of_tenant(&self, tenant: &str) -> Result<Vec<AccessKey>>;

    /// Ends a key of the tenant for good. One that is revoked already stays as it is. The key as it is now; none if the
    /// tenant has no such key.
    fn revoke(&self, tenant: &str, id: &str, at: Time) -> Result<Option<AccessKey>>;

    /// Notes when a key of the tenant was used, unless a later use is noted. Whether it is noted: a store that is busy
    /// does not make anybody wait for this, and the next use will tell.
    fn note_use(&self, tenant: &str, id: &str, at: Time) -> Result<bool>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessKey {
    /// Not secret: it names the key in lists and logs.
    pub id: String,
    /// Of the secret. A plain SHA-256 will do: the secret is 256 random bits, which nobody can guess from its hash
    /// however fast hashing is; slow hashes are for secrets that people choose.
    pub secret: Hash,
    pub tenant: String,
    /// None: every project of the tenant.
    pub project: Option<String>,
    /// Whom the key speaks for.
    pub user: String,
    pub scopes: BTreeSet<String>,
    /// Agents it may act as; none named: those of its user.
    pub agents: BTreeSet<String>,
    pub created_at: Time,
    /// None: never.
    pub expires_at: Option<Time>,
    pub revoked_at: Option<Time>,
    pub last_used: Option<Time>,
}

impl AccessKey {
    /// Scopes as they are kept: none of them contains a space.
    pub(crate) fn scope_text(&self) -> String {
        self.scopes.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn scopes_of(text: &str) -> BTreeSet<String> {
        text.split_whitespace().map(ToString::to_string).collect()
    }

    /// Agents as they are kept: a JSON list, or nothing for none.
    pub(crate) fn agent_text(&self) -> Option<String> {
        // A list of texts can always be written.
        (!self.agents.is_empty()).then(|| serde_json::to_string(&self.agents).unwrap_or_default())
    }

    /// What is no such list any more must not widen what the key may do.
    pub(crate) fn agents_of(text: Option<&str>) -> Result<BTreeSet<String>> {
        let Some(text) = text else { return Ok(BTreeSet::new()) };
        serde_json::from_str(text).map_err(|e| {
            Error::new(ErrorKind::Internal, "corrupt_store", format!("the agents of an access key cannot be read: {e}"))
        })
    }
}

pub(crate) fn key_exists(id: &str) -> Error {
    Error::conflict("key_exists", format!("there is a key `{id}` already")).hint("make another one")
}
