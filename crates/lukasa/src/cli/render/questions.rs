//! Answers to questions: exact lines, patterns, things and areas.

use super::graph::small;
use super::{at, cypher, list, rows, safe, source};
use serde_json::Value;
use std::io::{Result, Write};

pub const OPERATIONS: [&str; 3] = ["semantic_slice", "find_pattern", "graph_query"];

pub fn answer(out: &mut dyn Write, operation: &str, response: &Value) -> Result<()> {
    match operation {
        "semantic_slice" => slice(out, response),
        "find_pattern" => patterns(out, response),
        _ => query(out, response),
    }
}

fn slice(out: &mut dyn Write, response: &Value) -> Result<()> {
    for (field, value) in [
        ("signature", at(response, "signature")),
        ("about", at(response, "about")),
        ("text", at(&response["freshness"], "says")),
    ] {
        if !value.is_empty() {
            writeln!(out, "  {field:<10}  {value}")?;
        }
    }
    source(out, response)?;
    for (field, total, title) in
        [("incoming_callers", "total_callers", "caller"), ("outgoing_calls", "total_calls", "calls")]
    {
        let calls = list(response, field);
        let told = calls.len();
        let lines = |row: &Value| {
            let lines: Vec<String> = list(row, "call_lines").into_iter().map(super::plain).collect();
            lines.join(", ")
        };
        rows(
            out,
            calls,
            &[
                (title, &|r| at(r, "key")),
                ("line", &|r| at(r, "line")),
                ("calls at line", &lines),
                ("confidence", &|r| small(&r["confidence"])),
            ],
        )?;
        if response[total].as_u64() > Some(told as u64) {
            writeln!(out, "… {told} of {}", at(response, total))?;
        }
    }
    for (field, title) in [("relevant_decisions", "decision"), ("relevant_learnings", "learning")] {
        let says = |row: &Value| [at(row, "content"), at(row, "title")].into_iter().find(|t| !t.is_empty());
        rows(
            out,
            list(response, field),
            &[
                (title, &|r| at(r, "ref")),
                ("says", &|r| says(r).unwrap_or_default()),
                ("confidence", &|r| small(&r["confidence"])),
            ],
        )?;
    }
    match response["hint"].as_str() {
        Some(hint) => writeln!(out, "… {}", safe(hint)),
        None => Ok(()),
    }
}

fn patterns(out: &mut dyn Write, response: &Value) -> Result<()> {
    for group in list(response, "groups") {
        let told = list(group, "items");
        writeln!(
            out,
            "\n{} ({}, {}): {}",
            at(group, "title"),
            at(group, "count"),
            at(group, "severity"),
            at(group, "suggestion")
        )?;
        let shown = told.len();
        rows(out, told, &[("where", &|r| at(r, "ref")), ("what", &|r| at(r, "detail"))])?;
        if group["truncated"] == true {
            writeln!(out, "… {shown} of {}: raise --limit", at(group, "count"))?;
        }
    }
    Ok(())
}

fn query(out: &mut dyn Write, response: &Value) -> Result<()> {
    if response["cypher"].is_object() {
        return cypher::table(out, &response["cypher"]);
    }
    let place = |row: &Value| match (at(row, "path"), at(row, "line")) {
        (path, line) if line.is_empty() => path,
        (path, line) => format!("{path}:{line}"),
    };
    let why = |row: &Value, name: &str| {
        let parts = list(row, "why").into_iter().map(|w| format!("{} {}", at(w, name), small(&w["score"])));
        parts.collect::<Vec<_>>().join(", ")
    };
    let (local, global) = (&response["local"], &response["global"]);
    rows(
        out,
        list(local, "rows"),
        &[
            ("thing", &|r| at(r, "ref")),
            ("name", &|r| at(r, "name")),
            ("where", &place),
            ("about", &|r| at(r, "summary")),
            ("score", &|r| small(&r["score"])),
            ("why", &|r| why(r, "channel")),
        ],
    )?;
    more(out, local)?;
    rows(
        out,
        list(global, "rows"),
        &[
            ("community", &|r| at(r, "ref")),
            ("about", &|r| at(r, "summary")),
            ("objects", &|r| at(r, "size")),
            ("score", &|r| small(&r["score"])),
            ("why", &|r| why(r, "word")),
        ],
    )?;
    more(out, global)
}

fn more(out: &mut dyn Write, section: &Value) -> Result<()> {
    let told = list(section, "rows").len();
    match section["total"].as_u64() {
        Some(total) if total > told as u64 => writeln!(out, "… {told} of {total}: raise --limit"),
        _ => Ok(()),
    }
}
