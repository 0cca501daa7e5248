//! Scala: the language, and its front end over the tree of tree-sitter.
//!
//! An object is a class whose members are static. The members of a companion object belong to the class of its name,
//! if that is above it in the file.

mod builtins;
mod definitions;
mod expressions;
#[cfg(test)]
mod tests;

use super::java;
use super::rules::LanguageRules;
use super::{Language, OutsideModule, SourceFile};
use crate::builder::{Builder, FILE_SCOPE, ScopeId};
use crate::facts::FileFacts;
use crate::lang::bare_names::BareNames;
use crate::lang::query_based;

pub(crate) struct Scala;

static RULES: LanguageRules = LanguageRules {
    builtins: builtins::NAMES,
    inherits_constructors: false,
    call_method: Some("apply"),
    ..java::PLATFORM
};

impl Language for Scala {
    fn name(&self) -> &'static str {
        "scala"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["scala", "sc"]
    }

    fn interpreters(&self) -> &'static [&'static str] {
        &["scala"]
    }

    fn ecosystem(&self) -> &'static str {
        "java"
    }

    fn outside_module(&self, package: &str, spaces: &[&str]) -> OutsideModule {
        java::outside_module(package, spaces)
    }

    fn grammar(&self) -> tree_sitter::Language {
        tree_sitter_scala::LANGUAGE.into()
    }

    fn read(&self, source: SourceFile<'_>) -> FileFacts {
        let tree = crate::lang::patient_tree(source);
        let named = |stem: &str| ["Test", "Tests", "Spec", "Suite"].iter().any(|end| stem.ends_with(end));
        let test_file = query_based::is_test_file(source.path, named);
        let mut reader = Reader {
            b: Builder::new(source, test_file),
            test_file,
            members: FILE_SCOPE,
            is_static: false,
            in_tests: false,
            bare: BareNames::default(),
        };
        let root = tree.root();
        reader.block(root);
        std::mem::take(&mut reader.bare).settle(&mut reader.b);
        reader.b.finish(root)
    }

    fn rules(&self) -> &'static LanguageRules {
        &RULES
    }
}

struct Reader<'t> {
    b: Builder<'t>,
    test_file: bool,
    /// The scope of the innermost type, or of the file: values in it are members, values in blocks are locals.
    members: ScopeId,
    /// Whether the members being read are those of an object.
    is_static: bool,
    /// Whether the type being read is one of test cases.
    in_tests: bool,
    bare: BareNames,
}

crate::lang::front_end!();
