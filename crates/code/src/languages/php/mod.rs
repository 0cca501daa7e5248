//! PHP, read by a query.

use super::rules::{Modules, Rules};
use super::{Language, Source};
use crate::facts::Facts;
use crate::lang::tags::{self, Dialect, Tags};

pub(crate) struct Php;

static RULES: Rules = Rules {
    modules: Modules::Packages,
    implicit_receiver: true,
    global_functions: true,
    constructor: Some("__construct"),
    inherits_constructors: true,
    ..Rules::DEFAULT
};

static TAGS: Tags = Tags::new(&[include_str!("tags.scm")]);

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

    fn read(&self, source: Source<'_>) -> Facts {
        tags::read(source, Dialect::Php, &TAGS, tags::is_test_file(source.path, tags::is_test_class))
    }

    fn rules(&self) -> &'static Rules {
        &RULES
    }
}
