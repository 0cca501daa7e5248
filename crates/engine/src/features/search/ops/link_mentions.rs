//! `link_mentions`: records which objects mention which others by title.

use crate::convert::to_u32;
use crate::features::search::{property_texts, title};
use crate::ranges::check_range;
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::WriteTarget;
use crate::responses::count;
use crate::sensitive::is_sensitive;
use crate::view::ViewGraph;
use crate::view::symbols::Symbols;
use crate::{Context, Engine};
use lukasa_code::type_names;
use lukasa_graph::{Edge, Node};
use lukasa_model::batch::{End, PutRelationship};
use lukasa_model::id::relationship_id;
use lukasa_model::transaction::Header;
use lukasa_model::{Batch, Content, FactNo, Result, Tx, Write};
use lukasa_search::recipes::RECALL;
use lukasa_search::titles;
use lukasa_store::VersionFields;
use lukasa_store::ledger::Committed;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;
use uuid::Uuid;

/// The operation `link_mentions`.
pub struct LinkMentions;

const MENTIONS: &str = "MENTIONS";
/// The derivation of these relationships; relationships with another derivation are not changed.
pub const DERIVATION: &str = "title_mention";
/// Number of objects that are read at a time.
const AT_ONCE: usize = 2_048;
/// Up to this many writes are committed as one batch, which is planned as a whole; more are loaded in parts of this size.
const FEW_WRITES: usize = 10_000;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Only objects of these types, at most 64, mention and are mentioned; everything except source code when left out.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub types: Vec<String>,
    #[serde(flatten)]
    pub target: WriteTarget,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Objects that were examined.
    pub objects: usize,
    /// Mentions that are valid now.
    pub mentions: usize,
    /// Mentions that are new.
    pub added: usize,
    /// Mentions whose weight or names changed.
    pub changed: usize,
    /// Mentions that are no longer valid and were ended.
    pub removed: usize,
    /// Pairs left unchanged because a relationship with another derivation connects them.
    pub stated_otherwise: usize,
    /// The transaction; null if nothing changed.
    pub tx: Option<Tx>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Op for LinkMentions {
    const META: Meta = Meta {
        name: "link_mentions",
        long: true,
        shown: ResponseView::Summary,
        answer: &["mentions", "added", "changed", "removed", "objects", "stated_otherwise", "tx"],
        summary: "State which objects mention which others by title",
        description: "Looks for the titles of objects in the texts of others and states MENTIONS relationships, which \
                      search follows from passage to passage. A title counts where it begins with a capital or a digit, \
                      without a remark in brackets and without its article; one that more than 8 objects have names none \
                      of them. The rarer a title is mentioned, the more its mentions weigh. Run it again after texts \
                      have changed: only the difference is written.",
        verb: "link-mentions",
        toolset: "search",
        examples: &["lukasa link-mentions", "lukasa link-mentions --types Article --types Person"],
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        check_range("types", request.types.len(), 0, 64)?;
        let look = engine.view_graph(context, &request.target.view())?;
        let corpus = Corpus::choose(&look, &request.types)?;
        let found = corpus.mentions(context.progress)?;
        let mentions = found.weighed();
        let namespace = look.ledger.head()?.namespace;
        let difference = corpus.difference(&mentions, namespace)?;
        let header = context.header(request.target.reason.clone().or_else(|| Some("link mentions of titles".into())));
        let (added, changed, removed) = (difference.added, difference.changed, difference.removed);
        let committed = write(&look, request.target.branch(), header, difference.writes)?;
        let (held, objects) = (mentions.len() - difference.stated_otherwise, corpus.nodes.len());
        let mut summary = format!("{} among {}", count(held, "mention"), count(objects, "object"));
        summary += &match committed.tx {
            Some(tx) => format!(": {added} added, {changed} changed, {removed} removed (transaction {tx})"),
            None => ": nothing new, no transaction".into(),
        };
        Ok(Response {
            summary,
            objects,
            mentions: held,
            added,
            changed,
            removed,
            stated_otherwise: difference.stated_otherwise,
            tx: committed.tx,
            warnings: committed.warnings,
        })
    }
}

/// The objects that mention and are mentioned.
struct Corpus<'a> {
    look: &'a ViewGraph,
    /// In the order in which they were first recorded.
    nodes: Vec<Node>,
}

impl<'a> Corpus<'a> {
    fn choose(look: &'a ViewGraph, types: &[String]) -> Result<Corpus<'a>> {
        let s = &look.snapshot;
        let symbols = Symbols::new(look);
        let filter = look.filter(&[], types, &[])?;
        let is_text =
            |node: Node| symbols.kind(node).is_none() && !s.type_name(node).eq_ignore_ascii_case(type_names::COMMIT);
        let wanted = |node: &Node| if types.is_empty() { is_text(*node) } else { filter.node(s, *node) };
        Ok(Corpus { look, nodes: s.nodes().into_iter().filter(wanted).collect() })
    }

    /// Maps the content of every object to a small value, in the order of the objects.
    fn each<T: Send>(
        &self,
        progress: &mut dyn FnMut(u64, Option<u64>),
        done: usize,
        of: impl Fn(&Content) -> T + Sync,
    ) -> Result<Vec<T>> {
        let s = &self.look.snapshot;
        let mut all = Vec::with_capacity(self.nodes.len());
        for nodes in self.nodes.chunks(AT_ONCE * 8) {
            progress((done + all.len()) as u64, Some(2 * self.nodes.len() as u64));
            let read = nodes.par_chunks(AT_ONCE).map(|nodes| {
                let numbers: Vec<FactNo> = nodes.iter().map(|node| s.thing(*node)).collect();
                let states = self.look.ledger.states(&self.look.view, &numbers, VersionFields::Content)?;
                let content = |statement: Option<lukasa_model::Version>| match statement {
                    Some(statement) => statement.parsed(),
                    None => Ok(Content::default()),
                };
                states.into_iter().map(|state| Ok(of(&content(state.statement)?))).collect::<Result<Vec<T>>>()
            });
            for part in read.collect::<Vec<Result<Vec<T>>>>() {
                all.extend(part?);
            }
        }
        Ok(all)
    }

    /// The titles that each object mentions, without its own. Everything is read twice rather than kept, because the texts of a
    /// large corpus are larger than the mentions in them.
    fn mentions(&self, progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<TitleMentions> {
        let open = |content: &Content| title(content).filter(|_| !is_sensitive(content));
        let own = self.each(progress, 0, |content| open(content).map(|t| titles::keys(&t)).unwrap_or_default())?;
        let mut having: FxHashMap<String, Vec<u32>> = FxHashMap::default();
        for (at, keys) in own.iter().enumerate() {
            keys.iter().for_each(|key| having.entry(key.clone()).or_default().push(to_u32(at)));
        }
        having.retain(|_, objects| objects.len() <= RECALL.ambiguous);
        let mentioned = self.each(progress, self.nodes.len(), |content| {
            let own: FxHashSet<String> =
                title(content).map(|t| titles::keys(&t)).unwrap_or_default().into_iter().collect();
            let mut found = BTreeSet::new();
            if is_sensitive(content) {
                return found;
            }
            property_texts(content, &mut |text| {
                found.extend(titles::mentions(text, false, |key| having.contains_key(key)))
            });
            found.retain(|key| !own.contains(key));
            found
        })?;
        Ok(TitleMentions { having, mentioned })
    }

    /// Returns the writes after which these mentions are recorded, and no other mentions of this derivation among the objects.
    fn difference(&self, mentions: &[Mention], namespace: Uuid) -> Result<Difference> {
        let s = &self.look.snapshot;
        let chosen: FxHashSet<Node> = self.nodes.iter().copied().collect();
        let mut there: FxHashMap<Uuid, Edge> = FxHashMap::default();
        for node in &self.nodes {
            let out = s
                .outgoing(*node)
                .iter()
                .filter(|(to, edge, _)| chosen.contains(to) && s.edge_type(*edge).eq_ignore_ascii_case(MENTIONS));
            there.extend(out.map(|(_, edge, _)| (s.edge_id(edge), edge)));
        }
        let ours = |edge: Edge| s.derivation(edge).is_some_and(|derivation| &**derivation == DERIVATION);
        let things: Vec<FactNo> = there.values().filter(|e| ours(**e)).map(|e| s.edge_thing(*e)).collect();
        let contents = self.look.contents(&things)?;
        let mut difference = Difference::default();
        let mut kept: FxHashSet<Uuid> = FxHashSet::default();
        for mention in mentions {
            let (src, dst) = (self.id(mention.from), self.id(mention.to));
            let id = relationship_id(namespace, MENTIONS, src, dst, "");
            kept.insert(id);
            let put = || PutRelationship::new(MENTIONS, src, dst).with_content(mention.content());
            match there.get(&id) {
                Some(edge) if !ours(*edge) => difference.stated_otherwise += 1,
                Some(edge) if contents.get(&s.edge_thing(*edge)) == Some(&mention.content()) => {}
                Some(_) => {
                    difference.changed += 1;
                    difference.writes.push(put().into());
                }
                None => {
                    difference.added += 1;
                    difference.writes.push(put().into());
                }
            }
        }
        let mut gone: Vec<Edge> =
            there.iter().filter(|(id, edge)| ours(**edge) && !kept.contains(id)).map(|(_, edge)| *edge).collect();
        gone.sort_unstable_by_key(|edge| s.edge_thing(*edge));
        difference.removed = gone.len();
        difference.writes.extend(gone.into_iter().map(|edge| Write::End(End::new(s.edge_id(edge)))));
        Ok(difference)
    }

    fn id(&self, at: u32) -> Uuid {
        self.look.snapshot.id(self.nodes[at as usize])
    }
}

/// Titles and the objects that mention them; objects are numbered by their place in the corpus.
struct TitleMentions {
    /// The objects that each title refers to.
    having: FxHashMap<String, Vec<u32>>,
    /// The titles that each object mentions.
    mentioned: Vec<BTreeSet<String>>,
}

/// A mention of one object by another.
#[derive(Debug, PartialEq)]
struct Mention {
    from: u32,
    to: u32,
    weight: f64,
    confidence: f64,
    names: Vec<String>,
}

impl Mention {
    fn content(&self) -> Content {
        Content {
            properties: [("names".to_string(), json!(self.names))].into_iter().collect(),
            weight: Some(self.weight),
            confidence: Some(self.confidence),
            derivation: Some(DERIVATION.into()),
            ..Content::default()
        }
    }
}

impl TitleMentions {
    /// Returns every pair once. All mentions of a title together weigh as much as those of any other title. If several objects
    /// have a title, the confidence is the probability that this one is meant.
    fn weighed(&self) -> Vec<Mention> {
        let mut mentioning: FxHashMap<&str, usize> = FxHashMap::default();
        for key in self.mentioned.iter().flatten() {
            *mentioning.entry(key).or_default() += 1;
        }
        let mut all: Vec<Mention> = Vec::new();
        for (from, keys) in (0..).zip(&self.mentioned) {
            let mut of_one: FxHashMap<u32, Mention> = FxHashMap::default();
            for key in keys {
                let objects = &self.having[key];
                for to in objects.iter().filter(|to| **to != from) {
                    let mention = of_one.entry(*to).or_insert_with(|| Mention {
                        from,
                        to: *to,
                        weight: 0.0,
                        confidence: 0.0,
                        names: vec![],
                    });
                    mention.weight += 1.0 / (mentioning[key.as_str()] * objects.len()) as f64;
                    mention.confidence = mention.confidence.max(1.0 / objects.len() as f64);
                    mention.names.push(key.clone());
                }
            }
            let mut of_one: Vec<Mention> = of_one.into_values().collect();
            of_one.sort_unstable_by_key(|mention| mention.to);
            all.extend(of_one);
        }
        all
    }
}

#[derive(Default)]
struct Difference {
    writes: Vec<Write>,
    added: usize,
    changed: usize,
    removed: usize,
    stated_otherwise: usize,
}

/// Writes everything as one transaction, or nothing.
fn write(look: &ViewGraph, branch: &str, header: Header, writes: Vec<Write>) -> Result<Committed> {
    if writes.len() <= FEW_WRITES {
        return look.ledger.commit(&Batch { header, writes, ..Batch::on(branch) });
    }
    let mut left = writes.into_iter();
    let parts = std::iter::from_fn(|| {
        let part: Vec<Write> = left.by_ref().take(FEW_WRITES).collect();
        (!part.is_empty()).then_some(Ok(part))
    });
    look.ledger.load(branch, &header, parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_titles_weigh_more_and_shared_ones_are_less_sure() {
        let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_string()).collect::<BTreeSet<_>>();
        let having = [("paris", vec![1, 2]), ("rome", vec![3]), ("city of rome", vec![3])];
        let found = TitleMentions {
            having: having.into_iter().map(|(key, of)| (key.to_string(), of)).collect(),
            mentioned: vec![keys(&["paris", "rome"]), keys(&["rome", "city of rome"]), keys(&[]), keys(&[])],
        };
        let all = found.weighed();
        let found: Vec<(u32, u32, f64, f64, &[String])> =
            all.iter().map(|m| (m.from, m.to, m.weight, m.confidence, &m.names[..])).collect();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect::<Vec<_>>();
        assert_eq!(
            found,
            [
                (0, 1, 0.5, 0.5, &names(&["paris"])[..]),
                (0, 2, 0.5, 0.5, &names(&["paris"])[..]),
                (0, 3, 0.5, 1.0, &names(&["rome"])[..]),
                (1, 3, 1.5, 1.0, &names(&["city of rome", "rome"])[..]),
            ]
        );
    }
}
