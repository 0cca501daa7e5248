//! `/readyz` reports failure quickly when the store hangs or the keys cannot be read.

use crate::house::House;
use lukasa_server::auth::jwks::KeySource;
use lukasa_server::auth::{AuthConfig, Authenticator, Tokens, jwt};
use lukasa_server::{ProjectFolders, RequestGate, RequestLimits};
use lukasa_store::{Clock, Store};
use lukasa_testkit::http::ask;
use lukasa_testkit::{FaultyStore, Fixture, fixtures};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn ready(house: &House) -> (u16, String) {
    let reply = ask(house.address, "GET", "/readyz", &[], "");
    (reply.status, reply.code())
}

#[test]
fn a_store_that_hangs_is_not_ready_and_is_again_when_it_goes_on() {
    for mut fixture in fixtures() {
        let faulty = Arc::new(FaultyStore::new(Arc::clone(&fixture.store)));
        fixture.store = Arc::clone(&faulty) as Arc<dyn Store>;
        let kind = fixture.name;
        let house = House::with(fixture, None, |site| {
            let engine = site.front.engine_handle().engine().unwrap();
            site.front = RequestGate::new(
                engine,
                RequestLimits { time: Duration::from_millis(50), ..RequestLimits::default() },
                ProjectFolders::default(),
            );
        });
        let bob = house.key("ours", "bob", &["graph:read"]);
        assert_eq!(ready(&house), (200, "ok".into()), "{kind}");
        faulty.gate.shut(None);
        // Work that does not stop holds every turn.
        for _ in 0..8 {
            assert_ne!(house.call(&bob, "get", &json!({"ref": "Service:a"})).status, 200);
        }
        for _ in 0..2 {
            assert_eq!(ready(&house), (503, "not_ready".into()), "{kind}");
        }
        assert_eq!(ask(house.address, "GET", "/healthz", &[], "").status, 200, "the process itself is well");
        faulty.gate.open();
        assert!((0..100).any(|_| ready(&house).0 == 200), "{kind}");
    }
}

#[test]
fn without_the_keys_of_tokens_the_server_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let (file, away) = (folder.path().join("secret"), folder.path().join("away"));
    std::fs::write(&file, "a secret of more than thirty-two bytes, for a test").unwrap();
    let path = file.clone();
    let house = House::with(Fixture::memory(), None, move |site| {
        let tokens = Tokens { keys: KeySource::secret_file(&path).unwrap(), rules: jwt::TokenRules::default() };
        let clock = Arc::clone(&site.clock) as Arc<dyn Clock>;
        site.door = Arc::new(
            Authenticator::with_credentials(AuthConfig { tokens: Some(tokens), keys: None, project: None, clock })
                .unwrap(),
        );
    });
    assert_eq!(ready(&house).0, 200);
    std::fs::rename(&file, &away).unwrap();
    assert_eq!(ready(&house), (503, "keys_unreadable".into()));
    std::fs::rename(&away, &file).unwrap();
    assert_eq!(ready(&house).0, 200);
}

#[test]
fn further_checks_are_run() {
    let house = House::with(Fixture::memory(), None, |site| {
        let broken = || Err(lukasa_model::Error::internal("the key of the record is gone"));
        site.checks = vec![Arc::new(|| Ok(())), Arc::new(broken)];
    });
    let reply = ask(house.address, "GET", "/readyz", &[], "");
    assert!(reply.status == 500 && reply.body.contains("the key of the record is gone"), "{}", reply.all());
}
