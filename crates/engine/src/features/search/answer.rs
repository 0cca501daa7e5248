//! What an answer to a search shows: items with their reasons, paths, citations, all within a budget of tokens.

use super::{Answered, Texts};
use crate::redact::{GONE, redact};
use crate::sensitive;
use crate::sensitive::is_sensitive;
use crate::view::Look;
use crate::view::Read;
use crate::view::symbols::Symbols;
use lukasa_graph::Node;
use lukasa_model::{Content, ThingNo};
use lukasa_search::cite::{self, Citation};
use lukasa_search::count::count;
use lukasa_search::fields::{self, prune};
use lukasa_search::pipeline::fuse::Candidate;
use lukasa_search::pipeline::gain::Covered;
use lukasa_search::pipeline::pack::{self, Unit};
use lukasa_search::recipes::{ANY_FIELD, CITATIONS, FIELDS_SHOWN, SEARCH};
use lukasa_search::tokens;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::ops::Range;
use uuid::Uuid;

/// Something that was found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ItemOut {
    pub rank: usize,
    /// `Type:key`, or the id where it has no key.
    #[serde(rename = "ref")]
    pub reference: String,
    #[serde(skip)]
    pub thing: ThingNo,
    pub object_id: Uuid,
    /// The sum of the reasons.
    pub score: f64,
    /// primary; neighbor: found by a relationship only; reference: given to this session lately, so only named again.
    pub role: Role,
    /// Title, type and status, and the fields that tell most.
    pub fields: Map<String, Value>,
    /// Fields left out or shortened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub truncated_fields: Vec<String>,
    pub reasons: Vec<ReasonOut>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<CitationOut>,
    pub explanation: String,
}

impl ItemOut {
    /// Without a word of what was left out, for where there is room for little else.
    fn named(&self) -> ItemOut {
        ItemOut { truncated_fields: vec![], ..self.clone() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Primary,
    Neighbor,
    Reference,
}

/// A part of a score.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReasonOut {
    pub channel: String,
    pub score: f64,
}

/// A sentence as it stands in the source, but for secrets.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CitationOut {
    pub span: String,
    /// Secrets were taken out; `[redacted]` stands in the place of each.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    pub source_object_id: Uuid,
    /// Which part of the question it speaks of.
    pub confidence: f64,
}

/// How two things found are related, in words.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PathOut {
    pub path_id: Uuid,
    pub summary: String,
    pub nodes: Vec<Uuid>,
    pub relationships: Vec<Uuid>,
    /// summary_only: the neighbour itself is not on this page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    pub reasons: Vec<ReasonOut>,
    /// Where among all that was found the one stands whose relationship it is.
    #[serde(skip)]
    pub place: usize,
}

/// What is wanted of an answer.
pub struct Want<'a> {
    pub limit: usize,
    /// Tokens that items and paths may take.
    pub room: usize,
    /// Where among all that was found the page begins, or where it ends when it is read backwards.
    pub place: usize,
    pub backwards: bool,
    /// So many of all that was found were read.
    pub read: usize,
    pub paths: bool,
    pub citations: bool,
    pub include: &'a [String],
    /// Given to the session lately.
    pub given: FxHashSet<ThingNo>,
}

/// What fits.
#[derive(Default)]
pub struct Shown {
    pub items: Vec<ItemOut>,
    pub paths: Vec<PathOut>,
    /// Of items and paths.
    pub tokens: usize,
    /// What was looked at of all that was found: the next page begins at its end.
    pub page: Range<usize>,
    /// More has to be read to fill the page.
    pub unread: bool,
    /// Something was left out or shortened to keep the budget.
    pub truncated: bool,
    pub gain_rejections: usize,
}

/// Puts together the page that fits. What an earlier page said is said already, so pages leave out the same repetitions as one
/// large page would; what has no room is left to the next one.
pub fn show(look: &Look, texts: &Texts, found: &Answered, read: &Read, want: &Want<'_>) -> Shown {
    let symbols = Symbols::new(look);
    let neighbors: FxHashSet<Node> = found.expanded.neighbors.iter().copied().collect();
    let showing = Showing { look, texts, found, read, want, symbols };
    let mut covered = Covered::default();
    let mut items: Vec<Offer> = Vec::new();
    let mut left_out = FxHashSet::default();
    let mut shown = Shown::default();
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
        // Neighbours may be sensitive: they are not in any index, but relationships lead to them.
        let Some(content) = read.content(candidate.node).filter(|content| !is_sensitive(content)) else { continue };
        let is_neighbor = neighbors.contains(&candidate.node);
        let told = showing.told(candidate.node, content);
        let said: Vec<String> = told.texts().flat_map(tokens::list).collect();
        if covered.repeats(&said) {
            left_out.insert(candidate.node);
            continue;
        }
        let (mut full, brief) = showing.item(candidate, content, told, is_neighbor);
        let mut tokens = cost(&full);
        if !covered.take(&said, tokens) {
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
        items.push(Offer { full, brief, is_neighbor, place, costs: vec![tokens] });
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
        // Only where not all has room does it matter what less would cost.
        for item in &mut items {
            let named = item.brief.named();
            item.costs.extend([cost(&item.brief), cost(&named)]);
        }
    }
    if want.backwards {
        // What stands next to where it is read from comes first.
        items.reverse();
    }
    let (mut units, mut chosen);
    loop {
        let of_items = items.iter().map(|item| Unit { slot: usize::from(item.is_neighbor), costs: item.costs.clone() });
        let of_paths = path_costs.iter().map(|cost| Unit { slot: 2, costs: vec![*cost] });
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

/// What may be shown of a candidate.
struct Offer {
    full: ItemOut,
    brief: ItemOut,
    is_neighbor: bool,
    place: usize,
    /// Of its forms.
    costs: Vec<usize>,
}

/// Leaves the first that has no room to another page, with all beyond it. What others took the room of has them leave; what has
/// none on a page of its own is passed over. False when all have room.
fn leave(items: &mut Vec<Offer>, chosen: &[Option<usize>], backwards: bool, page: &mut Range<usize>) -> bool {
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

/// What an item tells of its object: what it is, and its fields unless they were given lately.
struct Told {
    core: Map<String, Value>,
    pruned: Option<fields::Shown>,
}

impl Told {
    fn texts(&self) -> impl Iterator<Item = &str> {
        let own = || self.pruned.iter().flat_map(|pruned| &pruned.fields);
        // What an object calls its title, type or status itself is what is shown.
        let core = self.core.iter().filter(move |(name, _)| !own().any(|(own, _)| own == *name));
        core.chain(own()).filter_map(|(_, value)| value.as_str())
    }
}

struct Showing<'a> {
    look: &'a Look,
    texts: &'a Texts,
    found: &'a Answered,
    read: &'a Read,
    want: &'a Want<'a>,
    symbols: Symbols<'a>,
}

impl Showing<'_> {
    /// What an item tells of its object.
    fn told(&self, node: Node, content: &Content) -> Told {
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
        Told { core, pruned }
    }

    /// An item in full and in brief.
    fn item(&self, candidate: &Candidate, content: &Content, told: Told, is_neighbor: bool) -> (ItemOut, ItemOut) {
        let snapshot = &self.look.snapshot;
        let node = candidate.node;
        let role = match (&told.pruned, is_neighbor) {
            (None, _) => Role::Reference,
            (_, true) => Role::Neighbor,
            _ => Role::Primary,
        };
        let reasons = candidate.reasons.iter().map(|r| ReasonOut { channel: r.channel.into(), score: round(r.score) });
        let brief = ItemOut {
            rank: 0,
            reference: snapshot.name(node),
            thing: snapshot.thing(node),
            object_id: snapshot.id(node),
            score: round(candidate.reasons.iter().map(|r| round(r.score)).sum()),
            role,
            fields: told.core,
            truncated_fields: content.properties.keys().cloned().collect(),
            reasons: reasons.collect(),
            citations: vec![],
            explanation: self.explain(candidate),
        };
        let Some(pruned) = told.pruned else { return (brief.named(), brief.named()) };
        let citations = if self.want.citations { self.cite(node, &pruned.fields) } else { vec![] };
        let mut full = ItemOut { truncated_fields: pruned.truncated, citations, ..brief.clone() };
        full.fields.extend(pruned.fields);
        (full, brief)
    }

    /// Only from what is shown. Secrets are taken out of the whole text, before a sentence of it is chosen: the end of a
    /// sentence may be in the middle of one.
    fn cite(&self, node: Node, fields: &Map<String, Value>) -> Vec<CitationOut> {
        let texts = fields.values().filter_map(Value::as_str);
        let best = texts.filter_map(|text| Some((text, cite::best(&redact(text), &self.found.terms)?)));
        let best = best.max_by(|(_, a), (_, b)| a.confidence.total_cmp(&b.confidence));
        let source_object_id = self.look.snapshot.id(node);
        best.into_iter()
            .map(|(text, Citation { span, confidence })| {
                // A text may have the mark of its own.
                let redacted = span.contains(GONE) && !text.contains(&span);
                CitationOut { span, redacted, source_object_id, confidence: round(confidence) }
            })
            .collect()
    }

    /// A sentence: which words, how near in meaning, whose neighbour.
    fn explain(&self, candidate: &Candidate) -> String {
        let node = candidate.node;
        let mut parts = Vec::new();
        let mut words = self.texts.units.explain(node, &self.found.terms, &ANY_FIELD);
        words.extend(self.texts.objects.explain(node, &self.found.terms, &ANY_FIELD));
        words.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        words.truncate(3);
        if !words.is_empty() {
            let said = |word: String| self.found.said.get(&word).cloned().unwrap_or(word);
            let mut words: Vec<String> = words.into_iter().map(|(word, _)| format!("`{}`", said(word))).collect();
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

    /// Relationships that were followed from what is on a page, the best first, each pair and type once.
    fn paths(&self, page: &Range<usize>, left_out: &FxHashSet<Node>) -> Vec<PathOut> {
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
            all.push(PathOut {
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

/// Enough digits to tell scores apart, and the same on every machine.
pub fn round(score: f64) -> f64 {
    (score * 1e6).round() / 1e6
}
