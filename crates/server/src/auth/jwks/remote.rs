//! Keys that an issuer publishes at a URL, fetched again when they are old or when a token names an unknown one.

use super::{FILE_BYTES, KeySet, invalid};
use axum::http::Uri;
use lukasa_engine::telemetry::log;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Time};
use lukasa_store::Clock;
use parking_lot::Mutex;
use serde_json::json;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

/// Keys are fetched again after this long, so that a withdrawn key does not stay in force.
const FRESH_SECONDS: i64 = 15 * 60;
/// Keys that could not be fetched again stay in force for this long: longer than most failures of an issuer.
const LAST_SECONDS: i64 = 24 * 60 * 60;
/// At most one request in this time, because tokens with invented key ids cost a caller nothing.
const PAUSE_SECONDS: i64 = 30;
/// A request that needs the keys waits this long for the issuer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The keys at a URL.
pub struct KeyUrl {
    url: String,
    agent: Agent,
    clock: Arc<dyn Clock>,
    held: Mutex<Held>,
    /// Held by the thread that fetches.
    fetching: Mutex<()>,
}

#[derive(Clone)]
struct Held {
    keys: Arc<KeySet>,
    fetched: Time,
    /// When they were last requested, with or without success.
    tried: Time,
    failing: bool,
}

impl KeyUrl {
    /// Fetches the keys. Fails if the URL is not safe or has no keys, so that a mistake is noticed at the start.
    pub(super) fn open(url: &str, clock: Arc<dyn Clock>) -> Result<KeyUrl> {
        let local = check(url)?;
        let mut settings = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            // A redirect leads to a server that was not configured.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("lukasa/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build());
        if local {
            settings = settings.proxy(None);
        }
        let agent = settings.build().new_agent();
        let now = clock.now();
        let keys = Arc::new(fetch(&agent, url)?);
        let held = Held { keys, fetched: now, tried: now, failing: false };
        Ok(KeyUrl { url: url.to_owned(), agent, clock, held: Mutex::new(held), fetching: Mutex::new(()) })
    }

    /// The keys in force. Fetches them first if they are old; meanwhile other threads use the old ones.
    pub(super) fn current(&self) -> Result<Arc<KeySet>> {
        let held = self.held.lock().clone();
        if !self.is_within(held.fetched, FRESH_SECONDS)
            && !self.is_within(held.tried, PAUSE_SECONDS)
            && let Some(_only) = self.fetching.try_lock()
        {
            self.fetch();
        }
        self.in_force()
    }

    /// Fetches the keys again, for a token whose key is not among them.
    pub(super) fn renewed(&self) -> Result<Arc<KeySet>> {
        let _only = self.fetching.lock();
        let tried = self.held.lock().tried;
        if !self.is_within(tried, PAUSE_SECONDS) {
            self.fetch();
        }
        self.in_force()
    }

    fn in_force(&self) -> Result<Arc<KeySet>> {
        let held = self.held.lock().clone();
        if self.is_within(held.fetched, LAST_SECONDS) {
            return Ok(held.keys);
        }
        let message = format!("`{}` has not answered with keys for {} hours", self.url, LAST_SECONDS / 3_600);
        Err(Error::new(ErrorKind::Unavailable, ErrorCode::KeysUnreadable, message)
            .hint("no token is accepted until it does; the log has the reason"))
    }

    /// Replaces the keys. If that fails, the old ones stay.
    fn fetch(&self) {
        let fetched = fetch(&self.agent, &self.url);
        let now = self.clock.now();
        let mut held = self.held.lock();
        held.tried = now;
        match fetched {
            Ok(keys) => {
                (held.keys, held.fetched) = (Arc::new(keys), now);
                if std::mem::take(&mut held.failing) {
                    log::event(log::LogLevel::Info, "keys.recovered", &[]);
                }
            }
            // Logged once until it works again, to keep the log short.
            Err(e) if !std::mem::replace(&mut held.failing, true) => {
                log::event(
                    log::LogLevel::Warn,
                    "keys.failed",
                    &[("code", json!(e.code)), ("message", json!(e.message))],
                );
            }
            Err(_) => {}
        }
    }

    /// Whether a time is at most this long ago, and not in the future, where a corrected clock would leave it.
    fn is_within(&self, since: Time, seconds: i64) -> bool {
        (0..seconds * 1_000_000).contains(&(self.clock.now().0 - since.0))
    }
}

/// Checks that keys cannot be exchanged on their way: HTTPS, or HTTP on this machine. Returns whether it is on this
/// machine.
fn check(url: &str) -> Result<bool> {
    let parsed: Uri = url.parse().map_err(|_| invalid(format!("`{url}` is not a URL")))?;
    let host = parsed.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    match parsed.scheme_str() {
        Some("https") if !host.is_empty() => Ok(local),
        Some("http") if local => Ok(true),
        _ => Err(invalid(format!("`{url}` is neither an https URL nor an http one of this machine"))
            .hint("use https: over http, a third party can replace the keys and then sign tokens")),
    }
}

fn fetch(agent: &Agent, url: &str) -> Result<KeySet> {
    let unreachable = |why: String| {
        Error::new(ErrorKind::Unavailable, ErrorCode::KeysUnreadable, format!("`{url}`: {why}"))
            .hint("check the URL, which issuers publish as `jwks_uri`")
    };
    let mut answer = agent.get(url).call().map_err(|e| unreachable(e.to_string()))?;
    if answer.status().as_u16() != 200 {
        return Err(unreachable(format!("status {}", answer.status().as_u16())));
    }
    let body = answer.body_mut().with_config().limit(FILE_BYTES).read_to_string();
    let text = body.map_err(|e| unreachable(e.to_string()))?;
    KeySet::published(&text).map_err(|e| e.at(format!("`{url}`")))
}

#[cfg(test)]
mod tests;
