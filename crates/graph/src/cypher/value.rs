//! Values of queries: equality, comparison, and a total order.

use super::temporal::{Date, DateTime, Duration, LocalDateTime, LocalTime, ZonedTime};
use crate::convert::to_i64;
use crate::snapshot::{Edge, Node};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A value of a query. It is cheap to clone. [`equals`] and [`compare`] treat null as unknown; [`order`] is total.
/// There is no `PartialEq`, because it could be confused with one of them.
#[derive(Clone, Debug, Default)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(Arc<str>),
    List(Arc<Vec<Value>>),
    Map(Arc<BTreeMap<String, Value>>),
    /// A node of the snapshot that the query is run against.
    Node(Node),
    Edge(Edge),
    Path(Arc<PathValue>),
    Date(Date),
    LocalTime(LocalTime),
    Time(ZonedTime),
    LocalDateTime(LocalDateTime),
    DateTime(Arc<DateTime>),
    Duration(Arc<Duration>),
}

/// Rows consist of values, so values must be small.
const _: () = assert!(size_of::<Value>() == 24);

/// A path. It has one node more than edges.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathValue {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

impl Value {
    pub fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    pub fn duration(duration: Duration) -> Value {
        Value::Duration(Arc::new(duration))
    }

    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Arc::new(items))
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Bytes on the heap. Shared data is counted for each owner.
    pub fn heap(&self) -> usize {
        match self {
            Value::Text(text) => text.len() + 16,
            Value::List(items) => 40 + items.iter().map(|v| size_of::<Value>() + v.heap()).sum::<usize>(),
            Value::Map(entries) => {
                40 + entries.iter().map(|(k, v)| k.len() + 32 + size_of::<Value>() + v.heap()).sum::<usize>()
            }
            Value::Path(path) => 64 + 4 * (path.nodes.len() + path.edges.len()),
            Value::DateTime(_) | Value::Duration(_) => 64,
            _ => 0,
        }
    }

    /// The name of the type, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "Null",
            Value::Bool(_) => "Boolean",
            Value::Integer(_) => "Integer",
            Value::Float(_) => "Float",
            Value::Text(_) => "String",
            Value::List(_) => "List",
            Value::Map(_) => "Map",
            Value::Node(_) => "Node",
            Value::Edge(_) => "Relationship",
            Value::Path(_) => "Path",
            Value::Date(_) => "Date",
            Value::LocalTime(_) => "LocalTime",
            Value::Time(_) => "Time",
            Value::LocalDateTime(_) => "LocalDateTime",
            Value::DateTime(_) => "DateTime",
            Value::Duration(_) => "Duration",
        }
    }

    /// The position of the type in the order of all values.
    fn rank(&self) -> u8 {
        match self {
            Value::Map(_) => 0,
            Value::Node(_) => 1,
            Value::Edge(_) => 2,
            Value::List(_) => 3,
            Value::Path(_) => 4,
            Value::DateTime(_) => 5,
            Value::LocalDateTime(_) => 6,
            Value::Date(_) => 7,
            Value::Time(_) => 8,
            Value::LocalTime(_) => 9,
            Value::Duration(_) => 10,
            Value::Text(_) => 11,
            Value::Bool(_) => 12,
            Value::Integer(_) | Value::Float(_) => 13,
            Value::Null => 14,
        }
    }
}

/// Compares an integer with a float exactly. `None` if the float is NaN.
fn integer_to_float(integer: i64, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // Floats beyond these bounds are larger or smaller than any integer.
    if float >= 9_223_372_036_854_775_808.0 {
        return Some(Ordering::Less);
    }
    if float < -9_223_372_036_854_775_808.0 {
        return Some(Ordering::Greater);
    }
    let whole = float.trunc();
    Some(integer.cmp(&to_i64(whole)).then_with(|| 0.0.partial_cmp(&(float - whole)).unwrap_or(Ordering::Equal)))
}

/// The order of two numbers. `None` for other values and for NaN.
fn numbers(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Integer(a), Value::Float(b)) => integer_to_float(*a, *b),
        (Value::Float(a), Value::Integer(b)) => integer_to_float(*b, *a).map(Ordering::reverse),
        _ => None,
    }
}

/// Whether two values are equal. `None` if that is unknown because of null.
#[inline]
pub fn equals(a: &Value, b: &Value) -> Option<bool> {
    match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => Some(a == b),
        _ => equal_others(a, b),
    }
}

fn equal_others(a: &Value, b: &Value) -> Option<bool> {
    match (a, b) {
        (Value::Null, _) | (_, Value::Null) => None,
        (Value::List(a), Value::List(b)) => {
            if a.len() != b.len() {
                return Some(false);
            }
            all(a.iter().zip(b.iter()).map(|(a, b)| equals(a, b)))
        }
        (Value::Map(a), Value::Map(b)) => {
            if !a.keys().eq(b.keys()) {
                return Some(false);
            }
            all(a.values().zip(b.values()).map(|(a, b)| equals(a, b)))
        }
        (Value::Integer(_) | Value::Float(_), Value::Integer(_) | Value::Float(_)) => {
            Some(numbers(a, b) == Some(Ordering::Equal))
        }
        (Value::Bool(a), Value::Bool(b)) => Some(a == b),
        (Value::Text(a), Value::Text(b)) => Some(a == b),
        (Value::Node(a), Value::Node(b)) => Some(a == b),
        (Value::Edge(a), Value::Edge(b)) => Some(a == b),
        (Value::Path(a), Value::Path(b)) => Some(a == b),
        (Value::Date(a), Value::Date(b)) => Some(a == b),
        (Value::LocalTime(a), Value::LocalTime(b)) => Some(a == b),
        (Value::Time(a), Value::Time(b)) => Some(a == b),
        (Value::LocalDateTime(a), Value::LocalDateTime(b)) => Some(a == b),
        (Value::DateTime(a), Value::DateTime(b)) => Some(a == b),
        (Value::Duration(a), Value::Duration(b)) => Some(a == b),
        _ => Some(false),
    }
}

/// Whether all are true: false if one is false, else unknown if one is unknown.
fn all(parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = true;
    for part in parts {
        match part {
            Some(false) => return Some(false),
            Some(true) => {}
            None => known = false,
        }
    }
    known.then_some(true)
}

/// The result of comparing two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonResult {
    Is(Ordering),
    /// Unknown or not comparable: the operator returns null.
    Unknown,
    /// One of them is NaN: every comparison is false.
    Never,
}

/// Compares values for `<` and similar operators.
#[inline]
pub fn compare(a: &Value, b: &Value) -> ComparisonResult {
    match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => ComparisonResult::Is(a.cmp(b)),
        _ => compare_others(a, b),
    }
}

fn compare_others(a: &Value, b: &Value) -> ComparisonResult {
    use ComparisonResult::{Is, Never, Unknown};
    match (a, b) {
        (Value::Integer(_) | Value::Float(_), Value::Integer(_) | Value::Float(_)) => numbers(a, b).map_or(Never, Is),
        (Value::Bool(a), Value::Bool(b)) => Is(a.cmp(b)),
        (Value::Text(a), Value::Text(b)) => Is(a.cmp(b)),
        (Value::Date(a), Value::Date(b)) => Is(a.cmp(b)),
        (Value::LocalTime(a), Value::LocalTime(b)) => Is(a.cmp(b)),
        (Value::Time(a), Value::Time(b)) => Is(a.cmp(b)),
        (Value::LocalDateTime(a), Value::LocalDateTime(b)) => Is(a.cmp(b)),
        (Value::DateTime(a), Value::DateTime(b)) => Is(a.cmp(b)),
        (Value::List(a), Value::List(b)) => {
            for (a, b) in a.iter().zip(b.iter()) {
                match compare(a, b) {
                    Is(Ordering::Equal) => {}
                    other => return other,
                }
            }
            Is(a.len().cmp(&b.len()))
        }
        // Durations have no order: a month has no fixed number of days.
        _ => Unknown,
    }
}

/// A total order, for ORDER BY, DISTINCT, min and max. Null is last, after NaN.
#[inline]
pub fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        _ => order_others(a, b),
    }
}

fn order_others(a: &Value, b: &Value) -> Ordering {
    let lists = |a: &[Value], b: &[Value]| {
        let first = a.iter().zip(b).map(|(a, b)| order(a, b)).find(|o| o.is_ne());
        first.unwrap_or_else(|| a.len().cmp(&b.len()))
    };
    match (a, b) {
        (Value::Integer(_) | Value::Float(_), Value::Integer(_) | Value::Float(_)) => {
            let is_nan = |v: &Value| matches!(v, Value::Float(f) if f.is_nan());
            numbers(a, b).unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)))
        }
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::List(a), Value::List(b)) => lists(a, b),
        (Value::Map(a), Value::Map(b)) => {
            let keys = a.keys().cmp(b.keys());
            let mut values = a.values().zip(b.values()).map(|(a, b)| order(a, b));
            keys.then_with(|| values.find(|o| o.is_ne()).unwrap_or(Ordering::Equal))
        }
        (Value::Node(a), Value::Node(b)) => a.cmp(b),
        (Value::Edge(a), Value::Edge(b)) => a.cmp(b),
        (Value::Path(a), Value::Path(b)) => {
            let places = |p: &PathValue| -> Vec<u32> {
                let steps = p.edges.iter().zip(&p.nodes[1..]).flat_map(|(edge, node)| [edge.0, node.0]);
                [p.nodes[0].0].into_iter().chain(steps).collect()
            };
            places(a).cmp(&places(b))
        }
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::LocalTime(a), Value::LocalTime(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b)) => a.cmp(b),
        (Value::LocalDateTime(a), Value::LocalDateTime(b)) => a.cmp(b),
        (Value::DateTime(a), Value::DateTime(b)) => a.cmp(b),
        (Value::Duration(a), Value::Duration(b)) => {
            let parts = |d: &Duration| (d.months, d.days, d.seconds, d.nanos);
            a.average_nanos().cmp(&b.average_nanos()).then_with(|| parts(a).cmp(&parts(b)))
        }
        _ => a.rank().cmp(&b.rank()),
    }
}

/// A value as a grouping key: null equals null, and 1 equals 1.0.
#[derive(Clone, Debug)]
pub struct GroupKey(pub Value);

impl PartialEq for GroupKey {
    fn eq(&self, other: &Self) -> bool {
        order(&self.0, &other.0).is_eq()
    }
}

impl Eq for GroupKey {}

impl GroupKey {
    /// The hash of a value as a key, without cloning the value.
    pub fn hash_of<H: Hasher>(value: &Value, state: &mut H) {
        hash(value, state);
    }
}

impl Hash for GroupKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(&self.0, state);
    }
}

/// Values that are equal in the total order have equal hashes.
fn hash<H: Hasher>(value: &Value, state: &mut H) {
    value.rank().hash(state);
    match value {
        Value::Null => {}
        Value::Bool(b) => b.hash(state),
        Value::Integer(n) => n.hash(state),
        Value::Float(f) if f.is_nan() => u64::MAX.hash(state),
        // A float that is a whole number has the hash of that integer.
        Value::Float(f) if integer_to_float(to_i64(*f), *f) == Some(Ordering::Equal) => to_i64(*f).hash(state),
        Value::Float(f) => f.to_bits().hash(state),
        Value::Text(text) => text.hash(state),
        Value::List(items) => items.iter().for_each(|i| hash(i, state)),
        Value::Map(entries) => entries.iter().for_each(|(k, v)| {
            k.hash(state);
            hash(v, state);
        }),
        Value::Node(node) => node.hash(state),
        Value::Edge(edge) => edge.hash(state),
        Value::Path(path) => path.edges.hash(state),
        Value::Date(v) => v.hash(state),
        Value::LocalTime(v) => v.hash(state),
        Value::Time(v) => v.hash(state),
        Value::LocalDateTime(v) => v.hash(state),
        Value::DateTime(v) => v.hash(state),
        Value::Duration(v) => v.hash(state),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::hash::BuildHasher;

    fn int(n: i64) -> Value {
        Value::Integer(n)
    }

    fn float(n: f64) -> Value {
        Value::Float(n)
    }

    #[test]
    fn comparisons_with_null_are_unknown() {
        let list = |items: &[Value]| Value::list(items.to_vec());
        assert_eq!(equals(&Value::Null, &Value::Null), None);
        assert_eq!(equals(&list(&[int(1), Value::Null]), &list(&[int(1), Value::Null])), None);
        assert_eq!(equals(&list(&[int(1), Value::Null]), &list(&[int(2), Value::Null])), Some(false));
        assert_eq!(equals(&list(&[Value::Null]), &list(&[])), Some(false));
        assert_eq!(equals(&Value::text("1"), &int(1)), Some(false));
        assert_eq!(compare(&Value::Null, &int(1)), ComparisonResult::Unknown);
        assert_eq!(compare(&Value::text("a"), &int(1)), ComparisonResult::Unknown);
        assert_eq!(compare(&float(f64::NAN), &int(1)), ComparisonResult::Never);
        assert_eq!(compare(&list(&[int(1), int(2)]), &list(&[int(1)])), ComparisonResult::Is(Ordering::Greater));
        assert_eq!(compare(&list(&[Value::Null]), &list(&[int(1)])), ComparisonResult::Unknown);
    }

    #[test]
    fn numbers_are_compared_exactly() {
        assert_eq!(equals(&int(1), &float(1.0)), Some(true));
        assert_eq!(equals(&int(9_007_199_254_740_993), &float(9_007_199_254_740_992.0)), Some(false));
        assert_eq!(equals(&int(i64::MAX), &float(9.3e18)), Some(false));
        assert_eq!(compare(&int(i64::MAX), &float(f64::INFINITY)), ComparisonResult::Is(Ordering::Less));
        assert_eq!(compare(&int(-1), &float(-1.5)), ComparisonResult::Is(Ordering::Greater));
        assert_eq!(equals(&float(f64::NAN), &float(f64::NAN)), Some(false));
        assert_eq!(GroupKey(float(f64::NAN)), GroupKey(float(f64::NAN)), "as a grouping key it equals itself");
    }

    #[test]
    fn types_are_ordered() {
        let sorted = [
            Value::Map(Arc::default()),
            Value::Node(crate::snapshot::Node(1)),
            Value::list(vec![]),
            Value::text("a"),
            Value::Bool(false),
            int(1),
            float(1.5),
            float(f64::INFINITY),
            float(f64::NAN),
            Value::Null,
        ];
        for pair in sorted.windows(2) {
            assert_eq!(order(&pair[0], &pair[1]), Ordering::Less, "{pair:?}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            (-3i64..3).prop_map(Value::Integer),
            prop_oneof![Just(0.5), Just(1.0), Just(-0.0), Just(f64::NAN), Just(f64::INFINITY), any::<f64>()]
                .prop_map(Value::Float),
            "[ab]{0,2}".prop_map(|t| Value::text(&t)),
            (-2i64..2).prop_map(|d| Value::Date(Date(d))),
            (-2i64..2, -40i64..40).prop_map(|(m, d)| Value::duration(Duration {
                months: m,
                days: d,
                seconds: 0,
                nanos: 0
            })),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::list),
                prop::collection::btree_map("[ab]", inner, 0..3).prop_map(|m| Value::Map(Arc::new(m))),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_order_is_total(a in value(), b in value(), c in value()) {
            prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
            prop_assert_eq!(order(&a, &a), Ordering::Equal);
            if order(&a, &b).is_le() && order(&b, &c).is_le() {
                prop_assert!(order(&a, &c).is_le());
            }
            if equals(&a, &b) == Some(true) {
                prop_assert!(order(&a, &b).is_eq());
            }
            if let ComparisonResult::Is(found) = compare(&a, &b) {
                prop_assert_eq!(order(&a, &b), found);
            }
            let state = rustc_hash::FxBuildHasher;
            if GroupKey(a.clone()) == GroupKey(b.clone()) {
                prop_assert_eq!(state.hash_one(GroupKey(a)), state.hash_one(GroupKey(b)));
            }
        }
    }
}
