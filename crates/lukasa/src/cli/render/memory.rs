//! Answers about memory: episodes with their rationale, and summaries of them.

use super::page::Page;
use super::{at, list, moment, rows, safe};
use serde_json::Value;
use std::io::{Result, Write};

pub const OPERATIONS: [&str; 7] = [
    "episode_add",
    "decision_add",
    "episode_recall",
    "decision_query",
    "reflect",
    "test_run",
    "trace_decision_lineage",
];

pub fn answer(out: &mut Page<'_>, operation: &str, response: &Value) -> Result<()> {
    match operation {
        "episode_recall" | "decision_query" => recalled(out, response),
        "reflect" => reflected(out, response),
        "test_run" => tested(out, response),
        "trace_decision_lineage" => lineage(out, response),
        _ => added(out, response),
    }
}

fn added(out: &mut Page<'_>, response: &Value) -> Result<()> {
    for entity in list(response, "entities") {
        writeln!(out, "  {}{}", at(entity, "ref"), became(entity))?;
    }
    for fact in list(response, "facts") {
        writeln!(out, "  {} {}: {}", at(fact, "subject"), at(fact, "attribute"), at(fact, "value"))?;
        for other in list(fact, "others") {
            writeln!(out, "    {} {}", at(other, "verdict").replace('_', " "), at(other, "value"))?;
        }
    }
    Ok(())
}

/// Causes and consequences, each with the path to it.
fn lineage(out: &mut Page<'_>, response: &Value) -> Result<()> {
    for (way, words) in [("upstream", "what led to it"), ("downstream", "what came of it")] {
        let thing = |r: &Value| format!("{}{}", at(r, "ref"), became(r));
        let columns: [super::Column<'_>; 5] = [
            (words, &thing),
            ("title", &|r| at(r, "title")),
            ("steps", &|r| at(r, "depth")),
            ("by", &|r| at(r, "via")),
            ("from", &|r| at(r, "from")),
        ];
        rows(out, list(response, way), &columns)?;
    }
    Ok(())
}

fn recalled(out: &mut Page<'_>, response: &Value) -> Result<()> {
    for item in list(response, "episodes") {
        let who = at(item, "agent_id");
        let who = if who.is_empty() { String::new() } else { format!(" by {who}") };
        let title = at(item, "title");
        let title = if title.is_empty() { String::new() } else { format!("  {title}") };
        writeln!(out, "\n{:>2}. {} {}{title}", at(item, "rank"), at(item, "type"), at(item, "episode_id"))?;
        writeln!(out, "    {}{who}  {:.3}", moment(item, "timestamp"), item["score"].as_f64().unwrap_or(0.0))?;
        // Quoted, because an agent wrote it.
        for line in lines(item, "content").take(12) {
            writeln!(out, "    > {}", safe(line))?;
        }
        for (number, line) in lines(item, "rationale").take(12).enumerate() {
            writeln!(out, "    {} {}", if number == 0 { "why:" } else { "    " }, safe(line))?;
        }
        for entity in list(item, "entities") {
            writeln!(out, "    about {}{}", at(entity, "ref"), became(entity))?;
        }
        for code in list(item, "perhaps_stale") {
            writeln!(out, "    perhaps stale: {} has {} since", at(code, "ref"), at(code, "how"))?;
        }
        for other in list(item, "contradicts") {
            writeln!(out, "    but also: {}", at(other, "content"))?;
        }
    }
    Ok(())
}

fn reflected(out: &mut Page<'_>, response: &Value) -> Result<()> {
    for pattern in list(response, "patterns") {
        let sure = pattern["confidence"].as_f64().unwrap_or(0.0);
        writeln!(out, "  {sure:.2}  {}", at(pattern, "insight"))?;
    }
    for learning in list(response, "learnings") {
        writeln!(out, "  {} {}", at(learning, "state"), at(learning, "ref"))?;
    }
    Ok(())
}

fn tested(out: &mut Page<'_>, response: &Value) -> Result<()> {
    for test in list(response, "failed_tests") {
        writeln!(out, "  failed: {}", safe(test.as_str().unwrap_or_default()))?;
    }
    if response["status"] != "passed" {
        for line in lines(response, "output") {
            out.verbatim(&format!("  > {line}"))?;
        }
    }
    Ok(())
}

/// The lines of a text before control characters are escaped: line breaks are harmless.
fn lines<'v>(of: &'v Value, field: &str) -> impl Iterator<Item = &'v str> + use<'v> {
    of[field].as_str().unwrap_or_default().lines()
}

/// Whether a linked entity has ended or was renamed.
fn became(entity: &Value) -> String {
    let mut told = String::new();
    if entity["ended"] == true {
        told.push_str(" (ended)");
    }
    let now = at(entity, "renamed_to");
    if !now.is_empty() {
        told = format!(" (now {now})");
    }
    let was = at(entity, "renamed_from");
    if !was.is_empty() {
        told.push_str(&format!(" (was {was})"));
    }
    told
}
