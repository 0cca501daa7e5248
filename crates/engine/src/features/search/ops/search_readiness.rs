//! `search_readiness`: what share is embedded, how fresh vectors are, what waits.

use crate::features::search::embedding::{Readiness, readiness};
use crate::features::search::rendering::embedding;
use crate::registry::META;
use crate::registry::{Meta, Op, Resource};
use crate::rendering::ResponseView;
use crate::{Context, Engine};
use lukasa_model::Result;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operation `search_readiness`.
pub struct SearchReadiness;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    #[serde(flatten)]
    pub view: ViewSpec,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub embedding: Readiness,
    pub text: TextOut,
}

/// Numbers of facts that can be found by words: always everything the view shows.
#[derive(Serialize, JsonSchema)]
pub struct TextOut {
    /// Symbols, and files for the lines outside of them.
    pub symbols: usize,
    pub files: usize,
    pub objects: usize,
    /// Files whose source is not available: found by names and comments only.
    pub without_source: usize,
    pub bytes: usize,
}

impl Op for SearchReadiness {
    const META: Meta = Meta {
        name: "search_readiness",
        shown: ResponseView::By(embedding::readiness),
        answer: &["embedding.ready", "embedding", "text.symbols", "text.files", "text.objects"],
        rest: &["GET /graph/search/readiness"],
        summary: "How ready search is",
        description: "Reports which share of objects has a vector, required and optional apart, how long vectors lag behind \
                      changes, what waits in the queue, whether the breaker is open, which models have vectors, and what \
                      can be found by words. Looks at every object.",
        scope: "graph:search:read",
        verb: "readiness",
        toolset: "search",
        examples: &["lukasa readiness"],
        resource: Some(Resource { path: "readiness", title: "Readiness", about: "How ready search is", field: "" }),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let look = engine.view_graph(context, &request.view)?;
        let texts = engine.texts(context, &look)?;
        let using = engine.embedding();
        let queue = engine.embedding_queue(&context.scope);
        let embedding = readiness(&queue, &using.breaker.lock(), &using.reads(), engine.clock().now())?;
        let (objects, embedded) = (
            embedding.required.objects + embedding.optional.objects,
            embedding.required.embedded + embedding.optional.embedded,
        );
        let share = if objects == 0 { 100.0 } else { 100.0 * embedded as f64 / objects as f64 };
        let waiting = embedding.backlog.required + embedding.backlog.optional;
        let summary = match (embedded, waiting) {
            (0, 0) => format!("{objects} objects can be found by words; none is embedded: `lukasa embed` does it"),
            _ => format!(
                "{embedded} of {objects} objects embedded ({share:.0} %), {waiting} waiting; all can be found by words"
            ),
        };
        Ok(Response {
            summary,
            text: TextOut {
                symbols: texts.units.len(),
                files: texts.files.len(),
                objects: texts.objects.len(),
                without_source: texts.without_source.len(),
                bytes: lukasa_graph::lookup::SnapshotDerived::bytes(&*texts),
            },
            embedding,
        })
    }
}
