//! Selects what an answer contains: in which order it is offered, and what fits into a token budget, as whole units by
//! slot, in full or in brief, never cut.

use crate::pipeline::fuse::Candidate;
use crate::pipeline::whole_count;
use lukasa_graph::{Node, Snapshot};
use rustc_hash::FxHashMap;

/// Returns the best symbol of each file in the order of files, then the second of each, and so on: otherwise the best
/// would be in few files, and relevant files would be missing. `shows` is how well a kind of symbol represents its
/// file.
pub fn by_file(
    files: &[Candidate],
    symbols: &[Candidate],
    most_files: usize,
    shows: impl Fn(Node) -> f64,
    file_of: impl Fn(Node) -> Option<Node>,
) -> Vec<Candidate> {
    let places: FxHashMap<Node, usize> = files.iter().enumerate().map(|(at, file)| (file.node, at)).collect();
    let mut seen: FxHashMap<Node, usize> = FxHashMap::default();
    let mut all: Vec<((usize, usize), &Candidate)> = Vec::new();
    let mut symbols: Vec<(f64, &Candidate)> =
        symbols.iter().map(|symbol| (symbol.score() * shows(symbol.node), symbol)).collect();
    symbols.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (_, symbol) in symbols {
        let Some(file) = file_of(symbol.node) else { continue };
        let Some(place) = places.get(&file).filter(|place| **place < most_files) else { continue };
        let turn = seen.entry(file).or_default();
        all.push(((*turn, *place), symbol));
        *turn += 1;
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, symbol)| symbol.clone()).collect()
}

/// How relevant a relationship is for a task, by the centrality of its other end, its confidence, the weight of its
/// type, and the number of relationships of the other end: a relationship to a hub is less relevant.
pub fn relevance(rank: f64, confidence: f64, weight: f64, degree: usize) -> f64 {
    let crowd = (degree + 2) as f64;
    rank * confidence * weight / crowd.log2()
}

/// Sorts nodes by their distance from anchors, nearest first; at the same distance, the most central first.
pub fn nearest_first(snapshot: &Snapshot, nodes: &mut [(Node, u32)]) {
    nodes.sort_by(|a, b| {
        // By degree, because PageRank would have to be recomputed after each write.
        let central = snapshot.degree(b.0).cmp(&snapshot.degree(a.0));
        a.1.cmp(&b.1).then(central).then(snapshot.thing(a.0).cmp(&snapshot.thing(b.0)))
    });
}

/// A unit that can be included in full, in brief, or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct PackUnit {
    /// The index of its slot.
    pub slot: usize,
    /// Its cost in tokens in each form, from the fullest to the briefest.
    pub costs: Vec<usize>,
}

/// Chooses the form of each unit, or `None`. Within a slot, earlier units have priority.
///
/// Every slot first gets its share of the budget, so that one slot cannot crowd out the others. What slots leave over
/// then goes to units that are in brief form or omitted, slot by slot.
pub fn choose(units: &[PackUnit], shares: &[f64], budget: usize) -> Vec<Option<usize>> {
    let mut chosen: Vec<Option<usize>> = vec![None; units.len()];
    let mut spent = 0;
    for (slot, share) in shares.iter().enumerate() {
        let mut left = whole_count(budget as f64 * share);
        for (unit, chosen) in units.iter().zip(&mut chosen).filter(|(unit, _)| unit.slot == slot) {
            if let Some(form) = unit.costs.iter().position(|cost| *cost <= left) {
                *chosen = Some(form);
                left -= unit.costs[form];
                spent += unit.costs[form];
            }
        }
    }
    let mut left = budget.saturating_sub(spent);
    for slot in 0..shares.len() {
        for (unit, chosen) in units.iter().zip(&mut chosen).filter(|(unit, _)| unit.slot == slot) {
            let now = chosen.map_or(0, |form| unit.costs[form]);
            let fuller = unit.costs.iter().take(chosen.unwrap_or(unit.costs.len()));
            if let Some(form) = fuller.clone().position(|cost| *cost <= left + now) {
                *chosen = Some(form);
                left = left + now - unit.costs[form];
            }
        }
    }
    chosen
}

/// Orders all units so that any prefix contains about the right share of each slot, counting units in full.
pub fn weave(units: &[PackUnit], shares: &[f64]) -> Vec<usize> {
    let full = |unit: &PackUnit| unit.costs.first().copied().unwrap_or(0) as f64;
    let mut at: Vec<(f64, usize)> = Vec::with_capacity(units.len());
    let mut spent = vec![0.0; shares.len()];
    for (place, unit) in units.iter().enumerate() {
        // The time at which the unit would be reached if all slots were filled at the speed of their shares.
        at.push((spent[unit.slot] / shares[unit.slot], place));
        spent[unit.slot] += full(unit);
    }
    at.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    at.into_iter().map(|(_, place)| place).collect()
}

/// The total cost of the chosen forms.
pub fn cost(units: &[PackUnit], chosen: &[Option<usize>]) -> usize {
    units.iter().zip(chosen).filter_map(|(unit, form)| form.map(|form| unit.costs[form])).sum()
}

/// Shortens or removes the least important unit: the last one of the last slot that has any. Returns false when nothing
/// is left.
pub fn shed(units: &[PackUnit], chosen: &mut [Option<usize>], slots: usize) -> bool {
    for slot in (0..slots).rev() {
        let last = units.iter().zip(chosen.iter_mut()).rev().find(|(unit, form)| unit.slot == slot && form.is_some());
        if let Some((unit, form)) = last {
            *form = form.map(|form| form + 1).filter(|form| *form < unit.costs.len());
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unit(slot: usize, costs: &[usize]) -> PackUnit {
        PackUnit { slot, costs: costs.to_vec() }
    }

    #[test]
    fn files_take_turns() {
        let list = |all: &[(Node, f64)]| {
            let mut list: Vec<Candidate> = all.iter().map(|(node, _)| Candidate::new(*node)).collect();
            list.iter_mut().zip(all).for_each(|(candidate, (_, score))| candidate.add("x", *score));
            list
        };
        let files = list(&[(Node(1), 3.0), (Node(2), 2.0), (Node(3), 1.0)]);
        let symbols = list(&[
            (Node(10), 9.0),
            (Node(11), 8.0),
            (Node(12), 7.0),
            (Node(20), 6.0),
            (Node(30), 5.0),
            (Node(40), 4.0),
        ]);
        // 11 is of a kind that shows little.
        let shows = |node| if node == Node(11) { 0.5 } else { 1.0 };
        let file_of = |node: Node| Some(Node(node.0 / 10)).filter(|file| *file < Node(4));
        let nodes = |most| by_file(&files, &symbols, most, shows, file_of).iter().map(|c| c.node.0).collect::<Vec<_>>();
        assert_eq!(nodes(9), [10, 20, 30, 12, 11]);
        assert_eq!(nodes(1), [10, 12, 11]);
    }

    #[test]
    fn slots_keep_their_share_and_leave_the_rest() {
        let units = [unit(0, &[90, 10]), unit(0, &[20, 5]), unit(1, &[30, 6]), unit(1, &[30, 6])];
        assert_eq!(choose(&units, &[0.5, 0.5], 100), [Some(1), Some(0), Some(0), Some(0)]);
        // The remaining budget allows the first unit in full.
        assert_eq!(choose(&units[..2], &[0.5, 0.5], 120), [Some(0), Some(0)]);
        assert_eq!(choose(&units, &[0.5, 0.5], 4), [None; 4]);
    }

    #[test]
    fn woven_slots_keep_their_shares_and_their_order() {
        let units = [unit(0, &[60]), unit(0, &[60]), unit(0, &[60]), unit(1, &[20]), unit(1, &[20]), unit(2, &[20])];
        // Starting points: 0, 120, 240 in the first slot; 0, 80 in the second; 0 in the third.
        assert_eq!(weave(&units, &[0.5, 0.25, 0.25]), [0, 3, 5, 4, 1, 2]);
        assert!(weave(&[], &[1.0]).is_empty());
    }

    proptest! {
        #[test]
        fn a_budget_is_never_exceeded(
            units in prop::collection::vec((0usize..4, prop::collection::vec(1usize..400, 1..4)), 0..40),
            budget in 0usize..2_000,
        ) {
            let units: Vec<PackUnit> = units.into_iter().map(|(slot, mut costs)| {
                costs.sort_unstable_by(|a, b| b.cmp(a));
                PackUnit { slot, costs }
            }).collect();
            let shares = [0.4, 0.25, 0.2, 0.15];
            let mut chosen = choose(&units, &shares, budget);
            prop_assert!(cost(&units, &chosen) <= budget);
            // No unit that would fit is left out.
            let left = budget - cost(&units, &chosen);
            for (unit, form) in units.iter().zip(&chosen) {
                prop_assert!(form.is_some() || unit.costs.iter().all(|cost| *cost > left));
            }
            let mut before = cost(&units, &chosen);
            while shed(&units, &mut chosen, 4) {
                let now = cost(&units, &chosen);
                prop_assert!(now <= before);
                before = now;
            }
            prop_assert_eq!(before, 0);
        }
    }
}
