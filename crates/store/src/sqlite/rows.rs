//! Rows of the tables, to and from the model.

use lukasa_model::content::ABSENT;
use lukasa_model::json::Hash;
use lukasa_model::{Ends, Error, Period, Result, Statement, Thing, ThingNo, Time, Transaction, VersionId};
use rusqlite::Row;
use rusqlite::types::ValueRef;
use std::sync::Arc;
use uuid::Uuid;

/// A thing's number and its project in one integer: 40 bits are a trillion things.
const NUMBER_BITS: u32 = 40;

pub fn tid(scope: i64, number: ThingNo) -> i64 {
    scope << NUMBER_BITS | number as i64
}

pub fn number(tid: i64) -> ThingNo {
    (tid & ((1 << NUMBER_BITS) - 1)) as ThingNo
}

/// Shares the few type names there are between the many rows that carry them.
#[derive(Default)]
pub struct Names(Vec<Arc<str>>);

impl Names {
    pub fn share(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.iter().find(|known| &***known == name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = name.into();
        // Beyond this many types a linear look costs more than a copy.
        if self.0.len() < 64 {
            self.0.push(Arc::clone(&new));
        }
        new
    }
}

pub const THING: &str = "tid, id, type, key, src, dst, discriminator";

pub fn thing(row: &Row<'_>, names: &mut Names) -> rusqlite::Result<Thing> {
    let ends = match row.get_ref(4)? {
        ValueRef::Null => None,
        _ => Some(Ends {
            src: number(row.get(4)?),
            dst: number(row.get(5)?),
            discriminator: text(row, 6)?.unwrap_or_default(),
        }),
    };
    Ok(Thing {
        no: number(row.get(0)?),
        id: Uuid::from_bytes(row.get(1)?),
        type_name: names.share(row.get_ref(2)?.as_str()?),
        key: text(row, 3)?,
        ends,
    })
}

pub const HEADER: &str = "tid, branch, version, recorded_at, valid_from, valid_to, number, parents, hash";

/// Reads the columns of [`HEADER`], then `content` and `change` where they are there.
pub fn statement(row: &Row<'_>, columns: usize) -> rusqlite::Result<Statement> {
    let hash = Hash(row.get(8)?);
    let parents = match row.get_ref(7)? {
        ValueRef::Blob(bytes) => {
            let read = |chunk: &[u8]| VersionId(u64::from_be_bytes(chunk.try_into().unwrap_or_default()));
            bytes.chunks_exact(8).map(read).collect()
        }
        _ => Vec::new(),
    };
    Ok(Statement {
        thing: number(row.get(0)?),
        branch: row.get(1)?,
        version: VersionId(row.get::<_, i64>(2)? as u64),
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

pub fn parents(list: &[VersionId]) -> Option<Vec<u8>> {
    (!list.is_empty()).then(|| list.iter().flat_map(|v| v.0.to_be_bytes()).collect())
}

pub const TRANSACTION: &str = "tx, recorded_at, branch, objects, relationships, header, hash";

pub fn transaction(row: &Row<'_>) -> Result<Transaction> {
    let fault = super::fault;
    let header = row.get_ref(5).map_err(fault)?.as_str().map_err(|e| fault(e.into()))?;
    Ok(Transaction {
        tx: row.get::<_, i64>(0).map_err(fault)? as u64,
        recorded_at: Time(row.get(1).map_err(fault)?),
        branch: row.get(2).map_err(fault)?,
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
