//! Packed rows: how the facts of a load are packed, many to a row called a run, and unpacked.

use super::bulk::RowSource;
use super::rows::{THINGS, TypeNameCache, blob, integer, number, text_of, tid};
use crate::{VersionFields, index, saturated};
use lukasa_model::content::ABSENT;
use lukasa_model::json::Hash;
use lukasa_model::{BranchNo, Error, Fact, FactNo, Period, RelationshipEnds, Result, Time, Version, VersionId};
use rusqlite::Row;
use rusqlite::types::{ToSqlOutput, ValueRef};
use std::ops::Range;
use std::sync::Arc;
use uuid::Uuid;

/// Most bytes of a run, unless a single fact needs more: with the rest of its row it fills a page.
const FULL: usize = 8_100;
/// Most bytes of a fact besides text and content.
const OTHER: usize = 120;
/// Most type names in one run: a type is encoded as one byte.
const TYPES: usize = 255;

const KEYED: u8 = 1;
const RELATED: u8 = 2;
const DISCRIMINATED: u8 = 4;
const ABSENT_YET: u8 = 8;
/// The period starts at the time of recording.
const FROM_NOW: u8 = 16;
const FOREVER: u8 = 32;

/// A run. `body` contains the offset of each fact, then the type names, then the facts.
pub struct PackedRow {
    pub first: FactNo,
    pub things: usize,
    pub last: VersionId,
    pub recorded_at: Time,
    pub body: Vec<u8>,
}

/// Packs new facts with their first versions. Returns the runs, the facts that could not be packed, and all other
/// versions.
pub fn pack<'a>(things: &'a [Fact], statements: &'a [Version]) -> (Vec<PackedRow>, Vec<&'a Fact>, Vec<&'a Version>) {
    let (mut runs, mut rest) = (vec![], vec![]);
    let mut packing = Packing::default();
    let mut things = things.iter().peekable();
    for statement in statements {
        // Facts are ordered by their first version.
        let plain = statement.parents.is_empty() && statement.change.is_none();
        match things.next_if(|thing| thing.no == statement.thing && plain) {
            Some(thing) => {
                if !packing.takes(thing, statement) {
                    runs.extend(packing.finish());
                }
                packing.add(thing, statement);
            }
            None => rest.push(statement),
        }
    }
    runs.extend(packing.finish());
    (runs, things.collect(), rest)
}

/// A run under construction.
#[derive(Default)]
struct Packing<'a> {
    /// The first fact, the recording time, and the last version.
    begun: Option<(FactNo, Time, VersionId)>,
    types: Vec<&'a Arc<str>>,
    places: Vec<u32>,
    things: Vec<u8>,
}

impl<'a> Packing<'a> {
    fn takes(&self, thing: &Fact, statement: &Version) -> bool {
        let Some((first, recorded_at, last)) = self.begun else { return true };
        thing.no == first.plus(self.places.len())
            && statement.version > last
            && statement.recorded_at == recorded_at
            && self.types.len() < TYPES
            && self.len() + most(thing, statement) <= FULL
    }

    /// Bytes so far, including offsets and type names.
    fn len(&self) -> usize {
        self.things.len() + self.places.len() * PLACE + self.types.iter().map(|name| name.len() + 2).sum::<usize>()
    }

    fn add(&mut self, thing: &'a Fact, statement: &Version) {
        let first = self.begun.map_or(thing.no, |(first, ..)| first);
        self.begun = Some((first, statement.recorded_at, statement.version));
        self.places.push(place(self.things.len()));
        let known = self.types.iter().position(|name| Arc::ptr_eq(name, &thing.type_name) || **name == thing.type_name);
        let of_type = known.unwrap_or_else(|| {
            self.types.push(&thing.type_name);
            self.types.len() - 1
        });
        let discriminated = thing.ends.as_ref().is_some_and(|ends| !ends.discriminator.is_empty());
        let mut flags = 0;
        for (flag, set) in [
            (KEYED, thing.key.is_some()),
            (RELATED, thing.ends.is_some()),
            (DISCRIMINATED, discriminated),
            (ABSENT_YET, statement.absent),
            (FROM_NOW, statement.period.from == statement.recorded_at),
            (FOREVER, statement.period.to == Time::MAX),
        ] {
            flags |= if set { flag } else { 0 };
        }
        let out = &mut self.things;
        out.extend([u8::try_from(of_type).expect("a run has few types"), flags]);
        out.extend(thing.id.as_bytes());
        if let Some(key) = &thing.key {
            put_text(out, key);
        }
        if let Some(ends) = &thing.ends {
            put_number(out, ends.src.0);
            put_number(out, ends.dst.0);
            if discriminated {
                put_text(out, &ends.discriminator);
            }
        }
        put_number(out, u64::from(statement.branch.0));
        put_number(out, statement.version.0);
        put_number(out, u64::from(statement.number));
        if flags & FROM_NOW == 0 {
            out.extend(statement.period.from.0.to_le_bytes());
        }
        if flags & FOREVER == 0 {
            out.extend(statement.period.to.0.to_le_bytes());
        }
        if !statement.absent {
            out.extend(statement.hash.0);
            out.extend(statement.content.as_deref().unwrap_or_default().as_bytes());
        }
    }

    fn finish(&mut self) -> Option<PackedRow> {
        let Packing { begun, types, places, things } = std::mem::take(self);
        let (first, recorded_at, last) = begun?;
        let mut names = vec![u8::try_from(types.len()).expect("a run has few types")];
        for name in &types {
            put_text(&mut names, name);
        }
        let before = place(places.len() * PLACE + names.len());
        let mut body = Vec::with_capacity(before as usize + things.len());
        for place in &places {
            body.extend((before + place).to_le_bytes());
        }
        body.extend(names);
        body.extend(things);
        Some(PackedRow { first, things: places.len(), last, recorded_at, body })
    }
}

/// Bytes of an offset.
const PLACE: usize = 4;

/// An offset as it is stored.
fn place(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("facts are limited to megabytes")
}

/// An upper bound for the bytes of a fact.
fn most(thing: &Fact, statement: &Version) -> usize {
    let key = thing.key.as_deref().map_or(0, str::len);
    let discriminator = thing.ends.as_ref().map_or(0, |ends| ends.discriminator.len());
    let content = statement.content.as_deref().map_or(0, str::len);
    OTHER + thing.type_name.len() + key + discriminator + content
}

pub const ADD_RUNS: &str = "INSERT OR FAIL INTO runs (first, scope, things, last, recorded_at, body)
    SELECT c0, c1, c2, c3, c4, c5 FROM given_rows(?1)";

/// New runs, as rows.
pub struct NewPackedRows<'a>(pub i64, pub &'a [PackedRow]);

impl RowSource for NewPackedRows<'_> {
    fn count(&self) -> usize {
        self.1.len()
    }

    fn value(&self, row: usize, column: usize) -> ToSqlOutput<'_> {
        let run = &self.1[row];
        match column {
            0 => integer(tid(self.0, run.first)),
            1 => integer(self.0),
            2 => integer(saturated(run.things)),
            3 => integer(saturated(run.last.0)),
            4 => integer(run.recorded_at.0),
            _ => blob(&run.body),
        }
    }
}

pub const ADD_KEYS: &str =
    "INSERT OR FAIL INTO run_keys (scope, key, tid, type) SELECT c0, c1, c2, c3 FROM given_rows(?1)";

/// Keys of facts in runs, as rows.
pub struct NewPackedKeys<'a>(pub i64, pub &'a [&'a Fact]);

impl RowSource for NewPackedKeys<'_> {
    fn count(&self) -> usize {
        self.1.len()
    }

    fn value(&self, row: usize, column: usize) -> ToSqlOutput<'_> {
        let thing = self.1[row];
        match column {
            0 => integer(self.0),
            1 => text_of(thing.key.as_deref()),
            2 => integer(tid(self.0, thing.no)),
            _ => text_of(Some(&thing.type_name)),
        }
    }
}

/// One end of a relationship in a run: the object's number and the side, then the relationship's number.
pub type PackedEnd = (u64, FactNo);

/// Returns both ends of a relationship; nothing for an object.
pub fn ends(thing: &Fact) -> impl Iterator<Item = PackedEnd> {
    let ends = thing.ends.as_ref().map(|ends| [(ends.src.0 << 1, thing.no), (ends.dst.0 << 1 | 1, thing.no)]);
    ends.into_iter().flatten()
}

/// Sorts ends. Those of one object are already ordered by relationship, and objects are numbered nearly without gaps,
/// so a counting sort suffices.
pub fn by_end(ends: Vec<PackedEnd>) -> Vec<PackedEnd> {
    let Some(first) = ends.iter().map(|end| end.0).min() else { return ends };
    let last = ends.iter().map(|end| end.0).max().unwrap_or(first);
    let sorted = ends.is_sorted_by_key(|end| end.1);
    // For widely scattered ends, sorting is cheaper than counting.
    if !sorted || last - first > 8 * ends.len() as u64 {
        let mut ends = ends;
        ends.sort_unstable();
        return ends;
    }
    let mut places = vec![0u32; index(last - first) + 2];
    for (end, _) in &ends {
        places[index(end - first) + 1] += 1;
    }
    for at in 1..places.len() {
        places[at] += places[at - 1];
    }
    let mut ordered = vec![(0, FactNo(0)); ends.len()];
    for end in ends {
        let place = &mut places[index(end.0 - first)];
        ordered[*place as usize] = end;
        *place += 1;
    }
    ordered
}

/// The first two bytes of an id: ids with the same prefix are stored in one list.
pub fn prefix(id: &Uuid) -> u16 {
    let bytes = id.as_bytes();
    u16::from_be_bytes([bytes[0], bytes[1]])
}

/// Lists of fact numbers by end or by id prefix, as rows.
pub struct FactLists {
    scope: i64,
    /// The lookup value, one of the facts, and the range of the list in `bytes`.
    lists: Vec<(u64, FactNo, Range<usize>)>,
    bytes: Vec<u8>,
    /// Computes the first two columns from the lookup value.
    name: fn(i64, u64, usize) -> i64,
}

pub const ADD_ENDS: &str =
    "INSERT OR FAIL INTO run_ends (node, side, first, list) SELECT c0, c1, c2, c3 FROM given_rows(?1)";

pub const ADD_IDS: &str =
    "INSERT OR FAIL INTO run_ids (scope, prefix, first, list) SELECT c0, c1, c2, c3 FROM given_rows(?1)";

impl FactLists {
    /// Builds lists from sorted ends.
    pub fn of_ends(scope: i64, ends: &[PackedEnd]) -> FactLists {
        let name =
            |scope, end: u64, column| if column == 0 { tid(scope, FactNo(end >> 1)) } else { saturated(end & 1) };
        let mut lists = FactLists { scope, lists: vec![], bytes: vec![], name };
        for list in ends.chunk_by(|a, b| a.0 == b.0) {
            let (from, mut before) = (lists.bytes.len(), 0);
            for (_, relationship) in list {
                put_number(&mut lists.bytes, relationship.0 - before);
                before = relationship.0;
            }
            lists.lists.push((list[0].0, list[0].1, from..lists.bytes.len()));
        }
        lists
    }

    /// Builds lists from sorted ids, each with its fact number.
    pub fn of_ids(scope: i64, ids: &[(Uuid, FactNo)]) -> FactLists {
        let name = |scope, prefix: u64, column| if column == 0 { scope } else { saturated(prefix) };
        let mut lists = FactLists { scope, lists: vec![], bytes: vec![], name };
        for list in ids.chunk_by(|a, b| prefix(&a.0) == prefix(&b.0)) {
            let from = lists.bytes.len();
            for (id, thing) in list {
                lists.bytes.extend(id.as_bytes());
                put_number(&mut lists.bytes, thing.0);
            }
            lists.lists.push((u64::from(prefix(&list[0].0)), list[0].1, from..lists.bytes.len()));
        }
        lists
    }
}

impl RowSource for FactLists {
    fn count(&self) -> usize {
        self.lists.len()
    }

    fn value(&self, row: usize, column: usize) -> ToSqlOutput<'_> {
        let (by, first, bytes) = &self.lists[row];
        match column {
            0 | 1 => integer((self.name)(self.scope, *by, column)),
            2 => integer(tid(self.scope, *first)),
            _ => blob(&self.bytes[bytes.clone()]),
        }
    }
}

/// Returns the fact number of an id in a list of ids.
pub fn find_id(list: &[u8], id: &Uuid) -> Result<Option<FactNo>> {
    let mut left = RemainingBytes(list);
    while !left.0.is_empty() {
        let (known, number) = (left.array::<16>()?, left.fact_no()?);
        if known == *id.as_bytes() {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// Appends the relationship numbers of a list of ends.
pub fn read_list(list: &[u8], out: &mut Vec<FactNo>) -> Result<()> {
    let (mut left, mut at) = (RemainingBytes(list), FactNo(0));
    while !left.0.is_empty() {
        at = left.number()?.checked_add(at.0).map(FactNo).filter(|no| *no < THINGS).ok_or_else(damaged)?;
        out.push(at);
    }
    Ok(())
}

pub const RUN: &str = "first, things, last, recorded_at, body";

/// A run that was read from the store.
pub struct PackedRowReader<'r> {
    pub first: FactNo,
    pub things: usize,
    recorded_at: Time,
    body: &'r [u8],
}

impl<'r> PackedRowReader<'r> {
    /// Reads the columns of [`RUN`].
    pub fn read(row: &'r Row<'_>) -> Result<PackedRowReader<'r>> {
        let fault = super::fault;
        let ValueRef::Blob(body) = row.get_ref(4).map_err(fault)? else { return Err(damaged()) };
        let first = number(row.get(0).map_err(fault)?);
        let things = usize::try_from(row.get::<_, i64>(1).map_err(fault)?).map_err(|_| damaged())?;
        if things > body.len() / PLACE {
            return Err(damaged());
        }
        Ok(PackedRowReader { first, things, recorded_at: Time(row.get(3).map_err(fault)?), body })
    }

    /// Whether the run contains a fact.
    pub fn holds(&self, thing: FactNo) -> bool {
        thing.index_from(self.first).is_some_and(|at| at < self.things)
    }

    /// Returns the number after the last fact of the run.
    pub fn end(&self) -> FactNo {
        self.first.plus(self.things)
    }

    /// Unpacks a fact, which must be in the run.
    pub fn fact(&self, no: FactNo, names: &mut TypeNameCache) -> Result<Fact> {
        let (of_type, flags, mut left) = self.entry(no)?;
        let id = Uuid::from_bytes(left.array()?);
        let type_name = names.share(self.type_name(of_type)?);
        let key = if flags & KEYED != 0 { Some(left.text()?.into()) } else { None };
        let ends = match flags & RELATED != 0 {
            true => Some(RelationshipEnds {
                src: left.fact_no()?,
                dst: left.fact_no()?,
                discriminator: if flags & DISCRIMINATED != 0 { left.text()?.into() } else { "".into() },
            }),
            false => None,
        };
        Ok(Fact { no, id, type_name, key, ends })
    }

    /// Unpacks the first version of a fact, which must be in the run.
    pub fn version(&self, no: FactNo, fields: VersionFields) -> Result<Version> {
        let (_, flags, mut left) = self.entry(no)?;
        left.skip(16)?;
        if flags & KEYED != 0 {
            left.text()?;
        }
        if flags & RELATED != 0 {
            left.number()?;
            left.number()?;
            if flags & DISCRIMINATED != 0 {
                left.text()?;
            }
        }
        let branch = BranchNo(u32::try_from(left.number()?).map_err(|_| damaged())?);
        let version = VersionId(left.number()?);
        let number = u32::try_from(left.number()?).map_err(|_| damaged())?;
        let from = if flags & FROM_NOW != 0 { self.recorded_at } else { Time(i64::from_le_bytes(left.array()?)) };
        let to = if flags & FOREVER != 0 { Time::MAX } else { Time(i64::from_le_bytes(left.array()?)) };
        let absent = flags & ABSENT_YET != 0;
        let hash = if absent { ABSENT } else { Hash(left.array()?) };
        let content = match fields {
            VersionFields::Header => None,
            _ if absent => None,
            VersionFields::Content | VersionFields::All => {
                Some(std::str::from_utf8(left.0).map_err(|_| damaged())?.into())
            }
        };
        Ok(Version {
            thing: no,
            branch,
            version,
            recorded_at: self.recorded_at,
            period: Period { from, to },
            number,
            parents: vec![],
            hash,
            absent,
            content,
            change: None,
        })
    }

    /// Returns the type, the flags and the remaining bytes of a fact.
    fn entry(&self, no: FactNo) -> Result<(u8, u8, RemainingBytes<'r>)> {
        let at = no.index_from(self.first).filter(|at| *at < self.things).ok_or_else(damaged)?;
        let from = self.place(at)?;
        let to = if at + 1 < self.things { self.place(at + 1)? } else { self.body.len() };
        let mut left = RemainingBytes(self.body.get(from..to).ok_or_else(damaged)?);
        let [of_type, flags] = left.array()?;
        Ok((of_type, flags, left))
    }

    fn place(&self, at: usize) -> Result<usize> {
        let bytes = self.body.get(at * PLACE..(at + 1) * PLACE).ok_or_else(damaged)?;
        Ok(RemainingBytes(bytes).array().map(u32::from_le_bytes)? as usize)
    }

    fn type_name(&self, of_type: u8) -> Result<&'r str> {
        let mut left = RemainingBytes(self.body.get(self.things * PLACE..).ok_or_else(damaged)?);
        let [types] = left.array()?;
        if of_type >= types {
            return Err(damaged());
        }
        for _ in 0..of_type {
            left.text()?;
        }
        left.text()
    }
}

/// The error for a run that cannot be unpacked.
pub fn damaged() -> Error {
    Error::internal("a run of facts is not readable").hint("restore a backup with `lukasa restore-backup`")
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend(text.as_bytes());
}

/// Writes a variable-length number: seven bits per byte, lowest first.
fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

/// Bytes not yet read.
struct RemainingBytes<'r>(&'r [u8]);

impl<'r> RemainingBytes<'r> {
    fn take(&mut self, bytes: usize) -> Result<&'r [u8]> {
        let (taken, left) = self.0.split_at_checked(bytes).ok_or_else(damaged)?;
        self.0 = left;
        Ok(taken)
    }

    fn skip(&mut self, bytes: usize) -> Result<()> {
        self.take(bytes).map(|_| ())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| damaged())
    }

    fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for at in 0..10 {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(damaged())
    }

    fn fact_no(&mut self) -> Result<FactNo> {
        self.number().map(FactNo).and_then(|number| if number < THINGS { Ok(number) } else { Err(damaged()) })
    }

    fn text(&mut self) -> Result<&'r str> {
        let bytes = usize::try_from(self.number()?).map_err(|_| damaged())?;
        std::str::from_utf8(self.take(bytes)?).map_err(|_| damaged())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counting_sort_of_ends_equals_a_comparison_sort() {
        let mut dice = 7u64;
        let mut roll = |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % sides
        };
        for (things, relationships) in [(1, 0), (1, 1), (5, 40), (1_000, 300), (1 << 30, 50)] {
            let ends: Vec<PackedEnd> = FactNo::each(FactNo(0)..FactNo(relationships))
                .flat_map(|no| [(roll(things) << 1, no), (roll(things) << 1 | 1, no)])
                .collect();
            let mut sorted = ends.clone();
            sorted.sort_unstable();
            assert_eq!(by_end(ends.clone()), sorted);
            let backwards: Vec<PackedEnd> = ends.into_iter().rev().collect();
            assert_eq!(by_end(backwards), sorted, "in any input order");
        }
    }
}
