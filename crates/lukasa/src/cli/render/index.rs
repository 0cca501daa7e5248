//! Reports of indexing: counts, notable symbols and faults.

use super::layout;
use super::page::Page;
use super::places::{Beside, kind_unless_signed, print};
use super::{at, list, plain, rows, safe};
use serde_json::Value;
use std::io::{Result, Write};

/// Prints the report of a pass over a working tree.
pub fn pass(out: &mut Page<'_>, response: &Value) -> Result<()> {
    if let Some(commit) = response["commit"].as_str() {
        writeln!(out, "the tree is commit {}", &commit[..12.min(commit.len())])?;
    }
    let counts = |name: &str| {
        let map = response[name].as_object().cloned().unwrap_or_default();
        map.iter().map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join(", ")
    };
    for (what, name) in [("relationships", "relationships"), ("calls by derivation", "derivations")] {
        let text = counts(name);
        if !text.is_empty() {
            writeln!(out, "{what}: {text}")?;
        }
    }
    let number = |name: &str| response[name].as_u64().unwrap_or(0);
    if number("calls") > 0 {
        writeln!(
            out,
            "calls written: {}; to packages and builtins {}, unresolved {}",
            number("calls"),
            number("calls_outside"),
            number("calls_unresolved")
        )?;
    }
    look(out, &response["look"])?;
    diagnostics(out, response, "files are not indexed as they should be")?;
    history(out, &response["history"])
}

/// Prints the report of an import of past commits.
fn history(out: &mut Page<'_>, history: &Value) -> Result<()> {
    if !history.is_object() {
        return Ok(());
    }
    let number = |name: &str| history[name].as_u64().unwrap_or(0);
    writeln!(
        out,
        "\ncommits imported: {}, already there: {}; {} files taken apart, {} objects and {} relationships stated",
        number("commits"),
        number("already_there"),
        number("parsed"),
        number("objects"),
        number("relationships")
    )?;
    diagnostics(out, history, "things to know about commits and their files")
}

fn look(out: &mut Page<'_>, look: &Value) -> Result<()> {
    if !look.is_object() {
        return Ok(());
    }
    let entries: Vec<String> = list(look, "entry_points").into_iter().map(plain).collect();
    if !entries.is_empty() {
        writeln!(out, "\nentry points: {}", safe(&entries.join(", ")))?;
    }
    if !list(look, "hubs").is_empty() {
        writeln!(out, "\ncalled from most places")?;
        let callers = |r: &Value| format!("{} callers", at(r, "count"));
        print(out, list(look, "hubs"), &Beside { facts: &[&callers], ..Beside::default() })?;
    }
    if !list(look, "most_imported").is_empty() {
        writeln!(out, "\nimported by most files")?;
        rows(out, list(look, "most_imported"), &[("file", &|r| at(r, "key")), ("importers", &|r| at(r, "count"))])?;
    }
    if !list(look, "communities").is_empty() {
        writeln!(out, "\nfiles that belong together")?;
        rows(
            out,
            list(look, "communities"),
            &[("mostly in", &|r| at(r, "name")), ("files", &|r| at(r, "files")), ("led by", &|r| at(r, "members"))],
        )?;
    }
    let total = look["cycles_total"].as_u64().unwrap_or(0);
    if total > 0 {
        writeln!(out, "\n{total} circles of imports; the largest:")?;
        for cycle in list(look, "cycles").into_iter().take(3) {
            let paths: Vec<&str> = cycle.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let more = if paths.len() > 6 { format!(" and {} more", paths.len() - 6) } else { String::new() };
            writeln!(out, "  {}{more}", safe(&paths[..paths.len().min(6)].join(", ")))?;
        }
    }
    Ok(())
}

fn diagnostics(out: &mut Page<'_>, response: &Value, what: &str) -> Result<()> {
    let told = list(response, "diagnostics");
    if told.is_empty() {
        return Ok(());
    }
    let left_out = response["diagnostics_left_out"].as_u64().unwrap_or(0);
    writeln!(out, "\n{} {what}", told.len() as u64 + left_out)?;
    let shown = told.len().min(10);
    let rows: Vec<layout::Row> = told.into_iter().take(shown).map(fault).collect();
    layout::rows(out, &rows)?;
    let more = response["diagnostics"].as_array().map_or(0, Vec::len) - shown;
    if more as u64 + left_out > 0 {
        writeln!(out, "and {} more; --json lists {}", more as u64 + left_out, more + shown)?;
    }
    Ok(())
}

/// The location of a fault, and its description.
fn fault(told: &Value) -> layout::Row {
    let line = told["line"].as_u64().map(|line| format!(":{line}")).unwrap_or_default();
    let facts = vec![at(told, "what")];
    layout::Row { place: format!("{}{line}", at(told, "path")), facts, ..layout::Row::default() }
}

pub fn file(out: &mut Page<'_>, response: &Value) -> Result<()> {
    let signature = |r: &Value| at(r, "signature");
    print(
        out,
        list(response, "symbols"),
        &Beside { facts: &[&kind_unless_signed], about: Some(&signature), below: None },
    )
}

pub fn health(out: &mut Page<'_>, response: &Value) -> Result<()> {
    let languages = response["languages"].as_object().cloned().unwrap_or_default();
    let mut languages: Vec<(String, u64)> =
        languages.into_iter().map(|(name, count)| (name, count.as_u64().unwrap_or(0))).collect();
    languages.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let languages: Vec<String> = languages.into_iter().map(|(name, count)| format!("{name} {count}")).collect();
    writeln!(out, "files: {}", languages.join(", "))?;
    if let Some(last) = response["last_index"].as_object() {
        let commit = last.get("commit").and_then(Value::as_str).map(|c| format!(", commit {}", &c[..12.min(c.len())]));
        writeln!(
            out,
            "last indexed: transaction {} at {}{}",
            plain(&last["tx"]),
            plain(&last["at"]),
            commit.unwrap_or_default()
        )?;
    }
    for watcher in list(response, "watchers") {
        writeln!(
            out,
            "watching {}: {}, {} pending",
            at(watcher, "root"),
            at(watcher, "state"),
            at(watcher, "pending")
        )?;
    }
    for fault in list(response, "faults") {
        writeln!(out, "  {}", safe(&plain(fault)))?;
    }
    Ok(())
}
