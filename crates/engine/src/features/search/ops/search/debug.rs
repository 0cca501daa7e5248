//! Figures of each search stage, for the `debug` field and for metrics.

use super::{LONG_MS, MOST, RerankOut};
use crate::features::search::{RankedCandidates, TextIndexes, round};
use crate::telemetry::metrics;
use crate::view::ViewGraph;
use lukasa_graph::Node;
use lukasa_search::load_shedding::{SheddingStep, StageTimes};
use lukasa_search::pipeline::intent::Intent;
use lukasa_search::recipes::GAIN;
use schemars::JsonSchema;
use serde::Serialize;

/// Weight of the latest search in exponential moving averages.
const RECENT: f64 = 0.2;

/// Figures of each search stage.
#[derive(Serialize, JsonSchema)]
pub struct DebugOut {
    pub terms: Vec<TermOut>,
    pub normalization: Vec<ChannelOut>,
    pub expansion: ExpansionOut,
    pub gain_rejections: usize,
    pub marginal_gain_min: f64,
    pub costs: CostsOut,
}

/// A term of the query.
#[derive(Serialize, JsonSchema)]
pub struct TermOut {
    pub word: String,
    pub weight: f32,
    /// Number of objects and symbols that contain the word.
    pub frequency: usize,
}

/// The candidates of one channel.
#[derive(Serialize, JsonSchema)]
pub struct ChannelOut {
    pub channel: &'static str,
    pub weight: f64,
    pub count: usize,
    pub mean: f64,
    pub std: f64,
    /// The ten best candidates with their raw scores.
    pub best: Vec<(String, f64)>,
}

/// The relationships that were followed from results.
#[derive(Serialize, JsonSchema)]
pub struct ExpansionOut {
    pub neighbors: usize,
    pub truncated: bool,
    pub hub_sampled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hub_degree: Option<usize>,
    pub duplicate_neighbors_collapsed: usize,
    pub edge_samples: Vec<EdgeSampleOut>,
}

/// An example of a followed relationship.
#[derive(Serialize, JsonSchema)]
pub struct EdgeSampleOut {
    pub relation: String,
    pub edge_score: f64,
    pub depth: u32,
    pub hub_damping: f64,
}

/// Milliseconds spent in each stage of this request.
#[derive(Serialize, JsonSchema)]
pub struct CostsOut {
    pub lexical_ms: f64,
    pub vector_ms: f64,
    pub expansion_ms: f64,
    pub paths_ms: f64,
    pub rerank_ms: f64,
    pub rest_ms: f64,
}

impl CostsOut {
    pub(super) fn of(costs: &StageTimes) -> CostsOut {
        CostsOut {
            lexical_ms: round(costs.lexical_ms),
            vector_ms: round(costs.vector_ms),
            expansion_ms: round(costs.expansion_ms),
            paths_ms: round(costs.paths_ms),
            rerank_ms: round(costs.rerank_ms),
            rest_ms: round(costs.rest_ms),
        }
    }
}

impl DebugOut {
    /// Halves the lists of examples; returns false when there is nothing left to remove.
    pub(super) fn shorten(&mut self) -> bool {
        let mut examples = self.terms.len() + self.expansion.edge_samples.len();
        self.terms.truncate(self.terms.len() / 2);
        self.expansion.edge_samples.truncate(self.expansion.edge_samples.len() / 2);
        for channel in &mut self.normalization {
            examples += channel.best.len();
            channel.best.truncate(channel.best.len() / 2);
        }
        examples > 0
    }
}

/// Builds the debug output with the longest placeholders for durations, which are filled in last.
pub(super) fn debug(look: &ViewGraph, texts: &TextIndexes, found: &RankedCandidates) -> DebugOut {
    let name = |node: Node| look.snapshot.name(node);
    let terms = found.terms.iter().map(|term| TermOut {
        word: term.word.clone(),
        weight: term.weight,
        frequency: texts.units.frequency(&term.word) + texts.objects.frequency(&term.word),
    });
    let channels = found.channels.iter().map(|channel| {
        let spread = channel.spread();
        let best = channel.found.iter().take(10).map(|(node, score)| (name(*node), round(*score)));
        ChannelOut {
            channel: channel.name,
            weight: channel.weight,
            count: spread.count,
            mean: round(spread.mean),
            std: round(spread.std),
            best: best.collect(),
        }
    });
    let expanded = &found.expanded;
    DebugOut {
        terms: terms.collect(),
        normalization: channels.collect(),
        expansion: ExpansionOut {
            neighbors: expanded.neighbors.len(),
            truncated: expanded.truncated,
            hub_sampled: expanded.hub_degree.is_some(),
            hub_degree: expanded.hub_degree,
            duplicate_neighbors_collapsed: expanded.collapsed,
            edge_samples: expanded
                .ways
                .iter()
                .take(10)
                .map(|way| EdgeSampleOut {
                    relation: look.snapshot.edge_type(way.edge).to_string(),
                    edge_score: round(way.score),
                    depth: way.depth,
                    hub_damping: round(way.facts.hub_damping()),
                })
                .collect(),
        },
        gain_rejections: MOST,
        marginal_gain_min: GAIN.least,
        costs: CostsOut {
            lexical_ms: LONG_MS,
            vector_ms: LONG_MS,
            expansion_ms: LONG_MS,
            paths_ms: LONG_MS,
            rerank_ms: LONG_MS,
            rest_ms: LONG_MS,
        },
    }
}

/// Records the metrics of a search.
pub(super) fn figures(
    look: &ViewGraph,
    found: &RankedCandidates,
    costs: &StageTimes,
    steps: &[SheddingStep],
    intent: Option<Intent>,
    rerank: Option<&RerankOut>,
    used: f64,
) {
    let all = metrics();
    let intent = intent.map_or("none", Intent::name);
    let reranked = if rerank.is_some_and(|rerank| rerank.applied) { "true" } else { "false" };
    for (stage, millis) in [
        ("lexical", costs.lexical_ms),
        ("vector", costs.vector_ms),
        ("expansion", costs.expansion_ms),
        ("paths", costs.paths_ms),
        ("rerank", costs.rerank_ms),
        ("rest", costs.rest_ms),
    ] {
        all.search_ms.record_of(&[stage, intent, reranked], millis);
    }
    steps.iter().for_each(|step| all.search_steps.inc_of(&[step.warning()]));
    all.search_budget.record(used);
    all.search_pool.set(found.candidates.len() as f64);
    all.vector_ema.blend_of(&[], costs.vector_ms, RECENT);
    let expanded = &found.expanded;
    for depth in 0..=expanded.ways.iter().map(|way| way.depth).max().unwrap_or(0) {
        let count = expanded.ways.iter().filter(|way| way.depth == depth).count();
        if count > 0 {
            all.neighbors.record_of(&[intent, &depth.to_string()], count as f64);
        }
    }
    for way in &expanded.ways {
        let labels = [&**look.snapshot.edge_type(way.edge), &look.ledger.scope().tenant];
        all.edge_score.blend_of(&labels, way.score, RECENT);
        if let Some(days) = way.facts.age_days {
            all.edge_recency.record_of(&labels, days);
        }
    }
    if !expanded.ways.is_empty() {
        all.expansion_boost.record_of(&[intent], expanded.ways.iter().map(|way| way.gave).sum());
    }
    if expanded.truncated {
        all.search_truncated.inc();
        all.expansion_truncated.inc_of(&["global_limit"]);
    }
    if expanded.hub_degree.is_some() {
        all.hub_sampled.inc();
    }
    all.collapsed.add(expanded.collapsed as u64);
}
