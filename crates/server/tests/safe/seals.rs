//! The audit log fails verification on every surface if its seals were made with another key.

use crate::house::{House, KEY, SURFACES, engine};
use lukasa_server::ProjectFolders;
use lukasa_testkit::fixtures;
use serde_json::json;
use std::sync::Arc;

#[test]
fn a_record_sealed_with_an_unknown_key_fails_verification_and_is_not_sealed_again() {
    for fixture in fixtures() {
        let kind = fixture.name;
        let house = House::giving(fixture, ProjectFolders::default());
        let key = house.key("ours", "ada", &["admin"]);
        house.ok(&key, "put", json!({"type": "Service", "key": "web"}));
        let sealed = house.ok(&key, "audit_verify", json!({}));
        assert_eq!(sealed["chains"][0]["sealed"], true, "{kind}: {sealed}");
        let fixture = Arc::clone(&house.fixture);
        drop(house);
        // After the key is replaced, verification fails, now and after further work.
        let replaced =
            House::serving(Arc::clone(&fixture), engine(&fixture, KEY + 1), ProjectFolders::default(), |_| ());
        let client = replaced.client(&key);
        for surface in SURFACES {
            for round in 0..2 {
                let refused = client.ask(surface, "audit_verify", &json!({}));
                assert_eq!(refused.code, "audit_broken", "{kind} {surface:?}: {}", refused.text);
                assert!(refused.text.contains("unknown_seal"), "{kind} {surface:?}: {}", refused.text);
                client.ok(surface, "put", json!({"type": "Service", "key": format!("{surface:?}{round}")}));
            }
        }
    }
}
