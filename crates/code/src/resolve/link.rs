//! Tables over all files that evaluation uses: imports, packages, methods outside their types, inheritance.

use super::deps::{Changed, Entry};
use super::eval::{Eval, LEVELS};
use super::file::File;
use super::flow::Flows;
use super::imports::Places;
use super::program::Program;
use super::stars::Stars;
use super::value::{DirId, ExternalId, FileId, Gid, Sym, Value};
use crate::facts::{BaseKind, DefId, Expr, ExprId, ImportId, Key, Kind, ROOT, Target, VarId, VarKind, flag};
use crate::ids::IdVec;
use crate::languages::LanguageId;
use crate::languages::rules::{Modules, Rules};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Symbols of names with a meaning.
pub struct Words {
    pub prototype: Sym,
    pub call: Sym,
    pub apply: Sym,
    pub bind: Sym,
    /// The export of `module.exports = …`.
    pub whole: Sym,
    /// Any element of a container.
    pub element: Sym,
    languages: Vec<LanguageWords>,
}

/// Symbols of names with a meaning in one language, see `Rules`.
pub struct LanguageWords {
    pub constructor: Option<Sym>,
    pub call_method: Option<Sym>,
    pub iterator: Option<Sym>,
    pub next: Option<Sym>,
    pub item: Option<Sym>,
    /// The package that builtins belong to.
    pub library: Option<Sym>,
}

impl Words {
    fn new(program: &mut Program) -> Words {
        let languages = LanguageId::all().map(|language| LanguageWords::new(language.rules(), program)).collect();
        Words {
            prototype: program.intern("prototype"),
            call: program.intern("call"),
            apply: program.intern("apply"),
            bind: program.intern("bind"),
            whole: program.intern("="),
            element: program.intern("[*]"),
            languages,
        }
    }

    /// The symbols of one language.
    pub fn of(&self, language: LanguageId) -> &LanguageWords {
        &self.languages[language.index()]
    }
}

impl LanguageWords {
    fn new(rules: &Rules, program: &mut Program) -> LanguageWords {
        let mut sym = |name: &str| program.intern(name);
        LanguageWords {
            constructor: rules.constructor.map(&mut sym),
            call_method: rules.call_method.map(&mut sym),
            iterator: rules.iteration.map(|names| sym(names.iterator)),
            next: rules.iteration.map(|names| sym(names.next)),
            item: rules.iteration.map(|names| sym(names.item)),
            library: rules.library.map(|library| sym(library.package)),
        }
    }
}

/// Definitions with their flags.
type Flagged = SmallVec<[(Gid, u32); 1]>;

/// The variables of one name that a folder's files share, in the order of files: more than one if builds differ.
type Declared = SmallVec<[(FileId, VarId); 1]>;

/// A base that is not part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutsideBase {
    /// See `Program::external_path`.
    pub path: ExternalId,
    pub how: BaseKind,
    pub line: u32,
}

/// The tables over all files of a program.
pub struct Link {
    pub words: Words,
    places: Places,
    imports: IdVec<FileId, IdVec<ImportId, Option<Value>>>,
    stars: Stars,
    /// `Modules::Folders`: names by folder and package clause.
    folders: FxHashMap<(DirId, Sym), FxHashMap<Sym, Declared>>,
    /// The package of a folder that others import, and whether files of the default build belong to it.
    folder_packages: FxHashMap<DirId, (Sym, bool)>,
    /// Definitions by package and name; packages by dotted name.
    packages: FxHashMap<Sym, FxHashMap<Sym, Gid>>,
    package_of: IdVec<FileId, Option<Sym>>,
    /// `Modules::Tree`: the file of a declared module, and the declaring module of a file.
    child_modules: FxHashMap<(FileId, DefId, Sym), FileId>,
    parent_modules: FxHashMap<FileId, (FileId, DefId)>,
    /// Whether a file is part of the tests: by its name and folder, or by the module that declares it.
    tests: IdVec<FileId, bool>,
    macros: FxHashMap<Sym, Option<Gid>>,
    /// Functions by name, for languages with one namespace for all files; `None` if the name is ambiguous.
    functions: FxHashMap<(LanguageId, Sym), Option<Gid>>,
    /// Methods by name, each with its flags.
    pub methods_named: FxHashMap<(LanguageId, Sym), Flagged>,
    receivers: FxHashMap<Gid, Gid>,
    attached: FxHashMap<(Gid, Sym), SmallVec<[Gid; 1]>>,
    with_methods: FxHashSet<Gid>,
    bases: FxHashMap<Gid, SmallVec<[Gid; 2]>>,
    pub base_kinds: FxHashMap<(Gid, Gid), (BaseKind, u32)>,
    external_bases: FxHashMap<Gid, SmallVec<[ExternalId; 1]>>,
    /// All bases that are not part of the program, including those of the language's own library.
    outside_bases: FxHashMap<Gid, SmallVec<[OutsideBase; 1]>>,
    /// Traits that are also implemented for types outside the program, or for all types with another trait.
    for_others: FxHashSet<Gid>,
    derived: FxHashMap<Gid, Vec<Gid>>,
    /// The interfaces whose methods a type has, without a declaration.
    structural: FxHashMap<Gid, SmallVec<[Gid; 2]>>,
    /// Names of members that are written by code outside their object.
    written: FxHashSet<Sym>,
}

/// The table entries that differ after files changed.
#[derive(Default)]
pub struct Differences {
    pub changed: Changed,
    /// The subset that also counts as new in every round, because with the new tables it may become known in another
    /// round.
    pub learned: Changed,
}

impl Link {
    /// Builds the tables of a program.
    pub fn new(program: &mut Program) -> Link {
        let mut places = Places::read(program);
        let ids: Vec<FileId> = program.ids().collect();
        places.prepare(program, &ids);
        let imports = vec![IdVec::new(); program.slots()].into();
        Link::with(program, places, imports, &ids)
    }

    /// Updates the tables after files changed, and returns the differences. `None` if so much may differ that a full
    /// resolution is better.
    pub fn again(
        old: &mut Link,
        program: &mut Program,
        files: &FxHashSet<FileId>,
        before: &IdVec<FileId, Option<Arc<File>>>,
    ) -> Option<(Link, Differences)> {
        let mut places = std::mem::take(&mut old.places);
        if files.iter().any(|id| program.file(*id).rules.modules == Modules::Tree) {
            // Which first names of paths are packages depends on the imports of all files.
            let known = places.take_package_names();
            places.prepare(program, &program.ids().collect::<Vec<_>>());
            if known.len() != places.package_names().len() || !known.keys().all(|name| places.is_package(name)) {
                return None;
            }
        } else {
            places.prepare(program, &files.iter().copied().collect::<Vec<_>>());
        }
        let by_package = |id: &FileId| program.file(*id).rules.modules == Modules::Packages;
        let imports = old.imports.clone();
        let importing: Vec<FileId> = if files.iter().any(by_package) {
            program.ids().filter(|id| files.contains(id) || by_package(id)).collect()
        } else {
            files.iter().copied().collect()
        };
        let same_package = |id: &FileId| {
            let old = before[*id].as_ref();
            old.is_some_and(|old| {
                let new = &program.file(*id).facts;
                old.facts.package == new.package && old.facts.language == new.language
            })
        };
        if !files.iter().all(same_package) {
            return None;
        }
        let link = Link::with(program, places, imports, &importing);
        if old.child_modules != link.child_modules
            || old.parent_modules != link.parent_modules
            || old.tests != link.tests
            || old.folder_packages != link.folder_packages
        {
            return None;
        }
        let mut differences = Differences::default();
        files.iter().for_each(|id| differences.changed.file(*id));
        old.compare(&link, &mut differences);
        Some((link, differences))
    }

    /// Records the entries that differ between two versions of the tables.
    fn compare(&self, new: &Link, Differences { changed, learned }: &mut Differences) {
        for (id, imports) in self.imports.iter_ids() {
            if *imports != new.imports[id] {
                changed.file(id);
            }
        }
        self.stars.compare(&new.stars, changed);
        differ(&self.receivers, &new.receivers, |gid| changed.file(gid.file));
        let mut moved = Vec::new();
        differ(&self.attached, &new.attached, |(gid, _)| moved.push(*gid));
        differ(&self.bases, &new.bases, |gid| moved.push(*gid));
        differ(&self.base_kinds, &new.base_kinds, |(gid, _)| changed.file(gid.file));
        differ(&self.external_bases, &new.external_bases, |gid| changed.file(gid.file));
        differ(&self.outside_bases, &new.outside_bases, |gid| changed.file(gid.file));
        for gid in self.with_methods.symmetric_difference(&new.with_methods) {
            changed.file(gid.file);
        }
        for gid in self.for_others.symmetric_difference(&new.for_others) {
            changed.entry(Entry::Below(*gid));
        }
        let mut derived = Vec::new();
        differ(&self.derived, &new.derived, |gid| derived.push(*gid));
        for gid in derived {
            changed.entry(Entry::Derived(gid));
            // Derived classes were added or removed below these, and so were their instances.
            for link in [self, new] {
                link.above(gid, |of| {
                    changed.entry(Entry::Below(of));
                    changed.entry(Entry::MadeBelow(of));
                    learned.entry(Entry::MadeBelow(of));
                });
            }
        }
        for gid in moved {
            changed.file(gid.file);
            // Members of all derived classes resolve differently, which affects the classes above them.
            for link in [self, new] {
                for below in link.all_derived(gid).into_iter().chain([gid]) {
                    link.above(below, |of| changed.entry(Entry::Below(of)));
                }
            }
        }
        for name in self.written.symmetric_difference(&new.written) {
            changed.entry(Entry::Written(*name));
        }
        differ(&self.macros, &new.macros, |name| changed.entry(Entry::Macro(*name)));
        differ(&self.functions, &new.functions, |(of, name)| changed.entry(Entry::Function(*of, *name)));
        differ(&self.methods_named, &new.methods_named, |(of, name)| changed.entry(Entry::Methods(*of, *name)));
        let nothing = FxHashMap::default();
        for key in self.folders.keys().chain(new.folders.keys()) {
            let (before, after) = (self.folders.get(key).unwrap_or(&nothing), new.folders.get(key).unwrap_or(&nothing));
            differ(before, after, |name| changed.entry(Entry::Folder(key.0, *name)));
        }
        let nothing = FxHashMap::default();
        for key in self.packages.keys().chain(new.packages.keys()) {
            let (before, after) =
                (self.packages.get(key).unwrap_or(&nothing), new.packages.get(key).unwrap_or(&nothing));
            differ(before, after, |name| changed.entry(Entry::Package(*key, *name)));
        }
    }

    /// Builds the tables. Imports are resolved for the files in `importing` and copied for all others.
    fn with(
        program: &mut Program,
        places: Places,
        imports: IdVec<FileId, IdVec<ImportId, Option<Value>>>,
        importing: &[FileId],
    ) -> Link {
        let words = Words::new(program);
        let slots = program.slots();
        let mut link = Link {
            words,
            places,
            imports,
            stars: Stars::default(),
            folders: FxHashMap::default(),
            folder_packages: FxHashMap::default(),
            packages: FxHashMap::default(),
            package_of: vec![None; slots].into(),
            child_modules: FxHashMap::default(),
            parent_modules: FxHashMap::default(),
            tests: vec![false; slots].into(),
            macros: FxHashMap::default(),
            functions: FxHashMap::default(),
            methods_named: FxHashMap::default(),
            receivers: FxHashMap::default(),
            attached: FxHashMap::default(),
            with_methods: FxHashSet::default(),
            bases: FxHashMap::default(),
            base_kinds: FxHashMap::default(),
            external_bases: FxHashMap::default(),
            outside_bases: FxHashMap::default(),
            for_others: FxHashSet::default(),
            derived: FxHashMap::default(),
            structural: FxHashMap::default(),
            written: FxHashSet::default(),
        };
        link.read_packages(program);
        link.read_names(program);
        link.read_imports(program, importing);
        link.stars = Stars::read(program, &link);
        link.read_receivers(program);
        link.read_bases(program);
        link.read_structural_interfaces(program);
        link
    }

    /// The module or symbol that an import names, unless paths are walked (`Modules::Tree`).
    pub fn import(&self, file: FileId, import: ImportId) -> Option<Value> {
        self.imports[file].get(import).copied().flatten()
    }

    /// Whether `export * from …` may provide this name.
    pub fn star_gives(&self, file: FileId, import: ImportId, name: Sym) -> bool {
        self.stars.may_give(file, import, name)
    }

    // --- packages ---

    fn read_packages(&mut self, program: &mut Program) {
        let ids: Vec<FileId> = program.ids().collect();
        for id in &ids {
            let file = program.get(*id).expect("listed").clone();
            match file.rules.modules {
                Modules::Folders => {
                    let folder = program.find_folder(&file.folder).expect("a file's folder is known");
                    let package = program.intern(&file.facts.package);
                    let names = self.folders.entry((folder, package)).or_default();
                    for (name, var) in file.top_members() {
                        if !matches!(file.facts.vars[var].what, VarKind::Import(_)) {
                            names.entry(name).or_default().push((*id, var));
                        }
                    }
                    let beside = file.facts.package.ends_with("_test") || !file.is_in_usual_build();
                    let (main, of_usual) = self.folder_packages.entry(folder).or_insert((package, !beside));
                    if !beside && !*of_usual {
                        (*main, *of_usual) = (package, true);
                    }
                }
                Modules::Packages => {
                    let package = file.facts.package.replace('\\', ".");
                    // Intern the packages that contain only packages: paths to the inner ones name them.
                    for (end, _) in package.match_indices('.') {
                        program.intern(&package[..end]);
                    }
                    let package = program.intern(&package);
                    self.package_of[*id] = Some(package);
                    let names = self.packages.entry(package).or_default();
                    for child in file.children.of(ROOT) {
                        let def = file.facts.def(*child);
                        if def.kind.type_like() || def.kind == Kind::Function {
                            names.insert(file.sym(def.name), Gid { file: *id, def: *child });
                        }
                        // A namespace inside the file.
                        if def.kind == Kind::Module {
                            for inner in file.children.of(*child) {
                                let def = file.facts.def(*inner);
                                names.insert(file.sym(def.name), Gid { file: *id, def: *inner });
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        let mut declared: FxHashMap<FileId, Vec<(FileId, bool)>> = FxHashMap::default();
        for id in &ids {
            let file = program.file(*id);
            if file.rules.modules != Modules::Tree {
                continue;
            }
            for module in file.facts.language.get().declared_modules(program, file) {
                if module.file != *id {
                    self.child_modules.insert((*id, module.owner, module.name), module.file);
                    self.parent_modules.entry(module.file).or_insert((*id, module.owner));
                    declared.entry(*id).or_default().push((module.file, module.only_in_tests));
                }
            }
        }
        for id in &ids {
            self.tests[*id] = program.file(*id).facts.def(ROOT).is(flag::TEST);
        }
        // A declared file is a test if its declaring module is, independent of its name. Modules nest: from the outside
        // in.
        let children: FxHashSet<FileId> = declared.values().flatten().map(|(child, _)| *child).collect();
        let mut open: Vec<FileId> = ids.iter().copied().filter(|id| !children.contains(id)).collect();
        let mut seen: FxHashSet<FileId> = FxHashSet::default();
        while let Some(id) = open.pop() {
            for (child, only_in_tests) in declared.get(&id).into_iter().flatten() {
                if seen.insert(*child) {
                    self.tests[*child] = *only_in_tests || self.tests[id];
                    open.push(*child);
                }
            }
        }
    }

    /// The package of a folder that others import.
    pub fn package_of_folder(&self, folder: DirId) -> Option<Sym> {
        self.folder_packages.get(&folder).map(|(package, _)| *package)
    }

    /// All declarations of a name that a folder's files share.
    pub fn declared_in_folder(&self, folder: DirId, package: Sym, name: Sym) -> &[(FileId, VarId)] {
        self.folders.get(&(folder, package)).and_then(|names| names.get(&name)).map_or(&[], |found| found.as_slice())
    }

    /// Whether a file is part of the tests.
    pub fn is_test_file(&self, file: FileId) -> bool {
        self.tests[file]
    }

    /// The package that a file declares.
    pub fn package_of(&self, file: FileId) -> Option<Sym> {
        self.package_of[file]
    }

    /// A definition of a package by name.
    pub fn in_package(&self, package: Sym, name: Sym) -> Option<Gid> {
        self.packages.get(&package)?.get(&name).copied()
    }

    /// The package of that name inside another.
    pub fn subpackage(&self, program: &Program, package: Sym, name: Sym) -> Option<Sym> {
        let whole = format!("{}.{}", program.text(package), program.text(name));
        self.known_package(program, &whole)
    }

    /// The package of that name that is inside no other.
    pub fn subpackage_root(&self, program: &Program, name: Sym) -> Option<Sym> {
        self.known_package(program, program.text(name))
    }

    fn known_package(&self, program: &Program, whole: &str) -> Option<Sym> {
        let sym = program.find(whole);
        if let Some(sym) = sym
            && self.packages.contains_key(&sym)
        {
            return Some(sym);
        }
        // A package that contains only packages has no entry: it exists if its name is a prefix of another.
        let inside = format!("{whole}.");
        let known = self.packages.keys().any(|p| program.text(*p).starts_with(&inside));
        if known { sym } else { None }
    }

    // --- names ---

    fn read_names(&mut self, program: &Program) {
        // A positional construction may write any field.
        let mut by_place: Vec<LanguageId> = Vec::new();
        for id in program.ids() {
            let file = program.file(id);
            let language = file.facts.language;
            let mut positional = false;
            for expr in &file.constructs {
                if let Expr::Construct(_, range) = file.facts.expr(*expr) {
                    for item in file.facts.items(range) {
                        match item.key {
                            Key::Name(name) => {
                                self.written.insert(file.sym(name));
                            }
                            Key::Next => positional = true,
                            _ => {}
                        }
                    }
                }
            }
            if positional && !by_place.contains(&language) {
                by_place.push(language);
            }
            for write in &file.writes {
                match file.facts.binds[*write].target {
                    Target::Member(_, name) | Target::At(_, name) => {
                        self.written.insert(file.sym(name));
                    }
                    _ => {}
                }
            }
            for (index, def) in file.facts.defs.iter_ids() {
                let gid = Gid { file: id, def: index };
                let name = file.sym(def.name);
                if def.is(flag::MACRO) {
                    if let Some(named) = program.find(&format!("{}!", file.facts.name(def.name))) {
                        once(&mut self.macros, named, gid);
                    }
                    continue;
                }
                if def.kind == Kind::Method {
                    self.methods_named.entry((language.family(), name)).or_default().push((gid, def.flags));
                }
                if def.kind == Kind::Function && def.parent == ROOT {
                    let private = matches!(def.visibility, crate::facts::Visibility::Private);
                    if !private {
                        once(&mut self.functions, (language.family(), name), gid);
                    }
                }
            }
        }
        for file in program.ids().map(|id| program.file(id)).filter(|file| by_place.contains(&file.facts.language)) {
            let fields = file.facts.defs.iter().filter(|d| d.kind == Kind::Field);
            self.written.extend(fields.map(|d| file.sym(d.name)));
        }
    }

    /// Whether any code writes a member of this name from outside its object.
    pub fn is_written(&self, name: Sym) -> bool {
        name == self.words.element || self.written.contains(&name)
    }

    /// The macro of a name, unless there are several.
    pub fn macro_named(&self, name: Sym) -> Option<Gid> {
        self.macros.get(&name).copied().flatten()
    }

    /// Whether a file of the language has a function of that name that is not private.
    pub fn has_function(&self, language: LanguageId, name: Sym) -> bool {
        self.functions.contains_key(&(language.family(), name))
    }

    /// The function of a name in the files of a language, unless there are several.
    pub fn only_function(&self, language: LanguageId, name: Sym) -> Option<Gid> {
        self.functions.get(&(language.family(), name)).copied().flatten()
    }

    // --- imports ---

    fn read_imports(&mut self, program: &Program, ids: &[FileId]) {
        let found: Vec<(FileId, IdVec<ImportId, Option<Value>>)> = ids
            .par_iter()
            .map(|id| {
                let file = program.file(*id);
                let imports = file.facts.imports.iter().map(|import| match file.rules.modules {
                    Modules::Packages => self.in_packages(program, file.facts.language, &import.module),
                    _ => self.places.resolve(program, *id, import),
                });
                (*id, imports.collect())
            })
            .collect();
        for (id, imports) in found {
            self.imports[id] = imports;
        }
    }

    /// Resolves a dotted path of packages and classes.
    fn in_packages(&self, program: &Program, language: LanguageId, module: &str) -> Option<Value> {
        let module = module.replace('\\', ".");
        if let Some(sym) = program.find(&module)
            && self.packages.contains_key(&sym)
        {
            return Some(Value::Package(sym));
        }
        if let Some((above, name)) = module.rsplit_once('.') {
            let name = program.find(name);
            if let Some(name) = name {
                match self.in_packages_inside(program, language, above) {
                    Some(Value::Package(package)) => {
                        if let Some(found) = self.in_package(package, name) {
                            return Some(Value::Class(found));
                        }
                    }
                    Some(Value::Class(class)) => {
                        let file = program.file(class.file);
                        if let Some(inner) = file.children.of(class.def).iter().find(|c| {
                            file.sym(file.facts.def(**c).name) == name && file.facts.def(**c).kind.type_like()
                        }) {
                            return Some(Value::Class(Gid { file: class.file, def: *inner }));
                        }
                    }
                    _ => {}
                }
            }
        }
        self.places.outside(program, language, &module)
    }

    fn in_packages_inside(&self, program: &Program, language: LanguageId, module: &str) -> Option<Value> {
        match self.in_packages(program, language, module) {
            Some(Value::External(_)) | None => None,
            found => found,
        }
    }

    /// How imports resolve.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// The file of a module that a definition of a file declares.
    pub fn child_module(&self, file: FileId, owner: DefId, name: Sym) -> Option<FileId> {
        self.child_modules.get(&(file, owner, name)).copied()
    }

    /// The file and the definition that declare a file as a module.
    pub fn parent_module(&self, file: FileId) -> Option<(FileId, DefId)> {
        self.parent_modules.get(&file).copied()
    }

    // --- methods written outside their types ---

    fn read_receivers(&mut self, program: &Program) {
        let flows = Flows::default();
        let ids: Vec<FileId> = program.ids().filter(|id| program.file(*id).rules.methods_outside_types).collect();
        type Found = (Vec<(Gid, Gid, Sym)>, Vec<(Option<Gid>, Gid, u32)>, Vec<(Gid, OutsideBase)>);
        let found: Vec<Found> = ids
            .par_chunks(32)
            .map(|chunk| {
                let mut eval = Eval::new(program, self, &flows);
                let (mut methods, mut impls, mut beyond) = (Vec::new(), Vec::new(), Vec::new());
                for id in chunk {
                    let file = program.file(*id);
                    for (index, def) in file.facts.defs.iter_ids() {
                        let Some(receiver) = def.receiver else { continue };
                        let gid = Gid { file: *id, def: index };
                        if let Some(class) = class_in(&mut eval, *id, receiver, def.parent) {
                            methods.push((gid, class, file.sym(def.name)));
                        }
                    }
                    for (bind, line) in &file.facts.impl_lines {
                        let bind = &file.facts.binds[*bind];
                        let Target::Member(of, _) = bind.target else { continue };
                        let class = class_in(&mut eval, *id, of, bind.owner);
                        // The link belongs to the file of the type: a line of another file would be wrong there.
                        let line = if class.is_some_and(|class| class.file == *id) { *line } else { 0 };
                        match (class_in(&mut eval, *id, bind.value, bind.owner), class) {
                            (Some(base), class) => impls.push((class, base, line)),
                            (None, Some(class)) => {
                                let traits = outside_types(&mut eval, *id, bind.value, bind.owner);
                                let base = |path| OutsideBase { path, how: BaseKind::Implements, line };
                                beyond.extend(traits.into_iter().map(|path| (class, base(path))));
                            }
                            (None, None) => {}
                        }
                    }
                }
                (methods, impls, beyond)
            })
            .collect();
        for (methods, impls, beyond) in found {
            for (class, base) in beyond {
                let bases = self.outside_bases.entry(class).or_default();
                if !bases.iter().any(|known| known.path == base.path) {
                    bases.push(base);
                }
            }
            for (method, class, name) in methods {
                self.receivers.insert(method, class);
                self.attached.entry((class, name)).or_default().push(method);
                self.with_methods.insert(class);
            }
            for (class, base, line) in impls {
                match class {
                    Some(class) => self.add_base(class, base, BaseKind::Implements, line),
                    None => _ = self.for_others.insert(base),
                }
            }
        }
        // Methods of the default build come first: the first one represents all.
        for methods in self.attached.values_mut().filter(|methods| methods.len() > 1) {
            methods.sort_by_key(|method| !program.file(method.file).is_in_usual_build());
        }
    }

    fn add_base(&mut self, class: Gid, base: Gid, how: BaseKind, line: u32) {
        let bases = self.bases.entry(class).or_default();
        if class != base && !bases.contains(&base) {
            bases.push(base);
            self.base_kinds.insert((class, base), (how, line));
            self.derived.entry(base).or_default().push(class);
        }
    }

    /// Whether a trait is implemented for types outside the program, or for all types with another trait.
    pub fn is_for_others(&self, base: Gid) -> bool {
        self.for_others.contains(&base)
    }

    /// The type of a method that is written outside its type.
    pub fn receiver(&self, method: Gid) -> Option<Gid> {
        self.receivers.get(&method).copied()
    }

    /// Methods of a name that are written outside their type.
    pub fn attached(&self, class: Gid, name: Sym) -> &[Gid] {
        self.attached.get(&(class, name)).map_or(&[], |found| found.as_slice())
    }

    /// Whether methods of a type are written outside of it.
    pub fn has_methods(&self, class: Gid) -> bool {
        self.with_methods.contains(&class)
    }

    // --- inheritance ---

    fn read_bases(&mut self, program: &Program) {
        let flows = Flows::default();
        let ids: Vec<FileId> = program.ids().collect();
        type Bases = Vec<(Gid, Vec<(Option<Gid>, Option<ExternalId>, BaseKind, u32)>)>;
        type Found = (Bases, Vec<(Gid, OutsideBase)>);
        let found: Vec<Found> = ids
            .par_chunks(64)
            .map(|chunk| {
                let mut eval = Eval::new(program, self, &flows);
                let (mut out, mut beyond) = (Vec::new(), Vec::new());
                for id in chunk {
                    let file = program.file(*id);
                    for (index, def) in file.facts.defs.iter_ids() {
                        if def.bases.is_empty() {
                            continue;
                        }
                        let class = Gid { file: *id, def: index };
                        let mut bases = Vec::new();
                        for base in &def.bases {
                            let (values, _) = eval.ask(|e| e.expr(*id, base.of, def.parent, LEVELS));
                            for (value, _) in &values.values {
                                match value {
                                    Value::Class(of) => bases.push((Some(*of), None, base.how, base.line)),
                                    Value::Func(of) => bases.push((Some(*of), None, base.how, base.line)),
                                    Value::External(of) | Value::ExternalInstance(of) => {
                                        bases.push((None, Some(*of), base.how, base.line));
                                    }
                                    _ => {}
                                }
                            }
                            let outside = outside_types(&mut eval, *id, base.of, def.parent);
                            let (how, line) = (base.how, base.line);
                            beyond.extend(outside.into_iter().map(|path| (class, OutsideBase { path, how, line })));
                        }
                        out.push((class, bases));
                    }
                }
                (out, beyond)
            })
            .collect();
        let (found, beyond): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        for (class, base) in beyond.into_iter().flatten() {
            self.outside_bases.entry(class).or_default().push(base);
        }
        for (class, bases) in found.into_iter().flatten() {
            for (inside, outside, how, line) in bases {
                if let Some(base) = inside {
                    self.add_base(class, base, how, line);
                }
                if let Some(path) = outside {
                    self.external_bases.entry(class).or_default().push(path);
                }
            }
        }
        for derived in self.derived.values_mut() {
            derived.sort_unstable();
            derived.dedup();
        }
    }

    /// The bases of a class that are part of the program.
    pub fn bases(&self, class: Gid) -> &[Gid] {
        self.bases.get(&class).map_or(&[], |found| found.as_slice())
    }

    /// Whether a class has a base in another package.
    pub fn external_base(&self, class: Gid) -> bool {
        self.external_bases.contains_key(&class)
    }

    /// The bases of a class in other packages, without those of the language's own library.
    pub fn external_bases(&self, class: Gid) -> &[ExternalId] {
        self.external_bases.get(&class).map_or(&[], |found| found.as_slice())
    }

    /// The bases of a class that are not part of the program.
    pub fn outside_bases(&self, class: Gid) -> &[OutsideBase] {
        self.outside_bases.get(&class).map_or(&[], |found| found.as_slice())
    }

    /// Whether classes derive from this one.
    pub fn derived(&self, class: Gid) -> bool {
        self.derived.contains_key(&class)
    }

    /// Every class derived from this one, nearest first, up to `MOST_DERIVED`.
    pub fn all_derived(&self, class: Gid) -> Vec<Gid> {
        let mut found: Vec<Gid> = Vec::new();
        let mut seen: FxHashSet<Gid> = FxHashSet::default();
        let mut queue = vec![class];
        let mut at = 0;
        while at < queue.len() && found.len() < MOST_DERIVED {
            for derived in self.derived.get(&queue[at]).map_or(&[][..], |d| d.as_slice()) {
                if seen.insert(*derived) {
                    found.push(*derived);
                    queue.push(*derived);
                }
            }
            at += 1;
        }
        found
    }

    /// Runs for a class and all its ancestors.
    pub fn above(&self, class: Gid, mut run: impl FnMut(Gid)) {
        let mut seen: SmallVec<[Gid; 8]> = SmallVec::new();
        seen.push(class);
        let mut at = 0;
        while at < seen.len() {
            let class = seen[at];
            run(class);
            for base in self.bases(class).iter().chain(self.structural.get(&class).into_iter().flatten()) {
                if !seen.contains(base) {
                    seen.push(*base);
                }
            }
            at += 1;
        }
    }

    /// Languages in which a type implements an interface if it has its methods, without a declaration.
    fn read_structural_interfaces(&mut self, program: &Program) {
        let flows = Flows::default();
        let mut by_method: FxHashMap<Sym, Vec<Gid>> = FxHashMap::default();
        for (class, name) in self.attached.keys() {
            by_method.entry(*name).or_default().push(*class);
        }
        let mut found = Vec::new();
        {
            let mut eval = Eval::new(program, self, &flows);
            for id in program.ids() {
                let file = program.file(id);
                if !file.rules.structural_interfaces {
                    continue;
                }
                for (index, def) in file.facts.defs.iter_ids() {
                    if def.kind != Kind::Interface {
                        continue;
                    }
                    let interface = Gid { file: id, def: index };
                    let mut names: Vec<Sym> = Vec::new();
                    for of in &eval.line(interface).classes {
                        let file = program.file(of.file);
                        for child in file.children.of(of.def) {
                            if file.facts.def(*child).kind == Kind::Method {
                                names.push(file.sym(file.facts.def(*child).name));
                            }
                        }
                    }
                    let Some(rarest) = names.iter().min_by_key(|n| by_method.get(*n).map_or(0, Vec::len)) else {
                        continue;
                    };
                    let mut candidates: Vec<Gid> = by_method.get(rarest).cloned().unwrap_or_default();
                    // Types that embed a candidate have its methods too.
                    for class in candidates.clone() {
                        candidates.extend(self.all_derived(class));
                    }
                    candidates.sort_unstable();
                    candidates.dedup();
                    for class in candidates {
                        if class != interface
                            && program.def(class).kind != Kind::Interface
                            && program.file(class.file).rules.structural_interfaces
                            && names.iter().all(|name| eval.find_method(class, *name, LEVELS).is_some())
                        {
                            found.push((class, interface));
                        }
                    }
                }
            }
        }
        for (class, interface) in found {
            self.derived.entry(interface).or_default().push(class);
            self.structural.entry(class).or_default().push(interface);
            self.base_kinds.insert((class, interface), (BaseKind::Implements, 0));
        }
        for derived in self.derived.values_mut() {
            derived.sort_unstable();
            derived.dedup();
        }
    }
}

const MOST_DERIVED: usize = 400;

/// Runs for every key whose values differ between two maps.
pub(super) fn differ<K: std::hash::Hash + Eq, V: PartialEq>(
    old: &FxHashMap<K, V>,
    new: &FxHashMap<K, V>,
    mut run: impl FnMut(&K),
) {
    for (key, value) in old {
        if new.get(key) != Some(value) {
            run(key);
        }
    }
    for key in new.keys() {
        if !old.contains_key(key) {
            run(key);
        }
    }
}

fn class_in(eval: &mut Eval<'_>, file: FileId, expr: ExprId, owner: DefId) -> Option<Gid> {
    let (set, _) = eval.ask(|e| e.expr(file, expr, owner, LEVELS));
    set.values.iter().find_map(|(v, _)| match v {
        Value::Class(class) => Some(*class),
        _ => None,
    })
}

/// The types outside the program that a type expression names, without type arguments.
fn outside_types(eval: &mut Eval<'_>, file: FileId, expr: ExprId, owner: DefId) -> SmallVec<[ExternalId; 1]> {
    let facts = &eval.file(file).facts;
    let of = match facts.expr(expr) {
        Expr::Generic(of, _) => of,
        _ => expr,
    };
    let (set, _) = eval.ask(|e| e.expr(file, of, owner, LEVELS));
    let library = eval.link.words.of(facts.language.family()).library;
    let found = set.values.iter().filter_map(|(value, _)| match value {
        Value::External(path) | Value::ExternalInstance(path) => Some(*path),
        Value::Builtin(name) => Some(eval.program.external(eval.program.external_package(library?), *name)),
        _ => None,
    });
    found.collect()
}

/// Records the first definition of a name; a second one makes the name ambiguous.
fn once<K: std::hash::Hash + Eq>(map: &mut FxHashMap<K, Option<Gid>>, key: K, gid: Gid) {
    map.entry(key).and_modify(|known| *known = None).or_insert(Some(gid));
}
