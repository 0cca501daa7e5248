//! Names in texts: mentions of titles, and words that are names.

use crate::tokens::{folded, is_common, stemmed};

/// Longest title to search for, in words.
const LONGEST: usize = 12;

/// A word of a text, case-folded, and how it was written.
struct Word {
    folded: String,
    /// Whether it begins with a capital or a digit.
    is_named: bool,
}

fn words(text: &str) -> Vec<Word> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words
        .map(|word| {
            let is_named = word.chars().next().is_some_and(|c| c.is_uppercase() || c.is_numeric());
            Word { folded: folded(word), is_named }
        })
        .collect()
}

/// The forms in which a title may be mentioned: without a suffix in brackets, without what follows a comma, without its
/// article.
pub fn keys(title: &str) -> Vec<String> {
    let bare = match title.trim_end().strip_suffix(')').and_then(|t| t.rfind('(').map(|at| &t[..at])) {
        Some(before) if !before.trim().is_empty() => before,
        _ => title,
    };
    let joined = |text: &str| words(text).into_iter().map(|word| word.folded).collect::<Vec<_>>();
    let mut all = vec![joined(bare)];
    if let Some((before, _)) = bare.split_once(',') {
        all.push(joined(before));
        if all[1].len() < 2 {
            all.pop();
        }
    }
    if all[0].len() > 2 && all[0][0] == "the" {
        all.push(all[0][1..].to_vec());
    }
    all.retain(|words| !words.is_empty() && words.len() <= LONGEST);
    let mut keys: Vec<String> = all.into_iter().map(|words| words.join(" ")).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// Returns the keys mentioned in a text, from left to right, the longest match at each position; `is_key` decides what
/// is a key. A mention begins with a capital or a digit; a single word does not count if it opens a question or is
/// common.
pub fn mentions(text: &str, is_question: bool, is_key: impl Fn(&str) -> bool) -> Vec<String> {
    let words = words(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let longest = if words[at].is_named { LONGEST.min(words.len() - at) } else { 0 };
        let fits = (1..=longest).rev().find_map(|n| {
            if n == 1 && ((is_question && at == 0) || is_common(&words[at].folded)) {
                return None;
            }
            let key = words[at..at + n].iter().map(|word| word.folded.as_str()).collect::<Vec<_>>().join(" ");
            is_key(&key).then_some((n, key))
        });
        match fits {
            Some((n, key)) => {
                found.push(key);
                at += n;
            }
            None => at += 1,
        }
    }
    found
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Returns the words of a text that are written like names, each once, case-folded.
pub fn names(text: &str) -> Vec<String> {
    let mut all: Vec<String> = words(text)
        .into_iter()
        .filter(|word| word.is_named && !word.folded.starts_with(|c: char| c.is_numeric()))
        .map(|word| word.folded)
        .filter(|word| word.chars().count() > 1 && !MONTHS.contains(&word.as_str()) && !is_common(&stemmed(word)))
        .collect();
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_have_several_keys() {
        for (title, expected) in [
            ("Boso the Elder", vec!["boso the elder"]),
            ("Phoolwari (film)", vec!["phoolwari"]),
            ("The Big Sleep", vec!["big sleep", "the big sleep"]),
            ("New York, New York", vec!["new york", "new york new york"]),
            ("Paris, Texas", vec!["paris texas"]),
            ("(x)", vec!["x"]),
            ("", vec![]),
        ] {
            assert_eq!(keys(title), expected, "{title}");
        }
    }

    #[test]
    fn the_longest_title_is_mentioned() {
        let titles = ["new york", "york", "the times", "he", "1984"];
        let found = |text: &str, is_question| mentions(text, is_question, |key| titles.contains(&key));
        assert_eq!(found("In New York and York he read 1984", false), ["new york", "york", "1984"]);
        assert_eq!(found("new york", false), Vec::<String>::new(), "names are written with capitals");
        assert_eq!(found("He wrote", false), Vec::<String>::new());
        assert_eq!(found("York is where?", true), Vec::<String>::new());
        assert_eq!(found("The Times wrote", true), ["the times"]);
    }

    #[test]
    fn names_are_capitalised_words() {
        assert_eq!(names("The queen Teutberga died in May 875, in Lotharingia. A Á"), ["lotharingia", "teutberga"]);
    }
}
