//! Functions of values: numbers, texts, lists, conversions, and in `moments` dates and times.

mod moments;

pub use moments::component;

use super::fault::FaultClass;
use super::value::Value;
use crate::convert::{length, to_i64};
use std::sync::Arc;

/// Why a function failed. The caller adds the position in the query.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionError {
    pub class: FaultClass,
    /// The detail in openCypher, for example `NumberOutOfRange`.
    pub detail: &'static str,
    pub message: String,
}

impl FunctionError {
    fn kind(function: &str, wanted: &str, got: &Value) -> FunctionError {
        let message = format!("{function} takes {wanted}, not {}", got.type_name());
        FunctionError { class: FaultClass::Type, detail: "InvalidArgumentType", message }
    }

    fn value(message: impl Into<String>) -> FunctionError {
        FunctionError { class: FaultClass::Argument, detail: "NumberOutOfRange", message: message.into() }
    }
}

/// The result of a function.
pub type FunctionResult = Result<Value, FunctionError>;

/// What a function depends on besides its arguments.
pub struct FunctionContext {
    /// The moment of the query, in nanoseconds since 1970.
    pub now: i128,
    /// The longest list that a function may return.
    pub longest_list: usize,
}

/// The longest text that a query may produce, in bytes.
pub const LONGEST_TEXT: usize = 16 << 20;

/// A function, with the least and the most arguments that it takes.
pub struct Function {
    pub least: usize,
    pub most: usize,
    pub run: fn(&[Value], &FunctionContext) -> FunctionResult,
}

/// The names of all functions of values, for completion. Dates and times have further ones, such as `date.truncate`.
pub const NAMES: &[&str] = &[
    "abs",
    "ceil",
    "floor",
    "round",
    "sqrt",
    "exp",
    "log",
    "log10",
    "sin",
    "cos",
    "tan",
    "cot",
    "asin",
    "acos",
    "atan",
    "atan2",
    "degrees",
    "radians",
    "haversin",
    "pi",
    "e",
    "sign",
    "toInteger",
    "toFloat",
    "toBoolean",
    "toString",
    "size",
    "head",
    "last",
    "tail",
    "reverse",
    "range",
    "coalesce",
    "toLower",
    "toUpper",
    "trim",
    "lTrim",
    "rTrim",
    "replace",
    "split",
    "left",
    "right",
    "substring",
    "date",
    "time",
    "localtime",
    "datetime",
    "localdatetime",
    "duration",
    "date.truncate",
    "datetime.truncate",
    "duration.between",
    "duration.inDays",
    "datetime.fromEpoch",
];

/// The function of a name, ignoring case.
pub fn find(name: &str) -> Option<Function> {
    let name = name.to_ascii_lowercase();
    let of = |least, most, run| Some(Function { least, most, run });
    match name.as_str() {
        "abs" => of(1, 1, |a, _| match &a[0] {
            Value::Integer(n) => {
                n.checked_abs().map(Value::Integer).ok_or_else(|| FunctionError::value("the number is too large"))
            }
            other => float("abs", other, f64::abs),
        }),
        "ceil" => of(1, 1, |a, _| float("ceil", &a[0], f64::ceil)),
        "floor" => of(1, 1, |a, _| float("floor", &a[0], f64::floor)),
        "round" => of(1, 2, round),
        "sqrt" => of(1, 1, |a, _| float("sqrt", &a[0], f64::sqrt)),
        "exp" => of(1, 1, |a, _| float("exp", &a[0], f64::exp)),
        "log" => of(1, 1, |a, _| float("log", &a[0], f64::ln)),
        "log10" => of(1, 1, |a, _| float("log10", &a[0], f64::log10)),
        "sin" => of(1, 1, |a, _| float("sin", &a[0], f64::sin)),
        "cos" => of(1, 1, |a, _| float("cos", &a[0], f64::cos)),
        "tan" => of(1, 1, |a, _| float("tan", &a[0], f64::tan)),
        "cot" => of(1, 1, |a, _| float("cot", &a[0], |x| 1.0 / x.tan())),
        "asin" => of(1, 1, |a, _| float("asin", &a[0], f64::asin)),
        "acos" => of(1, 1, |a, _| float("acos", &a[0], f64::acos)),
        "atan" => of(1, 1, |a, _| float("atan", &a[0], f64::atan)),
        "degrees" => of(1, 1, |a, _| float("degrees", &a[0], f64::to_degrees)),
        "radians" => of(1, 1, |a, _| float("radians", &a[0], f64::to_radians)),
        "haversin" => of(1, 1, |a, _| float("haversin", &a[0], |x| (1.0 - x.cos()) / 2.0)),
        "atan2" => of(2, 2, |a, _| match (number(&a[0]), number(&a[1])) {
            (Some(y), Some(x)) => Ok(Value::Float(y.atan2(x))),
            _ if a.iter().any(Value::is_null) => Ok(Value::Null),
            _ => Err(FunctionError::kind("atan2", "numbers", if number(&a[0]).is_none() { &a[0] } else { &a[1] })),
        }),
        "pi" => of(0, 0, |_, _| Ok(Value::Float(std::f64::consts::PI))),
        "e" => of(0, 0, |_, _| Ok(Value::Float(std::f64::consts::E))),
        "sign" => of(1, 1, |a, _| match &a[0] {
            Value::Null => Ok(Value::Null),
            Value::Integer(n) => Ok(Value::Integer(n.signum())),
            Value::Float(f) => Ok(Value::Integer(if *f > 0.0 {
                1
            } else if *f < 0.0 {
                -1
            } else {
                0
            })),
            other => Err(FunctionError::kind("sign", "a number", other)),
        }),
        "tointeger" => of(1, 1, |a, _| to_integer(&a[0])),
        "tofloat" => of(1, 1, |a, _| to_float(&a[0])),
        "toboolean" => of(1, 1, |a, _| to_boolean(&a[0])),
        "tostring" => of(1, 1, |a, _| to_text(&a[0])),
        "size" => of(1, 1, |a, _| match &a[0] {
            Value::Null => Ok(Value::Null),
            Value::List(items) => Ok(Value::Integer(length(items.len()))),
            Value::Text(text) => Ok(Value::Integer(length(text.chars().count()))),
            Value::Map(entries) => Ok(Value::Integer(length(entries.len()))),
            other => Err(FunctionError::kind("size", "a list or a text", other)),
        }),
        "head" => of(1, 1, |a, _| list("head", &a[0], |items| items.first().cloned().unwrap_or_default())),
        "last" => of(1, 1, |a, _| list("last", &a[0], |items| items.last().cloned().unwrap_or_default())),
        "tail" => of(1, 1, |a, _| list("tail", &a[0], |items| Value::list(items.iter().skip(1).cloned().collect()))),
        "reverse" => of(1, 1, |a, _| match &a[0] {
            Value::Text(text) => Ok(Value::text(&text.chars().rev().collect::<String>())),
            other => list("reverse", other, |items| Value::list(items.iter().rev().cloned().collect())),
        }),
        "range" => of(2, 3, range),
        "coalesce" => of(1, usize::MAX, |a, _| Ok(a.iter().find(|v| !v.is_null()).cloned().unwrap_or_default())),
        "tolower" | "lower" => of(1, 1, |a, _| text("toLower", a, |t| t.to_lowercase())),
        "toupper" | "upper" => of(1, 1, |a, _| text("toUpper", a, |t| t.to_uppercase())),
        "trim" => of(1, 1, |a, _| text("trim", a, |t| t.trim().to_string())),
        "ltrim" => of(1, 1, |a, _| text("lTrim", a, |t| t.trim_start().to_string())),
        "rtrim" => of(1, 1, |a, _| text("rTrim", a, |t| t.trim_end().to_string())),
        "replace" => of(3, 3, |a, _| match (&a[0], &a[1], &a[2]) {
            (Value::Text(t), Value::Text(from), Value::Text(to)) => {
                let grown = t.matches(&**from).count().saturating_mul(to.len().saturating_sub(from.len()));
                if t.len().saturating_add(grown) > LONGEST_TEXT {
                    return Err(FunctionError::value("the text would be longer than 16 MB"));
                }
                Ok(Value::text(&t.replace(&**from, to)))
            }
            _ => null_or_wrong("replace", "texts", a),
        }),
        "split" => of(2, 2, |a, around| match (&a[0], &a[1]) {
            (Value::Text(t), Value::Text(by)) if t.matches(&**by).count() > around.longest_list => {
                Err(FunctionError::value("the list would be too long"))
            }
            (Value::Text(t), Value::Text(by)) if by.is_empty() => {
                Ok(Value::list(t.chars().map(|c| Value::text(&c.to_string())).collect()))
            }
            (Value::Text(t), Value::Text(by)) => Ok(Value::list(t.split(&**by).map(Value::text).collect())),
            _ => null_or_wrong("split", "texts", a),
        }),
        "left" => of(2, 2, |a, _| cut("left", a, |chars, n| chars[..n.min(chars.len())].iter().collect())),
        "right" => {
            of(2, 2, |a, _| cut("right", a, |chars, n| chars[chars.len() - n.min(chars.len())..].iter().collect()))
        }
        "substring" => of(2, 3, substring),
        _ => moments::find(&name),
    }
}

/// Null if an argument is null, otherwise the error for the first argument of a wrong type.
fn null_or_wrong(function: &str, wanted: &str, arguments: &[Value]) -> FunctionResult {
    if arguments.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let odd = arguments.iter().find(|a| !matches!(a, Value::Text(_))).unwrap_or(&arguments[0]);
    Err(FunctionError::kind(function, wanted, odd))
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(n) => Some(*n as f64),
        Value::Float(f) => Some(*f),
        _ => None,
    }
}

fn float(function: &str, value: &Value, run: fn(f64) -> f64) -> FunctionResult {
    match number(value) {
        Some(x) => Ok(Value::Float(run(x))),
        None if value.is_null() => Ok(Value::Null),
        None => Err(FunctionError::kind(function, "a number", value)),
    }
}

/// Rounds to the nearest integer, halves upwards; or to a number of digits, halves away from zero.
fn round(a: &[Value], _: &FunctionContext) -> FunctionResult {
    let Some(digits) = a.get(1) else {
        return float("round", &a[0], |x| {
            let down = x.floor();
            if x - down >= 0.5 { down + 1.0 } else { down }
        });
    };
    match (number(&a[0]), digits) {
        (Some(x), Value::Integer(n)) if (0..=15).contains(n) => {
            let scale = 10f64.powi(i32::try_from(*n).expect("there are at most 15 digits"));
            Ok(Value::Float((x * scale).round() / scale))
        }
        _ if a.iter().any(Value::is_null) => Ok(Value::Null),
        _ => Err(FunctionError::value("round takes 0 to 15 digits")),
    }
}

fn list(function: &str, value: &Value, run: impl Fn(&[Value]) -> Value) -> FunctionResult {
    match value {
        Value::Null => Ok(Value::Null),
        Value::List(items) => Ok(run(items)),
        other => Err(FunctionError::kind(function, "a list", other)),
    }
}

fn text(function: &str, a: &[Value], run: impl Fn(&str) -> String) -> FunctionResult {
    match &a[0] {
        Value::Text(t) => Ok(Value::text(&run(t))),
        _ => null_or_wrong(function, "a text", a),
    }
}

fn cut(function: &str, a: &[Value], run: impl Fn(&[char], usize) -> String) -> FunctionResult {
    match (&a[0], &a[1]) {
        (Value::Text(t), Value::Integer(n)) => {
            let n = usize::try_from(*n)
                .map_err(|_| FunctionError::value(format!("{function} takes no negative length")))?;
            Ok(Value::text(&run(&t.chars().collect::<Vec<_>>(), n)))
        }
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        (Value::Text(_), other) => Err(FunctionError::kind(function, "a length", other)),
        (other, _) => Err(FunctionError::kind(function, "a text", other)),
    }
}

fn substring(a: &[Value], _: &FunctionContext) -> FunctionResult {
    let (from, count) = match (&a[1], a.get(2)) {
        _ if a[0].is_null() => return Ok(Value::Null),
        (Value::Integer(from), None) => (*from, i64::MAX),
        (Value::Integer(from), Some(Value::Integer(count))) => (*from, *count),
        (other, None) => return Err(FunctionError::kind("substring", "an integer", other)),
        (_, Some(other)) => return Err(FunctionError::kind("substring", "an integer", other)),
    };
    if from < 0 || count < 0 {
        return Err(FunctionError::value("substring takes no negative place or length"));
    }
    let clamped = |n: i64| usize::try_from(n).unwrap_or(usize::MAX);
    match &a[0] {
        Value::Text(t) => {
            let part: String = t.chars().skip(clamped(from)).take(clamped(count)).collect();
            Ok(Value::text(&part))
        }
        other => Err(FunctionError::kind("substring", "a text", other)),
    }
}

fn range(a: &[Value], around: &FunctionContext) -> FunctionResult {
    let integer = |v: &Value| match v {
        Value::Integer(n) => Ok(i128::from(*n)),
        other => Err(FunctionError { class: FaultClass::Argument, ..FunctionError::kind("range", "integers", other) }),
    };
    let (from, to) = (integer(&a[0])?, integer(&a[1])?);
    let step = a.get(2).map_or(Ok(1), integer)?;
    if step == 0 {
        return Err(FunctionError::value("the step of a range is 0"));
    }
    let count = if (to - from) * step.signum() < 0 { 0 } else { (to - from) / step + 1 };
    if count > around.longest_list as i128 {
        return Err(FunctionError::value(format!("a range of {count} numbers is longer than {}", around.longest_list)));
    }
    let element = |i| i64::try_from(from + i * step).expect("elements are between the two bounds");
    Ok(Value::list((0..count).map(|i| Value::Integer(element(i))).collect()))
}

fn to_integer(value: &Value) -> FunctionResult {
    let whole = |f: f64| {
        let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&f);
        if fits { Value::Integer(to_i64(f)) } else { Value::Null }
    };
    match value {
        Value::Null => Ok(Value::Null),
        Value::Integer(n) => Ok(Value::Integer(*n)),
        Value::Float(f) => Ok(whole(*f)),
        Value::Text(t) => {
            let t = t.trim();
            let parsed = t.parse::<i64>().map(Value::Integer);
            Ok(parsed.unwrap_or_else(|_| decimal(t).map_or(Value::Null, whole)))
        }
        other => Err(conversion("toInteger", other)),
    }
}

/// Parses a number. Rejects `inf` and `nan`, which Rust's parser accepts.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E'));
    if plain { text.parse().ok() } else { None }
}

fn to_float(value: &Value) -> FunctionResult {
    match value {
        Value::Null => Ok(Value::Null),
        Value::Integer(n) => Ok(Value::Float(*n as f64)),
        Value::Float(f) => Ok(Value::Float(*f)),
        Value::Text(t) => Ok(decimal(t.trim()).map_or(Value::Null, Value::Float)),
        other => Err(conversion("toFloat", other)),
    }
}

fn to_boolean(value: &Value) -> FunctionResult {
    match value {
        Value::Null => Ok(Value::Null),
        Value::Bool(b) => Ok(Value::Bool(*b)),
        Value::Text(t) => Ok(match t.trim().to_ascii_lowercase().as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::Null,
        }),
        other => Err(conversion("toBoolean", other)),
    }
}

fn to_text(value: &Value) -> FunctionResult {
    Ok(Value::Text(match value {
        Value::Null => return Ok(Value::Null),
        Value::Text(t) => Arc::clone(t),
        Value::Bool(b) => b.to_string().into(),
        Value::Integer(n) => n.to_string().into(),
        Value::Float(f) => float_text(*f).into(),
        Value::Date(v) => v.to_string().into(),
        Value::LocalTime(v) => v.to_string().into(),
        Value::Time(v) => v.to_string().into(),
        Value::LocalDateTime(v) => v.to_string().into(),
        Value::DateTime(v) => v.to_string().into(),
        Value::Duration(v) => v.to_string().into(),
        other => return Err(conversion("toString", other)),
    }))
}

/// Always with a decimal point, and with an exponent for large and small numbers.
pub fn float_text(f: f64) -> String {
    match f {
        _ if f.is_nan() => "NaN".into(),
        _ if f.is_infinite() => if f > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        _ if f != 0.0 && !(1e-3..1e7).contains(&f.abs()) => {
            let text = format!("{f:E}");
            if text.contains('.') { text } else { text.replacen('E', ".0E", 1) }
        }
        _ => format!("{f:?}"),
    }
}

fn conversion(function: &str, value: &Value) -> FunctionError {
    let message = format!("{function} cannot take a {}", value.type_name());
    FunctionError { class: FaultClass::Type, detail: "InvalidArgumentValue", message }
}

#[cfg(test)]
mod tests {
    use super::super::value::{GroupKey, equals};
    use super::*;

    const AROUND: FunctionContext = FunctionContext { now: 1_700_000_000_000_000_000, longest_list: 1_000 };

    fn call(name: &str, arguments: &[Value]) -> FunctionResult {
        let function = find(name).unwrap_or_else(|| panic!("no function {name}"));
        assert!((function.least..=function.most).contains(&arguments.len()));
        (function.run)(arguments, &AROUND)
    }

    fn int(n: i64) -> Value {
        Value::Integer(n)
    }

    #[test]
    fn functions_of_values() {
        let t = Value::text;
        let ints = |n: &[i64]| Value::list(n.iter().map(|n| int(*n)).collect());
        for (name, arguments, want) in [
            ("abs", vec![int(-3)], int(3)),
            ("ROUND", vec![Value::Float(-1.5)], Value::Float(-1.0)),
            ("sign", vec![Value::Float(-0.5)], int(-1)),
            ("toInteger", vec![t(" 2.9 ")], int(2)),
            ("toInteger", vec![t("foo")], Value::Null),
            ("toInteger", vec![t("nan")], Value::Null),
            ("toFloat", vec![t("1.5e3")], Value::Float(1500.0)),
            ("toBoolean", vec![t("TRUE")], Value::Bool(true)),
            ("toString", vec![Value::Float(1.0)], t("1.0")),
            ("size", vec![t("añb")], int(3)),
            ("reverse", vec![t("abc")], t("cba")),
            ("range", vec![int(1), int(7), int(3)], ints(&[1, 4, 7])),
            ("range", vec![int(3), int(1), int(-1)], ints(&[3, 2, 1])),
            ("range", vec![int(3), int(1)], ints(&[])),
            ("range", vec![int(i64::MIN), int(i64::MIN)], ints(&[i64::MIN])),
            ("tail", vec![ints(&[1, 2])], ints(&[2])),
            ("head", vec![ints(&[])], Value::Null),
            ("coalesce", vec![Value::Null, int(2)], int(2)),
            ("substring", vec![t("0123456"), int(1), int(2)], t("12")),
            ("left", vec![t("abc"), int(9)], t("abc")),
            ("right", vec![t("abc"), int(2)], t("bc")),
            ("split", vec![t("a,b"), t(",")], Value::list(vec![t("a"), t("b")])),
            ("trim", vec![Value::Null], Value::Null),
        ] {
            let got = call(name, &arguments).unwrap_or_else(|e| panic!("{name}: {e:?}"));
            assert_eq!(GroupKey(got), GroupKey(want), "{name} {arguments:?}");
        }
        assert_eq!(equals(&call("sqrt", &[int(16)]).unwrap(), &Value::Float(4.0)), Some(true));
        assert!(matches!(call("log", &[int(-1)]).unwrap(), Value::Float(f) if f.is_nan()));
    }

    #[test]
    fn wrong_arguments_are_reported() {
        for (name, arguments, detail) in [
            ("abs", vec![Value::text("x")], "InvalidArgumentType"),
            ("size", vec![int(1)], "InvalidArgumentType"),
            ("toInteger", vec![Value::list(vec![])], "InvalidArgumentValue"),
            ("range", vec![int(1), int(2), int(0)], "NumberOutOfRange"),
            ("range", vec![int(1), int(1_000_000_000_000)], "NumberOutOfRange"),
            ("range", vec![int(i64::MIN), int(i64::MAX)], "NumberOutOfRange"),
            ("range", vec![Value::Float(1.0), int(2)], "InvalidArgumentType"),
            ("left", vec![Value::text("a"), int(-1)], "NumberOutOfRange"),
            ("substring", vec![Value::text("a"), int(-1)], "NumberOutOfRange"),
        ] {
            assert_eq!(call(name, &arguments).unwrap_err().detail, detail, "{name} {arguments:?}");
        }
        assert!(NAMES.iter().all(|name| find(name).is_some()));
        assert!(find("foo").is_none());
        for (f, want) in
            [(1e10, "1.0E10"), (1.5, "1.5"), (1e-5, "1.0E-5"), (0.0, "0.0"), (1.25e30, "1.25E30"), (100.0, "100.0")]
        {
            assert_eq!(float_text(f), want);
        }
    }
}
