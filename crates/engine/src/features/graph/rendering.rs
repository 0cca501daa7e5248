//! Answers of the operations that traverse the graph.

pub mod cypher;

use crate::rendering::Rendering;
use crate::rendering::locations::{RowDetails, places, print};
use crate::rendering::values::{at, list, name_and_end, plain, safe, small};
use serde_json::{Value, json};
use std::collections::HashMap;

pub fn neighbors(out: &mut Rendering, response: &Value) {
    nodes(out, response, "distance");
    edges(out, response)
}

pub fn traversed(out: &mut Rendering, response: &Value) {
    nodes(out, response, "depth");
    edges(out, response);
    paths(out, &list(response, "paths"));
    for (field, word) in [("next_cursor", "more"), ("previous_cursor", "back")] {
        if let Some(cursor) = response[field].as_str() {
            out.verbatim(format!("… {word}: the same command with --cursor {cursor}"));
        }
    }
}

pub fn subgraph(out: &mut Rendering, response: &Value) {
    nodes(out, response, "");
    edges(out, response)
}

pub fn ranks(out: &mut Rendering, response: &Value) {
    out.table(
        list(response, "nodes"),
        &[
            ("object", &name_and_end),
            ("title", &|r| at(r, "title")),
            ("rank", &|r| small(&r["score"])),
            ("relationships", &|r| at(r, "degree")),
        ],
    )
}

/// Entities in the form of an earlier service.
pub fn entities(out: &mut Rendering, response: &Value) {
    out.table(
        list(response, "entities"),
        &[
            ("entity", &name_and_end),
            ("name", &|r| if r["name"] == r["key"] { String::new() } else { at(r, "name") }),
            ("by", &|r| way(response, r)),
            ("hops", &|r| at(r, "hops")),
            ("confidence", &|r| small(&r["confidence"])),
        ],
    )
}

pub fn shortest_path(out: &mut Rendering, response: &Value) {
    paths(out, &response["path"].as_object().map(|_| &response["path"]).into_iter().collect::<Vec<_>>())
}

pub fn all_paths(out: &mut Rendering, response: &Value) {
    paths(out, &list(response, "paths"))
}

/// The path to an entity: relationship types with arrows.
fn way(response: &Value, entity: &Value) -> String {
    let last = |path: &&Value| path["nodes"].as_array().and_then(|n| n.last()) == Some(&entity["id"]);
    let Some(path) = list(response, "paths").into_iter().find(last) else { return String::new() };
    let arrow = |(i, edge): (usize, &Value)| {
        if path["directions"][i] == "in" { format!("←{}—", plain(edge)) } else { format!("—{}→", plain(edge)) }
    };
    list(path, "edges").into_iter().enumerate().map(arrow).collect::<Vec<_>>().join(" ")
}

fn nodes(out: &mut Rendering, response: &Value, far: &'static str) {
    out.table(
        list(response, "nodes"),
        &[
            ("object", &name_and_end),
            ("title", &|r| at(r, "title")),
            ("status", &|r| at(r, "status")),
            ("labels", &|r| at(r, "labels")),
            ("properties", &|r| if r["properties"].is_object() { r["properties"].to_string() } else { String::new() }),
            ("hops", &|r| at(r, far)),
            ("pagerank", &|r| small(&r["pagerank"])),
        ],
    )
}

fn edges(out: &mut Rendering, response: &Value) {
    let mut names: HashMap<&str, String> = HashMap::new();
    for node in list(response, "nodes").into_iter().chain(list(response, "earlier_nodes")) {
        names.insert(node["id"].as_str().unwrap_or_default(), name_and_end(node));
    }
    let end = |row: &Value, fields: [&str; 2]| {
        let id = fields.iter().find_map(|f| row[*f].as_str()).unwrap_or_default();
        names.get(id).cloned().unwrap_or_else(|| id.to_string())
    };
    out.table(
        list(response, "edges"),
        &[
            ("from", &|r| end(r, ["src_id", "src"])),
            ("relationship", &|r| format!("—{}→", at(r, "type"))),
            ("to", &|r| end(r, ["dst_id", "dst"])),
            ("confidence", &|r| small(&r["confidence"])),
            ("weight", &|r| small(&r["weight"])),
            ("derivation", &|r| at(r, "derivation")),
            ("score", &|r| small(&r["score"])),
        ],
    )
}

fn paths(out: &mut Rendering, paths: &[&Value]) {
    for path in paths {
        let nodes = list(path, "nodes");
        let mut line = String::new();
        for (i, node) in nodes.iter().enumerate() {
            line += &plain(node);
            if let Some(edge) = path["edges"].get(i) {
                let type_name = at(edge, "type");
                line += &if edge["direction"] == "in" {
                    format!(" ←{type_name}— ")
                } else {
                    format!(" —{type_name}→ ")
                };
            }
        }
        match path["confidence"].as_f64() {
            Some(confidence) if confidence < 1.0 => {
                out.line(format!("  {line}  (confidence {})", small(&path["confidence"])));
            }
            _ => out.line(format!("  {line}")),
        }
    }
}

/// Most tests named in one line.
const TESTS: usize = 10;

pub fn impact(out: &mut Rendering, response: &Value) {
    let path = |r: &Value| list(r, "path").into_iter().map(plain).collect::<Vec<_>>().join(" → ");
    out.table(
        list(response, "impacted_services"),
        &[
            ("service", &|r| at(r, "service_name")),
            ("depend on it", &|r| at(r, "impact_count")),
            ("it depends on", &|r| at(r, "dependencies")),
            ("nearest by", &path),
        ],
    );
    out.table(
        list(response, "impacted_contracts"),
        &[
            ("contract", &|r| at(r, "contract")),
            ("service", &|r| at(r, "service_name")),
            ("endpoints", &|r| at(r, "endpoints_affected")),
        ],
    );
    out.table(
        list(response, "impacted_entities"),
        &[("entity", &|r| at(r, "entity")), ("owned by", &|r| at(r, "owning_service"))],
    );
    reached(out, response)
}

/// Dependents and dependencies: production code first, then tests by distance.
fn reached(out: &mut Rendering, response: &Value) {
    let hops = |r: &Value| match r["distance"].as_u64() {
        None => String::new(),
        Some(1) => "1 hop".into(),
        Some(hops) => format!("{hops} hops"),
    };
    let via = |r: &Value| if r["via"].is_string() { format!("by {}", at(r, "via")) } else { String::new() };
    let ended = |r: &Value| if r["ended"] == true { "ended".into() } else { String::new() };
    let beside = RowDetails { facts: &[&hops, &via, &ended], ..RowDetails::default() };
    let tests = |field: &str| list(response, field).into_iter().map(plain).collect::<Vec<String>>();
    let [direct, transitive] = [tests("direct_tests"), tests("transitive_tests")];
    let is_test = |name: &String| direct.contains(name) || transitive.contains(name);
    for (field, title) in [("dependents", "depends on it"), ("dependencies", "it depends on")] {
        let all = list(response, field);
        let listed = all.len();
        let rows: Vec<&Value> = all.into_iter().filter(|r| !is_test(&at(r, "name"))).collect();
        if !rows.is_empty() {
            out.heading(title);
            places(out, rows, &beside);
        }
        out.more(listed, &response[format!("total_{field}")]);
    }
    // The list of dependents may have been truncated before the tests.
    let dependents: HashMap<String, &Value> =
        list(response, "dependents").into_iter().map(|r| (at(r, "name"), r)).collect();
    for (tests, title) in [(&direct, "direct tests"), (&transitive, "transitive tests")] {
        let named = |name: &String| dependents.get(name).map_or_else(|| json!({"name": name}), |r| (*r).clone());
        let rows: Vec<Value> = tests.iter().take(TESTS).map(named).collect();
        if !rows.is_empty() {
            out.heading(title);
            print(out, rows.iter().collect(), &beside);
        }
        if tests.len() > TESTS {
            out.line(format!("… and {} more (--json has all)", tests.len() - TESTS));
        }
    }
}

pub fn communities(out: &mut Rendering, response: &Value) {
    let since = response["transactions_since"].as_u64().unwrap_or(0);
    if since > 0 {
        out.line(format!("found {since} transactions ago; --fresh finds them now"));
    }
    if response["members"].is_array() {
        return out.table(list(response, "members"), &[("member", &name_and_end), ("labels", &|r| at(r, "labels"))]);
    }
    out.table(
        list(response, "communities"),
        &[("community", &|r| at(r, "key")), ("objects", &|r| at(r, "size")), ("summary", &|r| at(r, "summary"))],
    );
    out.more(list(response, "communities").len(), &response["total"]);
}

pub fn stats(out: &mut Rendering, response: &Value) {
    for field in ["nodes_by_type", "edges_by_type"] {
        let counts: Vec<_> = response[field].as_object().into_iter().flatten().collect();
        if !counts.is_empty() {
            let shown: Vec<_> = counts.iter().map(|(name, n)| format!("{n} {}", safe(name))).collect();
            let title = if field == "nodes_by_type" { "objects" } else { "relationships" };
            out.field(title, 14, shown.join(", "));
        }
    }
    let degrees = &response["degrees"];
    let per_object = format!(
        "mean {}, median {}, 95 of 100 at most {}, most {}, none {}",
        small(&degrees["mean"]),
        at(degrees, "median"),
        at(degrees, "p95"),
        at(degrees, "max"),
        at(degrees, "isolated")
    );
    out.field("per object", 14, per_object);
    out.field("largest part", 14, format!("{} objects", at(response, "largest_component")));
    let memory = &response["memory"];
    let used = format!(
        "{} KiB, {} bytes per object, {} per relationship",
        memory["bytes"].as_u64().unwrap_or(0) / 1024,
        at(memory, "bytes_per_node"),
        at(memory, "bytes_per_edge")
    );
    out.field("memory", 14, used)
}
