//! Agent memory: likeness, recency and shared entities as one score.

use crate::pipeline::fuse::Candidate;

/// What is added to the score of a memory. The candidate has its likeness already.
pub struct MemoryParts {
    /// The weights of likeness, recency and shared entities.
    pub similarity: f64,
    pub recency: f64,
    pub entities: f64,
    /// How recent the memory is, from 0 to 1.
    pub recent: f64,
    /// The share of the query's entities that the memory is about, from 0 to 1.
    pub shared: f64,
    /// Whether recency counts in full, not in proportion to the likeness.
    pub recency_in_full: bool,
}

/// Adds recency and shared entities to the score. Recency counts in proportion to the likeness, so that a recent note
/// about another subject does not come first.
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

#[cfg(test)]
mod tests {
    use super::*;
    use lukasa_graph::Node;

    #[test]
    fn recency_counts_in_proportion_to_likeness() {
        let scored = |likeness: f64, recency_in_full| {
            let mut candidate = Candidate::new(Node(0));
            candidate.add("lexical", likeness);
            let parts = MemoryParts {
                similarity: 0.5,
                recency: 0.25,
                entities: 0.25,
                recent: 1.0,
                shared: 0.0,
                recency_in_full,
            };
            remembered(&mut candidate, &parts);
            candidate.reasons.iter().map(|reason| (reason.channel, reason.score)).collect::<Vec<_>>()
        };
        assert_eq!(scored(0.5, false), [("lexical", 0.5), ("recency", 0.25)]);
        assert_eq!(scored(0.25, false), [("lexical", 0.25), ("recency", 0.125)]);
        assert_eq!(scored(0.25, true), [("lexical", 0.25), ("recency", 0.25)]);
        assert_eq!(scored(0.0, false), [("lexical", 0.0)]);
    }
}
