//! Counts the tokens of a text for a language model.

use crate::tokenizer;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most words cached by each thread.
const WORDS: usize = 16_384;
/// Longer words are not cached.
const LONGEST: usize = 23;

/// A shared cache for words of up to `SHORT` bytes, which are most words: each slot holds a word and its token count.
const PLACES: usize = 1 << 15;
const SHORT: usize = 7;
static PLACED: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

thread_local! {
    /// Counts of longer words, because texts repeat the same words.
    static KNOWN: RefCell<FxHashMap<[u64; 3], u32>> = RefCell::default();
}

/// Counts the tokens of a text in the encoding `o200k_base`.
pub fn count(text: &str) -> usize {
    let of = |word: &str| tokenizer::count(word.as_bytes());
    KNOWN.with_borrow_mut(|known| {
        let mut count = |word: &str| match word.len() {
            1 => 1,
            // Every number of up to three digits is one token.
            2..=3 if word.as_bytes()[0].is_ascii_digit() => 1,
            2..=SHORT => short(word, of),
            8..=LONGEST => {
                let packed = packed(word);
                if let Some(tokens) = known.get(&packed) {
                    return *tokens as usize;
                }
                let tokens = of(word);
                if known.len() == WORDS {
                    known.clear();
                }
                known.insert(packed, u32::try_from(tokens).expect("a word has at most one token per byte"));
                tokens
            }
            _ => of(word),
        };
        match text.is_ascii() {
            true => Words(text).map(&mut count).sum(),
            false => tokenizer::split(text).map(&mut count).sum(),
        }
    })
}

/// Counts the tokens of a short word. A slot contains the whole word, so collisions are detected.
fn short(word: &str, of: impl Fn(&str) -> usize) -> usize {
    // A word that ends with NUL could not be distinguished from a shorter one.
    if word.ends_with('\0') {
        return of(word);
    }
    let mut bytes = [0; 8];
    bytes[1..=word.len()].copy_from_slice(word.as_bytes());
    let packed = u64::from_le_bytes(bytes);
    let place = &PLACED[(packed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 49) as usize % PLACES];
    let there = place.load(Ordering::Relaxed);
    if there & !0xff == packed {
        return (there & 0xff) as usize;
    }
    let tokens = of(word);
    place.store(packed | tokens as u64, Ordering::Relaxed);
    tokens
}

/// A short word and its length as numbers, which are hashed and compared without a loop.
fn packed(word: &str) -> [u64; 3] {
    let mut bytes = [0; LONGEST + 1];
    bytes[..word.len()].copy_from_slice(word.as_bytes());
    bytes[LONGEST] = u8::try_from(word.len()).expect("a packed word has at most `LONGEST` bytes");
    let [a, b, c] = [0, 8, 16].map(|from| bytes[from..from + 8].try_into().map_or(0, u64::from_le_bytes));
    [a, b, c]
}

/// Counts the tokens of a text; `None` if there are more than `most`.
pub fn count_within(text: &str, most: usize) -> Option<usize> {
    // Text has about four bytes per token; a text forty times as long need not be counted.
    if text.len() > most.saturating_mul(160) {
        return None;
    }
    Some(count(text)).filter(|count| *count <= most)
}

/// Splits an ASCII text into words like the encoding, by hand: its regular expression takes as long as counting does.
struct Words<'t>(&'t str);

impl<'t> Iterator for Words<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let bytes = self.0.as_bytes();
        let first = *bytes.first()?;
        let (word, rest) = self.0.split_at(word_end(bytes, first));
        self.0 = rest;
        Some(word)
    }
}

fn word_end(text: &[u8], first: u8) -> usize {
    let run =
        |from: usize, is: fn(&u8) -> bool| text[from..].iter().position(|b| !is(b)).map_or(text.len(), |n| from + n);
    if first.is_ascii_digit() {
        return run(0, u8::is_ascii_digit).min(3);
    }
    // Letters may follow one other character, but not a line break.
    let is_letter = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphabetic);
    let before = usize::from(!first.is_ascii_alphabetic() && !matches!(first, b'\r' | b'\n'));
    if is_letter(before) {
        let capitals = run(before, u8::is_ascii_uppercase);
        return contracted(text, run(capitals, u8::is_ascii_lowercase));
    }
    let is_mark = |at: usize| text.get(at).is_some_and(|b| !is_space(b) && !b.is_ascii_alphanumeric());
    let marks = usize::from(first == b' ');
    if is_mark(marks) {
        let marks = run(marks, |b| !is_space(b) && !b.is_ascii_alphanumeric());
        return run(marks, |b| matches!(b, b'\r' | b'\n' | b'/'));
    }
    // White space: up to its last line break, or all of it at the end of the text; otherwise the last space belongs to
    // the next word.
    let spaces = run(0, is_space);
    match text[..spaces].iter().rposition(|b| matches!(b, b'\r' | b'\n')) {
        Some(last) => last + 1,
        None if spaces == text.len() || spaces == 1 => spaces,
        None => spaces - 1,
    }
}

/// Returns the end of a word including a contraction such as `'re`.
fn contracted(text: &[u8], end: usize) -> usize {
    let Some((b'\'', after)) = text[end..].split_first() else { return end };
    let has = |ending: &[u8]| after.get(..ending.len()).is_some_and(|there| there.eq_ignore_ascii_case(ending));
    let endings: [&[u8]; 7] = [b"s", b"t", b"re", b"ve", b"m", b"ll", b"d"];
    endings.into_iter().find(|ending| has(ending)).map_or(end, |ending| end + 1 + ending.len())
}

fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_texts_have_known_counts() {
        for (text, tokens) in [("", 0), ("hello world", 2), ("fn main() {}", 4), ("tokens, tokens and tokens", 5)] {
            assert_eq!(count(text), tokens, "{text}");
        }
        let text = include_str!("count.rs");
        for _ in 0..2 {
            assert_eq!(count(text), bpe_openai::o200k_base().count(text), "whether its words are known or not");
        }
        assert_eq!(count_within("tokens, tokens and tokens", 5), Some(5));
        assert_eq!(count_within("tokens, tokens and tokens", 4), None);
        assert_eq!(count_within(&"word ".repeat(100_000), 10), None);
    }

    #[test]
    fn short_numbers_are_one_token() {
        let numbers = (0..1_000).flat_map(|n| [format!("{n}"), format!("{n:02}"), format!("{n:03}")]);
        numbers.for_each(|number| assert_eq!(bpe_openai::o200k_base().bpe.count(number.as_bytes()), 1, "{number}"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn words_are_split_like_the_encoding(
            parts in prop::collection::vec(prop_oneof![
                "[ -~\\t\\r\\n\\x0b\\x0c\\x00\\x1c]{0,6}",
                "[A-Z]{0,3}[a-z]{0,4}'(s|S|t|re|Ve|m|ll|LL|d|x)?",
                "[ \\r\\n\\t]{0,5}[/.]{0,3}[\\r\\n/]{0,3}",
                "[0-9]{1,7}",
                "[0-9a-f]{8}-[0-9a-f]{4}",
            ], 0..8),
        ) {
            let text = parts.concat();
            let given: Vec<&str> = bpe_openai::o200k_base().split(&text).collect();
            prop_assert_eq!(Words(&text).collect::<Vec<_>>(), given);
            prop_assert_eq!(count(&text), bpe_openai::o200k_base().count(&*text));
        }
    }
}
