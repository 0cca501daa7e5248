//! Inserts many rows with one statement: a virtual table through which SQLite reads our memory.
//!
//! One `INSERT` per row opens cursors and descends from the root of every B-tree each time. One `INSERT … SELECT` over
//! all rows keeps the cursors in place, and most rows are appended after the last one.

use crate::saturated;
use rusqlite::ffi::{sqlite3_vtab, sqlite3_vtab_cursor};
use rusqlite::types::ToSqlOutput;
use rusqlite::vtab::{Context, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConnection, VTabCursor};
use rusqlite::{Connection, Result};
use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::marker::PhantomData;
use std::rc::Rc;

/// Rows of up to twelve columns.
pub trait RowSource {
    /// The number of rows.
    fn count(&self) -> usize;
    /// The value at a row and column, both counted from 0.
    fn value(&self, row: usize, column: usize) -> ToSqlOutput<'_>;
}

const NAME: &CStr = c"given_rows";
const POINTER: c_int = 12;

/// Registers the virtual table. Must be called before the first `insert`.
pub fn load(connection: &Connection) -> Result<()> {
    const MODULE: Module<Table> = Module::eponymous_only_module();
    connection.create_module(NAME, &MODULE, None::<()>)
}

/// Runs `sql`, which reads the columns `c0` to `c11` of `given_rows(?1)`.
pub fn insert(connection: &Connection, sql: &str, rows: &dyn RowSource) -> Result<()> {
    if rows.count() == 0 {
        return Ok(());
    }
    // SAFETY: the rows are only reached through `given`, and are taken out of it before they may be dropped.
    #[allow(unsafe_code)]
    let rows: &'static dyn RowSource = unsafe { std::mem::transmute::<&dyn RowSource, &'static dyn RowSource>(rows) };
    let given = Rc::new(Given(Cell::new(Some(rows))));
    let _taken_back = TakeBack(&given);
    let mut statement = connection.prepare_cached(sql)?;
    statement.execute([ToSqlOutput::from_rc(Rc::clone(&given), NAME)])?;
    Ok(())
}

struct Given(Cell<Option<&'static dyn RowSource>>);

struct TakeBack<'a>(&'a Given);

impl Drop for TakeBack<'_> {
    fn drop(&mut self) {
        self.0.0.set(None);
    }
}

#[repr(C)]
struct Table {
    /// SQLite's part; must be the first field.
    base: sqlite3_vtab,
}

#[repr(C)]
struct Cursor<'vtab> {
    base: sqlite3_vtab_cursor,
    at: usize,
    given: Option<&'vtab Given>,
    table: PhantomData<&'vtab Table>,
}

// SAFETY: `base` is the first field and the layout is C's.
#[allow(unsafe_code)]
unsafe impl<'vtab> VTab<'vtab> for Table {
    type Aux = ();
    type Cursor = Cursor<'vtab>;

    fn connect(
        _: &mut VTabConnection,
        _: Option<&()>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        let columns = c"CREATE TABLE x(c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, pointer HIDDEN)";
        Ok((Cow::Borrowed(columns), Table { base: sqlite3_vtab::default() }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let mut found = false;
        for (constraint, mut usage) in info.constraints_and_usages() {
            let is_equal = constraint.operator() == IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ;
            if constraint.is_usable() && is_equal && constraint.column() == POINTER {
                usage.set_argv_index(1);
                usage.set_omit(true);
                found = true;
            }
        }
        info.set_idx_num(c_int::from(found));
        Ok(found)
    }

    fn open(&mut self) -> Result<Cursor<'_>> {
        Ok(Cursor { base: sqlite3_vtab_cursor::default(), at: 0, given: None, table: PhantomData })
    }
}

impl Cursor<'_> {
    fn rows(&self) -> Option<&'static dyn RowSource> {
        self.given.and_then(|given| given.0.get())
    }
}

// SAFETY: `base` is the first field and the layout is C's.
#[allow(unsafe_code)]
unsafe impl VTabCursor for Cursor<'_> {
    fn filter(&mut self, number: c_int, _: Option<&str>, args: &Filters<'_>) -> Result<()> {
        self.at = 0;
        // SAFETY: only `insert` binds pointers of this name, to a value that the statement keeps alive while it runs.
        self.given = if number == 0 { None } else { unsafe { args.get_pointer::<Given>(0, NAME) } };
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.rows().is_none_or(|rows| self.at >= rows.count())
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        match self.rows() {
            Some(rows) if column < POINTER => {
                context.set_result(rows.value(self.at, usize::try_from(column).unwrap_or_default()))
            }
            _ => Ok(()),
        }
    }

    fn rowid(&self) -> Result<i64> {
        Ok(saturated(self.at))
    }
}
