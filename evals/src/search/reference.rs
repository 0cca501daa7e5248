//! Textbook BM25 over postings in a hash map, the reference for search times.

use super::synthetic::text_of;
use lukasa_model::batch::PutObject;
use lukasa_search::{question, tokens};
use rustc_hash::FxHashMap;

const K1: f32 = 1.2;
const B: f32 = 0.75;

pub struct ReferenceBm25 {
    postings: FxHashMap<String, Vec<(u32, u32)>>,
    lengths: Vec<u32>,
    mean: f32,
}

impl ReferenceBm25 {
    pub fn new(objects: impl Iterator<Item = PutObject>) -> ReferenceBm25 {
        let mut postings: FxHashMap<String, Vec<(u32, u32)>> = FxHashMap::default();
        let mut lengths = Vec::new();
        for (at, object) in objects.enumerate() {
            let mut counts: FxHashMap<String, u32> = FxHashMap::default();
            tokens::tokens(&text_of(&object), |word| *counts.entry(word.to_owned()).or_default() += 1);
            lengths.push(counts.values().sum());
            counts.into_iter().for_each(|(word, n)| postings.entry(word).or_default().push((at as u32, n)));
        }
        let mean = lengths.iter().map(|n| *n as f32).sum::<f32>() / lengths.len().max(1) as f32;
        ReferenceBm25 { postings, lengths, mean }
    }

    /// The best objects for a question.
    pub fn rank(&self, asked: &str, most: usize) -> Vec<(u32, f32)> {
        let mut scores: FxHashMap<u32, f32> = FxHashMap::default();
        for term in question::terms(asked) {
            let Some(postings) = self.postings.get(&term.word) else { continue };
            let (docs, having) = (self.lengths.len() as f32, postings.len() as f32);
            let rarity = (1.0 + (docs - having + 0.5) / (having + 0.5)).ln() * term.weight;
            for (at, n) in postings {
                let length = 1.0 - B + B * self.lengths[*at as usize] as f32 / self.mean;
                *scores.entry(*at).or_default() += rarity * *n as f32 * (K1 + 1.0) / (*n as f32 + K1 * length);
            }
        }
        let mut best: Vec<(u32, f32)> = scores.into_iter().collect();
        best.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        best.truncate(most);
        best
    }
}
