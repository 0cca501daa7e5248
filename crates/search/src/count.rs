//! How many tokens a text costs a language model.

/// Tokens of a text, by the encoding that current models of the most used family have (`o200k_base`).
pub fn count(text: &str) -> usize {
    bpe_openai::o200k_base().count(text)
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
        assert_eq!(count_within("tokens, tokens and tokens", 5), Some(5));
        assert_eq!(count_within("tokens, tokens and tokens", 4), None);
        assert_eq!(count_within(&"word ".repeat(100_000), 10), None);
    }
}
