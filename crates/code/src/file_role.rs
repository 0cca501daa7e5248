//! What a file is for, by its path: sources, tests, examples, documentation and so on.

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileRole {
    Source,
    Test,
    /// Examples, demonstrations and benchmarks.
    Example,
    /// Documentation, change logs, licences.
    Documentation,
    /// Settings of the program, its build and its tools.
    Configuration,
    /// Texts of the program in other languages.
    Translation,
    /// Written by a program.
    Generated,
    /// Anything else that is not source code: certificates, tables, pictures.
    Data,
}

const TEST_FOLDERS: &[&str] = &[
    "test",
    "tests",
    "__tests__",
    "__mocks__",
    "testdata",
    "test-data",
    "testing",
    "spec",
    "specs",
    "e2e",
    "fixtures",
    "androidtest",
    "unittests",
];
const EXAMPLE_FOLDERS: &[&str] = &[
    "example",
    "examples",
    "sample",
    "samples",
    "demo",
    "demos",
    "tutorial",
    "tutorials",
    "gallery",
    "galleries",
    "benchmark",
    "benchmarks",
    "bench",
    "benches",
    "playground",
    "asv_bench",
];
const DOC_FOLDERS: &[&str] = &["doc", "docs", "documentation", "manual", "website", "man", "changelog", "changelogs"];
const TRANSLATION_FOLDERS: &[&str] = &["locale", "locales", "i18n", "l10n", "translations", "lang"];
const GENERATED_FOLDERS: &[&str] =
    &["dist", "generated", "__generated__", "gen", "vendor", "third_party", "node_modules"];

const DOC_ENDINGS: &[&str] = &["md", "mdx", "rst", "adoc", "asciidoc", "markdown", "txt", "tex", "1"];
const DOC_NAMES: &[&str] = &[
    "readme",
    "changelog",
    "changes",
    "history",
    "news",
    "license",
    "licence",
    "notice",
    "authors",
    "copying",
    "contributing",
];
const CONFIG_ENDINGS: &[&str] = &[
    "json",
    "jsonc",
    "json5",
    "yaml",
    "yml",
    "toml",
    "ini",
    "cfg",
    "conf",
    "properties",
    "lock",
    "xml",
    "gradle",
    "mod",
    "sum",
    "editorconfig",
    "env",
];
const CONFIG_NAMES: &[&str] = &[
    "makefile",
    "dockerfile",
    "jenkinsfile",
    "procfile",
    "rakefile",
    "gemfile",
    "justfile",
    "cmakelists",
    "codeowners",
];
const TRANSLATION_ENDINGS: &[&str] = &["po", "pot", "mo", "xlf", "xliff", "arb", "ftl"];

impl FileRole {
    /// The role of a file. `is_source` is whether the index reads it as source code.
    pub fn of(path: &str, is_source: bool) -> FileRole {
        let lower = path.to_lowercase();
        let (folders, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
        let below = |names: &[&str]| folders.split('/').any(|folder| names.contains(&folder));
        let first_word = stem.split(['.', '-', '_']).next().unwrap_or(stem);
        if TRANSLATION_ENDINGS.contains(&ending) || (!is_source && below(TRANSLATION_FOLDERS)) {
            return FileRole::Translation;
        }
        if below(GENERATED_FOLDERS) || is_generated(name) {
            return FileRole::Generated;
        }
        if below(TEST_FOLDERS) || (is_source && is_test_name(stem, path)) {
            return FileRole::Test;
        }
        if below(EXAMPLE_FOLDERS) {
            return FileRole::Example;
        }
        if below(DOC_FOLDERS) || DOC_ENDINGS.contains(&ending) || DOC_NAMES.contains(&first_word) {
            return FileRole::Documentation;
        }
        if is_source {
            return FileRole::Source;
        }
        let is_setting = folders.starts_with('.') || name.starts_with('.');
        if is_setting || CONFIG_ENDINGS.contains(&ending) || CONFIG_NAMES.contains(&first_word) {
            return FileRole::Configuration;
        }
        FileRole::Data
    }
}

/// Names of test files by the conventions of the usual test runners.
fn is_test_name(stem: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.split('.').next().unwrap_or(name);
    // Java, Kotlin, C#, Swift, Scala: `PriceTest`, `PriceTests`, `PriceSpec`.
    let is_class = ["Test", "Tests", "Spec", "TestCase"]
        .iter()
        .any(|end| name.strip_suffix(end).is_some_and(|rest| !rest.is_empty()));
    let ends = ["_test", ".test", "-test", "_spec", ".spec", "-spec"].iter().any(|end| stem.ends_with(end));
    is_class || ends || stem.starts_with("test_") || stem == "conftest"
}

fn is_generated(name: &str) -> bool {
    let endings = ["_pb2.py", "_pb2_grpc.py", ".g.dart", ".designer.cs", ".min.js", ".min.css"];
    name.contains(".pb.") || endings.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests;
