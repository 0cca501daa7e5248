//! Three-way merge of JSON by path: a change by one side is taken, different changes by both sides conflict.

use crate::json::{canonical, push_pointer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// How to resolve a path that both sides changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeStrategy {
    SourceWins,
    TargetWins,
    /// Arrays are merged as sets and sorted.
    Union,
    /// The target's text or items, then the source's.
    Concat,
    Fail,
}

/// Strategies by JSON Pointer; the longest path at or above a conflict applies.
pub type MergeStrategies = BTreeMap<String, MergeStrategy>;

/// A path that both sides changed and no strategy resolves. `None` is absence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathConflict {
    pub path: String,
    pub base: Option<Value>,
    pub ours: Option<Value>,
    pub theirs: Option<Value>,
}

/// Merges two whole contents. With several bases (criss-cross), a path is decided only where all bases agree; without a
/// base, the base is empty. Fails with all conflicting paths.
pub fn merge(
    bases: &[Value],
    ours: &Value,
    theirs: &Value,
    strategies: &MergeStrategies,
) -> Result<Value, Vec<PathConflict>> {
    let empty = [Value::Object(Map::new())];
    let bases: Vec<_> = if bases.is_empty() { &empty[..] } else { bases }.iter().map(Some).collect();
    let mut clashes = Vec::new();
    let merged = node(&bases, Some(ours), Some(theirs), String::new(), strategies, &mut clashes);
    if clashes.is_empty() { Ok(merged.unwrap_or(Value::Null)) } else { Err(clashes) }
}

fn node(
    bases: &[Option<&Value>],
    ours: Option<&Value>,
    theirs: Option<&Value>,
    path: String,
    strategies: &MergeStrategies,
    clashes: &mut Vec<PathConflict>,
) -> Option<Value> {
    if ours == theirs || bases.iter().all(|base| *base == theirs) {
        return ours.cloned();
    }
    if bases.iter().all(|base| *base == ours) {
        return theirs.cloned();
    }
    if let (Some(Value::Object(a)), Some(Value::Object(b))) = (ours, theirs) {
        let maps: Vec<_> = bases.iter().map(|base| base.and_then(Value::as_object)).collect();
        let keys: BTreeSet<_> = a.keys().chain(b.keys()).chain(maps.iter().flatten().flat_map(|m| m.keys())).collect();
        let mut merged = Map::new();
        for key in keys {
            let below: Vec<_> = maps.iter().map(|map| map.and_then(|m| m.get(key))).collect();
            let child = push_pointer(&path, key);
            if let Some(value) = node(&below, a.get(key), b.get(key), child, strategies, clashes) {
                merged.insert(key.clone(), value);
            }
        }
        return Some(Value::Object(merged));
    }
    let settled = if path == "/labels" {
        labels(bases, ours, theirs)
    } else {
        settle(strategy_for(strategies, &path), ours, theirs)
    };
    settled.unwrap_or_else(|| {
        clashes.push(PathConflict {
            path,
            base: bases.first().copied().flatten().cloned(),
            ours: ours.cloned(),
            theirs: theirs.cloned(),
        });
        None
    })
}

fn strategy_for(strategies: &MergeStrategies, path: &str) -> MergeStrategy {
    strategies
        .iter()
        .filter(|(prefix, _)| crate::change::covers(prefix, path))
        .max_by_key(|(prefix, _)| prefix.len())
        .map_or(MergeStrategy::Fail, |(_, strategy)| *strategy)
}

/// Returns `None` if the strategy cannot resolve these values, and `Some(None)` if the path is removed.
#[allow(clippy::option_option, reason = "undecided and decided-as-absent differ")]
fn settle(strategy: MergeStrategy, ours: Option<&Value>, theirs: Option<&Value>) -> Option<Option<Value>> {
    match (strategy, ours, theirs) {
        (MergeStrategy::SourceWins, _, theirs) => Some(theirs.cloned()),
        (MergeStrategy::TargetWins, ours, _) => Some(ours.cloned()),
        (MergeStrategy::Union, Some(Value::Array(a)), Some(Value::Array(b))) => {
            let all: BTreeMap<String, &Value> = a.iter().chain(b).map(|v| (canonical(v), v)).collect();
            Some(Some(Value::Array(all.into_values().cloned().collect())))
        }
        (MergeStrategy::Concat, Some(Value::Array(a)), Some(Value::Array(b))) => {
            Some(Some(Value::Array(a.iter().chain(b).cloned().collect())))
        }
        (MergeStrategy::Concat, Some(Value::String(a)), Some(Value::String(b))) => {
            Some(Some(Value::String(format!("{a}{b}"))))
        }
        _ => None,
    }
}

/// Labels are sets: each label is added, removed or kept by itself.
#[allow(clippy::option_option, reason = "as in settle")]
fn labels(bases: &[Option<&Value>], ours: Option<&Value>, theirs: Option<&Value>) -> Option<Option<Value>> {
    let set = |value: Option<&Value>| -> BTreeSet<String> {
        let items = value.and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (a, b) = (set(ours), set(theirs));
    let bases: Vec<_> = bases.iter().map(|base| set(*base)).collect();
    let mut merged = Vec::new();
    for label in a.union(&b) {
        let on_both = a.contains(label) && b.contains(label);
        let in_bases = bases.iter().filter(|base| base.contains(label)).count();
        match in_bases {
            _ if on_both => merged.push(Value::from(label.as_str())),
            0 => merged.push(Value::from(label.as_str())),
            n if n == bases.len() => {}
            _ => return None,
        }
    }
    Some((!merged.is_empty()).then_some(Value::Array(merged)))
}

#[cfg(test)]
mod tests {
    use super::MergeStrategy;
    use super::*;
    use crate::json::tests::any_json;
    use proptest::prelude::{Strategy as Generate, prop, prop_assert_eq, proptest};
    use serde_json::json;

    fn check(
        bases: &[Value],
        ours: Value,
        theirs: Value,
        strategies: &[(&str, MergeStrategy)],
        want: Result<Value, &[&str]>,
    ) {
        let strategies = strategies.iter().map(|(p, s)| (p.to_string(), *s)).collect();
        let got = merge(bases, &ours, &theirs, &strategies);
        let got = got.map_err(|c| c.into_iter().map(|c| c.path).collect::<Vec<_>>());
        assert_eq!(got, want.map_err(|p| p.iter().map(ToString::to_string).collect()), "{ours} + {theirs}");
    }

    #[test]
    fn cases() {
        use MergeStrategy::{Concat, SourceWins, TargetWins, Union};
        let base = || [json!({"p": {"a": 1, "b": 1, "l": [1]}})];
        // Changes to different paths merge; the same change on both sides counts once.
        check(
            &base(),
            json!({"p": {"a": 2, "b": 1, "l": [1]}}),
            json!({"p": {"a": 1, "b": 2, "l": [1]}}),
            &[],
            Ok(json!({"p": {"a": 2, "b": 2, "l": [1]}})),
        );
        check(&base(), json!({"p": {"a": 2}}), json!({"p": {"a": 2}}), &[], Ok(json!({"p": {"a": 2}})));
        // The same path, or a path and its prefix, conflicts.
        check(
            &base(),
            json!({"p": {"a": 2, "b": 1, "l": [1]}}),
            json!({"p": {"a": 3, "b": 1, "l": [1]}}),
            &[],
            Err(&["/p/a"]),
        );
        check(&base(), json!({}), json!({"p": {"a": 3, "b": 1, "l": [1]}}), &[], Err(&["/p"]));
        check(&base(), json!({"p": 7}), json!({"p": {"a": 3, "b": 1, "l": [1]}}), &[], Err(&["/p"]));
        // Arrays are atomic values unless a strategy applies.
        let lists = || (json!({"p": {"a": 1, "b": 1, "l": [1, 3]}}), json!({"p": {"a": 1, "b": 1, "l": [1, 2]}}));
        let with = |l: Value| json!({"p": {"a": 1, "b": 1, "l": l}});
        check(&base(), lists().0, lists().1, &[], Err(&["/p/l"]));
        check(&base(), lists().0, lists().1, &[("/p/l", Union)], Ok(with(json!([1, 2, 3]))));
        check(&base(), lists().0, lists().1, &[("/p/l", Concat)], Ok(with(json!([1, 3, 1, 2]))));
        check(&base(), lists().0, lists().1, &[("/p", SourceWins)], Ok(with(json!([1, 2]))));
        check(&base(), lists().0, lists().1, &[("/p", SourceWins), ("/p/l", TargetWins)], Ok(with(json!([1, 3]))));
        // A strategy for /p does not apply to /pq, and union does not apply to numbers.
        check(&[json!({"pq": 1})], json!({"pq": 2}), json!({"pq": 3}), &[("/p", SourceWins)], Err(&["/pq"]));
        check(&[json!({"n": 1})], json!({"n": 2}), json!({"n": 3}), &[("/n", Union)], Err(&["/n"]));
        // Labels are sets.
        check(
            &[json!({"labels": ["a", "b"]})],
            json!({"labels": ["a", "c"]}),
            json!({"labels": ["b", "d"]}),
            &[],
            Ok(json!({"labels": ["c", "d"]})),
        );
        // Bases that disagree on a path do not decide it.
        check(&[json!({"x": 1}), json!({"x": 2})], json!({"x": 1}), json!({"x": 2}), &[], Err(&["/x"]));
        check(&[json!({"x": 1}), json!({"x": 1})], json!({"x": 1}), json!({"x": 2}), &[], Ok(json!({"x": 2})));
        // Without a base, both sides have added.
        check(&[], json!({"x": 1}), json!({"y": 2}), &[], Ok(json!({"x": 1, "y": 2})));
        check(&[], json!({"x": 1}), json!({"x": 2}), &[], Err(&["/x"]));
    }

    fn object() -> impl Generate<Value = Value> {
        prop::collection::btree_map("[a-c]", any_json(), 0..4).prop_map(|m| Value::Object(m.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn merge_is_symmetric(base in object(), ours in object(), theirs in object()) {
            let none = MergeStrategies::new();
            let flip = |c: Vec<PathConflict>| -> Vec<PathConflict> {
                c.into_iter().map(|c| PathConflict { ours: c.theirs, theirs: c.ours, ..c }).collect()
            };
            let bases = [base];
            prop_assert_eq!(merge(&bases, &ours, &theirs, &none), merge(&bases, &theirs, &ours, &none).map_err(flip));
            let union: MergeStrategies = [(String::new(), MergeStrategy::Union)].into();
            prop_assert_eq!(
                merge(&bases, &ours, &theirs, &union),
                merge(&bases, &theirs, &ours, &union).map_err(flip)
            );
        }

        #[test]
        fn a_side_without_changes_takes_the_other(base in object(), other in object()) {
            let none = MergeStrategies::new();
            let bases = [base.clone()];
            prop_assert_eq!(merge(&bases, &base, &other, &none), Ok(other.clone()));
            prop_assert_eq!(merge(&bases, &other, &base, &none), Ok(other.clone()));
            prop_assert_eq!(merge(&bases, &other, &other, &none), Ok(other));
        }
    }
}
