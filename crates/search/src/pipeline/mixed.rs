//! Merges two lists: code and everything else, each ranked by its own recipe.

use crate::pipeline::fuse::{Candidate, sort};
use crate::recipes::MixedRecipe;
use lukasa_graph::Node;

/// The channel of vectors.
const VECTOR: &str = "vector";

/// Merges code and other objects by rank, because the scores of two recipes cannot be compared. Each list comes with
/// the share of the query that its best hit covers.
pub fn mixed(
    (mut code, code_covers): (Vec<Candidate>, f64),
    (mut others, others_cover): (Vec<Candidate>, f64),
    recipe: &MixedRecipe,
    order: impl Fn(Node) -> u64,
) -> Vec<Candidate> {
    let most = code_covers.max(others_cover).max(f64::MIN_POSITIVE);
    by_place(&mut code, (code_covers / most).max(recipe.code_least), recipe.head);
    by_place(&mut others, others_cover / most, recipe.head);
    // What has a word of the question comes before what is only near: there is always a nearest vector.
    let is_only_near = |candidate: &Candidate| candidate.reasons.iter().all(|reason| reason.channel == VECTOR);
    for candidate in others.iter_mut().filter(|candidate| is_only_near(candidate)) {
        candidate.reasons.iter_mut().for_each(|reason| reason.score *= recipe.only_near);
    }
    code.extend(others);
    sort(&mut code, order);
    code
}

/// Replaces scores by ranks: the score of the first becomes `first`. Reasons keep their shares.
fn by_place(all: &mut Vec<Candidate>, first: f64, head: f64) {
    all.retain(|candidate| candidate.score() > 0.0);
    for (place, candidate) in all.iter_mut().enumerate() {
        let share = first * head / (head + place as f64) / candidate.score();
        candidate.reasons.iter_mut().for_each(|reason| reason.score *= share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipes::MIXED;

    fn list(nodes: &[Node]) -> Vec<Candidate> {
        let mut all: Vec<Candidate> = nodes.iter().map(|node| Candidate::new(*node)).collect();
        all.iter_mut().enumerate().for_each(|(place, candidate)| candidate.add("x", 9.0 - place as f64));
        all
    }

    #[test]
    fn a_list_of_half_the_weight_gets_every_third_place() {
        let merged = mixed(
            (list(&[Node(1), Node(2), Node(3), Node(4), Node(5)]), 1.0),
            (list(&[Node(11), Node(12)]), 0.5),
            &MIXED,
            |node| u64::from(node.0),
        );
        let nodes: Vec<u32> = merged.iter().map(|candidate| candidate.node.0).collect();
        // The fourth of one list and the first of the other have the same score: `order` decides.
        assert_eq!(nodes, [1, 2, 3, 4, 11, 5, 12]);
        let mut near = Candidate::new(Node(21));
        near.add(VECTOR, 9.0);
        let merged = mixed((list(&[Node(1)]), 0.6), (vec![near], 1.0), &MIXED, |node| u64::from(node.0));
        assert_eq!(merged[0].node, Node(1), "code that has the words comes before what is only near");
        let hidden = mixed((list(&[Node(1)]), 0.0), (list(&[Node(11)]), 0.5), &MIXED, |node| u64::from(node.0));
        assert_eq!(hidden.iter().map(Candidate::score).collect::<Vec<_>>(), [1.0, MIXED.code_least]);
    }
}
