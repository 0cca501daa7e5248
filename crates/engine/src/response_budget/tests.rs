//! Tests that responses of every size fit the budget, keep the requested fields, and list what was removed.

use super::*;
use lukasa_model::ErrorCode;
use proptest::prelude::*;

const ANSWER: &[&str] = &["items.text", "items.ref", "code", "about"];

fn shaped(answer: Value, options: ResponseOptions) -> Result<Value> {
    shape_declared(AnswerFields::new(ANSWER), true, answer, options)
}

fn options(profile: Profile, page: usize) -> ResponseOptions {
    ResponseOptions { profile, page }
}

fn items(n: usize, long: usize) -> Value {
    let item = |at: usize| {
        json!({"ref": format!("Function:src/a.rs::f{at}"), "id": "0190-…", "text": "It does a thing. ".repeat(long),
            "evidence": {"lines": [1, 2, 3]}, "score": 0.5, "session_id": "s-1", "reasons": [{"channel": "name"}]})
    };
    json!({"summary": format!("{n} found"), "items": (0..n).map(item).collect::<Vec<_>>(),
        "view": {"branch": "main", "known": 7}})
}

#[test]
fn a_response_within_the_budget_is_unchanged() {
    let shaped = shaped(items(1, 1), ResponseOptions::default()).unwrap();
    assert_eq!(
        (&shaped["ok"], &shaped["summary"], &shaped["freshness"]),
        (&json!(true), &json!("1 found"), &json!("main at tx 7"))
    );
    assert_eq!(shaped["data"]["items"][0]["evidence"]["lines"], json!([1, 2, 3]));
    assert!(shaped.get("truncated").is_none());
}

#[test]
fn all_pages_together_are_the_whole_list() {
    let (mut seen, mut page) = (Vec::new(), 1);
    loop {
        let shaped = shaped(items(40, 2), options(Profile::Compact, page)).unwrap();
        assert!(count(&shaped.to_string()) <= 300);
        seen.extend(shaped["data"]["items"].as_array().unwrap().iter().map(|item| item["ref"].clone()));
        match shaped["nextPage"].as_u64() {
            Some(next) => page = next as usize,
            None => break,
        }
    }
    assert_eq!(seen.len(), 40);
    assert_eq!(seen[39], "Function:src/a.rs::f39");
    assert_eq!(shaped(items(2, 1), options(Profile::Compact, 9)).unwrap_err().code, ErrorCode::OutOfRange);
}

#[test]
fn all_pages_together_are_the_whole_text() {
    let code: String = (0..90).map(|n| format!("    let value_{n} = compute({n});\n")).collect();
    let answer = json!({"summary": "a slice", "code": code, "about": "Computes. ".repeat(60), "callers": ["a", "b"]});
    let (mut seen, mut page) = (String::new(), 1);
    loop {
        let shaped = shaped(answer.clone(), options(Profile::Compact, page)).unwrap();
        assert!(count(&shaped.to_string()) <= 300);
        let part = shaped["data"]["code"].as_str().unwrap();
        match shaped["nextPage"].as_u64() {
            Some(next) => {
                seen.push_str(part.strip_suffix('…').expect("what goes on is marked"));
                page = next as usize;
            }
            None => {
                seen.push_str(part);
                break;
            }
        }
    }
    assert_eq!(seen, code);
    assert!(page < 12, "pages are filled: {page}");
}

#[test]
fn several_results_are_shown_before_details_of_one() {
    let shaped = shaped(items(10, 3), ResponseOptions::default()).unwrap();
    let given = shaped["data"]["items"].as_array().unwrap();
    assert!(given.len() >= 5, "{shaped}");
    assert!(given.iter().all(|item| item["text"].is_string() && item["ref"].is_string()), "{shaped}");
    assert!(given.iter().all(|item| item.get("session_id").is_none() && item.get("id").is_none()), "{shaped}");
}

#[test]
fn warnings_outlast_what_contains_them() {
    let mut answer = items(30, 3);
    answer["meta"] = json!({"recipe": "x".repeat(900), "warnings": ["vectors were not searched"], "elapsed_ms": 3});
    let shaped = shaped(answer, ResponseOptions::default()).unwrap();
    assert_eq!(shaped["data"]["meta"], json!({"warnings": ["vectors were not searched"]}), "{shaped}");
}

#[test]
fn lists_with_items_are_never_returned_empty() {
    let names = |word: &str| (0..30).map(|at| json!({"ref": format!("{word}::{at}")})).collect::<Vec<_>>();
    let answer = json!({"summary": "much", "items": names("src/a/rather/long/path.rs"), "warnings": names("src/b.rs"),
        "about": names("src/c.rs")});
    let shaped = shaped(answer, ResponseOptions::default()).unwrap();
    for list in ["items", "warnings", "about"] {
        assert!(shaped["data"][list].as_array().is_some_and(|list| !list.is_empty()), "{list}: {shaped}");
    }
    assert!(shaped["truncated"].to_string().contains("warnings: "), "{shaped}");
}

#[test]
fn a_response_as_text_leaves_room_for_the_text_around_it() {
    let around = "word ".repeat(20_000);
    let answer = json!({"summary": "many", "objects": (0..2_000).map(|n| json!({"key": format!("k{n}"), "type": "T",
        "title": "A title of some words", "id": "0190-1111-2222"})).collect::<Vec<_>>()});
    let beside = written("list", &answer, 1, &around).unwrap();
    assert!(count(&beside) + count(&around) <= MOST);
    let alone = written("list", &answer, 1, "").unwrap();
    assert!(count(&alone) > 20_000 && count(&alone) <= MOST, "{}", count(&alone));
    assert_eq!(written("list", &answer, 1, &"word ".repeat(30_000)).unwrap_err().code, ErrorCode::BudgetTooSmall);
}

#[test]
fn names_that_do_not_fit_are_shortened() {
    let long = json!({"summary": "s ".repeat(3_000), "items": [{"ref": "k".repeat(9_000), "text": "t".repeat(9_000)}]});
    let shaped = shaped(long, ResponseOptions::default()).unwrap();
    assert!(count(&shaped.to_string()) <= 300);
    assert!(shaped["data"]["items"][0]["text"].as_str().unwrap().ends_with('…'), "{shaped}");
}

#[test]
fn operations_that_write_have_no_pages() {
    let put = registry::find("put").unwrap();
    let mut arguments = json!({"type": "T", "key": "k", "page": 2}).as_object().unwrap().clone();
    assert_eq!(take_response_options(put, &mut arguments).unwrap_err().code, ErrorCode::UnknownField);
    assert!(arguments_of(put)["properties"].get("page").is_none());
    let written: Vec<Value> = (0..400).map(|n| json!({"id": format!("0190-{n:040}"), "changed": true})).collect();
    let answer = json!({"summary": "400 written (transaction 3)", "tx": 3, "written": written, "unchanged": 0});
    let shaped = fit_response(put, answer, ResponseOptions::default()).unwrap();
    assert_eq!((&shaped["ok"], &shaped["data"]["tx"]), (&json!(true), &json!(3)));
    assert!(shaped.get("nextPage").is_none() && shaped["truncated"].to_string().contains("of 400"), "{shaped}");
}

fn arguments_of(operation: &Operation) -> Value {
    super::arguments(operation)
}

#[test]
fn an_answer_of_many_fields_is_no_table() {
    let mut answer = json!({"summary": "a slice", "code": "let value = compute(1);\n".repeat(200)});
    for n in 0..30 {
        answer[format!("figure{n}")] = json!(format!("{n}"));
    }
    let shaped = shaped(answer, ResponseOptions::default()).unwrap();
    assert!(shaped["data"]["code"].as_str().is_some_and(|code| code.lines().count() > 10), "{shaped}");
}

#[test]
fn the_first_declared_field_is_kept_before_the_paged_field() {
    let items: Vec<Value> =
        (0..50).map(|n| json!({"ref": format!("{n}{}", "long_name_".repeat(40)), "text": "t"})).collect();
    let answer = json!({"summary": "s", "about": "what was asked for", "items": items});
    let declared = AnswerFields::new(&["about", "items.ref"]);
    let shaped = shape_declared(declared, true, answer, ResponseOptions::default()).unwrap();
    assert_eq!(shaped["data"]["about"], "what was asked for", "{shaped}");
    assert!(shaped["data"]["items"][0]["ref"].is_string(), "{shaped}");
}

/// Names of all fields, wherever they are.
fn names(value: &Value, into: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| {
            into.insert(name.clone());
            names(value, into);
        }),
        Value::Array(list) => list.iter().for_each(|value| names(value, into)),
        _ => {}
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(|b| json!(b)),
        (0u64..1_000_000).prop_map(|n| json!(n)),
        "[a-z .é\\n\"]{0,60}".prop_map(|s| json!(s)),
        (1usize..120).prop_map(|n| json!("Some words that go on. ".repeat(n))),
        (1usize..900).prop_map(|n| json!("x".repeat(n))),
    ];
    let name = prop::sample::select(vec![
        "ref",
        "text",
        "id",
        "score",
        "reasons",
        "warnings",
        "meta",
        "note",
        "properties",
        "total",
        "since",
        "about",
    ]);
    leaf.prop_recursive(3, 60, 12, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..12).prop_map(|list| json!(list)),
            prop::collection::btree_map(name.clone(), inner, 0..8).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]
    #[test]
    fn a_response_fits_has_the_answer_and_lists_what_was_removed(
        n in 0usize..40,
        long in 0usize..200,
        rest in prop::collection::btree_map("[a-z]{3,8}", any_value(), 0..6),
        code in prop::option::of("[a-z();\\n ]{0,900}"),
        pick in 0usize..3,
    ) {
        let profile = [Profile::Compact, Profile::Balanced, Profile::Debug][pick];
        let mut answer = items(n, long);
        for (name, value) in rest {
            answer[format!("x{name}")] = value;
        }
        if let Some(code) = &code {
            answer["code"] = json!(code);
        }
        let shaped = shaped(answer.clone(), options(profile, 1)).unwrap();
        let cost = count(&shaped.to_string());
        prop_assert!(cost <= profile.tokens(), "{cost}");
        prop_assert!(shaped["_tokenEstimate"].as_u64().unwrap() as usize >= cost);
        let given = shaped["data"]["items"].as_array().unwrap();
        prop_assert!(given.len() == n || shaped["nextPage"].is_u64(), "{shaped}");
        prop_assert!(n == 0 || !given.is_empty(), "{shaped}");
        prop_assert!(given.iter().all(|item| item["ref"].is_string() && item["text"].is_string()), "{shaped}");
        if let Some(code) = &code {
            // Other declared fields are left out before the list, of which there are several items.
            let is_there = shaped["data"]["code"].as_str().is_some_and(|code| !code.is_empty());
            let is_listed = shaped["truncated"].to_string().contains("without code") && given.len() >= n.min(3);
            prop_assert!(code.is_empty() || is_there || (n > 1 && is_listed), "{shaped}");
        }
        let (mut before, mut after) = Default::default();
        names(&answer, &mut before);
        names(&shaped["data"], &mut after);
        let listed = shaped["truncated"].to_string();
        for name in before.difference(&after).filter(|name| *name != "summary") {
            let is_listed = listed.contains(name.as_str()) || listed.contains(cut::DETAILS) || listed.contains(" more")
                || listed.contains(" of ");
            prop_assert!(is_listed, "{name} is gone without a word: {shaped}");
        }
    }

    #[test]
    fn anything_at_all_fits(answer in prop::collection::btree_map("[a-z]{2,9}", any_value(), 0..12), pick in 0usize..3) {
        let profile = [Profile::Compact, Profile::Balanced, Profile::Debug][pick];
        let mut answer = json!(answer);
        answer["summary"] = json!("what there is");
        let shaped = shaped(answer, options(profile, 1)).unwrap();
        prop_assert!(count(&shaped.to_string()) <= profile.tokens());
    }
}
