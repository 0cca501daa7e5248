//! Answers of Cypher queries, as a table or as trees.

use crate::convert::to_usize;
use crate::rendering::Rendering;
use crate::rendering::values::{at, list, plain, safe};
use serde_json::Value;

pub fn table(out: &mut Rendering, response: &Value) {
    let rows: Vec<Vec<String>> = list(response, "rows")
        .into_iter()
        .map(|row| row.as_array().into_iter().flatten().map(cell).collect())
        .collect();
    if !rows.is_empty() {
        let columns: Vec<String> = list(response, "columns").into_iter().map(plain).collect();
        out.cells(columns, rows);
    }
    cut(out, response);
    plan(out, response)
}

/// Rows below each other, with all their values as trees.
pub fn tree(response: &Value) -> Rendering {
    let mut out = Rendering::default();
    out.line(response["summary"].as_str().unwrap_or_default());
    let columns: Vec<_> = list(response, "columns").into_iter().map(|c| safe(c.as_str().unwrap_or_default())).collect();
    for (i, row) in list(response, "rows").into_iter().enumerate() {
        out.line(format!("row {}", i + 1));
        let cells: Vec<_> = row.as_array().into_iter().flatten().collect();
        for (j, (name, value)) in columns.iter().zip(&cells).enumerate() {
            branch(&mut out, "", j + 1 == cells.len(), name, value);
        }
    }
    cut(&mut out, response);
    plan(&mut out, response);
    out
}

fn branch(out: &mut Rendering, indent: &str, last: bool, name: &str, value: &Value) {
    let (fork, below) = if last { ("└─", "   ") } else { ("├─", "│  ") };
    let inner = format!("{indent}{below}");
    let children: Vec<(String, &Value)> = match value {
        Value::Object(entries) if is_thing(value) => {
            let own = entries.get("properties").and_then(Value::as_object).into_iter().flatten();
            own.filter(|(name, _)| *name != "key").map(|(name, value)| (safe(name), value)).collect()
        }
        Value::Object(entries) if is_path(value) => {
            let nodes = entries["nodes"].as_array().into_iter().flatten();
            let edges: Vec<_> = entries["relationships"].as_array().into_iter().flatten().collect();
            nodes
                .enumerate()
                .flat_map(|(i, node)| {
                    let edge = i.checked_sub(1).and_then(|i| edges.get(i)).map(|e| ("by".to_string(), *e));
                    edge.into_iter().chain([("".to_string(), node)])
                })
                .collect()
        }
        Value::Object(entries) => entries.iter().map(|(name, value)| (safe(name), value)).collect(),
        Value::Array(items) if items.iter().any(|i| i.is_object() || i.is_array()) => {
            items.iter().enumerate().map(|(i, item)| (i.to_string(), item)).collect()
        }
        _ => vec![],
    };
    let own = match value {
        _ if is_thing(value) && value["src"].is_string() => {
            format!("{} {} → {}", head(value, ""), at(value, "src"), at(value, "dst"))
        }
        _ if is_thing(value) => head(value, &named(value)),
        _ if is_path(value) => "path".into(),
        _ if children.is_empty() => cell(value),
        Value::Array(items) => format!("{} elements", items.len()),
        _ => String::new(),
    };
    let colon = if name.is_empty() { "" } else { ": " };
    out.line(format!("{indent}{fork} {name}{colon}{own}"));
    let count = children.len();
    for (i, (name, value)) in children.into_iter().enumerate() {
        branch(out, &inner, i + 1 == count, &name, value);
    }
}

fn cut(out: &mut Rendering, response: &Value) {
    if response["truncated"] == true {
        out.line("… and more: raise --limit (:limit in the shell), or say LIMIT, ORDER BY or count(*)");
    }
}

fn plan(out: &mut Rendering, response: &Value) {
    let steps = list(response, "plan");
    if steps.is_empty() {
        return;
    }
    let ran = steps.iter().any(|s| s["rows"].is_number());
    let header = ["step", "what", "expected rows", "rows"].map(str::to_owned);
    let rows: Vec<Vec<String>> = steps
        .into_iter()
        .map(|step| {
            let depth = to_usize(step["depth"].as_u64().unwrap_or(0));
            let name = format!("{}{}", "  ".repeat(depth), at(step, "operator"));
            let cells = [name, at(step, "details"), at(step, "expected_rows")];
            cells.into_iter().chain(ran.then(|| at(step, "rows"))).collect()
        })
        .collect();
    out.cells(header[..if ran { 4 } else { 3 }].to_vec(), rows)
}

fn is_thing(value: &Value) -> bool {
    value["id"].is_string() && value["type"].is_string() && value["properties"].is_object()
}

fn is_path(value: &Value) -> bool {
    value["nodes"].is_array() && value["relationships"].is_array()
}

/// A node or a relationship in Cypher notation, with these of its properties.
fn head(value: &Value, properties: &str) -> String {
    let space = if properties.is_empty() { "" } else { " " };
    if value["src"].is_string() {
        return format!("[:{}{space}{properties}]", at(value, "type"));
    }
    let ended = if value["ended"] == true { " (ended)" } else { "" };
    let labels: String = list(value, "labels").into_iter().map(|l| format!(":{}", plain(l))).collect();
    format!("({labels}{space}{properties}){ended}")
}

/// Identifies a node: by its key, or by its id.
fn named(value: &Value) -> String {
    match value["properties"]["key"].as_str() {
        Some(key) => format!("{{key: '{}'}}", safe(key)),
        None if value["src"].is_string() => String::new(),
        None => format!("{{id: '{}'}}", at(value, "id")),
    }
}

fn entries<'v>(all: impl Iterator<Item = (&'v String, &'v Value)>) -> String {
    let all: Vec<_> = all.map(|(name, value)| format!("{}: {}", safe(name), quoted(value))).collect();
    format!("{{{}}}", all.join(", "))
}

/// A value in a cell. Text is unquoted unless it could be read as another value.
fn cell(value: &Value) -> String {
    match value {
        Value::String(text) if serde_json::from_str::<Value>(text).is_err() => safe(text),
        other => quoted(other),
    }
}

/// A value inside another one.
fn quoted(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::String(text) => format!("'{}'", safe(text)),
        Value::Array(items) => format!("[{}]", items.iter().map(quoted).collect::<Vec<_>>().join(", ")),
        Value::Object(_) if is_path(value) => {
            let edges = list(value, "relationships");
            let mut line = String::new();
            for (i, node) in list(value, "nodes").into_iter().enumerate() {
                if let Some(edge) = i.checked_sub(1).and_then(|i| edges.get(i)) {
                    let forth = names(node) == edge["dst"].as_str().unwrap_or_default();
                    let (left, right) = if forth { ("-", "->") } else { ("<-", "-") };
                    line += &format!("{left}{}{right}", head(edge, ""));
                }
                line += &head(node, &named(node));
            }
            line
        }
        Value::Object(_) if is_thing(value) => {
            let own = value["properties"].as_object().filter(|p| !p.is_empty());
            let own = own.map(|p| entries(p.iter())).unwrap_or_else(|| named(value));
            if value["src"].is_string() {
                let ends = [at(value, "src"), at(value, "dst")];
                return format!("{} {} → {}", head(value, &own), ends[0], ends[1]);
            }
            head(value, &own)
        }
        Value::Object(map) => entries(map.iter()),
        other => other.to_string(),
    }
}

/// How relationships refer to a node.
fn names(node: &Value) -> String {
    match node["properties"]["key"].as_str() {
        Some(key) => format!("{}:{key}", node["type"].as_str().unwrap_or_default()),
        None => node["id"].as_str().unwrap_or_default().to_string(),
    }
}
