//! Where commits of the past belong in a branch's time: each gets a moment of its own, and a window that ends where
//! the branch goes on to tell something else.

use lukasa_model::Time;
use std::collections::BTreeSet;

/// A commit on the line of first parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When it was committed, by its own word.
    pub own: Time,
    /// Where the branch has it already.
    pub claimed: Option<Time>,
}

/// A commit that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its place on the line.
    pub at: usize,
    pub from: Time,
    /// Up to here nothing else is told: what the commit says may be said until then.
    pub until: Time,
}

/// Places the commits of a line, oldest first, that the branch does not have. `told` are the moments from which
/// something else was told of the code: nothing is placed on them, and no window goes beyond the next of them.
/// Those for which there is no room are left out.
///
/// Times grow along the line: a commit that says it is older than its parent comes right after it, one that says it is
/// newer than what follows right before that.
pub fn place(line: &[Step], told: &BTreeSet<Time>, now: Time) -> Vec<Placed> {
    let anchors = anchors(line);
    let mut placed = Vec::new();
    let mut at = 0;
    while at < line.len() {
        if line[at].claimed.is_some() {
            at += 1;
            continue;
        }
        let anchored = |at: &usize| anchors.get(*at).is_some_and(Option::is_some);
        let end = (at..line.len()).find(anchored).unwrap_or(line.len());
        let after = anchors[..at].iter().rev().find_map(|time| *time).unwrap_or(Time::MIN);
        let before = anchors.get(end).copied().flatten().unwrap_or(now);
        let members: Vec<usize> = (at..end).filter(|at| line[*at].claimed.is_none()).collect();
        let own: Vec<Time> = members.iter().map(|at| line[*at].own).collect();
        let times = between(&own, after, before, told);
        let last = times.last().map_or(now, |time| later(*time));
        placed.extend(members.into_iter().zip(&times).map(|(at, from)| {
            let until = told.range(later(*from)..).next().copied().unwrap_or(last);
            Placed { at, from: *from, until }
        }));
        at = end;
    }
    placed
}

/// Commits the branch has, where their times grow along the line. Others were told again later, after the branch had
/// been moved back.
fn anchors(line: &[Step]) -> Vec<Option<Time>> {
    let mut limit = Time::MAX;
    let mut found: Vec<Option<Time>> = line
        .iter()
        .rev()
        .map(|step| {
            let anchor = step.claimed.filter(|time| *time < limit);
            limit = anchor.unwrap_or(limit);
            anchor
        })
        .collect();
    found.reverse();
    found
}

/// Growing times, as near to those wanted as there is room; none when there is not enough.
fn between(own: &[Time], after: Time, before: Time, told: &BTreeSet<Time>) -> Vec<Time> {
    let mut times = Vec::with_capacity(own.len());
    let mut least = if after == Time::MIN { EARLIEST } else { later(after) };
    for time in own {
        let mut time = (*time).max(least);
        while told.contains(&time) && time < before {
            time = later(time);
        }
        least = later(time);
        times.push(time);
    }
    let mut next = before;
    for time in times.iter_mut().rev() {
        while *time >= next || told.contains(time) {
            *time = Time(time.0.min(next.0).saturating_sub(1));
            if *time < EARLIEST {
                return vec![];
            }
        }
        next = *time;
    }
    let fits = times.first().is_some_and(|first| *first > after);
    if fits { times } else { vec![] }
}

/// Git knows no commit before; a time out of range of a store must not get there.
const EARLIEST: Time = Time(0);

fn later(time: Time) -> Time {
    Time(time.0.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `own` or `own=claimed`, oldest first.
    fn line(text: &str) -> Vec<Step> {
        let step = |word: &str| {
            let (own, claimed) = word.split_once('=').map_or((word, None), |(own, claimed)| (own, Some(claimed)));
            let time = |text: &str| Time(text.parse().unwrap());
            Step { own: time(own), claimed: claimed.map(time) }
        };
        text.split_whitespace().map(step).collect()
    }

    /// `place:from-until` for all that are placed.
    fn check(text: &str, told: &[i64], now: i64, want: &str) {
        let line = line(text);
        let mut told: BTreeSet<Time> = told.iter().copied().map(Time).collect();
        told.extend(line.iter().filter_map(|step| step.claimed));
        let placed = place(&line, &told, Time(now));
        let found: Vec<String> = placed.iter().map(|p| format!("{}:{}-{}", p.at, p.from.0, p.until.0)).collect();
        assert_eq!(found.join(" "), want, "{text}");
    }

    #[test]
    fn what_lies_before_the_head_ends_where_it_begins() {
        check("10 20 30 40=40", &[], 99, "0:10-40 1:20-40 2:30-40");
        check("10 40=40", &[], 99, "0:10-40");
        check("40=40", &[], 99, "");
    }

    #[test]
    fn gaps_are_filled_up_to_what_was_told_next() {
        check("10 20=20 30 40=40 50 60=60", &[], 99, "0:10-20 2:30-40 4:50-60");
        // A tree with changes of its own was told at 35: the commit counts until then.
        check("20=20 30 32 38 40=40", &[35], 99, "1:30-35 2:32-35 3:38-40");
    }

    #[test]
    fn the_commit_beneath_a_tree_with_changes_holds_until_those_were_told() {
        check("10 20", &[50], 99, "0:10-50 1:20-50");
        // Committed in part after the last pass: the tree stays what it was told to be.
        check("10 60 70", &[50], 99, "0:10-50 1:60-71 2:70-71");
    }

    #[test]
    fn times_grow_along_the_line() {
        check("10 5 7 30 40=40", &[], 99, "0:10-40 1:11-40 2:12-40 3:30-40");
        check("10 90 20 40=40", &[], 99, "0:10-40 1:38-40 2:39-40");
        check("10=10 3 40=40", &[], 99, "1:11-40");
        check("300 400", &[], 99, "0:97-99 1:98-99");
        check("-5 -5 40=40", &[], 99, "0:0-40 1:1-40");
    }

    #[test]
    fn no_two_commits_share_a_moment() {
        // 20 belongs to a commit that is not on the line any more.
        check("20 40=40", &[20], 99, "0:21-40");
        check("39 41 40=40", &[38, 39], 99, "0:36-38 1:37-38");
    }

    #[test]
    fn without_room_nothing_is_placed() {
        check("10=10 11 12 13=13", &[], 99, "1:11-13 2:12-13");
        check("10=10 11 12 12=12", &[], 99, "");
    }

    #[test]
    fn a_commit_told_again_later_is_no_border() {
        // The branch was moved back to the first one at 80.
        check("10=80 20 30=30", &[], 99, "1:20-30");
    }
}
