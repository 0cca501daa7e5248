//! What an answer to a search shows: items with their reasons, paths, citations, all within a budget of tokens.

use super::{Answered, Texts};
use crate::code::symbols::Symbols;
use crate::context_graph::is_sensitive;
use crate::graph::Look;
use crate::redact::redact;
use crate::sensitive;
use lukasa_graph::Node;
use lukasa_graph::contents::{Known, known};
use lukasa_model::{Content, Result, ThingNo, Time};
use lukasa_search::count::count;
use lukasa_search::fields::{self, prune};
use lukasa_search::fuse::Candidate;
use lukasa_search::gain::{self, Covered};
use lukasa_search::pack::{self, Unit};
use lukasa_search::text::Scoring;
use lukasa_search::{cite, tokens};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use uuid::Uuid;

/// Shares of the budget: objects, neighbours, paths, citations; the rest is for what stands around them.
const SHARES: [f64; 4] = [0.55, 0.20, 0.10, 0.10];
/// Most path summaries.
pub const PATHS: usize = 25;
/// What `meta` and the rest of an answer take.
const AROUND: usize = 160;

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

/// A sentence as it stands in the source.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CitationOut {
    pub span: String,
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
    /// summary_only: the neighbour itself was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    pub reasons: Vec<ReasonOut>,
}

/// What is wanted of an answer.
pub struct Want<'a> {
    pub limit: usize,
    pub budget: usize,
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
    pub tokens: usize,
    /// Something was left out or shortened to keep the budget.
    pub truncated: bool,
    pub gain_rejections: usize,
}

/// Contents of nodes, with when they were stated, and the names of sensitive properties they are without.
#[derive(Default)]
pub struct Read(FxHashMap<Node, Arc<Known>>);

impl Read {
    pub fn of(look: &Look, nodes: &[Node]) -> Result<Read> {
        Ok(Read(known(&look.snapshot, &look.ledger, nodes)?.into_iter().collect()))
    }

    /// Reads more.
    pub fn add(&mut self, look: &Look, nodes: &[Node]) -> Result<()> {
        let missing: Vec<Node> = nodes.iter().copied().filter(|node| !self.0.contains_key(node)).collect();
        self.0.extend(known(&look.snapshot, &look.ledger, &missing)?);
        Ok(())
    }

    pub fn content(&self, node: Node) -> Option<&Content> {
        self.0.get(&node).map(|known| &known.content)
    }

    pub fn stated(&self, node: Node) -> Option<Time> {
        self.0.get(&node).map(|known| known.stated)
    }

    fn hidden(&self, node: Node) -> impl Iterator<Item = String> {
        self.0.get(&node).into_iter().flat_map(|known| &known.hidden).map(|name| name.to_string())
    }
}

/// Puts together what fits.
pub fn show(look: &Look, texts: &Texts, found: &Answered, read: &Read, want: &Want<'_>) -> Shown {
    let symbols = Symbols::new(look);
    let neighbors: FxHashSet<Node> = found.expanded.neighbors.iter().copied().collect();
    let showing = Showing { look, texts, found, read, want, symbols };
    let mut covered = Covered::default();
    let mut items: Vec<(ItemOut, ItemOut, bool)> = Vec::new();
    let mut costs = Vec::new();
    let mut left_out = FxHashSet::default();
    for candidate in &found.candidates {
        if items.len() >= want.limit {
            break;
        }
        // Neighbours may be sensitive: they are not in any index, but relationships lead to them.
        let Some(content) = read.content(candidate.node).filter(|content| !is_sensitive(content)) else { continue };
        let is_neighbor = neighbors.contains(&candidate.node);
        let (full, brief) = showing.item(candidate, content, is_neighbor);
        let said: Vec<String> = full.fields.values().filter_map(Value::as_str).flat_map(tokens::list).collect();
        let tokens = cost(&full);
        if !covered.take(&said, tokens, gain::LEAST) {
            left_out.insert(candidate.node);
            continue;
        }
        items.push((full, brief, is_neighbor));
        costs.push(tokens);
    }
    let paths = if want.paths { showing.paths(&left_out) } else { vec![] };
    let mut units: Vec<Unit> = Vec::new();
    for ((_, _, is_neighbor), cost) in items.iter().zip(&costs) {
        units.push(Unit { slot: usize::from(*is_neighbor), costs: vec![*cost] });
    }
    units.extend(paths.iter().map(|path| Unit { slot: 2, costs: vec![cost(path)] }));
    let room = want.budget.saturating_sub(AROUND);
    if units.iter().map(|unit| unit.costs[0]).sum::<usize>() > room {
        // Only where not all has room does it matter what less would cost.
        units.iter_mut().zip(&items).for_each(|(unit, (_, brief, _))| unit.costs.push(cost(brief)));
    }
    let chosen = pack::choose(&units, &SHARES, room);
    let mut shown = Shown { gain_rejections: covered.rejected, ..Shown::default() };
    shown.truncated = units.iter().zip(&chosen).any(|(_, form)| *form != Some(0));
    shown.tokens = AROUND + pack::cost(&units, &chosen);
    for ((full, brief, _), form) in items.into_iter().zip(&chosen) {
        shown.items.extend(form.map(|form| if form == 0 { full } else { brief }));
    }
    let path_forms = &chosen[chosen.len() - paths.len()..];
    shown.paths = paths.into_iter().zip(path_forms).filter(|(_, form)| form.is_some()).map(|(path, _)| path).collect();
    for (at, item) in shown.items.iter_mut().enumerate() {
        item.rank = at + 1;
        let node = look.snapshot.find(item.thing);
        let hidden: Vec<String> = node.into_iter().flat_map(|node| read.hidden(node)).collect();
        sensitive::count(hidden.len());
        item.truncated_fields.extend(hidden);
    }
    shown
}

fn cost(part: &impl Serialize) -> usize {
    serde_json::to_string(part).map_or(usize::MAX / 4, |text| count(&text) + 1)
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
    /// An item in full and in brief.
    fn item(&self, candidate: &Candidate, content: &Content, is_neighbor: bool) -> (ItemOut, ItemOut) {
        let snapshot = &self.look.snapshot;
        let node = candidate.node;
        let mut core = Map::new();
        if let Some(title) = &content.title {
            core.insert("title".into(), json!(title));
        }
        core.insert("type".into(), json!(&**snapshot.type_name(node)));
        if let Some(status) = &content.status {
            core.insert("status".into(), json!(status));
        }
        let given = self.want.given.contains(&snapshot.thing(node));
        let role = match (given, is_neighbor) {
            (true, _) => Role::Reference,
            (_, true) => Role::Neighbor,
            _ => Role::Primary,
        };
        let pruned = prune(&content.properties, &self.found.terms, self.want.include, fields::SHOWN);
        let reasons = candidate.reasons.iter().map(|r| ReasonOut { channel: r.channel.into(), score: round(r.score) });
        let brief = ItemOut {
            rank: 0,
            reference: snapshot.name(node),
            thing: snapshot.thing(node),
            object_id: snapshot.id(node),
            score: round(candidate.reasons.iter().map(|r| round(r.score)).sum()),
            role,
            fields: core.clone(),
            truncated_fields: content.properties.keys().cloned().collect(),
            reasons: reasons.collect(),
            citations: vec![],
            explanation: self.explain(candidate),
        };
        if given {
            let named = ItemOut { truncated_fields: vec![], ..brief };
            return (named.clone(), named);
        }
        let mut fields = core;
        fields.extend(pruned.fields.clone());
        let citations = if self.want.citations { self.cite(node, &pruned.fields) } else { vec![] };
        let full = ItemOut { fields, truncated_fields: pruned.truncated, citations, ..brief.clone() };
        (full, brief)
    }

    /// Only from what is shown, and nothing that looks like a secret: masked in part, its place would still tell of it.
    fn cite(&self, node: Node, fields: &Map<String, Value>) -> Vec<CitationOut> {
        let texts = fields.values().filter_map(Value::as_str);
        let best = texts.filter_map(|text| cite::best(text, &self.found.terms));
        let best = best.filter(|citation| matches!(redact(&citation.span), Cow::Borrowed(_)));
        let best = best.max_by(|a, b| a.confidence.total_cmp(&b.confidence));
        let source_object_id = self.look.snapshot.id(node);
        best.into_iter()
            .map(|c| CitationOut { span: c.span, source_object_id, confidence: round(c.confidence) })
            .collect()
    }

    /// A sentence: which words, how near in meaning, whose neighbour.
    fn explain(&self, candidate: &Candidate) -> String {
        let node = candidate.node;
        let mut parts = Vec::new();
        let scoring = Scoring::default();
        let mut words = self.texts.units.explain(node, &self.found.terms, &scoring);
        words.extend(self.texts.objects.explain(node, &self.found.terms, &scoring));
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

    /// Relationships that were followed, the best first, each pair and type once.
    fn paths(&self, left_out: &FxHashSet<Node>) -> Vec<PathOut> {
        let snapshot = &self.look.snapshot;
        let mut ways: Vec<_> = self.found.expanded.ways.iter().collect();
        ways.sort_by(|a, b| {
            b.score.total_cmp(&a.score).then_with(|| snapshot.edge_thing(a.edge).cmp(&snapshot.edge_thing(b.edge)))
        });
        let mut seen = FxHashSet::default();
        ways.retain(|way| seen.insert(way.edge));
        ways.truncate(PATHS);
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
                role: left_out.contains(&way.to).then_some("summary_only"),
                reasons: vec![ReasonOut { channel: "primary_neighbor".into(), score: round(way.gave) }],
            });
        }
        all
    }
}

/// Enough digits to tell scores apart, and the same on every machine.
pub fn round(score: f64) -> f64 {
    (score * 1e6).round() / 1e6
}
