//! Approximate matching of names: by case, by words, by missing or mistyped letters.

use super::{Symbols, keys};
use crate::convert::to_count;
use lukasa_code::summary::words;
use lukasa_graph::Node;
use lukasa_search::recipes::NAMES;
use rayon::prelude::*;
use std::cmp::Reverse;
use strsim::osa_distance;

/// How a name matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchKind {
    /// The name, or the end of the key, is equal.
    Exact,
    /// Equal except for upper and lower case.
    Case,
    /// All words of the query are in the name or path.
    Words,
    /// Letters are mistyped or left out.
    Near,
}

/// A symbol that matches a query.
#[derive(Clone, Copy, Debug)]
pub struct SymbolMatch {
    pub node: Node,
    /// 0 to 1.
    pub score: f64,
    pub by: MatchKind,
    /// The number of symbols that call it.
    pub callers: usize,
}

/// A query, parsed once for all names.
pub struct NameQuery {
    text: String,
    /// The text with `::` instead of dots; none if there are no dots.
    dotted: Option<String>,
    words: Vec<String>,
    /// Letters of the name. Empty if the query has several words, which are not matched by letters.
    letters: String,
    mask: u64,
}

/// Shorter names are not matched by letters: they differ in too little.
const FEW_LETTERS: usize = 3;
/// Maximum number of letters that may be wrong, missing or added.
const EDITS: usize = 2;

impl NameQuery {
    /// Parses a query.
    pub fn new(text: &str) -> NameQuery {
        let text = text.trim().trim_end_matches("()");
        let dotted = text.replace(['.', '#'], "::");
        let name = if text.contains(char::is_whitespace) { "" } else { keys::name(&dotted) };
        let letters = name.to_lowercase();
        let mask = mask(letters.as_bytes());
        NameQuery { text: text.into(), words: words(text), letters, mask, dotted: (dotted != text).then_some(dotted) }
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// How well a key matches. `lower` is a reusable buffer. Most keys do not match, and are rejected early.
    pub fn score(&self, key: &str, lower: &mut String) -> Option<(f64, MatchKind)> {
        let bare = keys::plain(key);
        let asked = std::iter::once(&self.text).chain(&self.dotted);
        if asked.into_iter().any(|text| keys::ends_at_a_border(bare, text) || keys::ends_at_a_border(key, text)) {
            return Some((1.0, MatchKind::Exact));
        }
        let name = keys::last(bare);
        if name.len() == self.text.len() && name.eq_ignore_ascii_case(&self.text) {
            return Some((NAMES.case, MatchKind::Case));
        }
        lower.clear();
        if bare.is_ascii() {
            lower.push_str(bare);
            lower.make_ascii_lowercase();
        } else {
            lower.extend(bare.chars().flat_map(char::to_lowercase));
        }
        if !self.words.is_empty() && self.words.iter().all(|word| lower.contains(word.as_str())) {
            return Some((self.by_words(name), MatchKind::Words));
        }
        // The name is the end of the key, but its lower case may have another length.
        let small = lower.get(lower.len().saturating_sub(name.len())..).unwrap_or(lower);
        self.by_letters(name, small).map(|score| (score, MatchKind::Near))
    }

    /// The score rises with the query words that are words of the name, and falls with other words in the name.
    fn by_words(&self, name: &str) -> f64 {
        let (mut whole, mut within) = (0, 0);
        for word in &self.words {
            match find_word(name, word) {
                Some(true) => (whole, within) = (whole + 1, within + 1),
                Some(false) => within += 1,
                None => {}
            }
        }
        let share = |n: usize| n as f64 / self.words.len() as f64;
        let asked: usize = self.words.iter().map(String::len).sum();
        let letters = name.bytes().filter(|b| b.is_ascii_alphanumeric() || !b.is_ascii()).count();
        let covers = if within > 0 { (asked as f64 / letters.max(1) as f64).min(1.0) } else { 0.0 };
        NAMES.words + NAMES.whole * share(whole) + NAMES.within * share(within) + NAMES.covers * covers
    }

    fn by_letters(&self, name: &str, small: &str) -> Option<f64> {
        let (asked, has) = (self.letters.chars().count(), small.len());
        if asked < FEW_LETTERS || has < FEW_LETTERS {
            return None;
        }
        let own = mask(small.as_bytes());
        let (missing, extra) = ((self.mask & !own).count_ones() as usize, (own & !self.mask).count_ones() as usize);
        if missing > EDITS {
            return None;
        }
        if extra <= EDITS && asked.abs_diff(has) <= EDITS && asked > EDITS + 1 {
            // Two swapped neighbours count once.
            let own: String = name.chars().flat_map(char::to_lowercase).collect();
            let edits = osa_distance(&self.letters, &own);
            // In a short name, two wrong letters leave too little in common.
            if edits <= EDITS && edits * 2 < asked {
                return Some(NAMES.mistyped - NAMES.per_edit * edits as f64);
            }
        }
        if missing > 0 {
            return None;
        }
        let mut wanted = self.letters.chars().peekable();
        for c in small.chars() {
            wanted.next_if_eq(&c);
        }
        // Most long names contain a few letters in this order, so the query must be long enough.
        let is_near = wanted.peek().is_none() && asked * 3 >= has;
        is_near.then(|| NAMES.left_out + NAMES.letters * asked as f64 / has as f64)
    }
}

/// A bit set of the bytes in a text; different bytes may share a bit.
fn mask(text: &[u8]) -> u64 {
    text.iter().fold(0, |mask, byte| mask | 1 << (byte & 63))
}

/// `Some(true)` if a lower-case word is one of the words of a name, `Some(false)` if it is only within one. Equivalent
/// to [`words`] without allocating, because it is called for tens of thousands of names.
fn find_word(name: &str, word: &str) -> Option<bool> {
    if !name.is_ascii() {
        let own = words(name);
        return if own.iter().any(|o| o == word) {
            Some(true)
        } else {
            own.iter().any(|o| o.contains(word)).then_some(false)
        };
    }
    let (name, word) = (name.as_bytes(), word.as_bytes());
    let mut found = None;
    for at in 0..(name.len() + 1).saturating_sub(word.len()) {
        let end = at + word.len();
        if name[at..end].eq_ignore_ascii_case(word) {
            if begins(name, at) && begins(name, end) {
                return Some(true);
            }
            found = Some(false);
        }
    }
    found
}

/// Whether a word of the name begins or ends at this position.
fn begins(name: &[u8], at: usize) -> bool {
    let (Some(before), Some(here)) = (at.checked_sub(1).map(|b| name[b]), name.get(at)) else { return true };
    let upper = here.is_ascii_uppercase();
    let after = name.get(at + 1).is_some_and(u8::is_ascii_lowercase);
    !before.is_ascii_alphanumeric()
        || !here.is_ascii_alphanumeric()
        || (upper && (before.is_ascii_lowercase() || before.is_ascii_digit()))
        || (upper && before.is_ascii_uppercase() && after)
}

impl Symbols<'_> {
    /// Everything that matches a query, best first. Of equal scores, the symbol with more callers comes first.
    pub fn like(&self, query: &NameQuery, allowed: impl Fn(Node) -> bool + Sync) -> Vec<SymbolMatch> {
        if query.is_empty() {
            return vec![];
        }
        let s = &self.look.snapshot;
        let fits = |room: &mut String, node: Node| {
            let (score, by) = query.score(s.key(node)?, room)?;
            Some(SymbolMatch { node, score, by, callers: self.callers(node) })
        };
        let mut found: Vec<SymbolMatch> = s
            .nodes()
            .into_par_iter()
            .with_min_len(4_096)
            .filter(|node| self.kind(*node).is_some() && allowed(*node))
            .map_init(String::new, |room, node| fits(room, node))
            .flatten_iter()
            .collect();
        let best = |f: &SymbolMatch| (Reverse(to_count(f.score * 1e6)), Reverse(f.callers));
        found.sort_unstable_by(|a, b| {
            best(a)
                .cmp(&best(b))
                .then_with(|| s.key(a.node).cmp(&s.key(b.node)))
                .then(s.thing(a.node).cmp(&s.thing(b.node)))
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(query: &str, key: &str) -> Option<(f64, MatchKind)> {
        NameQuery::new(query).score(key, &mut String::new())
    }

    #[test]
    fn names_are_found_by_inexact_queries() {
        for (query, key, by) in [
            ("login", "src/auth.py::login", Some(MatchKind::Exact)),
            ("Auth.login", "src/auth.py::Auth::login", Some(MatchKind::Exact)),
            ("login()", "src/auth.py::login", Some(MatchKind::Exact)),
            ("LOGIN", "src/auth.py::login", Some(MatchKind::Case)),
            ("read html", "src/io.ts::readHTMLFile", Some(MatchKind::Words)),
            ("auth login", "src/auth.py::login", Some(MatchKind::Words)),
            ("lgoin", "src/auth.py::login", Some(MatchKind::Near)),
            ("lukup", "src/store.py::lookup", Some(MatchKind::Near)),
            ("lukp", "src/store.py::look", None),
            ("logni_usr", "src/auth.py::login_user", Some(MatchKind::Near)),
            ("rdhtml", "src/io.ts::readHTMLFile", Some(MatchKind::Near)),
            ("zebra", "src/auth.py::login", None),
            ("ab", "src/auth.py::xy", None),
        ] {
            assert_eq!(score(query, key).map(|(_, by)| by), by, "{query} {key}");
        }
        let better = |query: &str, one: &str, other: &str| {
            let (a, b) = (score(query, one).unwrap().0, score(query, other).unwrap().0);
            assert!(a > b, "{query}: {one} {a} is not above {other} {b}");
            assert!((0.0..=1.0).contains(&a) && (0.0..=1.0).contains(&b));
        };
        better("read file", "a.rs::read_file", "a.rs::read_file_slowly");
        better("read file", "a.rs::read_file_slowly", "a.rs::reads_files");
        better("read file", "a.rs::reads_files", "read/file.rs::other");
        better("login", "a.rs::login", "a.rs::Login");
        better("login", "a.rs::Login", "a.rs::login_user");
        better("logni", "a.rs::login", "a.rs::longnib");
    }

    #[test]
    fn find_word_agrees_with_words() {
        for name in ["readHTMLFile", "read_html_file", "HTTPServer2Go", "__init__", "xReads", "größeLesen", ""] {
            let own = words(name);
            for word in ["read", "html", "file", "http", "server2", "go", "init", "x", "reads", "lesen", "les", "er2"] {
                let within = own.iter().any(|o| o.contains(word));
                let found = find_word(name, word);
                assert_eq!(found == Some(true), own.iter().any(|o| o == word), "{name} {word}");
                assert!(!within || found.is_some(), "{name} {word}");
            }
        }
    }
}
