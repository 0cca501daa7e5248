//! Where facts live: a small trait for keeping rows, three stores behind it, and one [`Ledger`] that gives
//! them all the same meaning.
//!
//! A store only keeps and finds rows. Whatever those rows mean (visibility, commits, merges, releases) is
//! written once, in [`ledger`], over the pure functions of `lukasa-model`; so no store can disagree.

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
use lukasa_model::statement::Provenance;
use lukasa_model::types::Declaration;
use lukasa_model::{BranchNo, Position, Result, Scope, Statement, Thing, ThingNo, Time, Transaction, Tx, VersionId};
use std::ops::Range;
use std::path::Path;
use uuid::Uuid;

/// Keeps the rows of many projects apart and safe.
///
/// Contract, checked by `tests/contract` on every implementation:
/// - Atomic: what a [`Writer`] appended is there whole after `commit` returned, and not at all if it was
///   dropped or `commit` failed. `commit` returns only once the rows are durable.
/// - Ordered: one writer per project at a time; another waits. Readers never wait and never block.
/// - Isolated: nothing a reader or writer of one scope does can see or change another scope.
/// - Append-only: no method changes or removes a row. [`Derived`] is apart from that: it can be made again. So are
///   [`AccessKeys`]: they are no facts. [`AuditTrail`] is none either, and only grows.
pub trait Store: Send + Sync {
    /// Opens a project for reading. What a reader sees may grow while it lives; callers hold on to a
    /// transaction number instead. `unknown_project` if nothing was ever written there.
    fn read<'a>(&'a self, scope: &Scope) -> Result<Box<dyn Reader + 'a>>;

    /// Opens a project for writing, making it first if need be, and keeps other writers out until it ends.
    fn write<'a>(&'a self, scope: &Scope) -> Result<Box<dyn Writer + 'a>>;

    /// What is kept beside the facts.
    fn derived(&self) -> &dyn Derived;

    /// Keys that let programs in.
    fn access_keys(&self) -> &dyn AccessKeys;

    /// The record of operations.
    fn audit(&self) -> &dyn AuditTrail;

    /// Names of a tenant's projects, sorted.
    fn projects(&self, tenant: &str) -> Result<Vec<String>>;

    /// Copies everything into a new file in the store's own format while others write.
    /// `unsupported` where there is no such format; a logical dump always works.
    fn copy_to(&self, path: &Path) -> Result<()>;

    /// Whether `copy_to` works here.
    fn has_own_format(&self) -> bool {
        false
    }

    /// For people: what kind of store, and where.
    fn describe(&self) -> String;
}

/// Finds rows of one project. Lists come back complete, in the stated order; unknown names are left out.
pub trait Reader {
    fn head(&mut self) -> Result<Head>;

    /// In no particular order.
    fn things(&mut self, ids: &[Uuid]) -> Result<Vec<Thing>>;

    /// In no particular order.
    fn things_numbered(&mut self, numbers: &[ThingNo]) -> Result<Vec<Thing>>;

    /// Objects that have one of these keys, of any type.
    fn things_keyed(&mut self, keys: &[String]) -> Result<Vec<Thing>>;

    /// Objects whose key contains the text, without regard to case, at most `limit`.
    fn things_like(&mut self, part: &str, limit: usize) -> Result<Vec<Thing>>;

    /// Objects whose key begins with the text, byte for byte, of one type or of any, ordered by key.
    fn things_beginning(&mut self, type_name: Option<&str>, prefix: &str) -> Result<Vec<Thing>>;

    /// Things with numbers in the range, ascending.
    fn things_in(&mut self, range: Range<ThingNo>) -> Result<Vec<Thing>>;

    /// All statements about these things, ordered by thing, branch and version.
    fn statements(&mut self, things: &[ThingNo], fields: Fields) -> Result<Vec<Statement>>;

    /// All statements about things with numbers in the range, ordered by thing, branch and version.
    fn statements_in(&mut self, range: Range<ThingNo>, fields: Fields) -> Result<Vec<Statement>>;

    /// Statements recorded after a version, in order of recording, at most `limit`, with all fields.
    fn statements_after(&mut self, after: VersionId, limit: usize) -> Result<Vec<Statement>>;

    /// Numbers of things stated on a branch in transactions `from..=to`, ascending, each once.
    fn touched(&mut self, branch: BranchNo, from: Tx, to: Tx) -> Result<Vec<ThingNo>>;

    /// Relationships at these ends, ascending by number, each once.
    fn relationships(&mut self, ends: &[(ThingNo, Side)]) -> Result<Vec<Thing>>;

    /// Every recorded state of the system objects, in order of recording.
    fn declarations(&mut self) -> Result<Vec<Declaration>>;

    /// Provenance of versions of these things, sorted.
    fn provenance(&mut self, things: &[ThingNo]) -> Result<Vec<Provenance>>;

    /// Provenance recorded by one transaction, sorted.
    fn provenance_of(&mut self, tx: Tx) -> Result<Vec<Provenance>>;

    /// Log entries `from..=to`, ascending, at most `limit`.
    fn transactions(&mut self, from: Tx, to: Tx, limit: usize) -> Result<Vec<Transaction>>;

    /// The position of a transaction; `None` where the log has no such transaction.
    fn position(&mut self, tx: Tx) -> Result<Option<Position>> {
        if tx == 0 {
            return Ok(Some(Position::START));
        }
        Ok(self.transactions(tx, tx, 1)?.first().map(Transaction::position))
    }

    /// Whether the log has a position, and so is the one that was read there or goes on from it.
    fn holds(&mut self, position: Position) -> Result<bool> {
        Ok(self.position(position.tx)? == Some(position))
    }

    /// Log entries that match, newest first, at most `limit`.
    fn find_transactions(&mut self, find: &Find, limit: usize) -> Result<Vec<Transaction>>;

    /// What was recorded under a client's batch id.
    fn client_batch(&mut self, client_id: &str) -> Result<Option<ClientBatch>>;

    /// All of them, ordered by client id.
    fn client_batches(&mut self) -> Result<Vec<(String, ClientBatch)>>;

    /// Counts of all rows, for verification: things, statements, provenance rows.
    fn counts(&mut self) -> Result<Counts>;
}

/// Appends to one project; everything or nothing.
pub trait Writer: Reader {
    /// The time to record under, before it is made to not run backwards.
    fn now(&mut self) -> Result<Time>;

    /// Tells that a great many rows are coming and that nothing is read through this writer before it commits.
    fn expect_many(&mut self) -> Result<()> {
        Ok(())
    }

    /// Adds rows and moves the head. May be called more than once before `commit`.
    fn append(&mut self, entry: &Entry<'_>) -> Result<()>;

    /// Makes it durable. Dropping a writer without this leaves no trace.
    fn commit(self: Box<Self>) -> Result<()>;
}

/// The smallest text that is greater than everything that begins with this one; none after the empty text.
pub(crate) fn after_all(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        // Byte order of UTF-8 is the order of code points; surrogates are no characters.
        let next = (last as u32 + 1..=char::MAX as u32).find_map(char::from_u32);
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// Which parts of a statement to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// Neither content nor change summary.
    Header,
    Content,
    /// Content and change summary.
    All,
}

/// Where a project's log stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub tx: Tx,
    pub recorded_at: Time,
    pub hash: Hash,
    pub next_thing: ThingNo,
    /// The last transaction that stated a system object.
    pub declared: Position,
    pub namespace: Uuid,
}

impl Head {
    pub fn position(&self) -> Position {
        Position { tx: self.tx, hash: self.hash }
    }
}

/// Rows of one transaction, all of them or a part.
pub struct Entry<'a> {
    /// Written once per transaction, with its last part.
    pub transaction: Option<&'a Transaction>,
    pub things: &'a [Thing],
    pub statements: &'a [Statement],
    pub provenance: &'a [Provenance],
    pub client_batch: Option<(&'a str, ClientBatch)>,
    pub head: Head,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientBatch {
    /// Of the batch as it was sent.
    pub digest: Hash,
    /// `None` when it said nothing new.
    pub tx: Option<Tx>,
    pub unchanged: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Find {
    /// The git commit begins with this, in lower case.
    Commit(String),
    Agent(String),
    /// Recorded at or before.
    Until(Time),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub things: u64,
    pub statements: u64,
    pub provenance: u64,
}
