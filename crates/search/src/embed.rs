//! From texts to vectors: what every embedding model offers.

pub mod builtin;

use std::fmt;

/// Which model made a vector, and how. Vectors of different models are never compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Model {
    /// `all-MiniLM-L6-v2`, or whatever an endpoint calls it.
    pub name: String,
    /// Tells weights and handling apart: a hash of the weights, or the endpoint's version.
    pub version: String,
    pub dimensions: usize,
    /// `mean`, or `unknown` for an endpoint.
    pub pooling: String,
    /// What is put before every text that is kept, and before every question.
    pub prefix: String,
    pub question_prefix: String,
}

impl Model {
    /// The one text that stands for all of it: stored with every vector.
    pub fn id(&self) -> String {
        let Model { name, version, dimensions, pooling, prefix, question_prefix } = self;
        format!("{name}@{version}/{dimensions}/{pooling}/{prefix}/{question_prefix}")
    }
}

/// A model that turns texts into vectors of length one.
///
/// The same text always gives the same vector, whatever stands beside it in a call.
pub trait Embedder: Send + Sync {
    fn model(&self) -> &Model;

    /// How many texts at most make one call worth its while.
    fn batch(&self) -> usize;

    /// One vector for each text, in their order. Texts longer than the model reads are cut by it.
    fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbedError>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Keep,
    Question,
}

/// Why there are no vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmbedError {
    /// Worth another try later: no answer, a late one, too many requests.
    Unavailable(String),
    /// Will not get better by itself: wrong dimensions, an answer that is none, a refused key.
    Broken(String),
}

impl fmt::Display for EmbedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EmbedError::Unavailable(why) => write!(f, "the embedding model does not answer: {why}"),
            EmbedError::Broken(why) => write!(f, "the embedding model cannot be used: {why}"),
        }
    }
}

impl std::error::Error for EmbedError {}
