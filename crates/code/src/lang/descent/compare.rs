//! Reads a text with one parser only, ours or tree-sitter, so that tests and measurements can compare the two.

use crate::FileFacts;
use crate::lang::{compact, names};
use crate::languages::{LanguageId, SourceFile};
use crate::tree::{self, SyntaxTree};

/// A syntax tree in the form that front ends read.
pub struct ParsedTree(SyntaxTree);

/// Whether the crate has a parser of its own for a language.
pub fn has_own(language: LanguageId) -> bool {
    language.get().own_parser().is_some()
}

/// The tree of our own parser; `None` if it leaves the text to tree-sitter.
pub fn own(text: &str, language: LanguageId) -> Option<ParsedTree> {
    let parser = language.get().own_parser()?;
    (parser.parse)(text, language).map(ParsedTree)
}

/// A tree of tree-sitter (see `lang::tree`), copied into the form that front ends read.
pub fn copied(text: &str, tree: &tree_sitter::Tree, language: LanguageId) -> ParsedTree {
    ParsedTree(tree::from_tree_sitter(text, tree, names(language), |_, _| ()))
}

/// The facts of a tree, without summaries and hashes. Panics for a language without a parser of our own.
pub fn facts(path: &str, text: &str, language: LanguageId, ParsedTree(tree): &ParsedTree) -> FileFacts {
    let parser = language.get().own_parser().expect("only languages with a parser of our own are compared");
    (parser.facts)(SourceFile { path, text, language }, tree)
}

/// The facts of a text by tree-sitter alone.
pub fn facts_by_tree_sitter(path: &str, text: &str, language: LanguageId) -> FileFacts {
    facts(path, text, language, &copied(text, &super::super::tree(text, language), language))
}

/// The facts that only one of two readings of a text has, one line per fact, in the order of the reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParserDifference {
    /// Facts that only our parser finds.
    pub only_ours: Vec<String>,
    /// Facts that only tree-sitter finds.
    pub only_theirs: Vec<String>,
}

/// `None` if both facts are the same.
pub fn difference(ours: &FileFacts, theirs: &FileFacts) -> Option<ParserDifference> {
    let json = |facts| serde_json::to_string(facts).expect("facts can be written");
    if json(ours) == json(theirs) {
        return None;
    }
    let (ours, theirs) = (compact::compact(ours), compact::compact(theirs));
    let (only_ours, only_theirs) = (missing(&ours, &theirs), missing(&theirs, &ours));
    Some(ParserDifference { only_ours, only_theirs })
}

/// The lines of a text that another one does not contain as often.
fn missing(lines: &str, from: &str) -> Vec<String> {
    let mut counts = std::collections::HashMap::new();
    for line in from.lines() {
        *counts.entry(line).or_insert(0_usize) += 1;
    }
    let is_missing = |line: &&str| match counts.get_mut(*line) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    lines.lines().filter(is_missing).map(str::to_owned).collect()
}
