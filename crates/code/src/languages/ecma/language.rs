//! JavaScript, TypeScript and TSX as languages: one front end, one family, and rules that differ in overloads.

use super::builtins::NAMES;
use super::packages::EcmaImports;
use crate::facts::FileFacts;
use crate::languages::rules::{BuiltinCall, LanguageRules, Modules, Overloading, StandardLibrary};
use crate::languages::{Imports, Language, OutsideModule, OwnParser, SourceFile};
use crate::resolve::Program;

pub(crate) struct JavaScript;
pub(crate) struct TypeScript;
pub(crate) struct Tsx;

static PARSER: OwnParser = OwnParser { parse: super::parse, facts: super::read };

static RULES: LanguageRules = LanguageRules {
    modules: Modules::Exports,
    builtins: NAMES,
    library: Some(StandardLibrary { package: "globalThis", ecosystem: Some("javascript") }),
    open_objects: true,
    constructor: Some("constructor"),
    inherits_constructors: true,
    functions_that_call: &["setTimeout", "setInterval", "setImmediate", "queueMicrotask", "requestAnimationFrame"],
    methods_that_call: &[
        "forEach",
        "map",
        "filter",
        "reduce",
        "reduceRight",
        "some",
        "every",
        "find",
        "findIndex",
        "findLast",
        "flatMap",
        "sort",
        "then",
        "catch",
        "finally",
        "nextTick",
        "replace",
        "from",
    ],
    ..LanguageRules::DEFAULT
};

static TYPED_RULES: LanguageRules = LanguageRules { overloading: Overloading::ByCount, ..RULES };

/// What the three languages share.
macro_rules! shared {
    () => {
        fn family(&self) -> &'static str {
            "javascript"
        }

        fn ecosystem(&self) -> &'static str {
            "npm"
        }

        fn package_managers(&self) -> &'static [&'static str] {
            &["npm"]
        }

        fn outside_module(&self, package: &str, spaces: &[&str]) -> OutsideModule {
            super::symbols::outside_module(package, spaces)
        }

        fn read(&self, source: SourceFile<'_>) -> FileFacts {
            PARSER.read(source)
        }

        fn own_parser(&self) -> Option<&'static OwnParser> {
            Some(&PARSER)
        }

        fn builtin_call(&self, name: &str) -> Option<BuiltinCall> {
            match name {
                "String" => Some(BuiltinCall::Text),
                "Number" => Some(BuiltinCall::Number),
                _ => None,
            }
        }

        fn returns_its_argument(&self, path: &str) -> bool {
            path.ends_with("partial")
        }

        fn is_manifest(&self, name: &str) -> bool {
            matches!(name, "package.json" | "jsconfig.json")
                || (name.starts_with("tsconfig") && name.ends_with(".json"))
        }

        fn package_of(&self, module: &str) -> String {
            let module = module.strip_prefix("node:").unwrap_or(module);
            super::packages::package_name(module).to_owned()
        }

        fn imports(&self, program: &Program, manifests: &[(String, String)]) -> Box<dyn Imports> {
            Box::new(EcmaImports::read(program, manifests))
        }
    };
}

impl Language for JavaScript {
    fn name(&self) -> &'static str {
        "javascript"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["js", "mjs", "cjs", "jsx"]
    }

    fn interpreters(&self) -> &'static [&'static str] {
        &["node"]
    }

    fn grammar(&self) -> tree_sitter::Language {
        tree_sitter_javascript::LANGUAGE.into()
    }

    fn rules(&self) -> &'static LanguageRules {
        &RULES
    }

    shared!();
}

impl Language for TypeScript {
    fn name(&self) -> &'static str {
        "typescript"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["ts", "mts", "cts"]
    }

    fn grammar(&self) -> tree_sitter::Language {
        tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into()
    }

    fn rules(&self) -> &'static LanguageRules {
        &TYPED_RULES
    }

    shared!();
}

impl Language for Tsx {
    fn name(&self) -> &'static str {
        "tsx"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["tsx"]
    }

    fn grammar(&self) -> tree_sitter::Language {
        tree_sitter_typescript::LANGUAGE_TSX.into()
    }

    fn rules(&self) -> &'static LanguageRules {
        &TYPED_RULES
    }

    shared!();
}
