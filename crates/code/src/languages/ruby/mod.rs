//! Ruby, read by a query.

mod calls;
mod dialect;

use super::rules::LanguageRules;
use super::{Imports, Language, SourceFile};
use crate::facts::{FileFacts, SourceImport};
use crate::lang::query_based::{self, TagsQuery};
use crate::resolve::imports::nearest_or_only;
use crate::resolve::{FileId, PossibleValue, Program};
use dialect::RubyDialect;

pub(crate) struct Ruby;

static RULES: LanguageRules = LanguageRules {
    implicit_receiver: true,
    global_functions: true,
    constructor: Some("initialize"),
    inherits_constructors: true,
    ..LanguageRules::DEFAULT
};

static TAGS: TagsQuery = TagsQuery::new(&[include_str!("tags.scm")]);

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

    fn read(&self, source: SourceFile<'_>) -> FileFacts {
        let named = |stem: &str| stem.ends_with("_test") || stem.ends_with("_spec") || stem.starts_with("test_");
        query_based::read(source, &RubyDialect, &TAGS, query_based::is_test_file(source.path, named))
    }

    fn rules(&self) -> &'static LanguageRules {
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
        import: &SourceImport,
        _outside: &dyn Fn(&str) -> Option<PossibleValue>,
    ) -> Option<PossibleValue> {
        let path = import.module.strip_suffix(".rb").unwrap_or(&import.module);
        nearest_or_only(program, file, &format!("{path}.rb"))
    }
}
