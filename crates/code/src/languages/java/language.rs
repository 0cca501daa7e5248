//! Java as a language: its names and rules.

use super::builtins::NAMES;
use crate::facts::FileFacts;
use crate::languages::rules::{BuiltinCall, LanguageRules, Modules, Overloading, StandardLibrary};
use crate::languages::{Language, OutsideModule, OwnParser, SourceFile};

pub(crate) struct Java;

/// What Java and other languages of its platform share.
pub(crate) const PLATFORM: LanguageRules = LanguageRules {
    modules: Modules::Packages,
    implicit_receiver: true,
    package_paths: true,
    builtins: NAMES,
    library: Some(StandardLibrary { package: "java.lang", ecosystem: None }),
    functional_interfaces: true,
    methods_of_every_object: &["toString", "equals", "hashCode", "clone"],
    overloading: Overloading::ByTypes,
    methods_that_call: &[
        "forEach",
        "map",
        "filter",
        "reduce",
        "anyMatch",
        "allMatch",
        "noneMatch",
        "flatMap",
        "collect",
        "computeIfAbsent",
        "ifPresent",
        "orElseGet",
        "thenApply",
        "thenAccept",
        "thenCompose",
        "sorted",
        "removeIf",
        "replaceAll",
        "mapToInt",
        "mapToObj",
        "peek",
    ],
    ..LanguageRules::DEFAULT
};

static PARSER: OwnParser = OwnParser { parse: |text, _| super::parse(text), facts: super::read };

static RULES: LanguageRules = LanguageRules {
    constructor_references: &["get", "apply", "accept", "run", "call", "test", "create"],
    reads_fields_only: true,
    number_type: Some("int"),
    iterators_are_apart: true,
    anonymous_types_inherit_constructors: true,
    ..PLATFORM
};

/// What a call of a builtin of the platform evaluates to.
pub(crate) fn builtin_call(name: &str) -> Option<BuiltinCall> {
    match name {
        "String" => Some(BuiltinCall::Text),
        "Number" => Some(BuiltinCall::Number),
        _ => None,
    }
}

/// The package of a SCIP symbol of the platform: its namespaces are the parts of the package's name.
pub(crate) fn outside_module(package: &str, spaces: &[&str]) -> OutsideModule {
    let package = if spaces.is_empty() { package.to_owned() } else { spaces.join(".") };
    OutsideModule { package, names: vec![], builtin: false }
}

impl Language for Java {
    fn name(&self) -> &'static str {
        "java"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["java"]
    }

    fn package_managers(&self) -> &'static [&'static str] {
        &["maven", "gradle", "sbt"]
    }

    fn outside_module(&self, package: &str, spaces: &[&str]) -> OutsideModule {
        outside_module(package, spaces)
    }

    fn grammar(&self) -> tree_sitter::Language {
        tree_sitter_java::LANGUAGE.into()
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
        builtin_call(name)
    }
}
