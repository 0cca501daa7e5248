//! Properties that types mark as sensitive: finding the marks in schemas, and removing such properties from contents.

use crate::ErrorCode;
use crate::content::Content;
use crate::error::{Error, Result};
use serde_json::Value;

/// How a schema marks a property: `{"properties": {"salary": {"type": "number", "sensitive": true}}}`.
const MARK: &str = "sensitive";

/// Returns the properties that a schema marks, sorted. A mark anywhere inside a property marks the whole property.
pub fn marked(schema: &Value) -> Vec<Box<str>> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut names: Vec<Box<str>> =
        properties.filter(|(_, inner)| has_mark(inner)).map(|(name, _)| name.as_str().into()).collect();
    names.sort();
    names
}

/// Rejects marks outside `properties`, because they would have no effect.
pub fn check(schema: &Value) -> Result<()> {
    let elsewhere = schema.as_object().into_iter().flatten().filter(|(name, _)| *name != "properties");
    for (name, inner) in elsewhere {
        // Either the mark itself, or a mark anywhere below.
        if (name == MARK && *inner == Value::Bool(true)) || has_mark(inner) {
            return Err(Error::invalid(
                ErrorCode::InvalidSchema,
                format!("`{MARK}: true` within `{name}` would go unseen"),
            )
            .hint("mark the property itself, in `properties` of the schema"));
        }
    }
    Ok(())
}

fn has_mark(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.get(MARK) == Some(&Value::Bool(true)) || map.values().any(has_mark),
        Value::Array(all) => all.iter().any(has_mark),
        _ => false,
    }
}

impl Content {
    /// Removes these properties and returns the names of those that were present.
    pub fn hide(&mut self, names: &[Box<str>]) -> Vec<Box<str>> {
        // Keeps the order of the others, because responses show it.
        names.iter().filter(|name| self.properties.shift_remove(&***name).is_some()).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn marks_are_accepted_in_properties_and_rejected_elsewhere() {
        let schema = json!({"type": "object", "properties": {
            "name": {"type": "string"},
            "salary": {"type": "number", "sensitive": true},
            "home": {"type": "object", "properties": {"street": {"sensitive": true}}},
            "notes": {"type": "array", "items": {"anyOf": [{"type": "null"}, {"type": "string", "sensitive": true}]}},
            "open": {"sensitive": false},
            // A property named `sensitive` is not a mark.
            "sensitive": {"type": "boolean"}
        }});
        let names: Vec<_> = marked(&schema).iter().map(|name| name.to_string()).collect();
        assert_eq!(names, ["home", "notes", "salary"]);
        assert!(check(&schema).is_ok() && check(&Value::Null).is_ok());
        for unseen in [
            json!({"sensitive": true}),
            json!({"$defs": {"secret": {"sensitive": true}}, "properties": {"a": {"$ref": "#/$defs/secret"}}}),
            json!({"allOf": [{"properties": {"a": {"sensitive": true}}}]}),
            json!({"patternProperties": {"^x": {"sensitive": true}}}),
        ] {
            assert_eq!(check(&unseen).map_err(|e| e.code), Err(ErrorCode::InvalidSchema), "{unseen}");
        }
        let mut content = Content {
            properties: json!({"salary": 7, "name": "ann"}).as_object().cloned().unwrap_or_default(),
            ..Content::default()
        };
        assert_eq!(content.hide(&marked(&schema)), ["salary".into()]);
        assert_eq!(content.properties.len(), 1);
    }
}
