//! Conditions on contents, as JSON: `{"status": {"in": ["open"]}, "properties.port": {">=": 8000}}`.

use lukasa_model::content::{RELATIONSHIP_TEXTS, TEXTS};
use lukasa_model::{Content, Error, ErrorCode, Result};
use serde_json::{Value, json};
use std::cmp::Ordering;

/// The most conditions of one predicate, the longest path, and the longest list: a predicate is a filter, not a
/// program.
const CONDITIONS: usize = 64;
const PATH_BYTES: usize = 256;
const LIST: usize = 256;

/// Fields of objects and of relationships that a predicate may read, besides their texts.
const OBJECT_FIELDS: [&str; 3] = ["type", "key", "labels"];
const EDGE_FIELDS: [&str; 4] = ["type", "labels", "weight", "confidence"];

/// A checked predicate. It holds if all its conditions hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Predicate(Vec<Condition>);

#[derive(Clone, Debug, PartialEq)]
struct Condition {
    path: FieldPath,
    test: Test,
}

/// A field that a predicate may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldPath {
    Field(String),
    /// A path inside `properties`, with dots between levels.
    Property(String),
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Equal(Value),
    NotEqual(Value),
    /// The orderings that pass.
    Compare(&'static [Ordering], Value),
    In(Vec<Value>),
    Contains(Value),
    Exists(bool),
}

/// What a predicate is applied to: the constant parts of a fact, and its content.
pub struct Subject<'a> {
    pub type_name: &'a str,
    pub key: Option<&'a str>,
    pub content: &'a Content,
}

impl FieldPath {
    /// Refuses fields that are not in the list, so that a filter never reveals what the caller may not see.
    pub fn parse(text: &str, relationship: bool) -> Result<FieldPath> {
        let (other, texts): (&[&str], &[&str]) =
            if relationship { (&EDGE_FIELDS, &RELATIONSHIP_TEXTS) } else { (&OBJECT_FIELDS, &[]) };
        let fields = [other, &TEXTS, texts].concat();
        if text.len() > PATH_BYTES {
            return Err(Error::invalid(ErrorCode::InvalidPath, format!("a path longer than {PATH_BYTES} bytes")));
        }
        if fields.contains(&text) {
            return Ok(FieldPath::Field(text.into()));
        }
        match text.strip_prefix("properties.") {
            Some(rest) if !rest.is_empty() && rest.split('.').all(|part| !part.is_empty()) => {
                Ok(FieldPath::Property(rest.into()))
            }
            _ => {
                let shown: String = text.chars().take(60).collect();
                Err(Error::invalid(ErrorCode::ForbiddenPath, format!("`{shown}` cannot be used in a predicate"))
                    .hint(format!("use {} or properties.NAME", fields.join(", ")))
                    .details(json!({"path": shown})))
            }
        }
    }

    /// The value at this path, if there is one.
    pub fn read(&self, subject: &Subject<'_>) -> Option<Value> {
        let number = |n: Option<f64>| n.map(|n| json!(n));
        let content = subject.content;
        match self {
            FieldPath::Property(path) => lookup(&content.properties, path).cloned().filter(|v| !v.is_null()),
            FieldPath::Field(field) => match field.as_str() {
                "type" => Some(subject.type_name.into()),
                "key" => subject.key.map(Value::from),
                "labels" => (!content.labels.is_empty()).then(|| json!(content.labels)),
                "weight" => number(content.weight),
                "confidence" => number(content.confidence),
                field => {
                    let (_, text) = content.texts().find(|(name, _)| *name == field)?;
                    text.clone().map(Value::String)
                }
            },
        }
    }

    /// As the caller wrote it.
    pub fn text(&self) -> String {
        match self {
            FieldPath::Field(field) => field.clone(),
            FieldPath::Property(path) => format!("properties.{path}"),
        }
    }
}

/// Looks up a name with dots as a whole before splitting it at a dot.
fn lookup<'a>(map: &'a serde_json::Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = map.get(path) {
        return Some(value);
    }
    path.match_indices('.').find_map(|(dot, _)| lookup(map.get(&path[..dot])?.as_object()?, &path[dot + 1..]))
}

impl Predicate {
    /// Parses and checks a predicate on objects or on relationships.
    pub fn parse(json: &Value, relationship: bool) -> Result<Predicate> {
        let fault = |message: String| Error::invalid(ErrorCode::InvalidPredicate, message);
        let Value::Object(paths) = json else {
            return Err(fault("a filter is a JSON object of paths".into())
                .hint(r#"for example {"status": {"in": ["open"]}, "properties.port": {">=": 8000}}"#));
        };
        let mut conditions = Vec::new();
        for (path, tests) in paths {
            let path = FieldPath::parse(path, relationship)?;
            match tests {
                Value::Object(tests) => {
                    for (operator, operand) in tests {
                        conditions.push(Condition { path: path.clone(), test: Test::parse(operator, operand, &path)? });
                    }
                }
                // A plain value is a test for equality.
                value => conditions.push(Condition { test: Test::parse("=", value, &path)?, path }),
            }
            if conditions.len() > CONDITIONS {
                return Err(fault(format!("more than {CONDITIONS} conditions")));
            }
        }
        Ok(Predicate(conditions))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every condition holds. Values of different kinds are never equal and have no order.
    pub fn holds(&self, subject: &Subject<'_>) -> bool {
        self.0.iter().all(|c| c.test.holds(c.path.read(subject).as_ref()))
    }
}

impl Test {
    fn parse(operator: &str, operand: &Value, path: &FieldPath) -> Result<Test> {
        use Ordering::{Equal, Greater, Less};
        let fault = |what: &str| {
            Error::invalid(ErrorCode::InvalidPredicate, format!("`{}`: `{operator}` takes {what}", path.text()))
                .details(json!({"path": path.text(), "operator": operator}))
        };
        let compare = |orders: &'static [Ordering]| match operand {
            Value::Number(_) | Value::String(_) => Ok(Test::Compare(orders, operand.clone())),
            _ => Err(fault("a number or a text")),
        };
        let scalar = |value: &Value| !value.is_array() && !value.is_object();
        match operator {
            "=" | "==" | "eq" if scalar(operand) => Ok(Test::Equal(operand.clone())),
            "!=" | "ne" if scalar(operand) => Ok(Test::NotEqual(operand.clone())),
            "=" | "==" | "eq" | "!=" | "ne" => Err(fault("a text, number, boolean or null")),
            "<" => compare(&[Less]),
            "<=" => compare(&[Less, Equal]),
            ">" => compare(&[Greater]),
            ">=" => compare(&[Greater, Equal]),
            "in" => match operand {
                Value::Array(list) if list.len() <= LIST && list.iter().all(scalar) => Ok(Test::In(list.clone())),
                _ => Err(fault("a list of at most 256 texts, numbers or booleans")),
            },
            "contains" if scalar(operand) && !operand.is_null() => Ok(Test::Contains(operand.clone())),
            "contains" => Err(fault("a text, number or boolean")),
            "exists" => operand.as_bool().map(Test::Exists).ok_or_else(|| fault("true or false")),
            other => {
                let shown: String = other.chars().take(20).collect();
                Err(Error::invalid(ErrorCode::InvalidPredicate, format!("`{}`: no operator `{shown}`", path.text()))
                    .hint("operators: = != < <= > >= in contains exists"))
            }
        }
    }

    fn holds(&self, value: Option<&Value>) -> bool {
        match self {
            Test::Exists(wanted) => value.is_some() == *wanted,
            Test::Equal(Value::Null) => value.is_none(),
            Test::NotEqual(Value::Null) => value.is_some(),
            Test::Equal(operand) => value.is_some_and(|v| order(v, operand) == Some(Ordering::Equal)),
            Test::NotEqual(operand) => value.is_some_and(|v| order(v, operand) != Some(Ordering::Equal)),
            Test::Compare(orders, operand) => {
                value.and_then(|v| order(v, operand)).is_some_and(|found| orders.contains(&found))
            }
            Test::In(list) => value.is_some_and(|v| list.iter().any(|o| order(v, o) == Some(Ordering::Equal))),
            Test::Contains(operand) => match value {
                Some(Value::Array(items)) => items.iter().any(|i| order(i, operand) == Some(Ordering::Equal)),
                Some(Value::String(text)) => operand.as_str().is_some_and(|part| text.contains(part)),
                _ => false,
            },
        }
    }
}

/// Order of two scalars of the same kind.
fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn content() -> Content {
        serde_json::from_value(json!({
            "title": "Auth", "status": "open", "labels": ["core", "web"],
            "properties": {"port": 8080, "a": {"b": {"c": true}}, "d.e": 1.5, "list": [1, "x"], "none": null},
        }))
        .unwrap()
    }

    fn holds(predicate: Value) -> bool {
        let content = content();
        let subject = Subject { type_name: "Service", key: Some("auth"), content: &content };
        Predicate::parse(&predicate, false).unwrap_or_else(|e| panic!("{predicate}: {e:?}")).holds(&subject)
    }

    #[test]
    fn conditions_hold_or_not() {
        for (predicate, want) in [
            (json!({}), true),
            (json!({"status": "open"}), true),
            (json!({"status": {"=": "shut"}}), false),
            (json!({"status": {"!=": "shut"}}), true),
            (json!({"status": {"in": ["shut", "open"]}}), true),
            (json!({"status": {"in": []}}), false),
            (json!({"properties.port": {">=": 8080, "<": 9000}}), true),
            (json!({"properties.port": {">": 8080}}), false),
            (json!({"properties.port": {"<=": 8080.0}}), true),
            (json!({"properties.port": {"=": "8080"}}), false),
            (json!({"properties.port": {"<": "9"}}), false),
            (json!({"properties.a.b.c": true}), true),
            (json!({"properties.d.e": 1.5}), true),
            (json!({"properties.d": {"exists": true}}), false),
            (json!({"properties.none": {"exists": false}}), true),
            (json!({"properties.none": null}), true),
            (json!({"properties.port": {"!=": null}}), true),
            (json!({"labels": {"contains": "web"}}), true),
            (json!({"labels": {"contains": "we"}}), false),
            (json!({"title": {"contains": "ut"}}), true),
            (json!({"properties.list": {"contains": "x"}}), true),
            (json!({"properties.list": {"contains": true}}), false),
            (json!({"properties.missing": {"!=": 1}}), false),
            (json!({"type": "Service", "key": {"contains": "aut"}}), true),
        ] {
            assert_eq!(holds(predicate.clone()), want, "{predicate}");
        }
    }

    #[test]
    fn forbidden_fields_and_invalid_predicates_are_refused() {
        for (predicate, code) in [
            (json!([]), "invalid_predicate"),
            (json!({"evidence": 1}), "forbidden_path"),
            (json!({"properties": 1}), "forbidden_path"),
            (json!({"properties.": 1}), "forbidden_path"),
            (json!({"properties.a..b": 1}), "forbidden_path"),
            (json!({"$.x": 1}), "forbidden_path"),
            (json!({"weight": 1}), "forbidden_path"),
            (json!({"status": {"like": "x"}}), "invalid_predicate"),
            (json!({"status": {"in": "x"}}), "invalid_predicate"),
            (json!({"status": {"in": [[]]}}), "invalid_predicate"),
            (json!({"status": {"<": true}}), "invalid_predicate"),
            (json!({"status": ["x"]}), "invalid_predicate"),
            (json!({"status": {"exists": 1}}), "invalid_predicate"),
            (json!({"status": {"contains": null}}), "invalid_predicate"),
        ] {
            assert_eq!(Predicate::parse(&predicate, false).unwrap_err().code.name(), code, "{predicate}");
        }
        assert!(Predicate::parse(&json!({"weight": {">": 0.5}, "role_dst": "x"}), true).is_ok());
    }

    pub fn any_json() -> impl Strategy<Value = Value> {
        let word = prop_oneof![
            "[a-z.$= <>!]{0,12}",
            Just("status".to_string()),
            Just("properties.port".into()),
            Just("properties.a.b".into()),
            Just("labels".into()),
            Just("in".into()),
            Just("contains".into()),
            Just(">=".into()),
            Just("exists".into()),
            ".{0,6}",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|n| json!(n)),
            any::<f64>().prop_map(|n| json!(n)),
            word.clone().prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 48, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::vec((word.clone(), inner), 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_json_makes_it_panic(predicate in any_json(), properties in any_json(), relationship: bool) {
            let content = Content {
                properties: properties.as_object().cloned().unwrap_or_default(),
                status: properties.as_str().map(Into::into),
                ..content()
            };
            let subject = Subject { type_name: "T", key: None, content: &content };
            if let Ok(predicate) = Predicate::parse(&predicate, relationship) {
                let once = predicate.holds(&subject);
                prop_assert_eq!(once, predicate.holds(&subject));
            }
        }
    }
}
