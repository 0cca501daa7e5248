//! Plain BM25 over whole texts, the reference of every method.

use lukasa_search::pipeline::fuse::best;
use lukasa_search::question;
use lukasa_search::text::{Doc, DocumentBatch, Scoring, TextField, TextIndex};

/// Texts by number.
#[derive(Clone, Default)]
pub struct PlainBm25 {
    index: TextIndex,
}

impl PlainBm25 {
    pub fn new<'t>(texts: impl Iterator<Item = (Doc, &'t str)>) -> PlainBm25 {
        PlainBm25::default().with(&[], texts)
    }

    /// Without some, and with others that may replace those of the same number.
    #[must_use]
    pub fn with<'t>(&self, gone: &[Doc], texts: impl Iterator<Item = (Doc, &'t str)>) -> PlainBm25 {
        let mut gathered = DocumentBatch::default();
        for (doc, text) in texts {
            gathered.begin(doc);
            gathered.add(TextField::Body, text);
        }
        PlainBm25 { index: self.index.with(gone, vec![gathered]) }
    }

    /// All that have a word of the question, best first.
    pub fn rank(&self, question: &str) -> Vec<(Doc, f64)> {
        let found = self.index.scores(&question::terms(question), &Scoring::plain(TextField::Body));
        best(found.into_iter().map(|(doc, score)| (doc, f64::from(score))).collect(), usize::MAX, |doc| {
            u64::from(doc.0)
        })
    }
}
