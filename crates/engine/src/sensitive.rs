//! What types call sensitive, taken out of answers for those who may not see it.
//!
//! Graphs, indexes and vectors are made without it ([`lukasa_store::Ledger::states`]), so whatever is found by them cannot
//! hold it, for anybody. What is read from the store itself passes here, in the one place where an answer leaves.

use crate::{Answer, Context};
use lukasa_model::Content;
use lukasa_model::change::covers;
use lukasa_model::json::push_pointer;
use lukasa_model::types::Registry;
use lukasa_model::{Error, Result};
use lukasa_store::Ledger;
use serde_json::{Map, Value, json};

/// Needed to see sensitive properties; `admin` covers it.
pub const SCOPE: &str = "graph:sensitive:read";
/// Stands where a value was that has no place of its own to be left out of.
const GONE: &str = "[sensitive]";

/// Counts values that were kept back elsewhere.
pub fn count(values: usize) {
    crate::telemetry::metrics().redacted.add(values as u64);
}

/// Whether only the owner of a content may read it.
pub fn is_sensitive(content: &Content) -> bool {
    content.properties.get("sensitive").and_then(Value::as_bool) == Some(true)
}

/// What must be kept from a caller in a project; none if nothing.
pub fn kept_from(context: &Context<'_>, ledger: &Ledger) -> Result<Option<std::sync::Arc<Registry>>> {
    if context.grants.cover(SCOPE) {
        return Ok(None);
    }
    let registry = match ledger.registry() {
        Ok(registry) => registry,
        // A project that is not there yet has declared nothing.
        Err(error) if error.code == "unknown_project" => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok((!registry.all_sensitive().is_empty()).then_some(registry))
}

/// The answer without it.
pub fn strip(answer: Answer, registry: &Registry) -> Result<Answer> {
    let mut value: Value =
        serde_json::from_str(&answer.text()?).map_err(|e| Error::internal(format!("an answer is not JSON: {e}")))?;
    match hide(&mut value, registry) {
        0 => Ok(answer),
        _ => Ok(Answer::of(value.to_string(), value)),
    }
}

/// The error without it: conflicts tell values.
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

/// `names` are the sensitive properties of the thing that is spoken of.
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

/// Of objects and of relationships of this name, for answers do not always tell which is meant.
fn of_type<'a>(registry: &'a Registry, name: &str) -> Vec<&'a str> {
    let (objects, relationships) = (registry.sensitive(name, false), registry.sensitive(name, true));
    objects.iter().chain(relationships).map(|name| &**name).collect()
}

/// `"properties": {…}`, with the names of what is missing beside it.
fn properties(map: &mut Map<String, Value>, names: &[&str], found: &mut usize) {
    let Some(Value::Object(properties)) = map.get_mut("properties") else { return };
    let gone: Vec<&str> = names.iter().copied().filter(|name| properties.shift_remove(*name).is_some()).collect();
    if !gone.is_empty() {
        *found += gone.len();
        map.insert("redacted".into(), json!(gone));
    }
}

/// `"added": {path: value}` and `"updated": {path: {from, to}}` of a summary of changes.
fn changes(map: &mut Map<String, Value>, names: &[&str], found: &mut usize) {
    for part in ["added", "updated"] {
        let Some(Value::Object(paths)) = map.get_mut(part) else { continue };
        for (path, value) in paths {
            at(path, value, names, found);
        }
    }
}

/// `{"path": …, "base": …, "ours": …, "theirs": …}`.
fn conflict(map: &mut Map<String, Value>, names: &[&str], found: &mut usize) {
    let Some(path) = map.get("path").and_then(Value::as_str).map(str::to_owned) else { return };
    for side in ["base", "ours", "theirs"] {
        if let Some(value) = map.get_mut(side) {
            at(&path, value, names, found);
        }
    }
}

/// A value that stands at a path of a content.
fn at(path: &str, value: &mut Value, names: &[&str], found: &mut usize) {
    if path == "/properties" {
        // All properties came or went at once, perhaps as `from` and `to`.
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
