//! Reranking by a model behind an endpoint that speaks `/rerank`: Text Embeddings Inference, Jina, Cohere and others.

use crate::model_endpoint::{Endpoint, EndpointConfig, RERANK};
use crate::redact::redact;
use lukasa_model::{Error, ErrorCode, Result};
use lukasa_search::pipeline::rerank::Reranker;
use lukasa_search::text::Term;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum characters of a candidate that are sent: what models of this kind accept.
const LONGEST: usize = 2_000;

/// Called once per search that requests reranking; the call is bounded by the deadline.
pub struct RerankEndpoint {
    endpoint: Endpoint,
    deadline: Duration,
    /// The endpoint expects the documents in `texts`, as Text Embeddings Inference does.
    texts: AtomicBool,
}

impl RerankEndpoint {
    /// Connects lazily. The timeout of the endpoint is the deadline.
    pub fn new(config: &EndpointConfig) -> Result<RerankEndpoint> {
        let endpoint = Endpoint::called(config, RERANK)?;
        Ok(RerankEndpoint { endpoint, deadline: config.timeout, texts: AtomicBool::new(false) })
    }

    fn ask(&self, question: &str, documents: &[String]) -> Result<Value> {
        let ask = |texts: bool| {
            let name = if texts { "texts" } else { "documents" };
            let body = json!({"model": &**self.endpoint.name(), "query": question, name: documents});
            self.endpoint.post_once("/rerank", &body)
        };
        let texts = self.texts.load(Ordering::Relaxed);
        match ask(texts) {
            Err(refused) if refused.code == ErrorCode::ModelRequestRefused => {
                let answer = ask(!texts)?;
                self.texts.store(!texts, Ordering::Relaxed);
                Ok(answer)
            }
            answer => answer,
        }
    }
}

impl Reranker for RerankEndpoint {
    fn name(&self) -> &str {
        self.endpoint.name()
    }

    fn timeout(&self) -> Duration {
        self.deadline
    }

    fn judge(&self, question: &str, _: &[Term], texts: &[String]) -> Result<Vec<f64>, String> {
        // Secrets are redacted before texts are cut, so that no part of a secret remains.
        let sent: Vec<String> = texts.iter().map(|text| redact(text).chars().take(LONGEST).collect()).collect();
        let answer = self.ask(&redact(question), &sent).map_err(|e: Error| e.message)?;
        read(&answer, texts.len())
    }
}

/// Returns a score for every text, in their order, between 0 and 1.
fn read(answer: &Value, texts: usize) -> Result<Vec<f64>, String> {
    let rows = answer.as_array().or_else(|| answer["results"].as_array()).ok_or("the answer holds no judgements")?;
    let mut judged: Vec<Option<f64>> = vec![None; texts];
    for row in rows {
        let index = row["index"].as_u64().and_then(|index| usize::try_from(index).ok());
        let place = index.and_then(|index| judged.get_mut(index)).filter(|place| place.is_none());
        let score = row["relevance_score"].as_f64().or_else(|| row["score"].as_f64()).filter(|score| score.is_finite());
        match (place, score) {
            (Some(place), Some(score)) => *place = Some(score),
            (None, _) => return Err("a judgement belongs to no text".into()),
            (_, None) => return Err("a judgement is no number".into()),
        }
    }
    let given: Vec<f64> = judged.into_iter().flatten().collect();
    if given.len() != texts {
        return Err(format!("{texts} texts were sent, {} judgements came back", given.len()));
    }
    // Some endpoints return logits, which are not limited to 0 to 1.
    let plain = given.iter().all(|score| (0.0..=1.0).contains(score));
    Ok(given.into_iter().map(|score| if plain { score } else { 1.0 / (1.0 + (-score).exp()) }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_in_their_shapes_and_checked() {
        let rows = json!([{"index": 1, "score": 0.25}, {"index": 0, "score": 0.75}]);
        assert_eq!(read(&rows, 2), Ok(vec![0.75, 0.25]));
        let rows = json!({"results": [{"index": 0, "relevance_score": 0.5, "document": {"text": "x"}}]});
        assert_eq!(read(&rows, 1), Ok(vec![0.5]));
        let raw = read(&json!([{"index": 0, "score": 0.0}, {"index": 1, "score": 7.5}]), 2).unwrap();
        assert!(raw[0] == 0.5 && raw[1] > 0.99 && raw[1] < 1.0, "{raw:?}");
        for (answer, why) in [
            (json!({"error": "no"}), "holds no judgements"),
            (json!([]), "0 judgements"),
            (json!([{"index": 0, "score": 1}, {"index": 0, "score": 1}]), "belongs to no text"),
            (json!([{"index": 9, "score": 1}]), "belongs to no text"),
            (json!([{"index": 0, "score": "high"}]), "is no number"),
        ] {
            assert!(read(&answer, 2).unwrap_err().contains(why), "{answer}");
        }
    }
}
