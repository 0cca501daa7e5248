//! Go: text to facts.

use crate::builder::Builder;
use crate::facts::Facts;
use crate::language::Language;
use tree_sitter::Tree;

pub fn read(path: &str, text: &str, tree: &Tree) -> Facts {
    let _ = tree;
    Builder::new(Language::Go, text, path.rsplit('/').next().unwrap_or(path)).finish()
}
