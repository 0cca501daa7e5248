//! Search by meaning, as far as there are vectors.

use crate::features::search::embedding::{
    self, Breaker, EmbeddingEndpoint, EmbeddingEndpointConfig, EmbeddingQueue, EmbeddingWorker, InputRules,
};
use crate::redact::redact;
use crate::sensitive::is_sensitive;
use crate::view::ViewGraph;
use crate::{Context, Engine};
use lukasa_graph::lookup::SnapshotDerived;
use lukasa_graph::{Node, Snapshot};
use lukasa_model::json::Hash;
use lukasa_model::types::{EmbeddingPolicy, system};
use lukasa_model::{Error, FactNo, Result, Scope};
use lukasa_search::embed::builtin::BuiltinModel;
use lukasa_search::embed::likeness;
use lukasa_search::embed::{EmbedError, Embedder, EmbedderModel, Purpose, TokenVectors};
use lukasa_search::pipeline::seeds::{NearestNodes, by_meaning};
use lukasa_search::recipes::MEANING;
use lukasa_search::vectors::{Quantised, Vectors};
use lukasa_store::VersionFields;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of nodes and vectors that are read at a time.
const AT_ONCE: usize = 2_048;
/// Share of nodes without a vector of the model in use, but with one of another model, above which a warning is returned.
const BACKLOG: f64 = 0.15;
/// Number of questions whose vectors are cached.
const QUESTIONS: usize = 256;
/// Minimum interval between two checks for new vectors, per portion of the nodes that wait for one.
const AGAIN: Duration = Duration::from_secs(1);

/// Checking many nodes takes longer, so it is done less often.
fn again(waiting: usize) -> Duration {
    AGAIN * u32::try_from(waiting.div_ceil(AT_ONCE).max(1)).unwrap_or(u32::MAX)
}

/// The model in use, and its settings.
pub struct EmbeddingModel {
    embedder: Arc<dyn Embedder>,
    pub rules: InputRules,
    pub breaker: Arc<Mutex<Breaker>>,
    /// The model whose vectors are searched, if it is not the one in use.
    reads: Option<String>,
    questions: Mutex<FxHashMap<String, Arc<Vec<f32>>>>,
}

impl EmbeddingModel {
    /// Uses a model; `reads` is the id of the model whose vectors are searched, if it is another one.
    pub fn new(embedder: Arc<dyn Embedder>, rules: InputRules, reads: Option<String>) -> EmbeddingModel {
        let (breaker, questions) = (Arc::default(), Mutex::default());
        EmbeddingModel { embedder, rules, breaker, reads, questions }
    }

    /// The built-in model.
    pub fn built_in(rules: InputRules, reads: Option<String>) -> EmbeddingModel {
        EmbeddingModel::new(Arc::new(BuiltIn), rules, reads)
    }

    /// The model behind an endpoint.
    pub fn by_endpoint(
        config: &EmbeddingEndpointConfig,
        rules: InputRules,
        reads: Option<String>,
    ) -> Result<EmbeddingModel> {
        Ok(EmbeddingModel::new(Arc::new(EmbeddingEndpoint::new(config)?), rules, reads))
    }

    pub fn embedder(&self) -> &Arc<dyn Embedder> {
        &self.embedder
    }

    /// The id of the model whose vectors are searched.
    pub fn reads(&self) -> String {
        embedding::model_to_read(self.reads.as_deref(), &self.embedder.model().id()).to_owned()
    }

    fn question(&self, text: &str) -> Result<Arc<Vec<f32>>, EmbedError> {
        if let Some(known) = self.questions.lock().get(text) {
            return Ok(Arc::clone(known));
        }
        let made = self.embedder.embed(&[&redact(text)], Purpose::Question)?;
        let vector = made.into_iter().next().filter(|v| v.len() == self.embedder.model().dimensions);
        let vector = Arc::new(vector.ok_or_else(|| EmbedError::Broken("no vector for the question".into()))?);
        let mut questions = self.questions.lock();
        if questions.len() >= QUESTIONS {
            questions.clear();
        }
        questions.insert(text.to_owned(), Arc::clone(&vector));
        Ok(vector)
    }
}

/// The built-in model, loaded on first use.
pub struct BuiltIn;

impl Embedder for BuiltIn {
    fn model(&self) -> &EmbedderModel {
        BuiltinModel::get().expect("the weights are part of the program").model()
    }

    fn batch(&self) -> usize {
        BuiltinModel::get().map_or(1, |model| model.batch())
    }

    fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        BuiltinModel::get()?.embed(texts, purpose)
    }

    fn embed_tokens(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<TokenVectors>, EmbedError> {
        BuiltinModel::get()?.embed_tokens(texts, purpose)
    }
}

/// The nearest nodes.
#[derive(Clone, Debug, Default)]
pub struct SemanticMatches {
    pub nearest: NearestNodes,
    /// Share of the embeddable nodes that have a vector.
    pub share: f64,
    /// Why vectors are missing, or incomplete.
    pub warning: Option<String>,
    /// The model whose vectors were compared, if there are any.
    pub model: Option<String>,
    /// Many nodes have a vector of another model only.
    pub backlog: bool,
    /// Time to load new vectors, which does not count as time of the search.
    pub preparing_ms: f64,
    embedded: Option<Arc<NodeVectors>>,
}

impl SemanticMatches {
    /// How many of these nodes wait for a vector.
    pub fn waiting(&self, nodes: impl Iterator<Item = Node>) -> usize {
        self.embedded.as_ref().map_or(0, |all| nodes.filter(|node| all.waiting.contains_key(node)).count())
    }
}

/// Whether a node may be in the answer.
pub type NodeFilter<'a> = &'a (dyn Fn(Node) -> bool + Sync);

/// Vectors of the nodes of a snapshot, kept up to date with the graph and with new vectors.
#[derive(Debug)]
struct NodeVectors {
    model: String,
    vectors: Vectors,
    /// Nodes whose text has no vector yet.
    waiting: FxHashMap<Node, Hash>,
    touches: u64,
    /// When vectors were last checked, and the number of computations at that time.
    looked: (Instant, u64),
}

impl SnapshotDerived for NodeVectors {
    fn bytes(&self) -> usize {
        self.vectors.len() * (self.vectors.dimensions() + 16) + self.waiting.len() * 48
    }
}

impl NodeVectors {
    fn new(model: &str, dimensions: usize) -> NodeVectors {
        let (vectors, waiting, looked) = (Vectors::new(dimensions), FxHashMap::default(), (Instant::now(), 0));
        NodeVectors { model: model.to_owned(), vectors, waiting, touches: 0, looked }
    }

    fn clone_at(&self, snapshot: &Snapshot) -> NodeVectors {
        let (model, vectors, waiting) = (self.model.clone(), self.vectors.clone(), self.waiting.clone());
        NodeVectors { model, vectors, waiting, touches: snapshot.touches(), looked: self.looked }
    }

    /// Computes the texts of nodes, whose hashes identify their vectors.
    fn learn(&mut self, look: &ViewGraph, rules: &InputRules, nodes: &[Node]) -> Result<()> {
        let snapshot = &look.snapshot;
        for node in nodes {
            self.vectors.remove(node.0);
            self.waiting.remove(node);
        }
        for nodes in nodes.chunks(AT_ONCE) {
            let mut numbers: Vec<FactNo> =
                nodes.iter().filter(|node| snapshot.is_live(**node)).map(|node| snapshot.thing(*node)).collect();
            numbers.sort_unstable();
            for state in look.ledger.states(&look.view, &numbers, VersionFields::Content)? {
                let (Some(node), Some(statement)) = (snapshot.find(state.thing.no), &state.statement) else { continue };
                let declared = look.registry.object_type(&state.thing.type_name).map(|t| &t.embedding);
                let disabled = declared.is_some_and(|d| d.policy == EmbeddingPolicy::Disabled);
                if disabled || system::is(&state.thing.type_name) {
                    continue;
                }
                let content = statement.parsed()?;
                if is_sensitive(&content) {
                    continue;
                }
                let relevant = declared.map_or(&[][..], |d| &d.relevant_paths);
                let input = embedding::input::build(state.thing.key.as_deref(), &content, relevant, rules);
                self.waiting.insert(node, input.hash);
            }
        }
        Ok(())
    }

    /// Loads the vectors that were computed since the last check.
    fn take(&mut self, look: &ViewGraph) -> Result<()> {
        let mut by_hash: FxHashMap<Hash, Vec<Node>> = FxHashMap::default();
        self.waiting.iter().for_each(|(node, hash)| by_hash.entry(*hash).or_default().push(*node));
        let hashes: Vec<Hash> = by_hash.keys().copied().collect();
        let (derived, scope) = (look.ledger.store().derived(), look.ledger.scope());
        for hashes in hashes.chunks(AT_ONCE) {
            for vector in derived.vectors(scope, &self.model, hashes)? {
                let fault = |e| Error::internal(format!("a vector of `{}` cannot be read: {e}", self.model));
                let kept = Quantised::from_bytes(&vector.bytes).map_err(fault)?;
                for node in by_hash.remove(&vector.input).unwrap_or_default() {
                    self.vectors.put_bytes(node.0, &kept).map_err(fault)?;
                    self.waiting.remove(&node);
                }
            }
        }
        Ok(())
    }

    fn share(&self) -> f64 {
        let all = self.vectors.len() + self.waiting.len();
        if all == 0 { 0.0 } else { self.vectors.len() as f64 / all as f64 }
    }
}

impl Engine {
    /// Returns the allowed nodes nearest to a question in meaning. A missing model is a warning, not an error.
    pub fn nearest(
        &self,
        context: &mut Context<'_>,
        look: &ViewGraph,
        question: &str,
        allowed: Option<NodeFilter<'_>>,
    ) -> Result<SemanticMatches> {
        let using = self.embedding();
        let reads = using.reads();
        let (derived, scope) = (look.ledger.store().derived(), look.ledger.scope());
        let models = derived.vector_models(scope)?;
        let in_use = using.embedder.model().id();
        if !models.contains(&reads) {
            let backlog = models.iter().any(|model| *model != in_use);
            return Ok(SemanticMatches { backlog, ..SemanticMatches::default() });
        }
        let began = Instant::now();
        let embedded = self.embedded(context, look, &using, &reads)?;
        let preparing_ms = began.elapsed().as_secs_f64() * 1e3;
        let behind = models.len() > 1 && embedded.share() < 1.0 - BACKLOG;
        let mut meaning = SemanticMatches {
            share: embedded.share(),
            backlog: reads != in_use || behind,
            embedded: Some(Arc::clone(&embedded)),
            preparing_ms,
            ..SemanticMatches::default()
        };
        if embedded.vectors.is_empty() {
            return Ok(meaning);
        }
        meaning.model = Some(reads);
        match using.question(question) {
            Ok(vector) => {
                let near = match allowed {
                    None => embedded.vectors.nearest(&vector, MEANING.near, |_| true),
                    Some(allowed) => embedded.vectors.nearest(&vector, MEANING.near, |id| allowed(Node(id))),
                };
                match near {
                    Ok(mut near) => {
                        let unrelated = using.embedder.unrelated();
                        near.iter_mut().for_each(|(_, cosine)| *cosine = likeness(*cosine, unrelated));
                        meaning.nearest = by_meaning(&near, &MEANING);
                    }
                    Err(e) => meaning.warning = Some(format!("no search by meaning: {e}")),
                }
            }
            Err(e) => meaning.warning = Some(format!("no search by meaning: {e}")),
        }
        Ok(meaning)
    }

    fn embedded(
        &self,
        context: &Context<'_>,
        look: &ViewGraph,
        using: &EmbeddingModel,
        reads: &str,
    ) -> Result<Arc<NodeVectors>> {
        let making = self.searching().making(&context.scope);
        let _one = making.lock();
        let snapshot = &look.snapshot;
        let kept = snapshot.derived::<NodeVectors>().filter(|kept| kept.model == reads);
        let made = self.searching().vectors_seen();
        if let Some(kept) = &kept
            && kept.touches == snapshot.touches()
            && (kept.waiting.is_empty()
                || (kept.looked.1 == made && kept.looked.0.elapsed() < again(kept.waiting.len())))
        {
            return Ok(Arc::clone(kept));
        }
        let touched = kept.as_ref().and_then(|kept| snapshot.touched_since(kept.touches));
        let mut embedded = match (&kept, touched) {
            (Some(kept), Some(touched)) => {
                let mut next = kept.clone_at(snapshot);
                let mut touched = touched.to_vec();
                touched.sort_unstable();
                touched.dedup();
                next.learn(look, &using.rules, &touched)?;
                next
            }
            _ => {
                self.searching().made_whole();
                let mut fresh = NodeVectors::new(reads, using.embedder.model().dimensions);
                fresh.touches = snapshot.touches();
                fresh.learn(look, &using.rules, &snapshot.nodes())?;
                fresh
            }
        };
        embedded.take(look)?;
        embedded.looked = (Instant::now(), made);
        let embedded = Arc::new(embedded);
        snapshot.keep(Arc::clone(&embedded));
        Ok(embedded)
    }

    /// The queue of nodes without a vector, for reading; use [`Engine::central_queue`] to enqueue.
    pub fn embedding_queue(&self, scope: &Scope) -> EmbeddingQueue {
        let using = self.embedding();
        EmbeddingQueue::new(self.ledger(scope), using.embedder.model(), using.rules.clone())
    }

    /// A worker for that queue.
    pub fn embedding_worker(&self, scope: &Scope) -> Result<EmbeddingWorker> {
        let using = self.embedding();
        EmbeddingWorker::new(&self.embedding_queue(scope), Arc::clone(&using.embedder), Arc::clone(&using.breaker))
    }

    /// A queue to enqueue into, and a worker for it, with the model wrapped by the caller.
    pub(crate) fn embedding_pipeline(
        &self,
        scope: &Scope,
        model: impl FnOnce(Arc<dyn Embedder>) -> Arc<dyn Embedder>,
    ) -> Result<(EmbeddingQueue, EmbeddingWorker)> {
        let (using, queue) = (self.embedding(), self.central_queue(scope));
        let worker = EmbeddingWorker::new(&queue, model(Arc::clone(&using.embedder)), Arc::clone(&using.breaker))?;
        Ok((queue, worker))
    }
}
