//! Indexes the names that `export * from …` provides, so that a module with many such exports is not searched
//! recursively.

use super::deps::{ChangedDependencies, TableEntry};
use super::link::{ProgramTables, differ};
use super::program::Program;
use super::value::{FileId, InternedStr, PossibleValue};
use crate::facts::{ImportId, ImportKind, ROOT, SourceImport};
use crate::languages::rules::Modules;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::rc::Rc;

#[cfg(test)]
mod tests;

/// For each module with `export *`: the imports that may provide a name.
#[derive(Default)]
pub struct StarExports {
    by_name: FxHashMap<(FileId, InternedStr), Imports>,
    /// Imports that may provide any name.
    open: FxHashMap<FileId, Imports>,
}

type Imports = SmallVec<[ImportId; 2]>;

/// The names that a module exports.
#[derive(Default)]
struct ExportedNames {
    names: FxHashSet<InternedStr>,
    /// Whether it may export names that its text does not contain.
    open: bool,
}

impl StarExports {
    /// Reads the `export *` of all modules.
    pub fn read(program: &Program, link: &ProgramTables) -> StarExports {
        let mut reading = Reading { program, link, known: FxHashMap::default(), asked: FxHashSet::default() };
        let mut stars = StarExports::default();
        for file in program.ids() {
            for (import, target) in reading.stars_of(file) {
                match target.map(|target| reading.exported_names(target)) {
                    Some(given) if !given.open => {
                        for name in &given.names {
                            stars.by_name.entry((file, *name)).or_default().push(import);
                        }
                    }
                    _ => stars.open.entry(file).or_default().push(import),
                }
            }
        }
        stars
    }

    /// Whether an `export *` of a module may provide a name.
    pub fn may_export(&self, file: FileId, import: ImportId, name: InternedStr) -> bool {
        let among = |imports: Option<&Imports>| imports.is_some_and(|imports| imports.contains(&import));
        among(self.by_name.get(&(file, name))) || among(self.open.get(&file))
    }

    /// Records the differences between two versions.
    pub fn compare(&self, new: &StarExports, changed: &mut ChangedDependencies) {
        differ(&self.by_name, &new.by_name, |(file, name)| changed.entry(TableEntry::Star(*file, *name)));
        differ(&self.open, &new.open, |file| changed.file(*file));
    }
}

struct Reading<'a> {
    program: &'a Program,
    link: &'a ProgramTables,
    known: FxHashMap<FileId, Rc<ExportedNames>>,
    /// Modules in progress: modules may re-export each other.
    asked: FxHashSet<FileId>,
}

impl Reading<'_> {
    /// The `export *` imports of a module, each with its target if that is in the program.
    fn stars_of(&self, file: FileId) -> Vec<(ImportId, Option<FileId>)> {
        let here = self.program.file(file);
        if here.rules.modules != Modules::Exports {
            return vec![];
        }
        let stars = here.facts.imports.iter_ids().filter(|(_, import)| is_star(import));
        let target = |import| match self.link.import(file, import) {
            Some(PossibleValue::Module(of)) if self.is_module(of) => Some(of),
            _ => None,
        };
        stars.map(|(import, _)| (import, target(import))).collect()
    }

    fn is_module(&self, file: FileId) -> bool {
        self.program.file(file).rules.modules == Modules::Exports
    }

    fn exported_names(&mut self, file: FileId) -> Rc<ExportedNames> {
        if let Some(known) = self.known.get(&file) {
            return known.clone();
        }
        if !self.asked.insert(file) {
            return Rc::new(ExportedNames { open: true, ..ExportedNames::default() });
        }
        let here = self.program.file(file);
        let mut given = ExportedNames { names: here.exports.keys().copied().collect(), open: false };
        given.open = given.names.contains(&self.link.words.whole);
        let named = here.facts.imports.iter().filter(|import| import.owner == ROOT && import.what != ImportKind::All);
        given.names.extend(named.filter_map(|import| import.reexport).map(|name| here.sym(name)));
        for (_, target) in self.stars_of(file) {
            let Some(target) = target else {
                given.open = true;
                continue;
            };
            let more = stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.exported_names(target));
            given.open |= more.open;
            given.names.extend(&more.names);
        }
        self.asked.remove(&file);
        let given = Rc::new(given);
        self.known.insert(file, given.clone());
        given
    }
}

fn is_star(import: &SourceImport) -> bool {
    import.owner == ROOT && import.what == ImportKind::All && import.reexport.is_some()
}
