//! A log that is replaced by another under a running engine, as by a fail-over or a restore, on every store.

use lukasa_engine::{Context, Engine};
use lukasa_model::{Error, ErrorCode};
use lukasa_store::{Clock, Ledger, Store};
use lukasa_testkit::{Fixture, SwappedStore, fixtures};
use serde_json::{Value, json};
use std::sync::Arc;

/// An engine over a store that can be exchanged for another.
struct Swap {
    first: Fixture,
    second: Fixture,
    store: Arc<SwappedStore>,
    engine: Engine,
}

impl Swap {
    fn all() -> Vec<Swap> {
        let pair = |(first, second): (Fixture, Fixture)| {
            let store = Arc::new(SwappedStore::new(Arc::clone(&first.store), Arc::clone(&second.store)));
            let clock = Arc::clone(&first.clock) as Arc<dyn Clock>;
            let engine = Engine::new(Arc::clone(&store) as Arc<dyn Store>, clock, std::env::temp_dir());
            Swap { first, second, store, engine }
        };
        fixtures().into_iter().zip(fixtures()).map(pair).collect()
    }

    fn call(&self, name: &str, request: Value) -> Result<Value, Error> {
        ask(&self.engine, &self.first.ledger, name, request)
    }

    fn ok(&self, name: &str, request: Value) -> Value {
        self.call(name, request).unwrap_or_else(|e| panic!("{name} on {}: {e:?}", self.first.name))
    }

    /// Another process that writes to the second store.
    fn elsewhere(&self) -> Engine {
        let clock = Arc::clone(&self.second.clock) as Arc<dyn Clock>;
        Engine::new(Arc::clone(&self.second.store), clock, std::env::temp_dir())
    }

    /// Gives the second store what the first has now.
    fn copy(&self) {
        let mut dump = Vec::new();
        self.first.ledger.dump(&mut dump, &mut |_, _| {}).unwrap();
        self.second.ledger.restore(&mut dump.as_slice(), &mut |_, _| {}).unwrap();
    }

    /// Writes what is lost later.
    fn fill(&self) {
        for n in 0..3 {
            self.ok("put", service(&format!("lost{n}")));
        }
        self.ok("type_object", json!({"name": "Lost"}));
        self.ok("agent_claim", json!({"target_id": "task:1", "intent": "mend it"}));
        self.ok("episode_add", json!({"content": "it was slow"}));
    }

    fn services(&self) -> Vec<String> {
        let rows = self.ok("cypher", json!({"query": "MATCH (s:Service) RETURN s.key AS key ORDER BY key"}));
        rows["rows"].as_array().unwrap().iter().map(|row| row[0].as_str().unwrap().to_owned()).collect()
    }
}

fn ask(engine: &Engine, ledger: &Ledger, name: &str, request: Value) -> Result<Value, Error> {
    let mut progress = |_, _| {};
    let mut context = Context {
        agent: Some("ada".into()),
        session: Some("s1".into()),
        ..Context::of(ledger.scope().clone(), &mut progress)
    };
    engine.call(&mut context, name, request)
}

fn service(key: &str) -> Value {
    json!({"type": "Service", "key": key, "title": format!("what {key} does")})
}

/// Fills all caches from a log whose end is then lost and replaced by `more` transactions.
fn replaced(more: usize) {
    for swap in Swap::all() {
        swap.ok("put", service("kept"));
        swap.copy();
        let common = swap.first.ledger.head().unwrap().tx;
        swap.fill();
        assert_eq!(swap.services(), ["kept", "lost0", "lost1", "lost2"]);
        let page = swap.ok("search", json!({"query": "what lost1 does", "limit": 1}));
        let next = page["next_cursor"].as_str().unwrap().to_owned();
        let heard = swap.ok("event_list", json!({}))["cursor"].clone();
        assert_eq!(swap.ok("coordination_overview", json!({}))["active_claims"].as_array().unwrap().len(), 1);

        let elsewhere = swap.elsewhere();
        for n in 0..more {
            ask(&elsewhere, &swap.second.ledger, "put", service(&format!("found{n}"))).unwrap();
        }
        swap.store.swap();

        let mut expected: Vec<String> = (0..more).map(|n| format!("found{n}")).collect();
        expected.push("kept".into());
        expected.sort();
        assert_eq!(swap.services(), expected, "{}", swap.first.name);
        assert!(swap.ok("coordination_overview", json!({}))["active_claims"].as_array().unwrap().is_empty());
        let found = swap.ok("search", json!({"query": "what lost1 does"}));
        assert!(!found["items"].to_string().contains("Service:lost1"), "{found}");
        let types = swap.ok("type_list", json!({}));
        assert!(!types.to_string().contains("\"Lost\""), "{types}");
        // The position to continue from no longer exists.
        let refused = swap.call("search", json!({"query": "what lost1 does", "limit": 1, "cursor": next})).unwrap_err();
        assert_eq!(refused.code, ErrorCode::CursorOfAReplacedLog, "{refused:?}");
        // A client that follows continues where both logs part, whichever kinds of events it follows.
        let events = swap.ok("event_list", json!({"after": heard, "limit": 100, "kinds": ["transaction"]}));
        let reported: Vec<(&str, u64)> = events["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| (e["kind"].as_str().unwrap(), e["tx"].as_u64().unwrap()))
            .collect();
        let mut due = vec![("replaced", common.0)];
        due.extend((1..=more as u64).map(|n| ("transaction", common.0 + n)));
        assert_eq!(reported, due, "{events}");
        let after = swap.ok("event_list", json!({"after": events["cursor"]}));
        assert!(after["events"].as_array().unwrap().is_empty(), "it is reported once: {after}");
        // Facts that this process has written before are written again if they were lost.
        swap.ok("episode_add", json!({"content": "it is fast"}));
        swap.ok("agent_claim", json!({"target_id": "task:1", "intent": "mend it again"}));
        assert_eq!(swap.ok("coordination_overview", json!({}))["active_claims"].as_array().unwrap().len(), 1);
        swap.ok("verify", json!({}));
    }
}

#[test]
fn a_log_that_lost_its_end_is_answered_from() {
    replaced(0);
}

#[test]
fn a_shorter_log_of_another_content_is_answered_from() {
    replaced(2);
}

/// The transactions in the place of the lost ones are as many: only their hashes differ.
#[test]
fn a_log_of_the_same_length_is_answered_from() {
    let lost = {
        let swap = Swap::all().swap_remove(0);
        swap.ok("put", service("kept"));
        let before = swap.first.ledger.head().unwrap().tx;
        swap.fill();
        swap.first.ledger.head().unwrap().tx.since(before)
    };
    replaced(lost as usize);
}

#[test]
fn a_longer_log_is_answered_from() {
    replaced(20);
}
