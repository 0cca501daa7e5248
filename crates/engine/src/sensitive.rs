//! Removes properties that types declare as sensitive from answers to callers without the scope for them.
//!
//! Graphs, indexes and vectors are built without these properties ([`lukasa_store::Ledger::states`]), so results found
//! through them never contain any. Content that is read from the store itself is filtered here, at the one place where
//! every answer leaves the engine.

use crate::{Context, OperationAnswer};
use lukasa_model::Content;
use lukasa_model::change::covers;
use lukasa_model::json::push_pointer;
use lukasa_model::types::Registry;
use lukasa_model::{Error, ErrorCode, Result};
use lukasa_store::Ledger;
use serde_json::{Map, Value, json};

/// The scope to see sensitive properties; `admin` covers it.
pub const SCOPE: &str = "graph:sensitive:read";
/// Replaces a value that cannot be left out of its surroundings.
const GONE: &str = "[sensitive]";

/// Counts values that were redacted elsewhere.
pub fn count(values: usize) {
    crate::telemetry::metrics().redacted.add(values as u64);
}

/// Whether the content may be read by its owner only.
pub fn is_sensitive(content: &Content) -> bool {
    content.properties.get("sensitive").and_then(Value::as_bool) == Some(true)
}

/// The declared types of the project if some properties must be hidden from the caller; none otherwise.
pub fn kept_from(context: &Context<'_>, ledger: &Ledger) -> Result<Option<std::sync::Arc<Registry>>> {
    if context.grants.cover(SCOPE) {
        return Ok(None);
    }
    let registry = match ledger.registry() {
        Ok(registry) => registry,
        // A project that does not exist yet has declared nothing.
        Err(error) if error.code == ErrorCode::UnknownProject => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok((!registry.all_sensitive().is_empty()).then_some(registry))
}

/// Removes sensitive properties from an answer.
pub fn strip(answer: OperationAnswer, registry: &Registry) -> Result<OperationAnswer> {
    let mut value: Value =
        serde_json::from_str(&answer.text()?).map_err(|e| Error::internal(format!("an answer is not JSON: {e}")))?;
    match hide(&mut value, registry) {
        0 => Ok(answer),
        _ => Ok(OperationAnswer::of(value.to_string(), value)),
    }
}

/// Removes sensitive properties from an error: conflicts contain values.
pub fn strip_error(mut error: Error, registry: &Registry) -> Error {
    hide(&mut error.details, registry);
    error
}

fn hide(value: &mut Value, registry: &Registry) -> usize {
    let mut found = 0;
    walk(value, &[], registry, &mut found);
    count(found);
    found
}

/// `names` are the sensitive properties of the fact that the value belongs to.
fn walk(value: &mut Value, names: &[&str], registry: &Registry, found: &mut usize) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(|value| walk(value, names, registry, found)),
        Value::Object(map) => {
            let own = map.get("type").and_then(Value::as_str).map(|name| of_type(registry, name));
            let names = own.as_deref().unwrap_or(names);
            if !names.is_empty() {
                properties(map, names, found);
                changes(map, names, found);
                conflict(map, names, found);
            }
            map.values_mut().for_each(|value| walk(value, names, registry, found));
        }
        _ => {}
    }
}

/// The sensitive properties of the object type and of the relationship type with this name: answers do not always
/// show which one it is.
fn of_type<'a>(registry: &'a Registry, name: &str) -> Vec<&'a str> {
    let (objects, relationships) = (registry.sensitive(name, false), registry.sensitive(name, true));
    objects.iter().chain(relationships).map(|name| &**name).collect()
}

/// Filters `"properties": {…}` and adds the names of the removed properties beside it.
fn properties(map: &mut Map<String, Value>, names: &[&str], found: &mut usize) {
    let Some(Value::Object(properties)) = map.get_mut("properties") else { return };
    let gone: Vec<&str> = names.iter().copied().filter(|name| properties.shift_remove(*name).is_some()).collect();
    if !gone.is_empty() {
        *found += gone.len();
        map.insert("redacted".into(), json!(gone));
    }
}

/// Filters `"added": {path: value}` and `"updated": {path: {from, to}}` of a change summary.
fn changes(map: &mut Map<String, Value>, names: &[&str], found: &mut usize) {
    for part in ["added", "updated"] {
        let Some(Value::Object(paths)) = map.get_mut(part) else { continue };
        for (path, value) in paths {
            at(path, value, names, found);
        }
    }
}

/// Filters a conflict `{"path": …, "base": …, "ours": …, "theirs": …}`.
fn conflict(map: &mut Map<String, Value>, names: &[&str], found: &mut usize) {
    let Some(path) = map.get("path").and_then(Value::as_str).map(str::to_owned) else { return };
    for side in ["base", "ours", "theirs"] {
        if let Some(value) = map.get_mut(side) {
            at(&path, value, names, found);
        }
    }
}

/// Replaces the value at a path of a content if it is sensitive.
fn at(path: &str, value: &mut Value, names: &[&str], found: &mut usize) {
    if path == "/properties" {
        // All properties were added or removed at once, perhaps as `from` and `to`.
        for name in names {
            for place in [format!("/{name}"), format!("/from/{name}"), format!("/to/{name}")] {
                if let Some(value) = value.pointer_mut(&place) {
                    *value = json!(GONE);
                    *found += 1;
                }
            }
        }
    } else if names.iter().any(|name| covers(&push_pointer("/properties", name), path)) && !value.is_null() {
        *value = json!(GONE);
        *found += 1;
    }
}
