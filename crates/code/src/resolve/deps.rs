//! Dependencies of an answer, to determine later whether it is still valid.
//!
//! Everything that can change is a number, an atom: a file, or one entry of a table over all files. Numbers of entries
//! are hashes; a collision only recomputes an answer without need.

use super::value::{DefRef, DirId, FileId, InternedStr, PossibleValue};
use crate::convert::to_u32;
use crate::languages::LanguageId;
use rustc_hash::{FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// What an answer depends on: the number of a file, or the hash of an entry of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct DependencyId(u32);

impl From<FileId> for DependencyId {
    fn from(file: FileId) -> DependencyId {
        DependencyId(file.number())
    }
}

/// Replaces a list of more than `MOST_ATOMS` atoms: such an answer is never valid after a change.
pub const MANY: DependencyId = DependencyId(u32::MAX);
const MOST_ATOMS: usize = 4_000;

/// An entry of a table over all files.
#[derive(Clone, Copy, Hash)]
pub enum TableEntry {
    /// The classes directly derived from one.
    Derived(DefRef),
    /// All classes below one.
    Below(DefRef),
    /// Whether any code outside an object writes a member of this name.
    Written(InternedStr),
    /// A name that a module re-exports with `export *`.
    Star(FileId, InternedStr),
    /// A name that the files of a folder share.
    Folder(DirId, InternedStr),
    Package(InternedStr, InternedStr),
    Macro(InternedStr),
    Function(LanguageId, InternedStr),
    Methods(LanguageId, InternedStr),
    Callers(DefRef),
    Receivers(DefRef),
    Made(DefRef),
    /// Whether instances of a class, or of a derived one, are made.
    MadeBelow(DefRef),
    /// Whether instances of any class are made.
    AnyMade,
    Write(PossibleValue, InternedStr),
    WrittenNames(PossibleValue),
    Owners(DefRef),
}

impl TableEntry {
    /// Whether the entry can differ between rounds, because it comes from the files' contributions in the previous
    /// round.
    pub fn differs_between_rounds(self) -> bool {
        match self {
            TableEntry::Callers(_)
            | TableEntry::Receivers(_)
            | TableEntry::Made(_)
            | TableEntry::MadeBelow(_)
            | TableEntry::AnyMade
            | TableEntry::Write(..)
            | TableEntry::WrittenNames(_)
            | TableEntry::Owners(_) => true,
            TableEntry::Derived(_)
            | TableEntry::Below(_)
            | TableEntry::Written(_)
            | TableEntry::Star(..)
            | TableEntry::Folder(..)
            | TableEntry::Package(..)
            | TableEntry::Macro(_)
            | TableEntry::Function(..)
            | TableEntry::Methods(..) => false,
        }
    }

    /// The entry as a number.
    pub fn id(self) -> DependencyId {
        let mut hasher = FxHasher::default();
        self.hash(&mut hasher);
        let hash = hasher.finish();
        // The highest bit distinguishes entries from files.
        #[expect(clippy::cast_possible_truncation, reason = "both halves of the hash are in the lower one")]
        let folded = ((hash >> 32) ^ hash) as u32;
        DependencyId((folded | 1 << 31) & !1)
    }
}

/// A set of changed atoms.
pub struct ChangedDependencies {
    atoms: FxHashSet<DependencyId>,
    /// A Bloom filter of the atoms: it answers nearly every lookup.
    bits: Box<[u64; BITS / 64]>,
}

const BITS: usize = 1 << 16;

impl Default for ChangedDependencies {
    fn default() -> ChangedDependencies {
        ChangedDependencies { atoms: FxHashSet::default(), bits: Box::new([0; BITS / 64]) }
    }
}

impl ChangedDependencies {
    /// Adds a file.
    pub fn file(&mut self, file: FileId) {
        self.add(file.into());
    }

    /// Adds an entry of a table.
    pub fn entry(&mut self, entry: TableEntry) {
        self.add(entry.id());
    }

    /// Adds everything that another set contains.
    pub fn extend(&mut self, other: &ChangedDependencies) {
        other.atoms.iter().for_each(|atom| self.add(*atom));
    }

    fn add(&mut self, atom: DependencyId) {
        let (word, bit) = place(atom);
        self.bits[word] |= bit;
        self.atoms.insert(atom);
    }

    /// The number of changes.
    pub fn len(&self) -> usize {
        self.atoms.len()
    }

    /// Whether a file is among the changes.
    pub fn has_file(&self, file: FileId) -> bool {
        self.atoms.contains(&file.into())
    }

    /// Like `hits`, for a long sorted list.
    pub fn hits_sorted(&self, deps: &[DependencyId]) -> bool {
        if self.atoms.len() * 8 > deps.len() {
            return self.hits(deps);
        }
        let last = deps.last().copied();
        self.atoms.iter().any(|atom| deps.binary_search(atom).is_ok()) || last == Some(MANY) && !self.atoms.is_empty()
    }

    /// Whether an answer with these dependencies must be recomputed.
    pub fn hits(&self, deps: &[DependencyId]) -> bool {
        !self.atoms.is_empty()
            && deps.iter().any(|atom| {
                let (word, bit) = place(*atom);
                *atom == MANY || (self.bits[word] & bit != 0 && self.atoms.contains(atom))
            })
    }
}

/// All atoms of several lists, sorted. The same list often occurs more than once.
pub fn union<'a>(lists: impl Iterator<Item = &'a Arc<[DependencyId]>>) -> Box<[DependencyId]> {
    let mut seen = FxHashSet::default();
    let mut all: Vec<DependencyId> = Vec::new();
    for list in lists {
        if seen.insert(Arc::as_ptr(list).cast::<DependencyId>()) {
            all.extend(&**list);
        }
    }
    all.sort_unstable();
    all.dedup();
    all.into()
}

fn place(atom: DependencyId) -> (usize, u64) {
    let at = ((atom.0 >> 15) ^ atom.0) as usize % BITS;
    (at / 64, 1 << (at % 64))
}

/// Records the atoms that are read, with one frame per open question.
pub struct DependencyTrail {
    atoms: Vec<DependencyId>,
    /// Start of the innermost frame.
    start: usize,
    seen: FxHashSet<Arc<[DependencyId]>>,
    /// The last position of an atom in `atoms`, by a hash of the atom: most atoms are read repeatedly.
    places: Box<[u32; PLACES]>,
}

const PLACES: usize = 1 << 12;
/// Up to this length, an unstable sort is faster than detecting sorted runs.
const FEW: usize = 32;

impl Default for DependencyTrail {
    fn default() -> DependencyTrail {
        DependencyTrail { atoms: vec![], start: 0, seen: FxHashSet::default(), places: Box::new([0; PLACES]) }
    }
}

impl DependencyTrail {
    /// Opens a frame; pass the result to `end`.
    pub fn begin(&mut self) -> usize {
        std::mem::replace(&mut self.start, self.atoms.len())
    }

    /// Closes a frame and returns its atoms, which also belong to the enclosing frame.
    pub fn end(&mut self, outer: usize) -> Arc<[DependencyId]> {
        self.compact();
        let found = &self.atoms[self.start..];
        let deps = match self.seen.get(found) {
            Some(known) => known.clone(),
            None => {
                let deps: Arc<[DependencyId]> = found.into();
                self.seen.insert(deps.clone());
                deps
            }
        };
        self.start = outer;
        deps
    }

    /// Drops all atoms and frames, before a new outermost question.
    pub fn clear(&mut self) {
        self.atoms.clear();
        self.start = 0;
    }

    /// Adds an atom to the innermost frame.
    pub fn push(&mut self, atom: DependencyId) {
        self.meet(atom);
        self.keep_short();
    }

    /// Adds the atoms of an answer that is used again.
    pub fn extend(&mut self, deps: &[DependencyId]) {
        deps.iter().for_each(|atom| self.meet(*atom));
        self.keep_short();
    }

    fn meet(&mut self, atom: DependencyId) {
        let place = &mut self.places[((atom.0 >> 12) ^ atom.0) as usize % PLACES];
        let at = *place as usize;
        if at < self.start || self.atoms.get(at) != Some(&atom) {
            *place = to_u32(self.atoms.len());
            self.atoms.push(atom);
        }
    }

    fn keep_short(&mut self) {
        if self.atoms.len() - self.start > 4 * MOST_ATOMS {
            self.compact();
        }
    }

    fn compact(&mut self) {
        let frame = &mut self.atoms[self.start..];
        if frame.is_sorted_by(|a, b| a < b) && frame.len() <= MOST_ATOMS && frame.last() != Some(&MANY) {
            return;
        }
        if frame.len() <= FEW {
            frame.sort_unstable();
        } else {
            // The stable sort detects the sorted runs that inner frames left.
            frame.sort();
        }
        let mut kept = 1;
        for at in 1..frame.len() {
            if frame[at] != frame[kept - 1] {
                frame[kept] = frame[at];
                kept += 1;
            }
        }
        let many = kept > MOST_ATOMS || frame[kept - 1] == MANY;
        self.atoms.truncate(self.start + kept);
        if many {
            self.atoms.truncate(self.start);
            self.atoms.push(MANY);
        }
    }
}
