//! An embedding model behind any OpenAI-compatible endpoint.

use crate::model_endpoint::{EMBEDDING, Endpoint, EndpointConfig, EndpointKey};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use lukasa_search::embed::{EmbedError, Embedder, EmbedderModel, Purpose};
use serde_json::{Value, json};
use std::time::Duration;

/// Default number of texts per request.
pub const BATCH: usize = 16;
/// Maximum number of texts per request that endpoints accept.
const MOST: usize = 2_048;
/// Larger than the dimensions of any known model.
const DIMENSIONS: usize = 16_384;
/// Timeout for the vector of a question, which can also be answered without one.
const QUESTION: Duration = Duration::from_secs(3);

/// The address of an embedding model, and how it is called.
#[derive(Clone, Debug)]
pub struct EmbeddingEndpointConfig {
    /// The address without `/embeddings`, for example `http://localhost:11434/v1`.
    pub base_url: String,
    /// The name of the model at the endpoint.
    pub model: String,
    /// Change it when the endpoint serves other weights under the same name.
    pub version: String,
    pub key: Option<EndpointKey>,
    pub dimensions: usize,
    pub batch: usize,
    pub prefix: String,
    pub question_prefix: String,
    pub timeout: Duration,
}

/// A model behind an endpoint, with separate timeouts for objects and questions.
pub struct EmbeddingEndpoint {
    endpoint: Endpoint,
    /// The same endpoint with a shorter timeout, for questions.
    questions: Endpoint,
    model: EmbedderModel,
    batch: usize,
}

impl EmbeddingEndpoint {
    /// Connects lazily: an unreachable endpoint must not prevent the start.
    pub fn new(config: &EmbeddingEndpointConfig) -> Result<EmbeddingEndpoint> {
        let fault = |what: String, hint: &str| Error::invalid(ErrorCode::InvalidModel, what).hint(hint);
        if config.dimensions == 0 || config.dimensions > DIMENSIONS {
            let hint = "set embedding.dimensions (LUKASA_EMBEDDING_DIMENSIONS) to how long the model's vectors are";
            return Err(fault(format!("{} dimensions are none a model has", config.dimensions), hint));
        }
        if config.batch == 0 || config.batch > MOST {
            let what = format!("embedding.batch is {}, 1 to {MOST} are possible", config.batch);
            return Err(fault(what, "set embedding.batch (LUKASA_EMBEDDING_BATCH), for example to 16"));
        }
        let at = EndpointConfig {
            url: config.base_url.clone(),
            name: config.model.clone(),
            key: config.key.clone(),
            timeout: config.timeout,
        };
        let endpoint = Endpoint::called(&at, EMBEDDING)?;
        let questions = Endpoint::called(&EndpointConfig { timeout: at.timeout.min(QUESTION), ..at }, EMBEDDING)?;
        let model = EmbedderModel {
            name: endpoint.name().to_string(),
            version: config.version.clone(),
            dimensions: config.dimensions,
            pooling: "unknown".into(),
            prefix: config.prefix.clone(),
            question_prefix: config.question_prefix.clone(),
        };
        Ok(EmbeddingEndpoint { endpoint, questions, model, batch: config.batch })
    }

    /// Replaces sleeping between retries, for tests.
    #[must_use]
    pub fn with_pause(mut self, pause: impl Fn(Duration) + Send + Sync + 'static) -> EmbeddingEndpoint {
        self.endpoint = self.endpoint.with_pause(pause);
        self
    }
}

impl Embedder for EmbeddingEndpoint {
    fn model(&self) -> &EmbedderModel {
        &self.model
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        let prefix = match purpose {
            Purpose::Keep => &self.model.prefix,
            Purpose::Question => &self.model.question_prefix,
        };
        let mut vectors = Vec::with_capacity(texts.len());
        for part in texts.chunks(self.batch) {
            let input: Vec<String> = part.iter().map(|text| format!("{prefix}{text}")).collect();
            let body = json!({"model": self.model.name, "input": input});
            let answer = match purpose {
                Purpose::Keep => self.endpoint.post("/embeddings", &body),
                Purpose::Question => self.questions.post_once("/embeddings", &body),
            };
            vectors.extend(read(&answer.map_err(|e| embed_error(&e))?, part.len(), self.model.dimensions)?);
        }
        Ok(vectors)
    }
}

fn embed_error(error: &Error) -> EmbedError {
    let worth_another_try = match error.kind {
        ErrorKind::Timeout | ErrorKind::RateLimited => true,
        ErrorKind::Unavailable => error.code != ErrorCode::ModelAnswerInvalid,
        _ => false,
    };
    let why = error.message.clone();
    if worth_another_try { EmbedError::Unavailable(why) } else { EmbedError::Broken(why) }
}

/// Returns the vectors of an answer, in the order of the texts, normalized to length one.
fn read(answer: &Value, texts: usize, dimensions: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
    let broken = |why: String| Err(EmbedError::Broken(why));
    let Some(rows) = answer["data"].as_array() else {
        return broken("the answer holds no vectors".into());
    };
    if rows.len() != texts {
        return broken(format!("{texts} texts were sent, {} vectors came back", rows.len()));
    }
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; texts];
    for (at, row) in rows.iter().enumerate() {
        // Some endpoints omit the index and return vectors in the order of the texts.
        let index = match &row["index"] {
            Value::Null => Some(at),
            index => index.as_u64().and_then(|index| usize::try_from(index).ok()),
        };
        let Some(place) = index.and_then(|index| vectors.get_mut(index)).filter(|place| place.is_none()) else {
            return broken("a vector belongs to no text".into());
        };
        let Some(numbers) = row["embedding"].as_array() else {
            return broken("a vector is no list of numbers".into());
        };
        if numbers.len() != dimensions {
            return broken(format!("a vector has {} dimensions, {dimensions} are configured", numbers.len()));
        }
        #[expect(clippy::cast_possible_truncation, reason = "components are 32-bit floats")]
        let vector: Option<Vec<f32>> = numbers.iter().map(|n| n.as_f64().map(|n| n as f32)).collect();
        let Some(vector) = vector.and_then(of_length_one) else {
            return broken("a vector is not made of finite numbers, or is zero".into());
        };
        *place = Some(vector);
    }
    Ok(vectors.into_iter().flatten().collect())
}

#[expect(clippy::cast_possible_truncation, reason = "components are 32-bit floats")]
fn of_length_one(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if !length.is_finite() || length == 0.0 {
        return None;
    }
    vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    Some(vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_checked() {
        let row = |index: Value, vector: Value| json!({"index": index, "embedding": vector});
        let of = |rows: &[Value]| read(&json!({"data": rows}), 2, 2);
        let swapped = of(&[row(json!(1), json!([0.0, 2.0])), row(json!(0), json!([3, 4]))]).unwrap();
        assert_eq!(swapped, [vec![0.6, 0.8], vec![0.0, 1.0]]);
        let in_order = of(&[row(Value::Null, json!([1, 0])), row(Value::Null, json!([0, 1]))]).unwrap();
        assert_eq!(in_order, [vec![1.0, 0.0], vec![0.0, 1.0]]);
        let good = row(json!(0), json!([1, 0]));
        for (rows, why) in [
            (vec![good.clone()], "2 texts were sent, 1 vectors"),
            (vec![good.clone(), good.clone()], "belongs to no text"),
            (vec![good.clone(), row(json!(7), json!([1, 0]))], "belongs to no text"),
            (vec![good.clone(), row(json!(-1), json!([1, 0]))], "belongs to no text"),
            (vec![good.clone(), row(json!(1), json!([1, 0, 0]))], "3 dimensions, 2 are configured"),
            (vec![good.clone(), row(json!(1), json!("AAAA"))], "no list of numbers"),
            (vec![good.clone(), row(json!(1), json!([1, "x"]))], "not made of finite numbers"),
            (vec![good.clone(), row(json!(1), json!([0, 0]))], "is zero"),
            (vec![good.clone(), row(json!(1), json!([1e300, 0]))], "not made of finite numbers"),
        ] {
            match of(&rows) {
                Err(EmbedError::Broken(message)) => assert!(message.contains(why), "{message}"),
                other => panic!("{other:?}"),
            }
        }
        assert!(matches!(read(&json!({"error": "no"}), 1, 2), Err(EmbedError::Broken(_))));
    }
}
