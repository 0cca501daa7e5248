//! An issuer on this machine that changes its keys, fails and comes back.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use super::super::KeySource;
use super::*;
use crate::auth::{Tokens, jwt};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lukasa_model::ErrorCode;
use lukasa_testkit::{FakeEndpoint, FakeReply, ManualClock};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::Value;

/// An issuer with ES256 keys, and the server that trusts it.
struct Issuer {
    answers: Arc<Mutex<FakeReply>>,
    endpoint: FakeEndpoint,
    clock: Arc<ManualClock>,
    tokens: Tokens,
}

impl Issuer {
    fn new(keys: &[&Key]) -> Issuer {
        let answers = Arc::new(Mutex::new(published(keys)));
        let answer = Arc::clone(&answers);
        let endpoint = FakeEndpoint::start(move |_, _| answer.lock().clone());
        let clock = Arc::new(ManualClock::default());
        let url = format!("{}/keys", endpoint.url());
        let keys = KeySource::jwks_url(&url, Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
        Issuer { answers, endpoint, clock, tokens: Tokens { keys, rules: jwt::TokenRules::default() } }
    }

    fn answers(&self, reply: FakeReply) {
        *self.answers.lock() = reply;
    }

    /// The code of the error for a token by this key, or `ok`.
    fn verdict(&self, key: &Key) -> &'static str {
        let now = self.clock.now();
        let token = key.token(now);
        self.tokens
            .verify(&token, now)
            .map_or_else(|e| e.code.name(), |claims| if claims.user == "ada" { "ok" } else { "" })
    }

    fn requests(&self) -> usize {
        self.endpoint.asked().len()
    }
}

struct Key {
    id: &'static str,
    pair: EcdsaKeyPair,
}

impl Key {
    fn new(id: &'static str) -> Key {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap();
        Key { id, pair }
    }

    fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
        json!({"kty": "EC", "crv": "P-256", "kid": self.id, "alg": "ES256", "use": "sig", "x": x, "y": y})
    }

    fn token(&self, now: Time) -> String {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = part(json!({"alg": "ES256", "kid": self.id}));
        let body = part(json!({"sub": "ada", "tenant": "acme", "exp": now.0 / 1_000_000 + 60}));
        let signed = format!("{header}.{body}");
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

fn published(keys: &[&Key]) -> FakeReply {
    FakeReply::ok(json!({"keys": keys.iter().map(|key| key.jwk()).collect::<Vec<_>>()}).to_string())
}

#[test]
fn a_new_key_is_fetched_when_a_token_names_it_but_not_too_often() {
    let (old, new) = (Key::new("old"), Key::new("new"));
    let issuer = Issuer::new(&[&old]);
    assert_eq!((issuer.verdict(&old), issuer.requests()), ("ok", 1));
    issuer.answers(published(&[&old, &new]));
    // The keys were fetched just now, so invented names cause no further requests.
    assert_eq!((issuer.verdict(&new), issuer.verdict(&new), issuer.requests()), ("unknown_key", "unknown_key", 1));
    issuer.clock.advance(PAUSE_SECONDS);
    assert_eq!((issuer.verdict(&new), issuer.verdict(&old), issuer.requests()), ("ok", "ok", 2));
    // Another key of the same name does not pass.
    assert_eq!(issuer.verdict(&Key::new("new")), "bad_signature");
}

#[test]
fn a_withdrawn_key_is_refused_once_the_keys_are_old() {
    let (old, new) = (Key::new("old"), Key::new("new"));
    let issuer = Issuer::new(&[&old, &new]);
    issuer.answers(published(&[&new]));
    issuer.clock.advance(FRESH_SECONDS - 1);
    assert_eq!((issuer.verdict(&old), issuer.requests()), ("ok", 1));
    issuer.clock.advance(1);
    assert_eq!((issuer.verdict(&old), issuer.verdict(&new), issuer.requests()), ("unknown_key", "ok", 2));
}

#[test]
fn a_failing_issuer_leaves_the_old_keys_in_force_for_a_day() {
    let key = Key::new("k");
    let issuer = Issuer::new(&[&key]);
    let mut requests = 1;
    for broken in
        [FakeReply::HangUp, FakeReply::status(503, ""), FakeReply::ok("no keys"), FakeReply::ok("{\"keys\": []}")]
    {
        issuer.answers(broken);
        issuer.clock.advance(FRESH_SECONDS);
        requests += 1;
        assert_eq!((issuer.verdict(&key), issuer.requests()), ("ok", requests));
        // Not again for every request.
        assert_eq!((issuer.verdict(&key), issuer.requests()), ("ok", requests));
    }
    issuer.clock.advance(LAST_SECONDS);
    assert_eq!(issuer.verdict(&key), "keys_unreadable");
    issuer.answers(published(&[&key]));
    issuer.clock.advance(PAUSE_SECONDS);
    assert_eq!(issuer.verdict(&key), "ok");
}

#[test]
fn keys_that_others_could_exchange_or_read_are_not_used() {
    let open = |url: &str| KeySource::jwks_url(url, Arc::new(ManualClock::default())).map(|_| ()).unwrap_err().code;
    for url in
        ["http://issuer.example/keys", "ftp://127.0.0.1/keys", "keys.json", "https://", "http://localhost.example/"]
    {
        assert_eq!(open(url), ErrorCode::InvalidKeys, "{url}");
    }
    let secret = URL_SAFE_NO_PAD.encode([7; 40]);
    let only_shared = json!({"keys": [{"kty": "oct", "kid": "s", "k": secret}]}).to_string();
    let endpoint = FakeEndpoint::start(move |_, _| FakeReply::ok(only_shared.clone()));
    assert_eq!(open(&endpoint.url()), ErrorCode::InvalidKeys);
    // Nor are those at another address than the configured one.
    let key = Key::new("k");
    let elsewhere = FakeEndpoint::start(move |_, _| published(&[&key]));
    let to = format!("location: {}", elsewhere.url());
    let endpoint = FakeEndpoint::start(move |_, _| FakeReply::Say(302, vec![to.clone()], String::new()));
    assert_eq!((open(&endpoint.url()), elsewhere.asked().len()), (ErrorCode::KeysUnreadable, 0));
}
