//! A project's whole log as JSON lines, and back: the format in which facts move between stores.
//!
//! Lines: a header; for every transaction its new facts, its versions, its provenance and then the transaction itself;
//! client batches; an end line with counts. Everything is preserved exactly, including ids, versions, times and hashes,
//! so a restored project returns the same answers in every view.

use super::Ledger;
use super::verify::{check_identity, check_statement};
use crate::{ClientBatch, Entry, Head, Reader, Writer};
use lukasa_model::content::ABSENT;
use lukasa_model::json::Hash;
use lukasa_model::transaction::TransactionHasher;
use lukasa_model::types::system;
use lukasa_model::version::{Fact, MergeRole, Provenance, RelationshipEnds, Version};
use lukasa_model::{BranchNo, Error, ErrorCode, FactNo, Period, Result, Time, Transaction, Tx, VersionId};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Read, Write};
use std::sync::Arc;
use uuid::Uuid;

/// Version of the dump format, not of Lukasa. 2: headers of transactions contain the rule of canonical text.
const FORMAT: u32 = 2;
/// Facts read per page, and the most rows written at a time.
const CHUNK: usize = 10_000;
/// Versions read per page: few, because their contents may be large.
const STATEMENTS: usize = 1_000;
/// Most bytes of content written at a time.
const BYTES: usize = 32 << 20;
/// The longest line in bytes: 1 MiB of content and its change summary, with every byte escaped.
const LINE_BYTES: u64 = 16 << 20;

/// What a dump contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpReport {
    /// The last transaction.
    pub tx: Tx,
    /// The number of facts.
    pub things: u64,
    /// The number of versions.
    pub statements: u64,
}

/// What was restored from a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// The last transaction.
    pub tx: Tx,
    /// The number of facts.
    pub things: u64,
    /// The number of versions.
    pub statements: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Dump { format: u32, project: String, namespace: Uuid, tx: Tx },
    Thing(FactLine),
    Statement(VersionLine),
    Provenance { thing: FactNo, child: VersionId, parent: VersionId, role: MergeRole },
    Transaction(Transaction),
    ClientBatch { client_id: String, digest: Hash, tx: Option<Tx>, unchanged: u32 },
    End { tx: Tx, things: u64, statements: u64, client_batches: u64, hash: Hash },
}

#[derive(Serialize, Deserialize)]
struct FactLine {
    no: FactNo,
    id: Uuid,
    #[serde(rename = "type")]
    type_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends: Option<(FactNo, FactNo)>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    discriminator: Box<str>,
}

#[derive(Serialize, Deserialize)]
struct VersionLine {
    thing: FactNo,
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
    /// Writes everything recorded so far. Concurrent writers may continue; their transactions are not included.
    pub fn dump(&self, out: &mut dyn Write, progress: &mut dyn FnMut(Tx, Tx)) -> Result<DumpReport> {
        let mut reader = self.store.read(&self.scope)?;
        let head = reader.head()?;
        let mut lines = Lines { out };
        let project = self.scope.project.clone();
        lines.put(&Line::Dump { format: FORMAT, project, namespace: head.namespace, tx: head.tx })?;
        let mut report = DumpReport { tx: head.tx, ..DumpReport::default() };
        let mut things = FactPages { next: FactNo::FIRST, page: Vec::new().into_iter() };
        let mut statements = VersionPages { after: VersionId(0), page: Vec::new().into_iter().peekable() };
        let mut next = Tx::FIRST;
        while next <= head.tx {
            let page = reader.transactions(next, head.tx, 1_000)?;
            if page.is_empty() {
                return Err(Error::internal(format!("transaction {next} is missing")).hint("run `lukasa verify`"));
            }
            for transaction in page {
                next = transaction.tx.next();
                while let Some(statement) = statements.next_of(&mut *reader, transaction.tx)? {
                    while things.next <= statement.thing {
                        lines.put(&Line::Thing(things.take(&mut *reader)?))?;
                        report.things += 1;
                    }
                    lines.put(&Line::Statement(version_line(statement)))?;
                    report.statements += 1;
                }
                for p in reader.provenance_of(transaction.tx)? {
                    lines.put(&Line::Provenance { thing: p.thing, child: p.child, parent: p.parent, role: p.role })?;
                }
                progress(transaction.tx, head.tx);
                lines.put(&Line::Transaction(transaction))?;
            }
        }
        let mut client_batches = 0;
        for (client_id, batch) in reader.client_batches()? {
            if batch.tx.is_none_or(|tx| tx <= head.tx) {
                let ClientBatch { digest, tx, unchanged } = batch;
                lines.put(&Line::ClientBatch { client_id, digest, tx, unchanged })?;
                client_batches += 1;
            }
        }
        let (tx, things, statements) = (report.tx, report.things, report.statements);
        lines.put(&Line::End { tx, things, statements, client_batches, hash: head.hash })?;
        lines.out.flush().map_err(|e| write_fault(&e))?;
        Ok(report)
    }

    /// Reads a dump into this project, which must be empty. All or nothing.
    pub fn restore(&self, input: &mut dyn BufRead, progress: &mut dyn FnMut(Tx, Tx)) -> Result<RestoreReport> {
        let (mut writer, head) = self.open_to_write()?;
        if head.tx != Tx::START || head.next_thing != FactNo::FIRST {
            return Err(Error::conflict(
                ErrorCode::ProjectNotEmpty,
                format!("project `{}` is not empty", self.scope.project),
            )
            .hint("restore into a new project or a new store"));
        }
        let mut restore = Restore::new(head);
        let (mut line, mut number) = (String::new(), 0);
        loop {
            line.clear();
            number += 1;
            let read = (&mut *input).take(LINE_BYTES).read_line(&mut line).map_err(|e| {
                Error::invalid(ErrorCode::UnreadableInput, format!("the dump could not be read: {e}"))
                    .at(format_args!("line {number}"))
            })?;
            if read == 0 {
                return Err(Error::invalid(ErrorCode::TruncatedDump, "the dump ends before its last line")
                    .hint("make the backup again; nothing was restored"));
            }
            let parsed = serde_json::from_str(&line)
                .map_err(|e| Error::invalid(ErrorCode::MalformedDump, format!("not a line of a dump: {e}")));
            let done = parsed.and_then(|parsed| restore.line(&mut *writer, parsed, progress));
            if done.map_err(|e| e.at(format_args!("line {number}")))? {
                break;
            }
        }
        let report =
            RestoreReport { tx: restore.head.tx, things: restore.things_seen, statements: restore.statements_seen };
        writer.commit()?;
        self.wrote(head.position(), restore.head.position());
        Ok(report)
    }
}

/// A restore in progress: rows not yet appended, and the hash chain of the transaction being read.
struct Restore {
    head: Head,
    last: Tx,
    started: bool,
    things: Vec<Fact>,
    statements: Vec<Version>,
    provenance: Vec<Provenance>,
    /// Ids and types by fact number, and which are relationships.
    known: Vec<(Uuid, Arc<str>)>,
    edges: Vec<bool>,
    /// The versions of the transaction being read, without contents.
    stated: Vec<Version>,
    bytes: usize,
    things_seen: u64,
    statements_seen: u64,
    client_batches: u64,
}

impl Restore {
    fn new(head: Head) -> Restore {
        Restore {
            head,
            last: Tx::START,
            started: false,
            things: vec![],
            statements: vec![],
            provenance: vec![],
            known: vec![(Uuid::nil(), "".into())],
            edges: vec![false],
            stated: vec![],
            bytes: 0,
            things_seen: 0,
            statements_seen: 0,
            client_batches: 0,
        }
    }

    /// Processes one line; returns true after the last.
    fn line(&mut self, writer: &mut dyn Writer, line: Line, progress: &mut dyn FnMut(Tx, Tx)) -> Result<bool> {
        let bad = |why: String| {
            Error::invalid(ErrorCode::MalformedDump, why).hint("make the backup again; nothing was restored")
        };
        match line {
            Line::Dump { format, namespace, tx, .. } if !self.started => {
                if format > FORMAT {
                    return Err(Error::new(
                        lukasa_model::ErrorKind::Unsupported,
                        ErrorCode::NewerFormat,
                        format!("the dump has format {format}, this Lukasa reads up to {FORMAT}"),
                    ));
                }
                self.started = true;
                self.last = tx;
                self.head.namespace = namespace;
            }
            _ if !self.started => return Err(bad("the first line is not the header of a dump".into())),
            Line::Dump { .. } => return Err(bad("a second header".into())),
            Line::Thing(line) => {
                if line.no != self.head.next_thing {
                    return Err(bad(format!("fact {} comes where {} is expected", line.no, self.head.next_thing)));
                }
                let thing = Fact {
                    no: line.no,
                    id: line.id,
                    type_name: line.type_name.into(),
                    key: line.key,
                    ends: line.ends.map(|(src, dst)| RelationshipEnds { src, dst, discriminator: line.discriminator }),
                };
                // The ends of a relationship must precede it and be objects of this project.
                check_identity(&thing, &self.known, self.head.namespace).map_err(|e| bad(e.message))?;
                if thing.ends.as_ref().is_some_and(|e| self.edges[e.src.index()] || self.edges[e.dst.index()]) {
                    return Err(bad(format!("relationship {} has a relationship as its end", thing.id)));
                }
                self.head.next_thing = self.head.next_thing.next();
                self.things_seen += 1;
                self.known.push((thing.id, Arc::clone(&thing.type_name)));
                self.edges.push(thing.ends.is_some());
                self.things.push(thing);
            }
            Line::Statement(line) => {
                let statement = read_version(line);
                let due = VersionId::at(self.head.tx.next(), self.stated.len());
                let (_, type_name) =
                    check_statement(&statement, &self.known, due, statement.recorded_at).map_err(|e| bad(e.message))?;
                if system::is(type_name) {
                    self.head.declared.tx = due.tx();
                }
                self.statements_seen += 1;
                self.bytes += statement.content.as_ref().map_or(0, |c| c.len());
                // The hash chain needs no content.
                self.stated.push(Version { content: None, ..statement.clone() });
                self.statements.push(statement);
                if self.statements.len() >= CHUNK || self.bytes >= BYTES {
                    self.flush(writer, None)?;
                }
            }
            Line::Provenance { thing, child, parent, role } => {
                let (things, due) = (FactNo::FIRST..self.head.next_thing, self.head.tx.next());
                if !things.contains(&thing) || child.tx() > due || parent.tx() > due {
                    return Err(bad(format!("provenance of version {child} reaches beyond this project")));
                }
                self.provenance.push(Provenance { thing, child, parent, role });
            }
            Line::Transaction(transaction) => {
                let due = self.head.tx.next();
                if transaction.tx != due {
                    return Err(bad(format!("transaction {} comes where {due} is expected", transaction.tx)));
                }
                let t = &transaction;
                let mut chain = TransactionHasher::new(self.head.hash, t.tx, t.recorded_at, t.branch, &t.header);
                let counts = self.stated.len() as u64 == u64::from(t.objects) + u64::from(t.relationships);
                if !counts
                    || t.recorded_at < self.head.recorded_at
                    || self.stated.iter().any(|s| s.recorded_at != t.recorded_at)
                {
                    return Err(bad(format!("transaction {} has impossible times or counts", t.tx)));
                }
                for s in self.stated.drain(..) {
                    let (id, type_name) = &self.known[s.thing.index()];
                    chain.add_version(*id, type_name, &s);
                }
                self.provenance.sort();
                self.provenance.iter().for_each(|p| chain.add_provenance(p));
                if chain.finish(t.objects, t.relationships) != t.hash {
                    return Err(bad(format!("transaction {} does not match its hash", t.tx)));
                }
                (self.head.hash, self.head.recorded_at) = (t.hash, t.recorded_at);
                if self.head.declared.tx == t.tx {
                    self.head.declared.hash = t.hash;
                }
                self.flush(writer, Some(&transaction))?;
                progress(transaction.tx, self.last);
            }
            Line::ClientBatch { client_id, digest, tx, unchanged } => {
                self.client_batches += 1;
                let client_batch = Some((client_id.as_str(), ClientBatch { digest, tx, unchanged }));
                let (things, statements, provenance) = (&[][..], &[][..], &[][..]);
                let head = self.head;
                writer.append(&Entry { transaction: None, things, statements, provenance, client_batch, head })?;
            }
            Line::End { tx, things, statements, client_batches, hash } => {
                let here = (self.head.tx, self.things_seen, self.statements_seen, self.client_batches, self.head.hash);
                if (tx, things, statements, client_batches, hash) != here {
                    return Err(bad("counts or hash at the end do not match what came before".into()));
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn flush(&mut self, writer: &mut dyn Writer, transaction: Option<&Transaction>) -> Result<()> {
        let mut head = self.head;
        head.tx = head.tx.next();
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
        self.bytes = 0;
        if transaction.is_some() {
            self.head.tx = head.tx;
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
        ErrorCode::CannotWrite,
        format!("the output could not be written: {error}"),
    )
}

/// Facts in order, page by page.
struct FactPages {
    next: FactNo,
    page: std::vec::IntoIter<Fact>,
}

impl FactPages {
    fn take(&mut self, reader: &mut dyn Reader) -> Result<FactLine> {
        if self.page.len() == 0 {
            self.page = reader.facts_in(self.next..self.next.plus(CHUNK))?.into_iter();
        }
        let thing = self.page.next().filter(|t| t.no == self.next);
        let thing = thing
            .ok_or_else(|| Error::internal(format!("fact {} is missing", self.next)).hint("run `lukasa verify`"))?;
        self.next = self.next.next();
        let (ends, discriminator) = match thing.ends {
            Some(ends) => (Some((ends.src, ends.dst)), ends.discriminator),
            None => (None, "".into()),
        };
        Ok(FactLine {
            no: thing.no,
            id: thing.id,
            type_name: thing.type_name.to_string(),
            key: thing.key,
            ends,
            discriminator,
        })
    }
}

/// Versions in order of recording, page by page.
struct VersionPages {
    after: VersionId,
    page: std::iter::Peekable<std::vec::IntoIter<Version>>,
}

impl VersionPages {
    fn next_of(&mut self, reader: &mut dyn Reader, tx: Tx) -> Result<Option<Version>> {
        if self.page.peek().is_none() {
            self.page = reader.versions_after(self.after, STATEMENTS)?.into_iter().peekable();
        }
        let next = self.page.next_if(|s| s.version.tx() == tx);
        if let Some(statement) = &next {
            self.after = statement.version;
        }
        Ok(next)
    }
}

fn version_line(s: Version) -> VersionLine {
    VersionLine {
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

fn read_version(line: VersionLine) -> Version {
    Version {
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
