//! C#, read by a query.

use super::rules::{Modules, Overloading, Rules};
use super::{Language, Source};
use crate::facts::Facts;
use crate::lang::tags::{self, Dialect, Tags};

pub(crate) struct CSharp;

static RULES: Rules = Rules {
    modules: Modules::Packages,
    implicit_receiver: true,
    package_paths: true,
    functional_interfaces: true,
    methods_of_every_object: &["toString", "equals", "hashCode", "clone"],
    overloading: Overloading::ByTypes,
    ..Rules::DEFAULT
};

static TAGS: Tags = Tags::new(&[include_str!("tags.scm")]);

impl Language for CSharp {
    fn name(&self) -> &'static str {
        "csharp"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["cs"]
    }

    fn grammar(&self) -> tree_sitter::Language {
        tree_sitter_c_sharp::LANGUAGE.into()
    }

    fn read(&self, source: Source<'_>) -> Facts {
        // A project of tests is a folder: `Shop.Tests`.
        let project = |folder: &str| folder.ends_with(".Tests") || folder.ends_with(".Test");
        let is_test =
            tags::is_test_file(source.path, tags::is_test_class) || source.path.rsplit('/').skip(1).any(project);
        tags::read(source, Dialect::CSharp, &TAGS, is_test)
    }

    fn rules(&self) -> &'static Rules {
        &RULES
    }
}
