//! `embed`: computes missing vectors immediately.

use crate::convert::to_usize;
use crate::features::search::rendering::embedding;
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The operation `embed`.
pub struct Embed;

/// Jobs processed between two progress reports.
const STEP: usize = 64;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Maximum number of texts to embed; all queued when left out.
    #[serde(default)]
    pub limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Vectors that were computed.
    pub embedded: usize,
    /// Objects whose text already had a vector.
    pub known: usize,
    pub failed: usize,
    /// Objects still queued.
    pub waiting: u64,
    pub model: String,
    pub texts_per_s: f64,
    /// Number of secrets removed from the embedded text.
    pub redacted: u64,
    /// Why embedding stopped early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The model failed too often and is not called before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Time>,
}

impl Op for Embed {
    const META: Meta = Meta {
        name: "embed",
        long: true,
        shown: ResponseView::By(embedding::embed),
        answer: &["embedded", "failed", "waiting", "error", "paused_until", "model"],
        summary: "Make the vectors that are missing",
        description: "Search finds everything by words at once; by meaning it finds what has a vector. This makes the vectors \
                      that are missing, required types and the most central first, with the built-in model unless another is \
                      configured. It can be stopped at any time and goes on where it was. A server does it by itself in the \
                      background.",
        verb: "embed",
        toolset: "search",
        examples: &["lukasa embed", "lukasa embed --limit 1000"],
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let began = Instant::now();
        let clock = engine.clock();
        let queue = engine.central_queue(&context.scope);
        queue.follow(clock.now())?;
        let worker = engine.embedding_worker(&context.scope)?;
        let (derived, scope) = (queue.ledger().store().derived(), queue.ledger().scope());
        let waiting = || -> Result<u64> {
            let counts = derived.job_counts(scope, queue.kind(), clock.now())?;
            Ok(counts.required + counts.optional)
        };
        let all = waiting()?.min(request.limit.map_or(u64::MAX, |limit| limit as u64));
        let mut out = Response {
            summary: String::new(),
            embedded: 0,
            known: 0,
            failed: 0,
            waiting: 0,
            model: queue.model().to_owned(),
            texts_per_s: 0.0,
            redacted: 0,
            error: None,
            paused_until: None,
        };
        let mut done = 0;
        while done < to_usize(all) {
            context.stop.check()?;
            (context.progress)(done as u64, Some(all));
            let worked = worker.work(clock.now(), STEP.min(to_usize(all) - done))?;
            out.embedded += worked.embedded;
            out.known += worked.known;
            out.failed += worked.failed;
            out.redacted += worked.redacted;
            out.paused_until = worked.paused_until;
            done += worked.leased;
            if let Some(error) = worked.error {
                out.error = Some(error);
                break;
            }
            if worked.leased == 0 {
                break;
            }
        }
        engine.searching().vectors_changed();
        out.waiting = waiting()?;
        let seconds = began.elapsed().as_secs_f64();
        out.texts_per_s = (out.embedded as f64 / seconds.max(1e-9) * 10.0).round() / 10.0;
        if let Some(error) = out.error.as_ref().filter(|_| out.embedded == 0 && out.known == 0) {
            return Err(Error::new(ErrorKind::Unavailable, ErrorCode::EmbeddingFailed, error.clone())
                .hint("nothing is lost: what waits is tried again; `lukasa readiness` shows the progress"));
        }
        out.summary = format!("{} embedded in {seconds:.1} s, {} waiting", count(out.embedded, "text"), out.waiting);
        if let Some(then) = out.paused_until {
            out.summary += &format!("; the model fails too often and is tried again at {then}");
        }
        Ok(out)
    }
}
