//! Dependencies: what is recorded, and when a change affects it.

use super::{ChangedDependencies, DependencyId, DependencyTrail, MANY, MOST_ATOMS, TableEntry, union};
use crate::facts::DefId;
use crate::resolve::{DefRef, FileId};
use std::sync::Arc;

fn file(number: usize) -> FileId {
    FileId::new(number)
}

fn atoms(numbers: impl IntoIterator<Item = usize>) -> Vec<DependencyId> {
    numbers.into_iter().map(|number| file(number).into()).collect()
}

#[test]
fn a_change_affects_the_answers_that_depend_on_it() {
    let mut changed = ChangedDependencies::default();
    assert!(!changed.hits(&atoms([1, 2])) && !changed.hits(&[MANY]), "nothing changed");
    changed.file(file(2));
    for (deps, hit) in [(atoms([1, 2, 3]), true), (atoms([1, 3]), false), (vec![], false), (vec![MANY], true)] {
        assert_eq!(changed.hits(&deps), hit, "{deps:?}");
        assert_eq!(changed.hits_sorted(&deps), hit, "{deps:?}, sorted");
    }
    // A list so long that each change is searched in it.
    let long = atoms(0..1_000);
    assert!(changed.hits_sorted(&long));
    assert!(!changed.hits_sorted(&long[3..]));
    assert!(changed.has_file(file(2)) && !changed.has_file(file(3)));
}

#[test]
fn entries_are_not_taken_for_files() {
    let gid = |def| DefRef { file: file(1), def: DefId::new(def) };
    let mut changed = ChangedDependencies::default();
    changed.entry(TableEntry::Made(gid(1)));
    assert!(changed.hits(&[TableEntry::Made(gid(1)).id()]));
    for other in [
        TableEntry::Made(gid(2)),
        TableEntry::MadeBelow(gid(1)),
        TableEntry::Derived(gid(1)),
        TableEntry::Callers(gid(1)),
    ] {
        assert!(!changed.hits(&[other.id()]));
    }
    assert!(!changed.hits(&atoms(0..10_000)));
}

#[test]
fn a_frame_contains_the_atoms_of_the_frames_inside_it() {
    let mut trail = DependencyTrail::default();
    let outer = trail.begin();
    trail.push(file(5).into());
    let inner = trail.begin();
    trail.extend(&atoms([7, 3, 7]));
    assert_eq!(*trail.end(inner), *atoms([3, 7]), "sorted, each once");
    trail.push(file(1).into());
    assert_eq!(*trail.end(outer), *atoms([1, 3, 5, 7]));
}

#[test]
fn equal_lists_of_atoms_are_shared() {
    let mut trail = DependencyTrail::default();
    let mut list = || {
        let outer = trail.begin();
        trail.extend(&atoms([1, 2]));
        let list = trail.end(outer);
        trail.clear();
        list
    };
    assert!(Arc::ptr_eq(&list(), &list()));
}

#[test]
fn too_many_atoms_depend_on_every_change() {
    let mut trail = DependencyTrail::default();
    for (count, many) in [(MOST_ATOMS, false), (MOST_ATOMS + 1, true), (5 * MOST_ATOMS, true)] {
        let outer = trail.begin();
        trail.extend(&atoms(0..count));
        let deps = trail.end(outer);
        assert_eq!(*deps == [MANY], many, "{count} atoms");
        trail.clear();
    }
}

#[test]
fn a_union_has_each_atom_once() {
    let (one, two): (Arc<[DependencyId]>, Arc<[DependencyId]>) = (atoms([1, 4]).into(), atoms([2, 4]).into());
    assert_eq!(*union([&one, &two, &one].into_iter()), *atoms([1, 2, 4]));
}
