//! Ruby, read by a query.

use super::rules::Rules;
use super::{Imports, Language, Source};
use crate::facts::{Facts, Import};
use crate::lang::tags::{self, Dialect, Tags};
use crate::resolve::imports::nearest_or_only;
use crate::resolve::{FileId, Program, Value};

pub(crate) struct Ruby;

static RULES: Rules = Rules {
    implicit_receiver: true,
    global_functions: true,
    constructor: Some("initialize"),
    inherits_constructors: true,
    ..Rules::DEFAULT
};

static TAGS: Tags = Tags::new(&[include_str!("tags.scm")]);

impl Language for Ruby {
    fn name(&self) -> &'static str {
        "ruby"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["rb", "rake", "gemspec"]
    }

    fn interpreters(&self) -> &'static [&'static str] {
        &["ruby"]
    }

    fn grammar(&self) -> tree_sitter::Language {
        tree_sitter_ruby::LANGUAGE.into()
    }

    fn read(&self, source: Source<'_>) -> Facts {
        let named = |stem: &str| stem.ends_with("_test") || stem.ends_with("_spec") || stem.starts_with("test_");
        tags::read(source, Dialect::Ruby, &TAGS, tags::is_test_file(source.path, named))
    }

    fn rules(&self) -> &'static Rules {
        &RULES
    }

    fn imports(&self, _program: &Program, _manifests: &[(String, String)]) -> Box<dyn Imports> {
        Box::new(Required)
    }
}

/// `require` and `require_relative`: paths without the extension.
struct Required;

impl Imports for Required {
    fn resolve(
        &self,
        program: &Program,
        file: FileId,
        import: &Import,
        _outside: &dyn Fn(&str) -> Option<Value>,
    ) -> Option<Value> {
        let path = import.module.strip_suffix(".rb").unwrap_or(&import.module);
        nearest_or_only(program, file, &format!("{path}.rb"))
    }
}
