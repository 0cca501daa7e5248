//! Valid and invalid ways to authenticate: by token, by access key, from this machine.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use super::api_key::{AccessKeyToken, NewKey};
use super::jwks::KeySet;
use super::*;
use axum::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lukasa_model::{ErrorCode, Time};
use lukasa_store::MemoryStore;
use lukasa_testkit::ManualClock;
use proptest::prelude::*;
use ring::hmac;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use std::sync::LazyLock;

const SECRET: &[u8] = b"a shared secret of more than 32 bytes";
const NOW: i64 = ManualClock::START.0 / 1_000_000;
/// The public half of a discarded key pair. OpenSSL made the signature below; the token expires an hour after [`NOW`].
const RSA: &str = "wlZPaDUvZcZ5Wm12VyovmXfeANecyXEQIqIgarY6OzG_Ks73wspHZDiEt1UEChquzPcKd55TrqXnp_S1Ve2n9RNWdJ3KxfwzeLFYYdTvncypa9gXMFJ9cCJbixy-DFy-3Drav3GIsEMcF7PdlyQX_OyxHK6HRpFWjB3KAkle-B-dxjbIDvdWGkgKiKBagUN09yFhiLpEyWhJd3uVLIDbBAYkO0kiLFEs6GyG6rO3KJeq98FvBpdzqstJGTH5Cdim6Op-UOaQKlEGYDLKVFnysVUni1-QM5NswwY5CoTW2P2ldG1Oys9Ks9uPykxHsR1_P0drx1iaNFCibt-slfcGLQ";
const RSA_HEADER: &str = r#"{"alg":"RS256","kid":"rsa","typ":"JWT"}"#;
const RSA_BODY: &str = r#"{"sub":"ada","tenant":"acme","project":"shop","scope":"graph:read","exp":1767229200}"#;
const RSA_SIGNATURE: &str = "aDpPD0i-CdaWfkZqq09BImUtlsKRxbQUUSYDBdRsmAvq_7HgvF9-h8NpdMI0hcNDeqZmAA-8q7nhBxax4mI6t3ApIKnK0WPLqjxi_BwCJyct7srGCtLq_q8TES1fr_hB49GwqT3IOmJBDaTqg3WVLzIezVYJY-KmXFkbhejyEgrY2YHIS92t88-xt1ULAsJ5ojEQ5DTcLAu09N_hYKsp9g6BQStHli9W5MmutirSlbTxXjciho1-suez7mo8stF2Ce_fR2ofj2hIIA8pSkC8np_m8kxZLFOkQOlh6NyXj9cXI2clJpBcCKjSVi3Kq3jWeG7qMJ8KYPMZ8T7TcI-tjw";

static ED: LazyLock<Ed25519KeyPair> = LazyLock::new(|| Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap());

fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn jwks() -> String {
    json!({"keys": [
        {"kty": "oct", "kid": "shared", "k": base64(SECRET)},
        {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "alg": "EdDSA", "x": base64(ED.public_key())},
        {"kty": "RSA", "kid": "rsa", "use": "sig", "n": RSA, "e": "AQAB"},
        // Unsupported or for another purpose: skipped.
        {"kty": "EC", "crv": "P-384", "kid": "ec", "x": "AA", "y": "AA"},
        {"kty": "RSA", "kid": "enc", "use": "enc", "n": "AA", "e": "AA"},
        {"kty": "RSA", "kid": "pss", "alg": "PS256", "n": RSA, "e": "AQAB"},
    ]})
    .to_string()
}

fn hs256(header: &Value, body: &Value, secret: &[u8]) -> String {
    let signed = format!("{}.{}", base64(header.to_string()), base64(body.to_string()));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
    format!("{signed}.{}", base64(tag))
}

fn ed25519(header: &Value, body: &Value) -> String {
    let signed = format!("{}.{}", base64(header.to_string()), base64(body.to_string()));
    let signature = ED.sign(signed.as_bytes());
    format!("{signed}.{}", base64(signature))
}

fn rs256() -> String {
    format!("{}.{}.{RSA_SIGNATURE}", base64(RSA_HEADER), base64(RSA_BODY))
}

fn good() -> Value {
    json!({"sub": "ada", "tenant": "acme", "project": "shop", "scope": "graph:read  graph:search:*", "exp": NOW + 60,
           "iss": "https://issuer.example", "aud": ["other", "lukasa"]})
}

/// Valid claims with these changes; null removes a claim.
fn but(changes: Value) -> Value {
    let mut body = good();
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    body.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    body
}

fn shared() -> Value {
    json!({"alg": "HS256", "kid": "shared", "typ": "JWT"})
}

fn rules() -> jwt::TokenRules {
    jwt::TokenRules { issuers: vec!["https://issuer.example".into()], audiences: vec!["lukasa".into()] }
}

fn verify(token: &str) -> Result<jwt::TokenClaims> {
    jwt::verify(token, &KeySet::jwks(&jwks()).unwrap(), &rules(), ManualClock::START)
}

#[test]
fn valid_tokens_identify_the_caller() {
    let due = jwt::TokenClaims {
        user: "ada".into(),
        tenant: "acme".into(),
        project: Some("shop".into()),
        scopes: ["graph:read", "graph:search:*"].map(String::from).into(),
        agents: None,
    };
    assert_eq!(verify(&hs256(&shared(), &good(), SECRET)).unwrap(), due);
    assert_eq!(verify(&ed25519(&json!({"alg": "EdDSA", "kid": "ed"}), &good())).unwrap(), due);
    // Without a key id, when only one key fits.
    assert_eq!(verify(&ed25519(&json!({"alg": "EdDSA"}), &good())).unwrap(), due);
    let listed = but(json!({"scope": null, "scopes": ["graph:search:*", "graph:read", ""], "aud": "lukasa"}));
    assert_eq!(verify(&hs256(&shared(), &listed, SECRET)).unwrap(), due);
    let none = verify(&hs256(&shared(), &but(json!({"scope": null, "project": null})), SECRET)).unwrap();
    assert_eq!((none.project, none.scopes.len()), (None, 0));
    let keys = KeySet::jwks(&jwks()).unwrap();
    let by_rsa = jwt::verify(&rs256(), &keys, &jwt::TokenRules::default(), ManualClock::START).unwrap();
    assert_eq!((by_rsa.user.as_str(), by_rsa.scopes.len()), ("ada", 1));
    let alone = KeySet::secret(SECRET).unwrap();
    let unnamed = hs256(&json!({"alg": "HS256"}), &good(), SECRET);
    assert_eq!(jwt::verify(&unnamed, &alone, &rules(), ManualClock::START).unwrap(), due);
}

#[test]
fn each_kind_of_invalid_token_has_its_own_error() {
    let sign = |body: Value| hs256(&shared(), &body, SECRET);
    let headed = |header: Value| hs256(&header, &good(), SECRET);
    let whole = sign(good());
    let parts: Vec<&str> = whole.split('.').collect();
    let unsigned = |alg: &str| format!("{}.{}.", base64(json!({"alg": alg}).to_string()), parts[1]);
    let flipped = |token: &str| {
        let (rest, signature) = token.rsplit_once('.').unwrap();
        let mut bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
        bytes[9] ^= 1;
        format!("{rest}.{}", base64(bytes))
    };
    let another_body = base64(but(json!({"tenant": "other"})).to_string());
    let twice = base64(r#"{"alg":"HS256","alg":"none","kid":"shared"}"#);
    let twice = format!("{twice}.{}.{}", parts[1], parts[2]);
    for (token, code) in [
        (String::new(), "invalid_token"),
        ("x".into(), "invalid_token"),
        ("..".into(), "invalid_token"),
        (format!("{whole}.x"), "invalid_token"),
        (format!("{whole}="), "invalid_token"),
        (format!("{} ", parts[0..2].join(".")), "invalid_token"),
        ("a".repeat(jwt::TOKEN_BYTES + 1), "invalid_token"),
        (twice, "invalid_token"),
        (headed(json!({"kid": "shared"})), "invalid_token"),
        (headed(json!({"alg": "HS256", "kid": 7})), "invalid_token"),
        (headed(json!({"alg": "HS256", "kid": "shared", "crit": ["b64"], "b64": false})), "invalid_token"),
        (unsigned("none"), "unsigned_token"),
        (unsigned("NonE"), "unsigned_token"),
        (headed(json!({"alg": "none", "kid": "shared"})), "unsigned_token"),
        // A public key must not be accepted as an HMAC secret.
        (hs256(&json!({"alg": "HS256", "kid": "rsa"}), &good(), RSA.as_bytes()), "wrong_algorithm"),
        (hs256(&json!({"alg": "HS256", "kid": "ed"}), &good(), ED.public_key().as_ref()), "wrong_algorithm"),
        (headed(json!({"alg": "HS512", "kid": "shared"})), "wrong_algorithm"),
        (headed(json!({"alg": "hs256", "kid": "shared"})), "wrong_algorithm"),
        (headed(json!({"alg": "RS256", "kid": "shared"})), "wrong_algorithm"),
        (headed(json!({"alg": "HS256", "kid": "none of ours"})), "unknown_key"),
        (headed(json!({"alg": "HS256", "kid": ""})), "unknown_key"),
        (headed(json!({"alg": "ES256"})), "unknown_key"),
        (headed(json!({"alg": "RS256", "kid": "enc"})), "unknown_key"),
        (headed(json!({"alg": "PS256", "kid": "pss"})), "unknown_key"),
        (hs256(&shared(), &good(), b"another secret of more than 32 bytes"), "bad_signature"),
        (format!("{}.{}.", parts[0], parts[1]), "bad_signature"),
        (format!("{}.{another_body}.{}", parts[0], parts[2]), "bad_signature"),
        (flipped(&whole), "bad_signature"),
        (flipped(&ed25519(&json!({"alg": "EdDSA", "kid": "ed"}), &good())), "bad_signature"),
        (flipped(&rs256()), "bad_signature"),
        (sign(json!("not an object")), "invalid_token"),
        (sign(but(json!({"exp": "tomorrow"}))), "invalid_token"),
        (sign(but(json!({"tenant": ["acme", "other"]}))), "invalid_token"),
        (sign(but(json!({"scopes": "graph:read"}))), "invalid_token"),
        (sign(but(json!({"exp": null}))), "missing_expiry"),
        (sign(but(json!({"exp": NOW - 30}))), "expired_token"),
        (sign(but(json!({"exp": NOW as f64 - 30.5}))), "expired_token"),
        (sign(but(json!({"exp": -1e300}))), "expired_token"),
        (sign(but(json!({"nbf": NOW + 31}))), "token_not_yet_valid"),
        (sign(but(json!({"iss": null}))), "wrong_issuer"),
        (sign(but(json!({"iss": "https://issuer.example/"}))), "wrong_issuer"),
        (sign(but(json!({"aud": null}))), "wrong_audience"),
        (sign(but(json!({"aud": []}))), "wrong_audience"),
        (sign(but(json!({"aud": "lukasa2"}))), "wrong_audience"),
        (sign(but(json!({"sub": null}))), "missing_user"),
        (sign(but(json!({"sub": ""}))), "missing_user"),
        (sign(but(json!({"tenant": null}))), "missing_tenant"),
        (sign(but(json!({"tenant": ""}))), "missing_tenant"),
    ] {
        let error = verify(&token).err().unwrap_or_else(|| panic!("{token} is taken for good"));
        assert_eq!((error.kind, error.code.name()), (ErrorKind::Unauthenticated, code), "{token}: {error}");
        assert!(parts[2].len() < 8 || !error.message.contains(parts[2]), "no part of a token is in the error: {error}");
    }
    // Clocks differ a little.
    for body in [but(json!({"exp": NOW - 29})), but(json!({"nbf": NOW + 30}))] {
        assert!(verify(&sign(body)).is_ok());
    }
    let later = Time(ManualClock::START.0 + 4_000_000_000);
    let keys = KeySet::jwks(&jwks()).unwrap();
    assert_eq!(
        jwt::verify(&rs256(), &keys, &jwt::TokenRules::default(), later).unwrap_err().code,
        ErrorCode::ExpiredToken
    );
}

proptest! {
    /// Changing any character of a token, or leaving one out, makes it worthless.
    #[test]
    fn any_change_to_a_token_invalidates_it(place in any::<prop::sample::Index>(), with in "[A-Za-z0-9_.-]?") {
        let token = ed25519(&json!({"alg": "EdDSA", "kid": "ed"}), &good());
        let place = place.index(token.len());
        let changed = format!("{}{with}{}", &token[..place], &token[place + 1..]);
        prop_assert_eq!(verify(&changed).is_ok(), changed == token);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,60}", header in "[A-Za-z0-9_-]{0,40}", body in "[A-Za-z0-9_-]{0,40}") {
        prop_assert!(verify(&text).is_err());
        let (token, key) = (format!("{header}.{body}."), format!("lk_{header}_{body}"));
        prop_assert!(verify(&token).is_err());
        prop_assert!(AccessKeyToken::parse(&text).is_none());
        prop_assert!(AccessKeyToken::parse(&key).is_none());
    }
}

#[test]
fn invalid_or_weak_keys_are_refused() {
    let of = |keys: Value| KeySet::jwks(&json!({"keys": keys}).to_string()).map(|_| ()).unwrap_err();
    for (keys, code, says) in [
        (json!([]), "invalid_keys", "no key"),
        (json!([{"kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"}]), "invalid_keys", "no key"),
        (json!([{"kty": "EC", "crv": "P-256", "x": base64([1; 32]), "y": "AAAA"}]), "invalid_keys", "`y` has 3 bytes"),
        (json!([{"kty": "oct", "k": base64("short secret")}]), "weak_key", "key 1: a secret of 12 bytes"),
        (json!([{"kty": "oct", "k": "not base64!"}]), "invalid_keys", "`k` is not base64url"),
        (json!([{"kty": "oct"}]), "invalid_keys", "`k` is missing"),
        (json!([{"kty": "RSA", "n": base64([255; 128]), "e": "AQAB"}]), "weak_key", "1024 bits"),
        // Leading zeros do not make a key longer.
        (json!([{"kty": "RSA", "n": base64([[0; 128], [255; 128]].concat()), "e": "AQAB"}]), "weak_key", "1024 bits"),
        (json!([{"kty": "OKP", "crv": "Ed25519", "x": "AAAA"}]), "invalid_keys", "3 bytes"),
        (
            json!([{"kty": "oct", "kid": "a", "k": base64(SECRET)}, {"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": base64([1; 32])}]),
            "invalid_keys",
            "two keys",
        ),
        (json!([{"kid": "a"}]), "invalid_keys", "line 1"),
    ] {
        let error = of(keys);
        assert!(error.code.name() == code && error.message.contains(says), "{error:?}");
    }
    let leaked = KeySet::jwks(r#"{"keys": ["very secret"]}"#).map(|_| ()).unwrap_err();
    assert!(!format!("{leaked:?}").contains("very secret"), "{leaked:?}");
    assert!(!format!("{:?}", KeySet::secret(SECRET).unwrap()).contains("97"), "nothing of the secret is shown");
    // Two unnamed keys of one kind are ambiguous.
    let two = json!({"keys": [{"kty": "oct", "k": base64(SECRET)}, {"kty": "oct", "k": base64([9; 40])}]}).to_string();
    let token = hs256(&json!({"alg": "HS256"}), &good(), SECRET);
    let error = jwt::verify(&token, &KeySet::jwks(&two).unwrap(), &rules(), ManualClock::START).unwrap_err();
    assert_eq!(error.code, ErrorCode::UnknownKey);
}

/// The example of RFC 7515, A.3.
#[test]
fn a_signature_by_es256_is_verified() {
    let (x, y) = ("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0");
    let keys = json!({"keys": [{"kty": "EC", "crv": "P-256", "x": x, "y": y}]}).to_string();
    let keys = KeySet::jwks(&keys).unwrap();
    let key = keys.key_for(None, "ES256").unwrap();
    assert_eq!(key.algorithm().name(), "ES256");
    let signed = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    let signature = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    assert!(key.signed(signed.as_bytes(), &signature));
    assert!(!key.signed(&signed.as_bytes()[1..], &signature) && !key.signed(signed.as_bytes(), &signature[1..]));
    // A point that is not on the curve verifies nothing.
    let keys = json!({"keys": [{"kty": "EC", "crv": "P-256", "x": x, "y": x}]}).to_string();
    assert!(!KeySet::jwks(&keys).unwrap().key_for(None, "ES256").unwrap().signed(signed.as_bytes(), &signature));
}

#[test]
fn a_file_of_keys_is_read_again_when_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let (path, new) = (folder.path().join("keys.json"), folder.path().join("new.json"));
    assert_eq!(KeySource::jwks_file(&path).map(|_| ()).unwrap_err().code, ErrorCode::KeysUnreadable);
    std::fs::write(&path, jwks()).unwrap();
    let source = KeySource::jwks_file(&path).unwrap();
    let token = hs256(&shared(), &good(), SECRET);
    let verdict = || {
        let verified = source.current().and_then(|keys| jwt::verify(&token, &keys, &rules(), ManualClock::START));
        verified.map_or_else(|e| e.code.name(), |_| "ok")
    };
    assert_eq!((verdict(), verdict()), ("ok", "ok"));
    let replace = |text: &str| {
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, &path).unwrap();
    };
    replace(&json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": base64(ED.public_key())}]}).to_string());
    assert_eq!(verdict(), ErrorCode::UnknownKey.name());
    replace("half a fi");
    assert_eq!(verdict(), ErrorCode::InvalidKeys.name(), "no token is accepted");
    replace(&jwks());
    assert_eq!(verdict(), "ok");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(verdict(), ErrorCode::KeysUnreadable.name());
    // A file with only a secret.
    std::fs::write(&path, [SECRET, b"\n"].concat()).unwrap();
    let source = KeySource::secret_file(&path).unwrap();
    let unnamed = hs256(&json!({"alg": "HS256"}), &good(), SECRET);
    assert!(jwt::verify(&unnamed, &source.current().unwrap(), &rules(), ManualClock::START).is_ok());
    std::fs::write(&path, "short").unwrap();
    assert_eq!(source.current().map(|_| ()).unwrap_err().code, ErrorCode::WeakKey);
}

// Authentication of requests.

struct House {
    door: Authenticator,
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
}

fn house(project: Option<&str>) -> House {
    let clock = Arc::new(ManualClock::default());
    let store = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let keys = KeySource::Fixed(Arc::new(KeySet::jwks(&jwks()).unwrap()));
    let door = Authenticator::with_credentials(AuthConfig {
        tokens: Some(Tokens { keys, rules: rules() }),
        keys: Some(Arc::clone(&store) as Arc<dyn Store>),
        project: project.map(Into::into),
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
    });
    House { door: door.unwrap(), store, clock }
}

fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in list {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn far() -> SocketAddr {
    "203.0.113.9:5000".parse().unwrap()
}

impl House {
    fn comes(&self, list: &[(&'static str, &str)]) -> Result<Caller> {
        self.door.authenticate(&headers(list), far()).map_err(|refused| refused.error)
    }

    fn code(&self, list: &[(&'static str, &str)]) -> &'static str {
        self.comes(list).map_or_else(|e| e.code.name(), |_| "ok")
    }

    fn key(&self, new: NewKey) -> (String, String) {
        let (token, key) = api_key::create(self.store.access_keys(), new, self.clock.now()).unwrap();
        (token.reveal(), key.id)
    }
}

fn for_bob() -> NewKey {
    NewKey {
        tenant: "acme".into(),
        project: Some("shop".into()),
        user: "bob".into(),
        scopes: ["graph:read".to_string()].into(),
        agents: Default::default(),
        expires_at: None,
    }
}

#[test]
fn tokens_and_keys_are_accepted_with_authentication() {
    let house = house(None);
    let token = hs256(&shared(), &good(), SECRET);
    let caller = house.comes(&[("authorization", &format!("Bearer {token}"))]).unwrap();
    assert_eq!(
        (caller.scope.to_string(), caller.user.as_deref(), caller.local),
        ("acme/shop".into(), Some("ada"), false)
    );
    assert!(caller.grants.cover("graph:search:read") && !caller.grants.cover("graph:write"));
    let (key, id) = house.key(for_bob());
    for sent in [("x-api-key", key.clone()), ("authorization", format!("bearer {key}"))] {
        let caller = house.comes(&[(sent.0, &sent.1)]).unwrap();
        assert_eq!((caller.scope.to_string(), caller.user.as_deref()), ("acme/shop".into(), Some("bob")));
        assert_eq!((caller.grants, caller.local), (Grants::of(["graph:read"]), false));
    }
    let hour = house.store.access_keys().find(&id).unwrap().unwrap().last_used.unwrap();
    assert_eq!(hour, ManualClock::START, "to the hour");
    house.clock.advance(3_599);
    assert_eq!(house.code(&[("x-api-key", &key)]), "ok");
    assert_eq!(house.store.access_keys().find(&id).unwrap().unwrap().last_used, Some(hour));
    house.clock.advance(2);
    assert_eq!(house.code(&[("x-api-key", &key)]), "ok");
    assert_eq!(house.store.access_keys().find(&id).unwrap().unwrap().last_used, Some(Time(hour.0 + 3_600_000_000)));
}

#[test]
fn other_credentials_are_refused() {
    let house = house(None);
    let token = hs256(&shared(), &good(), SECRET);
    let (bearer, basic) = (format!("Bearer {token}"), format!("Basic {token}"));
    let (key, _) = house.key(for_bob());
    let other = AccessKeyToken::parse(&house.key(for_bob()).0).unwrap().reveal();
    // The id of one key with the secret of another.
    let mixed = format!("{}{}", &key[..20], &other[20..]);
    let unknown = format!("lk_0000000000000000_{}", &key[20..]);
    for (sent, code) in [
        (vec![], "missing_token"),
        (vec![("x-project-id", "shop")], "missing_token"),
        (vec![("authorization", basic.as_str())], "invalid_token"),
        (vec![("authorization", "Bearer")], "invalid_token"),
        (vec![("authorization", "Bearer ")], "invalid_token"),
        (vec![("authorization", token.as_str())], "invalid_token"),
        (vec![("authorization", &bearer), ("authorization", &bearer)], "invalid_header"),
        (vec![("authorization", &bearer), ("x-api-key", &key)], "two_credentials"),
        (vec![("x-api-key", "")], "invalid_token"),
        (vec![("x-api-key", "lk_")], "invalid_key"),
        (vec![("x-api-key", &key[..key.len() - 1])], "invalid_key"),
        (vec![("x-api-key", &mixed)], "invalid_key"),
        (vec![("x-api-key", &unknown)], "invalid_key"),
    ] {
        assert_eq!(house.code(&sent), code, "{sent:?}");
    }
    let wrong = house.comes(&[("x-api-key", &mixed)]).unwrap_err();
    assert_eq!(
        wrong,
        house.comes(&[("x-api-key", &unknown)]).unwrap_err(),
        "the error does not reveal which ids exist"
    );
    assert_eq!(wrong.kind, ErrorKind::Unauthenticated);
    // Names that no project can have make the token invalid and are not a server error.
    for bad in [json!({"tenant": " acme"}), json!({"tenant": "a".repeat(999)}), json!({"project": "x\u{0}"})] {
        let token = hs256(&shared(), &but(bad), SECRET);
        assert_eq!(house.code(&[("authorization", &format!("Bearer {token}"))]), "invalid_token");
    }
    let nothing = AuthConfig { tokens: None, keys: None, project: None, clock: house.clock.clone() };
    assert_eq!(Authenticator::with_credentials(nothing).map(|_| ()).unwrap_err().code, ErrorCode::InvalidSettings);
    let keys_only =
        AuthConfig { tokens: None, keys: Some(house.store.clone()), project: None, clock: house.clock.clone() };
    let door = Authenticator::with_credentials(keys_only).unwrap();
    assert_eq!(
        door.authenticate(&headers(&[("authorization", &bearer)]), far()).unwrap_err().error.code,
        ErrorCode::InvalidToken
    );
    assert!(door.authenticate(&headers(&[("x-api-key", &key)]), far()).is_ok());
}

#[test]
fn agents_come_from_the_token_or_the_key() {
    let house = house(None);
    let token = |more: Value| format!("Bearer {}", hs256(&shared(), &but(more), SECRET));
    let agents = |more: Value| house.comes(&[("authorization", &token(more))]).unwrap().agents;
    assert_eq!(agents(json!({})), Agents::of_user("ada"));
    assert_eq!(agents(json!({"agent_id": "claude"})), Agents::bound(["claude"]));
    assert_eq!(agents(json!({"agent_id": "claude", "agents": ["team/*"]})), Agents::bound(["claude", "team/*"]));
    assert_eq!(agents(json!({"agents": []})), Agents::bound::<&str>([]), "to none, and not to those of its user");
    assert_eq!(agents(json!({"agents": ["*"]})), Agents::Any);
    assert_eq!(house.code(&[("authorization", &token(json!({"agents": ["a\u{0}"]})))]), "invalid_token");
    let (bound, _) = house.key(NewKey { agents: ["Claude Code".to_string()].into(), ..for_bob() });
    let (free, _) = house.key(for_bob());
    let caller = house.comes(&[("x-api-key", &bound)]).unwrap();
    assert_eq!((caller.agent.as_deref(), caller.agents), (Some("Claude Code"), Agents::bound(["Claude Code"])));
    let caller = house.comes(&[("x-api-key", &free)]).unwrap();
    assert_eq!((caller.agent, caller.agents), (None, Agents::of_user("bob")));
    let new = NewKey { agents: [String::new()].into(), ..for_bob() };
    assert_eq!(
        api_key::create(house.store.access_keys(), new, house.clock.now()).map(|_| ()).unwrap_err().code,
        ErrorCode::EmptyName
    );
}

#[test]
fn keys_end_when_they_expire_or_are_revoked() {
    let house = house(None);
    let end = Time(ManualClock::START.0 + 60_000_000);
    let (short, _) = house.key(NewKey { expires_at: Some(end), ..for_bob() });
    let (key, id) = house.key(for_bob());
    assert_eq!((house.code(&[("x-api-key", &short)]), house.code(&[("x-api-key", &key)])), ("ok", "ok"));
    house.clock.set(Time(end.0 - 1));
    assert_eq!(house.code(&[("x-api-key", &short)]), "ok");
    house.clock.set(end);
    assert_eq!(house.code(&[("x-api-key", &short)]), "expired_key");
    house.store.access_keys().revoke("acme", &id, house.clock.now()).unwrap();
    let error = house.comes(&[("x-api-key", &key)]).unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::Unauthenticated, ErrorCode::RevokedKey));
    // A clock behind the one that revoked the key changes nothing.
    house.clock.set(ManualClock::START);
    assert_eq!(house.code(&[("x-api-key", &key)]), "revoked_key");
}

#[test]
fn invalid_properties_of_a_new_key_are_refused() {
    let house = house(None);
    let (keys, now) = (house.store.access_keys(), house.clock.now());
    for (new, code) in [
        (NewKey { tenant: String::new(), ..for_bob() }, "empty_name"),
        (NewKey { project: Some(" x".into()), ..for_bob() }, "invalid_name"),
        (NewKey { user: String::new(), ..for_bob() }, "empty_name"),
        (NewKey { scopes: Default::default(), ..for_bob() }, "invalid_scope"),
        (NewKey { scopes: ["two words".to_string()].into(), ..for_bob() }, "invalid_scope"),
        (NewKey { scopes: ["Graph:read".to_string()].into(), ..for_bob() }, "invalid_scope"),
        (NewKey { expires_at: Some(now), ..for_bob() }, "invalid_time"),
    ] {
        assert_eq!(api_key::create(keys, new, now).map(|_| ()).unwrap_err().code.name(), code);
    }
    assert_eq!(keys.of_tenant("acme").unwrap(), []);
    let (one, two) = (house.key(for_bob()).0, house.key(for_bob()).0);
    assert!(one != two && one.len() == 63 && one.starts_with("lk_"));
    let token = AccessKeyToken::parse(&one).unwrap();
    assert_eq!(token.reveal(), one);
    let secret = &one[20..];
    assert!(!format!("{token:?}").contains(secret));
    let kept = format!("{:?}", keys.of_tenant("acme").unwrap());
    assert!(!kept.contains(secret), "the secret is kept nowhere");
    assert!(!lukasa_engine::redact::redact(&format!("sent {one} twice")).contains(secret), "nor is it logged");
}

#[test]
fn the_project_comes_from_the_credential_or_the_header() {
    let house = house(None);
    let token = |project: Value| format!("Bearer {}", hs256(&shared(), &but(json!({"project": project})), SECRET));
    let (fixed, free) = (token(json!("shop")), token(Value::Null));
    let (all, _) = house.key(NewKey { project: None, ..for_bob() });
    for (sent, due) in [
        (vec![("authorization", fixed.as_str()), ("x-project-id", "shop")], "acme/shop"),
        (vec![("authorization", &fixed), ("x-project-id", "other")], "forbidden_project"),
        (vec![("authorization", &free), ("x-project-id", "other")], "acme/other"),
        (vec![("authorization", &free)], "missing_project"),
        (vec![("authorization", &free), ("x-project-id", "a"), ("x-project-id", "b")], "invalid_header"),
        (vec![("x-api-key", &all), ("x-project-id", "other")], "acme/other"),
        (vec![("x-api-key", &all)], "missing_project"),
        (vec![("x-api-key", &all), ("x-project-id", "")], "empty_name"),
    ] {
        let got = house.comes(&sent).map_or_else(|e| e.code.to_string(), |caller| caller.scope.to_string());
        assert_eq!(got, due, "{sent:?}");
    }
    let usual = self::house(Some("usual"));
    assert_eq!(usual.comes(&[("authorization", &free)]).unwrap().scope.project, "usual");
    assert_eq!(usual.comes(&[("authorization", &fixed)]).unwrap().scope.project, "shop");
}

#[test]
fn without_authentication_only_this_machine_is_accepted() {
    let door = Authenticator::open(Scope::new("local", "shop").unwrap());
    assert!(door.is_open() && !house(None).door.is_open());
    let comes = |peer: &str, list: &[(&'static str, &str)]| {
        door.authenticate(&headers(list), peer.parse().unwrap()).map_or_else(|e| e.error.code.name(), |_| "ok")
    };
    for peer in ["127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        assert_eq!(comes(peer, &[]), "ok", "{peer}");
    }
    for peer in ["203.0.113.9:1", "192.168.0.2:1", "0.0.0.0:1", "[::]:1", "[::ffff:10.0.0.1]:1", "[fe80::1]:1"] {
        assert_eq!(comes(peer, &[]), ErrorCode::LoopbackOnly.name(), "{peer}");
    }
    for name in ["forwarded", "x-forwarded-for", "x-real-ip"] {
        assert_eq!(comes("127.0.0.1:1", &[(name, "127.0.0.1")]), ErrorCode::LoopbackOnly.name(), "{name}");
    }
    assert_eq!(comes("127.0.0.1:1", &[("x-project-id", "shop")]), "ok");
    assert_eq!(comes("127.0.0.1:1", &[("x-project-id", "other")]), ErrorCode::ForbiddenProject.name());
    assert_eq!(comes("127.0.0.1:1", &[("authorization", "Bearer whatever")]), "ok", "credentials are ignored");
    let caller = door.authenticate(&HeaderMap::new(), "127.0.0.1:1".parse().unwrap()).unwrap();
    assert_eq!((caller.grants, caller.local, caller.scope.project.as_str()), (Grants::All, false, "shop"));
}

#[test]
fn refusals_have_a_challenge() {
    let house = house(None);
    let challenged = |list: &[(&'static str, &str)]| challenge(&house.comes(list).unwrap_err());
    assert_eq!(challenged(&[]), Some(r#"Bearer realm="lukasa""#));
    assert_eq!(challenged(&[("x-api-key", "lk_x")]), Some(r#"Bearer realm="lukasa", error="invalid_token""#));
    let missing = Grants::of(["graph:read"]).check("put", "graph:write").unwrap_err();
    assert!(challenge(&missing).unwrap().contains("insufficient_scope"));
    assert_eq!(challenge(&Error::internal("x")), None);
}
