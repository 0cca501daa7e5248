//! Selects what an answer contains: in which order it is offered, and what fits into a token budget, as whole units by
//! slot, in full or in brief, never cut.

use crate::pipeline::whole_count;
use lukasa_graph::{Node, Snapshot};

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
    /// The most that it may cost before every other unit had its turn.
    pub at_first: usize,
}

/// Chooses the form of each unit, or `None`. Within a slot, earlier units have priority.
///
/// Every slot first gets its share of the budget, so that one slot cannot crowd out the others. What slots leave over
/// then goes to units that are in brief form or omitted, slot by slot. Up to here no unit costs more than its
/// `at_first`, so that one long unit does not take the room of several; what is left then goes to fuller forms.
pub fn choose(units: &[PackUnit], shares: &[f64], budget: usize) -> Vec<Option<usize>> {
    let mut chosen: Vec<Option<usize>> = vec![None; units.len()];
    let mut spent = 0;
    for (slot, share) in shares.iter().enumerate() {
        let mut left = whole_count(budget as f64 * share);
        for (unit, chosen) in units.iter().zip(&mut chosen).filter(|(unit, _)| unit.slot == slot) {
            if let Some(form) = unit.costs.iter().position(|cost| *cost <= left.min(unit.at_first)) {
                *chosen = Some(form);
                left -= unit.costs[form];
                spent += unit.costs[form];
            }
        }
    }
    let mut left = budget.saturating_sub(spent);
    for is_limited in [true, false] {
        for slot in 0..shares.len() {
            for (unit, chosen) in units.iter().zip(&mut chosen).filter(|(unit, _)| unit.slot == slot) {
                let now = chosen.map_or(0, |form| unit.costs[form]);
                let most = if is_limited { unit.at_first.min(left + now) } else { left + now };
                let mut fuller = unit.costs.iter().take(chosen.unwrap_or(unit.costs.len()));
                if let Some(form) = fuller.position(|cost| *cost <= most) {
                    *chosen = Some(form);
                    left = left + now - unit.costs[form];
                }
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
        PackUnit { slot, costs: costs.to_vec(), at_first: usize::MAX }
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
    fn a_long_unit_does_not_take_the_room_of_others() {
        let limited = |costs: &[usize]| PackUnit { at_first: 20, ..unit(0, costs) };
        let units = [limited(&[80, 15, 5]), limited(&[18, 5]), limited(&[18, 5])];
        assert_eq!(choose(&units, &[1.0], 60), [Some(1), Some(0), Some(0)]);
        // What is left makes the first fuller.
        assert_eq!(choose(&units, &[1.0], 116), [Some(0), Some(0), Some(0)]);
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
                PackUnit { slot, at_first: costs[costs.len() / 2], costs }
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
