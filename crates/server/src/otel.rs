//! Sends a span for every request to an OpenTelemetry collector: OTLP over HTTP, as JSON.
//!
//! Spans contain the same fields as the log, and no content of requests or answers. A separate thread sends them. Spans
//! that the collector does not accept in time are dropped and counted, so that no request waits for it.

use crate::trace::TraceParent;
use lukasa_engine::telemetry::{log, metrics};
use lukasa_model::json::Hash;
use lukasa_model::{Error, Result};
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// Most spans in the queue.
const WAITING: usize = 4_096;
/// Most spans per message, and the longest time to collect them.
const TOGETHER: usize = 512;
const GATHERED: Duration = Duration::from_secs(1);
/// Timeout for the collector.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The collector that receives the spans.
#[derive(Clone)]
pub struct OtelConfig {
    /// The URL before `/v1/traces`.
    pub endpoint: String,
    /// Headers to send, for example for authentication.
    pub headers: Vec<(String, String)>,
    pub service: String,
}

/// A completed request.
pub struct RequestSpan<'a> {
    pub request_id: &'a str,
    /// The span of the caller that caused the request.
    pub parent: Option<&'a TraceParent>,
    pub operation: &'static str,
    pub tenant: &'a str,
    pub project: &'a str,
    /// `ok`, or the code of the error.
    pub status: &'a str,
    pub took: Duration,
}

enum Message {
    Span(Box<Value>),
    /// Answered when all earlier spans have been sent.
    Flush(SyncSender<()>),
}

static EXPORTER: OnceLock<SyncSender<Message>> = OnceLock::new();

/// Starts sending spans. Only the first call in a process has an effect.
pub fn start(config: OtelConfig) -> Result<()> {
    // No proxy: collectors usually run near the services they collect from.
    let config_of = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).http_status_as_error(false);
    let agent = ureq::Agent::new_with_config(config_of.max_redirects(0).proxy(None).build());
    let (sender, receiver) = sync_channel(WAITING);
    let run = move || Exporter { config, agent, failing: false }.run(&receiver);
    if EXPORTER.set(sender).is_ok() {
        let started = std::thread::Builder::new().name("otel".into()).spawn(run);
        started.map_err(|e| Error::internal(format!("the thread that sends spans could not be started: {e}")))?;
    }
    Ok(())
}

/// Records the span of a request, if an exporter is running.
pub fn span(span: &RequestSpan<'_>) {
    let Some(exporter) = EXPORTER.get() else { return };
    if exporter.try_send(Message::Span(Box::new(written(span, SystemTime::now())))).is_err() {
        metrics().spans_dropped.inc();
    }
}

/// Waits until all spans so far are sent or dropped.
pub fn flush() {
    let Some(exporter) = EXPORTER.get() else { return };
    let (done, wait) = sync_channel(1);
    if exporter.send(Message::Flush(done)).is_ok() {
        // The exporter gives up after a timeout, so this does too.
        let _ = wait.recv_timeout(2 * TIMEOUT);
    }
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn written(span: &RequestSpan<'_>, end: SystemTime) -> Value {
    let nanos = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string();
    let ok = span.status == "ok";
    json!({
        "traceId": span.parent.map_or_else(|| trace_id(span.request_id), |parent| parent.trace.clone()),
        "spanId": hex(&Uuid::now_v7().as_bytes()[8..]),
        "parentSpanId": span.parent.map_or("", |parent| &parent.span),
        "name": span.operation,
        "kind": 2, // SPAN_KIND_SERVER
        "startTimeUnixNano": nanos(end.checked_sub(span.took).unwrap_or(end)),
        "endTimeUnixNano": nanos(end),
        "attributes": [
            text("lukasa.operation", span.operation),
            text("lukasa.tenant", span.tenant),
            text("lukasa.project", span.project),
            text("lukasa.status", span.status),
            text("lukasa.request_id", span.request_id),
        ],
        "status": if ok { json!({"code": 1}) } else { json!({"code": 2, "message": span.status}) },
    })
}

/// The request id if it is a valid trace id, so that spans and logs can be matched; otherwise a hash of it.
fn trace_id(request_id: &str) -> String {
    let fits = request_id.len() == 32
        && request_id.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
        && request_id.chars().any(|c| c != '0');
    if fits { request_id.into() } else { hex(&Hash::of(request_id.as_bytes()).0[..16]) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Exporter {
    config: OtelConfig,
    agent: ureq::Agent,
    failing: bool,
}

impl Exporter {
    fn run(mut self, receiver: &Receiver<Message>) {
        let mut spans = Vec::new();
        let mut until = Instant::now();
        loop {
            let message = match spans.is_empty() {
                true => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => receiver.recv_timeout(until.saturating_duration_since(Instant::now())),
            };
            match message {
                Ok(Message::Span(span)) => {
                    if spans.is_empty() {
                        until = Instant::now() + GATHERED;
                    }
                    spans.push(*span);
                    if spans.len() >= TOGETHER {
                        self.send(std::mem::take(&mut spans));
                    }
                }
                Ok(Message::Flush(done)) => {
                    self.send(std::mem::take(&mut spans));
                    // The caller of `flush` may have stopped waiting.
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => self.send(std::mem::take(&mut spans)),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn send(&mut self, spans: Vec<Value>) {
        if spans.is_empty() {
            return;
        }
        let count = spans.len() as u64;
        let body = json!({"resourceSpans": [{
            "resource": {"attributes": [
                text("service.name", &self.config.service),
                text("service.version", env!("CARGO_PKG_VERSION")),
            ]},
            "scopeSpans": [{"scope": {"name": "lukasa", "version": env!("CARGO_PKG_VERSION")}, "spans": spans}],
        }]});
        let url = format!("{}/v1/traces", self.config.endpoint.trim_end_matches('/'));
        let mut request = self.agent.post(&url).header("content-type", "application/json");
        for (name, value) in &self.config.headers {
            request = request.header(name, value);
        }
        let failed = match request.send(body.to_string()) {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("status {}", answer.status().as_u16())),
            Err(e) => Some(e.to_string()),
        };
        if let Some(why) = &failed {
            metrics().spans_dropped.add(count);
            // Logged once until sending works again, to keep the log short.
            if !self.failing {
                log::event(log::LogLevel::Warn, "otel.failed", &[("message", json!(why)), ("spans", json!(count))]);
            }
        }
        self.failing = failed.is_some();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;
    use lukasa_testkit::{FakeEndpoint, FakeReply};

    #[test]
    fn spans_arrive_in_the_format_of_a_collector() {
        let collector = FakeEndpoint::start(|_, _| FakeReply::ok("{\"partialSuccess\":{}}"));
        let headers = vec![("x-collector-key".to_string(), "k1".to_string())];
        start(OtelConfig { endpoint: collector.url().replace("/v1", ""), headers, service: "shop".into() }).unwrap();
        let id = "0192a3b4c5d60192a3b4c5d60192a3b4";
        let of = |request_id, status| RequestSpan {
            request_id,
            parent: None,
            operation: "search",
            tenant: "acme",
            project: "shop",
            status,
            took: Duration::from_millis(7),
        };
        span(&of(id, "ok"));
        span(&of("other-form", "not_found"));
        let parent = TraceParent { trace: "0af7651916cd43dd8448eb211c80319c".into(), span: "b7ad6b7169203331".into() };
        span(&RequestSpan { parent: Some(&parent), ..of(id, "ok") });
        flush();
        let asked = collector.asked();
        let bodies: Vec<Value> = asked.iter().map(|asked| serde_json::from_str(&asked.body).unwrap()).collect();
        assert!(asked.iter().all(|asked| asked.path == "/v1/traces" && asked.headers.to_lowercase().contains("x-collector-key: k1")));
        let spans: Vec<&Value> = bodies
            .iter()
            .flat_map(|body| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap())
            .collect();
        assert_eq!(bodies[0]["resourceSpans"][0]["resource"]["attributes"][0], text("service.name", "shop"));
        assert_eq!(spans.len(), 3);
        assert_eq!((&spans[0]["parentSpanId"], &spans[2]["parentSpanId"]), (&json!(""), &json!(parent.span)));
        assert_eq!(spans[2]["traceId"], json!(parent.trace));
        assert_eq!(
            (&spans[0]["traceId"], &spans[0]["name"], &spans[0]["kind"]),
            (&json!(id), &json!("search"), &json!(2))
        );
        assert_eq!(
            (&spans[0]["status"]["code"], &spans[1]["status"]),
            (&json!(1), &json!({"code": 2, "message": "not_found"}))
        );
        for span in spans {
            let hex = |field: &str, digits: usize| {
                let text = span[field].as_str().unwrap();
                assert!(text.len() == digits && text.chars().all(|c| c.is_ascii_hexdigit()), "{span}");
            };
            hex("traceId", 32);
            hex("spanId", 16);
            let nanos = |field: &str| span[field].as_str().unwrap().parse::<u128>().unwrap();
            assert_eq!(nanos("endTimeUnixNano") - nanos("startTimeUnixNano"), 7_000_000);
            assert!(span["attributes"].as_array().unwrap().contains(&text("lukasa.tenant", "acme")));
        }
    }
}
