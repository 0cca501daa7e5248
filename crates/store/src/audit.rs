//! The audit trail: which caller ran which operation, when, and with what status. Entries form one hash chain per
//! server and tenant, and are only ever added.
//!
//! Like [`crate::AccessKeys`], entries are not facts: they are in no log, no dump and no release.

mod walk;

pub use walk::{AuditFault, AuditFlaw, ChainReport, Seals, walk};

use lukasa_model::json::Hash;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The audit chains of many servers and tenants.
///
/// Contract, checked by `tests/contract/audit.rs` on every store:
/// - `append` adds all notes or none, at the end of the chains of that server, one chain per tenant. When it returns, the
///   entries survive a crash of this process; with `durable`, also a crash of the machine.
/// - Any number of processes may append at once. Numbers of a chain are 1, 2, 3, … without gaps.
/// - Appending does not wait for writers of facts, and they do not wait for it.
/// - No method changes or removes an entry. A tenant sees only its own entries.
/// - `append` fails with `foreign_seal` if the end of the chain does not carry a valid seal of a known key: a new seal would
///   hide tampering.
pub trait AuditTrail: Send + Sync {
    /// Appends notes to the chains of a server and seals their new ends. Fails with `foreign_seal`.
    fn append(&self, server: &str, notes: &[AuditNote], seals: &dyn Seals, durable: bool) -> Result<()>;

    /// Returns the heads of a tenant's chains, one per server.
    fn heads(&self, tenant: &str) -> Result<Vec<AuditHead>>;

    /// Returns the servers that have entries of a tenant, sorted, whether or not they have a head.
    fn servers(&self, tenant: &str) -> Result<Vec<String>>;

    /// Returns the entries of one chain after a number, ascending, at most `limit`.
    fn chain(&self, tenant: &str, server: &str, after: u64, limit: usize) -> Result<Vec<AuditEntry>>;

    /// Returns matching entries, newest first, at most `limit`. Entries of the same time are ordered by server, then by
    /// descending number.
    fn find(&self, tenant: &str, find: &AuditFilter, limit: usize) -> Result<Vec<AuditEntry>>;
}

/// What is recorded about one operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditNote {
    pub tenant: String,
    pub project: String,
    /// When the operation ended.
    pub at: Time,
    /// A keyed hash of the calling user.
    pub user: Option<String>,
    pub agent: Option<String>,
    pub operation: String,
    /// The caller's scopes, separated by spaces; `*` for everything.
    pub scopes: String,
    /// A keyed hash of the request.
    pub request: String,
    /// `ok`, or the error code.
    pub status: String,
    /// Counts from the response, for example 12 `hits`.
    pub counts: BTreeMap<String, u64>,
    /// Whether the response was truncated.
    pub truncated: bool,
    /// How long the operation took, in microseconds.
    pub took_us: u64,
    pub request_id: Option<String>,
    /// The client's address, recorded for rejected callers. Entries without one omit the field, so that the hashes of
    /// older entries stay valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// A note in its chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub server: String,
    /// The position in the chain: 1, 2, 3, …
    pub number: u64,
    #[serde(flatten)]
    pub note: AuditNote,
    /// The hash of the preceding entry.
    pub previous: Hash,
    /// The hash over all fields above.
    pub hash: Hash,
}

/// The end of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditHead {
    pub tenant: String,
    pub server: String,
    /// The number of the last entry.
    pub number: u64,
    /// The hash of the last entry.
    pub hash: Hash,
    /// A keyed hash; the store does not have the key.
    pub seal: Hash,
    /// Identifies the key without revealing it.
    pub seal_key: String,
}

/// A filter: every field that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub project: Option<String>,
    pub operation: Option<String>,
    /// The keyed hash, as in the note.
    pub user: Option<String>,
    pub status: Option<String>,
    /// Inclusive.
    pub since: Option<Time>,
    /// Exclusive.
    pub until: Option<Time>,
}

impl AuditFilter {
    /// Whether a note matches every set field.
    pub fn matches(&self, note: &AuditNote) -> bool {
        let is = |wanted: &Option<String>, own: Option<&String>| wanted.is_none() || wanted.as_ref() == own;
        is(&self.project, Some(&note.project))
            && is(&self.operation, Some(&note.operation))
            && is(&self.user, note.user.as_ref())
            && is(&self.status, Some(&note.status))
            && self.since.is_none_or(|since| note.at >= since)
            && self.until.is_none_or(|until| note.at < until)
    }
}

impl AuditEntry {
    /// The `previous` hash of the first entry of a chain.
    pub fn start(tenant: &str, server: &str) -> Hash {
        digest(&("lukasa-audit-start-1", tenant, server))
    }

    /// Computes the hash of an entry: over its fields in this order, as JSON.
    pub fn digest(&self) -> Hash {
        let AuditEntry { server, number, note, previous, hash: _ } = self;
        digest(&("lukasa-audit-1", server, number, note, previous))
    }

    /// Builds the entry after the one with this number and hash.
    fn after(server: &str, number: u64, previous: Hash, note: &AuditNote) -> AuditEntry {
        let hash = previous;
        let mut entry = AuditEntry { server: server.into(), number: number + 1, note: note.clone(), previous, hash };
        entry.hash = entry.digest();
        entry
    }
}

fn digest(value: &impl Serialize) -> Hash {
    // Serialising text, numbers and maps with text keys cannot fail.
    Hash::of(&serde_json::to_vec(value).unwrap_or_default())
}

/// Turns notes into entries at the ends of their chains, and computes the new heads. `end` returns the current head of
/// a tenant's chain; it is called once per tenant.
pub(crate) fn linked(
    server: &str,
    notes: &[AuditNote],
    seals: &dyn Seals,
    mut end: impl FnMut(&str) -> Result<Option<AuditHead>>,
) -> Result<Vec<(AuditHead, Vec<AuditEntry>)>> {
    let mut by_tenant: BTreeMap<&str, Vec<&AuditNote>> = BTreeMap::new();
    for note in notes {
        by_tenant.entry(&note.tenant).or_default().push(note);
    }
    let mut chains = Vec::with_capacity(by_tenant.len());
    // Ordered by tenant, so that concurrent appends take locks in the same order and cannot deadlock.
    for (tenant, notes) in by_tenant {
        let (mut number, mut hash) = match end(tenant)? {
            None => (0, AuditEntry::start(tenant, server)),
            Some(head) if seals.holds(&head) == Some(true) => (head.number, head.hash),
            Some(_) => return Err(foreign_seal(server)),
        };
        let mut entries = Vec::with_capacity(notes.len());
        for note in notes {
            let entry = AuditEntry::after(server, number, hash, note);
            (number, hash) = (entry.number, entry.hash);
            entries.push(entry);
        }
        let mut head = AuditHead {
            tenant: tenant.into(),
            server: server.into(),
            number,
            hash,
            seal: hash,
            seal_key: seals.key_id().into(),
        };
        head.seal = seals.seal(&head);
        chains.push((head, entries));
    }
    Ok(chains)
}

fn foreign_seal(server: &str) -> Error {
    let message = format!("the chain `{server}` of the record does not end with the seal of a key that is known here");
    Error::new(ErrorKind::Unavailable, ErrorCode::ForeignSeal, message).hint(
        "name the file of the key it was sealed with in audit.known_key_files (LUKASA_AUDIT_KNOWN_KEY_FILES), \
         or name other chains with LUKASA_SERVER_ID",
    )
}

/// Formats counts for storage.
pub(crate) fn counts_text(counts: &BTreeMap<String, u64>) -> String {
    serde_json::to_string(counts).unwrap_or_default()
}

/// Parses stored counts. Unreadable text becomes counts that no entry has, so that verification reports the entry.
pub(crate) fn counts_of(text: &str) -> BTreeMap<String, u64> {
    serde_json::from_str(text).unwrap_or_else(|_| BTreeMap::from([("unreadable".to_string(), u64::MAX)]))
}
