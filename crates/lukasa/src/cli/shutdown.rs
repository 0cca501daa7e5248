//! Ends a process within a bounded time after a signal, even if threads hang.

use lukasa_engine::telemetry::log;
use serde_json::json;
use std::time::Duration;

/// Time to record and to close the store after requests have had their time.
const CLOSING: Duration = Duration::from_secs(10);

/// Call this when the process has been asked to end. If it still runs after `requests` plus the time to close, threads
/// hang in a store or file system that does not respond; only exiting the process stops them.
pub fn within(requests: Duration) {
    let all = requests + CLOSING;
    let waiting = std::thread::Builder::new().name("ending".into()).spawn(move || {
        std::thread::sleep(all);
        log::event(log::LogLevel::Error, "serve.abandoned", &[("seconds", json!(all.as_secs()))]);
        std::process::exit(ABANDONED);
    });
    if let Err(e) = waiting {
        log::event(log::LogLevel::Error, "serve.unlimited", &[("message", json!(e.to_string()))]);
    }
}

/// The exit code of a process that could not end cleanly.
const ABANDONED: i32 = 1;
