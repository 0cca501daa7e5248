//! The forward pass of gte-small: from token ids to vectors of length one.

use super::kernels::{Activations, InstructionSet};
use super::weights::{LinearLayer, ModelWeights, QuantisedRows};
use crate::embed::TokenVectors;

pub const DIMENSIONS: usize = 384;
/// Most tokens per text: the model would take 512, but the time for a token grows with their number.
pub const MOST_TOKENS: usize = 256;
const VOCABULARY: usize = 30_522;
const INTERMEDIATE: usize = 1536;
const HEADS: usize = 12;
const LAYERS: usize = 12;

pub struct Network {
    words: QuantisedRows,
    positions: QuantisedRows,
    segment: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

struct Layer {
    attend: LinearLayer,
    join: LinearLayer,
    join_norm: Norm,
    widen: LinearLayer,
    narrow: LinearLayer,
    narrow_norm: Norm,
}

struct Norm {
    gain: Vec<f32>,
    bias: Vec<f32>,
}

impl Network {
    pub fn new(weights: &ModelWeights) -> Result<Network, String> {
        Ok(Network {
            words: weights.rows("words", VOCABULARY, DIMENSIONS)?,
            positions: weights.rows("positions", MOST_TOKENS, DIMENSIONS)?,
            segment: weights.floats("segment", DIMENSIONS)?,
            norm: Norm::new(weights, "norm")?,
            layers: (0..LAYERS).map(|number| Layer::new(weights, number)).collect::<Result<_, _>>()?,
        })
    }

    /// Returns one vector per text: the direction of the mean of its rows.
    pub fn vectors(&self, texts: &[&[u16]], level: InstructionSet) -> Vec<Vec<f32>> {
        let rows = self.last_rows(texts, level);
        rows_of_each(texts, &rows).map(|(_, rows)| direction_of_sum(rows)).collect()
    }

    /// Returns the vectors of texts and of their tokens, from one pass.
    pub fn token_vectors(&self, texts: &[&[u16]], level: InstructionSet) -> Vec<TokenVectors> {
        let rows = self.last_rows(texts, level);
        rows_of_each(texts, &rows)
            .map(|(ids, rows)| {
                // A text begins and ends with a marker, which no other text needs to match.
                let inner = 1..ids.len().max(2) - 1;
                let own = rows[inner.start * DIMENSIONS..inner.end * DIMENSIONS].chunks_exact(DIMENSIONS);
                TokenVectors {
                    text: direction_of_sum(rows),
                    ids: ids[inner].iter().copied().map(u32::from).collect(),
                    vectors: own.flat_map(direction_of_sum).collect(),
                }
            })
            .collect()
    }

    /// Returns a row per token after all layers. Texts are computed together only to read weights once; rows of
    /// different texts are independent, so a text's rows do not depend on the other texts.
    fn last_rows(&self, texts: &[&[u16]], level: InstructionSet) -> Vec<f32> {
        let tokens: usize = texts.iter().map(|ids| ids.len()).sum();
        let mut rows = self.first_rows(texts, tokens, level);
        let mut room = Room::new(tokens);
        for layer in &self.layers {
            layer.apply(texts, level, &mut rows, &mut room);
        }
        rows
    }

    fn first_rows(&self, texts: &[&[u16]], tokens: usize, level: InstructionSet) -> Vec<f32> {
        let mut rows = vec![0.0; tokens * DIMENSIONS];
        let mut segments = Vec::with_capacity(rows.len());
        let places = texts.iter().flat_map(|ids| ids.iter().enumerate());
        for (row, (position, &id)) in rows.chunks_exact_mut(DIMENSIONS).zip(places) {
            self.words.add_to(usize::from(id), row);
            self.positions.add_to(position, row);
            segments.extend_from_slice(&self.segment);
        }
        level.add_and_norm(&mut rows, &segments, &self.norm.gain, &self.norm.bias);
        rows
    }
}

/// Buffers of a pass, reused by every layer.
struct Room {
    activations: Activations,
    three: Vec<f32>,
    narrow: Vec<f32>,
    wide: Vec<f32>,
    scratch: Vec<f32>,
}

impl Room {
    fn new(tokens: usize) -> Room {
        Room {
            activations: Activations::default(),
            three: vec![0.0; tokens * 3 * DIMENSIONS],
            narrow: vec![0.0; tokens * DIMENSIONS],
            wide: vec![0.0; tokens * INTERMEDIATE],
            scratch: Vec::new(),
        }
    }
}

impl Layer {
    fn new(weights: &ModelWeights, number: usize) -> Result<Layer, String> {
        let name = |part: &str| format!("{number}.{part}");
        Ok(Layer {
            attend: weights.linear(&name("attend"), 3 * DIMENSIONS, DIMENSIONS)?,
            join: weights.linear(&name("join"), DIMENSIONS, DIMENSIONS)?,
            join_norm: Norm::new(weights, &name("join.norm"))?,
            widen: weights.linear(&name("widen"), INTERMEDIATE, DIMENSIONS)?,
            narrow: weights.linear(&name("narrow"), DIMENSIONS, INTERMEDIATE)?,
            narrow_norm: Norm::new(weights, &name("narrow.norm"))?,
        })
    }

    fn apply(&self, texts: &[&[u16]], level: InstructionSet, rows: &mut [f32], room: &mut Room) {
        let Room { activations, three, narrow, wide, scratch } = room;
        level.quantise(rows, DIMENSIONS, activations);
        level.linear(activations, &self.attend, three);
        let mut start = 0;
        for ids in texts {
            let end = start + ids.len() * DIMENSIONS;
            level.attend(&three[3 * start..3 * end], HEADS, DIMENSIONS, &mut narrow[start..end], scratch);
            start = end;
        }
        level.quantise(narrow, DIMENSIONS, activations);
        level.linear(activations, &self.join, narrow);
        level.add_and_norm(rows, narrow, &self.join_norm.gain, &self.join_norm.bias);

        level.quantise(rows, DIMENSIONS, activations);
        level.linear(activations, &self.widen, wide);
        level.gelu(wide);
        level.quantise(wide, INTERMEDIATE, activations);
        level.linear(activations, &self.narrow, narrow);
        level.add_and_norm(rows, narrow, &self.narrow_norm.gain, &self.narrow_norm.bias);
    }
}

impl Norm {
    fn new(weights: &ModelWeights, name: &str) -> Result<Norm, String> {
        Ok(Norm {
            gain: weights.floats(&format!("{name}.gain"), DIMENSIONS)?,
            bias: weights.floats(&format!("{name}.bias"), DIMENSIONS)?,
        })
    }
}

/// Splits rows by the texts that they belong to.
fn rows_of_each<'a>(texts: &[&'a [u16]], rows: &'a [f32]) -> impl Iterator<Item = (&'a [u16], &'a [f32])> {
    let mut rest = rows;
    texts.iter().map(move |&ids| {
        let (own, others) = rest.split_at(ids.len() * DIMENSIONS);
        rest = others;
        (ids, own)
    })
}

/// Normalises the sum of all rows: it has the same direction as their mean.
fn direction_of_sum(rows: &[f32]) -> Vec<f32> {
    let mut sum = vec![0f32; DIMENSIONS];
    for row in rows.chunks_exact(DIMENSIONS) {
        for (sum, value) in sum.iter_mut().zip(row) {
            *sum += value;
        }
    }
    let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length > 0.0 {
        for value in &mut sum {
            *value /= length;
        }
    }
    sum
}
