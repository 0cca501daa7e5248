//! The OpenAPI 3.1 document, generated from the registry.

use super::Site;
use super::bulk::{EXPORT, IMPORT, LINES};
use super::routes::{named, own_path, parameters};
use crate::auth::AcceptedCredentials;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use lukasa_engine::features::facts::ops::export::ExportOp;
use lukasa_engine::features::facts::ops::import::ImportOp;
use lukasa_engine::registry::fields::{FieldSyntax, RequestField, fields};
use lukasa_engine::registry::{self, DataStream, Op, OperationLink};
use lukasa_engine::{Operation, operations};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// The document without `security`, which depends on the server's settings.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| document(AcceptedCredentials::default()));

pub async fn openapi(State(site): State<Site>) -> Response {
    let mut document = DOCUMENT.clone();
    document["security"] = security(site.door.accepted_credentials());
    ([(header::CONTENT_TYPE, "application/json")], document.to_string()).into_response()
}

/// Statuses of errors and their descriptions.
const ERRORS: [(&str, &str); 13] = [
    ("400", "The request is wrong"),
    ("401", "The caller is not authenticated"),
    ("403", "The caller may not do this"),
    ("404", "The path or what it names does not exist"),
    ("405", "The path has no such method"),
    ("408", "The client sent the request too slowly"),
    ("409", "The request conflicts with the current state"),
    ("413", "The request or its answer is too large"),
    ("422", "A fact does not fit the schema of its type"),
    ("429", "Too many requests"),
    ("501", "Not supported by this store"),
    ("503", "Temporarily unavailable"),
    ("504", "It took too long"),
];

/// The whole document for a server that accepts these credentials.
pub fn document(opens: AcceptedCredentials) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    schemas.insert("Error".into(), error());
    for operation in operations() {
        let name = operation.meta.name;
        component(&mut schemas, &format!("{name}.request"), operation.request.as_value());
        component(&mut schemas, &format!("{name}.response"), operation.response.as_value());
        if let Some(request) = schemas.get_mut(&format!("{name}.request")).and_then(Value::as_object_mut) {
            request.insert("additionalProperties".into(), json!(false));
        }
        put(&mut paths, &own_path(operation), "post", described(operation, name, "post", &[]));
        for (at, route) in named(operation).iter().enumerate() {
            let id = format!("{name}_{}", at + 1);
            let method = route.method.to_lowercase();
            put(&mut paths, route.path, &method, described(operation, &id, &method, &parameters(route.path)));
        }
    }
    bulk(&mut paths);
    beside(&mut paths);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lukasa",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "One versioned, bi-temporal knowledge graph of code, services, documents, decisions and agents.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"}
            }
        },
        "security": security(opens)
    })
}

/// The accepted credentials, any of which is enough; empty without authentication.
fn security(opens: AcceptedCredentials) -> Value {
    let known = [("token", opens.tokens), ("key", opens.keys)];
    known.iter().filter(|(_, is_known)| *is_known).map(|(name, _)| json!({*name: []})).collect()
}

/// Adds the paths that are not operations: health, metrics, events and the agent card.
fn beside(paths: &mut Map<String, Value>) {
    let state = json!({"application/json": {"schema": {"type": "object", "required": ["status"],
        "properties": {"status": {"type": "string"}}}}});
    let card = json!({"application/json": {"schema": {"type": "object",
        "required": ["name", "description", "version", "supportedInterfaces", "capabilities", "defaultInputModes",
            "defaultOutputModes", "skills"]}}});
    let text = |kind: &str| json!({kind: {"schema": {"type": "string"}}});
    for (path, id, about, content, scope) in [
        ("/healthz", "healthz", "Whether the server runs", &state, None),
        ("/readyz", "readyz", "Whether requests can be served", &state, None),
        (
            "/metrics",
            "metrics",
            "Metrics in the text format of Prometheus",
            &text("text/plain"),
            Some("graph:admin:metrics"),
        ),
        ("/v1/events", "events", "Events, as server-sent events", &text("text/event-stream"), Some("graph:read")),
        ("/.well-known/agent-card.json", "agent_card", "The agent card of A2A", &card, None),
        ("/.well-known/agent.json", "agent_card_1", "The agent card at its former path", &card, None),
    ] {
        let mut path_item = json!({"operationId": id, "summary": about, "tags": ["server"], "parameters": [],
            "responses": responses(json!({"description": about, "content": content}))});
        match scope {
            Some(scope) => path_item["x-scope"] = json!(scope),
            // Public, even if the rest of the server requires authentication.
            None => path_item["security"] = json!([]),
        }
        if id == "events" {
            let text = json!({"type": "string"});
            path_item["parameters"] = json!([
                {"name": "kinds", "in": "query", "required": false, "schema": text,
                    "description": "transaction, claim, conflict, task, episode, separated by commas; all if absent"},
                {"name": "Last-Event-ID", "in": "header", "required": false, "schema": text,
                    "description": "The id of the last event received; the events after it are sent first"}
            ]);
        }
        put(paths, path, "get", path_item);
    }
}

/// The responses of an operation: the successful one and all errors.
fn responses(found: Value) -> Map<String, Value> {
    let mut all = Map::new();
    all.insert("200".into(), found);
    for (status, about) in ERRORS {
        let schema = json!({"$ref": "#/components/schemas/Error"});
        let mut response = json!({"description": about, "content": {"application/json": {"schema": schema}}});
        if ["429", "503"].contains(&status) {
            response["headers"] = json!({"Retry-After": {"required": true, "description": "Seconds to wait before the next request",
                "schema": {"type": "integer", "minimum": 0}}});
        }
        all.insert(status.into(), response);
    }
    all
}

/// Adds bulk export and import. The fields of the operation become parameters, except `file`.
fn bulk(paths: &mut Map<String, Value>) {
    let text = json!({"schema": {"type": "string"}});
    for (name, path, method) in [(ExportOp::META.name, EXPORT, "get"), (ImportOp::META.name, IMPORT, "post")] {
        let Some(operation) = registry::find(name) else { continue };
        let mut path_item = described(operation, &format!("{name}_body"), "get", &[]);
        if let Some(parameters) = path_item["parameters"].as_array_mut() {
            parameters.retain(|parameter| parameter["name"] != "file");
        }
        if operation.meta.stream == DataStream::Out {
            path_item["responses"]["200"]["content"] = json!({LINES: text, "application/json": {}});
            path_item["description"] = json!("One object or relationship a line, or node-link JSON, as the body.");
        } else {
            path_item["requestBody"] = json!({"required": true, "content": {LINES: text, "text/plain": text}});
            path_item["description"] =
                json!("Facts as the body: one object, relationship or end a line, or node-link JSON.");
        }
        put(paths, path, method, path_item);
    }
}

fn put(paths: &mut Map<String, Value>, path: &str, method: &str, described: Value) {
    let entry = paths.entry(path.to_owned()).or_insert_with(|| json!({}));
    entry[method] = described;
}

fn described(operation: &Operation, id: &str, method: &str, in_path: &[&str]) -> Value {
    let meta = &operation.meta;
    let all = fields(operation);
    let mut parameters: Vec<Value> = in_path
        .iter()
        .filter_map(|name| all.iter().find(|field| field.name == *name))
        .map(|field| parameter(operation, field, "path"))
        .collect();
    let has_body = matches!(method, "post" | "put" | "patch");
    if !has_body {
        let rest = all.iter().filter(|field| !in_path.contains(&field.name.as_str()));
        parameters.extend(rest.map(|field| parameter(operation, field, "query")));
    }
    let answer = json!({"$ref": format!("#/components/schemas/{}.response", meta.name)});
    let link = |link: OperationLink| {
        let id = format!("{}_{}", link.to, link.route);
        let parameters: Map<String, Value> = link.with.iter().map(|(name, at)| ((*name).into(), json!(at))).collect();
        (id.clone(), json!({"operationId": id, "parameters": parameters}))
    };
    let of_later = operations().iter().flat_map(|later| {
        let to_it = later.meta.follows.iter().filter(|link| link.to == meta.name);
        to_it.map(|link| OperationLink { to: later.meta.name, ..*link })
    });
    let links: Map<String, Value> = meta.links.iter().copied().chain(of_later).map(link).collect();
    let mut found = json!({"description": meta.summary, "content": {"application/json": {"schema": answer}}});
    if !links.is_empty() {
        found["links"] = Value::Object(links);
    }
    let mut responses = responses(found);
    if meta.toolset == "releases" && meta.effect == lukasa_engine::Effect::Read {
        responses.insert("304".into(), json!({"description": "Not modified"}));
    }
    let mut described = json!({
        "operationId": id,
        "summary": meta.summary,
        "description": meta.description,
        "tags": [meta.toolset],
        "x-scope": meta.scope,
        "parameters": parameters,
        "responses": responses
    });
    if has_body {
        let mut schema = json!({"$ref": format!("#/components/schemas/{}.request", meta.name)});
        if !in_path.is_empty() {
            // Fields in the path are left out of the body.
            let mut own = operation.request.as_value().clone();
            rename(&mut own, &format!("{}.request", meta.name));
            if let Some(map) = own.as_object_mut() {
                map.remove("$defs");
                map.remove("$schema");
                map.insert("additionalProperties".into(), json!(false));
                for name in in_path {
                    map.get_mut("properties").and_then(Value::as_object_mut).map(|p| p.shift_remove(*name));
                    if let Some(required) = map.get_mut("required").and_then(Value::as_array_mut) {
                        required.retain(|own| own != name);
                    }
                }
            }
            schema = own;
        }
        let required = all.iter().any(|field| field.required && !in_path.contains(&field.name.as_str()));
        described["requestBody"] = json!({"required": required, "content": {"application/json": {"schema": schema}}});
    }
    described
}

fn parameter(operation: &Operation, field: &RequestField, place: &str) -> Value {
    let mut schema = match &field.shape {
        FieldSyntax::Flag | FieldSyntax::Switch => json!({"type": "boolean"}),
        FieldSyntax::Number => number(&operation.fields()[&field.name]),
        FieldSyntax::Choice(choices) => json!({"type": "string", "enum": choices}),
        FieldSyntax::Texts => json!({"type": "array", "items": {"type": "string"}}),
        FieldSyntax::Text => json!({"type": "string"}),
        FieldSyntax::Json => json!({"type": "string", "contentMediaType": "application/json"}),
    };
    if place == "path" {
        schema["minLength"] = json!(1);
    }
    if let Some(default) = &field.default {
        schema["default"] = default.clone();
    }
    json!({"name": field.name, "in": place, "required": place == "path" || field.required, "description": field.help,
        "schema": schema})
}

/// A numeric schema with the limits of its field.
fn number(field: &Value) -> Value {
    let is_whole =
        field["type"] == "integer" || field["type"].as_array().is_some_and(|all| all.contains(&json!("integer")));
    let mut schema = json!({"type": if is_whole { "integer" } else { "number" }});
    for limit in ["minimum", "maximum"] {
        if let Some(limited) = field.get(limit) {
            schema[limit] = limited.clone();
        }
    }
    schema
}

/// Adds a schema and its definitions to the components.
fn component(schemas: &mut Map<String, Value>, name: &str, schema: &Value) {
    let mut schema = schema.clone();
    rename(&mut schema, name);
    let definitions = schema.as_object_mut().and_then(|map| {
        map.remove("$schema");
        map.remove("$defs")
    });
    if let Some(Value::Object(definitions)) = definitions {
        for (own, definition) in definitions {
            schemas.insert(format!("{name}.{own}"), definition);
        }
    }
    schemas.insert(name.to_owned(), schema);
}

/// Points references to the place of the definitions in the components.
fn rename(schema: &mut Value, name: &str) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::String(target)) = map.get_mut("$ref")
                && let Some(own) = target.strip_prefix("#/$defs/")
            {
                *target = format!("#/components/schemas/{name}.{own}");
            }
            map.values_mut().for_each(|value| rename(value, name));
        }
        Value::Array(all) => all.iter_mut().for_each(|value| rename(value, name)),
        _ => {}
    }
}

fn error() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": {
            "type": "object",
            "required": ["code", "message", "request_id"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "hint": {"type": "string", "description": "What to do next."},
                "details": {},
                "request_id": {"type": "string"}
            }
        }}
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(all) => all.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_operation_is_listed_and_every_reference_resolves() {
        let document = document(AcceptedCredentials::default());
        for operation in operations() {
            assert!(document["paths"][own_path(operation)]["post"].is_object(), "{}", operation.meta.name);
        }
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 100);
        for reference in found {
            assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
        }
    }

    #[test]
    fn links_lead_to_operations_and_parameters_that_exist() {
        let document = document(AcceptedCredentials::default());
        let methods = document["paths"].as_object().unwrap().values().filter_map(Value::as_object).flatten();
        let known: Vec<&Value> = methods.map(|(_, operation)| operation).collect();
        let mut seen = 0;
        for operation in &known {
            for link in operation["responses"]["200"]["links"].as_object().into_iter().flatten().map(|(_, link)| link) {
                let to = &link["operationId"];
                let target =
                    known.iter().find(|operation| operation["operationId"] == *to).unwrap_or_else(|| panic!("{to}"));
                let parameters = target["parameters"].as_array().unwrap();
                for (name, _) in link["parameters"].as_object().unwrap() {
                    assert!(parameters.iter().any(|parameter| parameter["name"] == *name), "{to}: {name}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 12, "only {seen} parameters of links");
    }

    #[test]
    fn paths_beside_operations_and_accepted_credentials_are_described() {
        let open = document(AcceptedCredentials::default());
        assert_eq!(open["security"], json!([]));
        let guarded = document(AcceptedCredentials { tokens: true, keys: true });
        assert_eq!(guarded["security"], json!([{"token": []}, {"key": []}]));
        assert_eq!(document(AcceptedCredentials { tokens: false, keys: true })["security"], json!([{"key": []}]));
        for path in ["/healthz", "/readyz", "/.well-known/agent-card.json", "/.well-known/agent.json"] {
            assert_eq!(guarded["paths"][path]["get"]["security"], json!([]), "{path}");
        }
        for path in ["/metrics", "/v1/events", EXPORT] {
            let operation = &guarded["paths"][path]["get"];
            assert!(operation["x-scope"].is_string() && operation.get("security").is_none(), "{path}");
        }
        for status in ["429", "503"] {
            let response = &open["paths"]["/v1/search"]["post"]["responses"][status];
            assert!(response["headers"]["Retry-After"].is_object(), "{status}");
        }
    }
}
