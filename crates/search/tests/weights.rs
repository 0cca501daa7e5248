//! Weights are in `src/recipes.rs` only: other sources of this crate and of the engine contain no number that could be
//! one.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

/// Numbers that are not weights, by the end of a path or a folder in it, with the reason.
const ALLOWED: &[(&str, &[&str], &str)] = &[
    // This crate.
    ("search/src/embed/", &[], "arithmetic of the embedding model"),
    ("vectors/quantised.rs", &["127.0"], "the largest int8"),
    ("search/src/text.rs", &["0.5"], "the formula of the inverse document frequency"),
    ("text/best.rs", &["1.001"], "rounding of bounds; results do not depend on it"),
    ("expand.rs", &["86_400_000_000.0"], "microseconds of a day"),
    // The engine.
    ("recall.rs", &["86_400e6"], "microseconds of a day"),
    ("search.rs", &["86_400e6", "12_345.678_912"], "a day, a placeholder for a time"),
    ("features/search/mod.rs", &["300.0"], "a time budget"),
    ("meaning.rs", &["0.15"], "when a warning is given"),
    ("debug.rs", &["0.2"], "averages of metrics"),
    ("/telemetry/", &[], "bounds of histograms"),
    ("/embedding/", &[], "waiting times, failure rates and progress of the embedding queue"),
    (
        "rendering/embedding.rs",
        &["60.0", "120.0", "3_600.0", "7_200.0", "86_400.0", "172_800.0"],
        "seconds of minutes, hours and days, and from when each is shown",
    ),
    ("rendering/values.rs", &["0.001"], "from when a number is shown in scientific notation"),
    ("facts.rs", &["0.8", "0.7"], "when a fact ends another"),
    ("patterns.rs", &[], "the confidence of patterns in episodes"),
    ("calls.rs", &["0.4"], "a filter of requests: the least confidence of a call"),
    ("graph_traverse.rs", &["0.5"], "a default of requests"),
    ("demo.rs", &["0.98"], "data of the demonstration"),
    ("named.rs", &["0.2"], "when a pattern of code is reported"),
    ("rank.rs", &["0.99"], "a bound of requests"),
    ("embed.rs", &["1e-9"], "no division by zero"),
];

#[test]
fn only_recipes_declare_weights() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    let mut files = 0;
    for file in ["search/src", "engine/src"].iter().flat_map(|folder| sources(&crates.join(folder))) {
        let path = file.display().to_string();
        let is_tests = path.ends_with("tests.rs") || path.contains("/tests/");
        if is_tests || path.ends_with("search/src/recipes.rs") {
            continue;
        }
        files += 1;
        for (line, number) in floats(&std::fs::read_to_string(&file).unwrap()) {
            let is_allowed = ALLOWED.iter().any(|(place, numbers, _)| {
                let is_there = if place.ends_with('/') { path.contains(place) } else { path.ends_with(place) };
                is_there && (numbers.is_empty() || numbers.contains(&number.as_str()))
            });
            if !is_allowed && !is_plain(&number) {
                found.push(format!("{path}:{line}: {number}"));
            }
        }
    }
    assert!(files > 100, "{files} files in {}", crates.display());
    assert!(found.is_empty(), "move weights to crates/search/src/recipes.rs:\n{}", found.join("\n"));
}

#[test]
fn numbers_are_found_in_code_only() {
    let source = "let a = 0.35 * b; // 0.9\nlet c = \"0.7\";\nlet d = x.0.1 + 1e-3 + 2.5f32 + 1..3;\n\
                  let e = \"from \\\n  0.6 on\" + '\"' + 0.8;\n#[cfg(test)]\nmod tests {\n    const X: f64 = 0.4;\n}\n";
    let found: Vec<(usize, String)> = floats(source);
    let expected = [(1, "0.35"), (3, "1e-3"), (3, "2.5"), (5, "0.8")];
    assert_eq!(found, expected.map(|(line, number)| (line, number.to_owned())));
    for (number, expected) in [("0.0", true), ("1.0", true), ("1e6", true), ("1_000.0", true), ("0.1", false)] {
        assert_eq!(is_plain(number), expected, "{number}");
    }
}

/// Whether a number is 0, 1 or a power of ten that converts units or decimals.
fn is_plain(number: &str) -> bool {
    let digits = number.replace('_', "");
    let value: f64 = digits.parse().unwrap();
    value == 0.0 || value == 1.0 || [1e1, 1e2, 1e3, 1e4, 1e6].contains(&value)
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push(path);
        }
    }
    all.sort();
    all
}

/// Floating-point numbers outside of comments, strings and tests, with their lines.
fn floats(source: &str) -> Vec<(usize, String)> {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut all = Vec::new();
    let mut in_string = false;
    for (at, line) in code.lines().enumerate() {
        let (bare, stays_open) = without_strings(line, in_string);
        // A string continues in the next line only after a backslash.
        in_string = stays_open && line.ends_with('\\');
        all.extend(floats_of(&bare).into_iter().map(|number| (at + 1, number)));
    }
    all
}

/// Returns a line without comments and without the contents of strings, and whether it ends within a string.
fn without_strings(line: &str, mut in_string: bool) -> (String, bool) {
    let mut kept = String::new();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if !kept.ends_with('\'') => {
                in_string = !in_string;
                kept.push(c);
            }
            '\\' if in_string => {
                chars.next();
            }
            '/' if !in_string && chars.peek() == Some(&'/') => break,
            c if !in_string => kept.push(c),
            _ => {}
        }
    }
    (kept, in_string)
}

fn floats_of(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = line;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let starts = c.is_ascii_digit() && !(before.is_alphanumeric() || before == '_' || before == '.');
        if !starts {
            before = c;
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let end = |text: &str| text.find(|c: char| !(c.is_ascii_digit() || c == '_')).unwrap_or(text.len());
        let mut length = end(rest);
        let mut is_float = false;
        let after = &rest[length..];
        if after.starts_with('.') && after[1..].starts_with(|c: char| c.is_ascii_digit()) {
            length += 1 + end(&after[1..]);
            is_float = true;
        }
        let after = &rest[length..];
        if let Some(exponent) = after.strip_prefix('e') {
            let sign = usize::from(exponent.starts_with('-'));
            let digits = end(&exponent[sign..]);
            if digits > 0 {
                length += 1 + sign + digits;
                is_float = true;
            }
        }
        let number = rest[..length].trim_end_matches('_');
        let is_typed = rest[length..].starts_with("f32") || rest[length..].starts_with("f64");
        if is_float || is_typed {
            all.push(number.to_owned());
        }
        before = '0';
        rest = &rest[length..];
    }
    all
}
