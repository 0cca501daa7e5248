//! An embedding model behind HTTP: order, checks, and which failures are retried.

use lukasa_engine::features::search::embedding::{EmbeddingEndpoint, EmbeddingEndpointConfig};
use lukasa_engine::model_endpoint::EndpointKey;
use lukasa_model::ErrorCode;
use lukasa_search::embed::{EmbedError, Embedder, Purpose};
use lukasa_testkit::{FakeBehavior, FakeEmbeddings};
use serde_json::{Value, json};
use std::time::Duration;

fn config(url: &str) -> EmbeddingEndpointConfig {
    EmbeddingEndpointConfig {
        base_url: url.into(),
        model: "small".into(),
        version: "1".into(),
        key: Some(EndpointKey::new("sk-very-secret")),
        dimensions: 8,
        batch: 3,
        prefix: "passage: ".into(),
        question_prefix: "query: ".into(),
        timeout: Duration::from_millis(500),
    }
}

fn model(fake: &FakeEmbeddings) -> EmbeddingEndpoint {
    EmbeddingEndpoint::new(&config(&fake.url())).unwrap().with_pause(|_| {})
}

#[test]
fn vectors_come_in_the_order_of_the_texts_and_of_length_one() {
    let fake = FakeEmbeddings::start(8);
    let model = model(&fake);
    let texts = ["one", "two", "three", "four", "five"];
    let vectors = model.embed(&texts, Purpose::Keep).unwrap();
    assert_eq!(vectors.len(), 5);
    for vector in &vectors {
        let length: f32 = vector.iter().map(|x| x * x).sum();
        assert!(vector.len() == 8 && (length - 1.0).abs() < 1e-5);
    }
    assert_ne!(vectors[0], vectors[1]);
    fake.set(FakeBehavior::Shuffled);
    assert_eq!(model.embed(&texts, Purpose::Keep).unwrap(), vectors, "whatever their order in the answer");
    assert_eq!(model.embed(&["four"], Purpose::Keep).unwrap()[0], vectors[3], "whatever stands beside it");
    assert_ne!(model.embed(&["four"], Purpose::Question).unwrap()[0], vectors[3], "a question has its own prefix");
    assert_eq!(model.embed(&[], Purpose::Keep).unwrap(), Vec::<Vec<f32>>::new());
    let asked = fake.asked();
    assert!(asked.iter().all(|a| a.path == "/v1/embeddings" && a.headers.contains("Bearer sk-very-secret")));
    let body: Value = serde_json::from_str(&asked[0].body).unwrap();
    assert_eq!(body, json!({"model": "small", "input": ["passage: one", "passage: two", "passage: three"]}));
    assert_eq!(model.model().id(), "small@1/8/unknown/passage: /query: ");
}

#[test]
fn kinds_of_failures_are_distinguished() {
    let fake = FakeEmbeddings::start(8);
    let model = model(&fake);
    for (mood, worth_another_try) in [
        (FakeBehavior::Down, true),
        (FakeBehavior::Busy, true),
        (FakeBehavior::Slow, true),
        (FakeBehavior::HangsUp, true),
        (FakeBehavior::WrongDimensions, false),
        (FakeBehavior::TooFew, false),
        (FakeBehavior::Garbage, false),
        (FakeBehavior::NotANumber, false),
        (FakeBehavior::Nulls, false),
    ] {
        fake.set(mood);
        for purpose in [Purpose::Keep, Purpose::Question] {
            match model.embed(&["one"], purpose).unwrap_err() {
                EmbedError::Unavailable(why) => assert!(worth_another_try, "{mood:?}: {why}"),
                EmbedError::Broken(why) => assert!(!worth_another_try, "{mood:?}: {why}"),
            }
        }
    }
    fake.set(FakeBehavior::Fine);
    assert!(model.embed(&["one"], Purpose::Keep).is_ok(), "and it comes back");
    fake.set(FakeBehavior::Down);
    let before = fake.asked().len();
    model.embed(&["one"], Purpose::Question).unwrap_err();
    assert_eq!(fake.asked().len() - before, 1, "a question is not retried");
    let url = fake.url();
    drop(fake);
    let gone = EmbeddingEndpoint::new(&config(&url)).unwrap().with_pause(|_| {});
    assert!(matches!(gone.embed(&["one"], Purpose::Keep), Err(EmbedError::Unavailable(_))), "no server listens");
}

#[test]
fn invalid_settings_are_refused_by_name() {
    let url = "http://localhost:1/v1";
    for (config, says) in [
        (EmbeddingEndpointConfig { dimensions: 0, ..config(url) }, "dimensions"),
        (EmbeddingEndpointConfig { batch: 0, ..config(url) }, "embedding.batch"),
        (EmbeddingEndpointConfig { model: " ".into(), ..config(url) }, "embedding.model"),
        (config("localhost:1"), "embedding.base_url"),
        (EmbeddingEndpointConfig { timeout: Duration::ZERO, ..config(url) }, "embedding.timeout_seconds"),
    ] {
        let error = EmbeddingEndpoint::new(&config).err().unwrap();
        let text = format!("{} {}", error.message, error.hint.clone().unwrap_or_default());
        assert!(error.code == ErrorCode::InvalidModel && text.contains(says), "{text}");
        assert!(!text.contains("sk-very-secret"));
    }
}
