//! `search`: what the words and the meaning of a question lead to, with the reasons.

mod debug;
mod paging;

use super::{META, count};
use crate::caller::SEARCH_DEBUG;
use crate::context_graph::is_sensitive;
use crate::cursor::Cursor;
use crate::graph::{Look, check_range};
use crate::registry::{Meta, Op};
use crate::search::{Allowed, Answered, Ask, ItemOut, Meaning, PathOut, Read, Recipe, Role, Want, find, round, show};
use crate::{Context, Engine};
use debug::{CostsOut, DebugOut, debug, figures};
use lukasa_graph::Node;
use lukasa_graph::walk::{Direction, Filter, Walk, walk};
use lukasa_model::view::ViewEcho;
use lukasa_model::{Error, ErrorKind, Result, Time};
use lukasa_search::count::count as tokens;
use lukasa_search::expand::{Expansion, expand};
use lukasa_search::fuse::{Fusion, NORMALIZATION, sort};
use lukasa_search::intent::{Intent, detect};
use lukasa_search::ladder::{Costs, Step};
use lukasa_search::rerank::{ALPHA, POOL};
use lukasa_store::ledger::ViewSpec;
use paging::{Paging, joined, order_hash, request_hash};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, mpsc};
use std::time::Instant;

pub struct Search;

/// Longest question, in characters.
const LONGEST: usize = 800;
/// Most results of an answer.
const MOST: usize = 40;
/// Candidates of each channel.
const RAW: usize = 120;
/// Tokens of an answer: by default, and the least and the most one may ask for.
const BUDGET: usize = 3_500;
const LEAST_BUDGET: usize = 400;
const MOST_BUDGET: usize = 4_000;
/// Best results whose relationships are followed; the same however many are wanted, so that pages are parts of one list.
const EXPANDED: usize = 10;
/// What JSON adds where items and paths are put in, in tokens.
const JOINTS: usize = 12;
/// As long as figures of milliseconds get.
const LONG_MS: f64 = 12_345.678_912;
/// Many vectors of the model in use are still missing.
const VERSION_BACKLOG: &str = "embedding_version_backlog";
const DEBUG_LEFT_OUT: &str = "debug_left_out";
const FADES_DAYS: f64 = 30.0;
/// The scope that citations need.
const CITATIONS: &str = "graph:search:citations";

#[derive(Clone, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// What to look for, 1 to 800 characters; `pack` takes whole tasks.
    #[schemars(length(min = 1, max = LONGEST))]
    pub query: String,
    /// Most results, up to 40.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = MOST))]
    pub limit: usize,
    /// How to look: auto, objects, code, recall, mixed.
    #[serde(default)]
    pub recipe: Recipe,
    /// explain, locate_config, debug_error or roadmap, instead of what the words suggest.
    #[serde(default)]
    pub intent: Option<Intent>,
    /// Only these channels: lexical, vector.
    #[serde(default)]
    pub channels: Vec<String>,
    /// How channels become one, for objects: weighted_sum or rrf.
    #[serde(default)]
    pub fusion: FusionName,
    /// Have the best looked at a second time.
    #[serde(default)]
    pub rerank: Option<bool>,
    /// Most tokens of the answer, 400 to 4,000.
    #[serde(default = "budget")]
    #[schemars(range(min = LEAST_BUDGET, max = MOST_BUDGET))]
    pub max_token_budget: usize,
    /// Cite the sentences that speak for each result; left out for who has no scope `graph:search:citations`.
    #[serde(default)]
    pub include_citations: bool,
    /// Tell in words how results are related.
    #[serde(default = "yes")]
    pub include_path_summaries: bool,
    /// Properties to show whatever they say.
    #[serde(default)]
    pub include: Vec<String>,
    /// Only objects of these types.
    #[serde(default)]
    pub object_types: Vec<String>,
    /// No objects of these types, nor anything that leads through them.
    #[serde(default)]
    pub exclude_object_types: Vec<String>,
    /// Only objects with one of these labels.
    #[serde(default)]
    pub labels_any: Vec<String>,
    /// Only what was stated after this time.
    #[serde(default)]
    pub updated_after: Option<Time>,
    /// Only what was stated before this time.
    #[serde(default)]
    pub updated_before: Option<Time>,
    /// How relationships of results are followed.
    #[serde(default)]
    pub neighbor: Neighbor,
    /// Prefer what is near this object.
    #[serde(default)]
    pub anchor: Option<String>,
    /// What the search itself counts beside an anchor.
    #[serde(default = "semantic_weight")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub semantic_weight: f64,
    /// What nearness to the anchor counts.
    #[serde(default = "graph_weight")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub graph_weight: f64,
    /// Give every stage's numbers.
    #[serde(default)]
    pub debug: bool,
    /// Go on from here: `next_cursor` or `previous_cursor` of an answer to the same request.
    #[serde(default)]
    pub cursor: Option<String>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

/// How relationships of results are followed.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Neighbor {
    /// Relationships followed of each result, 0 to 20.
    #[schemars(range(max = 20))]
    pub per_primary_limit: usize,
    /// Neighbours in all, 0 to 250.
    #[schemars(range(max = 250))]
    pub global_limit: usize,
    /// Only these types of relationships.
    pub edge_types: Vec<String>,
    /// Hops, 1 or 2.
    #[schemars(range(min = 1, max = 2))]
    pub max_depth: u32,
}

impl Default for Neighbor {
    fn default() -> Self {
        Neighbor { per_primary_limit: 3, global_limit: 50, edge_types: vec![], max_depth: 1 }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FusionName {
    #[default]
    WeightedSum,
    Rrf,
}

fn limit() -> usize {
    10
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
    0.6
}

fn graph_weight() -> f64 {
    0.4
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Best first.
    pub items: Vec<ItemOut>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path_summaries: Vec<PathOut>,
    /// How many were found in all, before the limit.
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

/// How the answer was made.
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
    /// Which share of what can be embedded has a vector, 0 to 1; left out where meaning was not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedded_share: Option<f64>,
    /// Of the best by words, how many have no vector yet.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped_unembedded: usize,
    /// The model whose vectors were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_model: Option<String>,
    /// Tokens of this answer as JSON.
    pub token_estimate: usize,
    pub token_budget: usize,
    /// Something was left out or shortened to keep the budget.
    pub truncation_notice: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerank: Option<RerankOut>,
    /// What was spared, and what else one should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    pub elapsed_ms: f64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RerankOut {
    pub applied: bool,
    pub model: String,
    pub pool: usize,
    pub timeout: bool,
    /// Why the order is as it was without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub latency_ms: f64,
}

impl Op for Search {
    const META: Meta = Meta {
        name: "search",
        answer: &[
            "items.ref",
            "items.fields.title",
            "items.fields.line",
            "items.explanation",
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
        // A page is to be what it was when the first was given, so nothing grows older between them.
        let then = now.min(look.view.valid);
        // A further page is made with the work that the first was made with, or it would be of another list.
        let steps = match paging.order {
            None => searching.shed(request.rerank == Some(true)),
            Some(_) => Step::of_bits(paging.spared),
        };
        let mut costs = Costs::default();
        let wholes = searching.wholes();
        let texts = engine.texts(context, look)?;
        // Making indexes, and loading how tokens are counted, is not what answers usually take.
        tokens("");
        let mut timer = Timer(Instant::now());
        let intent = request.intent.or_else(|| detect(&request.query));
        let wanted = |name: &str| request.channels.is_empty() || request.channels.iter().any(|c| c == name);
        let raw = if steps.contains(&Step::CandidatePoolReduced) { RAW * 3 / 4 } else { RAW };
        let allowed = filter(look, &request)?;
        costs.rest_ms += timer.lap();
        let vectors = wanted("vector") && !steps.contains(&Step::VectorDisabledPerf);
        let meaning = match vectors {
            true => {
                engine.nearest(context, look, &request.query, filters(&request).then_some(&allowed as Allowed<'_>))?
            }
            false => Meaning::default(),
        };
        costs.vector_ms = (timer.lap() - meaning.preparing_ms).max(0.0);
        let mut found = find(
            look,
            &texts,
            &Ask {
                text: &request.query,
                recipe: request.recipe,
                lexical: wanted("lexical"),
                vector: vectors,
                intent,
                fusion: match request.fusion {
                    FusionName::WeightedSum => Fusion::WeightedSum,
                    FusionName::Rrf => Fusion::Rrf { k: 60.0 },
                },
                pool: raw,
                nearest: meaning.nearest.clone(),
                allowed: &allowed,
            },
        );
        costs.lexical_ms = timer.lap();
        let total = found.candidates.len();
        // Those of earlier pages are looked at too: what they said need not be said again.
        let end = if paging.backwards { paging.place } else { paging.place + request.limit * 2 };
        // What fades or is judged again must be known before it is cut, the same on every page; else what is shown is enough.
        let ahead = match request.rerank == Some(true) || intent.is_some() || request.anchor.is_some() {
            true => raw,
            false => end,
        };
        let mut read = Read::of(look, &heads(&found, total.min(ahead)))?;
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
        if steps.contains(&Step::ExpansionTrimmed) {
            how.per_primary = how.per_primary.div_ceil(2);
        }
        if how.per_primary > 0 {
            // The same on every page, so that all are parts of one list.
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
            found.expanded = expand(&look.snapshot, then, &mut found.candidates, EXPANDED, &how, fits);
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
            cursor.sparing(Step::bits(&steps)).seal(&key)
        };
        let best = found.candidates.iter().map(|candidate| candidate.node).find_map(|node| {
            let content = read.content(node).filter(|content| !is_sensitive(content))?;
            Some((look.snapshot.name(node), content.title.clone()))
        });
        // All but the items, with figures at least as long as those that are filled in last.
        let mut response = Response {
            summary: summary(&request, &found, best, total, &steps),
            items: vec![],
            path_summaries: vec![],
            total,
            next_cursor: (found.candidates.len() > request.limit).then(|| seal(paging.place, false)),
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
        let mut want = Want {
            limit: request.limit,
            room: request.max_token_budget.saturating_sub(around),
            place: paging.place,
            backwards: paging.backwards,
            read: known,
            paths: request.include_path_summaries && !steps.contains(&Step::PathsDisabledPerf),
            // Who may not have them goes without, and has the rest.
            citations: request.include_citations && context.grants.cover(CITATIONS),
            include: &request.include,
            given: searching.given_lately(context, look, now, &heads(&found, known)),
        };
        let mut way_back = true;
        let mut shown = show(look, &texts, &found, &read, &want);
        while shown.unread && known < found.candidates.len() {
            // Repetitions made room for what was not read yet.
            known = (known + raw).min(found.candidates.len());
            let more = heads(&found, known);
            read.add(look, &more)?;
            want.given = searching.given_lately(context, look, now, &more);
            want.read = known;
            shown = show(look, &texts, &found, &read, &want);
        }
        if shown.items.is_empty() && !shown.page.is_empty() && response.previous_cursor.take().is_some() {
            // Rather no way back than nothing on the way on.
            around = response.fit_around(request.max_token_budget);
            want.room = request.max_token_budget.saturating_sub(around);
            shown = show(look, &texts, &found, &read, &want);
            way_back = false;
        }
        costs.paths_ms = timer.lap();
        // Where an index was made whole, whatever else the request reads is read for the first time too.
        if searching.wholes() == wholes {
            searching.learn(&costs, &steps);
        }
        let tokens = around + shown.tokens;
        let used = tokens as f64 / request.max_token_budget as f64;
        figures(look, &found, &costs, &steps, intent, response.meta.rerank.as_ref(), used);
        let given: Vec<_> =
            shown.items.iter().filter(|item| item.role != Role::Reference).map(|item| item.thing).collect();
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
    /// Tokens of all but the items. Where what `debug` tells would take more than half of the budget, it tells less.
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

/// Refuses a question that is none, or too long to be one.
pub(super) fn check_query(query: &str) -> Result<()> {
    let length = query.trim().chars().count();
    if length == 0 || length > LONGEST {
        let hint = if length == 0 { "say what to look for" } else { "`pack` takes whole issues of up to 32 KB" };
        return Err(Error::invalid(
            "invalid_query",
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
            return Err(Error::invalid("unknown_channel", format!("channels: there is no channel `{channel}`"))
                .hint("lexical and vector can be chosen; the graph is always looked at"));
        }
    }
    check_range("limit", request.limit, 1, MOST)?;
    check_range("neighbor.per_primary_limit", request.neighbor.per_primary_limit, 0, 20)?;
    check_range("neighbor.global_limit", request.neighbor.global_limit, 0, 250)?;
    check_range("neighbor.max_depth", request.neighbor.max_depth as usize, 1, 2)?;
    let budget = request.max_token_budget;
    if budget > MOST_BUDGET {
        return Err(Error::new(
            ErrorKind::TooLarge,
            "token_budget_exceeded",
            format!("max_token_budget: {budget} is more than {MOST_BUDGET}"),
        )
        .hint("read on with the cursor instead"));
    }
    check_range("max_token_budget", budget, LEAST_BUDGET, MOST_BUDGET)?;
    for (name, weight) in [("semantic_weight", request.semantic_weight), ("graph_weight", request.graph_weight)] {
        if !(0.0..=1.0).contains(&weight) {
            return Err(Error::invalid("out_of_range", format!("{name}: {weight} is not within 0 to 1")));
        }
    }
    Ok(())
}

/// Time since it was last asked.
struct Timer(Instant);

impl Timer {
    fn lap(&mut self) -> f64 {
        let took = self.0.elapsed().as_secs_f64() * 1e3;
        self.0 = Instant::now();
        took
    }
}

/// Whether anything may not be in the answer by its type or label.
fn filters(request: &Request) -> bool {
    let Request { object_types, exclude_object_types, labels_any, .. } = request;
    [object_types, exclude_object_types, labels_any].iter().any(|list| !list.is_empty())
}

/// Whether it matters when something was stated.
fn dated(request: &Request) -> bool {
    request.updated_after.is_some() || request.updated_before.is_some()
}

/// Which nodes may be in the answer, by type and label.
fn filter<'l>(look: &'l Look, request: &Request) -> Result<impl Fn(Node) -> bool + Sync + use<'l>> {
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

/// By when it was stated.
fn fits(read: &Read, node: Node, request: &Request) -> bool {
    let (after, before) = (request.updated_after, request.updated_before);
    read.stated(node).is_some_and(|at| after.is_none_or(|after| at > after) && before.is_none_or(|before| at < before))
}

fn heads(found: &Answered, most: usize) -> Vec<Node> {
    found.candidates.iter().take(most).map(|candidate| candidate.node).collect()
}

fn considered(found: &Answered, names: &[&str]) -> usize {
    found.channels.iter().filter(|c| names.contains(&c.name)).map(|c| c.found.len()).max().unwrap_or(0)
}

fn expansion<'a>(
    look: &Look,
    request: &Request,
    intent: Option<Intent>,
    allowed: Allowed<'a>,
) -> Result<Expansion<'a>> {
    let Neighbor { per_primary_limit, global_limit, edge_types, max_depth } = &request.neighbor;
    let names = look.snapshot.names();
    look.filter(edge_types, &[], &[])?;
    let edge_types = (!edge_types.is_empty()).then(|| names.chosen(edge_types, &look.registry, true));
    Ok(Expansion {
        per_primary: *per_primary_limit,
        most: *global_limit,
        depth: *max_depth,
        weight: intent.map_or(0.15, |intent| intent.template().neighbor),
        edge_types,
        allowed,
    })
}

/// Blends in how near each candidate is to the anchor: 1 / (1 + hops).
fn anchored(look: &Look, found: &mut Answered, request: &Request) -> Result<()> {
    let Some(anchor) = &request.anchor else { return Ok(()) };
    let root = look.node(anchor)?;
    let reached = walk(
        &look.snapshot,
        &[root],
        &Walk {
            direction: Direction::Both,
            depth: 4,
            max_nodes: 20_000,
            max_edges: 200_000,
            filter: &Filter::default(),
        },
    );
    let mut hops = rustc_hash::FxHashMap::default();
    for (place, node) in reached.nodes.iter().enumerate() {
        hops.entry(*node).or_insert_with(|| reached.depth(place));
    }
    let best = found.candidates.first().map_or(1.0, |c| c.score()).max(f64::MIN_POSITIVE);
    for candidate in &mut found.candidates {
        candidate.reasons.iter_mut().for_each(|reason| reason.score *= request.semantic_weight / best);
        if let Some(hops) = hops.get(&candidate.node) {
            candidate.add("anchor", request.graph_weight / (1.0 + f64::from(*hops)));
        }
    }
    sort(&mut found.candidates, |node| look.snapshot.thing(node));
    Ok(())
}

/// Lets what was stated long ago count less, where the intent says so.
fn fade(look: &Look, found: &mut Answered, read: &Read, intent: Option<Intent>, now: Time) {
    let share = intent.map_or(0.0, |intent| intent.template().recency);
    if share == 0.0 || found.recipe != Recipe::Objects {
        return;
    }
    for candidate in &mut found.candidates {
        let Some(at) = read.stated(candidate.node) else { continue };
        let days = now.0.saturating_sub(at.0).max(0) as f64 / 86_400e6;
        let lost = candidate.score() * share * (1.0 - (-days / FADES_DAYS).exp());
        candidate.add("recency", -lost);
    }
    sort(&mut found.candidates, |node| look.snapshot.thing(node));
}

/// Has the best judged again, if that does not take too long.
fn second_look(
    engine: &Engine,
    look: &Look,
    read: &Read,
    found: &mut Answered,
    request: &Request,
    steps: &[Step],
) -> RerankOut {
    let began = Instant::now();
    let reranker = engine.searching().reranker();
    let pool = if steps.contains(&Step::RerankPoolReduced) { POOL * 3 / 4 } else { POOL };
    let nodes = heads(found, pool);
    let mut out = RerankOut {
        applied: false,
        model: reranker.name().to_owned(),
        pool: nodes.len(),
        timeout: false,
        error: None,
        latency_ms: 0.0,
    };
    if steps.contains(&Step::RerankDisabledPerf) {
        return out;
    }
    let text = |node: &Node| read.content(*node).map(|content| serde_json::to_string(content).unwrap_or_default());
    let texts: Vec<String> = nodes.iter().map(|node| text(node).unwrap_or_default()).collect();
    let (send, receive) = mpsc::channel();
    let patience = reranker.patience();
    let (question, terms, judge) = (request.query.clone(), found.terms.clone(), Arc::clone(&reranker));
    std::thread::spawn(move || {
        let _ = send.send(judge.judge(&question, &terms, &texts));
    });
    match receive.recv_timeout(patience) {
        Ok(Ok(judged)) if judged.len() == nodes.len() => {
            for (candidate, judged) in found.candidates.iter_mut().zip(judged) {
                let change = ALPHA * (judged.clamp(0.0, 1.0) - candidate.score());
                candidate.add("reranker", change);
            }
            let pool = nodes.len();
            sort(&mut found.candidates[..pool], |node| look.snapshot.thing(node));
            out.applied = true;
        }
        Ok(judged) => out.error = Some(judged.err().unwrap_or_else(|| "not every text was judged".to_owned())),
        Err(_) => out.timeout = true,
    }
    out.latency_ms = round(began.elapsed().as_secs_f64() * 1e3);
    out
}

/// `best` is the first that is shown on any page, and its title. What was shed is part of it: no profile leaves it out.
fn summary(
    request: &Request,
    found: &Answered,
    best: Option<(String, Option<String>)>,
    total: usize,
    steps: &[Step],
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
