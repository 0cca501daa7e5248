//! Keys that verify tokens: a JSON Web Key Set (JWKS) in a file or at a URL, or one shared secret.

mod remote;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use lukasa_store::Clock;
use parking_lot::Mutex;
use remote::KeyUrl;
use ring::{hmac, signature};
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Shorter secrets can be found by brute force (RFC 7518, 3.2).
const SECRET_BYTES: usize = 32;
/// Largest key file: enough for some hundreds of keys.
const FILE_BYTES: u64 = 1 << 20;

/// Signature algorithm of a key. There is one per kind of key, so that a token cannot choose another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureAlgorithm {
    /// HMAC with SHA-256: a shared secret.
    Hs256,
    /// RSA with SHA-256.
    Rs256,
    /// ECDSA on the curve P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl SignatureAlgorithm {
    /// The name in the header of a token (`alg`).
    pub fn name(self) -> &'static str {
        match self {
            SignatureAlgorithm::Hs256 => "HS256",
            SignatureAlgorithm::Rs256 => "RS256",
            SignatureAlgorithm::Es256 => "ES256",
            SignatureAlgorithm::EdDsa => "EdDSA",
        }
    }
}

/// A key that verifies signatures, with its id.
pub struct VerifyingKey {
    /// The id by which tokens name the key (`kid`).
    pub id: Option<String>,
    material: Material,
}

enum Material {
    Secret(hmac::Key),
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// An uncompressed point: 4, x, y.
    P256([u8; 65]),
    Ed25519(Vec<u8>),
}

/// Omits the key material.
impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} key {:?}", self.algorithm().name(), self.id)
    }
}

impl VerifyingKey {
    fn secret(id: Option<String>, secret: &[u8]) -> Result<VerifyingKey> {
        if secret.len() < SECRET_BYTES {
            return Err(Error::invalid(
                ErrorCode::WeakKey,
                format!("a secret of {} bytes is too short, {SECRET_BYTES} are needed", secret.len()),
            )
            .hint("make one with `openssl rand -base64 48`"));
        }
        Ok(VerifyingKey { id, material: Material::Secret(hmac::Key::new(hmac::HMAC_SHA256, secret)) })
    }

    /// The only algorithm that the key is used with.
    pub fn algorithm(&self) -> SignatureAlgorithm {
        match self.material {
            Material::Secret(_) => SignatureAlgorithm::Hs256,
            Material::Rsa { .. } => SignatureAlgorithm::Rs256,
            Material::P256(_) => SignatureAlgorithm::Es256,
            Material::Ed25519(_) => SignatureAlgorithm::EdDsa,
        }
    }

    /// Whether this key made the signature. HMACs are compared in constant time.
    pub fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let checked = match &self.material {
            Material::Secret(key) => hmac::verify(key, message, signature),
            Material::Rsa { n, e } => {
                let key = signature::RsaPublicKeyComponents { n, e };
                key.verify(&signature::RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            Material::P256(point) => {
                signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            Material::Ed25519(key) => {
                signature::UnparsedPublicKey::new(&signature::ED25519, key).verify(message, signature)
            }
        };
        checked.is_ok()
    }
}

/// The keys in force.
#[derive(Debug)]
pub struct KeySet(Vec<VerifyingKey>);

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Jwk>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    k: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

impl KeySet {
    /// One shared secret without an id.
    pub fn secret(secret: &[u8]) -> Result<KeySet> {
        Ok(KeySet(vec![VerifyingKey::secret(None, secret)?]))
    }

    /// Reads a JWKS. Keys for another purpose or of another kind are skipped, because issuers publish all their keys in
    /// one file. A malformed signing key of a supported kind is an error.
    pub fn jwks(text: &str) -> Result<KeySet> {
        // The message of serde is not passed on, because it may quote part of a secret.
        let set: Jwks = serde_json::from_str(text).map_err(|e| {
            invalid(format!("no set of keys: line {}, column {}", e.line(), e.column()))
                .hint("a file of keys looks like {\"keys\": [{\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"kid\": …, \"x\": …}]}")
        })?;
        let mut keys: Vec<VerifyingKey> = Vec::new();
        for (number, jwk) in set.keys.into_iter().enumerate() {
            let Some(key) = jwk.read().map_err(|e| e.at(format!("key {}", number + 1)))? else { continue };
            if key.id.is_some() && keys.iter().any(|other| other.id == key.id) {
                return Err(invalid(format!("two keys have the id of key {}", number + 1)));
            }
            keys.push(key);
        }
        if keys.is_empty() {
            return Err(invalid("there is no key to verify with")
                .hint("keys of kind oct, OKP (Ed25519), EC (P-256) and RSA are understood"));
        }
        Ok(KeySet(keys))
    }

    /// Reads a public JWKS, in which a shared secret is no secret: such keys are skipped.
    fn published(text: &str) -> Result<KeySet> {
        let KeySet(mut keys) = KeySet::jwks(text)?;
        keys.retain(|key| !matches!(key.material, Material::Secret(_)));
        if keys.is_empty() {
            return Err(invalid("there is no public key to verify with")
                .hint("a shared secret (kty oct) is only accepted from a file"));
        }
        Ok(KeySet(keys))
    }

    /// Selects the key for a token: the one that it names or, if it names none, the only key with its algorithm.
    pub fn key_for(&self, id: Option<&str>, algorithm: &str) -> Option<&VerifyingKey> {
        match id {
            Some(id) => self.0.iter().find(|key| key.id.as_deref() == Some(id)),
            None => {
                let mut fitting = self.0.iter().filter(|key| key.algorithm().name() == algorithm);
                // A set of one key is unambiguous, even if the algorithm is wrong.
                let only = self.0.first().filter(|_| self.0.len() == 1);
                only.or_else(|| fitting.next().filter(|_| fitting.next().is_none()))
            }
        }
    }
}

impl Jwk {
    fn read(self) -> Result<Option<VerifyingKey>> {
        let algorithm = match (self.kty.as_str(), self.crv.as_deref()) {
            ("oct", _) => SignatureAlgorithm::Hs256,
            ("RSA", _) => SignatureAlgorithm::Rs256,
            ("OKP", Some("Ed25519")) => SignatureAlgorithm::EdDsa,
            ("EC", Some("P-256")) => SignatureAlgorithm::Es256,
            _ => return Ok(None),
        };
        let other_purpose = self.purpose.as_deref().is_some_and(|purpose| purpose != "sig");
        // RFC 9864 names this algorithm `Ed25519`.
        let other_way = self.alg.as_deref().is_some_and(|alg| {
            alg != algorithm.name() && !(algorithm == SignatureAlgorithm::EdDsa && alg == "Ed25519")
        });
        if other_purpose || other_way {
            return Ok(None);
        }
        let material = match algorithm {
            SignatureAlgorithm::Hs256 => return VerifyingKey::secret(self.kid, &bytes("k", self.k)?).map(Some),
            SignatureAlgorithm::Rs256 => {
                let (n, e) = (positive(bytes("n", self.n)?), positive(bytes("e", self.e)?));
                if n.len() < 256 {
                    return Err(Error::invalid(
                        ErrorCode::WeakKey,
                        format!("an RSA key of {} bits is too short, 2048 are needed", n.len() * 8),
                    ));
                }
                Material::Rsa { n, e }
            }
            SignatureAlgorithm::Es256 => {
                let mut point = [4; 65];
                point[1..33].copy_from_slice(&bytes_32("x", self.x)?);
                point[33..].copy_from_slice(&bytes_32("y", self.y)?);
                Material::P256(point)
            }
            SignatureAlgorithm::EdDsa => Material::Ed25519(bytes_32("x", self.x)?),
        };
        Ok(Some(VerifyingKey { id: self.kid, material }))
    }
}

fn bytes(field: &str, text: Option<String>) -> Result<Vec<u8>> {
    let text = text.ok_or_else(|| invalid(format!("`{field}` is missing")))?;
    URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| invalid(format!("`{field}` is not base64url")))
}

fn bytes_32(field: &str, text: Option<String>) -> Result<Vec<u8>> {
    let bytes = bytes(field, text)?;
    if bytes.len() == 32 { Ok(bytes) } else { Err(invalid(format!("`{field}` has {} bytes, not 32", bytes.len()))) }
}

/// Strips the leading zeros that some issuers write.
fn positive(number: Vec<u8>) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number[zeros..].to_vec()
}

fn invalid(message: impl Into<String>) -> Error {
    Error::invalid(ErrorCode::InvalidKeys, message)
}

/// Where the keys come from.
pub enum KeySource {
    /// One shared secret that does not change.
    Fixed(Arc<KeySet>),
    /// A file that is reread when it changes.
    File(KeyFile),
    /// What an issuer publishes at a URL.
    Url(KeyUrl),
}

impl KeySource {
    /// One shared secret. An error if it is too short.
    pub fn secret(secret: &[u8]) -> Result<KeySource> {
        Ok(KeySource::Fixed(Arc::new(KeySet::secret(secret)?)))
    }

    /// A file with a shared secret; white space around it is ignored.
    pub fn secret_file(path: &Path) -> Result<KeySource> {
        KeyFile::open(path, |text| KeySet::secret(text.trim().as_bytes())).map(KeySource::File)
    }

    /// A file with a JWKS.
    pub fn jwks_file(path: &Path) -> Result<KeySource> {
        KeyFile::open(path, KeySet::jwks).map(KeySource::File)
    }

    /// What an issuer publishes, by convention at its `jwks_uri`.
    pub fn jwks_url(url: &str, clock: Arc<dyn Clock>) -> Result<KeySource> {
        KeyUrl::open(url, clock).map(KeySource::Url)
    }

    /// The keys in force now. May wait for the issuer, so do not call this on a thread of an asynchronous runtime.
    pub fn current(&self) -> Result<Arc<KeySet>> {
        match self {
            KeySource::Fixed(keys) => Ok(Arc::clone(keys)),
            KeySource::File(file) => file.current(),
            KeySource::Url(url) => url.current(),
        }
    }

    /// Rereads the keys, for a token whose key is not among [`current`](Self::current) ones. None if the
    /// source cannot be reread. May wait for the issuer.
    pub fn renewed(&self) -> Result<Option<Arc<KeySet>>> {
        match self {
            KeySource::Fixed(_) | KeySource::File(_) => Ok(None),
            KeySource::Url(url) => url.renewed().map(Some),
        }
    }
}

/// A key file that is reread when it changes. While it cannot be read, no token is accepted: a removed key must not
/// stay in force. Replace the file by renaming a new one over it.
pub struct KeyFile {
    path: PathBuf,
    read: fn(&str) -> Result<KeySet>,
    held: Mutex<(Stamp, Arc<KeySet>)>,
}

/// Identifies one state of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    changed: Option<SystemTime>,
    bytes: u64,
    number: u64,
}

impl KeyFile {
    fn open(path: &Path, read: fn(&str) -> Result<KeySet>) -> Result<KeyFile> {
        let held = load(path, read)?;
        Ok(KeyFile { path: path.into(), read, held: Mutex::new(held) })
    }

    fn current(&self) -> Result<Arc<KeySet>> {
        let now = stamp(&self.path)?;
        let mut held = self.held.lock();
        if held.0 != now {
            *held = load(&self.path, self.read)?;
        }
        Ok(Arc::clone(&held.1))
    }
}

fn load(path: &Path, read: fn(&str) -> Result<KeySet>) -> Result<(Stamp, Arc<KeySet>)> {
    // Taken before the text is read: a change in between is then noticed by the next call.
    let stamp = stamp(path)?;
    if stamp.bytes > FILE_BYTES {
        return Err(invalid(format!("`{}` is larger than {FILE_BYTES} bytes", path.display())));
    }
    let text = std::fs::read_to_string(path).map_err(|e| unreadable(path, &e))?;
    let keys = read(&text).map_err(|e| e.at(format!("`{}`", path.display())))?;
    Ok((stamp, Arc::new(keys)))
}

fn stamp(path: &Path) -> Result<Stamp> {
    let about = std::fs::metadata(path).map_err(|e| unreadable(path, &e))?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&about);
    #[cfg(not(unix))]
    let number = 0;
    Ok(Stamp { changed: about.modified().ok(), bytes: about.len(), number })
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, ErrorCode::KeysUnreadable, format!("`{}`: {error}", path.display()))
        .hint("put the file of keys back; no token is accepted without it")
}
