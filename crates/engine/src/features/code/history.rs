//! Assigns past commits to times on a branch: each gets its own start time, and a window that ends where the branch
//! records something else.

use lukasa_model::Time;
use std::collections::BTreeSet;

/// A commit in the history along first parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryCommit {
    /// When it was committed, according to git.
    pub own: Time,
    /// The time at which the branch already has it.
    pub claimed: Option<Time>,
}

/// A commit that can be imported, with its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitWindow {
    /// Index of the commit in the history.
    pub at: usize,
    pub from: Time,
    /// The end of the window: the branch records nothing else before it.
    pub until: Time,
}

/// Assigns windows to the commits of a history, oldest first, that the branch does not have. `recorded` are the times from
/// which the branch records something else about the code: no window begins on one of them or extends beyond the next.
/// Commits for which there is no room are left out.
///
/// Times increase along the history: a commit dated before its parent is placed right after the parent, and one dated
/// after its successor right before the successor.
pub fn assign_windows(line: &[HistoryCommit], recorded: &BTreeSet<Time>, now: Time) -> Vec<CommitWindow> {
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
        let times = between(&own, after, before, recorded);
        let last = times.last().map_or(now, |time| later(*time));
        placed.extend(members.into_iter().zip(&times).map(|(at, from)| {
            let until = recorded.range(later(*from)..).next().copied().unwrap_or(last);
            CommitWindow { at, from: *from, until }
        }));
        at = end;
    }
    placed
}

/// The times of commits that the branch has, where they increase along the history. Other commits were recorded again
/// later, after the branch had been moved back.
fn anchors(line: &[HistoryCommit]) -> Vec<Option<Time>> {
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

/// Increasing times, as near as possible to those wanted. Empty if there is not enough room.
fn between(own: &[Time], after: Time, before: Time, recorded: &BTreeSet<Time>) -> Vec<Time> {
    let mut times = Vec::with_capacity(own.len());
    let mut least = if after == Time::MIN { EARLIEST } else { later(after) };
    for time in own {
        let mut time = (*time).max(least);
        while recorded.contains(&time) && time < before {
            time = later(time);
        }
        least = later(time);
        times.push(time);
    }
    let mut next = before;
    for time in times.iter_mut().rev() {
        while *time >= next || recorded.contains(time) {
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

/// Earlier commit times are not used: they may be out of the range of a store.
const EARLIEST: Time = Time(0);

fn later(time: Time) -> Time {
    Time(time.0.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `own` or `own=claimed`, oldest first.
    fn line(text: &str) -> Vec<HistoryCommit> {
        let step = |word: &str| {
            let (own, claimed) = word.split_once('=').map_or((word, None), |(own, claimed)| (own, Some(claimed)));
            let time = |text: &str| Time(text.parse().unwrap());
            HistoryCommit { own: time(own), claimed: claimed.map(time) }
        };
        text.split_whitespace().map(step).collect()
    }

    /// Expects `index:from-until` for each commit that gets a window.
    fn check(text: &str, recorded: &[i64], now: i64, want: &str) {
        let line = line(text);
        let mut recorded: BTreeSet<Time> = recorded.iter().copied().map(Time).collect();
        recorded.extend(line.iter().filter_map(|step| step.claimed));
        let placed = assign_windows(&line, &recorded, Time(now));
        let found: Vec<String> = placed.iter().map(|p| format!("{}:{}-{}", p.at, p.from.0, p.until.0)).collect();
        assert_eq!(found.join(" "), want, "{text}");
    }

    #[test]
    fn commits_before_the_head_end_where_it_begins() {
        check("10 20 30 40=40", &[], 99, "0:10-40 1:20-40 2:30-40");
        check("10 40=40", &[], 99, "0:10-40");
        check("40=40", &[], 99, "");
    }

    #[test]
    fn gaps_are_filled_up_to_the_next_recorded_time() {
        check("10 20=20 30 40=40 50 60=60", &[], 99, "0:10-20 2:30-40 4:50-60");
        // Uncommitted changes were recorded at 35: the commit's window ends there.
        check("20=20 30 32 38 40=40", &[35], 99, "1:30-35 2:32-35 3:38-40");
    }

    #[test]
    fn the_commit_of_a_changed_tree_ends_where_the_changes_were_recorded() {
        check("10 20", &[50], 99, "0:10-50 1:20-50");
        // Part of it was committed after the last pass: the recorded working tree stays as it is.
        check("10 60 70", &[50], 99, "0:10-50 1:60-71 2:70-71");
    }

    #[test]
    fn times_increase_along_the_history() {
        check("10 5 7 30 40=40", &[], 99, "0:10-40 1:11-40 2:12-40 3:30-40");
        check("10 90 20 40=40", &[], 99, "0:10-40 1:38-40 2:39-40");
        check("10=10 3 40=40", &[], 99, "1:11-40");
        check("300 400", &[], 99, "0:97-99 1:98-99");
        check("-5 -5 40=40", &[], 99, "0:0-40 1:1-40");
    }

    #[test]
    fn no_two_commits_share_a_moment() {
        // 20 belongs to a commit that is no longer in the history.
        check("20 40=40", &[20], 99, "0:21-40");
        check("39 41 40=40", &[38, 39], 99, "0:36-38 1:37-38");
    }

    #[test]
    fn without_room_no_window_is_assigned() {
        check("10=10 11 12 13=13", &[], 99, "1:11-13 2:12-13");
        check("10=10 11 12 12=12", &[], 99, "");
    }

    #[test]
    fn a_commit_recorded_again_later_is_no_border() {
        // The branch was moved back to the first one at 80.
        check("10=80 20 30=30", &[], 99, "1:20-30");
    }
}
