//! Operators on values: arithmetic, three-valued logic, membership, elements and slices.

use super::fault::FaultClass;
use super::functions::{FunctionError, FunctionResult, float_text};
use super::temporal::zone::Zone;
use super::temporal::{DateTime, Duration, ZonedTime};
use super::value::{ComparisonResult, Value, compare, equals};
use crate::convert::length;
use std::cmp::Ordering;
use std::sync::Arc;

fn types(operator: &str, a: &Value, b: &Value) -> FunctionError {
    let message = format!("`{operator}` does not take {} and {}", a.type_name(), b.type_name());
    FunctionError { class: FaultClass::Type, detail: "InvalidArgumentType", message }
}

fn overflow() -> FunctionError {
    FunctionError {
        class: FaultClass::Arithmetic,
        detail: "IntegerOverflow",
        message: "the number does not fit into 64 bits".into(),
    }
}

fn too_far() -> FunctionError {
    FunctionError {
        class: FaultClass::Argument,
        detail: "NumberOutOfRange",
        message: "the date is out of range".into(),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(n) => Some(*n as f64),
        Value::Float(f) => Some(*f),
        _ => None,
    }
}

/// Adds numbers, texts, lists, durations, or a duration to a date.
pub fn add(a: &Value, b: &Value) -> FunctionResult {
    Ok(match (a, b) {
        // Any value can be appended to a list, null included.
        (Value::List(a), Value::List(b)) => Value::list(a.iter().chain(b.iter()).cloned().collect()),
        (Value::Null, Value::List(_)) | (Value::List(_), Value::Null) | (Value::Null, _) | (_, Value::Null) => {
            Value::Null
        }
        (Value::List(a), b) => Value::list(a.iter().cloned().chain([b.clone()]).collect()),
        (a, Value::List(b)) => Value::list([a.clone()].into_iter().chain(b.iter().cloned()).collect()),
        (Value::Integer(a), Value::Integer(b)) => Value::Integer(a.checked_add(*b).ok_or_else(overflow)?),
        (Value::Text(a), Value::Text(b)) => Value::Text([&**a, &**b].concat().into()),
        (Value::Text(t), other) => Value::Text([&**t, &shown(other).ok_or_else(|| types("+", a, b))?].concat().into()),
        (other, Value::Text(t)) => Value::Text([&*shown(other).ok_or_else(|| types("+", a, b))?, t].concat().into()),
        (Value::Duration(a), Value::Duration(b)) => Value::duration(a.plus(b).ok_or_else(too_far)?),
        (Value::Duration(d), other) => later(other, d).ok_or_else(|| types("+", a, b))??,
        (other, Value::Duration(d)) => later(other, d).ok_or_else(|| types("+", a, b))??,
        _ => match (number(a), number(b)) {
            (Some(a), Some(b)) => Value::Float(a + b),
            _ => return Err(types("+", a, b)),
        },
    })
}

/// A number in the form in which it is appended to a text.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Integer(n) => Some(n.to_string()),
        Value::Float(f) => Some(float_text(*f)),
        Value::Bool(b) => Some(b.to_string()),
        _ => None,
    }
}

/// A date or time plus a duration. `None` for other values.
fn later(value: &Value, d: &Duration) -> Option<FunctionResult> {
    let moved = match value {
        Value::Date(v) => v.plus(d).map(Value::Date),
        Value::LocalTime(v) => Some(Value::LocalTime(v.plus(d))),
        Value::Time(v) => Some(Value::Time(ZonedTime { local: v.local.plus(d), offset: v.offset })),
        Value::LocalDateTime(v) => v.plus(d).map(Value::LocalDateTime),
        Value::DateTime(v) => later_there(v, d).map(|v| Value::DateTime(Arc::new(v))),
        _ => return None,
    };
    Some(moved.ok_or_else(too_far))
}

/// Months and days are added on the local calendar, the rest on the time line.
fn later_there(at: &DateTime, d: &Duration) -> Option<DateTime> {
    let zone = at.zone.as_deref().and_then(Zone::named).unwrap_or(Zone::Offset(at.offset));
    let calendar = Duration { seconds: 0, nanos: 0, ..*d };
    let start = if calendar == Duration::default() { at.clone() } else { zone.at_local(at.local.plus(&calendar)?) };
    let moved = start.instant().checked_add(d.clock_nanos())?;
    // The same bounds as for dates without a zone.
    at.local.plus(d)?;
    Some(zone.at_instant(moved))
}

pub fn subtract(a: &Value, b: &Value) -> FunctionResult {
    Ok(match (a, b) {
        (Value::Null, _) | (_, Value::Null) => Value::Null,
        (Value::Integer(a), Value::Integer(b)) => Value::Integer(a.checked_sub(*b).ok_or_else(overflow)?),
        (_, Value::Duration(d)) => {
            let back = d.negated().ok_or_else(too_far)?;
            match a {
                Value::Duration(a) => Value::duration(a.plus(&back).ok_or_else(too_far)?),
                other => later(other, &back).ok_or_else(|| types("-", a, b))??,
            }
        }
        _ => match (number(a), number(b)) {
            (Some(a), Some(b)) => Value::Float(a - b),
            _ => return Err(types("-", a, b)),
        },
    })
}

pub fn multiply(a: &Value, b: &Value) -> FunctionResult {
    Ok(match (a, b) {
        (Value::Null, _) | (_, Value::Null) => Value::Null,
        (Value::Integer(a), Value::Integer(b)) => Value::Integer(a.checked_mul(*b).ok_or_else(overflow)?),
        (Value::Duration(d), factor) | (factor, Value::Duration(d)) => {
            let factor = number(factor).ok_or_else(|| types("*", a, b))?;
            Value::duration(d.times(factor).ok_or_else(too_far)?)
        }
        _ => match (number(a), number(b)) {
            (Some(a), Some(b)) => Value::Float(a * b),
            _ => return Err(types("*", a, b)),
        },
    })
}

fn by_zero() -> FunctionError {
    FunctionError {
        class: FaultClass::Arithmetic,
        detail: "DivideByZero",
        message: "an integer is divided by zero".into(),
    }
}

/// The quotient of integers is an integer, rounded towards zero.
pub fn divide(a: &Value, b: &Value) -> FunctionResult {
    Ok(match (a, b) {
        (Value::Null, _) | (_, Value::Null) => Value::Null,
        (Value::Integer(_), Value::Integer(0)) => return Err(by_zero()),
        (Value::Integer(a), Value::Integer(b)) => Value::Integer(a.checked_div(*b).ok_or_else(overflow)?),
        (Value::Duration(d), by) => {
            let by = number(by).ok_or_else(|| types("/", a, b))?;
            Value::duration(d.times(1.0 / by).ok_or_else(too_far)?)
        }
        _ => match (number(a), number(b)) {
            (Some(a), Some(b)) => Value::Float(a / b),
            _ => return Err(types("/", a, b)),
        },
    })
}

pub fn modulo(a: &Value, b: &Value) -> FunctionResult {
    Ok(match (a, b) {
        (Value::Null, _) | (_, Value::Null) => Value::Null,
        (Value::Integer(_), Value::Integer(0)) => return Err(by_zero()),
        // The one division that overflows has no remainder.
        (Value::Integer(a), Value::Integer(b)) => Value::Integer(a.checked_rem(*b).unwrap_or(0)),
        _ => match (number(a), number(b)) {
            (Some(a), Some(b)) => Value::Float(a % b),
            _ => return Err(types("%", a, b)),
        },
    })
}

/// The result is always a float.
pub fn power(a: &Value, b: &Value) -> FunctionResult {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => Ok(Value::Float(a.powf(b))),
        _ if a.is_null() || b.is_null() => Ok(Value::Null),
        _ => Err(types("^", a, b)),
    }
}

pub fn negate(a: &Value) -> FunctionResult {
    match a {
        Value::Null => Ok(Value::Null),
        Value::Integer(n) => n.checked_neg().map(Value::Integer).ok_or_else(overflow),
        Value::Float(f) => Ok(Value::Float(-f)),
        Value::Duration(d) => d.negated().map(Value::duration).ok_or_else(too_far),
        other => Err(types("-", &Value::Null, other)),
    }
}

/// A boolean or null. Other values are an error.
pub fn truth(value: &Value) -> Result<Option<bool>, FunctionError> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(b) => Ok(Some(*b)),
        other => {
            let message = format!("expected true, false or null, found a {}", other.type_name());
            Err(FunctionError { class: FaultClass::Type, detail: "InvalidArgumentType", message })
        }
    }
}

/// A truth value as a value: `None` is null.
pub fn of_truth(truth: Option<bool>) -> Value {
    truth.map_or(Value::Null, Value::Bool)
}

/// False if either is false, else null if either is null.
pub fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// True if either is true, else null if either is null.
pub fn or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

/// Null if either is null.
pub fn xor(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    Some(a? != b?)
}

/// `<` and similar operators: whether the order of two values is one of `wanted`.
pub fn ordered(a: &Value, b: &Value, wanted: &[Ordering]) -> Option<bool> {
    match compare(a, b) {
        ComparisonResult::Is(found) => Some(wanted.contains(&found)),
        ComparisonResult::Never => Some(false),
        ComparisonResult::Unknown => None,
    }
}

/// Whether a list contains a value. Null if only a null in the list could be the value.
pub fn is_in(item: &Value, list: &Value) -> FunctionResult {
    match list {
        Value::Null => Ok(Value::Null),
        Value::List(items) => {
            let mut any = Some(false);
            for other in items.iter() {
                any = or(any, equals(item, other));
                if any == Some(true) {
                    break;
                }
            }
            Ok(of_truth(any))
        }
        other => Err(types("IN", item, other)),
    }
}

/// STARTS WITH, ENDS WITH and CONTAINS. The result is null unless both values are texts.
pub fn text_test(a: &Value, b: &Value, test: fn(&str, &str) -> bool) -> Value {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => Value::Bool(test(a, b)),
        _ => Value::Null,
    }
}

/// An element of a list, counted from the end if negative, or an entry of a map. Null if there is none.
pub fn element(subject: &Value, index: &Value) -> FunctionResult {
    let wrong = |detail, message: String| Err(FunctionError { class: FaultClass::Type, detail, message });
    match (subject, index) {
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        (Value::List(items), Value::Integer(i)) => {
            let place = if *i < 0 { length(items.len()) + i } else { *i };
            Ok(usize::try_from(place).ok().and_then(|p| items.get(p)).cloned().unwrap_or_default())
        }
        (Value::List(_), other) => {
            wrong("ListElementAccessByNonInteger", format!("a list has no element `{}`", other.type_name()))
        }
        (Value::Map(entries), Value::Text(key)) => Ok(entries.get(&**key).cloned().unwrap_or_default()),
        (Value::Map(_), other) => {
            wrong("MapElementAccessByNonString", format!("a map has no entry `{}`", other.type_name()))
        }
        (other, _) => wrong("InvalidArgumentType", format!("a {} has no elements", other.type_name())),
    }
}

/// A part of a list, from one position up to another. Negative positions count from the end.
pub fn slice(subject: &Value, from: Option<&Value>, to: Option<&Value>) -> FunctionResult {
    let Value::List(items) = subject else {
        return if subject.is_null() { Ok(Value::Null) } else { Err(types("[..]", subject, &Value::Null)) };
    };
    let place = |bound: Option<&Value>, open: i64| -> Result<Option<usize>, FunctionError> {
        let at = match bound {
            None => open,
            Some(Value::Null) => return Ok(None),
            Some(Value::Integer(i)) => {
                if *i < 0 {
                    length(items.len()) + i
                } else {
                    *i
                }
            }
            Some(other) => return Err(types("[..]", subject, other)),
        };
        Ok(Some(usize::try_from(at.max(0)).map_or(items.len(), |at| at.min(items.len()))))
    };
    match (place(from, 0)?, place(to, length(items.len()))?) {
        (Some(from), Some(to)) => Ok(Value::list(items.get(from..to).unwrap_or_default().to_vec())),
        _ => Ok(Value::Null),
    }
}

#[cfg(test)]
mod tests {
    use super::super::functions::{FunctionContext, find};
    use super::super::value::GroupKey;
    use super::*;
    use proptest::prelude::*;

    fn int(n: i64) -> Value {
        Value::Integer(n)
    }

    fn made(function: &str, text: &str) -> Value {
        let around = FunctionContext { now: 0, longest_list: 10 };
        (find(function).unwrap().run)(&[Value::text(text)], &around).unwrap()
    }

    fn same(a: FunctionResult, b: Value) {
        assert_eq!(GroupKey(a.unwrap()), GroupKey(b));
    }

    #[test]
    fn arithmetic() {
        same(add(&int(1), &Value::Float(0.5)), Value::Float(1.5));
        same(divide(&int(-7), &int(2)), int(-3));
        same(modulo(&int(i64::MIN), &int(-1)), int(0));
        same(power(&int(2), &int(3)), Value::Float(8.0));
        same(add(&Value::text("a"), &int(1)), Value::text("a1"));
        same(add(&Value::list(vec![int(1)]), &int(2)), Value::list(vec![int(1), int(2)]));
        same(add(&int(0), &Value::list(vec![int(1)])), Value::list(vec![int(0), int(1)]));
        same(add(&Value::Null, &int(1)), Value::Null);
        for (wrong, detail) in [
            (add(&int(i64::MAX), &int(1)), "IntegerOverflow"),
            (divide(&int(1), &int(0)), "DivideByZero"),
            (divide(&int(i64::MIN), &int(-1)), "IntegerOverflow"),
            (negate(&int(i64::MIN)), "IntegerOverflow"),
            (subtract(&Value::text("a"), &int(1)), "InvalidArgumentType"),
            (add(&Value::Bool(true), &int(1)), "InvalidArgumentType"),
        ] {
            assert_eq!(wrong.unwrap_err().detail, detail);
        }
        assert!(matches!(divide(&Value::Float(1.0), &int(0)).unwrap(), Value::Float(f) if f.is_infinite()));
    }

    #[test]
    fn dates_and_durations() {
        let day = made("date", "1984-10-11");
        same(add(&day, &made("duration", "P1M")), made("date", "1984-11-11"));
        same(subtract(&day, &made("duration", "P1D")), made("date", "1984-10-10"));
        same(add(&made("duration", "P1D"), &made("duration", "PT1H")), made("duration", "P1DT1H"));
        same(multiply(&made("duration", "PT1H"), &Value::Float(1.5)), made("duration", "PT1H30M"));
        same(divide(&made("duration", "P1D"), &int(2)), made("duration", "PT12H"));
        let before = made("datetime", "2017-10-28T12:00[Europe/Stockholm]");
        same(add(&before, &made("duration", "P1D")), made("datetime", "2017-10-29T12:00[Europe/Stockholm]"));
        same(add(&before, &made("duration", "PT24H")), made("datetime", "2017-10-29T11:00[Europe/Stockholm]"));
        assert_eq!(add(&day, &int(1)).unwrap_err().detail, "InvalidArgumentType");
    }

    #[test]
    fn elements_and_slices() {
        let list = Value::list((1..=4).map(int).collect());
        same(element(&list, &int(-1)), int(4));
        same(element(&list, &int(9)), Value::Null);
        same(element(&list, &int(i64::MIN)), Value::Null);
        same(slice(&list, Some(&int(1)), Some(&int(-1))), Value::list(vec![int(2), int(3)]));
        same(slice(&list, None, Some(&int(2))), Value::list(vec![int(1), int(2)]));
        same(slice(&list, Some(&int(3)), Some(&int(1))), Value::list(vec![]));
        same(slice(&list, Some(&Value::Null), None), Value::Null);
        same(slice(&list, Some(&int(i64::MIN)), Some(&int(i64::MAX))), list.clone());
        assert_eq!(element(&list, &Value::text("x")).unwrap_err().detail, "ListElementAccessByNonInteger");
        assert_eq!(element(&Value::Map(Arc::default()), &int(1)).unwrap_err().detail, "MapElementAccessByNonString");
        assert_eq!(element(&int(1), &int(1)).unwrap_err().detail, "InvalidArgumentType");
        same(is_in(&int(9), &Value::list(vec![int(1), Value::Null])), Value::Null);
        same(is_in(&int(1), &Value::list(vec![int(1), Value::Null])), Value::Bool(true));
        same(is_in(&Value::Null, &Value::list(vec![])), Value::Bool(false));
        assert!(text_test(&int(1), &Value::text("a"), |a, b| a.contains(b)).is_null());
    }

    proptest! {
        #[test]
        fn three_valued_logic_obeys_de_morgan(a in prop::option::of(any::<bool>()), b in prop::option::of(any::<bool>())) {
            let not = |x: Option<bool>| x.map(|x| !x);
            prop_assert_eq!(not(and(a, b)), or(not(a), not(b)));
            prop_assert_eq!(xor(a, b), or(and(a, not(b)), and(not(a), b)).filter(|_| a.is_some() && b.is_some()));
            prop_assert_eq!(and(a, b), and(b, a));
        }

        #[test]
        fn integers_never_panic(a: i64, b: i64) {
            for operation in [add, subtract, multiply, divide, modulo, power] {
                let _ = operation(&int(a), &int(b));
                let _ = operation(&int(a), &Value::Float(b as f64));
                let _ = operation(&Value::duration(Duration { months: a, days: b, seconds: a, nanos: 0 }), &int(b));
                let _ = operation(&Value::Date(super::super::temporal::Date(a >> 24)), &Value::duration(Duration { months: b, days: a, seconds: b, nanos: 1 }));
            }
        }
    }
}
