//! Swift: the language, and its front end over the tree of tree-sitter.
//!
//! Members of an extension are methods outside their type, and take `self` as their first parameter.

mod builtins;
mod definitions;
mod expressions;
mod statements;
#[cfg(test)]
mod tests;
mod types;

use super::rules::{LanguageRules, Modules, Overloading};
use super::{Language, SourceFile};
use crate::builder::Builder;
use crate::facts::{ExprId, FileFacts};
use crate::lang::bare_names::BareNames;
use crate::lang::query_based;

pub(crate) struct Swift;

static RULES: LanguageRules = LanguageRules {
    modules: Modules::Packages,
    implicit_receiver: true,
    package_paths: true,
    builtins: builtins::NAMES,
    methods_outside_types: true,
    overloading: Overloading::ByTypes,
    constructor: Some("init"),
    inherits_constructors: true,
    call_method: Some("callAsFunction"),
    ..LanguageRules::DEFAULT
};

impl Language for Swift {
    fn name(&self) -> &'static str {
        "swift"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["swift"]
    }

    fn interpreters(&self) -> &'static [&'static str] {
        &["swift"]
    }

    fn grammar(&self) -> tree_sitter::Language {
        tree_sitter_swift::LANGUAGE.into()
    }

    fn read(&self, source: SourceFile<'_>) -> FileFacts {
        let tree = crate::lang::patient_tree(source);
        let test_file = is_test_file(source.path);
        let mut reader = Reader {
            b: Builder::new(source, test_file),
            test_file,
            extended: None,
            in_tests: false,
            bare: BareNames::default(),
        };
        reader.b.facts.package = module_of(source.path).into();
        let root = tree.root();
        reader.block(root);
        std::mem::take(&mut reader.bare).settle(&mut reader.b);
        reader.b.finish(root)
    }

    fn rules(&self) -> &'static LanguageRules {
        &RULES
    }
}

/// By the folders of SwiftPM and Xcode and the names of XCTest.
fn is_test_file(path: &str) -> bool {
    query_based::is_test_file(path, query_based::is_test_class)
        || path.rsplit('/').skip(1).any(|folder| folder.ends_with("Tests"))
}

/// The module of a file: its target in the layout of SwiftPM, else the one module that an Xcode project mostly has.
fn module_of(path: &str) -> &str {
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let Some(next) = parts.next_if(|_| matches!(part, "Sources" | "Tests")) else { continue };
        let is_folder = parts.peek().is_some();
        if is_folder && (part == "Sources" || next.ends_with("Tests")) {
            return next;
        }
    }
    ""
}

struct Reader<'t> {
    b: Builder<'t>,
    test_file: bool,
    /// The type that the extension being read adds to.
    extended: Option<ExprId>,
    /// Whether the type being read is one of test cases.
    in_tests: bool,
    bare: BareNames,
}

crate::lang::front_end!();
