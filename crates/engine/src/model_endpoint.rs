//! Requests to a language model behind an OpenAI-compatible endpoint, with retries, timeouts and size limits.

use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

/// Default timeout of a request.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum bytes of a response. A page of embeddings is a few megabytes.
const ANSWER_BYTES: u64 = 16 << 20;
/// Maximum attempts of one request, including the first.
const TRIES: u32 = 4;
/// The pause before the second attempt. It doubles before each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause between attempts. If an endpoint requests a longer one, the request fails.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Maximum characters of an endpoint's own error message that are shown.
const REASON_CHARS: usize = 200;

/// The URL of a model's endpoint, the name of the model there, and how to reach it.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The part before `/chat/completions`, `/embeddings` or `/rerank`, for example `http://localhost:11434/v1`.
    pub url: String,
    pub name: String,
    pub key: Option<EndpointKey>,
    pub timeout: Duration,
}

/// The names of an endpoint's settings, for error messages.
#[derive(Clone, Copy, Debug)]
pub struct SettingNames {
    pub url: &'static str,
    pub name: &'static str,
    pub key: &'static str,
    pub timeout: &'static str,
    /// What to lower if the endpoint limits the rate.
    pub less: &'static str,
    /// The path after the URL.
    pub path: &'static str,
}

/// Settings of a model that generates text.
pub const MODEL: SettingNames = SettingNames {
    url: "model.url (LUKASA_MODEL_URL)",
    name: "model.name (LUKASA_MODEL_NAME)",
    key: "model.key_env (LUKASA_MODEL_KEY_ENV)",
    timeout: "model.timeout_seconds (LUKASA_MODEL_TIMEOUT_SECONDS)",
    less: "model.per_pass (LUKASA_MODEL_PER_PASS)",
    path: "/chat/completions",
};

/// Settings of a model that embeds.
pub const EMBEDDING: SettingNames = SettingNames {
    url: "embedding.base_url (LUKASA_EMBEDDING_BASE_URL)",
    name: "embedding.model (LUKASA_EMBEDDING_MODEL)",
    key: "embedding.key_env (LUKASA_EMBEDDING_KEY_ENV)",
    timeout: "embedding.timeout_seconds (LUKASA_EMBEDDING_TIMEOUT_SECONDS)",
    less: "embedding.batch (LUKASA_EMBEDDING_BATCH)",
    path: "/embeddings",
};

/// Settings of a model that reranks search hits.
pub const RERANK: SettingNames = SettingNames {
    url: "rerank.url (LUKASA_RERANK_URL)",
    name: "rerank.model (LUKASA_RERANK_MODEL)",
    key: "rerank.key_env (LUKASA_RERANK_KEY_ENV)",
    timeout: "rerank.deadline_ms (LUKASA_RERANK_DEADLINE_MS)",
    less: "how often you ask for `rerank`",
    path: "/rerank",
};

/// The API key of an endpoint. It is sent to the endpoint only, and never shown or logged.
#[derive(Clone)]
pub struct EndpointKey(String);

impl EndpointKey {
    pub fn new(key: impl Into<String>) -> EndpointKey {
        EndpointKey(key.into())
    }
}

impl fmt::Debug for EndpointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Sleeps between attempts; tests replace it.
type Pause = Arc<dyn Fn(Duration) + Send + Sync>;

/// A client of one endpoint and model.
pub struct Endpoint {
    agent: Agent,
    url: String,
    name: Arc<str>,
    key: Option<EndpointKey>,
    pause: Pause,
    called: SettingNames,
}

impl Endpoint {
    /// A client of a model that generates text. Returns an error for invalid settings.
    pub fn new(config: &EndpointConfig) -> Result<Endpoint> {
        Endpoint::called(config, MODEL)
    }

    /// A client whose error messages use these names of settings.
    pub fn called(config: &EndpointConfig, called: SettingNames) -> Result<Endpoint> {
        let url = config.url.trim().trim_end_matches('/');
        let host = host(url, &called)?;
        if config.name.trim().is_empty() {
            return Err(Error::invalid(ErrorCode::InvalidModel, "the model has no name")
                .hint(format!("set {} to what the endpoint calls it", called.name)));
        }
        if config.timeout.is_zero() {
            return Err(
                Error::invalid(ErrorCode::InvalidModel, format!("{} is 0", called.timeout)).hint("give at least 1")
            );
        }
        if let Some(EndpointKey(key)) = &config.key
            && !key.bytes().all(|b| b.is_ascii_graphic())
        {
            return Err(Error::invalid(
                ErrorCode::InvalidModel,
                "the model's key holds spaces or other marks no key has",
            )
            .hint(format!("look at the environment variable that {} names", called.key)));
        }
        let mut settings = Agent::config_builder()
            .timeout_global(Some(config.timeout))
            // Error responses are read too: they contain the reason.
            .http_status_as_error(false)
            // Without redirects, the key is sent to the configured host only.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("lukasa/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build());
        if is_local(host) {
            settings = settings.proxy(None);
        }
        Ok(Endpoint {
            agent: settings.build().new_agent(),
            url: url.to_owned(),
            name: config.name.trim().into(),
            key: config.key.clone(),
            pause: Arc::new(std::thread::sleep),
            called,
        })
    }

    /// The model's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Replaces the sleep between attempts.
    #[must_use]
    pub fn with_pause(mut self, pause: impl Fn(Duration) + Send + Sync + 'static) -> Endpoint {
        self.pause = Arc::new(pause);
        self
    }

    /// Sends a request to `path` below the endpoint's URL and returns the response. Retries failures that may be
    /// temporary.
    pub fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let body = body.to_string();
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            let Failure { error, after } = match self.once(path, &body) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let wait = match after {
                Again::Never => return Err(error),
                Again::Soon => pause,
                Again::After(wait) => wait.max(FIRST_PAUSE),
            };
            if attempt == TRIES || wait > LONGEST_PAUSE {
                return Err(error);
            }
            (self.pause)(wait);
            pause *= 2;
        }
        unreachable!("the last attempt returns")
    }

    /// Like [`Endpoint::post`], but without retries.
    pub fn post_once(&self, path: &str, body: &Value) -> Result<Value> {
        self.once(path, &body.to_string()).map_err(|failure| failure.error)
    }

    fn once(&self, path: &str, body: &str) -> Result<Value, Failure> {
        let mut request = self.agent.post(format!("{}{path}", self.url)).header("content-type", "application/json");
        if let Some(EndpointKey(key)) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let mut response = request.send(body).map_err(|e| self.transport(&e))?;
        let status = response.status().as_u16();
        let after = response.headers().get("retry-after").and_then(|v| v.to_str().ok()).and_then(retry_after);
        let read = response.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec();
        if status != 200 {
            return Err(self.refusal(status, &read.unwrap_or_default(), after));
        }
        let bytes = read.map_err(|e| self.transport(&e))?;
        serde_json::from_slice(&bytes).map_err(|_| {
            // The response may be an error page of a proxy, so it is not shown.
            let error =
                Error::new(ErrorKind::Unavailable, ErrorCode::ModelAnswerInvalid, "the model's answer is not JSON")
                    .hint(format!(
                        "check that {} is the part before {}, often ending in /v1",
                        self.called.url, self.called.path
                    ));
            Failure { error, after: Again::Never }
        })
    }

    fn transport(&self, error: &ureq::Error) -> Failure {
        let shown = self.without_key(&error.to_string());
        match error {
            ureq::Error::Timeout(_) => Failure {
                error: Error::new(
                    ErrorKind::Timeout,
                    ErrorCode::ModelTimeout,
                    format!("the model did not answer: {shown}"),
                )
                .hint(format!("raise {}, or look at the endpoint", self.called.timeout)),
                after: Again::Never,
            },
            ureq::Error::BodyExceedsLimit(_) => Failure {
                error: Error::too_large(
                    ErrorCode::ModelAnswerTooLarge,
                    format!("the model's answer is too long: {shown}"),
                ),
                after: Again::Never,
            },
            _ => Failure {
                error: Error::new(
                    ErrorKind::Unavailable,
                    ErrorCode::ModelUnreachable,
                    format!("no answer from the model: {shown}"),
                )
                .hint(format!("check {}, and that the endpoint runs", self.called.url)),
                after: Again::Soon,
            },
        }
    }

    fn refusal(&self, status: u16, body: &[u8], after: Option<Duration>) -> Failure {
        let reason = self.reason(body);
        let message = |what: &str| {
            let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            format!("the model's endpoint {what} (HTTP {status}){reason}")
        };
        let again = after.map_or(Again::Soon, Again::After);
        let (error, after) = match status {
            401 | 403 => (
                Error::new(ErrorKind::Forbidden, ErrorCode::ModelRefused, message("does not let us in"))
                    .hint(format!("{} names the environment variable that holds the key", self.called.key)),
                Again::Never,
            ),
            404 | 405 | 300..=399 => (
                Error::not_found(ErrorCode::ModelNotFound, message("has nothing there"))
                    .hint(format!("check {}, often ending in /v1, and {}", self.called.url, self.called.name)),
                Again::Never,
            ),
            429 => (
                Error::new(ErrorKind::RateLimited, ErrorCode::ModelRateLimited, message("asks for a pause"))
                    .hint(format!("try again later, or lower {}", self.called.less)),
                again,
            ),
            500..=599 => (
                Error::new(ErrorKind::Unavailable, ErrorCode::ModelFailed, message("has failed"))
                    .hint("look at the endpoint; the next pass tries again"),
                again,
            ),
            _ => (
                Error::invalid(ErrorCode::ModelRequestRefused, message("refuses the request"))
                    .hint(format!("check {}", self.called.name)),
                Again::Never,
            ),
        };
        Failure { error, after }
    }

    /// The endpoint's own error message, in one short line. Some endpoints repeat the key in it.
    fn reason(&self, body: &[u8]) -> String {
        let Ok(answer) = serde_json::from_slice::<Value>(body) else { return String::new() };
        let places = [&answer["error"]["message"], &answer["error"], &answer["message"], &answer["detail"]];
        let reason = places.into_iter().find_map(Value::as_str).unwrap_or_default();
        let line: Vec<&str> = reason.split_whitespace().collect();
        self.without_key(&line.join(" ")).chars().take(REASON_CHARS).collect()
    }

    fn without_key(&self, text: &str) -> String {
        match &self.key {
            Some(EndpointKey(key)) if !key.is_empty() => text.replace(key.as_str(), "…"),
            _ => text.to_owned(),
        }
    }
}

struct Failure {
    error: Error,
    after: Again,
}

/// Whether to send the same request again.
enum Again {
    Never,
    Soon,
    After(Duration),
}

/// Returns the host of an endpoint's URL, or an error if the URL is invalid.
fn host<'a>(url: &'a str, called: &SettingNames) -> Result<&'a str> {
    let fault = |what: &str| {
        // The URL itself is not shown: it may contain a password.
        Error::invalid(ErrorCode::InvalidModel, format!("{} {what}", called.url))
            .hint(format!("give the part before {}, for example http://localhost:11434/v1", called.path))
    };
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let rest = rest.ok_or_else(|| fault("does not begin with https:// or http://"))?;
    if url.contains(['?', '#']) || url.contains(char::is_whitespace) {
        return Err(fault("holds more than a scheme, a host and a path"));
    }
    let host = rest.split('/').next().unwrap_or_default();
    if host.contains('@') {
        return Err(fault(&format!("holds a name or password; a key is named by {}", called.key)));
    }
    if host.is_empty() {
        return Err(fault("has no host"));
    }
    Ok(host)
}

/// Whether the host is this machine, which is not reached through a proxy.
fn is_local(host: &str) -> bool {
    let name = if host.starts_with('[') { host.split(']').next() } else { host.split(':').next() };
    let name = name.unwrap_or_default().trim_start_matches('[');
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The pause in a `Retry-After` header: seconds, or a date.
fn retry_after(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let until = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(until.duration_since(jiff::Timestamp::now())).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    fn config(url: &str) -> EndpointConfig {
        EndpointConfig {
            url: url.into(),
            name: "m".into(),
            key: Some(EndpointKey::new("sk-very-secret")),
            timeout: TIMEOUT,
        }
    }

    #[test]
    fn invalid_urls_are_refused_and_not_shown() {
        for (url, fine) in [
            ("http://localhost:11434/v1", true),
            ("https://models.example.org/v1/", true),
            ("localhost:11434", false),
            ("ftp://example.org", false),
            ("https://", false),
            ("https://ann:hunter2@example.org/v1", false),
            ("https://example.org/v1?key=hunter2", false),
        ] {
            match Endpoint::new(&config(url)) {
                Ok(_) => assert!(fine, "{url}"),
                Err(e) => {
                    assert!(
                        !fine && e.code == ErrorCode::InvalidModel && !e.to_string().contains("hunter2"),
                        "{url}: {e}"
                    )
                }
            }
        }
    }

    #[test]
    fn a_key_is_never_shown() {
        let config = config("http://localhost/v1");
        assert!(!format!("{config:?}").contains("secret"));
        let endpoint = Endpoint::new(&config).unwrap();
        let body = br#"{"error": {"message": "incorrect API key provided:\n sk-very-secret"}}"#;
        let error = endpoint.refusal(401, body, None).error;
        assert_eq!(error.message, "the model's endpoint does not let us in (HTTP 401): incorrect API key provided: …");
    }

    #[test]
    fn local_hosts_are_recognized() {
        for (host, local) in [
            ("localhost:1", true),
            ("127.0.0.1", true),
            ("[::1]:8080", true),
            ("localhost.example.org", false),
            ("10.0.0.1:80", false),
        ] {
            assert_eq!(is_local(host), local, "{host}");
        }
    }

    #[test]
    fn a_pause_is_given_in_seconds_or_as_a_date() {
        assert_eq!(retry_after(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO), "long past");
        assert!(retry_after("Wed, 21 Oct 2099 07:28:00 GMT").unwrap() > LONGEST_PAUSE);
        assert_eq!(retry_after("soon"), None);
    }
}
