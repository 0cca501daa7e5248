//! Translates search requests in the formats of earlier graph services.

use crate::registry::snake_case;
use lukasa_model::{Error, ErrorCode, Result};
use serde_json::{Map, Value, json};

/// Groups of fields that earlier services nest and we do not.
const GROUPS: [&str; 2] = ["filters", "pagination"];

/// The request with our field names. Unknown fields stay as they are.
pub fn translate(request: Map<String, Value>) -> Result<Map<String, Value>> {
    let mut plain = Map::new();
    for (name, value) in request {
        match (snake_case(&name).as_str(), value) {
            (group, Value::Object(fields)) if GROUPS.contains(&group) => {
                // Null counts as absent.
                plain.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
            }
            ("neighbor", Value::Object(fields)) => {
                let fields: Map<_, _> = fields.into_iter().map(|(name, value)| (snake_case(&name), value)).collect();
                plain.insert(name, Value::Object(fields));
            }
            // Documents are ordinary facts and always searched, so only the fusion of channels can be chosen.
            ("document_fusion", Value::Object(fields)) => {
                if fields.get("enabled") == Some(&json!(true)) && fields.get("mode") == Some(&json!("rrf")) {
                    plain.entry("fusion").or_insert_with(|| json!("rrf"));
                }
            }
            // Accepted and ignored: reserved for experiments.
            ("experimental", Value::Object(_)) => {}
            (_, value) => {
                plain.insert(name, value);
            }
        }
    }
    rename(&mut plain, "includeDebug", "debug");
    rename(&mut plain, "include_debug", "debug");
    rename(&mut plain, "entity_types", "object_types");
    rename(&mut plain, "entityTypes", "object_types");
    channels(&mut plain)?;
    Ok(plain)
}

fn rename(request: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = request.shift_remove(from) {
        request.entry(to).or_insert(value);
    }
}

/// Turns two switches into a list of channels. Keyword search is on by default, semantic search is off.
fn channels(request: &mut Map<String, Value>) -> Result<()> {
    let mut switch = |names: [&str; 2], default: bool| -> Result<(bool, bool)> {
        let given = names.iter().find_map(|name| request.shift_remove(*name));
        match given {
            None => Ok((default, false)),
            Some(Value::Bool(on)) => Ok((on, true)),
            Some(other) => {
                Err(Error::invalid(ErrorCode::InvalidRequest, format!("{}: {other} is not true or false", names[0])))
            }
        }
    };
    let (words, words_given) = switch(["use_fulltext", "useFulltext"], true)?;
    let (meaning, meaning_given) = switch(["use_embedding", "useEmbedding"], false)?;
    if !(words_given || meaning_given) || request.contains_key("channels") {
        return Ok(());
    }
    if !words && !meaning {
        return Err(Error::invalid(ErrorCode::InvalidRequest, "use_fulltext and use_embedding: both are off")
            .hint("leave one of them on"));
    }
    let chosen = [("lexical", words), ("vector", meaning)];
    let chosen: Vec<&str> = chosen.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    request.insert("channels".into(), json!(chosen));
    Ok(())
}
