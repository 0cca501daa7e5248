//! An end that comes: a process that was told to end does so in a bounded time, whatever hangs.

use lukasa_engine::telemetry::log;
use serde_json::json;
use std::time::Duration;

/// For what is left when requests have had their time: recording, closing the store.
const CLOSING: Duration = Duration::from_secs(10);

/// To be called when the process was told to end. If it is still there after `requests` and some time to close, threads hang
/// in a store or a file system that does not answer; nobody can stop them but by ending the process.
pub fn within(requests: Duration) {
    let all = requests + CLOSING;
    let waiting = std::thread::Builder::new().name("ending".into()).spawn(move || {
        std::thread::sleep(all);
        log::event(log::Level::Error, "serve.abandoned", &[("seconds", json!(all.as_secs()))]);
        std::process::exit(ABANDONED);
    });
    if let Err(e) = waiting {
        log::event(log::Level::Error, "serve.unlimited", &[("message", json!(e.to_string()))]);
    }
}

/// The exit code of a process that did not end in order.
const ABANDONED: i32 = 1;
