//! Context packs of all sizes: required contents, and low confidence.

use crate::test_engine::TestEngine;
use lukasa_engine::response_budget::Profile;
use lukasa_engine::{registry, response_budget};
use lukasa_search::count::count;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

const TASK: &str = "invoices are rounded wrongly when a ledger has several currencies";

fn write(root: &Path, path: &str, text: &str) {
    let place = root.join(path);
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::write(place, text).unwrap();
}

/// Many files that share words with the task, one function that it is about.
fn indexed(test: &TestEngine) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let body = "    total = total + currency.rate * amount  # a ledger has currencies\n".repeat(12);
    let rounding = format!(
        "class Ledger:\n    def round_invoices_of_currencies(self, invoices, currencies):\n        \"\"\"Rounds invoices of a ledger in several currencies.\"\"\"\n{}        return total\n\n    def size(self):\n        return 1\n",
        body.replace("    total", "        total")
    );
    write(root, "billing/rounding.py", &rounding);
    for n in 0..30 {
        let text = format!(
            "def prepare_invoice_{n}(ledger, currency):\n    \"\"\"Prepares an invoice of a ledger, kind {n}.\"\"\"\n{body}    return total\n"
        );
        write(root, &format!("billing/kinds/invoice_kind_{n}.py"), &text);
    }
    write(
        root,
        "README.md",
        "# Billing\n\nInvoices of a ledger.\n\nCurrencies are rounded when invoices are printed.\n",
    );
    write(root, "docs/ledger.rst", "Ledger\n======\n\nA ledger has several currencies and invoices.\n");
    write(root, "math/sums.py", "def add(a, b):\n    return a + b\n");
    test.ok("index_directory", json!({"path": root}));
    folder
}

const ENTRY: &str = "billing/rounding.py::Ledger::round_invoices_of_currencies";

fn protect(test: &TestEngine) {
    test.ok(
        "agent_claim",
        json!({"target_id": ENTRY, "agent_id": "ann", "intent": "rewriting how invoices are rounded"}),
    );
    test.ok(
        "decision_add",
        json!({"title": "Round half to even", "rationale": "Auditors ask for it in every country we sell to.",
            "entities": [ENTRY], "agent_id": "ada"}),
    );
    test.ok(
        "episode_add",
        json!({"type": "LEARNING", "content": "Never round before the currencies are converted. It cost us a week.",
            "entities": [ENTRY], "metadata": {"confidence": 0.9}}),
    );
    // Notes about other code, which share more words with the task.
    for n in 0..12 {
        let about = format!("billing/kinds/invoice_kind_{n}.py");
        let content = "Invoices of a ledger are rounded wrongly when it has several currencies, so look at the ledger.";
        test.ok(
            "episode_add",
            json!({"type": "LEARNING", "content": content, "entities": [about], "id": format!("l{n}")}),
        );
        test.ok(
            "decision_add",
            json!({"title": format!("Invoices, rounded, rule {n}"), "rationale": content, "entities": [about]}),
        );
    }
}

/// The data of the answer as an agent receives it.
fn by_agent(test: &TestEngine, mut request: Value, profile: Profile) -> Value {
    let operation = registry::find("context_pack").unwrap();
    request["profile"] = json!(profile.name());
    let mut arguments = request.as_object().unwrap().clone();
    let options = response_budget::take_response_options(operation, &mut arguments).unwrap();
    let answer =
        response_budget::fit_response(operation, test.ok("context_pack", Value::Object(arguments)), options).unwrap();
    assert!(count(&answer.to_string()) <= profile.tokens(), "{answer}");
    let mut data = answer["data"].clone();
    data["summary"] = answer["summary"].clone();
    data
}

fn text(list: &Value) -> String {
    list.as_array().into_iter().flatten().map(|note| note["content"].as_str().unwrap_or_default()).collect()
}

#[test]
fn a_pack_of_any_size_carries_claims_decisions_and_learnings_about_where_to_begin() {
    for test in TestEngine::all() {
        let _folder = indexed(&test);
        protect(&test);
        let ask = || json!({"task": TASK, "agent_id": "bob"});
        let mut packs = vec![
            ("agent, compact".to_owned(), by_agent(&test, ask(), Profile::Compact)),
            ("agent, balanced".to_owned(), by_agent(&test, ask(), Profile::Balanced)),
            ("agent, debug".to_owned(), by_agent(&test, ask(), Profile::Debug)),
        ];
        for profile in ["compact", "balanced", "debug"] {
            let mut request = ask();
            request["profile"] = json!(profile);
            packs.push((profile.to_owned(), test.ok("context_pack", request)));
        }
        for budget in [200, 240, 400, 600, 800, 2_000] {
            let mut request = ask();
            request["budget"] = json!(budget);
            let pack = test.ok("context_pack", request);
            assert!(count(&pack.to_string()) <= budget, "{budget}: {pack}");
            packs.push((format!("budget {budget}"), pack));
        }
        for (what, pack) in packs {
            assert_eq!(pack["entry_point"], ENTRY, "{what}: {pack}");
            assert_eq!(pack["active_blockers"][0]["agent"], "ann", "{what}: {pack}");
            assert!(text(&pack["decisions"]).contains("Round half to even: Auditors"), "{what}: {pack}");
            assert!(text(&pack["learnings"]).contains("Never round before"), "{what}: {pack}");
            assert!(!pack["core_symbols"].as_array().unwrap().is_empty(), "{what}: {pack}");
            assert!(pack["notice"].is_string(), "{what}: {pack}");
        }
    }
}

#[test]
fn claims_decisions_and_learnings_come_before_neighbours() {
    for test in TestEngine::all() {
        let folder = indexed(&test);
        let (conversion, rounding) = ("billing/conversion.py", "billing/rounding.py");
        let convert = |n: usize| {
            format!("def convert_{n}(amount):\n    \"\"\"Converts an amount, kind {n}.\"\"\"\n    return amount\n\n\n")
        };
        write(folder.path(), conversion, &(0..12).map(convert).collect::<String>());
        let calls: String = (0..12).map(|n| format!("        convert_{n}(total)\n")).collect();
        let before = std::fs::read_to_string(folder.path().join(rounding)).unwrap();
        let after = before.replacen("        return total\n", &format!("{calls}        return total\n"), 1);
        write(folder.path(), rounding, &format!("from billing.conversion import *\n\n\n{after}"));
        test.ok("index_directory", json!({"path": folder.path()}));
        protect(&test);
        let (mut with_neighbours, mut without) = (0, 0);
        for budget in (160..2_400).step_by(80) {
            let pack = test.ok("context_pack", json!({"task": TASK, "agent_id": "bob", "budget": budget}));
            assert_eq!(pack["entry_point"], ENTRY, "{budget}: {pack}");
            let shown = [
                pack["active_blockers"][0]["agent"] == "ann",
                text(&pack["decisions"]).contains("Round half to even"),
                text(&pack["learnings"]).contains("Never round before"),
            ];
            match pack["dependencies"].as_array().is_some_and(|neighbours| !neighbours.is_empty()) {
                true => with_neighbours += 1,
                false => without += 1,
            }
            assert!(pack["dependencies"].is_null() || shown == [true; 3], "{budget}: {shown:?} {pack}");
            assert!(budget < 240 || shown == [true; 3], "{budget}: {shown:?} {pack}");
        }
        assert!(with_neighbours > 3 && without > 0, "{with_neighbours} {without}");
    }
}

#[test]
fn the_smallest_pack_names_who_has_claimed_where_to_begin() {
    let test = TestEngine::all().remove(0);
    let _folder = indexed(&test);
    protect(&test);
    let pack = test.ok("context_pack", json!({"task": TASK, "agent_id": "bob", "budget": 120}));
    assert!(count(&pack.to_string()) <= 120, "{pack}");
    assert_eq!(pack["active_blockers"][0]["agent"], "ann", "{pack}");
}

/// A task that cannot proceed, with what it is about.
fn task(test: &TestEngine, id: &str, more: Value) {
    let mut request = json!({"task_id": id, "title": format!("Task {id}"), "agent_id": "ada"});
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    test.ok("task_update", request);
}

#[test]
fn blocked_tasks_about_where_to_begin_are_in_packs_of_every_size() {
    for test in TestEngine::all() {
        let _folder = indexed(&test);
        task(&test, "10", json!({}));
        task(&test, "11", json!({"targets": [ENTRY], "blocked_by": ["10"]}));
        // About other code, open, over: none of them is in the way.
        task(&test, "12", json!({"targets": ["math/sums.py"], "blocked_by": ["10"]}));
        task(&test, "13", json!({"targets": [ENTRY]}));
        task(&test, "14", json!({"targets": [ENTRY], "blocked_by": ["10"], "status": "cancelled"}));
        let ask = || json!({"task": TASK, "agent_id": "bob"});
        let mut packs: Vec<(String, Value)> = [Profile::Compact, Profile::Balanced, Profile::Debug]
            .map(|profile| (profile.name().to_owned(), by_agent(&test, ask(), profile)))
            .into();
        for budget in [200, 240, 400, 600, 800, 2_000] {
            let mut request = ask();
            request["budget"] = json!(budget);
            packs.push((format!("budget {budget}"), test.ok("context_pack", request)));
        }
        for (what, pack) in packs {
            let blockers = text(&pack["active_blockers"]);
            assert!(blockers.contains("waits for task:10"), "{what}: {pack}");
            assert_eq!(pack["active_blockers"].as_array().unwrap().len(), 1, "{what}: {pack}");
            assert!(
                pack["summary"].as_str().unwrap().contains("1 blocked task: see active_blockers"),
                "{what}: {pack}"
            );
        }
        test.ok("task_update", json!({"task_id": "10", "status": "completed", "agent_id": "ada"}));
        assert!(test.ok("context_pack", ask())["active_blockers"].is_null(), "nothing is waited for");
    }
}

#[test]
fn tasks_are_blockers_for_what_contains_their_code_and_for_their_own_pack() {
    for test in TestEngine::all() {
        let _folder = indexed(&test);
        task(&test, "20", json!({"targets": ["billing/rounding.py"], "status": "blocked"}));
        // Of no code, but the pack is made for it.
        task(&test, "21", json!({"blocked_by": ["20"]}));
        task(&test, "22", json!({"targets": [ENTRY]}));
        let mut request = json!({"task": TASK, "agent_id": "bob"});
        let blockers = |request: &Value| -> Vec<String> {
            let pack = test.ok("context_pack", request.clone());
            let all = pack["active_blockers"].as_array().cloned().unwrap_or_default();
            all.iter().map(|note| note["content"].as_str().unwrap().to_owned()).collect()
        };
        request["profile"] = json!("balanced");
        assert_eq!(blockers(&request), ["Task 20: marked as blocked"]);
        request["task_id"] = json!("21");
        let found = blockers(&request);
        assert!(found.len() == 2 && found.iter().any(|note| note.contains("waits for task:20")), "{found:?}");
        // The claim blocks a task as well, but is listed itself.
        test.ok("agent_claim", json!({"target_id": ENTRY, "agent_id": "ann", "intent": "rewriting it"}));
        let found = blockers(&request);
        assert!(found.len() == 3 && found[0].contains("rewriting it"), "{found:?}");
        assert!(!found.iter().any(|note| note.contains("Task 22")), "{found:?}");
    }
}

#[test]
fn a_summary_points_only_at_what_is_there() {
    let test = TestEngine::all().remove(0);
    let _folder = indexed(&test);
    for n in 0..12 {
        let target = format!("billing/kinds/invoice_kind_{n}.py");
        test.ok(
            "agent_claim",
            json!({"target_id": target, "agent_id": format!("agent-{n}"), "intent": "printing invoices ".repeat(9)}),
        );
    }
    for budget in (120..1_000).step_by(40) {
        let pack = test.ok("context_pack", json!({"task": TASK, "agent_id": "bob", "budget": budget}));
        let summary = pack["summary"].as_str().unwrap();
        assert!(!summary.contains("see active_blockers") || pack["active_blockers"].is_array(), "{pack}");
        assert!(!summary.contains("concerned"), "{pack}");
    }
}

#[test]
fn holders_of_claims_on_shown_code_are_named() {
    let test = TestEngine::all().remove(0);
    let _folder = indexed(&test);
    let keys: Vec<String> =
        (0..30).map(|n| format!("billing/kinds/invoice_kind_{n}.py::prepare_invoice_{n}")).collect();
    for (n, key) in keys.iter().enumerate() {
        test.ok(
            "agent_claim",
            json!({"target_id": key, "agent_id": format!("agent-{n}"), "intent": "printing invoices"}),
        );
    }
    for profile in [Profile::Compact, Profile::Balanced] {
        let pack = by_agent(&test, json!({"task": TASK, "agent_id": "bob"}), profile);
        let claimed = text(&pack["active_blockers"]);
        let shown =
            pack["core_symbols"].as_array().unwrap().iter().map(|slice| {
                format!("{}::{}", slice["file"].as_str().unwrap(), slice["symbol_name"].as_str().unwrap())
            });
        for key in shown.filter(|key| keys.contains(key)).take(8) {
            assert!(claimed.contains(&key), "{key} is claimed: {pack}");
        }
    }
}

#[test]
fn every_row_has_content_without_repetition() {
    for test in TestEngine::all() {
        let _folder = indexed(&test);
        for (task, profile) in [
            (TASK, "compact"),
            (TASK, "balanced"),
            ("what does the readme say of currencies", "balanced"),
            ("add", "compact"),
        ] {
            let pack = test.ok("context_pack", json!({"task": task, "profile": profile}));
            for slice in pack["core_symbols"].as_array().unwrap() {
                let has = |field: &str| slice[field].as_str().is_some_and(|text| !text.is_empty());
                assert!(has("code") || has("signature") || has("summary"), "{slice}");
                if let (Some(signature), Some(summary)) = (slice["signature"].as_str(), slice["summary"].as_str()) {
                    assert!(!summary.contains(signature), "{slice}");
                }
                let file = slice["file"].as_str().unwrap();
                let is_document = file.ends_with(".md") || file.ends_with(".rst");
                assert!(!is_document || slice["end_line"].as_u64().unwrap() > 1, "{slice}");
            }
        }
        let pack = test
            .ok("context_pack", json!({"task": "what do docs say: currencies are rounded when invoices are printed"}));
        let readme = pack["core_symbols"].as_array().unwrap().iter().find(|slice| slice["file"] == "README.md");
        if let Some(readme) = readme {
            assert_eq!(readme["summary"], "Currencies are rounded when invoices are printed.", "{pack}");
        }
    }
}

#[test]
fn short_code_is_included_instead_of_a_summary() {
    for test in TestEngine::all() {
        let _folder = indexed(&test);
        for profile in ["compact", "balanced"] {
            let pack = test.ok("context_pack", json!({"task": "add a and b in sums", "profile": profile}));
            assert_eq!(pack["entry_point"], "math/sums.py::add", "{pack}");
            assert_eq!(pack["core_symbols"][0]["code"], "def add(a, b):\n    return a + b", "{pack}");
        }
    }
}

#[test]
fn a_pack_reports_low_confidence() {
    for test in TestEngine::all() {
        let _folder = indexed(&test);
        for task in [
            "the kafka consumer loses its offset after a rebalance of currencies",
            "render websocket frames with backpressure on the ledger",
        ] {
            let pack = test.ok("context_pack", json!({"task": task}));
            assert!(pack["summary"].as_str().unwrap().starts_with("Nothing here fits the task well."), "{pack}");
            assert!(pack["low_confidence"].is_string(), "{pack}");
            let pack = by_agent(&test, json!({"task": task}), Profile::Compact);
            assert!(pack["low_confidence"].as_str().is_some_and(|why| why.contains('`')), "{pack}");
        }
        let named = "prepare_invoice_3 must survive a kafka rebalance, websocket backpressure and quarantined shards";
        for task in [TASK, "add a and b", "prepare_invoice_3 has the wrong rate", named] {
            let pack = test.ok("context_pack", json!({"task": task}));
            assert!(pack["low_confidence"].is_null(), "{task}: {pack}");
            assert!(pack["summary"].as_str().unwrap().starts_with("Begin at"), "{pack}");
        }
    }
}
