//! SCIP indexes: reads the calls, references and implementations that a compiler found and converts them into
//! relationships.
//!
//! `Index::read` parses an index, `place` matches each document with the facts of its file, and `link` derives the
//! relationships between all documents. SCIP does not record calls: a mention is a call if the facts have a call at
//! that position.

mod link;
mod matching;
mod read;
mod symbol;
#[cfg(test)]
mod tests;
mod wire;

use crate::resolve::Derivation;
use crate::statements::set_lines;
use lukasa_model::Content;
use lukasa_model::batch::PutObject;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

pub use link::link;
pub use matching::{MatchedDocument, defined_in, match_document};
pub use read::{ColumnEncoding, ScipDocument, ScipIndex};

/// The relationships that an index contains, and the data to check known calls against it.
#[derive(Default)]
pub struct CompilerRelationships {
    /// Ordered by type, source and target.
    pub edges: Vec<CompilerRelationship>,
    /// Packages and names of packages that the edges refer to.
    pub outside: BTreeMap<(&'static str, String), PutObject>,
    /// Number of global symbols with a known definition.
    pub matched: usize,
    /// Number of global symbols without a known definition.
    pub unmatched: usize,
    /// Keys of the names of packages, by id.
    outside_keys: FxHashMap<Uuid, String>,
    lines: FxHashMap<(Uuid, u32), Line>,
    /// Pairs of a method and a method that it implements or overrides.
    implementations: FxHashSet<(Uuid, Uuid)>,
}

/// A relationship between two objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompilerRelationship {
    pub type_name: &'static str,
    pub src: Uuid,
    pub dst: Uuid,
    /// Ascending; empty if the index has no position.
    pub lines: Vec<u32>,
}

/// The calls on one line of a caller.
#[derive(Default)]
struct Line {
    targets: FxHashSet<Uuid>,
    /// Names of the called symbols, as written.
    names: FxHashSet<Box<str>>,
    /// Names that may call a target that the index does not list.
    open: FxHashSet<Box<str>>,
}

impl Line {
    fn join(&mut self, other: Line) {
        self.targets.extend(other.targets);
        self.names.extend(other.names);
        self.open.extend(other.open);
    }
}

impl CompilerRelationship {
    fn of(((type_name, src, dst), mut lines): ((&'static str, Uuid, Uuid), Vec<u32>)) -> CompilerRelationship {
        lines.sort_unstable();
        lines.dedup();
        CompilerRelationship { type_name, src, dst, lines }
    }

    /// The content of the relationship, merged with its present content.
    pub fn content(&self, before: Option<&Content>) -> Content {
        let mut content = before.cloned().unwrap_or_default();
        content.confidence = Some(Derivation::Compiler.confidence());
        content.derivation = Some(Derivation::Compiler.derivation().into());
        if self.type_name == "CALLS" {
            let mut lines = self.lines.clone();
            lines.extend(before.map(lines_of).unwrap_or_default());
            lines.sort_unstable();
            lines.dedup();
            let counted = content.properties.get("calls").and_then(Value::as_u64).unwrap_or(0);
            set_lines(&mut content.properties, &lines, lines.len().max(usize::try_from(counted).unwrap_or(0)));
        } else if let Some(first) = self.lines.first() {
            content.properties.entry("line").or_insert_with(|| json!(first));
        }
        content
    }
}

/// The lines that a relationship records.
fn lines_of(content: &Content) -> Vec<u32> {
    let line = content.properties.get("line").into_iter();
    let lines = content.properties.get("lines").and_then(Value::as_array).into_iter().flatten();
    line.chain(lines).filter_map(|line| u32::try_from(line.as_u64()?).ok()).collect()
}

/// A call that the graph already contains.
pub struct KnownCall<'a> {
    pub caller: Uuid,
    pub called: Uuid,
    /// The key of the called object.
    pub called_key: &'a str,
    /// The content of the relationship.
    pub content: &'a Content,
}

impl CompilerRelationships {
    /// Replaces the ids of outside names with those that the graph already uses. A compiler names the place of
    /// definition, which may be deep inside a package or in another one; the graph names the place of import. Both
    /// refer to the same object if they name the same call.
    pub fn adopt<'a>(&mut self, calls: impl Iterator<Item = KnownCall<'a>>) {
        let mut outside: FxHashMap<(Uuid, u32), Vec<Uuid>> = FxHashMap::default();
        for edge in self.edges.iter().filter(|e| e.type_name == "CALLS" && self.outside_keys.contains_key(&e.dst)) {
            for line in &edge.lines {
                outside.entry((edge.src, *line)).or_default().push(edge.dst);
            }
        }
        let calls: Vec<KnownCall<'a>> = calls.collect();
        let mut known: FxHashSet<(Uuid, u32, Uuid)> = FxHashSet::default();
        for call in &calls {
            known.extend(lines_of(call.content).iter().map(|line| (call.caller, *line, call.called)));
        }
        let mut votes: BTreeMap<(Uuid, Uuid), usize> = BTreeMap::new();
        // Calls derived from types may be wrong. Calls of the compiler are included, so that names adopted earlier are
        // adopted again.
        let sure = |call: &&KnownCall<'_>| matches!(call.content.derivation.as_deref(), Some("import" | "compiler"));
        for call in calls.iter().filter(sure) {
            for line in lines_of(call.content) {
                let Some(found) = outside.get(&(call.caller, line)).filter(|found| !found.contains(&call.called))
                else {
                    continue;
                };
                for ours in found.iter().filter(|ours| !known.contains(&(call.caller, line, **ours))) {
                    if same_outside(&self.outside_keys[ours], call.called_key) {
                        *votes.entry((*ours, call.called)).or_default() += 1;
                    }
                }
            }
        }
        let mut names: FxHashMap<Uuid, (Uuid, usize)> = FxHashMap::default();
        for ((ours, theirs), count) in votes {
            let best = names.entry(ours).or_insert((theirs, count));
            if count > best.1 {
                *best = (theirs, count);
            }
        }
        let name = |id: Uuid| names.get(&id).map_or(id, |(theirs, _)| *theirs);
        let mut edges: BTreeMap<(&'static str, Uuid, Uuid), Vec<u32>> = BTreeMap::new();
        for edge in std::mem::take(&mut self.edges) {
            edges.entry((edge.type_name, edge.src, name(edge.dst))).or_default().extend(edge.lines);
        }
        self.edges = edges.into_iter().map(CompilerRelationship::of).collect();
        for line in self.lines.values_mut() {
            line.targets = line.targets.iter().map(|id| name(*id)).collect();
        }
    }

    /// Whether the compiler contradicts a call that was derived otherwise: on each of its lines the caller calls
    /// something else of that name. A call is not contradicted if it implements what the compiler found, because it may
    /// run instead, nor if the line has a call of that name that the compiler did not resolve.
    pub fn refutes(&self, call: &KnownCall<'_>) -> bool {
        let KnownCall { caller, called, called_key, content } = *call;
        let (mut lines, names) = (lines_of(content), called_names(called_key));
        lines.sort_unstable();
        lines.dedup();
        let counted = content.properties.get("calls").and_then(Value::as_u64).unwrap_or(1);
        if lines.is_empty() || counted > lines.len() as u64 {
            return false;
        }
        lines.iter().all(|line| {
            self.lines.get(&(caller, *line)).is_some_and(|line| {
                let same = names.iter().any(|name| line.names.contains(*name));
                let open = names.iter().any(|name| line.open.contains(*name));
                let may_run =
                    line.targets.iter().any(|of| *of == called || self.implementations.contains(&(called, *of)));
                same && !open && !may_run
            })
        })
    }
}

/// Whether two keys of outside names have the same ecosystem and the same last name.
fn same_outside(ours: &str, theirs: &str) -> bool {
    let ends = |key: &str| {
        let (ecosystem, rest) = key.split_once(':')?;
        let (_, name) = rest.split_once("::")?;
        Some((ecosystem.to_owned(), name.rsplit('.').next()?.to_owned()))
    };
    ends(ours).is_some_and(|ours| ends(theirs) == Some(ours))
}

/// Names by which a definition with this key is called: its own, and for a constructor that of its class.
fn called_names(key: &str) -> Vec<&str> {
    let mut parts = key.rsplit("::").map(|part| part.split('~').next().unwrap_or(part));
    let last = parts.next().unwrap_or_default();
    let mut names = vec![last, last.rsplit('.').next().unwrap_or(last)];
    if matches!(last, "constructor" | "__init__" | "__construct" | "initialize") {
        names.extend(parts.next());
        names.push("super");
    }
    names
}
