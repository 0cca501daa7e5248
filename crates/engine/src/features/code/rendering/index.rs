//! Reports of indexing: counts, notable symbols and faults.

use crate::rendering::locations::{RowDetails, kind_unless_signed, print};
use crate::rendering::values::{at, list, plain, safe};
use crate::rendering::{Rendering, ResultRow};
use serde_json::Value;

/// Prints the report of a pass over a working tree.
pub fn pass(out: &mut Rendering, response: &Value) {
    if let Some(commit) = response["commit"].as_str() {
        out.line(format!("the tree is commit {}", &commit[..12.min(commit.len())]));
    }
    let counts = |name: &str| {
        let map = response[name].as_object().cloned().unwrap_or_default();
        map.iter().map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join(", ")
    };
    for (what, name) in [("relationships", "relationships"), ("calls by derivation", "derivations")] {
        let text = counts(name);
        if !text.is_empty() {
            out.line(format!("{what}: {text}"));
        }
    }
    let number = |name: &str| response[name].as_u64().unwrap_or(0);
    if number("calls") > 0 {
        out.line(format!(
            "calls written: {}; to packages and builtins {}, unresolved {}",
            number("calls"),
            number("calls_outside"),
            number("calls_unresolved")
        ));
    }
    look(out, &response["look"]);
    diagnostics(out, response, "files are not indexed as they should be");
    history(out, &response["history"])
}

/// Prints the report of an import of past commits.
fn history(out: &mut Rendering, history: &Value) {
    if !history.is_object() {
        return;
    }
    let number = |name: &str| history[name].as_u64().unwrap_or(0);
    out.heading(format!(
        "commits imported: {}, already there: {}; {} files taken apart, {} objects and {} relationships stated",
        number("commits"),
        number("already_there"),
        number("parsed"),
        number("objects"),
        number("relationships")
    ));
    diagnostics(out, history, "things to know about commits and their files")
}

fn look(out: &mut Rendering, look: &Value) {
    if !look.is_object() {
        return;
    }
    let entries: Vec<String> = list(look, "entry_points").into_iter().map(plain).collect();
    if !entries.is_empty() {
        out.heading(format!("entry points: {}", safe(&entries.join(", "))));
    }
    if !list(look, "hubs").is_empty() {
        out.heading("called from most places");
        let callers = |r: &Value| format!("{} callers", at(r, "count"));
        print(out, list(look, "hubs"), &RowDetails { facts: &[&callers], ..RowDetails::default() });
    }
    if !list(look, "most_imported").is_empty() {
        out.heading("imported by most files");
        out.table(list(look, "most_imported"), &[("file", &|r| at(r, "key")), ("importers", &|r| at(r, "count"))]);
    }
    if !list(look, "communities").is_empty() {
        out.heading("files that belong together");
        out.table(
            list(look, "communities"),
            &[("mostly in", &|r| at(r, "name")), ("files", &|r| at(r, "files")), ("led by", &|r| at(r, "members"))],
        );
    }
    let total = look["cycles_total"].as_u64().unwrap_or(0);
    if total > 0 {
        out.heading(format!("{total} circles of imports; the largest:"));
        for cycle in list(look, "cycles").into_iter().take(3) {
            let paths: Vec<&str> = cycle.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let more = if paths.len() > 6 { format!(" and {} more", paths.len() - 6) } else { String::new() };
            out.line(format!("  {}{more}", safe(&paths[..paths.len().min(6)].join(", "))));
        }
    }
}

fn diagnostics(out: &mut Rendering, response: &Value, what: &str) {
    let listed = list(response, "diagnostics");
    if listed.is_empty() {
        return;
    }
    let left_out = response["diagnostics_left_out"].as_u64().unwrap_or(0);
    out.heading(format!("{} {what}", listed.len() as u64 + left_out));
    let shown = listed.len().min(10);
    let rows: Vec<ResultRow> = listed.into_iter().take(shown).map(fault).collect();
    out.rows(rows);
    let more = response["diagnostics"].as_array().map_or(0, Vec::len) - shown;
    if more as u64 + left_out > 0 {
        out.line(format!("and {} more; --json lists {}", more as u64 + left_out, more + shown));
    }
}

/// The location of a fault, and its description.
fn fault(diagnostic: &Value) -> ResultRow {
    let line = diagnostic["line"].as_u64().map(|line| format!(":{line}")).unwrap_or_default();
    let facts = vec![at(diagnostic, "what")];
    ResultRow { place: format!("{}{line}", at(diagnostic, "path")), facts, ..ResultRow::default() }
}

pub fn file(out: &mut Rendering, response: &Value) {
    let signature = |r: &Value| at(r, "signature");
    print(
        out,
        list(response, "symbols"),
        &RowDetails { facts: &[&kind_unless_signed], about: Some(&signature), below: None },
    )
}

pub fn health(out: &mut Rendering, response: &Value) {
    let languages = response["languages"].as_object().cloned().unwrap_or_default();
    let mut languages: Vec<(String, u64)> =
        languages.into_iter().map(|(name, count)| (name, count.as_u64().unwrap_or(0))).collect();
    languages.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let languages: Vec<String> = languages.into_iter().map(|(name, count)| format!("{name} {count}")).collect();
    out.line(format!("files: {}", languages.join(", ")));
    if let Some(last) = response["last_index"].as_object() {
        let commit = last.get("commit").and_then(Value::as_str).map(|c| format!(", commit {}", &c[..12.min(c.len())]));
        out.line(format!(
            "last indexed: transaction {} at {}{}",
            plain(&last["tx"]),
            plain(&last["at"]),
            commit.unwrap_or_default()
        ));
    }
    for watcher in list(response, "watchers") {
        out.line(format!(
            "watching {}: {}, {} pending",
            at(watcher, "root"),
            at(watcher, "state"),
            at(watcher, "pending")
        ));
    }
    for fault in list(response, "faults") {
        out.line(format!("  {}", safe(&plain(fault))));
    }
}

pub fn imported(out: &mut Rendering, response: &Value) {
    for (field, shown) in [
        ("matched_definitions", "definitions that are known"),
        ("unmatched_definitions", "definitions that are not"),
        ("unchanged", "known from a compiler before"),
    ] {
        out.field(shown, 28, at(response, field));
    }
    for (type_name, number) in response["relationships"].as_object().into_iter().flatten() {
        out.field(type_name, 28, number.to_string());
    }
    out.table(list(response, "diagnostics"), &[("left out", &|r| at(r, "path")), ("because", &|r| at(r, "what"))]);
    if let Some(more @ 1..) = response["diagnostics_left_out"].as_u64() {
        out.line(format!("… and {more} more"));
    }
}
