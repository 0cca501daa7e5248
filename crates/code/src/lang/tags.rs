//! C, C++, C#, Ruby, PHP and Kotlin: text to facts.

use crate::builder::Builder;
use crate::facts::Facts;
use crate::language::Language;
use tree_sitter::Tree;

pub fn read(path: &str, text: &str, tree: &Tree, language: Language) -> Facts {
    let _ = tree;
    Builder::new(language, text, path.rsplit('/').next().unwrap_or(path)).finish()
}
