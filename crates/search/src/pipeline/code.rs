//! Finds the files and symbols that a programming task concerns.
//!
//! Four channels rank files: their whole text, their paths, their symbols (the best three of a file count), and names
//! in the task that they define. Each channel is scaled by its best score, so that none dominates the others.
//! `docs/ranking.md` explains how the weights were found and what did not help.

use crate::pipeline::fuse::{Candidate, Channel, Fusion, best, fuse, sort};
use crate::pipeline::seeds;
use crate::question::TaskText;
use crate::recipes::{CodeRecipe, PATHS, SYMBOLS, SymbolsRecipe, WHOLE_TEXT};
use crate::text::{FIELDS, Scoring, Term, TextField, TextIndex};
use lukasa_graph::Node;
use rustc_hash::FxHashMap;

/// The text indexes to search.
pub struct CodeIndexes<'a> {
    /// Files by their whole text.
    pub files: &'a TextIndex,
    /// Files by their path.
    pub paths: &'a TextIndex,
    /// Symbols, and files for code outside of symbols, by their text.
    pub units: &'a TextIndex,
    /// Files by the names they define.
    pub defined: &'a TextIndex,
}

/// Files and symbols, best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocatedCode {
    pub files: Vec<Candidate>,
    /// Symbols, and files for code outside of symbols, by their own words and names, and by their file.
    pub symbols: Vec<Candidate>,
    /// What each channel found, for debugging output.
    pub channels: Vec<Channel>,
}

/// What the ranking of symbols needs to know besides their texts.
pub trait CodeGraph {
    /// The file that a symbol is in; itself for a file.
    fn file(&self, node: Node) -> Option<Node>;
    /// Calls `each` with the symbols that call this one.
    fn callers(&self, node: Node, each: &mut dyn FnMut(Node));
    /// Calls `each` with the symbols that this one calls.
    fn callees(&self, node: Node, each: &mut dyn FnMut(Node));
    /// The symbols that the task names, with the weight of that.
    fn named(&self) -> &[(Node, f64)];
    /// The weight of a file that the task names by its path; 0 for others.
    fn in_path(&self, file: Node) -> f64;
    /// What the role of its file adds to a symbol: 0, or less if the task is not about files of that role.
    fn role(&self, node: Node) -> f64;
    /// The factor for its kind: how likely a task is about it rather than about what it is part of.
    fn likely(&self, node: Node) -> f64;
}

/// Ranks files and their symbols. `named` contains files that the task names and whose text is not searched. `order`
/// breaks ties.
pub fn code(
    indexes: &CodeIndexes<'_>,
    task: &TaskText,
    recipe: &CodeRecipe,
    named: Vec<(Node, f64)>,
    graph: &dyn CodeGraph,
    order: impl Fn(Node) -> u64 + Copy,
) -> LocatedCode {
    let terms: Vec<Term> = task.terms();
    let all = |index: &TextIndex, scoring: &Scoring| {
        let [found] = seeds::best_by_words(index, &terms, [scoring], recipe.most, order);
        found
    };
    let units = matched(indexes.units, task, &terms, recipe);
    let by_text = units.iter().filter(|(_, words)| words.text > 0.0).map(|(node, words)| (*node, words.text)).collect();
    let by_symbols = seeds::by_symbols(&best(by_text, recipe.most, order), recipe, |node| graph.file(node));
    let mut channels = vec![
        Channel { name: "body", weight: recipe.body, found: all(indexes.files, &WHOLE_TEXT) },
        Channel { name: "path", weight: recipe.path, found: all(indexes.paths, &PATHS) },
        Channel { name: "symbols", weight: recipe.symbols, found: best(by_symbols, recipe.most, order) },
        Channel {
            name: "defined",
            weight: recipe.defined,
            found: best(seeds::by_name(indexes.defined, task, recipe), recipe.most, order),
        },
        Channel { name: "named", weight: recipe.named, found: best(named, recipe.most, order) },
    ];
    channels.retain(|channel| channel.weight > 0.0 && !channel.found.is_empty());
    let files = fuse(&channels, Fusion::WeightedMax, order);
    let paths = channels.iter().find(|channel| channel.name == "path").map_or(&[][..], |channel| &channel.found);
    let symbols = rank_symbols(indexes.units, units, &files, paths, graph, &SYMBOLS, order);
    LocatedCode { files, symbols, channels }
}

/// How well the words of a task match a symbol: raw scores.
#[derive(Clone, Copy, Debug, Default)]
struct MatchedWords {
    text: f64,
    title: f64,
    key: f64,
}

impl MatchedWords {
    /// The best of each.
    fn best(all: &[(Node, MatchedWords)]) -> MatchedWords {
        let best =
            |of: fn(&MatchedWords) -> f64| all.iter().map(|(_, words)| of(words)).fold(f64::MIN_POSITIVE, f64::max);
        MatchedWords { text: best(|words| words.text), title: best(|words| words.title), key: best(|words| words.key) }
    }
}

/// Symbols, and files for code outside of symbols, that are among the best by their text, by the words of the title, or
/// by their key; in the order of nodes.
fn matched(units: &TextIndex, task: &TaskText, terms: &[Term], recipe: &CodeRecipe) -> Vec<(Node, MatchedWords)> {
    let [text, key] = [of_symbols(recipe, [0.0, 0.0, 1.0, 1.0]), of_symbols(recipe, [0.0, 1.0, 0.0, 0.0])];
    let mut found: FxHashMap<Node, MatchedWords> = FxHashMap::default();
    for (node, [text, key]) in units.best_of_any(terms, [&text, &key], recipe.most) {
        found.insert(node, MatchedWords { text: f64::from(text), key: f64::from(key), title: 0.0 });
    }
    let title = TaskText { title: task.title.clone(), ..TaskText::default() };
    for (node, [score]) in units.best_of_any(&title.terms(), [&text], recipe.most) {
        found.entry(node).or_default().title = f64::from(score);
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(node, _)| *node);
    found
}

/// Ranks symbols by their own words, their file, the symbols that they call and that call them, and what the task names;
/// and adds files of which only the name fits.
fn rank_symbols(
    index: &TextIndex,
    units: Vec<(Node, MatchedWords)>,
    files: &[Candidate],
    paths: &[(Node, f64)],
    graph: &dyn CodeGraph,
    recipe: &SymbolsRecipe,
    order: impl Fn(Node) -> u64,
) -> Vec<Candidate> {
    let best_unit = MatchedWords::best(&units);
    let by_file: FxHashMap<Node, f64> = shares(files.iter().map(|file| (file.node, file.score())));
    let by_path: FxHashMap<Node, f64> = shares(paths.iter().copied());
    let by_text: FxHashMap<Node, f64> = shares(units.iter().map(|(node, words)| (*node, words.text)));
    let named: FxHashMap<Node, f64> = graph.named().iter().copied().collect();
    let share = |all: &FxHashMap<Node, f64>, node: Option<Node>| node.and_then(|node| all.get(&node)).copied();
    let mut units: FxHashMap<Node, MatchedWords> = units.into_iter().collect();
    named.keys().for_each(|node| {
        units.entry(*node).or_default();
    });
    let mut all: Vec<Candidate> = Vec::with_capacity(units.len());
    for (node, words) in &units {
        let file = graph.file(*node);
        let mut candidate = Candidate::new(*node);
        let mut add = |name, score: f64| {
            if score != 0.0 {
                candidate.add(name, score);
            }
        };
        add("symbol", recipe.text * words.text / best_unit.text + recipe.title * words.title / best_unit.title);
        add("name", recipe.key * words.key / best_unit.key);
        add("file", recipe.file * share(&by_file, file).unwrap_or(0.0));
        add("path", recipe.path * share(&by_path, file).unwrap_or(0.0));
        let (mut callers, mut callees) = (0.0f64, 0.0f64);
        let of_other = |other: Node| share(&by_text, Some(other).filter(|other| other != node)).unwrap_or(0.0);
        graph.callers(*node, &mut |other| callers = callers.max(of_other(other)));
        graph.callees(*node, &mut |other| callees = callees.max(of_other(other)));
        add("calls", recipe.callers * callers + recipe.callees * callees);
        add("named", share(&named, Some(*node)).unwrap_or(0.0) + file.map_or(0.0, |file| graph.in_path(file)));
        if file != Some(*node) {
            let lines = f64::from(index.length(*node, TextField::Body)) / recipe.words_per_line;
            add("length", recipe.length * lines.min(recipe.longest).ln_1p());
        }
        add("role", graph.role(*node));
        weaken(&mut candidate, graph.likely(*node));
        all.push(candidate);
    }
    for file in files.iter().filter(|file| !units.contains_key(&file.node)) {
        let mut candidate = Candidate::new(file.node);
        candidate.add("file", recipe.file * share(&by_file, Some(file.node)).unwrap_or(0.0));
        candidate.add("role", graph.role(file.node));
        all.push(candidate);
    }
    sort(&mut all, order);
    all
}

/// Multiplies the score of a candidate by a factor, as a reason of its own.
fn weaken(candidate: &mut Candidate, factor: f64) {
    let less = candidate.score() * (factor - 1.0);
    if less < 0.0 {
        candidate.add("kind", less);
    }
}

/// Scores as shares of the best.
fn shares(all: impl Iterator<Item = (Node, f64)>) -> FxHashMap<Node, f64> {
    let mut all: FxHashMap<Node, f64> = all.collect();
    let best = all.values().copied().fold(f64::MIN_POSITIVE, f64::max);
    all.values_mut().for_each(|score| *score /= best);
    all
}

/// Scores fields of one symbol. The length of a name or a key does not count.
fn of_symbols(recipe: &CodeRecipe, boosts: [f32; FIELDS]) -> Scoring {
    let mut scoring = Scoring { shortest: recipe.shortest, boosts, ..WHOLE_TEXT };
    scoring.b[TextField::Name as usize] = 0.0;
    scoring.b[TextField::Path as usize] = 0.0;
    scoring
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipes::CODE;
    use crate::text::DocumentBatch;

    /// Files 0 and 1; symbols 10 to 13, the first two in file 0.
    fn indexes() -> [TextIndex; 4] {
        let texts = |docs: &[(u32, TextField, &str)]| {
            let mut gathered = DocumentBatch::default();
            for (node, field, text) in docs {
                gathered.begin(Node(*node));
                gathered.add(*field, text);
            }
            TextIndex::build(vec![gathered])
        };
        let files = texts(&[
            (0, TextField::Body, "def read_config(path): open path\ndef close(): pass"),
            (1, TextField::Body, "def render(page): write page\ndef parse(text): words"),
        ]);
        let paths = texts(&[(0, TextField::Name, "config"), (1, TextField::Name, "page")]);
        let units = texts(&[
            (10, TextField::Body, "def read_config(path): open path"),
            (11, TextField::Body, "def close(): pass"),
            (12, TextField::Body, "def render(page): write page"),
            (13, TextField::Body, "def parse(text): words"),
        ]);
        let mut defined = DocumentBatch::default();
        for (file, names) in [(0, ["read_config", "close"]), (1, ["render", "parse"])] {
            defined.begin(Node(file));
            names.iter().for_each(|name| defined.add_word(TextField::Name, name));
        }
        [files, paths, units, TextIndex::build(vec![defined])]
    }

    fn ranked(task: &str) -> LocatedCode {
        let [files, paths, units, defined] = &indexes();
        let indexes = CodeIndexes { files, paths, units, defined };
        code(&indexes, &TaskText::read(task), &CODE, vec![], &Plain, |node| u64::from(node.0))
    }

    /// Files with two symbols each, and no calls.
    struct Plain;

    impl CodeGraph for Plain {
        fn file(&self, node: Node) -> Option<Node> {
            Some(Node(u32::from(node.0 >= 12)))
        }
        fn callers(&self, _: Node, _: &mut dyn FnMut(Node)) {}
        fn callees(&self, _: Node, _: &mut dyn FnMut(Node)) {}
        fn named(&self) -> &[(Node, f64)] {
            &[]
        }
        fn in_path(&self, _: Node) -> f64 {
            0.0
        }
        fn role(&self, _: Node) -> f64 {
            0.0
        }
        fn likely(&self, _: Node) -> f64 {
            1.0
        }
    }

    #[test]
    fn files_are_found_by_text_name_and_symbols() {
        let found = ranked("fix(config): reading an empty path");
        assert_eq!(found.files[0].node, Node(0));
        let channels: Vec<_> = found.files[0].reasons.iter().map(|r| r.channel).collect();
        assert_eq!(channels, ["body", "path", "symbols"]);
        assert!((found.files[0].score() - 3.25).abs() < 1e-6, "best in every channel");
        assert_eq!(found.symbols[0].node, Node(10));
        let reason = |name: &str| found.symbols[0].reasons.iter().find(|r| r.channel == name).map(|r| r.score);
        assert_eq!(reason("symbol"), Some(SYMBOLS.text + SYMBOLS.title), "best by its words");
        assert_eq!(reason("file"), Some(SYMBOLS.file), "in the best file");
        assert_eq!(ranked("the page is rendered twice").files[0].node, Node(1));
        let named = ranked("something about close()");
        assert!(named.files[0].reasons.iter().any(|r| r.channel == "defined"), "{named:?}");
        assert_eq!(ranked("nothing of that"), LocatedCode::default());
    }
}
