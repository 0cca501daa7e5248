//! Texts as the model reads them: BERT's uncased word pieces, the same ids as the original tokenizer gives.

mod classes;

use rustc_hash::FxHashMap;
use unicode_normalization::char::decompose_canonical;

/// No word in the vocabulary comes near: a longer one is unknown, as in the original.
const LONGEST_WORD: usize = 100;

/// Written in a text, these mean the tokens themselves.
const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

pub struct Tokenizer {
    /// Pieces that begin a word.
    begins: FxHashMap<&'static str, u16>,
    /// Pieces that go on with one, without their `##`.
    continues: FxHashMap<&'static str, u16>,
    longest_piece: usize,
    unknown: u16,
    start: u16,
    end: u16,
}

impl Tokenizer {
    /// From a vocabulary of one piece a line. `None` if the pieces every text needs are missing or there are too many.
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

    /// At most `most` ids (two of them mark start and end), however long the text: what comes later is not looked at.
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
    /// What has been read of the word that is not over yet.
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

    /// Takes the longest piece that fits, again and again; a word with a part that no piece fits is unknown as a whole.
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

/// Chinese characters, which stand for themselves; Japanese kana and Korean are written in words.
fn is_ideograph(c: char) -> bool {
    matches!(c as u32,
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B81F | 0x2B920..=0x2CEAF
        | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}
