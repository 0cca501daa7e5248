//! Search and packs on every store: results, reasons, limits and warnings.

use crate::test_engine::TestEngine;
use lukasa_engine::features::search::SearchState;
use lukasa_engine::registry;
use lukasa_engine::response_budget::Profile;
use lukasa_engine::response_budget::{ResponseOptions, fit_response};
use lukasa_engine::{Context, Grants};
use lukasa_search::count::count;
use lukasa_search::pipeline::rerank::Reranker;
use lukasa_search::text::Term;
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;

pub fn write(root: &std::path::Path, path: &str, text: &str) {
    let file = root.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// A shop with a till, a catalogue and tests.
fn program(root: &std::path::Path) {
    write(
        root,
        "shop/till.py",
        "\"\"\"The till.\"\"\"\n\nfrom shop.catalogue import price_of\n\n\nclass Till:\n    \"\"\"Takes money.\"\"\"\n\n    def checkout(self, basket):\n        \"\"\"Adds up a basket and applies the discount.\"\"\"\n        total = sum(price_of(item) for item in basket)\n        return self.discount(total)\n\n    def discount(self, total):\n        return total * 0.9 if total > 100 else total\n",
    );
    write(
        root,
        "shop/catalogue.py",
        "\"\"\"What is sold.\"\"\"\n\nPRICES = {'tea': 3}\n\n\ndef price_of(item):\n    \"\"\"The price of an item in cents.\"\"\"\n    return PRICES[item]\n",
    );
    write(
        root,
        "tests/test_till.py",
        "from shop.till import Till\n\n\ndef test_discount():\n    assert Till().discount(200) == 180\n",
    );
}

pub fn indexed(test: &TestEngine) -> TempDir {
    let folder = TempDir::new().unwrap();
    program(folder.path());
    test.ok("index_directory", json!({"path": folder.path()}));
    folder
}

pub fn refs(answer: &Value) -> Vec<String> {
    answer["items"].as_array().unwrap().iter().map(|item| item["ref"].as_str().unwrap().to_owned()).collect()
}

pub fn note(test: &TestEngine, key: &str, title: &str, text: &str) {
    test.ok("put", json!({"type": "Decision", "key": key, "title": title, "properties": {"text": text}}));
}

#[test]
fn the_same_question_gives_the_same_answer_on_every_store() {
    let mut answers: Vec<Value> = vec![];
    for mut test in TestEngine::all() {
        // Stages are shed depending on the speed of the machine, with a warning; here none are.
        test.engine = test.engine.clone().with_searching(SearchState::default().with_patience(f64::INFINITY));
        let _folder = indexed(&test);
        note(&test, "decision:1", "Discounts are rounded", "A discount is rounded to whole cents at the till.");
        for turn in 0..5 {
            let mut answer =
                test.ok("search", json!({"query": "how is the discount of a basket applied", "debug": true}));
            answer["meta"]["elapsed_ms"] = json!(0);
            answer["debug"]["costs"] = json!({});
            answer["view"] = json!({});
            let text = serde_json::to_string(&answer).unwrap();
            // Ids are each store's own.
            let plain: Value = serde_json::from_str(&without_ids(&text)).unwrap();
            assert!(!plain["items"].as_array().unwrap().is_empty(), "{} {turn}", test.fixture.name);
            answers.push(plain);
        }
    }
    assert!(answers.len() >= 10);
    for answer in &answers[1..] {
        for (name, part) in answers[0].as_object().unwrap() {
            assert_eq!(part, &answer[name], "{name}");
        }
    }
}

/// Replaces random ids by one constant.
pub fn without_ids(text: &str) -> String {
    let id = regex_like_uuid;
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = (0..rest.len()).find(|at| rest.is_char_boundary(*at) && id(&rest[*at..])) {
        out.push_str(&rest[..at]);
        out.push_str("id");
        rest = &rest[at + 36..];
    }
    out + rest
}

fn regex_like_uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 36
        && bytes[..36].iter().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => *b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

#[test]
fn reasons_add_up_to_scores_and_every_item_has_some() {
    for test in TestEngine::all() {
        let _folder = indexed(&test);
        note(&test, "decision:1", "Discounts are rounded", "A discount is rounded to whole cents at the till.");
        for request in [
            json!({"query": "discount of the basket"}),
            json!({"query": "discount of the basket", "recipe": "objects", "include_citations": true}),
            json!({"query": "discount of the basket", "recipe": "objects", "fusion": "rrf"}),
            json!({"query": "discount error", "recipe": "objects", "rerank": true, "intent": "debug_error"}),
            json!({"query": "discount", "recipe": "objects", "anchor": "decision:1"}),
            json!({"query": "discount", "recipe": "recall"}),
        ] {
            let answer = test.ok("search", request.clone());
            let items = answer["items"].as_array().unwrap();
            assert!(!items.is_empty(), "{request}");
            for item in items {
                let reasons = item["reasons"].as_array().unwrap();
                assert!(!reasons.is_empty() && !item["explanation"].as_str().unwrap().is_empty());
                let sum: f64 = reasons.iter().map(|r| r["score"].as_f64().unwrap()).sum();
                assert!((sum - item["score"].as_f64().unwrap()).abs() < 1e-6, "{item}");
            }
            assert!(count(&answer["items"].to_string()) <= 3_500);
        }
    }
}

#[test]
fn a_write_is_found_when_its_call_returns_and_not_before_it_was_known() {
    for test in TestEngine::all() {
        let _folder = indexed(&test);
        let found = |test: &TestEngine, view: Value| {
            let mut request = json!({"query": "zanzibar"});
            request.as_object_mut().unwrap().extend(view.as_object().unwrap().clone());
            refs(&test.ok("search", request))
        };
        assert!(found(&test, json!({})).is_empty());
        let tx = test.ok("put", json!({"type": "Decision", "key": "d", "title": "Zanzibar"}))["tx"].clone();
        assert_eq!(found(&test, json!({})), ["Decision:d"]);
        assert!(
            found(&test, json!({"known_at": format!("tx:{}", tx.as_u64().unwrap() - 1)})).is_empty(),
            "not known then"
        );
        test.ok("put", json!({"type": "Decision", "key": "d", "title": "Elsewhere"}));
        assert!(found(&test, json!({})).is_empty());
        assert_eq!(found(&test, json!({"known_at": format!("tx:{tx}")})), ["Decision:d"]);
        test.ok("delete", json!({"ref": "Decision:d"}));
        assert!(refs(&test.ok("search", json!({"query": "elsewhere"}))).is_empty());
        // A branch of its own.
        test.ok("branch_create", json!({"name": "side"}));
        test.ok("put", json!({"type": "Decision", "key": "e", "title": "Zanzibar", "branch": "side"}));
        assert!(found(&test, json!({})).is_empty());
        assert_eq!(found(&test, json!({"branch": "side"})), ["Decision:e"]);
    }
}

#[test]
fn sources_are_searched_and_followed() {
    for test in TestEngine::all() {
        let folder = indexed(&test);
        let best = |query: &str| refs(&test.ok("search", json!({"query": query})))[0].clone();
        assert_eq!(best("price of an item in cents"), "Function:shop/catalogue.py::price_of");
        write(folder.path(), "shop/catalogue.py", "def worth(item):\n    \"\"\"Pelican.\"\"\"\n    return 3\n");
        test.ok("index_directory", json!({"path": folder.path()}));
        assert_eq!(best("pelican"), "Function:shop/catalogue.py::worth");
        // Changed on disk and not indexed yet: the indexed text is not available, names and comments are.
        write(folder.path(), "shop/catalogue.py", "def other():\n    pass\n");
        assert_eq!(best("pelican"), "Function:shop/catalogue.py::worth");
        let pack = test.ok("context_pack", json!({"task": "the pelican is wrong", "profile": "balanced"}));
        assert!(
            pack["freshness"].as_str().unwrap().contains("changed since indexed, or not at hand: shop/catalogue.py"),
            "{pack}"
        );
        assert!(pack["core_symbols"][0]["code"].is_null(), "no lines that were never indexed");
    }
}

#[test]
fn errors_of_bad_requests_name_the_fault() {
    for test in TestEngine::all() {
        let _folder = indexed(&test);
        for (request, code) in [
            (json!({"query": ""}), "invalid_query"),
            (json!({"query": "   "}), "invalid_query"),
            (json!({"query": "x".repeat(801)}), "invalid_query"),
            (json!({"query": "x", "channels": ["lexical", "smell"]}), "unknown_channel"),
            (json!({"query": "x", "limit": 0}), "out_of_range"),
            (json!({"query": "x", "limit": 41}), "out_of_range"),
            (json!({"query": "x", "max_token_budget": 10}), "out_of_range"),
            (json!({"query": "x", "max_token_budget": 4_001}), "token_budget_exceeded"),
            (json!({"query": "x", "cursor": "forged"}), "invalid_cursor"),
            (json!({"query": "x", "object_types": ["Nonsense"]}), "no_such_type"),
            (json!({"query": "x", "neighbor": {"max_depth": 9}}), "out_of_range"),
            (json!({"query": "x", "semantic_weight": 2.0}), "out_of_range"),
        ] {
            assert_eq!(test.fails("search", request.clone()), code, "{request}");
        }
        assert_eq!(refs(&test.ok("search", json!({"query": "é".repeat(800)}))), Vec::<String>::new());
        for (request, code) in [
            (json!({"task": ""}), "invalid_query"),
            (json!({"task": "x".repeat((32 << 10) + 1)}), "task_too_long"),
            (json!({"task": "x", "budget": 10}), "out_of_range"),
            (json!({"task": "x", "budget": 25_001}), "token_budget_exceeded"),
            (json!({"task": "x", "cursor": "forged"}), "invalid_cursor"),
        ] {
            assert_eq!(test.fails("context_pack", request.clone()), code, "{request}");
        }
        let first = test.ok("search", json!({"query": "discount till price", "limit": 1}));
        let cursor = first["next_cursor"].as_str().unwrap();
        let other = json!({"query": "discount till price", "limit": 2, "cursor": cursor});
        assert_eq!(test.fails("search", other), "cursor_of_another_request");
    }
}

#[test]
fn pages_lead_on_and_back_and_stay_what_they_were() {
    for test in TestEngine::all() {
        let _folder = indexed(&test);
        let ask = |cursor: Option<&str>| {
            let mut request =
                json!({"query": "discount price till basket", "limit": 2, "neighbor": {"per_primary_limit": 0}});
            if let Some(cursor) = cursor {
                request["cursor"] = json!(cursor);
            }
            test.ok("search", request)
        };
        let first = ask(None);
        let second = ask(first["next_cursor"].as_str());
        test.ok("put", json!({"type": "Decision", "key": "d", "title": "discount price till basket"}));
        assert_eq!(refs(&ask(first["next_cursor"].as_str())), refs(&second), "what was written since does not count");
        assert_eq!(refs(&ask(second["previous_cursor"].as_str())), refs(&first));
        assert!(refs(&first).iter().all(|r| !refs(&second).contains(r)));
        assert!(refs(&ask(None)).contains(&"Decision:d".to_owned()));
    }
}

#[test]
fn filters_hold_for_neighbours_too() {
    for test in TestEngine::all() {
        note(&test, "decision:1", "Discounts", "Discounts are rounded.");
        test.ok("put", json!({"type": "Meeting", "key": "m", "title": "Weekly"}));
        test.ok("link", json!({"type": "decides", "src": "Meeting:m", "dst": "Decision:decision:1"}));
        let ask = |more: Value| {
            let mut request = json!({"query": "discounts rounded", "recipe": "objects"});
            request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            test.ok("search", request)
        };
        let all = ask(json!({}));
        assert_eq!(refs(&all), ["Decision:decision:1", "Meeting:m"]);
        assert_eq!(all["items"][1]["role"], "neighbor");
        assert_eq!(all["path_summaries"][0]["summary"], "Meeting `Weekly` decides Decision `Discounts`");
        let without = ask(json!({"exclude_object_types": ["Meeting"]}));
        assert_eq!(refs(&without), ["Decision:decision:1"]);
        assert!(!without.to_string().contains("Weekly"));
        assert_eq!(refs(&ask(json!({"object_types": ["Decision"]}))), ["Decision:decision:1"]);
        assert_eq!(refs(&ask(json!({"neighbor": {"per_primary_limit": 0}}))), ["Decision:decision:1"]);
        assert!(refs(&ask(json!({"updated_after": "2999-01-01T00:00:00Z"}))).is_empty());
    }
}

#[test]
fn a_session_is_not_given_the_same_twice() {
    for test in TestEngine::all() {
        note(&test, "decision:1", "Discounts", "Discounts are rounded to whole cents.");
        let ask = || test.ok_in("s1", "search", json!({"query": "discounts rounded"}));
        assert_eq!(ask()["items"][0]["role"], "primary");
        let again = ask();
        assert_eq!(again["items"][0]["role"], "reference");
        assert!(again["items"][0]["fields"]["text"].is_null());
        test.fixture.clock.advance(601);
        assert_eq!(ask()["items"][0]["role"], "primary", "after ten minutes it is new again");
        assert_eq!(test.ok("search", json!({"query": "discounts rounded"}))["items"][0]["role"], "primary");
    }
}

/// A reranker that exceeds the deadline, fails, or returns too few scores.
struct Odd(&'static str);

impl Reranker for Odd {
    fn name(&self) -> &str {
        self.0
    }
    fn judge(&self, _: &str, _: &[Term], texts: &[String]) -> Result<Vec<f64>, String> {
        match self.0 {
            "slow" => std::thread::sleep(std::time::Duration::from_millis(900)),
            "broken" => return Err("no".into()),
            "short" => return Ok(vec![]),
            _ => {}
        }
        Ok(vec![1.0; texts.len()])
    }
}

#[test]
fn reranking_never_delays_an_answer() {
    for (name, applied, timeout) in
        [("slow", false, true), ("broken", false, false), ("short", false, false), ("good", true, false)]
    {
        let mut test = TestEngine::all().remove(0);
        test.engine = test.engine.clone().with_searching(SearchState::default().with_reranker(Arc::new(Odd(name))));
        note(&test, "decision:1", "Discounts", "Discounts are rounded.");
        let answer = test.ok("search", json!({"query": "discounts", "rerank": true}));
        assert_eq!(refs(&answer), ["Decision:decision:1"], "{name}");
        let rerank = &answer["meta"]["rerank"];
        assert_eq!((&rerank["applied"], &rerank["timeout"]), (&json!(applied), &json!(timeout)), "{name}: {rerank}");
    }
}

#[test]
fn a_pack_briefs_within_its_budget() {
    for test in TestEngine::all() {
        let _folder = indexed(&test);
        note(&test, "decision:1", "Discounts are rounded", "A discount is rounded to whole cents at the till.");
        test.ok(
            "link",
            json!({"type": "INVOLVES", "src": "Decision:decision:1", "dst": "Method:shop/till.py::Till::discount"}),
        );
        let task = "Discount is not applied to large baskets\n\nCalling `Till.checkout` gives the full price.\n```\nTraceback (most recent call last):\n  File \"shop/till.py\", line 12, in checkout\n```\n";
        let mut before = 0;
        for (profile, budget) in [("compact", 300), ("balanced", 1_200), ("debug", 25_000)] {
            let pack = test.ok("context_pack", json!({"task": task, "profile": profile}));
            let tokens = count(&pack.to_string());
            assert!(
                tokens <= budget && tokens <= pack["token_estimate"].as_u64().unwrap() as usize,
                "{profile}: {tokens}"
            );
            assert!(tokens >= before, "{profile} gives no less");
            before = tokens;
            assert_eq!(pack["core_symbols"][0]["file"], "shop/till.py", "{pack}");
            assert!(pack["entry_point"].as_str().unwrap().starts_with("shop/till.py::Till"), "{pack}");
            assert!(pack["summary"].as_str().unwrap().starts_with("Begin at"));
        }
        let pack = test.ok("context_pack", json!({"task": task, "profile": "balanced", "explain": true}));
        let slice =
            pack["core_symbols"].as_array().unwrap().iter().find(|s| s["symbol_name"] == "Till::checkout").unwrap();
        let code = slice["code"].as_str().unwrap();
        assert!(
            code.starts_with("    def checkout(self, basket):") && code.ends_with("return self.discount(total)"),
            "{code}"
        );
        assert_eq!((&slice["start_line"], &slice["end_line"]), (&json!(9), &json!(12)));
        assert!(!slice["reasons"].as_array().unwrap().is_empty());
        assert_eq!(pack["decisions"][0]["ref"], "Decision:decision:1");
        let calls =
            json!({"from": "shop/till.py::Till::checkout", "type": "CALLS", "to": "shop/till.py::Till::discount"});
        assert!(pack["dependencies"].as_array().unwrap().contains(&calls), "{pack}");
        let without = test.ok("context_pack", json!({"task": task, "profile": "balanced", "include_decisions": false}));
        assert!(without["decisions"].is_null());
        let past = test.ok("context_pack", json!({"task": task, "profile": "balanced", "known_at": "tx:1"}));
        assert!(past["decisions"].is_null(), "it had not been decided then");
        let nothing = test.ok("context_pack", json!({"task": "xylophone"}));
        assert!(nothing["summary"].as_str().unwrap().contains("nothing here speaks of"));
    }
}

#[test]
fn claims_of_others_stand_in_the_way_and_sensitive_notes_stay_hidden() {
    for test in TestEngine::all() {
        let _folder = indexed(&test);
        let till = "Class:shop/till.py::Till";
        for (key, agent, status) in [("c1", "ann", "active"), ("c2", "bob", "active"), ("c3", "eve", "released")] {
            test.ok("put", json!({"type": "CLAIM", "key": key, "status": status, "properties": {"agent_id": agent, "intent": "change the discount", "claim_type": "function", "target": "shop/till.py::Till"}}));
            test.ok("link", json!({"type": "TARGETS", "src": format!("CLAIM:{key}"), "dst": till}));
        }
        test.ok(
            "put",
            json!({"type": "EPISODE", "key": "e1", "properties": {"content": "discount secret", "sensitive": true}}),
        );
        let pack =
            test.ok("context_pack", json!({"task": "discount of the Till", "profile": "balanced", "agent_id": "bob"}));
        let blockers: Vec<_> = pack["active_blockers"].as_array().unwrap().iter().map(|b| b["agent"].clone()).collect();
        assert_eq!(blockers, ["ann"]);
        assert!(!pack.to_string().contains("discount secret"));
    }
}

#[test]
fn an_interface_brings_what_implements_it() {
    for test in TestEngine::all() {
        let folder = TempDir::new().unwrap();
        write(
            folder.path(),
            "src/Payment.java",
            "/** Takes a payment. */\npublic interface Payment {\n    void pay(int cents);\n}\n",
        );
        write(
            folder.path(),
            "src/Card.java",
            "public class Card implements Payment {\n    public void pay(int cents) { charge(cents); }\n    void charge(int cents) {}\n}\n",
        );
        test.ok("index_directory", json!({"path": folder.path()}));
        let pack =
            test.ok("context_pack", json!({"task": "Payment interface takes a payment twice", "profile": "balanced"}));
        let names: Vec<_> = pack["core_symbols"].as_array().unwrap().iter().map(|s| s["symbol_name"].clone()).collect();
        assert!(names.contains(&json!("Payment")) && names.contains(&json!("Card")), "{names:?}");
    }
}

/// A file is represented by a function or class rather than by its constants, and listed once.
#[test]
fn packs_show_functions_and_list_a_file_once() {
    for test in TestEngine::all() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            "rates.py",
            "RATES_OF_EXCHANGE = \"exchange rates by currency, rates of exchange\"\n\n\ndef convert(amount, currency):\n    \"\"\"Uses exchange rates.\"\"\"\n    return amount * rate(currency)\n",
        );
        write(folder.path(), "money.py", "def exchange(rates):\n    return rates\n");
        test.ok("index_directory", json!({"path": folder.path()}));
        let pack = test.ok("context_pack", json!({"task": "exchange rates of a currency are rounded"}));
        let of_rates = |slice: &&Value| slice["file"] == "rates.py";
        let first = pack["core_symbols"].as_array().unwrap().iter().find(of_rates).unwrap()["symbol_name"].clone();
        assert_eq!(first, "convert", "{pack}");
        let given: Vec<&Value> = pack["core_symbols"].as_array().unwrap().iter().map(|slice| &slice["file"]).collect();
        assert!(pack["files"].as_array().unwrap().iter().all(|file| !given.contains(&file)), "{pack}");
    }
}

#[test]
fn embedded_objects_are_found_by_meaning_and_counted_in_readiness() {
    for test in TestEngine::all() {
        note(&test, "a", "Refunds", "Customers get their money back within two weeks.");
        note(&test, "b", "Opening hours", "The shop opens at nine in the morning.");
        note(&test, "c", "Parking", "Cars stand behind the house.");
        let before = test.ok("search_readiness", json!({}));
        assert_eq!(
            (&before["embedding"]["optional"]["objects"], &before["embedding"]["optional"]["embedded"]),
            (&json!(3), &json!(0))
        );
        let none = test.ok("search", json!({"query": "reimbursement", "channels": ["vector"]}));
        assert!(refs(&none).is_empty());
        let done = test.ok("embed", json!({}));
        assert_eq!((&done["embedded"], &done["waiting"]), (&json!(3), &json!(0)), "{done}");
        assert_eq!(test.ok("embed", json!({}))["embedded"], 0, "nothing is embedded twice");
        let answer = test.ok("search", json!({"query": "reimbursement of a purchase", "recipe": "objects"}));
        assert_eq!(refs(&answer)[0], "Decision:a", "{answer}");
        assert_eq!(answer["meta"]["embedded_share"], 1.0);
        // No word of it occurs anywhere, and no recipe is given.
        let answer = test.ok("search", json!({"query": "reimbursement"}));
        assert_eq!(refs(&answer)[0], "Decision:a", "{answer}");
        let by_words = test.ok("search", json!({"query": "reimbursement", "channels": ["lexical"]}));
        assert!(refs(&by_words).is_empty() && by_words["meta"].get("embedded_share").is_none(), "{by_words}");
        assert_eq!(test.ok("search_readiness", json!({}))["embedding"]["optional"]["percent"], 100.0);
        // A change is found by words at once, by meaning when its vector is computed.
        note(&test, "c", "Parking", "Bicycles are repaired here.");
        let answer = test.ok("search", json!({"query": "mending a bike", "recipe": "objects"}));
        assert!(answer["meta"]["embedded_share"].as_f64().unwrap() < 1.0);
        test.ok("embed", json!({}));
        assert_eq!(refs(&test.ok("search", json!({"query": "mending a bike", "recipe": "objects"})))[0], "Decision:c");
    }
}

#[test]
fn stages_are_shed_in_order_with_a_warning_when_answers_take_too_long() {
    let mut test = TestEngine::all().remove(0);
    test.engine = test.engine.clone().with_searching(SearchState::default().with_patience(1e-9));
    note(&test, "decision:1", "Discounts", "Discounts are rounded.");
    let ask = || test.ok("search", json!({"query": "discounts", "rerank": true}));
    // The first builds the index; the next three load other data for the first time.
    for turn in 0..4 {
        assert!(ask()["meta"]["warnings"].is_null(), "turn {turn}");
    }
    let second = ask();
    let summary = second["summary"].as_str().unwrap();
    assert!(summary.contains("without reranking") && summary.contains("candidates"), "{summary}");
    for profile in [Profile::Compact, Profile::Balanced, Profile::Debug] {
        let shaped =
            fit_response(registry::find("search").unwrap(), second.clone(), ResponseOptions { profile, page: 1 })
                .unwrap();
        assert!(shaped["summary"].as_str().unwrap().contains("without reranking"), "{shaped}");
    }
    let warnings: Vec<_> = second["meta"]["warnings"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    assert_eq!(warnings[0], "rerank_disabled_perf", "{warnings:?}");
    assert!(warnings.contains(&"candidate_pool_reduced"), "{warnings:?}");
    assert_eq!(second["meta"]["rerank"]["applied"], false);
    assert_eq!(refs(&second), ["Decision:decision:1"], "still answered");
}

/// Building the indexes and loading the model must not shed stages afterwards.
#[test]
fn the_first_search_sheds_nothing_of_the_next() {
    let mut test = TestEngine::all().remove(0);
    test.engine = test.engine.clone().with_searching(SearchState::default().with_patience(f64::INFINITY));
    let _folder = indexed(&test);
    note(&test, "decision:1", "Discounts", "Discounts are rounded.");
    test.ok("embed", json!({}));
    let before = test.engine.searching().full_builds();
    test.ok("search", json!({"query": "discounts"}));
    assert_eq!(test.engine.searching().full_builds(), before + 2, "the texts and the vectors were made");
    test.ok("search", json!({"query": "discounts"}));
    note(&test, "decision:2", "Refunds", "Refunds are rounded.");
    test.ok("search", json!({"query": "discounts"}));
    assert_eq!(test.engine.searching().full_builds(), before + 2, "and followed since");
}

/// Results that contain the word come before those that are only nearest by meaning, however few there are.
#[test]
fn a_likeness_of_nothing_does_not_outrank_a_word() {
    for test in TestEngine::all() {
        for (key, title, text) in [
            ("hours", "Opening hours", "The shop opens at nine in the morning."),
            ("parking", "Parking", "Cars stand behind the house."),
            ("auth", "Auth", "Tokens are checked at the gateway."),
        ] {
            note(&test, key, title, text);
        }
        note(&test, "island", "Voyage", "We sail to zanzibar next year and take the long way round the cape.");
        test.ok("embed", json!({}));
        for recipe in ["auto", "objects"] {
            let answer =
                test.ok("search", json!({"query": "zanzibar", "recipe": recipe, "neighbor": {"per_primary_limit": 0}}));
            assert_eq!(refs(&answer)[0], "Decision:island", "{recipe}: {answer}");
            for item in answer["items"].as_array().unwrap() {
                let near = item["explanation"].as_str().unwrap();
                assert!(!near.contains("(0.0"), "{recipe}: not near at all: {item}");
            }
        }
    }
}

/// All vectors are compared, not a part of them.
#[test]
fn all_that_is_near_is_found_by_meaning() {
    for test in TestEngine::all() {
        for (key, text) in [
            ("a", "Customers get their money back within two weeks."),
            ("b", "A refund is paid to the card that was charged."),
            ("c", "Refunds of more than a hundred are approved by a manager."),
        ] {
            note(&test, key, "Refunds", text);
        }
        test.ok("embed", json!({}));
        let request = json!({"query": "how do I get a refund", "channels": ["vector"], "recipe": "objects"});
        let answer = test.ok("search", request);
        assert_eq!(refs(&answer).len(), 3, "{answer}");
        assert_eq!(answer["meta"]["vector_considered"], 3);
    }
}

/// A decision with a word that no code contains must not hide the code.
#[test]
fn one_rare_word_does_not_hide_the_code() {
    for test in TestEngine::all() {
        let folder = TempDir::new().unwrap();
        write(
            folder.path(),
            "net/retry.py",
            "class RetryPolicy:\n    \"\"\"Retries a request that failed.\"\"\"\n\n    def retry(self, request):\n        \"\"\"Sends the request again.\"\"\"\n        return request.send()\n",
        );
        for n in 0..12 {
            let text = format!(
                "def close_{n}(spider):\n    \"\"\"Closes a spider and waits for it.\"\"\"\n    return spider.wait({n})\n"
            );
            write(folder.path(), &format!("spiders/close_{n}.py"), &text);
        }
        test.ok("index_directory", json!({"path": folder.path()}));
        note(&test, "decision:1", "Use exponential backoff", "When a call fails we retry with backoff and jitter.");
        for n in 2..14 {
            note(&test, &format!("decision:{n}"), "Waiting", &format!("We wait for spider {n} before we close."));
        }
        test.ok("embed", json!({}));
        let ask = |recipe: &str| {
            let request = json!({"query": "retry with backoff", "recipe": recipe, "limit": 12, "neighbor": {"per_primary_limit": 0}});
            test.ok("search", request)
        };
        let code = refs(&ask("code"));
        assert!(code[0].contains("net/retry.py"), "{code:?}");
        let mixed = ask("auto");
        let found = refs(&mixed);
        assert_eq!(mixed["meta"]["recipe"], "mixed");
        assert_eq!(found[0], "Decision:decision:1", "{found:?}");
        let first = found.iter().position(|name| *name == code[0]);
        assert!(first.is_some_and(|place| place <= 3), "{found:?}");
        assert!(code.iter().take(2).all(|name| found.contains(name)), "{found:?} of {code:?}");
        assert!(!found.iter().any(|name| name.contains("close_")), "what only sounds alike stays out: {found:?}");
    }
}

/// Generated files are indexed but not searched, unless the question names them.
#[test]
fn what_was_generated_is_known_and_not_searched() {
    for test in TestEngine::all() {
        let folder = TempDir::new().unwrap();
        let root = folder.path();
        write(
            root,
            "shop/till.go",
            "package shop\n\n// Charge takes a payment.\nfunc Charge(cents int) int {\n\treturn EncodePayment(cents)\n}\n",
        );
        write(
            root,
            "shop/wire.go",
            "// Code generated by wiregen. DO NOT EDIT.\n\npackage shop\n\n// EncodePayment encodes a payment payment payment.\nfunc EncodePayment(cents int) int {\n\treturn cents\n}\n",
        );
        write(root, "package-lock.json", "{\"payment\": \"payment payment\"}\n");
        write(root, "logo.svg", "<svg><title>payment</title></svg>\n");
        write(root, "node_modules/pay/index.js", "export function payment() { return 'payment' }\n");
        let report = test.ok("index_directory", json!({"path": root}));
        assert_eq!(report["left_out"], json!({"generated": 1, "lock": 1, "vector_graphics": 1}), "{report}");
        assert!(report["summary"].as_str().unwrap().contains("not searched: 1 generated, 1 lock"), "{report}");
        let folders: Vec<&Value> = report["diagnostics"].as_array().unwrap().iter().map(|d| &d["path"]).collect();
        assert_eq!(folders, ["node_modules"]);
        let again = test.ok("index_directory", json!({"path": root}));
        assert!(again["left_out"].is_null() && again["diagnostics"] == json!([]), "once: {again}");
        let found = |query: &str| {
            refs(&test.ok("search", json!({"query": query, "recipe": "code", "neighbor": {"per_primary_limit": 0}})))
        };
        let payment = found("payment");
        assert_eq!(payment[0], "Function:shop/till.go::Charge", "{payment:?}");
        let left_out = ["wire.go", "package-lock", "logo.svg", "node_modules"];
        assert!(!payment.iter().any(|name| left_out.iter().any(|out| name.contains(out))), "{payment:?}");
        let task = json!({"task": "payment is charged twice", "profile": "debug"});
        assert!(!test.ok("context_pack", task).to_string().contains("package-lock.json"));
        assert!(found("what does package-lock.json say of payment").contains(&"File:package-lock.json".to_owned()));
        assert!(found("where is EncodePayment from").contains(&"File:shop/wire.go".to_owned()));
        let callers = test.ok("get_callers", json!({"symbol": "shop/wire.go::EncodePayment"}));
        assert!(callers.to_string().contains("shop/till.go::Charge"), "calls into it count: {callers}");
    }
}

/// A method is found and placed by the lines of the file that it is written in, not of the file of its type.
#[test]
fn methods_written_apart_from_their_type_are_placed_in_their_own_file() {
    for test in TestEngine::all() {
        let folder = TempDir::new().unwrap();
        let root = folder.path();
        let files = [
            (
                "web/context.go",
                "package web\n\n// Context is a request.\ntype Context struct {\n\tquartz string\n\tquartzes []string\n\tmore string\n}\n",
            ),
            (
                "web/old.go",
                "package web\n\n// BindWith is old.\nfunc (c *Context) BindWith(to string) string {\n\tmarmot := to\n\treturn marmot\n}\n",
            ),
            ("part/Cargo.toml", "[package]\nname = \"part\"\n"),
            (
                "part/src/lib.rs",
                "mod more;\n\npub struct Part {\n    pub quartz: u32,\n    pub quartzes: u32,\n    pub more: u32,\n}\n",
            ),
            (
                "part/src/more.rs",
                "use crate::Part;\n\nimpl Part {\n    pub fn double(&self) -> u32 {\n        let marmot = 2;\n        marmot\n    }\n}\n",
            ),
        ];
        files.iter().for_each(|(path, text)| write(root, path, text));
        test.ok("index_directory", json!({"path": root}));
        let found = |query: &str| {
            let request = json!({"query": query, "recipe": "code", "neighbor": {"per_primary_limit": 0}, "include": ["path", "line"]});
            test.ok("search", request)["items"].as_array().unwrap().clone()
        };
        let by_body = found("marmot");
        for (reference, path, definition) in [
            ("web/old.go::Context::BindWith", "web/old.go", "func (c *Context) BindWith"),
            ("part/src/more.rs::Part::double", "part/src/more.rs", "    pub fn double"),
        ] {
            let is_it =
                |item: &&Value| item["ref"].as_str().is_some_and(|name| name.ends_with(&format!(":{reference}")));
            let item = by_body.iter().find(is_it).unwrap_or_else(|| panic!("{reference}: {by_body:?}"));
            assert_eq!(item["fields"]["path"], path, "{item}");
            let line = item["fields"]["line"].as_u64().unwrap() as usize;
            let text = files.iter().find(|(of, _)| *of == path).unwrap().1;
            assert!(text.lines().nth(line - 1).unwrap().starts_with(definition), "{item}");
            assert!(!found("quartz").iter().any(|item| is_it(&item)), "{reference} has no line of its type's file");
        }
    }
}

/// Binary files are mentioned once per pass, by their number, and are in no answer.
#[test]
fn binary_files_are_reported_once_as_not_searched() {
    for test in TestEngine::all() {
        let folder = TempDir::new().unwrap();
        let root = folder.path();
        write(root, "shop/till.py", "def charge(cents):\n    return cents\n");
        for name in ["logo.png", "shop/data.bin"] {
            std::fs::write(root.join(name), b"\x00\x01\x02 charge charge charge").unwrap();
        }
        let report = test.ok("index_directory", json!({"path": root}));
        let summary = report["summary"].as_str().unwrap();
        assert!(summary.ends_with("not searched: 2 binary"), "{summary}");
        let named = |answer: &Value| ["logo.png", "data.bin"].iter().any(|name| answer.to_string().contains(name));
        assert!(!named(&report), "counted, not listed: {report}");
        assert_eq!(report.to_string().matches("binary").count(), 1, "{report}");
        let found = test.ok("search", json!({"query": "charge"}));
        assert!(found.to_string().contains("shop/till.py::charge") && !named(&found), "{found}");
        let again = test.ok("index_directory", json!({"path": root}));
        assert!(!again.to_string().contains("binary") && again["not_text"].is_null(), "{again}");
    }
}

/// A later process reports what is new only, also in small trees and of files that were written just before.
#[test]
fn binary_files_are_reported_again_when_there_are_others() {
    for test in TestEngine::all() {
        let (folder, cache) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let root = folder.path();
        write(root, "shop/till.py", "def charge(cents):\n    return cents\n");
        write(root, "shop/till_pb2.py", "# Generated by the protocol buffer compiler.  DO NOT EDIT!\nX = 1\n");
        std::fs::write(root.join("logo.png"), b"\x00\x01\x02").unwrap();
        let index = |rebuild: bool| {
            let clock = std::sync::Arc::clone(&test.fixture.clock) as std::sync::Arc<dyn lukasa_store::Clock>;
            let store = std::sync::Arc::clone(&test.fixture.store);
            let engine = lukasa_engine::Engine::new(store, clock, std::env::temp_dir());
            let engine = engine.with_cache(cache.path().to_owned());
            let mut progress = |_, _| {};
            let scope = test.fixture.ledger.scope().clone();
            let mut context = lukasa_engine::Context::of(scope, &mut progress);
            let (operation, request) = match rebuild {
                true => ("graph_rebuild", json!({"path": root})),
                false => ("index_directory", json!({"path": root})),
            };
            let report = engine.call(&mut context, operation, request).unwrap();
            report["summary"].as_str().unwrap().split_once("; not searched: ").map_or("", |(_, said)| said).to_owned()
        };
        assert_eq!(index(false), "1 binary, 1 generated");
        assert_eq!(index(false), "");
        std::fs::write(root.join("shop/icon.png"), b"\x00\x01\x02").unwrap();
        assert_eq!(index(false), "1 binary");
        write(root, "shop/till.py", "def charge(cents):\n    return 2 * cents\n");
        assert_eq!(index(false), "", "the generated file is read for resolving, and was reported");
        assert_eq!(index(true), "2 binary, 1 generated");
    }
}

#[test]
fn citations_are_without_secrets_and_need_their_scope() {
    for test in TestEngine::all() {
        let whole = "A discount is rounded to whole cents at the till.";
        note(&test, "decision:1", "Discounts", whole);
        note(
            &test,
            "decision:2",
            "Keys",
            "The discount service has api_key = \"sk-live-0123456789abcdefghij\" for now.",
        );
        note(
            &test,
            "decision:3",
            "Tills",
            "The discount till has password=hunter2hunter2 and client_secret: QWERTY1234asdf.",
        );
        let asked = json!({"query": "discount of the till", "recipe": "objects", "include_citations": true});
        let answer = test.ok("search", asked.clone());
        let items = answer["items"].as_array().unwrap();
        assert_eq!(items.len(), 3, "{answer}");
        let mut cited: Vec<&Value> = items.iter().filter_map(|item| item["citations"].as_array()).flatten().collect();
        cited.sort_by_key(|citation| citation["span"].to_string());
        assert_eq!(cited.len(), 3, "{answer}");
        assert_eq!((&cited[0]["span"], cited[0].get("redacted")), (&json!(whole), None));
        for (citation, left) in [
            (cited[1], "The discount service has api_key = \"[redacted]\" for now."),
            (cited[2], "The discount till has password=[redacted] and client_secret: [redacted]."),
        ] {
            assert_eq!((&citation["span"], &citation["redacted"]), (&json!(left), &json!(true)), "{answer}");
        }
        for (scopes, cites) in [(vec!["graph:search:read"], false), (vec!["graph:search:*"], true)] {
            let mut progress = |_, _| ();
            let scope = test.fixture.ledger.scope().clone();
            let mut context = Context { grants: Grants::of(scopes), ..Context::of(scope, &mut progress) };
            let answer = test.engine.call(&mut context, "search", asked.clone()).unwrap();
            assert_eq!(answer.to_string().contains("\"citations\""), cites, "{answer}");
            assert_eq!(answer["items"].as_array().unwrap().len(), 3, "the results are returned without citations");
        }
    }
}

#[test]
fn a_model_behind_an_endpoint_reranks() {
    use lukasa_engine::features::search::RerankEndpoint;
    use lukasa_engine::model_endpoint::EndpointConfig;
    use lukasa_testkit::{FakeEndpoint, FakeReply};
    use std::time::Duration;
    let texts = |body: &Value| body["documents"].as_array().or(body["texts"].as_array()).unwrap().clone();
    // Prefers texts that contain pears.
    let scores = move |body: &Value| -> Vec<Value> {
        let of = |text: &Value| if text.as_str().unwrap().contains("pears") { 0.99 } else { 0.01 };
        texts(body).iter().enumerate().map(|(at, text)| json!({"index": at, "relevance_score": of(text)})).collect()
    };
    type Answer = Box<dyn Fn(&Value) -> FakeReply + Send + Sync>;
    let moods: [(&str, Answer); 7] = [
        ("results", Box::new(move |body| FakeReply::ok(json!({"results": scores(body)}).to_string()))),
        (
            "texts",
            Box::new(move |body| match body.get("texts") {
                None => FakeReply::status(422, "{\"error\": \"missing field `texts`\"}"),
                Some(_) => FakeReply::ok(json!(scores(body)).to_string()),
            }),
        ),
        ("slow", Box::new(|_| FakeReply::Nothing)),
        ("down", Box::new(|_| FakeReply::status(503, "no"))),
        ("gone", Box::new(|_| FakeReply::HangUp)),
        ("garbage", Box::new(|_| FakeReply::ok("<html>"))),
        ("few", Box::new(|_| FakeReply::ok("{\"results\": [{\"index\": 0, \"relevance_score\": 1}]}"))),
    ];
    for (name, mood) in moods {
        let fake = FakeEndpoint::start(move |asked, _| mood(&serde_json::from_str(&asked.body).unwrap()));
        let config = EndpointConfig {
            url: fake.url(),
            name: "judge".into(),
            key: None,
            timeout: Duration::from_millis(if name == "slow" { 50 } else { 20_000 }),
        };
        let mut test = TestEngine::all().remove(0);
        let searching = SearchState::default().with_patience(f64::INFINITY);
        test.engine = test
            .engine
            .clone()
            .with_searching(searching.with_reranker(Arc::new(RerankEndpoint::new(&config).unwrap())));
        note(&test, "apples", "Fruit", "Fruit, fruit and fruit: apples.");
        note(
            &test,
            "pears",
            "Basket",
            "A basket of fruit with pears and many other things; API_TOKEN=abcdefghijklmnop1234",
        );
        let ask = |rerank: bool| test.ok("search", json!({"query": "fruit", "recipe": "objects", "rerank": rerank}));
        let plain = refs(&ask(false));
        assert_eq!(plain, ["Decision:apples", "Decision:pears"], "{name}");
        let answer = ask(true);
        let rerank = &answer["meta"]["rerank"];
        assert_eq!(rerank["model"], "judge");
        let warnings = answer["meta"]["warnings"].to_string();
        match name {
            "results" | "texts" => {
                assert_eq!(rerank["applied"], true, "{name}: {answer}");
                assert_eq!(answer["items"][1]["reasons"].as_array().unwrap().last().unwrap()["channel"], "reranker");
                assert_eq!(answer["meta"]["warnings"], Value::Null);
            }
            _ => {
                assert_eq!((&rerank["applied"], refs(&answer)), (&json!(false), plain), "{name}");
                let timeout = rerank["timeout"] == true;
                assert!(timeout || !rerank["error"].as_str().unwrap().is_empty(), "{name}: {rerank}");
                assert!(
                    warnings.contains(if timeout { "rerank_timeout" } else { "rerank_failed" }),
                    "{name}: {warnings}"
                );
            }
        }
        for asked in fake.asked() {
            assert!(!asked.body.contains("abcdefghijklmnop1234"), "secrets stay here");
        }
    }
}
