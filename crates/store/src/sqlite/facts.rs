//! The one reader of facts and their versions, whichever of SQLite's two formats they are kept in.

use super::fault;
use super::packed_rows::{self, PackedRowReader};
use super::rows::{self, TypeNameCache, each, tid};
use crate::{Counts, VersionFields, end_of_prefix, saturated};
use lukasa_model::plan::Side;
use lukasa_model::types::Declaration;
use lukasa_model::{BranchNo, Fact, FactNo, Result, Tx, Version, VersionId};
use rusqlite::{Connection, Params, Row, ToSql, params};
use std::cell::RefCell;
use std::ops::{ControlFlow, Range};
use uuid::Uuid;

/// Finds facts and versions of one project.
///
/// A fact with its first version is either packed in a run, if a load recorded it ([`packed_rows`]), or it is a row of `things`
/// and one of `statements`. All later versions are rows. Only this module depends on that. Contract of every method:
/// - It searches both formats, and returns the same as if everything were rows.
/// - A fact or version is returned once. Names and numbers that do not exist are omitted.
/// - The order is the one that the method of the same name of [`crate::Reader`] documents.
/// - A list that leads to a run without the fact that it names is an error: the file is damaged.
pub struct FactReader<'s> {
    pub connection: &'s Connection,
    pub scope: i64,
    pub names: &'s RefCell<TypeNameCache>,
}

/// Numbers of facts to read.
#[derive(Clone)]
enum FactNumbers<'n> {
    /// Ascending, each once.
    These(&'n [FactNo]),
    In(Range<FactNo>),
}

impl FactReader<'_> {
    pub fn facts(&self, ids: &[Uuid]) -> Result<Vec<Fact>> {
        let mut numbers = Vec::new();
        for id in ids {
            let by_id = "SELECT tid FROM row_ids WHERE scope = ?1 AND id = ?2";
            each(self.connection, by_id, params![self.scope, id.as_bytes()], |row| {
                numbers.push(number(row)?);
                Ok(())
            })?;
            let lists = "SELECT list FROM run_ids WHERE scope = ?1 AND prefix = ?2";
            each(self.connection, lists, [self.scope, i64::from(packed_rows::prefix(id))], |row| {
                numbers.extend(packed_rows::find_id(list(row)?, id)?);
                Ok(())
            })?;
        }
        self.facts_numbered(&numbers)
    }

    pub fn facts_numbered(&self, numbers: &[FactNo]) -> Result<Vec<Fact>> {
        let mut numbers = ascending(numbers);
        let mut found = Vec::new();
        self.packed_things(&FactNumbers::These(&numbers), &mut found)?;
        // What is in a run is no row. `found` has the same order as `numbers`.
        let mut in_runs = found.iter().map(|thing| thing.no).peekable();
        numbers.retain(|no| in_runs.next_if_eq(no).is_none());
        self.thing_rows(&FactNumbers::These(&numbers), &mut found)?;
        Ok(found)
    }

    pub fn facts_in(&self, range: Range<FactNo>) -> Result<Vec<Fact>> {
        let (mut found, range) = (Vec::new(), FactNumbers::In(range));
        self.thing_rows(&range, &mut found)?;
        self.packed_things(&range, &mut found)?;
        found.sort_by_key(|thing| thing.no);
        Ok(found)
    }

    pub fn objects_keyed(&self, keys: &[String]) -> Result<Vec<Fact>> {
        let mut found = Vec::new();
        for key in keys {
            self.with_key("scope = ?1 AND key = ?2", params![self.scope, key], &mut found)?;
        }
        Ok(found)
    }

    pub fn objects_like(&self, part: &str, limit: usize) -> Result<Vec<Fact>> {
        let mut found = Vec::new();
        let pattern = format!("%{}%", part.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_"));
        let condition = "scope = ?1 AND key LIKE ?2 ESCAPE '\\' ORDER BY tid LIMIT ?3";
        self.with_key(condition, params![self.scope, pattern, saturated(limit)], &mut found)?;
        found.sort_by_key(|thing| thing.no);
        found.truncate(limit);
        Ok(found)
    }

    pub fn objects_with_prefix(&self, type_name: Option<&str>, prefix: &str) -> Result<Vec<Fact>> {
        let (mut found, end) = (Vec::new(), end_of_prefix(prefix));
        let mut condition = "scope = ?1 AND key >= ?2".to_owned();
        let mut values: Vec<&dyn ToSql> = vec![&self.scope, &prefix];
        if let Some(end) = &end {
            condition.push_str(" AND key < ?3");
            values.push(end);
        }
        // The partial index on files is only used if the query contains the type as a literal.
        if let Some(name) = type_name {
            condition.push_str(&format!(" AND type = '{}'", name.replace('\'', "''")));
        }
        self.with_key(&condition, &values, &mut found)?;
        found.sort_by(|a, b| (&a.key, a.no).cmp(&(&b.key, b.no)));
        Ok(found)
    }

    pub fn relationships(&self, ends: &[(FactNo, Side)]) -> Result<Vec<Fact>> {
        let (mut found, mut numbers) = (Vec::new(), Vec::new());
        for (object, side) in ends {
            let condition = if *side == Side::Src { "src = ?1 AND scope = ?2" } else { "dst = ?1 AND scope = ?2" };
            let node = tid(self.scope, *object);
            self.things_where(condition, [node, self.scope], &mut found)?;
            let lists = "SELECT list FROM run_ends WHERE node = ?1 AND side = ?2";
            each(self.connection, lists, [node, i64::from(*side == Side::Dst)], |row| {
                packed_rows::read_list(list(row)?, &mut numbers)
            })?;
        }
        self.listed(&numbers, &mut found)?;
        found.sort_by_key(|thing| thing.no);
        found.dedup_by_key(|thing| thing.no);
        Ok(found)
    }

    /// System objects are rows: only their own operations write them, and no load does.
    pub fn declarations(&self) -> Result<Vec<Declaration>> {
        let mut found = Vec::new();
        let mut names = self.names.borrow_mut();
        let sql = "SELECT s.version, t.type, t.key, s.content
                   FROM things t INDEXED BY things_system JOIN statements s ON s.tid = t.tid
                   WHERE t.scope = ?1 AND t.system = 1 AND t.key IS NOT NULL ORDER BY s.version";
        each(self.connection, sql, [self.scope], |row| {
            found.push(Declaration {
                tx: VersionId(row.get(0).map_err(fault)?).tx(),
                type_name: names.share(&row.get::<_, String>(1).map_err(fault)?),
                key: row.get::<_, String>(2).map_err(fault)?.into(),
                content: row.get::<_, Option<String>>(3).map_err(fault)?.map(Into::into),
            });
            Ok(())
        })?;
        Ok(found)
    }

    pub fn versions(&self, things: &[FactNo], fields: VersionFields) -> Result<Vec<Version>> {
        self.read_versions(&FactNumbers::These(&ascending(things)), fields)
    }

    pub fn versions_in(&self, range: Range<FactNo>, fields: VersionFields) -> Result<Vec<Version>> {
        self.read_versions(&FactNumbers::In(range), fields)
    }

    pub fn versions_after(&self, after: VersionId, limit: usize) -> Result<Vec<Version>> {
        let mut found = Vec::new();
        let condition = "scope = ?1 AND version > ?2 ORDER BY version LIMIT ?3";
        let values = [self.scope, saturated(after.0), saturated(limit)];
        self.statements_where(condition, values, VersionFields::All, &mut found)?;
        let from_rows = found.len();
        // Versions ascend within a run and from one run to the next.
        self.each_run("scope = ?1 AND last > ?2 ORDER BY last", [self.scope, saturated(after.0)], |run| {
            for no in FactNo::each(run.first..run.end()) {
                let statement = run.version(no, VersionFields::Header)?;
                if statement.version > after {
                    found.push(run.version(no, VersionFields::All)?);
                }
                if found.len() - from_rows == limit {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        found.sort_by_key(|s| s.version);
        found.truncate(limit);
        Ok(found)
    }

    pub fn touched(&self, branch: BranchNo, from: Tx, to: Tx) -> Result<Vec<FactNo>> {
        if from > to {
            return Ok(vec![]);
        }
        let (first, last) = (VersionId::new(from, 0), VersionId::last_of(to));
        let mut found = Vec::new();
        let sql = "SELECT DISTINCT tid FROM statements INDEXED BY statements_by_version
                   WHERE scope = ?1 AND version BETWEEN ?2 AND ?3 AND branch = ?4 ORDER BY tid";
        let values = [self.scope, saturated(first.0), saturated(last.0), i64::from(branch.0)];
        each(self.connection, sql, values, |row| {
            found.push(number(row)?);
            Ok(())
        })?;
        self.each_run("scope = ?1 AND last >= ?2 ORDER BY last", [self.scope, saturated(first.0)], |run| {
            for no in FactNo::each(run.first..run.end()) {
                let statement = run.version(no, VersionFields::Header)?;
                if statement.version > last {
                    return Ok(ControlFlow::Break(()));
                }
                if statement.branch == branch && statement.version >= first {
                    found.push(no);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(ascending(&found))
    }

    pub fn counts(&self) -> Result<Counts> {
        let count = |what: &str| -> Result<u64> {
            let sql = format!("SELECT {what} WHERE scope = ?1");
            self.connection.query_row(&sql, [self.scope], |row| row.get(0)).map_err(fault)
        };
        let in_runs = count("coalesce(sum(things), 0) FROM runs")?;
        Ok(Counts {
            things: count("count(*) FROM things")? + in_runs,
            statements: count("count(*) FROM statements")? + in_runs,
            provenance: count("count(*) FROM provenance")?,
        })
    }

    fn read_versions(&self, numbers: &FactNumbers<'_>, fields: VersionFields) -> Result<Vec<Version>> {
        let mut found = Vec::new();
        self.in_runs(numbers, |run, no| {
            found.push(run.version(no, fields)?);
            Ok(())
        })?;
        self.rows_of(numbers, |condition, values| self.statements_where(condition, values, fields, &mut found))?;
        found.sort_by_key(|s| (s.thing, s.branch, s.version));
        Ok(found)
    }

    /// Appends the objects that match a condition on `scope`, `type`, `key` and `tid`: columns of `things`, and of
    /// `run_keys` for runs.
    fn with_key(&self, condition: &str, values: &[&dyn ToSql], out: &mut Vec<Fact>) -> Result<()> {
        self.things_where(condition, values, out)?;
        let mut numbers = Vec::new();
        each(self.connection, &format!("SELECT tid FROM run_keys WHERE {condition}"), values, |row| {
            numbers.push(number(row)?);
            Ok(())
        })?;
        self.listed(&numbers, out)
    }

    /// Appends the facts that lists lead to. They must be in runs.
    fn listed(&self, numbers: &[FactNo], out: &mut Vec<Fact>) -> Result<()> {
        let (numbers, before) = (ascending(numbers), out.len());
        self.packed_things(&FactNumbers::These(&numbers), out)?;
        if out.len() - before == numbers.len() { Ok(()) } else { Err(packed_rows::damaged()) }
    }

    fn packed_things(&self, numbers: &FactNumbers<'_>, out: &mut Vec<Fact>) -> Result<()> {
        let mut names = self.names.borrow_mut();
        self.in_runs(numbers, |run, no| {
            out.push(run.fact(no, &mut names)?);
            Ok(())
        })
    }

    fn thing_rows(&self, numbers: &FactNumbers<'_>, out: &mut Vec<Fact>) -> Result<()> {
        self.rows_of(numbers, |condition, values| self.things_where(condition, values, out))
    }

    fn things_where<P: Params>(&self, condition: &str, values: P, out: &mut Vec<Fact>) -> Result<()> {
        let sql = format!("SELECT {} FROM things WHERE {condition}", rows::FACT);
        let mut names = self.names.borrow_mut();
        each(self.connection, &sql, values, |row| {
            out.push(rows::read_fact(row, &mut names).map_err(fault)?);
            Ok(())
        })
    }

    fn statements_where<P: Params>(
        &self,
        condition: &str,
        values: P,
        fields: VersionFields,
        out: &mut Vec<Version>,
    ) -> Result<()> {
        let (more, columns) = match fields {
            VersionFields::Header => ("", 9),
            VersionFields::Content => (", content", 10),
            VersionFields::All => (", content, change", 11),
        };
        let sql = format!("SELECT {}{more} FROM statements WHERE {condition}", rows::HEADER);
        each(self.connection, &sql, values, |row| {
            out.push(rows::read_version(row, columns).map_err(fault)?);
            Ok(())
        })
    }

    /// Runs a query for each condition that selects rows with these numbers, ascending.
    fn rows_of(&self, numbers: &FactNumbers<'_>, mut run: impl FnMut(&str, &[&dyn ToSql]) -> Result<()>) -> Result<()> {
        match numbers {
            FactNumbers::These(numbers) => numbers.iter().try_for_each(|no| run("tid = ?1", &[&tid(self.scope, *no)])),
            FactNumbers::In(range) => {
                let [from, to] = self.tids(range);
                run("tid >= ?1 AND tid < ?2", &[&from, &to])
            }
        }
    }

    /// Visits those of the facts that are in runs, ascending.
    fn in_runs(
        &self,
        numbers: &FactNumbers<'_>,
        mut show: impl FnMut(&PackedRowReader<'_>, FactNo) -> Result<()>,
    ) -> Result<()> {
        match numbers {
            FactNumbers::These(numbers) => {
                let mut left = *numbers;
                while let Some(next) = left.first() {
                    let mut done = 1;
                    let values = self.tids(&(FactNo(0)..*next));
                    self.each_run("first BETWEEN ?1 AND ?2 ORDER BY first DESC LIMIT 1", values, |run| {
                        done = left.partition_point(|no| *no < run.end()).max(1);
                        let held = left[..done].iter().filter(|no| run.holds(**no));
                        held.copied().try_for_each(|no| show(run, no))?;
                        Ok(ControlFlow::Continue(()))
                    })?;
                    left = &left[done..];
                }
                Ok(())
            }
            FactNumbers::In(range) => {
                let [from, to] = self.tids(range);
                let condition = "first >= coalesce((SELECT max(first) FROM runs WHERE first BETWEEN ?3 AND ?1), ?1)
                    AND first < ?2 ORDER BY first";
                self.each_run(condition, [from, to, tid(self.scope, FactNo(0))], |run| {
                    let held = run.first.max(range.start)..run.end().min(range.end);
                    FactNo::each(held).try_for_each(|no| show(run, no))?;
                    Ok(ControlFlow::Continue(()))
                })
            }
        }
    }

    /// Visits every run that matches a condition, until the callback stops.
    fn each_run<P: Params>(
        &self,
        condition: &str,
        values: P,
        mut show: impl FnMut(&PackedRowReader<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let sql = format!("SELECT {} FROM runs WHERE {condition}", packed_rows::RUN);
        let mut query = self.connection.prepare_cached(&sql).map_err(fault)?;
        let mut found = query.query(values).map_err(fault)?;
        while let Some(row) = found.next().map_err(fault)? {
            if show(&PackedRowReader::read(row)?)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn tids(&self, range: &Range<FactNo>) -> [i64; 2] {
        [tid(self.scope, range.start), tid(self.scope, range.end)]
    }
}

fn ascending(numbers: &[FactNo]) -> Vec<FactNo> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// The fact number in a row's only column, a `tid`.
fn number(row: &Row<'_>) -> Result<FactNo> {
    row.get(0).map(rows::number).map_err(fault)
}

/// The bytes of a list in a row's only column.
fn list<'r>(row: &'r Row<'_>) -> Result<&'r [u8]> {
    row.get_ref(0).map_err(fault)?.as_blob().map_err(|e| fault(e.into()))
}
