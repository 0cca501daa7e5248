//! C#, read by a query.

mod dialect;

use super::rules::{LanguageRules, Modules, Overloading};
use super::{Language, SourceFile};
use crate::facts::FileFacts;
use crate::lang::query_based::{self, TagsQuery};
use dialect::CSharpDialect;

pub(crate) struct CSharp;

static RULES: LanguageRules = LanguageRules {
    modules: Modules::Packages,
    implicit_receiver: true,
    package_paths: true,
    functional_interfaces: true,
    methods_of_every_object: &["toString", "equals", "hashCode", "clone"],
    overloading: Overloading::ByTypes,
    ..LanguageRules::DEFAULT
};

static TAGS: TagsQuery = TagsQuery::new(&[include_str!("tags.scm")]);

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

    fn read(&self, source: SourceFile<'_>) -> FileFacts {
        // A project of tests is a folder: `Shop.Tests`.
        let project = |folder: &str| folder.ends_with(".Tests") || folder.ends_with(".Test");
        let is_test = query_based::is_test_file(source.path, query_based::is_test_class)
            || source.path.rsplit('/').skip(1).any(project);
        query_based::read(source, &CSharpDialect, &TAGS, is_test)
    }

    fn rules(&self) -> &'static LanguageRules {
        &RULES
    }
}
