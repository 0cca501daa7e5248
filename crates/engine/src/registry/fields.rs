//! Request fields for surfaces where every value is text: command line flags, and query parameters of URLs.

use super::Operation;
use lukasa_model::{Error, ErrorCode, Result};
use serde_json::{Value, json};

/// A field of a request.
pub struct RequestField {
    pub name: String,
    pub help: String,
    pub shape: FieldSyntax,
    pub required: bool,
    /// Its index among the fields that the command takes by position.
    pub position: Option<usize>,
    pub default: Option<Value>,
    /// Its JSON type; empty if there are several.
    pub kind: String,
}

impl RequestField {
    /// A minimal JSON Schema: its type, or its choices.
    pub fn schema(&self) -> Value {
        match &self.shape {
            FieldSyntax::Choice(all) => json!({"enum": all}),
            FieldSyntax::Texts => json!({"type": "array", "items": {"type": "string"}}),
            _ if self.kind.is_empty() => json!({}),
            _ => json!({"type": self.kind}),
        }
    }
}

/// How the text of a field is parsed.
pub enum FieldSyntax {
    Flag,
    /// A flag whose default is true.
    Switch,
    Text,
    Number,
    Choice(Vec<String>),
    Texts,
    Json,
}

/// The fields of a request, in the order of the request type.
pub fn fields(operation: &Operation) -> Vec<RequestField> {
    let schema = operation.request.as_value();
    let required =
        |name: &str| schema.get("required").and_then(Value::as_array).is_some_and(|r| r.iter().any(|f| f == name));
    operation
        .fields()
        .into_iter()
        .map(|(name, field)| RequestField {
            help: field
                .get("description")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .trim_end_matches('.')
                .to_string(),
            shape: shape(schema, field),
            kind: kind(schema, field),
            required: required(name),
            position: operation.meta.positional.iter().position(|p| p == name),
            default: field.get("default").cloned().filter(|d| d.is_number() || d.is_string() || *d == true),
            name: name.clone(),
        })
        .collect()
}

fn shape(root: &Value, field: &Value) -> FieldSyntax {
    if let Some(meant) = meant(root, field) {
        return shape(root, &with_default(meant, field));
    }
    if let Some(choices) = choices(field) {
        return FieldSyntax::Choice(choices);
    }
    match own_kind(field) {
        "boolean" if field.get("default") == Some(&Value::Bool(true)) => FieldSyntax::Switch,
        "boolean" => FieldSyntax::Flag,
        "integer" | "number" => FieldSyntax::Number,
        "string" => FieldSyntax::Text,
        "array" if field.get("items").is_some_and(|items| is_text(root, items)) => FieldSyntax::Texts,
        _ => FieldSyntax::Json,
    }
}

fn kind(root: &Value, field: &Value) -> String {
    meant(root, field).map_or_else(|| own_kind(field).to_owned(), |meant| kind(root, meant))
}

/// The type in the field's own schema, ignoring null.
fn own_kind(field: &Value) -> &str {
    match field.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|k| *k != "null").unwrap_or_default(),
        _ => "",
    }
}

/// The schema that a field refers to, or the first alternative that is not null. None if the schema is inline.
fn meant<'a>(root: &'a Value, field: &'a Value) -> Option<&'a Value> {
    if let Some(target) = field.get("$ref").and_then(Value::as_str) {
        return Some(root.pointer(target.trim_start_matches('#')).unwrap_or(&Value::Null));
    }
    ["anyOf", "allOf"].iter().find_map(|list| {
        let all = field.get(*list).and_then(Value::as_array)?;
        all.iter().find(|one| one.get("type") != Some(&"null".into()))
    })
}

fn with_default(shape: &Value, field: &Value) -> Value {
    let mut shape = shape.clone();
    if let (Some(map), Some(default)) = (shape.as_object_mut(), field.get("default")) {
        map.insert("default".into(), default.clone());
    }
    shape
}

/// Whether an item is a text, or one of several words.
fn is_text(root: &Value, item: &Value) -> bool {
    matches!(shape(root, item), FieldSyntax::Text | FieldSyntax::Choice(_))
}

fn choices(field: &Value) -> Option<Vec<String>> {
    let text = |v: &Value| v.as_str().map(str::to_owned);
    if let Some(list) = field.get("enum").and_then(Value::as_array) {
        return list.iter().filter(|v| !v.is_null()).map(text).collect();
    }
    // Variants with a description are separate alternatives; the others are together in one.
    let list = field.get("oneOf").and_then(Value::as_array)?;
    let mut all = Vec::new();
    for variant in list {
        match variant.get("const") {
            Some(one) => all.push(text(one)?),
            None => all.extend(variant.get("enum")?.as_array()?.iter().filter_map(text)),
        }
    }
    Some(all)
}

impl FieldSyntax {
    /// Parses a text. `name` is the name of the field on this surface, for error messages.
    pub fn read(&self, name: &str, text: &str) -> Result<Value> {
        let not = |what: &str| {
            let shown: String = text.chars().take(60).collect();
            let dots = if shown.len() < text.len() { "…" } else { "" };
            Error::invalid(ErrorCode::InvalidArgument, format!("{name}: `{shown}{dots}` is not {what}"))
        };
        Ok(match self {
            FieldSyntax::Flag | FieldSyntax::Switch => match text {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                _ => return Err(not("true or false")),
            },
            FieldSyntax::Text | FieldSyntax::Choice(_) => Value::String(text.to_owned()),
            // One item: several items are given as repeated flags.
            FieldSyntax::Texts => Value::Array(vec![Value::String(text.to_owned())]),
            FieldSyntax::Number => {
                serde_json::from_str::<Value>(text).ok().filter(Value::is_number).ok_or_else(|| not("a number"))?
            }
            FieldSyntax::Json => serde_json::from_str(text).map_err(|e| match e.to_string() {
                why if why.contains("recursion limit") => {
                    Error::too_large(ErrorCode::JsonTooDeep, format!("{name}: the JSON is nested too deeply"))
                }
                why => not(&format!("JSON ({why})")),
            })?,
        })
    }
}
