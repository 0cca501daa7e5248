//! The languages: one folder each, one line each in the list below.

mod c;
mod csharp;
mod ecma;
mod go;
mod java;
mod kotlin;
mod language;
mod php;
#[cfg(test)]
mod printed;
mod python;
mod ruby;
pub(crate) mod rules;
mod rust;
mod scala;
mod swift;
#[cfg(test)]
mod tests;

pub(crate) use language::{DeclaredModule, Imports, Language, NoImports, OutsideModule, OwnParser, SourceFile};
use rules::LanguageRules;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// All languages. An id is an index in this list, so a new language is appended.
static LANGUAGES: &[&dyn Language] = &[
    &python::Python,
    &ecma::JavaScript,
    &ecma::TypeScript,
    &ecma::Tsx,
    &go::Go,
    &rust::Rust,
    &java::Java,
    &c::C,
    &c::Cpp,
    &csharp::CSharp,
    &ruby::Ruby,
    &php::Php,
    &kotlin::Kotlin,
    &swift::Swift,
    &scala::Scala,
];

/// Properties of a language that are needed for each file or call, and therefore read once.
struct Known {
    rules: &'static LanguageRules,
    family: LanguageId,
}

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let known = |language: &&dyn Language| {
        let family = LanguageId::named(language.family()).expect("a family is named after one of its languages");
        Known { rules: language.rules(), family }
    };
    LANGUAGES.iter().map(known).collect()
});

/// A language, as facts carry it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LanguageId(u8);

impl LanguageId {
    /// All languages, in the order of the list.
    pub fn all() -> impl ExactSizeIterator<Item = LanguageId> {
        (0..LANGUAGES.len()).map(|at| LanguageId(u8::try_from(at).expect("there are few languages")))
    }

    /// The language of that name, as facts in the store have it.
    pub fn named(name: &str) -> Option<LanguageId> {
        LanguageId::all().find(|id| id.name() == name)
    }

    /// Detects the language from the file's name. `head` is the beginning of its text and is used only when the name is
    /// not enough.
    pub fn of(path: &str, head: &str) -> Option<LanguageId> {
        let name = path.rsplit('/').next().unwrap_or(path);
        match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "" => interpreted(head),
            extension => LanguageId::all().find(|id| {
                let language = id.get();
                language.extensions().contains(&extension) && language.is_written_in(extension, head)
            }),
        }
    }

    /// The name in facts, answers and summaries.
    pub fn name(self) -> &'static str {
        self.get().name()
    }

    /// The representative of a group of languages that use one another's files.
    pub fn family(self) -> LanguageId {
        KNOWN[usize::from(self.0)].family
    }

    /// The implementation of the language.
    pub(crate) fn get(self) -> &'static dyn Language {
        LANGUAGES[usize::from(self.0)]
    }

    /// The properties that decide how names of the language resolve.
    pub(crate) fn rules(self) -> &'static LanguageRules {
        KNOWN[usize::from(self.0)].rules
    }

    /// The index in the list of all languages, for tables.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl std::fmt::Debug for LanguageId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The language of a script, by the interpreter in its first line.
fn interpreted(head: &str) -> Option<LanguageId> {
    let line = head.lines().next()?.strip_prefix("#!")?;
    let program = line.split_whitespace().find(|w| !w.ends_with("/env") && !w.starts_with('-'))?;
    let program = program.rsplit('/').next()?.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    LanguageId::all().find(|id| id.get().interpreters().contains(&program))
}

/// The language of that name, for tests.
#[cfg(test)]
pub(crate) fn language(name: &str) -> LanguageId {
    LanguageId::named(name).expect("a language of that name")
}
