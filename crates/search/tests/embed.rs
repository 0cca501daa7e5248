//! Compares the built-in embedding model with the original: tokens, vectors, and independence of the other texts of a
//! call.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use lukasa_search::embed::builtin::{BuiltinModel, InstructionSet};
use lukasa_search::embed::{Embedder, Purpose};
use sha2::{Digest, Sha256};

#[test]
fn embed_tokens_equal_those_of_the_original() {
    // TOKEN_CASES is the path of a larger file, which models/fixtures.py writes.
    let path = std::env::var_os("TOKEN_CASES").map_or_else(|| fixture("tokens.jsonl"), PathBuf::from);
    let tokenizer = BuiltinModel::get().unwrap().tokenizer();
    let (mut cases, mut wrong) = (0, Vec::new());
    for line in BufReader::new(std::fs::File::open(path).unwrap()).lines() {
        let case: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let text = case["text"].as_str().unwrap();
        let expected: Vec<u64> = case["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
        let found: Vec<u64> = tokenizer.ids(text, 256).into_iter().map(u64::from).collect();
        cases += 1;
        if found != expected {
            wrong.push(format!("{text:?}: {found:?} instead of {expected:?}"));
        }
    }
    println!("{cases} texts, {} with other tokens", wrong.len());
    assert!(cases >= 200);
    assert!(wrong.is_empty(), "{} of {cases}: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
}

#[test]
fn embed_vectors_are_close_to_those_of_the_original() {
    let texts = texts();
    let bytes = std::fs::read(fixture("vectors.i16")).unwrap();
    let components: Vec<f32> = bytes.as_chunks().0.iter().map(|&two| f32::from(i16::from_le_bytes(two))).collect();
    let expected: Vec<&[f32]> = components.chunks(384).collect();
    assert_eq!((texts.len(), expected.len()), (200, 200));
    let found = embed(&texts);
    let cosines: Vec<f32> = found.iter().zip(&expected).map(|(found, expected)| cosine(found, expected)).collect();
    let mean = cosines.iter().sum::<f32>() / cosines.len() as f32;
    let worst = cosines.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).unwrap();
    println!("cosine to the original: mean {mean:.5}, worst {:.5} ({:?})", worst.1, texts[worst.0]);
    assert!(mean >= 0.9985, "mean {mean}");
    assert!(*worst.1 >= 0.99, "{:?}: {}", texts[worst.0], worst.1);
    assert!(
        found.iter().all(|vector| (cosine(vector, vector) - 1.0).abs() < 1e-5 && (length(vector) - 1.0).abs() < 1e-5)
    );
}

#[test]
fn embed_returns_the_same_bits_for_one_text_and_for_many() {
    let texts: Vec<String> = texts().into_iter().step_by(3).collect();
    let together = embed(&texts);
    for (text, vector) in texts.iter().zip(&together).step_by(4) {
        assert_eq!(bits(&embed(std::slice::from_ref(text))[0]), bits(vector), "{text:?}");
    }
    let backwards: Vec<String> = texts.iter().rev().cloned().collect();
    let backwards = embed(&backwards);
    assert!(together.iter().zip(backwards.iter().rev()).all(|(a, b)| bits(a) == bits(b)));
}

#[test]
fn embed_returns_the_same_vectors_with_all_instructions() {
    let texts: Vec<String> = texts().into_iter().step_by(15).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let builtin = BuiltinModel::get().unwrap();
    let plain = builtin.embed_at(InstructionSet::plain(), &texts);
    for level in InstructionSet::all() {
        let found = builtin.embed_at(level, &texts);
        assert!(plain.iter().zip(&found).all(|(plain, found)| bits(plain) == bits(found)), "{level:?}");
    }
}

#[test]
fn embed_tokens_returns_a_vector_for_each_token() {
    let builtin = BuiltinModel::get().unwrap();
    let texts: Vec<String> = texts().into_iter().step_by(9).chain([String::new()]).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let whole = builtin.embed(&texts, Purpose::Keep).unwrap();
    let found = builtin.embed_tokens(&texts, Purpose::Keep).unwrap();
    assert_eq!(found.len(), texts.len());
    for ((text, whole), found) in texts.iter().zip(&whole).zip(&found) {
        assert_eq!(bits(&found.text), bits(whole), "{text:?}");
        let ids: Vec<u32> = builtin.tokenizer().ids(text, 256).into_iter().map(u32::from).collect();
        assert_eq!(found.ids, ids[1..ids.len() - 1], "{text:?}");
        assert_eq!(found.vectors.len(), found.ids.len() * 384);
        assert!(found.vectors.chunks(384).all(|vector| (length(vector) - 1.0).abs() < 1e-5), "{text:?}");
    }
    let alone = builtin.embed_tokens(&texts[3..4], Purpose::Question).unwrap();
    assert_eq!(bits(&alone[0].vectors), bits(&found[3].vectors), "other texts do not matter");
    assert!(found.last().unwrap().ids.is_empty());
}

#[test]
fn embed_accepts_no_texts_and_truncates_long_ones() {
    assert!(embed(&[]).is_empty());
    let start = "the same words again and again ".repeat(100);
    let longer = format!("{start} and an end that is not read");
    let vectors = embed(&[start, longer]);
    assert_eq!(vectors[0], vectors[1]);
}

#[test]
fn embed_model_version_is_the_hash_of_its_weights() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/gte-small");
    let weights = std::fs::read(folder.join("weights.bin")).unwrap();
    let length = u32::from_le_bytes(weights[8..12].try_into().unwrap()) as usize;
    let data = &weights[(12 + length).next_multiple_of(64)..];
    let digest: String = Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(weights[12..].starts_with(format!("sha256 {digest}\n").as_bytes()));
    let model = BuiltinModel::get().unwrap().model();
    assert!(model.version.starts_with(&digest[..16]), "{}", model.version);
    assert_eq!(model.dimensions, 384);
}

fn embed(texts: &[String]) -> Vec<Vec<f32>> {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    BuiltinModel::get().unwrap().embed(&texts, Purpose::Keep).unwrap()
}

fn texts() -> Vec<String> {
    let file = std::fs::read_to_string(fixture("texts.jsonl")).unwrap();
    file.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/embed_fixtures").join(name)
}

fn bits(vector: &[f32]) -> Vec<u32> {
    vector.iter().map(|component| component.to_bits()).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>() / (length(a) * length(b))
}

fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|component| component * component).sum::<f32>().sqrt()
}
