//! Finds the files and symbols that a programming task concerns.
//!
//! Four channels rank files: their whole text, their paths, their symbols (the best three of a file count), and names
//! in the task that they define. Each channel is scaled by its best score, so that none dominates the others.
//! `docs/ranking.md` explains how the weights were found and what did not help.

use crate::fuse::{Candidate, Channel, Fusion, best, fuse};
use crate::question::Task;
use crate::text::{FIELDS, Field, Scoring, Term, TextIndex};
use lukasa_graph::Node;
use rustc_hash::FxHashMap;

/// The weights of the best, second and third symbol of a file.
const FURTHER: [f64; 3] = [1.0, 0.5, 0.25];
/// Symbols with fewer words are scored as if they had this many: otherwise one-line accessors would rank first.
const SHORTEST: u32 = 20;
/// Most symbols and files per channel: those beyond score next to nothing, and of a million symbols most contain some
/// word of the task.
const MOST: usize = 512;
/// The factor for a defined name that occurs in the title.
const IN_TITLE: f64 = 1.5;

/// The weight of each channel.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeRecipe {
    pub body: f64,
    pub path: f64,
    pub symbols: f64,
    pub defined: f64,
}

impl Default for CodeRecipe {
    fn default() -> Self {
        CodeRecipe { body: 1.0, path: 1.0, symbols: 1.25, defined: 0.4 }
    }
}

/// The text indexes to search.
pub struct CodeIndexes<'a> {
    pub files: &'a TextIndex,
    pub paths: &'a TextIndex,
    pub units: &'a TextIndex,
    /// Files by the names they define.
    pub defined: &'a TextIndex,
}

/// Files and symbols, best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Located {
    pub files: Vec<Candidate>,
    /// Symbols, and files for code outside of symbols, ranked by their own words and names.
    pub units: Vec<(Node, f64)>,
    /// What each channel found, for debugging output.
    pub channels: Vec<Channel>,
}

/// Ranks files and their symbols. `file_of` returns the file of a symbol and `order` breaks ties. `more` contains
/// further channels over files.
pub fn locate(
    indexes: &CodeIndexes<'_>,
    task: &Task,
    recipe: &CodeRecipe,
    more: Vec<Channel>,
    file_of: impl Fn(Node) -> Option<Node>,
    order: impl Fn(Node) -> u64 + Copy,
) -> Located {
    let terms: Vec<Term> = task.terms();
    let ranked = |found: Vec<(Node, f32)>| -> Vec<(Node, f64)> {
        best(found.into_iter().map(|(node, score)| (node, f64::from(score))).collect(), MOST, order)
    };
    let all = |index: &TextIndex, scoring: &Scoring| {
        let [found] = index.best_by(&terms, [scoring], MOST);
        ranked(found)
    };
    let channel = |name: &'static str, weight: f64, found: Vec<(Node, f64)>| Channel {
        name,
        weight,
        found: best(found, MOST, order),
    };
    // By text, to rank their files; and by text and name, to rank the symbols themselves.
    let [units, named] = indexes.units.best_by(&terms, [&unit_scoring(0.0), &unit_scoring(OWN_NAME)], MOST).map(ranked);
    let mut by_file: FxHashMap<Node, [f64; FURTHER.len()]> = FxHashMap::default();
    for (node, score) in &units {
        let Some(file) = file_of(*node) else { continue };
        let best = by_file.entry(file).or_default();
        let place = best.iter().position(|other| score > other);
        if let Some(place) = place {
            best[place..].rotate_right(1);
            best[place] = *score;
        }
    }
    let symbols = by_file.into_iter().map(|(file, best)| (file, best.iter().zip(FURTHER).map(|(s, w)| s * w).sum()));
    let mut channels = vec![
        Channel { name: "body", weight: recipe.body, found: all(indexes.files, &body_scoring()) },
        Channel { name: "path", weight: recipe.path, found: all(indexes.paths, &path_scoring()) },
        channel("symbols", recipe.symbols, symbols.collect()),
        channel("defined", recipe.defined, defined(indexes.defined, task)),
    ];
    channels.extend(more.into_iter().map(|more| channel(more.name, more.weight, more.found)));
    channels.retain(|channel| channel.weight > 0.0 && !channel.found.is_empty());
    let files = fuse(&channels, Fusion::WeightedMax, order);
    Located { files, units: named, channels }
}

/// The boost for words in a symbol's own name when symbols are ranked.
const OWN_NAME: f32 = 2.0;

/// Files that define a name of the task, scored by the rarity of the name.
fn defined(index: &TextIndex, task: &Task) -> Vec<(Node, f64)> {
    let mut best: FxHashMap<Node, f64> = FxHashMap::default();
    for (name, in_title) in task.names() {
        let score = f64::from(index.rarity(&name)) * if in_title { IN_TITLE } else { 1.0 };
        for file in index.having(&name) {
            let there = best.entry(file).or_default();
            *there = there.max(score);
        }
    }
    let mut all: Vec<_> = best.into_iter().collect();
    all.sort_by_key(|(node, _)| *node);
    all
}

/// Scores whole texts; names and comments count like any other word.
pub fn body_scoring() -> Scoring {
    let mut scoring = Scoring { boosts: [0.0; FIELDS], ..Scoring::default() };
    scoring.boosts[Field::Body as usize] = 1.0;
    scoring.boosts[Field::Text as usize] = 1.0;
    scoring
}

/// Scores the text of one symbol. Its name is part of the text and may get an additional boost.
fn unit_scoring(name: f32) -> Scoring {
    let mut scoring = Scoring { shortest: SHORTEST, ..body_scoring() };
    scoring.boosts[Field::Name as usize] = name;
    scoring.b[Field::Name as usize] = 0.0;
    scoring
}

/// Scores paths: words in the file name count twice, and long paths are not penalised.
fn path_scoring() -> Scoring {
    Scoring { boosts: [2.0, 1.0, 0.0, 0.0], b: [0.0; FIELDS], delta: 0.0, ..Scoring::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Gathered;

    /// Files 0 and 1; symbols 10 to 13, the first two in file 0.
    fn indexes() -> [TextIndex; 4] {
        let texts = |docs: &[(Node, Field, &str)]| {
            let mut gathered = Gathered::default();
            for (node, field, text) in docs {
                gathered.begin(*node);
                gathered.add(*field, text);
            }
            TextIndex::build(vec![gathered])
        };
        let files = texts(&[
            (0, Field::Body, "def read_config(path): open path\ndef close(): pass"),
            (1, Field::Body, "def render(page): write page\ndef parse(text): words"),
        ]);
        let paths = texts(&[(0, Field::Name, "config"), (1, Field::Name, "page")]);
        let units = texts(&[
            (10, Field::Body, "def read_config(path): open path"),
            (11, Field::Body, "def close(): pass"),
            (12, Field::Body, "def render(page): write page"),
            (13, Field::Body, "def parse(text): words"),
        ]);
        let mut defined = Gathered::default();
        for (file, names) in [(0, ["read_config", "close"]), (1, ["render", "parse"])] {
            defined.begin(file);
            names.iter().for_each(|name| defined.add_word(Field::Name, name));
        }
        [files, paths, units, TextIndex::build(vec![defined])]
    }

    fn ranked(task: &str) -> Located {
        let [files, paths, units, defined] = &indexes();
        let indexes = CodeIndexes { files, paths, units, defined };
        let file_of = |node| Some(u32::from(node >= 12));
        locate(&indexes, &Task::read(task), &CodeRecipe::default(), vec![], file_of, u64::from)
    }

    #[test]
    fn files_are_found_by_text_name_and_symbols() {
        let found = ranked("fix(config): reading an empty path");
        assert_eq!(found.files[0].node, 0);
        let channels: Vec<_> = found.files[0].reasons.iter().map(|r| r.channel).collect();
        assert_eq!(channels, ["body", "path", "symbols"]);
        assert!((found.files[0].score() - 3.25).abs() < 1e-6, "best in every channel");
        assert_eq!(found.units[0].0, 10);
        assert_eq!(ranked("the page is rendered twice").files[0].node, 1);
        let named = ranked("something about close()");
        assert!(named.files[0].reasons.iter().any(|r| r.channel == "defined"), "{named:?}");
        assert_eq!(ranked("nothing of that"), Located::default());
    }
}
