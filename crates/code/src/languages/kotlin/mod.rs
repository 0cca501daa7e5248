//! Kotlin, read by a query.

use super::java;
use super::rules::{BuiltinCall, Rules};
use super::{Language, OutsideModule, Source};
use crate::facts::Facts;
use crate::lang::tags::{self, Dialect, Tags};

pub(crate) struct Kotlin;

static RULES: Rules = java::PLATFORM;
/// The grammar has no tags query of its own.
static TAGS: Tags = Tags::new(&[include_str!("tags.scm")]);

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

    fn read(&self, source: Source<'_>) -> Facts {
        tags::read(source, Dialect::Kotlin, &TAGS, tags::is_test_file(source.path, tags::is_test_class))
    }

    fn rules(&self) -> &'static Rules {
        &RULES
    }

    fn builtin_call(&self, name: &str) -> Option<BuiltinCall> {
        java::builtin_call(name)
    }
}
