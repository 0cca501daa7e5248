//! An immutable part of a text index: documents by word, and words by document.

use super::{Doc, FIELDS, FieldCounts, TextField};
use crate::tokens::{prose, tokens};
use rustc_hash::FxHashMap;

/// A document that contains a word, and its counts by field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posting {
    /// Index of the document in its segment.
    pub at: u32,
    pub counts: FieldCounts,
}

/// Documents with their words, in both directions.
pub(crate) struct TextSegment {
    /// Sorted.
    docs: Vec<Doc>,
    lengths: Vec<[u32; FIELDS]>,
    /// For each document, the end of its words in `words`.
    ends: Vec<u32>,
    words: Vec<(u32, FieldCounts)>,
    dictionary: FxHashMap<Box<str>, u32>,
    texts: Vec<Box<str>>,
    /// For each word, the end of its documents in `postings`.
    posting_ends: Vec<u32>,
    postings: Vec<Posting>,
    /// For each word, bounds over its documents: the highest count in each field, and the least length of a field that
    /// has it.
    bounds: Vec<(FieldCounts, [u32; FIELDS])>,
    bytes: usize,
}

/// Converts a number of documents, words or bytes of a segment. They are limited to 32 bits, to save memory.
pub(super) fn index_u32(index: usize) -> u32 {
    u32::try_from(index).expect("a segment has fewer than 2^32 documents, words and bytes")
}

impl TextSegment {
    /// Builds a segment from gathered documents; no document may occur twice.
    pub fn new(gathered: Vec<DocumentBatch>) -> TextSegment {
        let mut dictionary: FxHashMap<Box<str>, u32> = FxHashMap::default();
        let mut numbers = Vec::with_capacity(gathered.len());
        for part in &gathered {
            let mut own = Vec::with_capacity(part.texts.len());
            for text in &part.texts {
                let next = index_u32(dictionary.len());
                own.push(match dictionary.get(text) {
                    Some(number) => *number,
                    None => *dictionary.entry(text.clone()).or_insert(next),
                });
            }
            numbers.push(own);
        }
        let mut order: Vec<(Doc, u32, u32)> = Vec::new();
        for (p, part) in gathered.iter().enumerate() {
            order.extend(part.docs.iter().enumerate().map(|(d, doc)| (doc.doc, index_u32(p), index_u32(d))));
        }
        order.sort_unstable();
        let total: usize = gathered.iter().map(|part| part.words.len()).sum();
        let mut segment = TextSegment {
            docs: Vec::with_capacity(order.len()),
            lengths: Vec::with_capacity(order.len()),
            ends: Vec::with_capacity(order.len()),
            words: Vec::with_capacity(total),
            texts: vec![Box::default(); dictionary.len()],
            posting_ends: vec![0; dictionary.len()],
            postings: vec![Posting { at: 0, counts: [0; FIELDS] }; total],
            bounds: vec![([0; FIELDS], [u32::MAX; FIELDS]); dictionary.len()],
            dictionary,
            bytes: 0,
        };
        for (doc, p, d) in order {
            let part = &gathered[p as usize];
            let gathered = &part.docs[d as usize];
            let words = &part.words[gathered.from as usize..gathered.to as usize];
            segment.docs.push(doc);
            segment.lengths.push(gathered.lengths);
            segment.words.extend(words.iter().map(|(word, counts)| (numbers[p as usize][*word as usize], *counts)));
            segment.ends.push(index_u32(segment.words.len()));
        }
        segment.turn();
        for (text, number) in &segment.dictionary {
            segment.texts[*number as usize] = text.clone();
        }
        segment.bytes = segment.count_bytes();
        segment
    }

    /// Builds a segment from documents, their words and the dictionary; `None` if a word occurs twice in it.
    pub fn of_rows(
        docs: Vec<Doc>,
        lengths: Vec<[u32; FIELDS]>,
        ends: Vec<u32>,
        words: Vec<(u32, FieldCounts)>,
        texts: Vec<Box<str>>,
    ) -> Option<TextSegment> {
        let mut dictionary: FxHashMap<Box<str>, u32> = FxHashMap::default();
        dictionary.reserve(texts.len());
        dictionary.extend(texts.iter().zip(0..).map(|(text, number)| (text.clone(), number)));
        if dictionary.len() != texts.len() {
            return None;
        }
        let mut segment = TextSegment {
            posting_ends: vec![0; texts.len()],
            postings: vec![Posting { at: 0, counts: [0; FIELDS] }; words.len()],
            bounds: vec![([0; FIELDS], [u32::MAX; FIELDS]); texts.len()],
            docs,
            lengths,
            ends,
            words,
            dictionary,
            texts,
            bytes: 0,
        };
        segment.turn();
        segment.bytes = segment.count_bytes();
        Some(segment)
    }

    /// Computes the postings and bounds from the words of documents.
    fn turn(&mut self) {
        for (word, _) in &self.words {
            self.posting_ends[*word as usize] += 1;
        }
        let mut sum = 0;
        for end in &mut self.posting_ends {
            let count = *end;
            *end = sum;
            sum += count;
        }
        // Each end serves as the index of the next posting until all are in place.
        for at in 0..self.docs.len() {
            for i in self.stretch(at) {
                let (word, counts) = self.words[i];
                let place = &mut self.posting_ends[word as usize];
                self.postings[*place as usize] = Posting { at: index_u32(at), counts };
                *place += 1;
                let (most, least) = &mut self.bounds[word as usize];
                for field in (0..FIELDS).filter(|field| counts[*field] > 0) {
                    most[field] = most[field].max(counts[field]);
                    least[field] = least[field].min(self.lengths[at][field]);
                }
            }
        }
    }

    fn stretch(&self, at: usize) -> std::ops::Range<usize> {
        let from = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        from..self.ends[at] as usize
    }

    pub fn len(&self) -> usize {
        self.docs.len()
    }

    pub fn doc(&self, at: u32) -> Doc {
        self.docs[at as usize]
    }

    pub fn find(&self, doc: Doc) -> Option<u32> {
        self.docs.binary_search(&doc).ok().map(index_u32)
    }

    pub fn lengths(&self, at: u32) -> &[u32; FIELDS] {
        &self.lengths[at as usize]
    }

    pub fn word(&self, text: &str) -> Option<u32> {
        self.dictionary.get(text).copied()
    }

    pub fn text(&self, word: u32) -> &str {
        &self.texts[word as usize]
    }

    pub fn postings(&self, word: u32) -> &[Posting] {
        let from = if word == 0 { 0 } else { self.posting_ends[word as usize - 1] };
        &self.postings[from as usize..self.posting_ends[word as usize] as usize]
    }

    /// Bounds over all documents with the word: its highest count in each field, and the least length of a field that
    /// has it.
    pub fn bounds(&self, word: u32) -> &(FieldCounts, [u32; FIELDS]) {
        &self.bounds[word as usize]
    }

    /// The texts of all words, by number.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }

    /// The words of all documents, one document after another.
    pub fn all_words(&self) -> &[(u32, FieldCounts)] {
        &self.words
    }

    pub fn words(&self, at: u32) -> &[(u32, FieldCounts)] {
        &self.words[self.stretch(at as usize)]
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn count_bytes(&self) -> usize {
        let texts: usize = self.texts.iter().map(|text| text.len() * 2).sum();
        texts
            + self.texts.len() * (16 + 24 + 4 + size_of::<(FieldCounts, [u32; FIELDS])>())
            + self.docs.len() * (4 + 4 * FIELDS + 4)
            + self.words.len() * size_of::<(u32, FieldCounts)>()
            + self.postings.len() * size_of::<Posting>()
    }
}

/// Documents to be added to an index, with words numbered in order of occurrence.
#[derive(Default)]
pub struct DocumentBatch {
    /// Whether the texts are prose and not source code.
    is_prose: bool,
    dictionary: FxHashMap<Box<str>, u32>,
    texts: Vec<Box<str>>,
    docs: Vec<GatheredDoc>,
    words: Vec<(u32, FieldCounts)>,
    /// For each word, one more than the index in `words` of its last entry.
    last: Vec<u32>,
}

struct GatheredDoc {
    doc: Doc,
    from: u32,
    to: u32,
    lengths: [u32; FIELDS],
}

impl DocumentBatch {
    /// Creates a collection for prose.
    pub fn prose() -> DocumentBatch {
        DocumentBatch { is_prose: true, ..DocumentBatch::default() }
    }

    /// Begins a document; texts added next belong to it.
    pub fn begin(&mut self, doc: Doc) {
        let from = index_u32(self.words.len());
        self.docs.push(GatheredDoc { doc, from, to: from, lengths: [0; FIELDS] });
    }

    /// Adds a text to a field of the document begun last.
    pub fn add(&mut self, field: TextField, text: &str) {
        // Moved out, to borrow both mutably.
        let is_prose = self.is_prose;
        let mut own = std::mem::take(self);
        let mut length = 0;
        let each = |word: &str| {
            length += 1;
            let mut counts = [0; FIELDS];
            counts[field as usize] = 1;
            own.count(word, counts);
        };
        if is_prose {
            prose(text, each)
        } else {
            tokens(text, each)
        }
        if let Some(doc) = own.docs.last_mut() {
            doc.lengths[field as usize] += length;
        }
        *self = DocumentBatch { is_prose, ..own };
    }

    /// Adds a value that is matched as a whole, such as a title key.
    pub fn add_word(&mut self, field: TextField, word: &str) {
        let mut counts = [0; FIELDS];
        counts[field as usize] = 1;
        self.count(word, counts);
        if let Some(doc) = self.docs.last_mut() {
            doc.lengths[field as usize] += 1;
        }
    }

    /// Adds a word with known counts.
    pub(crate) fn count(&mut self, word: &str, counts: FieldCounts) {
        let number = match self.dictionary.get(word) {
            Some(number) => *number,
            None => {
                let number = index_u32(self.texts.len());
                self.dictionary.insert(word.into(), number);
                self.texts.push(word.into());
                self.last.push(0);
                number
            }
        };
        let Some(doc) = self.docs.last_mut() else { return };
        let last = &mut self.last[number as usize];
        if *last > doc.from {
            let there = &mut self.words[*last as usize - 1].1;
            for (there, more) in there.iter_mut().zip(counts) {
                *there = there.saturating_add(more);
            }
        } else {
            self.words.push((number, counts));
            *last = index_u32(self.words.len());
            doc.to = *last;
        }
    }

    pub(crate) fn set_lengths(&mut self, lengths: [u32; FIELDS]) {
        if let Some(doc) = self.docs.last_mut() {
            doc.lengths = lengths;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.docs.is_empty()
    }

    pub fn len(&self) -> usize {
        self.docs.len()
    }
}
