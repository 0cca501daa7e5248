//! Every request field that takes types gives the same answer for a type in any case and under its earlier name.

use crate::test_engine::TestEngine;
use crate::type_names::program;
use lukasa_engine::registry::Effect;
use lukasa_engine::{Operation, operations};
use serde_json::{Map, Value, json};

/// Spellings of one type, and another type, which gives another answer.
struct Spelled {
    same: &'static [&'static str],
    other: &'static str,
}

static OBJECTS: Spelled = Spelled { same: &["Function", "function", "FUNCTION"], other: "Interface" };
static RELATIONSHIPS: Spelled = Spelled { same: &["EXTENDS", "extends", "INHERITS", "inherits"], other: "REFERENCES" };

/// A field of a request that takes types, by its path; `[]` stands for an item of a list.
struct TypeField {
    operation: &'static Operation,
    path: Vec<String>,
    /// Whether it takes a list of types.
    is_list: bool,
}

impl TypeField {
    fn spelled(&self) -> &'static Spelled {
        let name = self.path.last().unwrap();
        if name.contains("edge") || name.contains("relationship") { &RELATIONSHIPS } else { &OBJECTS }
    }
}

/// The fields whose names say that they take types, and that are free text: choices have their own names.
fn type_fields() -> Vec<TypeField> {
    let mut found = Vec::new();
    for operation in operations().iter().filter(|operation| operation.meta.effect == Effect::Read) {
        let schema = operation.request.as_value();
        collect(operation, schema, schema, &mut vec![], &mut found);
    }
    found
}

fn collect(
    operation: &'static Operation,
    root: &Value,
    here: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<TypeField>,
) {
    if let Some(target) = here["$ref"].as_str() {
        return collect(operation, root, root.pointer(target.trim_start_matches('#')).unwrap(), path, found);
    }
    for alternative in ["anyOf", "allOf"].iter().filter_map(|list| here[*list].as_array()).flatten() {
        collect(operation, root, alternative, path, found);
    }
    if here["items"].is_object() {
        path.push("[]".into());
        collect(operation, root, &here["items"], path, found);
        path.pop();
    }
    for (name, field) in here["properties"].as_object().into_iter().flatten() {
        path.push(name.clone());
        let takes_types = ["type", "types"].iter().any(|end| name == end || name.ends_with(&format!("_{end}")));
        let is = |value: &Value, kind: &str| {
            value["type"] == kind || value["type"].as_array().is_some_and(|all| all.iter().any(|one| one == kind))
        };
        let is_list = is(field, "array") && is(&field["items"], "string");
        let is_free = (is_list || is(field, "string")) && field["enum"].is_null();
        if takes_types && is_free {
            found.push(TypeField { operation, path: path.clone(), is_list });
        } else {
            collect(operation, root, field, path, found);
        }
        path.pop();
    }
}

/// Puts a value at a path.
fn put(request: &mut Map<String, Value>, path: &[String], value: Value) {
    match path {
        [name] => drop(request.insert(name.clone(), value)),
        [name, item, rest @ ..] if item == "[]" => {
            let mut one = Map::new();
            put(&mut one, rest, value);
            request.insert(name.clone(), json!([one]));
        }
        [name, rest @ ..] => {
            let inner = request.entry(name.clone()).or_insert_with(|| json!({}));
            put(inner.as_object_mut().unwrap(), rest, value);
        }
        [] => {}
    }
}

/// The rest of a request in which a filter by types matters. An operation without one fails the test.
fn request(name: &str, of_objects: bool) -> Value {
    match name {
        "list" | "rank" => json!({}),
        "symbol_lookup" => json!({"query": "shop"}),
        "search" => json!({"query": "shop open", "limit": 20}),
        "query_knowledge_graph" => json!({"query": "shop open", "limit": 20}),
        "neighbors" | "impact" => json!({"ref": "shop.py::Base"}),
        "get_entity_neighbors" => json!({"node_id": "shop.py::Base"}),
        "traverse" | "expand" => json!({"roots": ["shop.py", "shop.py::Base"], "direction": "both"}),
        "graph_traverse" => json!({"entry_entity_ids": ["shop.py", "shop.py::Base"], "direction": "both"}),
        "shortest_path" | "paths" if of_objects => json!({"from": "test_shop.py::helper", "to": "shop.py::Shop"}),
        "shortest_path" | "paths" => json!({"from": "shop.py::Shop", "to": "shop.py::Base"}),
        "subgraph" => json!({"roots": ["shop.py", "shop.py::Base"], "radius": 2}),
        "diff" => json!({"from": "tx:1"}),
        "diff_since" => json!({"since": "tx:1"}),
        "release_diff" => json!({"from": "before", "to": "after"}),
        _ => panic!("`{name}` takes types: add a request here"),
    }
}

/// An answer without what differs from one request to the next, and without the spelling that it repeats.
fn comparable(answer: Result<Value, lukasa_model::Error>, spelled: &str) -> String {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return format!("{}: {}", error.code, error.message).replace(spelled, "…"),
    };
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|name, _| {
                    !name.ends_with("_ms")
                        && !name.ends_with("cursor")
                        && name != "token_estimate"
                        && name != "trace_id"
                });
                map.values_mut().for_each(strip);
            }
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut answer = answer;
    strip(&mut answer);
    answer.to_string()
}

#[test]
fn every_field_that_takes_types_accepts_any_case_and_earlier_names() {
    let mut differing = Vec::new();
    for test in TestEngine::all() {
        let folder = program();
        test.ok("put", json!({"type": "Note", "key": "first"}));
        test.ok("release_create", json!({"name": "before"}));
        test.ok("index_directory", json!({"path": folder.path()}));
        test.ok("release_create", json!({"name": "after"}));
        for field in type_fields() {
            let name = field.operation.meta.name;
            let ask = |spelled: &str| {
                let mut request = request(name, std::ptr::eq(field.spelled(), &OBJECTS)).as_object().unwrap().clone();
                put(&mut request, &field.path, if field.is_list { json!([spelled]) } else { json!(spelled) });
                comparable(test.call(name, Value::Object(request)), spelled)
            };
            let Spelled { same, other } = field.spelled();
            let expected = ask(same[0]);
            let what = format!("{name} {} on {}", field.path.join("."), test.fixture.name);
            if ask(other) == expected {
                differing.push(format!("{what}: {other} gives the same as {}: {expected}", same[0]));
            }
            for spelled in &same[1..] {
                let answer = ask(spelled);
                if answer != expected {
                    differing.push(format!("{what}: {spelled} gives\n  {answer}\nnot\n  {expected}"));
                }
            }
        }
    }
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
}

#[test]
fn the_fields_that_take_types_are_found() {
    let found: Vec<String> =
        type_fields().iter().map(|field| format!("{} {}", field.operation.meta.name, field.path.join("."))).collect();
    for needed in [
        "search object_types",
        "search neighbor.edge_types",
        "expand phases.[].node_types",
        "impact relationship_types",
        "rank type",
        "paths relationship_types",
    ] {
        assert!(found.iter().any(|field| field == needed), "{needed} is not among {found:?}");
    }
}
