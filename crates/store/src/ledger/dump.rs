//! A project's whole log as JSON lines, and back: the form in which facts move between stores.
//!
//! Lines: a header; for every transaction its new things, its statements, its provenance and then the
//! transaction itself; client batches; an end line with counts. Everything is kept to the letter, so ids,
//! versions, times and hashes survive, and a restored project gives the same answers in every view.

use super::Ledger;
use crate::{ClientBatch, Entry, Head, Reader, Writer};
use lukasa_model::content::ABSENT;
use lukasa_model::json::Hash;
use lukasa_model::statement::{Ends, Provenance, Role, Statement, Thing};
use lukasa_model::transaction::Chain;
use lukasa_model::types::system;
use lukasa_model::{BranchNo, Error, Period, Result, ThingNo, Time, Transaction, Tx, VersionId};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};
use uuid::Uuid;

/// Of the format, not of Lukasa.
const FORMAT: u32 = 1;
/// Rows read or written at a time.
const CHUNK: usize = 10_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpReport {
    pub tx: Tx,
    pub things: u64,
    pub statements: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    pub tx: Tx,
    pub things: u64,
    pub statements: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Dump { format: u32, project: String, namespace: Uuid, tx: Tx },
    Thing(ThingLine),
    Statement(StatementLine),
    Provenance { thing: ThingNo, child: VersionId, parent: VersionId, role: Role },
    Transaction(Transaction),
    ClientBatch { client_id: String, digest: Hash, tx: Option<Tx>, unchanged: u32 },
    End { tx: Tx, things: u64, statements: u64, hash: Hash },
}

#[derive(Serialize, Deserialize)]
struct ThingLine {
    no: ThingNo,
    id: Uuid,
    #[serde(rename = "type")]
    type_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends: Option<(ThingNo, ThingNo)>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    discriminator: Box<str>,
}

#[derive(Serialize, Deserialize)]
struct StatementLine {
    thing: ThingNo,
    branch: BranchNo,
    version: VersionId,
    recorded_at: i64,
    valid: (i64, i64),
    number: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parents: Vec<VersionId>,
    hash: Hash,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    change: Option<Box<str>>,
}

impl Ledger {
    /// Writes everything recorded so far. Others may go on writing; what they add is left out.
    pub fn dump(&self, out: &mut dyn Write, progress: &mut dyn FnMut(Tx, Tx)) -> Result<DumpReport> {
        let mut reader = self.store.read(&self.scope)?;
        let head = reader.head()?;
        let mut lines = Lines { out };
        let project = self.scope.project.clone();
        lines.put(&Line::Dump { format: FORMAT, project, namespace: head.namespace, tx: head.tx })?;
        let mut report = DumpReport { tx: head.tx, ..DumpReport::default() };
        let mut things = Things { next: 1, page: Vec::new().into_iter() };
        let mut statements = Statements { after: VersionId(0), page: Vec::new().into_iter().peekable() };
        let mut next = 1;
        while next <= head.tx {
            for transaction in reader.transactions(next, head.tx, 1_000)? {
                next = transaction.tx + 1;
                while let Some(statement) = statements.next_of(&mut *reader, transaction.tx)? {
                    while things.next <= statement.thing {
                        lines.put(&Line::Thing(things.take(&mut *reader)?))?;
                        report.things += 1;
                    }
                    lines.put(&Line::Statement(statement_line(statement)))?;
                    report.statements += 1;
                }
                for p in reader.provenance_of(transaction.tx)? {
                    lines.put(&Line::Provenance { thing: p.thing, child: p.child, parent: p.parent, role: p.role })?;
                }
                progress(transaction.tx, head.tx);
                lines.put(&Line::Transaction(transaction))?;
            }
        }
        for (client_id, batch) in reader.client_batches()? {
            if batch.tx.is_none_or(|tx| tx <= head.tx) {
                let ClientBatch { digest, tx, unchanged } = batch;
                lines.put(&Line::ClientBatch { client_id, digest, tx, unchanged })?;
            }
        }
        let (tx, things, statements) = (report.tx, report.things, report.statements);
        lines.put(&Line::End { tx, things, statements, hash: head.hash })?;
        lines.out.flush().map_err(|e| write_fault(&e))?;
        Ok(report)
    }

    /// Reads a dump into this project, which must be empty. All or nothing.
    pub fn restore(&self, input: &mut dyn BufRead, progress: &mut dyn FnMut(Tx, Tx)) -> Result<RestoreReport> {
        let mut writer = self.store.write(&self.scope)?;
        let head = writer.head()?;
        if head.tx != 0 || head.next_thing != 1 {
            return Err(Error::conflict("project_not_empty", format!("project `{}` is not empty", self.scope.project))
                .hint("restore into a new project or a new store"));
        }
        let mut restore = Restore::new(head);
        let (mut line, mut number) = (String::new(), 0);
        loop {
            line.clear();
            number += 1;
            let read = input.read_line(&mut line).map_err(|e| {
                Error::invalid("unreadable_input", format!("the dump could not be read: {e}"))
                    .at(format_args!("line {number}"))
            })?;
            if read == 0 {
                return Err(Error::invalid("truncated_dump", "the dump ends before its last line")
                    .hint("make the backup again; nothing was restored"));
            }
            let parsed = serde_json::from_str(&line)
                .map_err(|e| Error::invalid("malformed_dump", format!("not a line of a dump: {e}")));
            let done = parsed.and_then(|parsed| restore.line(&mut *writer, parsed, progress));
            if done.map_err(|e| e.at(format_args!("line {number}")))? {
                break;
            }
        }
        let report =
            RestoreReport { tx: restore.head.tx, things: restore.things_seen, statements: restore.statements_seen };
        writer.commit()?;
        Ok(report)
    }
}

/// A restore under way: rows not yet appended, and the chain over the transaction being read.
struct Restore {
    head: Head,
    last: Tx,
    started: bool,
    things: Vec<Thing>,
    statements: Vec<Statement>,
    provenance: Vec<Provenance>,
    /// Ids by thing number, for the chain.
    ids: Vec<Uuid>,
    system: Vec<bool>,
    stated: Vec<(Uuid, Statement)>,
    things_seen: u64,
    statements_seen: u64,
}

impl Restore {
    fn new(head: Head) -> Restore {
        Restore {
            head,
            last: 0,
            started: false,
            things: vec![],
            statements: vec![],
            provenance: vec![],
            ids: vec![Uuid::nil()],
            system: vec![false],
            stated: vec![],
            things_seen: 0,
            statements_seen: 0,
        }
    }

    /// Takes one line; true after the last.
    fn line(&mut self, writer: &mut dyn Writer, line: Line, progress: &mut dyn FnMut(Tx, Tx)) -> Result<bool> {
        let bad =
            |why: String| Error::invalid("malformed_dump", why).hint("make the backup again; nothing was restored");
        match line {
            Line::Dump { format, namespace, tx, .. } if !self.started => {
                if format > FORMAT {
                    return Err(Error::new(
                        lukasa_model::ErrorKind::Unsupported,
                        "newer_format",
                        format!("the dump has format {format}, this Lukasa reads up to {FORMAT}"),
                    ));
                }
                self.started = true;
                self.last = tx;
                self.head.namespace = namespace;
            }
            _ if !self.started => return Err(bad("the first line is not that of a dump".into())),
            Line::Dump { .. } => return Err(bad("a second header".into())),
            Line::Thing(line) => {
                if line.no != self.head.next_thing {
                    return Err(bad(format!("thing {} comes where {} is due", line.no, self.head.next_thing)));
                }
                self.head.next_thing += 1;
                self.things_seen += 1;
                self.ids.push(line.id);
                self.system.push(system::is(&line.type_name));
                self.things.push(Thing {
                    no: line.no,
                    id: line.id,
                    type_name: line.type_name.into(),
                    key: line.key,
                    ends: line.ends.map(|(src, dst)| Ends { src, dst, discriminator: line.discriminator }),
                });
            }
            Line::Statement(line) => {
                let statement = read_statement(line);
                let at = statement.thing as usize;
                let (Some(id), Some(system)) = (self.ids.get(at), self.system.get(at)) else {
                    return Err(bad(format!("version {} is about a thing not yet named", statement.version)));
                };
                let hash = statement.content.as_deref().map_or(ABSENT, |text| Hash::of(text.as_bytes()));
                if hash != statement.hash {
                    return Err(bad(format!("the content of version {} does not match its hash", statement.version)));
                }
                if statement.version.tx() != self.head.tx + 1 {
                    return Err(bad(format!(
                        "version {} comes in transaction {}",
                        statement.version,
                        self.head.tx + 1
                    )));
                }
                if *system {
                    self.head.declared = statement.version.tx();
                }
                self.statements_seen += 1;
                // The chain needs no content.
                self.stated.push((*id, Statement { content: None, change: None, ..statement.clone() }));
                self.statements.push(statement);
                if self.statements.len() >= CHUNK {
                    self.flush(writer, None)?;
                }
            }
            Line::Provenance { thing, child, parent, role } => {
                self.provenance.push(Provenance { thing, child, parent, role });
            }
            Line::Transaction(transaction) => {
                if transaction.tx != self.head.tx + 1 {
                    return Err(bad(format!("transaction {} comes where {} is due", transaction.tx, self.head.tx + 1)));
                }
                let t = &transaction;
                let mut chain = Chain::new(self.head.hash, t.tx, t.recorded_at, t.branch, &t.header);
                self.stated.drain(..).for_each(|(id, s)| chain.statement(id, &s));
                self.provenance.sort();
                self.provenance.iter().for_each(|p| chain.provenance(p));
                if chain.finish() != t.hash {
                    return Err(bad(format!("transaction {} does not match its hash", t.tx)));
                }
                (self.head.hash, self.head.recorded_at) = (t.hash, t.recorded_at);
                self.flush(writer, Some(&transaction))?;
                progress(transaction.tx, self.last);
            }
            Line::ClientBatch { client_id, digest, tx, unchanged } => {
                let client_batch = Some((client_id.as_str(), ClientBatch { digest, tx, unchanged }));
                let (things, statements, provenance) = (&[][..], &[][..], &[][..]);
                let head = self.head;
                writer.append(&Entry { transaction: None, things, statements, provenance, client_batch, head })?;
            }
            Line::End { tx, things, statements, hash } => {
                let here = (self.head.tx, self.things_seen, self.statements_seen, self.head.hash);
                if (tx, things, statements, hash) != here {
                    return Err(bad("counts or hash at the end do not match what came before".into()));
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn flush(&mut self, writer: &mut dyn Writer, transaction: Option<&Transaction>) -> Result<()> {
        let mut head = self.head;
        head.tx += 1;
        let provenance = if transaction.is_some() { std::mem::take(&mut self.provenance) } else { vec![] };
        writer.append(&Entry {
            transaction,
            things: &self.things,
            statements: &self.statements,
            provenance: &provenance,
            client_batch: None,
            head,
        })?;
        self.things.clear();
        self.statements.clear();
        if transaction.is_some() {
            self.head.tx += 1;
        }
        Ok(())
    }
}

struct Lines<'a> {
    out: &'a mut dyn Write,
}

impl Lines<'_> {
    fn put(&mut self, line: &Line) -> Result<()> {
        let mut text =
            serde_json::to_vec(line).map_err(|e| Error::internal(format!("a row cannot be written: {e}")))?;
        text.push(b'\n');
        self.out.write_all(&text).map_err(|e| write_fault(&e))
    }
}

fn write_fault(error: &std::io::Error) -> Error {
    Error::new(
        lukasa_model::ErrorKind::Unavailable,
        "cannot_write",
        format!("the output could not be written: {error}"),
    )
}

/// Things in order, a page at a time.
struct Things {
    next: ThingNo,
    page: std::vec::IntoIter<Thing>,
}

impl Things {
    fn take(&mut self, reader: &mut dyn Reader) -> Result<ThingLine> {
        if self.page.len() == 0 {
            self.page = reader.things_in(self.next..self.next + CHUNK as ThingNo)?.into_iter();
        }
        let thing = self.page.next().filter(|t| t.no == self.next);
        let thing = thing
            .ok_or_else(|| Error::internal(format!("thing {} is missing", self.next)).hint("run `lukasa verify`"))?;
        self.next += 1;
        let (ends, discriminator) = match thing.ends {
            Some(ends) => (Some((ends.src, ends.dst)), ends.discriminator),
            None => (None, "".into()),
        };
        Ok(ThingLine {
            no: thing.no,
            id: thing.id,
            type_name: thing.type_name.to_string(),
            key: thing.key,
            ends,
            discriminator,
        })
    }
}

/// Statements in order of recording, a page at a time.
struct Statements {
    after: VersionId,
    page: std::iter::Peekable<std::vec::IntoIter<Statement>>,
}

impl Statements {
    fn next_of(&mut self, reader: &mut dyn Reader, tx: Tx) -> Result<Option<Statement>> {
        if self.page.peek().is_none() {
            self.page = reader.statements_after(self.after, CHUNK)?.into_iter().peekable();
        }
        let next = self.page.next_if(|s| s.version.tx() == tx);
        if let Some(statement) = &next {
            self.after = statement.version;
        }
        Ok(next)
    }
}

fn statement_line(s: Statement) -> StatementLine {
    StatementLine {
        thing: s.thing,
        branch: s.branch,
        version: s.version,
        recorded_at: s.recorded_at.0,
        valid: (s.period.from.0, s.period.to.0),
        number: s.number,
        parents: s.parents,
        hash: s.hash,
        content: s.content,
        change: s.change,
    }
}

fn read_statement(line: StatementLine) -> Statement {
    Statement {
        thing: line.thing,
        branch: line.branch,
        version: line.version,
        recorded_at: Time(line.recorded_at),
        period: Period { from: Time(line.valid.0), to: Time(line.valid.1) },
        number: line.number,
        parents: line.parents,
        absent: line.hash == ABSENT,
        hash: line.hash,
        content: line.content,
        change: line.change,
    }
}
