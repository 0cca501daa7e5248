//! The list of constructs that tree-sitter's grammars and our own parsers read differently.

use crate::Fault;
use lukasa_code::LanguageId;
use regex::Regex;
use serde::Deserialize;

/// The list; a test of `lukasa-code` checks every entry.
const LIST: &str = include_str!("../../../crates/code/tests/parsers/differences.json");

pub struct KnownDifferences(Vec<(LanguageId, String, Regex)>);

/// An entry of the list, as far as this suite needs it.
#[derive(Deserialize)]
struct Entry {
    languages: Vec<String>,
    construct: String,
    /// A regular expression that texts with this construct match.
    pattern: String,
}

impl KnownDifferences {
    pub fn listed() -> Result<KnownDifferences, Fault> {
        let entries: Vec<Entry> = serde_json::from_str(LIST)?;
        let mut known = Vec::new();
        for Entry { languages, construct, pattern } in entries {
            for name in languages {
                let language = LanguageId::named(&name).ok_or_else(|| format!("no language {name}"))?;
                known.push((language, construct.clone(), Regex::new(&pattern)?));
            }
        }
        Ok(KnownDifferences(known))
    }

    /// The listed constructs of a language that a text seems to contain.
    pub fn constructs_in(&self, text: &str, language: LanguageId) -> Vec<String> {
        let contained = self.0.iter().filter(|(of, _, pattern)| *of == language && pattern.is_match(text));
        contained.map(|(_, construct, _)| construct.clone()).collect()
    }
}
