//! The `parse` suite: our own parsers compared with tree-sitter, on all files of a folder.

mod known;
#[cfg(feature = "oracles")]
mod oracles;

use crate::{Fault, print, round};
use known::KnownDifferences;
use lukasa_code::lang::descent::compare::{self, ParserDifference};
use lukasa_code::{LanguageId, lang};
use lukasa_engine::features::code::files::SOURCE_BYTES;
use rayon::prelude::*;
use serde_json::json;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Rounds over all files; the shortest time counts.
const ROUNDS: usize = 3;

pub fn run(data: &Path, verbose: bool, as_json: bool) -> Result<(), Fault> {
    let known = KnownDifferences::listed()?;
    let sources = sources(data)?;
    eprintln!("{} files; comparing …", sources.len());
    let readings: Vec<Reading> = sources.par_iter().map(|source| Reading::of(source, &known)).collect();
    if verbose {
        sources.iter().zip(&readings).for_each(|(source, reading)| reading.print(source));
    }
    let read: Vec<(&Source, &Reading)> = sources.iter().zip(&readings).collect();
    for language in LanguageId::all().filter(|language| compare::has_own(*language)) {
        let of_language: Vec<_> = read.iter().filter(|(source, _)| source.language == language).copied().collect();
        if !of_language.is_empty() {
            print(&line(language.name(), &of_language), as_json);
        }
    }
    print(&line("all", &read), as_json);
    #[cfg(feature = "oracles")]
    oracles::run(&read, verbose, as_json);
    Ok(())
}

/// A file that our own parsers may read.
struct Source {
    path: PathBuf,
    language: LanguageId,
    text: String,
}

/// All files below a folder whose language has a parser of our own, in the order of their paths.
fn sources(folder: &Path) -> Result<Vec<Source>, Fault> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, entry.path());
            if kind.is_dir() && entry.file_name() != ".git" {
                folders.push(path);
            } else if kind.is_file() && entry.metadata()?.len() <= SOURCE_BYTES {
                found.push(path);
            }
        }
    }
    found.sort();
    let source = |path: PathBuf| {
        let name = path.to_str()?;
        // Only files without an extension are recognised by their text.
        if path.extension().is_some() && !LanguageId::of(name, "").is_some_and(compare::has_own) {
            return None;
        }
        let text = std::fs::read_to_string(&path).ok()?;
        let language = LanguageId::of(name, &text).filter(|language| compare::has_own(*language))?;
        Some(Source { path, language, text })
    };
    Ok(found.into_par_iter().filter_map(source).collect())
}

/// How the two parsers read a file.
enum Reading {
    /// Our parser leaves the file to tree-sitter.
    Left,
    Same,
    Different {
        difference: ParserDifference,
        /// tree-sitter reports a syntax error, although our parser accepts the file.
        fault: bool,
        /// Listed constructs that tree-sitter misreads and that the file contains.
        known: Vec<String>,
    },
}

/// Facts depend on the path only by the name of the file, so that all files may have the same one.
const PATH: &str = "src/file";

impl Reading {
    fn of(Source { language, text, .. }: &Source, known: &KnownDifferences) -> Reading {
        let Some(own) = compare::own(text, *language) else { return Reading::Left };
        let ours = compare::facts(PATH, text, *language, &own);
        let theirs = compare::facts_by_tree_sitter(PATH, text, *language);
        match compare::difference(&ours, &theirs) {
            None => Reading::Same,
            Some(difference) => Reading::Different {
                difference,
                fault: !theirs.faults.is_empty(),
                known: known.constructs_in(text, *language),
            },
        }
    }

    /// Prints a difference with its first facts.
    fn print(&self, source: &Source) {
        let path = source.path.display();
        match self {
            Reading::Same => {}
            Reading::Left => eprintln!("{path}: left to tree-sitter"),
            Reading::Different { difference, fault, known } => {
                let why = if *fault { "tree-sitter reports an error" } else { "different facts" };
                eprintln!("{path}: {why}; listed: {}", if known.is_empty() { "no".into() } else { known.join(", ") });
                difference.only_ours.iter().take(2).for_each(|fact| eprintln!("    ours        {fact}"));
                difference.only_theirs.iter().take(2).for_each(|fact| eprintln!("    tree-sitter {fact}"));
            }
        }
    }
}

fn line(name: &str, read: &[(&Source, &Reading)]) -> serde_json::Value {
    let count = |is: &dyn Fn(&Reading) -> bool| read.iter().filter(|(_, reading)| is(reading)).count();
    let accepted: Vec<&Source> =
        read.iter().filter(|(_, r)| !matches!(r, Reading::Left)).map(|(source, _)| *source).collect();
    let times = (0..ROUNDS).map(|_| Times::of(&accepted)).reduce(Times::least).unwrap_or_default();
    let bytes: usize = read.iter().map(|(source, _)| source.text.len()).sum();
    let lines: usize = read.iter().map(|(source, _)| source.text.lines().count()).sum();
    let accepted_bytes: usize = accepted.iter().map(|source| source.text.len()).sum();
    let ms = |time: Duration| round(time.as_secs_f64() * 1e3);
    let share = |part: Duration, whole: Duration| round(part.as_secs_f64() / whole.as_secs_f64().max(1e-9));
    json!({
        "suite": "parse", "language": name, "files": read.len(), "lines": lines, "bytes": bytes,
        "left": count(&|r| matches!(r, Reading::Left)),
        "same": count(&|r| matches!(r, Reading::Same)),
        "different": count(&|r| matches!(r, Reading::Different { .. })),
        "different_tree_sitter_fault": count(&|r| matches!(r, Reading::Different { fault: true, .. })),
        "different_listed": count(&|r| matches!(r, Reading::Different { known, .. } if !known.is_empty())),
        "different_new": count(&|r| matches!(r, Reading::Different { known, fault: false, .. } if known.is_empty())),
        "own_ms": ms(times.own), "tree_sitter_ms": ms(times.tree_sitter), "copy_ms": ms(times.copy),
        "facts_ms": ms(times.facts), "ratio": share(times.tree_sitter, times.own),
        "own_mb_per_s": round(accepted_bytes as f64 / 1e6 / times.own.as_secs_f64().max(1e-9)),
        "copy_share": share(times.copy, times.tree_sitter + times.copy + times.facts),
    })
}

/// Processor time on one thread, over files that our parser accepts.
#[derive(Clone, Copy, Default)]
struct Times {
    /// Parsing with our own parser, into the tree that front ends read.
    own: Duration,
    /// Parsing with tree-sitter.
    tree_sitter: Duration,
    /// Copying the tree of tree-sitter into the tree that front ends read.
    copy: Duration,
    /// Extracting facts from that copy.
    facts: Duration,
}

impl Times {
    fn of(sources: &[&Source]) -> Times {
        let mut times = Times::default();
        for Source { language, text, .. } in sources {
            let start = Instant::now();
            drop(black_box(compare::own(text, *language)));
            let own = Instant::now();
            let tree = black_box(lang::tree(text, *language));
            let parsed = Instant::now();
            let copied = black_box(compare::copied(text, &tree, *language));
            let copy = Instant::now();
            black_box(compare::facts(PATH, text, *language, &copied));
            times.own += own - start;
            times.tree_sitter += parsed - own;
            times.copy += copy - parsed;
            times.facts += copy.elapsed();
        }
        times
    }

    fn least(self, other: Times) -> Times {
        Times {
            own: self.own.min(other.own),
            tree_sitter: self.tree_sitter.min(other.tree_sitter),
            copy: self.copy.min(other.copy),
            facts: self.facts.min(other.facts),
        }
    }
}
