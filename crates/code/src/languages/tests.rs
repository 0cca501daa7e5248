//! The list of languages, and that nothing outside of their folders names one of them.

use super::LanguageId;
use std::path::{Path, PathBuf};

#[test]
fn languages_are_detected_by_name_and_first_line() {
    for (path, head, expected) in [
        ("a/b.py", "", Some("python")),
        ("a.tsx", "", Some("tsx")),
        ("a.h", "int f(void);\n", Some("c")),
        ("a.h", "namespace x {\n", Some("cpp")),
        ("a.hpp", "", Some("cpp")),
        ("run", "#!/usr/bin/env python3.12\n", Some("python")),
        ("run", "#!/usr/bin/node\n", Some("javascript")),
        ("run", "#!/bin/sh\n", None),
        ("a.txt", "#!/usr/bin/env python\n", None),
        ("Makefile", "", None),
    ] {
        assert_eq!(LanguageId::of(path, head).map(LanguageId::name), expected, "{path}");
    }
}

#[test]
fn every_language_is_described_completely() {
    for language in LanguageId::all() {
        assert_eq!(LanguageId::named(language.name()), Some(language));
        assert_eq!(language.family().family(), language.family(), "{language:?}");
        assert!(!language.get().extensions().is_empty(), "{language:?}");
        for extension in language.get().extensions() {
            let found = LanguageId::of(&format!("a.{extension}"), "").expect("known");
            assert_eq!(found.family(), language.family(), "{extension}");
        }
    }
}

/// Sources outside of the folders of languages that may contain their names, with the reason.
const MAY_NAME_LANGUAGES: [(&str, &str); 2] =
    [("languages/mod.rs", "the list of all languages"), ("scip/read.rs", "indexers are named after languages")];

/// What is outside of their folders treats all languages alike: it uses rules and hooks, never the name of a language.
/// Comments may give examples, and tests are about particular languages.
#[test]
fn only_the_folder_of_a_language_names_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let folders = root.join("languages");
    files.retain(|file| file.parent() == Some(&folders) || !file.starts_with(&folders));
    for (excepted, reason) in MAY_NAME_LANGUAGES {
        let before = files.len();
        files.retain(|file| !file.ends_with(excepted));
        assert_eq!(files.len() + 1, before, "{excepted} exists: {reason}");
    }
    let mut names: Vec<&str> = LanguageId::all().flat_map(|l| [l.name(), l.get().ecosystem()]).collect();
    names.extend(["ecma", "kotlin", "csharp", "cxx", "npm"]);
    // `c` cannot be distinguished from a variable.
    names.retain(|name| name.len() > 1);
    let mut found = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a source of this crate");
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or(line);
            for word in words(code).filter(|word| names.contains(&word.as_str())) {
                let place = file.strip_prefix(&root).expect("below it").display().to_string();
                found.push(format!("{place}:{}: {word}", number + 1));
            }
        }
    }
    assert!(files.len() > 40, "the sources are found");
    assert!(found.is_empty(), "names of languages outside of their folders:\n{}", found.join("\n"));
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of this crate").flatten() {
        let path = entry.path();
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        match path.is_dir() {
            _ if name == "tests" => {}
            true => sources(&path, files),
            false => files.push(path),
        }
    }
}

/// The words of identifiers, in lower case: `go_declared` and `GoFolder` both contain `go`.
fn words(code: &str) -> impl Iterator<Item = String> + '_ {
    let identifiers = code.split(|c: char| !c.is_alphanumeric());
    identifiers.flat_map(|identifier| {
        let mut words: Vec<String> = vec![String::new()];
        for letter in identifier.chars() {
            if letter.is_uppercase() {
                words.push(String::new());
            }
            words.last_mut().expect("never empty").extend(letter.to_lowercase());
        }
        words.push(identifier.to_lowercase());
        words
    })
}
