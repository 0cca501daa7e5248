//! `export`: writes the facts of a view, or the whole log, to a stream.

use crate::registry::META;
use crate::registry::{DataStream, Meta, Op};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::{Context, Engine, sensitive};
use lukasa_model::batch::{PutObject, PutRelationship};
use lukasa_model::types::Registry;
use lukasa_model::{Error, ErrorCode, ErrorKind, FactNo, Result, View, Write as Fact};
use lukasa_store::ledger::{ViewRow, ViewSpec, hide};
use lukasa_store::{Ledger, VersionFields, private};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

pub struct ExportOp;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// One object or relationship per line.
    #[default]
    Jsonl,
    /// `{"nodes": […], "links": […]}`, readable by networkx.
    NodeLink,
}

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The file to write; `-` for standard output.
    #[serde(default = "dash")]
    pub file: String,
    /// Format of the file.
    #[serde(default)]
    pub format: ExportFormat,
    /// Export the whole log with every version and branch instead of one view.
    #[serde(default)]
    pub history: bool,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn dash() -> String {
    "-".into()
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub objects: u64,
    pub relationships: u64,
    /// Lasting relationships whose object has ended; an import could not attach them. `history` contains them.
    pub left_out: u64,
}

impl Op for ExportOp {
    const META: Meta = Meta {
        name: "export",
        long: true,
        shown: ResponseView::Summary,
        stream: DataStream::Out,
        answer: &["objects", "relationships", "left_out"],
        files: &["file"],
        instead_of_view: &["history"],
        summary: "Write facts to a file",
        description: "What is visible in a view, as JSON lines or node-link JSON that `import` reads again; or with \
                      `history` a dump of the whole project that gives the same answers in every view once imported.",
        verb: "export",
        positional: &["file"],
        examples: &[
            "lukasa export facts.jsonl",
            "lukasa export --format node-link --as-of release:1.0 > graph.json",
            "lukasa export --history all.jsonl",
        ],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let ledger = engine.ledger(&context.scope);
        let kept = sensitive::kept_from(context, &ledger)?;
        let mut file = made(context, &request.file)?;
        if request.history {
            if kept.is_some() {
                // A log with gaps cannot be verified, so nothing may be left out.
                context.grants.check("export --history", sensitive::SCOPE)?;
            }
            if request.view != ViewSpec::default() || request.format != ExportFormat::Jsonl {
                return Err(Error::invalid(ErrorCode::HistoryIsWhole, "`history` exports everything, as JSON lines")
                    .hint("leave out branch, times and format"));
            }
            let Context { output, progress, .. } = context;
            let output = sink(output, &mut file)?;
            let done = ledger.dump(output, &mut |tx, of| progress(tx.0, Some(of.0)))?;
            output.flush().map_err(|e| unwritable(&e))?;
            let summary = format!(
                "exported {}, {} things, {} statements",
                count(done.tx.0, "transaction"),
                done.things,
                done.statements
            );
            return Ok(Response { summary, objects: done.things, relationships: 0, left_out: 0 });
        }
        let view = ledger.view(&request.view)?;
        let output = sink(&mut context.output, &mut file)?;
        let (objects, relationships, left_out) = match request.format {
            ExportFormat::Jsonl => jsonl(&ledger, &view, kept.as_deref(), output)?,
            ExportFormat::NodeLink => node_link(&ledger, &view, kept.as_deref(), output)?,
        };
        output.flush().map_err(|e| unwritable(&e))?;
        let (o, r) = (count(objects, "object"), count(relationships, "relationship"));
        let mut summary = format!("exported {o} and {r} of {}", view.branch_name);
        if left_out > 0 {
            summary += &format!("; left out {} to ended objects", count(left_out, "relationship"));
        }
        Ok(Response { summary, objects, relationships, left_out })
    }
}

/// Creates the file unless the caller provides a stream; refuses to overwrite an existing file.
pub fn made(context: &Context<'_>, file: &str) -> Result<Option<BufWriter<File>>> {
    if context.output.is_some() || file == "-" {
        return Ok(None);
    }
    let made = private::create_new(Path::new(file)).map_err(|e| crate::data_files::file_fault(Path::new(file), &e))?;
    Ok(Some(BufWriter::new(made)))
}

/// Returns the caller's stream, or the created file.
pub fn sink<'a>(
    output: &'a mut Option<&mut dyn Write>,
    file: &'a mut Option<BufWriter<File>>,
) -> Result<&'a mut dyn Write> {
    match (output, file) {
        (Some(output), _) => Ok(&mut **output),
        (None, Some(file)) => Ok(file),
        (None, None) => Err(Error::invalid(ErrorCode::NoOutput, "there is nowhere to write").hint("name a file")),
    }
}

/// The error for output that cannot be written.
pub fn unwritable(error: &std::io::Error) -> Error {
    let code =
        if error.kind() == std::io::ErrorKind::BrokenPipe { ErrorCode::BrokenPipe } else { ErrorCode::CannotWrite };
    Error::new(ErrorKind::Unavailable, code, format!("the output could not be written: {error}"))
}

/// Names of objects by number, for the ends of relationships.
type Names = FxHashMap<FactNo, String>;

fn jsonl(ledger: &Ledger, view: &View, kept: Option<&Registry>, out: &mut dyn Write) -> Result<(u64, u64, u64)> {
    let (mut objects, mut relationships, mut left_out) = (0, 0, 0);
    let mut names = Names::default();
    for row in ledger.stream_view(view, VersionFields::Content)? {
        let row = stripped(row?, kept)?;
        let Some(fact) = fact(&row, &mut names)? else {
            left_out += u64::from(row.thing.ends.is_some());
            continue;
        };
        *(if row.thing.ends.is_none() { &mut objects } else { &mut relationships }) += 1;
        line(out, &fact)?;
    }
    Ok((objects, relationships, left_out))
}

/// Writes a value as one line of JSON.
pub fn line(out: &mut dyn Write, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec(value).map_err(|e| Error::internal(format!("a fact cannot be written: {e}")))?;
    text.push(b'\n');
    out.write_all(&text).map_err(|e| unwritable(&e))
}

/// Removes the sensitive properties that the caller may not read.
fn stripped(mut row: ViewRow, kept: Option<&Registry>) -> Result<ViewRow> {
    if let Some(registry) = kept {
        sensitive::count(hide(registry, &row.thing, &mut row.statement)?.len());
    }
    Ok(row)
}

/// Converts a visible row to the write that recreates it. Returns `None` for internal types and for lasting
/// relationships whose object has ended, which an import could not attach.
fn fact(row: &ViewRow, names: &mut Names) -> Result<Option<Fact>> {
    let content = row.statement.parsed()?;
    let period = row.statement.period;
    let bounded = |t: lukasa_model::Time| (t != lukasa_model::Time::MIN && t != lukasa_model::Time::MAX).then_some(t);
    let (valid_from, valid_to) = (bounded(period.from), bounded(period.to));
    Ok(match &row.thing.ends {
        None if row.is_system() => None,
        None => {
            names.insert(row.thing.no, row.thing.name());
            Some(PutObject { valid_from, valid_to, ..PutObject::of(&row.thing) }.with_content(content).into())
        }
        Some(ends) => {
            let (Some(src), Some(dst)) = (names.get(&ends.src), names.get(&ends.dst)) else { return Ok(None) };
            let put = PutRelationship::of(&row.thing, src.as_str(), dst.as_str());
            Some(PutRelationship { valid_from, valid_to, ..put }.with_content(content).into())
        }
    })
}

fn node_link(ledger: &Ledger, view: &View, kept: Option<&Registry>, out: &mut dyn Write) -> Result<(u64, u64, u64)> {
    let (mut names, mut left_out) = (Names::default(), 0);
    let mut counts = [0, 0];
    let put = |out: &mut dyn Write, text: &str| out.write_all(text.as_bytes()).map_err(|e| unwritable(&e));
    put(out, "{\"directed\":true,\"multigraph\":true,\"graph\":{},\"nodes\":[\n")?;
    for (section, counted) in counts.iter_mut().enumerate() {
        if section == 1 {
            put(out, "],\"links\":[\n")?;
        }
        for row in ledger.stream_view(view, VersionFields::Content)? {
            let row = stripped(row?, kept)?;
            if (section == 1) != row.thing.ends.is_some() {
                continue;
            }
            let Some(fact) = fact(&row, &mut names)? else {
                left_out += u64::from(row.thing.ends.is_some());
                continue;
            };
            if *counted > 0 {
                put(out, ",")?;
            }
            line(out, &node_or_link(&row, &fact, &names))?;
            *counted += 1;
        }
    }
    put(out, "]}\n")?;
    Ok((counts[0], counts[1], left_out))
}

fn node_or_link(row: &ViewRow, fact: &Fact, names: &Names) -> Value {
    let own = match fact {
        Fact::Object(put) => serde_json::to_value(put),
        Fact::Relationship(put) => serde_json::to_value(put),
        Fact::End(_) => Ok(Value::Null),
    };
    let mut item = own.ok().and_then(|v| v.as_object().cloned()).unwrap_or_default();
    for field in ["src", "dst", "valid_from", "valid_to"] {
        item.remove(field);
    }
    match &row.thing.ends {
        None => drop(item.insert("id".into(), json!(names.get(&row.thing.no)))),
        Some(ends) => {
            item.insert("source".into(), json!(names.get(&ends.src)));
            item.insert("target".into(), json!(names.get(&ends.dst)));
            let key = item.get("discriminator").cloned().unwrap_or_else(|| json!(""));
            item.insert("key".into(), key);
        }
    }
    Value::Object(item)
}
