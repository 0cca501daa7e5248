//! Answers of searches and packs: results, reasons and source code.

pub mod embedding;
pub mod questions;

use crate::rendering::locations::{RowDetails, is_test, kind_unless_signed, places};
use crate::rendering::values::{at, list, plain};
use crate::rendering::{Rendering, TextRole, TextSpan};
use serde_json::{Value, json};

pub fn search(out: &mut Rendering, response: &Value) {
    let about = |item: &Value| {
        let mut fields = ["signature", "summary", "content", "text"].iter().map(|field| &item["fields"][*field]);
        let text = fields.find_map(|text| text.as_str().filter(|text| !text.is_empty())).unwrap_or_default();
        text.lines().next().unwrap_or_default().to_owned()
    };
    let why = |item: &Value| {
        let role = match item["role"].as_str() {
            Some("neighbor") => "beside what was found; ",
            Some("reference") => "given before; ",
            _ => "",
        };
        let cited: Vec<String> =
            list(item, "citations").into_iter().map(|c| format!("; “{}”", at(c, "span"))).collect();
        let score = item["score"].as_f64().unwrap_or(0.0);
        format!("{score:.3}  {role}{}{}", at(item, "explanation"), cited.concat())
    };
    let found = list(response, "items");
    places(out, found, &RowDetails { facts: &[&kind_unless_signed], about: Some(&about), below: Some(&why) });
    let paths = list(response, "path_summaries");
    if !paths.is_empty() {
        out.heading("How they are related");
        for path in paths.iter().take(8) {
            out.line(format!("  {}", at(path, "summary")));
        }
    }
    let meta = &response["meta"];
    let embedded = meta["embedded_share"].as_f64().map(|share| format!(" {:.0} % embedded,", share * 100.0));
    out.heading(format!(
        "{} by {}, {} tokens,{} {} ms",
        at(meta, "fusion"),
        list(meta, "channels").into_iter().map(plain).collect::<Vec<_>>().join(" + "),
        at(meta, "token_estimate"),
        embedded.unwrap_or_default(),
        meta["elapsed_ms"].as_f64().unwrap_or(0.0).round()
    ));
    for warning in list(meta, "warnings") {
        out.marked(TextRole::Warning, "note", &plain(warning));
    }
    if response["debug"].is_object() {
        let text = serde_json::to_string_pretty(&response["debug"]).unwrap_or_default();
        text.lines().for_each(|line| out.verbatim(line));
    }
    if response["next_cursor"].is_string() {
        out.verbatim(format!("more: --cursor {}", at(response, "next_cursor")));
    }
}

/// Notes of a pack: claims by their holder, others by their reference.
fn notes(out: &mut Rendering, title: &str, notes: &[&Value]) {
    if !notes.is_empty() {
        out.heading(title);
    }
    for note in notes {
        let name = if note["status"] == "active" || at(note, "ref").is_empty() { "agent" } else { "ref" };
        let name = at(note, name);
        let name = if name.is_empty() { name } else { format!("{name}: ") };
        let stale = if note["perhaps_stale"] == true { " (its code has changed since)" } else { "" };
        out.line(format!("  {name}{}{stale}", at(note, "content")));
    }
}

/// Why a symbol is in a pack, behind its name.
fn why(slice: &Value) -> String {
    let why = at(slice, "why");
    if why.is_empty() { why } else { format!("  ({why})") }
}

fn pack_key(slice: &Value) -> String {
    format!("{}::{}", at(slice, "file"), at(slice, "symbol_name"))
}

pub fn pack(out: &mut Rendering, response: &Value) {
    let doubt = at(response, "low_confidence");
    if !doubt.is_empty() {
        out.line(format!("  {doubt}"));
    }
    let mut slices = list(response, "core_symbols");
    // After the entry point, production code comes before tests.
    if let Some((_, rest)) = slices.split_first_mut() {
        rest.sort_by_key(|slice| is_test(&json!({"path": slice["file"], "key": pack_key(slice)})));
    }
    for slice in slices {
        out.gap();
        out.spans([
            TextSpan::of(TextRole::Place, format!("{}:{}", at(slice, "file"), at(slice, "start_line"))),
            TextSpan::plain("  "),
            TextSpan::of(TextRole::Name, at(slice, "symbol_name")),
            TextSpan::plain(why(slice)),
        ]);
        for reason in list(slice, "reasons") {
            out.line(format!("  {:+.3} {}", reason[1].as_f64().unwrap_or(0.0), plain(&reason[0])));
        }
        for field in ["signature", "summary"] {
            let text = at(slice, field);
            if !text.is_empty() {
                out.line(format!("  {text}"));
            }
        }
        out.source(slice);
        if let Some(first) = slice["code_start_line"].as_u64() {
            let shown = slice["code"].as_str().unwrap_or("").lines().count() as u64;
            let last = first + shown.saturating_sub(1);
            out.line(format!("  lines {first}-{last} of {}-{}", slice["start_line"], slice["end_line"]));
        }
        for (field, what) in [("incoming_callers", "called by"), ("outgoing_calls", "calls")] {
            let names: Vec<String> = list(slice, field).into_iter().map(plain).collect();
            if !names.is_empty() {
                out.line(format!("  {what} {}", names.join(", ")));
            }
        }
    }
    // Claims and decisions come before the surrounding code, because they prevent mistakes.
    for (field, title) in [("active_blockers", "Blockers"), ("decisions", "Decisions"), ("learnings", "Learnings")] {
        notes(out, title, &list(response, field));
    }
    if response["plan"].is_object() {
        out.heading("Plan");
        out.line(format!("  {}", at(&response["plan"], "content")));
    }
    let files: Vec<String> = list(response, "files").into_iter().map(plain).collect();
    if !files.is_empty() {
        out.heading(format!("Also concerned: {}", files.join(", ")));
    }
    let dependencies = list(response, "dependencies");
    if !dependencies.is_empty() {
        out.heading("Around it");
        for dependency in dependencies {
            let relation = at(dependency, "type").to_lowercase().replace('_', " ");
            out.line(format!("  {} {relation} {}", at(dependency, "from"), at(dependency, "to")));
        }
    }
    notes(out, "What happened", &list(response, "episodes"));
    let left_out = at(response, "left_out");
    let left_out = if left_out.is_empty() { String::new() } else { format!("; {left_out} more left out") };
    out.heading(format!(
        "{} of {} tokens ({}){left_out}; {}",
        at(response, "token_estimate"),
        at(response, "token_budget"),
        at(response, "profile"),
        at(response, "freshness")
    ));
    if response["next_cursor"].is_string() {
        out.verbatim(format!("more: --cursor {}", at(response, "next_cursor")));
    }
}
