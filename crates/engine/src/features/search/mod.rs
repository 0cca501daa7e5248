//! Search in a view: text indexes, vectors, recipes, and what answers contain.

mod answer;
mod code_graph;
mod cypher_search;
pub mod embedding;
mod find;
mod index_cache;
mod meaning;
pub mod ops;
pub mod pack;
pub mod rendering;
mod reranking;
mod returned_facts;
mod texts;

pub use answer::{AnswerOptions, AnswerPage, ItemOut, ItemRole, ReasonOut, SearchPathOut, round, show};
pub use find::{RankedCandidates, RecallTies, Recipe, SearchQuestion, find, is_code};
pub use index_cache::IndexCache;
pub use lukasa_search::pipeline::fuse::NORMALIZATION;
pub use lukasa_search::pipeline::rerank::TIMEOUT_MS as RERANK_MS;
pub use meaning::{BuiltIn, EmbeddingModel, NodeFilter, SemanticMatches};
pub use reranking::RerankEndpoint;
pub use texts::{TextIndexes, property_texts, title};

use crate::feature::{Feature, Hooks};
use crate::view::ViewGraph;
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_model::{FactNo, Result, Scope, Time};
use lukasa_search::load_shedding::{AverageStageTimes, SheddingStep, StageTimes};
use lukasa_search::pipeline::rerank::{Reranker, WordProximity};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub static FEATURE: Feature = Feature {
    folder: "search",
    operations: ops::ALL,
    types: &[],
    state: |states| {
        states.put(SearchState::default());
        states.put(Arc::new(EmbeddingModel::built_in(Default::default(), None)));
        states.put(IndexCacheSlot::default());
    },
    hooks: Hooks { search: Some(cypher_search::searcher), ..Hooks::NONE },
};

/// Default limit of the time that a search may take before stages are shed.
const PATIENCE_MS: f64 = 300.0;

/// The state of search beside the graph.
pub struct SearchState {
    reranker: Arc<dyn Reranker>,
    costs: Mutex<AverageStageTimes>,
    /// Number of indexes that this process built completely.
    wholes: AtomicU64,
    /// Time that a search may take before stages are shed.
    patience_ms: f64,
    given: returned_facts::ReturnedFacts,
    /// Number of times that vectors were computed in this process.
    vectors: AtomicU64,
    /// Locks per project, so that its indexes are built only once at a time.
    making: Mutex<FxHashMap<Scope, Arc<Mutex<()>>>>,
}

impl Default for SearchState {
    fn default() -> Self {
        SearchState {
            reranker: Arc::new(WordProximity),
            costs: Mutex::default(),
            wholes: AtomicU64::default(),
            patience_ms: PATIENCE_MS,
            given: returned_facts::ReturnedFacts::default(),
            vectors: AtomicU64::default(),
            making: Mutex::default(),
        }
    }
}

impl SearchState {
    /// Uses this reranker.
    #[must_use]
    pub fn with_reranker(mut self, reranker: Arc<dyn Reranker>) -> SearchState {
        self.reranker = reranker;
        self
    }

    /// Sets the time that a search may take before stages are shed.
    #[must_use]
    pub fn with_patience(mut self, milliseconds: f64) -> SearchState {
        self.patience_ms = milliseconds;
        self
    }

    /// Returns the stages to leave out of a request, given the duration of earlier ones.
    pub fn shed(&self, reranks: bool) -> Vec<SheddingStep> {
        self.costs.lock().shed(self.patience_ms, reranks)
    }

    pub fn reranker(&self) -> Arc<dyn Reranker> {
        Arc::clone(&self.reranker)
    }

    /// The lock to hold while the indexes of a project are built.
    fn making(&self, scope: &Scope) -> Arc<Mutex<()>> {
        Arc::clone(self.making.lock().entry(scope.clone()).or_default())
    }

    /// Makes searches check for new vectors immediately.
    pub fn vectors_changed(&self) {
        self.vectors.fetch_add(1, Ordering::Relaxed);
    }

    fn vectors_seen(&self) -> u64 {
        self.vectors.load(Ordering::Relaxed)
    }

    /// Records that an index is being built completely: the duration of requests meanwhile is not typical.
    fn made_whole(&self) {
        self.wholes.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of indexes that were built completely so far.
    pub fn full_builds(&self) -> u64 {
        self.wholes.load(Ordering::Relaxed)
    }

    /// Records the duration of each stage of a request, without the building of indexes.
    pub fn learn(&self, seen: &StageTimes, shed: &[SheddingStep]) {
        let mut costs = self.costs.lock();
        *costs = costs.after(seen, shed);
    }

    /// Returns which of these facts the session of the caller received recently.
    pub fn given_lately(
        &self,
        context: &Context<'_>,
        look: &ViewGraph,
        now: Time,
        nodes: &[Node],
    ) -> FxHashSet<FactNo> {
        let Some(session) = &context.session else { return FxHashSet::default() };
        let things: Vec<FactNo> = nodes.iter().map(|node| look.snapshot.thing(*node)).collect();
        self.given.lately(&look.ledger, session, now, &things).into_iter().collect()
    }

    /// Records the facts that the session of the caller receives in full.
    pub fn give(&self, context: &Context<'_>, look: &ViewGraph, now: Time, things: &[FactNo]) {
        if let Some(session) = &context.session {
            self.given.give(&look.ledger, session, now, things);
        }
    }
}

/// The cache of indexes, if a cache folder is configured.
#[derive(Default)]
struct IndexCacheSlot(Option<Arc<IndexCache>>);

impl Engine {
    /// Stores data that can be recomputed in this folder, to save time. Call it after `with_graph_memory`.
    #[must_use]
    pub fn with_cache(self, folder: PathBuf) -> Engine {
        let kept = Arc::new(IndexCache::in_folder(&folder));
        self.graphs().projections.set_archive(Arc::clone(&kept) as Arc<dyn lukasa_graph::cache::GraphArchive>);
        self.with_cache_folder(folder).with_state(IndexCacheSlot(Some(kept)))
    }

    /// Searches with this reranker and this timeout.
    #[must_use]
    pub fn with_searching(self, searching: SearchState) -> Engine {
        self.with_state(searching)
    }

    /// Computes vectors with this model instead of the built-in one.
    #[must_use]
    pub fn with_embedding(self, embedding: EmbeddingModel) -> Engine {
        self.with_state(Arc::new(embedding))
    }

    pub fn embedding(&self) -> Arc<EmbeddingModel> {
        Arc::clone(self.state::<Arc<EmbeddingModel>>())
    }

    /// The state of search.
    pub fn searching(&self) -> &SearchState {
        self.state()
    }

    fn kept_indexes(&self) -> Option<&Arc<IndexCache>> {
        self.state::<IndexCacheSlot>().0.as_ref()
    }

    /// Returns the text indexes of a view, up to date with the last commit it shows.
    pub fn texts(&self, context: &mut Context<'_>, look: &ViewGraph) -> Result<Arc<TextIndexes>> {
        let searching = self.searching();
        let making = searching.making(&context.scope);
        let _one = making.lock();
        let snapshot = &look.snapshot;
        let kept =
            snapshot.derived::<TextIndexes>().or_else(|| index_cache::shelved(self.kept_indexes(), look, snapshot));
        if let Some(texts) = kept.as_ref().filter(|texts| texts.are_of(snapshot)) {
            return Ok(Arc::clone(texts));
        }
        let began = std::time::Instant::now();
        let changed =
            kept.as_ref().map_or(snapshot.touches(), |kept| snapshot.touches().saturating_sub(kept.touches()));
        let followed = match &kept {
            Some(texts) => texts.follow(look, self.sources())?,
            None => None,
        };
        let whole = followed.is_none();
        let texts = match followed {
            Some(texts) => texts,
            None => {
                searching.made_whole();
                TextIndexes::build(look, self.sources(), context.progress)?
            }
        };
        if let Some(kept) = self.kept_indexes().filter(|_| whole && look.is_head) {
            let bytes = |origin| self.graphs().projections.bytes(&look.ledger, snapshot, origin);
            kept.keep(look, &texts, bytes, index_cache::origin(self.clock().new_id()));
        }
        let millis = began.elapsed().as_secs_f64() * 1e3;
        crate::telemetry::metrics().fts_update_ms.record_of(&[amount(changed)], millis);
        let texts = Arc::new(texts);
        snapshot.keep(Arc::clone(&texts));
        Ok(texts)
    }
}

/// Numbers of objects, for warnings and metrics.
fn amount(objects: u64) -> &'static str {
    match objects {
        0..=10 => "10",
        11..=100 => "100",
        101..=1_000 => "1000",
        1_001..=10_000 => "10000",
        _ => "more",
    }
}
