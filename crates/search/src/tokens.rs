//! Splits texts and source code into words: identifiers whole and in parts, other words reduced to their stem.

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Longest word in bytes. Longer ones are skipped: they are hashes, encoded data and the like.
const LONGEST: usize = 64;

/// Calls `each` with every word of a text, in order: an identifier as a whole, then its parts.
///
/// `getHTTPResponse_v2` gives `gethttpresponse_v2`, `get`, `http`, `respons`, `v`, `2`. Parts are reduced to their
/// stem, so that `indexes`, `indexed` and `indexing` are the same word. Case and accents of Latin letters are removed.
pub fn tokens(text: &str, mut each: impl FnMut(&str)) {
    let mut buffer = String::with_capacity(LONGEST);
    for word in words(text) {
        let mut parts = parts(word);
        let first = parts.next();
        let more = parts.next();
        if more.is_some() {
            lower(word, &mut buffer);
            each(buffer.trim_matches(['_', '$']));
        }
        for part in first.into_iter().chain(more).chain(parts) {
            lower(part, &mut buffer);
            stem(&mut buffer);
            each(&buffer);
        }
    }
}

/// Like [`tokens`], for prose: without stop words, and with the stems of an English stemmer.
pub fn prose(text: &str, mut each: impl FnMut(&str)) {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut buffer = String::with_capacity(LONGEST);
    for word in words(text) {
        let mut parts = parts(word);
        let first = parts.next();
        let more = parts.next();
        if more.is_some() {
            lower(word, &mut buffer);
            each(buffer.trim_matches(['_', '$']));
        }
        for part in first.into_iter().chain(more).chain(parts) {
            lower(part, &mut buffer);
            if !is_stop_word(&buffer) {
                each(&stemmer.stem(&buffer));
            }
        }
    }
}

/// The words of a short text (see [`tokens`]) as a list.
pub fn list(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    tokens(text, |word| all.push(word.to_owned()));
    all
}

/// Runs of letters, digits, underscores and dollars that are not too long to be words.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let kept = |word: &&str| word.len() <= LONGEST && word.chars().any(char::is_alphanumeric);
    text.split(|c: char| !is_word(c)).filter(kept)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$' || (!c.is_ascii() && c.is_alphanumeric())
}

/// Splits an identifier at underscores and digits, before a capital after a small letter, and before the last capital
/// of a run of them.
pub fn parts(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(['_', '$']);
        if rest.is_empty() {
            return None;
        }
        let (part, after) = rest.split_at(part_end(rest));
        rest = after;
        Some(part)
    })
}

fn part_end(text: &str) -> usize {
    let mut before: Option<char> = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '_' || c == '$' {
            return at;
        }
        if let Some(last) = before {
            let next_is_lower = chars.peek().is_some_and(|(_, n)| n.is_lowercase());
            let rises = c.is_uppercase() && (!last.is_uppercase() || next_is_lower);
            if rises || last.is_numeric() != c.is_numeric() {
                return at;
            }
        }
        before = Some(c);
    }
    text.len()
}

fn lower(word: &str, into: &mut String) {
    into.clear();
    if word.is_ascii() {
        into.push_str(word);
        into.make_ascii_lowercase();
    } else {
        into.extend(word.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase));
    }
}

/// Removes the endings of plurals, `-ing` and `-ed` from a word in small letters. It removes little, so that different
/// words rarely get the same stem.
pub fn stem(word: &mut String) {
    let n = word.len();
    if n < 4 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return;
    }
    if n > 4 && word.ends_with("ies") {
        word.truncate(n - 3);
        word.push('y');
    } else if n > 4 && word.ends_with("sses") {
        word.truncate(n - 2);
    } else if word.ends_with('s') && !b"sui".contains(&word.as_bytes()[n - 2]) {
        word.truncate(n - 1);
    }
    let cut = [("ing", 5), ("ed", 4)].into_iter().find_map(|(suffix, longer)| {
        let root = word.strip_suffix(suffix).filter(|_| word.len() > longer)?;
        root.bytes().any(|b| b"aeiouy".contains(&b)).then_some(root.len())
    });
    if let Some(n) = cut {
        word.truncate(n);
        // `stopped` becomes `stop`, not `stopp`.
        let bytes = word.as_bytes();
        if n > 3 && bytes[n - 1] == bytes[n - 2] && !b"lsz".contains(&bytes[n - 1]) {
            word.truncate(n - 1);
        }
    }
    // Without its last `e`, `cache` has the same stem as `caching`.
    if word.len() > 4 && word.ends_with('e') {
        word.truncate(word.len() - 1);
    }
}

/// Returns the stem of a word (see [`stem`]).
pub fn stemmed(word: &str) -> String {
    let mut own = word.to_owned();
    stem(&mut own);
    own
}

/// Returns a word in small letters and without accents, the form in which names are compared.
pub fn folded(word: &str) -> String {
    let mut into = String::new();
    lower(word, &mut into);
    into
}

/// Whether a word, not reduced to its stem, is one of the stop words of prose.
fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Stop words of prose, sorted for the binary search.
const STOP_WORDS: [&str; 113] = [
    "a", "about", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been", "being", "between", "both",
    "but", "by", "can", "d", "did", "do", "does", "don", "done", "during", "even", "for", "from", "get", "go", "got",
    "had", "has", "have", "he", "her", "here", "hey", "hi", "him", "his", "how", "i", "if", "in", "into", "is", "it",
    "its", "just", "ll", "m", "me", "more", "my", "no", "not", "now", "of", "oh", "on", "one", "or", "other", "others",
    "our", "out", "over", "re", "really", "s", "same", "she", "so", "some", "such", "t", "than", "thanks", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "too", "two", "up", "us", "ve",
    "very", "was", "we", "were", "what", "when", "where", "which", "who", "whom", "whose", "why", "will", "with",
    "wow", "yeah", "you", "your",
];

/// Whether a stem is that of a common word, which matches too many texts to be useful.
pub fn is_common(word: &str) -> bool {
    COMMON.binary_search(&word).is_ok()
}

/// Common words as [`stem`] returns them, sorted for the binary search.
const COMMON: [&str; 110] = [
    "a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "becaus", "been", "befor",
    "being", "between", "both", "but", "by", "can", "could", "did", "do", "doe", "doing", "don", "each", "for", "from",
    "had", "has", "hav", "have", "he", "her", "here", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its",
    "just", "like", "may", "me", "more", "most", "my", "no", "nor", "not", "now", "of", "on", "once", "only", "or",
    "other", "our", "out", "over", "own", "same", "she", "should", "so", "some", "such", "than", "that", "the",
    "their", "them", "then", "ther", "thes", "they", "this", "thos", "through", "to", "too", "under", "until", "up",
    "us", "very", "was", "we", "were", "what", "when", "wher", "which", "whil", "who", "whom", "whos", "why", "will",
    "with", "would", "you", "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(list(text), expected, "{text}");
    }

    #[test]
    fn identifiers_are_kept_and_split() {
        check("getHTTPResponse_v2", &["gethttpresponse_v2", "get", "http", "respons", "v", "2"]);
        check("parse", &["pars"]);
        check("__init__", &["init"]);
        check("foo_bar.BazQux", &["foo_bar", "foo", "bar", "bazqux", "baz", "qux"]);
        check("$scope IOError", &["scop", "ioerror", "io", "error"]);
        check("src/a-b.ts:12", &["src", "a", "b", "ts", "12"]);
        check("Éléphants naïfs", &["elephant", "naif"]);
        check("日本語 текст", &["日本語", "текст"]);
        check("___ -- $", &[]);
        check(&"x".repeat(65), &[]);
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for (a, b) in [
            ("indexing", "indexed"),
            ("indexed", "index"),
            ("caches", "caching"),
            ("cache", "cached"),
            ("stopped", "stopping"),
            ("files", "file"),
            ("queries", "query"),
            ("classes", "class"),
            ("resolves", "resolved"),
        ] {
            assert_eq!(stemmed(a), stemmed(b), "{a} {b}");
        }
        for word in ["bus", "this", "need", "status", "ring", "pass", "http", "日本語s", "a1s"] {
            assert_eq!(stemmed(word), word);
        }
    }

    #[test]
    fn prose_is_stemmed_by_grammar() {
        let words = |text: &str| {
            let mut all = vec![];
            prose(text, |word| all.push(word.to_owned()));
            all
        };
        assert_eq!(words("When did Caroline's generous happiness begin?"), ["carolin", "generous", "happi", "begin"]);
        assert_eq!(words("parse_list running"), ["parse_list", "pars", "list", "run"]);
        assert!(words("it is what it was").is_empty());
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn common_words_are_sorted_stems() {
        assert!(COMMON.is_sorted());
        for word in ["the", "these", "have", "does", "there", "once", "some", "having"] {
            assert!(is_common(&stemmed(word)), "{word} {}", stemmed(word));
        }
        assert!(!is_common("index"));
    }
}
