//! Log events as lines on standard error: JSON, or text for people. Each contains the id of its request.

use crate::audit::AuditKey;
use crate::redact::redact;
use lukasa_model::shown::{safe_json, without_credentials};
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

/// How important an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum LogLevel {
    Off = 0,
    Error = 1,
    Warn = 2,
    Info = 3,
    Debug = 4,
}

impl LogLevel {
    pub const NAMES: [&str; 5] = ["off", "error", "warn", "info", "debug"];

    pub fn parse(name: &str) -> Option<LogLevel> {
        let all = [LogLevel::Off, LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug];
        all.into_iter().find(|level| level.name() == name)
    }

    pub fn name(self) -> &'static str {
        LogLevel::NAMES[self as usize]
    }
}

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Json,
    Text,
}

static LEVEL: AtomicU8 = AtomicU8::new(LogLevel::Warn as u8);
static AS_JSON: AtomicBool = AtomicBool::new(false);
static KEY: OnceLock<Arc<AuditKey>> = OnceLock::new();

thread_local! {
    /// The request this thread works on.
    static REQUEST: RefCell<Option<Map<String, Value>>> = const { RefCell::new(None) };
}

/// Sets level and format. To be called once, at the start of the process.
pub fn set(level: LogLevel, format: LogFormat) {
    LEVEL.store(level as u8, Ordering::Relaxed);
    AS_JSON.store(format == LogFormat::Json, Ordering::Relaxed);
}

/// Sets the key that hashes user names, the same as for the audit record. Only the first call has an effect.
pub fn set_key(key: Arc<AuditKey>) {
    KEY.get_or_init(|| key);
}

/// The hash of a user's name, for the log. None without a key to hash it with.
pub fn hashed_user(tenant: &str, user: &str) -> Option<String> {
    KEY.get().map(|key| key.user(tenant, user))
}

/// Whether events of a level are written.
pub fn is_on(level: LogLevel) -> bool {
    level as u8 <= LEVEL.load(Ordering::Relaxed)
}

/// Writes an event. Names of fields are plain words; values are counts, codes and names, never contents.
pub fn event(level: LogLevel, name: &str, fields: &[(&str, Value)]) {
    if level == LogLevel::Off || !is_on(level) {
        return;
    }
    let request = REQUEST.with_borrow(Clone::clone).unwrap_or_default();
    let fields: Vec<(&str, Value)> = fields.iter().map(|(name, value)| (*name, without_secrets(value))).collect();
    let format = if AS_JSON.load(Ordering::Relaxed) { LogFormat::Json } else { LogFormat::Text };
    let line = line(format, &now(), level, name, &request, &fields);
    // One write, so that lines of two threads do not mix. An error cannot be reported anywhere, so it is ignored.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// A value with secrets redacted: names and messages come from clients and may contain anything.
fn without_secrets(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(redact(text).into_owned()),
        Value::Array(all) => all.iter().map(without_secrets).collect(),
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), without_secrets(value))).collect(),
        other => other.clone(),
    }
}

/// Adds the fields of a request to the events of this thread, until it is dropped.
pub struct RequestFields(Option<Map<String, Value>>);

impl RequestFields {
    pub fn new(fields: &[(&str, Option<&str>)]) -> RequestFields {
        let given = fields.iter().filter_map(|(name, value)| Some(((*name).to_string(), json!((*value)?))));
        RequestFields(REQUEST.replace(Some(given.collect())))
    }
}

impl Drop for RequestFields {
    fn drop(&mut self) {
        REQUEST.set(self.0.take());
    }
}

fn now() -> String {
    let now = jiff::Timestamp::now();
    format!("{now:.3}")
}

fn line(
    format: LogFormat,
    now: &str,
    level: LogLevel,
    name: &str,
    request: &Map<String, Value>,
    fields: &[(&str, Value)],
) -> String {
    if format == LogFormat::Json {
        let mut all = Map::new();
        all.insert("ts".into(), json!(now));
        all.insert("level".into(), json!(level.name()));
        all.insert("event".into(), json!(name));
        all.extend(request.iter().map(|(name, value)| (name.clone(), value.clone())));
        let given = fields.iter().filter(|(_, value)| !value.is_null());
        all.extend(given.map(|(name, value)| ((*name).to_string(), value.clone())));
        return format!("{}\n", shown(&Value::Object(all).to_string()));
    }
    let mut text = format!("{now} {:<5} {name}", level.name());
    let all = request.iter().map(|(name, value)| (name.as_str(), value)).chain(fields.iter().map(|(n, v)| (*n, v)));
    for (name, value) in all.filter(|(_, value)| !value.is_null()) {
        match value.as_str().filter(|text| text.chars().all(|c| c.is_alphanumeric() || "-_.:*/".contains(c))) {
            // Any other text is quoted, so that a line break in it does not begin a new line.
            Some(plain) if !plain.is_empty() => drop(write!(text, " {name}={plain}")),
            _ => drop(write!(text, " {name}={}", safe_json(&value.to_string()))),
        }
    }
    let mut text = without_credentials(&text).into_owned();
    text.push('\n');
    text
}

/// A line of JSON with characters escaped that a terminal would interpret.
fn shown(json: &str) -> String {
    safe_json(&without_credentials(json)).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_it_contains() {
        let request = Map::from_iter([("request_id".to_string(), json!("r1"))]);
        let fields = [("agent", json!("a\nb \u{1b}[1m")), ("count", json!(3)), ("none", Value::Null)];
        let of = |format| line(format, "2026-01-01T00:00:00.000Z", LogLevel::Info, "graph.expand", &request, &fields);
        let text = of(LogFormat::Text);
        assert_eq!(
            text,
            "2026-01-01T00:00:00.000Z info  graph.expand request_id=r1 agent=\"a\\nb \\u001b[1m\" count=3\n"
        );
        let json = of(LogFormat::Json);
        assert_eq!(json.matches('\n').count(), 1);
        let read: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (&read["event"], &read["request_id"], &read["count"]),
            (&json!("graph.expand"), &json!("r1"), &json!(3))
        );
        assert!(read.get("none").is_none());
    }

    #[test]
    fn an_event_has_no_credentials_and_nothing_that_steers_a_terminal() {
        let fields =
            [("message", json!("postgres://ann:HIDDEN@db/shop: \u{202e}no")), ("url", json!("http://a:HIDDEN@b"))];
        for format in [LogFormat::Text, LogFormat::Json] {
            let line = line(format, "now", LogLevel::Warn, "store.lost", &Map::new(), &fields);
            assert!(!line.contains("HIDDEN") && !line.contains('\u{202e}'), "{line}");
            assert!(line.contains("postgres://[redacted]@db/shop") && line.contains("\\u202e"), "{line}");
        }
    }

    #[test]
    fn events_have_the_request_of_their_thread_until_it_ends() {
        let current = || REQUEST.with_borrow(|request| request.as_ref().map(|fields| fields["request_id"].clone()));
        assert_eq!(current(), None);
        let outer = RequestFields::new(&[("request_id", Some("r1")), ("agent", None)]);
        {
            let _inner = RequestFields::new(&[("request_id", Some("r2"))]);
            assert_eq!(current(), Some(json!("r2")));
        }
        assert_eq!(current(), Some(json!("r1")));
        drop(outer);
        assert_eq!(current(), None);
    }

    #[test]
    fn no_secret_is_logged() {
        let value = json!({"why": "no route to postgres://ann:letmein@db", "args": ["password=hunter2hunter2", 3]});
        let redacted = json!({"why": "no route to postgres://ann:[redacted]@db", "args": ["password=[redacted]", 3]});
        assert_eq!(without_secrets(&value), redacted);
    }

    #[test]
    fn levels_have_names() {
        for name in LogLevel::NAMES {
            assert_eq!(LogLevel::parse(name).unwrap().name(), name);
        }
        assert_eq!(LogLevel::parse("loud"), None);
    }
}
