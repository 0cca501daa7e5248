//! Kotlin, read by a query.

mod dialect;

use super::java;
use super::rules::{BuiltinCall, LanguageRules};
use super::{Language, OutsideModule, SourceFile};
use crate::facts::FileFacts;
use crate::lang::query_based::{self, TagsQuery};
use dialect::KotlinDialect;

pub(crate) struct Kotlin;

static RULES: LanguageRules = java::PLATFORM;
/// The grammar has no tags query of its own.
static TAGS: TagsQuery = TagsQuery::new(&[include_str!("tags.scm")]);

impl Language for Kotlin {
    fn name(&self) -> &'static str {
        "kotlin"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["kt", "kts"]
    }

    fn ecosystem(&self) -> &'static str {
        "java"
    }

    fn outside_module(&self, package: &str, spaces: &[&str]) -> OutsideModule {
        java::outside_module(package, spaces)
    }

    fn grammar(&self) -> tree_sitter::Language {
        tree_sitter_kotlin_ng::LANGUAGE.into()
    }

    fn read(&self, source: SourceFile<'_>) -> FileFacts {
        query_based::read(
            source,
            &KotlinDialect,
            &TAGS,
            query_based::is_test_file(source.path, query_based::is_test_class),
        )
    }

    fn rules(&self) -> &'static LanguageRules {
        &RULES
    }

    fn builtin_call(&self, name: &str) -> Option<BuiltinCall> {
        java::builtin_call(name)
    }
}
