//! Tests the index against a naive implementation, over random histories.

use super::*;
use crate::tokens;
use lukasa_graph::Node;
use proptest::prelude::*;
use std::collections::BTreeMap;

type Texts = BTreeMap<Doc, [String; FIELDS]>;

const ALL: [TextField; FIELDS] = [TextField::Name, TextField::Path, TextField::Text, TextField::Body];

fn gathered(texts: &Texts) -> DocumentBatch {
    let mut gathered = DocumentBatch::default();
    for (doc, fields) in texts {
        gathered.begin(*doc);
        for (field, text) in ALL.iter().zip(fields) {
            gathered.add(*field, text);
        }
    }
    gathered
}

/// Scores by the formula, document by document and word by word.
fn naive(texts: &Texts, terms: &[Term], scoring: &Scoring) -> Vec<(Doc, f32)> {
    let count = |text: &str, word: &str| tokens::list(text).iter().filter(|w| *w == word).count();
    let length = |text: &str| tokens::list(text).len() as f64;
    let mean = |f: usize| texts.values().map(|t| length(&t[f])).sum::<f64>() / texts.len() as f64;
    let mut all = vec![];
    for (doc, fields) in texts {
        let mut sum = 0.0;
        for term in terms {
            let having = texts.values().filter(|t| t.iter().any(|text| count(text, &term.word) > 0)).count() as f64;
            let mut often = 0.0;
            for (f, text) in fields.iter().enumerate() {
                let n = count(text, &term.word) as f64;
                if n > 0.0 {
                    let b = f64::from(scoring.b[f]);
                    often += f64::from(scoring.boosts[f]) * n / (1.0 - b + b * length(text) / mean(f));
                }
            }
            if often > 0.0 {
                let k1 = f64::from(scoring.k1);
                let idf = (1.0 + (texts.len() as f64 - having + 0.5) / (having + 0.5)).ln();
                sum += idf * f64::from(term.weight) * (f64::from(scoring.delta) + often * (k1 + 1.0) / (k1 + often));
            }
        }
        if sum > 0.0 {
            all.push((*doc, sum as f32));
        }
    }
    all
}

fn terms(text: &str) -> Vec<Term> {
    let mut words = tokens::list(text);
    words.sort();
    words.dedup();
    words.into_iter().enumerate().map(|(i, word)| Term { word, weight: 1.0 + i as f32 / 4.0 }).collect()
}

fn same(a: &[(Doc, f32)], b: &[(Doc, f32)]) {
    assert_eq!(a.iter().map(|x| x.0).collect::<Vec<_>>(), b.iter().map(|x| x.0).collect::<Vec<_>>());
    for (x, y) in a.iter().zip(b) {
        assert!((x.1 - y.1).abs() <= 1e-4 * y.1.abs().max(1.0), "{x:?} {y:?}");
    }
}

fn text() -> impl Strategy<Value = String> {
    let word =
        prop::sample::select(vec!["open", "fileReader", "close", "read_all", "cache", "a", "tree", "HTTPServer"]);
    prop::collection::vec(word, 0..6).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn an_updated_index_scores_like_a_new_one_and_like_the_formula(
        history in prop::collection::vec(prop::collection::vec(((0u32..12).prop_map(Node), prop::option::of([text(), text(), text(), text()])), 0..5), 1..12),
        question in text(),
    ) {
        let scoring = Scoring::default();
        let terms = terms(&question);
        let mut there = Texts::new();
        let mut index = TextIndex::default();
        for commit in history {
            let mut now = Texts::new();
            let mut gone = vec![];
            for (doc, texts) in commit {
                match texts {
                    Some(texts) => { now.insert(doc, texts); }
                    None => { now.remove(&doc); gone.push(doc); }
                }
            }
            gone.retain(|doc| !now.contains_key(doc));
            gone.iter().for_each(|doc| { there.remove(doc); });
            index = index.with(&gone, vec![gathered(&now)]);
            there.extend(now);
            let fresh = TextIndex::build(vec![gathered(&there)]);
            prop_assert_eq!(index.len(), there.len());
            prop_assert_eq!(index.lengths, fresh.lengths);
            let found = index.scores(&terms, &scoring);
            prop_assert_eq!(&found, &fresh.scores(&terms, &scoring), "to the last bit");
            same(&found, &naive(&there, &terms, &scoring));
            let mut bytes = vec![];
            index.write_to(&mut bytes);
            let mut rest = bytes.as_slice();
            let again = TextIndex::read_from(&mut rest).unwrap();
            prop_assert!(rest.is_empty());
            prop_assert_eq!((again.len(), again.lengths), (index.len(), index.lengths));
            prop_assert_eq!(&again.scores(&terms, &scoring), &found, "after it was written and read");
            prop_assert!(TextIndex::read_from(&mut &bytes[..bytes.len() - 1]).is_none(), "cut short");
            for (doc, score) in &found {
                let parts = index.explain(*doc, &terms, &scoring);
                let sum: f32 = parts.iter().map(|(_, part)| part).sum();
                prop_assert!((sum - score).abs() < 1e-5 * score.max(1.0));
            }
        }
    }
}

#[test]
fn parts_are_merged() {
    let mut index = TextIndex::default();
    let all: Vec<Doc> = (0..2_000).map(Node).collect();
    for doc in &all {
        let texts = Texts::from([(*doc, ["name".into(), String::new(), format!("text {}", doc.0), String::new()])]);
        index = index.with(&[], vec![gathered(&texts)]);
    }
    assert_eq!(index.len(), 2_000);
    assert!(index.parts.len() <= 8, "{}", index.parts.len());
    assert!(index.with(&all, vec![]).is_empty());
}

#[test]
fn an_empty_index_finds_nothing() {
    let index = TextIndex::default();
    assert!(index.scores(&terms("open"), &Scoring::default()).is_empty());
    assert_eq!(index.rarity("open"), 0.0);
    assert!(index.words(Node(3)).is_empty());
}

#[test]
fn several_scorings_at_once_equal_each_alone() {
    let mut gathered = DocumentBatch::default();
    for (doc, name, body) in
        [(1, "read file", "open the path"), (2, "close", "read it again"), (3, "read", "read read")]
    {
        gathered.begin(Node(doc));
        gathered.add(TextField::Name, name);
        gathered.add(TextField::Body, body);
    }
    let index = TextIndex::build(vec![gathered]);
    let terms = [Term { word: "read".into(), weight: 1.0 }, Term { word: "path".into(), weight: 0.5 }];
    let (by_body, by_all) = (Scoring::plain(TextField::Body), Scoring::default());
    let both = index.best_by(&terms, [&by_body, &by_all], 9);
    for (own, scoring) in both.iter().zip([&by_body, &by_all]) {
        assert_eq!(*own, index.scores(&terms, scoring));
    }
    assert_eq!(both.map(|found| found.len()), [3, 3]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_best_are_those_of_all(
        // Words of decreasing frequency: 0 in nearly every document, 9 in very few.
        docs in prop::collection::vec(prop::collection::vec((0u32..100).prop_map(|n| 9 - n.isqrt().min(9)), 1..12), 1..240),
        gone in prop::collection::vec((0u32..240).prop_map(Node), 0..20),
        asked in prop::collection::vec(0u32..10, 1..8),
        most in 1usize..12,
    ) {
        let mut gathered = [DocumentBatch::default(), DocumentBatch::default()];
        for (doc, words) in docs.iter().enumerate() {
            let into = &mut gathered[usize::from(doc % 7 == 0)];
            into.begin(Node::at(doc));
            for (at, word) in words.iter().enumerate() {
                into.add_word(if at == 0 { TextField::Name } else { TextField::Body }, &format!("w{word}"));
            }
        }
        let [first, second] = gathered;
        let index = TextIndex::build(vec![first]).with(&[], vec![second]).with(&gone, vec![]);
        let mut terms: Vec<Term> =
            asked.iter().map(|word| Term { word: format!("w{word}"), weight: 1.0 + *word as f32 / 10.0 }).collect();
        terms.dedup_by(|a, b| a.word == b.word);
        let scorings = [&Scoring::plain(TextField::Body), &Scoring::default()];
        let best = index.best_by(&terms, scorings, most);
        for (found, scoring) in best.iter().zip(scorings) {
            let mut all = index.scores(&terms, scoring);
            let mut scores: Vec<f32> = all.iter().map(|(_, score)| *score).collect();
            scores.sort_by(|a, b| b.total_cmp(a));
            let last = scores.get(most - 1).copied().unwrap_or(0.0);
            all.retain(|(_, score)| *score >= last);
            prop_assert_eq!(found, &all);
        }
    }
}
