//! Answers of administration: projects, the audit, and the demonstration.

use crate::registry;
use crate::rendering::Rendering;
use crate::rendering::values::{at, list, moment};
use serde_json::Value;

pub fn projects(out: &mut Rendering, response: &Value) {
    out.table(
        list(response, "projects"),
        &[("project", &|r| at(r, "project")), ("transactions", &|r| at(r, "transactions"))],
    )
}

pub fn entries(out: &mut Rendering, response: &Value) {
    out.table(
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
    )
}

pub fn chains(out: &mut Rendering, response: &Value) {
    out.table(
        list(response, "chains"),
        &[
            ("server", &|r| at(r, "server")),
            ("entries", &|r| at(r, "entries")),
            ("last", &|r| moment(r, "last_at")),
            ("head", &|r| at(r, "head")),
        ],
    )
}

/// The demonstration: the text, the command and the answer of each step.
pub fn demo(out: &mut Rendering, response: &Value) {
    for step in list(response, "steps") {
        let says = at(step, "says");
        if !says.is_empty() {
            out.heading(says);
        }
        let operation = step["operation"].as_str().and_then(registry::find);
        let mut answer = operation.map(|of| Rendering::of(of, &step["response"])).unwrap_or_default();
        if let Some(message) = step["error"]["message"].as_str() {
            answer.line(format!("error: {message}"));
        }
        out.command(at(step, "command"), answer);
    }
    out.heading(format!("{}. Now yours:", at(response, "summary")));
    out.gap();
    out.line("  lukasa put Service auth --title \"Auth\" --set port=8080");
    out.line("  lukasa --help");
}
