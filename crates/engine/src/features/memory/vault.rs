//! Encryption of sensitive contents with a key per agent (AES-256-GCM), from configuration.
//!
//! The text, title and metadata of an episode are encrypted. Its agent, time and links are not, because it must be possible to
//! find and delete it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lukasa_model::json::Hash;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// Length of a key, in bytes.
pub const KEY_BYTES: usize = 32;
const ALGORITHM: &str = "AES-256-GCM";

/// Keys by agent.
#[derive(Default)]
pub struct Vault {
    keys: BTreeMap<String, AgentKey>,
}

struct AgentKey {
    key: LessSafeKey,
    /// Identifies a key without revealing it.
    id: String,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("agents", &self.keys.keys().collect::<Vec<_>>()).finish()
    }
}

impl Vault {
    /// Creates a vault with a key for each of these agents, written as 64 hexadecimal digits or as base64 of 32 bytes.
    pub fn new<'a>(keys: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Vault> {
        let mut vault = Vault::default();
        for (agent, text) in keys {
            let bytes = read_key(text).ok_or_else(|| {
                Error::invalid(
                    ErrorCode::InvalidAgentKey,
                    format!("the key of agent `{agent}` is not {KEY_BYTES} bytes"),
                )
                .hint("write it as 64 hexadecimal digits or in base64; `openssl rand -hex 32` makes one")
            })?;
            let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| Error::internal("a key was refused"))?;
            let id = Hash::of(&[b"lukasa agent key\0", &bytes[..]].concat()).digits(16);
            vault.keys.insert(agent.to_owned(), AgentKey { key: LessSafeKey::new(key), id });
        }
        Ok(vault)
    }

    /// Whether a key is configured for the agent.
    pub fn has(&self, agent: &str) -> bool {
        self.keys.contains_key(agent)
    }

    /// Encrypts a value so that only the agent can decrypt it, under the given name.
    pub fn seal(&self, agent: &str, name: &str, value: &Value) -> Result<Value> {
        let key = self.key(agent)?;
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| Error::internal("no random numbers are to be had"))?;
        let mut data = value.to_string().into_bytes();
        let bound = Aad::from(bound(agent, name));
        key.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), bound, &mut data)
            .map_err(|_| Error::internal("a text could not be encrypted"))?;
        Ok(json!({
            "algorithm": ALGORITHM,
            "key_id": key.id,
            "nonce": STANDARD.encode(nonce),
            "data": STANDARD.encode(data),
        }))
    }

    /// Decrypts a value. Fails if the key is missing, is another one, or the data was changed.
    pub fn open(&self, agent: &str, name: &str, sealed: &Value) -> Result<Value> {
        let key = self.key(agent)?;
        if sealed["key_id"].as_str().is_some_and(|id| id != key.id) {
            return Err(Error::new(
                ErrorKind::Forbidden,
                ErrorCode::WrongAgentKey,
                format!("`{name}` was encrypted with another key of agent `{agent}`"),
            )
            .hint("configure the key it was written with"));
        }
        let read = |field: &str| sealed[field].as_str().and_then(|text| STANDARD.decode(text).ok());
        let damaged = || {
            Error::new(ErrorKind::Forbidden, ErrorCode::WrongAgentKey, format!("`{name}` cannot be decrypted"))
                .hint("its key is another one, or its data was changed")
        };
        let nonce: [u8; NONCE_LEN] = read("nonce").and_then(|nonce| nonce.try_into().ok()).ok_or_else(damaged)?;
        let mut data = read("data").ok_or_else(damaged)?;
        let plain = key
            .key
            .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(bound(agent, name)), &mut data)
            .map_err(|_| damaged())?;
        serde_json::from_slice(plain).map_err(|_| damaged())
    }

    fn key(&self, agent: &str) -> Result<&AgentKey> {
        self.keys.get(agent).ok_or_else(|| {
            Error::new(ErrorKind::Forbidden, ErrorCode::NoAgentKey, format!("no key is configured for agent `{agent}`"))
                .hint("see docs/memory.md, Sensitive episodes")
        })
    }
}

/// The associated data of a ciphertext, so that it cannot be used in another place.
fn bound(agent: &str, name: &str) -> Vec<u8> {
    format!("{agent}\0{name}").into_bytes()
}

fn read_key(text: &str) -> Option<[u8; KEY_BYTES]> {
    let text = text.trim();
    let is_hex = text.len() == KEY_BYTES * 2 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let bytes: Vec<u8> = if is_hex {
        (0..KEY_BYTES).map(|at| u8::from_str_radix(&text[at * 2..at * 2 + 2], 16)).collect::<Result<_, _>>().ok()?
    } else {
        STANDARD.decode(text).ok()?
    };
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    const OTHER: &str = "//8CAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn what_is_sealed_opens_with_its_key_and_name_alone() {
        let vault = Vault::new([("ada", ONE), ("bob", OTHER)]).unwrap();
        let content = json!({"content": "the master password is swordfish"});
        let sealed = vault.seal("ada", "episode:1", &content).unwrap();
        assert!(!sealed.to_string().contains("swordfish"));
        assert_eq!(vault.open("ada", "episode:1", &sealed).unwrap(), content);
        assert_ne!(
            vault.seal("ada", "episode:1", &content).unwrap()["data"],
            sealed["data"],
            "equal contents look different"
        );
        for (vault, agent, name, code) in [
            (&vault, "bob", "episode:1", "wrong_agent_key"),
            (&vault, "ada", "episode:2", "wrong_agent_key"),
            (&vault, "eve", "episode:1", "no_agent_key"),
            (&Vault::new([("ada", OTHER)]).unwrap(), "ada", "episode:1", "wrong_agent_key"),
        ] {
            assert_eq!(vault.open(agent, name, &sealed).unwrap_err().code.name(), code, "{agent} {name}");
        }
        let mut changed = sealed.clone();
        changed["data"] = json!(STANDARD.encode(b"something else entirely"));
        assert_eq!(vault.open("ada", "episode:1", &changed).unwrap_err().code, ErrorCode::WrongAgentKey);
    }

    #[test]
    fn keys_are_32_bytes_and_never_shown() {
        for text in ["", "00", "zz", "AAAA", &ONE[..62]] {
            let error = Vault::new([("ada", text)]).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidAgentKey);
            assert!(text.is_empty() || !error.message.contains(text));
        }
        let shown = format!("{:?}", Vault::new([("ada", ONE)]).unwrap());
        assert!(shown.contains("ada") && !shown.contains("0001"), "{shown}");
    }
}
