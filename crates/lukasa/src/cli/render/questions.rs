//! Answers to questions: exact lines, patterns, objects and areas.

use super::code::{calls_at, confidence, more};
use super::graph::small;
use super::page::Page;
use super::places::{Beside, kind, places, print};
use super::{at, cypher, list, rows, safe, source};
use serde_json::{Value, json};
use std::io::{Result, Write};

pub const OPERATIONS: [&str; 3] = ["semantic_slice", "find_pattern", "graph_query"];

pub fn answer(out: &mut Page<'_>, operation: &str, response: &Value) -> Result<()> {
    match operation {
        "semantic_slice" => slice(out, response),
        "find_pattern" => patterns(out, response),
        _ => query(out, response),
    }
}

fn slice(out: &mut Page<'_>, response: &Value) -> Result<()> {
    let place = json!({"key": response["key"], "type": response["type"], "path": response["file"],
        "line": response["start_line"]});
    print(out, vec![&place], &Beside { facts: &[&kind], ..Beside::default() })?;
    for (field, value) in [
        ("signature", at(response, "signature")),
        ("about", at(response, "about")),
        ("text", at(&response["freshness"], "says")),
    ] {
        out.field(field, 10, &value)?;
    }
    source(out, response)?;
    for (field, total, title) in
        [("incoming_callers", "total_callers", "called by"), ("outgoing_calls", "total_calls", "calls")]
    {
        let calls = list(response, field);
        let told = calls.len();
        if told > 0 {
            writeln!(out, "\n{title}")?;
            places(out, calls, &Beside { facts: &[&calls_at, &confidence], ..Beside::default() })?;
        }
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

fn patterns(out: &mut Page<'_>, response: &Value) -> Result<()> {
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
        places(out, told, &Beside { facts: &[&|r| at(r, "detail")], ..Beside::default() })?;
        if group["truncated"] == true {
            writeln!(out, "… {shown} of {}: raise --limit", at(group, "count"))?;
        }
    }
    Ok(())
}

fn query(out: &mut Page<'_>, response: &Value) -> Result<()> {
    if response["cypher"].is_object() {
        return cypher::table(out, &response["cypher"]);
    }
    let why = |row: &Value, name: &str| {
        let parts = list(row, "why").into_iter().map(|w| format!("{} {}", at(w, name), small(&w["score"])));
        parts.collect::<Vec<_>>().join(", ")
    };
    let (local, global) = (&response["local"], &response["global"]);
    let because = |r: &Value| format!("{}  {}", small(&r["score"]), why(r, "channel"));
    let about = |r: &Value| at(r, "summary");
    let found = list(local, "rows");
    let told = found.len();
    let beside = Beside { facts: &[&kind], about: Some(&about), below: Some(&because) };
    places(out, found, &beside)?;
    more(out, told, &local["total"])?;
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
    more(out, list(global, "rows").len(), &global["total"])
}
