//! Entries of a project's log, and the hash chain that makes tampering evident.

use crate::id::{BranchNo, Tx};
use crate::json::rule::CanonicalRule;
use crate::json::{Hash, Hasher};
use crate::time::Time;
use crate::version::{Provenance, Version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransactionKind {
    FullRebuild,
    IncrementalRebuild,
    FileChange,
    AgentEdit,
    #[default]
    Api,
    Merge,
    Import,
    Branch,
    Release,
    Tag,
    Type,
}

/// Who wrote, why and from what source: sent with a batch, stored with its transaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Header {
    pub kind: TransactionKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The Git commit whose tree this transaction matches exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_commit: Option<String>,
    /// Default start of the periods in the batch, for example the commit's time; defaults to the time of recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_at: Option<Time>,
    /// Idempotency key: a batch sent again under the same id commits once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The rule of canonical text for the contents of this transaction. Set by the ledger.
    #[serde(skip_serializing_if = "CanonicalRule::is_first")]
    #[schemars(skip)]
    pub rule: CanonicalRule,
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transaction {
    pub tx: Tx,
    pub recorded_at: Time,
    /// The branch that was written to.
    pub branch: BranchNo,
    pub header: Header,
    /// The number of versions of objects.
    pub objects: u32,
    /// The number of versions of relationships.
    pub relationships: u32,
    /// Hash over the predecessor's hash, the header and all versions.
    pub hash: Hash,
}

impl Transaction {
    /// Returns the default start of periods: `valid_at` of the header, or the time of recording.
    pub fn valid_at(&self) -> Time {
        self.header.valid_at.unwrap_or(self.recorded_at)
    }
}

/// Buffer size in bytes: small parts are hashed together.
const TOGETHER: usize = 4_096;

/// Computes the hash of one transaction incrementally.
pub struct TransactionHasher {
    hash: Hasher,
    /// Bytes not yet hashed: hashing many small parts together is faster.
    next: Vec<u8>,
}

impl TransactionHasher {
    /// The hash before the first transaction.
    pub const START: Hash = Hash([0; 32]);

    /// Starts the hash of a transaction with the hash of its predecessor and its own header.
    pub fn new(previous: Hash, tx: Tx, recorded_at: Time, branch: BranchNo, header: &Header) -> TransactionHasher {
        let mut chain = TransactionHasher { hash: Hasher::default(), next: Vec::with_capacity(2 * TOGETHER) };
        chain.add(&previous.0);
        chain.add(&tx.0.to_be_bytes());
        chain.add(&recorded_at.0.to_be_bytes());
        chain.add(&branch.0.to_be_bytes());
        chain.text(&serde_json::to_string(header).expect("a header is plain data"));
        chain
    }

    /// Adds a version. Versions are added in the order of their ids, with the id and type of their fact.
    pub fn add_version(&mut self, id: Uuid, type_name: &str, s: &Version) {
        self.add(b"s");
        self.add(id.as_bytes());
        self.text(type_name);
        self.add(&s.version.0.to_be_bytes());
        self.add(&s.branch.0.to_be_bytes());
        self.add(&s.period.from.0.to_be_bytes());
        self.add(&s.period.to.0.to_be_bytes());
        self.add(&s.number.to_be_bytes());
        self.add(&(s.parents.len() as u64).to_be_bytes());
        for parent in &s.parents {
            self.add(&parent.0.to_be_bytes());
        }
        self.add(&s.hash.0);
        self.text(s.change.as_deref().unwrap_or_default());
    }

    fn text(&mut self, text: &str) {
        self.add(&(text.len() as u64).to_be_bytes());
        self.add(text.as_bytes());
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.next.len() > TOGETHER {
            self.hash.add(&self.next);
            self.next.clear();
        }
        self.next.extend_from_slice(bytes);
    }

    /// Adds a provenance entry. Entries are added in sorted order.
    pub fn add_provenance(&mut self, p: &Provenance) {
        self.add(b"p");
        self.add(&p.thing.0.to_be_bytes());
        self.add(&p.child.0.to_be_bytes());
        self.add(&p.parent.0.to_be_bytes());
        self.add(&[p.role as u8]);
    }

    /// Returns the hash, after all versions and provenance entries were added. The counts are part of it.
    pub fn finish(mut self, objects: u32, relationships: u32) -> Hash {
        self.add(b"e");
        self.add(&objects.to_be_bytes());
        self.add(&relationships.to_be_bytes());
        self.hash.add(&self.next);
        self.hash.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::MAIN;

    /// Header texts are part of stored hash chains, so they must not change.
    #[test]
    fn the_text_of_a_header_is_pinned() {
        let text = |header: &Header| serde_json::to_string(header).unwrap();
        assert_eq!(text(&Header::default()), r#"{"kind":"api"}"#);
        let full = Header {
            kind: TransactionKind::AgentEdit,
            author: Some("ann \"a\"\n\u{1}\u{7f}é".into()),
            agent: Some("a".into()),
            session: Some("s".into()),
            reason: Some("r".into()),
            git_commit: Some("0123456".into()),
            valid_at: Some(Time(1_767_225_600_000_000)),
            client_id: Some("c".into()),
            files: vec!["f".into()],
            duration_ms: Some(7),
            rule: CanonicalRule::Second,
        };
        assert_eq!(
            text(&full),
            concat!(
                r#"{"kind":"agent_edit","author":"ann \"a\"\n\u0001"#,
                "\u{7f}é",
                r#"","agent":"a","session":"s","reason":"r","git_commit":"0123456","#,
                r#""valid_at":"2026-01-01T00:00:00Z","client_id":"c","files":["f"],"duration_ms":7,"rule":2}"#
            )
        );
        assert_eq!(serde_json::from_str::<Header>(r#"{"kind":"api"}"#).unwrap().rule, CanonicalRule::First);
    }

    #[test]
    fn the_hash_of_a_transaction_is_pinned() {
        let chain = TransactionHasher::new(TransactionHasher::START, Tx(1), Time(0), MAIN, &Header::default());
        assert_eq!(
            chain.finish(0, 0).to_string(),
            "sha256:b26e6e9e8e143fb5a6c43e3648186d7ca2647b424ea547f514433034a02475b1"
        );
    }
}
