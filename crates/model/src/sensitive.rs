//! Properties that types call sensitive: which they are, and contents without them.

use crate::content::Content;
use crate::error::{Error, Result};
use serde_json::Value;

/// How a schema marks a property: `{"properties": {"salary": {"type": "number", "sensitive": true}}}`.
const MARK: &str = "sensitive";

/// The properties that a schema marks, sorted. A mark anywhere within a property stands for the whole of it.
pub fn marked(schema: &Value) -> Vec<Box<str>> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut names: Vec<Box<str>> =
        properties.filter(|(_, inner)| has_mark(inner)).map(|(name, _)| name.as_str().into()).collect();
    names.sort();
    names
}

/// Refuses marks that would go unseen because they are in no property of their own.
pub fn check(schema: &Value) -> Result<()> {
    let elsewhere = schema.as_object().into_iter().flatten().filter(|(name, _)| *name != "properties");
    for (name, inner) in elsewhere {
        // What stands under the name itself, or anywhere below it.
        if (name == MARK && *inner == Value::Bool(true)) || has_mark(inner) {
            return Err(Error::invalid("invalid_schema", format!("`{MARK}: true` within `{name}` would go unseen"))
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
    /// Takes out these properties; gives the names of those that were there.
    pub fn hide(&mut self, names: &[Box<str>]) -> Vec<Box<str>> {
        // Order is kept, for answers show it.
        names.iter().filter(|name| self.properties.shift_remove(&***name).is_some()).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn marks_count_where_they_can_be_seen_and_are_refused_elsewhere() {
        let schema = json!({"type": "object", "properties": {
            "name": {"type": "string"},
            "salary": {"type": "number", "sensitive": true},
            "home": {"type": "object", "properties": {"street": {"sensitive": true}}},
            "notes": {"type": "array", "items": {"anyOf": [{"type": "null"}, {"type": "string", "sensitive": true}]}},
            "open": {"sensitive": false},
            // A property of that name is not a mark.
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
            assert_eq!(check(&unseen).map_err(|e| e.code), Err("invalid_schema"), "{unseen}");
        }
        let mut content = Content {
            properties: json!({"salary": 7, "name": "ann"}).as_object().cloned().unwrap_or_default(),
            ..Content::default()
        };
        assert_eq!(content.hide(&marked(&schema)), ["salary".into()]);
        assert_eq!(content.properties.len(), 1);
    }
}
