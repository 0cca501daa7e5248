//! What changed between two JSON values, exactly (`Diff`) and in bounded size (`ChangeSummary`).

use crate::json::{Hash, canonical, pointer_tokens, push_pointer};
use crate::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Every difference with its values, in path order. Arrays are compared index by index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff {
    /// Paths with their new values.
    pub added: Vec<(String, Value)>,
    pub removed: Vec<String>,
    /// Paths with their old and new values.
    pub updated: Vec<(String, Value, Value)>,
}

/// Returns the differences that turn `before` into `after`.
pub fn diff(before: &Value, after: &Value) -> Diff {
    let mut out = Diff::default();
    walk(before, after, String::new(), &mut out);
    out
}

fn walk(before: &Value, after: &Value, path: String, out: &mut Diff) {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for key in keys {
                step(a.get(key), b.get(key), push_pointer(&path, key), out);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for i in 0..a.len().max(b.len()) {
                step(a.get(i), b.get(i), push_pointer(&path, &i.to_string()), out);
            }
        }
        (a, b) if a == b => {}
        (a, b) => out.updated.push((path, a.clone(), b.clone())),
    }
}

fn step(before: Option<&Value>, after: Option<&Value>, path: String, out: &mut Diff) {
    match (before, after) {
        (Some(a), Some(b)) => walk(a, b, path, out),
        (None, Some(b)) => out.added.push((path, b.clone())),
        (Some(_), None) => out.removed.push(path),
        (None, None) => {}
    }
}

impl Diff {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.updated.is_empty()
    }

    /// Turns the `before` value of this diff into its `after` value. Returns `None` when the diff does not fit the
    /// value.
    pub fn apply(&self, value: &mut Value) -> Option<()> {
        for (path, _, to) in &self.updated {
            *value.pointer_mut(path)? = to.clone();
        }
        // Array items are removed from the end and added from the start, so that indices stay valid.
        for path in self.removed.iter().rev() {
            let (parent, last) = split(path)?;
            match value.pointer_mut(parent)? {
                Value::Object(map) => drop(map.remove(&last)?),
                Value::Array(items) => drop(items.remove(last.parse().ok()?)),
                _ => return None,
            }
        }
        for (path, added) in &self.added {
            let (parent, last) = split(path)?;
            match value.pointer_mut(parent)? {
                Value::Object(map) => drop(map.insert(last, added.clone())),
                Value::Array(items) => items.push(added.clone()),
                _ => return None,
            }
        }
        Some(())
    }

    /// Drops differences at or under one of these paths.
    pub fn ignoring(mut self, ignored: &[String]) -> Diff {
        let keep = |path: &str| !ignored.iter().any(|i| covers(i, path));
        self.added.retain(|(path, _)| keep(path));
        self.removed.retain(|path| keep(path));
        self.updated.retain(|(path, _, _)| keep(path));
        self
    }

    /// Returns the bounded form that is stored with a version.
    pub fn summary(&self, bytes_before: usize, bytes_after: usize) -> ChangeSummary {
        let meta = ChangeMeta {
            added: self.added.len(),
            removed: self.removed.len(),
            updated: self.updated.len(),
            bytes_before,
            bytes_after,
        };
        let mut paths: Vec<String> = self
            .added
            .iter()
            .map(|(path, _)| path)
            .chain(&self.removed)
            .chain(self.updated.iter().map(|(path, _, _)| path))
            .cloned()
            .collect();
        paths.sort();
        let added: Map<_, _> = self.added.iter().map(|(path, value)| (path.clone(), brief(value))).collect();
        let updated: Map<_, _> =
            self.updated.iter().map(|(path, from, to)| (path.clone(), brief_update(from, to))).collect();
        let mut summary = ChangeSummary {
            added: Value::Object(added),
            removed: self.removed.clone(),
            updated: Value::Object(updated),
            paths,
            meta,
        };
        if summary.bytes() > limits::SUMMARY_BYTES {
            summary.updated = json!({"count": summary.meta.updated, "elided": true});
        }
        if summary.bytes() > limits::SUMMARY_BYTES {
            summary.added = json!({"count": summary.meta.added, "elided": true});
        }
        summary
    }
}

/// Whether `path` is `prefix` or lies under it.
pub fn covers(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn split(path: &str) -> Option<(&str, String)> {
    let cut = path.rfind('/')?;
    Some((&path[..cut], pointer_tokens(&path[cut..]).ok()?.pop()?))
}

fn too_long(value: &Value) -> bool {
    match value {
        Value::String(text) => text.chars().count() > limits::SUMMARY_STRING_CHARS,
        Value::Array(_) | Value::Object(_) => canonical(value).len() > limits::SUMMARY_JSON_BYTES,
        _ => false,
    }
}

fn hash_of(value: &Value) -> Value {
    Hash::of(canonical(value).as_bytes()).to_string().into()
}

fn brief(value: &Value) -> Value {
    if too_long(value) { json!({"hash": hash_of(value), "truncated": true}) } else { value.clone() }
}

fn brief_update(from: &Value, to: &Value) -> Value {
    if too_long(from) || too_long(to) {
        json!({"from_hash": hash_of(from), "to_hash": hash_of(to), "truncated": true})
    } else {
        json!({"from": from, "to": to})
    }
}

/// What a version changed against the one it overrides, by RFC 6901 path. Long values are replaced by their hash; a
/// summary over its size limit contains counts instead of values. `paths` is always complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeSummary {
    pub added: Value,
    pub removed: Vec<String>,
    pub updated: Value,
    pub paths: Vec<String>,
    pub meta: ChangeMeta,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeMeta {
    pub added: usize,
    pub removed: usize,
    pub updated: usize,
    pub bytes_before: usize,
    pub bytes_after: usize,
}

impl ChangeSummary {
    fn bytes(&self) -> usize {
        serde_json::to_string(self).map_or(usize::MAX, |text| text.len())
    }
}

/// Returns the summary between two stored contents; `None` is absence.
pub fn summarise(before: Option<&str>, after: Option<&str>, ignored: &[String]) -> ChangeSummary {
    let parse = |text: Option<&str>| {
        text.map_or_else(|| json!({}), |t| serde_json::from_str(t).unwrap_or_else(|_| Value::String(t.into())))
    };
    diff(&parse(before), &parse(after)).ignoring(ignored).summary(before.map_or(0, str::len), after.map_or(0, str::len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::tests::any_json;
    use proptest::prelude::*;

    #[test]
    fn classes_and_paths() {
        let summary = diff(
            &json!({"title": "Old", "gone": 1, "list": [1, 2, 3], "a/b": {"c~d": 1}}),
            &json!({"title": "New", "list": [1, 9], "a/b": {"c~d": 2}, "new": {"x": 1}}),
        )
        .summary(10, 20);
        assert_eq!(
            serde_json::to_value(&summary).unwrap(),
            json!({
                "added": {"/new": {"x": 1}},
                "removed": ["/gone", "/list/2"],
                "updated": {
                    "/a~1b/c~0d": {"from": 1, "to": 2},
                    "/list/1": {"from": 2, "to": 9},
                    "/title": {"from": "Old", "to": "New"}
                },
                "paths": ["/a~1b/c~0d", "/gone", "/list/1", "/list/2", "/new", "/title"],
                "meta": {"added": 1, "removed": 2, "updated": 3, "bytes_before": 10, "bytes_after": 20}
            })
        );
    }

    #[test]
    fn long_values_are_hashed_at_the_limit_and_not_below() {
        let update = |chars: usize| {
            diff(&json!({"a": ""}), &json!({"a": "é".repeat(chars)})).summary(0, 0).updated["/a"].clone()
        };
        assert!(update(256).get("to").is_some());
        assert_eq!(update(257)["truncated"], json!(true));
        let added = |bytes: usize| diff(&json!({}), &json!({"a": ["x".repeat(bytes - 4)]})).summary(0, 0).added;
        assert!(added(2048)["/a"].is_array());
        assert_eq!(added(2049)["/a"]["truncated"], json!(true));
    }

    #[test]
    fn a_summary_over_its_limit_keeps_paths() {
        let many: Map<_, _> = (0..200).map(|i| (format!("k{i}"), json!("v".repeat(200)))).collect();
        let none: Map<_, _> = many.keys().map(|k| (k.clone(), json!(""))).collect();
        let summary = diff(&Value::Object(none), &Value::Object(many)).summary(0, 0);
        assert_eq!(summary.updated, json!({"count": 200, "elided": true}));
        assert_eq!(summary.paths.len(), 200);
    }

    #[test]
    fn ignored_paths_are_left_out() {
        let d = diff(&json!({"a": {"b": 1}, "ab": 1}), &json!({"a": {"b": 2}, "ab": 2}));
        assert_eq!(d.ignoring(&["/a".into()]).updated.len(), 1);
    }

    proptest! {
        #[test]
        fn diff_then_apply_gives_the_target(a in any_json(), b in any_json()) {
            let mut value = a.clone();
            let d = diff(&a, &b);
            prop_assert!(d.apply(&mut value).is_some());
            prop_assert_eq!(&value, &b);
            prop_assert_eq!(d.is_empty(), a == b);
        }
    }
}
