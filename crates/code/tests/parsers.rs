//! Compares our own parsers with tree-sitter over a small corpus, apart from the listed differences.

use lukasa_code::lang::descent::compare::{self, ParserDifference};
use lukasa_code::{FileFacts, LanguageId};
use serde::Deserialize;
use std::path::Path;

/// The facts of a text by our own parser and by tree-sitter; `None` if our parser leaves the text to tree-sitter.
fn both(text: &str, language: LanguageId) -> Option<(FileFacts, FileFacts)> {
    let own = compare::own(text, language)?;
    let ours = compare::facts("src/file", text, language, &own);
    Some((ours, compare::facts_by_tree_sitter("src/file", text, language)))
}

#[test]
fn both_parsers_read_the_corpus_alike() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parsers/corpus");
    let mut languages = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the corpus exists") {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("text");
        let language = LanguageId::of(path.to_str().expect("a name"), &text).expect("a source");
        let (ours, theirs) =
            both(&text, language).unwrap_or_else(|| panic!("{}: rejected by our parser", path.display()));
        assert!(theirs.faults.is_empty(), "{}: {:?}", path.display(), theirs.faults);
        assert_eq!(compare::difference(&ours, &theirs), None, "{}", path.display());
        languages.push(language);
    }
    let missing = LanguageId::all().find(|language| compare::has_own(*language) && !languages.contains(language));
    assert_eq!(missing, None, "a language without a file in the corpus");
}

/// An entry of `differences.json`.
#[derive(Debug, Deserialize)]
struct Entry {
    languages: Vec<String>,
    construct: String,
    text: String,
    /// Whose reading follows the definition of the language: `ours` or `tree-sitter`.
    right: String,
    /// The facts that only tree-sitter's reading has.
    tree_sitter: Vec<String>,
    /// The facts that only our reading has.
    ours: Vec<String>,
}

/// If an entry fails because a grammar was corrected, remove the entry.
#[test]
fn differences_between_parsers_equal_the_list() {
    let list = include_str!("parsers/differences.json");
    let entries: Vec<Entry> = serde_json::from_str(list).expect("a list of differences");
    let mut wrong = Vec::new();
    for entry in entries {
        assert!(["ours", "tree-sitter"].contains(&entry.right.as_str()), "{}", entry.construct);
        for language in &entry.languages {
            let language = LanguageId::named(language).expect(language);
            let (ours, theirs) = both(&entry.text, language).expect(&entry.construct);
            let listed = ParserDifference { only_ours: entry.ours.clone(), only_theirs: entry.tree_sitter.clone() };
            let found = compare::difference(&ours, &theirs);
            if found.as_ref() != Some(&listed) {
                wrong.push(format!("{language:?} {}: {found:#?}", entry.construct));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
