//! Ids of the entries of tables: each table has a type of its own, so that ids of different tables cannot be mixed up.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut};

/// The id of an entry: its index in one particular table.
pub trait Id: Copy + Ord {
    /// The id of the entry at this index.
    fn new(index: usize) -> Self;
    /// The index of the entry.
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[repr(transparent)]
        #[serde(transparent)]
        pub struct $name(u32);

        impl $name {
            /// An id that no entry has.
            pub const MAX: $name = $name(u32::MAX);

            /// The id of the entry at this index of its table. Panics if the table is larger than any that is built.
            #[inline]
            pub const fn new(index: usize) -> $name {
                assert!(index < u32::MAX as usize, "tables have fewer than 2^32 - 1 entries");
                #[expect(clippy::cast_possible_truncation, reason = "checked above")]
                $name(index as u32)
            }

            /// The index of the entry in its table.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The id as a number, for hashes and file formats.
            #[inline]
            pub const fn number(self) -> u32 {
                self.0
            }
        }

        impl Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl Id for $name {
            #[inline]
            fn new(index: usize) -> $name {
                $name::new(index)
            }

            #[inline]
            fn index(self) -> usize {
                self.index()
            }
        }
    )*};
}

ids! {
    /// Index into `FileFacts::names`.
    NameId;
    /// Index into `FileFacts::defs`. `ROOT` is the file itself.
    DefId;
    /// Index into `FileFacts::vars`.
    VarId;
    /// Index into `FileFacts::exprs`. `UNKNOWN` is always present.
    ExprId;
    /// Index into `FileFacts::calls`.
    CallId;
    /// Index into `FileFacts::binds`.
    BindId;
    /// Index into `FileFacts::imports`.
    ImportId;
    /// A scope of a file while its facts are built.
    ScopeId;
    /// Index of a file in the program.
    FileId;
    /// Index of a folder in the program.
    DirId;
    /// An interned string of the program.
    InternedStr;
    /// A name outside the program, see `Program::external_path`.
    ExternalId;
}

/// A vector whose entries are found by ids of one type. It is serialized as a plain sequence.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent, bound(serialize = "T: Serialize", deserialize = "T: Deserialize<'de>"))]
pub struct IdVec<I, T> {
    entries: Vec<T>,
    id: PhantomData<fn(I) -> I>,
}

impl<I: Id, T> IdVec<I, T> {
    /// An empty vector.
    pub const fn new() -> IdVec<I, T> {
        IdVec { entries: Vec::new(), id: PhantomData }
    }

    /// Appends an entry and returns its id.
    #[inline]
    pub fn push(&mut self, entry: T) -> I {
        let id = self.next_id();
        self.entries.push(entry);
        id
    }

    /// The id of the entry that is pushed next.
    #[inline]
    pub fn next_id(&self) -> I {
        I::new(self.entries.len())
    }

    /// The ids of all entries, in order.
    #[inline]
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + Clone + use<I, T> {
        (0..self.entries.len()).map(I::new)
    }

    /// All entries with their ids, in order.
    #[inline]
    pub fn iter_ids(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator + Clone {
        self.entries.iter().enumerate().map(|(index, entry)| (I::new(index), entry))
    }

    /// The entry with this id, if there is one.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        self.entries.get(id.index())
    }

    /// Resizes the vector, filling it with new entries.
    pub fn resize_with(&mut self, len: usize, entry: impl FnMut() -> T) {
        self.entries.resize_with(len, entry);
    }

    /// Drops all entries from this one on.
    pub fn truncate(&mut self, end: I) {
        self.entries.truncate(end.index());
    }
}

impl<I, T> Default for IdVec<I, T> {
    fn default() -> IdVec<I, T> {
        IdVec { entries: Vec::new(), id: PhantomData }
    }
}

impl<I, T> From<Vec<T>> for IdVec<I, T> {
    fn from(entries: Vec<T>) -> IdVec<I, T> {
        IdVec { entries, id: PhantomData }
    }
}

impl<I, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<S: IntoIterator<Item = T>>(entries: S) -> IdVec<I, T> {
        Vec::from_iter(entries).into()
    }
}

impl<I, T: Debug> Debug for IdVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.fmt(f)
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        &self.entries[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.entries[id.index()]
    }
}

impl<I, T> Deref for IdVec<I, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.entries
    }
}

impl<I, T> DerefMut for IdVec<I, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.entries
    }
}

impl<I, T> IntoIterator for IdVec<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'v, I, T> IntoIterator for &'v IdVec<I, T> {
    type Item = &'v T;
    type IntoIter = std::slice::Iter<'v, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::{DefId, IdVec, NameId};

    #[test]
    fn ids_are_serialized_as_numbers_and_vectors_as_sequences() {
        let names: IdVec<NameId, &str> = vec!["a", "b"].into();
        let text = serde_json::to_string(&(DefId::new(7), &names, Some(DefId::MAX))).expect("plain values");
        assert_eq!(text, r#"[7,["a","b"],4294967295]"#);
        let back: (u32, Vec<String>, Option<u32>) = serde_json::from_str(&text).expect("the same as plain numbers");
        assert_eq!(back, (7, vec!["a".into(), "b".into()], Some(u32::MAX)));
        let again: (DefId, IdVec<NameId, String>, Option<DefId>) =
            serde_json::from_str(&text).expect("what was written");
        assert_eq!((again.0, again.2), (DefId::new(7), Some(DefId::MAX)));
        assert_eq!(again.1[NameId::new(1)], "b");
    }

    #[test]
    fn an_id_is_as_large_as_a_number() {
        assert_eq!(size_of::<DefId>(), size_of::<u32>());
        assert_eq!(size_of::<IdVec<DefId, u8>>(), size_of::<Vec<u8>>());
    }

    #[test]
    fn a_vector_returns_the_ids_of_what_is_pushed() {
        let mut names = IdVec::<NameId, &str>::new();
        assert_eq!(names.next_id(), NameId::new(0));
        assert_eq!((names.push("a"), names.push("b")), (NameId::new(0), NameId::new(1)));
        assert_eq!(names.ids().collect::<Vec<_>>(), [NameId::new(0), NameId::new(1)]);
        assert_eq!(names.iter_ids().next_back(), Some((NameId::new(1), &"b")));
        assert_eq!(names.get(NameId::new(2)), None);
    }
}
