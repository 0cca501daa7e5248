//! Quantised vectors by id, and the search for the nearest ones.
//!
//! A vector is stored as int8 with a scale of its own, a quarter of its size in floats. Among up to [`SCAN_ALL`]
//! vectors, each is compared with the query. Among more, the signs of the components select the vectors that are
//! compared.

mod kernels;
mod quantised;
mod top;

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

pub use quantised::{Quantised, VectorError};
use quantised::{QuantisedQuery, signs, words};
use top::BestIds;

/// Up to this number of vectors, all are compared, which takes a few milliseconds. Above it, most are excluded by their
/// signs.
pub const SCAN_ALL: usize = 200_000;

/// The signs select at least one in this many of all vectors.
const POOL_SHARE: usize = 50;
/// The signs select at least this many vectors for each requested one.
const POOL_EACH: usize = 200;

/// The number of consecutive ids whose vectors are in one chunk. A writer copies a chunk that a clone still shares, so
/// this bounds what one write copies.
const CHUNK: u32 = 1024;

/// Fewer chunks than this are scanned by one thread.
const CHUNKS_TO_SPREAD: usize = 16;

/// Vectors by id. A clone is cheap, because it shares all chunks, and does not change when the original does.
#[derive(Clone, Debug)]
pub struct Vectors {
    dimensions: usize,
    count: usize,
    /// Chunks by id divided by [`CHUNK`]; no chunk is empty.
    chunks: BTreeMap<u32, Arc<Chunk>>,
}

/// Vectors of consecutive ids, in the order of ids.
#[derive(Clone, Debug, Default)]
struct Chunk {
    ids: Vec<u32>,
    scales: Vec<f32>,
    values: Vec<i8>,
    signs: Vec<u64>,
}

impl Vectors {
    /// Creates an empty collection of vectors with this number of components.
    pub fn new(dimensions: usize) -> Vectors {
        Vectors { dimensions, count: 0, chunks: BTreeMap::new() }
    }

    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a vector, or replaces the vector of this id. Fails if it has other dimensions or a component that is not
    /// finite.
    pub fn put(&mut self, id: u32, vector: &[f32]) -> Result<(), VectorError> {
        self.put_bytes(id, &Quantised::from_f32(vector)?)
    }

    /// Like [`Vectors::put`], for a vector that is quantised already.
    pub fn put_bytes(&mut self, id: u32, vector: &Quantised) -> Result<(), VectorError> {
        self.check(vector.values().len())?;
        let chunk = Arc::make_mut(self.chunks.entry(id / CHUNK).or_default());
        self.count += usize::from(chunk.put(id, vector));
        Ok(())
    }

    /// Removes the vector of an id; returns whether there was one.
    pub fn remove(&mut self, id: u32) -> bool {
        let Some(chunk) = self.chunks.get_mut(&(id / CHUNK)) else { return false };
        let Ok(place) = chunk.ids.binary_search(&id) else { return false };
        if chunk.ids.len() == 1 {
            self.chunks.remove(&(id / CHUNK));
        } else {
            Arc::make_mut(chunk).remove(place, self.dimensions);
        }
        self.count -= 1;
        true
    }

    /// Returns the vector of an id.
    pub fn get(&self, id: u32) -> Option<Quantised> {
        let chunk = self.chunks.get(&(id / CHUNK))?;
        let place = chunk.ids.binary_search(&id).ok()?;
        let values = &chunk.values[place * self.dimensions..][..self.dimensions];
        Some(Quantised::new(chunk.scales[place], values.to_vec()))
    }

    /// Returns the `most` allowed ids with the highest scalar product, best first, equal ones by id. Fails if the query
    /// has other dimensions or a component that is not finite.
    ///
    /// The result is exact, apart from the rounding of stored vectors, among up to [`SCAN_ALL`] allowed vectors. Among
    /// more, a few of the best may be missing.
    pub fn nearest(
        &self,
        question: &[f32],
        most: usize,
        allowed: impl Fn(u32) -> bool + Sync,
    ) -> Result<Vec<(u32, f32)>, VectorError> {
        self.check(question.len())?;
        let question = QuantisedQuery::new(question)?;
        if self.count > SCAN_ALL {
            let pool = (self.count / POOL_SHARE).max(most.saturating_mul(POOL_EACH));
            if let Some(border) = self.border(&question, pool, &allowed) {
                return Ok(self.scan_near(&question, most, border, &allowed));
            }
        }
        Ok(self.scan_all(&question, most, &allowed))
    }

    fn check(&self, found: usize) -> Result<(), VectorError> {
        if found == self.dimensions {
            Ok(())
        } else {
            Err(VectorError::Dimensions { expected: self.dimensions, found })
        }
    }

    fn scan_all(
        &self,
        question: &QuantisedQuery,
        most: usize,
        allowed: &(impl Fn(u32) -> bool + Sync),
    ) -> Vec<(u32, f32)> {
        self.best(most, |chunk, top| {
            let mut dots = [0; CHUNK as usize];
            let dots = &mut dots[..chunk.ids.len()];
            kernels::dots(&question.values, &chunk.values, dots);
            for (place, (&dot, &id)) in dots.iter().zip(&chunk.ids).enumerate() {
                let score = question.score(dot, chunk.scales[place]);
                if top.wants(score, id) && allowed(id) {
                    top.push(score, id);
                }
            }
        })
    }

    /// Compares only vectors that differ from the question in at most `border` signs.
    fn scan_near(
        &self,
        question: &QuantisedQuery,
        most: usize,
        border: u32,
        allowed: &(impl Fn(u32) -> bool + Sync),
    ) -> Vec<(u32, f32)> {
        self.best(most, |chunk, top| {
            let mut distances = [0; CHUNK as usize];
            let distances = &mut distances[..chunk.ids.len()];
            kernels::distances(&question.signs, &chunk.signs, distances);
            for (place, (&distance, &id)) in distances.iter().zip(&chunk.ids).enumerate() {
                if distance > border {
                    continue;
                }
                let mut dot = [0];
                let values = &chunk.values[place * self.dimensions..][..self.dimensions];
                kernels::dots(&question.values, values, &mut dot);
                let score = question.score(dot[0], chunk.scales[place]);
                if top.wants(score, id) && allowed(id) {
                    top.push(score, id);
                }
            }
        })
    }

    /// Returns the largest number of differing signs to accept, so that at least `pool` allowed vectors are compared;
    /// `None` if there are so few allowed vectors that all can be compared.
    fn border(&self, question: &QuantisedQuery, pool: usize, allowed: &(impl Fn(u32) -> bool + Sync)) -> Option<u32> {
        let none = || vec![0usize; self.dimensions + 1];
        let counts = self.chunks.par_iter().fold(none, |mut counts, (_, chunk)| {
            let mut distances = [0; CHUNK as usize];
            let distances = &mut distances[..chunk.ids.len()];
            kernels::distances(&question.signs, &chunk.signs, distances);
            for (&distance, &id) in distances.iter().zip(&chunk.ids) {
                counts[distance as usize] += usize::from(allowed(id));
            }
            counts
        });
        let counts = counts.reduce(none, |mut sum, counts| {
            sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            sum
        });
        if counts.iter().sum::<usize>() <= SCAN_ALL {
            return None;
        }
        let mut through = 0;
        let enough = counts.iter().position(|count| {
            through += count;
            through >= pool
        });
        Some(u32::try_from(enough.unwrap_or(self.dimensions)).expect("vectors have few dimensions"))
    }

    /// Runs `look` on each chunk and returns the best of all. The result does not depend on the order of chunks, so
    /// threads may scan them in parallel.
    fn best(&self, most: usize, look: impl Fn(&Chunk, &mut BestIds) + Sync) -> Vec<(u32, f32)> {
        if self.chunks.len() < CHUNKS_TO_SPREAD {
            let mut top = BestIds::new(most);
            self.chunks.values().for_each(|chunk| look(chunk, &mut top));
            return top.into_best_first();
        }
        let found = self.chunks.par_iter().fold(
            || BestIds::new(most),
            |mut top, (_, chunk)| {
                look(chunk, &mut top);
                top
            },
        );
        found.reduce(|| BestIds::new(most), BestIds::merge).into_best_first()
    }
}

impl Chunk {
    /// Adds or replaces a vector; returns whether it was added.
    fn put(&mut self, id: u32, vector: &Quantised) -> bool {
        let values = vector.values();
        let signs = signs(values.iter().map(|&value| value < 0));
        let (dimensions, words) = (values.len(), signs.len());
        match self.ids.binary_search(&id) {
            Ok(place) => {
                self.scales[place] = vector.scale();
                self.values[place * dimensions..][..dimensions].copy_from_slice(values);
                self.signs[place * words..][..words].copy_from_slice(&signs);
                false
            }
            Err(place) => {
                self.ids.insert(place, id);
                self.scales.insert(place, vector.scale());
                self.values.splice(place * dimensions..place * dimensions, values.iter().copied());
                self.signs.splice(place * words..place * words, signs);
                true
            }
        }
    }

    fn remove(&mut self, place: usize, dimensions: usize) {
        let words = words(dimensions);
        self.ids.remove(place);
        self.scales.remove(place);
        self.values.drain(place * dimensions..(place + 1) * dimensions);
        self.signs.drain(place * words..(place + 1) * words);
    }
}

#[cfg(test)]
mod tests;
