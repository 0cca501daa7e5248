//! Which files and symbols a task on a program concerns.
//!
//! Four channels over files: their whole text, what they are called, their symbols, of which the best three speak for their
//! file, and names of the task that they define. Each counts by its own best score, so that none drowns the others. How the
//! weights were found, and what did not help, is told in `docs/ranking.md`.

use crate::fuse::{Candidate, Channel, Fusion, best, fuse};
use crate::question::Task;
use crate::text::{FIELDS, Field, Scoring, Term, TextIndex};
use lukasa_graph::Node;
use rustc_hash::FxHashMap;

/// What the second and third symbol of a file add to the first.
const FURTHER: [f64; 3] = [1.0, 0.5, 0.25];
/// Words of a symbol count as if it had at least so many: one-line accessors would win everything.
const SHORTEST: u32 = 20;
/// Symbols and files of a channel that are looked at: those beyond have next to nothing of the best, and of a million
/// symbols most have some word of a question.
const MOST: usize = 512;
/// What a defined name that stands in the title counts.
const IN_TITLE: f64 = 1.5;

/// What each channel counts.
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

/// Where words are looked up.
pub struct CodeIndexes<'a> {
    pub files: &'a TextIndex,
    pub paths: &'a TextIndex,
    pub units: &'a TextIndex,
    /// Files by the names of what they define.
    pub defined: &'a TextIndex,
}

/// Files and symbols, best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Located {
    pub files: Vec<Candidate>,
    /// Symbols, and files for what stands outside of their symbols, by their own words and names.
    pub units: Vec<(Node, f64)>,
    /// What each channel found, for whoever wants to see all numbers.
    pub channels: Vec<Channel>,
}

/// Ranks files and their symbols. `file_of` gives the file of a symbol, `order` decides between equals; `more` are channels found by other means, over files.
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
    // By what they say, for their files, and by their names as well, to compare them with one another.
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

/// What a word in a symbol's own name counts when symbols are compared with one another.
const OWN_NAME: f32 = 2.0;

/// Files that define a name of the task: by how rare it is that one does.
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

/// Whole texts, a name and a comment counting as any other word.
pub fn body_scoring() -> Scoring {
    let mut scoring = Scoring { boosts: [0.0; FIELDS], ..Scoring::default() };
    scoring.boosts[Field::Body as usize] = 1.0;
    scoring.boosts[Field::Text as usize] = 1.0;
    scoring
}

/// One symbol's own text; its name is part of that, and may count more.
fn unit_scoring(name: f32) -> Scoring {
    let mut scoring = Scoring { shortest: SHORTEST, ..body_scoring() };
    scoring.boosts[Field::Name as usize] = name;
    scoring.b[Field::Name as usize] = 0.0;
    scoring
}

/// A word in a file's own name counts twice; long paths are no worse than short ones.
fn path_scoring() -> Scoring {
    Scoring { boosts: [2.0, 1.0, 0.0, 0.0], b: [0.0; FIELDS], delta: 0.0, ..Scoring::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Gathered;

    /// Files 0 and 1; symbols 10 to 13, the first two of file 0.
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
