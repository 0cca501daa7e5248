//! Converts between rows of the tables and the model.

use super::bulk::RowSource;
use super::fault;
use crate::saturated;
use lukasa_model::content::ABSENT;
use lukasa_model::json::Hash;
use lukasa_model::types::system;
use lukasa_model::{
    BranchNo, Error, Fact, FactNo, Period, RelationshipEnds, Result, Time, Transaction, Tx, Version, VersionId,
};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Params, Row};
use std::borrow::Borrow;
use std::sync::Arc;
use uuid::Uuid;

/// A fact's number and its project share one integer: 40 bits are enough for a trillion facts.
pub const NUMBER_BITS: u32 = 40;

/// Numbers of facts are below this.
pub const THINGS: FactNo = FactNo(1 << NUMBER_BITS);

/// Numbers beyond the largest become the first of the next project, 0, which no fact has.
pub fn tid(scope: i64, number: FactNo) -> i64 {
    (scope << NUMBER_BITS) + saturated(number.min(THINGS).0)
}

/// Returns the fact number of a `tid`.
pub fn number(tid: i64) -> FactNo {
    FactNo(u64::try_from(tid & ((1 << NUMBER_BITS) - 1)).expect("the mask leaves no sign"))
}

/// Runs a cached query and visits every row.
pub fn each<P: Params>(
    connection: &Connection,
    sql: &str,
    values: P,
    mut row: impl FnMut(&Row<'_>) -> Result<()>,
) -> Result<()> {
    let mut query = connection.prepare_cached(sql).map_err(fault)?;
    let mut found = query.query(values).map_err(fault)?;
    while let Some(next) = found.next().map_err(fault)? {
        row(next)?;
    }
    Ok(())
}

/// Shares type names between the many rows that contain them.
#[derive(Default)]
pub struct TypeNameCache(Vec<Arc<str>>);

impl TypeNameCache {
    /// Returns a shared copy of a type name.
    pub fn share(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.iter().find(|known| &***known == name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = name.into();
        // With more types than this, a linear search costs more than a copy.
        if self.0.len() < 64 {
            self.0.push(Arc::clone(&new));
        }
        new
    }
}

/// New facts, as rows.
pub struct NewFacts<'a, T>(pub i64, pub &'a [T]);

// A rejected row fails the whole transaction, so SQLite need not be able to undo a single statement.
pub const ADD_FACTS: &str = "INSERT OR FAIL INTO things (tid, scope, id, type, key, src, dst, discriminator, system)
    SELECT c0, c1, c2, c3, c4, c5, c6, c7, c8 FROM given_rows(?1)";

impl<T: Borrow<Fact>> RowSource for NewFacts<'_, T> {
    fn count(&self) -> usize {
        self.1.len()
    }

    fn value(&self, row: usize, column: usize) -> ToSqlOutput<'_> {
        let NewFacts(scope, things) = *self;
        let thing = things[row].borrow();
        let ends = thing.ends.as_ref();
        match column {
            0 => integer(tid(scope, thing.no)),
            1 => integer(scope),
            2 => blob(thing.id.as_bytes()),
            3 => text_of(Some(&thing.type_name)),
            4 => text_of(thing.key.as_deref()),
            5 => ends.map_or(NULL, |e| integer(tid(scope, e.src))),
            6 => ends.map_or(NULL, |e| integer(tid(scope, e.dst))),
            7 => text_of(ends.map(|e| &*e.discriminator).filter(|d| !d.is_empty())),
            _ => integer(i64::from(system::is(&thing.type_name))),
        }
    }
}

/// Ids of new facts with their numbers, from the same rows.
pub const ADD_IDS: &str = "INSERT OR FAIL INTO row_ids (scope, id, tid) SELECT c1, c2, c0 FROM given_rows(?1)";

/// New versions, as rows.
pub struct NewVersions<'a, S>(pub i64, pub &'a [S]);

pub const ADD_VERSIONS: &str = "INSERT OR FAIL INTO statements (tid, branch, version, scope, recorded_at, valid_from,
        valid_to, number, parents, hash, content, change)
    SELECT c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11 FROM given_rows(?1)";

impl<S: Borrow<Version>> RowSource for NewVersions<'_, S> {
    fn count(&self) -> usize {
        self.1.len()
    }

    fn value(&self, row: usize, column: usize) -> ToSqlOutput<'_> {
        let NewVersions(scope, statements) = *self;
        let s = statements[row].borrow();
        match column {
            0 => integer(tid(scope, s.thing)),
            1 => integer(i64::from(s.branch.0)),
            2 => integer(saturated(s.version.0)),
            3 => integer(scope),
            4 => integer(s.recorded_at.0),
            5 => integer(s.period.from.0),
            6 => integer(s.period.to.0),
            7 => integer(i64::from(s.number)),
            8 => parents(&s.parents).map_or(NULL, |bytes| ToSqlOutput::Owned(Value::Blob(bytes))),
            9 => blob(&s.hash.0),
            10 => text_of(s.content.as_deref()),
            _ => text_of(s.change.as_deref()),
        }
    }
}

const NULL: ToSqlOutput<'static> = ToSqlOutput::Borrowed(ValueRef::Null);

pub fn integer(number: i64) -> ToSqlOutput<'static> {
    ToSqlOutput::Borrowed(ValueRef::Integer(number))
}

pub fn blob(bytes: &[u8]) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Blob(bytes))
}

pub fn text_of(text: Option<&str>) -> ToSqlOutput<'_> {
    text.map_or(NULL, |text| ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())))
}

pub const FACT: &str = "tid, id, type, key, src, dst, discriminator";

/// Reads the columns of [`FACT`].
pub fn read_fact(row: &Row<'_>, names: &mut TypeNameCache) -> rusqlite::Result<Fact> {
    let ends = match row.get_ref(4)? {
        ValueRef::Null => None,
        _ => Some(RelationshipEnds {
            src: number(row.get(4)?),
            dst: number(row.get(5)?),
            discriminator: text(row, 6)?.unwrap_or_default(),
        }),
    };
    Ok(Fact {
        no: number(row.get(0)?),
        id: Uuid::from_bytes(row.get(1)?),
        type_name: names.share(row.get_ref(2)?.as_str()?),
        key: text(row, 3)?,
        ends,
    })
}

pub const HEADER: &str = "tid, branch, version, recorded_at, valid_from, valid_to, number, parents, hash";

/// Reads the columns of [`HEADER`], then `content` and `change` if they were selected.
pub fn read_version(row: &Row<'_>, columns: usize) -> rusqlite::Result<Version> {
    let hash = Hash(row.get(8)?);
    let parents = match row.get_ref(7)? {
        ValueRef::Blob(bytes) => {
            let read = |chunk: &[u8]| VersionId(u64::from_be_bytes(chunk.try_into().unwrap_or_default()));
            bytes.chunks_exact(8).map(read).collect()
        }
        _ => Vec::new(),
    };
    Ok(Version {
        thing: number(row.get(0)?),
        branch: BranchNo(row.get(1)?),
        version: VersionId(row.get(2)?),
        recorded_at: Time(row.get(3)?),
        period: Period { from: Time(row.get(4)?), to: Time(row.get(5)?) },
        number: row.get(6)?,
        parents,
        hash,
        absent: hash == ABSENT,
        content: if columns > 9 { text(row, 9)? } else { None },
        change: if columns > 10 { text(row, 10)? } else { None },
    })
}

/// Packs parent versions into bytes; `None` if there are none.
pub fn parents(list: &[VersionId]) -> Option<Vec<u8>> {
    (!list.is_empty()).then(|| list.iter().flat_map(|v| v.0.to_be_bytes()).collect())
}

pub const TRANSACTION: &str = "tx, recorded_at, branch, objects, relationships, header, hash";

/// Reads the columns of [`TRANSACTION`].
pub fn read_transaction(row: &Row<'_>) -> Result<Transaction> {
    let header = row.get_ref(5).map_err(fault)?.as_str().map_err(|e| fault(e.into()))?;
    Ok(Transaction {
        tx: Tx(row.get(0).map_err(fault)?),
        recorded_at: Time(row.get(1).map_err(fault)?),
        branch: BranchNo(row.get(2).map_err(fault)?),
        objects: row.get(3).map_err(fault)?,
        relationships: row.get(4).map_err(fault)?,
        header: serde_json::from_str(header)
            .map_err(|e| Error::internal(format!("a log entry is not readable: {e}")))?,
        hash: Hash(row.get(6).map_err(fault)?),
    })
}

fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Box<str>>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        value => Ok(Some(value.as_str()?.into())),
    }
}
