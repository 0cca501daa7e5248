//! How many tokens a text costs a language model.

use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// Words remembered by each thread.
const WORDS: usize = 8_192;
/// Longer ones are not worth remembering.
const LONGEST: usize = 24;

thread_local! {
    /// Texts that are counted are made of the same words again and again.
    static KNOWN: RefCell<FxHashMap<Box<str>, u32>> = RefCell::default();
}

/// Tokens of a text, by the encoding that current models of the most used family have (`o200k_base`).
pub fn count(text: &str) -> usize {
    let tokenizer = bpe_openai::o200k_base();
    let of = |word: &str| tokenizer.bpe.count(word.as_bytes());
    KNOWN.with_borrow_mut(|known| {
        let words = tokenizer.split(text).map(|word| match word.len() {
            1 => 1,
            2..=LONGEST => match known.get(word) {
                Some(tokens) => *tokens as usize,
                None => {
                    let tokens = of(word);
                    if known.len() == WORDS {
                        known.clear();
                    }
                    known.insert(word.into(), tokens as u32);
                    tokens
                }
            },
            _ => of(word),
        });
        words.sum()
    })
}

/// Tokens of a text, or none if there are more than `most`.
pub fn count_within(text: &str, most: usize) -> Option<usize> {
    // Text has about four bytes a token; one of forty times that is not worth counting.
    if text.len() > most.saturating_mul(160) {
        return None;
    }
    Some(count(text)).filter(|count| *count <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
