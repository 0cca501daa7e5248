//! Rust's modules: which file a `mod` declares, which crates the repository has, and where paths lead.

use crate::facts::{DefId, DefKind, ImportId, ImportKind, ROOT};
use crate::languages::{DeclaredModule, Imports};
use crate::resolve::deps::TableEntry;
use crate::resolve::eval::{Eval, EvalQuestion, is_place};
use crate::resolve::link::ProgramTables;
use crate::resolve::program::join;
use crate::resolve::value::{Derivation, InternedStr, ValueSet};
use crate::resolve::{DefRef, FileId, PossibleValue, Program, ProgramFile};

/// The libraries of a repository, from its `Cargo.toml` files.
pub(super) struct Crates(Vec<Crate>);

struct Crate {
    /// As in paths: dashes are underscores.
    name: String,
    /// `src/lib.rs` or the path in the manifest.
    library: Option<FileId>,
}

impl Crates {
    pub fn read(program: &Program, manifests: &[(String, String)]) -> Crates {
        let crates = manifests.iter().filter_map(|(path, text)| {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            (name == "Cargo.toml").then(|| read_manifest(program, folder, text)).flatten()
        });
        Crates(crates.collect())
    }
}

impl Imports for Crates {
    fn library(&self, name: &str) -> Option<FileId> {
        self.0.iter().find(|c| c.name == name && c.library.is_some())?.library
    }
}

/// Name and library of a `Cargo.toml`, read line by line: each of the few needed keys is on a separate line.
fn read_manifest(program: &Program, folder: &str, text: &str) -> Option<Crate> {
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

/// The files of a file's `mod x;`.
pub(super) fn declared(program: &Program, file: &ProgramFile) -> Vec<DeclaredModule> {
    let stem = file.path.rsplit('/').next().unwrap_or("").trim_end_matches(".rs");
    let own_folder = matches!(stem, "mod" | "lib" | "main") || is_root(&file.path);
    let mut found = Vec::new();
    for import in &file.facts.imports {
        let Some(name) = import.module.strip_prefix("self::") else { continue };
        if import.what != ImportKind::Module || name.contains("::") {
            continue;
        }
        let inline: Vec<&str> = file.facts.path_of(import.owner);
        let mut folder = if own_folder { file.folder.to_string() } else { join(&file.folder, stem) };
        for part in inline {
            folder = join(&folder, part);
        }
        let child = program
            .find_file(&join(&folder, &format!("{name}.rs")))
            .or_else(|| program.find_file(&join(&folder, &format!("{name}/mod.rs"))));
        if let Some(child) = child
            && let Some(name) = program.find(name)
        {
            let only_in_tests = import.only_in_tests || file.is_in_test(import.owner);
            found.push(DeclaredModule { owner: import.owner, name, file: child, only_in_tests });
        }
    }
    found
}

/// Files that are the root of a separate crate: binaries, tests, examples, benches.
fn is_root(path: &str) -> bool {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    matches!(folder.rsplit('/').next(), Some("bin" | "tests" | "examples" | "benches"))
}

/// The innermost module around a definition.
fn module_of(program: &Program, file: FileId, owner: DefId) -> PossibleValue {
    let facts = &program.file(file).facts;
    let mut at = owner;
    while at != ROOT {
        if facts.def(at).kind == DefKind::Module {
            return PossibleValue::Namespace(DefRef { file, def: at });
        }
        at = facts.def(at).parent;
    }
    PossibleValue::Module(file)
}

fn above(program: &Program, link: &ProgramTables, of: PossibleValue) -> Option<PossibleValue> {
    match of {
        PossibleValue::Namespace(space) => {
            Some(module_of(program, space.file, program.file(space.file).facts.def(space.def).parent))
        }
        PossibleValue::Module(file) => {
            let (above, owner) = link.parent_module(file)?;
            Some(module_of(program, above, owner))
        }
        _ => None,
    }
}

/// `super`, or a module that the file declares.
pub(super) fn beside(
    program: &Program,
    link: &ProgramTables,
    file: FileId,
    name: InternedStr,
) -> Option<PossibleValue> {
    if program.text(name) == "super"
        && let Some(above) = above(program, link, PossibleValue::Module(file))
    {
        return Some(above);
    }
    link.child_module(file, ROOT, name).map(PossibleValue::Module)
}

/// The first segment of a path.
fn root(program: &Program, link: &ProgramTables, file: FileId, owner: DefId, text: &str) -> Option<PossibleValue> {
    match text {
        "crate" => {
            let mut at = file;
            let mut steps = 0;
            while let Some((above, _)) = link.parent_module(at) {
                at = above;
                steps += 1;
                if steps > 64 {
                    break;
                }
            }
            Some(PossibleValue::Module(at))
        }
        "self" => Some(module_of(program, file, owner)),
        "super" => above(program, link, module_of(program, file, owner)),
        _ => {
            let places = link.places();
            let language = program.file(file).facts.language;
            if let Some(library) = places.of(language).library(text) {
                return Some(PossibleValue::Module(library));
            }
            if matches!(text, "std" | "core" | "alloc") || places.is_package(text) {
                // Local modules and items of that name were tried before.
                return places.outside(program, language, text);
            }
            None
        }
    }
}

/// Walks the path of a `use` over modules and types.
pub(super) fn walk(eval: &mut Eval<'_>, file: FileId, import: ImportId, levels: u8) -> ValueSet {
    let here = eval.file(file);
    let entry = &here.facts.imports[import];
    let mut parts = entry.module.split("::");
    let first = parts.next().unwrap_or("");
    let module = module_of(eval.program, file, entry.owner);
    let mut at = None;
    if !matches!(first, "crate" | "self" | "super") && !first.is_empty() {
        // A name in the module takes precedence over a crate of that name, unless it is this import.
        let owner = match module {
            PossibleValue::Namespace(space) => space.def,
            _ => ROOT,
        };
        if let Some(name) = eval.program.find(first)
            && let Some(var) = here.member(owner, name)
            && Some(var) != entry.var
        {
            let found = eval.solve(EvalQuestion::Var(file, var), levels);
            at = found.values.iter().map(|(v, _)| *v).find(|v| is_place(*v));
        }
    }
    let mut at = match at.or_else(|| root(eval.program, eval.link, file, entry.owner, first)) {
        Some(at) => at,
        None => return ValueSet::default(),
    };
    for part in parts {
        if part == "super" {
            match above(eval.program, eval.link, at) {
                Some(above) => at = above,
                None => return ValueSet::default(),
            }
            continue;
        }
        let Some(name) = eval.program.find(part) else { return ValueSet::default() };
        let child = match at {
            PossibleValue::Module(of) => eval.link.child_module(of, ROOT, name),
            PossibleValue::Namespace(space) => eval.link.child_module(space.file, space.def, name),
            _ => None,
        };
        if let Some(child) = child {
            at = PossibleValue::Module(child);
            continue;
        }
        let found = eval.member_of_value(at, Derivation::Import, name, levels);
        match found.values.iter().map(|(v, _)| *v).find(|v| is_place(*v)) {
            Some(found) => at = found,
            None => return ValueSet::default(),
        }
    }
    ValueSet::one(at, Derivation::Import)
}

/// A name that its file does not declare: of a wildcard import, a crate, a macro.
pub(super) fn undeclared(eval: &mut Eval<'_>, file: FileId, owner: DefId, name: InternedStr, levels: u8) -> ValueSet {
    let mut set = ValueSet::default();
    let text = eval.program.text(name);
    eval.note(TableEntry::Macro(name));
    // `use x::*` takes precedence over a crate of that name.
    if !matches!(text, "crate" | "self" | "super") {
        set = eval.in_wildcards(file, name, levels);
    }
    if !set.is_empty() {
        return set;
    }
    if let Some(module) = root(eval.program, eval.link, file, owner, text) {
        set.add(module, Derivation::Import);
    } else if text.ends_with('!')
        && let Some(found) = eval.link.macro_named(name)
    {
        set.add(PossibleValue::Func(found), Derivation::Import);
    }
    set
}
