//! The functions that a task concerns: which were edited, how they are ranked, and which of them a pack shows.

use super::tree::Tree;
use crate::Fault;
use crate::retrieval::ViewWithIndexes;
use crate::retrieval::plain_bm25::PlainBm25;
use crate::retrieval::score::{Gold, Pool};
use lukasa_engine::view::symbols::{SymbolContents, SymbolKind, Symbols, keys, number};
use lukasa_graph::Node;
use lukasa_search::count::count;
use lukasa_search::text::Doc;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

/// Number of files whose functions are ranked by the reference that ranks files first.
const FILES: usize = 10;
/// Tokens of a function in a pack in addition to its code: file, name, lines.
const AROUND: usize = 30;

/// First and last line of each definition, by key.
pub type Spans = FxHashMap<String, (u64, u64)>;

/// A definition of the parent tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its key without the suffix of overloads: overloads count as one function.
    pub key: String,
    pub kind: SymbolKind,
    /// First and last line, from 1.
    pub lines: (u64, u64),
}

impl Definition {
    fn is_rankable(&self) -> bool {
        is_rankable(self.kind)
    }

    fn has(&self, line: u64) -> bool {
        self.lines.0 <= line && line <= self.lines.1
    }
}

/// Functions, and types for edits outside of functions.
fn is_rankable(kind: SymbolKind) -> bool {
    kind.runs() || matches!(kind, SymbolKind::Class | SymbolKind::Interface | SymbolKind::Type)
}

/// The definitions of a file, in the order of their lines.
pub fn definitions(seen: &ViewWithIndexes, file: Node) -> Result<Vec<Definition>, Fault> {
    let symbols = Symbols::new(&seen.look);
    let nodes: Vec<Node> = symbols.whole(file, usize::MAX).0;
    let contents: SymbolContents = symbols.contents(&nodes)?;
    let mut all: Vec<Definition> = nodes
        .iter()
        .filter_map(|node| {
            let content = contents.get(node)?;
            let lines = number(content, "line").zip(number(content, "end_line"))?;
            Some(Definition { key: keys::plain(&symbols.key(*node)).to_owned(), kind: symbols.kind(*node)?, lines })
        })
        .filter(Definition::is_rankable)
        .collect();
    all.sort_by_key(|definition| definition.lines);
    Ok(all)
}

/// The part of a file that a hunk changes: a range of removed lines, or a position after a line where lines are added.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangedLines {
    Lines(u64, u64),
    Behind(u64),
}

/// The changed parts of the old files of a diff without context, by path.
pub fn touched(diff: &str) -> FxHashMap<String, Vec<ChangedLines>> {
    let mut all: FxHashMap<String, Vec<ChangedLines>> = FxHashMap::default();
    let mut path = None;
    // Remaining lines of the hunk, because they can look like headers.
    let (mut old, mut new) = (0, 0);
    for line in diff.lines() {
        if old > 0 && line.starts_with('-') {
            old -= 1;
        } else if new > 0 && line.starts_with('+') {
            new -= 1;
        } else if let Some(before) = line.strip_prefix("--- ") {
            path = before.strip_prefix("a/").map(str::to_owned);
        } else if let Some(hunk) = line.strip_prefix("@@ -") {
            let mut spans = hunk.split(' ').map(|span| {
                let (first, lines) = span.trim_start_matches('+').split_once(',').unwrap_or((span, "1"));
                (first.parse::<u64>().unwrap_or(0), lines.parse::<u64>().unwrap_or(1))
            });
            let (first, lines) = spans.next().unwrap_or_default();
            (old, new) = (lines, spans.next().map_or(0, |(_, lines)| lines));
            let touched =
                if lines == 0 { ChangedLines::Behind(first) } else { ChangedLines::Lines(first, first + lines - 1) };
            if let Some(path) = &path {
                all.entry(path.clone()).or_default().push(touched);
            }
        }
    }
    all
}

/// The innermost changed definitions. Lines added between two lines belong to the definition that contains both.
pub fn edited(definitions: &[Definition], touched: &[ChangedLines]) -> Gold {
    // Outer definitions come first, so the last is the innermost.
    let innermost = |is_in: &dyn Fn(&Definition) -> bool| definitions.iter().rfind(|definition| is_in(definition));
    let mut gold = Gold::new();
    for change in touched {
        match change {
            ChangedLines::Behind(line) => {
                let found = innermost(&|definition| definition.has(*line) && definition.has(line + 1));
                gold.extend(found.map(|definition| definition.key.clone()));
            }
            ChangedLines::Lines(first, last) => {
                let found = (*first..=*last).filter_map(|line| innermost(&|definition| definition.has(line)));
                gold.extend(found.map(|definition| definition.key.clone()));
            }
        }
    }
    gold
}

/// Definitions named `path:Class.method`, as SWE-bench Lite's annotations do, by key.
pub fn annotated(row: &Value) -> Gold {
    let files = row["gt_file_changes"].as_array().into_iter().flatten();
    let entities = files.flat_map(|file| file["changes"]["edited_entities"].as_array().into_iter().flatten());
    let key = |entity: &Value| {
        let (path, name) = entity.as_str()?.split_once(':')?;
        Some(format!("{path}::{}", name.replace('.', "::")))
    };
    entities.filter_map(key).collect()
}

/// Keys of functions and types as a list of symbols ranks them, each once.
pub fn ranked(seen: &ViewWithIndexes, nodes: impl Iterator<Item = Node>) -> Vec<String> {
    let symbols = Symbols::new(&seen.look);
    let mut there = FxHashSet::default();
    nodes
        .filter(|node| symbols.kind(*node).is_some_and(is_rankable))
        .map(|node| keys::plain(&symbols.key(node)).to_owned())
        .filter(|key| there.insert(key.clone()))
        .collect()
}

/// Functions of the files of the pool at one commit, for plain BM25.
#[derive(Default)]
pub struct Functions {
    plain: PlainBm25,
    pool: Option<Pool>,
    /// By path, the id of its content and its functions.
    there: FxHashMap<String, (String, Vec<Doc>)>,
    keys: Vec<String>,
    /// Tokens of each in a pack.
    tokens: Vec<usize>,
}

impl Functions {
    /// Updates to another commit. `files` has its files with the ids of their contents.
    pub fn move_to(
        &mut self,
        seen: &ViewWithIndexes,
        tree: &Tree,
        listed: &FxHashMap<String, String>,
        pool: &Pool,
    ) -> Result<(), Fault> {
        if self.pool.as_ref() != Some(pool) {
            *self = Functions { pool: Some(pool.clone()), ..Functions::default() };
        }
        let files = seen.keyed("File");
        let mut wanted: Vec<(&String, &String)> = listed.iter().filter(|(path, _)| pool.has(path)).collect();
        wanted.sort();
        let is_same = |path: &String, id: &String| listed.get(path) == Some(id);
        let changed: Vec<String> =
            self.there.iter().filter(|(path, (id, _))| !is_same(path, id)).map(|(path, _)| path.clone()).collect();
        let gone: Vec<Doc> = changed.iter().filter_map(|path| self.there.remove(path)).flat_map(|(_, d)| d).collect();
        let mut texts: Vec<(Doc, String)> = Vec::new();
        for (path, id) in wanted {
            if self.there.contains_key(path) {
                continue;
            }
            let text = super::text(tree, path);
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let mut docs = Vec::new();
            let found = files.get(path).map_or(Ok(vec![]), |file| definitions(seen, *file))?;
            for definition in found.into_iter().filter(|definition| definition.kind.runs()) {
                let (first, last) = definition.lines;
                let last = (last as usize).min(lines.len());
                let code = lines.get(first.saturating_sub(1) as usize..last).unwrap_or_default().concat();
                let doc = Doc::at(self.keys.len());
                self.keys.push(definition.key);
                self.tokens.push(count(&code) + AROUND);
                texts.push((doc, code));
                docs.push(doc);
            }
            self.there.insert(path.clone(), (id.clone(), docs));
        }
        self.plain = self.plain.with(&gone, texts.iter().map(|(doc, text)| (*doc, text.as_str())));
        Ok(())
    }

    pub fn rank(&self, task: &str) -> Vec<Doc> {
        self.plain.rank(task).into_iter().map(|(doc, _)| doc).collect()
    }

    /// The same for the first files of a list only.
    pub fn rank_within(&self, ranked: &[Doc], files: &[String]) -> Vec<Doc> {
        let first: FxHashSet<&str> = files.iter().take(FILES).map(String::as_str).collect();
        let is_in = |doc: &&Doc| first.contains(keys::path(&self.keys[doc.index()]));
        ranked.iter().filter(is_in).copied().collect()
    }

    /// Keys of ranked functions, each once.
    pub fn keys(&self, ranked: &[Doc]) -> Vec<String> {
        let mut there = FxHashSet::default();
        let keys = ranked.iter().map(|doc| self.keys[doc.index()].clone());
        keys.filter(|key| there.insert(key.clone())).collect()
    }

    /// The functions that fit into a budget, whole and in this order.
    pub fn packed(&self, ranked: &[Doc], budget: usize) -> GoldInPack {
        let mut left = budget;
        let mut packed = GoldInPack::default();
        for doc in ranked {
            let Some(rest) = left.checked_sub(self.tokens[doc.index()]) else { break };
            left = rest;
            packed.named.insert(self.keys[doc.index()].clone());
            packed.shown.insert(self.keys[doc.index()].clone());
        }
        packed.tokens = budget - left;
        packed
    }
}

/// The gold functions in a pack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GoldInPack {
    /// Listed among its symbols.
    pub named: Gold,
    /// Shown with code, or with a marked part of it.
    pub shown: Gold,
    pub entry: Option<String>,
    pub tokens: usize,
    pub confidence: Option<String>,
}

/// The gold functions in an answer of `context_pack`.
pub fn pack(answer: &Value, gold: &Gold, spans: &Spans) -> GoldInPack {
    let entry = answer["entry_point"].as_str().map(|key| keys::plain(key).to_owned());
    let confidence = answer["confidence"].as_str().map(str::to_owned);
    let tokens = count(&answer.to_string());
    let mut packed = GoldInPack { entry, tokens, confidence, ..GoldInPack::default() };
    for symbol in answer["core_symbols"].as_array().into_iter().flatten() {
        let text = |name: &str| symbol[name].as_str().unwrap_or_default();
        let file = text("file");
        let key = format!("{file}::{}", text("symbol_name"));
        let key = keys::plain(&key).to_owned();
        let has_code = symbol["code"].is_string();
        let line = |name: &str| symbol[name].as_u64().unwrap_or_default();
        let (first, last) = (line("start_line"), line("end_line"));
        // A definition that is shown whole contains the definitions within it.
        let inside = gold.iter().filter(|wanted| {
            let within = spans.get(*wanted).is_some_and(|(from, to)| first <= *from && *to <= last);
            has_code && keys::path(wanted) == file && within
        });
        let met: Vec<String> = inside.cloned().chain([key]).collect();
        if has_code {
            packed.shown.extend(met.iter().cloned());
        }
        packed.named.extend(met);
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition(key: &str, kind: SymbolKind, first: u64, last: u64) -> Definition {
        Definition { key: key.into(), kind, lines: (first, last) }
    }

    #[test]
    fn a_diff_touches_lines_and_places_between_them() {
        let diff = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -3 +3 @@ class A:\n-x\n+y\n@@ -7,0 +8,2 @@\n+z\n+z\n\
                    @@ -10,3 +13,0 @@\n--- a\n-b\n-c\n@@ -20 +20,0 @@\n-d\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+new\n";
        let all = touched(diff);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(
            all["a.py"],
            [
                ChangedLines::Lines(3, 3),
                ChangedLines::Behind(7),
                ChangedLines::Lines(10, 12),
                ChangedLines::Lines(20, 20)
            ]
        );
    }

    #[test]
    fn the_innermost_definition_is_edited() {
        let all = [
            definition("a.py::A", SymbolKind::Class, 1, 20),
            definition("a.py::A::f", SymbolKind::Method, 3, 8),
            definition("a.py::A::g", SymbolKind::Method, 10, 20),
            definition("a.py::h", SymbolKind::Function, 22, 30),
        ];
        let of = |touched: &[ChangedLines]| edited(&all, touched).into_iter().collect::<Vec<_>>();
        assert_eq!(of(&[ChangedLines::Lines(4, 5)]), ["a.py::A::f"]);
        assert_eq!(of(&[ChangedLines::Lines(7, 11)]), ["a.py::A", "a.py::A::f", "a.py::A::g"]);
        assert_eq!(of(&[ChangedLines::Behind(8)]), ["a.py::A"], "a new method");
        assert_eq!(of(&[ChangedLines::Behind(7)]), ["a.py::A::f"]);
        assert!(of(&[ChangedLines::Behind(20), ChangedLines::Lines(31, 40)]).is_empty(), "outside of all");
    }

    #[test]
    fn annotations_become_keys() {
        let row = json!({"gt_file_changes": [{"changes": {"edited_entities": ["a/b.py:C.m", "a/b.py:f"]}}]});
        assert_eq!(annotated(&row).into_iter().collect::<Vec<_>>(), ["a/b.py::C::m", "a/b.py::f"]);
        assert!(annotated(&json!({})).is_empty());
    }

    #[test]
    fn a_class_shown_whole_contains_its_methods() {
        let gold: Gold = ["a.py::A::f", "a.py::h"].map(String::from).into();
        let spans = FxHashMap::from_iter([("a.py::A::f".to_owned(), (3, 8)), ("a.py::h".to_owned(), (22, 30))]);
        let symbol = |name: &str, lines: (u64, u64), code: Value| json!({"file": "a.py", "symbol_name": name, "start_line": lines.0, "end_line": lines.1, "code": code});
        let answer = |symbols: Vec<Value>| json!({"entry_point": "a.py::A", "core_symbols": symbols});
        let whole = pack(&answer(vec![symbol("A", (1, 20), json!("class A"))]), &gold, &spans);
        assert!(whole.shown.contains("a.py::A::f") && whole.named.contains("a.py::A::f"));
        assert_eq!(whole.entry.as_deref(), Some("a.py::A"));
        let brief = pack(
            &answer(vec![symbol("A", (1, 20), Value::Null), symbol("h~(int)", (22, 30), Value::Null)]),
            &gold,
            &spans,
        );
        assert!(!brief.named.contains("a.py::A::f") && brief.named.contains("a.py::h") && brief.shown.is_empty());
    }
}
