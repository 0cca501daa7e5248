//! The text index of a view: BM25+ over fields, exact after every commit.
//!
//! Documents are kept in a few immutable parts of decreasing size. A commit adds a part and marks the documents it
//! replaces; small parts are merged as they accumulate. The counts behind scores exclude marked documents, so an index
//! that followed a hundred commits scores like a newly built one.

mod best;
mod bytes;
mod segment;

pub use segment::DocumentBatch;

use crate::recipes::ANY_FIELD;
use best::QueryWord;
use rustc_hash::{FxHashMap, FxHashSet};
use segment::{TextSegment, index_u32};
use std::sync::Arc;

/// A document: a node of the snapshot, or an index into what else is searched.
pub type Doc = lukasa_graph::Node;

/// The field of a document in which a word occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextField {
    /// Name or title.
    Name,
    /// Path or key.
    Path,
    /// Summary, description, declared text fields.
    Text,
    /// Source text.
    Body,
}

/// The number of fields.
pub const FIELDS: usize = 4;

/// How often a word occurs in each field, capped at 255.
pub(crate) type FieldCounts = [u8; FIELDS];

/// Parameters of the scoring.
#[derive(Clone, Debug, PartialEq)]
pub struct Scoring {
    /// How fast repetitions of a word saturate: the `k1` of BM25.
    pub k1: f32,
    /// Added for each word that occurs: the `delta` of BM25+.
    pub delta: f32,
    /// How much the length of each field counts.
    pub b: [f32; FIELDS],
    /// The weight of a word in each field; 0 ignores the field.
    pub boosts: [f32; FIELDS],
    /// Shorter fields are scored as if they had this length, so that very short texts do not rank first.
    pub shortest: u32,
}

impl Default for Scoring {
    fn default() -> Self {
        ANY_FIELD
    }
}

impl Scoring {
    /// Plain BM25 over one field, as a baseline.
    pub fn plain(field: TextField) -> Scoring {
        let mut boosts = [0.0; FIELDS];
        boosts[field as usize] = 1.0;
        Scoring { boosts, delta: 0.0, ..Scoring::default() }
    }
}

/// A word to search for, and its weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    pub word: String,
    pub weight: f32,
}

/// An immutable text index, cheap to clone.
#[derive(Clone, Default)]
pub struct TextIndex {
    parts: Vec<Part>,
    /// The number of live documents, and the sum of their lengths by field.
    docs: usize,
    lengths: [u64; FIELDS],
}

#[derive(Clone)]
struct Part {
    segment: Arc<TextSegment>,
    gone: Arc<Gone>,
}

/// The parts of a segment that are no longer live.
#[derive(Clone, Default)]
struct Gone {
    docs: FxHashSet<u32>,
    /// For each word, how many of its documents are removed.
    words: FxHashMap<u32, u32>,
}

/// A part is merged with the one before it unless that is more than this many times its size.
const JOIN: usize = 3;

impl TextIndex {
    /// Builds an index from gathered documents.
    pub fn build(gathered: Vec<DocumentBatch>) -> TextIndex {
        TextIndex::default().with(&[], gathered)
    }

    /// Returns the index after a commit: without the documents in `gone`, with the gathered ones, which may replace
    /// others.
    #[must_use]
    pub fn with(&self, gone: &[Doc], gathered: Vec<DocumentBatch>) -> TextIndex {
        let mut next = self.clone();
        gone.iter().for_each(|doc| next.remove(*doc));
        let segment = TextSegment::new(gathered);
        if segment.len() == 0 {
            return next;
        }
        for at in 0..index_u32(segment.len()) {
            next.remove(segment.doc(at));
        }
        next.add(segment);
        next.join();
        next
    }

    fn add(&mut self, segment: TextSegment) {
        for at in 0..index_u32(segment.len()) {
            self.docs += 1;
            for (sum, length) in self.lengths.iter_mut().zip(segment.lengths(at)) {
                *sum += u64::from(*length);
            }
        }
        self.parts.push(Part { segment: Arc::new(segment), gone: Arc::default() });
    }

    fn remove(&mut self, doc: Doc) {
        let found = self.parts.iter().position(|part| part.find(doc).is_some());
        let Some((part, at)) = found.and_then(|p| self.parts[p].find(doc).map(|at| (&mut self.parts[p], at))) else {
            return;
        };
        self.docs -= 1;
        for (sum, length) in self.lengths.iter_mut().zip(part.segment.lengths(at)) {
            *sum -= u64::from(*length);
        }
        let gone = Arc::make_mut(&mut part.gone);
        gone.docs.insert(at);
        for (word, _) in part.segment.words(at) {
            *gone.words.entry(*word).or_default() += 1;
        }
    }

    /// Merges parts that are too many or have too many removed documents.
    fn join(&mut self) {
        while let [.., before, last] = &self.parts[..]
            && before.segment.len() <= last.segment.len() * JOIN
        {
            let joined = joined(&[before.clone(), last.clone()]);
            self.parts.truncate(self.parts.len() - 2);
            self.parts.push(joined);
        }
        for part in &mut self.parts {
            if part.gone.docs.len() * 2 > part.segment.len() {
                *part = joined(std::slice::from_ref(part));
            }
        }
        self.parts.retain(|part| part.segment.len() > 0);
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.docs
    }

    pub fn is_empty(&self) -> bool {
        self.docs == 0
    }

    /// Whether the index contains a document.
    pub fn has(&self, doc: Doc) -> bool {
        self.parts.iter().any(|part| part.find(doc).is_some())
    }

    /// The number of documents that contain a word.
    pub fn frequency(&self, word: &str) -> usize {
        self.parts.iter().map(|part| part.frequency(word)).sum()
    }

    /// The documents that contain a word, in order.
    pub fn having(&self, word: &str) -> Vec<Doc> {
        let mut all = Vec::new();
        for part in &self.parts {
            let Some(word) = part.segment.word(word) else { continue };
            let there = part.segment.postings(word).iter().filter(|posting| !part.gone.docs.contains(&posting.at));
            all.extend(there.map(|posting| part.segment.doc(posting.at)));
        }
        all.sort_unstable();
        all
    }

    /// The inverse document frequency of a word.
    pub fn rarity(&self, word: &str) -> f32 {
        rarity(self.docs, self.frequency(word))
    }

    /// The words of a document, with their total counts.
    pub fn words(&self, doc: Doc) -> Vec<(&str, u32)> {
        let found = self.parts.iter().find_map(|part| Some((part, part.find(doc)?)));
        let Some((part, at)) = found else { return vec![] };
        let sum = |counts: &FieldCounts| counts.iter().map(|count| u32::from(*count)).sum();
        part.segment.words(at).iter().map(|(word, counts)| (part.segment.text(*word), sum(counts))).collect()
    }

    /// The total weight of the terms that a document contains.
    pub fn matched_weight(&self, doc: Doc, terms: &[Term]) -> f32 {
        let found = self.parts.iter().find_map(|part| Some((part, part.find(doc)?)));
        let Some((part, at)) = found else { return 0.0 };
        let own = part.segment.words(at);
        let has = |word: u32| own.iter().any(|(own, _)| *own == word);
        let contained = terms.iter().filter(|term| part.segment.word(&term.word).is_some_and(has));
        contained.map(|term| term.weight).sum()
    }

    /// Returns every document that contains one of the words, with its score, in document order.
    pub fn scores(&self, terms: &[Term], scoring: &Scoring) -> Vec<(Doc, f32)> {
        self.sums(terms, [scoring], usize::MAX).into_iter().map(|(doc, [score])| (doc, score)).collect()
    }

    /// Returns the best `most` documents for each of several scorings, in document order, including all that tie with
    /// the last.
    pub fn best_by<const N: usize>(
        &self,
        terms: &[Term],
        scorings: [&Scoring; N],
        most: usize,
    ) -> [Vec<(Doc, f32)>; N] {
        let all = self.sums(terms, scorings, most);
        std::array::from_fn(|way| {
            let floor = floor(all.iter().map(|(_, scores)| scores[way]), most);
            let is_best = |score: f32| score > 0.0 && score >= floor;
            all.iter().map(|(doc, scores)| (*doc, scores[way])).filter(|(_, score)| is_best(*score)).collect()
        })
    }

    /// Returns the documents that are among the best `most` for any of several scorings, with their scores for all of
    /// them, in document order.
    pub fn best_of_any<const N: usize>(
        &self,
        terms: &[Term],
        scorings: [&Scoring; N],
        most: usize,
    ) -> Vec<(Doc, [f32; N])> {
        let mut all = self.sums(terms, scorings, most);
        let floors: [f32; N] = std::array::from_fn(|way| floor(all.iter().map(|(_, scores)| scores[way]), most));
        all.retain(|(_, scores)| (0..N).any(|way| scores[way] > 0.0 && scores[way] >= floors[way]));
        all
    }

    /// The number of words in a field of a document; 0 if the document is not in the index.
    pub fn length(&self, doc: Doc, field: TextField) -> u32 {
        let found = self.parts.iter().find_map(|part| Some((part, part.find(doc)?)));
        found.map_or(0, |(part, at)| part.segment.lengths(at)[field as usize])
    }

    /// Sums the scores of words for each scoring, for all documents that may be among the best `most`, in document
    /// order.
    fn sums<const N: usize>(&self, terms: &[Term], scorings: [&Scoring; N], most: usize) -> Vec<(Doc, [f32; N])> {
        let norms = scorings.map(|scoring| self.norms(scoring));
        let mut wanted: Vec<QueryWord<'_>> = terms
            .iter()
            .map(|term| QueryWord { word: &term.word, rarity: self.rarity(&term.word) * term.weight })
            .filter(|wanted| wanted.rarity > 0.0)
            .collect();
        wanted.sort_by(|a, b| b.rarity.total_cmp(&a.rarity));
        let mut all = Vec::new();
        for part in &self.parts {
            // Replaced documents of a part must not count towards its best.
            let most = most.saturating_add(part.gone.docs.len());
            all.extend(best::sums(part, &wanted, &norms, most));
        }
        if self.parts.len() > 1 {
            all.sort_unstable_by_key(|(doc, _)| *doc);
        }
        all
    }

    /// Returns what each word adds to the score of one document, in the order of the words; zero contributions are
    /// omitted.
    pub fn explain(&self, doc: Doc, terms: &[Term], scoring: &Scoring) -> Vec<(String, f32)> {
        let Some((part, at)) = self.parts.iter().find_map(|part| Some((part, part.find(doc)?))) else { return vec![] };
        let norms = self.norms(scoring);
        let mut all = Vec::new();
        for term in terms {
            let Some(word) = part.segment.word(&term.word) else { continue };
            let Some((_, counts)) = part.segment.words(at).iter().find(|(own, _)| *own == word) else { continue };
            let score = norms.score(part.segment.lengths(at), counts) * self.rarity(&term.word) * term.weight;
            if score > 0.0 {
                all.push((term.word.clone(), score));
            }
        }
        all
    }

    /// The approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.segment.bytes() + part.gone.words.len() * 12).sum()
    }

    #[allow(clippy::cast_possible_truncation, reason = "scores are 32-bit floats")]
    fn norms(&self, scoring: &Scoring) -> Norms {
        let Scoring { k1, delta, b, boosts, shortest } = scoring;
        let mean = |sum: u64| ((sum as f64 / self.docs.max(1) as f64) as f32).max(f32::MIN_POSITIVE);
        let each = std::array::from_fn(|field| b[field] / mean(self.lengths[field]));
        let by = Lengths { fixed: b.map(|b| 1.0 - b), each, shortest: *shortest as f32 };
        Norms { k1: *k1, delta: *delta, boosts: *boosts, by }
    }
}

impl Part {
    /// The position of a live document.
    fn find(&self, doc: Doc) -> Option<u32> {
        self.segment.find(doc).filter(|at| !self.gone.docs.contains(at))
    }

    fn frequency(&self, word: &str) -> usize {
        let Some(word) = self.segment.word(word) else { return 0 };
        self.segment.postings(word).len() - self.gone.words.get(&word).copied().unwrap_or(0) as usize
    }
}

/// Merges the live documents of some parts into one part.
fn joined(parts: &[Part]) -> Part {
    let mut gathered = DocumentBatch::default();
    for part in parts {
        let there = (0..index_u32(part.segment.len())).filter(|at| !part.gone.docs.contains(at));
        for at in there {
            gathered.begin(part.segment.doc(at));
            for (word, counts) in part.segment.words(at) {
                gathered.count(part.segment.text(*word), *counts);
            }
            gathered.set_lengths(*part.segment.lengths(at));
        }
    }
    Part { segment: Arc::new(TextSegment::new(vec![gathered])), gone: Arc::default() }
}

/// Returns the score that `most` documents reach, 0 if fewer do. Scores are not negative, so their bits sort like them.
fn floor(scores: impl Iterator<Item = f32>, most: usize) -> f32 {
    let mut bits: Vec<u32> = scores.map(f32::to_bits).collect();
    if bits.len() <= most || most == 0 {
        return 0.0;
    }
    let place = bits.len() - most;
    f32::from_bits(*bits.select_nth_unstable(place).1)
}

/// The usual inverse document frequency, never below zero.
#[allow(clippy::cast_possible_truncation, reason = "scores are 32-bit floats")]
fn rarity(docs: usize, frequency: usize) -> f32 {
    if frequency == 0 {
        return 0.0;
    }
    let (docs, frequency) = (docs as f64, frequency as f64);
    (1.0 + (docs - frequency + 0.5) / (frequency + 0.5)).ln() as f32
}

/// How one scoring weighs the fields of a document.
struct Norms {
    k1: f32,
    delta: f32,
    boosts: [f32; FIELDS],
    by: Lengths,
}

/// How the lengths of fields count.
#[derive(PartialEq)]
struct Lengths {
    /// The constant part of a field's normalisation, and the part per word.
    fixed: [f32; FIELDS],
    each: [f32; FIELDS],
    shortest: f32,
}

impl Lengths {
    /// Counts of a word per field, normalised by length. All fields alike, so that the compiler can vectorise it.
    #[inline]
    fn shares(&self, lengths: &[u32; FIELDS], counts: &FieldCounts) -> [f32; FIELDS] {
        std::array::from_fn(|field| {
            // No text has 2^31 words, and signed integers are converted in one instruction.
            let length = (lengths[field].cast_signed() as f32).max(self.shortest);
            f32::from(counts[field]) / (self.fixed[field] + self.each[field] * length).max(f32::MIN_POSITIVE)
        })
    }
}

impl Norms {
    /// The score of a word in a document, without its rarity.
    #[inline]
    fn score(&self, lengths: &[u32; FIELDS], counts: &FieldCounts) -> f32 {
        self.score_of(&self.by.shares(lengths, counts))
    }

    #[inline]
    fn score_of(&self, shares: &[f32; FIELDS]) -> f32 {
        let often: f32 = self.boosts.iter().zip(shares).map(|(boost, share)| boost * share).sum();
        if often > 0.0 { self.delta + often * (self.k1 + 1.0) / (self.k1 + often) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests;
