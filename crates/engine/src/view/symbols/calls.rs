//! Follows calls from symbol to symbol, including overridden methods.

use super::{LinkDirection, LocatedSymbol, SymbolContents, SymbolKind, SymbolRelation, Symbols, keys, number, text};
use crate::ranges::check_range;
use crate::responses::count;
use lukasa_graph::contents::{ObjectContent, known};
use lukasa_graph::{Edge, Node};
use lukasa_model::{Content, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Ordering;
use std::sync::Arc;

/// Maximum number of symbols reached by a walk along calls.
const MOST: usize = 50_000;
/// Maximum number of base classes above one another.
const BASES: usize = 16;
/// Maximum number of symbols whose unresolved calls are counted; more take too long.
const ASKED: usize = 1_000;

/// How far calls are followed.
pub struct CallWalk {
    /// `In` follows calls to the callers.
    pub way: LinkDirection,
    pub depth: u32,
    pub min_confidence: f64,
    pub include_tests: bool,
}

/// A symbol reached along calls.
#[derive(Clone, Copy, Debug)]
pub struct ReachedSymbol {
    pub node: Node,
    pub depth: u32,
    /// The symbol before it on the path.
    pub via: Node,
    /// The call between the two.
    pub edge: Edge,
}

/// The symbol at the other end of a call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CallOut {
    #[serde(flatten)]
    pub symbol: LocatedSymbol,
    /// Lines of the call sites, in the caller's file; the first 20.
    pub call_lines: Vec<u64>,
    /// Number of call sites, if not all lines are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Number of calls between it and the requested symbol.
    pub depth: u32,
    /// The symbol at this end of the call, if it is not the requested one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Confidence of this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// How the call is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derivation: Option<String>,
    /// Whether it is a test or part of one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub test: bool,
}

/// Calls that may run another method of the same name, above or below in a type hierarchy.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ThroughOut {
    /// The method that is declared and called.
    pub declared: LocatedSymbol,
    /// Its callers, or the methods that may run in its place.
    pub symbols: Vec<CallOut>,
    /// Total number of them.
    pub total: usize,
}

/// Unresolved calls in the files around a symbol: callers may be missing.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct UnresolvedOut {
    /// Unresolved calls.
    pub calls: u64,
    /// Number of files: the symbol's and those that import it.
    pub files: usize,
}

/// Unresolved calls anywhere with the symbol's name: some may be calls of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NamesakesOut {
    /// Lines with such calls.
    pub calls: usize,
    /// Number of files with such calls.
    pub files: usize,
    /// Call sites as `path:line`; the first 10.
    pub sites: Vec<String>,
}

impl NamesakesOut {
    /// A clause for the symbol of this name.
    pub fn words(&self, name: &str) -> String {
        let (calls, files) = (count(self.calls, "call"), count(self.files, "file"));
        format!("{calls} of a `{name}` in {files} could not be resolved and may be calls of it")
    }
}

/// Maximum number of unresolved call sites listed.
const SITES: usize = 10;

/// Returns an error if a confidence is outside 0 to 1.
pub fn check_confidence(value: f64) -> Result<()> {
    check_range("min_confidence", value, 0.0, 1.0)
}

impl Symbols<'_> {
    /// Every symbol reached along calls from `roots`, nearest first, then by confidence, then by key. Each symbol is
    /// reached once. Also returns whether that is everything.
    pub fn reach(&self, roots: &[Node], how: &CallWalk) -> (Vec<ReachedSymbol>, bool) {
        self.reach_beside(roots, roots, how)
    }

    /// Like `reach`, but only roots in `own` are never listed: a function that is written within another one and called
    /// there is one of its callees.
    pub fn reach_beside(&self, roots: &[Node], own: &[Node], how: &CallWalk) -> (Vec<ReachedSymbol>, bool) {
        let mut seen: FxHashSet<Node> = own.iter().copied().collect();
        let mut all: Vec<ReachedSymbol> = Vec::new();
        let mut frontier: Vec<Node> = roots.to_vec();
        for depth in 1..=how.depth {
            let mut level: FxHashMap<Node, ReachedSymbol> = FxHashMap::default();
            for via in &frontier {
                for (node, edge) in self.linked(*via, SymbolRelation::Calls, how.way) {
                    if node == *via || seen.contains(&node) || self.confidence(edge) < how.min_confidence {
                        continue;
                    }
                    let found = ReachedSymbol { node, depth, via: *via, edge };
                    let best = level.entry(node).or_insert(found);
                    if self.order(&found, best) == Ordering::Less {
                        *best = found;
                    }
                }
            }
            let mut level: Vec<ReachedSymbol> = level.into_values().collect();
            level.retain(|r| how.include_tests || !self.is_test(r.node));
            level.sort_by(|a, b| self.order(a, b));
            seen.extend(level.iter().map(|r| r.node));
            frontier = level.iter().map(|r| r.node).collect();
            all.extend(level);
            if all.len() > MOST {
                all.truncate(MOST);
                return (all, false);
            }
        }
        (all, true)
    }

    /// Highest confidence first, then by key.
    fn order(&self, a: &ReachedSymbol, b: &ReachedSymbol) -> Ordering {
        let sure = self.confidence(b.edge).total_cmp(&self.confidence(a.edge));
        sure.then_with(|| self.key(a.node).cmp(&self.key(b.node)))
            .then_with(|| self.key(a.via).cmp(&self.key(b.via)))
            .then_with(|| self.look.snapshot.edge_thing(a.edge).cmp(&self.look.snapshot.edge_thing(b.edge)))
    }

    /// The symbols that stand for a class: itself and its constructors, because creating an instance calls one.
    pub fn with_constructors(&self, node: Node) -> Result<Vec<Node>> {
        if !self.is(node, SymbolKind::Class) {
            return Ok(vec![node]);
        }
        let methods: Vec<Node> = self.members(node).into_iter().filter(|m| self.is(*m, SymbolKind::Method)).collect();
        let contents = self.contents(&methods)?;
        let made = |m: &Node| contents.get(m).is_some_and(|c| c.subtype.as_deref() == Some("constructor"));
        Ok(std::iter::once(node).chain(methods.into_iter().filter(made)).collect())
    }

    /// Methods of the same name in classes and interfaces above (`Out`) or below (`In`) the class of this method, in
    /// the order of the walk.
    pub fn same_method(&self, method: Node, way: LinkDirection) -> Vec<Node> {
        let s = &self.look.snapshot;
        let (Some(key), Some(class)) =
            (s.key(method).filter(|_| self.is(method, SymbolKind::Method)), self.container(method))
        else {
            return vec![];
        };
        let wanted = keys::name(key);
        let (mut found, mut seen) = (Vec::new(), FxHashSet::from_iter([class]));
        let mut frontier = vec![class];
        for _ in 0..BASES {
            let mut next = Vec::new();
            for class in frontier {
                for rel in [SymbolRelation::Implements, SymbolRelation::Extends] {
                    let others = self.linked(class, rel, way).map(|(other, _)| other);
                    next.extend(others.filter(|other| seen.insert(*other)));
                }
            }
            for class in &next {
                let same =
                    |m: &Node| self.is(*m, SymbolKind::Method) && s.key(*m).is_some_and(|k| keys::name(k) == wanted);
                found.extend(self.members(*class).into_iter().filter(same));
            }
            frontier = next;
        }
        found
    }

    /// Calls as responses list them; all contents are read at once.
    pub fn calls_out(&self, calls: &[ReachedSymbol], roots: &[Node]) -> Result<Vec<CallOut>> {
        let s = &self.look.snapshot;
        let nodes: Vec<Node> = calls.iter().map(|c| c.node).collect();
        let contents = self.contents(&nodes)?;
        let edges: Vec<_> = calls.iter().map(|c| s.edge_thing(c.edge)).collect();
        let sites = self.look.contents(&edges)?;
        let asked = roots.first().copied();
        let row = |call: &ReachedSymbol| {
            let (call_lines, calls) = sites.get(&s.edge_thing(call.edge)).map(lines).unwrap_or_default();
            CallOut {
                symbol: self.placed(call.node, &contents),
                call_lines,
                calls,
                depth: call.depth,
                via: (Some(call.via) != asked).then(|| self.key(call.via).into_owned()),
                confidence: s.confidence(call.edge),
                derivation: s.derivation(call.edge).map(|d| d.to_string()),
                test: self.is_test(call.node),
            }
        };
        Ok(calls.iter().map(row).collect())
    }

    /// Unresolved calls in the symbol's file and in files that import it. None if there are too many symbols to count
    /// them.
    pub fn unresolved_around(&self, node: Node) -> Result<Option<UnresolvedOut>> {
        let Some(file) = self.file(node) else { return Ok(None) };
        let importers = self.linked(file, SymbolRelation::Imports, LinkDirection::In).map(|(importer, _)| importer);
        let files: FxHashSet<Node> = std::iter::once(file).chain(importers).collect();
        let mut all = Vec::new();
        for file in files {
            let (whole, complete) = self.whole(file, ASKED);
            all.extend(whole);
            if !complete || all.len() > ASKED {
                return Ok(None);
            }
        }
        let contents = self.contents(&all)?;
        let mut unresolved = UnresolvedOut { calls: 0, files: 0 };
        let mut in_files: FxHashSet<String> = FxHashSet::default();
        for (node, content) in &contents {
            if let Some(calls) = number(content, "unresolved_calls").filter(|n| *n > 0) {
                unresolved.calls += calls;
                in_files.insert(text(content, "path").unwrap_or_else(|| keys::path(&self.key(*node)).to_string()));
            }
        }
        unresolved.files = in_files.len();
        Ok((unresolved.calls > 0).then_some(unresolved))
    }

    /// Unresolved calls with the symbol's name in files of the same language.
    pub fn unresolved_namesakes(&self, node: Node) -> Result<Option<NamesakesOut>> {
        let key = self.key(node);
        let (name, language) = (keys::name(&key), family(keys::path(&key)));
        if !self.kind(node).is_some_and(|kind| kind.runs() || kind == SymbolKind::Class) {
            return Ok(None);
        }
        let mut files: Vec<Node> = self.look.snapshot.nodes();
        files.retain(|file| self.is(*file, SymbolKind::File) && family(&self.key(*file)) == language);
        files.sort_by_cached_key(|file| self.key(*file).into_owned());
        // Every query for callers needs all files, so their contents are cached with the graph.
        let known = known(&self.look.snapshot, &self.look.ledger, &files)?;
        let known: FxHashMap<Node, Arc<ObjectContent>> = known.into_iter().collect();
        let mut found = NamesakesOut { calls: 0, files: 0, sites: vec![] };
        for file in files {
            let Some(known) = known.get(&file) else { continue };
            let lines: Vec<&str> =
                unresolved_sites(&known.content).filter(|(called, _)| *called == name).map(|(_, line)| line).collect();
            found.files += usize::from(!lines.is_empty());
            found.calls += lines.len();
            let left = SITES.saturating_sub(found.sites.len());
            found.sites.extend(lines.iter().take(left).map(|line| format!("{}:{line}", self.key(file))));
        }
        Ok((found.calls > 0).then_some(found))
    }

    /// What a reader has to know who is shown no caller of a symbol: unresolved calls of its name or, if there are none,
    /// what the index cannot contain.
    pub fn why_callers_may_be_missing(&self, node: Node) -> Result<String> {
        Ok(match self.unresolved_namesakes(node)? {
            Some(namesakes) => namesakes.words(keys::name(&self.key(node))),
            None => "calls by reflection, from macros, frameworks or other repositories are not seen".into(),
        })
    }

    /// The numbers of functions, files and other symbols, for a sentence: `2 functions and 1 file`.
    pub fn who(&self, nodes: impl Iterator<Item = Node>) -> String {
        let mut counts = [0usize; 3];
        for node in nodes {
            counts[match self.kind(node) {
                Some(kind) if kind.runs() => 0,
                Some(SymbolKind::File) => 1,
                _ => 2,
            }] += 1;
        }
        let words = ["function", "file", "symbol"];
        let parts: Vec<String> = counts
            .iter()
            .zip(words)
            .filter(|(n, _)| **n > 0)
            .map(|(n, word)| if *n == 1 { format!("1 {word}") } else { format!("{n} {word}s") })
            .collect();
        match &parts[..] {
            [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => parts.concat(),
        }
    }
}

/// Names and lines of the unresolved calls in a file.
pub fn unresolved_sites(file: &Content) -> impl Iterator<Item = (&str, &str)> {
    let listed = file.properties.get("unresolved_sites").and_then(serde_json::Value::as_array);
    listed.into_iter().flatten().filter_map(|site| site.as_str()?.rsplit_once(':'))
}

fn family(path: &str) -> Option<lukasa_code::LanguageId> {
    lukasa_code::LanguageId::of(path, "").map(lukasa_code::LanguageId::family)
}

/// Lines of the call sites of an edge, and the number of call sites if not all lines are listed.
pub fn lines(content: &Content) -> (Vec<u64>, Option<u64>) {
    let listed = content.properties.get("lines").and_then(serde_json::Value::as_array);
    let mut lines: Vec<u64> = listed.into_iter().flatten().filter_map(serde_json::Value::as_u64).collect();
    if lines.is_empty() {
        lines.extend(number(content, "line"));
    }
    let calls = number(content, "calls").filter(|calls| *calls > lines.len() as u64);
    (lines, calls)
}

/// The calls of a declared method that are listed separately, up to `limit`.
pub fn through(symbols: &Symbols<'_>, declared: Node, calls: &[ReachedSymbol], limit: usize) -> Result<ThroughOut> {
    let contents: SymbolContents = symbols.contents(&[declared])?;
    Ok(ThroughOut {
        declared: symbols.placed(declared, &contents),
        symbols: symbols.calls_out(&calls[..calls.len().min(limit)], &[declared])?,
        total: calls.len(),
    })
}
