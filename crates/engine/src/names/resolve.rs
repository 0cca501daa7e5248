//! Resolves one name to one object of a view: by exact names first, then by paths, lines, and parts of names.

use super::origin::RootedPath;
use super::parsed_name::{NameFit, NamePattern, ParsedName};
use crate::view::COMMUNITY;
use crate::view::ViewGraph;
use crate::view::symbols::{NameQuery, SymbolKind, Symbols, keys, number, text};
use lukasa_graph::Node;
use lukasa_model::claims::BOARD;
use lukasa_model::{Error, ErrorCode, Reference, Result};
use lukasa_store::ledger::NamedFact;
use rayon::prelude::*;
use rustc_hash::FxHashSet;
use serde_json::json;
use std::cmp::Reverse;
use strsim::osa_distance;

/// Maximum number of candidates that an error lists for an ambiguous name.
const CANDIDATES: usize = 10;
/// Maximum number of similar names that an error lists for an unknown name.
const OFFERED: usize = 5;
/// Maximum edit distance of the similar names.
const FEW_LETTERS: usize = 2;
/// The type of files of the code index.
const FILE: &str = lukasa_code::type_names::FILE;
/// Minimum number of keys per thread.
const AT_ONCE: usize = 4_096;

/// The object that a name stands for.
#[derive(Clone, Debug)]
pub struct ResolvedNode {
    pub node: Node,
    /// The other overloads of the same function.
    pub overloads: Vec<Node>,
    /// Whether the name is its key, its `Type:key` or its id.
    pub exact: bool,
}

impl ResolvedNode {
    fn one(node: Node, exact: bool) -> ResolvedNode {
        ResolvedNode { node, overloads: vec![], exact }
    }
}

/// Resolves one name in one view.
pub struct NameResolver<'a> {
    look: &'a ViewGraph,
    symbols: Symbols<'a>,
    given: &'a str,
    form: ParsedName<'a>,
}

/// An object whose key fits the name, and how well.
struct Candidate {
    node: Node,
    fit: NameFit,
}

impl<'a> NameResolver<'a> {
    pub fn new(look: &'a ViewGraph, given: &'a str) -> NameResolver<'a> {
        let given = given.trim();
        let form = ParsedName::read(given, |word| is_type(look, word));
        NameResolver { look, symbols: Symbols::new(look), given, form }
    }

    /// Resolves the name among all objects of the view.
    pub fn any(&self) -> Result<ResolvedNode> {
        let reference = Reference::from(self.given);
        let ended = match self.exact(&reference)? {
            NamedFact::Visible(found) => return self.visible(*found).map(|node| ResolvedNode::one(node, true)),
            NamedFact::Ended => true,
            NamedFact::Unknown => false,
        };
        if let Some(found) = self.by_line()? {
            return Ok(found);
        }
        let texts = self.texts()?;
        for text in &texts {
            if let Some(node) = self.keyed(text)? {
                return Ok(ResolvedNode::one(node, false));
            }
        }
        let pattern = texts.last().map_or(self.form.rest, String::as_str);
        match self.fitting(pattern, &|_| true)? {
            Some(found) => Ok(found),
            None => Err(self.unknown(ended)),
        }
    }

    /// Resolves the name among the symbols of a file.
    pub fn within(&self, file: Node) -> Result<ResolvedNode> {
        let s = &self.look.snapshot;
        let path = self.symbols.key(file).into_owned();
        let inside = |node: Node| s.key(node).is_some_and(|key| key != path && keys::path(key) == path);
        if let Some(node) = self.keyed(&format!("{path}::{}", self.form.rest))? {
            return Ok(ResolvedNode::one(node, true));
        }
        if let Some(found) = self.fitting(self.form.rest, &inside)? {
            return Ok(found);
        }
        let error = Error::not_found(ErrorCode::NotFound, format!("no symbol is named `{}` in `{path}`", self.given));
        let near = self.near(&inside);
        Err(match near.is_empty() {
            false => error.hint(format!("closest: {}", near.join(", "))),
            true => error.hint("`lukasa explain` lists what is in a file"),
        })
    }

    fn exact(&self, reference: &Reference) -> Result<NamedFact> {
        self.look.ledger.named(&self.look.view, reference)
    }

    fn visible(&self, found: lukasa_store::ledger::VisibleFact) -> Result<Node> {
        let name = self.given;
        if found.thing.ends.is_some() {
            return Err(Error::invalid(ErrorCode::NotAnObject, format!("`{name}` is a relationship"))
                .hint("name one of its ends"));
        }
        self.look.snapshot.find(found.thing.no).ok_or_else(|| {
            Error::invalid(
                ErrorCode::NotInTheGraph,
                format!("`{name}` is kept by Lukasa itself and is not in the graph"),
            )
        })
    }

    /// The object with this key, of the type in the name if there is one.
    fn keyed(&self, text: &str) -> Result<Option<Node>> {
        let reference = match self.form.type_name {
            Some(type_name) if !type_name.eq_ignore_ascii_case("symbol") => Reference::exact(type_name, text),
            _ => Reference::Text(text.to_owned()),
        };
        match self.exact(&reference)? {
            NamedFact::Visible(found) => self.visible(*found).map(Some),
            NamedFact::Ended | NamedFact::Unknown => Ok(None),
        }
    }

    /// The name without its type, with every path that it may mean. The last one is also searched for by its parts.
    fn texts(&self) -> Result<Vec<String>> {
        let rest = self.form.rest;
        let entity = rest.strip_prefix("domain_entity::").map(|name| format!("entity::{name}"));
        if let Some(entity) = entity {
            return Ok(vec![entity]);
        }
        let Some((path, after)) = self.form.path() else { return Ok(vec![rest.to_owned()]) };
        let whole = |path: &str| format!("{path}{after}");
        match self.look.origin.rooted(path) {
            Ok(RootedPath::Fixed(path)) => Ok(vec![whole(&path)]),
            Ok(RootedPath::Open { from_root, from_folder }) => {
                let here = from_folder.map(|path| whole(&path));
                let mut texts = vec![whole(&from_root)];
                texts.extend(here);
                texts.push(rest.to_owned());
                Ok(texts)
            }
            // The path in `file:/path` is relative to the root of the project.
            Err(_) if self.form.type_name.is_some() && path.starts_with('/') => {
                Ok(vec![whole(path.trim_start_matches('/'))])
            }
            Err(error) if path.starts_with(['/', '.']) => Err(error),
            Err(_) => Ok(vec![rest.to_owned()]),
        }
    }

    // --- lines ---

    /// The innermost symbol at a line of a file.
    fn by_line(&self) -> Result<Option<ResolvedNode>> {
        let Some((path, line)) = self.form.line() else { return Ok(None) };
        let Ok(found) = NameResolver::new(self.look, path).any() else { return Ok(None) };
        let file = found.node;
        if !self.symbols.is(file, SymbolKind::File) {
            return Ok(None);
        }
        let s = &self.look.snapshot;
        let path = self.symbols.key(file).into_owned();
        let own = |node: &Node| s.key(*node).is_some_and(|key| keys::path(key) == path) && !s.is_ended(*node);
        let mut nodes: Vec<Node> = s.nodes().into_par_iter().with_min_len(AT_ONCE).filter(own).collect();
        nodes.retain(|node| self.symbols.kind(*node).is_some());
        let contents = self.symbols.contents(&nodes)?;
        let lines = contents.get(&file).and_then(|content| number(content, "lines"));
        if line == 0 || lines.is_some_and(|lines| line > lines) {
            let message = format!("`{path}` has {} lines, and no line {line}", lines.unwrap_or_default());
            return Err(Error::not_found(ErrorCode::NotFound, message));
        }
        let span = |node: &Node| {
            let content = contents.get(node)?;
            let (from, to) = (number(content, "line")?, number(content, "end_line")?);
            (from <= line && line <= to).then_some((to - from, Reverse(from)))
        };
        let innermost = nodes.iter().filter_map(|node| Some((span(node)?, Reverse(s.thing(*node)), *node))).min();
        Ok(Some(ResolvedNode::one(innermost.map_or(file, |(_, _, node)| node), false)))
    }

    // --- parts of names ---

    /// The object that fits best. Returns an error if several fit equally well.
    fn fitting(&self, text: &str, allowed: &(dyn Fn(Node) -> bool + Sync)) -> Result<Option<ResolvedNode>> {
        let pattern = NamePattern::new(text);
        let mut found = self.candidates(&pattern, allowed);
        if found.is_empty() {
            found = self.of_package(&pattern, allowed)?;
        }
        let nodes = self.preferred(found);
        let groups = self.grouped(nodes);
        match &groups[..] {
            [] => Ok(None),
            [one] => Ok(Some(ResolvedNode { node: one[0], overloads: one[1..].to_vec(), exact: false })),
            several => Err(self.ambiguous(several)?),
        }
    }

    fn candidates(&self, pattern: &NamePattern<'_>, allowed: &(dyn Fn(Node) -> bool + Sync)) -> Vec<Candidate> {
        let s = &self.look.snapshot;
        let fits = |node: Node| {
            let key = s.key(node)?;
            let fit = match self.symbols.kind(node) {
                Some(_) => pattern.code(key)?,
                None => pattern.other(key).filter(|_| !is_kept_beside(s.type_name(node)))?,
            };
            (!s.is_ended(node) && allowed(node)).then_some(Candidate { node, fit })
        };
        let all: Vec<Candidate> = s.nodes().into_par_iter().with_min_len(AT_ONCE).filter_map(fits).collect();
        let of = |exactly: bool| -> Vec<&Candidate> {
            all.iter().filter(|candidate| self.is_of_type(candidate.node, exactly)).collect()
        };
        let typed = if of(true).is_empty() { of(false) } else { of(true) };
        typed.into_iter().map(|c| Candidate { node: c.node, fit: c.fit }).collect()
    }

    /// Objects named with the package that their file declares, such as `gin.Context.JSON`.
    fn of_package(&self, pattern: &NamePattern<'_>, allowed: &(dyn Fn(Node) -> bool + Sync)) -> Result<Vec<Candidate>> {
        let s = &self.look.snapshot;
        let mut found: Vec<(Node, Node, &str)> = Vec::new();
        for node in s.nodes() {
            let Some(package) = s.key(node).and_then(|key| pattern.package(key)) else { continue };
            if self.symbols.kind(node).is_some() && allowed(node) && self.is_of_type(node, false) {
                let file = Reference::exact(FILE, keys::path(s.key(node).unwrap_or_default()));
                if let NamedFact::Visible(file) = self.exact(&file)?
                    && let Some(file) = s.find(file.thing.no)
                {
                    found.push((node, file, package));
                }
            }
        }
        let files: Vec<Node> = found.iter().map(|(_, file, _)| *file).collect();
        let contents = self.symbols.contents(&files)?;
        let declared = |file: &Node| contents.get(file).and_then(|content| text(content, "package"));
        found.retain(|(_, file, package)| declared(file).is_some_and(|own| own.rsplit('.').next() == Some(*package)));
        Ok(found.into_iter().map(|(node, _, _)| Candidate { node, fit: NameFit::Parts }).collect())
    }

    /// Whether an object has the type in the name. Unless `exactly`, similar kinds count too: a method is a `Function`.
    fn is_of_type(&self, node: Node, exactly: bool) -> bool {
        let Some(wanted) = self.form.type_name else { return true };
        let kind = self.symbols.kind(node);
        if wanted.eq_ignore_ascii_case("symbol") {
            return kind.is_some_and(|kind| kind != SymbolKind::File);
        }
        let registry = &self.look.registry;
        if registry.is_same_type(wanted, self.look.snapshot.type_name(node), false) {
            return true;
        }
        match (kind, SymbolKind::of_type(registry.spelling(wanted, false))) {
            (Some(kind), Some(wanted)) if !exactly => kind.is_like(wanted),
            _ => false,
        }
    }

    /// The most likely first: by fit, by kind, and production code before tests.
    fn preferred(&self, mut found: Vec<Candidate>) -> Vec<Node> {
        let best = found.iter().map(|candidate| candidate.fit).min();
        found.retain(|candidate| Some(candidate.fit) == best);
        let rank = |node: Node| self.symbols.kind(node).map_or(SymbolKind::LAST_PREFERENCE, SymbolKind::preference);
        let least = found.iter().map(|candidate| rank(candidate.node)).min();
        let mut nodes: Vec<Node> = found.into_iter().map(|candidate| candidate.node).collect();
        nodes.retain(|node| Some(rank(*node)) == least);
        if nodes.iter().any(|node| !self.symbols.is_test(*node)) {
            nodes.retain(|node| !self.symbols.is_test(*node));
        }
        // A constructor has the name of its class; the name then stands for the class.
        let s = &self.look.snapshot;
        let above: FxHashSet<&str> = nodes.iter().filter_map(|node| s.key(*node)).collect();
        let own = |node: &Node| s.key(*node).and_then(keys::above).is_none_or(|of| !above.contains(of));
        nodes.iter().copied().filter(own).collect()
    }

    /// Groups the overloads of one function as one candidate, the one with the most relationships first: if some are
    /// declarations only, it is the one with the body.
    fn grouped(&self, mut nodes: Vec<Node>) -> Vec<Vec<Node>> {
        let s = &self.look.snapshot;
        nodes.sort_by_key(|node| (Reverse(s.degree(*node)), s.thing(*node)));
        let same = |a: Node, b: Node| {
            let key = |node: Node| s.key(node).map(keys::plain);
            s.type_no(a) == s.type_no(b) && self.symbols.kind(a).is_some_and(SymbolKind::runs) && key(a) == key(b)
        };
        let mut groups: Vec<Vec<Node>> = Vec::new();
        for node in nodes {
            match groups.iter_mut().find(|group| same(group[0], node)) {
                Some(group) => group.push(node),
                None => groups.push(vec![node]),
            }
        }
        groups
    }

    // --- errors ---

    fn ambiguous(&self, groups: &[Vec<Node>]) -> Result<Error> {
        let s = &self.look.snapshot;
        let mut first: Vec<Node> = groups.iter().map(|group| group[0]).collect();
        first.sort_by_cached_key(|node| (Reverse(self.symbols.callers(*node)), s.name(*node)));
        let total = first.len();
        first.truncate(CANDIDATES);
        let contents = self.symbols.contents(&first)?;
        let place = |node: &Node| {
            let content = contents.get(node)?;
            Some(format!("{}:{}", text(content, "path")?, number(content, "line")?))
        };
        let listed: Vec<(String, Option<String>)> = first.iter().map(|node| (s.name(*node), place(node))).collect();
        let in_words = |(name, at): &(String, Option<String>)| match at {
            Some(at) => format!("`{name}` ({at})"),
            None => format!("`{name}`"),
        };
        let words: Vec<String> = listed.iter().map(in_words).collect();
        let more = if total > listed.len() { format!(", and {} more", total - listed.len()) } else { String::new() };
        let candidates: Vec<_> = listed.iter().map(|(name, at)| json!({"ref": name, "at": at})).collect();
        Ok(Error::invalid(ErrorCode::Ambiguous, format!("`{}` fits {total} objects", self.given))
            .hint(format!("name one of: {}{more}", words.join(", ")))
            .details(json!({"candidates": candidates, "total": total})))
    }

    fn unknown(&self, ended: bool) -> Error {
        let name = self.given;
        if ended {
            return Error::not_found(ErrorCode::NotFound, format!("`{name}` is not there in this view"))
                .hint(format!("`lukasa history {name}` shows when it was"));
        }
        let error = Error::not_found(ErrorCode::NotFound, format!("nothing is named `{name}` in this view"));
        if name.split_once(':').is_some_and(|(word, _)| word == COMMUNITY) {
            return error.hint(
                "a community can be a root of traverse, expand, graph-traverse and subgraph, and a seed of rank",
            );
        }
        let mut near = self.near(&|_| true);
        near.extend(self.near_keys());
        // For objects that are not code, similar names come from the store.
        let others = self.look.ledger.near(&self.look.view, name).unwrap_or_default();
        near.extend(others.into_iter().map(|other| format!("`{other}`")));
        let mut seen = FxHashSet::default();
        near.retain(|name| seen.insert(name.clone()));
        near.truncate(OFFERED);
        match near.is_empty() {
            false => error.hint(format!("closest: {}", near.join(", "))).details(json!({"closest": near})),
            true => error.hint("`lukasa symbol` searches by parts of names; `lukasa index` reads a folder"),
        }
    }

    /// Similar names of symbols or files, the most similar first, tests after production code.
    fn near(&self, allowed: &(dyn Fn(Node) -> bool + Sync)) -> Vec<String> {
        let path = self.form.path().filter(|(path, after)| after.is_empty() && path.contains(['/', '\\']));
        if let Some((path, _)) = path {
            return self.near_files(path);
        }
        let query = NameQuery::new(self.form.rest);
        let found = self.symbols.like(&query, |node| allowed(node) && !self.look.snapshot.is_ended(node));
        let mut nodes: Vec<Node> = found.into_iter().take(4 * OFFERED).map(|found| found.node).collect();
        nodes.sort_by_key(|node| self.symbols.is_test(*node));
        nodes.into_iter().take(OFFERED).map(|node| format!("`{}`", self.look.snapshot.name(node))).collect()
    }
}

impl NameResolver<'_> {
    /// Keys of any type with a small edit distance to the name, nearest first.
    fn near_keys(&self) -> Vec<String> {
        let name = self.given.split_once(':').map_or(self.given, |(_, key)| key);
        let letters = name.chars().count();
        let snapshot = &self.look.snapshot;
        let most = FEW_LETTERS.min(letters / 2);
        let differs = |key: &str| {
            // Most keys are much longer and need not be compared.
            let other = key.chars().take(letters + FEW_LETTERS + 1).count();
            let close = other.abs_diff(letters) <= FEW_LETTERS;
            close.then(|| osa_distance(name, key)).filter(|apart| *apart <= most)
        };
        let there = snapshot.nodes().into_iter().filter(|node| !snapshot.is_ended(*node));
        let keyed = there.filter_map(|node| Some((differs(snapshot.key(node)?)?, node)));
        let mut near: Vec<(usize, String)> = keyed.map(|(apart, node)| (apart, snapshot.name(node))).collect();
        near.sort();
        near.into_iter().take(OFFERED).map(|(_, name)| format!("`{name}`")).collect()
    }

    /// Files whose names have a small edit distance to the path's, those in the nearest folders first.
    fn near_files(&self, path: &str) -> Vec<String> {
        let s = &self.look.snapshot;
        let (wanted, whole) = (keys::name(path).to_lowercase(), path.to_lowercase());
        let letters = wanted.chars().count();
        let mut found: Vec<(usize, usize, Node)> = Vec::new();
        for node in s.nodes() {
            let Some(key) = s.key(node).filter(|_| self.symbols.is(node, SymbolKind::File) && !s.is_ended(node)) else {
                continue;
            };
            let name = keys::name(key).to_lowercase();
            if name.chars().count().abs_diff(letters) * 3 <= letters {
                let edits = osa_distance(&wanted, &name);
                if edits * 3 <= letters {
                    found.push((edits, osa_distance(&whole, &key.to_lowercase()), node));
                }
            }
        }
        found.sort_unstable();
        found.into_iter().take(OFFERED).map(|(_, _, node)| format!("`{}`", s.name(node))).collect()
    }
}

/// Whether a word is the name of an object type in use or declared.
fn is_type(look: &ViewGraph, word: &str) -> bool {
    let spelled = look.registry.spelling(word, false);
    look.snapshot.names().types().iter().any(|name| look.registry.is_same_type(word, name, false))
        || look.registry.object_type(spelled).is_some()
        || SymbolKind::of_type(spelled).is_some()
}

/// Whether objects of this type accompany another object and have a key that ends with its key.
fn is_kept_beside(type_name: &str) -> bool {
    type_name.eq_ignore_ascii_case(BOARD)
}
