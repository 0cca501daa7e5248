//! BERT's uncased WordPiece tokenizer, with the same ids as the original.

mod classes;

use rustc_hash::FxHashMap;
use unicode_normalization::char::decompose_canonical;

/// Longest word in characters; longer ones are unknown, as in the original.
const LONGEST_WORD: usize = 100;

/// In a text, these stand for the special tokens themselves.
const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/// The vocabulary of the model, and the ids of its special tokens.
pub struct Tokenizer {
    /// Pieces that begin a word.
    begins: FxHashMap<&'static str, u16>,
    /// Pieces that continue a word, without their `##`.
    continues: FxHashMap<&'static str, u16>,
    longest_piece: usize,
    unknown: u16,
    start: u16,
    end: u16,
}

impl Tokenizer {
    /// Parses a vocabulary with one piece per line. `None` if required pieces are missing or there are too many.
    pub fn new(vocabulary: &'static str) -> Option<Tokenizer> {
        let mut begins = FxHashMap::default();
        let mut continues = FxHashMap::default();
        let mut longest_piece = 0;
        for (id, piece) in vocabulary.lines().enumerate() {
            let id = u16::try_from(id).ok()?;
            match piece.strip_prefix("##") {
                Some(rest) if !rest.is_empty() => continues.insert(rest, id),
                _ => begins.insert(piece, id),
            };
            longest_piece = longest_piece.max(piece.len());
        }
        let special = |piece: &str| begins.get(piece).copied();
        let (unknown, start, end) = (special("[UNK]")?, special("[CLS]")?, special("[SEP]")?);
        Some(Tokenizer { begins, continues, longest_piece, unknown, start, end })
    }

    /// Returns at most `most` ids, including the start and end markers. The rest of a longer text is not read.
    pub fn ids(&self, text: &str, most: usize) -> Vec<u16> {
        let mut reading = Reading { tokenizer: self, ids: vec![self.start], word: String::new(), most: most - 1 };
        let mut rest = text;
        while !reading.full()
            && let Some((before, special, after)) = next_special(rest)
        {
            reading.read(before);
            reading.ids.extend(self.begins.get(special));
            rest = after;
        }
        reading.read(rest);
        let mut ids = reading.ids;
        ids.truncate(most - 1);
        ids.push(self.end);
        ids
    }
}

fn next_special(text: &str) -> Option<(&str, &'static str, &str)> {
    text.match_indices('[').find_map(|(at, _)| {
        let special = SPECIAL.into_iter().find(|special| text[at..].starts_with(special))?;
        Some((&text[..at], special, &text[at + special.len()..]))
    })
}

struct Reading<'a> {
    tokenizer: &'a Tokenizer,
    ids: Vec<u16>,
    /// The part of the current word that has been read.
    word: String,
    most: usize,
}

impl Reading<'_> {
    fn full(&self) -> bool {
        self.ids.len() >= self.most
    }

    fn read(&mut self, text: &str) {
        for c in text.chars() {
            if self.full() {
                break;
            }
            match c {
                'a'..='z' | '0'..='9' => self.word.push(c),
                'A'..='Z' => self.word.push(c.to_ascii_lowercase()),
                _ => self.read_rare(c),
            }
        }
        self.end_word();
    }

    fn read_rare(&mut self, c: char) {
        if is_in(&classes::DROPPED, c) {
            return;
        }
        if c.is_whitespace() {
            return self.end_word();
        }
        let alone = is_ideograph(c);
        if alone {
            self.end_word();
        }
        decompose_canonical(c, |part| {
            if is_in(&classes::MARKS, part) {
                return;
            }
            for lower in part.to_lowercase() {
                if is_in(&classes::PUNCTUATION, lower) {
                    self.end_word();
                    self.word.push(lower);
                    self.end_word();
                } else {
                    self.word.push(lower);
                }
            }
        });
        if alone {
            self.end_word();
        }
    }

    /// Splits the word greedily into the longest matching pieces; if some part matches no piece, the whole word is
    /// unknown.
    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let tokenizer = self.tokenizer;
        let before = self.ids.len();
        let mut rest = self.word.as_str();
        if rest.chars().count() > LONGEST_WORD {
            rest = "";
            self.ids.push(tokenizer.unknown);
        }
        let mut pieces = &tokenizer.begins;
        while !rest.is_empty() {
            let mut end = rest.floor_char_boundary(tokenizer.longest_piece);
            let id = loop {
                if let Some(&id) = pieces.get(&rest[..end]) {
                    break Some(id);
                }
                match rest[..end].char_indices().next_back() {
                    Some((shorter, _)) if shorter > 0 => end = shorter,
                    _ => break None,
                }
            };
            let Some(id) = id else {
                self.ids.truncate(before);
                self.ids.push(tokenizer.unknown);
                break;
            };
            self.ids.push(id);
            rest = &rest[end..];
            pieces = &tokenizer.continues;
        }
        self.word.clear();
    }
}

fn is_in(ranges: &[(u32, u32)], c: char) -> bool {
    let c = c as u32;
    let place = ranges.partition_point(|&(_, last)| last < c);
    ranges.get(place).is_some_and(|&(first, _)| first <= c)
}

/// Whether a character is a Chinese ideograph, which is a token of its own. Japanese kana and Korean form words.
fn is_ideograph(c: char) -> bool {
    matches!(c as u32,
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B81F | 0x2B920..=0x2CEAF
        | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}
