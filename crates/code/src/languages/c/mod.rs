//! C and C++, read by queries: that of C++ extends that of C.

mod declarators;
mod dialect;

use super::rules::{LanguageRules, Overloading};
use super::{Imports, Language, SourceFile};
use crate::facts::{FileFacts, SourceImport};
use crate::lang::query_based::{self, TagsQuery};
use crate::resolve::imports::nearest_or_only;
use crate::resolve::{FileId, PossibleValue, Program};
use dialect::CDialect;

pub(crate) struct C;
pub(crate) struct Cpp;

static C_RULES: LanguageRules =
    LanguageRules { global_functions: true, only_interfaces_inherit: true, ..LanguageRules::DEFAULT };

static CPP_RULES: LanguageRules = LanguageRules {
    global_functions: true,
    implicit_receiver: true,
    methods_outside_types: true,
    overloading: Overloading::ByCount,
    ..LanguageRules::DEFAULT
};

static C_TAGS: TagsQuery = TagsQuery::new(&[include_str!("c.scm")]);
static CPP_TAGS: TagsQuery = TagsQuery::new(&[include_str!("c.scm"), include_str!("cpp.scm")]);

impl Language for C {
    fn name(&self) -> &'static str {
        "c"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["c", "h"]
    }

    fn is_written_in(&self, extension: &str, head: &str) -> bool {
        extension != "h" || !is_cpp_header(head)
    }

    fn family(&self) -> &'static str {
        "cpp"
    }

    fn grammar(&self) -> tree_sitter::Language {
        tree_sitter_c::LANGUAGE.into()
    }

    fn read(&self, source: SourceFile<'_>) -> FileFacts {
        query_based::read(
            source,
            &CDialect { classes: false },
            &C_TAGS,
            query_based::is_test_file(source.path, is_test_name),
        )
    }

    fn rules(&self) -> &'static LanguageRules {
        &C_RULES
    }
}

impl Language for Cpp {
    fn name(&self) -> &'static str {
        "cpp"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "ipp", "h"]
    }

    fn is_written_in(&self, extension: &str, head: &str) -> bool {
        extension != "h" || is_cpp_header(head)
    }

    fn grammar(&self) -> tree_sitter::Language {
        tree_sitter_cpp::LANGUAGE.into()
    }

    fn read(&self, source: SourceFile<'_>) -> FileFacts {
        query_based::read(
            source,
            &CDialect { classes: true },
            &CPP_TAGS,
            query_based::is_test_file(source.path, is_test_name),
        )
    }

    fn rules(&self) -> &'static LanguageRules {
        &CPP_RULES
    }

    fn imports(&self, _program: &Program, _manifests: &[(String, String)]) -> Box<dyn Imports> {
        Box::new(Includes)
    }
}

/// Distinguishes C++ headers from C headers: a `.h` file is C++ when it uses syntax that C lacks.
fn is_cpp_header(head: &str) -> bool {
    head.lines().any(|line| {
        let line = line.trim_start();
        ["class ", "namespace ", "template", "public:", "private:", "using "].iter().any(|w| line.starts_with(w))
    })
}

fn is_test_name(stem: &str) -> bool {
    matches!(stem, "test" | "tests")
        || stem.starts_with("test_")
        || ["_test", "_tests", "_unittest"].iter().any(|end| stem.ends_with(end))
}

/// `#include`.
struct Includes;

impl Imports for Includes {
    fn resolve(
        &self,
        program: &Program,
        file: FileId,
        import: &SourceImport,
        _outside: &dyn Fn(&str) -> Option<PossibleValue>,
    ) -> Option<PossibleValue> {
        nearest_or_only(program, file, &import.module)
    }
}
