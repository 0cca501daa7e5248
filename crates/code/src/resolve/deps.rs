//! What an answer was found with, so that later one can tell whether it still holds.
//!
//! Everything that can change is a number, an atom: a file, or one entry of a table over all files. Numbers of entries
//! are hashes; two entries with the same number only make an answer be found again without need.

use super::value::{FileId, Gid, Sym, Value};
use crate::language::Language;
use rustc_hash::{FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

pub type Atom = u32;

/// Stands for more atoms than are worth keeping: such an answer never holds.
pub const MANY: Atom = u32::MAX;
const MOST_ATOMS: usize = 4_000;

/// An entry of a table over all files.
#[derive(Clone, Copy, Hash)]
pub enum Entry {
    /// The classes directly derived from one.
    Derived(Gid),
    /// All classes below one.
    Below(Gid),
    /// Whether something is put under this name from outside anywhere.
    Written(Sym),
    /// A name that a module gives on from all that others give.
    Star(FileId, Sym),
    /// A name at the top of a Go package, by folder.
    Go(u32, Sym),
    Package(Sym, Sym),
    Macro(Sym),
    Function(Language, Sym),
    Methods(Language, Sym),
    Callers(Gid),
    Receivers(Gid),
    Made(Gid),
    /// Whether instances of a class, or of one below it, are made.
    MadeBelow(Gid),
    /// Whether instances of anything are made.
    AnyMade,
    Write(Value, Sym),
    WrittenNames(Value),
    Owners(Gid),
}

impl Entry {
    /// Whether rounds may find it different: what all files said in the one before.
    pub fn is_told(self) -> bool {
        match self {
            Entry::Callers(_)
            | Entry::Receivers(_)
            | Entry::Made(_)
            | Entry::MadeBelow(_)
            | Entry::AnyMade
            | Entry::Write(..)
            | Entry::WrittenNames(_)
            | Entry::Owners(_) => true,
            Entry::Derived(_)
            | Entry::Below(_)
            | Entry::Written(_)
            | Entry::Star(..)
            | Entry::Go(..)
            | Entry::Package(..)
            | Entry::Macro(_)
            | Entry::Function(..)
            | Entry::Methods(..) => false,
        }
    }

    pub fn atom(self) -> Atom {
        let mut hasher = FxHasher::default();
        self.hash(&mut hasher);
        let hash = hasher.finish();
        // Files have the numbers with the highest bit clear.
        (((hash >> 32) ^ hash) as u32 | 1 << 31) & !1
    }
}

/// What has changed.
pub struct Changed {
    atoms: FxHashSet<Atom>,
    /// A bit for each atom, by a part of its number: nearly every question is answered by this.
    bits: Box<[u64; BITS / 64]>,
}

const BITS: usize = 1 << 16;

impl Default for Changed {
    fn default() -> Changed {
        Changed { atoms: FxHashSet::default(), bits: Box::new([0; BITS / 64]) }
    }
}

impl Changed {
    pub fn file(&mut self, file: FileId) {
        self.add(file);
    }

    pub fn entry(&mut self, entry: Entry) {
        self.add(entry.atom());
    }

    pub fn extend(&mut self, other: &Changed) {
        other.atoms.iter().for_each(|atom| self.add(*atom));
    }

    fn add(&mut self, atom: Atom) {
        let (word, bit) = place(atom);
        self.bits[word] |= bit;
        self.atoms.insert(atom);
    }

    pub fn len(&self) -> usize {
        self.atoms.len()
    }

    pub fn has_file(&self, file: FileId) -> bool {
        self.atoms.contains(&file)
    }

    /// The same as `hits`, of many atoms in their order.
    pub fn hits_sorted(&self, deps: &[Atom]) -> bool {
        if self.atoms.len() * 8 > deps.len() {
            return self.hits(deps);
        }
        let last = deps.last().copied();
        self.atoms.iter().any(|atom| deps.binary_search(atom).is_ok()) || last == Some(MANY) && !self.atoms.is_empty()
    }

    /// Whether an answer found with these must be found again.
    pub fn hits(&self, deps: &[Atom]) -> bool {
        !self.atoms.is_empty()
            && deps.iter().any(|atom| {
                let (word, bit) = place(*atom);
                *atom == MANY || (self.bits[word] & bit != 0 && self.atoms.contains(atom))
            })
    }
}

/// All atoms of several lists, sorted. Lists are often the same one.
pub fn union<'a>(lists: impl Iterator<Item = &'a Arc<[Atom]>>) -> Box<[Atom]> {
    let mut seen = FxHashSet::default();
    let mut all: Vec<Atom> = Vec::new();
    for list in lists {
        if seen.insert(Arc::as_ptr(list).cast::<Atom>()) {
            all.extend(&**list);
        }
    }
    all.sort_unstable();
    all.dedup();
    all.into()
}

fn place(atom: Atom) -> (usize, u64) {
    let at = ((atom >> 15) ^ atom) as usize % BITS;
    (at / 64, 1 << (at % 64))
}

/// Atoms in the order they are met, one frame per open question.
pub struct Trail {
    atoms: Vec<Atom>,
    /// Where the innermost frame begins.
    start: usize,
    seen: FxHashSet<Arc<[Atom]>>,
    /// Where in `atoms` an atom was met last, by a part of its number: most of what is met was met before.
    places: Box<[u32; PLACES]>,
}

const PLACES: usize = 1 << 12;
/// So many are sorted faster than it takes to see how they lie.
const FEW: usize = 32;

impl Default for Trail {
    fn default() -> Trail {
        Trail { atoms: vec![], start: 0, seen: FxHashSet::default(), places: Box::new([0; PLACES]) }
    }
}

impl Trail {
    /// Opens a frame; what is given back closes it.
    pub fn begin(&mut self) -> usize {
        std::mem::replace(&mut self.start, self.atoms.len())
    }

    /// Closes a frame and gives what was met in it, which the frame around has met too.
    pub fn end(&mut self, outer: usize) -> Arc<[Atom]> {
        self.compact();
        let found = &self.atoms[self.start..];
        let deps = match self.seen.get(found) {
            Some(known) => known.clone(),
            None => {
                let deps: Arc<[Atom]> = found.into();
                self.seen.insert(deps.clone());
                deps
            }
        };
        self.start = outer;
        deps
    }

    /// Forgets everything met, for a question that nobody around waits for.
    pub fn clear(&mut self) {
        self.atoms.clear();
        self.start = 0;
    }

    pub fn push(&mut self, atom: Atom) {
        self.meet(atom);
        self.keep_short();
    }

    pub fn extend(&mut self, deps: &[Atom]) {
        deps.iter().for_each(|atom| self.meet(*atom));
        self.keep_short();
    }

    fn meet(&mut self, atom: Atom) {
        let place = &mut self.places[((atom >> 12) ^ atom) as usize % PLACES];
        let at = *place as usize;
        if at < self.start || self.atoms.get(at) != Some(&atom) {
            *place = self.atoms.len() as u32;
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
            // Put together from sorted frames, which this finds.
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
