//! Tables over all files that evaluation uses: imports, packages, methods outside their types, inheritance.

use super::deps::{ChangedDependencies, TableEntry};
use super::eval::{Eval, LEVELS};
use super::file::ProgramFile;
use super::flow::Flows;
use super::imports::ImportResolvers;
use super::program::Program;
use super::stars::StarExports;
use super::value::{DefRef, DirId, ExternalId, FileId, InternedStr, PossibleValue};
use crate::facts::{
    BaseKind, BindTarget, DefId, DefKind, ExprId, ImportId, ItemKey, ROOT, SourceExpr, VarId, VarKind, flag,
};
use crate::ids::IdVec;
use crate::languages::LanguageId;
use crate::languages::rules::{LanguageRules, Modules};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Symbols of names with a meaning.
pub struct KnownSymbols {
    pub prototype: InternedStr,
    pub call: InternedStr,
    pub apply: InternedStr,
    pub bind: InternedStr,
    /// The export of `module.exports = …`.
    pub whole: InternedStr,
    /// Any element of a container.
    pub element: InternedStr,
    languages: Vec<LanguageSymbols>,
}

/// Symbols of names with a meaning in one language, see `LanguageRules`.
pub struct LanguageSymbols {
    pub constructor: Option<InternedStr>,
    pub call_method: Option<InternedStr>,
    pub iterator: Option<InternedStr>,
    pub next: Option<InternedStr>,
    pub item: Option<InternedStr>,
    /// The package that builtins belong to.
    pub library: Option<InternedStr>,
}

impl KnownSymbols {
    fn new(program: &mut Program) -> KnownSymbols {
        let languages = LanguageId::all().map(|language| LanguageSymbols::new(language.rules(), program)).collect();
        KnownSymbols {
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
    pub fn of(&self, language: LanguageId) -> &LanguageSymbols {
        &self.languages[language.index()]
    }
}

impl LanguageSymbols {
    fn new(rules: &LanguageRules, program: &mut Program) -> LanguageSymbols {
        let mut sym = |name: &str| program.intern(name);
        LanguageSymbols {
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
type Flagged = SmallVec<[(DefRef, u32); 1]>;

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
pub struct ProgramTables {
    pub words: KnownSymbols,
    places: ImportResolvers,
    imports: IdVec<FileId, IdVec<ImportId, Option<PossibleValue>>>,
    stars: StarExports,
    /// `Modules::Folders`: names by folder and package clause.
    folders: FxHashMap<(DirId, InternedStr), FxHashMap<InternedStr, Declared>>,
    /// The package of a folder that others import, and whether files of the usual build belong to it.
    folder_packages: FxHashMap<DirId, (InternedStr, bool)>,
    /// Definitions by package and name; packages by dotted name.
    packages: FxHashMap<InternedStr, FxHashMap<InternedStr, DefRef>>,
    package_of: IdVec<FileId, Option<InternedStr>>,
    /// `Modules::Tree`: the file of a declared module, and the declaring module of a file.
    child_modules: FxHashMap<(FileId, DefId, InternedStr), FileId>,
    parent_modules: FxHashMap<FileId, (FileId, DefId)>,
    /// Whether a file is part of the tests: by its name and folder, or by the module that declares it.
    tests: IdVec<FileId, bool>,
    macros: FxHashMap<InternedStr, Option<DefRef>>,
    /// Functions by name, for languages with one namespace for all files; `None` if the name is ambiguous.
    functions: FxHashMap<(LanguageId, InternedStr), Option<DefRef>>,
    /// Methods by name, each with its flags.
    pub methods_named: FxHashMap<(LanguageId, InternedStr), Flagged>,
    receivers: FxHashMap<DefRef, DefRef>,
    attached: FxHashMap<(DefRef, InternedStr), SmallVec<[DefRef; 1]>>,
    with_methods: FxHashSet<DefRef>,
    bases: FxHashMap<DefRef, SmallVec<[DefRef; 2]>>,
    pub base_kinds: FxHashMap<(DefRef, DefRef), (BaseKind, u32)>,
    external_bases: FxHashMap<DefRef, SmallVec<[ExternalId; 1]>>,
    /// All bases that are not part of the program, including those of the language's own library.
    outside_bases: FxHashMap<DefRef, SmallVec<[OutsideBase; 1]>>,
    /// Traits that are also implemented for types outside the program, or for all types with another trait.
    for_others: FxHashSet<DefRef>,
    derived: FxHashMap<DefRef, Vec<DefRef>>,
    /// The interfaces whose methods a type has, without a declaration.
    structural: FxHashMap<DefRef, SmallVec<[DefRef; 2]>>,
    /// Names of members that are written by code outside their object.
    written: FxHashSet<InternedStr>,
}

/// The table entries that differ after files changed.
#[derive(Default)]
pub struct TableDifferences {
    pub changed: ChangedDependencies,
    /// The subset that also counts as new in every round, because with the new tables it may become known in another
    /// round.
    pub learned: ChangedDependencies,
}

impl ProgramTables {
    /// Builds the tables of a program.
    pub fn new(program: &mut Program) -> ProgramTables {
        let mut places = ImportResolvers::read(program);
        let ids: Vec<FileId> = program.ids().collect();
        places.prepare(program, &ids);
        let imports = vec![IdVec::new(); program.slots()].into();
        ProgramTables::with(program, places, imports, &ids)
    }

    /// Updates the tables after files changed, and returns the differences. `None` if so much may differ that a full
    /// resolution is better.
    pub fn updated(
        old: &mut ProgramTables,
        program: &mut Program,
        files: &FxHashSet<FileId>,
        before: &IdVec<FileId, Option<Arc<ProgramFile>>>,
    ) -> Option<(ProgramTables, TableDifferences)> {
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
        let link = ProgramTables::with(program, places, imports, &importing);
        if old.child_modules != link.child_modules
            || old.parent_modules != link.parent_modules
            || old.tests != link.tests
            || old.folder_packages != link.folder_packages
        {
            return None;
        }
        let mut differences = TableDifferences::default();
        files.iter().for_each(|id| differences.changed.file(*id));
        old.compare(&link, &mut differences);
        Some((link, differences))
    }

    /// Records the entries that differ between two versions of the tables.
    fn compare(&self, new: &ProgramTables, TableDifferences { changed, learned }: &mut TableDifferences) {
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
            changed.entry(TableEntry::Below(*gid));
        }
        let mut derived = Vec::new();
        differ(&self.derived, &new.derived, |gid| derived.push(*gid));
        for gid in derived {
            changed.entry(TableEntry::Derived(gid));
            // Derived classes were added or removed below these, and so were their instances.
            for link in [self, new] {
                link.above(gid, |of| {
                    changed.entry(TableEntry::Below(of));
                    changed.entry(TableEntry::MadeBelow(of));
                    learned.entry(TableEntry::MadeBelow(of));
                });
            }
        }
        for gid in moved {
            changed.file(gid.file);
            // Members of all derived classes resolve differently, which affects the classes above them.
            for link in [self, new] {
                for below in link.all_derived(gid).into_iter().chain([gid]) {
                    link.above(below, |of| changed.entry(TableEntry::Below(of)));
                }
            }
        }
        for name in self.written.symmetric_difference(&new.written) {
            changed.entry(TableEntry::Written(*name));
        }
        differ(&self.macros, &new.macros, |name| changed.entry(TableEntry::Macro(*name)));
        differ(&self.functions, &new.functions, |(of, name)| changed.entry(TableEntry::Function(*of, *name)));
        differ(&self.methods_named, &new.methods_named, |(of, name)| changed.entry(TableEntry::Methods(*of, *name)));
        let nothing = FxHashMap::default();
        for key in self.folders.keys().chain(new.folders.keys()) {
            let (before, after) = (self.folders.get(key).unwrap_or(&nothing), new.folders.get(key).unwrap_or(&nothing));
            differ(before, after, |name| changed.entry(TableEntry::Folder(key.0, *name)));
        }
        let nothing = FxHashMap::default();
        for key in self.packages.keys().chain(new.packages.keys()) {
            let (before, after) =
                (self.packages.get(key).unwrap_or(&nothing), new.packages.get(key).unwrap_or(&nothing));
            differ(before, after, |name| changed.entry(TableEntry::Package(*key, *name)));
        }
    }

    /// Builds the tables. Imports are resolved for the files in `importing` and copied for all others.
    fn with(
        program: &mut Program,
        places: ImportResolvers,
        imports: IdVec<FileId, IdVec<ImportId, Option<PossibleValue>>>,
        importing: &[FileId],
    ) -> ProgramTables {
        let words = KnownSymbols::new(program);
        let slots = program.slots();
        let mut link = ProgramTables {
            words,
            places,
            imports,
            stars: StarExports::default(),
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
        link.stars = StarExports::read(program, &link);
        link.read_receivers(program);
        link.read_bases(program);
        link.read_structural_interfaces(program);
        link
    }

    /// The module or symbol that an import names, unless paths are walked (`Modules::Tree`).
    pub fn import(&self, file: FileId, import: ImportId) -> Option<PossibleValue> {
        self.imports[file].get(import).copied().flatten()
    }

    /// Whether `export * from …` may provide this name.
    pub fn star_may_export(&self, file: FileId, import: ImportId, name: InternedStr) -> bool {
        self.stars.may_export(file, import, name)
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
                        if def.kind.type_like() || def.kind == DefKind::Function {
                            names.insert(file.sym(def.name), DefRef { file: *id, def: *child });
                        }
                        // A namespace inside the file.
                        if def.kind == DefKind::Module {
                            for inner in file.children.of(*child) {
                                let def = file.facts.def(*inner);
                                names.insert(file.sym(def.name), DefRef { file: *id, def: *inner });
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
    pub fn package_of_folder(&self, folder: DirId) -> Option<InternedStr> {
        self.folder_packages.get(&folder).map(|(package, _)| *package)
    }

    /// All declarations of a name that a folder's files share.
    pub fn declared_in_folder(&self, folder: DirId, package: InternedStr, name: InternedStr) -> &[(FileId, VarId)] {
        self.folders.get(&(folder, package)).and_then(|names| names.get(&name)).map_or(&[], |found| found.as_slice())
    }

    /// Whether a file is part of the tests.
    pub fn is_test_file(&self, file: FileId) -> bool {
        self.tests[file]
    }

    /// The package that a file declares.
    pub fn package_of(&self, file: FileId) -> Option<InternedStr> {
        self.package_of[file]
    }

    /// A definition of a package by name.
    pub fn in_package(&self, package: InternedStr, name: InternedStr) -> Option<DefRef> {
        self.packages.get(&package)?.get(&name).copied()
    }

    /// The package of that name inside another.
    pub fn subpackage(&self, program: &Program, package: InternedStr, name: InternedStr) -> Option<InternedStr> {
        let whole = format!("{}.{}", program.text(package), program.text(name));
        self.known_package(program, &whole)
    }

    /// The package of that name that is inside no other.
    pub fn subpackage_root(&self, program: &Program, name: InternedStr) -> Option<InternedStr> {
        self.known_package(program, program.text(name))
    }

    fn known_package(&self, program: &Program, whole: &str) -> Option<InternedStr> {
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
                if let SourceExpr::Construct(_, range) = file.facts.expr(*expr) {
                    for item in file.facts.items(range) {
                        match item.key {
                            ItemKey::Name(name) => {
                                self.written.insert(file.sym(name));
                            }
                            ItemKey::Next => positional = true,
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
                    BindTarget::Member(_, name) | BindTarget::At(_, name) => {
                        self.written.insert(file.sym(name));
                    }
                    _ => {}
                }
            }
            for (index, def) in file.facts.defs.iter_ids() {
                let gid = DefRef { file: id, def: index };
                let name = file.sym(def.name);
                if def.is(flag::MACRO) {
                    if let Some(named) = program.find(&format!("{}!", file.facts.name(def.name))) {
                        insert_unless_ambiguous(&mut self.macros, named, gid);
                    }
                    continue;
                }
                if def.kind == DefKind::Method {
                    self.methods_named.entry((language.family(), name)).or_default().push((gid, def.flags));
                }
                if def.kind == DefKind::Function && def.parent == ROOT {
                    let private = matches!(def.visibility, crate::facts::Visibility::Private);
                    if !private {
                        insert_unless_ambiguous(&mut self.functions, (language.family(), name), gid);
                    }
                }
            }
        }
        for file in program.ids().map(|id| program.file(id)).filter(|file| by_place.contains(&file.facts.language)) {
            let fields = file.facts.defs.iter().filter(|d| d.kind == DefKind::Field);
            self.written.extend(fields.map(|d| file.sym(d.name)));
        }
    }

    /// Whether any code writes a member of this name from outside its object.
    pub fn is_written(&self, name: InternedStr) -> bool {
        name == self.words.element || self.written.contains(&name)
    }

    /// The macro of a name, unless there are several.
    pub fn macro_named(&self, name: InternedStr) -> Option<DefRef> {
        self.macros.get(&name).copied().flatten()
    }

    /// Whether a file of the language has a function of that name that is not private.
    pub fn has_function(&self, language: LanguageId, name: InternedStr) -> bool {
        self.functions.contains_key(&(language.family(), name))
    }

    /// The function of a name in the files of a language, unless there are several.
    pub fn only_function(&self, language: LanguageId, name: InternedStr) -> Option<DefRef> {
        self.functions.get(&(language.family(), name)).copied().flatten()
    }

    // --- imports ---

    fn read_imports(&mut self, program: &Program, ids: &[FileId]) {
        let found: Vec<(FileId, IdVec<ImportId, Option<PossibleValue>>)> = ids
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
    fn in_packages(&self, program: &Program, language: LanguageId, module: &str) -> Option<PossibleValue> {
        let module = module.replace('\\', ".");
        if let Some(sym) = program.find(&module)
            && self.packages.contains_key(&sym)
        {
            return Some(PossibleValue::Package(sym));
        }
        if let Some((above, name)) = module.rsplit_once('.') {
            let name = program.find(name);
            if let Some(name) = name {
                match self.in_packages_inside(program, language, above) {
                    Some(PossibleValue::Package(package)) => {
                        if let Some(found) = self.in_package(package, name) {
                            return Some(PossibleValue::Class(found));
                        }
                    }
                    Some(PossibleValue::Class(class)) => {
                        let file = program.file(class.file);
                        if let Some(inner) = file.children.of(class.def).iter().find(|c| {
                            file.sym(file.facts.def(**c).name) == name && file.facts.def(**c).kind.type_like()
                        }) {
                            return Some(PossibleValue::Class(DefRef { file: class.file, def: *inner }));
                        }
                    }
                    _ => {}
                }
            }
        }
        self.places.outside(program, language, &module)
    }

    fn in_packages_inside(&self, program: &Program, language: LanguageId, module: &str) -> Option<PossibleValue> {
        match self.in_packages(program, language, module) {
            Some(PossibleValue::External(_)) | None => None,
            found => found,
        }
    }

    /// How imports resolve.
    pub fn places(&self) -> &ImportResolvers {
        &self.places
    }

    /// The file of a module that a definition of a file declares.
    pub fn child_module(&self, file: FileId, owner: DefId, name: InternedStr) -> Option<FileId> {
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
        type Found =
            (Vec<(DefRef, DefRef, InternedStr)>, Vec<(Option<DefRef>, DefRef, u32)>, Vec<(DefRef, OutsideBase)>);
        let found: Vec<Found> = ids
            .par_chunks(32)
            .map(|chunk| {
                let mut eval = Eval::new(program, self, &flows);
                let (mut methods, mut impls, mut beyond) = (Vec::new(), Vec::new(), Vec::new());
                for id in chunk {
                    let file = program.file(*id);
                    for (index, def) in file.facts.defs.iter_ids() {
                        let Some(receiver) = def.receiver else { continue };
                        let gid = DefRef { file: *id, def: index };
                        if let Some(class) = class_in(&mut eval, *id, receiver, def.parent) {
                            methods.push((gid, class, file.sym(def.name)));
                        }
                    }
                    for (bind, line) in &file.facts.impl_lines {
                        let bind = &file.facts.binds[*bind];
                        let BindTarget::Member(of, _) = bind.target else { continue };
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
        // Methods of the usual build come first: the first one represents all.
        for methods in self.attached.values_mut().filter(|methods| methods.len() > 1) {
            methods.sort_by_key(|method| !program.file(method.file).is_in_usual_build());
        }
    }

    fn add_base(&mut self, class: DefRef, base: DefRef, how: BaseKind, line: u32) {
        let bases = self.bases.entry(class).or_default();
        if class != base && !bases.contains(&base) {
            bases.push(base);
            self.base_kinds.insert((class, base), (how, line));
            self.derived.entry(base).or_default().push(class);
        }
    }

    /// Whether a trait is implemented for types outside the program, or for all types with another trait.
    pub fn is_for_others(&self, base: DefRef) -> bool {
        self.for_others.contains(&base)
    }

    /// The type of a method that is written outside its type.
    pub fn receiver(&self, method: DefRef) -> Option<DefRef> {
        self.receivers.get(&method).copied()
    }

    /// Methods of a name that are written outside their type.
    pub fn attached(&self, class: DefRef, name: InternedStr) -> &[DefRef] {
        self.attached.get(&(class, name)).map_or(&[], |found| found.as_slice())
    }

    /// Whether methods of a type are written outside of it.
    pub fn has_methods(&self, class: DefRef) -> bool {
        self.with_methods.contains(&class)
    }

    // --- inheritance ---

    fn read_bases(&mut self, program: &Program) {
        let flows = Flows::default();
        let ids: Vec<FileId> = program.ids().collect();
        type Bases = Vec<(DefRef, Vec<(Option<DefRef>, Option<ExternalId>, BaseKind, u32)>)>;
        type Found = (Bases, Vec<(DefRef, OutsideBase)>);
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
                        let class = DefRef { file: *id, def: index };
                        let mut bases = Vec::new();
                        for base in &def.bases {
                            let (values, _) = eval.ask(|e| e.expr(*id, base.of, def.parent, LEVELS));
                            for (value, _) in &values.values {
                                match value {
                                    PossibleValue::Class(of) => bases.push((Some(*of), None, base.how, base.line)),
                                    PossibleValue::Func(of) => bases.push((Some(*of), None, base.how, base.line)),
                                    PossibleValue::External(of) | PossibleValue::ExternalInstance(of) => {
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
    pub fn bases(&self, class: DefRef) -> &[DefRef] {
        self.bases.get(&class).map_or(&[], |found| found.as_slice())
    }

    /// Whether a class has a base in another package.
    pub fn external_base(&self, class: DefRef) -> bool {
        self.external_bases.contains_key(&class)
    }

    /// The bases of a class in other packages, without those of the language's own library.
    pub fn external_bases(&self, class: DefRef) -> &[ExternalId] {
        self.external_bases.get(&class).map_or(&[], |found| found.as_slice())
    }

    /// The bases of a class that are not part of the program.
    pub fn outside_bases(&self, class: DefRef) -> &[OutsideBase] {
        self.outside_bases.get(&class).map_or(&[], |found| found.as_slice())
    }

    /// Whether classes derive from this one.
    pub fn derived(&self, class: DefRef) -> bool {
        self.derived.contains_key(&class)
    }

    /// Every class derived from this one, nearest first, up to `MOST_DERIVED`.
    pub fn all_derived(&self, class: DefRef) -> Vec<DefRef> {
        let mut found: Vec<DefRef> = Vec::new();
        let mut seen: FxHashSet<DefRef> = FxHashSet::default();
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
    pub fn above(&self, class: DefRef, mut run: impl FnMut(DefRef)) {
        let mut seen: SmallVec<[DefRef; 8]> = SmallVec::new();
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
        let mut by_method: FxHashMap<InternedStr, Vec<DefRef>> = FxHashMap::default();
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
                    if def.kind != DefKind::Interface {
                        continue;
                    }
                    let interface = DefRef { file: id, def: index };
                    let mut names: Vec<InternedStr> = Vec::new();
                    for of in &eval.resolution_order(interface).classes {
                        let file = program.file(of.file);
                        for child in file.children.of(of.def) {
                            if file.facts.def(*child).kind == DefKind::Method {
                                names.push(file.sym(file.facts.def(*child).name));
                            }
                        }
                    }
                    let Some(rarest) = names.iter().min_by_key(|n| by_method.get(*n).map_or(0, Vec::len)) else {
                        continue;
                    };
                    let mut candidates: Vec<DefRef> = by_method.get(rarest).cloned().unwrap_or_default();
                    // Types that embed a candidate have its methods too.
                    for class in candidates.clone() {
                        candidates.extend(self.all_derived(class));
                    }
                    candidates.sort_unstable();
                    candidates.dedup();
                    for class in candidates {
                        if class != interface
                            && program.def(class).kind != DefKind::Interface
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

fn class_in(eval: &mut Eval<'_>, file: FileId, expr: ExprId, owner: DefId) -> Option<DefRef> {
    let (set, _) = eval.ask(|e| e.expr(file, expr, owner, LEVELS));
    set.values.iter().find_map(|(v, _)| match v {
        PossibleValue::Class(class) => Some(*class),
        _ => None,
    })
}

/// The types outside the program that a type expression names, without type arguments.
fn outside_types(eval: &mut Eval<'_>, file: FileId, expr: ExprId, owner: DefId) -> SmallVec<[ExternalId; 1]> {
    let facts = &eval.file(file).facts;
    let of = match facts.expr(expr) {
        SourceExpr::Generic(of, _) => of,
        _ => expr,
    };
    let (set, _) = eval.ask(|e| e.expr(file, of, owner, LEVELS));
    let library = eval.link.words.of(facts.language.family()).library;
    let found = set.values.iter().filter_map(|(value, _)| match value {
        PossibleValue::External(path) | PossibleValue::ExternalInstance(path) => Some(*path),
        PossibleValue::Builtin(name) => Some(eval.program.external(eval.program.external_package(library?), *name)),
        _ => None,
    });
    found.collect()
}

/// Records the first definition of a name; a second one makes the name ambiguous.
fn insert_unless_ambiguous<K: std::hash::Hash + Eq>(map: &mut FxHashMap<K, Option<DefRef>>, key: K, gid: DefRef) {
    map.entry(key).and_modify(|known| *known = None).or_insert(Some(gid));
}
