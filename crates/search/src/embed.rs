//! The interface of embedding models, which turn texts into vectors.

pub mod builtin;

use std::fmt;

/// Identifies the model that made a vector. Vectors of different models are never compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EmbedderModel {
    /// `gte-small`, or the name that an endpoint uses.
    pub name: String,
    /// Distinguishes weights and preprocessing: a hash of the weights, or the endpoint's version.
    pub version: String,
    /// The number of components of its vectors.
    pub dimensions: usize,
    /// `mean`, or `unknown` for an endpoint.
    pub pooling: String,
    /// The prefix of stored texts.
    pub prefix: String,
    /// The prefix of queries.
    pub question_prefix: String,
}

impl EmbedderModel {
    /// Returns one text that contains all fields; stored with every vector.
    pub fn id(&self) -> String {
        let EmbedderModel { name, version, dimensions, pooling, prefix, question_prefix } = self;
        format!("{name}@{version}/{dimensions}/{pooling}/{prefix}/{question_prefix}")
    }
}

/// A model that turns texts into vectors of length one.
///
/// The same text always has the same vector, whatever other texts are in the same call.
pub trait Embedder: Send + Sync {
    /// The model, by which vectors are stored.
    fn model(&self) -> &EmbedderModel;

    /// The best number of texts per call.
    fn batch(&self) -> usize;

    /// Returns one vector per text, in the same order. Texts beyond the model's limit are truncated by the model.
    fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// The cosine of texts that have nothing to do with each other: 0 for models that spread texts over all directions.
    /// Likenesses are counted from there, see [`likeness`].
    fn unrelated(&self) -> f32 {
        0.0
    }

    /// Returns the vectors of each text's tokens besides its own, for models that provide them. Others return
    /// [`EmbedError::Broken`].
    fn embed_tokens(&self, _texts: &[&str], _purpose: Purpose) -> Result<Vec<TokenVectors>, EmbedError> {
        Err(EmbedError::Broken(format!("`{}` returns no vectors of tokens", self.model().name)))
    }
}

/// The likeness of two texts, from 0 for unrelated ones to 1 for equal ones, by the cosine of their vectors and that of
/// unrelated texts. So likenesses of different models have the same meaning.
pub fn likeness(cosine: f32, unrelated: f32) -> f32 {
    ((cosine - unrelated) / (1.0 - unrelated)).max(0.0)
}

/// The vectors of a text and of its tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenVectors {
    /// The vector of the text, as [`Embedder::embed`] returns it.
    pub text: Vec<f32>,
    /// The tokens that were read, as numbers in the model's vocabulary, without markers at the beginning and the end.
    pub ids: Vec<u32>,
    /// The vectors of these tokens, each of length one, one after the other.
    pub vectors: Vec<f32>,
}

/// Why a text is embedded: some models need different prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To store its vector.
    Keep,
    /// To compare it with stored vectors.
    Question,
}

/// Why embedding failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmbedError {
    /// Temporary: no answer, a timeout, too many requests. Worth a retry.
    Unavailable(String),
    /// Permanent: wrong dimensions, an invalid response, a rejected key.
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
