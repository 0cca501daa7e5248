//! The [`Language`] trait: what one language provides to the code that treats all languages alike.

use super::LanguageId;
use super::rules::{BuiltinCall, LanguageRules};
use crate::build::{Build, Constraint};
use crate::facts::{DefId, FileFacts, ImportId, SourceImport};
use crate::lang::patient_tree;
use crate::resolve::eval::Eval;
use crate::resolve::link::ProgramTables;
use crate::resolve::value::{InternedStr, ValueSet};
use crate::resolve::{DefRef, FileId, PossibleValue, Program, ProgramFile};
use crate::tree::SyntaxTree;

/// A file to read.
#[derive(Clone, Copy)]
pub(crate) struct SourceFile<'t> {
    /// Relative to the root of the repository, with `/`.
    pub path: &'t str,
    pub text: &'t str,
    /// The language it is read in: several may share a front end.
    pub language: LanguageId,
}

/// A parser that is written by hand, and the front end that reads its trees and those of tree-sitter.
pub(crate) struct OwnParser {
    /// The tree of a text; `None` if the text needs tree-sitter.
    pub parse: fn(&str, LanguageId) -> Option<SyntaxTree>,
    pub facts: fn(SourceFile<'_>, &SyntaxTree) -> FileFacts,
}

impl OwnParser {
    /// The facts of a file by this parser, or by tree-sitter if the parser does not accept the text.
    pub(crate) fn read(&self, source: SourceFile<'_>) -> FileFacts {
        let tree = (self.parse)(source.text, source.language).unwrap_or_else(|| patient_tree(source));
        (self.facts)(source, &tree)
    }
}

/// Everything about one language. Plain properties are in [`LanguageRules`]; what needs code is a method, with a default for
/// languages without that feature.
pub(crate) trait Language: Sync {
    // --- the language and its files ---

    /// The name in facts, in lower case. It must never change, because stored facts contain it.
    fn name(&self) -> &'static str;

    /// Extensions of file names, without the dot.
    fn extensions(&self) -> &'static [&'static str];

    /// Programs that run scripts of the language, as in `#!/usr/bin/env NAME`, without a version.
    fn interpreters(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether a file with one of the extensions is of this language. Only for extensions that several languages have;
    /// `head` is the beginning of the text, and may be empty.
    fn is_written_in(&self, _extension: &str, _head: &str) -> bool {
        true
    }

    /// The name of the language that represents all languages that use one another's files.
    fn family(&self) -> &'static str {
        self.name()
    }

    /// The prefix of keys of packages: the place they come from, for example `npm`.
    fn ecosystem(&self) -> &'static str {
        self.family()
    }

    /// The package managers in symbols of SCIP indexes.
    fn package_managers(&self) -> &'static [&'static str] {
        &[]
    }

    /// The package of a SCIP symbol outside the program, named as imports name it. `spaces` are the symbol's
    /// namespaces.
    fn outside_module(&self, package: &str, spaces: &[&str]) -> OutsideModule {
        OutsideModule {
            package: package.to_owned(),
            names: spaces.iter().map(|space| (*space).to_owned()).collect(),
            builtin: false,
        }
    }

    // --- reading ---

    fn grammar(&self) -> tree_sitter::Language;

    /// The facts of a file. Never fails: damaged text gives the facts of what can be read, and a fault.
    fn read(&self, source: SourceFile<'_>) -> FileFacts;

    /// The parser that `read` tries before tree-sitter, for languages with one that is written by hand.
    fn own_parser(&self) -> Option<&'static OwnParser> {
        None
    }

    // --- resolving ---

    fn rules(&self) -> &'static LanguageRules;

    /// Whether a name that no file declares is part of the language.
    fn is_builtin(&self, name: &str) -> bool {
        self.rules().builtins.contains(&name)
    }

    /// What a call of a builtin evaluates to, if that is known.
    fn builtin_call(&self, _name: &str) -> Option<BuiltinCall> {
        None
    }

    /// Whether a function outside the program returns its first argument, or a wrapper of it. `path` has the package
    /// and the names, with dots.
    fn returns_its_argument(&self, _path: &str) -> bool {
        false
    }

    /// Whether a type outside the program reveals nothing about its instances, or has none.
    fn is_any_type(&self, _package: &str, _names: &[&str]) -> bool {
        false
    }

    /// The build in which files are resolved that are part of it (`FileFacts::build`).
    fn usual_build(&self) -> &'static dyn Build {
        &WithoutTags
    }

    /// Among the builds that satisfy a constraint, the one that differs least from the usual build; `None` if there is
    /// none.
    fn nearest_build(&self, _constraint: &Constraint) -> Option<Box<dyn Build>> {
        None
    }

    /// Whether the name of a file, without its folder, is that of a manifest that decides how imports resolve.
    fn is_manifest(&self, _name: &str) -> bool {
        false
    }

    /// The package that an outside module belongs to.
    fn package_of(&self, module: &str) -> String {
        module.to_owned()
    }

    /// Reads the manifests of a program as far as imports depend on them. Called once per family, on its first
    /// language.
    fn imports(&self, _program: &Program, _manifests: &[(String, String)]) -> Box<dyn Imports> {
        Box::new(NoImports)
    }

    /// The files that a file declares as its modules (`Modules::Tree`).
    fn declared_modules(&self, _program: &Program, _file: &ProgramFile) -> Vec<DeclaredModule> {
        vec![]
    }

    /// The module that an import's path leads to, for languages whose imports walk modules and items one by one
    /// (`Modules::Tree`).
    fn walk_path<'p>(&self, _eval: &mut Eval<'p>, _file: FileId, _import: ImportId, _levels: u8) -> ValueSet {
        ValueSet::default()
    }

    /// The module above a module, if the name says so, or a module below it (`Modules::Tree`).
    fn module_beside(
        &self,
        _program: &Program,
        _link: &ProgramTables,
        _file: FileId,
        _name: InternedStr,
    ) -> Option<PossibleValue> {
        None
    }

    /// The meaning of a name that its file does not declare, before wildcard imports, builtins and functions of other
    /// files are tried (`Modules::Tree`).
    fn undeclared<'p>(
        &self,
        _eval: &mut Eval<'p>,
        _file: FileId,
        _owner: DefId,
        _name: InternedStr,
        _levels: u8,
    ) -> ValueSet {
        ValueSet::default()
    }

    /// Whether only some instances of a type have these methods, which are written outside of it under one name.
    fn has_several_bodies(&self, _eval: &Eval<'_>, _class: DefRef, _methods: &[DefRef]) -> bool {
        false
    }

    /// Whether an alias names a generic type outside the program, of which only the arguments are known.
    fn is_open_alias<'p>(&self, _eval: &mut Eval<'p>, _alias: DefRef, _levels: u8) -> bool {
        false
    }
}

/// The only build of a program whose language has no conditions on builds.
struct WithoutTags;

impl Build for WithoutTags {
    fn has(&self, _tag: &str) -> bool {
        false
    }
}

/// A module outside the program.
pub(crate) struct OutsideModule {
    pub package: String,
    /// The names of the modules inside the package.
    pub names: Vec<String>,
    /// Part of the language, without an import.
    pub builtin: bool,
}

/// A file that another one declares as its module.
pub(crate) struct DeclaredModule {
    /// The definition in the declaring file that contains the declaration.
    pub owner: DefId,
    pub name: InternedStr,
    pub file: FileId,
    /// Whether only tests have the module.
    pub only_in_tests: bool,
}

/// Resolves the imports of one family to files, with the settings of its manifests.
pub(crate) trait Imports: Send + Sync {
    /// Names that must be known before imports can be resolved: those of packages outside the program.
    fn names(&self, family: LanguageId, import: &SourceImport, add: &mut dyn FnMut(String)) {
        add(family.get().package_of(&import.module));
    }

    /// Looks ahead for files of the family, after their names are known.
    fn prepare(&mut self, _program: &Program, _files: &[FileId]) {}

    /// The file, folder or outside module that an import names. `outside` finds a module of another package.
    fn resolve(
        &self,
        _program: &Program,
        _file: FileId,
        _import: &SourceImport,
        _outside: &dyn Fn(&str) -> Option<PossibleValue>,
    ) -> Option<PossibleValue> {
        None
    }

    /// What the first name of an imported path binds.
    fn root(&self, _program: &Program, _file: FileId, _import: &SourceImport) -> Option<PossibleValue> {
        None
    }

    /// A module inside a folder that is itself a module.
    fn inside(&self, _program: &Program, _folder: &str, _name: InternedStr) -> Option<PossibleValue> {
        None
    }

    /// A module next to a file that represents its folder.
    fn beside(&self, _program: &Program, _file: &ProgramFile, _name: InternedStr) -> Option<PossibleValue> {
        None
    }

    /// The file by which a package of this repository is used, by the package's name in paths.
    fn library(&self, _name: &str) -> Option<FileId> {
        None
    }
}

/// Imports that are never resolved to files.
pub(crate) struct NoImports;

impl Imports for NoImports {}
