//! Finds the files and symbols that a programming task concerns.
//!
//! Four channels rank files: their whole text, their paths, their symbols (the best three of a file count), and names
//! in the task that they define. Each channel is scaled by its best score, so that none dominates the others.
//! `docs/ranking.md` explains how the weights were found and what did not help.

use crate::pipeline::fuse::{Candidate, Channel, Fusion, best, fuse, sort};
use crate::pipeline::seeds;
use crate::question::TaskText;
use crate::recipes::{CodeRecipe, PATHS, WHOLE_TEXT};
use crate::text::{Scoring, Term, TextField, TextIndex};
use lukasa_graph::Node;
use rustc_hash::{FxHashMap, FxHashSet};

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

/// Ranks files and their symbols. `named` contains files that the task names and whose text is not searched. `file_of`
/// returns the file of a symbol, `likely` how likely a task is about a symbol of its kind, and `order` breaks ties.
pub fn code(
    indexes: &CodeIndexes<'_>,
    task: &TaskText,
    recipe: &CodeRecipe,
    named: Vec<(Node, f64)>,
    file_of: impl Fn(Node) -> Option<Node>,
    likely: impl Fn(Node) -> f64,
    order: impl Fn(Node) -> u64 + Copy,
) -> LocatedCode {
    let terms: Vec<Term> = task.terms();
    let all = |index: &TextIndex, scoring: &Scoring| {
        let [found] = seeds::best_by_words(index, &terms, [scoring], recipe.most, order);
        found
    };
    // By text, to rank their files; and by text and name, to rank the symbols themselves.
    let [by_text, units] = seeds::best_by_words(
        indexes.units,
        &terms,
        [&of_symbols(recipe, 0.0), &of_symbols(recipe, recipe.own_name)],
        recipe.most,
        order,
    );
    let by_symbols = seeds::by_symbols(&by_text, recipe, &file_of);
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
    let symbols = with_files(&units, &files, file_of, likely, order);
    LocatedCode { files, symbols, channels }
}

/// Symbols by their own score and that of their file, each as a share of the best; and files of which only the name
/// fits.
fn with_files(
    units: &[(Node, f64)],
    files: &[Candidate],
    file_of: impl Fn(Node) -> Option<Node>,
    likely: impl Fn(Node) -> f64,
    order: impl Fn(Node) -> u64,
) -> Vec<Candidate> {
    let scores: FxHashMap<Node, f64> = files.iter().map(|file| (file.node, file.score())).collect();
    let best_file = scores.values().copied().fold(f64::MIN_POSITIVE, f64::max);
    let best_unit = units.first().map_or(1.0, |(_, score)| *score);
    let mut all: Vec<Candidate> = Vec::new();
    for (node, score) in units {
        let mut candidate = Candidate::new(*node);
        candidate.add("symbol", score / best_unit * likely(*node));
        if let Some(score) = file_of(*node).and_then(|file| scores.get(&file)) {
            candidate.add("file", score / best_file);
        }
        all.push(candidate);
    }
    let there: FxHashSet<Node> = units.iter().map(|(node, _)| *node).collect();
    for file in files.iter().filter(|file| !there.contains(&file.node)) {
        let mut candidate = Candidate::new(file.node);
        candidate.add("file", file.score() / best_file);
        all.push(candidate);
    }
    sort(&mut all, order);
    all
}

/// Scores the text of one symbol. Its name is part of the text and may get an additional boost.
fn of_symbols(recipe: &CodeRecipe, name: f32) -> Scoring {
    let mut scoring = Scoring { shortest: recipe.shortest, ..WHOLE_TEXT };
    scoring.boosts[TextField::Name as usize] = name;
    scoring.b[TextField::Name as usize] = 0.0;
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
        let file_of = |node: Node| Some(Node(u32::from(node.0 >= 12)));
        code(&indexes, &TaskText::read(task), &CODE, vec![], file_of, |_| 1.0, |node| u64::from(node.0))
    }

    #[test]
    fn files_are_found_by_text_name_and_symbols() {
        let found = ranked("fix(config): reading an empty path");
        assert_eq!(found.files[0].node, Node(0));
        let channels: Vec<_> = found.files[0].reasons.iter().map(|r| r.channel).collect();
        assert_eq!(channels, ["body", "path", "symbols"]);
        assert!((found.files[0].score() - 3.25).abs() < 1e-6, "best in every channel");
        assert_eq!(found.symbols[0].node, Node(10));
        let reasons: Vec<_> = found.symbols[0].reasons.iter().map(|r| (r.channel, r.score)).collect();
        assert_eq!(reasons, [("symbol", 1.0), ("file", 1.0)], "the best symbol of the best file");
        assert_eq!(ranked("the page is rendered twice").files[0].node, Node(1));
        let named = ranked("something about close()");
        assert!(named.files[0].reasons.iter().any(|r| r.channel == "defined"), "{named:?}");
        assert_eq!(ranked("nothing of that"), LocatedCode::default());
    }
}
