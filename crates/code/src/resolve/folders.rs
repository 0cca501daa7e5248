//! Names that the files of a folder share (`Modules::Folders`): selects among several declarations of one name, by the
//! builds and tests that their files are part of.

use super::deps::TableEntry;
use super::eval::Eval;
use super::value::{DefRef, DirId, FileId, InternedStr};
use crate::facts::{VarId, VarKind};

impl Eval<'_> {
    /// A name of the package that a file belongs to. Only tests see names of tests.
    pub(super) fn folder_sibling(&self, file: FileId, name: InternedStr) -> Option<(FileId, VarId)> {
        let here = self.file(file);
        let folder = self.program.find_folder(&here.folder)?;
        self.note(TableEntry::Folder(folder, name));
        let declared = self.link.declared_in_folder(folder, self.program.find(&here.facts.package)?, name);
        let seen = declared.iter().filter(|(of, _)| self.link.is_test_file(file) || !self.link.is_test_file(*of));
        last_fitting(seen.copied(), |of| self.file(of).is_built_with(here))
    }

    /// A name of a package as other packages see it: without its tests, in the usual build.
    pub(super) fn folder_name(&self, folder: DirId, name: InternedStr) -> Option<(FileId, VarId)> {
        self.note(TableEntry::Folder(folder, name));
        let declared = self.link.declared_in_folder(folder, self.link.package_of_folder(folder)?, name);
        let seen = declared.iter().filter(|(of, _)| !self.link.is_test_file(*of));
        last_fitting(seen.copied(), |of| self.file(of).is_in_usual_build())
    }

    /// The counterpart of a function or method in the build in which a file is analyzed, if there is one.
    pub(super) fn in_build_of(&self, file: FileId, function: DefRef) -> Option<DefRef> {
        let (here, there) = (self.file(file), self.file(function.file));
        let def = there.facts.def(function.def);
        let name = there.sym(def.name);
        if let Some(class) = self.link.receiver(function) {
            let methods = self.link.attached(class, name).iter();
            return methods.copied().find(|method| self.file(method.file).is_built_with(here));
        }
        let folder = self.program.find_folder(&there.folder)?;
        self.note(TableEntry::Folder(folder, name));
        let declared = self.link.declared_in_folder(folder, self.program.find(&there.facts.package)?, name);
        declared.iter().find_map(|(of, var)| {
            let file = self.file(*of);
            match file.facts.vars[*var].what {
                VarKind::Def(def) if file.is_built_with(here) => Some(DefRef { file: *of, def }),
                _ => None,
            }
        })
    }
}

/// The last that fits, else the last of all.
fn last_fitting(
    all: impl DoubleEndedIterator<Item = (FileId, VarId)> + Clone,
    fits: impl Fn(FileId) -> bool,
) -> Option<(FileId, VarId)> {
    all.clone().rfind(|(of, _)| fits(*of)).or_else(|| all.last())
}
