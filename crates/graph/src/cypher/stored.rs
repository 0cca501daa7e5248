//! Converts properties between their stored form, which is JSON, and values of queries.
//!
//! JSON has no dates, and stores a float that is a whole number like an integer. An object with one entry whose name
//! begins with `$` states the type: `{"$date": "1984-10-11"}`, and likewise `$localtime`, `$time`, `$localdatetime`,
//! `$datetime`, `$duration` and `$float`.

use super::functions::{FunctionContext, find};
use super::value::Value;
use serde_json::{Value as Json, json};
use std::sync::Arc;

const KINDS: [(&str, &str); 6] = [
    ("$date", "date"),
    ("$localtime", "localtime"),
    ("$time", "time"),
    ("$localdatetime", "localdatetime"),
    ("$datetime", "datetime"),
    ("$duration", "duration"),
];

pub fn from_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Bool(*b),
        Json::Number(n) => match n.as_i64() {
            Some(n) => Value::Integer(n),
            None => Value::Float(n.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::text(text),
        Json::Array(items) => Value::list(items.iter().map(from_json).collect()),
        Json::Object(entries) => {
            let only = entries.iter().next().filter(|(name, _)| entries.len() == 1 && name.starts_with('$'));
            if let Some(found) = only.and_then(|(name, value)| typed(name, value)) {
                return found;
            }
            Value::Map(Arc::new(entries.iter().map(|(name, value)| (name.clone(), from_json(value))).collect()))
        }
    }
}

/// Like [`from_json`], but a typed entry with an invalid value is an error. The error is a message.
pub fn checked(json: &Json) -> Result<Value, String> {
    match json {
        Json::Array(items) => Ok(Value::list(items.iter().map(checked).collect::<Result<_, _>>()?)),
        Json::Object(entries) => {
            let only = entries.iter().next().filter(|_| entries.len() == 1);
            if let Some((name, value)) = only
                && (name == "$float" || KINDS.iter().any(|(kind, _)| kind == name))
            {
                return typed(name, value).ok_or_else(|| format!("{value} is not a {}", &name[1..]));
            }
            let entries = entries.iter().map(|(name, value)| Ok((name.clone(), checked(value)?)));
            Ok(Value::Map(Arc::new(entries.collect::<Result<_, String>>()?)))
        }
        other => Ok(from_json(other)),
    }
}

fn typed(name: &str, value: &Json) -> Option<Value> {
    if name == "$float" {
        return value.as_f64().map(Value::Float);
    }
    let (_, function) = KINDS.iter().find(|(kind, _)| *kind == name)?;
    let text = Value::text(value.as_str()?);
    (find(function)?.run)(&[text], &FunctionContext { now: 0, longest_list: 1 }).ok()
}

/// The stored form of a value. `None` for values that exist only in queries.
pub fn to_json(value: &Value) -> Option<Json> {
    let named = |name: &str, text: String| Some(json!({ name: text }));
    match value {
        Value::Null => Some(Json::Null),
        Value::Bool(b) => Some(json!(b)),
        Value::Integer(n) => Some(json!(n)),
        Value::Float(f) if f.fract() == 0.0 => Some(json!({ "$float": f })),
        Value::Float(f) => Some(json!(f)),
        Value::Text(t) => Some(json!(&**t)),
        Value::List(items) => items.iter().map(to_json).collect::<Option<_>>().map(Json::Array),
        Value::Map(entries) => {
            let entries = entries.iter().map(|(name, value)| Some((name.clone(), to_json(value)?)));
            entries.collect::<Option<_>>().map(Json::Object)
        }
        Value::Date(v) => named("$date", v.to_string()),
        Value::LocalTime(v) => named("$localtime", v.to_string()),
        Value::Time(v) => named("$time", v.to_string()),
        Value::LocalDateTime(v) => named("$localdatetime", v.to_string()),
        Value::DateTime(v) => named("$datetime", v.to_string()),
        Value::Duration(v) => named("$duration", v.to_string()),
        Value::Node(_) | Value::Edge(_) | Value::Path(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::GroupKey;
    use super::*;

    #[test]
    fn stored_values_round_trip() {
        for (function, text) in [
            ("date", "1984-10-11"),
            ("localtime", "12:31:14"),
            ("time", "12:31:14+01:00"),
            ("localdatetime", "1984-10-11T12:00"),
            ("datetime", "1984-10-11T12:00[Europe/Stockholm]"),
            ("duration", "P1DT2H"),
        ] {
            let around = FunctionContext { now: 0, longest_list: 1 };
            let made = (find(function).unwrap().run)(&[Value::text(text)], &around).unwrap();
            let back = from_json(&to_json(&made).unwrap());
            assert_eq!(back.type_name(), made.type_name());
            assert_eq!(GroupKey(back), GroupKey(made), "{function}");
        }
        assert!(matches!(from_json(&to_json(&Value::Float(1.0)).unwrap()), Value::Float(f) if f == 1.0));
        assert!(matches!(from_json(&json!({"$date": "no date"})), Value::Map(_)), "an invalid value stays as it is");
        assert!(matches!(from_json(&json!({"$date": "1984-10-11", "b": 1})), Value::Map(_)));
        assert!(checked(&json!([{"$date": "no date"}])).is_err(), "as a parameter it is refused");
        assert!(matches!(checked(&json!({"$time": "12:00Z"})), Ok(Value::Time(_))));
        assert!(to_json(&Value::Node(crate::snapshot::Node(1))).is_none());
    }
}
