//! What a search promises about its pages, filters, neighbours, citations and tokens, on every store.

use crate::search::{indexed, note, refs, without_ids, write};
use crate::test_engine::TestEngine;
use lukasa_engine::features::search::{NORMALIZATION, SearchState};
use lukasa_search::count::count;
use lukasa_store::Clock;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// An engine on each store. Stages are shed depending on the speed of the machine, with a warning; here none are.
fn tests() -> Vec<TestEngine> {
    let patient = |mut test: TestEngine| {
        test.engine = test.engine.clone().with_searching(SearchState::default().with_patience(f64::INFINITY));
        test
    };
    TestEngine::all().into_iter().map(patient).collect()
}

/// A request with more in it.
fn with(mut request: Value, more: &Value) -> Value {
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request
}

/// All pages from the first on.
fn pages(test: &TestEngine, request: &Value) -> Vec<Value> {
    let mut all = vec![test.ok("search", request.clone())];
    while let Some(cursor) = all.last().unwrap()["next_cursor"].as_str() {
        let next = test.ok("search", with(request.clone(), &json!({"cursor": cursor})));
        all.push(next);
        assert!(all.len() < 100, "pages end");
    }
    all
}

/// Words that occur only once: repeated content is left out.
fn words(n: usize) -> String {
    let syllable = |digit: usize| ["ka", "lo", "mi", "ru", "se", "ta", "vo", "wi", "xe", "zu"][digit % 10];
    let word = |n: usize| format!("{}{}{}", syllable(n / 100), syllable(n / 10), syllable(n));
    (0..8).map(|k| word(n * 8 + k)).collect::<Vec<_>>().join(" ")
}

/// Decisions about discounts, of which every fourth has no words of its own, linked to meetings and to one another.
fn many(test: &TestEngine, decisions: usize) {
    let mut writes = vec![];
    for n in 0..decisions {
        let text = match n % 4 {
            0 => "Discounts are rounded to whole cents.".to_owned(),
            _ => format!("Discount {n} is rounded at till {n}, {}.", words(n)),
        };
        let own = format!("Rule {}", n / 2);
        writes.push(
            json!({"object": {"type": "Decision", "key": format!("d{n}"), "title": own, "properties": {"text": text}}}),
        );
    }
    for n in 0..decisions / 3 {
        let minutes = words(100 + n);
        writes.push(json!({"object": {"type": "Meeting", "key": format!("m{n}"), "title": format!("Week {n}"), "properties": {"minutes": minutes}}}));
        for d in BTreeSet::from([n, n * 3, decisions - 1 - n]) {
            let link = json!({"type": "decides", "src": format!("Meeting:m{n}"), "dst": format!("Decision:d{d}")});
            writes.push(json!({"relationship": link}));
        }
    }
    test.ok("batch", json!({"writes": writes}));
}

#[test]
fn pages_together_are_one_large_page() {
    for test in tests() {
        many(&test, 30);
        for more in [json!({}), json!({"recipe": "objects", "fusion": "rrf"}), json!({"max_token_budget": 700})] {
            let ask = |limit: usize| with(json!({"query": "discount rounded at the till", "limit": limit}), &more);
            let large: Vec<String> = pages(&test, &ask(40)).iter().flat_map(refs).collect();
            let mut once = large.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), large.len(), "nothing comes twice: {large:?}");
            assert!(large.iter().any(|name| name.starts_with("Meeting:")) && large.len() > 25, "{large:?}");
            for limit in [3, 10] {
                let small = pages(&test, &ask(limit));
                let names: Vec<String> = small.iter().flat_map(refs).collect();
                assert_eq!(names, large, "{more} in pages of {limit}");
                // And back again.
                let (mut back, mut page) = (refs(small.last().unwrap()), small.last().unwrap().clone());
                while let Some(cursor) = page["previous_cursor"].as_str() {
                    page = test.ok("search", with(ask(limit), &json!({"cursor": cursor})));
                    back.splice(0..0, refs(&page));
                }
                assert_eq!(back, large, "{more} back in pages of {limit}");
                let ways = |page: &Value| page["path_summaries"].as_array().cloned().unwrap_or_default();
                let mut ids: Vec<String> = small.iter().flat_map(ways).map(|way| way["path_id"].to_string()).collect();
                let all = ids.len();
                ids.sort();
                ids.dedup();
                assert_eq!(ids.len(), all, "a relationship is listed once");
            }
        }
    }
}

#[test]
fn a_cursor_is_refused_when_the_order_changes() {
    let test = tests().remove(0);
    many(&test, 12);
    let request = json!({"query": "discount rounded", "recipe": "objects", "limit": 3});
    let first = test.ok("search", request.clone());
    let cursor = json!({"cursor": first["next_cursor"]});
    let other = with(with(request.clone(), &cursor), &json!({"fusion": "rrf"}));
    assert_eq!(test.fails("search", other), "cursor_of_another_request");
    test.ok("search", with(request.clone(), &cursor));
    // The same request now matches by words and meaning.
    test.ok("embed", json!({}));
    assert_eq!(test.fails("search", with(request.clone(), &cursor)), "stale_cursor");
    let again = test.ok("search", request.clone());
    test.ok("search", with(request, &json!({"cursor": again["next_cursor"]})));
}

#[test]
fn a_further_page_sheds_the_same_stages_as_the_first() {
    let mut test = tests().remove(0);
    many(&test, 12);
    let request = json!({"query": "discount rounded", "recipe": "objects", "limit": 3});
    let plain = test.ok("search", request.clone());
    assert!(plain["meta"]["warnings"].is_null());
    let cursor = json!({"cursor": plain["next_cursor"]});
    test.engine = test.engine.clone().with_searching(SearchState::default().with_patience(1e-9));
    // Some requests whose durations are recorded.
    for _ in 0..4 {
        test.ok("search", request.clone());
    }
    let hurried = test.ok("search", request.clone());
    assert!(hurried["meta"]["warnings"].to_string().contains("candidate_pool_reduced"), "{hurried}");
    let second = test.ok("search", with(request.clone(), &json!({"cursor": hurried["next_cursor"]})));
    assert_eq!(second["meta"]["warnings"], hurried["meta"]["warnings"]);
    let second = test.ok("search", with(request, &cursor));
    assert!(second["meta"]["warnings"].is_null(), "the list that was begun is continued: {second}");
}

#[test]
fn without_words_only_meaning_counts_for_code_too() {
    let test = tests().remove(0);
    let _folder = indexed(&test);
    note(&test, "decision:1", "Discounts are rounded", "A discount is rounded to whole cents at the till.");
    let ask = |recipe: &str| {
        let only = json!({"per_primary_limit": 0});
        test.ok(
            "search",
            json!({"query": "discount of a basket", "recipe": recipe, "channels": ["vector"], "neighbor": only}),
        )
    };
    for recipe in ["auto", "code", "mixed", "objects"] {
        assert!(refs(&ask(recipe)).is_empty(), "{recipe}: nothing has a vector yet");
    }
    test.ok("embed", json!({}));
    for recipe in ["auto", "code", "mixed", "objects"] {
        let answer = ask(recipe);
        assert!(!refs(&answer).is_empty(), "{recipe}");
        for item in answer["items"].as_array().unwrap() {
            let channels: Vec<&Value> = item["reasons"].as_array().unwrap().iter().map(|r| &r["channel"]).collect();
            assert_eq!(channels, ["vector"], "{recipe}: {item}");
        }
        assert_eq!(answer["meta"]["channels"], json!(["vector"]));
        assert_eq!(answer["meta"]["lexical_considered"], 0);
    }
    assert!(refs(&ask("code")).iter().all(|name| !name.starts_with("Decision")), "only code");
}

#[test]
fn a_filter_does_not_hide_what_is_near() {
    let test = tests().remove(0);
    let mut writes =
        vec![json!({"object": {"type": "Memo", "key": "m", "title": "Prices are reduced by a number of cents."}})];
    for n in 0..420 {
        writes
            .push(json!({"object": {"type": "Note", "key": format!("n{n}"), "title": format!("discount number {n}")}}));
    }
    test.ok("batch", json!({"writes": writes}));
    test.ok("embed", json!({}));
    let request =
        json!({"query": "discount number", "channels": ["vector"], "object_types": ["Memo"], "recipe": "objects"});
    assert_eq!(refs(&test.ok("search", request)), ["Memo:m"], "though hundreds are nearer");
}

#[test]
fn labels_and_times_hold_for_neighbours_and_paths() {
    for test in tests() {
        let put = |kind: &str, key: &str, title: &str, label: &str| {
            test.ok("put", json!({"type": kind, "key": key, "title": title, "label": [label]}));
        };
        put("Meeting", "old", "Ancient", "shop");
        test.fixture.clock.advance(1_000);
        let since = test.fixture.clock.now().to_string();
        test.fixture.clock.advance(1_000);
        put("Decision", "d", "Discounts are rounded", "shop");
        put("Meeting", "shop", "Fresh", "shop");
        put("Meeting", "other", "Foreign", "other");
        for meeting in ["old", "shop", "other"] {
            test.ok("link", json!({"type": "decides", "src": format!("Meeting:{meeting}"), "dst": "Decision:d"}));
        }
        let ask =
            |more: Value| test.ok("search", with(json!({"query": "discounts rounded", "recipe": "objects"}), &more));
        assert_eq!(refs(&ask(json!({}))).len(), 4);
        for (more, names, unsaid) in [
            (json!({"labels_any": ["shop"]}), vec!["Decision:d", "Meeting:old", "Meeting:shop"], "Foreign"),
            (json!({"updated_after": since}), vec!["Decision:d", "Meeting:other", "Meeting:shop"], "Ancient"),
            (json!({"updated_after": since, "labels_any": ["shop"]}), vec!["Decision:d", "Meeting:shop"], "Ancient"),
        ] {
            let answer = ask(more.clone());
            let mut found = refs(&answer);
            found.sort();
            assert_eq!(found, names, "{more}");
            assert!(!answer.to_string().contains(unsaid), "{more}: {answer}");
        }
    }
}

#[test]
fn citations_are_few_verbatim_and_never_of_what_is_hidden() {
    for test in tests() {
        let rule =
            |n: usize| format!("Nothing of that here. Discount {n} is  rounded at till {n}! The end: {}.", words(n));
        for n in 0..14 {
            note(&test, &format!("d{n}"), &format!("Rule {n}"), &rule(n));
        }
        let secret = json!({"content": "Discount rounded by secret.", "sensitive": true});
        test.ok("put", json!({"type": "EPISODE", "key": "e", "properties": secret}));
        test.ok("link", json!({"type": "tells", "src": "EPISODE:e", "dst": "Decision:d0"}));
        let request = json!({"query": "discount rounded till", "limit": 20, "include_citations": true, "max_token_budget": 4_000});
        let answer = test.ok("search", request);
        let items = answer["items"].as_array().unwrap();
        let cited: Vec<&Value> = items.iter().filter_map(|item| item["citations"].as_array()).flatten().collect();
        assert_eq!(cited.len(), 8, "{answer}");
        for citation in cited {
            let span = citation["span"].as_str().unwrap();
            assert!((0..14).any(|n| rule(n).contains(span)) && span.starts_with("Discount"), "{span}");
            assert!(items.iter().any(|item| item["object_id"] == citation["source_object_id"]));
        }
        assert!(!answer.to_string().contains("secret"));
    }
}

#[test]
fn the_whole_answer_keeps_to_its_budget() {
    for test in tests() {
        many(&test, 40);
        let _folder = indexed(&test);
        for (budget, least) in [(400, 1), (700, 2), (4_000, 10)] {
            for more in [
                json!({}),
                json!({"debug": true}),
                json!({"include_citations": true, "neighbor": {"per_primary_limit": 10, "max_depth": 2}}),
                json!({"recipe": "objects", "rerank": true, "debug": true}),
            ] {
                let request = json!({"query": "discount rounded at the till", "limit": 40, "max_token_budget": budget});
                for page in pages(&test, &with(request, &more)) {
                    let tokens = count(&page.to_string());
                    assert!(tokens <= budget, "{tokens} of {budget}, {more}: {page}");
                    assert!(tokens <= page["meta"]["token_estimate"].as_u64().unwrap() as usize, "{tokens}: {page}");
                    let items = page["items"].as_array().unwrap().len();
                    assert!(items >= least || page["next_cursor"].is_null(), "{items} at {budget}, {more}: {page}");
                }
            }
        }
    }
}

#[test]
fn neighbours_are_few_gain_little_and_hubs_are_sampled() {
    for test in tests() {
        let mut writes = vec![json!({"object": {"type": "Decision", "key": "hub", "title": "Discounts are rounded"}})];
        for n in 0..520 {
            let (kind, link) = match n {
                0..500 => ("Person", "knows"),
                500 => ("Meeting", "decides"),
                _ => ("Place", "is_at"),
            };
            writes.push(json!({"object": {"type": kind, "key": format!("n{n}"), "title": format!("named {n}")}}));
            let link = json!({"type": link, "src": format!("{kind}:n{n}"), "dst": "Decision:hub"});
            writes.push(json!({"relationship": link}));
        }
        test.ok("batch", json!({"writes": writes}));
        let ask = |more: Value| {
            let request = json!({"query": "discounts rounded", "recipe": "objects", "debug": true, "limit": 40});
            test.ok("search", with(request, &more))
        };
        let answer = ask(json!({}));
        assert_eq!(answer["meta"]["neighbor_expanded"], 3, "of each result three");
        assert_eq!(
            (&answer["debug"]["expansion"]["hub_sampled"], &answer["debug"]["expansion"]["hub_degree"]),
            (&json!(true), &json!(520))
        );
        let kinds: Vec<String> = refs(&answer).iter().map(|name| name.split(':').next().unwrap().to_owned()).collect();
        let of_most = kinds.iter().filter(|kind| *kind == "Person").count();
        assert!(kinds.len() == 4 && of_most < 3, "one type does not crowd out the others: {kinds:?}");
        let some = ask(json!({"neighbor": {"per_primary_limit": 20, "global_limit": 5}}));
        assert_eq!(
            (&some["meta"]["neighbor_expanded"], &some["debug"]["expansion"]["truncated"]),
            (&json!(5), &json!(true))
        );
    }
}

#[test]
fn what_a_neighbour_gains_is_capped() {
    for test in tests() {
        let mut writes = vec![json!({"object": {"type": "Meeting", "key": "m", "title": "Weekly"}})];
        for n in 0..10 {
            writes.push(json!({"object": {"type": "Decision", "key": format!("d{n}"), "title": format!("Discount w{n} rounded")}}));
            for link in ["decides", "notes", "repeats"] {
                let link = json!({"type": link, "src": "Meeting:m", "dst": format!("Decision:d{n}")});
                writes.push(json!({"relationship": link}));
            }
        }
        test.ok("batch", json!({"writes": writes}));
        let answer = test.ok("search", json!({"query": "discount rounded", "recipe": "objects", "limit": 20}));
        let items = answer["items"].as_array().unwrap();
        let meeting = items.iter().find(|item| item["ref"] == "Meeting:m").unwrap();
        let score = |item: &Value| item["score"].as_f64().unwrap();
        let best = items.iter().filter(|item| item["role"] == "primary").map(score).fold(0.0, f64::max);
        assert!(score(meeting) <= 0.35 * best + 1e-6 && score(meeting) > 0.2 * best, "{} of {best}", score(meeting));
    }
}

#[test]
fn a_neighbour_that_repeats_a_result_is_listed_by_its_path_only() {
    for test in tests() {
        let text = "Discounts are rounded to whole cents at the till whenever somebody pays in coins";
        for n in 0..5 {
            note(&test, &format!("d{n}"), "Discounts rounded", text);
        }
        test.ok(
            "put",
            json!({"type": "Decision", "key": "again", "properties": {"minutes": "whole cents at the till"}}),
        );
        test.ok("link", json!({"type": "repeats", "src": "Decision:d0", "dst": "Decision:again"}));
        let answer = test.ok("search", json!({"query": "discounts rounded", "recipe": "objects"}));
        assert!(!refs(&answer).contains(&"Decision:again".to_owned()), "{answer}");
        let path = &answer["path_summaries"][0];
        assert_eq!(path["role"], "summary_only", "{answer}");
        assert!(path["summary"].as_str().unwrap().contains("repeats"));
    }
}

#[test]
fn the_nearer_to_an_anchor_the_higher() {
    for test in tests() {
        for key in ["far", "near", "beside"] {
            test.ok("put", json!({"type": "Decision", "key": key, "title": "Discounts are rounded"}));
        }
        test.ok("put", json!({"type": "Service", "key": "till", "title": "Till"}));
        let link = |src: &str, dst: &str| test.ok("link", json!({"type": "touches", "src": src, "dst": dst}));
        link("Service:till", "Decision:beside");
        link("Decision:beside", "Decision:near");
        link("Decision:near", "Decision:far");
        let ask = |more: Value| {
            let request =
                json!({"query": "discounts rounded", "recipe": "objects", "neighbor": {"per_primary_limit": 0}});
            refs(&test.ok("search", with(request, &more)))
        };
        let all = ["Decision:beside", "Decision:near", "Decision:far"];
        assert_eq!(ask(json!({"anchor": "Service:till"})), all);
        assert_eq!(
            ask(json!({"anchor": "Decision:far", "semantic_weight": 0.1, "graph_weight": 0.9})),
            [all[2], all[1], all[0]]
        );
    }
}

#[test]
fn an_intent_can_be_given_and_ranking_is_reported() {
    for test in tests() {
        note(&test, "decision:1", "Timeout", "The timeout setting is ten seconds.");
        let ask =
            |more: Value| test.ok("search", with(json!({"query": "timeout setting", "recipe": "objects"}), &more));
        assert_eq!(ask(json!({}))["meta"]["intent"], "locate_config");
        let answer = ask(json!({"intent_override": "roadmap"}));
        assert_eq!(answer["meta"]["intent"], "roadmap");
        assert_eq!(answer["meta"]["normalization_version"], NORMALIZATION);
        assert!(answer["meta"].get("embedding_model").is_none() && answer["meta"].get("skipped_unembedded").is_none());
        test.ok("embed", json!({}));
        note(&test, "decision:2", "Timeout again", "The timeout setting is eleven seconds.");
        let answer = ask(json!({}));
        assert!(answer["meta"]["embedding_model"].as_str().unwrap().contains("gte-small"), "{answer}");
        assert_eq!(answer["meta"]["skipped_unembedded"], 1, "the newer one waits for its vector");
        assert!(answer["meta"].get("warnings").is_none());
    }
}

#[test]
fn vectors_and_packs_give_the_same_on_every_store() {
    let mut seen: Option<(Value, Value)> = None;
    for test in tests() {
        let _folder = indexed(&test);
        many(&test, 12);
        test.ok("embed", json!({}));
        for _ in 0..5 {
            let plain = |mut answer: Value| -> Value {
                answer["meta"]["elapsed_ms"] = json!(0);
                answer["meta"]["token_estimate"] = json!(0);
                answer["view"] = json!({});
                for name in ["next_cursor", "previous_cursor"] {
                    answer.as_object_mut().unwrap().remove(name);
                }
                serde_json::from_str(&without_ids(&answer.to_string())).unwrap()
            };
            let found =
                plain(test.ok("search", json!({"query": "discount of a basket at the till", "recipe": "objects"})));
            assert_eq!(found["meta"]["channels"], json!(["lexical", "vector"]));
            let pack = test.ok("context_pack", json!({"task": "discount of a basket is wrong", "profile": "balanced"}));
            let (first, packed) = seen.get_or_insert_with(|| (found.clone(), pack.clone()));
            assert_eq!(&found, first, "{}", test.fixture.name);
            assert_eq!(&pack, packed, "{}", test.fixture.name);
        }
    }
}

#[test]
fn a_debug_pack_gives_everything_whole_in_pages() {
    let test = tests().remove(0);
    let folder = tempfile::tempdir().unwrap();
    for n in 0..60 {
        let body = "    total = total + rate * basket[total]\n".repeat(n % 7 * 4 + 1);
        let text = format!(
            "def discount_{n}(total, rate, basket):\n    \"\"\"Discount of kind {n}.\"\"\"\n{body}    return total\n"
        );
        write(folder.path(), &format!("shop/kind_{n}.py"), &text);
    }
    let long = "    total = total * 2 # discount\n".repeat(300);
    write(folder.path(), "shop/long.py", &format!("def discount_of_all(total):\n{long}    return total\n"));
    test.ok("index_directory", json!({"path": folder.path()}));
    for n in 0..12 {
        note(&test, &format!("d{n}"), &format!("Discount rule {n}"), "A discount is rounded.");
    }
    let request = json!({"task": "discount of a basket is wrong", "profile": "debug", "budget": 1_500});
    let (mut symbols, mut decisions, mut all) = (vec![], vec![], vec![]);
    let mut page = test.ok("context_pack", request.clone());
    loop {
        let tokens = count(&page.to_string());
        assert!(tokens <= 1_500 && tokens <= page["token_estimate"].as_u64().unwrap() as usize, "{tokens}");
        symbols.extend(page["core_symbols"].as_array().unwrap().clone());
        decisions.extend(page["decisions"].as_array().cloned().unwrap_or_default());
        all.push(page.clone());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        page = test.ok("context_pack", with(request.clone(), &json!({"cursor": cursor})));
        assert!(all.len() < 100, "pages end");
    }
    assert!(all.len() > 2 && page["left_out"].is_null(), "{page}");
    let mut names: Vec<String> = symbols.iter().map(|symbol| symbol["symbol_name"].to_string()).collect();
    let count_of = |part: &str| names.iter().filter(|name| name.contains(part)).count();
    assert_eq!(count_of("discount_"), 61, "more than a brief pack chooses from: {names:?}");
    let is_short = |symbol: &&Value| symbol["symbol_name"].as_str().unwrap().starts_with("discount_");
    for symbol in symbols.iter().filter(is_short).filter(|symbol| symbol["file"] != "shop/long.py") {
        assert!(symbol["code"].is_string(), "whole: {symbol}");
    }
    let long = symbols.iter().find(|symbol| symbol["symbol_name"] == "discount_of_all").unwrap();
    assert!(long["code"].is_null() && long["signature"].is_string(), "no page holds it: {long}");
    assert_eq!(decisions.len(), 12);
    let before = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), before, "nothing comes twice");
}
