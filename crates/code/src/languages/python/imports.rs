//! Python's imports: modules and packages by folder, without a manifest.

use crate::facts::SourceImport;
use crate::languages::{Imports, LanguageId};
use crate::resolve::program::join;
use crate::resolve::value::InternedStr;
use crate::resolve::{FileId, PossibleValue, Program, ProgramFile};
use rustc_hash::FxHashMap;
use std::sync::Arc;

#[derive(Default)]
pub(super) struct PythonImports {
    /// The folder from which the modules of a folder import a first name.
    bases: FxHashMap<(Arc<str>, String), Option<Arc<str>>>,
}

impl Imports for PythonImports {
    fn names(&self, _family: LanguageId, import: &SourceImport, add: &mut dyn FnMut(String)) {
        let mut parts = import.module.split('.');
        if let Some(first) = parts.next().filter(|first| !first.is_empty()) {
            add(first.to_owned());
            // The parts of the module are names too, even if the program does not use them.
            parts.for_each(|part| add(part.to_owned()));
        }
    }

    fn prepare(&mut self, program: &Program, files: &[FileId]) {
        for file in files {
            let here = program.file(*file);
            for import in &here.facts.imports {
                let first = import.module.split('.').next().unwrap_or("");
                if !first.is_empty() {
                    let key = (here.folder.clone(), first.to_owned());
                    self.bases.entry(key).or_insert_with(|| base(program, *file, first));
                }
            }
        }
    }

    fn resolve(
        &self,
        program: &Program,
        file: FileId,
        import: &SourceImport,
        outside: &dyn Fn(&str) -> Option<PossibleValue>,
    ) -> Option<PossibleValue> {
        let module = &*import.module;
        let dots = module.len() - module.trim_start_matches('.').len();
        let rest = &module[dots..];
        let here = program.file(file);
        let mut folder: String = here.folder.to_string();
        if dots > 0 {
            for _ in 1..dots {
                folder = folder.rsplit_once('/').map_or("", |(above, _)| above).to_owned();
            }
            return walk(program, &folder, rest).or_else(|| {
                // `from . import x` in a folder without `__init__`.
                rest.is_empty().then(|| program.find_folder(&folder).map(PossibleValue::Folder)).flatten()
            });
        }
        let first = rest.split('.').next().unwrap_or(rest);
        let base = self.bases.get(&(here.folder.clone(), first.to_owned())).cloned().flatten();
        match base {
            Some(base) => walk(program, &base, rest),
            None => {
                let PossibleValue::External(mut path) = outside(first)? else { return None };
                for name in rest.split('.').skip(1) {
                    path = program.external(path, program.find(name)?);
                }
                Some(PossibleValue::External(path))
            }
        }
    }

    /// The value of `a` in `import a.b.c`.
    fn root(&self, program: &Program, file: FileId, import: &SourceImport) -> Option<PossibleValue> {
        let first = import.module.split('.').next()?;
        match base(program, file, first) {
            Some(base) => module_in(program, &base, first),
            None => Some(PossibleValue::External(program.external_package(program.find(first)?))),
        }
    }

    fn inside(&self, program: &Program, folder: &str, name: InternedStr) -> Option<PossibleValue> {
        module_in(program, folder, program.text(name))
    }

    fn beside(&self, program: &Program, file: &ProgramFile, name: InternedStr) -> Option<PossibleValue> {
        file.path.ends_with("__init__.py").then(|| module_in(program, &file.folder, program.text(name))).flatten()
    }
}

fn walk(program: &Program, folder: &str, dotted: &str) -> Option<PossibleValue> {
    if dotted.is_empty() {
        return program
            .find_file(&join(folder, "__init__.py"))
            .map(PossibleValue::Module)
            .or_else(|| program.find_folder(folder).map(PossibleValue::Folder));
    }
    let mut folder = folder.to_owned();
    let mut found = None;
    for name in dotted.split('.') {
        found = Some(module_in(program, &folder, name)?);
        folder = join(&folder, name);
    }
    found
}

/// A module or package in a folder.
fn module_in(program: &Program, folder: &str, name: &str) -> Option<PossibleValue> {
    let base = join(folder, name);
    let file = |path: String| program.find_file(&path).map(PossibleValue::Module);
    file(format!("{base}/__init__.py"))
        .or_else(|| file(format!("{base}.py")))
        .or_else(|| file(format!("{base}.pyi")))
        .or_else(|| program.find_folder(&base).map(PossibleValue::Folder))
}

/// The folder from which a file imports a module with that first name.
fn base(program: &Program, file: FileId, first: &str) -> Option<Arc<str>> {
    let from = program.file(file).folder.clone();
    // Nearest first: the file's folder and those above it that are not packages themselves.
    let mut at: &str = &from;
    loop {
        let is_package = program.find_file(&join(at, "__init__.py")).is_some();
        if (!is_package || at.is_empty()) && module_in(program, at, first).is_some_and(|v| has_modules(program, v)) {
            return Some(at.into());
        }
        if at.is_empty() {
            break;
        }
        at = at.rsplit_once('/').map_or("", |(above, _)| above);
    }
    // Elsewhere: a folder that contains a real package of that name and is not a package itself.
    let mut best: Option<&Arc<str>> = None;
    for (id, path) in program.folders() {
        if path.rsplit('/').next() != Some(first) || program.folder_files(id).is_empty() {
            continue;
        }
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        if program.find_file(&join(path, "__init__.py")).is_some()
            && program.find_file(&join(above, "__init__.py")).is_none()
            && best.is_none_or(|b| (path.len(), path) < (b.len(), b))
        {
            best = Some(path);
        }
    }
    best.map(|path| path.rsplit_once('/').map_or("", |(above, _)| above).into())
}

/// Whether a value is a module, or a folder with modules in or below it.
fn has_modules(program: &Program, value: PossibleValue) -> bool {
    match value {
        PossibleValue::Folder(folder) => {
            let path = program.folder(folder);
            program.folders().any(|(id, p)| {
                (*p == path || p.strip_prefix(&*path).is_some_and(|r| r.starts_with('/')))
                    && program.folder_files(id).iter().any(|f| program.file(*f).path.ends_with(".py"))
            })
        }
        _ => true,
    }
}
