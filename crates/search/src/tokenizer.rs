//! The byte-pair encoding `o200k_base`: how many tokens a word has, and where words end.
//!
//! Its vocabulary is part of the program (`models/o200k_base/tokens.bin`), as a hash table that is used as it is, so that
//! a new process counts its first token without reading a dictionary.

use regex::Regex;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::LazyLock;

/// The vocabulary, as [`Vocabulary::read`] describes it. `tests::the_file_has_the_tokens_of_the_encoding` makes it.
static TOKENS: &[u8] = include_bytes!("../../../models/o200k_base/tokens.bin");

/// The tokens of an encoding. The lower the rank of a token, the earlier its two parts are merged.
struct Vocabulary {
    /// Where the bytes of each token start, by rank, and where the last one ends.
    starts: &'static [u8],
    /// Ranks plus one by the hash of the token's bytes; 0 is an empty slot. Collisions are in the next slots.
    slots: &'static [u8],
    bytes: &'static [u8],
}

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| Vocabulary::read(TOKENS));

/// Size of each number in the file.
const NUMBER: usize = 4;

impl Vocabulary {
    /// Reads a file: the numbers of tokens and of slots, starts, slots, bytes. Numbers have four bytes, little-endian; the
    /// number of slots is a power of two.
    fn read(file: &'static [u8]) -> Vocabulary {
        let (tokens, slots) = (number(file, 0) as usize, number(file, 1) as usize);
        let (starts, rest) = file[2 * NUMBER..].split_at((tokens + 1) * NUMBER);
        let (slots, bytes) = rest.split_at(slots * NUMBER);
        Vocabulary { starts, slots, bytes }
    }

    fn token(&self, rank: u32) -> &'static [u8] {
        let at = rank as usize;
        &self.bytes[number(self.starts, at) as usize..number(self.starts, at + 1) as usize]
    }

    /// The rank of a token; `None` if these bytes are not one token.
    fn rank(&self, bytes: &[u8]) -> Option<u32> {
        let mask = self.slots.len() / NUMBER - 1;
        let mut slot = hash(bytes) & mask;
        loop {
            let rank = number(self.slots, slot).checked_sub(1)?;
            if self.token(rank) == bytes {
                return Some(rank);
            }
            slot = (slot + 1) & mask;
        }
    }
}

/// The number at an index of a list of numbers.
fn number(list: &[u8], at: usize) -> u32 {
    let bytes = &list[at * NUMBER..][..NUMBER];
    u32::from_le_bytes(bytes.try_into().expect("a number has four bytes"))
}

/// FNV-1a; the file depends on it. The upper half is the better one.
fn hash(bytes: &[u8]) -> usize {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    usize::try_from(hash >> 32).expect("32 bits fit")
}

/// Counts the tokens of a word, which is a piece of text as [`split`] returns it.
pub(crate) fn count(word: &[u8]) -> usize {
    let vocabulary = &*VOCABULARY;
    if vocabulary.rank(word).is_some() {
        return 1;
    }
    Merging::new(vocabulary, word).run()
}

/// A word that is being merged. At first each byte is a part; of all neighbours that are a token together, those with the
/// lowest rank are merged, the leftmost first, until there are none.
struct Merging<'w> {
    vocabulary: &'static Vocabulary,
    word: &'w [u8],
    /// The end of the part that starts at an index; 0 where no part starts.
    ends: Vec<usize>,
    /// The start of the part before the one that starts at an index.
    before: Vec<usize>,
    /// Neighbours that are a token together: rank, start, middle, end. Some are outdated.
    pairs: BinaryHeap<Reverse<(u32, usize, usize, usize)>>,
}

impl<'w> Merging<'w> {
    fn new(vocabulary: &'static Vocabulary, word: &'w [u8]) -> Merging<'w> {
        let ends = (1..=word.len()).collect();
        let before = (0..word.len()).map(|at| at.saturating_sub(1)).collect();
        let mut merging = Merging { vocabulary, word, ends, before, pairs: BinaryHeap::new() };
        (0..word.len()).for_each(|at| merging.add_pair(at));
        merging
    }

    /// Notes the part that starts here and its right neighbour, if they are a token together.
    fn add_pair(&mut self, start: usize) {
        let middle = self.ends[start];
        let Some(end) = self.ends.get(middle).copied() else { return };
        if let Some(rank) = self.vocabulary.rank(&self.word[start..end]) {
            self.pairs.push(Reverse((rank, start, middle, end)));
        }
    }

    fn run(mut self) -> usize {
        let mut parts = self.word.len();
        while let Some(Reverse((_, start, middle, end))) = self.pairs.pop() {
            if self.ends[start] != middle || self.ends[middle] != end {
                continue;
            }
            self.ends[start] = end;
            self.ends[middle] = 0;
            parts -= 1;
            if let Some(before) = self.before.get_mut(end) {
                *before = start;
            }
            self.add_pair(start);
            if start > 0 {
                self.add_pair(self.before[start]);
            }
        }
        parts
    }
}

/// The words of the encoding. The last pattern of the encoding is `\s+(?!\S)|\s+`; what it looks ahead for is done in
/// [`split`].
static WORDS: LazyLock<Regex> = LazyLock::new(|| {
    let contraction = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";
    let (upper, lower) = (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]");
    let pattern = [
        format!(r"[^\r\n\p{{L}}\p{{N}}]?{upper}*{lower}+{contraction}"),
        format!(r"[^\r\n\p{{L}}\p{{N}}]?{upper}+{lower}*{contraction}"),
        r"\p{N}{1,3}".into(),
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*".into(),
        r"\s*[\r\n]+".into(),
        r"\s+".into(),
    ];
    Regex::new(&pattern.join("|")).expect("the pattern is correct")
});

/// Splits a text into words, whose tokens are counted one by one.
pub(crate) fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let found = WORDS.find_at(text, from)?;
        let mut word = found.as_str();
        // The last of several spaces belongs to the word behind them.
        let is_space = !word.ends_with(['\r', '\n']) && word.chars().all(char::is_whitespace);
        if is_space && found.end() < text.len() {
            let last = word.char_indices().next_back().map_or(0, |(at, _)| at);
            word = if last == 0 { word } else { &word[..last] };
        }
        from = found.start() + word.len();
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    /// The file, made from the vocabulary of another implementation.
    fn file() -> Vec<u8> {
        let encoding = &bpe_openai::o200k_base().bpe;
        let tokens: Vec<&[u8]> =
            (0..u32::try_from(encoding.num_tokens()).unwrap()).map(|n| encoding.token_bytes(n)).collect();
        let slots = (tokens.len() * 2).next_power_of_two();
        let mut table = vec![0_u32; slots];
        for (rank, token) in tokens.iter().enumerate() {
            let mut slot = hash(token) & (slots - 1);
            while table[slot] != 0 {
                slot = (slot + 1) & (slots - 1);
            }
            table[slot] = u32::try_from(rank + 1).unwrap();
        }
        let mut starts = vec![0];
        starts.extend(tokens.iter().scan(0, |end, token| {
            *end += u32::try_from(token.len()).unwrap();
            Some(*end)
        }));
        let counts = [tokens.len(), slots].map(|n| u32::try_from(n).unwrap());
        let numbers = counts.into_iter().chain(starts).chain(table);
        numbers.flat_map(u32::to_le_bytes).chain(tokens.concat()).collect()
    }

    #[test]
    fn the_file_has_the_tokens_of_the_encoding() {
        let file = file();
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/o200k_base/tokens.bin");
            std::fs::write(path, &file).unwrap();
        }
        assert!(TOKENS == file, "run this test with UPDATE_EXPECT=1, then again");
    }

    #[test]
    fn long_words_are_counted_in_reasonable_time() {
        for word in ["a".repeat(100_000), "ab".repeat(50_000), "=-".repeat(50_000)] {
            assert_eq!(count(word.as_bytes()), bpe_openai::o200k_base().bpe.count(word.as_bytes()));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn words_and_counts_are_those_of_the_encoding(
            text in prop::collection::vec(prop_oneof![
                "[a-zA-Z]{1,12}", "\\PC{0,8}", "[ \\t\\r\\n\\u{a0}\\u{2003}\\u{3000}]{0,5}", "[äöüßéèñçЖдяλπ中文字日本語한국어]{1,6}",
                "[0-9²¼٣]{1,5}", "[{}()\\[\\];:.,=+*/<>!?&|^%$#@~`'\"-]{1,6}", "[\\u{300}-\\u{310}]{1,3}", "[🎉🙂👩🏽‍🚀]{1,3}",
                "[a-z]{0,3}'(s|S|t|re|Ve|m|ll|LL|d|x)",
            ], 0..10),
        ) {
            let text = text.concat();
            let encoding = bpe_openai::o200k_base();
            prop_assert_eq!(split(&text).collect::<Vec<_>>(), encoding.split(&text).collect::<Vec<_>>());
            for word in split(&text) {
                prop_assert_eq!(count(word.as_bytes()), encoding.bpe.count(word.as_bytes()), "{}", word);
            }
        }
    }
}
