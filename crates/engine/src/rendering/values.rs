//! Values of a response as text.

use lukasa_model::shown;
use serde_json::Value;

/// The items of a list field; empty if there is no such list.
pub fn list<'a>(response: &'a Value, field: &str) -> Vec<&'a Value> {
    response[field].as_array().into_iter().flatten().collect()
}

/// A field as text.
pub fn at(row: &Value, field: &str) -> String {
    plain(&row[field])
}

/// A timestamp to the second; JSON has the full precision.
pub fn moment(row: &Value, field: &str) -> String {
    let text = at(row, field);
    match text.split_once('.') {
        Some((seconds, _)) if text.ends_with('Z') => format!("{seconds}Z"),
        _ => text,
    }
}

/// Text without quotes, lists with commas, an empty string for null and false.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(false) => String::new(),
        Value::Bool(true) => "yes".into(),
        Value::String(text) => safe(text),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().map(plain).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// A property value: text unchanged, everything else as JSON.
pub fn exact(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => safe(text),
        other => other.to_string(),
    }
}

/// Text without control characters that a terminal would interpret.
pub fn safe(text: &str) -> String {
    shown::safe(text).into_owned()
}

/// A number with up to four decimals, or in scientific notation.
pub fn small(value: &Value) -> String {
    match value.as_f64() {
        Some(number) if number != 0.0 && number.abs() < 0.001 => format!("{number:.2e}"),
        Some(number) => format!("{:.4}", number).trim_end_matches('0').trim_end_matches('.').to_string(),
        None => String::new(),
    }
}

/// A fact by its type and key, a relationship by its ends, anything else by its id.
pub fn name(row: &Value) -> String {
    match row["key"].as_str() {
        Some(key) => format!("{}:{}", at(row, "type"), safe(key)),
        None if row["between"].is_array() => {
            format!("{} —{}→ {}", plain(&row["between"][0]), at(row, "type"), plain(&row["between"][1]))
        }
        None => {
            let id = if row["id"].is_string() { at(row, "id") } else { at(row, "object") };
            format!("{} {id}", at(row, "type"))
        }
    }
}

/// A fact by its name, with a mark if it has ended.
pub fn name_and_end(row: &Value) -> String {
    if row["ended"] == true { format!("{} (ended)", name(row)) } else { name(row) }
}

/// The lines of calls, with a label, and how many more there are.
pub fn calls_at(row: &Value) -> String {
    let lines: Vec<String> = list(row, "call_lines").into_iter().map(plain).collect();
    let more = row["calls"].as_u64().map(|n| n.saturating_sub(lines.len() as u64)).filter(|n| *n > 0);
    match (lines.is_empty(), more) {
        (true, None) => String::new(),
        (_, None) => format!("calls at {}", lines.join(", ")),
        (_, Some(more)) => format!("calls at {} and {more} more", lines.join(", ")),
    }
}

/// The confidence of an uncertain link, and its derivation.
pub fn confidence(row: &Value) -> String {
    match row["confidence"].as_f64() {
        Some(confidence) if confidence < 1.0 => {
            let by = at(row, "derivation").replace('_', " ");
            let confidence = small(&row["confidence"]);
            if by.is_empty() { format!("{confidence} sure") } else { format!("{confidence} {by}") }
        }
        _ => String::new(),
    }
}
