//! The code that a task concerns: entry point, symbols, files and their dependencies.

use crate::features::code::sources::{Sources, lines};
use crate::features::search::{RankedCandidates, TextIndexes};
use crate::hex::unhex;
use crate::response_budget::shortened;
use crate::view::NodeContents;
use crate::view::ViewGraph;
use crate::view::symbols::{LinkDirection, SymbolKind, SymbolRelation, Symbols, about, flagged, keys, number, text};
use lukasa_graph::rank::largest;
use lukasa_graph::{Edge, Node};
use lukasa_model::{Content, Result};
use lukasa_search::pipeline::fuse::{Candidate, sort};
use lukasa_search::pipeline::{pack, rerank, spread};
use lukasa_search::recipes::{ANY_FIELD, PACK};
use lukasa_search::text::Term;
use lukasa_search::{cite, tokens};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum number of bytes of a document that are read.
const DOCUMENT: usize = 64 << 10;
/// Maximum length of the sentence taken from a document, in characters.
const SENTENCE: usize = 200;

/// Weight of a relationship type for a task.
fn relationship_weight(rel: SymbolRelation) -> f64 {
    match rel {
        SymbolRelation::Calls => PACK.calls,
        SymbolRelation::Extends | SymbolRelation::Implements => PACK.inherits,
        _ => PACK.other,
    }
}

/// A symbol with its source.
#[derive(Clone, Debug)]
pub struct CodeSlice {
    pub node: Node,
    pub key: String,
    pub file: String,
    pub name: String,
    pub kind: String,
    pub start_line: u64,
    pub end_line: u64,
    /// Its source lines; `None` if the source is not available.
    pub code: Option<String>,
    /// Parts of its lines that fit the task best, the longest first; none if it is short.
    pub windows: Vec<CodeWindow>,
    /// Why it is in the pack, in a few words.
    pub why: String,
    pub signature: Option<String>,
    pub summary: Option<String>,
    pub score: f64,
    pub reasons: Vec<(&'static str, f64)>,
    pub ppr_score: f64,
    pub callers: Vec<String>,
    pub callees: Vec<String>,
    pub valid_from: Option<String>,
}

impl CodeSlice {
    fn shows_something(&self) -> bool {
        self.code.is_some() || self.signature.is_some() || self.summary.is_some()
    }
}

/// Consecutive lines of a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeWindow {
    /// The first line in the file.
    pub start_line: u64,
    pub code: String,
}

/// Why an implementation of an interface is in a pack.
pub const IMPLEMENTS: &str = "implements the one above";
/// Maximum number of words of the task that explain why a symbol is in the pack.
const WHY_WORDS: usize = 3;

/// Returns the parts of these lines that contain most of the task, by the weight of its words; each is shorter than the
/// whole.
fn windows(code: &str, start_line: u64, terms: &[(String, f32)]) -> Vec<CodeWindow> {
    let lines: Vec<&str> = code.lines().collect();
    let weights: FxHashMap<&str, f32> = terms.iter().map(|(word, weight)| (word.as_str(), *weight)).collect();
    // Of each line, the words of the task.
    let words: Vec<Vec<String>> = lines
        .iter()
        .map(|line| tokens::list(line).into_iter().filter(|word| weights.contains_key(word.as_str())).collect())
        .collect();
    let worth = |words: &[Vec<String>]| {
        let mut seen: FxHashSet<&str> = FxHashSet::default();
        let each = words.iter().flatten().map(|word| {
            let weight = weights.get(word.as_str()).copied().unwrap_or(0.0);
            if seen.insert(word) { weight } else { weight * PACK.repeated }
        });
        each.sum::<f32>()
    };
    let mut found: Vec<CodeWindow> = Vec::new();
    for length in PACK.windows.into_iter().filter(|length| *length < lines.len()) {
        let mut best = (worth(&words[..length]), 0);
        for first in 1..=lines.len() - length {
            // Classes have thousands of lines, most of them without a word of the task.
            let is_same = words[first - 1].is_empty() && words[first + length - 1].is_empty();
            // The beginning, with the signature, unless another part is better.
            let worth = if is_same { 0.0 } else { worth(&words[first..first + length]) };
            if worth > best.0 {
                best = (worth, first);
            }
        }
        let (_, first) = best;
        let code = lines[first..first + length].join("\n").trim_end().to_owned();
        found.push(CodeWindow { start_line: start_line + first as u64, code });
    }
    found
}

/// Returns the sentence of a document that fits the task best, otherwise its first sentence.
fn sentence(text: &str, terms: &[Term]) -> Option<String> {
    let text = &text[..text.floor_char_boundary(DOCUMENT)];
    let cited = cite::best(text, terms).map(|citation| citation.span);
    let sentence = cited.or_else(|| lukasa_code::summary::first_sentence(text))?;
    Some(shortened(&sentence, SENTENCE).unwrap_or(sentence))
}

/// A relationship between a returned symbol and another one.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Dependency {
    pub from: String,
    /// CALLS, IMPORTS, EXTENDS, ….
    #[serde(rename = "type")]
    pub relation: String,
    pub to: String,
}

/// The source code found for a task.
#[derive(Default)]
pub struct PackCode {
    /// Keys of files, best first.
    pub files: Vec<String>,
    pub slices: Vec<CodeSlice>,
    pub dependencies: Vec<Dependency>,
    /// Nodes of the slices and files.
    pub nodes: Vec<Node>,
    /// The entry point and the containers it is in.
    pub near: Vec<Node>,
    /// Files whose source is not available or has changed since it was indexed.
    pub stale: Vec<String>,
    pub ppr: Vec<(String, f64)>,
}

/// Collects code for a task, best first; `breadth` multiplies the number of candidates.
pub fn gather(
    look: &ViewGraph,
    texts: &TextIndexes,
    sources: &Sources,
    found: &RankedCandidates,
    task: &str,
    breadth: usize,
) -> Result<PackCode> {
    let gathering = CodeCollector { look, texts, sources, found, symbols: Symbols::new(look), breadth };
    let about_tests = tokens::list(task).iter().any(|word| word == "test");
    let files = gathering.without_tests(&gathering.own(&found.files), about_tests);
    let mut units = gathering.own(&found.candidates);
    units.truncate(PACK.symbols * breadth);
    gathering.add_implementations(&mut units)?;
    let seeds: Vec<(Node, f64)> = units.iter().take(PACK.seeds).map(|c| (c.node, c.score().max(0.0))).collect();
    let ranks = walked(look, &seeds);
    let nodes: Vec<Node> = units.iter().map(|c| c.node).chain(files.iter().take(PACK.files).map(|c| c.node)).collect();
    let mut with_files = nodes.clone();
    with_files.extend(nodes.iter().filter_map(|node| gathering.texts.file(*node)));
    let read = NodeContents::of(look, &with_files)?;
    let mut core = PackCode { nodes, ..PackCode::default() };
    core.files = files.iter().take(PACK.files).map(|c| gathering.symbols.key(c.node).into_owned()).collect();
    let mut texts = FxHashMap::default();
    for candidate in &units {
        let Some(content) = read.content(candidate.node) else { continue };
        let slice = gathering.slice(candidate, content, &read, &ranks, &mut texts);
        // Files without source lines are listed by name.
        if slice.shows_something() {
            core.slices.push(slice);
        }
    }
    if let Some(entry) = core.slices.first().map(|slice| slice.node) {
        core.near = std::iter::once(entry).chain(gathering.symbols.above(entry)).collect();
        core.near.extend(gathering.texts.file(entry).filter(|file| !core.near.contains(file)));
        let more: Vec<Node> = core.near.iter().copied().filter(|node| !core.nodes.contains(node)).collect();
        core.nodes.extend(more);
    }
    core.stale = texts.iter().filter(|(_, text)| text.is_none()).map(|(path, _)| path.clone()).collect();
    core.stale.sort();
    core.dependencies = gathering.dependencies(&units, &ranks);
    let largest = largest(&look.snapshot, &ranks, PACK.symbols);
    core.ppr = largest.into_iter().map(|(node, rank)| (look.snapshot.name(node), rank)).collect();
    Ok(core)
}

/// Personalized PageRank: the share of a random walk that restarts at the seeds, per node.
pub fn walked(look: &ViewGraph, seeds: &[(Node, f64)]) -> FxHashMap<Node, f64> {
    spread::around(&look.snapshot, &look.registry, seeds, &PACK)
}

struct CodeCollector<'a> {
    look: &'a ViewGraph,
    texts: &'a TextIndexes,
    sources: &'a Sources,
    found: &'a RankedCandidates,
    symbols: Symbols<'a>,
    breadth: usize,
}

impl CodeCollector<'_> {
    /// Without symbols that are known by name only.
    fn own(&self, all: &[Candidate]) -> Vec<Candidate> {
        let own = |c: &&Candidate| self.symbols.kind(c.node).is_some_and(|kind| !kind.outside());
        all.iter().filter(own).cloned().collect()
    }

    /// Files of tests count half if the task does not mention tests.
    fn without_tests(&self, all: &[Candidate], about_tests: bool) -> Vec<Candidate> {
        let mut all = all.to_vec();
        if !about_tests {
            rerank::multiply(&mut all, "is_test", PACK.test, |node| self.symbols.is_test(node));
            sort(&mut all, |node| self.look.snapshot.thing(node).0);
        }
        all
    }

    /// Adds the implementations of an interface or abstract class.
    fn add_implementations(&self, units: &mut Vec<Candidate>) -> Result<()> {
        let heads: Vec<Node> = units.iter().take(PACK.seeds).map(|c| c.node).collect();
        let read = NodeContents::of(self.look, &heads)?;
        let mut there: FxHashSet<Node> = units.iter().map(|c| c.node).collect();
        for node in heads {
            let is_abstract = read.content(node).is_some_and(|content| flagged(content, "abstract"));
            if !self.symbols.is(node, SymbolKind::Interface) && !is_abstract {
                continue;
            }
            let mut by: Vec<Node> = [SymbolRelation::Implements, SymbolRelation::Extends]
                .into_iter()
                .flat_map(|rel| {
                    self.symbols.linked(node, rel, LinkDirection::In).map(|(node, _)| node).collect::<Vec<_>>()
                })
                .filter(|node| there.insert(*node))
                .collect();
            by.sort_by_key(|node| self.look.snapshot.thing(*node));
            let Some(at) = units.iter().position(|c| c.node == node) else { continue };
            let score = units[at].score();
            for (place, node) in by.into_iter().take(PACK.implementations).enumerate() {
                let mut candidate = Candidate::new(node);
                candidate.add("implements", score * PACK.implements);
                units.insert(at + 1 + place, candidate);
            }
        }
        Ok(())
    }

    fn slice(
        &self,
        candidate: &Candidate,
        content: &Content,
        read: &NodeContents,
        ranks: &FxHashMap<Node, f64>,
        texts: &mut FxHashMap<String, Option<String>>,
    ) -> CodeSlice {
        let node = candidate.node;
        let key = self.symbols.key(node).into_owned();
        let path = keys::path(&key).to_owned();
        let source = texts.entry(path.clone()).or_insert_with(|| {
            let file = self.texts.file(node)?;
            let id = unhex(&text(read.content(file)?, "content_hash")?)?;
            self.sources.text(self.look.ledger.scope(), &path, &id)
        });
        let span = number(content, "line").zip(number(content, "end_line"));
        let code = match (source.as_ref(), span) {
            (Some(source), Some((first, last))) => Some(lines(source, first, last).trim_end().to_owned()),
            _ => None,
        };
        let code = code.filter(|code| !code.is_empty());
        let signature = text(content, "signature").filter(|signature| !signature.is_empty());
        let signature = signature.or_else(|| Some(code.as_deref()?.lines().next()?.trim().to_owned()));
        let summary = about(content, signature.as_deref(), &key);
        let weighed = self.weighed(node);
        let windows = match (&code, span) {
            (Some(code), Some((first, _))) => windows(code, first, &weighed),
            _ => vec![],
        };
        // A document is represented by the sentence that fits the task.
        let summary = summary.or_else(|| match (source.as_ref(), span) {
            (Some(source), None) => sentence(source, &self.found.terms),
            _ => None,
        });
        let end = number(content, "lines").or_else(|| Some(source.as_ref()?.lines().count() as u64));
        let names = |way| {
            let linked = self.symbols.linked(node, SymbolRelation::Calls, way);
            let mut all: Vec<(bool, f64, Node)> = linked
                .map(|(other, _)| (self.symbols.is_test(other), ranks.get(&other).copied().unwrap_or(0.0), other))
                .collect();
            // Production code first.
            all.sort_by(|a, b| {
                let thing = |node: Node| self.look.snapshot.thing(node);
                a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then_with(|| thing(a.2).cmp(&thing(b.2)))
            });
            all.iter().take(PACK.linked).map(|(_, _, node)| self.symbols.key(*node).into_owned()).collect()
        };
        let (start_line, end_line) = span.unwrap_or((1, end.unwrap_or(1)));
        CodeSlice {
            node,
            name: if path == key { keys::name(&key).to_owned() } else { keys::local(&key).to_owned() },
            file: path,
            key,
            kind: self.look.snapshot.type_name(node).to_string(),
            start_line,
            end_line,
            code,
            windows,
            why: self.why(candidate, &weighed),
            signature,
            summary,
            score: candidate.score(),
            reasons: candidate.reasons.iter().map(|r| (r.channel, r.score)).collect(),
            ppr_score: ranks.get(&node).copied().unwrap_or(0.0),
            callers: names(LinkDirection::In),
            callees: names(LinkDirection::Out),
            valid_from: read.stated(node).map(|time| time.to_string()),
        }
    }

    /// The words of the task that a symbol contains, with what they weigh in its score, the heaviest first.
    fn weighed(&self, node: Node) -> Vec<(String, f32)> {
        let mut words = self.texts.units.explain(node, &self.found.terms, &ANY_FIELD);
        words.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        words
    }

    /// Why a candidate was found, in a few words.
    fn why(&self, candidate: &Candidate, words: &[(String, f32)]) -> String {
        let has = |name: &str| candidate.reasons.iter().any(|reason| reason.channel == name && reason.score > 0.0);
        if has("implements") {
            return IMPLEMENTS.into();
        }
        if has("named") {
            return "named in the task".into();
        }
        let mut shown: Vec<&str> = Vec::new();
        for (word, _) in words {
            let spelled = self.found.spelled.get(word).map_or(word.as_str(), String::as_str);
            if !shown.iter().any(|other| other.eq_ignore_ascii_case(spelled)) {
                shown.push(spelled);
            }
            if shown.len() == WHY_WORDS {
                break;
            }
        }
        match (shown.is_empty(), has("calls")) {
            (false, _) => format!("has {}", shown.join(", ")),
            (true, true) => "calls, or is called by, what fits".into(),
            (true, false) => "its file fits".into(),
        }
    }

    /// Returns the relationships of the best nodes, the most central first, each pair once.
    fn dependencies(&self, units: &[Candidate], ranks: &FxHashMap<Node, f64>) -> Vec<Dependency> {
        let s = &self.look.snapshot;
        let mut all: Vec<(f64, Edge)> = Vec::new();
        let mut seen = FxHashSet::default();
        for unit in units.iter().take(PACK.seeds) {
            for rel in
                [SymbolRelation::Calls, SymbolRelation::Extends, SymbolRelation::Implements, SymbolRelation::Imports]
            {
                for way in [LinkDirection::Out, LinkDirection::In] {
                    for (other, edge) in self.symbols.linked(unit.node, rel, way) {
                        let sure = self.symbols.confidence(edge);
                        let outside = self.symbols.kind(other).is_none_or(SymbolKind::outside);
                        if seen.insert(edge) && !outside && other != unit.node {
                            let degree = s.incoming(other).len() + s.outgoing(other).len();
                            let rank = ranks.get(&other).copied().unwrap_or(0.0);
                            all.push((pack::relevance(rank, sure, relationship_weight(rel), degree), edge));
                        }
                    }
                }
            }
        }
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| s.edge_thing(a.1).cmp(&s.edge_thing(b.1))));
        let dependencies = all.into_iter().take(PACK.dependencies * self.breadth).map(|(_, edge)| {
            let (src, dst) = s.ends(edge);
            Dependency {
                from: self.symbols.key(src).into_owned(),
                relation: s.edge_type(edge).to_string(),
                to: self.symbols.key(dst).into_owned(),
            }
        });
        dependencies.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_the_lines_that_fit_the_task() {
        let code: String = (1..=40)
            .map(|n| if n == 30 { "    retry(timeout)\n".to_owned() } else { format!("    step_{n}()\n") })
            .collect();
        let terms = [("timeout".to_owned(), 2.0), ("retry".to_owned(), 1.0)];
        let found = windows(code.trim_end(), 100, &terms);
        assert_eq!(found.iter().map(|window| window.code.lines().count()).collect::<Vec<_>>(), PACK.windows);
        for window in &found {
            assert!(window.code.contains("retry(timeout)"), "{window:?}");
            let at = window.code.lines().position(|line| line.contains("retry")).unwrap();
            assert_eq!(window.start_line + at as u64, 129, "the number of the line in the file");
        }
        let start = windows(code.trim_end(), 100, &[]);
        assert!(start.iter().all(|window| window.start_line == 100), "the beginning if nothing fits");
        assert!(windows("a\nb", 1, &terms).is_empty(), "short code is shown whole");
    }

    #[test]
    fn a_document_is_shown_by_what_it_says_of_the_task() {
        let terms = [Term { word: "timeout".into(), weight: 1.0 }];
        let text = "# Client\n\nA client for HTTP.\n\nThe timeout is thirty seconds.\n";
        assert_eq!(sentence(text, &terms).as_deref(), Some("The timeout is thirty seconds."));
        assert_eq!(sentence(text, &[]).as_deref(), Some("Client"));
        assert_eq!(sentence("", &terms), None);
    }
}
