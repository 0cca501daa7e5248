//! Answers about memory: episodes with their rationale, and summaries of them.

use crate::rendering::values::{at, list, moment, safe};
use crate::rendering::{Rendering, TableColumn};
use serde_json::Value;

pub fn added(out: &mut Rendering, response: &Value) {
    for entity in list(response, "entities") {
        out.line(format!("  {}{}", at(entity, "ref"), became(entity)));
    }
    for fact in list(response, "facts") {
        out.line(format!("  {} {}: {}", at(fact, "subject"), at(fact, "attribute"), at(fact, "value")));
        for other in list(fact, "others") {
            out.line(format!("    {} {}", at(other, "verdict").replace('_', " "), at(other, "value")));
        }
    }
}

/// Causes and consequences, each with the path to it.
pub fn lineage(out: &mut Rendering, response: &Value) {
    for (way, words) in [("upstream", "what led to it"), ("downstream", "what came of it")] {
        let thing = |r: &Value| format!("{}{}", at(r, "ref"), became(r));
        let columns: [TableColumn<'_>; 5] = [
            (words, &thing),
            ("title", &|r| at(r, "title")),
            ("steps", &|r| at(r, "depth")),
            ("by", &|r| at(r, "via")),
            ("from", &|r| at(r, "from")),
        ];
        out.table(list(response, way), &columns);
    }
}

pub fn recalled(out: &mut Rendering, response: &Value) {
    for item in list(response, "episodes") {
        let who = at(item, "agent_id");
        let who = if who.is_empty() { String::new() } else { format!(" by {who}") };
        let title = at(item, "title");
        let title = if title.is_empty() { String::new() } else { format!("  {title}") };
        out.heading(format!("{:>2}. {} {}{title}", at(item, "rank"), at(item, "type"), at(item, "episode_id")));
        out.line(format!("    {}{who}  {:.3}", moment(item, "timestamp"), item["score"].as_f64().unwrap_or(0.0)));
        // Quoted, because an agent wrote it.
        for line in lines(item, "content").take(12) {
            out.line(format!("    > {}", safe(line)));
        }
        for (number, line) in lines(item, "rationale").take(12).enumerate() {
            out.line(format!("    {} {}", if number == 0 { "why:" } else { "    " }, safe(line)));
        }
        for entity in list(item, "entities") {
            out.line(format!("    about {}{}", at(entity, "ref"), became(entity)));
        }
        for code in list(item, "perhaps_stale") {
            out.line(format!("    perhaps stale: {} has {} since", at(code, "ref"), at(code, "how")));
        }
        for other in list(item, "contradicts") {
            out.line(format!("    but also: {}", at(other, "content")));
        }
    }
}

pub fn reflected(out: &mut Rendering, response: &Value) {
    for pattern in list(response, "patterns") {
        let sure = pattern["confidence"].as_f64().unwrap_or(0.0);
        out.line(format!("  {sure:.2}  {}", at(pattern, "insight")));
    }
    for learning in list(response, "learnings") {
        out.line(format!("  {} {}", at(learning, "state"), at(learning, "ref")));
    }
}

pub fn tested(out: &mut Rendering, response: &Value) {
    for test in list(response, "failed_tests") {
        out.line(format!("  failed: {}", safe(test.as_str().unwrap_or_default())));
    }
    if response["status"] != "passed" {
        for line in lines(response, "output") {
            out.verbatim(format!("  > {line}"));
        }
    }
}

/// The lines of a text before control characters are escaped: line breaks are harmless.
fn lines<'v>(of: &'v Value, field: &str) -> impl Iterator<Item = &'v str> + use<'v> {
    of[field].as_str().unwrap_or_default().lines()
}

/// Whether a linked entity has ended or was renamed.
fn became(entity: &Value) -> String {
    let mut text = String::new();
    if entity["ended"] == true {
        text.push_str(" (ended)");
    }
    let now = at(entity, "renamed_to");
    if !now.is_empty() {
        text = format!(" (now {now})");
    }
    let was = at(entity, "renamed_from");
    if !was.is_empty() {
        text.push_str(&format!(" (was {was})"));
    }
    text
}
