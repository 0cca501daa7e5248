//! The audit key: hashes user names and requests so that they cannot be guessed from a list, and seals the ends of
//! chains.

use hmac::{Hmac, KeyInit, Mac};
use lukasa_model::json::Hash;
use lukasa_model::{Error, ErrorCode, Result};
use lukasa_store::audit::{AuditHead, Seals};
use sha2::Sha256;
use std::fmt;

/// A shorter key can be found by trying.
const LEAST_BYTES: usize = 16;
/// Hex digits of a hashed name: enough to avoid collisions.
const DIGITS: usize = 32;

/// The secret key of the audit record.
pub struct AuditKey {
    mac: Hmac<Sha256>,
    id: String,
    /// Keys whose seals are accepted besides this key's, for example the previous key.
    known: Vec<AuditKey>,
}

impl AuditKey {
    /// Returns an error if the key is too short.
    pub fn new(bytes: &[u8]) -> Result<AuditKey> {
        if bytes.len() < LEAST_BYTES {
            return Err(Error::invalid(
                ErrorCode::WeakKey,
                format!("the key of the record has fewer than {LEAST_BYTES} bytes"),
            )
            .hint("32 random bytes are a good key"));
        }
        let mac = Hmac::<Sha256>::new_from_slice(bytes)
            .map_err(|e| Error::internal(format!("a key of any length should do: {e}")))?;
        let mut key = AuditKey { mac, id: String::new(), known: Vec::new() };
        key.id = key.of(&["id"]).digits(16);
        Ok(key)
    }

    /// Accepts seals of these keys too. They are not used to seal.
    #[must_use]
    pub fn knowing(mut self, keys: impl IntoIterator<Item = AuditKey>) -> AuditKey {
        self.known.extend(keys);
        self
    }

    /// The hash of a user's name. The same user has another hash in another tenant.
    pub fn user(&self, tenant: &str, user: &str) -> String {
        self.of(&["user", tenant, user]).digits(DIGITS)
    }

    /// The hash of a request.
    pub fn request(&self, operation: &str, request: &str) -> String {
        self.of(&["request", operation, request]).digits(DIGITS)
    }

    /// A keyed hash of the parts. Each part is preceded by its length, so that different parts cannot yield the same
    /// input.
    fn of(&self, parts: &[&str]) -> Hash {
        let mut mac = self.mac.clone();
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        Hash(mac.finalize().into_bytes().into())
    }
}

impl Seals for AuditKey {
    fn seal(&self, head: &AuditHead) -> Hash {
        let (number, hash) = (head.number.to_string(), head.hash.to_string());
        self.of(&["seal", &head.tenant, &head.server, &number, &hash])
    }

    fn key_id(&self) -> &str {
        &self.id
    }

    fn holds(&self, head: &AuditHead) -> Option<bool> {
        let key = std::iter::once(self).chain(&self.known).find(|key| key.id == head.seal_key)?;
        Some(key.seal(head) == head.seal)
    }
}

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuditKey({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    #[test]
    fn names_depend_on_key_and_tenant() {
        let (one, other) = (AuditKey::new(&[1; 32]).unwrap(), AuditKey::new(&[2; 32]).unwrap());
        assert_eq!(one.user("a", "ada"), one.user("a", "ada"));
        assert_eq!(one.user("a", "ada").len(), DIGITS);
        assert_ne!(one.user("a", "ada"), one.user("b", "ada"));
        assert_ne!(one.user("a", "ada"), other.user("a", "ada"));
        assert_ne!(one.user("ab", "c"), one.user("a", "bc"), "parts are kept apart");
        assert_ne!(one.key_id(), other.key_id());
        assert_eq!(AuditKey::new(b"short").unwrap_err().code, ErrorCode::WeakKey);
        assert!(!format!("{one:?}").contains("0101"));
    }
}
