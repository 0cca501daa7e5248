//! Requests as graph services before us were sent them, put into the words of our operations.

use lukasa_engine::Operation;
use lukasa_engine::registry::snake_case;
use lukasa_model::{Error, ErrorKind, Result};
use serde_json::{Map, Value, json};

/// Groups of fields that stand beside the others here.
const GROUPS: [&str; 2] = ["filters", "pagination"];

/// A request by our names, for whoever is let in as `tenant`. What is no word of such a service stays as it is.
pub fn plain(operation: &Operation, tenant: &str, request: Map<String, Value>) -> Result<Map<String, Value>> {
    let mut plain = Map::new();
    for (name, value) in request {
        let snake = snake_case(&name);
        match (operation.meta.name, snake.as_str(), value) {
            (_, "tenant_id", value) if !operation.fields().contains_key("tenant_id") => same_tenant(tenant, &value)?,
            ("cypher", "read_only", value) if value == true => {}
            ("search", group, Value::Object(fields)) if GROUPS.contains(&group) => {
                // What is written as null is not said.
                plain.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
            }
            ("search", "neighbor", Value::Object(fields)) => {
                let fields: Map<_, _> = fields.into_iter().map(|(name, value)| (snake_case(&name), value)).collect();
                plain.insert(name, Value::Object(fields));
            }
            // Documents are facts like any other and always looked at: only how channels become one can be chosen.
            ("search", "document_fusion", Value::Object(fields)) => {
                if fields.get("enabled") == Some(&json!(true)) && fields.get("mode") == Some(&json!("rrf")) {
                    plain.entry("fusion").or_insert_with(|| json!("rrf"));
                }
            }
            // Reserved for what nobody has asked for yet.
            ("search", "experimental", Value::Object(_)) => {}
            (_, _, value) => {
                plain.insert(name, value);
            }
        }
    }
    if operation.meta.name == "search" {
        rename(&mut plain, "includeDebug", "debug");
        rename(&mut plain, "include_debug", "debug");
        rename(&mut plain, "entity_types", "object_types");
        rename(&mut plain, "entityTypes", "object_types");
        channels(&mut plain)?;
    }
    Ok(plain)
}

/// A tenant may be named, but only by who is let in as it.
fn same_tenant(tenant: &str, named: &Value) -> Result<()> {
    if named == tenant {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Forbidden, "forbidden_tenant", "`tenant_id` is not the tenant of this token or key")
        .hint("leave it out: token or key tell the tenant"))
}

fn rename(request: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = request.shift_remove(from) {
        request.entry(to).or_insert(value);
    }
}

/// Two switches instead of a list: words are on unless they are said to be off, meaning only when it is said to be on.
fn channels(request: &mut Map<String, Value>) -> Result<()> {
    let mut switch = |names: [&str; 2], default: bool| -> Result<(bool, bool)> {
        let given = names.iter().find_map(|name| request.shift_remove(*name));
        match given {
            None => Ok((default, false)),
            Some(Value::Bool(on)) => Ok((on, true)),
            Some(other) => {
                Err(Error::invalid("invalid_request", format!("{}: {other} is not true or false", names[0])))
            }
        }
    };
    let (words, said_words) = switch(["use_fulltext", "useFulltext"], true)?;
    let (meaning, said_meaning) = switch(["use_embedding", "useEmbedding"], false)?;
    if !(said_words || said_meaning) || request.contains_key("channels") {
        return Ok(());
    }
    if !words && !meaning {
        return Err(Error::invalid("invalid_request", "use_fulltext and use_embedding: both are off")
            .hint("leave one of them on"));
    }
    let chosen = [("lexical", words), ("vector", meaning)];
    let chosen: Vec<&str> = chosen.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    request.insert("channels".into(), json!(chosen));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lukasa_engine::registry::find;

    fn read(operation: &str, request: Value) -> Result<Value> {
        let Value::Object(request) = request else { panic!("a request is an object") };
        let operation = find(operation).unwrap();
        operation.read(Value::Object(plain(operation, "acme", request)?))
    }

    #[test]
    fn a_search_may_be_written_in_groups() {
        let asked = json!({"query": "flags", "intentOverride": "explain", "includeDebug": true, "rerank": null,
            "filters": {"objectTypes": ["Decision"], "excludeObjectTypes": ["Risk"], "labelsAny": ["p0"],
                "updatedAfter": "2025-09-01T00:00:00Z", "updatedBefore": null},
            "neighbor": {"perPrimaryLimit": 3, "edgeTypes": ["decides"], "maxDepth": 1},
            "documentFusion": {"enabled": true, "topK": 8, "mode": "rrf", "weight": 0.35},
            "pagination": {"cursor": null, "limit": 7}, "experimental": {"structuralEmbedding": false}});
        let plain = json!({"query": "flags", "intent": "explain", "debug": true, "rerank": null, "object_types": ["Decision"],
            "exclude_object_types": ["Risk"], "labels_any": ["p0"], "updated_after": "2025-09-01T00:00:00Z",
            "neighbor": {"per_primary_limit": 3, "edge_types": ["decides"], "max_depth": 1}, "fusion": "rrf", "limit": 7});
        assert_eq!(read("search", asked).unwrap(), plain);
    }

    #[test]
    fn a_search_may_switch_channels_and_name_entities() {
        let asked = json!({"query": "flags", "tenant_id": "acme", "entity_types": ["Product"], "limit": 10,
            "use_fulltext": true, "use_embedding": false});
        let plain = json!({"query": "flags", "limit": 10, "object_types": ["Product"], "channels": ["lexical"]});
        assert_eq!(read("search", asked).unwrap(), plain);
        let meaning = read("search", json!({"query": "x", "use_fulltext": false, "use_embedding": true})).unwrap();
        assert_eq!(meaning["channels"], json!(["vector"]));
        let nothing = json!({"query": "x", "use_fulltext": false});
        assert_eq!(read("search", nothing).unwrap_err().code, "invalid_request");
        assert_eq!(read("search", json!({"query": "x", "use_fulltext": "no"})).unwrap_err().code, "invalid_request");
    }

    #[test]
    fn only_its_own_tenant_may_be_named_and_nothing_else_slips_in() {
        for operation in ["search", "graph_traverse", "cypher", "put"] {
            let refused = read(operation, json!({"tenant_id": "other"})).unwrap_err();
            assert_eq!((refused.kind, refused.code), (ErrorKind::Forbidden, "forbidden_tenant"), "{operation}");
            assert!(read(operation, json!({"tenantId": "acme"})).is_ok(), "{operation}");
        }
        assert_eq!(
            read("cypher", json!({"query": "RETURN 1", "read_only": true})).unwrap(),
            json!({"query": "RETURN 1"})
        );
        assert_eq!(read("cypher", json!({"query": "RETURN 1", "read_only": false})).unwrap_err().code, "unknown_field");
        for wrong in [json!({"filters": {"colour": 1}}), json!({"filters": 1}), json!({"colour": 1})] {
            assert_eq!(read("search", wrong.clone()).unwrap_err().code, "unknown_field", "{wrong}");
        }
        assert_eq!(read("put", json!({"filters": {}})).unwrap_err().code, "unknown_field");
    }
}
