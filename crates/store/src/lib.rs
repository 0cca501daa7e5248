//! Storage of facts: a small trait for keeping rows, three stores that implement it, and one [`Ledger`] that gives them
//! all the same semantics.
//!
//! A store only keeps and finds rows. What those rows mean (visibility, commits, merges, releases) is implemented once,
//! in [`ledger`], over the pure functions of `lukasa-model`, so stores cannot disagree.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod audit;
pub mod clock;
pub mod derived;
pub mod guarded_clock;
pub mod keys;
pub mod ledger;
pub mod memory;
pub mod postgres;
pub mod private;
pub mod sqlite;

pub use audit::AuditTrail;
pub use clock::{Clock, SystemClock};
pub use derived::Derived;
pub use guarded_clock::GuardedClock;
pub use keys::{AccessKey, AccessKeys};
pub use ledger::Ledger;
pub use memory::MemoryStore;
pub use postgres::PostgresStore;
pub use sqlite::SqliteStore;

use lukasa_model::json::Hash;
use lukasa_model::plan::Side;
use lukasa_model::types::Declaration;
use lukasa_model::version::Provenance;
use lukasa_model::{BranchNo, Fact, FactNo, Position, Result, Scope, Time, Transaction, Tx, Version, VersionId};
use std::ops::Range;
use std::path::Path;
use uuid::Uuid;

/// Keeps the rows of many projects, isolated from each other.
///
/// Contract, checked by `tests/contract` on every implementation:
/// - Atomic: everything a [`Writer`] appended is stored after `commit` returned, and nothing if the writer was dropped or
///   `commit` failed. `commit` returns only once the rows are durable.
/// - Ordered: one writer per project at a time; another waits. Readers never wait and never block.
/// - Isolated: a reader or writer of one scope can neither see nor change another scope.
/// - Append-only: no method changes or removes a row. [`Derived`] data and [`AccessKeys`] are not facts and are exempt.
///   [`AuditTrail`] entries are not facts either, and are append-only too.
pub trait Store: Send + Sync {
    /// Opens a project for reading. A reader may see later transactions while it is open; callers limit what they read
    /// by a transaction number. `unknown_project` if nothing was ever written there.
    fn read<'a>(&'a self, scope: &Scope) -> Result<Box<dyn Reader + 'a>>;

    /// Opens a project for writing, creating it if it does not exist, and excludes other writers until it is dropped.
    fn write<'a>(&'a self, scope: &Scope) -> Result<Box<dyn Writer + 'a>>;

    /// Derived data: vectors, jobs and marks.
    fn derived(&self) -> &dyn Derived;

    /// Access keys.
    fn access_keys(&self) -> &dyn AccessKeys;

    /// The audit trail.
    fn audit(&self) -> &dyn AuditTrail;

    /// Returns the names of a tenant's projects, sorted.
    fn projects(&self, tenant: &str) -> Result<Vec<String>>;

    /// Copies everything into a new file in the store's native format, while others may write. `unsupported` if the
    /// store has no such format; a logical dump always works.
    fn copy_to(&self, path: &Path) -> Result<()>;

    /// Whether `copy_to` is supported.
    fn has_own_format(&self) -> bool {
        false
    }

    /// Describes the store for people: its kind and location.
    fn describe(&self) -> String;
}

/// Finds rows of one project. Lists are complete and in the documented order; unknown names are omitted.
pub trait Reader {
    /// The end of the log as this reader sees it.
    fn head(&mut self) -> Result<Head>;

    /// In no particular order.
    fn facts(&mut self, ids: &[Uuid]) -> Result<Vec<Fact>>;

    /// In no particular order.
    fn facts_numbered(&mut self, numbers: &[FactNo]) -> Result<Vec<Fact>>;

    /// Objects that have one of these keys, of any type.
    fn objects_keyed(&mut self, keys: &[String]) -> Result<Vec<Fact>>;

    /// Objects whose key contains the text, case-insensitively, at most `limit`.
    fn objects_like(&mut self, part: &str, limit: usize) -> Result<Vec<Fact>>;

    /// Objects whose key begins with the prefix, byte for byte, of one type or of any, ordered by key.
    fn objects_with_prefix(&mut self, type_name: Option<&str>, prefix: &str) -> Result<Vec<Fact>>;

    /// Facts with numbers in the range, ascending.
    fn facts_in(&mut self, range: Range<FactNo>) -> Result<Vec<Fact>>;

    /// All versions of these facts, ordered by fact, branch and version.
    fn versions(&mut self, things: &[FactNo], fields: VersionFields) -> Result<Vec<Version>>;

    /// All versions of facts with numbers in the range, ordered by fact, branch and version.
    fn versions_in(&mut self, range: Range<FactNo>, fields: VersionFields) -> Result<Vec<Version>>;

    /// Versions recorded after this one, in order of recording, at most `limit`, with all fields.
    fn versions_after(&mut self, after: VersionId, limit: usize) -> Result<Vec<Version>>;

    /// Numbers of facts written on a branch in transactions `from..=to`, ascending, each once.
    fn touched(&mut self, branch: BranchNo, from: Tx, to: Tx) -> Result<Vec<FactNo>>;

    /// Relationships at these ends, ascending by number, each once.
    fn relationships(&mut self, ends: &[(FactNo, Side)]) -> Result<Vec<Fact>>;

    /// Every version of the system objects, in order of recording.
    fn declarations(&mut self) -> Result<Vec<Declaration>>;

    /// Provenance of versions of these facts, sorted.
    fn provenance(&mut self, things: &[FactNo]) -> Result<Vec<Provenance>>;

    /// Provenance recorded by one transaction, sorted.
    fn provenance_of(&mut self, tx: Tx) -> Result<Vec<Provenance>>;

    /// Log entries `from..=to`, ascending, at most `limit`.
    fn transactions(&mut self, from: Tx, to: Tx, limit: usize) -> Result<Vec<Transaction>>;

    /// The position of a transaction; `None` if the log has no such transaction.
    fn position(&mut self, tx: Tx) -> Result<Option<Position>> {
        if tx == Tx::START {
            return Ok(Some(Position::START));
        }
        Ok(self.transactions(tx, tx, 1)?.first().map(Transaction::position))
    }

    /// Whether the log contains a position, so that it is the same log up to there.
    fn holds(&mut self, position: Position) -> Result<bool> {
        Ok(self.position(position.tx)? == Some(position))
    }

    /// Log entries that match, newest first, at most `limit`.
    fn find_transactions(&mut self, find: &TransactionFilter, limit: usize) -> Result<Vec<Transaction>>;

    /// The result recorded under a client's batch id.
    fn client_batch(&mut self, client_id: &str) -> Result<Option<ClientBatch>>;

    /// All client batches, ordered by client id.
    fn client_batches(&mut self) -> Result<Vec<(String, ClientBatch)>>;

    /// Counts of all rows, for verification: facts, versions, provenance rows.
    fn counts(&mut self) -> Result<Counts>;
}

/// Appends to one project; all or nothing.
pub trait Writer: Reader {
    /// The current time. It may be before the last recorded time; the ledger corrects that.
    fn now(&mut self) -> Result<Time>;

    /// Announces very many rows. Nothing may be read through this writer before it commits.
    fn expect_many(&mut self) -> Result<()> {
        Ok(())
    }

    /// Adds rows and moves the head. May be called more than once before `commit`.
    fn append(&mut self, entry: &Entry<'_>) -> Result<()>;

    /// Makes the rows durable. A writer dropped without `commit` changes nothing.
    fn commit(self: Box<Self>) -> Result<()>;
}

/// Returns the smallest text greater than every text with this prefix; `None` if there is none, as for the empty
/// prefix.
pub(crate) fn end_of_prefix(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        // The byte order of UTF-8 is the order of code points; surrogates are not characters.
        let next = (last as u32 + 1..=char::MAX as u32).find_map(char::from_u32);
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// Databases have signed integers only. Their largest stands for all numbers beyond it, which no log reaches.
pub(crate) fn saturated(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// A number of branches, or of versions of one fact or transaction.
pub(crate) fn small(number: u32) -> i32 {
    i32::try_from(number).expect("branches and versions stay below two thousand million")
}

/// The index of something that is held in memory.
pub(crate) fn index(number: u64) -> usize {
    usize::try_from(number).expect("memory has no more places than addresses")
}

/// Which parts of a version to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionFields {
    /// Neither content nor change summary.
    Header,
    /// Content, but no change summary.
    Content,
    /// Content and change summary.
    All,
}

/// The current end of a project's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The last transaction; 0 if there is none.
    pub tx: Tx,
    /// The recording time of the last transaction.
    pub recorded_at: Time,
    /// The hash of the last transaction.
    pub hash: Hash,
    /// The number of the next new fact.
    pub next_thing: FactNo,
    /// The last transaction that wrote a system object.
    pub declared: Position,
    /// The namespace from which the ids of the project are derived.
    pub namespace: Uuid,
}

impl Head {
    /// Returns the position of the last transaction.
    pub fn position(&self) -> Position {
        Position { tx: self.tx, hash: self.hash }
    }
}

/// Rows of one transaction, all or some of them.
pub struct Entry<'a> {
    /// Appended once per transaction, with its last rows.
    pub transaction: Option<&'a Transaction>,
    /// New facts, in order of their numbers.
    pub things: &'a [Fact],
    /// In order of their ids.
    pub statements: &'a [Version],
    pub provenance: &'a [Provenance],
    /// The id that the client gave to the batch, and its result.
    pub client_batch: Option<(&'a str, ClientBatch)>,
    /// The head after these rows.
    pub head: Head,
}

/// The recorded result of a batch with a client id, so that sending it again does not write again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientBatch {
    /// Hash of the batch as it was sent.
    pub digest: Hash,
    /// `None` when the batch changed nothing.
    pub tx: Option<Tx>,
    /// The number of writes that changed nothing.
    pub unchanged: u32,
}

/// What to search log entries for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionFilter {
    /// The Git commit begins with this prefix, in lower case.
    Commit(String),
    /// Written by this agent.
    Agent(String),
    /// Recorded at or before this time.
    Until(Time),
}

/// The numbers of all rows of a project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub things: u64,
    pub statements: u64,
    pub provenance: u64,
}
