//! The agent card, the accepted request formats, caching and paging of a server.

use crate::house::{House, SURFACES, Surface};
use lukasa_engine::registry::fields::{FieldSyntax, fields};
use lukasa_engine::{operations, response_budget};
use lukasa_search::count::count;
use lukasa_testkit::http::ask;
use lukasa_testkit::{Fixture, fixtures};
use serde_json::{Value, json};

const CARDS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

#[test]
fn the_agent_card_is_correct() {
    let house = House::of(Fixture::memory(), None);
    for path in CARDS {
        let reply = ask(house.address, "GET", path, &[], "");
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{path}");
        let card = reply.json();
        for text in ["name", "description", "version", "protocolVersion", "mcpEndpoint"] {
            assert!(card[text].as_str().is_some_and(|text| !text.is_empty()), "{path}: {text}");
        }
        for list in ["supportedInterfaces", "defaultInputModes", "defaultOutputModes", "skills"] {
            assert!(card[list].as_array().is_some_and(|list| !list.is_empty()), "{path}: {list}");
        }
        assert!(card["capabilities"].is_object());
        let skills = card["skills"].as_array().unwrap();
        assert_eq!(skills.len(), operations().len(), "also tools that are not listed");
        for skill in skills {
            for text in ["id", "name", "description"] {
                assert!(skill[text].as_str().is_some_and(|text| !text.is_empty()), "{skill}");
            }
            assert!(skill["tags"].as_array().is_some_and(|tags| !tags.is_empty()), "{skill}");
        }
        // The interface on the card exists, and the card claims no A2A binding that is not served.
        let way = &card["supportedInterfaces"][0];
        assert_eq!(way["url"], format!("http://{}/mcp", house.address));
        assert_eq!(way["protocolVersion"], "1.0");
        assert!(!["JSONRPC", "GRPC", "HTTP+JSON"].contains(&way["protocolBinding"].as_str().unwrap()), "{way}");
        assert_eq!(ask(house.address, "POST", "/mcp", &[], "{}").code(), "missing_token");
        // This server accepts only access keys.
        assert_eq!(
            card["securitySchemes"],
            json!({"key": {"apiKeySecurityScheme": {"location": "header", "name": "x-api-key"}}})
        );
        assert_eq!(card["securityRequirements"], json!([{"schemes": {"key": {"list": []}}}]));
    }
    let behind = ask(house.address, "GET", CARDS[0], &[("x-forwarded-proto", "https")], "").json();
    assert_eq!(behind["supportedInterfaces"][0]["url"], format!("https://{}/mcp", house.address));
    let document = ask(house.address, "GET", "/openapi.json", &[], "").json();
    assert_eq!(document["security"], json!([{"key": []}]));
}

#[test]
fn a_release_is_cached_by_its_etag() {
    let house = House::of(Fixture::memory(), None);
    let key = house.key("ours", "bob", &["admin"]);
    house.ok(&key, "put", json!({"type": "Service", "key": "a"}));
    house.ok(&key, "release_create", json!({"name": "r1"}));
    for path in ["/product-versions/r1", "/product-versions", "/product-versions/r1/diff/r1"] {
        let first = house.get(&key, path);
        assert_eq!(first.status, 200, "{path}: {}", first.all());
        let tag = first.header("etag").expect("releases have tags").to_owned();
        let known = |tags: &str| ask(house.address, "GET", path, &[("x-api-key", &key), ("if-none-match", tags)], "");
        for tags in [tag.clone(), format!("\"other\", {tag}"), "*".into()] {
            let again = known(&tags);
            assert_eq!((again.status, again.body.as_str()), (304, ""), "{path}: {}", again.all());
            assert_eq!(again.header("etag"), Some(tag.as_str()));
        }
        assert_eq!(known("\"other\"").status, 200, "{path}");
    }
    // Other data changes, so it has no etag.
    assert!(house.get(&key, "/graph/objects").header("etag").is_none());
}

#[test]
fn legacy_search_requests_are_accepted() {
    let house = House::of(Fixture::memory(), None);
    let key = house.key("ours", "bob", &["admin"]);
    for (kind, name) in [("Decision", "d1"), ("Risk", "r1")] {
        house.ok(&key, "put", json!({"type": kind, "key": name, "title": "Adopt feature flags", "label": ["p0"]}));
    }
    let search =
        |path: &str, request: Value| ask(house.address, "POST", path, &[("x-api-key", &key)], &request.to_string());
    let grouped = json!({"query": "feature flags", "includeDebug": true, "channels": ["lexical"],
        "filters": {"objectTypes": ["Decision"], "labelsAny": ["p0"]}, "pagination": {"cursor": null, "limit": 5},
        "documentFusion": {"enabled": false}, "neighbor": {"perPrimaryLimit": 0}});
    let reply = search("/graph/search", grouped);
    assert_eq!(reply.status, 200, "{}", reply.all());
    let answer = reply.json();
    assert_eq!((answer["items"].as_array().unwrap().len(), &answer["items"][0]["ref"]), (1, &json!("Decision:d1")));
    assert!(answer["debug"].is_object(), "{answer}");
    let flat = json!({"query": "feature flags", "entity_types": ["Risk"], "use_fulltext": true, "use_embedding": false,
        "tenant_id": "ours", "limit": 10});
    let reply = search("/v1/graph/search", flat);
    assert_eq!(reply.status, 200, "{}", reply.all());
    assert_eq!(reply.json()["items"][0]["ref"], "Risk:r1");
    assert_eq!(reply.json()["meta"]["channels"], json!(["lexical"]));
    let other = search("/v1/graph/search", json!({"query": "feature flags", "tenant_id": "theirs"}));
    assert_eq!((other.status, other.code().as_str()), (403, "forbidden_tenant"));
}

#[test]
fn prompts_and_resources_are_limited_in_size() {
    let house = House::of(Fixture::memory(), None);
    let key = house.key("ours", "bob", &["admin"]);
    let text = "words that take some room ".repeat(20);
    for part in 0..6 {
        let writes: Vec<Value> = (0..400)
            .map(|n| json!({"object": {"type": "Note", "key": format!("{part}:{n}"), "title": text, "properties": {"text": text}}}))
            .collect();
        house.ok(&key, "batch", json!({"writes": writes, "reason": text}));
    }
    for n in 0..50 {
        house.ok(&key, "task_update", json!({"task_id": n.to_string(), "title": text.repeat(7), "agent_id": "ann"}));
    }
    let session = house.session(&key, "agent");
    let send = |method: &str, params: Value| {
        let reply =
            house.say(&key, Some(&session), &json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}));
        assert_eq!(reply.status, 200, "{}", reply.all());
        let line = reply.body.lines().find_map(|line| line.strip_prefix("data: ").filter(|line| line.starts_with('{')));
        serde_json::from_str::<Value>(line.unwrap_or(&reply.body)).unwrap()["result"].clone()
    };
    let whole = house.ok(&key, "diff_since", json!({"since": "tx:1", "limit": 1000}));
    assert!(whole.to_string().len() > 200_000, "there is more than has room: {}", whole.to_string().len());
    let within = |what: &str, text: &str| {
        assert!(!text.is_empty(), "{what}");
        assert!(count(text) <= response_budget::MOST, "{what}: {}", count(text));
    };
    for (prompt, argument, value) in [
        ("what_changed", "since", "tx:1"),
        ("brief_me", "task", "words that take room"),
        ("explain_module", "module", "0:0"),
    ] {
        let answer = send("prompts/get", json!({"name": prompt, "arguments": {argument: value}}));
        within(prompt, answer["messages"][0]["content"]["text"].as_str().unwrap());
    }
    for path in ["overview", "branches", "releases", "log", "events", "claims", "tasks", "history/Note%3A0%3A0"] {
        let answer = send("resources/read", json!({"uri": format!("lukasa://project/{path}")}));
        within(path, answer["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{path}: {answer}")));
    }
    // A long answer is split into pages.
    let page = |n: usize| {
        let answer = send("resources/read", json!({"uri": format!("lukasa://project/tasks?page={n}")}));
        serde_json::from_str::<Value>(answer["contents"][0]["text"].as_str().unwrap()).unwrap()
    };
    let (first, second) = (page(1), page(2));
    assert_eq!(first["nextPage"], 2, "{}", first["truncated"]);
    assert_ne!(first["data"], second["data"]);
}

#[test]
fn a_nul_character_in_any_field_of_any_operation_is_invalid_input_over_rest_and_mcp() {
    for fixture in fixtures() {
        let kind = fixture.name;
        let house = House::of(fixture, None);
        let client = house.client(&house.key("test", "ada", &["admin"]));
        house.ok(&client.key, "put", json!({"type": "Service", "key": "web"}));
        let mut asked = 0;
        for (operation, surface) in operations().iter().flat_map(|o| SURFACES.map(move |surface| (o, surface))) {
            for field in fields(operation) {
                let value = match field.shape {
                    FieldSyntax::Texts => json!(["x", "a\0b"]),
                    FieldSyntax::Json => json!({"a": {"b\0": 1}}),
                    _ => json!("a\0b"),
                };
                // MCP handles the profile itself.
                if field.name == "profile" && surface == Surface::Mcp {
                    continue;
                }
                let name = operation.meta.name;
                let answer = client.ask(surface, name, &json!({&field.name: value}));
                assert_eq!(answer.code, "nul_byte", "{kind} {surface:?}: {name} {}\n{}", field.name, answer.text);
                let invalid = surface == Surface::Mcp || answer.text.starts_with("HTTP/1.1 400");
                assert!(invalid, "{kind}: {name} {}\n{}", field.name, answer.text);
                asked += 1;
            }
        }
        assert!(asked > 1_000, "{asked}");
        assert_eq!(house.ok(&client.key, "log", json!({}))["head"], 1, "{kind}: nothing was written");
    }
}

#[test]
fn invalid_texts_are_refused_in_every_part_of_a_request() {
    for fixture in fixtures() {
        let name = fixture.name;
        let house = House::of(fixture, None);
        let key = house.key("test", "ada", &["graph:*", "memory:*", "agent:*"]);
        let session = house.session(&key, "robot");
        house.ok(&key, "put", json!({"type": "Service", "key": "web"}));
        // Half of a surrogate pair is not a character.
        let body = r#"{"type": "Service", "key": "\ud800"}"#;
        let reply = ask(house.address, "POST", "/v1/put", &[("x-api-key", &key)], body);
        assert_eq!(reply.status, 400, "{name}: {}", reply.body);
        for path in
            ["/graph/objects/a%00b", "/v1/get?ref=a%00b", "/product-versions/a%00b", "/graph/objects?branch=%00"]
        {
            let reply = house.get(&key, path);
            assert!((400..500).contains(&reply.status), "{name}: {path} {}", reply.all());
        }
        for (path, body) in
            [("/graph/import?reason=%00", "{}"), ("/graph/import", r#"{"object":{"type":"S","key":"a\u0000"}}"#)]
        {
            let reply = ask(house.address, "POST", path, &[("x-api-key", &key)], body);
            assert_eq!((reply.status, reply.code().as_str()), (400, "nul_byte"), "{name}: {path} {}", reply.all());
        }
        let wanted = json!({"ref": {"type": "ref/resource", "uri": "lukasa://project/symbol/{symbol}"},
            "argument": {"name": "symbol", "value": "a\0b"}});
        for (method, params) in [
            ("resources/read", json!({"uri": "lukasa://project/object/a%00b"})),
            ("resources/read", json!({"uri": "lukasa://project/history/%00"})),
            ("prompts/get", json!({"name": "explain_module", "arguments": {"module": "a\0b"}})),
            ("completion/complete", wanted),
            ("tools/call", json!({"name": "a\0b", "arguments": {}})),
            ("tools/call", json!({"name": "call_tool", "arguments": {"name": "get", "arguments": {"ref": "\0"}}})),
        ] {
            let answer = house.request(&key, &session, method, params.clone()).to_string();
            assert!(!answer.contains("internal") && !answer.contains("22021"), "{name}: {method} {params}\n{answer}");
        }
        // A client name may be refused or accepted, but never causes an internal error.
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
            "capabilities": {}, "clientInfo": {"name": "a\0b", "version": "1"}}});
        let reply = house.say(&key, None, &hello);
        let session = reply.header("mcp-session-id").expect("sessions have ids").to_owned();
        let answer = house.tool(&key, &session, "put", json!({"type": "Service", "key": "api"}));
        assert!(answer["ok"] == true || answer["errorCode"] == "nul_byte", "{name}: {answer}");
    }
}
