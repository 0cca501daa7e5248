//! The embedding model inside the binary: all-MiniLM-L6-v2 with int8 weights, run in pure Rust.
//!
//! Nothing is copied or computed before the first text: weights are read where the operating system maps them.

mod forward;
mod kernels;
mod tokens;
mod weights;

use std::sync::OnceLock;

use rayon::prelude::*;

use super::{EmbedError, Embedder, EmbedderModel, Purpose};
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

static WEIGHTS: &Aligned<[u8]> = &Aligned(*include_bytes!("../../../../models/all-minilm-l6-v2/weights.bin"));
static VOCABULARY: &str = include_str!("../../../../models/all-minilm-l6-v2/vocab.txt");

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
            name: "all-MiniLM-L6-v2".to_string(),
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
        let ids: Vec<Vec<u16>> = texts.par_iter().map(|text| self.tokenizer.ids(text, MOST_TOKENS)).collect();
        let groups = groups(&ids);
        let found: Vec<(usize, Vec<f32>)> = groups
            .par_iter()
            .flat_map_iter(|group| {
                let texts: Vec<&[u16]> = group.iter().map(|&text| ids[text].as_slice()).collect();
                group.iter().copied().zip(self.network.vectors(&texts, level))
            })
            .collect();
        let mut vectors = vec![Vec::new(); texts.len()];
        for (text, vector) in found {
            vectors[text] = vector;
        }
        vectors
    }
}

impl Embedder for BuiltinModel {
    fn model(&self) -> &EmbedderModel {
        &self.model
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn embed(&self, texts: &[&str], _: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(self.embed_at(InstructionSet::best(), texts))
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
