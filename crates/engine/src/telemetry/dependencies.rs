//! Writes the errors and warnings that dependencies report through `tracing` and `log` to the log.
//!
//! Only the text of a report is used, shortened and without its other fields, because these may contain contents of
//! requests.

use super::log::{self, LogLevel};
use serde_json::json;
use std::fmt::{Debug, Write as _};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

/// Longest text of a report, in bytes.
const MESSAGE_BYTES: usize = 200;

/// Installs the bridge to the log. Only the first call in a process has an effect.
pub fn follow() {
    // A subscriber that a program embedding this crate has set stays in place.
    let _ = tracing::subscriber::set_global_default(Bridge(to_log));
    static TO_LOG: Bridge = Bridge(to_log);
    if ::log::set_logger(&TO_LOG).is_ok() {
        ::log::set_max_level(::log::LevelFilter::Warn);
    }
}

/// Takes a level, the module that reports, and the text.
type Sink = fn(LogLevel, &str, &str);

fn to_log(level: LogLevel, module: &str, message: &str) {
    log::event(level, "dependency.reported", &[("module", json!(module)), ("message", json!(message))]);
}

struct Bridge(Sink);

impl Bridge {
    fn pass(&self, level: LogLevel, module: &str, message: &str) {
        (self.0)(level, module, &message[..message.floor_char_boundary(MESSAGE_BYTES)]);
    }
}

impl Subscriber for Bridge {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= tracing::Level::WARN
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(tracing::level_filters::LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        let level = if *event.metadata().level() == tracing::Level::ERROR { LogLevel::Error } else { LogLevel::Warn };
        self.pass(level, event.metadata().target(), &message.0);
    }

    // No span is enabled, so none is entered, but the trait requires an id.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl ::log::Log for Bridge {
    fn enabled(&self, metadata: &::log::Metadata<'_>) -> bool {
        metadata.level() <= ::log::Level::Warn
    }

    fn log(&self, record: &::log::Record<'_>) {
        if ::log::Log::enabled(self, record.metadata()) {
            let level = if record.level() == ::log::Level::Error { LogLevel::Error } else { LogLevel::Warn };
            self.pass(level, record.target(), &record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// The text of an event.
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let _ = write!(self.0, "{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;
    use parking_lot::Mutex;

    static PASSED: Mutex<Vec<(LogLevel, String, String)>> = Mutex::new(Vec::new());

    fn note(level: LogLevel, module: &str, message: &str) {
        PASSED.lock().push((level, module.into(), message.into()));
    }

    #[test]
    fn errors_and_warnings_are_passed_on_without_fields() {
        let found = |module: &str| -> Vec<(LogLevel, String)> {
            let passed = PASSED.lock();
            passed.iter().filter(|(_, of, _)| of == module).map(|(level, _, text)| (*level, text.clone())).collect()
        };
        tracing::subscriber::with_default(Bridge(note), || {
            let span = tracing::error_span!(target: "by_tracing", "a request");
            let _entered = span.enter();
            tracing::error!(target: "by_tracing", body = "what the user sent", "the peer {} is gone", 7);
            tracing::warn!(target: "by_tracing", "{}", "ä".repeat(MESSAGE_BYTES));
            tracing::info!(target: "by_tracing", "a peer has come");
        });
        let [first, second] = &found("by_tracing")[..] else { panic!("{:?}", found("by_tracing")) };
        assert_eq!(*first, (LogLevel::Error, "the peer 7 is gone".into()));
        assert_eq!((second.0, second.1.len()), (LogLevel::Warn, MESSAGE_BYTES));

        for level in [::log::Level::Info, ::log::Level::Warn, ::log::Level::Error] {
            let record = ::log::Record::builder().level(level).target("by_log").args(format_args!("a peer")).build();
            ::log::Log::log(&Bridge(note), &record);
        }
        assert_eq!(found("by_log"), [(LogLevel::Warn, "a peer".into()), (LogLevel::Error, "a peer".into())]);
    }
}
