//! Adds neighbours of hits: which relationships to follow, and how much score they carry over.

use crate::pipeline::fuse::{Candidate, sort};
use crate::pipeline::whole_count;
use crate::recipes::{EXPANSION, ExpansionRecipe};
use lukasa_graph::{Edge, Node, Snapshot};
use lukasa_model::Time;
use rustc_hash::{FxHashMap, FxHashSet};

/// Limits and filters of the expansion.
#[derive(Clone)]
pub struct Expansion<'a> {
    /// Most relationships followed per primary.
    pub per_primary: usize,
    /// Most neighbours in total.
    pub most: usize,
    /// Most hops from a primary.
    pub depth: u32,
    /// The share of a primary's score that an edge with score 1 carries over.
    pub weight: f64,
    /// Only these types of relationships, if set.
    pub edge_types: Option<Vec<bool>>,
    /// Whether a node may be a neighbour, decided from the graph alone.
    pub allowed: &'a (dyn Fn(Node) -> bool + Sync),
}

const DAY_MICROS: f64 = 86_400_000_000.0;

/// What the score of an edge is computed from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EdgeScoreInputs {
    /// The weight of the type of relationship.
    pub base_weight: f64,
    /// The weight of the relationship times its confidence.
    pub confidence: f64,
    /// `None` if age does not matter: a derived relationship holds as long as its source does.
    pub age_days: Option<f64>,
    /// Whether the type of relationship counts less against its direction.
    pub reciprocal: bool,
    /// Whether the relationship is followed against its direction.
    pub reverse: bool,
    /// The number of hops from the primary, from 1.
    pub depth: u32,
    /// The numbers of relationships of both ends.
    pub degrees: (usize, usize),
}

impl EdgeScoreInputs {
    /// Returns a score between 0 and 1.
    pub fn score(&self) -> f64 {
        let ExpansionRecipe { fades_days, reciprocal, least_confidence, most_confidence, .. } = EXPANSION;
        let recency = self.age_days.map_or(1.0, |age| (-age.max(0.0) / fades_days).exp());
        let direction = if self.reciprocal && self.reverse { reciprocal } else { 1.0 };
        let raw = self.base_weight * self.confidence.clamp(least_confidence, most_confidence) * recency * direction;
        let score = raw * self.depth_penalty() * self.hub_damping();
        score / (score + 1.0)
    }

    /// The factor for the distance from the primary.
    pub fn depth_penalty(&self) -> f64 {
        1.0 / f64::from(1 + self.depth)
    }

    /// The factor for the degrees of both ends, which lowers hubs.
    pub fn hub_damping(&self) -> f64 {
        let (a, b) = self.degrees;
        1.0 / (1.0 + (a as f64).ln_1p() + (b as f64).ln_1p())
    }
}

/// A relationship that led to a neighbour.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowedEdge {
    pub from: Node,
    pub to: Node,
    pub edge: Edge,
    pub reverse: bool,
    pub depth: u32,
    pub score: f64,
    pub facts: EdgeScoreInputs,
    /// The score that it added to the neighbour.
    pub gave: f64,
}

/// The result of an expansion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpansionResult {
    /// In the order in which they were followed.
    pub ways: Vec<FollowedEdge>,
    /// Nodes that were not candidates before.
    pub neighbors: Vec<Node>,
    /// Whether a limit left out neighbours.
    pub truncated: bool,
    /// The largest degree of a sampled hub.
    pub hub_degree: Option<usize>,
    /// How often a relationship led to a node that was found before.
    pub collapsed: usize,
}

/// Follows the best relationships of the primaries, best primary first, and adds the score they carry over. Appends the
/// neighbours to `candidates`. `fits` makes the final decision on a neighbour; it is called for few nodes.
pub fn expand(
    snapshot: &Snapshot,
    now: Time,
    candidates: &mut Vec<Candidate>,
    primaries: usize,
    how: &Expansion<'_>,
    mut fits: impl FnMut(Node) -> bool,
) -> ExpansionResult {
    let mut expanded = ExpansionResult::default();
    let bases: FxHashMap<Node, f64> = candidates.iter().map(|c| (c.node, c.score())).collect();
    let mut met: FxHashSet<Node> = FxHashSet::default();
    let mut gains: FxHashMap<Node, (f64, f64)> = FxHashMap::default();
    let heads: Vec<Node> = candidates.iter().take(primaries).map(|c| c.node).collect();
    'primaries: for primary in heads {
        let base = bases[&primary].max(0.0);
        let mut frontier = vec![primary];
        for depth in 1..=how.depth {
            let mut next = Vec::new();
            for from in frontier {
                let (ways, hub) = ways(snapshot, now, from, depth, how);
                expanded.hub_degree = expanded.hub_degree.max(hub);
                for mut way in ways.into_iter().filter(|way| fits(way.to)).take(how.per_primary) {
                    if way.to == primary {
                        continue;
                    }
                    let is_new = !bases.contains_key(&way.to) && !gains.contains_key(&way.to);
                    if is_new && expanded.neighbors.len() >= how.most {
                        expanded.truncated = true;
                        break 'primaries;
                    }
                    if is_new {
                        expanded.neighbors.push(way.to);
                    } else {
                        expanded.collapsed += 1;
                    }
                    let (sum, cap) = gains.entry(way.to).or_default();
                    *cap = cap.max(EXPANSION.most_boost * base);
                    way.gave = (base * how.weight * way.score).min((*cap - *sum).max(0.0));
                    *sum += way.gave;
                    if met.insert(way.to) {
                        next.push(way.to);
                    }
                    expanded.ways.push(way);
                }
            }
            frontier = next;
        }
    }
    for candidate in candidates.iter_mut() {
        if let Some((gain, _)) = gains.get(&candidate.node).filter(|(gain, _)| *gain > 0.0) {
            candidate.add("neighbor_boost", *gain);
        }
    }
    for node in &expanded.neighbors {
        let mut candidate = Candidate::new(*node);
        candidate.add("neighbor_boost", gains[node].0);
        candidates.push(candidate);
    }
    sort(candidates, |node| snapshot.thing(node).0);
    expanded
}

/// Returns the relationships of a node that may be followed, best first, and its degree if it is a hub.
fn ways(
    snapshot: &Snapshot,
    now: Time,
    from: Node,
    depth: u32,
    how: &Expansion<'_>,
) -> (Vec<FollowedEdge>, Option<usize>) {
    let degree = snapshot.degree(from);
    let links = snapshot.outgoing(from).iter().map(|l| (l, false));
    let links = links.chain(snapshot.incoming(from).iter().map(|l| (l, true)));
    let mut all = Vec::new();
    for ((to, edge, type_no), reverse) in links {
        let allowed = how.edge_types.as_ref().is_none_or(|types| types[type_no.index()]);
        if to == from || !allowed || snapshot.is_ended(to) || !(how.allowed)(to) {
            continue;
        }
        let rule = snapshot.registry.ranking(snapshot.edge_type(edge));
        if rule.is_some_and(|r| !r.allow_neighbor || depth > u32::from(r.max_depth_allowed)) {
            continue;
        }
        let age = now.0.saturating_sub(snapshot.since(edge).0) as f64 / DAY_MICROS;
        let facts = EdgeScoreInputs {
            base_weight: rule.map_or(EXPANSION.generic, |r| r.base_weight),
            confidence: snapshot.weight(edge).unwrap_or(1.0) * snapshot.confidence(edge).unwrap_or(1.0),
            age_days: snapshot.derivation(edge).is_none().then_some(age),
            reciprocal: rule.is_some_and(|r| r.reciprocal_boost),
            reverse,
            depth,
            degrees: (degree, snapshot.degree(to)),
        };
        all.push((type_no, FollowedEdge { from, to, edge, reverse, depth, score: facts.score(), facts, gave: 0.0 }));
    }
    let by = |a: &FollowedEdge, b: &FollowedEdge| {
        b.score.total_cmp(&a.score).then_with(|| snapshot.edge_thing(a.edge).cmp(&snapshot.edge_thing(b.edge)))
    };
    all.sort_by(|a, b| by(&a.1, &b.1));
    if degree <= EXPANSION.hub {
        return (all.into_iter().map(|(_, way)| way).collect(), None);
    }
    // Prevents a frequent type from crowding out the others.
    let types: FxHashSet<_> = all.iter().map(|(type_no, _)| *type_no).collect();
    let each = whole_count((how.per_primary as f64 * EXPANSION.stratified / types.len().max(1) as f64).ceil());
    let mut taken: FxHashMap<_, usize> = FxHashMap::default();
    all.retain(|(type_no, _)| {
        let count = taken.entry(*type_no).or_default();
        *count += 1;
        *count <= each
    });
    (all.into_iter().map(|(_, way)| way).collect(), Some(degree))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: EdgeScoreInputs = EdgeScoreInputs {
        base_weight: 1.0,
        confidence: 1.0,
        age_days: None,
        reciprocal: false,
        reverse: false,
        depth: 1,
        degrees: (3, 3),
    };

    #[test]
    fn edge_scores_follow_their_formula() {
        let damping = 1.0 / (1.0 + 4f64.ln() * 2.0);
        let expected = 0.5 * damping;
        assert!((FACTS.score() - expected / (1.0 + expected)).abs() < 1e-12);
        let more = EdgeScoreInputs { base_weight: 1.6, ..FACTS };
        assert!(more.score() > FACTS.score(), "a heavier type ranks higher");
        let old = EdgeScoreInputs { age_days: Some(90.0), ..FACTS };
        let new = EdgeScoreInputs { age_days: Some(0.0), ..FACTS };
        assert!(old.score() < new.score());
        assert_eq!(new.score(), FACTS.score());
        let back = EdgeScoreInputs { reciprocal: true, reverse: true, ..FACTS };
        assert!(back.score() > FACTS.score());
        let hub = EdgeScoreInputs { degrees: (3, 5_000), ..FACTS };
        assert!(hub.score() < FACTS.score());
        let far = EdgeScoreInputs { depth: 2, ..FACTS };
        assert!(far.score() < FACTS.score());
        let clamped = EdgeScoreInputs { confidence: 100.0, ..FACTS };
        assert_eq!(clamped.score(), EdgeScoreInputs { confidence: 2.0, ..FACTS }.score());
    }
}
