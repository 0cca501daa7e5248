//! The record of operations: who asked for what, when, and how it ended. Entries form a chain of hashes per server and
//! tenant, and are only ever added.
//!
//! Like [`crate::AccessKeys`] they are no facts: in no log, no dump and no release.

mod walk;

pub use walk::{AuditFault, AuditFlaw, ChainReport, Seals, walk};

use lukasa_model::json::Hash;
use lukasa_model::{Error, ErrorKind, Result, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Chains of many servers and tenants.
///
/// Contract, checked by `tests/contract/audit.rs` on every store:
/// - `append` adds all it is given or nothing, at the end of the chains of that server, one per tenant. It returns once
///   they are there whatever happens to this process; `durable`, whatever happens to the machine.
/// - Any number of processes may append at once. Numbers of a chain are 1, 2, 3, … without holes.
/// - Nobody who appends waits for a writer of facts, nor a writer of facts for them.
/// - No method changes or removes an entry. A tenant sees its own.
/// - A chain whose end does not carry the seal of a known key is not appended to (`foreign_seal`): a new seal would hide
///   what was done to it.
pub trait AuditTrail: Send + Sync {
    fn append(&self, server: &str, notes: &[AuditNote], seals: &dyn Seals, durable: bool) -> Result<()>;

    /// How far the chains of a tenant have come, by server.
    fn heads(&self, tenant: &str) -> Result<Vec<AuditHead>>;

    /// Servers that have entries of a tenant, sorted, whether or not there is a head for them.
    fn servers(&self, tenant: &str) -> Result<Vec<String>>;

    /// Entries of one chain after a number, ascending, at most `limit`.
    fn chain(&self, tenant: &str, server: &str, after: u64, limit: usize) -> Result<Vec<AuditEntry>>;

    /// Entries that match, newest first, at most `limit`. At the same moment: by server, and later numbers first.
    fn find(&self, tenant: &str, find: &AuditFind, limit: usize) -> Result<Vec<AuditEntry>>;
}

/// What is told of one operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditNote {
    pub tenant: String,
    pub project: String,
    /// When it ended.
    pub at: Time,
    /// A keyed hash of who asked.
    pub user: Option<String>,
    pub agent: Option<String>,
    pub operation: String,
    /// What the caller was allowed, separated by spaces; `*` for everything.
    pub scopes: String,
    /// A keyed hash of what was asked.
    pub request: String,
    /// `ok`, or the code of the error.
    pub status: String,
    /// What the answer had, for example 12 `hits`.
    pub counts: BTreeMap<String, u64>,
    /// The answer says that there is more.
    pub truncated: bool,
    pub took_us: u64,
    pub request_id: Option<String>,
    /// From where it came, of somebody who was turned away. Not part of the text of entries without one, whose hashes are
    /// older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// A note in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub server: String,
    pub number: u64,
    #[serde(flatten)]
    pub note: AuditNote,
    /// Of the entry before it.
    pub previous: Hash,
    /// Of everything above.
    pub hash: Hash,
}

/// The end of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditHead {
    pub tenant: String,
    pub server: String,
    pub number: u64,
    pub hash: Hash,
    /// By a key that the store does not have.
    pub seal: Hash,
    /// Which key; says nothing about it.
    pub seal_key: String,
}

/// Everything that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFind {
    pub project: Option<String>,
    pub operation: Option<String>,
    pub user: Option<String>,
    pub status: Option<String>,
    /// At or after.
    pub since: Option<Time>,
    /// Before.
    pub until: Option<Time>,
}

impl AuditFind {
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
    /// What the first entry of a chain follows.
    pub fn start(tenant: &str, server: &str) -> Hash {
        digest(&("lukasa-audit-start-1", tenant, server))
    }

    /// The hash an entry must have: over its fields in this order, as JSON.
    pub fn digest(&self) -> Hash {
        let AuditEntry { server, number, note, previous, hash: _ } = self;
        digest(&("lukasa-audit-1", server, number, note, previous))
    }

    /// The entry that follows.
    fn after(server: &str, number: u64, previous: Hash, note: &AuditNote) -> AuditEntry {
        let hash = previous;
        let mut entry = AuditEntry { server: server.into(), number: number + 1, note: note.clone(), previous, hash };
        entry.hash = entry.digest();
        entry
    }
}

fn digest(value: &impl Serialize) -> Hash {
    // Text, numbers and maps with text for keys can always be written.
    Hash::of(&serde_json::to_vec(value).unwrap_or_default())
}

/// Notes as entries after the ends of their chains, and where the chains end then. `end` returns the present end of the
/// chain of a tenant; it is asked once for each.
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
    // In the order of tenants, so that two who append wait for each other at most in one direction.
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
    Error::new(ErrorKind::Unavailable, "foreign_seal", message).hint(
        "name the file of the key it was sealed with in audit.known_key_files (LUKASA_AUDIT_KNOWN_KEY_FILES), \
         or name other chains with LUKASA_SERVER_ID",
    )
}

/// Counts as they are kept.
pub(crate) fn counts_text(counts: &BTreeMap<String, u64>) -> String {
    serde_json::to_string(counts).unwrap_or_default()
}

/// Counts as they were kept; what is no such text any more becomes something that no entry has, and so is noticed.
pub(crate) fn counts_of(text: &str) -> BTreeMap<String, u64> {
    serde_json::from_str(text).unwrap_or_else(|_| BTreeMap::from([("unreadable".to_string(), u64::MAX)]))
}
