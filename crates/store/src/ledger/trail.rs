//! Detects that the log was replaced by another: after a failover that lost its end, or a restore of an earlier state.
//!
//! A ledger remembers the position of every head it reads or writes. The next head must continue from the last of them;
//! otherwise everything that this process caches about the log refers to transactions that no longer exist.

use super::Ledger;
use crate::{Head, Reader, Writer};
use lukasa_model::{Position, Result, Scope, Tx};
use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Positions kept, to find where two logs diverge.
const KEPT: usize = 4_096;
/// Replacements kept, to redirect followers of a replaced log.
const KEPT_REPLACEMENTS: usize = 64;

/// Unique across all ledgers and logs of the process: what is cached under one epoch does not apply to another.
static EPOCHS: AtomicU64 = AtomicU64::new(1);

/// A log that was replaced by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogReplacement {
    pub scope: Scope,
    /// The last position known to be in both logs; the start if there is none.
    pub common: Position,
    /// The last known position of the lost log.
    pub lost: Position,
    /// The position of the new log when the replacement was detected.
    pub found: Position,
}

type Observer = Box<dyn Fn(&LogReplacement) + Send + Sync>;
static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Registers an observer for every later replacement. Only the first registration takes effect.
pub fn observe_replaced(observer: impl Fn(&LogReplacement) + Send + Sync + 'static) {
    OBSERVER.get_or_init(|| Box::new(observer));
}

/// Positions of one log, ascending, and the logs that it replaced.
pub(super) struct LogTrail {
    seen: VecDeque<Position>,
    replaced: VecDeque<LogReplacement>,
    epoch: u64,
}

impl Default for LogTrail {
    fn default() -> LogTrail {
        LogTrail { seen: VecDeque::new(), replaced: VecDeque::new(), epoch: next_epoch() }
    }
}

fn next_epoch() -> u64 {
    EPOCHS.fetch_add(1, Ordering::Relaxed)
}

impl LogTrail {
    fn last(&self) -> Option<Position> {
        self.seen.back().copied()
    }

    /// Records a position that follows `last`; does nothing if another thread has recorded one meanwhile.
    fn note(&mut self, last: Option<Position>, next: Position) {
        if self.last() != last || last.is_some_and(|last| next.tx <= last.tx) {
            return;
        }
        self.seen.push_back(next);
        if self.seen.len() > KEPT {
            self.seen.pop_front();
        }
    }
}

impl Ledger {
    /// Opens the project for reading and reads its head.
    pub(super) fn open(&self) -> Result<(Box<dyn Reader + '_>, Head)> {
        // Read before the store is opened, so that the reader sees every transaction recorded in the trail by now.
        let last = self.trail.lock().last();
        let mut reader = self.store.read(&self.scope)?;
        let head = reader.head()?;
        self.compare(&mut *reader, last, &head)?;
        Ok((reader, head))
    }

    /// Opens the project for writing and reads its head.
    pub(super) fn open_to_write(&self) -> Result<(Box<dyn Writer + '_>, Head)> {
        let last = self.trail.lock().last();
        let mut writer = self.store.write(&self.scope)?;
        let head = writer.head()?;
        self.compare(&mut *writer, last, &head)?;
        Ok((writer, head))
    }

    /// Records the position after a commit.
    pub(super) fn wrote(&self, before: Position, after: Position) {
        self.trail.lock().note(Some(before), after);
    }

    /// A number that changes when the log turns out to have been replaced. Caches that have no position use it for
    /// invalidation.
    pub fn epoch(&self) -> u64 {
        self.trail.lock().epoch
    }

    /// Whether the log contains a position.
    pub fn holds(&self, position: Position) -> Result<bool> {
        let (mut reader, head) = self.open()?;
        Ok(head.position() == position || position.tx < head.tx && reader.holds(position)?)
    }

    /// For a follower at a transaction with this digest: returns that transaction if the log contains it. If it belongs
    /// to a replaced log, returns the last transaction known to be common to both logs, or `None` if that is unknown.
    pub fn common_with(&self, tx: Tx, digest: u64) -> Result<Option<Tx>> {
        let (mut reader, _) = self.open()?;
        let here = reader.position(tx)?.is_some_and(|position| position.digest() == digest);
        if here {
            return Ok(Some(tx));
        }
        let trail = self.trail.lock();
        let left = trail.replaced.iter().filter(|replaced| replaced.common.tx < tx && tx <= replaced.lost.tx);
        Ok(left.map(|replaced| replaced.common.tx).min())
    }

    /// Compares a head with the last position recorded before it was read.
    fn compare(&self, reader: &mut dyn Reader, last: Option<Position>, head: &Head) -> Result<()> {
        let now = head.position();
        let goes_on = match last {
            None => true,
            Some(last) if last == now => return Ok(()),
            Some(last) => last.tx < now.tx && reader.holds(last)?,
        };
        match last {
            Some(lost) if !goes_on => self.replaced(reader, lost, now),
            _ => {
                self.trail.lock().note(last, now);
                Ok(())
            }
        }
    }

    /// Drops everything cached about a log that no longer exists, and reports the replacement.
    fn replaced(&self, reader: &mut dyn Reader, lost: Position, found: Position) -> Result<()> {
        let seen: Vec<Position> = self.trail.lock().seen.iter().copied().collect();
        // Both logs are equal up to some position and differ from there on, so binary search finds it.
        let (mut low, mut high) = (0, seen.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if reader.holds(seen[middle])? { low = middle + 1 } else { high = middle }
        }
        let common = low.checked_sub(1).map_or(Position::START, |at| seen[at]);
        let replaced = LogReplacement { scope: self.scope.clone(), common, lost, found };
        {
            let mut trail = self.trail.lock();
            if trail.last() != Some(lost) {
                // Another thread has detected it too, or has moved on.
                return Ok(());
            }
            trail.seen.retain(|position| position.tx <= common.tx);
            let last = trail.last();
            trail.note(last, found);
            trail.epoch = next_epoch();
            trail.replaced.push_back(replaced.clone());
            if trail.replaced.len() > KEPT_REPLACEMENTS {
                trail.replaced.pop_front();
            }
        }
        *self.declared.lock() = None;
        *self.recent.lock() = Default::default();
        *self.tail.lock() = Default::default();
        if let Some(observer) = OBSERVER.get() {
            observer(&replaced);
        }
        Ok(())
    }
}
