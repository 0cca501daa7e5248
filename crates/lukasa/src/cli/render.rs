//! Answers for people: the summary first, then rows and tables.

mod code;
mod coordination;
pub mod cypher;
mod embedding;
mod graph;
mod index;
mod layout;
mod memory;
pub mod page;
mod places;
mod questions;
mod search;

use super::style::{Ink, Style};
use lukasa_engine::view::symbols::Kind;
use lukasa_model::Error;
use page::Page;
use places::Beside;
use serde_json::{Map, Value};
use std::io::{Result, Write};

/// Prints the answer of an operation.
pub fn answer(out: &mut dyn Write, style: Style, operation: &str, response: &Value) -> Result<()> {
    let mut page = Page::new(out, style);
    shown(&mut page, operation, response)?;
    page.flush()
}

fn shown(out: &mut Page<'_>, operation: &str, response: &Value) -> Result<()> {
    if operation == "demo" {
        return demo(out, response);
    }
    if let Some(drawing) = response["drawing"].as_str() {
        // Printed alone, because it is piped into a drawing tool.
        return drawing.lines().try_for_each(|line| out.verbatim(line));
    }
    if let Some(summary) = response["summary"].as_str() {
        writeln!(out, "{}", safe(summary))?;
    }
    let warnings: Vec<_> = list(response, "warnings").into_iter().map(plain).collect();
    if !warnings.is_empty() {
        warning(out, &warnings.join(", "))?;
    }
    for taken in list(response, "resolved") {
        let more = taken["overloads"].as_u64().map(|n| format!(", one of {n} overloads")).unwrap_or_default();
        writeln!(out, "`{}` is {}{more}", at(taken, "given"), at(taken, "ref"))?;
    }
    match operation {
        "index_directory" | "graph_rebuild" | "graph_set_workspace" => index::pass(out, response)?,
        "index_file" => index::file(out, response)?,
        "graph_health" => index::health(out, response)?,
        "get" => get(out, response)?,
        "list" => objects(out, list(response, "objects"))?,
        "history" => rows(
            out,
            list(response, "versions"),
            &[
                ("version", &|r| at(r, "version")),
                ("id", &|r| at(r, "version_id")),
                ("branch", &|r| at(r, "branch")),
                ("recorded", &|r| moment(r, "recorded_at")),
                ("true", &valid),
                ("changed", &changed),
            ],
        )?,
        "coordination_overview" => coordination::overview(out, response)?,
        "agent_status" => coordination::agent(out, response)?,
        "progress_query" => coordination::tasks(out, response)?,
        "task_ready" => coordination::ready(out, response)?,
        "blocking_issues" => coordination::blocking(out, response)?,
        "feature_status" => coordination::feature(out, response)?,
        "key list" => rows(
            out,
            list(response, "keys"),
            &[
                ("id", &|r| at(r, "id")),
                ("project", &|r| if r["project"].is_null() { "(all)".into() } else { at(r, "project") }),
                ("user", &|r| at(r, "user")),
                ("scopes", &|r| at(r, "scopes")),
                ("acts as", &|r| at(r, "agents")),
                ("made", &|r| moment(r, "created_at")),
                ("expires", &|r| moment(r, "expires_at")),
                ("revoked", &|r| moment(r, "revoked_at")),
                ("last used", &|r| moment(r, "last_used")),
            ],
        )?,
        "log" => transactions(out, list(response, "transactions"))?,
        "diff" | "release_diff" => changes(out, list(response, "changes"), &|r| at(r, "change"))?,
        "diff_since" => {
            for change in ["added", "removed", "modified"] {
                changes(out, list(response, change), &|_| change.into())?;
            }
            transactions(out, list(response, "transactions"))?;
        }
        "branch_list" => rows(
            out,
            list(response, "branches"),
            &[
                ("branch", &|r| at(r, "name")),
                ("from", &|r| at(r, "parent")),
                ("mode", &|r| at(r, "mode")),
                ("fork", &|r| at(r, "fork")),
                ("closed", &|r| if r["closed"] == true { "yes".into() } else { String::new() }),
                ("description", &|r| at(r, "description")),
            ],
        )?,
        "merge" => merge(out, response)?,
        "audit_list" => rows(
            out,
            list(response, "entries"),
            &[
                ("entry", &|r| format!("{} {}", at(r, "server"), at(r, "number"))),
                ("at", &|r| moment(r, "at")),
                ("operation", &|r| at(r, "operation")),
                ("status", &|r| at(r, "status")),
                ("user", &|r| at(r, "user").chars().take(12).collect()),
                ("agent", &|r| at(r, "agent")),
                ("address", &|r| at(r, "address")),
                ("project", &|r| at(r, "project")),
                ("ms", &|r| format!("{:.1}", r["took_us"].as_f64().unwrap_or_default() / 1e3)),
                ("request", &|r| at(r, "request_id")),
            ],
        )?,
        "audit_verify" => rows(
            out,
            list(response, "chains"),
            &[
                ("server", &|r| at(r, "server")),
                ("entries", &|r| at(r, "entries")),
                ("last", &|r| moment(r, "last_at")),
                ("head", &|r| at(r, "head")),
            ],
        )?,
        "release_list" => rows(
            out,
            list(response, "releases"),
            &[
                ("release", &|r| at(r, "name")),
                ("branch", &|r| at(r, "branch")),
                ("transaction", &|r| at(r, "tx")),
                ("objects", &|r| at(r, "objects")),
                ("relationships", &|r| at(r, "relationships")),
                ("tags", &|r| at(r, "tags")),
            ],
        )?,
        "tag_list" => rows(
            out,
            list(response, "tags"),
            &[
                ("tag", &|r| at(r, "name")),
                ("release", &|r| at(r, "release")),
                ("description", &|r| at(r, "description")),
            ],
        )?,
        "type_list" => {
            rows(
                out,
                list(response, "object_types"),
                &[
                    ("object type", &|r| at(r, "name")),
                    ("schema", &|r| if r["schema"].is_null() { String::new() } else { "yes".into() }),
                    ("branchless", &|r| at(r, "branchless")),
                    ("description", &|r| at(r, "description")),
                ],
            )?;
            rows(
                out,
                list(response, "relationship_types"),
                &[
                    ("relationship type", &|r| at(r, "name")),
                    ("from", &|r| at(r, "src_types")),
                    ("to", &|r| at(r, "dst_types")),
                    ("per source", &|r| plain(&r["multiplicity"]["src"])),
                    ("per destination", &|r| plain(&r["multiplicity"]["dst"])),
                    ("lasting", &|r| at(r, "lasting")),
                ],
            )?;
        }
        "projects" => rows(
            out,
            list(response, "projects"),
            &[("project", &|r| at(r, "project")), ("transactions", &|r| at(r, "transactions"))],
        )?,
        "import_scip" => import_scip(out, response)?,
        "cypher" => cypher::table(out, response)?,
        operation if memory::OPERATIONS.contains(&operation) => memory::answer(out, operation, response)?,
        operation if search::OPERATIONS.contains(&operation) => search::answer(out, operation, response)?,
        operation if embedding::OPERATIONS.contains(&operation) => embedding::answer(out, operation, response)?,
        operation if code::OPERATIONS.contains(&operation) => code::answer(out, operation, response)?,
        operation if graph::OPERATIONS.contains(&operation) => graph::answer(out, operation, response)?,
        operation if questions::OPERATIONS.contains(&operation) => questions::answer(out, operation, response)?,
        // The summary contains everything.
        "put" | "patch" | "link" | "link_mentions" | "delete" | "restore" | "rename" | "batch" | "backup"
        | "restore_backup" | "tag_delete" | "type_object" | "type_relationship" | "type_strict" | "branch_create"
        | "branch_move" | "branch_close" | "branch_open" | "tag_create" | "tag_describe" | "import" | "export"
        | "release_create" | "verify" => {}
        _ => rest(out, response)?,
    }
    // Operations with several lists report at each list how many entries are missing.
    let lists = [&code::OPERATIONS[..], &graph::OPERATIONS, &questions::OPERATIONS, &search::OPERATIONS];
    let tells_itself = operation == "cypher" || lists.iter().any(|own| own.contains(&operation));
    if response["truncated"] == true && !tells_itself {
        match response["next"].as_u64() {
            Some(next) => writeln!(out, "… and more: go on with --after {next}")?,
            None if operation == "log" => {
                writeln!(out, "… and more: raise --limit, or go on with --before or --after")?
            }
            None => writeln!(out, "… and more: raise --limit")?,
        }
    }
    Ok(())
}

/// Prints an error and its hint.
pub fn error(out: &mut dyn Write, style: Style, error: &Error) -> Result<()> {
    let mut page = Page::new(out, style);
    failure(&mut page, error)?;
    page.flush()
}

/// Prints a note beside the answer, with its first word in colour.
pub fn note(out: &mut dyn Write, style: Style, ink: Ink, word: &str, text: &str) -> Result<()> {
    let mut page = Page::new(out, style);
    page.ink(ink, word);
    writeln!(page, ": {text}")
}

fn failure(out: &mut Page<'_>, error: &Error) -> Result<()> {
    out.ink(Ink::Error, "error");
    writeln!(out, ": {} ({})", error.message, error.code)?;
    for field in error.details["fields"].as_array().into_iter().flatten() {
        writeln!(out, "  {}: {}", at(field, "path"), at(field, "message"))?;
    }
    let clashes: Vec<_> = error.details["conflicts"].as_array().into_iter().flatten().collect();
    conflicts(out, &clashes)?;
    match &error.hint {
        Some(hint) => {
            out.ink(Ink::Place, "hint");
            writeln!(out, ": {hint}")
        }
        None => Ok(()),
    }
}

fn warning(out: &mut Page<'_>, text: &str) -> Result<()> {
    out.ink(Ink::Warning, "warning");
    writeln!(out, ": {text}")
}

fn demo(out: &mut Page<'_>, response: &Value) -> Result<()> {
    for step in list(response, "steps") {
        let says = at(step, "says");
        if !says.is_empty() {
            writeln!(out, "\n{says}")?;
        }
        writeln!(out, "\n  $ {}", at(step, "command"))?;
        // Laid out for the width inside the indentation, then printed unchanged.
        let style = Style { width: out.style.width.map(|width| width.saturating_sub(2)), colour: false };
        let mut told = Vec::new();
        answer(&mut told, style, step["operation"].as_str().unwrap_or_default(), &step["response"])?;
        if let Some(message) = step["error"]["message"].as_str() {
            writeln!(told, "error: {message}")?;
        }
        for line in String::from_utf8_lossy(&told).lines() {
            out.verbatim(&format!("  {line}"))?;
        }
    }
    writeln!(
        out,
        "\n{}. Now yours:\n\n  lukasa put Service auth --title \"Auth\" --set port=8080\n  lukasa --help",
        at(response, "summary")
    )
}

type Column<'a> = (&'a str, &'a dyn Fn(&Value) -> String);

/// A table; empty columns are left out.
fn rows(out: &mut Page<'_>, rows: Vec<&Value>, columns: &[Column<'_>]) -> Result<()> {
    let cells: Vec<Vec<String>> = rows.iter().map(|r| columns.iter().map(|(_, cell)| cell(r)).collect()).collect();
    let shown: Vec<usize> = (0..columns.len()).filter(|c| cells.iter().any(|row| !row[*c].is_empty())).collect();
    if shown.is_empty() {
        return Ok(());
    }
    let header: Vec<&str> = shown.iter().map(|c| columns[*c].0).collect();
    let cells: Vec<Vec<String>> =
        cells.into_iter().map(|row| shown.iter().map(|c| row[*c].clone()).collect()).collect();
    layout::table(out, &header, &cells)
}

/// Objects of any type. If all are code, they are shown by path and line.
fn objects(out: &mut Page<'_>, objects: Vec<&Value>) -> Result<()> {
    let is_code = |r: &&Value| Kind::of_type(r["type"].as_str().unwrap_or_default()).is_some();
    if !objects.is_empty() && objects.iter().all(is_code) {
        let beside = Beside { facts: &[&places::kind, &|r| at(r, "labels")], ..Beside::default() };
        return places::places(out, objects, &beside);
    }
    rows(
        out,
        objects,
        &[
            ("object", &name),
            ("title", &|r| at(r, "title")),
            ("status", &|r| at(r, "status")),
            ("labels", &|r| at(r, "labels")),
            ("version", &|r| at(r, "version")),
        ],
    )
}

fn get(out: &mut Page<'_>, response: &Value) -> Result<()> {
    if let Some(old) = response["renamed_from"].as_str() {
        writeln!(out, "`{old}` was renamed to this")?;
    }
    let thing = &response["thing"];
    let mut pairs: Vec<(String, String)> = Vec::new();
    for end in ["src", "dst"] {
        if thing[end].is_object() {
            pairs.push((end.into(), end_name(&thing[end])));
        }
    }
    for field in ["subtype", "status", "labels", "weight", "confidence", "derivation", "role_src", "role_dst"] {
        pairs.push((field.into(), at(thing, field)));
    }
    for (property, value) in thing["properties"].as_object().into_iter().flatten() {
        pairs.push((safe(property), exact(value)));
    }
    pairs.push(("evidence".into(), at(thing, "evidence")));
    pairs.push(("true".into(), valid(thing)));
    pairs.push(("recorded".into(), format!("{}, as {}", moment(thing, "recorded_at"), at(thing, "version_id"))));
    let view = &response["view"];
    pairs.push((
        "seen from".into(),
        format!("{}, transaction {}, {}", at(view, "branch"), at(view, "known_at"), moment(view, "valid_at")),
    ));
    for (field, value) in &pairs {
        out.field(field, 10, value)?;
    }
    let direction = |r: &Value| {
        if r["direction"] == "out" { format!("—{}→", at(r, "type")) } else { format!("←{}—", at(r, "type")) }
    };
    rows(
        out,
        list(response, "links"),
        &[
            ("relationship", &direction),
            ("with", &|r| end_name(&r["other"])),
            ("confidence", &|r| at(r, "confidence")),
            ("derivation", &|r| at(r, "derivation")),
        ],
    )?;
    let (shown, total) = (list(response, "links").len() as u64, response["links_total"].as_u64().unwrap_or(0));
    if total > shown {
        writeln!(out, "… {shown} of {total} relationships: raise --links")?;
    }
    Ok(())
}

fn changes(out: &mut Page<'_>, changed: Vec<&Value>, change: &dyn Fn(&Value) -> String) -> Result<()> {
    let thing = |r: &Value| if r["ref"].is_string() && r["between"].is_null() { at(r, "ref") } else { name(r) };
    let row = |r: &&Value| layout::Row {
        place: change(r),
        name: thing(r),
        about: at(r, "title"),
        below: differences(&r["change_summary"]).replace('\n', "; "),
        ..layout::Row::default()
    };
    layout::rows(out, &changed.iter().map(row).collect::<Vec<_>>())
}

/// A change summary, one path per line.
fn differences(summary: &Value) -> String {
    let updated = summary["updated"].as_object().cloned().unwrap_or_default();
    let added = summary["added"].as_object().cloned().unwrap_or_default();
    let shown = |path: &Value| {
        let path = path.as_str().unwrap_or_default();
        match (updated.get(path), added.get(path)) {
            (Some(values), _) if values.get("from").is_some() => {
                format!("{path}: {} → {}", exact(&values["from"]), exact(&values["to"]))
            }
            (None, Some(value)) => format!("{path}: {}", exact(value)),
            (None, None) => format!("{path}: gone"),
            _ => path.to_string(),
        }
    };
    summary["paths"].as_array().into_iter().flatten().map(shown).collect::<Vec<_>>().join("\n")
}

fn transactions(out: &mut Page<'_>, list: Vec<&Value>) -> Result<()> {
    let who = |r: &Value| [at(r, "agent"), at(r, "author")].into_iter().find(|w| !w.is_empty()).unwrap_or_default();
    rows(
        out,
        list,
        &[
            ("transaction", &|r| at(r, "tx")),
            ("recorded", &|r| moment(r, "recorded_at")),
            ("kind", &|r| at(r, "kind")),
            ("branch", &|r| at(r, "branch")),
            ("by", &who),
            ("objects", &|r| at(r, "objects")),
            ("relationships", &|r| at(r, "relationships")),
            ("commit", &|r| at(r, "git_commit").chars().take(10).collect()),
            ("reason", &|r| at(r, "reason")),
        ],
    )
}

fn merge(out: &mut Page<'_>, response: &Value) -> Result<()> {
    rows(out, list(response, "items"), &[("thing", &name), ("class", &|r| at(r, "class"))])?;
    conflicts(out, &list(response, "conflicts"))
}

fn conflicts(out: &mut Page<'_>, list: &[&Value]) -> Result<()> {
    let path = |r: &Value| if at(r, "path").is_empty() { "(the whole)".into() } else { at(r, "path") };
    let side =
        |field: &'static str| move |r: &Value| if r[field].is_null() { "(absent)".into() } else { plain(&r[field]) };
    rows(
        out,
        list.to_vec(),
        &[
            ("conflict in", &name),
            ("path", &path),
            ("base", &side("base")),
            ("ours", &side("ours")),
            ("theirs", &side("theirs")),
        ],
    )
}

fn import_scip(out: &mut Page<'_>, response: &Value) -> Result<()> {
    for (field, shown) in [
        ("matched_definitions", "definitions that are known"),
        ("unmatched_definitions", "definitions that are not"),
        ("unchanged", "known from a compiler before"),
    ] {
        out.field(shown, 28, &at(response, field))?;
    }
    for (type_name, number) in response["relationships"].as_object().into_iter().flatten() {
        out.field(type_name, 28, &number.to_string())?;
    }
    rows(out, list(response, "diagnostics"), &[("left out", &|r| at(r, "path")), ("because", &|r| at(r, "what"))])?;
    match response["diagnostics_left_out"].as_u64() {
        Some(more @ 1..) => writeln!(out, "… and {more} more"),
        _ => Ok(()),
    }
}

/// Prints a response that has no table of its own.
fn rest(out: &mut Page<'_>, response: &Value) -> Result<()> {
    let mut map: Map<String, Value> = response.as_object().cloned().unwrap_or_default();
    for told in ["summary", "warnings", "truncated", "resolved"] {
        map.remove(told);
    }
    for (field, value) in &map {
        match value {
            Value::Object(inner) => {
                for (name, value) in inner {
                    out.field(name, 14, &plain(value))?;
                }
            }
            value => out.field(field, 14, &plain(value))?,
        }
    }
    Ok(())
}

fn list<'a>(response: &'a Value, field: &str) -> Vec<&'a Value> {
    response[field].as_array().into_iter().flatten().collect()
}

fn at(row: &Value, field: &str) -> String {
    plain(&row[field])
}

/// A timestamp to the second; JSON has the full precision.
fn moment(row: &Value, field: &str) -> String {
    let text = at(row, field);
    match text.split_once('.') {
        Some((seconds, _)) if text.ends_with('Z') => format!("{seconds}Z"),
        _ => text,
    }
}

/// Text without quotes, lists with commas, an empty string for null and false.
fn plain(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(false) => String::new(),
        Value::Bool(true) => "yes".into(),
        Value::String(text) => safe(text),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().map(plain).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// A property value: text unchanged, everything else as JSON.
fn exact(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => safe(text),
        other => other.to_string(),
    }
}

/// Text without control characters that a terminal would interpret.
pub fn safe(text: &str) -> String {
    lukasa_model::shown::safe(text).into_owned()
}

/// Lines of `code` unchanged, with their numbers from `start_line` on.
fn source(out: &mut Page<'_>, slice: &Value) -> Result<()> {
    let code = slice["code"].as_str().unwrap_or("");
    let first = slice["start_line"].as_u64().unwrap_or(1);
    let width = (first + code.lines().count() as u64).to_string().len();
    for (number, line) in (first..).zip(code.lines()) {
        out.verbatim(&format!("{number:>width$} | {line}"))?;
    }
    Ok(())
}

fn name(row: &Value) -> String {
    match row["key"].as_str() {
        Some(key) => format!("{}:{}", at(row, "type"), safe(key)),
        None if row["between"].is_array() => {
            format!("{} —{}→ {}", plain(&row["between"][0]), at(row, "type"), plain(&row["between"][1]))
        }
        None => {
            let id = if row["id"].is_string() { at(row, "id") } else { at(row, "object") };
            format!("{} {id}", at(row, "type"))
        }
    }
}

fn end_name(end: &Value) -> String {
    let mut shown = name(end);
    if end["ended"] == true {
        shown += match end["renamed_to"].as_str() {
            Some(new) => return format!("{shown} (now {new})"),
            None => " (ended)",
        };
    }
    shown
}

fn valid(row: &Value) -> String {
    // The usual case is kept short.
    if row["valid_from"] == row["recorded_at"] && row["valid_to"].is_null() {
        return "since recorded".into();
    }
    let (from, to) = (moment(row, "valid_from"), moment(row, "valid_to"));
    match (from.is_empty(), to.is_empty()) {
        (true, true) => "always".into(),
        (false, true) => format!("since {from}"),
        (true, false) => format!("until {to}"),
        (false, false) => format!("{from} to {to}"),
    }
}

fn changed(row: &Value) -> String {
    let mut parts = Vec::new();
    if row["absent"] == true {
        parts.push("ended".to_string());
    }
    if let Some(from) = row["merged_from"].as_array().into_iter().flatten().find(|m| m["role"] == "source") {
        parts.push(format!("merged from {}", at(from, "version_id")));
    }
    let paths =
        if row["change_summary"].is_object() { differences(&row["change_summary"]) } else { at(row, "changed") };
    match (parts.is_empty(), paths.is_empty()) {
        (true, true) => "first".into(),
        (false, true) => parts.join(", "),
        _ if row["absent"] == true => parts.join(", "),
        _ => {
            parts.push(paths);
            parts.join(": ")
        }
    }
}
