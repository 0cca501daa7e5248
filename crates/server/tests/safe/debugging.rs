//! The statistics of search stages need their own scope.

use crate::house::House;
use lukasa_engine::features::search::NORMALIZATION;
use lukasa_engine::telemetry::metrics;
use lukasa_testkit::fixtures;
use serde_json::json;

#[test]
fn debug_needs_its_own_scope() {
    let house = House::of(fixtures().remove(0), None);
    let writer = house.key("acme", "ann", &["graph:*"]);
    house.ok(&writer, "put", json!({"type": "Decision", "key": "d", "title": "Discounts are rounded"}));
    let reader = house.key("acme", "ben", &["graph:read", "graph:search:read"]);
    let request = |debug: bool| json!({"query": "discounts", "include_debug": debug});
    let denied = || metrics().debug_denied.now(&[]);
    let before = denied();
    for path in ["/v1/search", "/graph/search", "/v1/graph/search"] {
        let reply = lukasa_testkit::http::ask(
            house.address,
            "POST",
            path,
            &[("x-api-key", &reader)],
            &request(true).to_string(),
        );
        assert_eq!((reply.status, reply.code().as_str()), (403, "missing_scope"), "{path}: {}", reply.body);
        assert!(reply.body.contains("graph:search:debug"), "{}", reply.body);
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
    assert!(denied() >= before + 3.0, "counted in the metrics");
    assert!(house.ok(&reader, "search", request(false))["debug"].is_null());
    for scopes in [["graph:search:read", "graph:search:debug"], ["graph:search:*", "graph:read"]] {
        let debugger = house.key("acme", "eve", &scopes);
        assert!(house.ok(&debugger, "search", request(true))["debug"]["costs"].is_object());
    }
}

#[test]
fn search_answers_are_not_cached_and_explain_their_scores() {
    let house = House::of(fixtures().remove(0), None);
    let key = house.key("acme", "ann", &["graph:*"]);
    house.ok(&key, "put", json!({"type": "Decision", "key": "d", "title": "Discounts are rounded"}));
    let reply = house.call(&key, "search", &json!({"query": "discounts"}));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("x-search-normalization-version"), Some(NORMALIZATION));
}
