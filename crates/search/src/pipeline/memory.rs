//! Agent memory: likeness, recency and shared entities as one score.

use crate::pipeline::fuse::Candidate;

/// What counts of a memory beside its likeness, which its candidate has already.
pub struct MemoryParts {
    /// The weights of likeness, recency and shared entities.
    pub similarity: f64,
    pub recency: f64,
    pub entities: f64,
    /// How recent it is, and how much of what is asked about it is about; each from 0 to 1.
    pub recent: f64,
    pub shared: f64,
    /// Whether recency counts in full, instead of as far as the memory fits the question.
    pub recency_in_full: bool,
}

/// Adds recency and shared entities to the score. What is recent counts as far as it fits, so that yesterday's note on
/// something else does not come first.
pub fn remembered(candidate: &mut Candidate, memory: &MemoryParts) {
    let likeness = candidate.score();
    let fitting = match memory.recency_in_full || memory.similarity <= 0.0 {
        true => 1.0,
        false => (likeness / memory.similarity).clamp(0.0, 1.0),
    };
    let recency = memory.recency * memory.recent * fitting;
    for (channel, score) in [("recency", recency), ("entities", memory.entities * memory.shared)] {
        if score > 0.0 {
            candidate.add(channel, score);
        }
    }
}
