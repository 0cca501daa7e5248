//! Whether the results fit a task, or are only the nearest there is.

use super::code::{IMPLEMENTS, PackCode};
use crate::features::search::{RankedCandidates, TextIndexes};
use lukasa_graph::Node;
use lukasa_search::recipes::CONFIDENCE;
use lukasa_search::text::Term;
use schemars::JsonSchema;
use serde::Serialize;

/// How likely the entry point of a pack is what the task means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PackConfidence {
    /// It was right for seven of ten tasks that were measured.
    High,
    /// For five of ten.
    Medium,
    /// For two of ten; `low_confidence` says what would help.
    Low,
}

/// What would make a task easier to place.
pub const WOULD_HELP: &str = "others fit about as well; the name of a symbol, a path or an error text would help";

/// How likely the entry point is right, by its score and its lead over the next symbol; not low if the task names it.
/// `None` if there is none.
pub fn confidence(core: &PackCode, task: &str) -> Option<PackConfidence> {
    let first = core.slices.first()?;
    let next = core.slices[1..].iter().find(|slice| slice.why != IMPLEMENTS).map_or(0.0, |next| next.score);
    let x = CONFIDENCE.score * first.score + CONFIDENCE.lead * (first.score - next) + CONFIDENCE.start;
    let probability = 1.0 / (1.0 + (-x).exp());
    Some(match probability {
        p if p >= CONFIDENCE.high => PackConfidence::High,
        p if p >= CONFIDENCE.medium || names(task, &first.name) => PackConfidence::Medium,
        _ => PackConfidence::Low,
    })
}

/// Maximum number of missing words that are named.
const NAMED: usize = 3;

/// Returns why the entry point may not be what the task means: it lacks the rare words of the task. `None` if it fits, or if
/// the task names it.
pub fn doubt(texts: &TextIndexes, found: &RankedCandidates, core: &PackCode, task: &str) -> Option<String> {
    let first = core.slices.first()?;
    if names(task, &first.name) {
        return None;
    }
    let entry = first.node;
    let file = texts.file(entry);
    let weighed: Vec<(f32, f32, &Term)> = found
        .terms
        .iter()
        .map(|term| {
            let says = term.weight * rarity(texts, &term.word);
            (says, says * has(texts, entry, file, term), term)
        })
        .collect();
    let all: f32 = weighed.iter().map(|(says, _, _)| says).sum();
    let there: f32 = weighed.iter().map(|(_, there, _)| there).sum();
    let is_short = weighed.len() <= CONFIDENCE.short;
    let least = if is_short { CONFIDENCE.least_short } else { CONFIDENCE.least_long };
    if all == 0.0 || there / all >= least {
        return None;
    }
    let mut missing: Vec<_> = weighed.iter().filter(|(_, there, _)| *there == 0.0).collect();
    missing.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.2.word.cmp(&b.2.word)));
    let written = |word: &str| format!("`{}`", found.spelled.get(word).map_or(word, String::as_str));
    let named: Vec<String> = missing.iter().take(NAMED).map(|(_, _, term)| written(&term.word)).collect();
    Some(format!("it has nothing of {}", named.join(", ")))
}

/// Whether a task contains the name of a symbol as written in code. Names that are plain words, such as `open`, do not count,
/// because they may not be meant as names.
fn names(task: &str, name: &str) -> bool {
    let name = name.rsplit(['.', ':']).next().unwrap_or(name);
    let inner = name.trim_matches('_');
    let compound = inner.contains('_') || inner.chars().skip(1).any(|c| c.is_uppercase() || c.is_ascii_digit());
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    compound && task.split(|c: char| !is_part(c)).any(|word| word == name)
}

/// The weight of a word by its rarity; a word that occurs nowhere weighs most.
fn rarity(texts: &TextIndexes, word: &str) -> f32 {
    match texts.units.rarity(word) {
        0.0 => ((texts.units.len() + 1) as f32).ln(),
        rarity => rarity,
    }
}

fn has(texts: &TextIndexes, entry: Node, file: Option<Node>, term: &Term) -> f32 {
    let term = std::slice::from_ref(term);
    if texts.units.matched_weight(entry, term) > 0.0 {
        return 1.0;
    }
    let in_file = file.is_some_and(|file| texts.files.matched_weight(file, term) > 0.0);
    if in_file { CONFIDENCE.in_file } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_task_names_a_symbol_as_code_spells_it() {
        for (task, name, is) in [
            ("refresh_token must hand out tokens", "refresh_token", true),
            ("`Client.refreshToken()` fails", "refreshToken", true),
            ("refresh the token", "refresh_token", false),
            ("my_refresh_token fails", "refresh_token", false),
            ("open the file", "open", false),
            ("JSON is wrong", "JSON", true),
            ("__init__ takes too long", "__init__", false),
        ] {
            assert_eq!(names(task, name), is, "{task}: {name}");
        }
    }
}
