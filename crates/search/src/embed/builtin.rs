//! The embedding model inside the binary: gte-small with int8 weights, run in pure Rust.
//!
//! Nothing is copied or computed before the first text: weights are read where the operating system maps them.

mod forward;
mod kernels;
mod tokens;
mod weights;

use std::sync::OnceLock;

use rayon::prelude::*;

use super::{EmbedError, Embedder, EmbedderModel, Purpose, TokenVectors};
use forward::{DIMENSIONS, MOST_TOKENS, Network};
pub use kernels::InstructionSet;
pub use tokens::Tokenizer;
use weights::ModelWeights;

/// Version of everything besides the weights that affects vectors (tokens, arithmetic, pooling). Increment it when they
/// change.
const HANDLING: u32 = 1;

/// Most tokens of texts that are computed together: enough to read weights rarely, few enough to stay in a core's
/// cache.
const TOGETHER: usize = 128;

/// Texts per call: enough to sort them by length and to keep all cores busy.
const BATCH: usize = 256;

static WEIGHTS: &Aligned<[u8]> = &Aligned(*include_bytes!("../../../../models/gte-small/weights.bin"));
static VOCABULARY: &str = include_str!("../../../../models/gte-small/vocab.txt");

/// Aligned to a cache line, so that no panel of weights spans more lines than necessary.
#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);

/// The built-in model with its tokenizer. It implements [`Embedder`].
pub struct BuiltinModel {
    model: EmbedderModel,
    tokenizer: Tokenizer,
    network: Network,
}

impl BuiltinModel {
    /// Returns the single instance, initialised on first use.
    pub fn get() -> Result<&'static BuiltinModel, EmbedError> {
        static BUILTIN: OnceLock<Result<BuiltinModel, EmbedError>> = OnceLock::new();
        BUILTIN.get_or_init(|| BuiltinModel::new().map_err(EmbedError::Broken)).as_ref().map_err(Clone::clone)
    }

    fn new() -> Result<BuiltinModel, String> {
        let weights = ModelWeights::read(&WEIGHTS.0)?;
        let digest = weights.digest.get(..16).ok_or("the weights have no digest")?;
        let model = EmbedderModel {
            name: "gte-small".to_string(),
            version: format!("{digest}.{HANDLING}"),
            dimensions: DIMENSIONS,
            pooling: "mean".to_string(),
            prefix: String::new(),
            question_prefix: String::new(),
        };
        let tokenizer = Tokenizer::new(VOCABULARY).ok_or("the vocabulary is not the model's")?;
        Ok(BuiltinModel { model, tokenizer, network: Network::new(&weights)? })
    }

    /// The tokenizer of the model.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Embeds with the instructions of `level`; all levels give the same vectors.
    pub fn embed_at(&self, level: InstructionSet, texts: &[&str]) -> Vec<Vec<f32>> {
        self.in_groups(texts, |group| self.network.vectors(group, level))
    }

    /// Tokenises texts and passes them on in groups that are computed together; returns the results in the order of the
    /// texts.
    fn in_groups<R: Send>(&self, texts: &[&str], of: impl Fn(&[&[u16]]) -> Vec<R> + Sync) -> Vec<R> {
        let ids: Vec<Vec<u16>> = texts.par_iter().map(|text| self.tokenizer.ids(text, MOST_TOKENS)).collect();
        let mut found: Vec<(usize, R)> = groups(&ids)
            .par_iter()
            .flat_map_iter(|group| {
                let texts: Vec<&[u16]> = group.iter().map(|&text| ids[text].as_slice()).collect();
                group.iter().copied().zip(of(&texts))
            })
            .collect();
        found.sort_unstable_by_key(|(text, _)| *text);
        found.into_iter().map(|(_, result)| result).collect()
    }
}

/// The median cosine of texts drawn at random: .74 for questions and passages, .77 for titles of issues.
const UNRELATED: f32 = 0.75;

impl Embedder for BuiltinModel {
    fn model(&self) -> &EmbedderModel {
        &self.model
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn unrelated(&self) -> f32 {
        UNRELATED
    }

    fn embed(&self, texts: &[&str], _: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        // The model has no prefixes, neither for texts nor for queries.
        Ok(self.embed_at(InstructionSet::best(), texts))
    }

    fn embed_tokens(&self, texts: &[&str], _: Purpose) -> Result<Vec<TokenVectors>, EmbedError> {
        Ok(self.in_groups(texts, |group| self.network.token_vectors(group, InstructionSet::best())))
    }
}

/// Groups texts that are computed together. The longest come first, so that no core starts a long one last.
fn groups(ids: &[Vec<u16>]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by_key(|&text| std::cmp::Reverse(ids[text].len()));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut tokens = TOGETHER;
    for text in order {
        tokens += ids[text].len();
        match groups.last_mut() {
            Some(group) if tokens <= TOGETHER => group.push(text),
            _ => {
                groups.push(vec![text]);
                tokens = ids[text].len();
            }
        }
    }
    groups
}
