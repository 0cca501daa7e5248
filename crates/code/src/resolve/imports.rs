//! Resolves imports to files, each family in its own way, and finds the packages outside the program.

use super::program::{Program, join};
use super::value::{FileId, InternedStr, PossibleValue};
use crate::facts::SourceImport;
use crate::languages::{Imports, LanguageId, NoImports};
use rustc_hash::FxHashMap;

/// What imports of a program resolve by: the manifests as each family reads them, and the names of outside packages.
#[derive(Default)]
pub struct ImportResolvers {
    /// One per language, used for those that represent a family.
    families: Vec<Box<dyn Imports>>,
    package_names: FxHashMap<String, InternedStr>,
}

impl ImportResolvers {
    /// Reads the manifests of a program.
    pub fn read(program: &Program) -> ImportResolvers {
        let manifests: Vec<(String, String)> = program.manifests.iter().map(|(p, t)| (p.clone(), t.clone())).collect();
        let families = LanguageId::all().map(|language| match language.family() == language {
            true => language.get().imports(program, &manifests),
            false => Box::new(NoImports),
        });
        ImportResolvers { families: families.collect(), package_names: FxHashMap::default() }
    }

    /// Interns the names of outside packages and finds the places of modules. Done in advance, because it changes the
    /// program.
    pub fn prepare(&mut self, program: &mut Program, files: &[FileId]) {
        let mut names: Vec<String> = Vec::new();
        let mut by_family: Vec<Vec<FileId>> = vec![vec![]; self.families.len()];
        for id in files {
            let file = program.file(*id);
            let family = file.facts.language.family();
            by_family[family.index()].push(*id);
            for import in &file.facts.imports {
                self.families[family.index()].names(family, import, &mut |name| names.push(name));
            }
        }
        for name in names {
            let sym = program.intern(&name);
            self.package_names.insert(name, sym);
        }
        for (family, files) in self.families.iter_mut().zip(by_family) {
            family.prepare(program, &files);
        }
    }

    /// How a language resolves its imports.
    pub fn of(&self, language: LanguageId) -> &dyn Imports {
        &*self.families[language.family().index()]
    }

    /// The module or package that an import names.
    pub fn resolve(&self, program: &Program, file: FileId, import: &SourceImport) -> Option<PossibleValue> {
        let language = program.file(file).facts.language;
        self.of(language).resolve(program, file, import, &|module| self.outside(program, language, module))
    }

    /// A module of a package outside the program.
    pub fn outside(&self, program: &Program, language: LanguageId, module: &str) -> Option<PossibleValue> {
        let name = language.get().package_of(module);
        let sym = self.package_names.get(&name).copied().or_else(|| program.find(&name))?;
        Some(PossibleValue::External(program.external_package(sym)))
    }

    /// Whether any file imports from a package of that name.
    pub fn is_package(&self, name: &str) -> bool {
        self.package_names.contains_key(name)
    }

    /// The names of all outside packages; empty afterwards.
    pub fn take_package_names(&mut self) -> FxHashMap<String, InternedStr> {
        std::mem::take(&mut self.package_names)
    }

    /// The names of all outside packages.
    pub fn package_names(&self) -> &FxHashMap<String, InternedStr> {
        &self.package_names
    }

    /// A module inside a folder, in any language whose folders are modules.
    pub fn inside(&self, program: &Program, folder: &str, name: InternedStr) -> Option<PossibleValue> {
        self.families.iter().find_map(|family| family.inside(program, folder, name))
    }
}

/// The file at a path next to another one, else the only file whose path ends with it.
pub fn nearest_or_only(program: &Program, file: FileId, path: &str) -> Option<PossibleValue> {
    let near = normalise(&join(&program.file(file).folder, path));
    program.find_file(&near).or_else(|| by_suffix(program, path)).map(PossibleValue::Module)
}

fn by_suffix(program: &Program, path: &str) -> Option<FileId> {
    let path = path.trim_start_matches("../").trim_start_matches("./");
    let mut found = program.ids().filter(|id| {
        let other = &program.file(*id).path;
        **other == *path || other.strip_suffix(path).is_some_and(|b| b.ends_with('/'))
    });
    match (found.next(), found.next()) {
        (Some(one), None) => Some(one),
        _ => None,
    }
}

/// Removes `.` and `..` from a path.
pub fn normalise(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}
