//! Tools as an agent's host sees them: the list, `call_tool` for the others, and the end of a session.

use crate::house::House;
use lukasa_server::mcp::Toolsets;
use lukasa_testkit::fixtures;
use lukasa_testkit::http::{HttpReply, ask};
use serde_json::{Value, json};

/// The answer to a message, which is sent as an event.
fn answer(reply: &HttpReply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.all());
    let line = reply.body.lines().filter_map(|line| line.strip_prefix("data:")).find(|line| line.contains("jsonrpc"));
    serde_json::from_str(line.unwrap_or(&reply.body)).unwrap_or_else(|e| panic!("{e}: {}", reply.body))
}

#[test]
fn call_tool_calls_unlisted_tools_with_the_permissions_of_the_tool_itself() {
    for fixture in fixtures() {
        let house = House::with(fixture, None, |site| site.toolsets = Toolsets::default());
        let writer = house.key("acme", "ann", &["graph:read", "graph:write"]);
        let reader = house.key("acme", "rob", &["graph:read"]);
        house.ok(&writer, "put", json!({"type": "Service", "key": "web", "title": "Web"}));
        let asked = |key: &str, method: &str, params: Value| {
            let session = house.session(key, "agent");
            answer(&house.say(
                key,
                Some(&session),
                &json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}),
            ))
        };
        let listed = asked(&reader, "tools/list", json!({}))["result"]["tools"].clone();
        let names: Vec<&str> = listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"call_tool") && !names.contains(&"get") && !names.contains(&"delete"), "{names:?}");
        let hints = listed.as_array().unwrap().iter().find(|tool| tool["name"] == "call_tool").unwrap();
        assert_eq!(hints["annotations"]["destructiveHint"], true);
        let called = |key: &str, arguments: Value| {
            asked(key, "tools/call", json!({"name": "call_tool", "arguments": arguments}))["result"].clone()
        };
        let got = called(&reader, json!({"name": "get", "arguments": {"ref": "Service:web", "profile": "balanced"}}));
        let structured = &got["structuredContent"];
        assert_eq!((&structured["ok"], &structured["profile"]), (&json!(true), &json!("balanced")), "{got}");
        assert_eq!(structured["data"]["thing"]["title"], "Web", "{got}");
        for (key, arguments, code) in [
            (&reader, json!({"name": "delete", "arguments": {"ref": "Service:web"}}), "missing_scope"),
            (&reader, json!({"name": "no_such_tool"}), "unknown_operation"),
            (&reader, json!({"name": "call_tool", "arguments": {"name": "get"}}), "invalid_request"),
            (&reader, json!({"name": "get", "ref": "Service:web"}), "invalid_request"),
            (&reader, json!({"name": "get", "arguments": ["Service:web"]}), "invalid_request"),
            (&reader, json!({"arguments": {}}), "invalid_request"),
            (&reader, json!({"name": "get", "arguments": {"reff": "Service:web"}}), "unknown_field"),
        ] {
            let refused = called(key, arguments.clone());
            assert_eq!(refused["structuredContent"]["errorCode"], code, "{arguments}: {refused}");
            assert_eq!(refused["isError"], true);
        }
        let gone = called(&writer, json!({"name": "delete", "arguments": {"ref": "Service:web"}}));
        assert_eq!(gone["structuredContent"]["ok"], true, "{gone}");
        assert_eq!(house.call(&reader, "get", &json!({"ref": "Service:web"})).code(), "not_found");
    }
}

#[test]
fn an_ended_session_answers_as_clients_expect() {
    let house = House::of(fixtures().remove(0), None);
    let key = house.key("acme", "ann", &["graph:read", "graph:write"]);
    house.ok(&key, "put", json!({"type": "Service", "key": "web"}));
    let session = house.session(&key, "agent");
    let end = || ask(house.address, "DELETE", "/mcp", &[("x-api-key", &key), ("mcp-session-id", &session)], "");
    let ended = end();
    assert_eq!((ended.status, ended.body.as_str()), (204, ""), "{}", ended.all());
    let after = house.say(&key, Some(&session), &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    assert_eq!(after.status, 404, "{}", after.all());
}
