//! Vectors of objects: which texts are embedded, the queue of what waits, the worker that does it, and how it stands.
//!
//! A vector belongs to a text and a model, not to an object: whatever says the same, on any branch or at any time, shares
//! one. So a change that leaves the text alone costs nothing, and going back finds the old vector.

pub mod backoff;
pub mod breaker;
mod central;
pub mod change;
pub mod endpoint;
pub mod input;
mod keeper;
mod objects;
pub mod queue;
pub mod readiness;
pub mod reconcile;
pub mod worker;

pub use breaker::Breaker;
pub use endpoint::{EmbeddingEndpoint, EmbeddingEndpointConfig};
pub use input::{Input, InputRules};
pub use keeper::keep;
pub use queue::{Enqueued, Queue};
pub use readiness::{Readiness, readiness};
pub use worker::{Worked, Worker};

use lukasa_model::{Error, Result};
use lukasa_store::Ledger;

/// The kind of the jobs that make vectors of a model. Each model has its own queue: workers of two versions that run
/// side by side do not take each other's work.
pub fn kind(model: &str) -> String {
    format!("embedding/{model}")
}

/// Which model's vectors search reads: the one that is configured, else the one in use. So a new model can be filled while
/// the old one still answers, and going back is a matter of configuration.
pub fn model_to_read<'a>(configured: Option<&'a str>, in_use: &'a str) -> &'a str {
    configured.unwrap_or(in_use)
}

/// Removes all there is of a model that is no longer in use; how many vectors went.
pub fn remove_model(ledger: &Ledger, model: &str, in_use: &[&str]) -> Result<u64> {
    if in_use.contains(&model) {
        return Err(Error::conflict("model_in_use", format!("`{model}` is in use"))
            .hint("configure another model first; its vectors are made beside the old ones"));
    }
    let (derived, scope) = (ledger.store().derived(), ledger.scope());
    derived.remove_kind(scope, &kind(model))?;
    derived.remove_mark(scope, &kind(model))?;
    derived.remove_model(scope, model)
}
