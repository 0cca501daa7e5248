//! Rust as a language: its names and rules.

use super::builtins::NAMES;
use super::modules::{self, Crates};
use super::resolve;
use crate::facts::{DefId, FileFacts, ImportId};
use crate::languages::rules::{BuiltinCall, Constructs, DerivedMethod, LanguageRules, Modules};
use crate::languages::{DeclaredModule, Imports, Language, OutsideModule, OwnParser, SourceFile};
use crate::resolve::eval::Eval;
use crate::resolve::link::ProgramTables;
use crate::resolve::value::{InternedStr, ValueSet};
use crate::resolve::{DefRef, FileId, PossibleValue, Program, ProgramFile};

pub(crate) struct Rust;

static PARSER: OwnParser = OwnParser { parse: |text, _| super::parse(text), facts: super::read };

static RULES: LanguageRules = LanguageRules {
    modules: Modules::Tree,
    builtins: NAMES,
    methods_outside_types: true,
    only_interfaces_inherit: true,
    calls_methods_only: true,
    derived_methods: &[
        ("default", DerivedMethod::New),
        ("clone", DerivedMethod::Copy),
        ("to_owned", DerivedMethod::Copy),
    ],
    constructs: Constructs::TypesAndAliases,
    variants_construct: true,
    methods_that_call: &[
        "map",
        "for_each",
        "filter",
        "filter_map",
        "flat_map",
        "fold",
        "any",
        "all",
        "find",
        "position",
        "map_err",
        "and_then",
        "or_else",
        "unwrap_or_else",
        "unwrap_or_default",
        "take_while",
        "skip_while",
        "sort_by",
        "sort_by_key",
        "min_by_key",
        "max_by_key",
        "then",
        "is_some_and",
        "is_ok_and",
        "map_or",
        "map_or_else",
        "get_or_init",
        "get_or_insert_with",
        "or_insert_with",
        "retain",
        "inspect",
        "partition",
        "find_map",
        "ok_or_else",
    ],
    ..LanguageRules::DEFAULT
};

impl Language for Rust {
    fn name(&self) -> &'static str {
        "rust"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["rs"]
    }

    fn ecosystem(&self) -> &'static str {
        "cargo"
    }

    fn package_managers(&self) -> &'static [&'static str] {
        &["cargo"]
    }

    fn outside_module(&self, package: &str, spaces: &[&str]) -> OutsideModule {
        let inside = spaces.iter().filter(|space| **space != "crate").map(|space| (*space).to_owned());
        OutsideModule { package: package.replace('-', "_"), names: inside.collect(), builtin: false }
    }

    fn grammar(&self) -> tree_sitter::Language {
        tree_sitter_rust::LANGUAGE.into()
    }

    fn read(&self, source: SourceFile<'_>) -> FileFacts {
        PARSER.read(source)
    }

    fn own_parser(&self) -> Option<&'static OwnParser> {
        Some(&PARSER)
    }

    fn rules(&self) -> &'static LanguageRules {
        &RULES
    }

    fn is_builtin(&self, name: &str) -> bool {
        NAMES.contains(&name.trim_end_matches('!'))
    }

    fn builtin_call(&self, name: &str) -> Option<BuiltinCall> {
        match name {
            "str" | "String" | "format" => Some(BuiltinCall::Text),
            "bool" => Some(BuiltinCall::Number),
            _ => None,
        }
    }

    fn is_manifest(&self, name: &str) -> bool {
        name == "Cargo.toml"
    }

    fn package_of(&self, module: &str) -> String {
        module.split("::").next().unwrap_or(module).to_owned()
    }

    fn imports(&self, program: &Program, manifests: &[(String, String)]) -> Box<dyn Imports> {
        Box::new(Crates::read(program, manifests))
    }

    fn declared_modules(&self, program: &Program, file: &ProgramFile) -> Vec<DeclaredModule> {
        modules::declared(program, file)
    }

    fn walk_path<'p>(&self, eval: &mut Eval<'p>, file: FileId, import: ImportId, levels: u8) -> ValueSet {
        modules::walk(eval, file, import, levels)
    }

    fn module_beside(
        &self,
        program: &Program,
        link: &ProgramTables,
        file: FileId,
        name: InternedStr,
    ) -> Option<PossibleValue> {
        modules::beside(program, link, file, name)
    }

    fn undeclared<'p>(
        &self,
        eval: &mut Eval<'p>,
        file: FileId,
        owner: DefId,
        name: InternedStr,
        levels: u8,
    ) -> ValueSet {
        modules::undeclared(eval, file, owner, name, levels)
    }

    fn has_several_bodies(&self, eval: &Eval<'_>, class: DefRef, methods: &[DefRef]) -> bool {
        resolve::is_in_several_impls(eval, class, methods)
    }

    fn is_open_alias<'p>(&self, eval: &mut Eval<'p>, alias: DefRef, levels: u8) -> bool {
        resolve::is_open_alias(eval, alias, levels)
    }
}
