//! Keeps the best of many ids: highest score first, equal ones by id.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

pub struct BestIds {
    most: usize,
    /// A heap with the worst of the kept ones on top.
    kept: BinaryHeap<Found>,
}

#[derive(Clone, Copy, PartialEq)]
struct Found {
    score: f32,
    id: u32,
}

impl BestIds {
    pub fn new(most: usize) -> BestIds {
        BestIds { most, kept: BinaryHeap::new() }
    }

    /// Whether [`BestIds::push`] would keep an id with this score.
    pub fn wants(&self, score: f32, id: u32) -> bool {
        self.kept.len() < self.most || self.kept.peek().is_some_and(|worst| Found { score, id } < *worst)
    }

    pub fn push(&mut self, score: f32, id: u32) {
        if self.wants(score, id) {
            if self.kept.len() == self.most {
                self.kept.pop();
            }
            self.kept.push(Found { score, id });
        }
    }

    pub fn merge(mut self, other: BestIds) -> BestIds {
        other.kept.into_iter().for_each(|Found { score, id }| self.push(score, id));
        self
    }

    pub fn into_best_first(self) -> Vec<(u32, f32)> {
        self.kept.into_sorted_vec().into_iter().map(|Found { score, id }| (id, score)).collect()
    }
}

impl Eq for Found {}

/// The better one is less, so that the heap has the worst on top.
impl Ord for Found {
    fn cmp(&self, other: &Found) -> Ordering {
        other.score.total_cmp(&self.score).then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for Found {
    fn partial_cmp(&self, other: &Found) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
