//! Subscribers and vectors when the log is replaced by another under a running server, as by a fail-over or a restore.

use crate::events::Listener;
use crate::house::House;
use lukasa_engine::{Context, Engine};
use lukasa_model::{Scope, Tx};
use lukasa_server::auth::Authenticator;
use lukasa_store::{Clock, Store};
use lukasa_testkit::http::ask;
use lukasa_testkit::{Fixture, SwappedStore, fixtures};
use serde_json::{Value, json};
use std::sync::Arc;

/// A server without authentication over a store that can be exchanged for another.
struct Swap {
    house: House,
    store: Arc<SwappedStore>,
    second: Fixture,
}

impl Swap {
    fn all() -> Vec<Swap> {
        let pair = |(mut first, second): (Fixture, Fixture)| {
            let store = Arc::new(SwappedStore::new(Arc::clone(&first.store), Arc::clone(&second.store)));
            first.store = Arc::clone(&store) as Arc<dyn Store>;
            let house = House::with(first, None, |site| site.door = Arc::new(Authenticator::open(scope())));
            Swap { house, store, second }
        };
        fixtures().into_iter().zip(fixtures()).map(pair).collect()
    }

    fn ok(&self, operation: &str, request: Value) -> Value {
        let reply = ask(self.house.address, "POST", &format!("/v1/{operation}"), &[], &request.to_string());
        assert_eq!(reply.status, 200, "{operation} on {}: {}", self.house.fixture.name, reply.all());
        reply.json()
    }

    fn put(&self, key: &str) {
        self.ok("put", service(key));
    }

    /// Gives the second store what the first has now. Returns the last transaction of both.
    fn copy(&self) -> Tx {
        let (first, mut dump) = (&self.house.fixture.ledger, Vec::new());
        first.dump(&mut dump, &mut |_, _| {}).unwrap();
        self.second.ledger.restore(&mut dump.as_slice(), &mut |_, _| {}).unwrap();
        first.head().unwrap().tx
    }

    /// Another process writes to the second store.
    fn put_elsewhere(&self, key: &str) {
        let clock = Arc::clone(&self.second.clock) as Arc<dyn Clock>;
        let engine = Engine::new(Arc::clone(&self.second.store), clock, std::env::temp_dir());
        let mut progress = |_, _| {};
        engine.call(&mut Context::of(scope(), &mut progress), "put", service(key)).unwrap();
    }

    /// Makes the vectors that are missing. Returns the keys of the services that are found by meaning.
    fn found_by_meaning(&self) -> Vec<String> {
        self.ok("embed", json!({}));
        let request = json!({"query": "what a service does", "channels": ["vector"], "limit": 40});
        let found = self.ok("search", request);
        let items = found["items"].as_array().unwrap();
        let keys = items.iter().map(|item| item["ref"].as_str().unwrap().trim_start_matches("Service:").to_owned());
        let mut keys: Vec<String> = keys.collect();
        keys.sort();
        keys
    }

    /// The hash of a transaction in the log that the store has now.
    fn hash(&self, tx: Tx) -> Value {
        let log = self.ok("log", json!({"limit": 50}));
        let all = log["transactions"].as_array().unwrap();
        let one = all.iter().find(|one| one["tx"] == tx.0).unwrap_or_else(|| panic!("{tx}: {log}"));
        one["hash"].clone()
    }
}

/// The project of the fixtures.
fn scope() -> Scope {
    Scope::new("test", "shop").unwrap()
}

fn service(key: &str) -> Value {
    json!({"type": "Service", "key": key, "title": format!("What the service {key} does")})
}

#[test]
fn an_open_stream_reports_the_replacement_and_goes_on_with_the_new_log() {
    for swap in Swap::all() {
        let name = swap.house.fixture.name;
        swap.put("kept");
        let common = swap.copy();
        let mut streams =
            ["/v1/events", "/v1/events?kinds=transaction"].map(|path| Listener::with(&swap.house, "", path, None));
        swap.put("lost");
        let lost = swap.hash(common.next());
        for stream in &mut streams {
            let (kind, event) = stream.next();
            assert_eq!((kind.as_str(), &event["hash"]), ("transaction", &lost), "{name}");
        }
        swap.put_elsewhere("found");
        swap.store.swap();
        swap.put("new");
        let found = [common.next(), common.next().next()];
        let hashes = found.map(|tx| swap.hash(tx));
        assert_ne!(hashes[0], lost);
        for stream in &mut streams {
            let (kind, event) = stream.next();
            assert_eq!((kind.as_str(), &event["tx"]), ("replaced", &json!(common)), "{name}: {event}");
            for (tx, hash) in found.iter().zip(&hashes) {
                let (kind, event) = stream.next();
                assert_eq!((kind.as_str(), &event["tx"], &event["hash"]), ("transaction", &json!(tx), hash), "{name}");
            }
        }
    }
}

#[test]
fn after_a_replacement_vectors_are_those_of_the_new_log() {
    for swap in Swap::all() {
        let name = swap.house.fixture.name;
        swap.put("kept");
        swap.copy();
        swap.put("lost");
        assert_eq!(swap.found_by_meaning(), ["kept", "lost"], "{name}");
        // Queued, but not embedded before the replacement.
        swap.put("queued");
        swap.put_elsewhere("found");
        swap.store.swap();
        assert_eq!(swap.found_by_meaning(), ["found", "kept"], "{name}");
        swap.put("new");
        assert_eq!(swap.found_by_meaning(), ["found", "kept", "new"], "{name}");
        let readiness = swap.ok("search_readiness", json!({}));
        let coverage = &readiness["embedding"]["optional"];
        assert_eq!((&coverage["embedded"], &coverage["objects"]), (&json!(3), &json!(3)), "{name}: {readiness}");
    }
}
