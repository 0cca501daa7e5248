//! Vectors of the texts of the data, kept on disk for the next run.

use crate::Fault;
use lukasa_engine::features::search::BuiltIn;
use lukasa_graph::Node;
use lukasa_model::json::Hash;
use lukasa_search::embed::{Embedder, Purpose};
use lukasa_search::pipeline::seeds::NearestNodes;
use rustc_hash::FxHashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// A model, and the folder where its vectors are kept.
pub struct Vectors {
    embedder: Option<Box<dyn Embedder>>,
    cache: Option<PathBuf>,
}

/// The built-in model.
fn builtin() -> Option<Box<dyn Embedder>> {
    Some(Box::new(BuiltIn))
}

impl Vectors {
    pub fn new(cache: Option<&Path>) -> Vectors {
        Vectors { embedder: builtin(), cache: cache.map(Path::to_owned) }
    }

    pub fn embedder(&self) -> Option<&dyn Embedder> {
        self.embedder.as_deref()
    }

    /// One vector for each text, in their order; `None` without a model.
    pub fn of<S: AsRef<str>>(&self, texts: &[S], purpose: Purpose) -> Result<Option<Vec<Vec<f32>>>, Fault> {
        let Some(embedder) = &self.embedder else { return Ok(None) };
        let key = |text: &str| Hash::of(format!("{purpose:?}\n{text}").as_bytes());
        let (dimensions, mut kept) = (embedder.model().dimensions, FxHashMap::default());
        let file = self.cache.as_ref().map(|folder| folder.join(file_name(&embedder.model().id())));
        if let Some(file) = file.as_ref().filter(|file| file.exists()) {
            read(file, dimensions, &mut kept)?;
        }
        let mut wanted: Vec<&str> = texts.iter().map(AsRef::as_ref).filter(|t| !kept.contains_key(&key(t))).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut more = match (&file, wanted.is_empty()) {
            (Some(file), false) => {
                file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
                Some(BufWriter::new(OpenOptions::new().create(true).append(true).open(file)?))
            }
            _ => None,
        };
        for (done, batch) in wanted.chunks(embedder.batch().max(1)).enumerate() {
            eprint!("\r{} of {} texts embedded", done * embedder.batch(), wanted.len());
            for (text, vector) in batch.iter().zip(embedder.embed(batch, purpose)?) {
                let key = key(text);
                if let Some(more) = &mut more {
                    more.write_all(&key.0)?;
                    vector.iter().try_for_each(|x| more.write_all(&x.to_le_bytes()))?;
                }
                kept.insert(key, vector);
            }
        }
        if !wanted.is_empty() {
            eprintln!("\r{} texts embedded          ", wanted.len());
        }
        more.as_mut().map_or(Ok(()), |more| more.flush())?;
        let found = texts.iter().map(|text| kept.get(&key(text.as_ref())).cloned());
        Ok(Some(found.collect::<Option<_>>().ok_or("the model gave fewer vectors than texts")?))
    }
}

/// Number of nearest vectors that count; their scores are relative to the rest.
const NEAR: usize = 200;

/// The similarity of each node to a question, and the similarity that counts as zero, as in the engine.
pub fn nearest(nodes: &[Node], vectors: &[Vec<f32>], question: &[f32]) -> NearestNodes {
    let cosine = |v: &[f32]| v.iter().zip(question).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    let found: Vec<(Node, f64)> = nodes.iter().zip(vectors).map(|(node, v)| (*node, cosine(v))).collect();
    let mut scores: Vec<f64> = found.iter().map(|(_, score)| *score).collect();
    scores.sort_by(|a, b| b.total_cmp(a));
    let last = NEAR.min(scores.len().div_ceil(2)).saturating_sub(1);
    let base = scores.get(last).copied().unwrap_or(0.0);
    NearestNodes { found, base }
}

fn file_name(model: &str) -> String {
    let hash = Hash::of(model.as_bytes());
    let digits: String = hash.0[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("vectors-{digits}.bin")
}

/// Reads the kept vectors; an incomplete last record is left out.
fn read(file: &Path, dimensions: usize, kept: &mut FxHashMap<Hash, Vec<f32>>) -> Result<(), Fault> {
    let mut bytes = Vec::new();
    File::open(file)?.read_to_end(&mut bytes)?;
    let whole = bytes.chunks_exact(32 + dimensions * 4);
    if !whole.remainder().is_empty() {
        // New records must be appended at a multiple of the record size.
        OpenOptions::new().write(true).open(file)?.set_len((bytes.len() - whole.remainder().len()) as u64)?;
    }
    for record in whole {
        let (key, numbers) = record.split_at(32);
        let key = Hash(key.try_into()?);
        kept.insert(key, numbers.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lukasa_search::embed::{EmbedError, EmbedderModel};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Embeds a text as its length, and counts the texts.
    struct Lengths(EmbedderModel, Arc<AtomicUsize>);

    impl Embedder for Lengths {
        fn model(&self) -> &EmbedderModel {
            &self.0
        }
        fn batch(&self) -> usize {
            2
        }
        fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
            self.1.fetch_add(texts.len(), Ordering::Relaxed);
            let side = if purpose == Purpose::Keep { 0.0 } else { 1.0 };
            Ok(texts.iter().map(|t| vec![t.len() as f32, side]).collect())
        }
    }

    #[test]
    fn vectors_are_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let open = |name: &str| {
            let (pooling, prefix) = ("mean".to_owned(), String::new());
            let model = EmbedderModel {
                name: name.into(),
                version: "1".into(),
                dimensions: 2,
                pooling,
                question_prefix: prefix.clone(),
                prefix,
            };
            let embedder: Box<dyn Embedder> = Box::new(Lengths(model, Arc::clone(&asked)));
            Vectors { embedder: Some(embedder), cache: Some(folder.path().join("cache")) }
        };
        let texts = ["a", "bb", "a", "ccc"];
        let expected: Vec<Vec<f32>> = [1.0, 2.0, 1.0, 3.0].map(|n| vec![n, 0.0]).into();
        assert_eq!(open("m").of(&texts, Purpose::Keep).unwrap(), Some(expected.clone()));
        assert_eq!(open("m").of(&texts, Purpose::Keep).unwrap(), Some(expected.clone()));
        assert_eq!(asked.load(Ordering::Relaxed), 3);
        assert_eq!(open("m").of(&["a"], Purpose::Question).unwrap(), Some(vec![vec![1.0, 1.0]]));
        assert_eq!(open("other").of(&["a"], Purpose::Keep).unwrap(), Some(vec![vec![1.0, 0.0]]));
        assert_eq!(asked.load(Ordering::Relaxed), 5);
        // A run that was cut off leaves half a record.
        let file = folder.path().join("cache").join(file_name(&open("m").embedder().unwrap().model().id()));
        OpenOptions::new().append(true).open(file).unwrap().write_all(&[7; 9]).unwrap();
        assert_eq!(open("m").of(&["dddd", "bb"], Purpose::Keep).unwrap(), Some(vec![vec![4.0, 0.0], vec![2.0, 0.0]]));
        assert_eq!(open("m").of(&["dddd"], Purpose::Keep).unwrap(), Some(vec![vec![4.0, 0.0]]));
        assert_eq!(asked.load(Ordering::Relaxed), 6);
        let none = Vectors { embedder: None, cache: None };
        assert_eq!(none.of(&texts, Purpose::Keep).unwrap(), None);
    }
}
