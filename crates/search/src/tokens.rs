//! Words of texts and of programs: identifiers whole and in parts, plain words by their stem.

/// Longest word that is looked at: beyond it are hashes, encoded data and the like.
const LONGEST: usize = 64;

/// One word of a text, in the form in which it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub word: &'a str,
    /// It is a part of the identifier before it, not a word that stood by itself.
    pub part: bool,
}

/// Calls `each` with every word of a text, in order: an identifier as a whole, then its parts.
///
/// `getHTTPResponse_v2` gives `gethttpresponse_v2`, `get`, `http`, `response`, `v2`; words are compared by their stem, so
/// `indexes`, `indexed` and `indexing` are one. Neither case nor accents of Latin letters count.
pub fn tokens(text: &str, mut each: impl FnMut(Token<'_>)) {
    let mut buffer = String::with_capacity(LONGEST);
    for word in words(text) {
        let mut parts = parts(word);
        let first = parts.next();
        let more = parts.next();
        if first.is_some() && more.is_some() {
            lower(word, &mut buffer);
            each(Token { word: buffer.trim_matches('_'), part: false });
        }
        let single = more.is_none();
        for part in first.into_iter().chain(more).chain(parts) {
            lower(part, &mut buffer);
            each(Token { word: stem(&buffer), part: !single });
        }
    }
}

/// The words of a text as one list, for who has few.
pub fn list(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    tokens(text, |token| all.push(token.word.to_owned()));
    all
}

/// Runs of letters, digits and underscores that are not too long to be words.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_word(c))
        .filter(|word| !word.is_empty() && word.len() <= LONGEST && word.bytes().any(|b| b != b'_'))
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || (!c.is_ascii() && c.is_alphanumeric())
}

/// Parts of an identifier: at underscores, where case rises, before the last capital of a run, and where digits end.
pub fn parts(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches('_');
        if rest.is_empty() {
            return None;
        }
        let end = part_end(rest);
        let (part, after) = rest.split_at(end);
        rest = after;
        Some(part)
    })
}

fn part_end(text: &str) -> usize {
    let mut before: Option<char> = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '_' {
            return at;
        }
        if let Some(last) = before {
            let next_is_lower = chars.peek().is_some_and(|(_, n)| n.is_lowercase());
            let rises = c.is_uppercase() && (last.is_lowercase() || (last.is_uppercase() && next_is_lower));
            let digits_end = last.is_ascii_digit() && c.is_alphabetic() && at > 1;
            let capital_after_digit = last.is_ascii_digit() && c.is_uppercase();
            if rises || digits_end || capital_after_digit {
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
        into.extend(word.chars().map(plain).flat_map(char::to_lowercase));
    }
}

/// A Latin letter without its accent.
fn plain(c: char) -> char {
    match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' => 'a',
        'À'..='Å' => 'A',
        'ç' | 'ć' | 'č' => 'c',
        'Ç' => 'C',
        'è'..='ë' | 'ē' | 'ė' | 'ę' | 'ě' => 'e',
        'È'..='Ë' => 'E',
        'ì'..='ï' | 'ī' | 'į' => 'i',
        'Ì'..='Ï' => 'I',
        'ñ' | 'ń' | 'ň' => 'n',
        'Ñ' => 'N',
        'ò'..='ö' | 'ø' | 'ō' | 'ő' => 'o',
        'Ò'..='Ö' | 'Ø' => 'O',
        'ù'..='ü' | 'ū' | 'ů' | 'ű' => 'u',
        'Ù'..='Ü' => 'U',
        'ý' | 'ÿ' => 'y',
        'ś' | 'š' | 'ş' => 's',
        'Š' | 'Ş' => 'S',
        'ź' | 'ż' | 'ž' => 'z',
        'Ž' => 'Z',
        'ł' => 'l',
        'đ' => 'd',
        'ğ' => 'g',
        'ř' => 'r',
        'ť' => 't',
        _ => c,
    }
}

/// A word without its plural, `-ing` or `-ed`: enough that forms of one word meet, too little that two words do.
pub fn stem(word: &str) -> &str {
    let bytes = word.as_bytes();
    if bytes.len() < 4 || !word.is_ascii() || bytes.iter().any(|b| b.is_ascii_digit() || *b == b'_') {
        return word;
    }
    let word = singular(word);
    for suffix in ["ing", "ed"] {
        if let Some(root) = word.strip_suffix(suffix)
            && root.len() >= 3
            && root.bytes().any(|b| b"aeiouy".contains(&b))
        {
            return undoubled(root);
        }
    }
    // `index`, `indexe(d)` and `cache`, `cach(ing)` meet without their last e.
    match word.strip_suffix('e') {
        Some(root) if root.len() >= 3 => root,
        _ => word,
    }
}

fn singular(word: &str) -> &str {
    if word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") {
        return word;
    }
    for suffix in ["ches", "shes", "xes", "sses", "zes"] {
        if word.ends_with(suffix) {
            return &word[..word.len() - 2];
        }
    }
    match word.strip_suffix('s') {
        Some(root) if root.len() >= 3 => root,
        _ => word,
    }
}

/// `stopp(ed)` is `stop`.
fn undoubled(root: &str) -> &str {
    let bytes = root.as_bytes();
    let n = bytes.len();
    let double = n >= 4 && bytes[n - 1] == bytes[n - 2] && !b"lsz".contains(&bytes[n - 1]);
    if double { &root[..n - 1] } else { root }
}

/// The form in which a single word, such as a name given by a user, is compared.
pub fn folded(word: &str) -> String {
    let mut into = String::new();
    lower(word, &mut into);
    into
}

/// Words that say nothing about what is meant.
pub fn is_common(word: &str) -> bool {
    COMMON.binary_search(&word).is_ok()
}

/// Sorted, and in the form the stemmer leaves them.
const COMMON: [&str; 118] = [
    "a", "about", "after", "all", "also", "an", "and", "any", "ar", "as", "at", "be", "because", "been", "befor",
    "being", "between", "both", "but", "by", "can", "could", "did", "do", "doe", "does", "don", "each", "for", "from",
    "had", "has", "hav", "have", "he", "her", "here", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its",
    "just", "lik", "may", "me", "mor", "more", "most", "my", "no", "nor", "not", "now", "of", "on", "onc", "only",
    "or", "other", "our", "out", "over", "own", "same", "she", "should", "so", "som", "some", "such", "than", "that",
    "the", "their", "them", "then", "ther", "there", "thes", "they", "thi", "this", "thos", "through", "to", "too",
    "under", "until", "up", "us", "very", "wa", "was", "we", "were", "what", "when", "where", "which", "whil", "while",
    "who", "whom", "whos", "why", "will", "with", "would", "you", "your", "yours", "yourself",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(list(text), expected, "{text}");
    }

    #[test]
    fn identifiers_are_kept_and_taken_apart() {
        check("getHTTPResponse_v2", &["gethttpresponse_v2", "get", "http", "respons", "v2"]);
        check("parse", &["pars"]);
        check("__init__", &["init"]);
        check("foo_bar.BazQux", &["foo_bar", "foo", "bar", "bazqux", "baz", "qux"]);
        check("utf8Decoder", &["utf8decoder", "utf8", "decoder"]);
        check("IOError", &["ioerror", "io", "error"]);
        check("src/a-b.ts:12", &["src", "a", "b", "ts", "12"]);
        check("Éléphants naïfs", &["elephant", "naif"]);
        check("日本語 текст", &["日本語", "текст"]);
        check("___ -- ", &[]);
        check(&"x".repeat(65), &[]);
    }

    #[test]
    fn forms_of_a_word_are_one() {
        for (a, b) in [
            ("indexes", "indexing"),
            ("indexed", "index"),
            ("caches", "caching"),
            ("cache", "cached"),
            ("stopped", "stopping"),
            ("files", "file"),
            ("queries", "queries"),
            ("matches", "match"),
            ("classes", "class"),
            ("resolves", "resolved"),
        ] {
            assert_eq!(stem(a), stem(b), "{a} {b}");
        }
        for (a, b) in
            [("string", "str"), ("bus", "bu"), ("this", "thi"), ("need", "ne"), ("status", "statu"), ("ring", "r")]
        {
            assert_ne!(stem(a), b);
        }
    }

    #[test]
    fn common_words_are_sorted_and_as_the_stemmer_leaves_them() {
        assert!(COMMON.is_sorted());
        for word in ["the", "these", "have", "does", "there", "once", "some"] {
            assert!(is_common(stem(word)), "{word} {}", stem(word));
        }
        assert!(!is_common("index"));
    }
}
