//! The items, paths and citations of a search answer, fitted to a token budget.

use super::{RankedCandidates, TextIndexes};
use crate::redact::{GONE, redact};
use crate::sensitive;
use crate::sensitive::is_sensitive;
use crate::view::NodeContents;
use crate::view::ViewGraph;
use crate::view::symbols::Symbols;
use lukasa_graph::Node;
use lukasa_model::{Content, FactNo};
use lukasa_search::cite::{self, Citation};
use lukasa_search::count::count;
use lukasa_search::fields::{self, prune};
use lukasa_search::pipeline::fuse::Candidate;
use lukasa_search::pipeline::gain::CoveredWords;
use lukasa_search::pipeline::pack::{self, PackUnit};
use lukasa_search::recipes::{ANY_FIELD, CITATIONS, FIELDS_SHOWN, SEARCH};
use lukasa_search::tokens;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::ops::Range;
use uuid::Uuid;

/// One result of an answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ItemOut {
    pub rank: usize,
    /// `Type:key`, or the id of an object without a key.
    #[serde(rename = "ref")]
    pub reference: String,
    #[serde(skip)]
    pub thing: FactNo,
    pub object_id: Uuid,
    /// The sum of `reasons`.
    pub score: f64,
    /// primary; neighbor: reached only through a relationship; reference: already returned to this session, so only named here.
    pub role: ItemRole,
    /// Title, type and status, and the most informative properties.
    pub fields: Map<String, Value>,
    /// Number of properties left out or shortened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub truncated_fields: Vec<String>,
    pub reasons: Vec<ReasonOut>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<CitationOut>,
    pub explanation: String,
}

impl ItemOut {
    /// The item without the list of omitted properties, for when there is little room.
    fn named(&self) -> ItemOut {
        ItemOut { truncated_fields: vec![], ..self.clone() }
    }
}

/// Why an item is in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemRole {
    Primary,
    Neighbor,
    Reference,
}

/// One component of a score.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReasonOut {
    pub channel: String,
    pub score: f64,
}

/// A sentence as it is in the source, with secrets redacted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CitationOut {
    pub span: String,
    /// Secrets were replaced by `[redacted]`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    pub source_object_id: Uuid,
    /// The words of the query that the sentence contains.
    pub confidence: f64,
}

/// A relationship between two results, in words.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SearchPathOut {
    pub path_id: Uuid,
    pub summary: String,
    pub nodes: Vec<Uuid>,
    pub relationships: Vec<Uuid>,
    /// summary_only: the neighbor itself is not on this page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    pub reasons: Vec<ReasonOut>,
    /// Index of the result whose relationship this is, among all results.
    #[serde(skip)]
    pub place: usize,
}

/// What an answer may contain.
pub struct AnswerOptions<'a> {
    pub limit: usize,
    /// Token budget of items and paths.
    pub room: usize,
    /// Index among all results at which the page begins, or ends when it is read backwards.
    pub place: usize,
    pub backwards: bool,
    /// Number of results whose content was read.
    pub read: usize,
    pub paths: bool,
    pub citations: bool,
    pub include: &'a [String],
    /// Facts that were recently returned to the session.
    pub given: FxHashSet<FactNo>,
}

/// The items and paths that fit on a page.
#[derive(Default)]
pub struct AnswerPage {
    pub items: Vec<ItemOut>,
    pub paths: Vec<SearchPathOut>,
    /// Tokens of items and paths.
    pub tokens: usize,
    /// Range of the results that were considered; the next page begins at its end.
    pub page: Range<usize>,
    /// More results must be read to fill the page.
    pub unread: bool,
    /// Something was left out or shortened to stay within the budget.
    pub truncated: bool,
    pub gain_rejections: usize,
}

/// Builds the page that fits the budget. Content of earlier pages counts as already returned, so pages omit the same
/// repetitions as one large page; an item that does not fit is moved to the next page.
pub fn show(
    look: &ViewGraph,
    texts: &TextIndexes,
    found: &RankedCandidates,
    read: &NodeContents,
    want: &AnswerOptions<'_>,
) -> AnswerPage {
    let symbols = Symbols::new(look);
    let neighbors: FxHashSet<Node> = found.expanded.neighbors.iter().copied().collect();
    let showing = ItemBuilder { look, texts, found, read, want, symbols };
    let mut covered = CoveredWords::default();
    let mut items: Vec<ItemForms> = Vec::new();
    let mut left_out = FxHashSet::default();
    let mut shown = AnswerPage::default();
    let (mut looked, mut cited) = (0, 0);
    for (place, candidate) in found.candidates.iter().enumerate() {
        let ends = match want.backwards {
            true => place >= want.place,
            false => items.len() >= want.limit || place >= want.place + SEARCH.looked_at,
        };
        if ends {
            break;
        }
        if place >= want.read {
            shown.unread = true;
            break;
        }
        looked = place + 1;
        // Neighbors may be sensitive: they are in no index, but can be reached through relationships.
        let Some(content) = read.content(candidate.node).filter(|content| !is_sensitive(content)) else { continue };
        let is_neighbor = neighbors.contains(&candidate.node);
        let item = showing.content_of(candidate.node, content);
        let words: Vec<String> = item.texts().flat_map(tokens::list).collect();
        if covered.repeats(&words) {
            left_out.insert(candidate.node);
            continue;
        }
        let (mut full, brief) = showing.item(candidate, content, item, is_neighbor);
        let mut tokens = cost(&full);
        if !covered.take(&words, tokens) {
            left_out.insert(candidate.node);
            continue;
        }
        if !want.backwards && place < want.place {
            continue;
        }
        if cited + full.citations.len() > CITATIONS.most {
            full.citations.clear();
            tokens = cost(&full);
        }
        cited += full.citations.len();
        items.push(ItemForms { full, brief, is_neighbor, place, costs: vec![tokens] });
    }
    shown.gain_rejections = covered.rejected;
    shown.page = if want.backwards { 0..want.place } else { want.place..looked.max(want.place) };
    if want.backwards && items.len() > want.limit {
        items.drain(..items.len() - want.limit);
        shown.page.start = items[0].place;
    }
    let paths = if want.paths { showing.paths(&shown.page, &left_out) } else { vec![] };
    let path_costs: Vec<usize> = paths.iter().map(cost).collect();
    let all = items.iter().map(|item| item.costs[0]).chain(path_costs.iter().copied()).sum::<usize>();
    if all > want.room {
        // Shorter forms are needed only if not everything fits.
        for item in &mut items {
            let named = item.brief.named();
            item.costs.extend([cost(&item.brief), cost(&named)]);
        }
    }
    if want.backwards {
        // The results nearest to the start of the page come first.
        items.reverse();
    }
    let (mut units, mut chosen);
    loop {
        let of_items = items.iter().map(|item| PackUnit {
            slot: usize::from(item.is_neighbor),
            costs: item.costs.clone(),
            at_first: usize::MAX,
        });
        let of_paths = path_costs.iter().map(|cost| PackUnit { slot: 2, costs: vec![*cost], at_first: usize::MAX });
        units = of_items.chain(of_paths).collect::<Vec<_>>();
        chosen = pack::choose(&units, &SEARCH.shares, want.room);
        if !leave(&mut items, &chosen, want.backwards, &mut shown.page) {
            break;
        }
        shown.truncated = true;
    }
    shown.truncated |= chosen.iter().any(|form| *form != Some(0));
    shown.tokens = pack::cost(&units, &chosen);
    let (of_items, of_paths) = chosen.split_at(items.len());
    for (item, form) in items.into_iter().zip(of_items) {
        shown.items.extend(form.map(|form| match form {
            0 => item.full,
            1 => item.brief,
            _ => item.brief.named(),
        }));
    }
    if want.backwards {
        shown.items.reverse();
    }
    let page = shown.page.clone();
    let given = paths.into_iter().zip(of_paths).filter(|(path, form)| form.is_some() && page.contains(&path.place));
    shown.paths = given.map(|(path, _)| path).collect();
    for (at, item) in shown.items.iter_mut().enumerate() {
        item.rank = at + 1;
        let node = look.snapshot.find(item.thing);
        let hidden: Vec<String> = node.into_iter().flat_map(|node| read.hidden(node)).collect();
        sensitive::count(hidden.len());
        item.truncated_fields.extend(hidden);
    }
    shown
}

/// A candidate that may be shown, in its forms.
struct ItemForms {
    full: ItemOut,
    brief: ItemOut,
    is_neighbor: bool,
    place: usize,
    /// Token cost of each form.
    costs: Vec<usize>,
}

/// Ends the page before the first item that does not fit because of others. An item that would not fit on a page of its own is
/// skipped. Returns false when everything fits.
fn leave(items: &mut Vec<ItemForms>, chosen: &[Option<usize>], backwards: bool, page: &mut Range<usize>) -> bool {
    let Some(at) = chosen[..items.len()].iter().position(Option::is_none) else { return false };
    if items.len() == 1 {
        items.clear();
        return true;
    }
    let at = if at == 0 { items.len() - 1 } else { at };
    match backwards {
        true => page.start = items[at].place + 1,
        false => page.end = items[at].place,
    }
    items.truncate(at);
    true
}

fn cost(part: &impl Serialize) -> usize {
    serde_json::to_string(part).map_or(usize::MAX / 4, |text| count(&text) + 1)
}

/// The content of an item: its core (title, type, status), and its properties unless they were returned recently.
struct ItemContent {
    core: Map<String, Value>,
    pruned: Option<fields::ShownFields>,
}

impl ItemContent {
    fn texts(&self) -> impl Iterator<Item = &str> {
        let own = || self.pruned.iter().flat_map(|pruned| &pruned.fields);
        // Properties named title, type or status replace those of the core.
        let core = self.core.iter().filter(move |(name, _)| !own().any(|(own, _)| own == *name));
        core.chain(own()).filter_map(|(_, value)| value.as_str())
    }
}

struct ItemBuilder<'a> {
    look: &'a ViewGraph,
    texts: &'a TextIndexes,
    found: &'a RankedCandidates,
    read: &'a NodeContents,
    want: &'a AnswerOptions<'a>,
    symbols: Symbols<'a>,
}

impl ItemBuilder<'_> {
    /// Selects the content of an item.
    fn content_of(&self, node: Node, content: &Content) -> ItemContent {
        let snapshot = &self.look.snapshot;
        let mut core = Map::new();
        if let Some(title) = &content.title {
            core.insert("title".into(), json!(title));
        }
        core.insert("type".into(), json!(&**snapshot.type_name(node)));
        if let Some(status) = &content.status {
            core.insert("status".into(), json!(status));
        }
        let given = self.want.given.contains(&snapshot.thing(node));
        let pruned =
            (!given).then(|| prune(&content.properties, &self.found.terms, self.want.include, FIELDS_SHOWN.shown));
        ItemContent { core, pruned }
    }

    /// Returns an item in its full and its brief form.
    fn item(
        &self,
        candidate: &Candidate,
        content: &Content,
        shown: ItemContent,
        is_neighbor: bool,
    ) -> (ItemOut, ItemOut) {
        let snapshot = &self.look.snapshot;
        let node = candidate.node;
        let role = match (&shown.pruned, is_neighbor) {
            (None, _) => ItemRole::Reference,
            (_, true) => ItemRole::Neighbor,
            _ => ItemRole::Primary,
        };
        let reasons = candidate.reasons.iter().map(|r| ReasonOut { channel: r.channel.into(), score: round(r.score) });
        let brief = ItemOut {
            rank: 0,
            reference: snapshot.name(node),
            thing: snapshot.thing(node),
            object_id: snapshot.id(node),
            score: round(candidate.reasons.iter().map(|r| round(r.score)).sum()),
            role,
            fields: shown.core,
            truncated_fields: content.properties.keys().cloned().collect(),
            reasons: reasons.collect(),
            citations: vec![],
            explanation: self.explain(candidate),
        };
        let Some(pruned) = shown.pruned else { return (brief.named(), brief.named()) };
        let citations = if self.want.citations { self.cite(node, &pruned.fields) } else { vec![] };
        let mut full = ItemOut { truncated_fields: pruned.truncated, citations, ..brief.clone() };
        full.fields.extend(pruned.fields);
        (full, brief)
    }

    /// Reads only what may be shown. Secrets are redacted in the whole text before a sentence is chosen, because a sentence may
    /// end inside a secret.
    fn cite(&self, node: Node, fields: &Map<String, Value>) -> Vec<CitationOut> {
        let texts = fields.values().filter_map(Value::as_str);
        let best = texts.filter_map(|text| Some((text, cite::best(&redact(text), &self.found.terms)?)));
        let best = best.max_by(|(_, a), (_, b)| a.confidence.total_cmp(&b.confidence));
        let source_object_id = self.look.snapshot.id(node);
        best.into_iter()
            .map(|(text, Citation { span, confidence })| {
                // The text itself may contain the ellipsis.
                let redacted = span.contains(GONE) && !text.contains(&span);
                CitationOut { span, redacted, source_object_id, confidence: round(confidence) }
            })
            .collect()
    }

    /// Explains a result in a sentence: matching words, similarity in meaning, the result it is related to.
    fn explain(&self, candidate: &Candidate) -> String {
        let node = candidate.node;
        let mut parts = Vec::new();
        let mut words = self.texts.units.explain(node, &self.found.terms, &ANY_FIELD);
        words.extend(self.texts.objects.explain(node, &self.found.terms, &ANY_FIELD));
        words.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        words.truncate(3);
        if !words.is_empty() {
            let spelled = |word: String| self.found.spelled.get(&word).cloned().unwrap_or(word);
            let mut words: Vec<String> = words.into_iter().map(|(word, _)| format!("`{}`", spelled(word))).collect();
            words.dedup();
            parts.push(format!("says {}", words.join(", ")));
        }
        let near = self.found.channels.iter().find(|channel| channel.name == "vector");
        if let Some((_, score)) = near.and_then(|channel| channel.found.iter().find(|(found, _)| *found == node)) {
            parts.push(format!("near in meaning ({score:.2})"));
        }
        if let Some(way) = self.found.expanded.ways.iter().find(|way| way.to == node) {
            parts.push(format!("beside {}", self.called(way.from)));
        }
        match parts.is_empty() {
            true => format!("by {}", candidate.reasons.first().map_or("nothing", |reason| reason.channel)),
            false => parts.join("; "),
        }
    }

    fn called(&self, node: Node) -> String {
        match self.read.content(node).and_then(|content| content.title.clone()) {
            Some(title) => format!("{} `{title}`", self.look.snapshot.type_name(node)),
            None => format!("{} {}", self.look.snapshot.type_name(node), self.symbols.short(node)),
        }
    }

    /// Relationships that were followed from results of the page, best first, each pair and type once.
    fn paths(&self, page: &Range<usize>, left_out: &FxHashSet<Node>) -> Vec<SearchPathOut> {
        let snapshot = &self.look.snapshot;
        let ways = &self.found.expanded.ways;
        let concerned: FxHashSet<Node> = ways.iter().flat_map(|way| [way.from, way.to]).collect();
        let nodes = self.found.candidates.iter().map(|candidate| candidate.node).enumerate();
        let places: FxHashMap<Node, usize> =
            nodes.filter(|(_, node)| concerned.contains(node)).map(|(place, node)| (node, place)).collect();
        let place = |node: Node| places.get(&node).copied().unwrap_or(usize::MAX);
        let mut ways: Vec<_> = ways.iter().filter(|way| page.contains(&place(way.from))).collect();
        ways.sort_by(|a, b| {
            b.score.total_cmp(&a.score).then_with(|| snapshot.edge_thing(a.edge).cmp(&snapshot.edge_thing(b.edge)))
        });
        let mut seen = FxHashSet::default();
        ways.retain(|way| seen.insert(way.edge));
        ways.truncate(SEARCH.paths);
        let mut all = Vec::new();
        let hidden = |node: Node| self.read.content(node).is_some_and(is_sensitive);
        for way in ways {
            let (src, dst) = snapshot.ends(way.edge);
            if hidden(src) || hidden(dst) {
                continue;
            }
            let relation = snapshot.edge_type(way.edge).to_lowercase().replace('_', " ");
            let edge_id = snapshot.edge_id(way.edge);
            all.push(SearchPathOut {
                path_id: edge_id,
                summary: format!("{} {relation} {}", self.called(src), self.called(dst)),
                nodes: vec![snapshot.id(src), snapshot.id(dst)],
                relationships: vec![edge_id],
                role: (left_out.contains(&way.to) || place(way.to) >= page.end).then_some("summary_only"),
                reasons: vec![ReasonOut { channel: "primary_neighbor".into(), score: round(way.gave) }],
                place: place(way.from),
            });
        }
        all
    }
}

/// Rounds to enough digits to distinguish scores, with the same result on every machine.
pub fn round(score: f64) -> f64 {
    (score * 1e6).round() / 1e6
}
