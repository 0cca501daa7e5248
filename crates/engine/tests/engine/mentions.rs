//! Mentions of titles: recorded once, updated by difference, on every store.

use crate::test_engine::TestEngine;
use lukasa_model::ErrorCode;
use lukasa_search::recipes::RECALL;
use lukasa_search::titles;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn article(key: &str, title: &str, text: &str) -> Value {
    json!({"object": {"type": "Article", "key": key, "title": title, "properties": {"text": text}}})
}

/// Weight, confidence and names of every mention, by its ends.
fn mentions(test: &TestEngine) -> BTreeMap<(String, String), Value> {
    let query = "MATCH (a)-[m:MENTIONS]->(b) RETURN a.key, b.key, m.weight, m.confidence, m.derivation, m.names";
    let rows = test.ok("cypher", json!({"query": query, "limit": 10_000}))["rows"].clone();
    let text = |value: &Value| value.as_str().unwrap().to_string();
    rows.as_array().unwrap().iter().map(|r| ((text(&r[0]), text(&r[1])), json!([r[2], r[3], r[4], r[5]]))).collect()
}

#[test]
fn titles_in_texts_become_relationships() {
    for test in TestEngine::all() {
        test.ok(
            "batch",
            json!({"writes": [
                article("rome", "Rome", "A city. Rome is old; so is Carthage (see The Punic Wars)."),
                article("carthage", "Carthage", "Fought Rome."),
                article("wars", "The Punic Wars", "Between Rome and Carthage; rome in lower case is no name."),
                article("carthage2", "Carthage (Texas)", "Nothing of the kind."),
                json!({"object": {"type": "Note", "key": "n", "properties": {"name": "Note", "list": ["Punic Wars", {"deep": "Rome"}]}}}),
                json!({"object": {"type": "Function", "key": "a.py::f", "title": "f", "properties": {"doc": "Rome"}}}),
            ]}),
        );
        let out = test.ok("link_mentions", json!({}));
        assert_eq!(
            (&out["objects"], &out["mentions"], &out["added"], &out["removed"]),
            (&json!(5), &json!(9), &json!(9), &json!(0))
        );
        assert_eq!(out["tx"], 2);
        let found = mentions(&test);
        let of = |src: &str, dst: &str| found[&(src.to_string(), dst.to_string())].clone();
        // Three other texts mention Rome; Carthage is the title of two objects, and two others mention it.
        assert_eq!(of("n", "rome"), json!([1.0 / 3.0, 1.0, "title_mention", ["rome"]]));
        assert_eq!(of("rome", "carthage2"), json!([0.25, 0.5, "title_mention", ["carthage"]]));
        assert_eq!(of("n", "wars"), json!([1.0, 1.0, "title_mention", ["punic wars"]]));
        assert_eq!(of("rome", "wars"), json!([1.0, 1.0, "title_mention", ["the punic wars"]]));
        assert_eq!(found.len(), 9);
        assert!(found.keys().all(|(src, dst)| src != dst && src != "a.py::f"));
        let again = test.ok("link_mentions", json!({}));
        assert_eq!(
            (&again["tx"], &again["added"], &again["changed"], &again["removed"]),
            (&Value::Null, &json!(0), &json!(0), &json!(0))
        );
        assert!(again["summary"].as_str().unwrap().contains("nothing new"));
    }
}

#[test]
fn an_edit_changes_only_what_it_concerns() {
    for test in TestEngine::all() {
        test.ok(
            "batch",
            json!({"writes": [
                article("a", "Alpha", "Beta and Gamma."),
                article("b", "Beta", "Gamma and Delta."),
                article("c", "Gamma", "Alpha."),
                article("d", "Delta", "Nobody."),
                json!({"relationship": {"type": "MENTIONS", "src": "Article:d", "dst": "Article:a", "derivation": "read"}}),
                json!({"relationship": {"type": "MENTIONS", "src": "Article:c", "dst": "Article:a", "confidence": 0.1}}),
            ]}),
        );
        let out = test.ok("link_mentions", json!({}));
        assert_eq!((&out["added"], &out["mentions"], &out["stated_otherwise"]), (&json!(4), &json!(4), &json!(1)));
        let before = mentions(&test);
        assert_eq!(
            before[&("c".into(), "a".into())],
            json!([null, 0.1, null, null]),
            "a mention with another derivation is not changed"
        );
        test.fixture.clock.advance(1);
        test.ok("batch", json!({"writes": [article("a", "Alpha", "Beta and Delta.")]}));
        let out = test.ok("link_mentions", json!({}));
        // Gamma is mentioned once less, Delta once more, so other mentions of them change their weights.
        assert_eq!((&out["added"], &out["changed"], &out["removed"]), (&json!(1), &json!(2), &json!(1)));
        let after = mentions(&test);
        let differ: BTreeSet<_> =
            before.keys().chain(after.keys()).filter(|key| before.get(*key) != after.get(*key)).collect();
        let pair = |src: &str, dst: &str| (src.to_string(), dst.to_string());
        assert_eq!(differ, BTreeSet::from([&pair("a", "c"), &pair("a", "d"), &pair("b", "c"), &pair("b", "d")]));
        assert_eq!(after[&pair("d", "a")], json!([null, null, "read", null]));
        test.fixture.clock.advance(1);
        test.ok("delete", json!({"ref": "Article:b"}));
        let out = test.ok("link_mentions", json!({}));
        assert_eq!(
            (&out["added"], &out["removed"], &out["objects"]),
            (&json!(0), &json!(0), &json!(3)),
            "they went with it"
        );
        assert_eq!(test.call("link_mentions", json!({"types": ["Nothing"]})).unwrap_err().code, ErrorCode::NoSuchType);
    }
}

#[test]
fn other_types_and_other_branches_are_left_alone() {
    for test in TestEngine::all() {
        test.ok(
            "batch",
            json!({"writes": [
                article("a", "Alpha", "Beta and Paula."),
                article("b", "Beta", "Paula."),
                json!({"object": {"type": "Person", "key": "p", "title": "Paula", "properties": {"text": "Knows Alpha."}}}),
            ]}),
        );
        test.ok("branch_create", json!({"name": "trial"}));
        assert_eq!(test.ok("link_mentions", json!({"branch": "trial"}))["added"], 4);
        assert_eq!(mentions(&test).len(), 0, "main has heard of nothing");
        assert_eq!(test.ok("link_mentions", json!({"types": ["Article"]}))["added"], 1);
        assert_eq!(test.ok("link_mentions", json!({}))["added"], 3);
        let only = test.ok("link_mentions", json!({"types": ["Article"]}));
        assert_eq!(
            (&only["removed"], &only["added"]),
            (&json!(0), &json!(0)),
            "what leads to persons is not looked at"
        );
    }
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

/// The expected mentions, computed from the texts in the simplest way.
fn expected(articles: &BTreeMap<String, (String, String)>) -> BTreeMap<(String, String), f64> {
    let having = |key: &str| -> Vec<&String> {
        articles
            .iter()
            .filter(|(_, (title, _))| titles::keys(title).iter().any(|own| own == key))
            .map(|(k, _)| k)
            .collect()
    };
    let known = |key: &str| (1..=RECALL.ambiguous).contains(&having(key).len());
    let mut edges: Vec<(String, String, String)> = Vec::new();
    for (key, (title, text)) in articles {
        let found: BTreeSet<String> = titles::mentions(text, false, known).into_iter().collect();
        for name in found.into_iter().filter(|name| !titles::keys(title).contains(name)) {
            edges.extend(having(&name).into_iter().map(|to| (key.clone(), to.clone(), name.clone())));
        }
    }
    let mut weights = BTreeMap::new();
    for (from, to, name) in &edges {
        let of_that_name = edges.iter().filter(|(_, _, other)| other == name).count();
        *weights.entry((from.clone(), to.clone())).or_insert(0.0) += 1.0 / of_that_name as f64;
    }
    weights
}

#[test]
fn random_corpora_match_the_simple_computation() {
    let names =
        ["Ada", "Bern", "Cairo", "New Delhi", "Delhi", "The Old Elm", "Elm", "Fez", "Ada (city)", "Bern, Upper Town"];
    for test in TestEngine::all() {
        let mut dice = Dice(7);
        let mut articles: BTreeMap<String, (String, String)> = BTreeMap::new();
        for step in 0..12 {
            let mut writes = Vec::new();
            for _ in 0..=dice.roll(if step == 0 { 30 } else { 4 }) {
                let key = format!("k{}", dice.roll(25));
                let title = names[dice.roll(names.len())].to_string();
                let named: Vec<&str> = (0..dice.roll(5)).map(|_| names[dice.roll(names.len())]).collect();
                let text = format!("it is said of {}", named.join(" and then "));
                articles.insert(key.clone(), (title, text));
                writes.push(key);
            }
            writes.sort();
            writes.dedup();
            let writes: Vec<Value> =
                writes.iter().map(|key| article(key, &articles[key].0, &articles[key].1)).collect();
            test.fixture.clock.advance(1);
            test.ok("batch", json!({"writes": writes}));
            let out = test.ok("link_mentions", json!({}));
            let found = mentions(&test);
            let expected = expected(&articles);
            assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "step {step}");
            for (pair, weight) in &expected {
                assert!((found[pair][0].as_f64().unwrap() - weight).abs() < 1e-12, "step {step}: {pair:?}");
            }
            assert_eq!(out["mentions"], expected.len());
            assert_eq!(test.ok("link_mentions", json!({}))["tx"], Value::Null, "nothing changes the second time");
        }
        test.ok("verify", json!({}));
    }
}

#[test]
fn more_than_a_batch_is_loaded() {
    // On one store: it is the ledger's load, which has its own tests on all.
    let test = TestEngine::all().into_iter().find(|test| test.fixture.name == "sqlite").unwrap();
    let names: Vec<String> = (0..101).map(|n| format!("Name{n}")).collect();
    let text = names.join(", ");
    let writes: Vec<Value> = names.iter().map(|name| article(name, name, &text)).collect();
    test.ok("batch", json!({"writes": writes}));
    let out = test.ok("link_mentions", json!({}));
    assert_eq!((&out["added"], &out["tx"]), (&json!(101 * 100), &json!(2)));
    assert_eq!(test.ok("link_mentions", json!({}))["tx"], Value::Null);
    test.ok("verify", json!({}));
}
