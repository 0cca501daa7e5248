//! What the suites about retrieval share: a project in a new store, requests to it, and the methods that it is compared
//! with.

pub mod answer_file;
pub mod plain_bm25;
pub mod score;
pub mod vectors;

use crate::Fault;
use lukasa_engine::features::search::{Recipe, SearchQuestion, TextIndexes};
use lukasa_engine::view::ViewGraph;
use lukasa_engine::{Context, Engine};
use lukasa_graph::Node;
use lukasa_model::{Scope, Write};
use lukasa_search::pipeline::fuse::{Channel, Fusion, fuse};
use lukasa_search::pipeline::seeds::NearestNodes;
use lukasa_store::ledger::ViewSpec;
use lukasa_store::sqlite::Durability;
use lukasa_store::{Clock, SqliteStore, SystemClock};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tempfile::TempDir;

/// The least number of samples for a percentile.
const SAMPLES: usize = 200;
/// The constant `k` of reciprocal rank fusion that is in general use.
const RRF: f64 = 60.0;

/// An engine over an SQLite store in a temporary folder.
pub struct Project {
    pub engine: Engine,
    scope: Scope,
    folder: TempDir,
}

/// A view and its indexes, as requests see them.
pub struct ViewWithIndexes {
    pub look: ViewGraph,
    pub texts: Arc<TextIndexes>,
}

impl Project {
    pub fn new() -> Result<Project, Fault> {
        let folder = TempDir::new()?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = SqliteStore::open(&folder.path().join("lukasa.db"), Arc::clone(&clock), Durability::Full)?;
        let engine = Engine::new(Arc::new(store), clock, std::env::temp_dir()).with_cache(folder.path().join("cache"));
        Ok(Project { engine, scope: Scope::new("local", "evals")?, folder })
    }

    /// A folder for files of the project; it is deleted with the project.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    pub fn call(&self, name: &str, request: Value) -> Result<Value, Fault> {
        self.read(name, request, None)
    }

    /// Writes facts with `import`.
    pub fn import(&self, writes: &[Write]) -> Result<(), Fault> {
        let mut lines = Vec::new();
        for write in writes {
            serde_json::to_writer(&mut lines, write)?;
            lines.push(b'\n');
        }
        self.read("import", json!({"file": "-"}), Some(&lines)).map(drop)
    }

    fn read(&self, name: &str, request: Value, input: Option<&[u8]>) -> Result<Value, Fault> {
        let mut progress = |_: u64, _: Option<u64>| {};
        let mut context = Context::of(self.scope.clone(), &mut progress);
        let mut input = input;
        if let Some(input) = &mut input {
            context.input = Some(input);
        }
        Ok(self.engine.call(&mut context, name, request)?)
    }

    /// The view after the last commit, with its indexes.
    pub fn see(&self) -> Result<ViewWithIndexes, Fault> {
        let mut progress = |_: u64, _: Option<u64>| {};
        let mut context = Context::of(self.scope.clone(), &mut progress);
        let look = self.engine.view_graph(&mut context, &ViewSpec::default())?;
        let texts = self.engine.texts(&mut context, &look)?;
        Ok(ViewWithIndexes { look, texts })
    }
}

impl ViewWithIndexes {
    /// A question with a recipe, without load shedding.
    pub fn ask<'a>(&self, text: &'a str, recipe: Recipe, nearest: NearestNodes) -> SearchQuestion<'a> {
        SearchQuestion {
            text,
            recipe,
            lexical: true,
            vector: true,
            intent: None,
            fusion: Fusion::WeightedSum,
            pool: 100,
            nearest,
            allowed: &|_: Node| true,
        }
    }

    /// Nodes of a type by their keys.
    pub fn keyed(&self, type_name: &str) -> FxHashMap<String, Node> {
        let snapshot = &self.look.snapshot;
        let all = snapshot.nodes().into_iter().filter(|node| **snapshot.type_name(*node) == *type_name);
        all.filter_map(|node| Some((snapshot.key(node)?.to_owned(), node))).collect()
    }

    /// The order of equal scores: by first recording.
    pub fn order(&self, node: Node) -> u64 {
        self.look.snapshot.thing(node).0
    }
}

/// Reciprocal rank fusion of two lists.
pub fn by_places(first: Vec<(Node, f64)>, second: Vec<(Node, f64)>, order: impl Fn(Node) -> u64) -> Vec<Node> {
    let channel = |name, found| Channel { name, weight: 1.0, found };
    let fused = fuse(&[channel("lexical", first), channel("vector", second)], Fusion::Rrf { k: RRF }, order);
    fused.into_iter().map(|candidate| candidate.node).collect()
}

/// Durations, in milliseconds.
#[derive(Default)]
pub struct Times {
    ms: Vec<f64>,
}

impl Times {
    /// Runs something once to warm up, then often enough that `runs` calls give a percentile.
    pub fn take<T>(&mut self, runs: usize, mut run: impl FnMut() -> Result<T, Fault>) -> Result<T, Fault> {
        let answer = run()?;
        for _ in 0..SAMPLES.div_ceil(runs.max(1)) {
            let began = Instant::now();
            run()?;
            self.ms.push(began.elapsed().as_secs_f64() * 1e3);
        }
        Ok(answer)
    }

    pub fn add(&mut self, ms: f64) {
        self.ms.push(ms);
    }

    pub fn join(&mut self, other: &Times) {
        self.ms.extend(&other.ms);
    }

    /// In milliseconds; `None` if nothing was measured.
    pub fn percentile(&self, percent: usize) -> Option<f64> {
        let mut ms = self.ms.clone();
        ms.sort_by(f64::total_cmp);
        ms.get(ms.len() * percent / 100).or(ms.last()).map(|ms| (ms * 1e3).round() / 1e3)
    }
}

/// Rows of a file with one JSON value per line.
pub fn rows(path: &Path) -> Result<Vec<Value>, Fault> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| serde_json::from_str(line).map_err(|e| format!("{}: {e}", path.display()).into())).collect()
}

/// A text of a row; a row without it is an error.
pub fn text<'r>(row: &'r Value, name: &str) -> Result<&'r str, Fault> {
    row[name].as_str().ok_or_else(|| format!("a row has no `{name}`: {row}").into())
}

/// Texts of a row's list.
pub fn texts(row: &Value, name: &str) -> Vec<String> {
    let list = row[name].as_array().into_iter().flatten();
    list.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect()
}
