//! Vectors of objects: the text that is embedded, the queue, the worker, and the progress.
//!
//! A vector belongs to a text and a model, not to an object: objects with the same text, on any branch or at any time, share a
//! vector. So a change that keeps the text costs nothing, and a change that is reverted finds the old vector.

mod background;
pub mod backoff;
pub mod breaker;
mod centrality;
pub mod change;
pub mod endpoint;
pub mod input;
mod objects;
pub mod queue;
pub mod readiness;
pub mod reconcile;
pub mod worker;

pub use background::embed_in_background;
pub use breaker::Breaker;
pub use endpoint::{EmbeddingEndpoint, EmbeddingEndpointConfig};
pub use input::{EmbeddingInput, InputRules};
pub use queue::{EmbeddingQueue, EnqueueCounts};
pub use readiness::{Readiness, readiness};
pub use worker::{EmbeddingWorker, WorkerStep};

use lukasa_model::{Error, ErrorCode, Result};
use lukasa_store::Ledger;

/// Returns the kind of the jobs that compute vectors of a model. Each model has its own queue, so workers of two versions that
/// run at the same time do not take each other's jobs.
pub fn kind(model: &str) -> String {
    format!("embedding/{model}")
}

/// Returns the model whose vectors search reads: the configured one, otherwise the model in use. So a new model can be filled
/// while the old one still answers, and the configuration can go back to the old one.
pub fn model_to_read<'a>(configured: Option<&'a str>, in_use: &'a str) -> &'a str {
    configured.unwrap_or(in_use)
}

/// Removes all data of a model, unless it is one of those in use; returns the number of removed vectors.
pub fn remove_model(ledger: &Ledger, model: &str, in_use: &[&str]) -> Result<u64> {
    if in_use.contains(&model) {
        return Err(Error::conflict(ErrorCode::ModelInUse, format!("`{model}` is in use"))
            .hint("configure another model first, whose vectors are made beside these, or remove it by `force`"));
    }
    let (derived, scope) = (ledger.store().derived(), ledger.scope());
    derived.remove_kind(scope, &kind(model))?;
    derived.remove_mark(scope, &kind(model))?;
    derived.remove_model(scope, model)
}
