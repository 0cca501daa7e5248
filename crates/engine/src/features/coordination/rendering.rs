//! Claims, tasks and events as tables.

use crate::rendering::Rendering;
use crate::rendering::values::{at, list, moment, plain};
use crate::responses::count;
use serde_json::Value;

pub fn overview(out: &mut Rendering, response: &Value) {
    claims(out, list(response, "active_claims"));
    let stale: Vec<String> = list(response, "stale_claims").into_iter().map(|claim| at(claim, "target_id")).collect();
    if !stale.is_empty() {
        out.line(format!("changed since they were claimed: {}", stale.join(", ")));
    }
    conflicts(out, list(response, "conflicts"));
    out.table(
        list(response, "agent_summary"),
        &[
            ("agent", &|r| at(r, "agent_id")),
            ("claims", &|r| at(r, "claim_count")),
            ("last seen", &|r| moment(r, "last_seen")),
        ],
    )
}

pub fn agent(out: &mut Rendering, response: &Value) {
    claims(out, list(response, "active_claims"));
    out.table(
        list(response, "recent_episodes"),
        &[
            ("when", &|r| moment(r, "timestamp")),
            ("type", &|r| at(r, "type")),
            ("content", &|r| at(r, "content").chars().take(80).collect()),
        ],
    )
}

pub fn tasks(out: &mut Rendering, response: &Value) {
    out.table(
        list(response, "tasks"),
        &[
            ("task", &|r| at(r, "task_id")),
            ("title", &|r| at(r, "title")),
            ("status", &|r| at(r, "status")),
            ("priority", &|r| at(r, "priority")),
            ("waits for", &|r| named(r, "blocked_by")),
            ("claimed by", &|r| at(r, "claimed_by")),
            ("part of", &|r| at(r, "belongs_to")),
        ],
    )
}

pub fn ready(out: &mut Rendering, response: &Value) {
    out.table(
        list(response, "tasks"),
        &[
            ("task", &|r| at(r, "task_id")),
            ("title", &|r| at(r, "title")),
            ("unblocks", &|r| at(r, "unblocks")),
            ("priority", &|r| at(r, "priority")),
            ("part of", &|r| at(r, "belongs_to")),
        ],
    )
}

pub fn blocking(out: &mut Rendering, response: &Value) {
    out.table(
        list(response, "issues"),
        &[
            ("task", &|r| at(r, "task_id")),
            ("title", &|r| at(r, "title")),
            ("why", &|r| at(r, "reason")),
            ("holds up", &|r| at(r, "holds_up")),
        ],
    );
    conflicts(out, list(response, "claim_conflicts"))
}

pub fn feature(out: &mut Rendering, response: &Value) {
    tasks(out, response);
    claims(out, list(response, "active_claims"));
    let untested: Vec<String> = list(&response["code_coverage"], "untested").into_iter().map(plain).collect();
    if !untested.is_empty() {
        out.line(format!("no test reaches {}", untested.join(", ")));
    }
}

/// Events, oldest first, and how to ask for those after them.
pub fn events(out: &mut Rendering, response: &Value) {
    out.table(
        list(response, "events"),
        &[
            ("when", &|r| moment(r, "at")),
            ("event", &happened),
            ("what", &concerned),
            ("by", &|r| at(r, "agent")),
            ("why", &|r| at(r, "reason")),
        ],
    );
    let more = if response["truncated"] == true { "… and more" } else { "what happens next" };
    out.line(format!("{more}: --after {}", at(response, "cursor")));
}

/// The kind of an event, with its number or the state that it led to.
fn happened(event: &Value) -> String {
    let kind = at(event, "kind");
    let more = match &*kind {
        "transaction" | "replaced" => at(event, "tx"),
        _ => at(event, "status"),
    };
    format!("{kind} {more}").trim_end().to_owned()
}

/// What an event is about.
fn concerned(event: &Value) -> String {
    let [subtype, title, target] = ["subtype", "title", "target"].map(|field| at(event, field));
    match event["kind"].as_str() {
        Some("transaction") => match event["stated"].as_u64() {
            Some(versions) => format!("{subtype}, {}", count(versions, "version")),
            None => subtype,
        },
        Some("conflict") => format!("{target}, held by {}", at(event, "holder")),
        _ if !target.is_empty() => target,
        _ if !title.is_empty() => title,
        _ => at(event, "ref"),
    }
}

fn claims(out: &mut Rendering, claims: Vec<&Value>) {
    out.table(
        claims,
        &[
            ("target", &|r| at(r, "target_id")),
            ("agent", &|r| at(r, "agent_id")),
            ("intent", &|r| at(r, "intent")),
            ("since", &|r| moment(r, "valid_from")),
            ("task", &|r| at(r, "task_id")),
            ("claim", &|r| at(r, "claim_id")),
        ],
    )
}

fn conflicts(out: &mut Rendering, conflicts: Vec<&Value>) {
    out.table(
        conflicts,
        &[
            ("wanted", &|r| at(r, "target_id")),
            ("by", &|r| at(r, "wanted_by")),
            ("for", &|r| at(r, "wanted_for")),
            ("held by", &|r| at(&r["held"], "agent_id")),
            ("for", &|r| at(&r["held"], "intent")),
        ],
    )
}

fn named(row: &Value, field: &str) -> String {
    list(row, field).into_iter().map(|one| at(one, "id")).collect::<Vec<_>>().join(", ")
}
