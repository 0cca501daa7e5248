//! Refused requests are recorded in the audit log with their address, and counted in the metrics.

use crate::house::{House, SURFACES};
use lukasa_engine::telemetry::metrics;
use lukasa_server::auth::api_key::{self, NewKey};
use lukasa_store::Clock;
use lukasa_store::audit::{AuditEntry, AuditFilter};
use lukasa_testkit::fixtures;
use lukasa_testkit::http::ask;
use serde_json::json;

/// The latest entry with a status, once it is recorded.
fn recorded(house: &House, tenant: &str, status: &str) -> AuditEntry {
    let find = AuditFilter { status: Some(status.into()), ..AuditFilter::default() };
    for _ in 0..2_000 {
        house.engine.audit().unwrap().flush().unwrap();
        if let Some(entry) = house.fixture.store.audit().find(tenant, &find, 1).unwrap().pop() {
            return entry;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{}: no `{status}` of {tenant}", house.fixture.name);
}

/// How many entries with a status are recorded so far.
fn times(house: &House, tenant: &str, status: &str) -> usize {
    let find = AuditFilter { status: Some(status.into()), ..AuditFilter::default() };
    house.engine.audit().unwrap().flush().unwrap();
    house.fixture.store.audit().find(tenant, &find, 100).unwrap().len()
}

/// Whether an entry with a status is recorded soon, besides those before it. The answer may arrive before its entry.
fn is_added(house: &House, tenant: &str, status: &str, before: usize) -> bool {
    (0..2_000).any(|_| {
        let added = times(house, tenant, status) > before;
        if !added {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        added
    })
}

fn counted(code: &str) -> bool {
    let line = format!("access_refused_total{{code=\"{code}\"}}");
    metrics().text(None).lines().any(|found| found.starts_with(&line))
}

#[test]
fn refused_logins_and_attempts_on_other_tenants_and_projects_are_recorded() {
    for fixture in fixtures() {
        let house = House::of(fixture, None);
        let kind = house.fixture.name;
        let bob = house.key("ours", "bob", &["graph:read", "graph:search:read"]);
        house.call(&bob, "projects", &json!({}));
        // A guessed key has no tenant, so it is recorded in the server's own project.
        let guess = format!("{}{}", &bob[..20], "A".repeat(43));
        assert_eq!(house.call(&guess, "projects", &json!({})).code(), "invalid_key");
        let entry = recorded(&house, "served", "invalid_key").note;
        assert_eq!(
            (entry.operation.as_str(), entry.address.as_deref(), entry.user),
            ("login", Some("127.0.0.1"), None),
            "{kind}"
        );
        let before = times(&house, "served", "invalid_key");
        assert_eq!(ask(house.address, "POST", "/mcp", &[("x-api-key", &guess)], "{}").code(), "invalid_key");
        assert!(is_added(&house, "served", "invalid_key", before), "{kind}: a guess by MCP is recorded");
        // A path and an agent of another user.
        let eve = house.client(&house.key_of("ours", "eve", &["admin"], &[]));
        for (code, operation, request) in [
            ("forbidden_path", "export", json!({"file": "/etc/passwd"})),
            ("forbidden_agent", "episode_add", json!({"content": "x", "agent_id": "ada"})),
        ] {
            for surface in SURFACES {
                let before = times(&house, "ours", code);
                assert_eq!(eve.ask(surface, operation, &request).code, code, "{kind} {surface:?}");
                assert!(is_added(&house, "ours", code, before), "{kind} {surface:?}: {code}");
                let entry = recorded(&house, "ours", code).note;
                assert_eq!(
                    (entry.operation.as_str(), entry.address.as_deref()),
                    (operation, Some("127.0.0.1")),
                    "{kind}"
                );
            }
        }
        // Another tenant.
        let request = json!({"query": "x", "tenant_id": "theirs"});
        assert_eq!(house.call(&bob, "search", &request).code(), "forbidden_tenant");
        let entry = recorded(&house, "ours", "forbidden_tenant").note;
        assert_eq!((entry.operation.as_str(), entry.address.as_deref()), ("search", Some("127.0.0.1")), "{kind}");
        assert!(entry.user.is_some());
        // Another project, over REST and MCP.
        let new = NewKey {
            tenant: "ours".into(),
            project: Some("shop".into()),
            user: "cid".into(),
            scopes: ["graph:read".to_owned()].into(),
            agents: Default::default(),
            expires_at: None,
        };
        let (token, key) = api_key::create(house.fixture.store.access_keys(), new, house.fixture.clock.now()).unwrap();
        let sent = token.reveal();
        for (path, id) in [("/v1/projects", "request-by-rest"), ("/mcp", "request-by-mcp")] {
            let headers = [("x-api-key", sent.as_str()), ("x-project-id", "other"), ("x-request-id", id)];
            assert_eq!(ask(house.address, "POST", path, &headers, "{}").code(), "forbidden_project");
            // The latest entry comes first.
            let entry = recorded(&house, "ours", "forbidden_project").note;
            assert_eq!((entry.operation.as_str(), entry.address.as_deref()), ("login", Some("127.0.0.1")), "{kind}");
            assert!(entry.user.is_some() && entry.project == "shop", "{kind}: {entry:?}");
            house.fixture.clock.advance(1);
        }
        // A revoked key is recorded in its own tenant.
        house.fixture.store.access_keys().revoke("ours", &key.id, house.fixture.clock.now()).unwrap();
        assert_eq!(house.call(&sent, "projects", &json!({})).code(), "revoked_key");
        assert_eq!(recorded(&house, "ours", "revoked_key").note.address.as_deref(), Some("127.0.0.1"), "{kind}");
        // A missing scope.
        assert_eq!(house.call(&bob, "put", &json!({"type": "A", "key": "b"})).code(), "missing_scope");
        assert_eq!(recorded(&house, "ours", "missing_scope").note.address.as_deref(), Some("127.0.0.1"), "{kind}");
        for code in ["invalid_key", "forbidden_tenant", "forbidden_project", "revoked_key", "missing_scope"] {
            assert!(counted(code), "{kind}: {code}");
        }
        // Successful requests are recorded without an address, and the audit chain is intact.
        let fine = AuditFilter { status: Some("ok".into()), ..AuditFilter::default() };
        let fine = house.fixture.store.audit().find("ours", &fine, 100).unwrap();
        assert!(!fine.is_empty() && fine.iter().all(|entry| entry.note.address.is_none()), "{kind}");
        let admin = house.key("ours", "ann", &["admin"]);
        house.ok(&admin, "audit_verify", json!({}));
        let listed = house.ok(&admin, "audit_list", json!({"status": "forbidden_tenant"}));
        assert_eq!(listed["entries"][0]["address"], "127.0.0.1", "{kind}");
        // A request without credential is counted but not recorded.
        assert_eq!(ask(house.address, "POST", "/v1/projects", &[], "{}").code(), "missing_token");
        let find = AuditFilter { status: Some("missing_token".into()), ..AuditFilter::default() };
        assert!(counted("missing_token") && house.fixture.store.audit().find("served", &find, 1).unwrap().is_empty());
    }
}
