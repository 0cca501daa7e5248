//! What is near a question in meaning, as far as there are vectors.

use crate::graph::Look;
use crate::{Context, Engine};
use lukasa_model::Result;
use lukasa_search::recall::Nearest;

/// The nearest of what has a vector.
#[derive(Clone, Debug, Default)]
pub struct Meaning {
    pub nearest: Nearest,
    /// Which share of what can have a vector has one.
    pub share: f64,
    /// Why there are none, or too few.
    pub warning: Option<String>,
}

impl Engine {
    /// What is near a question in meaning.
    pub fn nearest(&self, _context: &mut Context<'_>, _look: &Look, _question: &str, _most: usize) -> Result<Meaning> {
        Ok(Meaning::default())
    }
}
