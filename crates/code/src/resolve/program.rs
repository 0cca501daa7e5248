//! All files of a program, by path, folder and name.

use super::file::ProgramFile;
use super::value::{DefRef, DirId, ExternalId, FileId, InternedStr};
use crate::facts::{Def, FileFacts, NameId};
use crate::ids::IdVec;
use crate::languages::LanguageId;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Whether a file decides how imports of some language resolve, for example `go.mod` or `package.json`.
pub fn is_manifest(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    LanguageId::all().any(|language| language.get().is_manifest(name))
}

/// The files of a program, with the strings and folders that they share.
#[derive(Default)]
pub struct Program {
    files: IdVec<FileId, Option<Arc<ProgramFile>>>,
    by_path: FxHashMap<Arc<str>, FileId>,
    free: Vec<FileId>,
    texts: IdVec<InternedStr, Arc<str>>,
    syms: FxHashMap<Arc<str>, InternedStr>,
    folders: FxHashMap<Arc<str>, DirId>,
    folder_paths: IdVec<DirId, Arc<str>>,
    /// Files directly in each folder, by folder id; all folders up to the root have an entry.
    folder_files: IdVec<DirId, Vec<FileId>>,
    pub manifests: BTreeMap<String, String>,
    externals: Mutex<Externals>,
}

/// Names outside the program: each is a package, or a member of another name.
#[derive(Default)]
struct Externals {
    ids: FxHashMap<(Option<ExternalId>, InternedStr), ExternalId>,
    names: IdVec<ExternalId, (Option<ExternalId>, InternedStr)>,
}

impl Program {
    /// Adds a file, or replaces its facts.
    pub fn set(&mut self, path: &str, facts: Arc<FileFacts>) -> FileId {
        let syms = facts.names.iter().map(|name| self.intern(name)).collect();
        self.put(path, Arc::new(ProgramFile::new(path, facts, syms)))
    }

    /// Like `set` for many files, on all cores.
    pub fn set_all(&mut self, sources: Vec<(String, Arc<FileFacts>)>) {
        let syms: Vec<IdVec<NameId, InternedStr>> =
            sources.iter().map(|(_, facts)| facts.names.iter().map(|name| self.intern(name)).collect()).collect();
        let files = sources.into_par_iter().zip(syms).map(|((path, facts), syms)| {
            let file = Arc::new(ProgramFile::new(&path, facts, syms));
            (path, file)
        });
        let files: Vec<(String, Arc<ProgramFile>)> = files.collect();
        for (path, file) in files {
            self.put(&path, file);
        }
    }

    fn put(&mut self, path: &str, file: Arc<ProgramFile>) -> FileId {
        if let Some(id) = self.by_path.get(path) {
            self.files[*id] = Some(file);
            return *id;
        }
        let id = match self.free.pop() {
            Some(id) => {
                self.files[id] = Some(file.clone());
                id
            }
            None => self.files.push(Some(file.clone())),
        };
        self.by_path.insert(file.path.clone(), id);
        let folder = self.add_folder(&file.folder.clone());
        self.folder_files[folder].push(id);
        id
    }

    /// Removes a file and returns its id, which a later file may get.
    pub fn remove(&mut self, path: &str) -> Option<FileId> {
        let id = self.by_path.remove(path)?;
        let file = self.files[id].take()?;
        if let Some(folder) = self.folders.get(&*file.folder) {
            self.folder_files[*folder].retain(|f| *f != id);
        }
        self.free.push(id);
        Some(id)
    }

    /// Numbers the files in the order of their paths. Ties are often broken by the lowest number, so the numbers must
    /// not depend on the order of reading, or results would differ between processes.
    pub fn put_in_order(&mut self) {
        let in_order = |a: &Option<Arc<ProgramFile>>, b: &Option<Arc<ProgramFile>>| match (a, b) {
            (Some(a), Some(b)) => a.path < b.path,
            _ => false,
        };
        if self.files.is_sorted_by(in_order) && self.free.is_empty() {
            return;
        }
        let mut files: Vec<_> = std::mem::take(&mut self.files).into_iter().filter(Option::is_some).collect();
        files.sort_unstable_by(|a, b| a.as_ref().map(|f| &f.path).cmp(&b.as_ref().map(|f| &f.path)));
        self.files = files.into();
        self.free.clear();
        self.folder_files.iter_mut().for_each(Vec::clear);
        for (id, file) in self.files.iter_ids().filter_map(|(id, file)| Some((id, file.as_ref()?))) {
            self.by_path.insert(file.path.clone(), id);
            let folder = self.folders[&*file.folder];
            self.folder_files[folder].push(id);
        }
    }

    fn add_folder(&mut self, path: &str) -> DirId {
        if let Some(id) = self.folders.get(path) {
            return *id;
        }
        let path: Arc<str> = path.into();
        let id = self.folder_paths.push(path.clone());
        self.folder_files.push(vec![]);
        self.folders.insert(path.clone(), id);
        if let Some((above, _)) = path.rsplit_once('/') {
            self.add_folder(above);
        } else if !path.is_empty() {
            self.add_folder("");
        }
        id
    }

    /// A file. Panics if it was removed.
    pub fn file(&self, id: FileId) -> &ProgramFile {
        self.files[id].as_deref().expect("ids of removed files are not kept")
    }

    /// A file, if the id is in use.
    pub fn get(&self, id: FileId) -> Option<&Arc<ProgramFile>> {
        self.files.get(id)?.as_ref()
    }

    /// A definition of the program.
    pub fn def(&self, gid: DefRef) -> &Def {
        self.file(gid.file).facts.def(gid.def)
    }

    /// The ids of all files, ascending.
    pub fn ids(&self) -> impl Iterator<Item = FileId> + '_ {
        self.files.iter_ids().filter(|(_, file)| file.is_some()).map(|(id, _)| id)
    }

    /// One more than the largest id.
    pub fn slots(&self) -> usize {
        self.files.len()
    }

    /// The file at a path.
    pub fn find_file(&self, path: &str) -> Option<FileId> {
        self.by_path.get(path).copied()
    }

    /// The folder at a path, if there are files in it or below it.
    pub fn find_folder(&self, path: &str) -> Option<DirId> {
        let id = *self.folders.get(path)?;
        // A folder without files exists only if there are files below it.
        (!self.folder_files[id].is_empty() || self.has_files_below(path)).then_some(id)
    }

    fn has_files_below(&self, path: &str) -> bool {
        self.folder_paths.iter_ids().any(|(id, other)| {
            !self.folder_files[id].is_empty()
                && other.strip_prefix(path).is_some_and(|rest| path.is_empty() || rest.starts_with('/'))
        })
    }

    /// The path of a folder.
    pub fn folder(&self, id: DirId) -> Arc<str> {
        self.folder_paths[id].clone()
    }

    /// The files directly in a folder.
    pub fn folder_files(&self, id: DirId) -> &[FileId] {
        &self.folder_files[id]
    }

    /// All folders with their paths, including folders that have become empty.
    pub fn folders(&self) -> impl Iterator<Item = (DirId, &Arc<str>)> + '_ {
        self.folder_paths.iter_ids()
    }

    /// The symbol of a text, which is added if it is new.
    pub fn intern(&mut self, text: &str) -> InternedStr {
        if let Some(sym) = self.syms.get(text) {
            return *sym;
        }
        let text: Arc<str> = text.into();
        let sym = self.texts.push(text.clone());
        self.syms.insert(text, sym);
        sym
    }

    /// The symbol of a text, if the program contains it.
    pub fn find(&self, text: &str) -> Option<InternedStr> {
        self.syms.get(text).copied()
    }

    /// The text of a symbol.
    pub fn text(&self, sym: InternedStr) -> &str {
        &self.texts[sym]
    }

    // --- names outside the program ---

    /// A package outside the program.
    pub fn external_package(&self, name: InternedStr) -> ExternalId {
        self.external_in(None, name)
    }

    /// A name inside a package or inside another name outside the program.
    pub fn external(&self, of: ExternalId, name: InternedStr) -> ExternalId {
        self.external_in(Some(of), name)
    }

    fn external_in(&self, of: Option<ExternalId>, name: InternedStr) -> ExternalId {
        let mut externals = self.externals.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = externals.ids.get(&(of, name)) {
            return *id;
        }
        let id = externals.names.push((of, name));
        externals.ids.insert((of, name), id);
        id
    }

    /// The package and the path of names inside it.
    pub fn external_path(&self, id: ExternalId) -> (&str, Vec<&str>) {
        let externals = self.externals.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names = Vec::new();
        let mut at = id;
        loop {
            let (of, name) = externals.names[at];
            let Some(of) = of else {
                names.reverse();
                return (self.text(name), names);
            };
            names.push(self.text(name));
            at = of;
        }
    }

    /// The package and the names, joined by dots.
    pub fn external_text(&self, id: ExternalId) -> String {
        let (package, names) = self.external_path(id);
        let mut text = package.to_owned();
        for name in names {
            text.push('.');
            text.push_str(name);
        }
        text
    }

    /// Guessed from the name: types are capitalized in nearly all languages.
    pub fn external_is_type(&self, id: ExternalId) -> bool {
        let (package, names) = self.external_path(id);
        names.last().unwrap_or(&package).starts_with(|c: char| c.is_uppercase())
    }

    /// Whether the name is a macro.
    pub fn external_is_macro(&self, id: ExternalId) -> bool {
        let (package, names) = self.external_path(id);
        names.last().unwrap_or(&package).ends_with('!')
    }

    /// Whether an instance of the type can be anything (`Any`), or the type has no instances (`NoReturn`).
    pub fn external_is_any_type(&self, id: ExternalId) -> bool {
        let (package, names) = self.external_path(id);
        LanguageId::all().any(|language| language.get().is_any_type(package, &names))
    }
}

/// The path of a name in a folder.
pub fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
