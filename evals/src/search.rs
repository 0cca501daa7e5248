//! The `search` suite: the time of a search among many objects, and from a write until it is found.

mod reference;
pub mod synthetic;

use crate::retrieval::vectors::Vectors;
use crate::retrieval::{Project, Times};
use crate::{Fault, peak_rss_mb, print, round};
use lukasa_engine::features::search::embedding::InputRules;
use lukasa_engine::features::search::{BuiltIn, EmbeddingModel};
use lukasa_model::Write;
use lukasa_model::batch::PutObject;
use lukasa_search::embed::{EmbedError, Embedder, EmbedderModel, Purpose};
use reference::ReferenceBm25;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;
use synthetic::SyntheticTexts;

/// Number of questions, and of writes that are searched for.
const QUESTIONS: u64 = 200;
const WRITES: u64 = 200;
/// Objects in one import.
const PART: u64 = 50_000;
/// Texts that measure the speed of the model.
const EMBEDDED: u64 = 512;
const LIMIT: usize = 10;

pub fn run(objects: u64, vectors: &Vectors, as_json: bool) -> Result<(), Fault> {
    let made = SyntheticTexts::new(objects, 1);
    let mut project = Project::new()?;
    project.engine =
        project.engine.with_embedding(EmbeddingModel::new(Arc::new(RandomVectors), InputRules::default(), None));
    eprintln!("writing {objects} objects …");
    let began = Instant::now();
    for first in (0..objects).step_by(PART as usize) {
        let part = first..objects.min(first + PART);
        project.import(&part.map(|at| Write::from(made.object(at))).collect::<Vec<_>>())?;
    }
    let import_s = began.elapsed().as_secs_f64();
    let began = Instant::now();
    project.see()?;
    let index_s = began.elapsed().as_secs_f64();
    eprintln!("{}", project.call("embed", json!({}))?["summary"]);
    eprintln!("written in {import_s:.1} s, indexed in {index_s:.1} s; searching …");
    let questions: Vec<String> = (0..QUESTIONS).map(|at| made.question(at)).collect();
    let (mut all, mut words, mut plain) = (Times::default(), Times::default(), Times::default());
    let reference = ReferenceBm25::new((0..objects).map(|at| made.object(at)));
    for question in &questions {
        all.take(questions.len(), || search(&project, question, false))?;
        words.take(questions.len(), || search(&project, question, true))?;
        plain.take(questions.len(), || Ok(std::hint::black_box(reference.rank(question, LIMIT))))?;
    }
    eprintln!("writing and searching for it …");
    let mut writes = Times::default();
    for at in 0..WRITES {
        let word = format!("zq{at}written");
        let object = PutObject::new("Note", &format!("note-{at}")).title(&format!("About {word}"));
        let began = Instant::now();
        project.call("put", json!({"type": object.type_name, "key": object.key, "title": object.title}))?;
        let answer = search(&project, &word, true)?;
        writes.add(began.elapsed().as_secs_f64() * 1e3);
        if !answer.to_string().contains(&format!("note-{at}")) {
            return Err(format!("`{word}` was written and is not found: {answer}").into());
        }
    }
    let line = json!({"suite": "search", "objects": objects, "embedded_share": embedded(&project)?,
        "p50_ms": all.percentile(50), "p95_ms": all.percentile(95), "novector_p50_ms": words.percentile(50),
        "novector_p95_ms": words.percentile(95), "write_to_searchable_p95_ms": writes.percentile(95),
        "write_to_searchable_p50_ms": writes.percentile(50), "embed_texts_per_s": speed(vectors, &made)?,
        "ref_bm25_p50_ms": plain.percentile(50), "ref_bm25_p95_ms": plain.percentile(95), "queries": questions.len(),
        "import_s": round(import_s), "index_s": round(index_s), "peak_rss_mb": peak_rss_mb()});
    print(&line, as_json);
    Ok(())
}

/// Gives stored texts random vectors, so that a hundred thousand are quickly made. Questions are embedded by the model.
struct RandomVectors;

impl Embedder for RandomVectors {
    fn model(&self) -> &EmbedderModel {
        BuiltIn.model()
    }

    fn batch(&self) -> usize {
        4_096
    }

    fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        if purpose == Purpose::Question {
            return BuiltIn.embed(texts, purpose);
        }
        let dimensions = self.model().dimensions;
        Ok(texts.iter().map(|text| random_vector(text, dimensions)).collect())
    }
}

/// A random vector of length one, the same for the same text.
fn random_vector(text: &str, dimensions: usize) -> Vec<f32> {
    let mut state =
        text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    let vector: Vec<f32> = (0..dimensions).map(|_| next()).collect();
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.into_iter().map(|x| x / length).collect()
}

fn search(project: &Project, question: &str, words_only: bool) -> Result<Value, Fault> {
    let mut request = json!({"query": question, "limit": LIMIT});
    if words_only {
        request["channels"] = json!(["lexical"]);
    }
    project.call("search", request)
}

/// The share of objects that have a vector.
fn embedded(project: &Project) -> Result<Option<f64>, Fault> {
    let readiness = project.call("search_readiness", json!({}))?;
    Ok(readiness["embedding"]["optional"]["percent"].as_f64().map(|percent| round(percent / 100.0)))
}

/// Texts that the model turns into vectors in a second.
fn speed(vectors: &Vectors, made: &SyntheticTexts) -> Result<Option<f64>, Fault> {
    let Some(embedder) = vectors.embedder() else { return Ok(None) };
    let texts: Vec<String> = (0..EMBEDDED).map(|at| made.text(at)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let began = Instant::now();
    for batch in texts.chunks(embedder.batch().max(1)) {
        embedder.embed(batch, Purpose::Keep)?;
    }
    Ok(Some(round(texts.len() as f64 / began.elapsed().as_secs_f64())))
}
