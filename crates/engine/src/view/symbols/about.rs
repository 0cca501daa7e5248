//! The sentence that describes a symbol, if it adds something to the signature.

use super::{keys, text};
use lukasa_model::Content;
use lukasa_search::tokens;
use rustc_hash::FxHashSet;

/// Words for kinds of symbols, with which rule-based summaries begin.
const KINDS: [&str; 11] =
    ["file", "module", "class", "struct", "enum", "interface", "type", "function", "method", "field", "variable"];

/// The summary of a symbol. None if it only repeats the signature, which is shown beside it.
pub fn about(content: &Content, signature: Option<&str>, key: &str) -> Option<String> {
    let summary = text(content, "summary")?;
    let repeats = signature.is_some_and(|signature| !says_more(&summary, signature, keys::name(key)));
    (!repeats).then_some(summary)
}

/// Whether a summary has a word that neither the signature nor the name has.
fn says_more(summary: &str, signature: &str, name: &str) -> bool {
    let known: FxHashSet<String> = [signature, name].into_iter().flat_map(tokens::list).collect();
    tokens::list(summary).iter().any(|word| !known.contains(word) && !KINDS.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_that_repeats_the_signature_is_left_out() {
        for (summary, signature, name, more) in [
            ("function read file: fn read_file(path: &Path)", "fn read_file(path: &Path)", "read_file", false),
            ("method add: add(a, b int) int", "add(a, b int) int", "add", false),
            ("Reads a file into memory.", "fn read_file(path: &Path)", "read_file", true),
            ("return self.total + 1", "def add(self)", "add", true),
        ] {
            assert_eq!(says_more(summary, signature, name), more, "{summary}");
        }
    }
}
