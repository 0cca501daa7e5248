//! PHP, read by a query.

mod dialect;

use super::rules::{LanguageRules, Modules};
use super::{Language, SourceFile};
use crate::facts::FileFacts;
use crate::lang::query_based::{self, TagsQuery};
use dialect::PhpDialect;

pub(crate) struct Php;

static RULES: LanguageRules = LanguageRules {
    modules: Modules::Packages,
    implicit_receiver: true,
    global_functions: true,
    constructor: Some("__construct"),
    inherits_constructors: true,
    ..LanguageRules::DEFAULT
};

static TAGS: TagsQuery = TagsQuery::new(&[include_str!("tags.scm")]);

impl Language for Php {
    fn name(&self) -> &'static str {
        "php"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["php"]
    }

    fn interpreters(&self) -> &'static [&'static str] {
        &["php"]
    }

    fn grammar(&self) -> tree_sitter::Language {
        tree_sitter_php::LANGUAGE_PHP.into()
    }

    fn read(&self, source: SourceFile<'_>) -> FileFacts {
        query_based::read(
            source,
            &PhpDialect,
            &TAGS,
            query_based::is_test_file(source.path, query_based::is_test_class),
        )
    }

    fn rules(&self) -> &'static LanguageRules {
        &RULES
    }
}
