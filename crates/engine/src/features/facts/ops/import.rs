//! `import`: reads facts from a stream, in batches of bounded size.

use crate::convert::to_usize;
use crate::registry::WRITE;
use crate::registry::{DataStream, Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::WriteTarget;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::transaction::Header;
use lukasa_model::{Batch, Error, ErrorCode, Result, Time, TransactionKind, Tx, Write};
use lukasa_store::Ledger;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

mod node_link;

pub struct ImportOp;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ImportFormat {
    /// One object, relationship or end per line; a dump is recognized by its first line.
    #[default]
    Jsonl,
    /// `{"nodes": […], "links": […]}`, as networkx writes it.
    NodeLink,
}

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The file to read; `-` for standard input.
    pub file: String,
    /// Format of the file.
    #[serde(default)]
    pub format: ImportFormat,
    /// Lines per transaction, up to 100,000.
    #[serde(default = "size")]
    pub batch_size: usize,
    /// Start of validity for writes without a time; now when left out.
    #[serde(default)]
    pub valid_at: Option<Time>,
    #[serde(flatten)]
    pub target: WriteTarget,
}

fn size() -> usize {
    10_000
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub lines: u64,
    pub objects: u64,
    pub relationships: u64,
    pub unchanged: u64,
    pub transactions: u64,
    pub last_tx: Option<Tx>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Maximum bytes of a line: a version may have 1 MiB of properties, and JSON may escape every byte.
const LINE_BYTES: u64 = 8 << 20;

impl Op for ImportOp {
    const META: Meta = Meta {
        name: "import",
        long: true,
        shown: ResponseView::Summary,
        stream: DataStream::In,
        answer: &["objects", "relationships", "unchanged", "transactions", "last_tx", "lines"],
        files: &["file"],
        summary: "Read facts from a file",
        description: "JSON lines like {\"object\": {\"type\": \"Service\", \"key\": \"auth\"}}, \
                      {\"relationship\": {\"type\": \"CALLS\", \"src\": \"Service:web\", \"dst\": \"Service:auth\"}} and \
                      {\"end\": {\"ref\": \"Service:old\"}}; or node-link JSON; or a dump made by `export --history`, \
                      which restores a whole project into an empty one. Lines are written in batches, each whole or \
                      not at all; an error names its line. Importing the same again writes nothing.",
        verb: "import",
        positional: &["file"],
        examples: &["lukasa import facts.jsonl", "lukasa import graph.json --format node-link"],
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        if request.batch_size == 0 || request.batch_size > 100_000 {
            return Err(Error::invalid(ErrorCode::InvalidBatchSize, "batch_size is not within 1 to 100000"));
        }
        let ledger = engine.ledger(&context.scope);
        let batch = request.target.batch(context);
        let header = Header { kind: TransactionKind::Import, valid_at: request.valid_at, ..batch.header };
        let mut importer = Importer {
            engine,
            ledger: &ledger,
            batch: Batch { header, ..batch },
            places: vec![],
            size: request.batch_size,
            done: Response {
                summary: String::new(),
                lines: 0,
                objects: 0,
                relationships: 0,
                unchanged: 0,
                transactions: 0,
                last_tx: None,
                warnings: vec![],
            },
        };
        let Context { input, progress, .. } = context;
        // A surface may provide the input as a stream; otherwise the file is opened here.
        let mut file = match input {
            None if request.file != "-" => {
                let file = File::open(&request.file)
                    .map_err(|e| crate::data_files::file_fault(Path::new(&request.file), &e))?;
                Some(BufReader::new(file))
            }
            _ => None,
        };
        let input: &mut dyn BufRead = match (input, &mut file) {
            (Some(input), _) => *input,
            (None, Some(file)) => file,
            (None, None) => {
                return Err(Error::invalid(ErrorCode::NoInput, "there is nothing to read").hint("name a file"));
            }
        };
        match request.format {
            ImportFormat::NodeLink => {
                node_link::read(input, &mut |place, write| importer.take(place, write, *progress))?
            }
            ImportFormat::Jsonl => {
                if is_dump(input)? {
                    return restore(&ledger, input, *progress);
                }
                let mut lines = Lines { input, number: 0 };
                while let Some(write) = lines.next().map_err(|e| importer.with_progress(e))? {
                    let place = format!("line {}", lines.number);
                    importer.take(place, write, *progress)?;
                }
            }
        }
        importer.flush()?;
        let mut done = importer.done;
        done.summary = format!(
            "imported {}: {} and {} written, {} unchanged, in {}",
            count(done.lines, "line"),
            count(done.objects, "object"),
            count(done.relationships, "relationship"),
            done.unchanged,
            count(done.transactions, "transaction")
        );
        Ok(done)
    }
}

fn is_dump(input: &mut dyn BufRead) -> Result<bool> {
    Ok(input.fill_buf().map_err(|e| unreadable(&e))?.starts_with(b"{\"dump\":"))
}

fn unreadable(error: &std::io::Error) -> Error {
    Error::invalid(ErrorCode::UnreadableInput, format!("the input could not be read: {error}"))
}

fn restore(ledger: &Ledger, input: &mut dyn BufRead, progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<Response> {
    let done = ledger.restore(input, &mut |tx, of| progress(tx.0, Some(of.0)))?;
    Ok(Response {
        summary: format!("restored {} transactions, {} things, {} statements", done.tx, done.things, done.statements),
        lines: done.tx.0 + done.things + done.statements,
        objects: 0,
        relationships: 0,
        unchanged: 0,
        transactions: done.tx.0,
        last_tx: Some(done.tx),
        warnings: vec![],
    })
}

struct Importer<'a> {
    engine: &'a Engine,
    ledger: &'a Ledger,
    batch: Batch,
    /// The place in the input of each write of the batch.
    places: Vec<String>,
    size: usize,
    done: Response,
}

impl Importer<'_> {
    fn take(&mut self, place: String, write: Write, progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<()> {
        self.batch.writes.push(write);
        self.places.push(place);
        self.done.lines += 1;
        if self.batch.writes.len() >= self.size {
            self.flush()?;
            progress(self.done.lines, None);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.batch.writes.is_empty() {
            return Ok(());
        }
        self.engine.declare_needed_packs(self.ledger.scope(), &self.batch)?;
        let committed = self.ledger.commit(&self.batch).map_err(|e| self.explain(e))?;
        self.batch.writes.clear();
        self.places.clear();
        self.done.objects += u64::from(committed.objects);
        self.done.relationships += u64::from(committed.relationships);
        self.done.unchanged += committed.unchanged as u64;
        self.done.transactions += u64::from(committed.tx.is_some());
        self.done.last_tx = committed.tx.or(self.done.last_tx);
        for warning in committed.warnings {
            if !self.done.warnings.contains(&warning) {
                self.done.warnings.push(warning);
            }
        }
        Ok(())
    }

    /// Adds the place in the input to an error of a batch.
    fn explain(&self, error: Error) -> Error {
        let error = self.with_progress(error);
        let place = error.details.get("write").and_then(Value::as_u64).and_then(|i| self.places.get(to_usize(i)));
        match place {
            Some(place) => error.clone().at(place),
            None => error,
        }
    }

    /// Adds to the hint of an error how much was written before.
    fn with_progress(&self, error: Error) -> Error {
        let written = match self.done.last_tx {
            Some(tx) => format!(
                "transactions up to {tx} were written; correct the input and import it again: facts that are written already are skipped"
            ),
            None => "nothing was written".into(),
        };
        let hint = error.hint.as_ref().map_or_else(|| written.clone(), |hint| format!("{hint}; {written}"));
        error.hint(hint)
    }
}

struct Lines<'a> {
    input: &'a mut dyn BufRead,
    number: u64,
}

impl Lines<'_> {
    /// The next write; blank lines are skipped.
    fn next(&mut self) -> Result<Option<Write>> {
        use std::io::Read;
        loop {
            self.number += 1;
            let mut line = Vec::new();
            let read =
                (&mut *self.input).take(LINE_BYTES + 1).read_until(b'\n', &mut line).map_err(|e| unreadable(&e))?;
            if read == 0 {
                return Ok(None);
            }
            if read as u64 > LINE_BYTES {
                return Err(Error::too_large(
                    ErrorCode::LineTooLong,
                    format!("a line is longer than {LINE_BYTES} bytes"),
                )
                .at(format_args!("line {}", self.number)));
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let text = if self.number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line) } else { &line };
            return serde_json::from_slice(text).map(Some).map_err(|e| {
                // serde_json reports a line number, which is always 1 here.
                let why = e.to_string();
                let why = why.split(" at line ").next().unwrap_or(&why);
                let error = if why.contains("recursion limit") {
                    Error::too_large(ErrorCode::JsonTooDeep, "the JSON is nested too deeply")
                } else {
                    Error::invalid(ErrorCode::MalformedLine, format!("not a fact: {why} (column {})", e.column())).hint(
                        "a line is {\"object\": {…}}, {\"relationship\": {…}} or {\"end\": {…}}; a graph in one piece is \
                         read with --format node-link",
                    )
                };
                error.details(json!({"line": self.number})).at(format_args!("line {}", self.number))
            });
        }
    }
}
