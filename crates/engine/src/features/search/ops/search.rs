//! `search`: ranks facts by the words and the meaning of a query and explains each result.

mod debug;
mod events;
mod legacy;
mod paging;

use crate::caller::SEARCH_DEBUG;
use crate::convert::{to_count, to_usize};
use crate::cursor::Cursor;
use crate::features::search::rendering;
use crate::features::search::{
    AnswerOptions, ItemOut, ItemRole, NodeFilter, RankedCandidates, Recipe, SearchPathOut, SearchQuestion,
    SemanticMatches, find, round, show,
};
use crate::ranges::check_range;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::sensitive::is_sensitive;
use crate::view::NodeContents;
use crate::view::ViewGraph;
use crate::{Context, Engine};
use debug::{CostsOut, DebugOut, debug, figures};
use lukasa_graph::Node;
use lukasa_model::view::ViewEcho;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Time};
use lukasa_search::count::count as tokens;
use lukasa_search::load_shedding::{SheddingStep, StageTimes};
use lukasa_search::pipeline::expand::{Expansion, expand};
use lukasa_search::pipeline::fuse::{Fusion, NORMALIZATION};
use lukasa_search::pipeline::intent::{Intent, detect, template};
use lukasa_search::pipeline::rerank;
use lukasa_search::pipeline::seeds::by_anchors;
use lukasa_search::recipes::{EXPANSION, FUSION, OBJECTS, SEARCH, SHEDDING};
use lukasa_store::ledger::ViewSpec;
use paging::{Paging, joined, order_hash, request_hash};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::{Arc, mpsc};
use std::time::Instant;

/// The operation `search`.
pub struct Search;

/// Longest query, in characters.
const LONGEST: usize = 800;
/// Highest allowed `limit`.
const MOST: usize = 40;
/// Token budget of an answer: the default, the minimum and the maximum.
const BUDGET: usize = 3_500;
const LEAST_BUDGET: usize = 400;
const MOST_BUDGET: usize = 4_000;
/// Tokens that JSON punctuation adds when items and paths are inserted.
const JOINTS: usize = 12;
/// Placeholder with as many digits as a measured duration can have, so that the token estimate is not too low.
const LONG_MS: f64 = 12_345.678_912;
/// Warning: many objects have no vector of the current model yet.
const VERSION_BACKLOG: &str = "embedding_version_backlog";
const DEBUG_LEFT_OUT: &str = "debug_left_out";
/// Microseconds of a day.
const DAY: f64 = 86_400e6;
/// The scope that citations need.
const CITATIONS: &str = "graph:search:citations";

#[derive(Clone, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// What to look for, 1 to 800 characters; `pack` takes whole tasks.
    #[schemars(length(min = 1, max = LONGEST))]
    pub query: String,
    /// Maximum number of results, 1 to 40.
    #[serde(default)]
    pub limit: Limit<10, MOST>,
    /// Retrieval recipe: auto, objects, code, recall, mixed.
    #[serde(default)]
    pub recipe: Recipe,
    /// explain, locate_config, debug_error or roadmap; detected from the query when left out.
    #[serde(default)]
    pub intent: Option<Intent>,
    /// Only these channels: lexical, vector.
    #[serde(default)]
    pub channels: Vec<String>,
    /// How channel scores are combined in the recipe objects: weighted_sum or rrf.
    #[serde(default)]
    pub fusion: FusionName,
    /// Rerank the best candidates.
    #[serde(default)]
    pub rerank: Option<bool>,
    /// Token budget of the answer, 400 to 4,000; more is `token_budget_exceeded`.
    #[serde(default = "budget")]
    #[schemars(range(min = LEAST_BUDGET, max = MOST_BUDGET))]
    pub max_token_budget: usize,
    /// Cite the sentences that support each result; ignored without the scope `graph:search:citations`.
    #[serde(default)]
    pub include_citations: bool,
    /// Describe how results are related.
    #[serde(default = "yes")]
    pub include_path_summaries: bool,
    /// Properties to show in every result, whatever their value.
    #[serde(default)]
    pub include: Vec<String>,
    /// Only objects of these types.
    #[serde(default)]
    pub object_types: Vec<String>,
    /// Exclude objects of these types and results reached through them.
    #[serde(default)]
    pub exclude_object_types: Vec<String>,
    /// Only objects with one of these labels.
    #[serde(default)]
    pub labels_any: Vec<String>,
    /// Only facts recorded after this time.
    #[serde(default)]
    pub updated_after: Option<Time>,
    /// Only facts recorded before this time.
    #[serde(default)]
    pub updated_before: Option<Time>,
    /// How relationships of results are followed.
    #[serde(default)]
    pub neighbor: Neighbor,
    /// Prefer objects near this one.
    #[serde(default)]
    pub anchor: Option<String>,
    /// Weight of the search score when `anchor` is given, 0 to 1.
    #[serde(default = "semantic_weight")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub semantic_weight: f64,
    /// Weight of the nearness to `anchor`, 0 to 1.
    #[serde(default = "graph_weight")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub graph_weight: f64,
    /// Return the figures of each search stage.
    #[serde(default)]
    pub debug: bool,
    /// Continue from `next_cursor` or `previous_cursor` of an answer to the same request.
    #[serde(default)]
    pub cursor: Option<String>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

/// How relationships of results are followed.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Neighbor {
    /// Maximum number of relationships followed per result, 0 to 20.
    #[schemars(range(max = 20))]
    pub per_primary_limit: usize,
    /// Maximum number of neighbours in total, 0 to 250.
    #[schemars(range(max = 250))]
    pub global_limit: usize,
    /// Only relationships of these types.
    pub edge_types: Vec<String>,
    /// Maximum number of hops, 1 or 2.
    #[schemars(range(min = 1, max = 2))]
    pub max_depth: u32,
}

impl Default for Neighbor {
    fn default() -> Self {
        Neighbor {
            per_primary_limit: EXPANSION.per_primary,
            global_limit: EXPANSION.neighbors,
            edge_types: vec![],
            max_depth: EXPANSION.depth,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FusionName {
    #[default]
    WeightedSum,
    Rrf,
}

fn budget() -> usize {
    BUDGET
}

fn yes() -> bool {
    true
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

fn semantic_weight() -> f64 {
    SEARCH.semantic
}

fn graph_weight() -> f64 {
    SEARCH.graph
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Best first.
    pub items: Vec<ItemOut>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path_summaries: Vec<SearchPathOut>,
    /// Number of matches before the limit.
    pub total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_cursor: Option<String>,
    pub meta: MetaOut,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debug: Option<DebugOut>,
    pub view: ViewEcho,
}

/// How the answer was computed.
#[derive(Serialize, JsonSchema)]
pub struct MetaOut {
    pub recipe: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<Intent>,
    pub channels: Vec<&'static str>,
    pub fusion: String,
    pub normalization_version: &'static str,
    pub lexical_considered: usize,
    pub vector_considered: usize,
    pub neighbor_expanded: usize,
    /// Share of embeddable facts that have a vector, 0 to 1; absent when vectors were not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedded_share: Option<f64>,
    /// Number of top lexical candidates that have no vector yet.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped_unembedded: usize,
    /// The model whose vectors were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_model: Option<String>,
    /// Tokens of this answer, serialized as JSON.
    pub token_estimate: usize,
    pub token_budget: usize,
    /// Something was left out or shortened to stay within the budget.
    pub truncation_notice: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerank: Option<RerankOut>,
    /// Stages that were skipped under load, and other caveats.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    pub elapsed_ms: f64,
}

/// The outcome of reranking.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RerankOut {
    pub applied: bool,
    pub model: String,
    pub pool: usize,
    pub timeout: bool,
    /// Why reranking failed; the order is then the one without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub latency_ms: f64,
}

impl Op for Search {
    const META: Meta = Meta {
        name: "search",
        own_ranges: &["max_token_budget"],
        shown: ResponseView::Cut(rendering::search),
        essential: true,
        default_tool: &["query", "limit", "object_types", "recipe", "include_citations", "cursor"],
        answer: &[
            "items.ref",
            "items.explanation",
            "items.fields.line",
            "items.fields.title",
            "items.fields.signature",
            "items.fields.summary",
            "items.fields.content",
            "items.citations.span",
        ],
        rest: &["POST /graph/search", "POST /v1/graph/search"],
        summary: "Find anything by words and meaning",
        description: "Looks for a question's words and meaning in everything the view shows: symbols and files, documents, \
                      decisions, episodes. How channels are weighed depends on what is found; every result says why it is \
                      there, and its reasons add up to its score. The answer keeps to a budget of tokens.",
        scope: "graph:search:read",
        verb: "search",
        toolset: "search",
        names: &["anchor"],
        positional: &["query"],
        aliases: &[
            ("intent_override", "intent"),
            ("types", "object_types"),
            ("anchor_node_id", "anchor"),
            ("n_results", "limit"),
            ("include_debug", "debug"),
        ],
        examples: &[
            "lukasa search \"where are branches merged\"",
            "lukasa search \"timeout setting\" --intent locate_config --limit 5",
            "lukasa search \"login error\" --object-types DECISION --include-citations",
        ],
        for_people: Some(for_people),
        translate: Some(legacy::translate),
        ended: Some(events::ended),
        headers: &[("cache-control", "no-store"), ("x-search-normalization-version", NORMALIZATION)],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let began = Instant::now();
        check(&request)?;
        if request.debug {
            context.grants.check(Self::META.name, SEARCH_DEBUG)?;
        }
        let hash = request_hash(&request)?;
        let paging = Paging::open(engine, context, &request, &hash)?;
        let look = &paging.look;
        let searching = engine.searching();
        let now = engine.clock().now();
        // Ages are measured from the view's time, so that all pages rank alike.
        let then = now.min(look.view.valid);
        // A further page repeats the load shedding of the first page; otherwise it would be part of another list.
        let steps = match paging.order {
            None => searching.shed(request.rerank == Some(true)),
            Some(_) => SheddingStep::of_bits(paging.spared),
        };
        let mut costs = StageTimes::default();
        let wholes = searching.full_builds();
        let texts = engine.texts(context, look)?;
        // Building indexes and loading the tokenizer is not part of the usual cost, so it happens before the timer
        // starts.
        tokens("");
        let mut timer = Timer(Instant::now());
        let intent = request.intent.or_else(|| detect(&request.query));
        let wanted = |name: &str| request.channels.is_empty() || request.channels.iter().any(|c| c == name);
        let raw = pool(SEARCH.pool, steps.contains(&SheddingStep::CandidatePoolReduced));
        let allowed = filter(look, &request)?;
        costs.rest_ms += timer.lap();
        let vectors = wanted("vector") && !steps.contains(&SheddingStep::VectorDisabledPerf);
        let meaning = match vectors {
            true => engine.nearest(
                context,
                look,
                &request.query,
                filters(&request).then_some(&allowed as NodeFilter<'_>),
            )?,
            false => SemanticMatches::default(),
        };
        costs.vector_ms = (timer.lap() - meaning.preparing_ms).max(0.0);
        let mut found = find(
            look,
            &texts,
            &SearchQuestion {
                text: &request.query,
                recipe: request.recipe,
                lexical: wanted("lexical"),
                vector: vectors,
                intent,
                fusion: match request.fusion {
                    FusionName::WeightedSum => Fusion::WeightedSum,
                    FusionName::Rrf => Fusion::Rrf { k: FUSION.rrf_k },
                },
                pool: raw,
                nearest: meaning.nearest.clone(),
                allowed: &allowed,
            },
        );
        costs.lexical_ms = timer.lap();
        let total = found.candidates.len();
        // Candidates of earlier pages are read too, so that their content is not repeated on this page.
        let end = if paging.backwards { paging.place } else { paging.place + request.limit.get() * 2 };
        // Recency, anchor and reranking change the order, so they need the same candidates on every page. Otherwise the
        // candidates up to the end of this page suffice.
        let ahead = match request.rerank == Some(true) || intent.is_some() || request.anchor.is_some() {
            true => raw,
            false => end,
        };
        let mut read = NodeContents::of(look, &heads(&found, total.min(ahead)))?;
        if dated(&request) {
            read.add(look, &heads(&found, total))?;
            found.candidates.retain(|candidate| fits(&read, candidate.node, &request));
        }
        anchored(look, &mut found, &request)?;
        fade(look, &mut found, &read, intent, then);
        let rerank = match request.rerank {
            Some(true) => Some(second_look(engine, look, &read, &mut found, &request, &steps)),
            _ => None,
        };
        costs.rerank_ms = rerank.as_ref().map_or(0.0, |rerank| rerank.latency_ms);
        let order = order_hash(&found, meaning.model.as_deref(), rerank.as_ref());
        paging.check_order(&order)?;
        timer.lap();
        let total = found.candidates.len();
        let mut how = expansion(look, &request, intent, &allowed)?;
        if steps.contains(&SheddingStep::ExpansionTrimmed) {
            how.per_primary = to_usize(to_count((how.per_primary as f64 * SHEDDING.expansion).ceil()));
        }
        if how.per_primary > 0 {
            // Expansion starts from the same candidates on every page, so that all pages are parts of one list.
            let mut failed = None;
            let fits = |node: Node| {
                !dated(&request)
                    || match read.add(look, &[node]) {
                        Ok(()) => fits(&read, node, &request),
                        Err(e) => {
                            failed = Some(e);
                            false
                        }
                    }
            };
            found.expanded = expand(&look.snapshot, then, &mut found.candidates, EXPANSION.primaries, &how, fits);
            if let Some(error) = failed {
                return Err(error);
            }
            let neighbors: Vec<Node> = found.expanded.neighbors.clone();
            read.add(look, &neighbors)?;
        }
        costs.expansion_ms = timer.lap();
        let mut known = end.min(found.candidates.len());
        read.add(look, &heads(&found, known))?;
        let mut warnings: Vec<String> = steps.iter().map(|step| step.warning().to_owned()).collect();
        warnings.extend(meaning.warning.clone());
        match &rerank {
            Some(rerank) if rerank.timeout => warnings.push("rerank_timeout".to_owned()),
            Some(rerank) if rerank.error.is_some() => warnings.push("rerank_failed".to_owned()),
            _ => {}
        }
        if meaning.backlog {
            warnings.push(VERSION_BACKLOG.to_owned());
        }
        if !texts.without_source.is_empty() {
            warnings.push(format!(
                "{} without their source at hand: found by names and comments only",
                count(texts.without_source.len(), "file")
            ));
        }
        let key = engine.graphs().cursor_key(&look.ledger)?;
        let seal = |place: usize, backwards| {
            let cursor = Cursor::new(&look.view, &joined(&hash, &order), place, backwards);
            cursor.sparing(SheddingStep::bits(&steps)).seal(&key)
        };
        let best = found.candidates.iter().map(|candidate| candidate.node).find_map(|node| {
            let content = read.content(node).filter(|content| !is_sensitive(content))?;
            Some((look.snapshot.name(node), content.title.clone()))
        });
        // The response without items, with placeholders at least as long as the figures that replace them at the end.
        let mut response = Response {
            summary: summary(&request, &found, best, total, &steps),
            items: vec![],
            path_summaries: vec![],
            total,
            next_cursor: (found.candidates.len() > request.limit.get()).then(|| seal(paging.place, false)),
            previous_cursor: (paging.place > 0).then(|| seal(paging.place, true)),
            meta: MetaOut {
                recipe: found.recipe.name(),
                intent,
                channels: found.channels.iter().map(|channel| channel.name).collect(),
                fusion: found.fusion.clone(),
                normalization_version: NORMALIZATION,
                lexical_considered: considered(&found, &["lexical", "body", "symbols"]),
                vector_considered: considered(&found, &["vector"]),
                neighbor_expanded: found.expanded.neighbors.len(),
                embedded_share: vectors.then(|| round(meaning.share)),
                skipped_unembedded: meaning.waiting(heads(&found, raw).into_iter()),
                embedding_model: meaning.model.clone(),
                token_estimate: request.max_token_budget,
                token_budget: request.max_token_budget,
                truncation_notice: false,
                rerank,
                warnings,
                elapsed_ms: LONG_MS,
            },
            debug: request.debug.then(|| debug(look, &texts, &found)),
            view: look.view.echo(),
        };
        let mut around = response.fit_around(request.max_token_budget);
        let mut want = AnswerOptions {
            limit: request.limit.get(),
            room: request.max_token_budget.saturating_sub(around),
            place: paging.place,
            backwards: paging.backwards,
            read: known,
            paths: request.include_path_summaries && !steps.contains(&SheddingStep::PathsDisabledPerf),
            // A caller without the scope gets the results without citations, not an error.
            citations: request.include_citations && context.grants.cover(CITATIONS),
            include: &request.include,
            given: searching.given_lately(context, look, now, &heads(&found, known)),
        };
        let mut way_back = true;
        let mut shown = show(look, &texts, &found, &read, &want);
        while shown.unread && known < found.candidates.len() {
            // Repeated results were dropped, so there is room for candidates that have not been read yet.
            known = (known + raw).min(found.candidates.len());
            let more = heads(&found, known);
            read.add(look, &more)?;
            want.given = searching.given_lately(context, look, now, &more);
            want.read = known;
            shown = show(look, &texts, &found, &read, &want);
        }
        if shown.items.is_empty() && !shown.page.is_empty() && response.previous_cursor.take().is_some() {
            // No item fits: drop the previous cursor to make room for at least one.
            around = response.fit_around(request.max_token_budget);
            want.room = request.max_token_budget.saturating_sub(around);
            shown = show(look, &texts, &found, &read, &want);
            way_back = false;
        }
        costs.paths_ms = timer.lap();
        // A request that built an index also read everything else for the first time, so its costs are not typical.
        if searching.full_builds() == wholes {
            searching.learn(&costs, &steps);
        }
        let tokens = around + shown.tokens;
        let used = tokens as f64 / request.max_token_budget as f64;
        figures(look, &found, &costs, &steps, intent, response.meta.rerank.as_ref(), used);
        let given: Vec<_> =
            shown.items.iter().filter(|item| item.role != ItemRole::Reference).map(|item| item.thing).collect();
        searching.give(context, look, now, &given);
        let page = shown.page;
        response.next_cursor = (page.end < found.candidates.len()).then(|| seal(page.end, false));
        response.previous_cursor = (way_back && page.start > 0).then(|| seal(page.start, true));
        response.items = shown.items;
        response.path_summaries = shown.paths;
        response.meta.token_estimate = tokens;
        response.meta.truncation_notice = shown.truncated;
        if let Some(debug) = &mut response.debug {
            debug.gain_rejections = shown.gain_rejections;
            debug.costs = CostsOut::of(&costs);
        }
        response.meta.elapsed_ms = round(began.elapsed().as_secs_f64() * 1e3);
        Ok(response)
    }
}

impl Response {
    /// Returns the tokens of the response without its items. Shortens and finally drops `debug` while the total is
    /// above half of the budget.
    fn fit_around(&mut self, budget: usize) -> usize {
        loop {
            let tokens = serde_json::to_string(self).map_or(usize::MAX / 4, |text| tokens(&text) + JOINTS);
            let Some(debug) = self.debug.as_mut().filter(|_| tokens > budget / 2) else { return tokens };
            if !debug.shorten() {
                self.debug = None;
                self.meta.warnings.push(DEBUG_LEFT_OUT.to_owned());
            }
        }
    }
}

/// Refuses a query that is empty or longer than `LONGEST` characters.
pub fn check_query(query: &str) -> Result<()> {
    let length = query.trim().chars().count();
    if length == 0 || length > LONGEST {
        let hint = if length == 0 { "say what to look for" } else { "`pack` takes whole issues of up to 32 KB" };
        return Err(Error::invalid(
            ErrorCode::InvalidQuery,
            format!("query: {length} characters are not within 1 to {LONGEST}"),
        )
        .hint(hint));
    }
    Ok(())
}

fn check(request: &Request) -> Result<()> {
    check_query(&request.query)?;
    for channel in &request.channels {
        if !["lexical", "vector"].contains(&channel.as_str()) {
            return Err(Error::invalid(
                ErrorCode::UnknownChannel,
                format!("channels: there is no channel `{channel}`"),
            )
            .hint("lexical and vector can be chosen; the graph is always looked at"));
        }
    }
    check_range("neighbor.per_primary_limit", request.neighbor.per_primary_limit, 0, 20)?;
    check_range("neighbor.global_limit", request.neighbor.global_limit, 0, 250)?;
    check_range("neighbor.max_depth", request.neighbor.max_depth as usize, 1, 2)?;
    let budget = request.max_token_budget;
    if budget > MOST_BUDGET {
        return Err(Error::new(
            ErrorKind::TooLarge,
            ErrorCode::TokenBudgetExceeded,
            format!("max_token_budget: {budget} is more than {MOST_BUDGET}"),
        )
        .hint("read on with the cursor instead"));
    }
    check_range("max_token_budget", budget, LEAST_BUDGET, MOST_BUDGET)?;
    for (name, weight) in [("semantic_weight", request.semantic_weight), ("graph_weight", request.graph_weight)] {
        if !(0.0..=1.0).contains(&weight) {
            return Err(Error::invalid(ErrorCode::OutOfRange, format!("{name}: {weight} is not within 0 to 1")));
        }
    }
    Ok(())
}

/// Measures the time since the previous lap.
struct Timer(Instant);

impl Timer {
    fn lap(&mut self) -> f64 {
        let took = self.0.elapsed().as_secs_f64() * 1e3;
        self.0 = Instant::now();
        took
    }
}

/// Returns whether the request filters by type or label.
fn filters(request: &Request) -> bool {
    let Request { object_types, exclude_object_types, labels_any, .. } = request;
    [object_types, exclude_object_types, labels_any].iter().any(|list| !list.is_empty())
}

/// Returns whether the request filters by the time of recording.
fn dated(request: &Request) -> bool {
    request.updated_after.is_some() || request.updated_before.is_some()
}

/// Returns the predicate for the request's filters by type and label.
fn filter<'l>(look: &'l ViewGraph, request: &Request) -> Result<impl Fn(Node) -> bool + Sync + use<'l>> {
    let kept = look.filter(&[], &request.object_types, &request.labels_any)?;
    let refused = match request.exclude_object_types.is_empty() {
        true => None,
        false => Some(look.filter(&[], &request.exclude_object_types, &[])?),
    };
    let snapshot = &look.snapshot;
    Ok(move |node: Node| {
        kept.node(snapshot, node) && !refused.as_ref().is_some_and(|refused| refused.node(snapshot, node))
    })
}

/// Returns whether a node was recorded within the requested period.
fn fits(read: &NodeContents, node: Node, request: &Request) -> bool {
    let (after, before) = (request.updated_after, request.updated_before);
    read.stated(node).is_some_and(|at| after.is_none_or(|after| at > after) && before.is_none_or(|before| at < before))
}

/// The size of a pool, which may be reduced under load.
fn pool(size: usize, is_reduced: bool) -> usize {
    if is_reduced { to_usize(to_count(size as f64 * SHEDDING.pool)) } else { size }
}

fn heads(found: &RankedCandidates, most: usize) -> Vec<Node> {
    found.candidates.iter().take(most).map(|candidate| candidate.node).collect()
}

fn considered(found: &RankedCandidates, names: &[&str]) -> usize {
    found.channels.iter().filter(|c| names.contains(&c.name)).map(|c| c.found.len()).max().unwrap_or(0)
}

fn expansion<'a>(
    look: &ViewGraph,
    request: &Request,
    intent: Option<Intent>,
    allowed: NodeFilter<'a>,
) -> Result<Expansion<'a>> {
    let Neighbor { per_primary_limit, global_limit, edge_types, max_depth } = &request.neighbor;
    let names = look.snapshot.names();
    look.filter(edge_types, &[], &[])?;
    let edge_types = (!edge_types.is_empty()).then(|| names.chosen(edge_types, &look.registry, true));
    Ok(Expansion {
        per_primary: *per_primary_limit,
        most: *global_limit,
        depth: *max_depth,
        weight: template(intent).neighbor,
        edge_types,
        allowed,
    })
}

/// Combines each candidate's score with its nearness to the anchor, 1 / (1 + hops).
fn anchored(look: &ViewGraph, found: &mut RankedCandidates, request: &Request) -> Result<()> {
    let Some(anchor) = &request.anchor else { return Ok(()) };
    let root = look.node(anchor)?;
    let s = &look.snapshot;
    let reached = by_anchors(s, &[root], SEARCH.anchor_hops, SEARCH.anchor_nodes, SEARCH.anchor_edges);
    let mut hops = FxHashMap::default();
    for (node, depth) in reached.nodes {
        hops.entry(node).or_insert(depth);
    }
    let (semantic, graph) = (request.semantic_weight, request.graph_weight);
    rerank::towards(&mut found.candidates, semantic, graph, |node| hops.get(&node).copied(), |node| s.thing(node).0);
    Ok(())
}

/// Lowers the score of older facts where the intent's template has a recency share.
fn fade(look: &ViewGraph, found: &mut RankedCandidates, read: &NodeContents, intent: Option<Intent>, now: Time) {
    let share = template(intent).recency;
    if share == 0.0 || found.recipe != Recipe::Objects {
        return;
    }
    let age_days = |node: Node| Some(now.0.saturating_sub(read.stated(node)?.0).max(0) as f64 / DAY);
    let order = |node: Node| look.snapshot.thing(node).0;
    rerank::fade(&mut found.candidates, share, OBJECTS.fades_days, age_days, order);
}

/// Reranks the best candidates; keeps the order when the reranker fails or exceeds its timeout.
fn second_look(
    engine: &Engine,
    look: &ViewGraph,
    read: &NodeContents,
    found: &mut RankedCandidates,
    request: &Request,
    steps: &[SheddingStep],
) -> RerankOut {
    let began = Instant::now();
    let reranker = engine.searching().reranker();
    let pool = pool(SEARCH.rerank_pool, steps.contains(&SheddingStep::RerankPoolReduced));
    let nodes = heads(found, pool);
    let mut out = RerankOut {
        applied: false,
        model: reranker.name().to_owned(),
        pool: nodes.len(),
        timeout: false,
        error: None,
        latency_ms: 0.0,
    };
    if steps.contains(&SheddingStep::RerankDisabledPerf) {
        return out;
    }
    let text = |node: &Node| read.content(*node).map(|content| serde_json::to_string(content).unwrap_or_default());
    let texts: Vec<String> = nodes.iter().map(|node| text(node).unwrap_or_default()).collect();
    let (send, receive) = mpsc::channel();
    let patience = reranker.timeout();
    let (question, terms, judge) = (request.query.clone(), found.terms.clone(), Arc::clone(&reranker));
    std::thread::spawn(move || {
        let _ = send.send(judge.judge(&question, &terms, &texts));
    });
    match receive.recv_timeout(patience) {
        Ok(Ok(judged)) if judged.len() == nodes.len() => {
            rerank::blend(&mut found.candidates, &judged, SEARCH.rerank, |node| look.snapshot.thing(node).0);
            out.applied = true;
        }
        Ok(judged) => out.error = Some(judged.err().unwrap_or_else(|| "not every text was judged".to_owned())),
        Err(_) => out.timeout = true,
    }
    out.latency_ms = round(began.elapsed().as_secs_f64() * 1e3);
    out
}

/// Builds the summary. `best` is the name and title of the first candidate that may be shown. The skipped stages are
/// part of the summary because every response profile includes it.
fn summary(
    request: &Request,
    found: &RankedCandidates,
    best: Option<(String, Option<String>)>,
    total: usize,
    steps: &[SheddingStep],
) -> String {
    let summary = match best {
        None => format!("nothing found for `{}`; other words, or fewer filters, may help", request.query),
        Some((reference, title)) => {
            let name = title.map_or(reference.clone(), |title| format!("{title} ({reference})"));
            format!("{total} found by {}; the best: {name}", found.recipe.name())
        }
    };
    if steps.is_empty() {
        return summary;
    }
    let left_out: Vec<&str> = steps.iter().map(|step| step.left_out()).collect();
    format!("{summary}; answers take long, so without {}", left_out.join(", "))
}

/// The token budget of an answer that a person reads: the maximum.
const PEOPLES_BUDGET: usize = 4_000;

/// Adds paths and lines to the results, and a larger budget, because a person reads them.
fn for_people(request: &mut Value) {
    let mut include: Vec<Value> = request["include"].as_array().cloned().unwrap_or_default();
    include.extend([json!("path"), json!("line")]);
    request["include"] = Value::Array(include);
    if request.get("max_token_budget").is_none() {
        request["max_token_budget"] = json!(PEOPLES_BUDGET);
    }
}
