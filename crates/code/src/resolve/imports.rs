//! Resolves imports to files, folders or packages, by the rules of each language.

use super::program::{Program, join};
use super::value::{FileId, Sym, Value};
use crate::facts::Import;
use crate::language::Language;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Module locations, read from manifests and names before imports are resolved.
#[derive(Default)]
pub struct Places {
    /// Go modules: import path and folder; longest path first.
    go: Vec<(String, String)>,
    /// Rust crates.
    pub crates: Vec<Crate>,
    /// The folder that a Python module is imported from, by the importing folder and the first part of the module's
    /// name.
    python_bases: FxHashMap<(Arc<str>, String), Option<Arc<str>>>,
    pub ecma: super::ecma::Packages,
    /// Symbols of the names of outside packages.
    pub package_names: FxHashMap<String, Sym>,
}

pub struct Crate {
    /// As in paths: dashes are underscores.
    pub name: String,
    /// `src/lib.rs` or the path in the manifest.
    pub library: Option<FileId>,
}

impl Places {
    pub fn read(program: &mut Program) -> Places {
        let mut places = Places::default();
        let manifests: Vec<(String, String)> = program.manifests.iter().map(|(p, t)| (p.clone(), t.clone())).collect();
        for (path, text) in &manifests {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            match name {
                "go.mod" => {
                    let module = text.lines().find_map(|line| line.trim().strip_prefix("module "));
                    if let Some(module) = module {
                        let module = module.split("//").next().unwrap_or(module).trim().trim_matches('"');
                        places.go.push((module.to_owned(), folder.to_owned()));
                    }
                }
                "Cargo.toml" => places.crates.extend(read_cargo(program, folder, text)),
                _ => {}
            }
        }
        places.go.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        places.ecma = super::ecma::Packages::read(program, &manifests);
        places
    }

    /// Interns the names of outside packages and finds the folders of Python modules. Done in advance, because it
    /// changes the program.
    pub fn prepare(&mut self, program: &mut Program, files: &[FileId]) {
        let mut names: Vec<String> = Vec::new();
        let mut python: Vec<(FileId, String)> = Vec::new();
        for id in files {
            let (id, file) = (*id, program.file(*id));
            for import in &file.facts.imports {
                match file.facts.language {
                    Language::Python => {
                        let first = import.module.split('.').next().unwrap_or("").to_owned();
                        if !first.is_empty() {
                            python.push((id, first.clone()));
                            names.push(first);
                            // The parts of the module are names too, even if the program does not use them.
                            names.extend(import.module.split('.').skip(1).map(str::to_owned));
                        }
                    }
                    language => names.push(outside_name(language, &import.module)),
                }
            }
        }
        for name in names {
            let sym = program.intern(&name);
            self.package_names.insert(name, sym);
        }
        for (file, first) in python {
            let folder = program.file(file).folder.clone();
            self.python_bases.entry((folder, first)).or_insert_with_key(|(_, first)| program.python_base(file, first));
        }
    }

    pub fn resolve(&self, program: &Program, file: FileId, import: &Import) -> Option<Value> {
        let language = program.file(file).facts.language;
        match language {
            Language::Python => self.python(program, file, import),
            Language::JavaScript | Language::TypeScript | Language::Tsx => {
                match self.ecma.resolve(program, file, &import.module) {
                    Some(found) => Some(Value::Module(found)),
                    None if import.module.starts_with('.') => None,
                    None => self.outside(program, language, &import.module),
                }
            }
            Language::Go => self.go(program, import).or_else(|| self.outside(program, language, &import.module)),
            Language::Rust => None,
            Language::Java | Language::Kotlin | Language::CSharp | Language::Php => None,
            Language::C | Language::Cpp => {
                let folder = &program.file(file).folder;
                let near = normalise(&join(folder, &import.module));
                program.find_file(&near).or_else(|| by_suffix(program, &import.module)).map(Value::Module)
            }
            Language::Ruby => {
                let folder = &program.file(file).folder;
                let path = import.module.strip_suffix(".rb").unwrap_or(&import.module);
                let near = normalise(&join(folder, &format!("{path}.rb")));
                program.find_file(&near).or_else(|| by_suffix(program, &format!("{path}.rb"))).map(Value::Module)
            }
        }
    }

    pub fn outside(&self, program: &Program, language: Language, module: &str) -> Option<Value> {
        let name = outside_name(language, module);
        let sym = self.package_names.get(&name).copied().or_else(|| program.find(&name))?;
        Some(Value::External(program.external_package(sym)))
    }

    fn python(&self, program: &Program, file: FileId, import: &Import) -> Option<Value> {
        let module = &*import.module;
        let dots = module.len() - module.trim_start_matches('.').len();
        let rest = &module[dots..];
        let here = program.file(file);
        let mut folder: String = here.folder.to_string();
        if dots > 0 {
            for _ in 1..dots {
                folder = folder.rsplit_once('/').map_or("", |(above, _)| above).to_owned();
            }
            return python_walk(program, &folder, rest).or_else(|| {
                // `from . import x` in a folder without `__init__`.
                rest.is_empty().then(|| program.find_folder(&folder).map(Value::Folder)).flatten()
            });
        }
        let first = rest.split('.').next().unwrap_or(rest);
        let base = self.python_bases.get(&(here.folder.clone(), first.to_owned())).cloned().flatten();
        match base {
            Some(base) => python_walk(program, &base, rest),
            None => {
                let package = self.package_names.get(first)?;
                let mut path = program.external_package(*package);
                for name in rest.split('.').skip(1) {
                    path = program.external(path, program.find(name)?);
                }
                Some(Value::External(path))
            }
        }
    }

    fn go(&self, program: &Program, import: &Import) -> Option<Value> {
        let path = &*import.module;
        for (module, folder) in &self.go {
            let inside = if path == module {
                Some("")
            } else {
                path.strip_prefix(module.as_str()).and_then(|rest| rest.strip_prefix('/'))
            };
            if let Some(inside) = inside {
                let folder = match (folder.as_str(), inside) {
                    ("", inside) => inside.to_owned(),
                    (folder, "") => folder.to_owned(),
                    (folder, inside) => format!("{folder}/{inside}"),
                };
                return program.find_folder(&folder).map(Value::Folder);
            }
        }
        if self.go.is_empty() {
            // Without a `go.mod`: the only folder whose path ends with the import path.
            let mut found = program.folders().filter(|(id, folder)| {
                !program.folder_files(*id).is_empty()
                    && (***folder == *path || folder.strip_suffix(path).is_some_and(|b| b.ends_with('/')))
            });
            if let (Some((id, _)), None) = (found.next(), found.next()) {
                return Some(Value::Folder(id));
            }
        }
        None
    }
}

fn python_walk(program: &Program, folder: &str, dotted: &str) -> Option<Value> {
    if dotted.is_empty() {
        return program
            .find_file(&join(folder, "__init__.py"))
            .map(Value::Module)
            .or_else(|| program.find_folder(folder).map(Value::Folder));
    }
    let mut folder = folder.to_owned();
    let mut found = None;
    for name in dotted.split('.') {
        found = Some(program.python_in(&folder, name)?);
        folder = join(&folder, name);
    }
    found
}

/// The package that an outside module belongs to.
pub fn outside_name(language: Language, module: &str) -> String {
    match language.family() {
        Language::JavaScript => {
            let module = module.strip_prefix("node:").unwrap_or(module);
            let mut parts = module.split('/');
            let first = parts.next().unwrap_or(module);
            match (first.starts_with('@'), parts.next()) {
                (true, Some(second)) => format!("{first}/{second}"),
                _ => first.to_owned(),
            }
        }
        Language::Rust => module.split("::").next().unwrap_or(module).to_owned(),
        Language::Python => module.split('.').next().unwrap_or(module).to_owned(),
        _ => module.to_owned(),
    }
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

/// Name and library of a `Cargo.toml`, read line by line: each of the few needed keys is on a separate line.
fn read_cargo(program: &Program, folder: &str, text: &str) -> Option<Crate> {
    let mut section = "";
    let (mut name, mut lib_name, mut lib_path) = (None, None, None);
    for line in text.lines() {
        let line = line.trim();
        if let Some(inner) = line.strip_prefix('[') {
            section = inner.trim_end_matches(']').trim_matches('[');
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let value = value.trim().trim_matches('"').to_owned();
        match (section, key.trim()) {
            ("package", "name") => name = Some(value),
            ("lib", "name") => lib_name = Some(value),
            ("lib", "path") => lib_path = Some(value),
            _ => {}
        }
    }
    let name = lib_name.or(name)?.replace('-', "_");
    let library = program.find_file(&join(folder, lib_path.as_deref().unwrap_or("src/lib.rs")));
    Some(Crate { name, library })
}
