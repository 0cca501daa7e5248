//! Notices that the log was replaced by another: after a fail-over that lost its end, or a restore of an earlier state.
//!
//! A ledger notes the position of every head it reads or writes. The next head it reads must go on from the last of them;
//! if it does not, what this process remembers of the log is about transactions that are there no more.

use super::Ledger;
use crate::{Head, Reader, Writer};
use lukasa_model::{Position, Result, Scope, Tx};
use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Positions kept, to find where two logs part.
const KEPT: usize = 4_096;
/// Replacements kept, to lead on who followed a log that was replaced.
const KEPT_REPLACEMENTS: usize = 64;

/// Of every ledger and every log it followed: what is remembered under one is not about another.
static EPOCHS: AtomicU64 = AtomicU64::new(1);

/// A log that was replaced by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    pub scope: Scope,
    /// The last position known to be in both; where nothing is, the start.
    pub common: Position,
    /// The last position known of the log that is gone.
    pub lost: Position,
    /// Where the log stood when that was noticed.
    pub found: Position,
}

type Observer = Box<dyn Fn(&Replaced) + Send + Sync>;
static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Has every replaced log of this process reported, from now on. The first observer stays.
pub fn observe_replaced(observer: impl Fn(&Replaced) + Send + Sync + 'static) {
    OBSERVER.get_or_init(|| Box::new(observer));
}

/// Positions of one log, ascending, and the logs that it has replaced.
pub(super) struct Trail {
    seen: VecDeque<Position>,
    replaced: VecDeque<Replaced>,
    epoch: u64,
}

impl Default for Trail {
    fn default() -> Trail {
        Trail { seen: VecDeque::new(), replaced: VecDeque::new(), epoch: next_epoch() }
    }
}

fn next_epoch() -> u64 {
    EPOCHS.fetch_add(1, Ordering::Relaxed)
}

impl Trail {
    fn last(&self) -> Option<Position> {
        self.seen.back().copied()
    }

    /// Notes a position that follows `last`; nothing when another thread has noted one meanwhile.
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
    /// Opens the project for reading, and reads where its log stands.
    pub(super) fn open(&self) -> Result<(Box<dyn Reader + '_>, Head)> {
        // Before it is opened: whatever is noted by then, the reader sees.
        let last = self.trail.lock().last();
        let mut reader = self.store.read(&self.scope)?;
        let head = reader.head()?;
        self.compare(&mut *reader, last, &head)?;
        Ok((reader, head))
    }

    /// Opens the project for writing, and reads where its log stands.
    pub(super) fn open_to_write(&self) -> Result<(Box<dyn Writer + '_>, Head)> {
        let last = self.trail.lock().last();
        let mut writer = self.store.write(&self.scope)?;
        let head = writer.head()?;
        self.compare(&mut *writer, last, &head)?;
        Ok((writer, head))
    }

    /// Notes what was just committed.
    pub(super) fn wrote(&self, before: Position, after: Position) {
        self.trail.lock().note(Some(before), after);
    }

    /// A number that changes when the log turns out to have been replaced by another. What is remembered without a position
    /// is remembered with this.
    pub fn epoch(&self) -> u64 {
        self.trail.lock().epoch
    }

    /// Whether the log has a position.
    pub fn holds(&self, position: Position) -> Result<bool> {
        let (mut reader, head) = self.open()?;
        Ok(head.position() == position || position.tx < head.tx && reader.holds(position)?)
    }

    /// The last transaction that a log which was replaced is known to have had in common with this one, for who followed it
    /// to a position with this digest.
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

    /// Compares a head with the last position that was noted before it was read.
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

    /// Forgets everything that was read of a log that is there no more, and reports it.
    fn replaced(&self, reader: &mut dyn Reader, lost: Position, found: Position) -> Result<()> {
        let seen: Vec<Position> = self.trail.lock().seen.iter().copied().collect();
        // What is in both is so up to somewhere, and from there on nothing is.
        let (mut low, mut high) = (0, seen.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if reader.holds(seen[middle])? { low = middle + 1 } else { high = middle }
        }
        let common = low.checked_sub(1).map_or(Position::START, |at| seen[at]);
        let replaced = Replaced { scope: self.scope.clone(), common, lost, found };
        {
            let mut trail = self.trail.lock();
            if trail.last() != Some(lost) {
                // Another thread has noticed it too, or has gone on.
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
