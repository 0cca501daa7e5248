//! Translates request formats of earlier graph services into requests of our operations.

use lukasa_engine::Operation;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use serde_json::{Map, Value};

/// The request with our field names. `tenant` is the caller's tenant. Unknown fields stay as they are.
pub fn from_legacy(operation: &Operation, tenant: &str, mut request: Map<String, Value>) -> Result<Map<String, Value>> {
    for name in ["tenant_id", "tenantId"] {
        if !operation.fields().contains_key("tenant_id")
            && let Some(named) = request.shift_remove(name)
        {
            same_tenant(tenant, &named)?;
        }
    }
    match operation.meta.translate {
        Some(translate) => translate(request),
        None => Ok(request),
    }
}

/// Accepts `tenant_id` only if it is the caller's own tenant.
fn same_tenant(tenant: &str, named: &Value) -> Result<()> {
    if named == tenant {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Forbidden,
        ErrorCode::ForbiddenTenant,
        "`tenant_id` is not the tenant of this token or key",
    )
    .hint("leave it out: the token or key determines the tenant"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lukasa_engine::registry::find;
    use serde_json::json;

    fn read(operation: &str, request: Value) -> Result<Value> {
        let Value::Object(request) = request else { panic!("a request is an object") };
        let operation = find(operation).unwrap();
        operation.read(Value::Object(from_legacy(operation, "acme", request)?))
    }

    #[test]
    fn a_search_may_group_its_fields() {
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
        assert_eq!(read("search", nothing).unwrap_err().code, ErrorCode::InvalidRequest);
        assert_eq!(
            read("search", json!({"query": "x", "use_fulltext": "no"})).unwrap_err().code,
            ErrorCode::InvalidRequest
        );
    }

    #[test]
    fn only_its_own_tenant_may_be_named_and_other_unknown_fields_are_refused() {
        for operation in ["search", "graph_traverse", "cypher", "put"] {
            let refused = read(operation, json!({"tenant_id": "other"})).unwrap_err();
            assert_eq!((refused.kind, refused.code), (ErrorKind::Forbidden, ErrorCode::ForbiddenTenant), "{operation}");
            assert!(read(operation, json!({"tenantId": "acme"})).is_ok(), "{operation}");
        }
        assert_eq!(
            read("cypher", json!({"query": "RETURN 1", "read_only": true})).unwrap(),
            json!({"query": "RETURN 1"})
        );
        assert_eq!(
            read("cypher", json!({"query": "RETURN 1", "read_only": false})).unwrap_err().code,
            ErrorCode::UnknownField
        );
        for wrong in [json!({"filters": {"colour": 1}}), json!({"filters": 1}), json!({"colour": 1})] {
            assert_eq!(read("search", wrong.clone()).unwrap_err().code, ErrorCode::UnknownField, "{wrong}");
        }
        assert_eq!(read("put", json!({"filters": {}})).unwrap_err().code, ErrorCode::UnknownField);
    }
}
