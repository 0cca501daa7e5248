//! Answers about facts: objects, versions, changes, transactions, branches, releases and types.

use crate::rendering::locations::{self, RowDetails};
use crate::rendering::values::{at, exact, list, moment, name, plain, safe};
use crate::rendering::{Rendering, ResultRow};
use crate::view::symbols::SymbolKind;
use lukasa_model::content::{RELATIONSHIP_TEXTS, TEXTS};
use serde_json::Value;

pub fn versions(out: &mut Rendering, response: &Value) {
    out.table(
        list(response, "versions"),
        &[
            ("version", &|r| at(r, "version")),
            ("id", &|r| at(r, "version_id")),
            ("branch", &|r| at(r, "branch")),
            ("recorded", &|r| moment(r, "recorded_at")),
            ("true", &valid),
            ("changed", &changed),
        ],
    )
}

pub fn branches(out: &mut Rendering, response: &Value) {
    out.table(
        list(response, "branches"),
        &[
            ("branch", &|r| at(r, "name")),
            ("from", &|r| at(r, "parent")),
            ("mode", &|r| at(r, "mode")),
            ("fork", &|r| at(r, "fork")),
            ("closed", &|r| if r["closed"] == true { "yes".into() } else { String::new() }),
            ("description", &|r| at(r, "description")),
        ],
    )
}

pub fn releases(out: &mut Rendering, response: &Value) {
    out.table(
        list(response, "releases"),
        &[
            ("release", &|r| at(r, "name")),
            ("branch", &|r| at(r, "branch")),
            ("transaction", &|r| at(r, "tx")),
            ("objects", &|r| at(r, "objects")),
            ("relationships", &|r| at(r, "relationships")),
            ("tags", &|r| at(r, "tags")),
        ],
    )
}

pub fn tags(out: &mut Rendering, response: &Value) {
    out.table(
        list(response, "tags"),
        &[("tag", &|r| at(r, "name")), ("release", &|r| at(r, "release")), ("description", &|r| at(r, "description"))],
    )
}

pub fn types(out: &mut Rendering, response: &Value) {
    out.table(
        list(response, "object_types"),
        &[
            ("object type", &|r| at(r, "name")),
            ("schema", &|r| if r["schema"].is_null() { String::new() } else { "yes".into() }),
            ("branchless", &|r| at(r, "branchless")),
            ("description", &|r| at(r, "description")),
        ],
    );
    out.table(
        list(response, "relationship_types"),
        &[
            ("relationship type", &|r| at(r, "name")),
            ("from", &|r| at(r, "src_types")),
            ("to", &|r| at(r, "dst_types")),
            ("per source", &|r| plain(&r["multiplicity"]["src"])),
            ("per destination", &|r| plain(&r["multiplicity"]["dst"])),
            ("lasting", &|r| at(r, "lasting")),
        ],
    );
}

/// Objects of any type.
pub fn listed(out: &mut Rendering, response: &Value) {
    objects(out, list(response, "objects"))
}

pub fn log(out: &mut Rendering, response: &Value) {
    transactions(out, list(response, "transactions"));
    if response["truncated"] == true {
        out.line("… and more: raise --limit, or go on with --before or --after");
    }
}

pub fn difference(out: &mut Rendering, response: &Value) {
    changes(out, list(response, "changes"), &|r| at(r, "change"))
}

pub fn difference_since(out: &mut Rendering, response: &Value) {
    for change in ["added", "removed", "modified"] {
        changes(out, list(response, change), &|_| change.into());
    }
    transactions(out, list(response, "transactions"))
}

/// Objects of any type. If all are code, they are shown by path and line.
fn objects(out: &mut Rendering, objects: Vec<&Value>) {
    let is_code = |r: &&Value| SymbolKind::of_type(r["type"].as_str().unwrap_or_default()).is_some();
    if !objects.is_empty() && objects.iter().all(is_code) {
        let beside = RowDetails { facts: &[&locations::kind, &|r| at(r, "labels")], ..RowDetails::default() };
        return locations::places(out, objects, &beside);
    }
    out.table(
        objects,
        &[
            ("object", &name),
            ("title", &|r| at(r, "title")),
            ("status", &|r| at(r, "status")),
            ("labels", &|r| at(r, "labels")),
            ("version", &|r| at(r, "version")),
        ],
    )
}

pub fn get(out: &mut Rendering, response: &Value) {
    if let Some(old) = response["renamed_from"].as_str() {
        out.line(format!("`{old}` was renamed to this"));
    }
    let thing = &response["thing"];
    let mut pairs: Vec<(String, String)> = Vec::new();
    for end in ["src", "dst"] {
        if thing[end].is_object() {
            pairs.push((end.into(), end_name(&thing[end])));
        }
    }
    let texts = TEXTS.iter().filter(|field| **field != "title");
    for field in texts.chain(&["labels", "weight", "confidence"]).chain(&RELATIONSHIP_TEXTS) {
        pairs.push(((*field).into(), at(thing, field)));
    }
    for (property, value) in thing["properties"].as_object().into_iter().flatten() {
        pairs.push((safe(property), exact(value)));
    }
    pairs.push(("evidence".into(), at(thing, "evidence")));
    pairs.push(("true".into(), valid(thing)));
    pairs.push(("recorded".into(), format!("{}, as {}", moment(thing, "recorded_at"), at(thing, "version_id"))));
    let view = &response["view"];
    pairs.push((
        "seen from".into(),
        format!("{}, transaction {}, {}", at(view, "branch"), at(view, "known_at"), moment(view, "valid_at")),
    ));
    for (field, value) in &pairs {
        out.field(field, 10, value);
    }
    let direction = |r: &Value| {
        if r["direction"] == "out" { format!("—{}→", at(r, "type")) } else { format!("←{}—", at(r, "type")) }
    };
    out.table(
        list(response, "links"),
        &[
            ("relationship", &direction),
            ("with", &|r| end_name(&r["other"])),
            ("confidence", &|r| at(r, "confidence")),
            ("derivation", &|r| at(r, "derivation")),
        ],
    );
    let (shown, total) = (list(response, "links").len() as u64, response["links_total"].as_u64().unwrap_or(0));
    if total > shown {
        out.line(format!("… {shown} of {total} relationships: raise --links"));
    }
}

fn end_name(end: &Value) -> String {
    let mut shown = name(end);
    if end["ended"] == true {
        shown += match end["renamed_to"].as_str() {
            Some(new) => return format!("{shown} (now {new})"),
            None => " (ended)",
        };
    }
    shown
}

fn changes(out: &mut Rendering, changed: Vec<&Value>, change: &dyn Fn(&Value) -> String) {
    let thing = |r: &Value| if r["ref"].is_string() && r["between"].is_null() { at(r, "ref") } else { name(r) };
    let row = |r: &&Value| ResultRow {
        place: change(r),
        name: thing(r),
        about: at(r, "title"),
        below: differences(&r["change_summary"]).replace('\n', "; "),
        ..ResultRow::default()
    };
    out.rows(changed.iter().map(row).collect())
}

/// A change summary, one path per line.
fn differences(summary: &Value) -> String {
    let updated = summary["updated"].as_object().cloned().unwrap_or_default();
    let added = summary["added"].as_object().cloned().unwrap_or_default();
    let shown = |path: &Value| {
        let path = path.as_str().unwrap_or_default();
        match (updated.get(path), added.get(path)) {
            (Some(values), _) if values.get("from").is_some() => {
                format!("{path}: {} → {}", exact(&values["from"]), exact(&values["to"]))
            }
            (None, Some(value)) => format!("{path}: {}", exact(value)),
            (None, None) => format!("{path}: gone"),
            _ => path.to_string(),
        }
    };
    summary["paths"].as_array().into_iter().flatten().map(shown).collect::<Vec<_>>().join("\n")
}

fn transactions(out: &mut Rendering, list: Vec<&Value>) {
    let who = |r: &Value| [at(r, "agent"), at(r, "author")].into_iter().find(|w| !w.is_empty()).unwrap_or_default();
    out.table(
        list,
        &[
            ("transaction", &|r| at(r, "tx")),
            ("recorded", &|r| moment(r, "recorded_at")),
            ("kind", &|r| at(r, "kind")),
            ("branch", &|r| at(r, "branch")),
            ("by", &who),
            ("objects", &|r| at(r, "objects")),
            ("relationships", &|r| at(r, "relationships")),
            ("commit", &|r| at(r, "git_commit").chars().take(10).collect()),
            ("reason", &|r| at(r, "reason")),
        ],
    )
}

pub fn merge(out: &mut Rendering, response: &Value) {
    out.table(list(response, "items"), &[("thing", &name), ("class", &|r| at(r, "class"))]);
    out.conflicts(list(response, "conflicts"))
}

fn valid(row: &Value) -> String {
    // The usual case is kept short.
    if row["valid_from"] == row["recorded_at"] && row["valid_to"].is_null() {
        return "since recorded".into();
    }
    let (from, to) = (moment(row, "valid_from"), moment(row, "valid_to"));
    match (from.is_empty(), to.is_empty()) {
        (true, true) => "always".into(),
        (false, true) => format!("since {from}"),
        (true, false) => format!("until {to}"),
        (false, false) => format!("{from} to {to}"),
    }
}

fn changed(row: &Value) -> String {
    let mut parts = Vec::new();
    if row["absent"] == true {
        parts.push("ended".to_string());
    }
    if let Some(from) = row["merged_from"].as_array().into_iter().flatten().find(|m| m["role"] == "source") {
        parts.push(format!("merged from {}", at(from, "version_id")));
    }
    let paths =
        if row["change_summary"].is_object() { differences(&row["change_summary"]) } else { at(row, "changed") };
    match (parts.is_empty(), paths.is_empty()) {
        (true, true) => "first".into(),
        (false, true) => parts.join(", "),
        _ if row["absent"] == true => parts.join(", "),
        _ => {
            parts.push(paths);
            parts.join(": ")
        }
    }
}
