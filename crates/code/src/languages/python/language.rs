//! Python as a language: its names, rules and imports.

use super::builtins::NAMES;
use super::imports::PythonImports;
use crate::facts::FileFacts;
use crate::languages::rules::{BuiltinCall, Iteration, LanguageRules, Modules, StandardLibrary};
use crate::languages::{Imports, Language, OutsideModule, OwnParser, SourceFile};
use crate::resolve::Program;

pub(crate) struct Python;

static PARSER: OwnParser = OwnParser { parse: |text, _| super::parse(text), facts: super::read };

static RULES: LanguageRules = LanguageRules {
    modules: Modules::Files,
    wildcards_are_given_on: true,
    builtins: NAMES,
    library: Some(StandardLibrary { package: "builtins", ecosystem: None }),
    cooperative_super: true,
    types_of_classes: &["Type", "type"],
    vague_results: true,
    constructor: Some("__init__"),
    inherits_constructors: true,
    call_method: Some("__call__"),
    iteration: Some(Iteration { iterator: "__iter__", next: "__next__", item: "__getitem__" }),
    functions_that_call: &["map", "filter", "sorted", "max", "min", "reduce"],
    methods_that_call: &["sort"],
    ..LanguageRules::DEFAULT
};

impl Language for Python {
    fn name(&self) -> &'static str {
        "python"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["py", "pyi", "pyw"]
    }

    fn interpreters(&self) -> &'static [&'static str] {
        &["python"]
    }

    fn package_managers(&self) -> &'static [&'static str] {
        &["python", "pip", "pypi"]
    }

    fn outside_module(&self, package: &str, spaces: &[&str]) -> OutsideModule {
        // The name of the installed package may differ from the name that is imported.
        let dotted = spaces.join(".");
        let mut parts = dotted.split('.').map(str::to_owned);
        let first = parts.next().filter(|_| !spaces.is_empty());
        let package = first.unwrap_or_else(|| package.to_owned());
        OutsideModule { builtin: package == "builtins", package, names: parts.collect() }
    }

    fn grammar(&self) -> tree_sitter::Language {
        tree_sitter_python::LANGUAGE.into()
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

    fn builtin_call(&self, name: &str) -> Option<BuiltinCall> {
        Some(match name {
            "list" | "tuple" | "set" | "sorted" | "reversed" | "iter" | "frozenset" | "dict" => BuiltinCall::Argument,
            "next" | "max" | "min" => BuiltinCall::Element,
            "str" | "repr" | "format" => BuiltinCall::Text,
            "int" | "len" | "float" | "bool" => BuiltinCall::Number,
            "getattr" => BuiltinCall::Member,
            "type" => BuiltinCall::Type,
            _ => return None,
        })
    }

    fn returns_its_argument(&self, path: &str) -> bool {
        path.ends_with("partial") || matches!(path, "weakref.proxy" | "copy.copy" | "copy.deepcopy")
    }

    /// `typing.Any`, `NoReturn`.
    fn is_any_type(&self, package: &str, names: &[&str]) -> bool {
        matches!(package, "typing" | "typing_extensions") && matches!(names, ["Any" | "NoReturn" | "Never"])
    }

    fn package_of(&self, module: &str) -> String {
        module.split('.').next().unwrap_or(module).to_owned()
    }

    fn imports(&self, _program: &Program, _manifests: &[(String, String)]) -> Box<dyn Imports> {
        Box::new(PythonImports::default())
    }
}
