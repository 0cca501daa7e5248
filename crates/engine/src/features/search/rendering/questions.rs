//! Answers to questions: exact lines, patterns, objects and areas.

use crate::features::graph::rendering::cypher;
use crate::rendering::Rendering;
use crate::rendering::locations::{RowDetails, kind, places, print};
use crate::rendering::values::{at, calls_at, confidence, list, safe, small};
use serde_json::{Value, json};

pub fn slice(out: &mut Rendering, response: &Value) {
    let place = json!({"key": response["key"], "type": response["type"], "path": response["file"],
        "line": response["start_line"]});
    print(out, vec![&place], &RowDetails { facts: &[&kind], ..RowDetails::default() });
    for (field, value) in [
        ("signature", at(response, "signature")),
        ("about", at(response, "about")),
        ("text", at(&response["freshness"], "says")),
    ] {
        out.field(field, 10, value);
    }
    out.source(response);
    for (field, total, title) in
        [("incoming_callers", "total_callers", "called by"), ("outgoing_calls", "total_calls", "calls")]
    {
        let calls = list(response, field);
        let listed = calls.len();
        if listed > 0 {
            out.heading(title);
            places(out, calls, &RowDetails { facts: &[&calls_at, &confidence], ..RowDetails::default() });
        }
        if response[total].as_u64() > Some(listed as u64) {
            out.line(format!("… {listed} of {}", at(response, total)));
        }
    }
    for (field, title) in [("relevant_decisions", "decision"), ("relevant_learnings", "learning")] {
        let says = |row: &Value| [at(row, "content"), at(row, "title")].into_iter().find(|t| !t.is_empty());
        out.table(
            list(response, field),
            &[
                (title, &|r| at(r, "ref")),
                ("says", &|r| says(r).unwrap_or_default()),
                ("confidence", &|r| small(&r["confidence"])),
            ],
        );
    }
    if let Some(hint) = response["hint"].as_str() {
        out.line(format!("… {}", safe(hint)));
    }
}

pub fn patterns(out: &mut Rendering, response: &Value) {
    for group in list(response, "groups") {
        let listed = list(group, "items");
        out.heading(format!(
            "{} ({}, {}): {}",
            at(group, "title"),
            at(group, "count"),
            at(group, "severity"),
            at(group, "suggestion")
        ));
        let shown = listed.len();
        places(out, listed, &RowDetails { facts: &[&|r| at(r, "detail")], ..RowDetails::default() });
        if group["truncated"] == true {
            out.line(format!("… {shown} of {}: raise --limit", at(group, "count")));
        }
    }
}

pub fn query(out: &mut Rendering, response: &Value) {
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
    let listed = found.len();
    let beside = RowDetails { facts: &[&kind], about: Some(&about), below: Some(&because) };
    places(out, found, &beside);
    out.more(listed, &local["total"]);
    out.table(
        list(global, "rows"),
        &[
            ("community", &|r| at(r, "ref")),
            ("about", &|r| at(r, "summary")),
            ("objects", &|r| at(r, "size")),
            ("score", &|r| small(&r["score"])),
            ("why", &|r| why(r, "word")),
        ],
    );
    out.more(list(global, "rows").len(), &global["total"])
}
